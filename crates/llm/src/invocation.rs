//! What is asked of a model and what it answers: the types of seed 002, *Core Types*.
//!
//! Requests carry [`PromptText`], so text of others can only be in them behind its fence. Answers are text of
//! others again: [`LlmResult::answer`] and [`LlmResult::whole_answer`] hand them out as [`Untrusted`]. The
//! `Debug` output of every type here tells lengths, never words.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crucible_model::{PromptText, Untrusted};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::backend::FallbackList;
use crate::error::{Fault, LlmError};

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The standing instructions.
    System,
    /// The one who asks.
    User,
    /// The model, in an earlier turn.
    Assistant,
}

impl Role {
    /// The role as every provider spells it.
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
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: PromptText,
}

impl Message {
    /// The standing instructions.
    #[must_use]
    pub fn system(content: PromptText) -> Self {
        Self { role: Role::System, content }
    }

    /// What is asked.
    #[must_use]
    pub fn user(content: PromptText) -> Self {
        Self { role: Role::User, content }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message({}, {} bytes)", self.role.as_str(), self.content.as_str().len())
    }
}

/// One call of a model.
#[derive(Clone, PartialEq)]
pub struct LlmInvocation {
    /// What the call is made for: a run id or a spec id.
    pub spec_id: String,
    /// Which step of it.
    pub phase_id: String,
    /// The model; empty means the backend's own default.
    pub model: String,
    /// The time for the whole call, its retries included.
    pub timeout: Duration,
    /// The conversation.
    pub messages: Vec<Message>,
    /// Hints that override the backend's defaults: `max_tokens`, `temperature`, `top_p`, `seed`,
    /// `response_format`, `models` (names of models to ask, in this order, where `model` cannot answer). A hint that a backend cannot follow is named in the result's extension
    /// `ignored_metadata`.
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

impl LlmInvocation {
    /// The name of the hint that lists the models to ask, in this order, where `model` cannot answer.
    pub const FALLBACK_MODELS: &'static str = "models";

    /// Those models, where the service takes such a list.
    ///
    /// # Errors
    ///
    /// [`LlmError::Unsupported`] where the hint is no list of names: nobody could say what the answer may cost.
    pub(crate) fn fallback_models(&self, provider: &str, list: FallbackList) -> Result<Vec<&str>, LlmError> {
        let hint = match list {
            FallbackList::Taken => self.metadata.get(Self::FALLBACK_MODELS),
            FallbackList::NotTaken => None,
        };
        let Some(hint) = hint else {
            return Ok(Vec::new());
        };
        let names: Option<Vec<&str>> =
            hint.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
        names.filter(|names| names.iter().all(|name| !name.is_empty())).ok_or_else(|| {
            let what = "the hint models is not a list of model names";
            LlmError::Unsupported(Fault::new(provider, &self.model, what, "name each model, or omit the hint"))
        })
    }

    /// The most tokens that the answer may take: the hint `max_tokens`, or else `default`.
    ///
    /// # Errors
    ///
    /// [`LlmError::Unsupported`] where the hint is no whole number from 1: what is reserved and what is sent would differ.
    pub(crate) fn max_tokens(&self, provider: &str, default: u64) -> Result<u64, LlmError> {
        let Some(hint) = self.metadata.get("max_tokens") else {
            return Ok(default);
        };
        hint.as_u64().filter(|tokens| *tokens > 0).ok_or_else(|| {
            let what = "the hint max_tokens is not a whole number of at least 1";
            LlmError::Unsupported(Fault::new(provider, &self.model, what, "set a whole number, or omit the hint"))
        })
    }
}

/// The largest whole number that every reader of JSON gets back as it was.
const MOST_EXACT: u64 = (1 << 53) - 1;

/// What a model answered.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct LlmResult {
    /// The answer's text. Judge it through [`LlmResult::whole_answer`].
    pub raw_response: String,
    /// The provider that was asked.
    pub provider: String,
    /// The model that answered, as the provider names it.
    pub model_used: String,
    /// Tokens of the request, in the provider's own counting; absent when it does not say.
    pub tokens_input: Option<u64>,
    /// Tokens of the answer, likewise.
    pub tokens_output: Option<u64>,
    /// Whether the call ran out of time; absent when unknown.
    pub timed_out: Option<bool>,
    /// What else the provider told, for debugging: `finish_reason`, `ignored_metadata`, cost and the like.
    #[serde(default)]
    pub extensions: BTreeMap<String, Value>,
}

/// How an answer came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// The model had said what it wanted to say.
    Complete,
    /// The token limit or a filter of the provider cut it off.
    CutShort,
    /// The provider gave another reason.
    Other(String),
    /// The provider does not say.
    Unknown,
}

/// The answer stops in the middle: the token limit was reached, or a filter of the provider stopped it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the answer of {provider} ({model}) was cut off by its token limit or a filter; raise max_tokens or ask \
    for less at once"
)]
pub struct CutShort {
    /// Who was asked.
    pub provider: String,
    /// Which model answered.
    pub model: String,
}

impl LlmResult {
    /// The name of the extension that says why the answer ended.
    pub const FINISH_REASON: &'static str = "finish_reason";

    /// The name of the extension that lists the hints the backend could not follow.
    pub const IGNORED_METADATA: &'static str = "ignored_metadata";

    /// The name of the extension that counts the secrets which the client took out of the answer; absent where there were none.
    pub const REDACTIONS: &'static str = "redactions";

    /// The same without numbers that JSON does not carry unchanged, and without zeros for a text that is not empty: what a provider
    /// states so is no count of anything, and no budget may take it for one.
    #[must_use]
    pub(crate) fn with_plain_numbers(self) -> Self {
        let plain = |count: &u64| *count <= MOST_EXACT;
        let is_empty = self.raw_response.is_empty();
        let carried = |value: &Value| match value {
            Value::Number(number) => number.as_u64().is_some_and(|count| plain(&count)),
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => true,
        };
        Self {
            // Every request has an instruction, so there is none without tokens.
            tokens_input: self.tokens_input.filter(plain).filter(|count| *count > 0),
            tokens_output: self.tokens_output.filter(plain).filter(|count| *count > 0 || is_empty),
            extensions: self.extensions.into_iter().filter(|(_, value)| carried(value)).collect(),
            ..self
        }
    }

    /// Tokens of the request and of the answer, where the provider told both.
    #[must_use]
    pub fn tokens(&self) -> Option<(u64, u64)> {
        self.tokens_input.zip(self.tokens_output)
    }

    /// The answer as far as it goes.
    #[must_use]
    pub fn answer(&self) -> Untrusted {
        Untrusted::new(self.raw_response.clone())
    }

    /// The answer, where it is not known to be cut off.
    ///
    /// # Errors
    ///
    /// [`CutShort`] when a limit or a filter ended it: half a file must not be taken for a file.
    pub fn whole_answer(&self) -> Result<Untrusted, CutShort> {
        match self.finish() {
            Finish::CutShort => {
                Err(CutShort { provider: self.provider.clone(), model: self.model_used.clone() })
            }
            Finish::Complete | Finish::Other(_) | Finish::Unknown => Ok(self.answer()),
        }
    }

    /// How the answer came to its end.
    #[must_use]
    pub fn finish(&self) -> Finish {
        match self.extensions.get(Self::FINISH_REASON).and_then(Value::as_str) {
            Some("stop" | "end_turn" | "stop_sequence") => Finish::Complete,
            Some("length" | "max_tokens" | "content_filter" | "refusal") => Finish::CutShort,
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
    fn a_cut_answer_is_never_handed_out_as_a_whole_one() {
        assert!(result(Some("length")).whole_answer().is_err());
        assert!(result(Some("max_tokens")).whole_answer().is_err());
        assert!(result(Some("content_filter")).whole_answer().is_err());
        assert_eq!(result(Some("length")).answer().as_str(), "half a fi");
        for reason in [Some("stop"), Some("tool_calls"), None] {
            assert!(result(reason).whole_answer().is_ok());
        }
    }

    #[test]
    fn zero_tokens_for_a_text_that_is_not_empty_count_as_not_told() {
        let mut answer = result(None);
        (answer.tokens_input, answer.tokens_output) = (Some(0), Some(0));
        let plain = answer.clone().with_plain_numbers();
        assert_eq!((plain.tokens_input, plain.tokens_output, plain.tokens()), (None, None, None));
        answer.raw_response.clear();
        answer.tokens_input = Some(7);
        assert_eq!(answer.with_plain_numbers().tokens(), Some((7, 0)));
    }

    #[test]
    fn numbers_that_json_does_not_carry_are_left_out() {
        for (stated, kept) in [(MOST_EXACT, true), (MOST_EXACT + 1, false), (u64::MAX, false)] {
            let mut answer = result(None);
            answer.tokens_input = Some(stated);
            answer.extensions.insert("cost".to_owned(), stated.into());
            let plain = answer.with_plain_numbers();
            assert_eq!((plain.tokens_input.is_some(), plain.extensions.contains_key("cost")), (kept, kept));
        }
    }

    #[test]
    fn debug_output_holds_no_words_of_request_or_answer() {
        let invocation = LlmInvocation {
            spec_id: "s".to_owned(),
            phase_id: "p".to_owned(),
            model: "m".to_owned(),
            timeout: Duration::from_secs(1),
            messages: vec![Message::user(PromptBuilder::new().ours("prompt words").build())],
            metadata: BTreeMap::from([("hint".to_owned(), Value::from("hint words"))]),
        };
        let shown = format!("{invocation:?} {:?}", result(Some("stop words")));
        assert!(!shown.contains("words") && !shown.contains("half"), "{shown}");
    }
}
