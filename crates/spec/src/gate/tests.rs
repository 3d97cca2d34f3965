//! The gate against a model: states whose findings are known by construction.

use std::time::Duration;

use crucible_llm::{ExecutionStrategy, PipelineReceipt};
use crucible_model::{ClockSource, Level, Outcome, Verdict};
use proptest::prelude::*;
use serde_json::json;

use super::sample::*;
use super::*;
use crate::receipt::{FixedFile, FixupReceipt, FixupStage, PhaseEntry, PhaseFailure, SpecReceipt};
use crate::state::{FileState, PhaseState, ReceiptProblem, ReceiptProblemKind};

const DAY: Duration = Duration::from_secs(86_400);

fn policy(min_phase: PhaseId) -> GatePolicy {
    GatePolicy {
        min_phase,
        ..GatePolicy::default()
    }
}

fn judge_gate(
    state: &SpecState,
    policy: &GatePolicy,
    now: Timestamp,
    clock: ClockSource,
) -> Verdict {
    let findings = gate_findings(state, policy, now, clock);
    Verdict::new(findings.into_iter().map(|found| found.finding).collect())
}

fn judged(state: &SpecState, policy: &GatePolicy) -> Verdict {
    judge_gate(state, policy, noon(), ClockSource::System)
}

/// The codes of the findings, each with its level, unordered.
fn codes(verdict: &Verdict) -> Vec<String> {
    let code_of = |finding: &Finding| match finding.level {
        Level::Error => finding.code.to_string(),
        Level::Warning | Level::Info => format!("({})", finding.code),
    };
    let mut codes: Vec<String> = verdict.findings().iter().map(code_of).collect();
    codes.sort();
    codes
}

fn changed(
    mut state: SpecState,
    phase: PhaseId,
    change: impl FnOnce(&mut PhaseState),
) -> SpecState {
    change(
        state
            .phases
            .iter_mut()
            .find(|known| known.phase == phase)
            .unwrap(),
    );
    state
}

/// Changes the receipt that counts, wherever it is.
fn receipt_changed(known: &mut PhaseState, change: impl Fn(&mut SpecReceipt)) {
    for receipt in [
        &mut known.newest,
        &mut known.newest_real,
        &mut known.last_success,
    ]
    .into_iter()
    .flatten()
    {
        change(receipt);
    }
}

fn pending(known: &mut PhaseState, files: usize) {
    let fixed = |place| FixedFile {
        path: format!("src/{place}.rs"),
        before: None,
        after: None,
    };
    let fixup = FixupReceipt {
        stage: FixupStage::Pending,
        patch: None,
        files: (0..files).map(fixed).collect(),
    };
    receipt_changed(known, |receipt| {
        receipt.phases[0].fixups = Some(fixup.clone())
    });
}

#[test]
fn phases_are_ordered_by_place_not_name() {
    let mut by_name = PhaseId::ALL;
    by_name.sort_by_key(|phase| phase.as_str());
    assert_ne!(by_name, PhaseId::ALL, "or this test proves nothing");
    for reached in [None].into_iter().chain(PhaseId::ALL.map(Some)) {
        let state = done_up_to(reached, noon());
        for phase_id in PhaseId::ALL {
            let verdict = judged(&state, &policy(phase_id));
            assert_eq!(
                verdict.passes(),
                reached >= Some(phase_id),
                "{reached:?} for {phase_id}"
            );
            let missing = verdict.errors().map(|finding| finding.subject.as_str());
            let expected = phase_id
                .up_to()
                .filter(|phase| Some(*phase) > reached)
                .map(PhaseId::as_str);
            assert!(
                missing.eq(expected),
                "{reached:?} for {phase_id}: {verdict:?}"
            );
        }
    }
}

#[test]
fn nothing_dry_runs_and_failures_do_not_pass() {
    let empty = done_up_to(None, noon());
    let dry = |known: &mut PhaseState| known.newest = Some(dry_run(known.phase, 9, noon()));
    let failed = |known: &mut PhaseState| {
        known.newest = Some(failure(known.phase, 9, noon()));
        known.newest_real = known.newest.clone();
    };
    let every = |change: fn(&mut PhaseState)| {
        let mut state = empty.clone();
        state.phases.iter_mut().for_each(change);
        judged(&state, &GatePolicy::default())
    };
    assert_eq!(
        codes(&judged(&empty, &GatePolicy::default())),
        ["gate-phase-missing"; 3]
    );
    assert_eq!(codes(&every(dry)), ["gate-phase-missing"; 3]);
    assert!(
        every(dry).findings()[0].hint.contains("dry"),
        "the reason is told"
    );
    assert_eq!(codes(&every(failed)), ["gate-phase-failed"; 3]);
    // A state without any phase does not pass either.
    let nothing = SpecState {
        phases: Vec::new(),
        ..empty
    };
    assert_eq!(
        codes(&judged(&nothing, &GatePolicy::default())),
        ["gate-phase-missing"; 3]
    );
}

#[test]
fn later_failure_refuses_later_dry_run_passes() {
    let spec_state = done_up_to(Some(PhaseId::Final), noon());
    let failed = changed(spec_state.clone(), PhaseId::Design, |known| {
        known.newest = Some(failure(PhaseId::Design, 9, noon()));
        known.newest_real = known.newest.clone();
    });
    assert_eq!(
        codes(&judged(&failed, &GatePolicy::default())),
        ["gate-phase-failed"]
    );
    let dry = changed(spec_state.clone(), PhaseId::Design, |known| {
        known.newest = Some(dry_run(PhaseId::Design, 9, noon()));
    });
    assert!(judged(&dry, &GatePolicy::default()).passes());
    let later = changed(spec_state, PhaseId::Review, |known| {
        known.newest = Some(failure(PhaseId::Review, 9, noon()));
        known.newest_real = known.newest.clone();
    });
    assert!(
        judged(&later, &GatePolicy::default()).passes(),
        "nobody asked for the review"
    );
    assert!(!judged(&later, &policy(PhaseId::Review)).passes());
}

#[test]
fn age_counts_from_last_success() {
    let limit = GatePolicy {
        max_phase_age: Some(DAY),
        ..GatePolicy::default()
    };
    let day = i64::try_from(DAY.as_millis()).unwrap();
    let at = |millis: i64| done_up_to(Some(PhaseId::Tasks), later(noon(), millis));
    assert!(judged(&at(-day), &limit).passes(), "exactly at the limit");
    assert_eq!(
        codes(&judged(&at(-day - 1), &limit)),
        ["gate-phase-too-old"]
    );
    assert!(judged(&at(0), &limit).passes(), "this very instant");
    assert_eq!(codes(&judged(&at(1), &limit)), ["gate-receipt-from-future"]);
    assert!(
        !judged(&at(1), &GatePolicy::default()).passes(),
        "whether an age is asked for or not"
    );
    // Neither a newer failure nor a newer dry run makes it younger.
    let mut old = at(-day - 1);
    old = changed(old, PhaseId::Tasks, |known| {
        known.newest = Some(failure(PhaseId::Tasks, 9, noon()));
        known.newest_real = known.newest.clone();
    });
    assert_eq!(
        codes(&judged(&old, &limit)),
        ["gate-phase-failed", "gate-phase-too-old"]
    );
    // Only the required phase has an age limit: those before it may be older.
    let earlier = changed(at(0), PhaseId::Requirements, |known| {
        let old = success(PhaseId::Requirements, 1, later(noon(), -30 * day));
        receipt_changed(known, |receipt| *receipt = old.clone());
    });
    assert!(judged(&earlier, &limit).passes());
    let unknown = changed(at(0), PhaseId::Tasks, |known| {
        receipt_changed(known, |receipt| receipt.emitted_at = None);
    });
    assert_eq!(
        codes(&judged(&unknown, &limit)),
        ["gate-evidence-missing", "gate-phase-age-unknown"]
    );
    assert_eq!(
        codes(&judged(&unknown, &GatePolicy::default())),
        ["gate-evidence-missing"]
    );
    let pinned = judge_gate(&at(0), &limit, noon(), ClockSource::Pinned);
    assert_eq!(
        codes(&pinned),
        ["gate-clock-pinned"],
        "a pinned clock tells no age"
    );
    // Without an age limit it still cannot detect receipts from the future, and says so.
    let ahead = judge_gate(
        &at(day),
        &GatePolicy::default(),
        noon(),
        ClockSource::Pinned,
    );
    assert_eq!(codes(&ahead), ["(gate-clock-pinned)"], "a warning");
    assert!(ahead.passes() && !pinned.passes());
}

#[test]
fn damaged_receipt_of_any_phase_refuses() {
    let state = changed(
        done_up_to(Some(PhaseId::Final), noon()),
        PhaseId::Design,
        |known| {
            known.outputs[0].found = FileState::Differs;
        },
    );
    let file = "final-20260131-120000-0006.json";
    let problem = |kind| ReceiptProblem {
        file: file.to_owned(),
        phase: Some(PhaseId::Final),
        kind,
    };
    let kinds = [
        ReceiptProblemKind::Unreadable("no JSON".to_owned()),
        ReceiptProblemKind::ForeignName,
        ReceiptProblemKind::NameDisagrees,
        ReceiptProblemKind::DigestDiffers,
        ReceiptProblemKind::ChainBroken,
        ReceiptProblemKind::PlaceTaken {
            other: "final-20260131-130000-0006.json".to_owned(),
        },
        ReceiptProblemKind::Gap {
            older: vec![PhaseId::Design, PhaseId::Tasks],
        },
        ReceiptProblemKind::PromotionUnfinished,
        ReceiptProblemKind::PromotionForeign {
            replaces: vec!["artifacts/50-final.md".to_owned()],
        },
        ReceiptProblemKind::LedgerDiffers,
        ReceiptProblemKind::LedgerKnowsNewer,
    ];
    let mut seen = std::collections::BTreeSet::new();
    for kind in kinds {
        let code = problem_code(&kind).to_string();
        let state = SpecState {
            problems: vec![problem(kind)],
            ..state.clone()
        };
        let verdict = judged(&state, &policy(PhaseId::Design));
        assert_eq!(
            codes(&verdict),
            ["gate-artifact-differs".to_owned(), code.clone()]
        );
        let named = verdict
            .errors()
            .find(|finding| finding.code.as_str() == code)
            .unwrap();
        assert_eq!(named.subject, format!("receipts/{file}"));
        seen.insert(code);
    }
    assert_eq!(seen.len(), 11, "each has a code of its own");
}

#[test]
fn pending_fixups_refuse_only_if_required() {
    let state = changed(
        done_up_to(Some(PhaseId::Fixup), noon()),
        PhaseId::Fixup,
        |known| pending(known, 3),
    );
    assert_eq!(
        codes(&judged(&state, &GatePolicy::default())),
        ["(gate-fixups-pending)"]
    );
    let strict = GatePolicy {
        pending_fixups: OnPendingFixups::Refuse,
        ..GatePolicy::default()
    };
    let verdict = judged(&state, &strict);
    assert_eq!(
        (codes(&verdict), &*verdict.findings()[0].subject),
        (vec!["gate-fixups-pending".to_owned()], "3 files")
    );
    // A newer failure of the phase does not clear a pending fixup, and a claim without files counts, too.
    let failed = changed(state, PhaseId::Fixup, |known| {
        known.newest = Some(failure(PhaseId::Fixup, 9, noon()));
        known.newest_real = known.newest.clone();
    });
    assert!(!judged(&failed, &strict).passes());
    let none = changed(
        done_up_to(Some(PhaseId::Fixup), noon()),
        PhaseId::Fixup,
        |known| pending(known, 0),
    );
    assert!(!judged(&none, &strict).passes());
}

#[test]
fn success_receipt_containing_a_failure_is_refused() {
    use crucible_llm::ReceiptWarning;
    let spec_state = done_up_to(Some(PhaseId::Tasks), noon());
    let hook = |end| json!({ "name": "lint", "moment": "post_phase", "end": end, "duration_ms": 1, "on_fail": "fail" });
    let entry = |change: &dyn Fn(&mut PhaseEntry)| {
        let state = changed(spec_state.clone(), PhaseId::Tasks, |known| {
            receipt_changed(known, |receipt| change(&mut receipt.phases[0]));
        });
        codes(&judged(&state, &GatePolicy::default()))
    };
    let failure = PhaseFailure {
        class: "answer".to_owned(),
        message: "No.".to_owned(),
    };
    let changes: [&dyn Fn(&mut PhaseEntry); 6] = [
        &|entry| entry.error = Some(failure.clone()),
        &|entry| entry.hooks = vec![serde_json::from_value(hook("failed")).unwrap()],
        &|entry| entry.hooks = vec![serde_json::from_value(hook("timed_out")).unwrap()],
        &|entry| entry.llm.as_mut().unwrap().timed_out = Some(true),
        &|entry| entry.llm.as_mut().unwrap().budget_exhausted = Some(true),
        &|entry| entry.attempts = 0,
    ];
    for change in changes {
        assert_eq!(entry(change), ["gate-evidence-contradictory"]);
    }
    let warned = |kind: &str| ReceiptWarning {
        kind: kind.to_owned(),
        message: String::new(),
    };
    assert_eq!(
        entry(&|entry| entry.hooks = vec![serde_json::from_value(hook("passed")).unwrap()]),
        [""; 0]
    );
    let reused = |entry: &mut PhaseEntry| {
        (entry.attempts, entry.warnings) = (0, vec![warned("answer_reused")])
    };
    assert_eq!(entry(&reused), ["(gate-answers-reused)"]);
    assert_eq!(
        entry(&|entry| entry.warnings = vec![warned("llm_replayed")]),
        ["(gate-answers-recorded)"]
    );
}

#[test]
fn success_without_call_is_refused_except_fixups() {
    let judge = |phase: PhaseId, change: &dyn Fn(&mut PhaseEntry)| {
        let state = changed(done_up_to(Some(PhaseId::Final), noon()), phase, |known| {
            receipt_changed(known, |receipt| change(&mut receipt.phases[0]));
        });
        codes(&judged(&state, &policy(PhaseId::Final)))
    };
    let stage = |entry: &mut PhaseEntry, stage| {
        entry.fixups = Some(FixupReceipt {
            stage,
            patch: None,
            files: Vec::new(),
        });
    };
    let changes: [&dyn Fn(&mut PhaseEntry); 3] = [
        &|entry| (entry.attempts, entry.llm) = (0, None),
        &|entry| entry.packet = None,
        &|entry| entry.llm.as_mut().unwrap().provider = None,
    ];
    for phase in PhaseId::ALL {
        for change in changes {
            assert_eq!(judge(phase, change), ["gate-evidence-missing"], "{phase}");
            for of_nobody in [FixupStage::Applied, FixupStage::None] {
                let codes = judge(phase, &|entry| {
                    change(entry);
                    stage(entry, of_nobody);
                });
                assert_eq!(
                    codes.is_empty(),
                    phase == PhaseId::Fixup,
                    "{phase} {of_nobody:?}: {codes:?}"
                );
            }
        }
    }
    let proposed = judge(PhaseId::Fixup, &|entry| {
        entry.llm = None;
        stage(entry, FixupStage::Pending);
    });
    assert_eq!(proposed, ["(gate-fixups-pending)", "gate-evidence-missing"]);
}

#[test]
fn impossible_times_in_receipt_are_refused() {
    let day = i64::try_from(DAY.as_millis()).unwrap();
    let minute = 60_000;
    let judge = |change: &dyn Fn(&mut SpecReceipt)| {
        let state = changed(
            done_up_to(Some(PhaseId::Tasks), noon()),
            PhaseId::Tasks,
            |known| {
                receipt_changed(known, change);
            },
        );
        codes(&judge_gate(
            &state,
            &GatePolicy::default(),
            later(noon(), 2 * day),
            ClockSource::System,
        ))
    };
    let named = |receipt: &mut SpecReceipt, stamp: &str| {
        receipt.receipt_id = format!("tasks-{stamp}-0003");
    };
    let contradictory: [&dyn Fn(&mut SpecReceipt); 7] = [
        &|receipt| receipt.emitted_at = Some(later(noon(), -30 * day)),
        &|receipt| receipt.phases[0].finished_at = Some("2001-01-01T00:00:00Z".parse().unwrap()),
        &|receipt| receipt.phases[0].finished_at = Some("2999-01-01T00:00:00Z".parse().unwrap()),
        &|receipt| receipt.phases[0].started_at = Some(later(noon(), -1_000)),
        &|receipt| receipt.phases[0].started_at = Some(later(noon(), 1_000)),
        &|receipt| named(receipt, "20200101-000000"),
        &|receipt| named(receipt, "20261399-990000"),
    ];
    for (place, change) in contradictory.into_iter().enumerate() {
        assert_eq!(judge(change), ["gate-evidence-contradictory"], "{place}");
    }
    let missing: [&dyn Fn(&mut SpecReceipt); 3] = [
        &|receipt| receipt.emitted_at = None,
        &|receipt| receipt.phases[0].started_at = None,
        &|receipt| receipt.phases[0].finished_at = None,
    ];
    for change in missing {
        assert_eq!(judge(change), ["gate-evidence-missing"]);
    }
    // A phase takes time, and a clock may have been corrected slightly in the meantime.
    let fine: [&dyn Fn(&mut SpecReceipt); 2] = [
        &|receipt| {
            receipt.phases[0].finished_at = Some(later(noon(), day));
            receipt.emitted_at = Some(later(noon(), day));
        },
        &|receipt| {
            receipt.phases[0].finished_at = Some(later(noon(), -minute));
            receipt.emitted_at = Some(later(noon(), -minute));
        },
    ];
    for change in fine {
        assert_eq!(judge(change), [""; 0]);
    }
    // The age is counted from the oldest time: a receipt that was written late makes no success younger.
    let state = changed(
        done_up_to(Some(PhaseId::Tasks), noon()),
        PhaseId::Tasks,
        |known| {
            receipt_changed(known, |receipt| {
                receipt.emitted_at = Some(later(noon(), 2 * day))
            });
        },
    );
    let limit = GatePolicy {
        max_phase_age: Some(DAY),
        ..GatePolicy::default()
    };
    let verdict = judge_gate(&state, &limit, later(noon(), 2 * day), ClockSource::System);
    assert_eq!(codes(&verdict), ["gate-phase-too-old"]);
}

#[test]
fn undone_fixup_counts_as_pending() {
    let state = SpecState {
        fixups_undone: vec!["src/a.rs".to_owned(), "src/b.rs".to_owned()],
        ..done_up_to(Some(PhaseId::Tasks), noon())
    };
    let verdict = judged(&state, &GatePolicy::default());
    assert_eq!(codes(&verdict), ["(gate-fixup-not-in-tree)"]);
    assert_eq!(verdict.findings()[0].subject, "src/a.rs and 1 more");
    let strict = GatePolicy {
        pending_fixups: OnPendingFixups::Refuse,
        ..GatePolicy::default()
    };
    assert_eq!(codes(&judged(&state, &strict)), ["gate-fixup-not-in-tree"]);
}

#[test]
fn a_receipt_from_elsewhere_is_a_warning() {
    let state = SpecState {
        not_from_here: vec!["tasks-20260131-120000-0003.json".to_owned()],
        ..done_up_to(Some(PhaseId::Tasks), noon())
    };
    let verdict = judged(&state, &GatePolicy::default());
    assert!(verdict.passes());
    assert_eq!(codes(&verdict), ["(gate-receipt-not-from-here)"]);
}

#[test]
fn apply_hint_appears_only_for_applicable_fixups() {
    let hint = |state: &SpecState| {
        judged(state, &policy(PhaseId::Requirements)).findings()[0]
            .hint
            .clone()
    };
    let ready = changed(
        done_up_to(Some(PhaseId::Fixup), noon()),
        PhaseId::Fixup,
        |known| pending(known, 1),
    );
    assert!(hint(&ready).contains("--apply-fixups"));
    let stale = changed(ready.clone(), PhaseId::Fixup, |known| {
        known.inputs[1].found = FileState::Differs
    });
    let failed = changed(ready, PhaseId::Fixup, |known| {
        known.newest = Some(failure(PhaseId::Fixup, 9, noon()));
        known.newest_real = known.newest.clone();
    });
    for state in [stale, failed] {
        let hint = hint(&state);
        assert!(
            hint.contains("--phase fixup`") && !hint.contains("--apply-fixups"),
            "{hint}"
        );
    }
}

#[test]
fn fixups_applied_by_failure_are_not_pending() {
    let state = changed(
        done_up_to(Some(PhaseId::Fixup), noon()),
        PhaseId::Fixup,
        |known| {
            pending(known, 1);
            let mut failed = failure(PhaseId::Fixup, 9, noon());
            let mut fixups = known.last_success.as_ref().unwrap().phases[0]
                .fixups
                .clone()
                .unwrap();
            fixups.stage = FixupStage::Applied;
            failed.phases[0].fixups = Some(fixups);
            known.newest = Some(failed);
            known.newest_real = known.newest.clone();
        },
    );
    let policy = GatePolicy {
        pending_fixups: OnPendingFixups::Refuse,
        ..policy(PhaseId::Fixup)
    };
    let verdict = judged(&state, &policy);
    assert_eq!(codes(&verdict), ["gate-phase-failed"]);
    let hint = &verdict.findings()[0].hint;
    assert!(
        hint.contains("crucible resume export-data --phase fixup --apply-fixups"),
        "{hint}"
    );
}

/// A modification of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Fine,
    DryRunAfter,
    NeverRan,
    OnlyDry,
    OnlyFailed,
    FailedAfter,
    ExitDisagrees,
    SaysDryAndDone,
    NoEntry,
    SecondEntryFailed,
    NoOutputs,
    OtherOutput,
    NoInputs,
    NoExitCode,
    NoClock,
    NoDigest,
    NoPipeline,
    ArtifactGone,
    ArtifactEdited,
    NotTracked,
    MadeFromOther,
    Pinned,
    Uncontrolled,
    FromFuture,
    OfOtherSpec,
}

impl Fate {
    const ALL: [Self; 25] = [
        Self::Fine,
        Self::DryRunAfter,
        Self::NeverRan,
        Self::OnlyDry,
        Self::OnlyFailed,
        Self::FailedAfter,
        Self::ExitDisagrees,
        Self::SaysDryAndDone,
        Self::NoEntry,
        Self::SecondEntryFailed,
        Self::NoOutputs,
        Self::OtherOutput,
        Self::NoInputs,
        Self::NoExitCode,
        Self::NoClock,
        Self::NoDigest,
        Self::NoPipeline,
        Self::ArtifactGone,
        Self::ArtifactEdited,
        Self::NotTracked,
        Self::MadeFromOther,
        Self::Pinned,
        Self::Uncontrolled,
        Self::FromFuture,
        Self::OfOtherSpec,
    ];

    /// The phase with this modification; `at` is when it ran.
    fn befall(self, phase: PhaseId, place: u64, at: Timestamp) -> PhaseState {
        let mut receipt = success(phase, place, at);
        let mut entry = receipt.phases.remove(0);
        let mut failed = None;
        match self {
            Self::ExitDisagrees => receipt.exit_code = Some(3),
            Self::SaysDryAndDone => receipt.dry_run = true,
            Self::NoEntry => entry.phase_id = "deploy".to_owned(),
            Self::SecondEntryFailed => failed = Some(failure(phase, place, at).phases.remove(0)),
            Self::NoOutputs => entry.outputs.clear(),
            Self::OtherOutput => entry.outputs = vec![record("artifacts/notes.md")],
            Self::NoInputs => entry.inputs.clear(),
            Self::NoExitCode => receipt.exit_code = None,
            Self::NoClock => receipt.clock = None,
            Self::NoDigest => receipt.digest = None,
            Self::Pinned => receipt.clock = Some(ClockSource::Pinned),
            Self::Uncontrolled => {
                receipt.pipeline = Some(PipelineReceipt {
                    execution_strategy: ExecutionStrategy::ExternalTool,
                });
            }
            Self::NoPipeline => receipt.pipeline = None,
            Self::FromFuture => receipt.emitted_at = Some(later(noon(), 1)),
            Self::OfOtherSpec => receipt.spec_id = "other".to_owned(),
            _ => {}
        }
        receipt.phases.push(entry);
        receipt.phases.extend(failed);
        let mut known = finished_phase(phase, receipt);
        match self {
            Self::NeverRan => known = untouched(phase),
            Self::OnlyDry => {
                known = PhaseState {
                    newest: Some(dry_run(phase, place, at)),
                    ..untouched(phase)
                }
            }
            Self::DryRunAfter => known.newest = Some(dry_run(phase, place + 50, at)),
            Self::OnlyFailed | Self::FailedAfter => {
                let newest = Some(failure(phase, place + 50, at));
                let before = if self == Self::OnlyFailed {
                    untouched(phase)
                } else {
                    known
                };
                known = PhaseState {
                    newest: newest.clone(),
                    newest_real: newest,
                    ..before
                };
            }
            Self::ArtifactGone => known.outputs[0].found = FileState::Missing,
            Self::ArtifactEdited => known.outputs[0].found = FileState::Differs,
            Self::NotTracked => known.outputs.clear(),
            Self::MadeFromOther => known.inputs[0].found = FileState::Differs,
            _ => {}
        }
        known
    }

    /// The code that a gate which requires the phase reports.
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Fine | Self::DryRunAfter => None,
            Self::NeverRan | Self::OnlyDry => Some("gate-phase-missing"),
            Self::OnlyFailed | Self::FailedAfter => Some("gate-phase-failed"),
            Self::ExitDisagrees
            | Self::SaysDryAndDone
            | Self::NoEntry
            | Self::SecondEntryFailed => Some("gate-evidence-contradictory"),
            Self::NoOutputs
            | Self::OtherOutput
            | Self::NoInputs
            | Self::NoExitCode
            | Self::NoClock
            | Self::NoDigest
            | Self::NoPipeline => Some("gate-evidence-missing"),
            Self::ArtifactGone | Self::NotTracked => Some("gate-artifact-missing"),
            Self::ArtifactEdited => Some("gate-artifact-differs"),
            Self::MadeFromOther => Some("gate-phase-stale"),
            Self::Pinned => Some("gate-clock-pinned"),
            Self::Uncontrolled => Some("gate-strategy-uncontrolled"),
            Self::FromFuture => Some("gate-receipt-from-future"),
            Self::OfOtherSpec => Some("gate-receipt-misplaced"),
        }
    }

    /// Whether there is a success with a known age.
    fn has_age(self) -> bool {
        !matches!(self, Self::NeverRan | Self::OnlyDry | Self::OnlyFailed)
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![3 => Just(Fate::Fine), 2 => proptest::sample::select(Fate::ALL.to_vec())]
}

mod properties {
    use super::*;

    proptest! {
        /// A spec passes exactly if no required phase was modified, no receipt is damaged, and age
        /// and fixups meet the policy. Each problem is reported once under its own code.
        #[test]
        fn verdict_matches_the_generated_state(
            fates in proptest::collection::vec(fate(), 6),
            asked in proptest::sample::select(PhaseId::ALL.to_vec()),
            minutes_old in 0i64..3_000,
            limit_minutes in proptest::option::of(0u64..3_000),
            fixups in 0usize..3,
            refuse in any::<bool>(),
            damaged in proptest::option::weighted(0.2, proptest::sample::select(PhaseId::ALL.to_vec())),
        ) {
            let at = later(noon(), -minutes_old * 60_000);
            let phases = PhaseId::ALL.into_iter().zip(&fates).zip(1..);
            let mut state = SpecState {
                phases: phases.map(|((phase, fate), place)| fate.befall(phase, place, at)).collect(),
                ..done_up_to(None, noon())
            };
            if fixups > 0 {
                pending(&mut state.phases[4], fixups);
            }
            if let Some(phase) = damaged {
                let kind = ReceiptProblemKind::DigestDiffers;
                state.problems.push(ReceiptProblem { file: "x.json".to_owned(), phase: Some(phase), kind });
            }
            let policy = GatePolicy {
                min_phase: asked,
                pending_fixups: if refuse { OnPendingFixups::Refuse } else { OnPendingFixups::Allow },
                max_phase_age: limit_minutes.map(|minutes| Duration::from_secs(minutes * 60)),
            };

            let fate_of = |phase: PhaseId| fates[PhaseId::ALL.iter().position(|other| *other == phase).unwrap()];
            let mut expected: Vec<String> =
                asked.up_to().filter_map(|phase| fate_of(phase).code()).map(str::to_owned).collect();
            // A recorded output that was not written is missing as well.
            expected.extend(damaged.map(|_| "gate-receipt-edited".to_owned()));
            let too_old = limit_minutes.is_some_and(|most| minutes_old > i64::try_from(most).unwrap());
            if too_old && fate_of(asked).has_age() {
                expected.push("gate-phase-too-old".to_owned());
            }
            let has_fixups = fixups > 0 && state.phases[4].last_success.is_some();
            if has_fixups {
                expected.push(if refuse { "gate-fixups-pending" } else { "(gate-fixups-pending)" }.to_owned());
            }
            expected.sort();
            let findings = gate_findings(&state, &policy, noon(), ClockSource::System);
            let verdict = judge_gate(&state, &policy, noon(), ClockSource::System);
            prop_assert_eq!(codes(&verdict), expected.clone());
            let refused = expected.iter().any(|code| !code.starts_with('('));
            prop_assert_eq!(verdict.passes(), !refused);

            let report = GateReport::new(&state, &policy, noon(), ClockSource::System, &findings, &[]);
            prop_assert_eq!(report.verdict == Outcome::Pass, !refused);
            prop_assert_eq!(report.exit_status().code(), u8::from(refused), "0 or 1 and nothing else");
            prop_assert_eq!(report.findings.len() as u64 + report.findings_left_out, verdict.findings().len() as u64);
        }
    }
}
