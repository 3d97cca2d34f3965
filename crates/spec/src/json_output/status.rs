//! The status of a spec: `status-json.v1` (`docs/schemas/status-json.v1.schema.json`).
//!
//! [`spec_status`] is a pure function of the state of a spec and a time. The fields of the original
//! format come first; readers may ignore all others. Invariants: the document has less than 8 KB
//! for any artifacts and receipts. Each text of a receipt is cut, and each list is limited and
//! states the number of omitted items. A phase whose newest receipt cannot be trusted is never
//! shown as done.

use crucible_llm::{CostBasis, ReceiptWarning};
use crucible_model::{ClockSource, Code, Timestamp, short_line, single_spaced};
use serde::{Deserialize, Serialize};

use crate::gate::problem_code;
use crate::id::SpecId;
use crate::phase_id::PhaseId;
use crate::receipt::{
    FixupReceipt, FixupStage, HookEnd, HookReceipt, OnFail, PhaseEntry, PhaseStatus, SpecReceipt,
};
use crate::state::{FileState, PhaseState, ReceiptProblem, ReceiptProblemKind, SpecState};

/// The schema of [`SpecStatus`].
pub const STATUS_SCHEMA: &str = "status-json.v1";

/// The note about a success under a pinned clock.
const PINNED: &str = "it was written under a pinned clock (CRUCIBLE_CLOCK): the gate refuses it";

/// The most problems that are listed.
const MAX_PROBLEMS: usize = 4;

/// The status of a spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecStatus {
    /// [`STATUS_SCHEMA`].
    pub schema_version: String,
    /// The id of the spec.
    pub spec_id: SpecId,
    /// Every phase, in order.
    pub phase_statuses: Vec<PhaseSummary>,
    /// Files that a pending fixup proposes to change.
    pub pending_fixups: u64,
    /// The first few files of an unfinished application of fixups, if there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixup_under_way: Vec<String>,
    /// Whether a phase failed, an artifact differs from its receipt, or a receipt cannot be trusted.
    pub has_errors: bool,
    /// The first few problems of receipts.
    #[serde(default)]
    pub problems: Vec<StatusProblem>,
    /// The number of problems left out.
    #[serde(default)]
    pub problems_left_out: u64,
    /// The number of receipts.
    #[serde(default)]
    pub receipts: u64,
    /// Input tokens, summed over the receipts in `phase_statuses`; absent if none states any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_input: Option<u64>,
    /// Output tokens, in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_output: Option<u64>,
    /// Cost in millionths of a US dollar, in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_dollars: Option<u64>,
    /// The time of the newest receipt of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<Timestamp>,
    /// The next step; absent if nothing is left to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
}

/// The status of a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseSummary {
    /// Which phase.
    pub phase_id: PhaseId,
    /// The state.
    pub status: PhaseCondition,
    /// The receipt that determines it: the newest real one, or else the newest dry run. The fields below
    /// belong to it; for applied fixups, provider, model, tokens and cost are those of the preceding
    /// model call.
    pub receipt_id: Option<String>,
    /// The time of that receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emitted_at: Option<Timestamp>,
    /// Seconds since then; absent if that is in the future.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u64>,
    /// The time of the phase's last success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success_at: Option<Timestamp>,
    /// The provider that answered, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_used: Option<String>,
    /// Tokens of the prompts, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_input: Option<u64>,
    /// Tokens of the answers, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_output: Option<u64>,
    /// Cost in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_dollars: Option<u64>,
    /// The basis of the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_basis: Option<CostBasis>,
    /// The number of warnings in the receipt.
    #[serde(default)]
    pub warnings: u64,
    /// The first of these warnings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_warning: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The state of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseCondition {
    /// Its newest real receipt is a success, and the files match it.
    Success,
    /// Its newest real receipt is a failure.
    Failed,
    /// It succeeded, but one of its input artifacts has changed since.
    Stale,
    /// It succeeded, but its own artifact has been changed or deleted since.
    Changed,
    /// One of its receipts cannot be trusted.
    Damaged,
    /// It has only had a dry run.
    DryRun,
    /// It has no receipt.
    NotRun,
}

impl PhaseCondition {
    /// The word in JSON documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Stale => "stale",
            Self::Changed => "changed",
            Self::Damaged => "damaged",
            Self::DryRun => "dry_run",
            Self::NotRun => "not_run",
        }
    }

    /// Whether something went wrong, as opposed to not having happened yet.
    #[must_use]
    pub const fn is_error(self) -> bool {
        matches!(self, Self::Failed | Self::Changed | Self::Damaged)
    }
}

/// A problem of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusProblem {
    /// The code of the gate for it; `docs/codes/gate.md` has a heading for each.
    pub code: Code,
    /// The file in `receipts/`.
    pub file: String,
}

/// The phase to run next, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextStep {
    /// The phase to run next.
    pub phase_id: PhaseId,
    /// The reason for the step.
    pub reason: StepReason,
    /// The command to run.
    pub command: String,
}

/// Why a step comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepReason {
    /// The phase has had no real run.
    NotRun,
    /// The phase failed.
    Failed,
    /// Its inputs have changed.
    Stale,
    /// Its artifact has changed.
    Changed,
    /// Its receipt cannot be trusted.
    Damaged,
    /// Its fixups are pending.
    FixupsPending,
    /// Its fixups are applied, but their receipt records a failure: applying them again gives the receipt
    /// of a success.
    FixupsApplied,
    /// Receipts are invalid: a missing one may have been a newer one of the phase, or a gate refuses for
    /// another reason.
    Problem,
}

/// The status of a spec at this time.
#[must_use]
pub fn spec_status(state: &SpecState, now: Timestamp) -> SpecStatus {
    let phase_statuses: Vec<PhaseSummary> = state
        .phases
        .iter()
        .map(|phase| phase_standing(phase, standing(state, phase), now))
        .collect();
    let sum = |of: fn(&PhaseSummary) -> Option<u64>| {
        phase_statuses
            .iter()
            .filter_map(of)
            .reduce(u64::saturating_add)
    };
    let problems: Vec<StatusProblem> = state
        .problems
        .iter()
        .take(MAX_PROBLEMS)
        .map(|problem| StatusProblem {
            code: problem_code(&problem.kind),
            file: brief(&problem.file, 100),
        })
        .collect();
    let newest = state
        .phases
        .iter()
        .filter_map(|phase| phase.newest.as_ref()?.emitted_at)
        .max();
    let pending_fixups = pending_fixups(state);
    SpecStatus {
        schema_version: STATUS_SCHEMA.to_owned(),
        spec_id: state.spec.clone(),
        pending_fixups,
        fixup_under_way: Vec::new(),
        has_errors: !state.problems.is_empty()
            || phase_statuses.iter().any(|phase| phase.status.is_error()),
        problems_left_out: (state.problems.len() - problems.len()) as u64,
        problems,
        receipts: state.receipts,
        tokens_input: sum(|phase| phase.tokens_input),
        tokens_output: sum(|phase| phase.tokens_output),
        cost_micro_dollars: sum(|phase| phase.cost_micro_dollars),
        newest,
        next: next_step(state, &phase_statuses, pending_fixups),
        phase_statuses,
    }
}

/// The number of files that the newest real success of the phase `fixup` proposes to change. A pending
/// fixup without files counts as one. It is zero if a later failure records that they are changed.
#[must_use]
pub fn pending_fixups(state: &SpecState) -> u64 {
    if applied_fixups(state).is_some() {
        return 0;
    }
    let success = state
        .phase(PhaseId::Fixup)
        .and_then(|phase| phase.last_success.as_ref());
    let entries = success
        .map(|receipt| receipt.phases.as_slice())
        .unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| entry.fixups.as_ref())
        .filter(|fixup| fixup.stage == FixupStage::Pending)
        .map(|fixup| fixup.files.len().max(1) as u64)
        .sum()
}

/// The fixups that the newest real receipt of their phase records as applied, even if it failed
/// otherwise.
pub(crate) fn applied_fixups(state: &SpecState) -> Option<&FixupReceipt> {
    let newest = state.phase(PhaseId::Fixup)?.newest_real.as_ref()?;
    let fixups = newest.phase(PhaseId::Fixup.as_str())?.fixups.as_ref();
    fixups.filter(|fixups| fixups.stage == FixupStage::Applied)
}

/// The command that runs a phase again.
pub(crate) fn rerun(state: &SpecState, phase: PhaseId) -> String {
    let spec = &state.spec;
    if phase == PhaseId::Requirements && !state.has_idea {
        // Only this command reads a new idea.
        format!("crucible spec {spec}")
    } else if phase == PhaseId::Fixup && is_applied_without_success(state) {
        format!("crucible resume {spec} --phase {phase} --apply-fixups")
    } else {
        format!("crucible resume {spec} --phase {phase}")
    }
}

/// Whether only a failed receipt records the applied fixups. Then `--apply-fixups` continues, because a
/// model would be asked about files that are already changed.
fn is_applied_without_success(state: &SpecState) -> bool {
    let Some(known) = state
        .phase(PhaseId::Fixup)
        .filter(|_| applied_fixups(state).is_some())
    else {
        return false;
    };
    let mut files = known.inputs.iter().chain(&known.outputs);
    standing(state, known) == PhaseCondition::Failed
        && known.last_success.is_some()
        && files.all(|file| file.found == FileState::Same)
}

/// Whether this receipt records a real success of the phase: in every entry of the phase and in the exit
/// code.
pub(crate) fn tells_of_success(receipt: &SpecReceipt, phase: PhaseId) -> bool {
    let mut entries = receipt
        .phases
        .iter()
        .filter(|entry| entry.phase_id == phase.as_str())
        .peekable();
    let some = entries.peek().is_some();
    let exit_agrees = receipt.exit_code.is_none_or(|code| code == 0);
    let is_success =
        |entry: &PhaseEntry| entry.status == PhaseStatus::Success && contradicts(entry).is_none();
    some && !receipt.dry_run && exit_agrees && entries.all(is_success)
}

/// Anything else in an entry that contradicts a success.
pub(crate) fn contradicts(entry: &PhaseEntry) -> Option<&'static str> {
    let decisive = |hook: &HookReceipt| hook.on_fail == OnFail::Fail && hook.end != HookEnd::Passed;
    let llm = entry.llm.as_ref();
    let is_reused = |warning: &ReceiptWarning| warning.kind == ANSWER_REUSED;
    if entry.error.is_some() {
        Some("an error")
    } else if entry.hooks.iter().any(decisive) {
        Some("a failed hook that is set to fail")
    } else if llm.is_some_and(|llm| llm.error.is_some()) {
        Some("a call that failed")
    } else if llm.is_some_and(|llm| llm.timed_out == Some(true)) {
        Some("a call that timed out")
    } else if llm.is_some_and(|llm| llm.budget_exhausted == Some(true)) {
        Some("an exhausted budget")
    } else if llm.is_some() && entry.attempts == 0 && !entry.warnings.iter().any(is_reused) {
        Some("an answer without a model call")
    } else {
        None
    }
}

/// The kind of a warning: an earlier attempt paid for the answer, so nothing was sent for it.
pub(crate) const ANSWER_REUSED: &str = "answer_reused";

/// The kind of a warning: the answer comes from a recording.
pub(crate) const LLM_REPLAYED: &str = "llm_replayed";

/// The state of a phase of this spec.
pub(crate) fn standing(state: &SpecState, phase: &PhaseState) -> PhaseCondition {
    let damaged = |problem: &ReceiptProblemKind| {
        !matches!(
            problem,
            ReceiptProblemKind::ForeignName
                | ReceiptProblemKind::Gap { .. }
                | ReceiptProblemKind::PromotionUnfinished
                | ReceiptProblemKind::LedgerKnowsNewer
        )
    };
    if state
        .problems
        .iter()
        .any(|problem| problem.phase == Some(phase.phase) && damaged(&problem.kind))
    {
        return PhaseCondition::Damaged;
    }
    match (&phase.newest_real, &phase.newest) {
        (None, None) => PhaseCondition::NotRun,
        (None, Some(_)) => PhaseCondition::DryRun,
        (Some(real), _) if !tells_of_success(real, phase.phase) => PhaseCondition::Failed,
        (Some(_), _)
            if phase
                .outputs
                .iter()
                .any(|file| file.found != FileState::Same) =>
        {
            PhaseCondition::Changed
        }
        (Some(_), _)
            if phase
                .inputs
                .iter()
                .any(|file| file.found != FileState::Same) =>
        {
            PhaseCondition::Stale
        }
        (Some(_), _) => PhaseCondition::Success,
    }
}

fn phase_standing(phase: &PhaseState, status: PhaseCondition, now: Timestamp) -> PhaseSummary {
    let receipt = phase.newest_real.as_ref().or(phase.newest.as_ref());
    let entry: Option<&PhaseEntry> =
        receipt.and_then(|receipt| receipt.phase(phase.phase.as_str()));
    let last_call_entry = phase
        .last_call_receipt
        .as_ref()
        .and_then(|receipt| receipt.phase(phase.phase.as_str()));
    let llm = entry
        .and_then(|entry| entry.llm.as_ref())
        .or(last_call_entry.and_then(|earlier| earlier.llm.as_ref()));
    let cost = llm.and_then(|llm| llm.cost.as_ref());
    let emitted_at = receipt.and_then(|receipt| receipt.emitted_at);
    // A success that every gate refuses must look different from others.
    let is_pinned = phase.newest_real.as_ref().is_some_and(|real| {
        real.clock == Some(ClockSource::Pinned) && tells_of_success(real, phase.phase)
    });
    PhaseSummary {
        phase_id: phase.phase,
        status,
        receipt_id: receipt.map(|receipt| brief(&receipt.receipt_id, 64)),
        emitted_at,
        age_seconds: emitted_at
            .and_then(|at| age(at, now))
            .map(|age| age.as_secs()),
        last_success_at: phase
            .last_success
            .as_ref()
            .and_then(|receipt| receipt.emitted_at),
        provider: llm
            .and_then(|llm| llm.provider.as_deref())
            .map(|text| brief(text, 32)),
        model_used: llm
            .and_then(|llm| llm.model_used.as_deref())
            .map(|text| brief(text, 48)),
        tokens_input: llm.and_then(|llm| llm.tokens_input),
        tokens_output: llm.and_then(|llm| llm.tokens_output),
        cost_micro_dollars: cost.map(|cost| cost.micro_dollars),
        cost_basis: cost.map(|cost| cost.basis),
        warnings: entry.map_or(0, |entry| entry.warnings.len() as u64) + u64::from(is_pinned),
        first_warning: match is_pinned {
            true => Some(PINNED.to_owned()),
            false => entry
                .and_then(|entry| entry.warnings.first())
                .map(|first| brief(&first.message, 100)),
        },
        error: entry
            .and_then(|entry| entry.error.as_ref())
            .map(|error| brief(&format!("{}: {}", error.class, error.message), 120)),
    }
}

/// The age of this time; none if it is in the future.
pub(crate) fn age(at: Timestamp, now: Timestamp) -> Option<std::time::Duration> {
    let millis = now.unix_millis().checked_sub(at.unix_millis())?;
    u64::try_from(millis)
        .ok()
        .map(std::time::Duration::from_millis)
}

fn next_step(state: &SpecState, phases: &[PhaseSummary], pending: u64) -> Option<NextStep> {
    let spec = &state.spec;
    let reason = |phase: &PhaseSummary| match phase.status {
        PhaseCondition::Success if is_doubtful(state, phase.phase_id) => Some(StepReason::Problem),
        PhaseCondition::Success => None,
        PhaseCondition::Failed
            if phase.phase_id == PhaseId::Fixup && is_applied_without_success(state) =>
        {
            Some(StepReason::FixupsApplied)
        }
        PhaseCondition::Failed => Some(StepReason::Failed),
        PhaseCondition::Stale => Some(StepReason::Stale),
        PhaseCondition::Changed => Some(StepReason::Changed),
        PhaseCondition::Damaged => Some(StepReason::Damaged),
        PhaseCondition::DryRun | PhaseCondition::NotRun => Some(StepReason::NotRun),
    };
    let run = phases
        .iter()
        .find_map(|phase| Some((phase.phase_id, reason(phase)?)));
    match run {
        // Phases before the fixup must be done before it is applied; the fixup comes before the phases
        // after it.
        Some((phase, reason)) if pending == 0 || phase <= PhaseId::Fixup => Some(NextStep {
            phase_id: phase,
            reason,
            command: rerun(state, phase),
        }),
        _ if pending > 0 => Some(NextStep {
            phase_id: PhaseId::Fixup,
            reason: StepReason::FixupsPending,
            command: format!("crucible resume {spec} --phase fixup --apply-fixups"),
        }),
        // Every phase is done, but a gate still refuses.
        _ if !state.problems.is_empty() => {
            let is_unfinished =
                |problem: &ReceiptProblem| problem.kind == ReceiptProblemKind::PromotionUnfinished;
            let command = match state.problems.iter().all(is_unfinished) && state.has_idea {
                // It calls no model if all is done, and completes what is not.
                true => format!("crucible spec {spec}"),
                false => format!("crucible gate {spec}"),
            };
            Some(NextStep {
                phase_id: PhaseId::Final,
                reason: StepReason::Problem,
                command,
            })
        }
        _ => None,
    }
}

/// Whether a missing receipt of the phase may be newer than the one that marks it as done.
fn is_doubtful(state: &SpecState, phase: PhaseId) -> bool {
    state.problems.iter().any(|problem| match &problem.kind {
        ReceiptProblemKind::Gap { older } => older.contains(&phase),
        ReceiptProblemKind::LedgerKnowsNewer => problem.phase == Some(phase),
        _ => false,
    })
}

/// A text of a receipt on one line, in at most `longest` bytes of JSON; a cut text ends in `…`.
pub(crate) fn brief(text: &str, longest: usize) -> String {
    let line = short_line(&single_spaced(text), longest);
    let cost = |c: char| {
        if matches!(c, '"' | '\\') {
            2
        } else {
            c.len_utf8()
        }
    };
    if line.chars().map(cost).sum::<usize>() <= longest {
        return line;
    }
    let mut remaining = longest - '…'.len_utf8();
    let fits = |c: &char| {
        let left = remaining.checked_sub(cost(*c));
        remaining = left.unwrap_or(0);
        left.is_some()
    };
    let mut cut: String = line
        .trim_end_matches('…')
        .chars()
        .take_while(fits)
        .collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use crucible_llm::{Cost, LlmReceipt, ReceiptWarning};
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::gate::sample::*;
    use crate::receipt::{FixedFile, PhaseFailure};

    fn words(status: &SpecStatus) -> Vec<&'static str> {
        status
            .phase_statuses
            .iter()
            .map(|phase| phase.status.as_str())
            .collect()
    }

    fn next(status: &SpecStatus) -> &str {
        status
            .next
            .as_ref()
            .map_or("nothing", |next| next.command.as_str())
    }

    static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
        let schema = include_str!("../../../../docs/schemas/status-json.v1.schema.json");
        jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap()
    });

    #[test]
    fn an_untouched_spec_begins_with_its_first_phase() {
        let status = spec_status(&done_up_to(None, noon()), noon());
        assert_eq!(words(&status), ["not_run"; 6]);
        assert_eq!(
            next(&status),
            "crucible resume export-data --phase requirements"
        );
        assert!(!status.has_errors && status.newest.is_none() && status.tokens_input.is_none());
    }

    #[test]
    fn each_phase_shows_state_age_and_usage() {
        let mut state = done_up_to(Some(PhaseId::Fixup), noon());
        state.phases[1].inputs[1].found = FileState::Differs;
        state.phases[2].outputs[0].found = FileState::Missing;
        state.phases[3].newest_real = Some(failure(PhaseId::Review, 9, noon()));
        state.phases[4] = PhaseState {
            newest: Some(dry_run(PhaseId::Fixup, 8, noon())),
            ..untouched(PhaseId::Fixup)
        };
        let status = spec_status(&state, later(noon(), 90_000));
        assert_eq!(
            words(&status),
            [
                "success", "stale", "changed", "failed", "dry_run", "not_run"
            ]
        );
        assert!(status.has_errors);
        assert_eq!(next(&status), "crucible resume export-data --phase design");
        let ages: Vec<_> = status
            .phase_statuses
            .iter()
            .map(|phase| phase.age_seconds)
            .collect();
        assert_eq!(
            ages,
            [Some(330), Some(270), Some(210), Some(90), Some(90), None]
        );
        assert_eq!(
            status.phase_statuses[3].last_success_at,
            Some(later(noon(), -60_000))
        );
        assert_eq!(
            (status.tokens_input, status.cost_micro_dollars),
            (Some(500), Some(35)),
            "of five receipts"
        );
        assert_eq!(
            spec_status(&state, later(noon(), -1)).phase_statuses[3].age_seconds,
            None,
            "not yet"
        );
    }

    #[test]
    fn a_stale_phase_alone_is_no_error() {
        let mut state = done_up_to(Some(PhaseId::Final), noon());
        state.phases[5].inputs[0].found = FileState::Differs;
        let status = spec_status(&state, noon());
        assert_eq!((status.has_errors, words(&status)[5]), (false, "stale"));
        assert_eq!(next(&status), "crucible resume export-data --phase final");
    }

    #[test]
    fn next_step_orders_pending_fixups() {
        let mut state = done_up_to(Some(PhaseId::Fixup), noon());
        let file = |path: &str| FixedFile {
            path: path.to_owned(),
            before: None,
            after: None,
        };
        let fixup = FixupReceipt {
            stage: FixupStage::Pending,
            patch: None,
            files: vec![file("a"), file("b")],
        };
        let phase = &mut state.phases[4];
        for receipt in [&mut phase.newest_real, &mut phase.last_success]
            .into_iter()
            .flatten()
        {
            receipt.phases[0].fixups = Some(fixup.clone());
        }
        let status = spec_status(&state, noon());
        assert_eq!(status.pending_fixups, 2);
        assert_eq!(
            next(&status),
            "crucible resume export-data --phase fixup --apply-fixups"
        );
        state.phases[0].outputs[0].found = FileState::Differs;
        assert_eq!(
            next(&spec_status(&state, noon())),
            "crucible resume export-data --phase requirements"
        );
        let all = done_up_to(Some(PhaseId::Final), noon());
        assert_eq!(next(&spec_status(&all, noon())), "nothing");
    }

    #[test]
    fn phase_with_untrusted_receipt_is_never_done() {
        let mut state = done_up_to(Some(PhaseId::Final), noon());
        let problem = |kind, phase| ReceiptProblem {
            file: "x.json".to_owned(),
            phase,
            kind,
        };
        state.problems.push(problem(
            ReceiptProblemKind::DigestDiffers,
            Some(PhaseId::Tasks),
        ));
        let status = spec_status(&state, noon());
        assert_eq!(words(&status)[2], "damaged");
        assert_eq!(
            (status.has_errors, next(&status)),
            (true, "crucible resume export-data --phase tasks")
        );
        // An invalid order alone says nothing about a phase, but is still an error.
        state.problems = vec![problem(
            ReceiptProblemKind::Gap {
                older: vec![PhaseId::Design],
            },
            None,
        )];
        let status = spec_status(&state, noon());
        assert_eq!((words(&status)[2], status.has_errors), ("success", true));
        assert_eq!(status.problems[0].code.as_str(), "gate-receipt-gone");
    }

    #[test]
    fn refusing_problem_leaves_a_next_step() {
        let problem = |kind, phase| ReceiptProblem {
            file: "x.json".to_owned(),
            phase,
            kind,
        };
        for (kind, phase, command) in [
            (
                ReceiptProblemKind::Gap {
                    older: vec![PhaseId::Design, PhaseId::Tasks],
                },
                None,
                "crucible resume export-data --phase design",
            ),
            (
                ReceiptProblemKind::LedgerKnowsNewer,
                Some(PhaseId::Review),
                "crucible resume export-data --phase review",
            ),
            (
                ReceiptProblemKind::ForeignName,
                None,
                "crucible gate export-data",
            ),
            (
                ReceiptProblemKind::PromotionUnfinished,
                None,
                "crucible spec export-data",
            ),
        ] {
            let mut state = done_up_to(Some(PhaseId::Final), noon());
            state.problems.push(problem(kind.clone(), phase));
            let status = spec_status(&state, noon());
            assert_eq!(next(&status), command, "{kind:?}");
            assert_eq!(
                status.next.map(|next| next.reason),
                Some(StepReason::Problem),
                "{kind:?}"
            );
        }
        // An earlier phase that has not run comes first.
        let mut state = done_up_to(Some(PhaseId::Tasks), noon());
        state
            .problems
            .push(problem(ReceiptProblemKind::ForeignName, None));
        assert_eq!(
            next(&spec_status(&state, noon())),
            "crucible resume export-data --phase review"
        );
        state.problems.push(problem(
            ReceiptProblemKind::Gap {
                older: vec![PhaseId::Design],
            },
            None,
        ));
        assert_eq!(
            next(&spec_status(&state, noon())),
            "crucible resume export-data --phase design"
        );
    }

    #[test]
    fn fixups_applied_by_failure_finish_without_model() {
        let mut state = done_up_to(Some(PhaseId::Fixup), noon());
        let fixup = |stage| {
            let file = FixedFile {
                path: "a".to_owned(),
                before: None,
                after: None,
            };
            Some(FixupReceipt {
                stage,
                patch: None,
                files: vec![file],
            })
        };
        let phase = &mut state.phases[4];
        for receipt in [&mut phase.newest_real, &mut phase.last_success]
            .into_iter()
            .flatten()
        {
            receipt.phases[0].fixups = fixup(FixupStage::Pending);
        }
        let mut failed = failure(PhaseId::Fixup, 9, noon());
        failed.phases[0].fixups = fixup(FixupStage::Applied);
        phase.newest_real = Some(failed);
        let status = spec_status(&state, noon());
        assert_eq!((status.pending_fixups, words(&status)[4]), (0, "failed"));
        assert_eq!(
            next(&status),
            "crucible resume export-data --phase fixup --apply-fixups"
        );
        assert_eq!(status.next.unwrap().reason, StepReason::FixupsApplied);
        // With another diff it is impossible to continue.
        state.phases[4].outputs[0].found = FileState::Differs;
        let status = spec_status(&state, noon());
        assert_eq!(
            (status.pending_fixups, next(&status)),
            (0, "crucible resume export-data --phase fixup")
        );
    }

    #[test]
    fn text_is_cut_by_its_json_length() {
        for (text, longest) in [
            ("\"".repeat(99), 20),
            ("ä".repeat(99), 21),
            ("\u{1f6d1}".repeat(99), 22),
            ("a\\".repeat(99), 9),
        ] {
            let cut = brief(&text, longest);
            let json = serde_json::to_string(&cut).unwrap();
            assert!(json.len() <= longest + 2 && cut.ends_with('…'), "{json}");
        }
        assert_eq!(brief(" two\n lines ", 20), "two lines");
        assert_eq!(brief("exactly 10", 10), "exactly 10");
    }

    /// Texts that are long, empty, or full of characters that JSON and terminals handle badly.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            (
                proptest::sample::select(vec![
                    "\"",
                    "\\",
                    "\u{1b}[2J",
                    "\u{202e}",
                    "\u{1f6d1}",
                    "ä",
                    "\u{0}",
                    "\n",
                    " a"
                ]),
                0usize..20_000
            )
                .prop_map(|(part, times)| part.repeat(times)),
        ]
    }

    mod properties {
        use super::*;

        proptest! {
            /// For any receipts, the document has its version, follows its schema and stays below 8
            /// KB.
            #[test]
            fn status_document_is_small_and_valid(
                texts in proptest::collection::vec(text(), 8),
                numbers in proptest::collection::vec(any::<u64>(), 4),
                reached in proptest::option::of(proptest::sample::select(PhaseId::ALL.to_vec())),
                problems in 0usize..2_000,
                fails in any::<bool>(),
                minutes in -100_000_000i64..100_000_000,
            ) {
                let mut state = done_up_to(reached, noon());
                let cost = Cost { micro_dollars: numbers[0], basis: CostBasis::Reported, price_date: Some(texts[0].clone()) };
                let llm = LlmReceipt {
                    provider: Some(texts[1].clone()),
                    model_used: Some(texts[2].clone()),
                    tokens_input: Some(numbers[1]),
                    tokens_output: Some(numbers[2]),
                    cost: Some(cost),
                    error: Some(texts[3].clone()),
                    ..LlmReceipt::default()
                };
                for known in &mut state.phases {
                    for receipt in [&mut known.newest, &mut known.newest_real, &mut known.last_success].into_iter().flatten() {
                        receipt.receipt_id = texts[4].clone();
                        let entry = &mut receipt.phases[0];
                        entry.llm = Some(llm.clone());
                        entry.warnings = vec![ReceiptWarning { kind: texts[5].clone(), message: texts[5].clone() }; 30];
                        entry.error = Some(PhaseFailure { class: texts[6].clone(), message: texts[5].clone() });
                        if fails {
                            entry.status = PhaseStatus::Failed;
                        }
                    }
                }
                let problem = ReceiptProblem {
                    file: texts[7].clone(),
                    phase: None,
                    kind: ReceiptProblemKind::Unreadable(texts[5].clone()),
                };
                state.problems = vec![problem; problems];
                state.receipts = numbers[3];

                let status = spec_status(&state, later(noon(), minutes * 60_000 % 1_700_000_000_000));
                let text = serde_json::to_string_pretty(&status).unwrap();
                prop_assert!(text.len() < 8_192, "{} bytes:\n{text}", text.len());
                prop_assert!(!text.chars().any(|c| c != '\n' && crucible_model::is_hidden(c)));
                let document: Value = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(&document["schema_version"], STATUS_SCHEMA);
                prop_assert_eq!(SCHEMA.iter_errors(&document).next().map(|error| error.to_string()), None);
                prop_assert_eq!(serde_json::from_value::<SpecStatus>(document).unwrap(), status.clone());
                prop_assert_eq!(status.problems.len() as u64 + status.problems_left_out, problems as u64);
            }
        }
    }
}
