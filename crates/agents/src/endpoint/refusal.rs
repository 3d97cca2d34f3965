//! Errors in the form of each wire, so that an agent's client understands them.

use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use serde_json::{Value, json};

use crate::profile::Wire;

/// Why a request was not forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    /// The body of the error.
    pub(super) fn body(&self, wire: Wire) -> Value {
        let Self { status, message } = self;
        let message = format!("Crucible: {message}");
        match wire {
            Wire::Anthropic => {
                let kind = match status {
                    401 => "authentication_error",
                    402 => "billing_error",
                    404 => "not_found_error",
                    413 => "request_too_large",
                    500.. => "api_error",
                    _ => "invalid_request_error",
                };
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
            Wire::OpenAi => {
                let (kind, code) = match status {
                    401 => ("invalid_request_error", "invalid_api_key"),
                    402 => ("insufficient_quota", "insufficient_quota"),
                    500.. => ("server_error", "server_error"),
                    _ => ("invalid_request_error", "invalid_request"),
                };
                json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
            }
            Wire::Gemini => {
                let name = match status {
                    401 => "UNAUTHENTICATED",
                    402 => "FAILED_PRECONDITION",
                    404 => "NOT_FOUND",
                    500.. => "UNAVAILABLE",
                    _ => "INVALID_ARGUMENT",
                };
                json!({"error": {"code": status, "message": message, "status": name}})
            }
        }
    }

    /// Returns the HTTP response.
    pub(super) fn response(&self, wire: Wire) -> Response<Body> {
        json_response(self.status, self.body(wire).to_string().into_bytes())
    }
}

/// An answer of JSON.
pub(super) fn json_response(status: u16, body: Vec<u8>) -> Response<Body> {
    response(status, "application/json", Body::from(body))
}

/// Returns a response with this content type.
pub(super) fn response(status: u16, content_type: &str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    if let Ok(value) = header::HeaderValue::from_str(content_type) {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_uses_api_error_format() {
        let refusal = Refusal::new(402, "the budget is exhausted");
        let at = |wire, pointer: &str| {
            refusal
                .body(wire)
                .pointer(pointer)
                .cloned()
                .unwrap_or_default()
        };
        assert_eq!(at(Wire::Anthropic, "/type"), "error");
        assert_eq!(at(Wire::Anthropic, "/error/type"), "billing_error");
        assert_eq!(at(Wire::OpenAi, "/error/code"), "insufficient_quota");
        assert_eq!(at(Wire::Gemini, "/error/status"), "FAILED_PRECONDITION");
        for wire in Wire::ALL {
            assert_eq!(
                at(wire, "/error/message"),
                "Crucible: the budget is exhausted"
            );
        }
    }
}
