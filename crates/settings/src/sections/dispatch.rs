//! `[dispatch]`: who serves the roles of a run.

use crate::declare::section;

section! {
    /// Who serves the roles of a run. Without this section the provider proposes the changes, and code does all else.
    ["dispatch"] DispatchSection {
        /// Who proposes changes instead of the provider: "manual_outbox", a person who answers prompts in outbox/; "api_agent", the command
        /// below; "ollama_agent", the server of [llm.gateway]. Empty: the provider.
        mode: Text = "", one_of(&["manual_outbox", "ollama_agent", "api_agent", "local_exec"]);
        /// Roles one by one: local_exec (code), manual_outbox, api_agent, ollama_agent, council (the chair and second opinions), or the name of
        /// a provider. Of contract_guardian and cost_controller code speaks first in any case; whoever is named gives a second opinion.
        chair: Text = "";
        contract_guardian: Text = "";
        cost_controller: Text = "";
        researcher: Text = "";
        patchmaker: Text = "";
        fixer: Text = "";
        /// Who packs the files that a model may see: code, or with manual_outbox a person, where the mode is manual_outbox, too.
        librarian: Text = "";
        /// Prompts that may be laid for a person.
        max_outbox_prompts: u64 = 20, lower;
        /// The commands of api_agent, one text for each argument; no shell. The question comes on standard input, the answer is what the
        /// command prints. In arguments {prompt_file}, {role}, {action} and {target} are replaced. plan_command answers for the chair,
        /// patch_command for patchmaker and fixer, agent_command for every role that has none of its own. Variables, which hold them in
        /// words as on a command line: SDDAI_PLAN_CMD, SDDAI_PATCH_CMD, SDDAI_AGENT_CMD. (user)
        plan_command: List = [], user, variable("SDDAI_PLAN_CMD"), command;
        patch_command: List = [], user, variable("SDDAI_PATCH_CMD"), command;
        agent_command: List = [], user, variable("SDDAI_AGENT_CMD"), command;
        /// Seconds until a command is ended.
        agent_timeout_s: u64 = 600, lower;
        /// "off": it reaches nothing outside of its sandbox. "on": it reaches the network of the machine. (user)
        agent_network: Switch = "off", user;
        /// Names of variables that it gets of your environment, for example ["ANTHROPIC_API_KEY"]; what they hold is taken out of everything
        /// that it prints. (user)
        agent_env: List = [], user;
    }
}
