//! Code under test that ends its own test process, or has its tests skipped, leaves an exit code of 0 behind: what counts
//! is what the runner tells, and nothing of such a change lands.

use std::path::{Path, PathBuf};

use crucible_testkit::{RepoBuilder, TestRepo};
use serde_json::Value;

use crate::support::{Fixture, answering, codes, id_of, snapshot, whole_file};

const LIB: &str = "\
pub fn two() -> u8 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_two() {
        assert_eq!(two(), 2);
    }
}
";

fn rust() -> TestRepo {
    RepoBuilder::new()
        .files([
            (".crucible/config.toml", "[gates.tests]\ncommand = [\"cargo\", \"test\", \"--offline\"]\n"),
            (
                "Cargo.toml",
                "[package]\nname = \"two\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
            ),
            ("Cargo.lock", "version = 4\n\n[[package]]\nname = \"two\"\nversion = \"0.1.0\"\n"),
            ("src/lib.rs", LIB),
        ])
        .build()
}

const TOTAL: &str = "def total(numbers):\n    return len(numbers)\n";

fn python() -> TestRepo {
    let gate = "[gates.tests]\ncommand = [\"python3\", \"-m\", \"unittest\", \"discover\", \"-s\", \"tests\", \"-t\", \".\"]\n";
    let test = "import unittest\n\nfrom app.total import total\n\n\nclass Total(unittest.TestCase):\n    \
                def test_sum(self):\n        self.assertEqual(total([1, 2]), 3)\n";
    RepoBuilder::new()
        .files([
            (".crucible/config.toml", gate),
            ("app/__init__.py", ""),
            ("app/total.py", TOTAL),
            ("tests/__init__.py", ""),
            ("tests/test_total.py", test),
        ])
        .build()
}

/// Has the file changed to this, and tells where the run stands; the repository is as it was, whatever came of it.
fn tried(repo: &TestRepo, goal: &str, file: &str, content: &str, exit: i32) -> (Fixture, Value) {
    let server = answering(whole_file(file, content));
    let fixture = Fixture::with(&server);
    let before = snapshot(repo, &fixture);
    let status = start(&fixture, repo.path(), goal, file).exits(exit).json();
    before.is_still(&snapshot(repo, &fixture));
    (fixture, status)
}

fn start(fixture: &Fixture, repo: &Path, goal: &str, file: &str) -> crate::support::Ran {
    let call = fixture.call([
        "run",
        "start",
        goal,
        "--json",
        "--max-iterations",
        "1",
        "--file",
        file,
        "--repo",
    ]);
    // Cargo's toolchain may lie below the user's real home.
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let place = |name: &str, folder: &str| {
        std::env::var_os(name).map_or_else(|| home.join(folder), PathBuf::from)
    };
    let call = call.env("CARGO_HOME", place("CARGO_HOME", ".cargo"));
    call.env("RUSTUP_HOME", place("RUSTUP_HOME", ".rustup"))
        .arg(repo)
        .run()
}

/// The change is refused with this code, and cannot be landed.
#[track_caller]
fn refused(repo: &TestRepo, goal: &str, file: &str, content: &str, code: &str) {
    let (fixture, status) = tried(repo, goal, file, content, 1);
    let found = codes(&status, 1);
    assert!(found.iter().any(|found| found == code), "{found:?}");
    assert_eq!(status["state"], "failed");
    let before = snapshot(repo, &fixture);
    fixture.run(["run", "land", &id_of(&status)]).exits(1);
    before.is_still(&snapshot(repo, &fixture));
}

#[test]
fn rust_code_ending_test_process_is_refused() {
    let exit = "extern \"C\" {\n    fn exit(code: i32) -> !;\n}\n\npub fn two() -> u8 {\n    unsafe { exit(0) }\n}\n";
    let evil = LIB.replace("pub fn two() -> u8 {\n    1\n}\n", exit);
    refused(
        &rust(),
        "make two in src/lib.rs give 2",
        "src/lib.rs",
        &evil,
        "verify-tests-unfinished",
    );
}

#[test]
fn rust_code_letting_tests_finish_is_landed() {
    let repo = rust();
    let right = LIB.replace("    1\n", "    2\n");
    let (fixture, status) = tried(
        &repo,
        "make two in src/lib.rs give 2",
        "src/lib.rs",
        &right,
        0,
    );
    let analysis = fixture
        .data()
        .join("runs")
        .join(id_of(&status))
        .join("artifacts/analysis.json");
    let analysis: Value = serde_json::from_slice(&std::fs::read(analysis).unwrap()).unwrap();
    let document = &analysis["baseline"][0]["tally"]["runners"]["libtest"];
    assert_eq!(
        document,
        &serde_json::json!({ "passed": 0, "failed": 1, "skipped": 0, "unfinished": 0 })
    );
    fixture.run(["run", "land", &id_of(&status)]).ok();
}

#[test]
fn python_code_skipping_its_tests_is_refused() {
    // Nothing of it names the runner, so the gate's own count has to tell.
    let evil = "import gc\n\n\ndef total(numbers):\n    known = [thing for thing in gc.get_objects() if isinstance(thing, type)]\n    \
                raise next(thing for thing in known if thing.__name__.startswith(\"SkipT\"))\n";
    refused(
        &python(),
        "make total in app/total.py add its numbers",
        "app/total.py",
        evil,
        "verify-test-skipped",
    );
}

#[test]
fn python_code_ending_test_process_is_refused() {
    let evil = "import ctypes\n\n\ndef total(numbers):\n    return ctypes.CDLL(None).exit(0)\n";
    refused(
        &python(),
        "make total in app/total.py add its numbers",
        "app/total.py",
        evil,
        "verify-tally-missing",
    );
}

#[test]
fn python_code_that_is_right_is_verified() {
    let right = TOTAL.replace("len", "sum");
    let (_, status) = tried(
        &python(),
        "make total in app/total.py add its numbers",
        "app/total.py",
        &right,
        0,
    );
    assert_eq!(status["state"], "verified");
}
