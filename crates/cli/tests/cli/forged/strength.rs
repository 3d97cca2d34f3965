//! The strength of gates, and sinks of changed lines, as settings require them and `run status` shows them.

use super::python::{PYTHON_REST, UNITTEST};
use super::{Project, tried, with_toolchain};
use crate::support::{Fixture, answering, whole_file};
use crucible_testkit::RepoBuilder;

/// A change whose limit no test reaches.
fn with_untested_limit() -> String {
    let total = "\n\ndef total(items):\n    if len(items) > 100:\n        return 7\n    return sum(items)\n";
    whole_file(UNITTEST.source, &format!("LIMIT = 5\n{total}{PYTHON_REST}"))
}

/// The findings on an answer under these settings of `[run]`, and whether it is verified.
fn judged(settings: &str, answer: &str) -> (bool, Vec<String>) {
    let config = format!("{}\n[run]\n{settings}\n", UNITTEST.files[0].1);
    let mut files = UNITTEST.files.to_vec();
    files[0].1 = &config;
    let project = Project {
        files: &files,
        ..UNITTEST
    };
    let (is_verified, codes, _) = tried(&project, answer);
    (is_verified, codes)
}

#[test]
fn mutation_share_below_required_is_refused() {
    let answer = with_untested_limit();
    let has = |codes: &[String]| codes.iter().any(|code| code == "verify-strength-too-low");
    let (is_verified, codes) = judged("min_strength = 100", &answer);
    assert!(!is_verified && has(&codes), "{codes:?}");
    let (is_verified, codes) = judged("min_strength = 1", &answer);
    assert!(is_verified && !has(&codes), "{codes:?}");
}

#[test]
fn new_sink_without_approval_is_refused() {
    let total = "import os\n\n\ndef total(items):\n    return sum(items) * int(os.environ.get(\"RATE\", \"1\"))\n";
    let answer = whole_file(UNITTEST.source, &format!("LIMIT = 5\n{total}{PYTHON_REST}"));
    for (kinds, code, expected) in [
        ("[\"environment\"]", "verify-sink-not-approved", false),
        ("[\"network\"]", "verify-new-sink", true),
    ] {
        let settings = format!("strength_budget_s = 0\nsinks_need_approval = {kinds}");
        let (is_verified, codes) = judged(&settings, &answer);
        assert_eq!(is_verified, expected, "{kinds}: {codes:?}");
        assert!(
            codes.iter().any(|found| found == code),
            "{kinds}: {codes:?}"
        );
    }
}

#[test]
fn status_shows_what_the_verification_has_shown() {
    let repo = RepoBuilder::new()
        .files(UNITTEST.files.iter().copied())
        .build();
    let server = answering(with_untested_limit());
    let fixture = Fixture::with(&server);
    let call = fixture.call([
        "run",
        "start",
        UNITTEST.goal,
        "--file",
        UNITTEST.source,
        "--repo",
    ]);
    with_toolchain(call).arg(repo.path()).run().ok();
    let text = fixture.run(["run", "status"]).ok().stdout;
    for line in [
        "shown     the gates notice the change when it is broken",
        "shown     the same tests pass in a second world",
        "shown     strength: ",
    ] {
        assert!(text.contains(line), "{line} is missing:\n{text}");
    }
}
