//! Requests to models and their answers.
//!
//! Requests consist of [`PromptText`], so foreign text is always fenced in them. Answers are foreign
//! text: [`LlmResult::answer`] and [`LlmResult::complete_answer`] return [`Untrusted`]. The `Debug` output
//! of all types here shows lengths, never text.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crucible_model::{PromptText, Untrusted};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Fault, LlmError};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The system instructions.
    System,
    /// The user.
    User,
    /// The model, in an earlier turn.
    Assistant,
}

impl Role {
    /// The role in every provider's spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One message of a conversation; plain text only.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The text.
    pub content: PromptText,
}

impl Message {
    /// Creates a message with system instructions.
    #[must_use]
    pub fn system(content: PromptText) -> Self {
        Self {
            role: Role::System,
            content,
        }
    }

    /// Creates a message of the user.
    #[must_use]
    pub fn user(content: PromptText) -> Self {
        Self {
            role: Role::User,
            content,
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Message({}, {} bytes)",
            self.role.as_str(),
            self.content.as_str().len()
        )
    }
}

/// One call to a model.
#[derive(Clone, PartialEq)]
pub struct LlmInvocation {
    /// The purpose of the call: a run id or a spec id.
    pub spec_id: String,
    /// The step within it.
    pub phase_id: String,
    /// The model; empty selects the backend's default.
    pub model: String,
    /// The time limit of the whole call, retries included.
    pub timeout: Duration,
    /// The conversation.
    pub messages: Vec<Message>,
    /// Hints that override the backend's defaults: `max_tokens`, `temperature`, `top_p`, `seed`,
    /// `response_format`, `models` (fallback models, in order). A hint that a backend cannot follow is
    /// listed in the result's extension `ignored_metadata`.
    pub metadata: BTreeMap<String, Value>,
}

impl fmt::Debug for LlmInvocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlmInvocation")
            .field("spec_id", &self.spec_id)
            .field("phase_id", &self.phase_id)
            .field("model", &self.model)
            .field("timeout", &self.timeout)
            .field("messages", &self.messages)
            .field("metadata", &self.metadata.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// How a backend handles the hint `models`, an ordered list of fallback models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FallbackList {
    /// The result notes that the list was ignored.
    NotTaken,
    /// The service applies it, and the answer names the model that was used.
    Taken,
}

impl LlmInvocation {
    /// The hint with the fallback models, in order.
    pub const FALLBACK_MODELS: &'static str = "models";

    /// Those models, if the service supports the list.
    ///
    /// # Errors
    ///
    /// [`LlmError::Unsupported`] if the hint is not a list of names: the cost of the answer would be unknown.
    pub(crate) fn fallback_models(
        &self,
        provider: &str,
        list: FallbackList,
    ) -> Result<Vec<&str>, LlmError> {
        let hint = match list {
            FallbackList::Taken => self.metadata.get(Self::FALLBACK_MODELS),
            FallbackList::NotTaken => None,
        };
        let Some(hint) = hint else {
            return Ok(Vec::new());
        };
        let names: Option<Vec<&str>> = hint
            .as_array()
            .and_then(|list| list.iter().map(Value::as_str).collect());
        names
            .filter(|names| names.iter().all(|name| !name.is_empty()))
            .ok_or_else(|| {
                let what = "the hint models is not a list of model names";
                LlmError::Unsupported(Fault::new(
                    provider,
                    &self.model,
                    what,
                    "name each model, or omit the hint",
                ))
            })
    }

    /// The most tokens of the answer: the hint `max_tokens`, or else `default`.
    ///
    /// # Errors
    ///
    /// [`LlmError::Unsupported`] if the hint is not a whole number of at least 1: the reservation and the request would differ.
    pub(crate) fn max_tokens(&self, provider: &str, default: u64) -> Result<u64, LlmError> {
        let Some(hint) = self.metadata.get("max_tokens") else {
            return Ok(default);
        };
        hint.as_u64().filter(|tokens| *tokens > 0).ok_or_else(|| {
            let what = "the hint max_tokens is not a whole number of at least 1";
            LlmError::Unsupported(Fault::new(
                provider,
                &self.model,
                what,
                "set a whole number, or omit the hint",
            ))
        })
    }
}

/// The largest whole number that every JSON parser preserves.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// A model's answer.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct LlmResult {
    /// The text. Use [`LlmResult::complete_answer`] to judge it.
    pub raw_response: String,
    /// The provider.
    pub provider: String,
    /// The model that answered, as the provider reports it.
    pub model_used: String,
    /// Input tokens, as the provider counts them, if it reports them.
    pub tokens_input: Option<u64>,
    /// Output tokens, likewise.
    pub tokens_output: Option<u64>,
    /// Whether the call timed out, if known.
    pub timed_out: Option<bool>,
    /// Other data from the provider, for debugging: `finish_reason`, `ignored_metadata`, cost and the
    /// like.
    #[serde(default)]
    pub extensions: BTreeMap<String, Value>,
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// The model finished its answer.
    Complete,
    /// A token limit or a provider filter cut it off.
    Truncated,
    /// Another reason from the provider.
    Other(String),
    /// The provider gives no reason.
    Unknown,
}

/// The answer was cut off by a token limit or a provider filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the answer of {provider} ({model}) was cut off by its token limit or a filter; raise max_tokens or ask \
    for less at once"
)]
pub struct TruncatedAnswer {
    /// The provider.
    pub provider: String,
    /// The model that answered.
    pub model: String,
}

impl LlmResult {
    /// The extension with the finish reason.
    pub const FINISH_REASON: &'static str = "finish_reason";

    /// The extension with the hints that the backend could not follow.
    pub const IGNORED_METADATA: &'static str = "ignored_metadata";

    /// The extension with the number of secrets that the client removed from the answer, if any.
    pub const REDACTIONS: &'static str = "redactions";

    /// Removes numbers that JSON does not preserve, and zero tokens for a non-empty text: they are not
    /// valid counts, and a budget must not use them.
    #[must_use]
    pub(crate) fn with_plain_numbers(self) -> Self {
        let plain = |count: &u64| *count <= MAX_SAFE_INTEGER;
        let is_empty = self.raw_response.is_empty();
        let carried = |value: &Value| match value {
            Value::Number(number) => number.as_u64().is_some_and(|count| plain(&count)),
            Value::Null
            | Value::Bool(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => true,
        };
        Self {
            // Every request contains instructions, so zero tokens is invalid.
            tokens_input: self.tokens_input.filter(plain).filter(|count| *count > 0),
            tokens_output: self
                .tokens_output
                .filter(plain)
                .filter(|count| *count > 0 || is_empty),
            extensions: self
                .extensions
                .into_iter()
                .filter(|(_, value)| carried(value))
                .collect(),
            ..self
        }
    }

    /// Input and output tokens, if the provider reported both.
    #[must_use]
    pub fn tokens(&self) -> Option<(u64, u64)> {
        self.tokens_input.zip(self.tokens_output)
    }

    /// The answer, possibly cut off.
    #[must_use]
    pub fn answer(&self) -> Untrusted {
        Untrusted::new(self.raw_response.clone())
    }

    /// The answer, if it is not known to be cut off.
    ///
    /// # Errors
    ///
    /// [`TruncatedAnswer`] if a limit or a filter ended it: half a file must not pass for a whole one.
    pub fn complete_answer(&self) -> Result<Untrusted, TruncatedAnswer> {
        match self.finish() {
            Finish::Truncated => Err(TruncatedAnswer {
                provider: self.provider.clone(),
                model: self.model_used.clone(),
            }),
            Finish::Complete | Finish::Other(_) | Finish::Unknown => Ok(self.answer()),
        }
    }

    /// How the answer ended.
    #[must_use]
    pub fn finish(&self) -> Finish {
        match self
            .extensions
            .get(Self::FINISH_REASON)
            .and_then(Value::as_str)
        {
            Some("stop" | "end_turn" | "stop_sequence") => Finish::Complete,
            Some("length" | "max_tokens" | "content_filter" | "refusal") => Finish::Truncated,
            Some(other) => Finish::Other(other.to_owned()),
            None => Finish::Unknown,
        }
    }
}

impl fmt::Debug for LlmResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlmResult")
            .field("response_bytes", &self.raw_response.len())
            .field("provider", &self.provider)
            .field("model_used", &self.model_used)
            .field("tokens_input", &self.tokens_input)
            .field("tokens_output", &self.tokens_output)
            .field("timed_out", &self.timed_out)
            .field("extensions", &self.extensions.keys().collect::<Vec<_>>())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use crucible_model::PromptBuilder;

    use super::*;

    fn result(finish_reason: Option<&str>) -> LlmResult {
        let extensions =
            finish_reason.map(|reason| (LlmResult::FINISH_REASON.to_owned(), Value::from(reason)));
        LlmResult {
            raw_response: "half a fi".to_owned(),
            provider: "gateway".to_owned(),
            model_used: "m".to_owned(),
            tokens_input: None,
            tokens_output: None,
            timed_out: None,
            extensions: extensions.into_iter().collect(),
        }
    }

    #[test]
    fn truncated_answer_is_an_error() {
        assert!(result(Some("length")).complete_answer().is_err());
        assert!(result(Some("max_tokens")).complete_answer().is_err());
        assert!(result(Some("content_filter")).complete_answer().is_err());
        assert_eq!(result(Some("length")).answer().as_str(), "half a fi");
        for reason in [Some("stop"), Some("tool_calls"), None] {
            assert!(result(reason).complete_answer().is_ok());
        }
    }

    #[test]
    fn zero_tokens_for_text_are_unknown() {
        let mut answer = result(None);
        (answer.tokens_input, answer.tokens_output) = (Some(0), Some(0));
        let plain = answer.clone().with_plain_numbers();
        assert_eq!(
            (plain.tokens_input, plain.tokens_output, plain.tokens()),
            (None, None, None)
        );
        answer.raw_response.clear();
        answer.tokens_input = Some(7);
        assert_eq!(answer.with_plain_numbers().tokens(), Some((7, 0)));
    }

    #[test]
    fn numbers_above_json_precision_are_removed() {
        for (stated, is_stored) in [
            (MAX_SAFE_INTEGER, true),
            (MAX_SAFE_INTEGER + 1, false),
            (u64::MAX, false),
        ] {
            let mut answer = result(None);
            answer.tokens_input = Some(stated);
            answer.extensions.insert("cost".to_owned(), stated.into());
            let plain = answer.with_plain_numbers();
            assert_eq!(
                (
                    plain.tokens_input.is_some(),
                    plain.extensions.contains_key("cost")
                ),
                (is_stored, is_stored)
            );
        }
    }

    #[test]
    fn debug_output_omits_request_and_answer_text() {
        let invocation = LlmInvocation {
            spec_id: "s".to_owned(),
            phase_id: "p".to_owned(),
            model: "m".to_owned(),
            timeout: Duration::from_secs(1),
            messages: vec![Message::user(
                PromptBuilder::new().fixed_text("prompt words").build(),
            )],
            metadata: BTreeMap::from([("hint".to_owned(), Value::from("hint words"))]),
        };
        let text = format!("{invocation:?} {:?}", result(Some("stop words")));
        assert!(!text.contains("words") && !text.contains("half"), "{text}");
    }
}
