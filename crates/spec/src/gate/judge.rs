//! The checks of a gate, one method each.

use std::collections::HashMap;

use crucible_llm::ExecutionStrategy;
use crucible_model::{ClockSource, Code, Digest, Finding, Timestamp, counted, short_line};

use super::age::{age_words, limit_words};
use super::problem::{advice, problem_code};
use super::{GateFinding, GatePolicy, OnPendingFixups};
use crate::json_output::{
    ANSWER_REUSED, LLM_REPLAYED, PhaseCondition, age, contradicts, pending_fixups, rerun, standing,
    tells_of_success,
};
use crate::phase::{PhaseDefinition, phases};
use crate::phase_id::PhaseId;
use crate::project::IDEA;
use crate::receipt::{FileRecord, FixupStage, PhaseEntry, PhaseStatus, ReceiptId, SpecReceipt};
use crate::state::{FileState, PhaseState, SpecState};

/// The milliseconds that a clock may have gone back between the beginning of a phase and its receipt.
const CLOCK_STEP: i64 = 120_000;

/// A judgement in progress.
pub(super) struct Judge<'a> {
    state: &'a SpecState,
    policy: &'a GatePolicy,
    now: Timestamp,
    clock: ClockSource,
    found: Vec<GateFinding>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        state: &'a SpecState,
        policy: &'a GatePolicy,
        now: Timestamp,
        clock: ClockSource,
    ) -> Self {
        Self {
            state,
            policy,
            now,
            clock,
            found: Vec::new(),
        }
    }

    pub(super) fn findings(mut self) -> Vec<GateFinding> {
        for problem in &self.state.problems {
            let file = format!("receipts/{}", problem.file);
            let hint = advice(&self.state.spec, problem);
            self.add(
                &file,
                Finding::error(problem_code(&problem.kind), &file, hint),
            );
        }
        for phase in self.policy.min_phase.up_to() {
            self.phase(phase);
        }
        self.age();
        self.fixups();
        self.origins();
        self.found
    }

    fn add(&mut self, file: &str, finding: Finding) {
        self.found.push(GateFinding {
            finding,
            file: file.to_owned(),
        });
    }

    /// Whether this phase counts as done.
    fn phase(&mut self, phase: PhaseId) {
        let known = self.state.phase(phase);
        let Some((known, receipt)) =
            known.and_then(|known| Some((known, known.newest_real.as_ref()?)))
        else {
            let hint = match known.map(|known| standing(self.state, known)) {
                Some(PhaseCondition::Damaged) => {
                    format!("Its newest receipt cannot be trusted; {}.", self.run(phase))
                }
                stands => {
                    let dry = stands == Some(PhaseCondition::DryRun);
                    let why = if dry {
                        "It has only had a dry run, which does not count"
                    } else {
                        "It has not run"
                    };
                    // An earlier phase may be missing as well: this command runs every unfinished one.
                    format!(
                        "{why}; run `crucible spec {} --through {phase}`.",
                        self.state.spec
                    )
                }
            };
            self.add(
                &artifact(phase),
                Finding::error(Code::new("gate-phase-missing"), phase.as_str(), hint),
            );
            return;
        };
        if !tells_of_success(receipt, phase) {
            self.no_success(phase, receipt);
            return;
        }
        let file = file_of(receipt);
        self.evidence(phase, receipt, &file);
        self.artifacts(phase, known, receipt, &file);
        if receipt.clock == Some(ClockSource::Pinned) {
            let hint = format!(
                "It was written under a pinned clock, which proves nothing; unset CRUCIBLE_CLOCK and {}.",
                self.run(phase)
            );
            self.add(
                &file,
                Finding::error(Code::new("gate-clock-pinned"), &file, hint),
            );
        }
        if self.clock == ClockSource::System && receipt.emitted_at.is_some_and(|at| at > self.now) {
            let hint = format!(
                "Its time lies in the future, so a clock is wrong. If it is the clock of this machine, \
                correct it; if it was the clock of the machine that wrote the receipt, {}.",
                self.run(phase)
            );
            self.add(
                &file,
                Finding::error(Code::new("gate-receipt-from-future"), &file, hint),
            );
        }
    }

    /// Reports a newest real receipt that is not a success: of a failure, or contradictory.
    fn no_success(&mut self, phase: PhaseId, receipt: &SpecReceipt) {
        let file = file_of(receipt);
        let failure = receipt
            .phase(phase.as_str())
            .and_then(|entry| entry.error.as_ref());
        let claims = claims_success(receipt, phase);
        let dry = receipt.claims_dry_run(receipt.phase(phase.as_str()));
        let (code, subject, hint) = if dry && !claims {
            let hint = format!(
                "It is marked as a dry run but records a real one; {}.",
                self.run(phase)
            );
            (Code::new("gate-evidence-contradictory"), file.clone(), hint)
        } else if claims {
            let other = entries(receipt, phase)
                .find_map(contradicts)
                .unwrap_or("another end of the command");
            let hint = format!(
                "It claims success but records {other}; {}.",
                self.run(phase)
            );
            (Code::new("gate-evidence-contradictory"), file.clone(), hint)
        } else {
            let why = failure
                .map(|failure| format!(" ({})", brief(&failure.class)))
                .unwrap_or_default();
            let hint = format!("Its newest run failed{why}; {}.", self.run(phase));
            (
                Code::new("gate-phase-failed"),
                phase.as_str().to_owned(),
                hint,
            )
        };
        self.add(&file, Finding::error(code, subject, hint));
    }

    /// Checks that the receipt contains what a success must contain.
    fn evidence(&mut self, phase: PhaseId, receipt: &SpecReceipt, file: &str) {
        if receipt.spec_id != self.state.spec.as_str() {
            let hint =
                "It is the receipt of another spec. Restore the right one from version control.";
            self.add(
                file,
                Finding::error(Code::new("gate-receipt-misplaced"), file, hint),
            );
        }
        let names = |of: fn(&PhaseEntry) -> &[FileRecord], artifact: &str| {
            entries(receipt, phase).any(|entry| of(entry).iter().any(|file| file.path == artifact))
        };
        let definition = phases()
            .into_iter()
            .find(|definition| definition.id() == phase);
        let upstream = definition
            .map(PhaseDefinition::upstream)
            .unwrap_or_default();
        // The input of the first phase is the idea, and only the receipt's record of it shows a change.
        let idea = (phase == PhaseId::Requirements).then(|| IDEA.to_owned());
        let mut made_from = upstream.iter().copied().map(artifact).chain(idea);
        let lacks = [
            (receipt.exit_code.is_none(), "exit_code"),
            (receipt.clock.is_none(), "clock"),
            (receipt.digest.is_none(), "digest"),
            (receipt.pipeline.is_none(), "pipeline"),
            (!names(|entry| &entry.outputs, &artifact(phase)), "outputs"),
            (
                !made_from.all(|before| names(|entry| &entry.inputs, &before)),
                "inputs",
            ),
        ];
        let entry = receipt.phase(phase.as_str());
        let asks = entry.is_none_or(needs_model_call);
        let call = entry.and_then(|entry| entry.llm.as_ref());
        let lacks = lacks.into_iter().chain([
            (receipt.emitted_at.is_none(), "emitted_at"),
            (
                entry.is_none_or(|entry| entry.started_at.is_none()),
                "started_at",
            ),
            (
                entry.is_none_or(|entry| entry.finished_at.is_none()),
                "finished_at",
            ),
            (asks && call.is_none_or(|llm| llm.provider.is_none()), "llm"),
            (
                asks && entry.is_none_or(|entry| entry.packet.is_none()),
                "packet",
            ),
        ]);
        let lacks: Vec<&str> = lacks
            .filter_map(|(lacks, field)| lacks.then_some(field))
            .collect();
        if !lacks.is_empty() {
            let hint = format!(
                "It lacks {}, so it does not prove success. {}.",
                lacks.join(", "),
                capital(&self.run(phase))
            );
            self.add(
                file,
                Finding::error(Code::new("gate-evidence-missing"), file, hint),
            );
        }
        if let Some(unusual_text) = instants(receipt, phase).err() {
            let hint = format!(
                "Its times contradict each other: {unusual_text}; {}.",
                self.run(phase)
            );
            self.add(
                file,
                Finding::error(Code::new("gate-evidence-contradictory"), file, hint),
            );
        }
        let strategy = receipt.pipeline.map(|pipeline| pipeline.execution_strategy);
        if strategy.is_some_and(|strategy| strategy != ExecutionStrategy::Controlled) {
            let hint = format!("A model used its own tools; {}.", self.run(phase));
            self.add(
                file,
                Finding::error(Code::new("gate-strategy-uncontrolled"), file, hint),
            );
        }
    }

    /// Checks that the files named by the receipt are on disk, and that its inputs are unchanged.
    fn artifacts(&mut self, phase: PhaseId, known: &PhaseState, receipt: &SpecReceipt, file: &str) {
        let on_disk: HashMap<_, FileState> = known
            .outputs
            .iter()
            .map(|tracked| (name(&tracked.record), tracked.found))
            .collect();
        for record in entries(receipt, phase).flat_map(|entry| &entry.outputs) {
            let (code, hint) = match on_disk.get(&name(record)) {
                Some(FileState::Same) => continue,
                Some(FileState::Differs) => (
                    Code::new("gate-artifact-differs"),
                    "It differs from what the phase wrote",
                ),
                Some(FileState::Missing) | None => (
                    Code::new("gate-artifact-missing"),
                    "The phase wrote it, but it is missing",
                ),
            };
            let hint = format!(
                "{hint}. Restore it from version control, or {}.",
                self.run(phase)
            );
            self.add(&record.path, Finding::error(code, &record.path, hint));
        }
        for input in known
            .inputs
            .iter()
            .filter(|input| input.found != FileState::Same)
        {
            let hint = format!(
                "It was made from {}, which has changed since; {}.",
                brief(&input.record.path),
                self.run(phase)
            );
            self.add(
                file,
                Finding::error(Code::new("gate-phase-stale"), phase.as_str(), hint),
            );
        }
    }

    /// Checks the age of the required phase's last success.
    fn age(&mut self) {
        let phase = self.policy.min_phase;
        let Some(limit) = self.policy.max_phase_age else {
            if self.clock == ClockSource::Pinned {
                let hint = "The gate's own clock is pinned, so it cannot detect a receipt from the future; \
                unset CRUCIBLE_CLOCK.";
                let code = Code::new("gate-clock-pinned");
                self.add(
                    &artifact(phase),
                    Finding::warning(code, "CRUCIBLE_CLOCK", hint),
                );
            }
            return;
        };
        if self.clock == ClockSource::Pinned {
            let hint = "An age cannot be computed with a pinned clock; unset CRUCIBLE_CLOCK.";
            self.add(
                &artifact(phase),
                Finding::error(Code::new("gate-clock-pinned"), "CRUCIBLE_CLOCK", hint),
            );
        }
        // Without a success the phase is missing or failed, which is already reported.
        let Some(receipt) = self.state.phase(phase).and_then(newest_success) else {
            return;
        };
        let file = file_of(receipt);
        if receipt.emitted_at.is_none() {
            let hint = format!("It does not say when it was written; {}.", self.run(phase));
            self.add(
                &file,
                Finding::error(Code::new("gate-phase-age-unknown"), phase.as_str(), hint),
            );
            return;
        }
        let at = match instants(receipt, phase) {
            Ok(Some(oldest)) => oldest,
            Ok(None) => return,
            Err(_) => {
                // A contradiction in the newest receipt is already reported; for an older success there
                // is no age either.
                let hint = format!("Its times contradict each other; {}.", self.run(phase));
                self.add(
                    &file,
                    Finding::error(Code::new("gate-phase-age-unknown"), phase.as_str(), hint),
                );
                return;
            }
        };
        if let Some(age) = age(at, self.now).filter(|age| *age > limit) {
            let (age, most) = (age_words(age), limit_words(limit));
            let hint = format!(
                "Its last success is {age} old, but at most {most} is allowed; {}.",
                self.run(phase)
            );
            self.add(
                &file,
                Finding::error(Code::new("gate-phase-too-old"), phase.as_str(), hint),
            );
        }
    }

    fn fixups(&mut self) {
        self.fixups_undone();
        let pending = pending_fixups(self.state);
        if pending == 0 {
            return;
        }
        let code = Code::new("gate-fixups-pending");
        let subject = counted(pending, "file");
        let phase_condition = self
            .state
            .phase(PhaseId::Fixup)
            .map(|known| standing(self.state, known));
        let hint = match phase_condition {
            Some(PhaseCondition::Success) => format!(
                "Proposed changes are not applied: `crucible resume {} --phase fixup --apply-fixups`.",
                self.state.spec
            ),
            _ => format!(
                "Proposed changes are not applied, and the run that proposed them is not the newest or is out \
                of date; {}.",
                self.run(PhaseId::Fixup)
            ),
        };
        let finding = match self.policy.pending_fixups {
            OnPendingFixups::Allow => Finding::info(code, subject, hint),
            OnPendingFixups::Refuse => Finding::error(code, subject, hint),
        };
        self.add(&artifact(PhaseId::Fixup), finding);
    }

    /// Checks that applied changes are still in the tree. Files that were changed otherwise since are
    /// ignored.
    fn fixups_undone(&mut self) {
        let undone = &self.state.fixups_undone;
        let Some(first) = undone.first() else { return };
        let code = Code::new("gate-fixup-not-in-tree");
        let subject = match undone.len() {
            1 => brief(first),
            files => format!("{} and {} more", brief(first), files - 1),
        };
        let hint = format!(
            "A fixup was applied to it, but it has its old content: the change was reverted or never copied \
            here. Restore it from version control, or {}.",
            self.run(PhaseId::Fixup)
        );
        let finding = match self.policy.pending_fixups {
            OnPendingFixups::Allow => Finding::warning(code, subject, hint),
            OnPendingFixups::Refuse => Finding::error(code, subject, hint),
        };
        self.add(&artifact(PhaseId::Fixup), finding);
    }

    /// Reports the origin of receipts and answers where it deserves attention.
    fn origins(&mut self) {
        for file in &self.state.not_from_here {
            let file = format!("receipts/{}", brief(file));
            let hint = "The ledger of this machine knows the spec but did not record this receipt: it comes \
            from another machine, or it is forged. Check who committed it.";
            let finding = Finding::warning(Code::new("gate-receipt-not-from-here"), &file, hint);
            self.found.push(GateFinding { finding, file });
        }
        for phase in self.policy.min_phase.up_to() {
            let real = self
                .state
                .phase(phase)
                .and_then(|known| known.newest_real.as_ref());
            let Some(receipt) = real else { continue };
            for (kind, code, hint) in [
                (
                    LLM_REPLAYED,
                    Code::new("gate-answers-recorded"),
                    "Its answers come from a recording, not from a model call.",
                ),
                (
                    ANSWER_REUSED,
                    Code::new("gate-answers-reused"),
                    "It reused an answer that an earlier attempt received and did not use.",
                ),
            ] {
                let has_warning =
                    |entry: &PhaseEntry| entry.warnings.iter().any(|warning| warning.kind == kind);
                if entries(receipt, phase).any(has_warning) {
                    let file = file_of(receipt);
                    self.add(&file, Finding::info(code, phase.as_str(), hint));
                }
            }
        }
    }

    /// The advice to run a phase.
    fn run(&self, phase: PhaseId) -> String {
        format!("run `{}`", rerun(self.state, phase))
    }
}

/// The receipt from which an age is counted. A failure does not make a phase younger.
pub(super) fn newest_success(known: &PhaseState) -> Option<&SpecReceipt> {
    let real = known
        .newest_real
        .as_ref()
        .filter(|receipt| tells_of_success(receipt, known.phase));
    real.or(known.last_success.as_ref())
}

/// Whether a success of this kind needs a model call. Only the fixup phase has others: applying a
/// proposal, and a review that requests no change.
fn needs_model_call(entry: &PhaseEntry) -> bool {
    let stage = entry.fixups.as_ref().map(|fixups| fixups.stage);
    let asks_nobody = matches!(stage, Some(FixupStage::Applied | FixupStage::None));
    entry.phase_id != PhaseId::Fixup.as_str() || !asks_nobody
}

/// The oldest time in a receipt's phase, from which an age is counted.
///
/// # Errors
///
/// A contradiction between the times: the phase begins in the second that the id gives, then ends, and then the receipt is written.
/// A clock that was corrected in the meantime may have gone back a little.
fn instants(receipt: &SpecReceipt, phase: PhaseId) -> Result<Option<Timestamp>, &'static str> {
    let id: Option<ReceiptId> = receipt.receipt_id.parse().ok();
    let named = id
        .and_then(|id| id.began())
        .ok_or("its name contains an invalid time")?;
    let second = |at: Timestamp| at.unix_millis().div_euclid(1_000);
    let is_before =
        |one: Timestamp, other: Timestamp| one.unix_millis() + CLOCK_STEP < other.unix_millis();
    let mut oldest = named;
    for entry in entries(receipt, phase) {
        if entry
            .started_at
            .is_some_and(|started| second(started) != second(named))
        {
            return Err("the phase did not begin in the second that its name gives");
        }
        if entry
            .finished_at
            .is_some_and(|finished| is_before(finished, named))
        {
            return Err("the phase ended before it began");
        }
        let written = receipt.emitted_at;
        if entry
            .finished_at
            .zip(written)
            .is_some_and(|(finished, written)| is_before(written, finished))
        {
            return Err("it was written before the phase ended");
        }
        oldest = entry.started_at.unwrap_or(oldest);
    }
    if receipt
        .emitted_at
        .is_some_and(|written| is_before(written, named))
    {
        return Err("it was written before the phase began");
    }
    let ends = receipt.phases.iter().filter_map(|entry| entry.finished_at);
    Ok(ends.chain(receipt.emitted_at).chain([oldest]).min())
}

fn entries(receipt: &SpecReceipt, phase: PhaseId) -> impl Iterator<Item = &PhaseEntry> {
    receipt
        .phases
        .iter()
        .filter(move |entry| entry.phase_id == phase.as_str())
}

/// Whether a part of the receipt claims success.
fn claims_success(receipt: &SpecReceipt, phase: PhaseId) -> bool {
    let mut entries = entries(receipt, phase).peekable();
    entries.peek().is_none()
        || entries.any(|entry| entry.status == PhaseStatus::Success)
        || receipt.exit_code == Some(0)
}

/// The fields that make two records equal.
fn name(record: &FileRecord) -> (&str, Digest, u64) {
    (&record.path, record.sha256, record.bytes)
}

fn file_of(receipt: &SpecReceipt) -> String {
    format!("receipts/{}.json", brief(&receipt.receipt_id))
}

fn artifact(phase: PhaseId) -> String {
    format!("artifacts/{}", phase.artifact())
}

/// A text of a receipt, shortened for a sentence.
fn brief(text: &str) -> String {
    short_line(text, 200)
}

fn capital(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}
