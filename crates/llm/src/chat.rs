//! The chat completions format, defined by OpenAI and supported by many servers: pure conversions, no
//! I/O.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer_body::{self, Expected};
use crate::budget::REPORTED_COST;
use crate::error::{AnswerFault, LlmError};
use crate::http_fault::{CallTarget, Silence};
use crate::invocation::{FallbackList, LlmInvocation, LlmResult};
use crate::price::micro_dollars;
use crate::wire_json::ListBounds;

/// Hints of `metadata` that this format sends under the same name; `max_tokens` and `models` are handled
/// separately.
const HINTS: [&str; 4] = ["temperature", "top_p", SEED, RESPONSE_FORMAT];

const MAX_TOKENS: &str = "max_tokens";
const SEED: &str = "seed";
const RESPONSE_FORMAT: &str = "response_format";

const WRONG_SERVER: &str = "check that base_url names an OpenAI-compatible server";

/// The differences between servers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChatFormat {
    /// The field for the token limit.
    pub(crate) token_limit: TokenLimit,
    /// How a request enforces `response_format`.
    pub(crate) form: Form,
    /// Whether the usage contains the cost.
    pub(crate) cost: CostReport,
    /// Whether the server accepts a list of fallback models.
    pub(crate) fallbacks: FallbackList,
    /// Whether its schemas may bound a list.
    pub(crate) list_bounds: ListBounds,
}

impl ChatFormat {
    /// The format that every compatible server supports.
    pub(crate) const PLAIN: Self = Self {
        token_limit: TokenLimit::MaxTokens,
        form: Form::Stated,
        cost: CostReport::Unstated,
        fallbacks: FallbackList::NotTaken,
        list_bounds: ListBounds::LeftOut,
    };
}

/// The field for the token limit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TokenLimit {
    /// The old name, which every compatible server supports.
    MaxTokens,
    /// The name that OpenAI's newer models require.
    MaxCompletionTokens,
}

/// How a request enforces `response_format`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// By the field alone.
    Stated,
    /// By the field, and an instruction to the router to use only servers that support every field.
    Routed,
}

/// Whether the usage contains the cost.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CostReport {
    /// It does not, or the reporting server is not the one that charges.
    Unstated,
    /// In dollars, as `cost`.
    Dollars,
}

/// The defaults for calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChatDefaults {
    pub(crate) max_tokens: u64,
    /// If absent, the server's own default applies.
    pub(crate) temperature: Option<f64>,
}

/// Builds the body of a request, and returns the names of the hints that it cannot contain.
///
/// # Errors
///
/// As [`LlmInvocation::max_tokens`] and [`LlmInvocation::fallback_models`].
pub(crate) fn request(
    target: CallTarget<'_>,
    inv: &LlmInvocation,
    defaults: ChatDefaults,
    format: ChatFormat,
) -> Result<(Value, Vec<String>), LlmError> {
    let messages: Vec<Value> = (inv.messages.iter())
        .map(|message| json!({"role": message.role.as_str(), "content": message.content.as_str()}))
        .collect();
    let token_limit = match format.token_limit {
        TokenLimit::MaxTokens => MAX_TOKENS,
        TokenLimit::MaxCompletionTokens => "max_completion_tokens",
    };
    let mut body = Map::from_iter([
        ("model".to_owned(), json!(inv.model)),
        ("messages".to_owned(), Value::Array(messages)),
        (
            token_limit.to_owned(),
            json!(inv.max_tokens(target.provider, defaults.max_tokens)?),
        ),
        ("stream".to_owned(), json!(false)),
    ]);
    body.extend(
        defaults
            .temperature
            .map(|temperature| ("temperature".to_owned(), json!(temperature))),
    );
    let fallbacks = inv.fallback_models(target.provider, format.fallbacks)?;
    if !fallbacks.is_empty() {
        body.insert(LlmInvocation::FALLBACK_MODELS.to_owned(), json!(fallbacks));
    }
    let read_above = |name: &str| match name {
        MAX_TOKENS => true,
        LlmInvocation::FALLBACK_MODELS => format.fallbacks == FallbackList::Taken,
        _ => false,
    };
    let mut ignored = Vec::new();
    for (name, value) in &inv.metadata {
        if HINTS.contains(&name.as_str()) {
            body.insert(name.clone(), value.clone());
        } else if !read_above(name) {
            ignored.push(name.clone());
        }
    }
    if matches!(format.form, Form::Routed) && body.contains_key(RESPONSE_FORMAT) {
        // Few servers declare support for a seed, so the router would find none; the form matters more.
        ignored.extend(body.remove(SEED).map(|_| SEED.to_owned()));
        body.insert("provider".to_owned(), json!({"require_parameters": true}));
    }
    Ok((Value::Object(body), ignored))
}

/// Only the fields that are used.
#[derive(Deserialize)]
struct Completion {
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Value>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Choice {
    message: ChoiceMessage,
    finish_reason: Option<String>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct ChoiceMessage {
    content: Option<String>,
    refusal: Option<Value>,
}

#[derive(Deserialize)]
struct Refusal {
    code: Option<Value>,
}

impl Refusal {
    /// Some servers answer 200 and put the intended status into the body.
    fn meant(&self, target: CallTarget<'_>) -> LlmError {
        let code = self.code.as_ref().and_then(|code| match code {
            Value::String(digits) => digits.parse().ok(),
            code => code.as_u64().and_then(|code| u16::try_from(code).ok()),
        });
        match code {
            Some(status) if status != 200 => target.on_status(status, &BTreeMap::new()),
            Some(_) | None => target.unreadable(
                "the answer is an error without a status",
                "check the server's log",
            ),
        }
    }
}

/// An error next to an answer: whatever its status, the model had started, and its work is charged.
fn broken_off(error: LlmError) -> LlmError {
    match error {
        LlmError::Transport(fault)
        | LlmError::ProviderAuth(fault)
        | LlmError::ProviderQuota(fault)
        | LlmError::ProviderOutage(fault)
        | LlmError::Misconfiguration(fault)
        | LlmError::Unsupported(fault) => LlmError::ProviderOutage(fault),
        LlmError::Timeout { .. } | LlmError::BudgetExceeded { .. } => error,
    }
}

/// Parses the body of a 200 response.
pub(crate) fn response(
    target: CallTarget<'_>,
    body: &[u8],
    ignored: Vec<String>,
    format: ChatFormat,
) -> Result<LlmResult, LlmError> {
    let expected = Expected {
        what: "a chat completion",
        next: WRONG_SERVER,
    };
    let completion: Completion = answer_body::read(target, body, expected)?;
    if let Some(refusal) = completion.error {
        let begun = completion
            .choices
            .is_some_and(|choices| !choices.is_empty());
        let error = refusal.meant(target);
        return Err(if begun { broken_off(error) } else { error });
    }
    let choice = completion
        .choices
        .ok_or_else(|| target.unreadable("the answer has no list of choices", WRONG_SERVER))?
        .into_iter()
        .next()
        .ok_or_else(|| {
            target.unusable(
                AnswerFault::Empty,
                "the answer's list of choices is empty",
                "try again or choose another model",
            )
        })?;
    if let Some(refusal) = &choice.error {
        return Err(broken_off(refusal.meant(target)));
    }
    if choice.finish_reason.as_deref() == Some("error") {
        return Err(target.unreadable("the model failed while it answered", "try again"));
    }
    let content = choice
        .message
        .content
        .filter(|content| !content.trim().is_empty());
    let raw_response = content.ok_or_else(|| {
        target.wordless(
            match (choice.finish_reason.as_deref(), choice.message.refusal) {
                (Some("length"), _) => Silence::TokenLimit,
                (_, Some(Value::String(_))) => Silence::Refusal,
                (_, _) => Silence::Unexplained,
            },
        )
    })?;
    let mut extensions = BTreeMap::new();
    if let Some(reason) = choice.finish_reason {
        extensions.insert(
            LlmResult::FINISH_REASON.to_owned(),
            Value::from(answer_body::reason(&reason)),
        );
    }
    if !ignored.is_empty() {
        extensions.insert(LlmResult::IGNORED_METADATA.to_owned(), Value::from(ignored));
    }
    let usage = completion.usage.unwrap_or_default();
    if matches!(format.cost, CostReport::Dollars) {
        let cost = usage["cost"].as_f64().and_then(micro_dollars);
        extensions.extend(cost.map(|cost| (REPORTED_COST.to_owned(), Value::from(cost))));
    }
    Ok(LlmResult {
        raw_response,
        provider: target.provider.to_owned(),
        model_used: answer_body::model_name(completion.model.as_deref(), target.model),
        tokens_input: usage["prompt_tokens"].as_u64(),
        tokens_output: usage["completion_tokens"].as_u64(),
        timed_out: Some(false),
        extensions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: CallTarget<'static> = CallTarget {
        provider: "gateway",
        model: "m",
    };

    const PRICED: ChatFormat = ChatFormat {
        cost: CostReport::Dollars,
        ..ChatFormat::PLAIN
    };

    fn read(body: &str) -> Result<LlmResult, LlmError> {
        response(ASKED, body.as_bytes(), Vec::new(), PRICED)
    }

    #[test]
    fn status_inside_200_body_is_used() {
        for (code, class) in [
            ("401", "provider_auth"),
            ("402", "provider_quota"),
            ("429", "provider_quota"),
            ("\"429\"", "provider_quota"),
            ("502", "provider_outage"),
            ("\"sk-secret\"", "provider_outage"),
            ("-1", "provider_outage"),
            ("1e300", "provider_outage"),
        ] {
            for begun in ["", r#""choices":[],"#, r#""choices":null,"#] {
                let body = format!(r#"{{{begun}"error":{{"code":{code},"message":"sk-secret"}}}}"#);
                let error = read(&body).unwrap_err();
                assert_eq!(error.class(), class, "{body}");
                assert!(!format!("{error} {error:?}").contains("secret"));
            }
        }
    }

    #[test]
    fn error_with_partial_answer_returns_no_tokens() {
        for (code, status) in [
            ("401", Some(401)),
            ("402", Some(402)),
            ("\"429\"", Some(429)),
            ("400", Some(400)),
            ("404", Some(404)),
            ("502", Some(502)),
            ("\"sk-secret\"", None),
        ] {
            let refusal = format!(r#""error":{{"code":{code},"message":"sk-secret"}}"#);
            let half = r#""message":{"content":"half"}"#;
            for body in [
                format!(r#"{{"choices":[{{{half},{refusal}}}]}}"#),
                format!(r#"{{"choices":[{{{half}}}],{refusal}}}"#),
            ] {
                let error = read(&body).unwrap_err();
                let LlmError::ProviderOutage(fault) = &error else {
                    panic!("{body}: {error:?}")
                };
                assert_eq!(fault.status, status, "{body}");
                assert_eq!(error.is_transient(), status == Some(502), "{body}");
                assert!(!error.did_no_work());
                assert!(!format!("{error} {error:?}").contains("secret"));
            }
        }
    }

    #[test]
    fn answer_broken_off_by_error_is_refused() {
        let error = read(r#"{"choices":[{"message":{"content":"half"},"finish_reason":"error"}]}"#)
            .unwrap_err();
        assert_eq!(error.class(), "provider_outage");
    }

    #[test]
    fn empty_answers_are_classified_by_reason() {
        for (choice, why) in [
            (
                r#"{"message":{"content":""},"finish_reason":"length"}"#,
                "token limit",
            ),
            (
                r#"{"message":{"content":null,"refusal":"sk-secret"},"finish_reason":"stop"}"#,
                "refuses",
            ),
            (
                r#"{"message":{"content":null,"refusal":null},"finish_reason":"stop"}"#,
                "contains no text",
            ),
            (r#"{"message":{}}"#, "contains no text"),
        ] {
            let error = read(&format!(r#"{{"choices":[{choice}]}}"#)).unwrap_err();
            assert_eq!(error.answer_fault(), Some(AnswerFault::Empty));
            assert!(error.to_string().contains(why), "{error}");
            assert!(!format!("{error} {error:?}").contains("secret"));
        }
    }

    #[test]
    fn plausible_reported_cost_is_kept() {
        let cost = |cost: &str| {
            let body = format!(
                r#"{{"choices":[{{"message":{{"content":"x"}}}}],"usage":{{"cost":{cost}}}}}"#
            );
            read(&body)
                .unwrap()
                .extensions
                .get(REPORTED_COST)
                .and_then(Value::as_u64)
        };
        for (dollars, micro) in [
            ("0.000014", Some(14)),
            ("0.0000141", Some(15)),
            ("0", Some(0)),
            ("1.5", Some(1_500_000)),
            ("-1", None),
            ("1e300", None),
            ("\"0.1\"", None),
            ("null", None),
        ] {
            assert_eq!(cost(dollars), micro, "{dollars}");
        }
    }

    #[test]
    fn invalid_usage_does_not_fail_answer() {
        for usage in [
            "null",
            "[]",
            "\"x\"",
            r#"{"prompt_tokens":-1,"completion_tokens":1.5}"#,
        ] {
            let body =
                format!(r#"{{"choices":[{{"message":{{"content":"x"}}}}],"usage":{usage}}}"#);
            let result = read(&body).unwrap();
            assert_eq!((result.tokens_input, result.tokens_output), (None, None));
        }
    }
}
