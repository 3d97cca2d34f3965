//! `crucible run status --watch`: who follows a run sees each event once, and its end; following hurts nothing.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crucible_testkit::{FakeOpenAi, Reply};
use serde_json::Value;

use crate::support::{Fixture, GOAL, answering, good_answer, id_of, small};

/// A run whose model takes this long, in a process of its own.
fn slow(fixture: &Fixture, repo: &crucible_testkit::TestRepo) -> Child {
    let mut command: Command = fixture.start_call(repo.path()).command();
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = 600;
    for _ in 0..deadline {
        if fixture.runs().iter().any(|run| asked(run)) {
            return child;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    panic!("the model was never asked: {:?}", child.wait())
}

fn asked(run: &std::path::Path) -> bool {
    std::fs::read_to_string(run.join("events.jsonl")).is_ok_and(|text| text.contains("MODEL_ASKED"))
}

fn watching(fixture: &Fixture, json: &[&str]) -> Child {
    let mut command = fixture.call(["run", "status", "--watch"]).command();
    command
        .args(json)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn late() -> FakeOpenAi {
    FakeOpenAi::start([Reply::LateAnswer(good_answer(), Duration::from_secs(8))])
}

#[test]
fn watch_prints_events_as_json_lines() {
    let (repo, server) = (small().build(), late());
    let fixture = Fixture::with(&server);
    let mut running = slow(&fixture, &repo);
    let watched = watching(&fixture, &["--json"]).wait_with_output().unwrap();
    assert!(running.wait().unwrap().success());
    assert_eq!(
        watched.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&watched.stderr)
    );
    let lines = String::from_utf8(watched.stdout).unwrap();
    let seen: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        seen.iter()
            .all(|event| event["schema_version"] == "crucible-run-event-v1")
    );
    let numbers: Vec<u64> = seen
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert!(
        numbers.is_sorted_by(|one, other| one < other),
        "{numbers:?}"
    );
    let names: Vec<&str> = seen
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(names.last(), Some(&"VERIFY_PASSED"), "{names:?}");
    assert!(
        names.contains(&"MODEL_ANSWERED") && !names.contains(&"RUN_CREATED"),
        "{names:?}"
    );
    assert!(
        String::from_utf8(watched.stderr)
            .unwrap()
            .contains("is verified")
    );
}

#[test]
fn interrupted_watcher_exits_130_and_run_continues() {
    let (repo, server) = (small().build(), late());
    let fixture = Fixture::with(&server);
    let mut running = slow(&fixture, &repo);
    let mut watcher = watching(&fixture, &[]);
    let mut out = BufReader::new(watcher.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    assert!(first.contains(" is signed"), "{first}");
    let id = nix::unistd::Pid::from_raw(i32::try_from(watcher.id()).unwrap());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT).unwrap();
    assert_eq!(watcher.wait().unwrap().code(), Some(130));
    assert!(running.wait().unwrap().success());
    assert_eq!(fixture.status()["state"], "verified");
}

#[test]
fn watcher_reports_a_run_without_process() {
    let (repo, server) = (small().build(), FakeOpenAi::start([Reply::Hang]));
    let fixture = Fixture::with(&server);
    let mut running = slow(&fixture, &repo);
    let mut watcher = watching(&fixture, &[]);
    let mut out = BufReader::new(watcher.stdout.take().unwrap());
    let mut text = String::new();
    out.read_line(&mut text).unwrap();
    running.kill().unwrap();
    running.wait().unwrap();
    out.read_to_string(&mut text).unwrap();
    assert_eq!(watcher.wait().unwrap().code(), Some(1), "{text}");
    assert!(
        text.contains("no process continues it") && text.contains("crucible run advance"),
        "{text}"
    );
}

#[test]
fn watch_of_ended_run_returns_at_once() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    fixture.start(repo.path()).ok();
    let stdout = fixture.run(["run", "status", "--watch"]).ok().stdout;
    assert_eq!(stdout.lines().count(), 2, "{stdout}");
    assert!(stdout.contains("crucible run land"), "{stdout}");
    let text = fixture.run(["run", "status"]).ok().stdout;
    assert!(
        text.contains("calls     1 of ") && text.contains("tries     1 of "),
        "{text}"
    );
    assert!(!text.contains("missing"), "{text}");
    fixture
        .call(["run", "new", GOAL, "--json", "--repo"])
        .arg(repo.path())
        .run()
        .ok();
    let text = fixture.run(["run", "status"]).ok().stdout;
    assert!(
        text.contains("missing   artifacts/analysis.json, "),
        "{text}"
    );
}

const TWO_GATES: &str = "[gates.tests]\ncommand = [\"sh\", \"./check.sh\"]\n\
    [gates.slow]\ncommand = [\"sh\", \"./slow.sh\"]\nlevel = \"full\"\n";

#[test]
fn verify_runs_gates_again_and_full_runs_all() {
    let repo = small()
        .file(".crucible/config.toml", TWO_GATES)
        .file("slow.sh", "echo slow\nexit 3\n")
        .build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let status = fixture.start(repo.path()).ok().json();
    assert_eq!(
        status["state"], "verified",
        "the full gate fails, and no attempt is tried with it"
    );
    let id = id_of(&status);
    let dir = fixture.data().join("runs").join(&id);
    let before = crate::support::Snapshot::take([repo.path(), &dir]);
    let lite = fixture.run(["verify", "--run", &id, "--json"]).ok().json();
    assert_eq!(lite["schema_version"], "crucible-verify-v1");
    assert_eq!(lite["verdict"], "pass");
    let recorded: Value =
        serde_json::from_slice(&std::fs::read(dir.join("artifacts/verify_report.json")).unwrap())
            .unwrap();
    assert_eq!(lite["report"], recorded);
    let full = fixture
        .call(["verify", "--gate", "full", "--json", "--run"])
        .arg(&dir)
        .run()
        .exits(1)
        .json();
    assert_eq!(full["verdict"], "fail");
    assert_eq!(full["report"]["gate"], "full");
    assert_eq!(full["report"]["commands"].as_array().unwrap().len(), 2);
    assert!(full["findings"].to_string().contains("slow"), "{full}");
    before.is_still(&crate::support::Snapshot::take([repo.path(), &dir]));
    assert_eq!(
        std::fs::read_dir(fixture.data().join("tmp"))
            .unwrap()
            .count(),
        0
    );
    let only_full = small().file(
        ".crucible/config.toml",
        &TWO_GATES[TWO_GATES.find("[gates.slow]").unwrap()..],
    );
    let message = fixture.start(only_full.build().path()).exits(2).message();
    assert!(message.contains("no gate has level lite"), "{message}");
}

/// The machine's own tool opens a bundle: what it lists and tests is what is there.
#[test]
fn bundle_opens_elsewhere_and_is_reproducible() {
    let (repo, server) = (small().build(), answering("no"));
    let fixture = Fixture::with(&server);
    let id = id_of(&fixture.start(repo.path()).exits(1).json());
    let (one, other) = (fixture.path("one.zip"), fixture.path("other.zip"));
    for out in [&one, &other] {
        fixture
            .call(["run", "bundle", &id, "--out"])
            .arg(out)
            .run()
            .ok();
    }
    assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&other).unwrap());
    let script = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\n\
        print('\\n'.join(z.namelist()))\nprint(z.read('artifacts/diff.patch').decode())\n";
    let read = Command::new("python3")
        .args(["-c", script])
        .arg(&one)
        .output()
        .unwrap();
    assert!(
        read.status.success(),
        "{}",
        String::from_utf8_lossy(&read.stderr)
    );
    let names = String::from_utf8(read.stdout).unwrap();
    for name in [
        "MANIFEST.json",
        "TRACE.md",
        "events.jsonl",
        "artifacts/PLAN.md",
        "artifacts/verify_report.json",
        "artifacts/diff.patch",
        "reviews/",
        "reviews/review_patch.md",
        "outbox/",
    ] {
        assert!(
            names.lines().any(|line| line == name),
            "{name} is missing in {names}"
        );
    }
    assert!(names.contains("placeholder:"), "{names}");
}
