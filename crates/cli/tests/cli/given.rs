//! What a person gives as an answer: the same once more, the wrong form, and what an editor adds.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Fixture, GOOD_DIFF, codes, small};

const PATCH: &str = "artifacts/diff.patch";

/// A run that waits for a person's patch; its directory.
fn waiting(fixture: &Fixture, repo: &std::path::Path) -> PathBuf {
    fixture
        .start_call(repo)
        .args(["--mode", "manual_outbox"])
        .run()
        .exits(1);
    fixture.runs().pop().unwrap()
}

fn give(fixture: &Fixture, run: &std::path::Path, answer: &str) -> Value {
    fs::write(run.join(PATCH), answer).unwrap();
    fixture.run(["run", "advance", "--json"]).exits(1).json()
}

#[test]
fn repeated_judged_answer_costs_person_no_attempt() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let run = waiting(&fixture, repo.path());
    let wrong = GOOD_DIFF.replace("width * height", "width - height");
    assert_eq!(give(&fixture, &run, &wrong)["budgets"]["iterations"], 1);
    for same in [
        format!("{wrong}\n"),
        format!("\n{wrong}"),
        format!("\u{feff}{wrong}"),
        format!("```diff\n{wrong}```\n"),
        wrong.trim_end().to_owned(),
    ] {
        let still = give(&fixture, &run, &same);
        assert_eq!(
            (&still["state"], &still["failure"]),
            (&json!("blocked"), &Value::Null),
            "{same}"
        );
        assert_eq!(
            (
                &still["budgets"]["iterations"],
                &still["budgets"]["outbox_prompts"]
            ),
            (&json!(1), &json!(2))
        );
        assert!(
            fixture
                .run(["run", "advance"])
                .exits(1)
                .stderr
                .contains("judged as attempt 1")
        );
    }
    // The same for words that are not a patch.
    for prose in ["I would multiply.\n", "\nI would multiply.\n\n"] {
        let still = give(&fixture, &run, prose);
        assert_eq!(still["attempts"].as_array().unwrap().len(), 2);
        assert_eq!(
            still["budgets"]["iterations"], 1,
            "what has no form costs no try either"
        );
    }
    fs::write(run.join(PATCH), format!("\u{feff}{GOOD_DIFF}")).unwrap();
    assert_eq!(
        fixture.run(["run", "advance", "--json"]).ok().json()["state"],
        "verified"
    );
}

#[test]
fn person_sees_malformed_answer_and_missing_ones() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let run = waiting(&fixture, repo.path());
    let refused = give(&fixture, &run, "I would return width * height.\n");
    assert_eq!(codes(&refused, 1), ["answer-no-edit"]);
    assert!(
        refused["missing"]
            .as_array()
            .unwrap()
            .contains(&json!(PATCH)),
        "{refused}"
    );
    let prompt = fs::read_to_string(run.join("outbox/002_fixer_fix.md")).unwrap();
    for part in [
        "Missing-Artifacts: artifacts/diff.patch, artifacts/verify_report.json\n",
        "its first line has to begin with `diff --git`",
        "the refused answer",
        "width * height",
    ] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
}

#[test]
fn oversized_answer_is_refused_with_limit_and_path() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let run = waiting(&fixture, repo.path());
    // A directory there is not a valid answer either.
    fs::create_dir(run.join(PATCH)).unwrap();
    let ran = fixture.run(["run", "advance"]).exits(1);
    assert!(
        ran.stderr.contains("is not a valid answer") && ran.stdout.contains("outbox/001_"),
        "{}",
        ran.stderr
    );
    fs::remove_dir(run.join(PATCH)).unwrap();
    fs::write(run.join(PATCH), "x".repeat((2 << 20) + 1)).unwrap();
    let ran = fixture.run(["run", "advance"]).exits(1);
    let place = run.join(PATCH).display().to_string();
    assert!(
        ran.stderr.contains("2097152 bytes") && ran.stderr.contains(&place),
        "{}",
        ran.stderr
    );
    let status = fixture.status();
    assert_eq!(
        (&status["state"], &status["budgets"]["iterations"]),
        (&json!("blocked"), &json!(0))
    );
    assert_eq!(status["owed"]["prompt"], "outbox/001_patchmaker_patch.md");
}

#[test]
fn human_chair_sees_files_and_backups_are_ignored() {
    let (repo, fixture) = (small().build(), Fixture::new());
    fixture.user_config("[dispatch]\nchair = \"manual_outbox\"\n");
    let run = waiting(&fixture, repo.path());
    let prompt = fs::read_to_string(run.join("outbox/001_chair_file_request.md")).unwrap();
    assert!(prompt.contains("\nsrc/area.py\n"), "{prompt}");
    let request = json!({
        "schema_version": "ctcp-file-request-v1", "goal": "x", "reason": "r",
        "needs": [{ "path": "src/area.py", "mode": "full" }],
        "budget": { "max_files": 3, "max_total_bytes": 20_000 },
    });
    fs::write(run.join("artifacts/file_request.json"), "I need it all.\n").unwrap();
    fixture.run(["run", "advance", "--json"]).exits(1);
    let prompt = fs::read_to_string(run.join("outbox/002_chair_file_request.md")).unwrap();
    for part in [
        "I need it all.",
        "Missing-Artifacts: artifacts/file_request.json, ",
    ] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
    fs::write(
        run.join("artifacts/file_request.json"),
        format!("\u{feff}{request}\n"),
    )
    .unwrap();
    let document = fixture.run(["run", "advance", "--json"]).exits(1).json();
    assert_eq!(
        document["owed"]["target"], "artifacts/PLAN_draft.md",
        "{document}"
    );
}
