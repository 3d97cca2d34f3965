//! `[forge]`: the skills of a project.

use crate::declare::section;

section! {
    /// The project's skills (`crucible skill`).
    ["forge"] ForgeSection {
        /// The Python package below src/ that holds them.
        package: Text = "skillset";
        /// Who writes skills: "claude", the program of [llm.claude-cli]; "command", the one below; "whole-file", any provider's model.
        agent: SkillAuthor = "claude";
        /// The command of the agent "command", one text for each argument; no shell. The packet comes on standard input, {packet} in arguments is
        /// replaced by the path of a file that holds it, and the command writes into its working directory. (user)
        agent_command: List = [], user;
        /// Hosts that this command can reach, for example ["api.example.com", "localhost:8000"]. None: it reaches nothing. (user)
        agent_network: List = [], user;
        /// Names of variables that it gets of your environment; what they hold is taken out of what it prints, and a skill that holds it is
        /// refused. (user)
        agent_env: List = [], user;
        /// Seconds until an agent is ended.
        agent_timeout_s: u64 = 900, lower;
        /// Mebibytes that an agent may write.
        agent_disk_mib: u64 = 1024, lower;
        /// The Python that skills are run by, for example "/usr/bin/python3". Empty: `python3` of the PATH. A manager's script in its place is
        /// asked at every run which Python it stands for. (user)
        python: Text = "", user;
        /// Directories in which skills that are run find packages which are not Python's own, such as those that the policy's allowed_imports
        /// names. None: they find none. (user)
        site_packages: List = [], user;
        /// Seconds until a skill that is run is ended.
        run_timeout_s: u64 = 60, lower;
        /// The directory in which `crucible skill verify` looks for ruff, mypy and pytest before the PATH, for example the bin directory of a
        /// virtual environment: an absolute path. (user)
        tools: Text = "", user;
        /// Seconds that each gate of a skill may take.
        gate_timeout_s: u64 = 300, lower;
        /// "required": `crucible skill promote` takes only skills whose held-out examples passed. "optional": those without examples, too. (user)
        examples: ExamplesNeed = "optional", user;
        /// A skill whose runs fail so many times in a row is demoted. 0: never. (user)
        demote_after_failures: u64 = 3, user;
        /// "on": `crucible skill research` asks a model for advice every time; "off": where --advice says so. (user)
        advise: Switch = "off", user;
        /// Characters that it may be shown, and seconds until it has to have answered.
        advice_prompt_chars: u64 = 8000, lower;
        advice_timeout_s: u64 = 30, lower;
    }
}
