//! `crucible run verify-record`: a landed run passes as it is, and one change of anything that it recorded is told by its code.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use crucible_testkit::{FakeOpenAi, TestRepo};
use serde_json::Value;

use crate::support::{Fixture, GOAL, Snapshot, answering, good_answer, id_of, move_to, small};

/// A run of the small repository that has landed.
pub(crate) struct Landed {
    pub(crate) repo: TestRepo,
    _server: FakeOpenAi,
    pub(crate) fixture: Fixture,
    pub(crate) id: String,
}

impl Landed {
    fn new() -> Self {
        let run = Self::verified();
        run.fixture.run(["run", "land", &run.id]).ok();
        run
    }

    /// One that is verified and has not landed.
    pub(crate) fn verified() -> Self {
        let (repo, server) = (small().build(), answering(good_answer()));
        let fixture = Fixture::with(&server);
        let id = id_of(&fixture.start(repo.path()).ok().json());
        Self {
            repo,
            _server: server,
            fixture,
            id,
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.fixture.data().join("runs").join(&self.id).join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }

    fn report(&self, code: i32) -> Value {
        self.fixture
            .run(["run", "verify-record", &self.id, "--json"])
            .exits(code)
            .json()
    }

    /// The codes and subjects of what is found.
    #[track_caller]
    fn found(&self, code: i32) -> BTreeSet<(String, String)> {
        let report = self.report(code);
        assert_eq!(report["schema_version"], "crucible-verify-record-v1");
        assert_eq!(report["verdict"], if code == 0 { "pass" } else { "fail" });
        let findings = report["findings"].as_array().unwrap().iter();
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        findings
            .map(|finding| (word(&finding["code"]), word(&finding["subject"])))
            .collect()
    }

    /// With a file changed so, this is found; and with the file as it was, nothing is.
    #[track_caller]
    fn with(
        &self,
        name: &str,
        change: impl FnOnce(String) -> Option<String>,
        code: &str,
        subject: &str,
    ) {
        let before = self.text(name);
        match change(before.clone()) {
            Some(changed) => {
                assert_ne!(changed, before, "{name}");
                std::fs::write(self.file(name), changed).unwrap();
            }
            None => std::fs::remove_file(self.file(name)).unwrap(),
        }
        let found = self.found(1);
        assert!(
            found.contains(&(code.to_owned(), subject.to_owned())),
            "{name}: {found:#?}"
        );
        std::fs::write(self.file(name), before).unwrap();
    }
}

#[test]
fn landed_run_verifies_without_changes() {
    let run = Landed::new();
    let places = || Snapshot::take([run.repo.path(), &run.fixture.data().join("runs")]);
    let before = places();
    assert_eq!(run.found(0), BTreeSet::new());
    let message = run
        .fixture
        .run(["run", "verify-record", &run.id])
        .ok()
        .stdout;
    assert!(
        message.contains("landed") && message.contains(run.repo.git(["rev-parse", "HEAD"]).trim()),
        "{message}"
    );
    before.is_still(&places());
    // Later commits, and a repository that lies elsewhere, are no objection.
    run.repo.write("src/area.py", "later = 1\n");
    run.repo.commit("Later");
    assert_eq!(run.found(0), BTreeSet::new());
    let moved = run.fixture.path("moved");
    move_to(run.repo.path(), &moved);
    let commit = run.found(1);
    assert_eq!(
        commit
            .iter()
            .map(|(code, _)| code.as_str())
            .collect::<Vec<_>>(),
        ["record-commit-missing"]
    );
    run.fixture
        .call(["run", "verify-record", &run.id, "--repo"])
        .arg(&moved)
        .run()
        .ok();
}

#[test]
fn every_edit_of_events_is_detected() {
    let run = Landed::new();
    let events = "events.jsonl";
    run.with(events, |_| None, "record-file-missing", events);
    run.with(
        events,
        |text| Some(text[..text.len() - 5].to_owned()),
        "record-events-cut",
        events,
    );
    run.with(events, |_| Some(String::new()), "record-events-cut", events);
    run.with(
        events,
        |text| Some(format!("{text}{{}}\n")),
        "record-events-added",
        events,
    );
    run.with(
        events,
        |text| Some(format!("{text}\n")),
        "record-events-added",
        events,
    );
    run.with(
        events,
        |text| Some(text.replacen("GOAL_STATED", "GOAL_ALTERED", 1)),
        "record-events-edited",
        "events.jsonl:2",
    );
    let swap = |text: String| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.swap(3, 4);
        Some(lines.join("\n") + "\n")
    };
    run.with(events, swap, "record-events-edited", "events.jsonl:4");
    let doubled = |text: String| {
        let first = text.lines().next().unwrap();
        Some(format!("{first}\n{text}"))
    };
    run.with(events, doubled, "record-events-edited", "events.jsonl:2");
    assert_eq!(run.found(0), BTreeSet::new());
}

#[test]
fn changed_or_missing_recorded_file_is_named() {
    let run = Landed::new();
    let recorded: BTreeSet<String> = {
        let log = run.fixture.run(["ledger", "log", "--json"]).ok().json();
        let events = log["events"].as_array().unwrap().iter();
        events
            .filter(|event| event["body"]["digest"].is_string())
            .map(|event| event["path"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(
        recorded.len() > 15
            && recorded.contains("artifacts/PLAN.md")
            && recorded.contains("run.json")
    );
    for name in recorded
        .iter()
        .map(String::as_str)
        .chain(["attempts/001/stdout.log", "attempts/001/stderr.log"])
    {
        run.with(name, |text| Some(text + "\n"), "record-file-edited", name);
        run.with(name, |_| None, "record-file-missing", name);
    }
    for copy in ["artifacts/verify_report.json", "artifacts/diff.patch"] {
        run.with(copy, |text| Some(text + "\n"), "record-copy-edited", copy);
        run.with(copy, |_| None, "record-file-missing", copy);
    }
    run.with(
        "receipt.json",
        |text| Some(text.replacen("success", "failed", 1)),
        "record-receipt-edited",
        "receipt.json",
    );
    run.with(
        "receipt.json",
        |text| Some(text + "\n"),
        "record-receipt-edited",
        "receipt.json",
    );
    run.with(
        "receipt.json",
        |_| None,
        "record-file-missing",
        "receipt.json",
    );
    run.with(
        "TRACE.md",
        |text| Some(text.replacen("LANDED", "FAILED", 1)),
        "record-trace-edited",
        "TRACE.md",
    );
    let id = run.id.clone();
    let answer = |text: String| Some(text.replacen("width * height", "width ** height", 1));
    run.with("cassette.jsonl", answer, "ledger-recording-edited", &id);
    assert_eq!(run.found(0), BTreeSet::new());
}

#[test]
fn signed_files_are_compared_with_existing_ones() {
    let run = Landed::new();
    run.with(
        "artifacts/PLAN.md",
        |text| Some(text.replacen("src/area.py", "src/", 1)),
        "record-signature-broken",
        "artifacts/PLAN.md",
    );
    run.with(
        "reviews/review_cost.md",
        |text| Some(text + "\n"),
        "record-signature-broken",
        "reviews/review_cost.md",
    );
    let blocks = |text: String| Some(text.replacen("APPROVE", "BLOCK", 1));
    run.with(
        "reviews/review_contract.md",
        blocks,
        "record-review-blocks",
        "reviews/review_contract.md",
    );
    let draft = |text: String| Some(text + "\n");
    run.with(
        "artifacts/PLAN_draft.md",
        draft,
        "record-review-blocks",
        "reviews/review_contract.md",
    );
    let path = "artifacts/verify_report.json";
    for field in ["plan_digest", "patch_digest"] {
        let other = |text: String| {
            let mut report: Value = serde_json::from_str(&text).unwrap();
            report[field] = "0".repeat(64).into();
            Some(report.to_string())
        };
        run.with(path, other, "record-report-differs", path);
    }
    let commit = run.repo.git(["rev-parse", "HEAD"]).trim().to_owned();
    let tree = |text: String| {
        let mut report: Value = serde_json::from_str(&text).unwrap();
        report["tree"] = "0".repeat(40).into();
        Some(report.to_string())
    };
    run.with(path, tree, "record-commit-differs", &commit);
    run.with(
        path,
        |text| Some(text.replacen("PASS", "FAIL", 1)),
        "record-report-differs",
        path,
    );
    run.with(
        "artifacts/signature.json",
        |_| Some("{}".to_owned()),
        "record-document-invalid",
        "artifacts/signature.json",
    );
    assert_eq!(run.found(0), BTreeSet::new());
}

/// Replaces bytes in the database itself, past everything that SQL could refuse.
fn edit(run: &Landed, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let path = run.fixture.data().join("ledger.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let places: Vec<usize> = (0..bytes.len() - from.len())
        .filter(|at| bytes[*at..].starts_with(from.as_bytes()))
        .collect();
    assert!(!places.is_empty(), "{from} is not in the database");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn edited_ledger_is_reported_by_event_and_artifact() {
    let run = Landed::new();
    edit(&run, "\"goal\":\"make area in", "\"goal\":\"MAKE area in");
    let codes: BTreeSet<String> = run.found(1).into_iter().map(|(code, _)| code).collect();
    assert!(codes.contains("ledger-event-edited"), "{codes:?}");
    edit(&run, "\"goal\":\"MAKE area in", "\"goal\":\"make area in");
    assert_eq!(run.found(0), BTreeSet::new());
    edit(&run, "Status: SIGNED", "Status: sIGNED");
    let found = run.found(1);
    assert!(
        found.contains(&(
            "record-artifact-edited".to_owned(),
            "artifacts/PLAN.md".to_owned()
        )),
        "{found:?}"
    );
    edit(&run, "Status: sIGNED", "Status: SIGNED");
    assert_eq!(run.found(0), BTreeSet::new());
}

/// A commit is made in the place of the one that landed, and the run's record is otherwise as it was.
#[test]
fn missing_or_replaced_commit_is_not_landed() {
    let run = Landed::new();
    let commit = run.repo.git(["rev-parse", "HEAD"]).trim().to_owned();
    let object = run
        .repo
        .path()
        .join(".git/objects")
        .join(&commit[..2])
        .join(&commit[2..]);
    let stored_bytes = std::fs::read(&object).unwrap();
    std::fs::remove_file(&object).unwrap();
    let base = run.base();
    std::fs::write(
        run.repo.path().join(".git/refs/heads/main"),
        format!("{base}\n"),
    )
    .unwrap();
    let missing_entries = run.found(1);
    assert_eq!(
        missing_entries,
        BTreeSet::from([("record-commit-missing".to_owned(), commit.clone())])
    );
    // The base, under the name of the landed commit.
    let other = run
        .repo
        .path()
        .join(".git/objects")
        .join(&base[..2])
        .join(&base[2..]);
    std::fs::copy(other, &object).unwrap();
    let forged = run.found(1);
    assert_eq!(
        forged,
        BTreeSet::from([("record-commit-missing".to_owned(), commit.clone())])
    );
    std::fs::remove_file(&object).unwrap();
    std::fs::write(&object, stored_bytes).unwrap();
    // It is there again; the branch still stands at the base.
    assert_eq!(
        run.found(0),
        BTreeSet::from([("record-commit-unreached".to_owned(), commit.clone())])
    );
    // So is a branch that is gone, and one of which git cannot tell.
    let hint = || {
        run.report(0)["findings"][0]["hint"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    run.repo.git(["switch", "--quiet", "--create", "other"]);
    run.repo.git(["branch", "--quiet", "-D", "main"]);
    assert!(hint().contains("no longer exists"), "{}", hint());
    let message = run
        .fixture
        .run(["run", "land", &run.id, "--json"])
        .exits(1)
        .message();
    assert!(message.contains("main no longer exists"), "{message}");
    let broken = "1".repeat(40);
    std::fs::write(
        run.repo.path().join(".git/refs/heads/main"),
        format!("{broken}\n"),
    )
    .unwrap();
    assert!(hint().contains("cannot determine"), "{}", hint());
    assert_eq!(
        run.found(0),
        BTreeSet::from([("record-commit-unreached".to_owned(), commit)])
    );
}

impl Landed {
    fn base(&self) -> String {
        let record: Value = serde_json::from_str(&self.text("run.json")).unwrap();
        record["base_commit"].as_str().unwrap().to_owned()
    }
}

#[test]
fn run_is_judged_up_to_its_state() {
    let run = Landed::verified();
    assert_eq!(run.found(0), BTreeSet::new());
    let tree = |text: String| {
        let mut report: Value = serde_json::from_str(&text).unwrap();
        report["tree"] = "0".repeat(40).into();
        Some(report.to_string())
    };
    run.with(
        "artifacts/verify_report.json",
        tree,
        "record-tree-differs",
        "artifacts/verify_report.json",
    );
    let message = run
        .fixture
        .run(["run", "verify-record", &run.id])
        .ok()
        .stdout;
    assert!(message.contains("the run is verified"), "{message}");
    let new = run
        .fixture
        .call(["run", "new", GOAL, "--json", "--repo"])
        .arg(run.repo.path())
        .run()
        .ok()
        .json();
    let said = run
        .fixture
        .run(["run", "verify-record", &id_of(&new)])
        .ok()
        .stdout;
    assert!(said.contains("(new)"), "{said}");
}

#[test]
fn hostile_run_directory_is_reported_without_blocking() {
    let run = Landed::new();
    let (plan, events) = (run.file("artifacts/PLAN.md"), run.file("events.jsonl"));
    let kept = [
        std::fs::read(&plan).unwrap(),
        std::fs::read(&events).unwrap(),
    ];
    let is_told = |code: &str, subject: &str| {
        let found = run.found(1);
        assert!(
            found.contains(&(code.to_owned(), subject.to_owned())),
            "{found:#?}"
        );
    };
    // A link to the very bytes that were recorded is none of the run's files.
    let backup_path = run.fixture.path("aside.md");
    std::fs::write(&backup_path, &kept[0]).unwrap();
    std::fs::remove_file(&plan).unwrap();
    std::os::unix::fs::symlink(&backup_path, &plan).unwrap();
    is_told("record-file-refused", "artifacts/PLAN.md");
    std::fs::remove_file(&plan).unwrap();
    for path in [&plan, &events] {
        let _was = std::fs::remove_file(path);
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }
    is_told("record-file-refused", "artifacts/PLAN.md");
    is_told("record-file-refused", "events.jsonl");
    for (path, bytes) in [&plan, &events].into_iter().zip(&kept) {
        std::fs::remove_file(path).unwrap();
        std::fs::write(path, bytes).unwrap();
        std::fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_len(1 << 30)
            .unwrap();
    }
    is_told("record-file-edited", "artifacts/PLAN.md");
    is_told("record-events-added", "events.jsonl");
    for (path, bytes) in [&plan, &events].into_iter().zip(&kept) {
        std::fs::write(path, bytes).unwrap();
    }
    assert_eq!(run.found(0), BTreeSet::new());
    // The whole directory of artifacts elsewhere, behind a link.
    let artifacts = run.file("artifacts");
    std::fs::rename(&artifacts, run.fixture.path("artifacts")).unwrap();
    std::os::unix::fs::symlink(run.fixture.path("artifacts"), &artifacts).unwrap();
    is_told("record-file-refused", "artifacts/PLAN.md");
}

#[test]
fn directory_of_another_run_is_detected() {
    let run = Landed::new();
    let fixture = &run.fixture;
    let new = fixture
        .call(["run", "new", GOAL, "--json", "--repo"])
        .arg(run.repo.path())
        .run()
        .ok()
        .json();
    let other = fixture.data().join("runs").join(id_of(&new));
    std::fs::remove_dir_all(&other).unwrap();
    let copied = Command::new("cp")
        .arg("-a")
        .arg(run.file(""))
        .arg(&other)
        .status()
        .unwrap();
    assert!(copied.success());
    let report = fixture
        .run(["run", "verify-record", &id_of(&new), "--json"])
        .exits(1)
        .json();
    let text = report.to_string();
    assert!(
        text.contains("record-file-edited") && text.contains("run.json"),
        "{text}"
    );
    assert!(text.contains("record-events-edited"), "{text}");
    // A copy under a name that the ledger does not know.
    let last = run.id.chars().last().unwrap();
    let unknown = format!(
        "{}{}",
        &run.id[..run.id.len() - 1],
        if last == '0' { '1' } else { '0' }
    );
    std::fs::rename(&other, fixture.data().join("runs").join(&unknown)).unwrap();
    let report = fixture
        .run(["run", "verify-record", &unknown, "--json"])
        .exits(1)
        .json();
    assert_eq!(report["findings"][0]["code"], "record-unknown-run");
    assert_eq!(report["findings"].as_array().unwrap().len(), 1);
}

/// Calls the ledger's file by its own language, as somebody would who wants a budget back.
fn in_ledger(run: &Landed, sql: &str) {
    let ledger = rusqlite::Connection::open(run.fixture.data().join("ledger.db")).unwrap();
    ledger.execute_batch(sql).unwrap();
}

#[test]
fn copies_outside_attempts_are_compared_with_records() {
    let run = Landed::new();
    for copy in [
        "reviews/review_patch.md",
        "logs/verify.stdout.log",
        "logs/verify.stderr.log",
    ] {
        run.with(
            copy,
            |text| Some(text + "\nforged\n"),
            "record-copy-edited",
            copy,
        );
        run.with(copy, |_| None, "record-file-missing", copy);
    }
    assert_eq!(run.found(0), BTreeSet::new());
}

#[test]
fn unrecorded_file_is_reported_and_not_bundled() {
    let run = Landed::new();
    let out = run.fixture.path("evidence.zip");
    for planted in [
        "artifacts/find_web.json",
        "reviews/review_security.md",
        "attempts/002/diff.patch",
    ] {
        std::fs::create_dir_all(run.file(planted).parent().unwrap()).unwrap();
        std::fs::write(run.file(planted), "planted").unwrap();
        let told = ("record-file-unrecorded".to_owned(), planted.to_owned());
        assert_eq!(run.found(1), BTreeSet::from([told]));
        let bundled = run
            .fixture
            .call(["run", "bundle", &run.id, "--force", "--out"])
            .arg(&out)
            .run()
            .ok();
        assert!(bundled.stderr.contains(planted), "{}", bundled.stderr);
        let archive = zip::ZipArchive::new(std::fs::File::open(&out).unwrap()).unwrap();
        assert!(
            !archive.file_names().any(|name| name.unwrap() == planted),
            "{planted}"
        );
        std::fs::remove_file(run.file(planted)).unwrap();
    }
    // Where nobody looks for an artifact it is harmless.
    std::fs::write(run.file("notes.txt"), "mine").unwrap();
    let told = ("record-file-unrecorded".to_owned(), "notes.txt".to_owned());
    assert_eq!(run.found(0), BTreeSet::from([told]));
}

#[test]
fn pinned_clock_prevents_landing_and_is_reported() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let new = fixture
        .call(["run", "new", GOAL, "--json", "--repo"])
        .arg(repo.path())
        .run()
        .ok()
        .json();
    let id = id_of(&new);
    let pinned = |args: [&str; 3]| {
        fixture
            .call(args)
            .env("CRUCIBLE_CLOCK", "2001-01-01T00:00:00Z")
            .run()
    };
    pinned(["run", "advance", &id]).ok();
    let message = fixture
        .run(["run", "land", &id, "--json"])
        .exits(1)
        .message();
    assert!(message.contains("pinned clock"), "{message}");
    let next = fixture.status()["next"].as_str().unwrap().to_owned();
    assert!(next.contains("pinned clock"), "{next}");
    let run = Landed {
        repo,
        _server: server,
        fixture,
        id,
    };
    let codes: BTreeSet<String> = run.found(0).into_iter().map(|(code, _)| code).collect();
    assert_eq!(
        codes,
        ["record-clock-pinned", "record-time-backwards"]
            .map(str::to_owned)
            .into()
    );
    // A landing under one is refused as well, and nothing of it is recorded.
    let run = Landed::verified();
    let land = run
        .fixture
        .call(["run", "land", &run.id, "--json"])
        .env("CRUCIBLE_CLOCK", "2001-01-01T00:00:00Z");
    let message = land.run().exits(1).message();
    assert!(message.contains("pinned clock"), "{message}");
    assert_eq!(run.found(0), BTreeSet::new());
    run.fixture.run(["run", "land", &run.id]).ok();
}

#[test]
fn refused_landing_keeps_record_verifiable() {
    let run = Landed::verified();
    run.repo.write("src/area.py", "mine\n");
    run.fixture.run(["run", "land", &run.id]).exits(1);
    assert_eq!(run.found(0), BTreeSet::new());
    run.repo.git(["checkout", "--quiet", "src/area.py"]);
    // Attributes that changed since are named, and nothing of the run is said to have been changed.
    let attributes = run.repo.path().join(".git/info/attributes");
    std::fs::create_dir_all(attributes.parent().unwrap()).unwrap();
    std::fs::write(&attributes, "*.py filter=lfs\n").unwrap();
    let message = run
        .fixture
        .run(["run", "land", &run.id, "--json"])
        .exits(1)
        .message();
    for text in ["filter=lfs", "src/area.py", "patch-attribute"] {
        assert!(message.contains(text), "{message}");
    }
    assert_eq!(run.found(0), BTreeSet::new());
    std::fs::remove_file(&attributes).unwrap();
    run.fixture.run(["run", "land", &run.id]).ok();
    assert_eq!(run.found(0), BTreeSet::new());
}

#[test]
fn missing_bookings_are_reported_and_prevent_landing() {
    let run = Landed::verified();
    // First numbers that are left out, then the one that an answer tells of.
    for (altered, lost) in [
        (
            "UPDATE model_calls SET seq = seq + 2",
            "lacks 2 booked model calls that",
        ),
        ("DELETE FROM model_calls", "lacks 1 booked model call that"),
    ] {
        in_ledger(&run, altered);
        let (lost_code, edited) = ("record-bookings-lost".to_owned(), "record-row-edited");
        let found = run.found(1);
        assert!(found.contains(&(lost_code, run.id.clone())), "{found:?}");
        assert!(
            found.iter().skip(1).all(|(code, _)| code == edited),
            "{found:?}"
        );
        let message = run
            .fixture
            .run(["run", "land", &run.id, "--json"])
            .exits(1)
            .message();
        assert!(message.contains(lost), "{message}");
        let next = run.fixture.status()["next"].as_str().unwrap().to_owned();
        assert!(next.contains(lost), "{next}");
    }
}

/// The ledger's file, edited by SQL with the guards out of the way, as somebody would who knows them.
fn in_ledger_unguarded(run: &Landed, sql: &str) {
    let raw = rusqlite::Connection::open(run.fixture.data().join("ledger.db")).unwrap();
    let mut select = raw
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap();
    let triggers: Vec<(String, String)> = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    drop(select);
    raw.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    for (name, _) in &triggers {
        raw.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    raw.execute_batch(sql).unwrap();
    for (_, trigger) in &triggers {
        raw.execute_batch(trigger).unwrap();
    }
}

#[test]
fn edited_artifacts_and_rows_block_landing() {
    for (sql, in_chain, in_record) in [
        (
            "DELETE FROM artifacts",
            "ledger-artifact-missing",
            "record-artifact-missing",
        ),
        (
            "UPDATE artifacts SET kind = 'x'",
            "ledger-artifact-edited",
            "ledger-artifact-edited",
        ),
        (
            "UPDATE model_calls SET tokens_in = 1",
            "ledger-call-edited",
            "record-row-edited",
        ),
        (
            "UPDATE model_calls SET cost = 0, outcome = 'timeout'",
            "ledger-call-edited",
            "record-row-edited",
        ),
        (
            "UPDATE model_calls SET provider = 'x', model = 'y'",
            "ledger-call-edited",
            "record-row-edited",
        ),
        (
            "UPDATE runs SET goal = 'another'",
            "ledger-run-edited",
            "record-row-edited",
        ),
        (
            "UPDATE runs SET state = 'landed'",
            "ledger-run-edited",
            "record-row-edited",
        ),
    ] {
        let run = Landed::verified();
        run.fixture.run(["ledger", "verify"]).ok();
        in_ledger_unguarded(&run, sql);
        let verdict = run
            .fixture
            .run(["ledger", "verify", "--json"])
            .exits(1)
            .json();
        let codes: Vec<&str> = verdict["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| finding["code"].as_str().unwrap())
            .collect();
        assert!(codes.contains(&in_chain), "{sql}: {codes:?}");
        let found = run.found(1);
        assert!(
            found.iter().any(|(code, _)| code == in_record),
            "{sql}: {found:?}"
        );
        let commits = run.repo.git(["rev-list", "--count", "--all"]);
        run.fixture.run(["run", "land", &run.id]).exits(1);
        assert_eq!(
            run.repo.git(["rev-list", "--count", "--all"]),
            commits,
            "{sql}"
        );
    }
}

#[test]
fn every_record_finding_prevents_landing() {
    let run = Landed::verified();
    for (name, change) in [
        ("TRACE.md", "\nforged\n"),
        ("receipt.json", " "),
        ("artifacts/find_web.json", "planted"),
        ("reviews/review_security.md", "planted"),
    ] {
        let before = std::fs::read(run.file(name)).ok();
        std::fs::write(
            run.file(name),
            [before.clone().unwrap_or_default(), change.into()].concat(),
        )
        .unwrap();
        let (code, subject) = run.found(1).pop_first().unwrap();
        let commits = run.repo.git(["rev-list", "--count", "--all"]);
        let message = run
            .fixture
            .run(["run", "land", &run.id, "--json"])
            .exits(1)
            .message();
        for text in [
            &*code,
            &*subject,
            "landing refused",
            &*format!("crucible run verify-record {}", run.id),
        ] {
            assert!(message.contains(text), "{message}");
        }
        assert_eq!(
            run.repo.git(["rev-list", "--count", "--all"]),
            commits,
            "{name}"
        );
        match before {
            Some(before) => std::fs::write(run.file(name), before).unwrap(),
            None => std::fs::remove_file(run.file(name)).unwrap(),
        }
    }
    // A warning refuses nothing, and what is as it was lands.
    std::fs::write(run.file("notes.txt"), "mine").unwrap();
    run.fixture.run(["run", "land", &run.id]).ok();
}

#[test]
fn ledger_without_witness_states_its_limits() {
    let run = Landed::new();
    let ledger_verify = |args: &[&str]| {
        let report = run
            .fixture
            .call([&["ledger", "verify", "--json"], args].concat())
            .run()
            .ok()
            .json();
        let findings = report["findings"].as_array().unwrap().clone();
        findings
            .iter()
            .map(|finding| finding["code"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let repo = ["--repo", run.repo.path().to_str().unwrap()];
    assert_eq!(ledger_verify(&["--repo", repo[1]]), [""; 0]);
    assert_eq!(ledger_verify(&[]), ["ledger-unanchored"]);
    // Emptied, as it was before the first event.
    for file in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        let _gone = std::fs::remove_file(run.fixture.data().join(file));
    }
    let (other, server) = (small().build(), answering(good_answer()));
    let fresh = Fixture::with(&server);
    fresh.start(other.path()).ok();
    std::fs::copy(
        fresh.data().join("ledger.db"),
        run.fixture.data().join("ledger.db"),
    )
    .unwrap();
    in_ledger_unguarded(
        &run,
        &format!(
            "DELETE FROM events; DELETE FROM artifacts; DELETE FROM runs; DELETE FROM model_calls; DELETE FROM recorded_rows; DELETE FROM sqlite_sequence;
             UPDATE chain_head SET seq = 0, hash = '{}'",
            "0".repeat(64)
        ),
    );
    let mut codes = ledger_verify(&[]);
    codes.sort();
    assert_eq!(codes, ["ledger-run-unknown", "ledger-unanchored"]);
    let cut = run
        .fixture
        .call(["ledger", "verify", "--json", "--repo", repo[1]])
        .run()
        .exits(1)
        .json();
    assert_eq!(cut["findings"][0]["code"], "ledger-tail-cut");
}

/// The commit vouches for what was before it, and its run for the landing itself.
#[test]
fn ledger_without_last_landing_fails_verification() {
    let run = Landed::verified();
    let early = run.fixture.path("early.db");
    let vacuum = format!("VACUUM INTO '{}'", early.display());
    let database = rusqlite::Connection::open(run.fixture.data().join("ledger.db")).unwrap();
    database.execute_batch(&vacuum).unwrap();
    drop(database);
    run.fixture.run(["run", "land", &run.id]).ok();
    let repo = run.repo.path().to_str().unwrap().to_owned();
    let verify = || {
        let words = ["ledger", "verify", "--json", "--repo", &repo];
        run.fixture.call(words).run()
    };
    verify().ok();
    let head = run.repo.git([
        "log",
        "-1",
        "--format=%(trailers:key=Crucible-Ledger,valueonly)",
    ]);
    let (seq, hash) = head.trim().split_once(':').unwrap();
    // With the rows as they were.
    in_ledger_unguarded(
        &run,
        &format!(
            "ATTACH '{}' AS early;
             DELETE FROM events WHERE seq > {seq}; UPDATE chain_head SET seq = {seq}, hash = '{hash}';
             UPDATE sqlite_sequence SET seq = {seq} WHERE name = 'events';
             DELETE FROM runs; INSERT INTO runs SELECT * FROM early.runs;
             DELETE FROM recorded_rows; INSERT INTO recorded_rows SELECT * FROM early.recorded_rows;
             DETACH early",
            early.display()
        ),
    );
    let cut = verify().exits(1).json();
    let codes: Vec<&str> = cut["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["ledger-landing-missing"], "{cut}");
}

#[test]
fn commit_unreachable_from_its_branch_is_reported() {
    let run = Landed::new();
    let commit = run.repo.git(["rev-parse", "HEAD"]).trim().to_owned();
    run.repo.git(["reset", "--quiet", "--hard", "HEAD~1"]);
    assert_eq!(
        run.found(0),
        BTreeSet::from([("record-commit-unreached".to_owned(), commit)])
    );
}
