//! The walkthroughs of `docs/walkthroughs/`, followed to their end with real git.

use super::guide::{Answers, Guide, Reader};
use crate::support::{Fixture, GOAL, GOOD_DIFF, small};

/// What a reader has before they begin.
const A_REPOSITORY: &str = "\
```sh
git init -q -b main .
git add .
git commit -q -m 'As it was'
```
";

#[test]
fn twenty_minute_walkthrough_reaches_a_passing_gate() {
    const HERE: &str = "crates/cli/tests/cli/spec/walkthrough";
    let guide = Guide::read("docs/walkthroughs/twenty-minutes.md");
    assert_eq!(guide.commands(), 13);
    let answers = Answers::read(&format!("{HERE}/answers"));
    let server = answers.serve();
    let reader = Reader::with(&server, "shop")
        .copy(&format!("{HERE}/repository"))
        .setting("CRUCIBLE_LLM_GATEWAY_MODEL", "written-by-hand");
    reader.follow(&Guide::new("what is there before", A_REPOSITORY));
    reader.follow(&guide);
    answers.all_asked();
    assert!(
        reader
            .file("shop/accounts.py")
            .contains("record[\"user\"] == user"),
        "the fixup is applied"
    );
}

#[test]
fn spec_walkthrough_ends_with_gate_on_clone() {
    const EXAMPLE: &str = "examples/fullstack-web";
    let guide = Guide::read("docs/walkthroughs/from-spec-to-pull-request.md");
    assert_eq!(guide.commands(), 9);
    // The example's own recording answers.
    let reader = Reader::new("tool-desk").copy(EXAMPLE);
    reader.follow(&guide);
    let sarif: serde_json::Value =
        serde_json::from_str(&reader.file("../pipeline/spec-gate.sarif")).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert!(
        results
            .iter()
            .all(|result| result["ruleId"] == "gate-answers-recorded"),
        "{results:?}"
    );
    assert!(
        reader
            .file("../pipeline/server/due.js")
            .contains("Math.floor"),
        "the code is in the pull request"
    );
}

/// Claude Code is played by this test: it reads what the page tells it to read and writes what the page tells it to write.
#[test]
fn claude_code_page_matches_the_program() {
    let page = std::fs::read_to_string(format!(
        "{}/../../docs/walkthroughs/claude-code.md",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap();
    let repo = small().build();
    let fixture = Fixture::new();
    // The commands of the table are commands of the program; the spec that they name is not there.
    let commands: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with('|'))
        .filter_map(|line| line.split('`').nth(1)?.strip_prefix("crucible "))
        .map(|command| command.split(' ').collect())
        .collect();
    assert_eq!(commands.len(), 5);
    for command in commands {
        let ran = fixture
            .call(command.iter().copied())
            .current_dir(repo.path())
            .run();
        assert!(
            !ran.stderr.contains("Usage:"),
            "{command:?}: {}",
            ran.stderr
        );
        let document = if ran.stdout.is_empty() {
            ran.error()
        } else {
            ran.json()
        };
        assert!(
            document["schema_version"].is_string(),
            "{command:?}: {document}"
        );
    }
    assert!(page.contains(&format!(
        "crucible run start \"{GOAL}\" --mode manual_outbox --json"
    )));
    let start = ["run", "start", GOAL, "--mode", "manual_outbox", "--json"];
    let mut status = fixture.call(start).current_dir(repo.path()).run().json();
    for _ in 0..6 {
        let Some(owed) = status["owed"].as_object() else {
            break;
        };
        let directory = std::path::Path::new(status["directory"].as_str().unwrap());
        let prompt =
            std::fs::read_to_string(directory.join(owed["prompt"].as_str().unwrap())).unwrap();
        assert!(prompt.contains(GOAL), "{prompt}");
        std::fs::write(directory.join(owed["target"].as_str().unwrap()), GOOD_DIFF).unwrap();
        status = fixture
            .call(["run", "advance", "--json"])
            .current_dir(repo.path())
            .run()
            .json();
    }
    assert_eq!(status["state"], "verified", "{status}");
    assert!(
        std::path::Path::new(status["directory"].as_str().unwrap())
            .join("artifacts/diff.patch")
            .exists()
    );
    fixture
        .call(["run", "land"])
        .current_dir(repo.path())
        .run()
        .ok();
    // What it wrote by itself is judged before it is committed.
    repo.git(["reset", "-q", "--hard", "HEAD~1"]);
    std::fs::write(fixture.path("change.patch"), GOOD_DIFF).unwrap();
    std::fs::write(fixture.path("policy.json"), r#"{"allow_roots": ["src/"]}"#).unwrap();
    assert!(
        page.contains("crucible patch check --patch /tmp/change.patch --policy policy.json --json")
    );
    let check = fixture
        .call(["patch", "check", "--json", "--patch"])
        .arg(fixture.path("change.patch"));
    let found = check
        .arg("--policy")
        .arg(fixture.path("policy.json"))
        .current_dir(repo.path())
        .run()
        .ok()
        .json();
    assert_eq!(found["verdict"], "pass");
}
