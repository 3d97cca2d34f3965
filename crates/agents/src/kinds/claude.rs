//! Claude Code, Anthropic's agent.
//!
//! `--setting-sources user` leaves out the settings and hooks of a repository, and `--strict-mcp-config` its MCP servers.
//! `IS_SANDBOX` lets it skip permissions as root, which is what it is in a user namespace.

use super::{pairs, words};
use crate::profile::{AgentProfile, PromptDelivery, Wire};
use crate::registry::AgentKind;

const ARGS: [&str; 9] = [
    "-p",
    "--output-format",
    "json",
    "--model",
    "{model}",
    "--setting-sources",
    "user",
    "--strict-mcp-config",
    "--dangerously-skip-permissions",
];

/// The agent `claude`.
pub(crate) struct Claude;

impl AgentKind for Claude {
    fn tested_version(&self) -> &'static str {
        "2.1.330"
    }

    fn profile(&self) -> AgentProfile {
        let mut resume = words(&ARGS);
        resume.push("--continue".to_owned());
        AgentProfile {
            name: "claude".to_owned(),
            program: "claude".to_owned(),
            args: words(&ARGS),
            resume,
            prompt: PromptDelivery::Stdin,
            wire: Wire::Anthropic,
            provider: "anthropic".to_owned(),
            model: "claude-sonnet-5".to_owned(),
            env: pairs(&[
                ("ANTHROPIC_API_KEY", "{token}"),
                ("ANTHROPIC_BASE_URL", "{endpoint}"),
                // Its helpers would use another model, which may have no price.
                ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "{model}"),
                ("ANTHROPIC_SMALL_FAST_MODEL", "{model}"),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                ("CLAUDE_CODE_MAX_RETRIES", "2"),
                ("CLAUDE_CONFIG_DIR", "{home}/.claude"),
                ("DISABLE_AUTOUPDATER", "1"),
                ("DISABLE_ERROR_REPORTING", "1"),
                ("DISABLE_TELEMETRY", "1"),
                ("IS_SANDBOX", "1"),
            ]),
            files: pairs(&[]),
            disabled: words(&[".claude", ".mcp.json"]),
            leftovers: Vec::new(),
            hosts: Vec::new(),
        }
    }
}
