//! `[sandbox]`: how strong the sandbox is, and what confined programs may use.

use crate::declare::section;

section! {
    /// How strong the sandbox is, and what confined programs may use.
    ["sandbox"] SandboxSection {
        /// "required": gates run only with every known layer of isolation. "best-effort": the record names the missing layers.
        /// "off": no isolation.
        strength: Text = "required", user, variable("CRUCIBLE_SANDBOX"), flag("--sandbox"),
            one_of(&["required", "best-effort", "off"]);
        /// MiB of memory that a confined program and all it starts may use: gates, hooks, skills, `crucible sandbox exec`. In a
        /// control group the limit holds for all of them together, else for each process. The record says which under
        /// `resources`. 0: no limit.
        memory_mib: u64 = 4096, user;
        /// Processes and threads of a confined program and all it starts. 0: no limit.
        processes: u64 = 8192, user;
    }
}
