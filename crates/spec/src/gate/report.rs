//! The document of a gate: `gate-json.v1`.
//!
//! Invariants: it has less than 8 KB. What does not fit is omitted and counted, refusing findings last.
//! The verdict covers all findings.

use std::cmp::Reverse;

use crucible_model::{ClockSource, ExitStatus, Finding, Outcome, Timestamp, Verdict, short_line};
use serde::{Deserialize, Serialize};

use super::hook::TIMED_OUT;
use super::judge::newest_success;
use super::{GateFinding, GatePolicy, OnPendingFixups};
use crate::id::SpecId;
use crate::json_output::{PhaseCondition, age, pending_fixups, standing};
use crate::phase_id::PhaseId;
use crate::receipt::{HookEnd, HookReceipt};
use crate::state::SpecState;

/// The schema of [`GateReport`].
pub(crate) const GATE_SCHEMA: &str = "gate-json.v1";

/// The size limit of the document in bytes, printed with one field per line.
const MAX_BYTES: usize = 8_000;
/// The bytes of it that hooks may take.
const HOOK_BYTES: usize = 2_400;
/// The most characters of a subject.
const SUBJECT: usize = 200;
/// The most characters of a hint.
const HINT: usize = 300;
/// The most characters of an id or a name.
const NAME: usize = 80;
/// The most characters of a hook's output.
const SAID: usize = 300;

/// The result of a judgement, with its policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateReport {
    /// [`GATE_SCHEMA`].
    pub schema_version: String,
    /// Pass or fail.
    pub verdict: Outcome,
    /// The findings; those that refuse take precedence.
    pub findings: Vec<Finding>,
    /// The number of findings left out.
    #[serde(default, skip_serializing_if = "none")]
    pub findings_left_out: u64,
    /// The id of the spec.
    pub spec_id: SpecId,
    /// The policy by which it was judged.
    pub policy: GatePolicyReport,
    /// The time of the judgement.
    pub judged_at: Timestamp,
    /// Whether that time is real.
    pub clock: ClockSource,
    /// Every phase, in order.
    pub phases: Vec<GatePhase>,
    /// Files that a pending fixup proposes to change.
    pub pending_fixups: u64,
    /// The hooks that ran around the judgement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookReceipt>,
    /// The number of hooks left out.
    #[serde(default, skip_serializing_if = "none")]
    pub hooks_left_out: u64,
    /// The exit status of the command.
    #[serde(skip, default = "passed")]
    status: ExitStatus,
}

/// A [`GatePolicy`] in the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatePolicyReport {
    /// The phase that must have succeeded, with every phase before it.
    pub min_phase: PhaseId,
    /// The maximum age of its last success; null means any age.
    pub max_phase_age_seconds: Option<u64>,
    /// Whether pending fixups refuse.
    pub fail_on_pending_fixups: bool,
}

/// A phase in the gate's document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatePhase {
    /// Which phase.
    pub phase_id: PhaseId,
    /// Whether the policy requires it.
    pub required: bool,
    /// Its state, in the words of `status-json.v1`.
    pub status: PhaseCondition,
    /// The receipt of its last success.
    pub receipt_id: Option<String>,
    /// The time of that receipt.
    pub succeeded_at: Option<Timestamp>,
    /// Seconds since then; null if unknown, or in the future.
    pub age_seconds: Option<u64>,
}

impl GateReport {
    /// Creates the document of a judgement: `findings` are those of
    /// [`gate_findings`](super::gate_findings) for the same values, and those of
    /// [`gate_hook_findings`](super::gate_hook_findings) for the hooks around it.
    #[must_use]
    pub fn new(
        state: &SpecState,
        policy: &GatePolicy,
        now: Timestamp,
        clock: ClockSource,
        findings: &[GateFinding],
        hooks: &[HookReceipt],
    ) -> Self {
        let verdict = Verdict::new(findings.iter().map(|found| found.finding.clone()).collect());
        let phases = state.phases.iter().map(|known| {
            let success = newest_success(known);
            let succeeded_at = success.and_then(|receipt| receipt.emitted_at);
            GatePhase {
                phase_id: known.phase,
                required: known.phase <= policy.min_phase,
                status: standing(state, known),
                receipt_id: success.map(|receipt| short_line(&receipt.receipt_id, NAME)),
                succeeded_at,
                age_seconds: succeeded_at
                    .and_then(|at| age(at, now))
                    .map(|age| age.as_secs()),
            }
        });
        let mut report = Self {
            schema_version: GATE_SCHEMA.to_owned(),
            verdict: verdict.outcome(),
            findings: Vec::new(),
            findings_left_out: 0,
            spec_id: state.spec.clone(),
            policy: GatePolicyReport {
                min_phase: policy.min_phase,
                max_phase_age_seconds: policy.max_phase_age.map(|age| age.as_secs()),
                fail_on_pending_fixups: policy.pending_fixups == OnPendingFixups::Refuse,
            },
            judged_at: now,
            clock,
            phases: phases.collect(),
            pending_fixups: pending_fixups(state),
            hooks: Vec::new(),
            hooks_left_out: 0,
            status: exit_status(&verdict),
        };
        let hooks = hooks.iter().map(short_hook).collect();
        let failing_first = |hook: &HookReceipt| hook.end == HookEnd::Passed;
        (report.hooks, report.hooks_left_out) = fitting(hooks, HOOK_BYTES, failing_first);
        // Leaves room for the two counts.
        let byte_budget = MAX_BYTES.saturating_sub(printed(&report) + 100);
        let findings = verdict.findings().iter().map(short_finding).collect();
        (report.findings, report.findings_left_out) =
            fitting(findings, byte_budget, |found| Reverse(found.level));
        report
    }

    /// The exit status of the command: 0 if the policy is met, else 1; 10 if a required hook timed
    /// out.
    #[must_use]
    pub const fn exit_status(&self) -> ExitStatus {
        self.status
    }
}

fn exit_status(verdict: &Verdict) -> ExitStatus {
    match verdict.outcome() {
        Outcome::Pass => ExitStatus::Success,
        Outcome::Fail if verdict.errors().any(|found| found.code == TIMED_OUT) => {
            ExitStatus::TimedOut
        }
        Outcome::Fail => ExitStatus::Refused,
    }
}

/// The items that fit into this many bytes, in their order, and the number of the others. Items with the
/// lowest rank take precedence.
fn fitting<T: Serialize, R: Ord>(
    items: Vec<T>,
    byte_budget: usize,
    rank: impl Fn(&T) -> R,
) -> (Vec<T>, u64) {
    let mut left = byte_budget;
    let mut places: Vec<usize> = (0..items.len()).collect();
    places.sort_by_key(|place| rank(&items[*place]));
    // The first item that is too large ends the list, so that no later item appears without an earlier
    // one.
    let fit = places
        .iter()
        .take_while(|place| match left.checked_sub(printed(&items[**place])) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        })
        .count();
    let mut is_included: Vec<bool> = vec![false; items.len()];
    places[..fit]
        .iter()
        .for_each(|place| is_included[*place] = true);
    let out = items.len() - fit;
    let fitting = items
        .into_iter()
        .zip(is_included)
        .filter_map(|(item, is_included)| is_included.then_some(item))
        .collect();
    (fitting, u64::try_from(out).unwrap_or(u64::MAX))
}

/// The bytes of a value in the document, at most two levels deep.
fn printed(value: &impl Serialize) -> usize {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.len() + 4 * text.lines().count() + 2
}

fn short_finding(found: &Finding) -> Finding {
    let (subject, hint) = (
        short_line(&found.subject, SUBJECT),
        short_line(&found.hint, HINT),
    );
    Finding {
        subject,
        hint,
        ..found.clone()
    }
}

fn short_hook(hook: &HookReceipt) -> HookReceipt {
    // The end of the output says most.
    let last = &hook.said[hook
        .said
        .ceil_char_boundary(hook.said.len().saturating_sub(SAID))..];
    let mut short = HookReceipt {
        name: short_line(&hook.name, NAME),
        said: short_line(last.trim(), SAID),
        ..hook.clone()
    };
    // The sandbox is described in the receipts of phases; here only if the description is short.
    if printed(&short) > HOOK_BYTES / 2 {
        short.isolation = None;
    }
    short
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out a reference"
)]
fn none(number: &u64) -> bool {
    *number == 0
}

/// For a report that was parsed; no command ends with it.
fn passed() -> ExitStatus {
    ExitStatus::Success
}

#[cfg(test)]
mod tests {
    use crucible_model::{Code, Level};
    use proptest::prelude::*;

    use super::super::{gate_hook_findings, sample};
    use super::*;
    use crate::receipt::{HookMoment, OnFail};

    fn hook(end: HookEnd, on_fail: OnFail, output: &str) -> HookReceipt {
        HookReceipt {
            name: "lint".to_owned(),
            moment: HookMoment::PreGate,
            end,
            exit_code: None,
            duration_ms: u64::MAX,
            on_fail,
            isolation: None,
            said: output.to_owned(),
        }
    }

    fn report(findings: &[GateFinding], hooks: &[HookReceipt]) -> GateReport {
        let state = sample::done_up_to(Some(PhaseId::Final), sample::noon());
        let now = sample::noon();
        GateReport::new(
            &state,
            &GatePolicy::default(),
            now,
            ClockSource::System,
            findings,
            hooks,
        )
    }

    #[test]
    fn only_failed_required_hook_refuses() {
        for on_fail in [OnFail::Warn, OnFail::Fail] {
            for (end, code) in [
                (HookEnd::Passed, 0),
                (HookEnd::Failed, 1),
                (HookEnd::NotStarted, 1),
                (HookEnd::TimedOut, 10),
            ] {
                let hooks = [hook(end, on_fail, "why")];
                let report = report(&gate_hook_findings(&hooks), &hooks);
                let expected = if on_fail == OnFail::Fail { code } else { 0 };
                assert_eq!(report.exit_status().code(), expected, "{end:?} {on_fail:?}");
                assert_eq!(report.verdict == Outcome::Pass, expected == 0);
            }
        }
    }

    mod properties {
        use super::*;

        proptest! {
            /// For any findings and texts, the document has less than 8 KB, its verdict covers all
            /// findings, and omissions are counted.
            #[test]
            fn report_is_small_and_counts_omitted_findings(
                levels in proptest::collection::vec(0usize..3, 0..300),
                part in prop_oneof![Just("\""), Just("\u{202e}"), Just("\u{10ffff}"), Just("漢"), Just("a\n"), Just("\u{1}")],
                length in 0usize..2_000,
                hooks in 0usize..30,
            ) {
                let text = part.repeat(length);
                let finding = |level: &usize| Finding {
                    code: Code::new("gate-phase-missing"),
                    level: [Level::Error, Level::Warning, Level::Info][*level],
                    subject: text.clone(),
                    hint: text.clone(),
                };
                let findings: Vec<GateFinding> =
                    levels.iter().map(|level| GateFinding { finding: finding(level), file: String::new() }).collect();
                let hooks = vec![hook(HookEnd::Passed, OnFail::Fail, &text); hooks];
                let report = report(&findings, &hooks);
                let document = serde_json::to_string_pretty(&report).unwrap();
                prop_assert!(document.len() < 8_192, "{} bytes", document.len());
                prop_assert!(!document.chars().any(|c| c != '\n' && crucible_model::is_hidden(c)));
                prop_assert_eq!(report.findings.len() as u64 + report.findings_left_out, findings.len() as u64);
                prop_assert_eq!(report.hooks.len() as u64 + report.hooks_left_out, hooks.len() as u64);
                let refuses = levels.contains(&0);
                prop_assert_eq!(report.verdict == Outcome::Fail, refuses);
                prop_assert_eq!(report.findings.iter().any(|found| found.level == Level::Error), refuses);
            }
        }
    }
}
