//! `[phases.NAME]`: what a phase does its own way.

use crate::declare::section;

section! {
    /// How a phase differs from the others, such as `[phases.fixer]`. The phases of a run are patchmaker and fixer.
    ["phases.*"] PhaseEntry {
        /// The profile whose model answers the phase. The provider must have it.
        llm_profile: Text = "";
        /// The form of the questions: plain (every provider; the default), claude (anthropic and claude-cli), headings
        /// (openai, openrouter, gateway, ollama, codex-cli, gemini-cli) or one-message (gateway, ollama). A form that
        /// the provider does not take is refused.
        prompt_template: Text = "", one_of(&["plain", "claude", "headings", "one-message"]);
    }
}
