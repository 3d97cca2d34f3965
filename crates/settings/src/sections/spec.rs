//! `[spec]` and `[hooks.NAME]`: the phases of a spec, and commands around them.

use crate::declare::section;

section! {
    /// The phases of `crucible spec`: requirements, design, tasks, review, fixup, final. A phase can name a profile under [phases].
    ["spec"] SpecSection {
        /// Answers that a phase takes at most: the first, and corrections of what was wrong with it.
        attempts: u64 = 2, lower;
        /// Seconds that a phase may take, all its calls together.
        phase_timeout_s: u64 = 900, lower;
        /// Bytes and lines of what a model may see in a phase.
        max_packet_bytes: u64 = 65_536, lower;
        max_packet_lines: u64 = 1200, lower;
        /// Files of the project that a model may see while there is room, as globs, and those that it may never see.
        include: List = ["README.md", "ARCHITECTURE.md"];
        exclude: List = [];
    }
}

section! {
    /// Commands that run before and after phases and gates, for example [hooks.lint]. They get CRUCIBLE_SPEC_ID, CRUCIBLE_PHASE and
    /// CRUCIBLE_HOOK in their environment and a JSON object on standard input.
    ["hooks.*"] HookEntry {
        /// When: pre_phase, post_phase, pre_gate or post_gate.
        on: HookPoint = "post_phase";
        /// Of which phases; none named: of all.
        phases: List = [];
        /// The command, one text for each argument; no shell. A path with a `/` is relative to the project.
        command: List = [];
        /// What its failure means: "warn", or "fail" for the phase or the gate.
        on_fail: OnHookFailure = "warn";
        /// Seconds until it is ended.
        timeout_s: u64 = 60;
        /// "on": no network, and it writes nowhere but in the project, neither to .git nor to .crucible. "off": no walls. (user)
        sandbox: Switch = "on", user;
    }
}
