//! `[spec]` and `[hooks.NAME]`: the phases of a spec, and commands around them.

use crate::declare::section;

section! {
    /// The phases of `crucible spec`: requirements, design, tasks, review, fixup, final. A phase can name a profile under
    /// `[phases]`.
    ["spec"] SpecSection {
        /// Answers that a phase takes at most: the first, and corrections of what was wrong with it.
        attempts: u64 = 2, lower;
        /// Seconds that a phase may take, all its calls together.
        phase_timeout_s: u64 = 900, lower;
        /// The most bytes that a model may see in a phase.
        max_packet_bytes: u64 = 65_536, lower;
        /// The most lines that a model may see in a phase.
        max_packet_lines: u64 = 1200, lower;
        /// Files of the project that a model may see while there is room, as globs.
        include: List = ["README.md", "ARCHITECTURE.md"];
        /// Files of the project that a model may never see, as globs.
        exclude: List = [];
    }
}

section! {
    /// Commands that run before and after phases and gates, such as `[hooks.lint]`. They get CRUCIBLE_SPEC_ID, CRUCIBLE_PHASE
    /// and CRUCIBLE_HOOK in their environment, and a JSON object on standard input.
    ["hooks.*"] HookEntry {
        /// When it runs.
        on: HookPoint = "post_phase";
        /// The phases it runs for. Empty: all.
        phases: List = [];
        /// The command, one text for each argument; no shell. A path with a `/` is relative to the project.
        command: List = [];
        /// What its failure means: "warn", or "fail" for the phase or the gate.
        on_fail: OnHookFailure = "warn";
        /// Seconds after which it is stopped.
        timeout_s: u64 = 60;
        /// "on": it has no network and writes only in the project, and there neither to `.git` nor to `.crucible`. "off": it is not
        /// confined.
        sandbox: Switch = "on", user;
    }
}
