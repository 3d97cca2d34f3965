//! Codex, OpenAI's agent.
//!
//! Its own sandbox is off: the processes of one sandbox cannot make another. A repository's `.codex` is not in its copy.

use super::{pairs, words};
use crate::profile::{AgentProfile, PromptDelivery, Wire};
use crate::registry::AgentKind;

const CONFIG: &str = "\
model = \"{model}\"
model_provider = \"crucible\"
check_for_update_on_startup = false
web_search = \"disabled\"

[model_providers.crucible]
name = \"crucible\"
base_url = \"{endpoint}/v1\"
env_key = \"CRUCIBLE_AGENT_TOKEN\"
wire_api = \"responses\"
request_max_retries = 2
stream_max_retries = 2

[analytics]
enabled = false
";

/// The agent `codex`.
pub(crate) struct Codex;

impl AgentKind for Codex {
    fn tested_version(&self) -> &'static str {
        "0.169.0"
    }

    fn profile(&self) -> AgentProfile {
        let options = [
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
        ];
        AgentProfile {
            name: "codex".to_owned(),
            program: "codex".to_owned(),
            args: words(&[&["exec"], &options[..], &["-"]].concat()),
            resume: words(&[&["exec", "resume", "--last"], &options[..], &["-"]].concat()),
            prompt: PromptDelivery::Stdin,
            wire: Wire::OpenAi,
            provider: "openai".to_owned(),
            model: "gpt-5.5".to_owned(),
            env: pairs(&[
                ("CODEX_HOME", "{home}/.codex"),
                ("CRUCIBLE_AGENT_TOKEN", "{token}"),
            ]),
            files: pairs(&[(".codex/config.toml", CONFIG)]),
            disabled: words(&[".codex"]),
            leftovers: Vec::new(),
            hosts: Vec::new(),
        }
    }
}
