//! `[dispatch]`: who serves the roles of a run.

use crate::declare::section;

section! {
    /// Who serves the roles of a run. Without this section the provider proposes the changes, and code does everything else.
    ["dispatch"] DispatchSection {
        /// Who proposes changes instead of the provider: "manual_outbox", a person who answers prompts in `outbox/`; "api_agent",
        /// the commands below; "ollama_agent", the server of `[llm.gateway]`. Empty: the provider.
        mode: Text = "", one_of(&["manual_outbox", "ollama_agent", "api_agent", "local_exec"]);
        /// Who serves this role: local_exec (code), manual_outbox, api_agent, ollama_agent, council (a second opinion), or the name
        /// of a provider.
        chair: Text = "";
        /// As `chair`. Code judges first in any case; this service gives a second opinion.
        contract_guardian: Text = "";
        /// As `chair`. Code judges first in any case; this service gives a second opinion.
        cost_controller: Text = "";
        /// As `chair`.
        researcher: Text = "";
        /// As `chair`.
        patchmaker: Text = "";
        /// As `chair`.
        fixer: Text = "";
        /// Who writes objections, if `run.objections` asks for them: tests against a change. Empty: who proposes changes.
        objector: Text = "", user;
        /// Who derives the value that such a test expects, without seeing the change. Empty: who proposes changes.
        second_author: Text = "", user;
        /// Who packs the files that a model may see: code, or a person with manual_outbox if the mode is manual_outbox too.
        librarian: Text = "";
        /// Prompts that may be written for a person.
        max_outbox_prompts: u64 = 20, lower;
        /// The command of api_agent for the chair, one text for each argument; no shell. The question is its standard input, and
        /// what it prints is the answer. In arguments {prompt_file}, {role}, {action} and {target} are replaced.
        plan_command: List = [], user, variable("SDDAI_PLAN_CMD"), command;
        /// The same for the patchmaker and the fixer.
        patch_command: List = [], user, variable("SDDAI_PATCH_CMD"), command;
        /// The same for every role without a command of its own.
        agent_command: List = [], user, variable("SDDAI_AGENT_CMD"), command;
        /// Seconds after which a command is stopped.
        agent_timeout_s: u64 = 600, lower;
        /// "off": the command reaches nothing outside of its sandbox. "on": it reaches the network of the machine.
        agent_network: Switch = "off", user;
        /// Names of variables that the command gets, such as ["ANTHROPIC_API_KEY"]. Their values are removed from everything that
        /// it prints.
        agent_env: List = [], user;
    }
}
