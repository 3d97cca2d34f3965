//! The record of a debate: every message with its answer, as it happens.

use super::error::DebateError;

/// One message of a debate, for the record.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct MessageRecord {
    /// `draft`, `critique`, `revision` or `synthesis`.
    pub phase: &'static str,
    /// The round, from 1; 0 of the synthesis.
    pub round: u32,
    /// `gpt` or `claude`.
    pub owner: &'static str,
    /// Who was asked.
    pub provider: String,
    /// The model that answered; empty where none did.
    pub model: String,
    /// The messages that were sent, each as its role and its text.
    pub request: Vec<(String, String)>,
    /// The answer, without secrets; empty where there was none. Of one that is far too long, its beginning, with a last line that
    /// says so.
    pub reply: String,
    /// What was wrong with it; empty where nothing was.
    pub error: String,
}

/// Keeps the messages of a debate, as they happen.
pub trait Transcript: Send {
    /// Takes the next message. What cannot be kept ends the debate.
    ///
    /// # Errors
    ///
    /// One sentence that says why.
    fn keep(&mut self, message: &MessageRecord) -> Result<(), String>;
}

/// The longest reply that is kept whole, in bytes.
const MOST_KEPT: usize = 256 * 1024;

/// A reply as it is kept.
pub(super) fn kept(reply: &str) -> String {
    if reply.len() <= MOST_KEPT {
        return reply.to_owned();
    }
    let beginning = &reply[..reply.floor_char_boundary(MOST_KEPT)];
    format!("{beginning}\n[cut: the reply has {} bytes]", reply.len())
}

/// Keeps a message; where the debate ends already, its own reason comes first.
pub(super) fn keep<T>(
    transcript: &mut dyn Transcript,
    message: &MessageRecord,
    outcome: Result<T, DebateError>,
) -> Result<T, DebateError> {
    let kept = transcript.keep(message).map_err(|why| DebateError::Transcript { why });
    outcome.and_then(|value| kept.map(|()| value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_kept_whole_or_says_that_it_is_not() {
        assert_eq!(kept("fine"), "fine");
        let whole = "x".repeat(MOST_KEPT);
        assert_eq!(kept(&whole), whole);
        let long = kept(&"ü".repeat(MOST_KEPT));
        assert!(long.len() < MOST_KEPT + 100);
        assert!(
            long.ends_with(&format!("ü\n[cut: the reply has {} bytes]", MOST_KEPT * 2)),
            "{}",
            long.len()
        );
    }
}
