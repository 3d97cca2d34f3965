//! The record of a debate: every message with its answer, as it happens.

use std::ops::Deref;

use crucible_model::Digest;
use crucible_secrets::Scanner;

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
    /// The answer; empty where there was none. Of one that is far too long, its beginning, with a last line that says so; of one
    /// that holds a secret, a line that says so and its digest.
    pub reply: String,
    /// `approved` or `objected` of a critique that could be read, else empty. An approval beside an error is none.
    pub verdict: &'static str,
    /// What was wrong with it; empty where nothing was.
    pub error: String,
}

impl MessageRecord {
    /// The same without secrets.
    #[must_use]
    pub fn redacted(self) -> RedactedMessage {
        let scanner = Scanner::builtin();
        let redacted = |text: String| scanner.redact(&text).text.into_owned();
        RedactedMessage(Self {
            provider: redacted(self.provider),
            model: redacted(self.model),
            request: self.request.into_iter().map(|(role, text)| (role, redacted(text))).collect(),
            reply: redacted(self.reply),
            error: redacted(self.error),
            ..self
        })
    }
}

/// A message without secrets, made by [`MessageRecord::redacted`] alone: the only form in which one is kept.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct RedactedMessage(MessageRecord);

impl Deref for RedactedMessage {
    type Target = MessageRecord;

    fn deref(&self) -> &MessageRecord {
        &self.0
    }
}

/// Keeps the messages of a debate, as they happen.
pub trait Transcript: Send {
    /// Takes the next message. What cannot be kept ends the debate.
    ///
    /// # Errors
    ///
    /// One sentence that says why.
    fn keep(&mut self, message: &RedactedMessage) -> Result<(), String>;
}

/// The longest reply that is kept whole, in bytes.
const MOST_KEPT: usize = 256 * 1024;

/// What stands in the record for a reply with a secret in it. Its escapes may hide more than a redaction finds.
pub(super) fn withheld(reply: &str) -> String {
    format!(
        "[withheld: the reply holds what looks like a secret; its digest is {}]",
        Digest::of(reply.as_bytes())
    )
}

/// A reply as it is kept.
fn kept(reply: &str) -> String {
    if reply.len() <= MOST_KEPT {
        return reply.to_owned();
    }
    let beginning = &reply[..reply.floor_char_boundary(MOST_KEPT)];
    format!("{beginning}\n[cut: the reply has {} bytes]", reply.len())
}

/// Keeps a message without its secrets; where the debate ends already, its own reason comes first.
pub(super) fn keep<T>(
    transcript: &mut dyn Transcript,
    message: MessageRecord,
    outcome: Result<T, DebateError>,
) -> Result<T, DebateError> {
    let mut message = message.redacted();
    message.0.reply = kept(&message.reply);
    let kept = transcript.keep(&message).map_err(|why| DebateError::Transcript { why });
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
