//! Landing, replaying and bundling a verified run, and what must stop a landing.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crucible_testkit::{FakeOpenAi, TestRepo};
use serde_json::{Value, json};

use crate::support::{
    Fixture, GOAL, Snapshot, answering, good_answer, id_of, right, small, snapshot,
};

/// A verified run of the small repository.
struct Verified {
    repo: TestRepo,
    server: FakeOpenAi,
    fixture: Fixture,
    id: String,
}

impl Verified {
    fn new() -> Self {
        let (repo, server) = (small().build(), answering(good_answer()));
        let fixture = Fixture::with(&server);
        let id = id_of(&fixture.start(repo.path()).ok().json());
        Self {
            repo,
            server,
            fixture,
            id,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.fixture.data().join("runs").join(&self.id).join(name)
    }

    /// Landing is refused with this code and words, and leaves the repository as it is.
    #[track_caller]
    fn stays(&self, code: i32, text: &str) {
        let before = snapshot(&self.repo, &self.fixture);
        let message = self
            .fixture
            .run(["run", "land", &self.id, "--json"])
            .exits(code)
            .message();
        assert!(message.contains(text), "{message}");
        before.is_still(&snapshot(&self.repo, &self.fixture));
    }
}

#[test]
fn landing_twice_creates_one_commit() {
    let run = Verified::new();
    let first = run
        .fixture
        .run(["run", "land", &run.id, "--json"])
        .ok()
        .json();
    let repo = Snapshot::take([run.repo.path()]);
    let second = run
        .fixture
        .run(["run", "land", &run.id, "--json"])
        .ok()
        .json();
    assert_eq!(first, second);
    repo.is_still(&Snapshot::take([run.repo.path()]));
    assert_eq!(run.repo.git(["rev-list", "--count", "HEAD"]), "2");
    assert_eq!(run.fixture.status()["state"], "landed");
    run.fixture.run(["run", "advance", &run.id]).ok();
    assert_eq!(run.server.requests().len(), 1);
}

#[test]
fn a_branch_that_moved_is_not_landed_on() {
    let run = Verified::new();
    run.repo.write("src/other.py", "x = 1\n");
    run.repo.commit("Somebody was faster");
    run.stays(1, "start a new run on the new state");
}

#[test]
fn another_branch_is_not_landed_on() {
    let run = Verified::new();
    run.repo.git(["checkout", "--quiet", "-b", "other"]);
    run.stays(1, "switch back and land again");
    run.repo.git(["checkout", "--quiet", "main"]);
    run.fixture.run(["run", "land", &run.id]).ok();
    assert_eq!(run.repo.git(["rev-list", "--count", "main"]), "2");
}

#[test]
fn landing_refuses_to_overwrite_user_changes() {
    let run = Verified::new();
    run.repo.write("src/area.py", "mine\n");
    run.stays(1, "src/area.py");
    run.repo.git(["checkout", "--quiet", "src/area.py"]);
    run.fixture.run(["run", "land", &run.id]).ok();
}

#[test]
fn artifact_edited_after_recording_does_not_land() {
    let run = Verified::new();
    let before = snapshot(&run.repo, &run.fixture);
    for name in [
        "artifacts/diff.patch",
        "artifacts/PLAN.md",
        "artifacts/verify_report.json",
        "attempts/001/diff.patch",
        "attempts/001/verify_report.json",
        "attempts/001/outcome.json",
        "run.json",
    ] {
        let text = std::fs::read_to_string(run.file(name)).unwrap();
        let edited = text.replacen("width * height", "width ** height", 1) + "\n";
        std::fs::write(run.file(name), edited).unwrap();
        let message = run
            .fixture
            .run(["run", "land", &run.id, "--json"])
            .exits(1)
            .message();
        let messages = ["was changed after it was recorded", "not verified"];
        assert!(
            messages.iter().any(|report| message.contains(report)),
            "{name}: {message}"
        );
        before.is_still(&snapshot(&run.repo, &run.fixture));
        std::fs::write(run.file(name), text).unwrap();
    }
    // With every file as it was, the run lands after all.
    run.fixture.run(["run", "land", &run.id]).ok();
}

#[test]
fn edited_logs_and_recordings_block_landing() {
    let run = Verified::new();
    let before = snapshot(&run.repo, &run.fixture);
    let evidence = run.fixture.path("evidence.zip");
    let evidence = evidence.to_str().unwrap();
    for name in [
        "attempts/001/stdout.log",
        "attempts/001/stderr.log",
        "logs/verify.stdout.log",
        "logs/verify.stderr.log",
        "cassette.jsonl",
    ] {
        let text = std::fs::read_to_string(run.file(name)).unwrap();
        let edited = match name {
            "cassette.jsonl" => text.replacen("width * height", "width ** height", 1),
            _ => format!("{text}FORGED\n"),
        };
        assert_ne!(edited, text);
        // What is empty or a copy is put back where it is gone, and nothing else: of a log the ledger has the digest alone.
        let has_way_back = text.is_empty() || name.starts_with("logs/");
        for edited in [Some(edited), None] {
            match edited {
                Some(edited) => std::fs::write(run.file(name), edited).unwrap(),
                None => std::fs::remove_file(run.file(name)).unwrap(),
            }
            if has_way_back && !run.file(name).exists() {
                assert_eq!(run.fixture.status()["edited"], serde_json::json!([name]));
                let stderr = run.fixture.run(["run", "advance", &run.id]).ok().stderr;
                assert!(
                    stderr.contains(&format!("restored from the ledger: {name}")),
                    "{stderr}"
                );
                assert_eq!(
                    std::fs::read_to_string(run.file(name)).unwrap(),
                    text,
                    "{name}"
                );
                continue;
            }
            let message = run
                .fixture
                .run(["run", "land", &run.id, "--json"])
                .exits(1)
                .message();
            assert!(
                message.contains("was changed after it was recorded"),
                "{name}: {message}"
            );
            assert!(message.contains(name), "{name}: {message}");
            if name.ends_with(".log") {
                let status = run.fixture.status();
                assert_eq!(status["edited"], serde_json::json!([name]));
                let stdout = run.fixture.run(["run", "status", &run.id]).ok().stdout;
                assert!(stdout.contains(&format!("edited    {name}")), "{stdout}");
                let bundle = run
                    .fixture
                    .run(["run", "bundle", &run.id, "--force", "--out", evidence])
                    .ok();
                assert!(bundle.stderr.contains(name), "{}", bundle.stderr);
            }
            before.is_still(&snapshot(&run.repo, &run.fixture));
        }
        std::fs::write(run.file(name), text).unwrap();
    }
    assert!(run.fixture.status().get("edited").is_none());
    run.fixture.run(["run", "land", &run.id]).ok();
}

#[test]
fn patch_replaced_everywhere_does_not_land() {
    let run = Verified::new();
    for name in ["artifacts/diff.patch", "attempts/001/diff.patch"] {
        let text = std::fs::read_to_string(run.file(name)).unwrap();
        std::fs::write(
            run.file(name),
            text.replace("width * height", "width ** height"),
        )
        .unwrap();
    }
    run.stays(1, "");
}

#[test]
fn run_under_pinned_clock_does_not_land() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let call = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_CLOCK", "2024-01-02T03:04:05Z");
    let id = id_of(&call.run().ok().json());
    let before = snapshot(&repo, &fixture);
    let message = fixture
        .run(["run", "land", &id, "--json"])
        .exits(1)
        .message();
    assert!(message.contains("pinned clock"), "{message}");
    before.is_still(&snapshot(&repo, &fixture));
}

#[test]
fn replay_reproduces_every_artifact_without_calls() {
    let run = Verified::new();
    let before = snapshot(&run.repo, &run.fixture);
    let replayed = run
        .fixture
        .run(["run", "replay", &run.id, "--json"])
        .ok()
        .json();
    assert_eq!(replayed["schema_version"], "crucible-replay-v1");
    assert_eq!(
        replayed["different"].as_array().unwrap().len(),
        0,
        "{replayed}"
    );
    assert_eq!(replayed["state"], "verified");
    let same: BTreeSet<&str> = replayed["same"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap())
        .collect();
    for path in [
        "artifacts/PLAN.md",
        "artifacts/context_pack.json",
        "artifacts/diff.patch",
        "artifacts/verify_report.json",
    ] {
        assert!(same.contains(path), "{path}");
    }
    before.is_still(&snapshot(&run.repo, &run.fixture));
    assert_eq!(run.server.requests().len(), 1);
    assert_eq!(
        std::fs::read_dir(run.fixture.data().join("tmp"))
            .unwrap()
            .count(),
        0
    );

    // It is the same after landing and with later commits, and an edited artifact shows.
    run.fixture.run(["run", "land", &run.id]).ok();
    run.repo.write("src/area.py", "later = 1\n");
    run.repo.commit("Later");
    run.fixture.run(["run", "replay", &run.id]).ok();
    std::fs::write(run.file("artifacts/REASONS.md"), "edited\n").unwrap();
    let replayed = run
        .fixture
        .run(["run", "replay", &run.id, "--json"])
        .exits(1)
        .json();
    assert_eq!(
        replayed["different"],
        serde_json::json!(["artifacts/REASONS.md"])
    );
}

fn names(archive: &zip::ZipArchive<std::fs::File>) -> BTreeSet<String> {
    archive
        .file_names()
        .map(|name| name.unwrap().into_owned())
        .collect()
}

#[test]
fn a_bundle_holds_what_a_colleague_needs() {
    let run = Verified::new();
    let out = run.fixture.path("bundle.zip");
    let call = run
        .fixture
        .call(["run", "bundle", &run.id, "--json", "--out"])
        .arg(&out);
    let report = call.run().ok().json();
    assert_eq!(report["size"], std::fs::metadata(&out).unwrap().len());
    let mut archive = zip::ZipArchive::new(std::fs::File::open(&out).unwrap()).unwrap();
    let names = names(&archive);
    for name in [
        "TRACE.md",
        "artifacts/verify_report.json",
        "events.jsonl",
        "artifacts/PLAN.md",
        "artifacts/diff.patch",
        "reviews/",
        "reviews/review_patch.md",
        "reviews/review_contract.md",
        "reviews/review_cost.md",
        "outbox/",
        "attempts/001/answer.txt",
        "attempts/001/outcome.json",
        "cassette.jsonl",
        "run.json",
    ] {
        assert!(names.contains(name), "{name} is missing in {names:?}");
    }
    let mut patch = String::new();
    archive
        .by_name("artifacts/diff.patch")
        .unwrap()
        .read_to_string(&mut patch)
        .unwrap();
    assert_eq!(
        patch,
        std::fs::read_to_string(run.file("artifacts/diff.patch")).unwrap()
    );
}

#[test]
fn a_failed_run_leaves_its_bundle() {
    let (repo, server) = (small().build(), answering("no"));
    let fixture = Fixture::with(&server);
    fixture.start(repo.path()).exits(1);
    let bundle = fixture.runs()[0].join("failure_bundle.zip");
    let names = names(&zip::ZipArchive::new(std::fs::File::open(bundle).unwrap()).unwrap());
    for name in [
        "TRACE.md",
        "artifacts/verify_report.json",
        "events.jsonl",
        "artifacts/PLAN.md",
        "artifacts/diff.patch",
    ] {
        assert!(names.contains(name), "{name} is missing in {names:?}");
    }
}

#[test]
fn truncated_ledger_is_detected_from_commit() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let new = fixture
        .call(["run", "new", GOAL, "--json", "--repo"])
        .arg(repo.path())
        .run()
        .ok()
        .json();
    assert_eq!(new["state"], "new");
    let early = ledger_files(&fixture);
    fixture.run(["run", "advance"]).ok();
    fixture.run(["run", "land", &id_of(&new)]).ok();
    let directory = repo.path().to_str().unwrap();
    let clean = fixture
        .run(["ledger", "verify", "--json", "--repo", directory])
        .ok()
        .json();
    assert_eq!(clean["schema_version"], "crucible-ledger-verify-v1");
    assert_eq!(clean["verdict"], "pass");
    assert_eq!(clean["findings"], serde_json::json!([]));

    // The ledger as it was in the beginning is a whole chain: only the commit knows that it went on.
    for (path, _) in ledger_files(&fixture) {
        std::fs::remove_file(path).unwrap();
    }
    for (path, bytes) in early {
        std::fs::write(path, bytes).unwrap();
    }
    fixture.run(["ledger", "verify"]).ok();
    let cut = fixture
        .run(["ledger", "verify", "--json", "--repo", directory])
        .exits(1)
        .json();
    assert_eq!(cut["verdict"], "fail");
    assert_eq!(cut["findings"][0]["code"], "ledger-tail-cut", "{cut}");

    // Without the row of the head there is a finding, not an error of the database.
    let connection = rusqlite::Connection::open(fixture.data().join("ledger.db")).unwrap();
    let triggers: Vec<String> = connection
        .prepare(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'chain_head'",
        )
        .and_then(|mut select| select.query_map([], |row| row.get(0))?.collect())
        .unwrap();
    for trigger in triggers {
        connection
            .execute_batch(&format!("DROP TRIGGER {trigger}"))
            .unwrap();
    }
    connection.execute("DELETE FROM chain_head", []).unwrap();
    drop(connection);
    let headless = fixture
        .run(["ledger", "verify", "--json"])
        .exits(1)
        .json()
        .to_string();
    assert!(headless.contains("ledger-head-edited"), "{headless}");
}

#[test]
fn replay_does_not_run_repository_code() {
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let ran = fixture.path("ran");
    let repo = small()
        .file(".gitattributes", "*.txt filter=evil\n")
        .file("src/the area.txt", "area\n")
        .executable("tool.sh", "exit 0\n")
        .symlink("link.py", "src/area.py")
        .build();
    let evil = format!("touch '{}'; cat", ran.display());
    let hook = format!("#!/bin/sh\ntouch '{}'\n", ran.display());
    for hook_name in [
        "post-checkout",
        "post-index-change",
        "reference-transaction",
    ] {
        let path = repo.path().join(".git/hooks").join(hook_name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &hook).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    let id = id_of(&fixture.start(repo.path()).ok().json());
    repo.git(["config", "filter.evil.smudge", &evil]);
    repo.git(["config", "filter.evil.clean", &evil]);
    repo.git(["config", "core.fsmonitor", &evil]);
    let before = snapshot(&repo, &fixture);
    let replayed = fixture.run(["run", "replay", &id, "--json"]).ok().json();
    assert_eq!(replayed["different"], serde_json::json!([]), "{replayed}");
    assert!(!ran.exists(), "the repository's own programs were run");
    before.is_still(&snapshot(&repo, &fixture));
}

#[test]
fn only_commit_trailers_anchor_the_ledger() {
    let run = Verified::new();
    run.fixture.run(["run", "land", &run.id]).ok();
    let directory = run.repo.path().to_str().unwrap();
    let verify = || {
        run.fixture
            .run(["ledger", "verify", "--json", "--repo", directory])
    };
    let made_up = format!("Crucible-Ledger: 99999:{}", "ab".repeat(32));
    let commit = |message: &str| {
        run.repo
            .git(["commit", "--quiet", "--allow-empty", "-m", message])
    };
    // Words about a trailer are none.
    commit(&format!(
        "Tell of the ledger\n\n{made_up}\n\nThat is how a head looks."
    ));
    commit(&format!(
        "Quote it\n\nIt said `{made_up}`.\n\nReviewed-by: Somebody"
    ));
    verify().ok();
    commit(&format!(
        "Vouch for more than there is\n\nReviewed-by: Somebody\n{made_up}"
    ));
    let failed = verify().exits(1).json();
    assert_eq!(failed["findings"][0]["code"], "ledger-tail-cut", "{failed}");
    // What is not in the history of what is checked out vouches for nothing.
    run.repo.git(["reset", "--quiet", "--hard", "HEAD^"]);
    verify().ok();
}

/// The ledger's database with what SQLite keeps beside it.
fn ledger_files(fixture: &Fixture) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(fixture.data())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let ours = entries.filter(|path| {
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("ledger.db")
    });
    ours.map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

#[test]
fn landing_gates_run_first_and_can_refuse() {
    for (script, lands) in [("echo slow\nexit 3\n", false), ("echo slow\n", true)] {
        let repo = small()
            .file(".crucible/config.toml", SLOW)
            .file("slow.sh", script)
            .build();
        let server = answering(good_answer());
        let fixture = Fixture::with(&server);
        let run = fixture.start(repo.path()).ok().json();
        assert_eq!(run["state"], "verified", "no attempt is tried with it");
        let id = id_of(&run);
        let before = Snapshot::take([repo.path()]);
        let land = fixture.run(["run", "land", &id, "--json"]);
        if lands {
            land.ok();
            assert_eq!(repo.git(["rev-list", "--count", "HEAD"]), "2");
            let log = fixture.run(["ledger", "log", "--json"]).ok().stdout;
            assert!(
                log.contains("\"full_gates\"") && log.contains("\"slow\""),
                "{log}"
            );
            let document = full_gates(&fixture, &id, 1);
            assert_eq!(
                (&document["result"], &document["gate"]),
                (&json!("PASS"), &json!("full"))
            );
        } else {
            let message = land.exits(1).message();
            assert!(
                message.contains("slow") && message.contains("--gate full"),
                "{message}"
            );
            assert!(
                message.contains("this gate also fails without the change"),
                "{message}"
            );
            let next = fixture.status()["next"].as_str().unwrap().to_owned();
            assert!(
                next.contains("artifacts/full_gates_001.json") && next.contains("run land"),
                "{next}"
            );
            // What they said is kept, of every try.
            fixture.run(["run", "land", &id]).exits(1);
            for number in [1, 2] {
                let value = full_gates(&fixture, &id, number);
                assert_eq!(
                    (&value["result"], &value["gate"]),
                    (&json!("FAIL"), &json!("full"))
                );
            }
            before.is_still(&Snapshot::take([repo.path()]));
        }
    }
}

/// The settings of a repository whose gate `slow` is kept for the landing.
const SLOW: &str = "[gates.tests]\ncommand = [\"sh\", \"./check.sh\"]\n\
                    [gates.slow]\ncommand = [\"sh\", \"./slow.sh\"]\nlevel = \"full\"\n";

/// A repository with such a gate, and a verified run on it.
fn slow(script: &str) -> Verified {
    let repo = small()
        .file(".crucible/config.toml", SLOW)
        .file("slow.sh", script)
        .build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let id = id_of(&fixture.start(repo.path()).ok().json());
    Verified {
        repo,
        server,
        fixture,
        id,
    }
}

#[test]
fn committer_identity_is_checked_before_landing_gates() {
    let run = slow("echo slow\n");
    let (settings, backup_path) = (
        run.fixture.home().join(".gitconfig"),
        run.fixture.home().join("aside"),
    );
    std::fs::rename(&settings, &backup_path).unwrap();
    let refused = run.fixture.run(["run", "land", &run.id]).exits(2);
    assert!(
        refused.stderr.contains("git config user.email"),
        "{}",
        refused.stderr
    );
    assert!(!refused.stderr.contains("gate slow"), "{}", refused.stderr);
    assert!(!run.file("artifacts/full_gates_001.json").exists());
    std::fs::rename(&backup_path, &settings).unwrap();
    run.fixture.run(["run", "land", &run.id]).ok();
}

#[test]
fn landing_gates_are_compared_with_their_baseline() {
    let tests = |before: &str, after: &str| {
        slow(&format!(
            "echo slow\nif grep -q 'width [*] height' src/area.py; then {after}; else {before}; fi\n"
        ))
    };
    let unittest = |ran: u32, end: &str| format!("printf 'Ran {ran} tests in 0.1s\\n\\n{end}\\n'");
    let run = tests(&unittest(2, "OK"), &unittest(2, "OK (skipped=1)"));
    run.stays(1, "verify-fewer-tests");
    assert_eq!(full_gates(&run.fixture, &run.id, 1)["result"], "FAIL");
    tests(&unittest(2, "OK"), "true").stays(1, "verify-tally-missing");
    tests("true", &unittest(2, "FAILED (failures=1)")).stays(1, "verify-tests-failed");
    let run = tests(&unittest(2, "OK"), &unittest(3, "OK"));
    run.fixture.run(["run", "land", &run.id]).ok();
    let log = run.fixture.run(["ledger", "log", "--json"]).ok().stdout;
    assert!(
        log.contains(r#""before": ["#),
        "what they told before is kept: {log}"
    );
}

#[test]
fn landing_gate_counts_only_if_sensitive_to_sources() {
    for (script, counts) in [
        ("echo slow\n", false),
        ("python3 -m py_compile src/*.py\n", true),
    ] {
        let run = slow(script);
        let landed = run.fixture.run(["run", "land", &run.id]).ok();
        let message = "gate slow has the same result on deliberately broken sources";
        assert_eq!(
            landed.stderr.contains(message),
            !counts,
            "{}",
            landed.stderr
        );
        let report = full_gates(&run.fixture, &run.id, 1).to_string();
        assert_eq!(
            report.contains("verify-gate-not-counted"),
            !counts,
            "{report}"
        );
    }
}

/// Takes seven seconds: for each of the two files a gate sleeps three, in which the file is edited.
#[test]
fn edit_during_landing_gates_does_not_land() {
    for name in ["artifacts/PLAN.md", "artifacts/verify_report.json"] {
        let run = slow("echo slow\nsleep 3\n");
        let mut command = run.fixture.call(["run", "land", &run.id]).command();
        let mut child = command
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("gate slow") {
            line.clear();
            assert_ne!(
                said.read_line(&mut line).unwrap(),
                0,
                "it ended before the gate ran"
            );
        }
        let full_text = std::fs::read_to_string(run.file(name)).unwrap();
        std::fs::write(run.file(name), format!("{full_text}\n")).unwrap();
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{rest}");
        assert!(rest.contains(name.rsplit('/').next().unwrap()), "{rest}");
        assert_eq!(run.repo.git(["rev-list", "--count", "HEAD"]), "1");
    }
}

/// The report of the gates before a landing; their logs are there and what they printed, are in the bundle, and cannot be changed unseen.
fn full_gates(fixture: &Fixture, id: &str, number: u32) -> Value {
    let run = fixture.runs().pop().unwrap();
    let report = format!("artifacts/full_gates_{number:03}.json");
    let [stdout, stderr] =
        ["stdout", "stderr"].map(|stream| format!("logs/full_gates_{number:03}.{stream}.log"));
    assert!(
        std::fs::read_to_string(run.join(&stdout))
            .unwrap()
            .contains("slow")
    );
    fixture.run(["run", "verify-record", id]).ok();
    let out = fixture.path("evidence.zip");
    fixture
        .call(["run", "bundle", id, "--force", "--out"])
        .arg(&out)
        .run()
        .ok();
    let archive = zip::ZipArchive::new(std::fs::File::open(&out).unwrap()).unwrap();
    for name in [&report, &stdout, &stderr] {
        assert!(
            archive
                .file_names()
                .any(|entry| entry.unwrap() == name.as_str()),
            "{name}"
        );
        let (path, full_content) = (run.join(name), std::fs::read(run.join(name)).unwrap());
        std::fs::write(&path, "forged").unwrap();
        let message = fixture
            .run(["run", "verify-record", id, "--json"])
            .exits(1)
            .stdout;
        assert!(
            message.contains("record-file-edited") && message.contains(name),
            "{message}"
        );
        fixture.run(["run", "land", id]).exits(1);
        std::fs::write(&path, full_content).unwrap();
    }
    serde_json::from_slice(&std::fs::read(run.join(&report)).unwrap()).unwrap()
}

#[test]
fn named_link_mode_and_binary_land_as_judged() {
    let repo = small().file("src/tool.sh", "#!/bin/sh\n").build();
    repo.write("src/area.py", right());
    repo.write("src/i.bin", b"\0\x01\x02\0");
    std::os::unix::fs::symlink("area.py", repo.path().join("src/link")).unwrap();
    std::fs::set_permissions(
        repo.path().join("src/tool.sh"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    repo.git(["add", "--all"]);
    let expected = repo.git(["write-tree"]);
    let diff = repo.git(["diff", "--cached", "--binary"]) + "\n";
    repo.git(["reset", "--quiet", "--hard"]);
    let server = answering(diff);
    let fixture = Fixture::with(&server);
    let mut call = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_RUN_EDIT_FORMAT", "unified-diff");
    for file in ["src/area.py", "src/i.bin", "src/link", "src/tool.sh"] {
        call = call.args(["--file", file]);
    }
    let started = call.run().ok().json();
    assert_eq!(started["state"], "verified", "{started}");
    fixture.run(["run", "land", &id_of(&started)]).ok();
    assert_eq!(
        repo.git(["rev-parse", "HEAD^{tree}"]).trim(),
        expected.trim()
    );
    assert_eq!(
        std::fs::read_link(repo.path().join("src/link")).unwrap(),
        Path::new("area.py")
    );
    assert_eq!(repo.status().trim(), "");
    fixture.run(["run", "verify-record", &id_of(&started)]).ok();
}
