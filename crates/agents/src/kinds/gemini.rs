//! Gemini CLI, Google's agent.
//!
//! Without a settings file it ends at once, because it finds no way to log in.

use super::{pairs, words};
use crate::profile::{AgentProfile, PromptDelivery, Wire};
use crate::registry::AgentKind;

const SETTINGS: &str = r#"{
  "general": {"disableAutoUpdate": true, "enableAutoUpdate": false, "maxAttempts": 3},
  "privacy": {"usageStatisticsEnabled": false},
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "telemetry": {"enabled": false},
  "tools": {"exclude": ["google_web_search", "web_fetch"]}
}
"#;

const ARGS: [&str; 6] = ["-m", "{model}", "-o", "json", "--approval-mode", "yolo"];

/// The agent `gemini`.
pub(crate) struct Gemini;

impl AgentKind for Gemini {
    fn tested_version(&self) -> &'static str {
        "0.61.0"
    }

    fn profile(&self) -> AgentProfile {
        AgentProfile {
            name: "gemini".to_owned(),
            program: "gemini".to_owned(),
            args: words(&ARGS),
            resume: words(&[&ARGS[..], &["--resume", "latest"]].concat()),
            prompt: PromptDelivery::Stdin,
            wire: Wire::Gemini,
            provider: "gemini-cli".to_owned(),
            model: "gemini-2.5-pro".to_owned(),
            env: pairs(&[
                ("GEMINI_API_KEY", "{token}"),
                ("GEMINI_CLI_NO_RELAUNCH", "true"),
                ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
                ("GOOGLE_GEMINI_BASE_URL", "{endpoint}"),
            ]),
            files: pairs(&[(".gemini/settings.json", SETTINGS)]),
            disabled: words(&[".gemini"]),
            leftovers: Vec::new(),
            hosts: Vec::new(),
        }
    }
}
