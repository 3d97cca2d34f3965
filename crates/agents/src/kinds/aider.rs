//! aider. It commits on its own by default, and keeps its notes in the working copy.

use super::{pairs, words};
use crate::profile::{AgentProfile, PromptDelivery, Wire};
use crate::registry::AgentKind;

const ARGS: [&str; 13] = [
    "--model",
    "openai/{model}",
    "--message-file",
    "{prompt_file}",
    "--yes-always",
    "--no-auto-commits",
    "--no-gitignore",
    "--no-check-update",
    "--analytics-disable",
    "--no-show-model-warnings",
    "--no-show-release-notes",
    "--no-pretty",
    "--no-detect-urls",
];

/// The agent `aider`.
pub(crate) struct Aider;

impl AgentKind for Aider {
    fn tested_version(&self) -> &'static str {
        "0.86.2"
    }

    fn profile(&self) -> AgentProfile {
        AgentProfile {
            name: "aider".to_owned(),
            program: "aider".to_owned(),
            args: words(&ARGS),
            resume: Vec::new(),
            prompt: PromptDelivery::File,
            wire: Wire::OpenAi,
            provider: "openai".to_owned(),
            model: "gpt-5.5".to_owned(),
            env: pairs(&[
                ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
                ("OPENAI_API_BASE", "{endpoint}/v1"),
                ("OPENAI_API_KEY", "{token}"),
            ]),
            files: pairs(&[]),
            disabled: words(&[
                ".aider.conf.yml",
                ".aider.model.metadata.json",
                ".aider.model.settings.yml",
                ".env",
            ]),
            leftovers: words(&[".aider*"]),
            hosts: Vec::new(),
        }
    }
}
