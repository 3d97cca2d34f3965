//! `[gates.NAME]`: what proves a change.

use crate::declare::section;

section! {
    /// What proves a change, such as `[gates.tests]`. Without any, Crucible looks at the build files of the directory in which a
    /// run starts (`crucible gates` shows what it finds). `crucible run start --test "CMD"` replaces both. See
    /// `docs/gates.md`.
    ["gates.*"] GateEntry {
        /// The command, one text for each argument; no shell.
        command: List = [];
        /// Variables that it gets, such as { PYTHONPATH = "src" }. It cannot set PATH, HOME, LD_*, DYLD_*, CRUCIBLE_* or GIT_*,
        /// except GIT_AUTHOR_* and GIT_COMMITTER_*.
        env: Table = ();
        /// The directory in which it runs, relative to the top of the repository. Empty: the top.
        cwd: Text = "";
        /// Commands that run before it in the same copy, each split into words without a shell, such as ["make generate"]. If one
        /// fails, the gate could not run.
        setup: List = [];
        /// "loopback": it reaches its own 127.0.0.1 and ::1 and no other network, so tests may open servers there. "none" means the
        /// same. If the sandbox has no namespaces, it reaches nothing.
        network: GateReach = "loopback";
        /// Seconds after which the gate, or a command of its setup, is stopped.
        timeout_s: u64 = 600;
        /// "lite": every attempt at a change is tried with it. "full": `crucible run land` runs it before it commits.
        level: GateTier = "lite";
        /// Whether it runs on deliberately broken sources first, to see that it tests them. With false it counts without that, and
        /// each verify report warns of it.
        canary: bool = true, user;
    }
}
