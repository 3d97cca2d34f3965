//! The chat completions format that OpenAI defined and many servers speak: values in, values out, no I/O.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::{AnswerFault, LlmError};
use crate::http_fault::Asked;
use crate::invocation::{LlmInvocation, LlmResult};

/// The hints of `metadata` that this format has a field for, under the same name.
const HINTS: [&str; 5] = ["max_tokens", "temperature", "top_p", "seed", "response_format"];

/// How much of a model's name, as a server states it, is believed.
const MAX_MODEL_NAME: usize = 200;

/// What a provider sends where a call does not say otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChatDefaults {
    pub(crate) max_tokens: u64,
    /// Where there is none, the server's own holds.
    pub(crate) temperature: Option<f64>,
}

/// The body of a request, and the names of the hints that have no place in it.
pub(crate) fn request(inv: &LlmInvocation, defaults: ChatDefaults) -> (Value, Vec<String>) {
    let messages: Vec<Value> = (inv.messages.iter())
        .map(|message| json!({"role": message.role.as_str(), "content": message.content.as_str()}))
        .collect();
    let mut body = Map::from_iter([
        ("model".to_owned(), json!(inv.model)),
        ("messages".to_owned(), Value::Array(messages)),
        ("max_tokens".to_owned(), json!(defaults.max_tokens)),
        ("stream".to_owned(), json!(false)),
    ]);
    body.extend(defaults.temperature.map(|temperature| ("temperature".to_owned(), json!(temperature))));
    let mut ignored = Vec::new();
    for (name, value) in &inv.metadata {
        if HINTS.contains(&name.as_str()) {
            body.insert(name.clone(), value.clone());
        } else {
            ignored.push(name.clone());
        }
    }
    (Value::Object(body), ignored)
}

/// Only what is used; servers add much else.
#[derive(Deserialize)]
struct Completion {
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Usage>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Choice {
    message: ChoiceMessage,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChoiceMessage {
    content: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Refusal {
    code: Option<Value>,
}

/// Reads the body of a 200.
pub(crate) fn response(asked: Asked<'_>, body: &[u8], ignored: Vec<String>) -> Result<LlmResult, LlmError> {
    const WRONG_SERVER: &str = "check that base_url names an OpenAI-compatible server";
    const TRY_OTHER: &str = "try again or choose another model";
    let text = std::str::from_utf8(body)
        .map_err(|_| asked.unreadable("the answer is not UTF-8", "look at the server's log"))?;
    let completion: Completion = serde_json::from_str(text).map_err(|_| {
        let what = if text.trim_start().starts_with('<') {
            "the answer is a web page, not a completion"
        } else {
            "the answer is not a chat completion in JSON"
        };
        asked.unreadable(what, WRONG_SERVER)
    })?;
    if let Some(refusal) = completion.error {
        // Some servers answer 200 and put the status they mean into the body.
        let code = refusal.code.as_ref().and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        return Err(match code {
            Some(status) if status != 200 => asked.on_status(status, &BTreeMap::new()),
            Some(_) | None => {
                asked.unreadable("the answer is an error without a status", "look at the server's log")
            }
        });
    }
    let choice = completion
        .choices
        .ok_or_else(|| asked.unreadable("the answer has no list of choices", WRONG_SERVER))?
        .into_iter()
        .next()
        .ok_or_else(|| {
            asked.unusable(AnswerFault::Empty, "the answer's list of choices is empty", TRY_OTHER)
        })?;
    let content = choice.message.content.filter(|content| !content.trim().is_empty());
    let raw_response = content.ok_or_else(|| match choice.finish_reason.as_deref() {
        Some("length") => asked.unusable(
            AnswerFault::Empty,
            "the token limit was used up before the first word",
            "raise max_tokens",
        ),
        _ => asked.unusable(AnswerFault::Empty, "the answer holds no text", TRY_OTHER),
    })?;
    let mut extensions = BTreeMap::new();
    if let Some(reason) = choice.finish_reason {
        extensions.insert(LlmResult::FINISH_REASON.to_owned(), Value::from(reason));
    }
    if !ignored.is_empty() {
        extensions.insert(LlmResult::IGNORED_METADATA.to_owned(), Value::from(ignored));
    }
    let (tokens_input, tokens_output) =
        completion.usage.map_or((None, None), |usage| (usage.prompt_tokens, usage.completion_tokens));
    Ok(LlmResult {
        raw_response,
        provider: asked.provider.to_owned(),
        model_used: completion
            .model
            .map_or_else(|| asked.model.to_owned(), |name| plain_name(&name, asked.model)),
        tokens_input,
        tokens_output,
        timed_out: Some(false),
        extensions,
    })
}

/// A model's name as a server states it: one line of bounded length; local servers name the file they loaded,
/// of which only the last part is kept.
fn plain_name(stated: &str, asked: &str) -> String {
    let name = if stated.starts_with('/') { stated.rsplit('/').next().unwrap_or(asked) } else { stated };
    let name: String = name.chars().filter(|c| !c.is_control()).take(MAX_MODEL_NAME).collect();
    if name.is_empty() { asked.to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Asked<'static> = Asked { provider: "gateway", model: "m" };

    #[test]
    fn a_status_inside_a_200_is_taken_for_what_it_is() {
        for (code, class) in [("401", "provider_auth"), ("429", "provider_quota"), ("502", "provider_outage")]
        {
            let body = format!(r#"{{"error":{{"code":{code},"message":"sk-secret"}}}}"#);
            let error = response(ASKED, body.as_bytes(), Vec::new()).unwrap_err();
            assert_eq!(error.class(), class);
            assert!(!format!("{error} {error:?}").contains("secret"));
        }
    }

    #[test]
    fn the_name_of_a_model_is_one_short_line_without_directories() {
        assert_eq!(plain_name("/home/someone/models/q.gguf", "m"), "q.gguf");
        assert_eq!(plain_name("org/model:free", "m"), "org/model:free");
        assert_eq!(plain_name("a\nb\u{1b}[2J", "m"), "ab[2J");
        assert_eq!(plain_name("/", "m"), "m");
        assert_eq!(plain_name(&"x".repeat(5000), "m").len(), MAX_MODEL_NAME);
    }
}
