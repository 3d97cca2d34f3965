//! What a request of an agent asks for. Pure.
//!
//! A request is forwarded as it is, but for two additions without which its cost has no bound or stays unknown: the most
//! tokens of an answer where it names none, and the usage at the end of a stream of chat completions.

use serde_json::{Value, json};

use crate::profile::Wire;

/// What a path of the endpoint is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// Whether anybody is there.
    Probe,
    /// The list of models, or one of them.
    Models,
    /// The number of tokens of a prompt; costs nothing.
    Count,
    /// An answer of a model.
    Answer(Api),
}

/// How an answer is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    /// Anthropic's messages.
    Messages,
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Gemini's `generateContent` and its stream.
    Generate,
}

impl Route {
    /// What a request is for; `None` if the wire does not have it.
    pub(super) fn of(wire: Wire, method: &str, path: &str) -> Option<Self> {
        if matches!((method, path), ("HEAD" | "GET", "/")) {
            return Some(Self::Probe);
        }
        let is_list = |list: &str| {
            path.strip_prefix(list).is_some_and(|rest| {
                rest.is_empty() || (rest.starts_with('/') && !rest.contains(".."))
            })
        };
        match (wire, method) {
            (Wire::Anthropic | Wire::OpenAi, "GET") if is_list("/v1/models") => Some(Self::Models),
            (Wire::Gemini, "GET") if is_list("/v1beta/models") => Some(Self::Models),
            (Wire::Anthropic, "POST") => match path {
                "/v1/messages" => Some(Self::Answer(Api::Messages)),
                "/v1/messages/count_tokens" => Some(Self::Count),
                _ => None,
            },
            (Wire::OpenAi, "POST") => match path {
                "/v1/chat/completions" => Some(Self::Answer(Api::Chat)),
                "/v1/responses" => Some(Self::Answer(Api::Responses)),
                _ => None,
            },
            (Wire::Gemini, "POST") => {
                let (model, action) = path.strip_prefix("/v1beta/models/")?.rsplit_once(':')?;
                if model.is_empty() || model.contains(['/', '%']) {
                    return None;
                }
                match action {
                    "generateContent" | "streamGenerateContent" => {
                        Some(Self::Answer(Api::Generate))
                    }
                    "countTokens" => Some(Self::Count),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// The bounds of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestBounds {
    /// The model.
    pub(super) model: String,
    /// The most tokens of all answers together.
    pub(super) output: u64,
    /// Whether the body was changed.
    pub(super) is_changed: bool,
}

/// Tools that a provider's own servers run, by the beginning of their type or their field.
const SERVER_TOOLS: [&str; 12] = [
    "web_search",
    "web_fetch",
    "code_execution",
    "code_interpreter",
    "file_search",
    "image_generation",
    "mcp",
    "computer_use",
    "googleSearch",
    "google_search",
    "urlContext",
    "codeExecution",
];

/// Reads the bounds of a request, and adds what is missing to its body.
///
/// # Errors
///
/// Says why a request is refused: it names no model, or asks for what has no bound or reaches other hosts.
pub(super) fn bounded(
    api: Api,
    path: &str,
    body: &mut Value,
    max_tokens: u64,
    token_field: &str,
) -> Result<RequestBounds, String> {
    if !body.is_object() {
        return Err("the request is not a JSON object".to_owned());
    }
    if let Some(tool) = server_tool(body) {
        return Err(format!(
            "the tool {tool:?} runs on the provider's servers and reaches other hosts; it is not allowed here"
        ));
    }
    for field in [
        "previous_response_id",
        "conversation",
        "cachedContent",
        "mcp_servers",
    ] {
        if body.get(field).is_some_and(|value| !value.is_null()) {
            return Err(format!(
                "{field:?} refers to what is not in the request, so its cost has no bound"
            ));
        }
    }
    let model = match api {
        Api::Generate => path
            .strip_prefix("/v1beta/models/")
            .and_then(|rest| rest.rsplit_once(':'))
            .map(|(model, _)| model.to_owned()),
        Api::Messages | Api::Chat | Api::Responses => body["model"].as_str().map(str::to_owned),
    };
    let model = model.filter(|model| !model.is_empty());
    let model = model.ok_or_else(|| "the request names no model".to_owned())?;
    let mut is_changed = false;
    let (named, answers) = match api {
        Api::Messages => (body["max_tokens"].as_u64(), 1),
        Api::Chat => (
            body["max_completion_tokens"]
                .as_u64()
                .or(body["max_tokens"].as_u64()),
            body["n"].as_u64().unwrap_or(1).max(1),
        ),
        Api::Responses => (body["max_output_tokens"].as_u64(), 1),
        Api::Generate => {
            let config = &body["generationConfig"];
            (
                config["maxOutputTokens"].as_u64(),
                config["candidateCount"].as_u64().unwrap_or(1).max(1),
            )
        }
    };
    let output = named.unwrap_or_else(|| {
        is_changed = true;
        let limit = json!(max_tokens);
        match api {
            Api::Messages => body["max_tokens"] = limit,
            Api::Chat => body[token_field] = limit,
            Api::Responses => body["max_output_tokens"] = limit,
            Api::Generate if body["generationConfig"].is_object() => {
                body["generationConfig"]["maxOutputTokens"] = limit;
            }
            Api::Generate => body["generationConfig"] = json!({"maxOutputTokens": limit}),
        }
        max_tokens
    });
    if api == Api::Chat && body["stream"] == true && !body["stream_options"].is_object() {
        body["stream_options"] = json!({"include_usage": true});
        is_changed = true;
    }
    Ok(RequestBounds {
        model,
        output: output.saturating_mul(answers),
        is_changed,
    })
}

fn server_tool(body: &Value) -> Option<String> {
    let tools = body.get("tools")?.as_array()?;
    tools.iter().find_map(|tool| {
        let kind = tool["type"].as_str().unwrap_or_default();
        let fields = tool
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str());
        let mut told = fields.chain([kind]).filter(|name| {
            // A function's own fields say nothing of who runs it.
            SERVER_TOOLS.iter().any(|tool| name.starts_with(tool))
        });
        told.next().map(str::to_owned)
    })
}

/// The part of a request that decides its answer: without ids of sessions and users.
pub(super) fn deciding(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(fields) = body.as_object_mut() {
        for field in [
            "metadata",
            "client_metadata",
            "prompt_cache_key",
            "user",
            "safety_identifier",
        ] {
            fields.remove(field);
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wire_has_its_own_paths() {
        let of = |wire, path| Route::of(wire, "POST", path);
        assert_eq!(
            of(Wire::Anthropic, "/v1/messages"),
            Some(Route::Answer(Api::Messages))
        );
        assert_eq!(
            of(Wire::Anthropic, "/v1/messages/count_tokens"),
            Some(Route::Count)
        );
        assert_eq!(
            of(Wire::OpenAi, "/v1/responses"),
            Some(Route::Answer(Api::Responses))
        );
        assert_eq!(
            of(Wire::Gemini, "/v1beta/models/m:streamGenerateContent"),
            Some(Route::Answer(Api::Generate))
        );
        assert_eq!(
            of(Wire::Gemini, "/v1beta/models/m:countTokens"),
            Some(Route::Count)
        );
        for (wire, path) in [
            (Wire::Anthropic, "/v1/chat/completions"),
            (Wire::OpenAi, "/v1/messages"),
            (Wire::OpenAi, "/v1/files"),
            (Wire::Gemini, "/v1beta/models/../x:generateContent"),
            (Wire::Gemini, "/v1beta/cachedContents"),
        ] {
            assert_eq!(of(wire, path), None, "{path}");
        }
        assert_eq!(Route::of(Wire::OpenAi, "GET", "/v1/models/../files"), None);
    }

    #[test]
    fn answer_without_limit_gets_one() {
        let read = |api, mut body: Value| {
            let asked = bounded(
                api,
                "/v1beta/models/g:generateContent",
                &mut body,
                7,
                "max_tokens",
            );
            (asked.unwrap(), body)
        };
        let (asked, body) = read(Api::Messages, json!({"model": "m", "max_tokens": 5}));
        assert_eq!(
            (asked.output, asked.is_changed, body["max_tokens"].as_u64()),
            (5, false, Some(5))
        );
        let (asked, body) = read(Api::Responses, json!({"model": "m"}));
        assert_eq!(
            (asked.output, body["max_output_tokens"].as_u64()),
            (7, Some(7))
        );
        let (asked, body) = read(Api::Chat, json!({"model": "m", "n": 3, "stream": true}));
        assert_eq!((asked.output, body["max_tokens"].as_u64()), (21, Some(7)));
        assert_eq!(body["stream_options"]["include_usage"], true);
        let (asked, body) = read(Api::Generate, json!({}));
        assert_eq!(
            (
                asked.model.as_str(),
                body["generationConfig"]["maxOutputTokens"].as_u64()
            ),
            ("g", Some(7))
        );
    }

    #[test]
    fn unbounded_requests_are_refused() {
        for body in [
            json!([]),
            json!({"max_tokens": 1}),
            json!({"model": "m", "tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
            json!({"model": "m", "tools": [{"googleSearch": {}}]}),
            json!({"model": "m", "previous_response_id": "r"}),
        ] {
            let refused = bounded(Api::Responses, "", &mut body.clone(), 7, "max_tokens");
            assert!(refused.is_err(), "{body}");
        }
        let mut honest = json!({"model": "m", "tools": [{"type": "function", "name": "web_search"}, {"name": "Bash", "input_schema": {}}]});
        assert!(bounded(Api::Responses, "", &mut honest, 7, "max_tokens").is_ok());
    }
}
