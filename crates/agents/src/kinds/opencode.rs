//! OpenCode.
//!
//! It is connected by a provider of its configuration file. Model lists, updates and plugins, which it would fetch, are off.

use super::{pairs, words};
use crate::profile::{AgentProfile, PromptDelivery, Wire};
use crate::registry::AgentKind;

const CONFIG: &str = r#"{
  "autoupdate": false,
  "share": "disabled",
  "model": "crucible/{model}",
  "small_model": "crucible/{model}",
  "permission": {"edit": "allow", "bash": "allow", "webfetch": "deny"},
  "provider": {
    "crucible": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "crucible",
      "options": {"baseURL": "{endpoint}/v1", "apiKey": "{token}"},
      "models": {"{model}": {"name": "{model}", "limit": {"context": 200000, "output": 16000}}}
    }
  }
}
"#;

const ARGS: [&str; 7] = [
    "run",
    "--pure",
    "--auto",
    "--format",
    "json",
    "--model",
    "crucible/{model}",
];

/// The agent `opencode`.
pub(crate) struct OpenCode;

impl AgentKind for OpenCode {
    fn tested_version(&self) -> &'static str {
        "1.18.33"
    }

    fn profile(&self) -> AgentProfile {
        AgentProfile {
            name: "opencode".to_owned(),
            program: "opencode".to_owned(),
            args: words(&ARGS),
            resume: words(&[&ARGS[..], &["--continue"]].concat()),
            prompt: PromptDelivery::Stdin,
            wire: Wire::OpenAi,
            provider: "openai".to_owned(),
            model: "gpt-5.5".to_owned(),
            env: pairs(&[
                ("OPENCODE_CONFIG", "{home}/opencode.json"),
                ("OPENCODE_DISABLE_AUTOUPDATE", "true"),
                ("OPENCODE_DISABLE_LSP_DOWNLOAD", "true"),
                ("OPENCODE_DISABLE_MODELS_FETCH", "true"),
            ]),
            files: pairs(&[("opencode.json", CONFIG)]),
            disabled: words(&[".opencode", "opencode.json", "opencode.jsonc"]),
            leftovers: Vec::new(),
            hosts: Vec::new(),
        }
    }
}
