//! Held-out tests: no proposer sees them, they run before the landing, and a red one tells only a number.

use std::path::{Path, PathBuf};

use crucible_testkit::{FakeOpenAi, Reply, RepoBuilder};

use super::python::{PYTHON_REST, UNITTEST};
use super::with_toolchain;
use crate::support::{Fixture, Ran, answering, id_of, whole_file};

/// A word that only the held-out test has.
const MARK: &str = "zebrafinch";

/// A change for the tested input alone.
const SPECIAL: &str = "\n\ndef total(items):\n    return {(1, 2): 3}.get(tuple(items), 0)\n";
const RIGHT: &str = "\n\ndef total(items):\n    return sum(items)\n";

/// A directory with one held-out test.
fn held_out(scratch_dir: &Path) -> PathBuf {
    let tests = scratch_dir.join("held/tests");
    std::fs::create_dir_all(&tests).unwrap();
    let test = format!(
        "import unittest\n\nfrom shop import price\n\n\nclass Held(unittest.TestCase):\n    def test_{MARK}(self):\n        self.assertEqual(price.total([5, 6, 7]), 18)\n"
    );
    std::fs::write(tests.join("test_held.py"), test).unwrap();
    scratch_dir.join("held")
}

/// Starts a run with held-out tests and lands it.
fn landed(total: &str, held: &Path) -> (Fixture, Ran, Ran, String) {
    let answer = whole_file(UNITTEST.source, &format!("LIMIT = 5\n{total}{PYTHON_REST}"));
    let server = answering(answer);
    let repo = RepoBuilder::new()
        .files(UNITTEST.files.iter().copied())
        .build();
    let fixture = Fixture::with(&server);
    let call = fixture.call([
        "run",
        "start",
        UNITTEST.goal,
        "--json",
        "--max-iterations",
        "1",
    ]);
    let started = with_toolchain(call)
        .env("CRUCIBLE_RUN_STRENGTH_BUDGET_S", "0")
        .args(["--held-out"])
        .arg(held)
        .args(["--file", UNITTEST.source, "--repo"])
        .arg(repo.path())
        .run();
    let landed = with_toolchain(fixture.call(["run", "land", &id_of(&started.json())])).run();
    let requests = format!("{:?}", server.requests());
    (fixture, started, landed, requests)
}

/// Whether a file below this directory contains the mark, but for the held-out test itself.
fn leaks(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(leaks(&path));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(MARK) {
            found.push(path);
        }
    }
    found
}

#[test]
fn change_for_tested_input_alone_is_refused_before_landing() {
    let temp_dir = tempfile::tempdir().unwrap();
    let held = held_out(temp_dir.path());
    let (fixture, started, landed, question) = landed(SPECIAL, &held);
    assert_eq!(started.json()["state"], "verified", "{}", started.stderr);
    let message = format!("{}{}", landed.stdout, landed.stderr);
    assert_eq!(landed.code, Some(1), "{message}");
    assert!(message.contains("1 of them fail"), "{message}");
    for text in [&message, &started.stdout, &started.stderr, &question] {
        assert!(
            !text.contains(MARK) && !text.contains("[5, 6, 7]"),
            "{text}"
        );
    }
    let leaked: Vec<PathBuf> = fixture.runs().iter().flat_map(|run| leaks(run)).collect();
    assert!(leaked.is_empty(), "{leaked:?}");
    assert_eq!(fixture.status()["state"], "verified");
    fixture
        .run(["run", "verify-record", &id_of(&started.json())])
        .ok();
}

#[test]
fn right_change_lands_with_digests_of_held_out_tests() {
    let temp_dir = tempfile::tempdir().unwrap();
    let held = held_out(temp_dir.path());
    let (fixture, _, landed, _) = landed(RIGHT, &held);
    assert_eq!(landed.code, Some(0), "{}\n{}", landed.stdout, landed.stderr);
    let run = fixture.runs().remove(0);
    let report = std::fs::read_to_string(run.join("artifacts/held_out.json")).unwrap();
    assert!(
        report.contains("\"passed\":1") && !report.contains(MARK),
        "{report}"
    );
    let events = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
    assert!(events.contains("HELD_OUT_RUN"), "{events}");
    let status = fixture.run(["run", "status"]).ok().stdout;
    assert!(status.contains("held-out tests: 1 passed"), "{status}");
    let id = id_of(&fixture.status());
    let view = fixture.run(["report", &id, "--json"]).ok().json();
    let result = &view["held_out"]["result"];
    assert_eq!(
        (&result["outcome"], &result["passed"], &result["failed"]),
        (&"passed".into(), &1.into(), &0.into()),
        "{view:#}"
    );
    let markdown = fixture.run(["report", &id]).ok().stdout;
    assert!(markdown.contains("1 passed, 0 failed"), "{markdown}");
    assert!(!view.to_string().contains(MARK) && !markdown.contains(MARK));
}

#[test]
fn tested_code_cannot_read_held_out_tests() {
    let temp_dir = tempfile::tempdir().unwrap();
    let held = held_out(temp_dir.path());
    let path = held.join("tests/test_held.py");
    let reader = format!(
        "\n\ndef total(items):\n    try:\n        with open({path:?}) as file:\n            return len(file.read())\n    except OSError:\n        return sum(items)\n"
    );
    let (_, started, landed, _) = landed(&reader, &held);
    // It would return another number if it could read the file.
    assert_eq!(started.json()["state"], "verified", "{}", started.stderr);
    assert_eq!(landed.code, Some(0), "{}\n{}", landed.stdout, landed.stderr);
}

#[test]
fn held_out_tests_in_the_repository_are_refused() {
    let repo = RepoBuilder::new()
        .files(UNITTEST.files.iter().copied())
        .build();
    let fixture = Fixture::new();
    let call = fixture.call(["run", "start", UNITTEST.goal, "--held-out"]);
    let ran = call
        .arg(repo.path().join("tests"))
        .args(["--repo"])
        .arg(repo.path())
        .run();
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("inside the repository"),
        "{}",
        ran.stderr
    );
}

#[test]
fn proposers_cannot_read_held_out_tests() {
    let temp_dir = tempfile::tempdir().unwrap();
    let held = held_out(temp_dir.path());
    let test = held.join("tests/test_held.py");
    // The repository has a link to it, and the model asks for the file by every name.
    let asks = format!(
        "NEED: shop/link/test_held.py\nSEARCH: {}\nNEED: ../held/tests/test_held.py\n",
        &MARK[..5]
    );
    let answer = whole_file(UNITTEST.source, &format!("LIMIT = 5\n{RIGHT}{PYTHON_REST}"));
    let server = FakeOpenAi::start([Reply::Answer(asks), Reply::Answer(answer)]);
    let repo = RepoBuilder::new()
        .files(UNITTEST.files.iter().copied())
        .symlink("shop/link", held.join("tests"))
        .build();
    let fixture = Fixture::with(&server);
    let start = || {
        let call = fixture.call(["run", "start", UNITTEST.goal, "--json", "--held-out"]);
        with_toolchain(call)
            .env("CRUCIBLE_RUN_STRENGTH_BUDGET_S", "0")
            .arg(&held)
            .args(["--max-iterations", "1", "--repo"])
            .arg(repo.path())
    };
    start().run();
    let requests = format!("{:?}", server.requests());
    assert!(
        requests.contains("test_held.py") && !requests.contains(MARK),
        "{requests}"
    );
    // A command of the user prints what it can read as its answer.
    let command = format!("cat {}", test.display());
    let ran = start()
        .args(["--mode", "api_agent"])
        .env("SDDAI_PATCH_CMD", command)
        .run();
    assert!(
        !format!("{}{}", ran.stdout, ran.stderr).contains(MARK),
        "{}",
        ran.stderr
    );
    assert_eq!(fixture.runs().len(), 2);
    let leaked: Vec<PathBuf> = fixture.runs().iter().flat_map(|run| leaks(run)).collect();
    assert!(leaked.is_empty(), "{leaked:?}");
}
