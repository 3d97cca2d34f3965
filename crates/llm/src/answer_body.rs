//! Parses the body of a 200 response.
//!
//! Invariants: an unexpected body becomes an error in our own words, without any text of the body. A
//! model name from a server is shortened to one line before it is used.

use crucible_model::is_hidden;
use serde::de::DeserializeOwned;

use crate::error::LlmError;
use crate::http_fault::CallTarget;

/// The most characters of a model's name from a server.
const MAX_MODEL_NAME: usize = 200;

/// The most characters of a finish reason; known ones have at most thirty.
const MAX_REASON: usize = 64;

/// A description of the expected body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    /// A noun with its article: `a chat completion`.
    pub(crate) what: &'static str,
    /// What to check if the body is something else.
    pub(crate) next: &'static str,
}

/// Parses a body as the expected type.
///
/// # Errors
///
/// [`LlmError::ProviderOutage`] if it is not UTF-8, a web page, not JSON or other JSON. It is never transient, because the same
/// request would reach the same server.
pub(crate) fn read<T: DeserializeOwned>(
    target: CallTarget<'_>,
    body: &[u8],
    expected: Expected,
) -> Result<T, LlmError> {
    let text = std::str::from_utf8(body)
        .map_err(|_| target.unreadable("the answer is not UTF-8", "check the server's log"))?;
    serde_json::from_str(text).map_err(|_| {
        let what = if text.trim_start().starts_with('<') {
            format!("the answer is a web page, not {}", expected.what)
        } else {
            format!("the answer is not {} in JSON", expected.what)
        };
        target.unreadable(what, expected.next)
    })
}

/// A model's name from a server as one bounded line. Local servers report the path of the loaded file, of
/// which only the last part is kept.
pub(crate) fn model_name(stated: Option<&str>, requested: &str) -> String {
    let stated = stated.unwrap_or_default();
    let name = if stated.starts_with('/') {
        stated.rsplit('/').next().unwrap_or(requested)
    } else {
        stated
    };
    let name = plain(name, MAX_MODEL_NAME);
    if name.is_empty() {
        requested.to_owned()
    } else {
        name
    }
}

/// A model's name in a server's list: as [`model_name`], but with the whole path, because requests must
/// use it.
pub(crate) fn model_id(stated: &str) -> String {
    plain(stated, MAX_MODEL_NAME)
}

/// The finish reason that a server reports.
pub(crate) fn reason(stated: &str) -> String {
    plain(stated, MAX_REASON)
}

fn plain(text: &str, most: usize) -> String {
    text.chars().filter(|c| !is_hidden(*c)).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_name_is_one_short_line() {
        let named = |stated: &str| model_name(Some(stated), "m");
        assert_eq!(named("/home/someone/models/q.gguf"), "q.gguf");
        assert_eq!(named("org/model:free"), "org/model:free");
        assert_eq!(named("a\nb\u{1b}[2J\u{202e}"), "ab[2J");
        assert_eq!(named("/"), "m");
        assert_eq!(named(&"x".repeat(5000)).len(), MAX_MODEL_NAME);
        assert_eq!(model_name(None, "m"), "m");
    }

    #[test]
    fn a_reason_is_one_short_line() {
        assert_eq!(reason("end_turn"), "end_turn");
        assert_eq!(reason("st\r\nop\u{1b}"), "stop");
        assert_eq!(reason(&"y".repeat(5000)).len(), MAX_REASON);
    }
}
