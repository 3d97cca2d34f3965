//! The document of a gate: `gate-json.v1`.
//!
//! What always holds: it has less than 8 KB. What does not fit is left out and counted, what refuses last of all; the verdict is that of all
//! findings.

use std::cmp::Reverse;

use crucible_model::{ClockSource, ExitStatus, Finding, Outcome, Timestamp, Verdict, short_line};
use serde::{Deserialize, Serialize};

use super::hook::TIMED_OUT;
use super::judge::newest_success;
use super::{GateFinding, GatePolicy, OnPendingFixups};
use crate::id::SpecId;
use crate::json_output::{Standing, age, pending_fixups, standing};
use crate::phase_id::PhaseId;
use crate::receipt::{HookEnd, HookReceipt};
use crate::state::SpecState;

/// The schema of [`GateReport`].
pub const GATE_SCHEMA: &str = "gate-json.v1";

/// Bytes that the document has at most, printed with a field on each line.
const MAX_BYTES: usize = 8_000;
/// Bytes of them that hooks take at most.
const HOOK_BYTES: usize = 2_400;
/// Characters of a subject at most.
const SUBJECT: usize = 200;
/// Characters of a hint at most.
const HINT: usize = 300;
/// Characters of an id or a name at most.
const NAME: usize = 80;
/// Characters of what a hook printed at most.
const SAID: usize = 300;

/// What was judged, by which policy, and what came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateReport {
    /// [`GATE_SCHEMA`].
    pub schema_version: String,
    /// Pass or fail.
    pub verdict: Outcome,
    /// Why; those that refuse first of all have a place here.
    pub findings: Vec<Finding>,
    /// Findings beyond those.
    #[serde(default, skip_serializing_if = "none")]
    pub findings_left_out: u64,
    /// Which spec.
    pub spec_id: SpecId,
    /// What was asked for.
    pub policy: GatePolicyReport,
    /// When it was judged.
    pub judged_at: Timestamp,
    /// Whether that instant is real.
    pub clock: ClockSource,
    /// Every phase, in order.
    pub phases: Vec<GatePhase>,
    /// Files that a fixup proposes to change and that are not changed yet.
    pub pending_fixups: u64,
    /// The hooks that ran around the judgement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookReceipt>,
    /// Hooks beyond those.
    #[serde(default, skip_serializing_if = "none")]
    pub hooks_left_out: u64,
    /// How the command ends.
    #[serde(skip, default = "passed")]
    status: ExitStatus,
}

/// A [`GatePolicy`] as the document tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatePolicyReport {
    /// The phase that must have succeeded, with all before it.
    pub min_phase: PhaseId,
    /// How old its last success may be; null: any age.
    pub max_phase_age_seconds: Option<u64>,
    /// Whether pending fixups refuse.
    pub fail_on_pending_fixups: bool,
}

/// A phase at a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatePhase {
    /// Which phase.
    pub phase_id: PhaseId,
    /// Whether the policy asks for it.
    pub required: bool,
    /// Where it stands, in the words of `status-json.v1`.
    pub status: Standing,
    /// The receipt of its last success.
    pub receipt_id: Option<String>,
    /// When that was written.
    pub succeeded_at: Option<Timestamp>,
    /// Seconds since; null where it is not known, or still to come.
    pub age_seconds: Option<u64>,
}

impl GateReport {
    /// The document of a judgement: `findings` are those of [`gate_findings`](super::gate_findings) for the same values, with those of
    /// [`gate_hook_findings`](super::gate_hook_findings) for the hooks that ran around it.
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
                age_seconds: succeeded_at.and_then(|at| age(at, now)).map(|age| age.as_secs()),
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
        // The two counts may still come to it.
        let room = MAX_BYTES.saturating_sub(printed(&report) + 100);
        let findings = verdict.findings().iter().map(short_finding).collect();
        (report.findings, report.findings_left_out) = fitting(findings, room, |found| Reverse(found.level));
        report
    }

    /// How the command ends (property 14): 0 where the policy is met, else 1; 10 where a hook ran out of time that must not fail.
    #[must_use]
    pub const fn exit_status(&self) -> ExitStatus {
        self.status
    }
}

fn exit_status(verdict: &Verdict) -> ExitStatus {
    match verdict.outcome() {
        Outcome::Pass => ExitStatus::Success,
        Outcome::Fail if verdict.errors().any(|found| found.code == TIMED_OUT) => ExitStatus::TimedOut,
        Outcome::Fail => ExitStatus::Refused,
    }
}

/// What fits into so many bytes, in the order in which it was, and how many do not. What ranks lowest has a place first.
fn fitting<T: Serialize, R: Ord>(items: Vec<T>, room: usize, rank: impl Fn(&T) -> R) -> (Vec<T>, u64) {
    let mut left = room;
    let mut places: Vec<usize> = (0..items.len()).collect();
    places.sort_by_key(|place| rank(&items[*place]));
    // One that is too large ends it: nobody is to wonder why a later one is there and an earlier one is not.
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
    let mut kept: Vec<bool> = vec![false; items.len()];
    places[..fit].iter().for_each(|place| kept[*place] = true);
    let out = items.len() - fit;
    let fitting = items.into_iter().zip(kept).filter_map(|(item, kept)| kept.then_some(item)).collect();
    (fitting, u64::try_from(out).unwrap_or(u64::MAX))
}

/// Bytes that a value takes in the document, where it stands at most two levels deep.
fn printed(value: &impl Serialize) -> usize {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.len() + 4 * text.lines().count() + 2
}

fn short_finding(found: &Finding) -> Finding {
    let (subject, hint) = (short_line(&found.subject, SUBJECT), short_line(&found.hint, HINT));
    Finding { subject, hint, ..found.clone() }
}

fn short_hook(hook: &HookReceipt) -> HookReceipt {
    // Its last words say most.
    let last = &hook.said[hook.said.ceil_char_boundary(hook.said.len().saturating_sub(SAID))..];
    let mut short = HookReceipt {
        name: short_line(&hook.name, NAME),
        said: short_line(last.trim(), SAID),
        ..hook.clone()
    };
    // The walls are in the receipts of phases; here they are told while they can be told in few words.
    if printed(&short) > HOOK_BYTES / 2 {
        short.isolation = None;
    }
    short
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out a reference")]
fn none(number: &u64) -> bool {
    *number == 0
}

/// A report that was read tells its verdict, and nobody ends with it.
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

    fn hook(end: HookEnd, on_fail: OnFail, said: &str) -> HookReceipt {
        HookReceipt {
            name: "lint".to_owned(),
            moment: HookMoment::PreGate,
            end,
            exit_code: None,
            duration_ms: u64::MAX,
            on_fail,
            isolation: None,
            said: said.to_owned(),
        }
    }

    fn report(findings: &[GateFinding], hooks: &[HookReceipt]) -> GateReport {
        let state = sample::done_up_to(Some(PhaseId::Final), sample::noon());
        let now = sample::noon();
        GateReport::new(&state, &GatePolicy::default(), now, ClockSource::System, findings, hooks)
    }

    #[test]
    fn a_hook_refuses_exactly_where_it_must_not_fail() {
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
            /// Whatever was found and said, the document has less than 8 KB, its verdict is that of all findings, and what is left out is counted.
            #[test]
            fn the_document_is_small_and_counts_what_it_leaves_out(
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
