//! The body of a 200, and what a server says in it of itself.
//!
//! What always holds: a body that is not what was asked for becomes an error in our own words, of which none comes from
//! the body; a name that a server states is one short line before it gets anywhere.

use crucible_model::is_hidden;
use serde::de::DeserializeOwned;

use crate::error::LlmError;
use crate::http_fault::CallTarget;

/// How much of a model's name, as a server states it, is believed.
const MAX_MODEL_NAME: usize = 200;

/// How much of the reason for an answer's end is kept; those that are known have at most thirty characters.
const MAX_REASON: usize = 64;

/// What a body should be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    /// With its article: `a chat completion`.
    pub(crate) what: &'static str,
    /// What to check when it is something else.
    pub(crate) next: &'static str,
}

/// Reads a body as what it should be.
///
/// # Errors
///
/// [`LlmError::ProviderOutage`] when it is not UTF-8, a web page, or other JSON or none; never transient, for the same
/// request would meet the same server.
pub(crate) fn read<T: DeserializeOwned>(
    asked: CallTarget<'_>,
    body: &[u8],
    expected: Expected,
) -> Result<T, LlmError> {
    let text = std::str::from_utf8(body)
        .map_err(|_| asked.unreadable("the answer is not UTF-8", "check the server's log"))?;
    serde_json::from_str(text).map_err(|_| {
        let what = if text.trim_start().starts_with('<') {
            format!("the answer is a web page, not {}", expected.what)
        } else {
            format!("the answer is not {} in JSON", expected.what)
        };
        asked.unreadable(what, expected.next)
    })
}

/// A model's name as a server states it: one line of bounded length; local servers name the file they loaded,
/// of which only the last part is kept.
pub(crate) fn model_name(stated: Option<&str>, asked: &str) -> String {
    let stated = stated.unwrap_or_default();
    let name = if stated.starts_with('/') { stated.rsplit('/').next().unwrap_or(asked) } else { stated };
    let name = plain(name, MAX_MODEL_NAME);
    if name.is_empty() { asked.to_owned() } else { name }
}

/// What a server calls a model that it offers: as [`model_name`], but whole, for it has to be said back.
pub(crate) fn model_id(stated: &str) -> String {
    plain(stated, MAX_MODEL_NAME)
}

/// Why an answer ended, as a server states it.
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
    fn the_name_of_a_model_is_one_short_line_without_directories() {
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
