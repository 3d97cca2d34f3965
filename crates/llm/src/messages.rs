//! Anthropic's messages format: pure conversions, no I/O.
//!
//! All system messages are joined into the one `system` field. Consecutive turns of the same role are
//! joined, and empty ones are omitted, because the API refuses both. The text blocks of an answer are
//! joined in order; a model's thinking is not part of the answer.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer_body::{self, Expected};
use crate::error::LlmError;
use crate::http_fault::{CallTarget, Silence};
use crate::invocation::{LlmInvocation, LlmResult, Role};

const WRONG_SERVER: &str = "check that base_url names a server that speaks Anthropic's messages";

/// Hints of `metadata` that this format sends under the same name; `max_tokens` is handled separately.
const HINTS: [&str; 2] = [TEMPERATURE, "top_p"];

const MAX_TOKENS: &str = "max_tokens";
const TEMPERATURE: &str = "temperature";

/// The separator of joined texts.
const GAP: &str = "\n\n";

/// The defaults for calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageDefaults {
    pub(crate) max_tokens: u64,
    /// If absent, the model's own default applies. Newer models refuse any value.
    pub(crate) temperature: Option<f64>,
}

/// Builds the body of a request, and returns the names of the hints that it cannot contain.
///
/// # Errors
///
/// [`LlmError::Unsupported`] if there is no user message, and as [`LlmInvocation::max_tokens`].
pub(crate) fn request(
    target: CallTarget<'_>,
    inv: &LlmInvocation,
    defaults: MessageDefaults,
) -> Result<(Value, Vec<String>), LlmError> {
    let mut system = Vec::new();
    let mut turns: Vec<(Role, String)> = Vec::new();
    for message in &inv.messages {
        let text = message.content.as_str();
        match (message.role, turns.last_mut()) {
            _ if text.trim().is_empty() => {}
            (Role::System, _) => system.push(text),
            (role, Some((last, before))) if *last == role => {
                before.push_str(GAP);
                before.push_str(text);
            }
            (role, _) => turns.push((role, text.to_owned())),
        }
    }
    if turns.is_empty() {
        return Err(LlmError::Unsupported(target.fault(
            "the request contains no user message",
            "add a question to the instructions",
        )));
    }
    let turns = turns
        .iter()
        .map(|(role, text)| json!({"role": role.as_str(), "content": text}))
        .collect();
    let mut body = Map::from_iter([
        ("model".to_owned(), json!(inv.model)),
        ("messages".to_owned(), Value::Array(turns)),
        (
            MAX_TOKENS.to_owned(),
            json!(inv.max_tokens(target.provider, defaults.max_tokens)?),
        ),
    ]);
    if !system.is_empty() {
        body.insert("system".to_owned(), json!(system.join(GAP)));
    }
    // The API accepts only one of the two.
    let temperature = defaults
        .temperature
        .filter(|_| !inv.metadata.contains_key("top_p"));
    body.extend(temperature.map(|temperature| (TEMPERATURE.to_owned(), json!(temperature))));
    let mut ignored = Vec::new();
    for (name, value) in &inv.metadata {
        let schema = schema(name, value);
        if HINTS.contains(&name.as_str()) {
            body.insert(name.clone(), value.clone());
        } else if let Some(schema) = schema {
            let format = json!({"type": "json_schema", "schema": schema});
            body.insert("output_config".to_owned(), json!({"format": format}));
        } else if name != MAX_TOKENS {
            ignored.push(name.clone());
        }
    }
    Ok((Value::Object(body), ignored))
}

/// The schema in a hint of OpenAI's shape, as callers send it. This API cannot enforce JSON of any shape.
fn schema<'a>(name: &str, value: &'a Value) -> Option<&'a Value> {
    (name == "response_format" && value["type"] == "json_schema")
        .then(|| value.pointer("/json_schema/schema"))
        .flatten()
}

/// Only the fields that are used.
#[derive(Deserialize)]
struct Answer {
    model: Option<String>,
    content: Option<Vec<Block>>,
    stop_reason: Option<String>,
    usage: Option<Value>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl Refusal {
    /// A proxy may answer 200 around its server's error.
    fn meant(&self, target: CallTarget<'_>) -> LlmError {
        let status = match self.kind.as_deref() {
            Some("invalid_request_error") => 400,
            Some("authentication_error") => 401,
            Some("billing_error") => 402,
            Some("permission_error") => 403,
            Some("not_found_error") => 404,
            Some("request_too_large") => 413,
            Some("rate_limit_error") => 429,
            Some("api_error") => 500,
            Some("timeout_error") => 504,
            Some("overloaded_error") => 529,
            Some(_) | None => {
                return target.unreadable(
                    "the answer is an error of an unknown type",
                    "check the server's log",
                );
            }
        };
        target.on_status(status, &BTreeMap::new())
    }
}

/// Parses the body of a 200 response.
pub(crate) fn response(
    target: CallTarget<'_>,
    body: &[u8],
    ignored: Vec<String>,
) -> Result<LlmResult, LlmError> {
    let expected = Expected {
        what: "a message",
        next: WRONG_SERVER,
    };
    let answer: Answer = answer_body::read(target, body, expected)?;
    if let Some(refusal) = answer.error {
        return Err(refusal.meant(target));
    }
    let blocks = answer
        .content
        .ok_or_else(|| target.unreadable("the answer has no list of blocks", WRONG_SERVER))?;
    let raw_response: String = blocks
        .into_iter()
        .filter(|block| block.kind == "text")
        .filter_map(|block| block.text)
        .collect();
    if raw_response.trim().is_empty() {
        return Err(target.wordless(match answer.stop_reason.as_deref() {
            Some("max_tokens" | CONTEXT_FULL) => Silence::TokenLimit,
            Some("refusal") => Silence::Refusal,
            Some(_) | None => Silence::Unexplained,
        }));
    }
    let mut extensions = BTreeMap::new();
    if let Some(reason) = answer.stop_reason {
        // Both limits cut off the answer, but only one has a widely known name.
        let reason = if reason == CONTEXT_FULL {
            "length"
        } else {
            &reason
        };
        extensions.insert(
            LlmResult::FINISH_REASON.to_owned(),
            Value::from(answer_body::reason(reason)),
        );
    }
    if !ignored.is_empty() {
        extensions.insert(LlmResult::IGNORED_METADATA.to_owned(), Value::from(ignored));
    }
    let usage = answer.usage.unwrap_or_default();
    Ok(LlmResult {
        raw_response,
        provider: target.provider.to_owned(),
        model_used: answer_body::model_name(answer.model.as_deref(), target.model),
        tokens_input: tokens_input(&usage),
        tokens_output: usage["output_tokens"].as_u64(),
        timed_out: Some(false),
        extensions,
    })
}

/// The finish reason of an answer that filled the model's context.
const CONTEXT_FULL: &str = "model_context_window_exceeded";

/// All input tokens: the API counts cache writes and cache reads separately.
fn tokens_input(usage: &Value) -> Option<u64> {
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
    let cached = cached
        .iter()
        .filter_map(|field| usage[*field].as_u64())
        .fold(0, u64::saturating_add);
    usage["input_tokens"]
        .as_u64()
        .map(|fresh| fresh.saturating_add(cached))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crucible_model::{PromptBuilder, PromptText};

    use super::*;
    use crate::error::AnswerFault;
    use crate::invocation::{Finish, Message};

    const ASKED: CallTarget<'static> = CallTarget {
        provider: "anthropic",
        model: "m",
    };

    fn text(words: &'static str) -> PromptText {
        PromptBuilder::new().fixed_text(words).build()
    }

    fn inv(messages: &[(Role, &'static str)], metadata: &[(&str, Value)]) -> LlmInvocation {
        LlmInvocation {
            spec_id: "s".to_owned(),
            phase_id: "p".to_owned(),
            model: "m".to_owned(),
            timeout: Duration::from_secs(1),
            messages: messages
                .iter()
                .map(|(role, words)| Message {
                    role: *role,
                    content: text(words),
                })
                .collect(),
            metadata: metadata
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
        }
    }

    fn body(messages: &[(Role, &'static str)], metadata: &[(&str, Value)]) -> (Value, Vec<String>) {
        let defaults = MessageDefaults {
            max_tokens: 9,
            temperature: Some(0.5),
        };
        request(ASKED, &inv(messages, metadata), defaults).unwrap()
    }

    #[test]
    fn system_texts_are_joined_and_turns_alternate() {
        let (body, ignored) = body(
            &[
                (Role::System, "one"),
                (Role::User, "a"),
                (Role::User, "b"),
                (Role::Assistant, " \n"),
                (Role::System, "two"),
                (Role::User, "c"),
                (Role::Assistant, "d"),
                (Role::User, "e"),
            ],
            &[],
        );
        assert_eq!(
            body,
            json!({
                "model": "m", "max_tokens": 9, "temperature": 0.5, "system": "one\n\ntwo",
                "messages": [
                    {"role": "user", "content": "a\n\nb\n\nc"},
                    {"role": "assistant", "content": "d"},
                    {"role": "user", "content": "e"},
                ],
            })
        );
        assert!(ignored.is_empty());
    }

    #[test]
    fn a_request_without_words_is_not_made() {
        let defaults = MessageDefaults {
            max_tokens: 9,
            temperature: None,
        };
        for messages in [&[][..], &[(Role::System, "be brief")], &[(Role::User, " ")]] {
            let error = request(ASKED, &inv(messages, &[]), defaults).unwrap_err();
            assert!(matches!(error, LlmError::Unsupported(_)), "{error}");
        }
    }

    #[test]
    fn hints_go_where_the_format_has_them() {
        let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let response_format = json!({"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": schema}});
        let hints = [
            ("response_format", response_format),
            ("top_p", json!(0.9)),
            ("seed", json!(1)),
            ("max_tokens", json!(7)),
        ];
        let (body, ignored) = body(&[(Role::User, "a")], &hints);
        assert_eq!(
            body["output_config"],
            json!({"format": {"type": "json_schema", "schema": schema}})
        );
        assert_eq!(
            (&body["top_p"], &body["max_tokens"]),
            (&json!(0.9), &json!(7))
        );
        assert_eq!(body.get("temperature"), None);
        assert_eq!(ignored, ["seed"]);
    }

    #[test]
    fn unsupported_response_format_is_reported_ignored() {
        for format in [
            json!({"type": "json_object"}),
            json!({"type": "json_schema"}),
            json!("json_schema"),
        ] {
            let (body, ignored) = body(&[(Role::User, "a")], &[("response_format", format)]);
            assert_eq!(ignored, ["response_format"]);
            assert_eq!(body.get("output_config"), None);
        }
    }

    fn read(body: Value) -> Result<LlmResult, LlmError> {
        response(ASKED, body.to_string().as_bytes(), Vec::new())
    }

    #[test]
    fn only_text_blocks_are_joined() {
        let result = read(json!({
            "model": "m-20250101", "stop_reason": "end_turn",
            "content": [
                {"type": "thinking", "thinking": "hidden", "text": "hidden"},
                {"type": "text", "text": "one "},
                {"type": "tool_use", "id": "t", "name": "n", "input": {}},
                {"type": "text", "text": "two"},
            ],
            "usage": {
                "input_tokens": 3, "cache_creation_input_tokens": 40, "cache_read_input_tokens": 500,
                "output_tokens": 7,
            },
        }))
        .unwrap();
        assert_eq!(result.raw_response, "one two");
        assert_eq!(
            (result.tokens_input, result.tokens_output),
            (Some(543), Some(7))
        );
        assert_eq!(
            (result.provider.as_str(), result.model_used.as_str()),
            ("anthropic", "m-20250101")
        );
        assert_eq!(result.finish(), Finish::Complete);
    }

    #[test]
    fn truncating_finish_reasons_are_reported() {
        for (reason, finish) in [
            ("max_tokens", Finish::Truncated),
            ("model_context_window_exceeded", Finish::Truncated),
            ("refusal", Finish::Truncated),
            ("stop_sequence", Finish::Complete),
            ("pause_turn", Finish::Other("pause_turn".to_owned())),
        ] {
            let answer = json!({"content": [{"type": "text", "text": "x"}], "stop_reason": reason});
            assert_eq!(read(answer).unwrap().finish(), finish);
        }
    }

    #[test]
    fn empty_answers_are_classified_by_reason() {
        for (reason, why) in [
            (json!("max_tokens"), "token limit"),
            (json!("refusal"), "refuses"),
            (Value::Null, "contains no text"),
        ] {
            let error =
                read(json!({"content": [{"type": "text", "text": " "}], "stop_reason": reason}))
                    .unwrap_err();
            assert_eq!(error.answer_fault(), Some(AnswerFault::Empty));
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn error_inside_200_body_is_used() {
        for (kind, class) in [
            ("authentication_error", "provider_auth"),
            ("rate_limit_error", "provider_quota"),
            ("billing_error", "provider_quota"),
            ("overloaded_error", "provider_outage"),
            ("not_found_error", "misconfiguration"),
            ("invalid_request_error", "unsupported"),
            ("sk-secret", "provider_outage"),
        ] {
            let body = json!({"type": "error", "error": {"type": kind, "message": "sk-secret"}});
            let error = read(body).unwrap_err();
            assert_eq!(error.class(), class);
            assert!(!format!("{error} {error:?}").contains("secret"));
        }
    }
}
