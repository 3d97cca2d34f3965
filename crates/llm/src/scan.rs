//! The outermost layer: a request that holds a secret is never sent, recorded or shown.

use crucible_secrets::Scanner;
use serde_json::Value;

use crate::backend::LlmBackend;
use crate::error::{CallError, SecretInRequest, SecretPlace};
use crate::invocation::{LlmInvocation, LlmResult};
use crate::record::Recorded;
use crate::retry::Retried;

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

    fn scan(&self, inv: &LlmInvocation) -> Result<(), SecretInRequest> {
        for (index, message) in inv.messages.iter().enumerate() {
            self.scan_text(message.content.as_str(), SecretPlace::Message(index))?;
        }
        self.scan_text(&inv.model, SecretPlace::Model)?;
        inv.metadata.iter().try_for_each(|(name, value)| {
            self.scan_text(name, SecretPlace::Metadata)?;
            self.scan_value(value)
        })
    }

    fn scan_value(&self, value: &Value) -> Result<(), SecretInRequest> {
        match value {
            Value::String(text) => self.scan_text(text, SecretPlace::Metadata),
            Value::Array(items) => items.iter().try_for_each(|item| self.scan_value(item)),
            Value::Object(fields) => fields.iter().try_for_each(|(name, field)| {
                self.scan_text(name, SecretPlace::Metadata)?;
                self.scan_value(field)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    fn scan_text(&self, text: &str, place: SecretPlace) -> Result<(), SecretInRequest> {
        match self.scanner.scan(text.as_bytes()).first() {
            Some(found) => Err(SecretInRequest { rule: found.rule.to_string(), place, line: found.line }),
            None => Ok(()),
        }
    }
}

impl<B: LlmBackend> SecretScanned<Recorded<Retried<B>>> {
    /// Makes a call whose request holds no secret.
    ///
    /// # Errors
    ///
    /// [`CallError::Secret`] when it holds one; otherwise whatever the layers within say.
    pub(crate) async fn call(&self, inv: LlmInvocation) -> Result<LlmResult, CallError> {
        self.scan(&inv)?;
        self.inner.call(inv).await
    }
}
