//! The outermost layer: a request that holds a secret is never sent, recorded or shown.
//!
//! Whoever makes requests of values, or reads answers as JSON, has the same scanner: a text is another one when it is encoded, and
//! a secret in it is found in one of the two forms alone.

use std::borrow::Cow;

use crucible_secrets::Scanner;
use serde_json::Value;

use crate::backend::LlmBackend;
use crate::cassette::CassetteError;
use crate::error::{CallError, SecretInRequest, SecretPlace};
use crate::invocation::{LlmInvocation, LlmResult};
use crate::record::Recorded;
use crate::retry::Retried;

/// From this many bytes on, scanning takes longer than going to another thread.
const LONG: usize = 16 * 1024;

/// Looks for secrets in each request before anything else happens with it.
pub(crate) struct SecretScanned<B> {
    inner: B,
    scanner: &'static Scanner,
}

impl<B> SecretScanned<B> {
    /// Scans the requests to `inner`.
    pub(crate) fn new(inner: B, scanner: &'static Scanner) -> Self {
        Self { inner, scanner }
    }

    /// What lies within.
    pub(crate) fn inner(&self) -> &B {
        &self.inner
    }

    /// Scans each text and each key of a value.
    pub(crate) fn refuse_secrets(&self, value: &Value) -> Result<(), SecretInRequest> {
        scan_value(self.scanner, value)
    }

    /// A text of JSON without the secrets in its decoded strings, and how many there were.
    pub(crate) fn redact_json<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
        redact_json(self.scanner, text)
    }

    /// Scans a request; a long one on a thread of its own, so that calls which wait together do not wait for each other's scan.
    async fn scanned(&self, inv: LlmInvocation) -> Result<LlmInvocation, CallError> {
        let scanner = self.scanner;
        let bytes: usize = inv.messages.iter().map(|message| message.content.as_str().len()).sum();
        if bytes < LONG {
            scan(scanner, &inv)?;
            return Ok(inv);
        }
        let scanned = tokio::task::spawn_blocking(move || scan(scanner, &inv).map(|()| inv)).await;
        // Only a program that is ending does not come to this.
        Ok(scanned.map_err(|_ended| CassetteError::Interrupted)??)
    }
}

fn scan(scanner: &Scanner, inv: &LlmInvocation) -> Result<(), SecretInRequest> {
    for (index, message) in inv.messages.iter().enumerate() {
        scan_text(scanner, message.content.as_str(), SecretPlace::Message(index))?;
    }
    scan_text(scanner, &inv.model, SecretPlace::Model)?;
    inv.metadata.iter().try_for_each(|(name, value)| {
        scan_text(scanner, name, SecretPlace::Metadata)?;
        scan_value(scanner, value)
    })
}

fn scan_value(scanner: &Scanner, value: &Value) -> Result<(), SecretInRequest> {
    match value {
        Value::String(text) => scan_text(scanner, text, SecretPlace::Metadata),
        Value::Array(items) => items.iter().try_for_each(|item| scan_value(scanner, item)),
        Value::Object(fields) => fields.iter().try_for_each(|(name, field)| {
            scan_text(scanner, name, SecretPlace::Metadata)?;
            scan_value(scanner, field)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn scan_text(scanner: &Scanner, text: &str, place: SecretPlace) -> Result<(), SecretInRequest> {
    match scanner.scan(text.as_bytes()).first() {
        Some(found) => Err(SecretInRequest { rule: found.rule.to_string(), place, line: found.line }),
        None => Ok(()),
    }
}

fn redact_json<'t>(scanner: &Scanner, text: &'t str) -> (Cow<'t, str>, u64) {
    let mut redactions = 0;
    let mut clean = String::new();
    // Up to here the text stands in `clean`.
    let mut taken = 0;
    let mut from = 0;
    while let Some(begin) = text.get(from..).and_then(|rest| rest.find('"')).map(|found| from + found) {
        let inside = begin + 1;
        let literal = string_end(text, inside);
        from = literal.unwrap_or_else(|no_string| no_string);
        let Some(string) = literal.ok().and_then(|end| text.get(begin..end)) else { continue };
        // Without an escape it is what it says, and was scanned as that.
        let decoded = string.contains('\\').then(|| serde_json::from_str::<String>(string).ok()).flatten();
        let Some(decoded) = decoded else { continue };
        let redacted = scanner.redact(&decoded);
        if redacted.count > 0 {
            redactions += redacted.count;
            clean.push_str(text.get(taken..begin).unwrap_or_default());
            clean.push_str(&Value::String(redacted.text.into_owned()).to_string());
            taken = from;
        }
    }
    if redactions == 0 {
        return (Cow::Borrowed(text), 0);
    }
    clean.push_str(text.get(taken..).unwrap_or_default());
    (Cow::Owned(clean), redactions)
}

/// Where a string of JSON ends whose inside begins here, behind its closing quotation mark; or, where it is none because it holds
/// a line break or has no end, where to go on.
fn string_end(text: &str, inside: usize) -> Result<usize, usize> {
    let mut escaped = false;
    for (place, byte) in (inside..).zip(text.bytes().skip(inside)) {
        match byte {
            b'\n' | b'\r' => return Err(place + 1),
            _ if escaped => escaped = false,
            b'"' => return Ok(place + 1),
            b'\\' => escaped = true,
            _ => {}
        }
    }
    Err(text.len())
}

impl<B: LlmBackend> SecretScanned<Recorded<Retried<B>>> {
    /// Makes a call whose request holds no secret. How many attempts were sent is added to `sent`.
    ///
    /// # Errors
    ///
    /// [`CallError::Secret`] when it holds one; otherwise whatever the layers within say.
    pub(crate) async fn call(&self, inv: LlmInvocation, sent: &mut u64) -> Result<LlmResult, CallError> {
        let inv = self.scanned(inv).await?;
        self.inner.call(inv, sent).await
    }
}
