//! `[run]`, `[patch]` and `[context]`: the limits of a run and of a change, and the documents of each prompt.

use crate::declare::section;

section! {
    /// The limits of a run.
    ["run"] RunSection {
        /// Answers of the model that are tried before the run fails.
        max_iterations: u64 = 4, lower;
        /// Malformed answers that cost no try: cut off, without an edit, or replacing lines that do not exist. Each costs a call;
        /// one more costs a try.
        max_malformed: u64 = 3;
        /// How often the model may ask for more files, by name or search, instead of proposing a change. Each costs a call and no
        /// try.
        max_file_requests: u64 = 2, lower;
        /// Whether the gates must notice that the changed functions are broken on purpose. "required": a change that no gate
        /// notices is refused. "strict": so is one that cannot be broken. "report": the result is only reported. "off": the check
        /// is not made.
        broken_change: Text = "required", one_of(&["required", "strict", "report", "off"]);
        /// Whether the gates must pass once more in a second world: with another home, user, host name, path, command, time zone,
        /// locale, order and number of threads. "required": a change that behaves differently there is refused. "advisory": a
        /// warning says so. "off": it is not run.
        second_world: Text = "required", one_of(&["required", "advisory", "off"]);
        /// Whether a gate must take its results from a process that runs no tested code, as cargo-nextest and ctest do. "off": the
        /// report says where they come from. "required": a change is refused without such a gate.
        results_outside: Text = "off", one_of(&["off", "required"]);
        /// The share of small mistakes in changed lines that the gates must notice, in percent. 0: any share.
        min_strength: u64 = 0;
        /// Seconds for running the gates on such mistakes. If one run takes longer, or for 0, the strength is not measured.
        strength_budget_s: u64 = 10, lower;
        /// New sinks in changed lines that need the approval of a person, who sets this list for the run: "network",
        /// "environment", "execution", "deserialisation", "secret-comparison". A change with one of them is refused.
        sinks_need_approval: List = [];
        /// Whether an objector writes tests against each change that passed its gates. "advisory": they are in the report.
        /// "blocking": a test with a witness refuses the change and is part of the next request. "off": nobody is asked. Each
        /// change costs one call, and one more for each test that fails on it.
        objections: Text = "off", user, one_of(&["off", "advisory", "blocking"]);
        /// Tests that no proposer sees: files and directories outside of the repository. A file of a directory belongs at its
        /// path in it. They run before a landing; one that fails refuses it. The flag adds to them.
        held_out: List = [], user, flag("--held-out");
        /// Answers that are sampled for each try, each judged and tested. Those that pass are compared: by objections with a
        /// witness, by strength, by size. Each costs a call.
        candidates: u64 = 1;
        /// Files of the repository that the model may see at first. If the provider's `context_window` is set, the default
        /// follows from it, and this setting only lowers it.
        max_files: u64 = 30, lower;
        /// Bytes of the repository that the model may see at first. `context_window` has the same effect as on `max_files`.
        max_total_bytes: u64 = 60_000, lower;
        /// The form of the model's answers. Empty: the form that the provider does best. If whole files do not fit into
        /// `max_tokens`, definitions or search-replace are asked for instead. An answer in any other form is read as well.
        edit_format: Text = "", one_of(&["whole-file", "search-replace", "definitions", "unified-diff"]);
        /// The coding agent that proposes the changes, of `[agents]`. Empty: none.
        agent: Text = "", flag("--agent");
        /// Seconds after which an agent is stopped. Its changes until then count as no proposal.
        agent_timeout_s: u64 = 3600, lower;
        /// Requests to models that a run with an agent may make, if `llm.budget.calls` is not set.
        agent_calls: u64 = 300, lower;
        /// Mebibytes that an agent may write.
        agent_disk_mib: u64 = 4096, lower;
    }
}

section! {
    /// The limits of a patch.
    ["patch"] PatchSection {
        /// Files that a patch may touch.
        max_files: u64 = 5, lower;
        /// Lines that a patch may add.
        max_added_lines: u64 = 400, lower;
    }
}

section! {
    /// The documents that a model always sees.
    ["context"] ContextSection {
        /// "ctcp": the three contract documents of a repository are required. Empty: required if `ai_context/` exists.
        contract: Text = "", one_of(&["ctcp"]);
        /// Documents that every context pack begins with, besides the contract's.
        mandatory: List = [];
    }
}
