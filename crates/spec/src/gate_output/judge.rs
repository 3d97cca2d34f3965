//! Judges the progress of a spec, between the hooks of a gate.

use crucible_ledger::Ledger;
use crucible_model::{Failure, Verdict};
use crucible_sandbox::Runtime;
use crucible_settings::Settings;

use crate::fixup::fixup_under_way;
use crate::gate::{GateFinding, GatePolicy, GateReport, gate_findings, gate_hook_findings};
use crate::hook::{HookConsequence, HookOutcome, HookSubject, Hooks};
use crate::project::SpecProject;
use crate::receipt::HookMoment;
use crate::store::SpecStore;

/// What is judged, and by which policy.
pub struct SpecGate<'a> {
    /// The settings, with the hooks.
    pub settings: &'a Settings,
    /// The project of the spec.
    pub project: &'a SpecProject,
    /// The stored files of the judged spec.
    pub store: &'a SpecStore,
    /// What it must meet.
    pub policy: &'a GatePolicy,
}

impl SpecGate<'_> {
    /// Runs the hooks and judges the spec. Failures of hooks that are allowed are notices. `ledger` is opened after the first hooks.
    ///
    /// # Errors
    ///
    /// Fails if a hook is invalid, or if the spec or the ledger cannot be read.
    pub async fn judge(
        &self,
        runtime: &Runtime<'_>,
        ledger: impl FnOnce() -> Result<Option<Ledger>, Failure>,
    ) -> Result<(GateReport, Vec<GateFinding>), Failure> {
        let (store, policy) = (self.store, self.policy);
        let hooks = Hooks::read(runtime, self.settings, self.project)?;
        let mut subject = HookSubject::before(store.spec().clone(), policy.min_phase);
        let before = run_hooks(runtime, &hooks, HookMoment::PreGate, &subject).await;

        let ledger = ledger()?;
        let state = store.state(ledger.as_ref())?;
        let (now, clock) = (runtime.clock.now(), runtime.clock.source());
        let mut findings = gate_findings(&state, policy, now, clock);
        findings.extend(fixup_under_way(store)?.map(|under_way| under_way.finding()));

        let mut receipts = before.receipts;
        // After a required hook has failed, no other hook runs.
        if let HookConsequence::GoOn(_) = before.consequence {
            let found = findings.iter().map(|found| found.finding.clone());
            subject.verdict = Some(Verdict::new(found.collect()).outcome());
            let after = run_hooks(runtime, &hooks, HookMoment::PostGate, &subject).await;
            receipts.extend(after.receipts);
        }
        findings.extend(gate_hook_findings(&receipts));
        let report = GateReport::new(&state, policy, now, clock, &findings, &receipts);
        Ok((report, findings))
    }
}

/// Runs the hooks of a moment, and warns about failures that are allowed.
async fn run_hooks(
    runtime: &Runtime<'_>,
    hooks: &Hooks,
    moment: HookMoment,
    subject: &HookSubject,
) -> HookOutcome {
    if !hooks.any(moment, subject.phase) {
        return HookOutcome {
            receipts: Vec::new(),
            consequence: HookConsequence::GoOn(Vec::new()),
        };
    }
    let outcome = hooks.run(runtime, moment, subject).await;
    if let HookConsequence::GoOn(warnings) = &outcome.consequence {
        for warning in warnings {
            let notice = format!("warning: {}", warning.message);
            runtime.notices.notice(&notice);
        }
    }
    outcome
}
