//! What a request of an agent asks for, and the request that is forwarded. Pure.
//!
//! Only known fields are forwarded, rewritten from the parsed values: so no field that this file does not know, is given
//! twice, or has another spelling can change what a request costs or reaches. The limit of the answer is always there.
//! Fields that name stored state are refused, for without them the request means something else.

use serde_json::{Map, Value, json};

use super::content;
use crate::profile::Wire;

/// What a path of the endpoint is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// Whether anybody is there.
    Probe,
    /// The list of models, or one of them.
    Models,
    /// The number of tokens of a prompt; costs nothing.
    Count(Api),
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
    pub(super) fn parse(wire: Wire, method: &str, path: &str) -> Option<Self> {
        if matches!((method, path), ("HEAD" | "GET", "/")) {
            return Some(Self::Probe);
        }
        let is_list = |list: &str| {
            path.strip_prefix(list).is_some_and(|rest| {
                rest.is_empty()
                    || rest
                        .strip_prefix('/')
                        .is_some_and(|name| name.split('/').all(is_model_word))
            })
        };
        match (wire, method) {
            (Wire::Anthropic | Wire::OpenAi, "GET") if is_list("/v1/models") => Some(Self::Models),
            (Wire::Gemini, "GET") if is_list("/v1beta/models") => Some(Self::Models),
            (Wire::Anthropic, "POST") => match path {
                "/v1/messages" => Some(Self::Answer(Api::Messages)),
                "/v1/messages/count_tokens" => Some(Self::Count(Api::Messages)),
                _ => None,
            },
            (Wire::OpenAi, "POST") => match path {
                "/v1/chat/completions" => Some(Self::Answer(Api::Chat)),
                "/v1/responses" => Some(Self::Answer(Api::Responses)),
                _ => None,
            },
            (Wire::Gemini, "POST") => {
                let (model, action) = path.strip_prefix("/v1beta/models/")?.rsplit_once(':')?;
                if !is_model_word(model) {
                    return None;
                }
                match action {
                    "generateContent" | "streamGenerateContent" => {
                        Some(Self::Answer(Api::Generate))
                    }
                    "countTokens" => Some(Self::Count(Api::Generate)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// Whether a part of a path can be part of a model's name, and nothing else: no `..`, no escape.
fn is_model_word(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte))
}

/// Returns the part of a query that is forwarded: the form of the answer, and whether a preview is used.
pub(super) fn forwarded_query(query: &str) -> String {
    let is_known = |pair: &&str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        matches!(name, "alt" | "beta") && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let known: Vec<&str> = query.split('&').filter(is_known).collect();
    known.join("&")
}

/// A request as it is forwarded, and its bounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BoundedRequest {
    /// The model.
    pub(super) model: String,
    /// The most tokens of all answers together; 0 for a count.
    pub(super) output: u64,
    /// The most tokens that images and documents add to those of the request's bytes.
    pub(super) added_input: u64,
    /// The request.
    pub(super) body: Value,
    /// The fields that are not forwarded.
    pub(super) dropped: Vec<String>,
}

/// Fields that refer to what is not in the request, or choose other models than the one that is named.
const REFERENCES: [&str; 11] = [
    "previous_response_id",
    "conversation",
    "cachedContent",
    "mcp_servers",
    "container",
    "prompt",
    "background",
    "web_search_options",
    "fallbacks",
    "models",
    "plugins",
];

const MESSAGES: [&str; 16] = [
    "model",
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "metadata",
    "stream",
    "stop_sequences",
    "temperature",
    "top_p",
    "top_k",
    "thinking",
    "context_management",
    "output_config",
    "output_format",
];
const CHAT: [&str; 30] = [
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "n",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "stop",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "functions",
    "function_call",
    "response_format",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "reasoning_effort",
    "verbosity",
    "user",
    "store",
    "prompt_cache_key",
    "chat_template_kwargs",
];
const RESPONSES: [&str; 20] = [
    "model",
    "input",
    "instructions",
    "max_output_tokens",
    "stream",
    "temperature",
    "top_p",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
    "include",
    "store",
    "user",
    "metadata",
    "client_metadata",
    "prompt_cache_key",
    "truncation",
    "top_logprobs",
];
const GENERATE: [&str; 6] = [
    "contents",
    "tools",
    "toolConfig",
    "systemInstruction",
    "safetySettings",
    "generationConfig",
];
const GENERATION: [&str; 13] = [
    "temperature",
    "topP",
    "topK",
    "candidateCount",
    "maxOutputTokens",
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "thinkingConfig",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
];

/// Reads a request and its bounds. `max_tokens` limits an answer where the request does not, and `token_field` is where a
/// chat completion has that limit.
///
/// # Errors
///
/// Says why a request is refused: it names no model, has a limit that is not a whole number, or contains what has no bound
/// or reaches other hosts.
pub(super) fn bounded(
    route: (Api, Purpose),
    path: &str,
    request: Value,
    max_tokens: u64,
    token_field: &str,
) -> Result<BoundedRequest, String> {
    let (api, purpose) = route;
    let Value::Object(fields) = request else {
        return Err("the request is not a JSON object".to_owned());
    };
    let fields = match api {
        Api::Generate => camel_cased(fields)?,
        Api::Messages | Api::Chat | Api::Responses => fields,
    };
    if let Some(field) = REFERENCES.iter().find(|field| {
        fields
            .get(**field)
            .is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
    }) {
        return Err(format!(
            "{field:?} refers to what is not in the request, so its cost has no bound"
        ));
    }
    let known: &[&str] = match api {
        Api::Messages => &MESSAGES,
        Api::Chat => &CHAT,
        Api::Responses => &RESPONSES,
        Api::Generate => &GENERATE,
    };
    let (mut fields, mut dropped) = only(fields, known, "");
    let model = match api {
        Api::Generate => path
            .strip_prefix("/v1beta/models/")
            .and_then(|rest| rest.rsplit_once(':'))
            .map(|(model, _)| model.to_owned()),
        Api::Messages | Api::Chat | Api::Responses => fields
            .get("model")
            .and_then(Value::as_str)
            .map(str::to_owned),
    };
    let model = model.filter(|model| !model.is_empty());
    let model = model.ok_or_else(|| "the request names no model".to_owned())?;
    let output = match purpose {
        Purpose::Count => 0,
        Purpose::Answer => limited(api, &mut fields, &mut dropped, max_tokens, token_field)?,
    };
    let body = Value::Object(fields);
    Ok(BoundedRequest {
        model,
        output,
        added_input: content::check(api, &body)?,
        body,
        dropped,
    })
}

/// What a request wants of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// An answer, which has a limit.
    Answer,
    /// The number of tokens of the request.
    Count,
}

/// Sets the limit of an answer, and returns the most tokens of all answers.
fn limited(
    api: Api,
    fields: &mut Map<String, Value>,
    dropped: &mut Vec<String>,
    max_tokens: u64,
    token_field: &str,
) -> Result<u64, String> {
    let (limit, answers) = match api {
        Api::Messages => (largest_field(fields, &["max_tokens"])?, 1),
        Api::Chat => (
            largest_field(fields, &["max_completion_tokens", "max_tokens"])?,
            largest_field(fields, &["n"])?.unwrap_or(1).max(1),
        ),
        Api::Responses => (largest_field(fields, &["max_output_tokens"])?, 1),
        Api::Generate => {
            let config = match fields.remove("generationConfig") {
                None | Some(Value::Null) => Map::new(),
                Some(Value::Object(config)) => camel_cased(config)?,
                Some(_) => return Err("\"generationConfig\" is not an object".to_owned()),
            };
            let (mut config, more) = only(config, &GENERATION, "generationConfig.");
            dropped.extend(more);
            let limit = largest_field(&config, &["maxOutputTokens"])?;
            let answers = largest_field(&config, &["candidateCount"])?
                .unwrap_or(1)
                .max(1);
            let limit = limit.unwrap_or(max_tokens);
            config.insert("maxOutputTokens".to_owned(), json!(limit));
            fields.insert("generationConfig".to_owned(), Value::Object(config));
            return Ok(limit.saturating_mul(answers));
        }
    };
    let limit = limit.unwrap_or_else(|| {
        let field = match api {
            Api::Messages => "max_tokens",
            Api::Chat => token_field,
            Api::Responses | Api::Generate => "max_output_tokens",
        };
        fields.insert(field.to_owned(), json!(max_tokens));
        max_tokens
    });
    if api == Api::Chat && fields.get("stream") == Some(&Value::Bool(true)) {
        // Without it, what a stream has used stays unknown.
        fields.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    Ok(limit.saturating_mul(answers))
}

/// The largest of the numbers with these names; `None` if all are missing.
fn largest_field(fields: &Map<String, Value>, names: &[&str]) -> Result<Option<u64>, String> {
    let mut largest = None;
    for name in names {
        let number = match fields.get(*name) {
            None | Some(Value::Null) => continue,
            Some(value) => value
                .as_u64()
                .ok_or_else(|| format!("{name:?} is not a whole number"))?,
        };
        largest = largest.max(Some(number));
    }
    Ok(largest)
}

/// Keeps the known fields, and names the others.
fn only(
    fields: Map<String, Value>,
    known: &[&str],
    prefix: &str,
) -> (Map<String, Value>, Vec<String>) {
    let (known_fields, others): (Map<_, _>, Map<_, _>) = fields
        .into_iter()
        .partition(|(name, _)| known.contains(&name.as_str()));
    let others = others.keys().map(|name| format!("{prefix}{name}"));
    (known_fields, others.collect())
}

/// Writes the names of fields in the one spelling that is checked. Gemini takes `max_tokens` for `maxTokens`.
fn camel_cased(fields: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut all = Map::new();
    for (name, value) in fields {
        let mut words = name.split('_');
        let mut camel = words.next().unwrap_or_default().to_owned();
        for word in words {
            let mut letters = word.chars();
            camel.extend(letters.next().map(|c| c.to_ascii_uppercase()));
            camel.push_str(letters.as_str());
        }
        if all.insert(camel, value).is_some() {
            return Err(format!("{name:?} is given in two spellings"));
        }
    }
    Ok(all)
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

    const GEMINI: &str = "/v1beta/models/g:generateContent";

    fn read(api: Api, body: Value) -> Result<BoundedRequest, String> {
        bounded((api, Purpose::Answer), GEMINI, body, 7, "max_tokens")
    }

    #[test]
    fn each_wire_has_its_own_paths() {
        let of = |wire, path| Route::parse(wire, "POST", path);
        assert_eq!(
            of(Wire::Anthropic, "/v1/messages"),
            Some(Route::Answer(Api::Messages))
        );
        assert_eq!(
            of(Wire::Anthropic, "/v1/messages/count_tokens"),
            Some(Route::Count(Api::Messages))
        );
        assert_eq!(
            of(Wire::OpenAi, "/v1/responses"),
            Some(Route::Answer(Api::Responses))
        );
        assert_eq!(
            of(Wire::Gemini, "/v1beta/models/m-1.5:streamGenerateContent"),
            Some(Route::Answer(Api::Generate))
        );
        assert_eq!(
            of(Wire::Gemini, "/v1beta/models/m:countTokens"),
            Some(Route::Count(Api::Generate))
        );
        for (wire, path) in [
            (Wire::Anthropic, "/v1/chat/completions"),
            (Wire::OpenAi, "/v1/messages"),
            (Wire::OpenAi, "/v1/files"),
            (Wire::Gemini, "/v1beta/models/../x:generateContent"),
            (Wire::Gemini, "/v1beta/models/%2e%2e:generateContent"),
            (Wire::Gemini, "/v1beta/cachedContents"),
        ] {
            assert_eq!(of(wire, path), None, "{path}");
        }
    }

    #[test]
    fn only_models_are_read() {
        for path in [
            "/v1/models",
            "/v1/models/gpt-5.5",
            "/v1/models/qwen/qwen3:free",
        ] {
            assert_eq!(
                Route::parse(Wire::OpenAi, "GET", path),
                Some(Route::Models),
                "{path}"
            );
        }
        for path in [
            "/v1/models/../files",
            "/v1/models/%2e%2e/files",
            "/v1/models/.%2E/files",
            "/v1/models/x/../../files",
            "/v1/models//files",
            "/v1/models/a%2f..%2ffiles",
            "/v1/models/a\\..\\files",
            "/v1/modelsx",
        ] {
            assert_eq!(Route::parse(Wire::OpenAi, "GET", path), None, "{path}");
        }
        assert_eq!(
            forwarded_query("alt=sse&key=k&x=1&beta=true"),
            "alt=sse&beta=true"
        );
        assert_eq!(forwarded_query("alt=s%26e&ALT=x"), "");
    }

    #[test]
    fn answer_without_limit_gets_one() {
        let bounded = read(Api::Messages, json!({"model": "m", "max_tokens": 5})).unwrap();
        assert_eq!(
            (bounded.output, &bounded.body["max_tokens"]),
            (5, &json!(5))
        );
        let bounded = read(Api::Responses, json!({"model": "m"})).unwrap();
        assert_eq!(
            (bounded.output, &bounded.body["max_output_tokens"]),
            (7, &json!(7))
        );
        let bounded = read(Api::Chat, json!({"model": "m", "n": 3, "stream": true})).unwrap();
        assert_eq!(
            (bounded.output, &bounded.body["max_tokens"]),
            (21, &json!(7))
        );
        assert_eq!(bounded.body["stream_options"]["include_usage"], true);
        let bounded = read(Api::Generate, json!({})).unwrap();
        assert_eq!(
            (
                bounded.model.as_str(),
                &bounded.body["generationConfig"]["maxOutputTokens"]
            ),
            ("g", &json!(7))
        );
    }

    #[test]
    fn limits_have_one_spelling_and_are_whole_numbers() {
        let both = json!({"model": "m", "max_tokens": 5, "max_completion_tokens": 900, "n": 2});
        assert_eq!(read(Api::Chat, both).unwrap().output, 1800);
        let snake = json!({"generation_config": {"max_output_tokens": 60, "candidate_count": 8}});
        let bounded = read(Api::Generate, snake).unwrap();
        assert_eq!(bounded.output, 480);
        assert_eq!(bounded.body["generationConfig"]["candidateCount"], 8);
        for (api, body) in [
            (Api::Chat, json!({"model": "m", "n": "50"})),
            (Api::Chat, json!({"model": "m", "n": 50.0})),
            (
                Api::Chat,
                json!({"model": "m", "max_tokens": 5, "max_completion_tokens": 1e6}),
            ),
            (Api::Messages, json!({"model": "m", "max_tokens": -1})),
            (
                Api::Generate,
                json!({"generationConfig": {"maxOutputTokens": "60000"}}),
            ),
            (
                Api::Generate,
                json!({"generationConfig": {"maxOutputTokens": 5, "max_output_tokens": 60000}}),
            ),
            (
                Api::Generate,
                json!({"generationConfig": {}, "generation_config": {}}),
            ),
            (Api::Generate, json!({"generationConfig": [1]})),
        ] {
            assert!(read(api, body.clone()).is_err(), "{body}");
        }
    }

    #[test]
    fn unknown_fields_are_not_forwarded() {
        let body =
            json!({"model": "m", "service_tier": "priority", "speed": "fast", "messages": []});
        let bounded = read(Api::Messages, body).unwrap();
        assert_eq!(bounded.dropped, ["service_tier", "speed"]);
        assert_eq!(
            bounded.body,
            json!({"model": "m", "messages": [], "max_tokens": 7})
        );
        let body = json!({"generationConfig": {"responseModalities": ["IMAGE"]}});
        let bounded = read(Api::Generate, body).unwrap();
        assert_eq!(bounded.dropped, ["generationConfig.responseModalities"]);
    }

    #[test]
    fn unbounded_requests_are_refused() {
        for body in [
            json!([]),
            json!({"max_tokens": 1}),
            json!({"model": 7}),
            json!({"model": "m", "tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
            json!({"model": "m", "previous_response_id": "r"}),
            json!({"model": "m", "prompt": {"id": "p"}}),
            json!({"model": "m", "background": true}),
        ] {
            assert!(read(Api::Responses, body.clone()).is_err(), "{body}");
        }
        assert!(read(Api::Generate, json!({"cached_content": "c"})).is_err());
        let honest = json!({"model": "m", "background": false, "previous_response_id": null,
            "tools": [{"type": "function", "name": "web_search"}]});
        assert!(read(Api::Responses, honest).is_ok());
    }
}
