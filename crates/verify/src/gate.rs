//! Gates: what a change must pass before it may land, and the results of checking it.
//!
//! The registry [`builtin_gates`] lists the gates that every plan names; a repository's own
//! commands belong to `lite`. Adding a gate takes one file here and one entry there.

mod behavior_catalog_check;
mod id;
mod lite;
mod outcome;
mod patch_check;
mod plan_check;
mod variable;

use crucible_model::Verdict;

pub use behavior_catalog_check::BehaviorCatalogCheck;
pub use id::{GateId, GateIdError};
pub use lite::Lite;
pub use outcome::{
    GateCanary, GateEnd, GateInput, GateLevel, GateOrigin, GateOutcome, GateRun, GateSpec,
    NotStarted, RunnerReport,
};
pub use patch_check::PatchCheck;
pub use plan_check::PlanCheck;
pub use variable::{VariableError, check_variable};

/// One gate that a plan can declare.
pub trait Gate: Sync {
    /// The name by which plans declare it.
    fn id(&self) -> &'static str;

    /// What it checks, one sentence.
    fn about(&self) -> &'static str;

    /// Returns its verdict on these outcomes; `None` if no part of it ran.
    fn judge(&self, outcomes: &[GateOutcome]) -> Option<Verdict>;
}

/// Every built-in gate, in the order in which reports name them.
#[must_use]
pub fn builtin_gates() -> &'static [&'static dyn Gate] {
    &[&Lite, &PlanCheck, &PatchCheck, &BehaviorCatalogCheck]
}

/// The verdict that the caller reached for the gate `id`.
fn carried(id: &str, outcomes: &[GateOutcome]) -> Option<Verdict> {
    let mut all: Option<Verdict> = None;
    for outcome in outcomes {
        if let GateOutcome::Judged {
            id: judged,
            verdict,
        } = outcome
            && judged.as_str() == id
        {
            all.get_or_insert_default().merge(verdict.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crucible_model::{Code, Finding};

    use super::*;

    #[test]
    fn every_gate_of_the_seed_is_there_once() {
        let ids: Vec<&str> = builtin_gates().iter().map(|gate| gate.id()).collect();
        assert_eq!(
            ids,
            [
                "lite",
                "plan_check",
                "patch_check",
                "behavior_catalog_check"
            ]
        );
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
        assert!(
            builtin_gates()
                .iter()
                .all(|gate| gate.about().ends_with('.'))
        );
    }

    #[test]
    fn a_gate_without_an_outcome_has_no_verdict() {
        assert!(builtin_gates().iter().all(|gate| gate.judge(&[]).is_none()));
    }

    #[test]
    fn verdicts_of_one_gate_are_merged() {
        let fail = Verdict::new(vec![Finding::error(Code::new("plan-unsigned"), "s", "h")]);
        let id: GateId = "plan_check".parse().unwrap();
        let outcomes = [
            GateOutcome::Judged {
                id: id.clone(),
                verdict: Verdict::default(),
            },
            GateOutcome::Judged { id, verdict: fail },
        ];
        assert!(!PlanCheck.judge(&outcomes).unwrap().passes());
        assert!(PatchCheck.judge(&outcomes).is_none());
    }
}
