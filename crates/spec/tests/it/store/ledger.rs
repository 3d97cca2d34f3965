//! The ledger's records of receipts, when the directory differs.

use crucible_model::Digest;
use crucible_spec::{
    LockClaim, PhaseId, PhaseStatus, ReceiptProblemKind, SpecProject, SpecReceipt, SpecStatus,
    SpecStore, WorkspaceFile, spec_status,
};

use super::common::{Fixture, fixture, now, run_under};

fn kinds(fixture: &Fixture) -> Vec<(String, ReceiptProblemKind)> {
    let problems = fixture.state().problems;
    problems
        .into_iter()
        .map(|problem| (problem.file, problem.kind))
        .collect()
}

fn file(fixture: &Fixture, receipt: &SpecReceipt) -> std::path::PathBuf {
    fixture.path(&format!("receipts/{}.json", receipt.receipt_id))
}

#[test]
fn edited_receipt_with_new_digest_is_detected() {
    let fixture = fixture();
    let mut failed = fixture.run(PhaseId::Design, PhaseStatus::Failed, "");
    failed.phases[0].status = PhaseStatus::Success;
    failed.digest = None;
    failed.digest = Some(Digest::of_canonical(&failed).unwrap());
    std::fs::write(
        file(&fixture, &failed),
        serde_json::to_string(&failed).unwrap(),
    )
    .unwrap();
    let name = format!("{}.json", failed.receipt_id);
    assert_eq!(kinds(&fixture), [(name, ReceiptProblemKind::LedgerDiffers)]);
    assert_eq!(
        fixture.store.state(None).unwrap().problems,
        [],
        "without a ledger nobody knows"
    );
    // A timeline uses the same rules as a status, and counts only trusted receipts.
    let (receipts, problems) = fixture.store.history(Some(&fixture.ledger())).unwrap();
    assert_eq!((receipts.len(), problems), (0, fixture.state().problems));
    assert_eq!(fixture.store.history(None).unwrap().0.len(), 1);
    // Even if it is superseded and irrelevant for a judgement: the next receipt shows it, with or without
    // a ledger.
    fixture.success(PhaseId::Design);
    for ledger in [None, Some(&fixture.ledger())] {
        let (receipts, _) = fixture.store.history(ledger).unwrap();
        assert!(
            receipts
                .iter()
                .all(|receipt| receipt.receipt_id != failed.receipt_id)
                || ledger.is_none()
        );
    }
}

#[test]
fn removed_failure_is_detected_by_the_ledger() {
    let fixture = fixture();
    fixture.success(PhaseId::Design);
    let failed = fixture.run(PhaseId::Design, PhaseStatus::Failed, "");
    std::fs::remove_file(file(&fixture, &failed)).unwrap();
    let newer = (
        format!("{}.json", failed.receipt_id),
        ReceiptProblemKind::LedgerKnowsNewer,
    );
    assert_eq!(kinds(&fixture), std::slice::from_ref(&newer));
    assert_eq!(fixture.store.state(None).unwrap().problems, []);
    // Another phase in its place does not hide it; running the phase again resolves it.
    fixture.success(PhaseId::Tasks);
    assert_eq!(kinds(&fixture), [newer]);
    fixture.success(PhaseId::Design);
    assert_eq!(kinds(&fixture), []);
    assert!(fixture.ledger().verify(&[]).unwrap().passes());
}

#[test]
fn replaced_receipt_is_detected_by_the_ledger() {
    let fixture = fixture();
    let mut failed = fixture.run(PhaseId::Design, PhaseStatus::Failed, "");
    std::fs::remove_file(file(&fixture, &failed)).unwrap();
    failed.receipt_id = "design-20260131-100000-0001".to_owned();
    failed.digest = None;
    failed.digest = Some(Digest::of_canonical(&failed).unwrap());
    std::fs::write(
        file(&fixture, &failed),
        serde_json::to_string(&failed).unwrap(),
    )
    .unwrap();
    let name = format!("{}.json", failed.receipt_id);
    assert_eq!(kinds(&fixture), [(name, ReceiptProblemKind::LedgerDiffers)]);
}

#[test]
fn ledger_without_records_of_spec_reports_nothing() {
    let fixture = fixture();
    let first = fixture.success(PhaseId::Design);
    std::fs::remove_dir_all(fixture.home.join("data")).unwrap();
    assert_eq!(kinds(&fixture), []);
    assert_eq!(fixture.ledger().head().unwrap().seq, 0);
    // The next promotion records what it did not know.
    fixture.success(PhaseId::Tasks);
    assert_eq!(fixture.ledger().head().unwrap().seq, 2);
    assert_eq!(kinds(&fixture), []);
    std::fs::write(file(&fixture, &first), "{}").unwrap();
    assert_eq!(kinds(&fixture).len(), 1);
}

#[test]
fn the_same_spec_elsewhere_is_another_one() {
    let fixture = fixture();
    let other = super::common::desk_at(&fixture.home.join("elsewhere"));
    fixture.success(PhaseId::Design);
    let lock = other.lock();
    run_under(
        &lock,
        PhaseId::Design,
        PhaseStatus::Success,
        "x",
        &mut fixture.ledger(),
    )
    .unwrap();
    drop(lock);
    assert_eq!(kinds(&fixture), []);
    assert_eq!(
        other.store.state(Some(&fixture.ledger())).unwrap().problems,
        []
    );
    // The same directory through another path is the same project.
    std::os::unix::fs::symlink(fixture.home.join("project"), fixture.home.join("way")).unwrap();
    let project = SpecProject::at(fixture.home.join("way"));
    let by_link = SpecStore::new(&project, "export-data".parse().unwrap());
    std::fs::remove_dir_all(fixture.path("receipts")).unwrap();
    let problems = by_link.state(Some(&fixture.ledger())).unwrap().problems;
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].kind, ReceiptProblemKind::LedgerKnowsNewer);
}

#[test]
fn restarted_spec_ignores_earlier_life() {
    let fixture = fixture();
    for phase in [PhaseId::Requirements, PhaseId::Design, PhaseId::Tasks] {
        fixture.success(phase);
    }
    let design = fixture.text("receipts/design-20260131-093000-0002.json");
    std::fs::remove_dir_all(fixture.store.dir()).unwrap();
    // Another time, so that the receipt differs.
    let lock = fixture.lock();
    let mut anew = super::common::draft(PhaseId::Requirements, PhaseStatus::Success, 1);
    anew.receipt_id = "requirements-20260201-093000-0001".to_owned();
    lock.promote(anew, Vec::new(), &mut fixture.ledger())
        .unwrap();
    drop(lock);
    assert_eq!(kinds(&fixture), []);
    // Restoring a part of the earlier life without its end is detected.
    std::fs::write(
        fixture.path("receipts/design-20260131-093000-0002.json"),
        design,
    )
    .unwrap();
    std::fs::remove_file(fixture.path("receipts/requirements-20260201-093000-0001.json")).unwrap();
    let said = kinds(&fixture);
    assert!(said.contains(&(
        "tasks-20260131-093000-0003.json".to_owned(),
        ReceiptProblemKind::LedgerKnowsNewer
    )));
}

#[test]
fn older_checkout_is_outdated_not_forged() {
    let fixture = fixture();
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        let copied = std::process::Command::new("cp")
            .arg("-r")
            .arg(from)
            .arg(to)
            .status()
            .unwrap();
        assert!(copied.success());
    };
    fixture.success(PhaseId::Requirements);
    copy(fixture.store.dir(), &fixture.home.join("branch"));
    let lock = fixture.lock();
    let mut on_main = super::common::draft(PhaseId::Design, PhaseStatus::Success, 2);
    on_main.receipt_id = "design-20260201-093000-0002".to_owned();
    lock.promote(on_main, Vec::new(), &mut fixture.ledger())
        .unwrap();
    drop(lock);
    std::fs::rename(fixture.store.dir(), fixture.home.join("main")).unwrap();
    copy(&fixture.home.join("branch"), fixture.store.dir());
    let on_branch = fixture.success(PhaseId::Design);
    assert_eq!(kinds(&fixture), [], "what is there was recorded last");
    std::fs::rename(fixture.store.dir(), fixture.home.join("later-branch")).unwrap();
    std::fs::rename(fixture.home.join("main"), fixture.store.dir()).unwrap();
    let name = format!("{}.json", on_branch.receipt_id);
    assert_eq!(
        kinds(&fixture),
        [(name, ReceiptProblemKind::LedgerKnowsNewer)]
    );
    // Running the phase continues from there.
    fixture.success(PhaseId::Design);
    assert_eq!(kinds(&fixture), []);
}

/// Writes a forged receipt with a correct digest.
fn make_up(
    fixture: &Fixture,
    copied: &SpecReceipt,
    phase: PhaseId,
    sequence: u64,
    change: impl FnOnce(&mut SpecReceipt),
) -> String {
    let mut spec_receipt = copied.clone();
    spec_receipt.receipt_id = crucible_spec::ReceiptId::new(phase, now(), sequence).to_string();
    spec_receipt.sequence = sequence;
    change(&mut spec_receipt);
    spec_receipt.digest = None;
    spec_receipt.digest = Some(Digest::of_canonical(&spec_receipt).unwrap());
    std::fs::write(
        file(fixture, &spec_receipt),
        serde_json::to_string(&spec_receipt).unwrap(),
    )
    .unwrap();
    format!("{}.json", spec_receipt.receipt_id)
}

#[test]
fn forged_receipt_without_predecessor_breaks_chain() {
    let fixture = fixture();
    fixture.success(PhaseId::Design);
    let tasks = fixture.success(PhaseId::Tasks);
    fixture.run(PhaseId::Tasks, PhaseStatus::Failed, "");
    let name = make_up(&fixture, &tasks, PhaseId::Tasks, 4, |spec_receipt| {
        spec_receipt.previous = None
    });
    let problems = fixture.store.state(None).unwrap().problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(
        (&problems[0].file, &problems[0].kind),
        (&name, &ReceiptProblemKind::ChainBroken)
    );
    // If the previous one cannot be trusted, there is nothing to link to: running the phase again
    // continues from there.
    std::fs::write(fixture.path(&format!("receipts/{name}")), "{}").unwrap();
    fixture.success(PhaseId::Tasks);
    assert_eq!(fixture.store.state(None).unwrap().problems, []);
}

#[test]
fn receipt_newer_than_ledger_is_only_reported() {
    let fixture = fixture();
    let first = fixture.success(PhaseId::Design);
    let link = crucible_spec::ReceiptLink {
        receipt_id: first.receipt_id.clone(),
        digest: first.digest.unwrap(),
    };
    let name = make_up(&fixture, &first, PhaseId::Design, 2, |spec_receipt| {
        spec_receipt.previous = Some(link)
    });
    let state = fixture.state();
    assert_eq!(
        (state.not_from_here.as_slice(), state.problems),
        (&[name][..], Vec::new())
    );
    assert_eq!(
        fixture.store.state(None).unwrap().not_from_here,
        [""; 0],
        "without a ledger nobody knows"
    );
    // The next promotion tells the ledger about it.
    fixture.success(PhaseId::Tasks);
    fixture.success(PhaseId::Design);
    assert_eq!(fixture.state().not_from_here, [""; 0]);
}

/// A workspace queries the ledger once for all its specs, and checks their common path once.
#[test]
fn survey_judges_specs_like_their_own_status() {
    let fixture = fixture();
    let project = fixture.home.join("project");
    let specs = ["fine", "edited", "gone", "older", "new", "half"];
    let store = |spec: &str| SpecStore::new(&SpecProject::at(&project), spec.parse().unwrap());
    for spec in specs {
        let lock = store(spec).lock("test", LockClaim::IfFree).unwrap();
        for (phase, text) in [
            (PhaseId::Requirements, "a"),
            (PhaseId::Design, "b"),
            (PhaseId::Design, "c"),
        ] {
            run_under(
                &lock,
                phase,
                PhaseStatus::Success,
                text,
                &mut fixture.ledger(),
            )
            .unwrap();
        }
    }
    let receipt = |spec: &str, part: &str| {
        let names = std::fs::read_dir(store(spec).dir().join("receipts")).unwrap();
        let mut paths = names.map(|entry| entry.unwrap().path());
        paths
            .find(|path| path.to_str().unwrap().contains(part))
            .unwrap()
    };
    let edited = receipt("edited", "-0003");
    let mut document: SpecReceipt =
        serde_json::from_slice(&std::fs::read(&edited).unwrap()).unwrap();
    document.phases[0].attempts = 9;
    document.digest = None;
    document.digest = Some(Digest::of_canonical(&document).unwrap());
    std::fs::write(&edited, serde_json::to_string(&document).unwrap()).unwrap();
    std::fs::remove_file(receipt("gone", "-0003")).unwrap();
    std::fs::remove_file(receipt("older", "-0002")).unwrap();
    std::fs::remove_dir_all(store("new").dir().join("receipts")).unwrap();
    std::fs::remove_file(store("half").dir().join("artifacts/10-design.md")).unwrap();
    let list: String = specs
        .iter()
        .map(|spec| format!("  - id: \"{spec}\"\n    tags: []\n"))
        .collect();
    let list =
        format!("version: \"1\"\nname: \"all\"\nspecs:\n{list}  - id: \"none\"\n    tags: []\n");
    std::fs::write(project.join("workspace.yaml"), list).unwrap();
    let workspace = WorkspaceFile::discover(&project).unwrap();
    for ledger in [None, Some(fixture.ledger())] {
        let survey = workspace.survey(now(), ledger.as_ref()).unwrap();
        let alone = |spec: &str| spec_status(&store(spec).state(ledger.as_ref()).unwrap(), now());
        for (spec, status) in specs.iter().zip(&survey.statuses) {
            assert_eq!(
                status.as_ref().unwrap().as_ref(),
                Some(&alone(spec)),
                "{spec}"
            );
        }
        assert_eq!(survey.statuses.last(), Some(&Ok(None)));
        let is_wrong = |status: &Result<Option<SpecStatus>, String>| {
            status
                .iter()
                .flatten()
                .any(|status| !status.problems.is_empty())
        };
        let names = specs
            .iter()
            .zip(&survey.statuses)
            .filter(|(_, status)| is_wrong(status));
        let wrong: Vec<&str> = names.map(|(spec, _)| *spec).collect();
        let by_ledger = &["edited", "gone", "older", "new"][..];
        assert_eq!(
            wrong,
            if ledger.is_some() {
                by_ledger
            } else {
                &["older"][..]
            }
        );
    }
    // A link in place of the common directory leads to none of them.
    let specs = project.join(".crucible/specs");
    std::fs::rename(&specs, fixture.home.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(fixture.home.join("elsewhere"), &specs).unwrap();
    let survey = workspace.survey(now(), None).unwrap();
    assert!(
        survey.statuses.iter().all(Result::is_err),
        "{:?}",
        survey.statuses
    );
}
