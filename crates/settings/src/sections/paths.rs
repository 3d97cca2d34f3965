//! `[paths]`: where run directories are.

use crate::declare::section;

section! {
    /// Where files are kept.
    ["paths"] PathsSection {
        /// The directory of run directories. Empty: `$CRUCIBLE_HOME/runs`.
        runs_root: Text = "", user, variable("CRUCIBLE_RUNS_ROOT");
    }
}
