//! `[paths]`: where run directories are.

use crate::declare::section;

section! {
    ["paths"] PathsSection {
        /// Where run directories lie; empty: $CRUCIBLE_HOME/runs. Variable: CRUCIBLE_RUNS_ROOT. (user)
        runs_root: Text = "", user, variable("CRUCIBLE_RUNS_ROOT");
    }
}
