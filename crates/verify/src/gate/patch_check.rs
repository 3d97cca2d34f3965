//! The gate `patch_check`: the patch is within its limits. The patch gate judges it.

use crucible_model::Verdict;

use super::{Gate, GateOutcome, carried};

/// The patch stays within the plan's scope and the patch policy.
#[derive(Debug, Clone, Copy)]
pub struct PatchCheck;

impl Gate for PatchCheck {
    fn id(&self) -> &'static str {
        "patch_check"
    }

    fn about(&self) -> &'static str {
        "The patch stays within the plan's scope and the patch policy."
    }

    fn judge(&self, outcomes: &[GateOutcome]) -> Option<Verdict> {
        carried(self.id(), outcomes)
    }
}
