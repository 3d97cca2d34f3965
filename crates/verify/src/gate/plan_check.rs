//! The gate `plan_check`: the plan is complete and signed. The reader of the plan judges it.

use crucible_model::Verdict;

use super::{Gate, GateOutcome, carried};

/// The signed plan has every key and every id in it resolves.
#[derive(Debug, Clone, Copy)]
pub struct PlanCheck;

impl Gate for PlanCheck {
    fn id(&self) -> &'static str {
        "plan_check"
    }

    fn about(&self) -> &'static str {
        "The signed plan has every key and every id in it resolves."
    }

    fn judge(&self, outcomes: &[GateOutcome]) -> Option<Verdict> {
        carried(self.id(), outcomes)
    }
}
