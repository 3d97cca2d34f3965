//! Roles that the run's provider does not serve: a person who answers prompts, a chair that is a model, second opinions.

use std::fs;
use std::path::PathBuf;

use crucible_testkit::{FakeOpenAi, Reply};
use serde_json::{Value, json};

use crate::support::{Fixture, GOOD_DIFF, codes, good_answer, id_of, small};

/// A server that gives these answers one after the other.
fn saying(answers: impl IntoIterator<Item = String>) -> FakeOpenAi {
    FakeOpenAi::start(answers.into_iter().map(Reply::Answer).collect::<Vec<_>>())
}

fn request(paths: &[&str], max_files: u64) -> String {
    let needs: Vec<Value> = paths
        .iter()
        .map(|path| json!({ "path": path, "mode": "full" }))
        .collect();
    let budget = json!({ "max_files": max_files, "max_total_bytes": 20_000 });
    json!({ "schema_version": "ctcp-file-request-v1", "goal": "x", "needs": needs, "budget": budget, "reason": "r" })
        .to_string()
}

const PLAN: &str = "Scope-Allow: src/area.py\nScope-Deny:\nStop: verified\nBehaviors:\n";

/// The only run's directory.
fn run_of(fixture: &Fixture) -> PathBuf {
    fixture.runs().pop().unwrap()
}

fn prompts(fixture: &Fixture) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(run_of(fixture).join("outbox"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(|first: char| first.is_ascii_digit()))
        .collect();
    names.sort();
    names
}

#[test]
fn person_takes_run_from_goal_to_commit() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let started = fixture
        .start_call(repo.path())
        .args(["--mode", "manual_outbox"])
        .run()
        .exits(1)
        .json();
    let id = id_of(&started);
    assert_eq!(started["state"], "blocked");
    let owed = json!({
        "role": "patchmaker", "action": "patch", "target": "artifacts/diff.patch",
        "prompt": "outbox/001_patchmaker_patch.md",
    });
    assert_eq!(started["owed"], owed);
    let next = started["next"].as_str().unwrap();
    assert!(
        next.contains("artifacts/diff.patch") && next.contains("crucible run advance"),
        "{next}"
    );
    let run = run_of(&fixture);
    let prompt = fs::read_to_string(run.join("outbox/001_patchmaker_patch.md")).unwrap();
    assert!(
        prompt.contains(&format!("Run-Dir: {}\n", run.display())),
        "{prompt}"
    );
    for part in [
        "return width + height",
        "expected 6",
        "Scope-Allow: src/area.py",
        "begins with `diff --git`",
    ] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
    for name in [
        "CONTEXT.md",
        "CONSTRAINTS.md",
        "FIX_BRIEF.md",
        "EXTERNALS.md",
    ] {
        assert!(run.join("outbox").join(name).is_file(), "{name}");
    }

    let stdout = fixture.run(["run", "status"]).ok().stdout;
    assert!(
        stdout.contains("asked     a person") && !stdout.contains("gateway"),
        "nobody asks a model: {stdout}"
    );

    // Without an answer nothing happens, and nothing is used up.
    let second_json = fixture.run(["run", "advance", "--json"]).exits(1).json();
    assert_eq!(
        (&second_json["state"], &second_json["owed"]),
        (&started["state"], &started["owed"])
    );
    assert_eq!(second_json["budgets"]["outbox_prompts"], 1);

    // Prose is refused, with a review, and the fixer is asked with the reason.
    fs::write(run.join("artifacts/diff.patch"), "I would multiply.\n").unwrap();
    let refused = fixture.run(["run", "advance", "--json"]).exits(1).json();
    assert_eq!(codes(&refused, 1), ["answer-no-edit"]);
    assert_eq!(refused["owed"]["prompt"], "outbox/002_fixer_fix.md");
    assert!(
        fs::read_to_string(run.join("reviews/review_patch.md"))
            .unwrap()
            .contains("Verdict: BLOCK")
    );
    assert!(
        fs::read_to_string(run.join("outbox/FIX_BRIEF.md"))
            .unwrap()
            .contains("answer-no-edit")
    );
    // The same words are not a new answer.
    assert_eq!(
        fixture.run(["run", "advance", "--json"]).exits(1).json()["owed"],
        refused["owed"]
    );

    fs::write(run.join("artifacts/diff.patch"), GOOD_DIFF).unwrap();
    let verified = fixture.run(["run", "advance", "--json"]).ok().json();
    assert_eq!(verified["state"], "verified");
    assert_eq!(verified["owed"], Value::Null);
    assert_eq!(
        prompts(&fixture),
        ["001_patchmaker_patch.md", "002_fixer_fix.md"]
    );
    let replayed = fixture.run(["run", "replay", &id, "--json"]).ok().json();
    assert_eq!(replayed["different"], json!([]));
    fixture.run(["run", "land", &id, "--json"]).ok();
    assert_eq!(
        repo.git(["diff", "--name-status", "HEAD^", "HEAD"]),
        "M\tsrc/area.py"
    );
}

#[test]
fn file_request_by_person_is_judged_like_code() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let file = fixture.path("dispatch.json");
    let text = json!({
        "schema_version": "ctcp-dispatch-config-v1", "mode": "manual_outbox",
        "role_providers": { "librarian": "manual_outbox", "chair": "local_exec" }, "budgets": { "max_outbox_prompts": 9 },
    });
    fs::write(&file, text.to_string()).unwrap();
    let started = fixture
        .start_call(repo.path())
        .arg("--dispatch")
        .arg(&file)
        .run()
        .exits(1)
        .json();
    assert_eq!(started["owed"]["target"], "artifacts/context_pack.json");
    let run = run_of(&fixture);
    let prompt = fs::read_to_string(run.join("outbox/001_librarian_context_pack.md")).unwrap();
    assert!(
        prompt.contains("src/area.py") && prompt.contains("ctcp-context-pack-v1"),
        "{prompt}"
    );
    let request: Value =
        serde_json::from_str(&fs::read_to_string(run.join("artifacts/file_request.json")).unwrap())
            .unwrap();
    let questions: Vec<String> = request["needs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|need| need["path"].as_str().unwrap().to_owned())
        .collect();
    let pack = |words: &dyn Fn(&str, String) -> String| {
        let file = |path: &String| {
            let content = words(path, fs::read_to_string(repo.path().join(path)).unwrap());
            json!({ "path": path, "why": "requested", "content": content })
        };
        let files: Vec<Value> = questions.iter().map(file).collect();
        json!({
            "schema_version": "ctcp-context-pack-v1", "goal": request["goal"], "repo_slug": "r", "summary": "all",
            "files": files, "omitted": [],
        })
        .to_string()
    };
    let target = run.join("artifacts/context_pack.json");
    fs::write(
        &target,
        pack(&|path, text| {
            if path == "src/area.py" {
                "in short: an area".to_owned()
            } else {
                text
            }
        }),
    )
    .unwrap();
    let refused = fixture.run(["run", "advance", "--json"]).exits(1).json();
    assert_eq!(
        refused["owed"]["prompt"],
        "outbox/002_librarian_context_pack.md"
    );
    let second_text = fs::read_to_string(run.join("outbox/002_librarian_context_pack.md")).unwrap();
    assert!(second_text.contains("run-pack-differs"), "{second_text}");

    fs::write(&target, pack(&|_, text| text)).unwrap();
    let packed = fixture.run(["run", "advance", "--json"]).exits(1).json();
    assert_eq!(packed["owed"]["action"], "patch");
    fs::write(run.join("artifacts/diff.patch"), GOOD_DIFF).unwrap();
    let verified = fixture.run(["run", "advance", "--json"]).ok().json();
    assert_eq!(verified["state"], "verified");
    let id = id_of(&started);
    let replayed = fixture.run(["run", "replay", &id, "--json"]).ok().json();
    assert_eq!(replayed["different"], json!([]));
    fixture.run(["run", "verify-record", &id]).ok();
}

#[test]
fn a_person_may_answer_in_any_edit_format() {
    let blocks = "Sure:\n\nsrc/area.py\n<<<<<<< SEARCH\nreturn width + height\n=======\nreturn width * height\n>>>>>>> REPLACE\n";
    let fenced = format!("Here it is:\n```diff\n{GOOD_DIFF}```\nDone.\n");
    for (answer, read_as) in [
        (blocks, "search-replace"),
        (&good_answer(), "whole-file"),
        (&fenced, "unified-diff"),
    ] {
        let (repo, fixture) = (small().build(), Fixture::new());
        let started = fixture
            .start_call(repo.path())
            .args(["--mode", "manual_outbox"])
            .run()
            .exits(1)
            .json();
        let run = run_of(&fixture);
        fs::write(run.join("artifacts/diff.patch"), answer).unwrap();
        let verified = fixture.run(["run", "advance", "--json"]).ok().json();
        let attempt = &verified["attempts"][0];
        assert_eq!(
            (&attempt["asked_for"], &attempt["read_as"]),
            (&json!("unified-diff"), &json!(read_as))
        );
        // The canonical patch takes the place of what was written, which is kept beside it.
        let patch = fs::read_to_string(run.join("artifacts/diff.patch")).unwrap();
        assert!(patch.starts_with("diff --git a/src/area.py"), "{patch}");
        assert_eq!(
            fs::read_to_string(run.join("attempts/001/answer.txt")).unwrap(),
            answer
        );
        let id = id_of(&started);
        let replayed = fixture.run(["run", "replay", &id, "--json"]).ok().json();
        assert_eq!(replayed["different"], json!([]));
        fixture.run(["run", "verify-record", &id]).ok();
        fixture.run(["run", "land", &id, "--json"]).ok();
        assert_eq!(
            repo.git(["diff", "--name-status", "HEAD^", "HEAD"]),
            "M\tsrc/area.py"
        );
    }
}

#[test]
fn waiting_run_replays_as_waiting() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let started = fixture
        .start_call(repo.path())
        .args(["--mode", "manual_outbox"])
        .run()
        .exits(1)
        .json();
    let replayed = fixture
        .run(["run", "replay", &id_of(&started), "--json"])
        .ok()
        .json();
    assert_eq!(
        (&replayed["state"], &replayed["different"]),
        (&json!("blocked"), &json!([]))
    );
}

#[test]
fn secret_in_persons_answer_is_refused_and_removed() {
    let (repo, fixture) = (small().build(), Fixture::new());
    fixture
        .start_call(repo.path())
        .args(["--mode", "manual_outbox"])
        .run()
        .exits(1);
    let run = run_of(&fixture);
    let secret = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    fs::write(
        run.join("artifacts/diff.patch"),
        GOOD_DIFF.replace("width * height\n", &format!("'{secret}'\n")),
    )
    .unwrap();
    let refused = fixture.run(["run", "advance", "--json"]).exits(1).json();
    assert_eq!(codes(&refused, 1), ["run-secret-in-answer"]);
    let mut left = Vec::new();
    let mut rooms = vec![run];
    while let Some(room) = rooms.pop() {
        for entry in fs::read_dir(room).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                rooms.push(path);
            } else if String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(&secret) {
                left.push(path);
            }
        }
    }
    assert_eq!(left, Vec::<PathBuf>::new());
}

#[test]
fn no_more_prompts_are_laid_than_are_allowed() {
    let (repo, fixture) = (small().build(), Fixture::new());
    fixture.user_config("[dispatch]\nmax_outbox_prompts = 1\n");
    fixture
        .start_call(repo.path())
        .args(["--mode", "manual_outbox"])
        .run()
        .exits(1);
    fs::write(run_of(&fixture).join("artifacts/diff.patch"), "no diff\n").unwrap();
    let failed = fixture.run(["run", "advance", "--json"]).exits(1).json();
    assert_eq!(
        (&failed["state"], &failed["failure"]["code"]),
        (&json!("failed"), &json!("run-outbox-full"))
    );
    assert_eq!(prompts(&fixture), ["001_patchmaker_patch.md"]);
    assert!(run_of(&fixture).join("failure_bundle.zip").is_file());
}

#[test]
fn model_as_chair_is_corrected_and_bounded() {
    let answers = [
        "I need src/area.py.".to_owned(),
        request(&["src/area.py", "src/none.py"], 3),
        format!("```json\n{}\n```", request(&["src/area.py"], 3)),
        format!("{PLAN}Names: check.sh\n"),
        PLAN.to_owned(),
        good_answer(),
    ];
    let (repo, server) = (small().build(), saying(answers));
    let fixture = Fixture::with(&server);
    fixture.user_config("[dispatch]\nchair = \"gateway\"\n");
    let started = fixture.start(repo.path()).ok().json();
    assert_eq!(started["state"], "verified");
    assert_eq!(server.requests().len(), 6);
    let read = |path: &str| fs::read_to_string(run_of(&fixture).join(path)).unwrap();
    let expected: Value = serde_json::from_str(&read("artifacts/file_request.json")).unwrap();
    assert_eq!(
        expected["needs"],
        json!([{ "path": "src/area.py", "mode": "full" }])
    );
    assert_eq!(expected["goal"], started["run"]["goal"]);
    let plan = read("artifacts/PLAN.md");
    assert!(
        plan.contains("\nStop: verified\n") && plan.contains("\nNames:\n"),
        "{plan}"
    );
    assert!(read("TRACE.md").contains("ANSWER_TAKEN"));
    let replayed = fixture
        .run(["run", "replay", &id_of(&started), "--json"])
        .ok()
        .json();
    assert_eq!(
        (&replayed["state"], &replayed["different"]),
        (&json!("verified"), &json!([]))
    );
}

#[test]
fn chair_without_valid_answer_ends_run_with_bundle() {
    let (repo, server) = (
        small().build(),
        saying(["no".to_owned(), "nor this".to_owned(), "never".to_owned()]),
    );
    let fixture = Fixture::with(&server);
    fixture.user_config("[dispatch]\nchair = \"gateway\"\n");
    let failed = fixture.start(repo.path()).exits(1).json();
    assert_eq!(
        (&failed["state"], &failed["failure"]["code"]),
        (&json!("failed"), &json!("run-answer-unusable"))
    );
    assert_eq!(server.requests().len(), 3);
    assert!(run_of(&fixture).join("failure_bundle.zip").is_file());
}

#[test]
fn second_opinion_can_block_and_must_be_clear() {
    let block = "Verdict: BLOCK\nBlocking Reasons:\n- the scope is too wide\nRequired Fix/Artifacts:\n- less\n";
    for (answers, state, asked) in [
        (
            vec!["Verdict: APPROVE".to_owned(), good_answer()],
            "verified",
            2,
        ),
        (
            vec![
                "Looks good!".to_owned(),
                "Verdict: APPROVE\nBlocking Reasons: none".to_owned(),
                good_answer(),
            ],
            "verified",
            3,
        ),
        (vec![block.to_owned()], "blocked", 1),
        (
            vec!["Verdict: APPROVE\nBlocking Reasons:\n- but no\n".to_owned(); 3],
            "failed",
            3,
        ),
    ] {
        let (repo, server) = (small().build(), saying(answers));
        let fixture = Fixture::with(&server);
        fixture.user_config("[dispatch]\ncontract_guardian = \"gateway\"\n");
        let ended = fixture.start(repo.path()).json();
        assert_eq!(ended["state"], state, "{ended:#}");
        assert_eq!(server.requests().len(), asked);
        let local =
            fs::read_to_string(run_of(&fixture).join("reviews/review_contract.md")).unwrap();
        assert!(local.contains("Verdict: APPROVE"), "{local}");
        if state == "blocked" {
            let second =
                fs::read_to_string(run_of(&fixture).join("reviews/review_contract_second.md"))
                    .unwrap();
            assert!(
                second.contains("Verdict: BLOCK") && second.contains("too wide"),
                "{second}"
            );
            assert!(
                ended["next"].as_str().unwrap().contains("reviews/"),
                "{ended:#}"
            );
        }
    }
}

#[test]
fn block_of_local_reviewer_prevents_model_calls() {
    let (repo, server) = (small().build(), saying(["Verdict: APPROVE".to_owned()]));
    let fixture = Fixture::with(&server);
    fixture.user_config("[dispatch]\ncontract_guardian = \"gateway\"\ncost_controller = \"gateway\"\n[llm.gateway]\nmax_tokens = 5\n");
    let blocked = fixture.start(repo.path()).exits(1).json();
    assert_eq!(blocked["state"], "blocked");
    assert_eq!(server.requests().len(), 0);
    let cost = fs::read_to_string(run_of(&fixture).join("reviews/review_cost.md")).unwrap();
    assert!(
        cost.contains("Verdict: BLOCK") && cost.contains("plan-answer-too-large"),
        "{cost}"
    );
}

#[test]
fn invalid_dispatch_is_refused_before_the_run_begins() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let file = fixture.path("dispatch.json");
    for (roles, part) in [
        (json!({ "librarian": "gateway" }), "dispatch-service-unfit"),
        (
            json!({ "librarian": "api_agent" }),
            "dispatch-service-unfit",
        ),
        (
            json!({ "patchmaker": "local_exec" }),
            "dispatch-service-unfit",
        ),
        (json!({ "researcher": "gateway" }), "dispatch-service-unfit"),
        (json!({ "chair": "nobody" }), "dispatch-service-unknown"),
        (json!({ "fixer": "council" }), "dispatch-service-unfit"),
    ] {
        let text = json!({
            "schema_version": "ctcp-dispatch-config-v1", "mode": "manual_outbox", "role_providers": roles,
            "budgets": { "max_outbox_prompts": 3 },
        });
        fs::write(&file, text.to_string()).unwrap();
        let message = fixture
            .start_call(repo.path())
            .arg("--dispatch")
            .arg(&file)
            .run()
            .exits(2)
            .message();
        assert!(message.contains(part), "{message}");
    }
    fs::write(&file, "{}").unwrap();
    fixture
        .start_call(repo.path())
        .arg("--dispatch")
        .arg(&file)
        .run()
        .exits(3);
    assert_eq!(fixture.runs(), Vec::<PathBuf>::new());
}
