//! Judges a record that was read. Pure.

use std::collections::BTreeMap;

use crucible_attest::trailer_values;
use crucible_model::{ClockSource, Code, Digest, Finding, Verdict, to_canonical_json};
use crucible_repo::{BranchReach, CommitObject, Oid, RUN_TRAILER};
use crucible_verify::{GateLevel, VerifyReport, VerifyResult};

use super::RecordCheck;
use super::reading::{CommitRead, FileRead, LoadedRecord, StoredBytes, TreeRead};
use super::unrecorded::{FilesListed, looks_like_an_artifact};
use crate::attempt::{self, AttemptOutcome};
use crate::contract::{Plan, PlanStatus, Review, ReviewVerdict, Signature};
use crate::document::{self, Document};
use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::journal::{event_line, is_pinned, render_trace};
use crate::land::Landing;
use crate::layout;
use crate::progress::pending_request;
use crate::receipt::RunReceipt;
use crate::recorded::{recorded_files, state_of_events};
use crate::restore::rejection_review;
use crate::state::RunState;

const UNKNOWN_RUN: Code = Code::new("record-unknown-run");
const RUN_UNREADABLE: Code = Code::new("record-run-unreadable");
const OTHER_RUN: Code = Code::new("record-other-run");
const EVENTS_CUT: Code = Code::new("record-events-cut");
const EVENTS_ADDED: Code = Code::new("record-events-added");
const EVENTS_EDITED: Code = Code::new("record-events-edited");
const FILE_MISSING: Code = Code::new("record-file-missing");
const FILE_EDITED: Code = Code::new("record-file-edited");
const FILE_REFUSED: Code = Code::new("record-file-refused");
const BUNDLE_REMADE: Code = Code::new("record-bundle-remade");
const ARTIFACT_MISSING: Code = Code::new("record-artifact-missing");
const ARTIFACT_EDITED: Code = Code::new("record-artifact-edited");
const COPY_EDITED: Code = Code::new("record-copy-edited");
const TRACE_EDITED: Code = Code::new("record-trace-edited");
const RECEIPT_EDITED: Code = Code::new("record-receipt-edited");
const DOCUMENT_INVALID: Code = Code::new("record-document-invalid");
const SIGNATURE_BROKEN: Code = Code::new("record-signature-broken");
const REVIEW_BLOCKS: Code = Code::new("record-review-blocks");
const REPORT_DIFFERS: Code = Code::new("record-report-differs");
const TREE_DIFFERS: Code = Code::new("record-tree-differs");
const TREE_UNKNOWN: Code = Code::new("record-tree-unknown");
const COMMIT_MISSING: Code = Code::new("record-commit-missing");
const COMMIT_DIFFERS: Code = Code::new("record-commit-differs");
const COMMIT_UNREACHED: Code = Code::new("record-commit-unreached");
const FILE_UNRECORDED: Code = Code::new("record-file-unrecorded");
const FILES_UNLISTED: Code = Code::new("record-files-unlisted");
const ROW_EDITED: Code = Code::new("record-row-edited");
const BOOKINGS_LOST: Code = Code::new("record-bookings-lost");
const CLOCK_PINNED: Code = Code::new("record-clock-pinned");
const TIME_BACKWARDS: Code = Code::new("record-time-backwards");
const RECORDING_UNREADABLE: Code = Code::new("record-recording-unreadable");

const FROM_LEDGER: &str = "restore it from the ledger (`crucible ledger show`) or from a copy";

pub(super) fn judge(read: &LoadedRecord) -> RecordCheck {
    let reached = reached(read);
    let recorded = recorded_files(&read.events);
    let mut judge = Judge {
        read,
        verdict: Verdict::default(),
    };
    if reached.is_none() {
        let hint = "the ledger has no event of this run, so its directory is not trusted";
        judge.error(UNKNOWN_RUN, &read.name, hint);
    } else {
        judge.verdict.merge(read.chain.clone());
        judge.run();
        judge.events();
        judge.files(&recorded);
        judge.copies(reached);
        judge.unrecorded(reached);
        judge.time();
        judge.derived(reached);
        judge.recording();
        judge.bookings();
        judge.signature();
        judge.report();
        judge.full_gates();
        judge.landing();
    }
    let commit = match &read.commit {
        CommitRead::Found(oid, ..) => Some(oid.clone()),
        CommitRead::NotLanded | CommitRead::NoRepository(_) | CommitRead::Missing(_) => None,
    };
    RecordCheck {
        reached,
        events: read.events.len() as u64,
        files: recorded.len() as u64,
        commit,
        verdict: judge.verdict,
    }
}

/// Returns the run's state by its events; a run that waits for a person is blocked, as its status says.
fn reached(read: &LoadedRecord) -> Option<RunState> {
    let recorded_state = state_of_events(&read.events);
    if has_ended(recorded_state) || pending_request(&read.events).is_none() {
        recorded_state
    } else {
        Some(RunState::Blocked)
    }
}

fn has_ended(reached: Option<RunState>) -> bool {
    matches!(
        reached,
        Some(RunState::Verified | RunState::Landed | RunState::Failed | RunState::Declined)
    )
}

struct Judge<'r> {
    read: &'r LoadedRecord,
    verdict: Verdict,
}

impl<'r> Judge<'r> {
    fn error(&mut self, code: Code, subject: &str, hint: impl Into<String>) {
        self.verdict.push(Finding::error(code, subject, hint));
    }

    fn has(&self, kind: EventKind) -> bool {
        self.read
            .events
            .iter()
            .any(|event| event.event == kind.name())
    }

    fn file(&self, path: &str) -> &'r FileRead {
        self.read.files.get(path).unwrap_or(&FileRead::Missing)
    }

    fn digest(&self, path: &str) -> Option<Digest> {
        self.file(path).digest()
    }

    fn text(&self, path: &str) -> Option<&'r str> {
        std::str::from_utf8(self.file(path).bytes()?).ok()
    }

    /// Parses a document of the run if its file exists; an invalid document is a finding.
    fn document<T: Document>(&mut self, path: &str) -> Option<T> {
        let bytes = self.file(path).bytes()?;
        match document::read(bytes) {
            Ok(document) => Some(document),
            Err(fault) => {
                self.error(
                    DOCUMENT_INVALID,
                    path,
                    format!("it cannot be read: {fault}"),
                );
                None
            }
        }
    }

    /// Checks that the start record in the ledger is that of this run.
    fn run(&mut self) {
        match &self.read.record {
            None => self.error(
                RUN_UNREADABLE,
                layout::RUN,
                "the ledger lacks the run's start record; restore the ledger from a copy",
            ),
            Some(record) if record.run_id.as_str() != self.read.name => self.error(
                OTHER_RUN,
                &self.read.name,
                format!(
                    "the start record is that of run {}, not of this one",
                    record.run_id
                ),
            ),
            Some(_) => {}
        }
    }

    /// Checks that `events.jsonl` equals the ledger, line by line.
    fn events(&mut self) {
        let path = layout::EVENTS;
        let mut expected = Vec::new();
        for event in &self.read.events {
            match event_line(event) {
                Ok(line) => expected.extend(line),
                Err(error) => self.error(EVENTS_EDITED, path, error.to_string()),
            }
        }
        let read = self.read;
        let present = match read.files.get(path).unwrap_or(&FileRead::Missing) {
            FileRead::Bytes(bytes) => bytes,
            FileRead::Missing => {
                let hint = "it is missing; restore it from the ledger with `crucible run advance`";
                return self.error(FILE_MISSING, path, hint);
            }
            // It is read no further than the ledger's events reach.
            FileRead::TooLong => {
                let hint = "it has lines that are not in the ledger; remove them";
                return self.error(EVENTS_ADDED, path, hint);
            }
            FileRead::Refused(why) => return self.error(FILE_REFUSED, path, why.clone()),
            FileRead::Hashed(_) => return,
        };
        if *present == expected {
            return;
        }
        if expected.starts_with(present) {
            let lines = present.iter().filter(|byte| **byte == b'\n').count();
            let hint = format!(
                "it ends after {lines} of {} events; complete it from the ledger with `crucible run advance`",
                self.read.events.len()
            );
            return self.error(EVENTS_CUT, path, hint);
        }
        if present.starts_with(&expected) {
            let hint = "it has lines that are not in the ledger; remove them";
            return self.error(EVENTS_ADDED, path, hint);
        }
        let lines = |bytes: &[u8]| {
            bytes
                .split(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect::<Vec<_>>()
        };
        let same = lines(present)
            .iter()
            .zip(&lines(&expected))
            .take_while(|(one, other)| one == other)
            .count();
        let hint = "this line differs from the ledger; remove the file and restore it with `crucible run advance`";
        self.error(EVENTS_EDITED, &format!("{path}:{}", same + 1), hint);
    }

    /// Checks that every recorded file is unchanged, and that the ledger has its content.
    fn files(&mut self, recorded: &BTreeMap<&str, &str>) {
        for (path, digest) in recorded {
            let digest: Option<Digest> = digest.parse().ok();
            match self.file(path) {
                FileRead::Missing if *path == layout::BUNDLE => {}
                FileRead::Missing => {
                    self.error(FILE_MISSING, path, format!("it is missing; {FROM_LEDGER}"))
                }
                FileRead::Refused(why) => {
                    self.error(FILE_REFUSED, path, format!("{why}; {FROM_LEDGER}"))
                }
                file if file.digest() == digest => {}
                // It is derived, and created again if missing.
                _ if *path == layout::BUNDLE => {
                    let hint = "it is not the recorded bundle; create a new one with `crucible run bundle`";
                    self.verdict
                        .push(Finding::warning(BUNDLE_REMADE, *path, hint));
                }
                _ => {
                    let hint = format!("it was changed after it was recorded; {FROM_LEDGER}");
                    self.error(FILE_EDITED, path, hint);
                }
            }
            match digest.and_then(|digest| self.read.stored_bytes.get(&digest)) {
                Some(StoredBytes::Missing) => self.error(
                    ARTIFACT_MISSING,
                    path,
                    "its content is missing from the ledger; restore the ledger from a copy",
                ),
                Some(StoredBytes::Altered) => self.error(
                    ARTIFACT_EDITED,
                    path,
                    "its content in the ledger was edited; restore the ledger from a copy",
                ),
                Some(StoredBytes::Intact) | None => {}
            }
        }
    }

    /// Checks that the copies outside `attempts/` match the last attempt that got so far. The review of a
    /// refused patch follows from its outcome.
    fn copies(&mut self, reached: Option<RunState>) {
        let ends = [
            EventKind::PatchRejected,
            EventKind::AttemptEnded,
            EventKind::ChangeVerifiedAgain,
        ]
        .map(EventKind::name);
        let ended: Vec<&'r str> = self
            .read
            .events
            .iter()
            .filter(|event| ends.contains(&event.event.as_str()))
            .filter_map(|event| event.path.as_deref())
            .collect();
        let mut review = None;
        for outcome in &ended {
            let path = outcome.replace(attempt::OUTCOME, attempt::REVIEW);
            let recorded = recorded_files(&self.read.events).contains_key(path.as_str());
            let reason = if recorded {
                self.digest(&path)
            } else {
                self.review_of(outcome)
            };
            if !recorded && reason.is_some() {
                self.compare_copy(&path, reason, outcome);
            }
            review = reason.map(|says| (path, says));
        }
        if !has_ended(reached) {
            return;
        }
        if let Some((original, says)) = review {
            self.compare_copy(layout::REVIEW_PATCH, Some(says), &original);
        }
        // The patch is compared with the report below, the review above.
        let compared = |copy: &str| copy != layout::PATCH && copy != layout::REVIEW_PATCH;
        for (copy, name) in attempt::COPIES
            .into_iter()
            .filter(|(copy, _)| compared(copy))
        {
            let originals = ended
                .iter()
                .rev()
                .map(|outcome| outcome.replace(attempt::OUTCOME, name));
            let recorded = recorded_files(&self.read.events);
            let Some(original) = originals
                .into_iter()
                .find(|path| recorded.contains_key(path.as_str()))
            else {
                continue;
            };
            // The passing report is also compared by content.
            if copy == layout::VERIFY_REPORT && self.has(EventKind::VerifyPassed) {
                continue;
            }
            let reason = recorded
                .get(original.as_str())
                .and_then(|digest| digest.parse().ok());
            self.compare_copy(copy, reason, &original);
        }
    }

    /// The digest of the review that a refused attempt amounts to.
    fn review_of(&self, outcome: &str) -> Option<Digest> {
        let outcome: AttemptOutcome = document::read(self.file(outcome).bytes()?).ok()?;
        Some(Digest::compute(rejection_review(&outcome).as_bytes()))
    }

    fn compare_copy(&mut self, copy: &str, digest: Option<Digest>, original: &str) {
        match self.file(copy) {
            FileRead::Missing => self.error(
                FILE_MISSING,
                copy,
                format!("it is missing; {original} has its content"),
            ),
            FileRead::Refused(why) => self.error(FILE_REFUSED, copy, why.clone()),
            file if file.digest() == digest => {}
            _ => self.error(COPY_EDITED, copy, format!("it differs from {original}")),
        }
    }

    /// Checks that every file is recorded by an event. In an unfinished run, an unrecorded file may be from
    /// an interrupted step.
    fn unrecorded(&mut self, reached: Option<RunState>) {
        let ended = has_ended(reached);
        let finding = |code: Code, is_error: bool, subject: String, hint: String| match is_error {
            true => Finding::error(code, subject, hint),
            false => Finding::warning(code, subject, hint),
        };
        for path in &self.read.unrecorded.paths {
            let hint = "no event of the run records it, so it is not trusted; remove it".to_owned();
            let is_error = ended && looks_like_an_artifact(path);
            self.verdict.push(finding(
                FILE_UNRECORDED,
                is_error,
                path.to_string_lossy().into_owned(),
                hint,
            ));
        }
        if let FilesListed::First(most) = self.read.unrecorded.listed {
            let hint = format!(
                "it has more than {most} files, more than a run creates, and the rest was not checked; remove files that are not the run's"
            );
            self.verdict
                .push(finding(FILES_UNLISTED, ended, self.read.name.clone(), hint));
        }
    }

    /// Checks that times are real and never decrease.
    fn time(&mut self) {
        let events = &self.read.events;
        let at = |index: usize| format!("{}:{}", layout::EVENTS, index + 1);
        let of_record = self
            .read
            .record
            .as_ref()
            .is_some_and(|record| record.clock == ClockSource::Pinned);
        let pinned = events.iter().position(is_pinned).or(of_record.then_some(0));
        if let Some(index) = pinned {
            if self.has(EventKind::Landed) {
                let hint = "its time was pinned (CRUCIBLE_CLOCK), and such a run must never land, but it did";
                self.error(CLOCK_PINNED, &at(index), hint);
            } else {
                let hint = "its time was pinned (CRUCIBLE_CLOCK), so the run satisfies no gate and cannot land; start a new run without it";
                self.verdict
                    .push(Finding::warning(CLOCK_PINNED, at(index), hint));
            }
        }
        if let Some(index) = events.windows(2).position(|pair| pair[1].ts < pair[0].ts) {
            let hint = "its time is earlier than that of the event before it: the machine's clock was set back, or is wrong";
            self.verdict
                .push(Finding::warning(TIME_BACKWARDS, at(index + 1), hint));
        }
    }

    /// Checks that every recorded call is booked, and that the rows match the chain, so the ledger has the
    /// used budget.
    fn bookings(&mut self) {
        let Some(booked) = &self.read.booked else {
            return;
        };
        if let Some(lost) = booked.lost {
            self.error(
                BOOKINGS_LOST,
                &self.read.name,
                RunError::BookingsLost { lost }.to_string(),
            );
        }
        for fault in &booked.row_faults {
            let hint = format!("{}; restore the ledger from a copy", fault.problem);
            self.error(ROW_EDITED, &fault.subject, hint);
        }
    }

    /// Checks that trace and receipt match the events: all events of an ended run, else a prefix.
    fn derived(&mut self, reached: Option<RunState>) {
        let ended = has_ended(reached);
        let events = &self.read.events;
        let story = render_trace(events);
        // A landing that was cut off is written down when it is tried again.
        let begins = [
            EventKind::FullGatesRun,
            EventKind::HeldOutRun,
            EventKind::LandingStarted,
        ]
        .map(EventKind::name);
        let landing = events
            .iter()
            .position(|event| begins.contains(&event.event.as_str()));
        let until_landing = landing
            .filter(|_| reached != Some(RunState::Landed))
            .map(|at| render_trace(&events[..at]));
        let written = |bytes: &[u8], least: &str| {
            bytes.len() >= least.len()
                && story.as_bytes().starts_with(bytes)
                && bytes.ends_with(b"\n")
        };
        self.compare_derived(layout::TRACE, TRACE_EDITED, ended, |bytes| {
            let is_until_landing = until_landing
                .as_ref()
                .is_some_and(|least| written(bytes, least));
            bytes == story.as_bytes()
                || is_until_landing
                || !ended && story.as_bytes().starts_with(bytes)
        });
        let Some(record) = &self.read.record else {
            return;
        };
        let full_run_receipt = RunReceipt::new(record, &self.read.events);
        let text = |receipt: &RunReceipt| {
            to_canonical_json(receipt).map(|text| [text, b"\n".to_vec()].concat())
        };
        self.compare_derived(layout::RECEIPT, RECEIPT_EDITED, ended, |bytes| {
            let mut receipt = full_run_receipt.clone();
            if !ended && let Ok(present) = serde_json::from_slice::<RunReceipt>(bytes) {
                receipt.phases.truncate(present.phases.len());
            }
            text(&receipt).is_ok_and(|text| text == bytes)
        });
    }

    fn compare_derived(
        &mut self,
        path: &str,
        code: Code,
        ended: bool,
        fits: impl FnOnce(&[u8]) -> bool,
    ) {
        let second_text = "derive it from the ledger again with `crucible run advance`";
        match self.file(path) {
            FileRead::Missing if !ended => {}
            FileRead::Missing => {
                self.error(FILE_MISSING, path, format!("it is missing; {second_text}"))
            }
            FileRead::Refused(why) => {
                self.error(FILE_REFUSED, path, format!("{why}; {second_text}"))
            }
            FileRead::Bytes(bytes) if fits(bytes) => {}
            FileRead::Bytes(_) | FileRead::Hashed(_) | FileRead::TooLong => {
                self.error(
                    code,
                    path,
                    format!("it does not match the events; {second_text}"),
                );
            }
        }
    }

    fn recording(&mut self) {
        match &self.read.recording {
            Ok(verdict) => self.verdict.merge(verdict.clone()),
            Err(why) => self.error(RECORDING_UNREADABLE, layout::CASSETTE, why.clone()),
        }
    }

    /// The plan is the reviewed draft, signed; the signature covers it and its reviews; each review approves the draft.
    fn signature(&mut self) {
        if !self.has(EventKind::PlanSigned) {
            return;
        }
        let path = layout::SIGNATURE;
        if let Some(signature) = self.document::<Signature>(path) {
            if Some(signature.plan) != self.digest(layout::PLAN) {
                self.error(
                    SIGNATURE_BROKEN,
                    layout::PLAN,
                    "the signature covers a different plan",
                );
            }
            for review in [layout::REVIEW_CONTRACT, layout::REVIEW_COST] {
                if !signature.reviews.contains_key(review) {
                    self.error(
                        SIGNATURE_BROKEN,
                        review,
                        "the signature does not name this review",
                    );
                }
            }
            for (review, digest) in &signature.reviews {
                let is_review = layout::REVIEWS.contains(&review.as_str());
                if !is_review || self.digest(review) != Some(*digest) {
                    self.error(
                        SIGNATURE_BROKEN,
                        review,
                        "the signature covers a different review",
                    );
                }
            }
        }
        let draft = self.digest(layout::PLAN_DRAFT);
        for review in layout::REVIEWS {
            let Some(text) = self.text(review) else {
                continue;
            };
            match Review::parse_verdict(text) {
                Ok((ReviewVerdict::Approve, subject)) if Some(subject) == draft => {}
                Ok((ReviewVerdict::Approve, _)) => {
                    self.error(
                        REVIEW_BLOCKS,
                        review,
                        "it approves a different draft than the signed one",
                    );
                }
                Ok((ReviewVerdict::Block, _)) => self.error(
                    REVIEW_BLOCKS,
                    review,
                    "it blocks the plan, but the plan is signed",
                ),
                Err(error) => self.error(
                    REVIEW_BLOCKS,
                    review,
                    format!("it has no valid verdict: {error}"),
                ),
            }
        }
        if let (Some(draft), Some(plan)) = (self.text(layout::PLAN_DRAFT), self.text(layout::PLAN))
        {
            let signed = Plan::parse(draft).map(|draft| {
                Plan {
                    status: PlanStatus::Signed,
                    ..draft
                }
                .render()
            });
            if signed.ok().as_deref() != Some(plan) {
                self.error(
                    SIGNATURE_BROKEN,
                    layout::PLAN,
                    "it differs from the reviewed draft",
                );
            }
        }
    }

    /// Checks that the passing report names this plan, this patch and its tree.
    fn report(&mut self) {
        let passed = self
            .read
            .events
            .iter()
            .rfind(|event| event.event == EventKind::VerifyPassed.name());
        let Some(original) = passed.and_then(|event| event.path.as_deref()) else {
            return;
        };
        let patch = original.replace(attempt::REPORT, attempt::PATCH);
        for (copy, original) in [
            (layout::VERIFY_REPORT, original),
            (layout::PATCH, patch.as_str()),
        ] {
            match self.file(copy) {
                FileRead::Missing => self.error(
                    FILE_MISSING,
                    copy,
                    format!("it is missing; {original} is identical"),
                ),
                FileRead::Refused(why) => self.error(FILE_REFUSED, copy, why.clone()),
                file if file.digest() == self.digest(original) => {}
                _ => self.error(COPY_EDITED, copy, format!("it differs from {original}")),
            }
        }
        let path = layout::VERIFY_REPORT;
        let Some(report) = self.passing_report(path) else {
            return;
        };
        match &self.read.tree {
            TreeRead::Made(tree) if report.tree.as_deref() == Some(tree.as_str()) => {}
            TreeRead::Made(tree) => {
                self.error(
                    TREE_DIFFERS,
                    path,
                    format!("the patch produces tree {tree}, but the report names another tree"),
                );
            }
            TreeRead::Unknown(why) => {
                let hint = format!(
                    "cannot determine the tree that the patch produces: {why}; name the repository with --repo"
                );
                self.verdict
                    .push(Finding::warning(TREE_UNKNOWN, layout::PATCH, hint));
            }
            TreeRead::NotAsked => {}
        }
        if let CommitRead::Found(oid, commit, _) = &self.read.commit
            && report.tree.as_deref() != Some(commit.tree.as_str())
        {
            self.error(
                COMMIT_DIFFERS,
                oid.as_str(),
                "its tree is not the verified one",
            );
        }
    }

    /// Returns a report that passed and names this plan and this patch.
    fn passing_report(&mut self, path: &str) -> Option<VerifyReport> {
        let report: VerifyReport = match serde_json::from_slice(self.file(path).bytes()?) {
            Ok(report) => report,
            Err(error) => {
                self.error(
                    DOCUMENT_INVALID,
                    path,
                    format!("it cannot be read: {error}"),
                );
                return None;
            }
        };
        if report.result != VerifyResult::Pass {
            let hint = "it does not say PASS, but the ledger says that the change passed";
            self.error(REPORT_DIFFERS, path, hint);
        }
        for (what, reported, is) in [
            ("plan", report.plan_digest, self.digest(layout::PLAN)),
            ("patch", report.patch_digest, self.digest(layout::PATCH)),
        ] {
            if reported.is_none() || reported != is {
                self.error(
                    REPORT_DIFFERS,
                    path,
                    format!("it names a different {what} than this run"),
                );
            }
        }
        Some(report)
    }

    /// If gates have level `full`, checks that the last report of all gates before the landing passed for the
    /// same change.
    fn full_gates(&mut self) {
        let full = self.read.record.as_ref().is_some_and(|record| {
            record
                .settings
                .gates
                .iter()
                .any(|gate| gate.level == GateLevel::Full)
        });
        if !full || !self.has(EventKind::LandingStarted) {
            return;
        }
        let ran = self
            .read
            .events
            .iter()
            .rfind(|event| event.event == EventKind::FullGatesRun.name());
        let Some(path) = ran.and_then(|event| event.path.as_deref()) else {
            let hint = "the landing began without a report of the `full` gates";
            return self.error(REPORT_DIFFERS, layout::LANDING, hint);
        };
        let tree = |bytes: &[u8]| serde_json::from_slice::<VerifyReport>(bytes).ok()?.tree;
        let verified = self.file(layout::VERIFY_REPORT).bytes().and_then(tree);
        let Some(report) = self.passing_report(path) else {
            return;
        };
        if report.gate != GateLevel::Full || report.tree != verified {
            let hint = "it is not a report of the `full` gates on the verified tree";
            self.error(REPORT_DIFFERS, path, hint);
        }
    }

    /// The commit is the one that was landed: on the base, with the verified tree, and with trailers that name this run, its
    /// plan and its report.
    fn landing(&mut self) {
        if !self.has(EventKind::Landed) {
            return;
        }
        let Some(landing) = self.document::<Landing>(layout::LANDING) else {
            return;
        };
        if Some(landing.patch) != self.digest(layout::PATCH) {
            self.error(
                REPORT_DIFFERS,
                layout::LANDING,
                "it names a different patch than this run",
            );
        }
        match &self.read.commit {
            CommitRead::NotLanded => {
                self.error(
                    COMMIT_MISSING,
                    landing.commit.as_str(),
                    "the ledger does not record which commit landed",
                );
            }
            CommitRead::NoRepository(why) => {
                let hint = format!("cannot read the repository ({why}); name it with --repo");
                self.error(COMMIT_MISSING, landing.commit.as_str(), hint);
            }
            CommitRead::Missing(oid) => {
                let hint = "this repository does not have it; fetch it, or name the repository with --repo";
                self.error(COMMIT_MISSING, oid.as_str(), hint);
            }
            CommitRead::Found(oid, commit, on_branch) => {
                self.commit(&landing, oid, commit, on_branch)
            }
        }
    }

    fn commit(
        &mut self,
        landing: &Landing,
        oid: &Oid,
        commit: &CommitObject,
        on_branch: &Result<BranchReach, String>,
    ) {
        let lost = match on_branch {
            Ok(BranchReach::Reached) => None,
            Ok(BranchReach::NoBranch) => {
                Some("the branch that the run started from no longer exists".to_owned())
            }
            Ok(BranchReach::Unreached | BranchReach::NoCommit) => Some(
                "the branch that the run started from no longer contains it: the branch was reset"
                    .to_owned(),
            ),
            Err(why) => Some(format!(
                "cannot determine whether the branch that the run started from contains it: {why}"
            )),
        };
        if let Some(hint) = lost {
            self.verdict
                .push(Finding::warning(COMMIT_UNREACHED, oid.as_str(), hint));
        }
        let base = self.read.record.as_ref().map(|record| &record.base_commit);
        if commit.parents.first() != base || commit.parents.len() != 1 {
            self.error(
                COMMIT_DIFFERS,
                oid.as_str(),
                "its parent is not the commit that the run started from",
            );
        }
        if landing.commit != *oid || landing.tree != commit.tree {
            self.error(
                COMMIT_DIFFERS,
                oid.as_str(),
                "landing.json names a different commit or tree",
            );
        }
        if landing.message.trim_end() != commit.message.trim_end() {
            self.error(
                COMMIT_DIFFERS,
                oid.as_str(),
                "its message differs from the recorded one",
            );
        }
        let expected = [
            (RUN_TRAILER, Some(self.read.name.clone())),
            (
                "Crucible-Plan",
                self.digest(layout::PLAN).map(|digest| digest.to_string()),
            ),
            (
                "Crucible-Verify",
                self.digest(layout::VERIFY_REPORT)
                    .map(|digest| digest.to_string()),
            ),
        ];
        for (key, value) in expected {
            let Some(value) = value else { continue };
            let trailer = format!("{key}: {value}");
            if trailer_values(&commit.message, key).all(|found| found != value) {
                self.error(
                    COMMIT_DIFFERS,
                    oid.as_str(),
                    format!("it lacks the line `{trailer}`"),
                );
            }
        }
    }
}
