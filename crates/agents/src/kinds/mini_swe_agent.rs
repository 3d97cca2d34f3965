//! mini-swe-agent, which works with nothing but a shell.

use super::{pairs, words};
use crate::profile::{AgentProfile, PromptDelivery, Wire};
use crate::registry::AgentKind;

const ARGS: [&str; 9] = [
    "--yolo",
    "--exit-immediately",
    "--cost-limit",
    "0",
    "--model",
    "openai/{model}",
    "--output",
    "{home}/trajectory.json",
    "--task={prompt}",
];

/// The agent `mini-swe-agent`.
pub(crate) struct MiniSweAgent;

impl AgentKind for MiniSweAgent {
    fn tested_version(&self) -> &'static str {
        "2.4.0"
    }

    fn profile(&self) -> AgentProfile {
        AgentProfile {
            name: "mini-swe-agent".to_owned(),
            program: "mini".to_owned(),
            args: words(&ARGS),
            resume: Vec::new(),
            prompt: PromptDelivery::Argument,
            wire: Wire::OpenAi,
            provider: "openai".to_owned(),
            model: "gpt-5.5".to_owned(),
            env: pairs(&[
                ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
                ("MSWEA_CONFIGURED", "true"),
                ("MSWEA_COST_TRACKING", "ignore_errors"),
                ("MSWEA_GLOBAL_CONFIG_DIR", "{home}/.mini"),
                ("MSWEA_SILENT_STARTUP", "1"),
                ("OPENAI_API_BASE", "{endpoint}/v1"),
                ("OPENAI_API_KEY", "{token}"),
            ]),
            files: pairs(&[]),
            disabled: Vec::new(),
            leftovers: Vec::new(),
            hosts: Vec::new(),
        }
    }
}
