//! The catalogue of behaviours: `crucible behaviors check`, and the same gate in a run.

use crucible_testkit::{RepoBuilder, TestRepo};
use serde_json::Value;

use crate::support::{
    Fixture, Ran, WRONG, answering, good_answer, right, small, snapshot, whole_file,
};

const PAGE: &str = "# B001: the area\n\n## Reason\n\nx\n\n## Behavior\n\nx\n\n## Result\n\nx\n";
const MARKED: &str = "# BEHAVIOR_ID: B001\n";

fn whole() -> RepoBuilder {
    small()
        .file(
            "docs/behaviors/INDEX.md",
            "# Behaviours\n\n- [B001](B001-area.md)\n",
        )
        .file("docs/behaviors/B001-area.md", PAGE)
        .file("src/area.py", format!("{MARKED}{WRONG}"))
}

fn check(fixture: &Fixture, repo: &TestRepo) -> Ran {
    fixture
        .call(["behaviors", "check", "--json", "--repo"])
        .arg(repo.path())
        .run()
}

fn codes(ran: &Ran) -> Vec<String> {
    let document = ran.json();
    assert_eq!(document["schema_version"], "crucible-behaviors-check-v1");
    let findings = document["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|finding| finding["code"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn catalogue_is_compared_with_tracked_files_both_ways() {
    let fixture = Fixture::new();
    let repo = whole().build();
    let before = snapshot(&repo, &fixture);
    assert_eq!(codes(&check(&fixture, &repo).ok()), [""; 0]);
    let ran = fixture
        .call(["behaviors", "check"])
        .current_dir(repo.path().join("src"))
        .run();
    assert_eq!(ran.ok().stdout, "code, index and pages agree\n");
    before.is_still(&snapshot(&repo, &fixture));

    repo.write("src/new.py", "# BEHAVIOR_ID: B002\n");
    assert_eq!(codes(&check(&fixture, &repo).ok()), [""; 0]);
    repo.git(["add", "src/new.py"]);
    assert_eq!(
        codes(&check(&fixture, &repo).exits(1)),
        ["behaviors-marker-unlisted"]
    );
    repo.write("src/area.py", WRONG);
    assert_eq!(
        codes(&check(&fixture, &repo).exits(1)),
        ["behaviors-entry-unmarked", "behaviors-marker-unlisted"]
    );
    repo.git(["rm", "-qf", "src/new.py", "docs/behaviors/B001-area.md"]);
    assert_eq!(
        codes(&check(&fixture, &repo).exits(1)),
        ["behaviors-entry-unmarked", "behaviors-page-missing"]
    );
    repo.git(["rm", "-qf", "docs/behaviors/INDEX.md"]);
    assert_eq!(
        codes(&check(&fixture, &repo).ok()),
        ["behaviors-no-catalogue"]
    );
    let ran = fixture
        .call(["behaviors", "check"])
        .current_dir(repo.path())
        .run()
        .ok();
    assert!(
        ran.stdout
            .starts_with("info behaviors-no-catalogue: docs/behaviors/INDEX.md\n"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout
            .ends_with("\nno behaviour catalogue; nothing was checked\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn nothing_outside_of_the_repository_is_read() {
    let fixture = Fixture::new();
    let outside = fixture.path("outside.md");
    std::fs::write(&outside, PAGE).unwrap();
    let repo = small()
        .file("docs/behaviors/INDEX.md", "- B001\n")
        .symlink("docs/behaviors/B001-area.md", &outside)
        .file("src/area.py", MARKED)
        .build();
    assert_eq!(
        codes(&check(&fixture, &repo).exits(1)),
        ["behaviors-unreadable"]
    );
    fixture
        .run(["behaviors", "check", "--json", "--repo", "/"])
        .exits(2)
        .error();
}

#[test]
fn ten_thousand_entries_are_judged() {
    let mut builder = small();
    let (mut index, mut markers) = (String::new(), String::new());
    for id in 1000..11_000 {
        index.push_str(&format!("- B{id}\n"));
        markers.push_str(&format!("# BEHAVIOR_ID: B{id}\n"));
    }
    builder = builder
        .file("docs/behaviors/INDEX.md", index)
        .file("src/all.py", markers);
    let repo = builder.build();
    let found = codes(&check(&Fixture::new(), &repo).exits(1));
    assert_eq!(found.len(), 10_000);
    assert!(found.iter().all(|code| code == "behaviors-page-missing"));
}

/// The first attempt's report of a run with this answer.
fn report_of(repo: &TestRepo, answer: String) -> (Value, Value) {
    let server = answering(answer);
    let fixture = Fixture::with(&server);
    let status = fixture
        .start_call(repo.path())
        .args(["--max-iterations", "1"])
        .run()
        .json();
    let directory = status["directory"].as_str().unwrap();
    let report =
        std::fs::read_to_string(format!("{directory}/attempts/001/verify_report.json")).unwrap();
    (status, serde_json::from_str(&report).unwrap())
}

#[test]
fn catalogue_in_a_run_is_judged_on_copy() {
    let marked = whole_file("src/area.py", &format!("{MARKED}{}", right()));
    let (status, report) = report_of(&whole().build(), marked);
    assert_eq!(
        (status["state"].as_str(), report["result"].as_str()),
        (Some("verified"), Some("PASS")),
        "{report}"
    );
    assert!(
        report["executed_gates"]
            .as_array()
            .unwrap()
            .contains(&Value::from("behavior_catalog_check"))
    );

    // The same change without the marker: every command passes, and the entry has lost its code.
    let (status, report) = report_of(&whole().build(), good_answer());
    assert_eq!(
        (status["state"].as_str(), report["result"].as_str()),
        (Some("failed"), Some("FAIL")),
        "{report}"
    );
    let kinds: Vec<&str> = report["failures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|failure| failure["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["behaviors-entry-unmarked"]);
}

#[test]
fn run_without_a_catalogue_reports_its_absence() {
    let (_, report) = report_of(&small().build(), good_answer());
    assert_eq!(report["result"], "PASS");
    assert!(
        report["executed_gates"]
            .as_array()
            .unwrap()
            .contains(&Value::from("behavior_catalog_check"))
    );
    assert_eq!(report["warnings"][0]["code"], "behaviors-no-catalogue");
}

#[test]
fn broken_catalogue_is_reported_before_any_change() {
    let repo = small().file("docs/behaviors/INDEX.md", "- B001\n").build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let ran = fixture
        .start_call(repo.path())
        .args(["--max-iterations", "1"])
        .run()
        .exits(1);
    assert!(
        ran.stderr
            .contains("is invalid before any change (behaviors-entry-unmarked B001)"),
        "{}",
        ran.stderr
    );
    let status = ran.json();
    let findings = status["attempts"][0]["findings"].to_string();
    assert!(
        findings.contains("behaviors-entry-unmarked")
            && findings.contains("behaviors-page-missing"),
        "{findings}"
    );
}
