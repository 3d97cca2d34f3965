//! One address of an HTTP provider: sends requests, and classifies bad answers.
//!
//! Requests are not streamed, and bounded in time and size. The key is sent only in the header that its
//! provider expects. The text of a server's error is never read, because it may quote the request or the
//! key.

use std::sync::Arc;
use std::time::Duration;

use crucible_host::http::{HttpClient, HttpError, HttpRequest, Payload};
use crucible_model::{ByteLimit, Secret};

use crate::context::Context;
use crate::error::LlmError;
use crate::http_fault::{CallTarget, CallTime};
use crate::provider_settings::checked_url;

/// The longest answer that is read. A million tokens are about four megabytes.
const MAX_BODY: ByteLimit = ByteLimit(16 * 1024 * 1024);

/// An address below a provider's base address, with its headers.
pub(crate) struct Endpoint {
    http: Arc<HttpClient>,
    url: String,
    headers: Vec<(String, Secret)>,
    cap: Duration,
}

impl Endpoint {
    /// Creates the address `path` below `base_url`. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] if no path can be appended to the base address, or a header is invalid.
    pub(crate) fn new(
        provider: &'static str,
        base_url: &str,
        path: &str,
        headers: Vec<(String, Secret)>,
        context: &Context,
    ) -> Result<Self, LlmError> {
        let base = checked_url(provider, base_url)?;
        let target = CallTarget {
            provider,
            model: "",
        };
        if base.contains(['?', '#']) {
            return Err(LlmError::Misconfiguration(target.fault(
                "the address cannot be used: it contains a query or a fragment",
                format!("remove it, so that [llm.{provider}] base_url ends with the path"),
            )));
        }
        if let Some((name, _)) = headers.iter().find(|(_, value)| !can_be_sent(value)) {
            return Err(target.unsendable(&HttpError::BadHeader { name: name.clone() }));
        }
        let url = format!("{}/{path}", base.trim_end_matches('/'));
        Ok(Self {
            http: Arc::clone(&context.http),
            url,
            headers,
            cap: context.http_cap,
        })
    }

    /// The time limit of a call with this own limit.
    pub(crate) fn time(&self, allowed: Duration) -> CallTime {
        CallTime {
            call: allowed,
            cap: self.cap,
        }
    }

    /// Sends one request, and reads the body of a 200 response.
    ///
    /// # Errors
    ///
    /// The error for a failed connection or another status.
    pub(crate) async fn send(
        &self,
        target: CallTarget<'_>,
        time: CallTime,
        payload: Payload,
    ) -> Result<Vec<u8>, LlmError> {
        let request = HttpRequest {
            url: self.url.clone(),
            headers: self.headers.clone(),
            payload,
            timeout: time.effective(),
            max_body: MAX_BODY,
        };
        let answer = self
            .http
            .send(request)
            .await
            .map_err(|error| target.on_http_error(&error, time))?;
        if answer.status != 200 {
            return Err(target.on_status(answer.status, &answer.headers));
        }
        Ok(answer.body)
    }
}

/// The header in which most providers expect the key.
pub(crate) fn bearer(key: &Secret) -> (String, Secret) {
    (
        "authorization".to_owned(),
        Secret::new(format!("Bearer {}", key.expose())),
    )
}

/// Whether a header can contain this value: visible ASCII and spaces.
fn can_be_sent(value: &Secret) -> bool {
    value
        .expose()
        .bytes()
        .all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
}
