//! Records the messages of a debate with their answers, as they happen.

use std::ops::Deref;

use crucible_model::Digest;
use crucible_secrets::Scanner;

use super::error::DebateError;

/// One recorded message of a debate.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct MessageRecord {
    /// `draft`, `critique`, `revision` or `synthesis`.
    pub phase: &'static str,
    /// The round, from 1; 0 for the synthesis.
    pub round: u32,
    /// `gpt` or `claude`.
    pub owner: &'static str,
    /// The provider that was asked.
    pub provider: String,
    /// The model that answered; empty if none did.
    pub model: String,
    /// The sent messages, each with role and text.
    pub request: Vec<(String, String)>,
    /// The answer; empty if there was none. A much too long one is cut, with a last line that says so.
    /// One with a secret is replaced by a line with its digest.
    pub reply: String,
    /// `approved` or `objected` for a valid critique, else empty. An approval that names an error counts
    /// as `objected`.
    pub verdict: &'static str,
    /// What was wrong with it; empty if nothing was.
    pub error: String,
}

impl MessageRecord {
    /// Removes the secrets.
    #[must_use]
    pub fn redacted(self) -> RedactedMessage {
        let scanner = Scanner::builtin();
        let redacted = |text: String| scanner.redact(&text).text.into_owned();
        RedactedMessage(Self {
            provider: redacted(self.provider),
            model: redacted(self.model),
            request: self
                .request
                .into_iter()
                .map(|(role, text)| (role, redacted(text)))
                .collect(),
            reply: redacted(self.reply),
            error: redacted(self.error),
            ..self
        })
    }
}

/// A redacted message, created only by [`MessageRecord::redacted`]: the only form that is stored.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct RedactedMessage(MessageRecord);

impl Deref for RedactedMessage {
    type Target = MessageRecord;

    fn deref(&self) -> &MessageRecord {
        &self.0
    }
}

/// Stores the messages of a debate as they happen.
pub trait Transcript: Send {
    /// Stores the next message. An error ends the debate.
    ///
    /// # Errors
    ///
    /// The reason, in one sentence.
    fn keep(&mut self, message: &RedactedMessage) -> Result<(), String>;
}

/// The longest reply that is stored completely, in bytes.
const MAX_KEPT: usize = 256 * 1024;

/// The replacement for a reply that contains a secret. Its escapes may hide more than redaction finds.
pub(super) fn withheld_notice(reply: &str) -> String {
    format!(
        "[withheld: the reply holds what looks like a secret; its digest is {}]",
        Digest::compute(reply.as_bytes())
    )
}

/// The stored form of a reply.
fn truncated_reply(reply: &str) -> String {
    if reply.len() <= MAX_KEPT {
        return reply.to_owned();
    }
    let beginning = &reply[..reply.floor_char_boundary(MAX_KEPT)];
    format!("{beginning}\n[cut: the reply has {} bytes]", reply.len())
}

/// Stores a redacted message; if the debate already has an error, that one takes precedence.
pub(super) fn store<T>(
    transcript: &mut dyn Transcript,
    message: MessageRecord,
    outcome: Result<T, DebateError>,
) -> Result<T, DebateError> {
    let mut message = message.redacted();
    message.0.reply = truncated_reply(&message.reply);
    let stored = transcript
        .keep(&message)
        .map_err(|why| DebateError::Transcript { why });
    outcome.and_then(|value| stored.map(|()| value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_reply_is_marked_as_cut() {
        assert_eq!(truncated_reply("fine"), "fine");
        let full_text = "x".repeat(MAX_KEPT);
        assert_eq!(truncated_reply(&full_text), full_text);
        let long = truncated_reply(&"ü".repeat(MAX_KEPT));
        assert!(long.len() < MAX_KEPT + 100);
        assert!(
            long.ends_with(&format!("ü\n[cut: the reply has {} bytes]", MAX_KEPT * 2)),
            "{}",
            long.len()
        );
    }
}
