//! `[agents.NAME]`: coding agents.

use crate::declare::section;
use crate::sections::providers::PROVIDERS;

section! {
    /// A coding agent that proposes changes (`crucible run start --agent NAME`). Built in are claude, codex, gemini, opencode, qwen,
    /// aider and mini-swe-agent; a setting changes one, and another name adds an agent. In arguments, variables and files
    /// {endpoint}, {token}, {home}, {model}, {prompt} and {prompt_file} are replaced. See `docs/agents.md`.
    ["agents.*"] AgentEntry {
        /// The program: a name on the PATH, or an absolute path.
        program: Text = "", user;
        /// Its arguments for one unattended session.
        args: List = [], user;
        /// Its arguments for a further turn of the same session. Empty: each attempt is a new session.
        resume: List = [], user;
        /// How it gets its prompt: "stdin", "argument" (at {prompt}) or "file" (at {prompt_file}).
        prompt: Text = "", user, one_of(&["stdin", "argument", "file"]);
        /// The API that it speaks.
        wire: Text = "", user, one_of(&["anthropic", "openai", "gemini"]);
        /// The provider whose address and key its requests are forwarded with.
        provider: Text = "", user, one_of(PROVIDERS);
        /// The model that it uses.
        model: Text = "", user;
        /// Variables that it gets.
        env: Table = (), user;
        /// Files of its private home, by their paths in it.
        files: Table = (), user;
        /// Paths of a repository that would configure it. They are not in its working copy.
        disabled: List = [], user;
        /// Patterns, as in `.gitignore`, of files that it leaves in the working copy for itself.
        leftovers: List = [], user;
        /// Hosts besides its endpoint that it reaches, such as ["registry.example"]. Each contact is recorded.
        hosts: List = [], user;
    }
}
