//! What a rule is.

use super::workspace::Workspace;

/// One invariant.
pub(super) trait Rule {
    /// The word in front of its problems.
    fn name(&self) -> &'static str;
    /// Calls `report` with path, line and message for every place where the invariant does not hold.
    fn check(&self, workspace: &Workspace, report: &mut Report<'_>);
}

/// What a rule calls for every problem it finds.
pub(super) type Report<'a> = dyn FnMut(&str, usize, String) + 'a;
