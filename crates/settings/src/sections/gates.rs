//! `[gates.NAME]`: what proves a change.

use crate::declare::section;

section! {
    /// What proves a change, for example [gates.tests]. With none, Crucible looks at the build files of the directory in which a run
    /// starts (`crucible gates` shows what it finds); `crucible run start --test "CMD"` replaces both. See docs/gates.md.
    ["gates.*"] GateEntry {
        /// The command, one text for each argument; no shell.
        command: List = [];
        /// Variables that it gets, for example { PYTHONPATH = "src" }. It cannot set PATH, HOME, LD_*, DYLD_*, CRUCIBLE_* or GIT_*, but who
        /// commits (GIT_AUTHOR_*, GIT_COMMITTER_*).
        env: Table = ();
        /// The directory in which it runs, relative to the repository's top. Empty: the top.
        cwd: Text = "";
        /// Commands that run before it in the same copy, each split into words without a shell, for example ["make generate"]. If one fails,
        /// the gate could not run.
        setup: List = [];
        /// "loopback": it reaches its own 127.0.0.1 and ::1, which nothing outside of its sandbox shares, so tests may open servers there; no
        /// other network. "none" means the same. Where the sandbox has no namespaces it reaches nothing.
        network: GateReach = "loopback";
        /// Seconds until it is ended, and each command of its setup.
        timeout_s: u64 = 600;
        /// "lite": every attempt at a change is tried with it. "full": `crucible run land` runs it before it commits.
        level: GateTier = "lite";
        /// Whether it is run on deliberately broken sources, to see that it tests them. false: it counts without that, and each verify report
        /// warns of it. (user)
        canary: bool = true, user;
    }
}
