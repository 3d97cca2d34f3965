//! `[sandbox]`: how strong the sandbox is, and what confined programs may use.

use crate::declare::section;

section! {
    ["sandbox"] SandboxSection {
        /// "required": gates run only behind every layer this design knows. "best-effort": what is missing is named in the
        /// record. "off": no isolation. Variable: CRUCIBLE_SANDBOX. (user)
        strength: Text = "required", user, variable("CRUCIBLE_SANDBOX"), flag("--sandbox"), one_of(&["required", "best-effort", "off"]);
        /// MiB of memory that a confined program and all it starts may use: gates, hooks, skills, `crucible sandbox exec`. It holds for all of them
        /// together in a control group, else for each process; the record says which under `resources`. 0: no limit. (user)
        memory_mib: u64 = 4096, user;
        /// Processes and threads of a confined program and all it starts. 0: no limit. (user)
        processes: u64 = 8192, user;
    }
}
