//! The outermost layer: a request that holds a secret is never sent, recorded or shown.

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

impl<B: LlmBackend> SecretScanned<Recorded<Retried<B>>> {
    /// Makes a call whose request holds no secret.
    ///
    /// # Errors
    ///
    /// [`CallError::Secret`] when it holds one; otherwise whatever the layers within say.
    pub(crate) async fn call(&self, inv: LlmInvocation) -> Result<LlmResult, CallError> {
        let inv = self.scanned(inv).await?;
        self.inner.call(inv).await
    }
}
