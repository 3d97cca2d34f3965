//! `[llm.PROVIDER]`: each provider, read into one type.

use std::collections::BTreeMap;

use toml::Value;

use crate::declare::{FromLayers, FromValue, table};

/// The providers, in the order of the reference.
pub const PROVIDERS: &[&str] = &[
    "claude-cli",
    "gemini-cli",
    "codex-cli",
    "anthropic",
    "openai",
    "openrouter",
    "gateway",
    "ollama",
    "replay",
];

/// The settings of a provider. A field that its table does not have is empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProviderSection {
    /// The program of a provider that is one.
    pub binary: Option<String>,
    /// The address of its server.
    pub base_url: Option<String>,
    /// The name of the variable that holds the key.
    pub api_key_env: Option<String>,
    /// The model it is asked with.
    pub model: Option<String>,
    /// The most tokens of an answer; 0 where the table has no such setting.
    pub max_tokens: u64,
    /// Tokens of request and answer together; 0 if unknown.
    pub context_window: u64,
    /// The temperature; below 0 for the model's own. Absent where the table has no such setting.
    pub temperature: Option<f64>,
    /// The address that OpenRouter is given as the origin of requests.
    pub referer: Option<String>,
    /// The title that OpenRouter is given for requests.
    pub title: Option<String>,
    /// The recording that answers.
    pub cassette: Option<String>,
    /// Named choices of a model: the model of each name.
    pub profiles: BTreeMap<String, Option<String>>,
}

impl ProviderSection {
    /// Reads each field by its name.
    pub(crate) fn read(
        value_of: &dyn Fn(&str) -> Option<Value>,
        profiles: BTreeMap<String, ProfileEntry>,
    ) -> Self {
        let text = |field: &str| value_of(field).as_ref().and_then(FromValue::from_value);
        let number = |field: &str| {
            value_of(field)
                .as_ref()
                .map(FromValue::from_value)
                .unwrap_or_default()
        };
        Self {
            binary: text("binary"),
            base_url: text("base_url"),
            api_key_env: text("api_key_env"),
            model: text("model"),
            max_tokens: number("max_tokens"),
            context_window: number("context_window"),
            temperature: value_of("temperature").as_ref().map(FromValue::from_value),
            referer: text("referer"),
            title: text("title"),
            cassette: text("cassette"),
            profiles: profiles
                .into_iter()
                .map(|(name, profile)| (name, profile.0))
                .collect(),
        }
    }
}

/// The model of a profile.
pub(crate) struct ProfileEntry(Option<String>);

impl FromLayers for ProfileEntry {
    fn read(value_of: &dyn Fn(&str) -> Option<Value>) -> Self {
        Self(value_of("model").as_ref().and_then(FromValue::from_value))
    }
}

table! {
    /// Any server that speaks OpenAI's chat completions: llama.cpp, Ollama, vLLM, LM Studio.
    ["llm.gateway"] GATEWAY {
        /// The address of the server.
        base_url: Text = "http://localhost:8000/v1", loopback;
        /// The name of the variable that holds the key, if the server needs one.
        api_key_env: Text = "", user;
        /// The model to ask.
        model: Text = "gpt-oss-20b";
        /// The most tokens of an answer.
        max_tokens: u64 = 4096, lower;
        /// Tokens that the model takes, question and answer together. 0: not known.
        context_window: u64 = 0, user;
        /// The temperature of answers. Below 0: the server's default.
        temperature: f64 = 0.2;
    }
}

table! {
    /// Ollama on this machine.
    ["llm.ollama"] OLLAMA {
        /// The address of the server.
        base_url: Text = "http://localhost:11434/v1", loopback;
        /// The name of the variable that holds the key, if the server needs one.
        api_key_env: Text = "", user;
        /// The model to ask.
        model: Text = "gpt-oss:20b";
        /// The most tokens of an answer.
        max_tokens: u64 = 4096, lower;
        /// Tokens that the model takes, question and answer together. 0: not known.
        context_window: u64 = 0, user;
        /// The temperature of answers. Below 0: the server's default.
        temperature: f64 = 0.2;
    }
}

table! {
    /// Anthropic's Messages API.
    ["llm.anthropic"] ANTHROPIC {
        /// The address of the server.
        base_url: Text = "https://api.anthropic.com", loopback;
        /// The name of the variable that holds the key.
        api_key_env: Text = "ANTHROPIC_API_KEY", user;
        /// The model to ask.
        model: Text = "claude-sonnet-5";
        /// The most tokens of an answer.
        max_tokens: u64 = 16_000, lower;
        /// Tokens that the model takes, question and answer together. 0: not known.
        context_window: u64 = 0, user;
        /// The temperature of answers. Below 0: the model's default. Current models refuse any other.
        temperature: f64 = -1.0;
    }
}

table! {
    /// OpenAI's chat completions.
    ["llm.openai"] OPENAI {
        /// The address of the server.
        base_url: Text = "https://api.openai.com/v1", loopback;
        /// The name of the variable that holds the key.
        api_key_env: Text = "OPENAI_API_KEY", user;
        /// The model to ask.
        model: Text = "gpt-5.5";
        /// The most tokens of an answer.
        max_tokens: u64 = 16_000, lower;
        /// Tokens that the model takes, question and answer together. 0: not known.
        context_window: u64 = 0, user;
        /// The temperature of answers. Below 0: the model's default. Current models refuse any other.
        temperature: f64 = -1.0;
    }
}

table! {
    /// OpenRouter, which passes requests on to many providers.
    ["llm.openrouter"] OPENROUTER {
        /// The address of the server.
        base_url: Text = "https://openrouter.ai/api/v1", loopback;
        /// The name of the variable that holds the key.
        api_key_env: Text = "OPENROUTER_API_KEY", user;
        /// The model to ask.
        model: Text = "anthropic/claude-sonnet-5";
        /// The most tokens of an answer.
        max_tokens: u64 = 16_000, lower;
        /// Tokens that the model takes, question and answer together. 0: not known.
        context_window: u64 = 0, user;
        /// The temperature of answers. Below 0: the model's default.
        temperature: f64 = -1.0;
        /// The address that OpenRouter is given as the origin of requests (HTTP-Referer). The default is that of the
        /// specification that the providers follow.
        referer: Text = "https://effortlesssteven.com/xchecker";
        /// The name that OpenRouter is given for requests (X-Title).
        title: Text = "Crucible";
    }
}

table! {
    /// Anthropic's command line program, without tools.
    ["llm.claude-cli"] CLAUDE_CLI {
        /// The program.
        binary: Text = "claude", user;
        /// The name of the variable that holds the key. If it is empty, or the default variable is not set, the program uses its
        /// own login. It may still find a key in a variable that it inherits.
        api_key_env: Text = "ANTHROPIC_API_KEY", user;
        /// The address of the server. Empty: the vendor's own.
        base_url: Text = "", loopback;
        /// The model to ask.
        model: Text = "sonnet";
        /// The most tokens of an answer.
        max_tokens: u64 = 16_000, lower;
        /// Tokens that the model takes, question and answer together. 0: not known.
        context_window: u64 = 0, user;
    }
}

table! {
    /// Google's command line program, without tools.
    ["llm.gemini-cli"] GEMINI_CLI {
        /// The program.
        binary: Text = "gemini", user;
        /// The name of the variable that holds the key. If it is empty, or the default variable is not set, the program uses its
        /// own login. It may still find a key in a variable that it inherits.
        api_key_env: Text = "GEMINI_API_KEY", user;
        /// The address of the server. Empty: the vendor's own.
        base_url: Text = "", loopback;
        /// The model to ask.
        model: Text = "gemini-2.5-pro";
        /// The most tokens of an answer.
        max_tokens: u64 = 16_000, lower;
        /// Tokens that the model takes, question and answer together. 0: not known.
        context_window: u64 = 0, user;
        /// The temperature of answers. Below 0: the model's default.
        temperature: f64 = -1.0;
    }
}

table! {
    /// OpenAI's command line program, in its read-only mode.
    ["llm.codex-cli"] CODEX_CLI {
        /// The program.
        binary: Text = "codex", user;
        /// The name of the variable that holds the key. If it is empty, or the default variable is not set, the program uses its
        /// own login. It may still find a key in a variable that it inherits.
        api_key_env: Text = "OPENAI_API_KEY", user;
        /// The address of the server. Empty: the vendor's own.
        base_url: Text = "", loopback;
        /// The model to ask.
        model: Text = "gpt-5-codex";
        /// The most tokens of an answer.
        max_tokens: u64 = 16_000, lower;
        /// Tokens that the model takes, question and answer together. 0: not known.
        context_window: u64 = 0, user;
    }
}

table! {
    /// A recording that answers instead of a model.
    ["llm.replay"] REPLAY {
        /// The file of the recording.
        cassette: Text = "";
    }
}

macro_rules! profiles {
    ($($table:literal $name:ident;)*) => {$(
        table! {
            /// Named choices of a model of this provider. `[phases.NAME] llm_profile` chooses one.
            [$table] $name {
                /// The model to ask.
                model: Text = "";
            }
        }
    )*};
}

profiles! {
    "llm.anthropic.profiles.*" ANTHROPIC_PROFILES;
    "llm.claude-cli.profiles.*" CLAUDE_CLI_PROFILES;
    "llm.codex-cli.profiles.*" CODEX_CLI_PROFILES;
    "llm.gateway.profiles.*" GATEWAY_PROFILES;
    "llm.gemini-cli.profiles.*" GEMINI_CLI_PROFILES;
    "llm.ollama.profiles.*" OLLAMA_PROFILES;
    "llm.openai.profiles.*" OPENAI_PROFILES;
    "llm.openrouter.profiles.*" OPENROUTER_PROFILES;
}
