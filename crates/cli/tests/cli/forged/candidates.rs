//! Several candidates: those that pass are compared, and the report says why one was chosen.

use crucible_testkit::{FakeOpenAi, Reply, RepoBuilder};

use super::python::{PYTHON_REST, UNITTEST};
use super::with_toolchain;
use crate::support::{Fixture, id_of, whole_file};

/// The same result with mistakes that no test notices.
const LONG: &str = "\n\ndef total(items):\n    result = 0\n    for item in items:\n        if item > 1000:\n            result += 7\n        else:\n            result += item\n    return result\n";
const SHORT: &str = "\n\ndef total(items):\n    return sum(items)\n";
const WRONG: &str = "\n\ndef total(items):\n    return 1\n";

#[test]
fn best_of_passing_candidates_is_verified_and_lands() {
    let of = |total: &str| {
        let text = format!("LIMIT = 5\n{total}{PYTHON_REST}");
        Reply::Answer(whole_file(UNITTEST.source, &text))
    };
    let server = FakeOpenAi::start([of(LONG), of(WRONG), of(SHORT)]);
    let repo = RepoBuilder::new()
        .files(UNITTEST.files.iter().copied())
        .build();
    let fixture = Fixture::with(&server);
    let call = fixture.call(["run", "start", UNITTEST.goal, "--json", "--candidates", "3"]);
    let ran = with_toolchain(call)
        .args(["--file", UNITTEST.source, "--repo"])
        .arg(repo.path())
        .run();
    let status = ran.json();
    let ends: Vec<&str> = status["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| attempt["end"].as_str().unwrap())
        .collect();
    assert_eq!(
        ends,
        ["candidate", "verify_failed", "candidate", "verified"],
        "{}",
        ran.stderr
    );
    assert_eq!(status["attempts"][3]["chosen_from"], 3);
    assert_eq!(status["budgets"]["iterations"], 1);
    let text = fixture.run(["run", "status"]).ok().stdout;
    assert!(text.contains("chosen from 2 changes that passed"), "{text}");
    let id = id_of(&status);
    fixture.run(["run", "verify-record", &id]).ok();
    let landed = with_toolchain(fixture.call(["run", "land", &id])).run();
    assert_eq!(landed.code, Some(0), "{}\n{}", landed.stdout, landed.stderr);
    let landed = std::fs::read_to_string(repo.path().join(UNITTEST.source)).unwrap();
    assert!(landed.contains("sum(items)"), "{landed}");
}
