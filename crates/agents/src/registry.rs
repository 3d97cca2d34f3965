//! The list of built-in agents.

use crate::kinds;
use crate::profile::AgentProfile;

/// A built-in agent.
pub trait AgentKind: Sync {
    /// How it is started and connected, before the user's settings.
    fn profile(&self) -> AgentProfile;

    /// The version that the project's tests run.
    fn tested_version(&self) -> &'static str;
}

/// Every built-in agent, in the order of lists.
#[must_use]
pub fn registry() -> &'static [&'static dyn AgentKind] {
    &[
        &kinds::claude::Claude,
        &kinds::codex::Codex,
        &kinds::gemini::Gemini,
        &kinds::opencode::OpenCode,
        &kinds::qwen::Qwen,
        &kinds::aider::Aider,
        &kinds::mini_swe_agent::MiniSweAgent,
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn built_in_agents_are_valid_with_unique_names() {
        let mut names = BTreeSet::new();
        for kind in registry() {
            let profile = kind.profile();
            assert!(profile.check().is_ok(), "{}", profile.name);
            assert!(crucible_llm::provider(&profile.provider).is_ok());
            assert!(!kind.tested_version().is_empty());
            // The token is in a variable or a file, and the endpoint is named in one of them or in an argument.
            let texts = profile.args.iter().chain(profile.env.values());
            let texts: Vec<&String> = texts.chain(profile.files.values()).collect();
            for word in ["{endpoint}", "{token}"] {
                assert!(
                    texts.iter().any(|text| text.contains(word)),
                    "{}: {word}",
                    profile.name
                );
            }
            assert!(names.insert(profile.name));
        }
    }
}
