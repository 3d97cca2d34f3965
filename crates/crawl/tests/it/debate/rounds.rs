//! The length and the result of a debate.

use crucible_testkit::Reply;
use serde_json::{Value, json};

use super::support::{Stage, critique, plan, says, step, synthesis};

fn build() -> Value {
    step("build", "cargo build --release")
}

fn test() -> Value {
    step("test", "cargo test")
}

#[tokio::test]
async fn approved_draft_needs_one_round_without_revision() {
    let mut stage = Stage::new(
        [says(&plan(&[build()])), says(&synthesis(&[build()]))],
        [says(&critique(&[], true))],
    );
    let outcome = stage.hold(4).await.unwrap();
    assert_eq!(
        stage.phases(),
        [
            ("draft", 1, "gpt"),
            ("critique", 1, "claude"),
            ("synthesis", 0, "gpt")
        ]
    );
    assert_eq!(outcome.rounds, 1);
    assert_eq!(outcome.steps[0].cmd, "cargo build --release");
    assert_eq!(outcome.dependencies.tools, ["cargo"]);
    assert_eq!(outcome.warnings, [""; 0]);
    // The synthesis claims both, but no critic suggested them.
    assert_eq!(outcome.accepted_suggestions, [""; 0]);
    assert_eq!(outcome.rejected_suggestions, [""; 0]);
    assert_eq!(outcome.summary, "rounds: 1; the plan was approved");
    assert_eq!(
        (outcome.gpt_model.as_str(), outcome.claude_model.as_str()),
        ("test-model", "test-model")
    );
}

#[tokio::test]
async fn unapproved_draft_is_revised_and_reviewed() {
    let mut first = critique(&[("error", "test", "the tests are missing")], false);
    first["suggestions"] = json!([
        {"action": "add", "step_name": "test", "description": "run the tests"},
        {"action": "modify", "step_name": "build", "description": "build for debugging"},
    ]);
    let mut stage = Stage::new(
        [
            says(&plan(&[build()])),
            says(&plan(&[build(), test()])),
            says(&synthesis(&[build(), test()])),
        ],
        [says(&first), says(&critique(&[], true))],
    );
    let outcome = stage.hold(2).await.unwrap();
    assert_eq!(
        stage.phases(),
        [
            ("draft", 1, "gpt"),
            ("critique", 1, "claude"),
            ("revision", 2, "gpt"),
            ("critique", 2, "claude"),
            ("synthesis", 0, "gpt"),
        ]
    );
    assert_eq!(outcome.rounds, 2);
    assert_eq!(
        outcome.summary,
        "rounds: 2; the plan was approved\n\
         accepted: add step \"test\": run the tests (Claude)\n\
         not taken: modify step \"build\": build for debugging (Claude)"
    );
    assert_eq!(
        outcome.accepted_suggestions,
        ["add step \"test\": run the tests — source: Claude"]
    );
    assert_eq!(
        outcome.rejected_suggestions,
        [
            "modify step \"build\": build for debugging — source: Claude — the plan does not follow it"
        ]
    );
    assert_eq!(outcome.warnings, [""; 0]);
}

#[tokio::test]
async fn suggestion_outcome_comes_from_final_steps() {
    let suggesting = |action: &str, step: &str, approved: bool| {
        let mut reply = critique(&[], approved);
        reply["suggestions"] = json!([{"action": action, "step_name": step, "description": "so"}]);
        says(&reply)
    };
    // The revision adds the tests and the synthesis drops them; it follows the last critique instead.
    let release = step("build", "cargo build --locked");
    let mut stage = Stage::new(
        [
            says(&plan(&[build()])),
            says(&plan(&[build(), test()])),
            says(&synthesis(&[release])),
        ],
        [
            suggesting("add", "test", false),
            suggesting("modify", "build", true),
        ],
    );
    let outcome = stage.hold(2).await.unwrap();
    assert_eq!(
        outcome.accepted_suggestions,
        ["modify step \"build\": so — source: Claude"]
    );
    assert_eq!(
        outcome.rejected_suggestions,
        ["add step \"test\": so — source: Claude — the plan does not follow it"]
    );
}

#[tokio::test]
async fn unapproved_debate_ends_with_warnings() {
    for (request_count, held) in [(1, 1), (2, 2), (3, 3), (4, 4), (5, 4), (400, 4)] {
        let never = critique(
            &[
                ("error", "build", "too slow"),
                ("warning", "build", "no --locked"),
            ],
            false,
        );
        let mut stage = Stage::new([says(&plan(&[build()]))], [says(&never)]);
        let script = stage.gpt.base_url();
        stage.gpt = crucible_testkit::FakeApi::answering(|request| {
            let last = request
                .conversation()
                .contains("The debate about a build plan is over");
            says(&if last {
                synthesis(&[build()])
            } else {
                plan(&[build()])
            })
        });
        assert_ne!(script, stage.gpt.base_url());
        let outcome = stage.hold(request_count).await.unwrap();
        assert_eq!(outcome.rounds, held);
        assert_eq!(stage.claude.completions().len(), held as usize);
        assert_eq!(stage.gpt.completions().len(), held as usize + 1);
        let rounds: Vec<u32> = stage
            .phases()
            .iter()
            .filter(|(phase, ..)| *phase == "critique")
            .map(|(_, round, _)| *round)
            .collect();
        assert_eq!(rounds, (1..=held).collect::<Vec<_>>());
        assert_eq!(
            outcome.warnings,
            [
                format!("the debate ended without approval; rounds: {held}"),
                "unresolved error in step \"build\": too slow".to_owned(),
                "unresolved warning in step \"build\": no --locked".to_owned(),
            ]
        );
        assert!(
            outcome
                .summary
                .contains("the plan was not approved\nunresolved: error"),
            "{}",
            outcome.summary
        );
    }
}

#[tokio::test]
async fn approval_with_errors_is_rejected() {
    let contradiction = critique(&[("error", "build", "uses sudo")], true);
    let mut stage = Stage::new(
        [
            says(&plan(&[build()])),
            says(&plan(&[test()])),
            says(&synthesis(&[test()])),
        ],
        [says(&contradiction), says(&critique(&[], true))],
    );
    let outcome = stage.hold(2).await.unwrap();
    assert_eq!(outcome.rounds, 2);
    let message =
        "claude approved the plan of round 1 and named an error in it; that counts as not approved";
    assert_eq!(outcome.warnings, [message]);
    assert!(
        stage
            .heard
            .heard_of("warning: ")
            .contains(&message.to_string())
    );
}

#[tokio::test]
async fn warnings_of_an_approving_critic_are_not_lost() {
    let mut stage = Stage::new(
        [says(&plan(&[build()])), says(&synthesis(&[build()]))],
        [says(&critique(&[("warning", "build", "takes long")], true))],
    );
    let outcome = stage.hold(2).await.unwrap();
    assert_eq!(
        (outcome.rounds, outcome.warnings.as_slice()),
        (
            1,
            &["unresolved warning in step \"build\": takes long".to_owned()][..]
        )
    );
}

/// A list that is cut at its end loses model texts, and none of the program's own notes.
#[tokio::test]
async fn warnings_are_ordered_by_source() {
    let mut last = synthesis(&[build()]);
    last["warnings"] = json!(["says the model"]);
    let open = critique(&[("error", "build", "too slow")], false);
    let mut stage = Stage::new([says(&plan(&[build()])), says(&last)], [says(&open)]);
    assert_eq!(
        stage.hold(1).await.unwrap().warnings,
        [
            "the debate ended without approval; rounds: 1",
            "unresolved error in step \"build\": too slow",
            "says the model",
        ]
    );
}

#[tokio::test]
async fn unreviewed_final_step_is_noted() {
    let mut stage = Stage::new(
        [
            says(&plan(&[build()])),
            says(&synthesis(&[build(), step("extra", "cargo doc")])),
        ],
        [says(&critique(&[], true))],
    );
    let outcome = stage.hold(2).await.unwrap();
    assert_eq!(
        outcome.warnings,
        ["the final plan's step \"extra\" is in no plan that claude reviewed"]
    );
}

#[tokio::test]
async fn one_backend_can_play_both_roles() {
    let mut stage = Stage::new([Reply::Hang], [Reply::Hang]);
    stage.gpt = crucible_testkit::FakeApi::answering(|request| {
        let prompt = request.conversation();
        says(&if prompt.contains("is to be reviewed") {
            critique(&[], true)
        } else if prompt.contains("is over") {
            synthesis(&[build()])
        } else {
            plan(&[build()])
        })
    });
    let gpt = crucible_crawl::PlanAuthor::new(super::support::model("gateway", &stage.gpt, 100));
    let claude = crucible_crawl::PlanCritic::new(super::support::model("gateway", &stage.gpt, 100));
    let outcome = crucible_crawl::debate(
        &gpt,
        &claude,
        &stage.inspection,
        crucible_crawl::DebateRounds::default(),
        super::support::TIMEOUT,
        "crawl-1",
        &mut stage.kept,
        &stage.heard,
    )
    .await
    .unwrap();
    assert_eq!((outcome.rounds, stage.gpt.completions().len()), (1, 3));
}
