//! Asks a model for advice within narrow limits.
//!
//! Advice is optional: the caller continues without it. So the prompt is bounded, the timeout is short,
//! and two failures are distinguished: no model is available ([`AdviceError::Unavailable`]), or one is
//! but gave no advice ([`AdviceError::Failed`]).
//!
//! Invariants: our own words are never cut, only the material is, last part first and before it is
//! fenced. The omitted length is stated in the prompt and in the result. An empty or cut-off answer is an
//! error.

use std::collections::BTreeMap;
use std::time::Duration;

use crucible_model::{PromptBuilder, PromptText, Untrusted};
use serde_json::Value;

use crate::call_error::CallError;
use crate::client::ModelClient;
use crate::error::LlmError;
use crate::invocation::{LlmInvocation, Message, TruncatedAnswer};

/// The limits of one advice call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdviceLimits {
    /// The most characters (Unicode scalar values) of the whole prompt.
    pub max_prompt_chars: usize,
    /// The time limit of the answer, retries included.
    pub timeout: Duration,
}

impl Default for AdviceLimits {
    /// 8,000 characters and 30 seconds.
    fn default() -> Self {
        Self {
            max_prompt_chars: 8_000,
            timeout: Duration::from_secs(30),
        }
    }
}

/// A request for advice.
#[derive(Debug, Clone)]
pub struct Question<'q> {
    /// The purpose: a run id, a spec id or a skill name.
    pub spec_id: &'q str,
    /// The step within it.
    pub phase_id: &'q str,
    /// The task for the model, in our own words.
    pub task: &'static str,
    /// The named material to read, the most important first.
    pub material: &'q [(&'q str, Untrusted)],
    /// As in [`LlmInvocation::metadata`].
    pub hints: BTreeMap<String, Value>,
}

/// A model's advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The text; never empty.
    pub text: Untrusted,
    /// The model that answered, as its provider reports it.
    pub model: String,
    /// Characters of the material that did not fit into the prompt.
    pub left_out_chars: usize,
}

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
pub enum AdviceError {
    /// No model is available: not configured, not reachable, or no answer in time.
    #[error("cannot ask for advice: {0}")]
    Unavailable(LlmError),
    /// A model is available, but gave no advice.
    #[error("no advice was given: {0}")]
    Failed(AdviceFailure),
}

/// Why an available model gave no advice.
#[derive(Debug, thiserror::Error)]
pub enum AdviceFailure {
    /// The call was refused or failed, or its answer is empty.
    #[error(transparent)]
    Call(CallError),
    /// The answer was cut off.
    #[error(transparent)]
    Truncated(TruncatedAnswer),
    /// The task and the names of its material alone exceed the limit; nothing was sent.
    #[error(
        "the prompt has {chars} characters even without material; the limit is {limit}; raise max_prompt_chars"
    )]
    TaskTooLong {
        /// The prompt's length without material, in characters.
        chars: usize,
        /// The limit.
        limit: usize,
    },
}

impl From<LlmError> for AdviceError {
    /// Classifies errors of creating a backend as well as those of a call.
    fn from(error: LlmError) -> Self {
        match error {
            LlmError::Transport(_) | LlmError::Timeout { .. } | LlmError::Misconfiguration(_) => {
                Self::Unavailable(error)
            }
            LlmError::ProviderAuth(_)
            | LlmError::ProviderQuota(_)
            | LlmError::ProviderOutage(_)
            | LlmError::BudgetExceeded { .. }
            | LlmError::Unsupported(_) => Self::Failed(AdviceFailure::Call(error.into())),
        }
    }
}

impl From<CallError> for AdviceError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Llm(error) => error.into(),
            error => Self::Failed(AdviceFailure::Call(error)),
        }
    }
}

/// Asks one model for advice.
pub struct Advisor<'c> {
    client: &'c ModelClient,
    limits: AdviceLimits,
}

impl<'c> Advisor<'c> {
    /// Creates an advisor with this client and these limits.
    #[must_use]
    pub fn new(client: &'c ModelClient, limits: AdviceLimits) -> Self {
        Self { client, limits }
    }

    /// Makes one call.
    ///
    /// # Errors
    ///
    /// See [`AdviceError`].
    pub async fn advise(&self, question: Question<'_>) -> Result<Advice, AdviceError> {
        let (prompt, left_out_chars) =
            bounded(&question, self.limits.max_prompt_chars).map_err(AdviceError::Failed)?;
        let inv = LlmInvocation {
            spec_id: question.spec_id.to_owned(),
            phase_id: question.phase_id.to_owned(),
            model: String::new(),
            timeout: self.limits.timeout,
            messages: vec![Message::user(prompt)],
            metadata: question.hints,
        };
        let result = self.client.call(inv).await?;
        let text = result
            .complete_answer()
            .map_err(|cut| AdviceError::Failed(AdviceFailure::Truncated(cut)))?;
        Ok(Advice {
            text,
            model: result.model_used,
            left_out_chars,
        })
    }
}

const CUT: &str = "Not all of the material fits: what comes last is cut off at its end.\n";

/// Builds the prompt within the limit, and returns the omitted characters of the material.
fn bounded(question: &Question<'_>, limit: usize) -> Result<(PromptText, usize), AdviceFailure> {
    let full_prompt_text = prompt(question, "", usize::MAX);
    let chars = count(&full_prompt_text);
    if chars <= limit {
        return Ok((full_prompt_text, 0));
    }
    // An empty piece needs the line break that a longer one may bring itself, so nothing is longer than
    // counted here.
    let bare = count(&prompt(question, CUT, 0));
    let char_budget = limit
        .checked_sub(bare)
        .ok_or(AdviceFailure::TaskTooLong { chars: bare, limit })?;
    let material: usize = question
        .material
        .iter()
        .map(|(_, text)| text.as_str().chars().count())
        .sum();
    Ok((
        prompt(question, CUT, char_budget),
        material.saturating_sub(char_budget),
    ))
}

/// The prompt with at most this many characters of material.
fn prompt(question: &Question<'_>, notice: &'static str, char_budget: usize) -> PromptText {
    let mut char_budget = char_budget;
    let start = PromptBuilder::new()
        .fixed_text(question.task)
        .fixed_text("\n")
        .fixed_text(notice);
    let with_piece = |builder: PromptBuilder, (name, text): &(&str, Untrusted)| {
        let shown_text: String = text.as_str().chars().take(char_budget).collect();
        char_budget -= shown_text.chars().count();
        builder.untrusted(name, &Untrusted::new(shown_text))
    };
    question.material.iter().fold(start, with_piece).build()
}

fn count(prompt: &PromptText) -> usize {
    prompt.as_str().chars().count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn question<'q>(material: &'q [(&'q str, Untrusted)]) -> Question<'q> {
        Question {
            spec_id: "s",
            phase_id: "p",
            task: "Say what is wrong.",
            material,
            hints: BTreeMap::new(),
        }
    }

    #[test]
    fn oversized_material_loses_its_end() {
        let material = [
            ("a", Untrusted::new("first".repeat(20))),
            ("b", Untrusted::new("second".repeat(20))),
        ];
        let question = question(&material);
        let (full_prompt_text, left_out) = bounded(&question, 8_000).unwrap();
        assert!(
            full_prompt_text.as_str().contains(&"second".repeat(20))
                && !full_prompt_text.as_str().contains(CUT)
        );
        assert_eq!(left_out, 0);

        let limit = count(&full_prompt_text) - 1;
        let (cut, left_out) = bounded(&question, limit).unwrap();
        assert!(cut.as_str().contains(&"first".repeat(20)) && cut.as_str().contains(CUT));
        assert!(left_out > 0 && !cut.as_str().contains(&"second".repeat(20)));
        assert!(
            cut.as_str()
                .trim_end()
                .lines()
                .last()
                .unwrap()
                .starts_with(">>>END ")
        );
    }

    #[test]
    fn our_own_words_are_never_cut() {
        let error = bounded(&question(&[("a", Untrusted::new("x"))]), 10).unwrap_err();
        assert!(
            matches!(error, AdviceFailure::TaskTooLong { limit: 10, .. }),
            "{error}"
        );
        assert!(
            bounded(&question(&[]), 19).is_ok(),
            "the task and its line break"
        );
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn prompt_stays_within_limit_and_counts_omissions(
                texts in prop::collection::vec("(?s).{0,400}", 0..4),
                limit in 300usize..2_000,
            ) {
                let material: Vec<_> = texts.iter().map(|text| ("name", Untrusted::new(text.as_str()))).collect();
                let question = question(&material);
                if let Ok((prompt, left_out)) = bounded(&question, limit) {
                    prop_assert!(count(&prompt) <= limit);
                    let all: usize = texts.iter().map(|text| text.chars().count()).sum();
                    let total = count(&super::prompt(&question, "", usize::MAX));
                    prop_assert_eq!(left_out > 0, total > limit);
                    prop_assert!(left_out <= all);
                    // The kept text is a prefix of the material, in order.
                    let mut room = all - left_out;
                    for text in &texts {
                        let stored_text: String = text.chars().take(room).collect();
                        room -= stored_text.chars().count();
                        prop_assert!(prompt.as_str().contains(&stored_text));
                    }
                } else {
                    prop_assert!(!material.is_empty());
                }
            }
        }
    }
}
