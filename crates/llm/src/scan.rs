//! The outermost layer: a request that contains a secret is never sent, recorded or shown.
//!
//! Code that builds requests from values, or parses answers as JSON, uses the same scanner: encoding
//! changes a text, and a secret may be visible in only one of the two forms.

use std::borrow::Cow;

use crucible_secrets::Scanner;
use serde_json::Value;

use crate::backend::LlmBackend;
use crate::call_error::{CallError, SecretInRequest, SecretPlace};
use crate::cassette::CassetteError;
use crate::invocation::{LlmInvocation, LlmResult};
use crate::record::Recorded;
use crate::retry::Retried;

/// The bytes from which scanning takes longer than switching to another thread.
const LONG: usize = 16 * 1024;

/// Scans each request for secrets before anything else happens.
pub(crate) struct SecretScanned<B> {
    inner: B,
    scanner: &'static Scanner,
}

impl<B> SecretScanned<B> {
    /// Wraps `inner`.
    pub(crate) fn new(inner: B, scanner: &'static Scanner) -> Self {
        Self { inner, scanner }
    }

    /// The wrapped layer.
    pub(crate) fn inner(&self) -> &B {
        &self.inner
    }

    /// Scans each text and each key of a value.
    pub(crate) fn refuse_secrets(&self, value: &Value) -> Result<(), SecretInRequest> {
        scan_value(self.scanner, value)
    }

    /// Redacts the decoded strings of a JSON text, and counts the secrets.
    pub(crate) fn redact_json<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
        redact_json(self.scanner, text)
    }

    /// Scans a request, a long one on a blocking thread, so that concurrent calls do not wait for each
    /// other's scan.
    async fn scanned(&self, inv: LlmInvocation) -> Result<LlmInvocation, CallError> {
        let scanner = self.scanner;
        let bytes: usize = inv
            .messages
            .iter()
            .map(|message| message.content.as_str().len())
            .sum();
        if bytes < LONG {
            scan(scanner, &inv)?;
            return Ok(inv);
        }
        let scanned = tokio::task::spawn_blocking(move || scan(scanner, &inv).map(|()| inv)).await;
        // The task fails only while the program shuts down.
        Ok(scanned.map_err(|_ended| CassetteError::Interrupted)??)
    }
}

fn scan(scanner: &Scanner, inv: &LlmInvocation) -> Result<(), SecretInRequest> {
    for (index, message) in inv.messages.iter().enumerate() {
        scan_text(
            scanner,
            message.content.as_str(),
            SecretPlace::Message(index),
        )?;
    }
    scan_text(scanner, &inv.model, SecretPlace::Model)?;
    inv.metadata.iter().try_for_each(|(name, value)| {
        scan_text(scanner, name, SecretPlace::Metadata)?;
        scan_value(scanner, value)
    })
}

/// Scans each text and each key of a request that is sent as it is.
///
/// # Errors
///
/// The first secret found.
pub fn refuse_secrets(scanner: &Scanner, value: &Value) -> Result<(), SecretInRequest> {
    scan_value(scanner, value)
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
        Some(found) => Err(SecretInRequest {
            rule: found.rule.to_string(),
            place,
            line: found.line,
        }),
        None => Ok(()),
    }
}

fn redact_json<'t>(scanner: &Scanner, text: &'t str) -> (Cow<'t, str>, u64) {
    let mut redactions = 0;
    let mut clean = String::new();
    // The text up to here is in `clean`.
    let mut used = 0;
    let mut from = 0;
    while let Some(begin) = text
        .get(from..)
        .and_then(|rest| rest.find('"'))
        .map(|found| from + found)
    {
        let inside = begin + 1;
        let literal = string_end(text, inside);
        from = literal.unwrap_or_else(|no_string| no_string);
        let Some(string) = literal.ok().and_then(|end| text.get(begin..end)) else {
            continue;
        };
        // A string without escapes was already scanned as plain text.
        let decoded = string
            .contains('\\')
            .then(|| serde_json::from_str::<String>(string).ok())
            .flatten();
        let Some(decoded) = decoded else { continue };
        let redacted = scanner.redact(&decoded);
        if redacted.count > 0 {
            redactions += redacted.count;
            clean.push_str(text.get(used..begin).unwrap_or_default());
            clean.push_str(&Value::String(redacted.text.into_owned()).to_string());
            used = from;
        }
    }
    if redactions == 0 {
        return (Cow::Borrowed(text), 0);
    }
    clean.push_str(text.get(used..).unwrap_or_default());
    (Cow::Owned(clean), redactions)
}

/// The end of a JSON string whose content begins here, after its closing quotation mark. If it contains a
/// line break or has no end, where to continue.
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
    /// Makes a call whose request contains no secret. Adds the number of attempts sent to `sent`.
    ///
    /// # Errors
    ///
    /// [`CallError::Secret`] if the request contains a secret; otherwise the errors of the inner layers.
    pub(crate) async fn call(
        &self,
        inv: LlmInvocation,
        sent: &mut u64,
    ) -> Result<LlmResult, CallError> {
        let inv = self.scanned(inv).await?;
        self.inner.call(inv, sent).await
    }
}
