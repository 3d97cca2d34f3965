//! What the server records of a request, and what the request is about.
//!
//! What always holds: which provider and which endpoint a request means follows from its method and path alone.

use serde_json::Value;

/// The provider whose API a request speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Chat completions and responses.
    OpenAi,
    /// Messages.
    Anthropic,
    /// `generateContent` and its stream.
    Gemini,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// An answer of a model: the only requests that use up replies of the script.
    Completion,
    /// The number of tokens of a prompt.
    TokenCount,
    /// The list of models.
    Models,
    /// Whether anybody is there (`HEAD /`).
    Probe,
    /// Something this server does not play; it is answered with 404.
    Unknown,
}

/// One request as it came in.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenRequest {
    /// Whose API it speaks; the list of models and what is unknown count as OpenAI's unless a header or the
    /// path says otherwise.
    pub family: Family,
    /// What it asks for.
    pub endpoint: Endpoint,
    /// `GET`, `POST`, `HEAD`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Header names in lowercase with their values, in the order of arrival.
    pub headers: Vec<(String, String)>,
    /// The body as JSON, its keys sorted; null when it is none.
    pub body: Value,
    /// The body as it came: the one place that tells in which order its keys stood. What is not UTF-8 in it is replaced.
    pub raw: String,
}

impl SeenRequest {
    pub(crate) fn new(
        method: &str,
        path: String,
        headers: Vec<(String, String)>,
        body: &[u8],
    ) -> Self {
        let (family, endpoint) = classify(method, &path, &headers);
        let raw = String::from_utf8_lossy(body).into_owned();
        let body = serde_json::from_slice(body).unwrap_or_default();
        Self {
            family,
            endpoint,
            method: method.to_owned(),
            path,
            headers,
            body,
            raw,
        }
    }

    /// The value of a header, by its lowercase name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The key it came with, wherever its family puts one.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        let bearer = || Some(self.header("authorization")?.trim_start_matches("Bearer "));
        match self.family {
            Family::OpenAi => bearer(),
            Family::Anthropic => self.header("x-api-key").or_else(bearer),
            Family::Gemini => self.header("x-goog-api-key"),
        }
    }

    /// The conversation, as JSON text: what a refusal quotes and what the tokens of the prompt are counted of.
    #[must_use]
    pub fn conversation(&self) -> String {
        let of = |name: &str| self.body.get(name);
        of("messages")
            .or_else(|| of("contents"))
            .or_else(|| of("input"))
            .unwrap_or(&Value::Null)
            .to_string()
    }

    /// The tokens of the prompt that the server reports for this request.
    #[must_use]
    pub fn prompt_tokens(&self) -> usize {
        tokens(&self.conversation())
    }

    /// The path without its query.
    pub(crate) fn route(&self) -> &str {
        route(&self.path)
    }

    /// Whether the answer has to come as server-sent events.
    pub(crate) fn is_streamed(&self) -> bool {
        match self.family {
            Family::Gemini => self.route().ends_with(":streamGenerateContent"),
            Family::OpenAi | Family::Anthropic => self.body["stream"] == true,
        }
    }

    /// The model it names.
    pub(crate) fn model(&self) -> &str {
        let in_path = || Some(self.route().rsplit_once('/')?.1.split_once(':')?.0);
        self.body["model"]
            .as_str()
            .or_else(in_path)
            .unwrap_or("no-model-named")
    }
}

/// How many tokens this server says a text has.
pub(crate) fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

fn route(path: &str) -> &str {
    path.split('?').next().unwrap_or(path)
}

fn classify(method: &str, path: &str, headers: &[(String, String)]) -> (Family, Endpoint) {
    let route = route(path);
    if let Some((_, action)) = route
        .strip_prefix("/v1beta/models/")
        .and_then(|rest| rest.split_once(':'))
    {
        let endpoint = match (method, action) {
            ("POST", "generateContent" | "streamGenerateContent") => Endpoint::Completion,
            ("POST", "countTokens") => Endpoint::TokenCount,
            _ => Endpoint::Unknown,
        };
        return (Family::Gemini, endpoint);
    }
    let is_anthropic = headers
        .iter()
        .any(|(name, _)| name == "anthropic-version" || name == "x-api-key");
    let neutral = if is_anthropic {
        Family::Anthropic
    } else {
        Family::OpenAi
    };
    match (method, route) {
        ("POST", "/v1/chat/completions" | "/v1/responses") => {
            (Family::OpenAi, Endpoint::Completion)
        }
        ("POST", "/v1/messages") => (Family::Anthropic, Endpoint::Completion),
        ("POST", "/v1/messages/count_tokens") => (Family::Anthropic, Endpoint::TokenCount),
        ("GET", "/v1/models") => (neutral, Endpoint::Models),
        ("GET", "/v1beta/models") => (Family::Gemini, Endpoint::Models),
        ("HEAD", "/") => (neutral, Endpoint::Probe),
        _ => (neutral, Endpoint::Unknown),
    }
}
