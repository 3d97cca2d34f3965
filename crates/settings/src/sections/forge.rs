//! `[forge]`: the skills of a project.

use crate::declare::section;

section! {
    /// The project's skills (`crucible skill`).
    ["forge"] ForgeSection {
        /// The Python package below `src/` that holds the skills.
        package: Text = "skillset";
        /// Who writes skills: "claude", the program of `[llm.claude-cli]`; "command", `forge.agent_command`; "whole-file", the
        /// model of any provider.
        agent: SkillAuthor = "claude";
        /// The command of the agent "command", one text for each argument; no shell. The packet is its standard input, and
        /// {packet} in arguments is replaced by the path of a file that holds it. It writes into its working directory.
        agent_command: List = [], user;
        /// Hosts that this command can reach, such as ["api.example.com", "localhost:8000"]. Empty: none.
        agent_network: List = [], user;
        /// Names of variables that this command gets. Their values are removed from what it prints, and a skill that holds one is
        /// refused.
        agent_env: List = [], user;
        /// Seconds after which an agent is stopped.
        agent_timeout_s: u64 = 900, lower;
        /// Mebibytes that an agent may write.
        agent_disk_mib: u64 = 1024, lower;
        /// The Python that runs skills, such as "/usr/bin/python3". Empty: `python3` of the PATH. A version manager's script in its
        /// place is asked at every run which Python it stands for.
        python: Text = "", user;
        /// Directories with packages besides Python's own that a running skill finds, such as those of the policy's
        /// `allowed_imports`.
        site_packages: List = [], user;
        /// Seconds after which a running skill is stopped.
        run_timeout_s: u64 = 60, lower;
        /// The directory in which `crucible skill verify` looks for ruff, mypy and pytest before the PATH, such as the `bin` of a
        /// virtual environment. An absolute path.
        tools: Text = "", user;
        /// Seconds that each gate of a skill may take.
        gate_timeout_s: u64 = 300, lower;
        /// "required": `crucible skill promote` takes only skills whose held-out examples passed. "optional": it also takes those
        /// without examples.
        examples: ExamplesNeed = "optional", user;
        /// A skill that fails so many times in a row is demoted. 0: never.
        demote_after_failures: u64 = 3, user;
        /// "on": `crucible skill research` asks a model for advice every time. "off": only with `--advice`.
        advise: Switch = "off", user;
        /// Characters that the advising model may be shown.
        advice_prompt_chars: u64 = 8000, lower;
        /// Seconds after which advice is given up.
        advice_timeout_s: u64 = 30, lower;
    }
}
