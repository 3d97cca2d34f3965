//! `[phases.NAME]`: what a phase does its own way.

use crate::declare::section;

section! {
    /// What a phase does its own way, for example [phases.fixer]. A run's phases are patchmaker and fixer.
    ["phases.*"] PhaseEntry {
        /// The profile whose model answers it. It must be one of the provider that is asked.
        llm_profile: Text = "";
        /// The shape in which its questions are put: plain (every provider; the default), claude (anthropic and claude-cli), headings (openai,
        /// openrouter, gateway, codex-cli, gemini-cli) or one-message (gateway). One that the provider does not take is refused.
        prompt_template: Text = "", one_of(&["plain", "claude", "headings", "one-message"]);
    }
}
