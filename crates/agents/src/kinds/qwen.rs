//! Qwen Code, Alibaba's agent. It needs Node.js 22. Its interactive shell would want a terminal of its own, which the sandbox lacks.

use super::{pairs, words};
use crate::profile::{AgentProfile, PromptDelivery, Wire};
use crate::registry::AgentKind;

const SETTINGS: &str = r#"{
  "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
  "privacy": {"usageStatisticsEnabled": false},
  "security": {"auth": {"selectedType": "openai"}},
  "telemetry": {"enabled": false},
  "tools": {"shell": {"enableInteractiveShell": false}}
}
"#;

const ARGS: [&str; 7] = [
    "-m",
    "{model}",
    "-o",
    "json",
    "--yolo",
    "--auth-type",
    "openai",
];

/// The agent `qwen`.
pub(crate) struct Qwen;

impl AgentKind for Qwen {
    fn tested_version(&self) -> &'static str {
        "0.24.4"
    }

    fn profile(&self) -> AgentProfile {
        AgentProfile {
            name: "qwen".to_owned(),
            program: "qwen".to_owned(),
            args: words(&ARGS),
            resume: words(&[&ARGS[..], &["--continue"]].concat()),
            prompt: PromptDelivery::Stdin,
            wire: Wire::OpenAi,
            provider: "openai".to_owned(),
            model: "gpt-5.5".to_owned(),
            env: pairs(&[
                ("OPENAI_API_KEY", "{token}"),
                ("OPENAI_BASE_URL", "{endpoint}/v1"),
                ("OPENAI_MODEL", "{model}"),
            ]),
            files: pairs(&[(".qwen/settings.json", SETTINGS)]),
            disabled: words(&[".qwen"]),
            leftovers: Vec::new(),
            hosts: Vec::new(),
        }
    }
}
