//! The gate `behavior_catalog_check`: code, index and pages agree. The caller reads and judges them.

use crucible_model::Verdict;

use super::{Gate, GateOutcome, carried};

/// Code markers, the behaviour index and its pages agree in both directions.
#[derive(Debug, Clone, Copy)]
pub struct BehaviorCatalogCheck;

impl Gate for BehaviorCatalogCheck {
    fn id(&self) -> &'static str {
        "behavior_catalog_check"
    }

    fn about(&self) -> &'static str {
        "Code markers, the behaviour index and its pages agree in both directions."
    }

    fn judge(&self, outcomes: &[GateOutcome]) -> Option<Verdict> {
        carried(self.id(), outcomes)
    }
}
