//! The files and warnings of attempts, with a real store and a real ledger; only the model's answer is
//! injected.

#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out projects and look at what is left"
)]

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Duration;

use crucible_host::clock::SystemClock;
use crucible_ledger::Ledger;
use crucible_llm::{
    Attempt, CallOutcome, Capabilities, CassetteHeader, LlmReceipt, LlmResult, RecordedCall,
    RecordedRequest, Recording, StructuredOutput,
};
use crucible_model::{Digest, EditFormat, ExitStatus, Untrusted, to_canonical_json};

use super::*;
use crate::fixup::{FIXUP_DIFF, FixupChoice, fixup_policy};
use crate::gate::sample::noon;
use crate::json_output::{applied_fixups, spec_status};
use crate::packet::PacketLimits;
use crate::phase_id::PhaseId;
use crate::project::SpecProject;
use crate::receipt::{FixedFile, FixupReceipt, FixupStage, ReceiptId};
use crate::source::{FileSelectors, Idea};
use crate::state::SpecState;
use crate::store::{LockClaim, PhaseOutput, SpecLock, SpecStore};

const CLOCK: SystemClock = SystemClock;

struct Fixture {
    home: tempfile::TempDir,
    store: SpecStore,
    ledger: Ledger,
}

fn fixture() -> Fixture {
    let home = tempfile::tempdir().unwrap();
    for directory in ["project/src", "data"] {
        std::fs::create_dir_all(home.path().join(directory)).unwrap();
    }
    let project = SpecProject::at(home.path().join("project"));
    let store = SpecStore::new(&project, "export-data".parse().unwrap())
        .with_records(home.path().join("fixups"))
        .with_calls(home.path().join("calls"));
    let ledger = Ledger::open(&home.path().join("data/ledger.db")).unwrap();
    Fixture {
        home,
        store,
        ledger,
    }
}

fn idea() -> Idea {
    Idea {
        text: Untrusted::new("users can export their data\n"),
        unread: Vec::new(),
        skipped_files: Vec::new(),
        notes: Vec::new(),
        places: Vec::new(),
    }
}

fn order(phase: PhaseId) -> PhaseOrder {
    PhaseOrder {
        phase,
        trial: Trial::Real,
        limits: PacketLimits::default(),
        attempts: 1,
        phase_time: Duration::from_secs(60),
        call_time: Duration::from_secs(60),
        model: String::new(),
        edit_format: EditFormat::WholeFile,
        fixups: FixupChoice::unguarded(fixup_policy(10, 1_000, Vec::new())),
        warnings: Vec::new(),
    }
}

fn kinds(run: &PhaseRun<'_>) -> Vec<String> {
    run.warnings()
        .iter()
        .map(|warning| warning.kind.clone())
        .collect()
}

impl Fixture {
    fn lock(&self) -> SpecLock {
        self.store.lock("test", LockClaim::IfFree).unwrap()
    }

    fn begin<'a>(&self, lock: &'a SpecLock, phase: PhaseId) -> PhaseRun<'a> {
        PhaseRun::begin(lock, &CLOCK, order(phase), &self.ledger).unwrap()
    }

    fn gather(&self, run: &mut PhaseRun<'_>) {
        let selectors = FileSelectors {
            root: self.store.project().root().to_owned(),
            named: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
        };
        let idea = (run.phase() == PhaseId::Requirements).then(idea);
        if let Some(idea) = &idea {
            run.lock
                .write_context("idea.md", idea.text.as_str().as_bytes())
                .unwrap();
        }
        run.gather(idea.as_ref(), selectors).unwrap();
    }

    /// Runs a phase with this text as the answer.
    fn run(&mut self, phase: PhaseId, text: &str) -> Vec<String> {
        let lock = self.lock();
        let mut run = self.begin(&lock, phase);
        self.gather(&mut run);
        let path = format!("artifacts/{}", phase.artifact());
        run.outputs = vec![PhaseOutput {
            path,
            bytes: text.as_bytes().to_vec(),
        }];
        run.succeed(&mut self.ledger).unwrap();
        kinds(&run)
    }

    /// Completes the phases up to this one.
    fn done(&mut self, last: PhaseId) {
        for phase in last.up_to() {
            self.run(phase, &format!("# {phase}\n"));
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.store.dir().join(path)
    }

    fn state(&self) -> SpecState {
        self.store.state(Some(&self.ledger)).unwrap()
    }

    /// The directory with the calls of this spec in Crucible's own directory.
    fn calls(&self) -> PathBuf {
        let calls = self.store.calls().unwrap().unwrap();
        std::fs::create_dir_all(&calls).unwrap();
        calls
    }

    fn kept(&self, folder: &str, part: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains(part)).collect()
    }
}

fn header(provider: &str, model: &str) -> CassetteHeader {
    let capabilities = Capabilities {
        edit_format: EditFormat::WholeFile,
        structured_output: StructuredOutput::JsonMode,
    };
    CassetteHeader::new(provider, model, capabilities)
}

/// A request that no attempt made, and a recording in which this provider answers it.
fn recorded(header: &CassetteHeader, by: &str) -> (Digest, Vec<u8>) {
    let request = RecordedRequest {
        model: "m".to_owned(),
        messages: Vec::new(),
        metadata: BTreeMap::new(),
    };
    let key = request.key().unwrap();
    let result = LlmResult {
        raw_response: "# Requirements: x\n".to_owned(),
        provider: by.to_owned(),
        model_used: "m".to_owned(),
        tokens_input: None,
        tokens_output: None,
        timed_out: Some(false),
        extensions: BTreeMap::new(),
    };
    let call = RecordedCall {
        key,
        spec_id: "export-data".to_owned(),
        phase_id: "requirements".to_owned(),
        request,
        attempts: vec![Attempt::Answered],
        outcome: CallOutcome::Answered(result),
        redactions: 0,
    };
    let lines = [
        to_canonical_json(header).unwrap(),
        to_canonical_json(&call).unwrap(),
    ];
    (
        key,
        lines
            .iter()
            .flat_map(|line| [&line[..], b"\n"].concat())
            .collect(),
    )
}

/// Whether an attempt with this provider reuses an answer that an earlier one left.
fn takes(fixture: &Fixture, cassette_header: &CassetteHeader, key: &Digest) -> (bool, Vec<String>) {
    let lock = fixture.lock();
    let mut run = fixture.begin(&lock, PhaseId::Requirements);
    let Recording::To(writer) = run.recording(cassette_header).unwrap() else {
        panic!("not recorded")
    };
    (writer.holds_answer(key), kinds(&run))
}

const LEFT: &str = "requirements-20260131-120000-0001.0123456789abcdef.calls.jsonl";

#[test]
fn answers_in_project_are_never_used() {
    let cassette_header = header("gateway", "m");
    let (key, bytes) = recorded(&cassette_header, "gateway");
    let fixture = fixture();
    std::fs::create_dir_all(fixture.path("context")).unwrap();
    for name in [
        "requirements.calls.jsonl",
        LEFT,
        "requirements-20260131-120000-0001.calls.jsonl",
    ] {
        std::fs::write(fixture.path("context").join(name), &bytes).unwrap();
    }
    assert_eq!(takes(&fixture, &cassette_header, &key), (false, Vec::new()));
    // The same bytes in Crucible's own directory are a paid answer.
    std::fs::write(fixture.calls().join(LEFT), &bytes).unwrap();
    assert_eq!(takes(&fixture, &cassette_header, &key), (true, Vec::new()));
    // A spec of the same name in another project does not see it.
    let other = SpecProject::at(fixture.home.path().join("data"));
    let other = SpecStore::new(&other, fixture.store.spec().clone())
        .with_calls(fixture.home.path().join("calls"));
    assert_ne!(other.calls().unwrap(), fixture.store.calls().unwrap());
}

#[test]
fn unused_answer_needs_same_provider() {
    let (key, bytes) = recorded(&header("gateway", "m"), "gateway");
    let fixture = fixture();
    let left = fixture.calls().join(LEFT);
    std::fs::write(&left, &bytes).unwrap();
    for other in [header("anthropic", "m"), header("gateway", "m2")] {
        assert_eq!(takes(&fixture, &other, &key), (false, Vec::new()));
        assert_eq!(
            std::fs::read(&left).unwrap(),
            bytes,
            "it stays for whoever asks that one again"
        );
    }
    assert!(takes(&fixture, &header("gateway", "m"), &key).0);
    // A line of another provider, under a false header or none.
    for is_complete in [true, false] {
        let (key, bytes) = recorded(&header("gateway", "m"), "anthropic");
        let line = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let fixture = self::fixture();
        std::fs::write(
            fixture.calls().join(LEFT),
            if is_complete {
                &bytes[..]
            } else {
                &bytes[line..]
            },
        )
        .unwrap();
        assert_eq!(
            takes(&fixture, &header("gateway", "m"), &key),
            (false, Vec::new())
        );
    }
}

#[test]
fn unreadable_recording_is_renamed_with_warning() {
    let cassette_header = header("gateway", "m");
    let (key, bytes) = recorded(&cassette_header, "gateway");
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("calls"), &bytes).unwrap();
    for is_link in [false, true] {
        let fixture = fixture();
        let left = fixture.calls().join(LEFT);
        match is_link {
            true => symlink(elsewhere.path().join("calls"), &left).unwrap(),
            false => std::fs::write(&left, b"{\"no\":\"recording\"}\n").unwrap(),
        }
        assert_eq!(
            takes(&fixture, &cassette_header, &key),
            (false, vec!["calls_unreadable".to_owned()])
        );
        assert!(
            fixture
                .calls()
                .join(format!("{LEFT}.unreadable"))
                .symlink_metadata()
                .is_ok()
        );
        assert_eq!(
            takes(&fixture, &cassette_header, &key),
            (false, Vec::new()),
            "once"
        );
    }
}

#[test]
fn failed_cleanup_is_reported_and_repeated() {
    let mut fixture = fixture();
    let lock = fixture.lock();
    let mut run = fixture.begin(&lock, PhaseId::Requirements);
    fixture.gather(&mut run);
    let cassette_header = header("gateway", "m");
    run.recording(&cassette_header).unwrap();
    let (_, bytes) = recorded(&cassette_header, "gateway");
    std::fs::write(run.calls(), &bytes).unwrap();
    run.entry.llm = Some(LlmReceipt {
        provider: Some("gateway".to_owned()),
        ..LlmReceipt::default()
    });
    run.tally.record_call(
        LlmReceipt {
            provider: Some("gateway".to_owned()),
            ..LlmReceipt::default()
        },
        1,
    );
    run.outputs = vec![PhaseOutput {
        path: "artifacts/00-requirements.md".to_owned(),
        bytes: b"x\n".to_vec(),
    }];
    let put = fixture.path(&format!("context/{}.calls.jsonl", run.id()));
    std::fs::create_dir(&put).unwrap();
    run.succeed(&mut fixture.ledger).unwrap();
    let [message] = run.unfinished() else {
        panic!("{:?}", run.unfinished())
    };
    assert!(
        message.starts_with("cannot move or delete its recorded calls: "),
        "{message}"
    );
    drop(lock);
    std::fs::remove_dir(&put).unwrap();
    let lock = fixture.lock();
    let run = fixture.begin(&lock, PhaseId::Requirements);
    assert_eq!(run.unfinished(), [""; 0]);
    assert_eq!(std::fs::read(&put).unwrap(), bytes);
    assert_eq!(std::fs::read_dir(fixture.calls()).unwrap().count(), 0);
}

#[test]
fn unused_calls_are_kept_for_next_attempt() {
    let mut fixture = fixture();
    let cassette_header = header("gateway", "m");
    let (key, bytes) = recorded(&cassette_header, "gateway");
    for is_asked in [false, true] {
        let lock = fixture.lock();
        let mut run = fixture.begin(&lock, PhaseId::Requirements);
        run.recording(&cassette_header).unwrap();
        if is_asked {
            std::fs::write(run.calls(), &bytes).unwrap();
        }
        run.fail(
            "interrupted",
            "x",
            ExitStatus::Interrupted,
            &mut fixture.ledger,
        )
        .unwrap();
        drop(lock);
        assert_eq!(
            std::fs::read_dir(fixture.calls()).unwrap().count(),
            usize::from(is_asked)
        );
    }
    assert!(takes(&fixture, &cassette_header, &key).0);
    assert_eq!(fixture.kept("context", "calls"), [""; 0]);
}

#[test]
fn missing_requirements_start_over_with_warning() {
    let mut fixture = fixture();
    let lock = fixture.lock();
    let mut run = fixture.begin(&lock, PhaseId::Requirements);
    fixture.gather(&mut run);
    run.entry.highest_requirement = Some(2);
    run.outputs = vec![PhaseOutput {
        path: "artifacts/00-requirements.md".to_owned(),
        bytes: b"x\n".to_vec(),
    }];
    run.succeed(&mut fixture.ledger).unwrap();
    assert_eq!(kinds(&run), [""; 0]);
    drop(lock);
    std::fs::remove_file(fixture.path("artifacts/00-requirements.md")).unwrap();
    let lock = fixture.lock();
    let mut run = fixture.begin(&lock, PhaseId::Requirements);
    fixture.gather(&mut run);
    assert_eq!(kinds(&run), ["previous_gone"]);
    assert!(
        run.warnings()[0].message.contains("follow R-002"),
        "{}",
        run.warnings()[0].message
    );
}

#[test]
fn unusable_previous_document_is_reported() {
    let mut fixture = fixture();
    fixture.done(PhaseId::Design);
    assert_eq!(fixture.run(PhaseId::Design, "# design\n"), [""; 0]);
    std::fs::write(fixture.path("artifacts/10-design.md"), b"\xff").unwrap();
    // Shown if possible, but no reason to stop.
    assert_eq!(
        fixture.run(PhaseId::Design, "# design\n"),
        ["previous_unused", "artifact_edited"]
    );
    std::fs::write(fixture.path("artifacts/10-design.md"), "x\n".repeat(2_000)).unwrap();
    assert_eq!(
        fixture.run(PhaseId::Design, "# design\n"),
        ["previous_unused", "artifact_edited"]
    );
}

#[test]
fn stale_input_gives_warning() {
    let mut fixture = fixture();
    fixture.done(PhaseId::Design);
    fixture.run(PhaseId::Requirements, "# others\n");
    let lock = fixture.lock();
    let run = fixture.begin(&lock, PhaseId::Tasks);
    assert_eq!(kinds(&run), ["stale_input"]);
    assert!(
        run.warnings()[0].message.contains("design"),
        "{}",
        run.warnings()[0].message
    );
}

#[test]
fn missing_reviewed_file_is_reported() {
    let mut fixture = fixture();
    std::fs::write(fixture.store.project().root().join("src/there.rs"), "x\n").unwrap();
    fixture.done(PhaseId::Tasks);
    let review = "# Review: x\n\n## Findings\n\n- F-001 [major] src/there.rs: a\n- F-002 [minor] src/gone.rs: b\n";
    fixture.run(PhaseId::Review, review);
    let lock = fixture.lock();
    let mut run = fixture.begin(&lock, PhaseId::Fixup);
    fixture.gather(&mut run);
    assert_eq!(kinds(&run), ["review_target_missing"]);
    let message = &run.warnings()[0].message;
    assert!(
        message.contains("src/gone.rs") && !message.contains("src/there.rs"),
        "{message}"
    );
}

#[test]
fn manual_edits_are_kept_before_promotion() {
    let mut fixture = fixture();
    let file = fixture.path("artifacts/00-requirements.md");
    let kept = |fixture: &Fixture, count: usize, text: &str| {
        let names = fixture.kept("context", "edited");
        assert_eq!(names.len(), count, "{names:?}");
        let texts: Vec<_> = names
            .iter()
            .map(|name| std::fs::read_to_string(fixture.path("context").join(name)).unwrap())
            .collect();
        assert!(
            count == 0 || texts.iter().any(|stored_text| stored_text == text),
            "{texts:?}"
        );
    };
    // No receipt at all.
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "by hand\n").unwrap();
    assert_eq!(
        fixture.run(PhaseId::Requirements, "one\n"),
        ["artifact_edited"]
    );
    kept(&fixture, 1, "by hand\n");
    // Content that the newest or an older receipt records is not a manual edit.
    assert_eq!(fixture.run(PhaseId::Requirements, "two\n"), [""; 0]);
    assert_eq!(fixture.run(PhaseId::Requirements, "three\n"), [""; 0]);
    std::fs::write(&file, "one\n").unwrap();
    assert_eq!(fixture.run(PhaseId::Requirements, "four\n"), [""; 0]);
    kept(&fixture, 1, "by hand\n");
    // The newest receipt cannot be trusted.
    let newest = fixture.kept("receipts", "-0004").pop().unwrap();
    let newest = fixture.path("receipts").join(newest);
    let text = std::fs::read_to_string(&newest).unwrap();
    std::fs::write(&newest, text.replace("\"attempts\":0", "\"attempts\":7")).unwrap();
    std::fs::write(&file, "by hand again\n").unwrap();
    assert!(!fixture.state().problems.is_empty());
    assert_eq!(
        fixture.run(PhaseId::Requirements, "five\n"),
        ["artifact_edited"]
    );
    kept(&fixture, 2, "by hand again\n");
}

#[test]
fn failures_record_applied_fixup() {
    let mut fixture = fixture();
    fixture.done(PhaseId::Review);
    let diff = b"diff --git a/src/a b/src/a\n".to_vec();
    let (proposed, pending) = {
        let lock = fixture.lock();
        let mut run = fixture.begin(&lock, PhaseId::Fixup);
        fixture.gather(&mut run);
        let output = PhaseOutput {
            path: FIXUP_DIFF.to_owned(),
            bytes: diff,
        };
        let files = vec![FixedFile {
            path: "src/a".to_owned(),
            before: None,
            after: None,
        }];
        let patch = Some(receipt::record(&output));
        let pending = FixupReceipt {
            stage: FixupStage::Pending,
            patch,
            files,
        };
        run.entry.fixups = Some(pending.clone());
        let report = PhaseOutput {
            path: "artifacts/40-fixup.md".to_owned(),
            bytes: b"x\n".to_vec(),
        };
        run.outputs = vec![report, output];
        (run.succeed(&mut fixture.ledger).unwrap(), pending)
    };
    assert_eq!(spec_status(&fixture.state(), noon()).pending_fixups, 1);
    assert!(applied_fixups(&fixture.state()).is_none());
    let applied = FixupReceipt {
        stage: FixupStage::Applied,
        ..pending
    };
    for place in 0..3 {
        let lock = fixture.lock();
        match place {
            // The application: the files are changed, and a later hook fails. Then again, and an earlier
            // hook fails.
            0 | 1 => {
                let WaitingFixup::Ready(mut run) =
                    waiting_fixup(&lock, &CLOCK, &fixture.ledger).unwrap()
                else {
                    panic!("none waits");
                };
                if place == 0 {
                    run.entry.fixups = Some(applied.clone());
                }
                run.fail("hook", "x", ExitStatus::Refused, &mut fixture.ledger)
                    .unwrap();
            }
            // A model is asked for another one, and does not answer.
            _ => {
                let mut run = fixture.begin(&lock, PhaseId::Fixup);
                fixture.gather(&mut run);
                run.fail("provider", "x", ExitStatus::Provider, &mut fixture.ledger)
                    .unwrap();
            }
        }
        drop(lock);
        let state = fixture.state();
        assert_eq!(applied_fixups(&state), Some(&applied), "{place}");
        let status = spec_status(&state, noon());
        assert_eq!(status.pending_fixups, 0);
        assert_eq!(
            status.next.unwrap().command,
            "crucible resume export-data --phase fixup --apply-fixups",
            "{place}"
        );
    }
    let known = fixture.state();
    let known = known.phase(PhaseId::Fixup).unwrap();
    assert_eq!(
        known.last_success.as_ref().unwrap().receipt_id,
        proposed.receipt_id
    );
    assert!(
        known
            .newest_real
            .as_ref()
            .unwrap()
            .receipt_id
            .parse::<ReceiptId>()
            .is_ok()
    );
}
