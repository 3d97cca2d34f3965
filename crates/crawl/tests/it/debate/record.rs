//! The transcript: every message as it happens, including failures, and no partial state.

use crucible_crawl::{DebateError, MessageRecord};
use crucible_testkit::{Reply, made_up_token};

use super::support::{Stage, critique, instructions, plan, question, says, step, synthesis};

fn good() -> Reply {
    says(&plan(&[step("build", "cargo build")]))
}

fn last() -> Reply {
    says(&synthesis(&[step("build", "cargo build")]))
}

#[tokio::test]
async fn record_has_request_and_reply() {
    let mut stage = Stage::new([good(), last()], [says(&critique(&[], true))]);
    stage.hold(1).await.unwrap();
    let sent = [
        &stage.gpt.completions()[0],
        &stage.claude.completions()[0],
        &stage.gpt.completions()[1],
    ]
    .map(Clone::clone);
    assert_eq!(stage.kept.messages.len(), 3);
    for (stored_message, request) in stage.kept.messages.iter().zip(sent) {
        let both = vec![
            ("system".to_owned(), instructions(&request)),
            ("user".to_owned(), question(&request)),
        ];
        assert_eq!(stored_message.request, both);
        assert_eq!(
            (
                stored_message.provider.as_str(),
                stored_message.model.as_str(),
                stored_message.error.as_str()
            ),
            ("gateway", "test-model", "")
        );
    }
    assert_eq!(
        stage.kept.messages[1].reply,
        critique(&[], true).to_string()
    );
    let message = stage.heard.heard().join("\n");
    assert_eq!(
        message,
        "round 1: gpt (gateway) drafts a plan\nround 1: claude (gateway) reviews the plan\n\
         gpt (gateway) writes the final plan"
    );
}

#[tokio::test]
async fn failed_call_is_recorded_with_its_error() {
    let mut stage = Stage::new([good()], [Reply::Status(500)]);
    let error = stage.hold(1).await.unwrap_err();
    assert!(matches!(error, DebateError::Call(_)));
    let stored_message = stage.kept.messages.last().unwrap();
    assert_eq!(
        (
            stored_message.phase,
            stored_message.reply.as_str(),
            stored_message.model.as_str()
        ),
        ("critique", "", "")
    );
    assert_eq!(stored_message.error, error.to_string());
    assert!(!stored_message.error.is_empty());
}

#[tokio::test]
async fn failed_record_ends_debate() {
    let mut stage = Stage::new([good()], [Reply::Hang]);
    stage.kept.room = 0;
    let error = stage.hold(1).await.unwrap_err();
    assert!(
        matches!(&error, DebateError::Transcript { why } if why == "the disk is full"),
        "{error}"
    );
    assert!(stage.claude.requests().is_empty());
}

#[tokio::test]
async fn dropped_debate_leaves_its_record() {
    let mut stage = Stage::new([good()], [Reply::Hang]);
    {
        let gpt =
            crucible_crawl::PlanAuthor::new(super::support::model("gateway", &stage.gpt, 100));
        let claude =
            crucible_crawl::PlanCritic::new(super::support::model("gateway", &stage.claude, 100));
        let rounds = crucible_crawl::DebateRounds::default();
        let Stage {
            inspection,
            kept,
            heard,
            claude: server,
            ..
        } = &mut stage;
        let held = crucible_crawl::debate(
            &gpt,
            &claude,
            inspection,
            rounds,
            super::support::TIMEOUT,
            "s",
            kept,
            heard,
        );
        let asked = async {
            while server.requests().is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = held => panic!("the critic never answers"),
            () = asked => {}
        }
    }
    assert_eq!(stage.phases(), [("draft", 1, "gpt")]);
}

#[tokio::test]
async fn secret_in_repository_text_is_not_sent() {
    let mut stage = Stage::new([good()], [Reply::Hang]);
    stage.inspection.artifact.readme_excerpt = format!("token {}", made_up_token());
    let error = stage.hold(1).await.unwrap_err();
    assert!(error.to_string().starts_with("nothing was sent"), "{error}");
    assert!(stage.gpt.requests().is_empty());
    let stored_text = format!("{:?}", stage.kept.messages);
    assert!(
        stored_text.contains("token ") && !stored_text.contains("e5F6a1B2"),
        "{stored_text}"
    );
}

#[test]
fn recorded_texts_are_redacted() {
    let secret = made_up_token();
    let record = MessageRecord {
        phase: "draft",
        round: 1,
        owner: "gpt",
        provider: format!("p {secret}"),
        model: format!("m {secret}"),
        request: vec![
            ("user".to_owned(), format!("q {secret}")),
            ("user".to_owned(), "plain".to_owned()),
        ],
        reply: format!("r {secret}"),
        verdict: "",
        error: format!("e {secret}"),
    };
    let redacted = record.clone().redacted();
    assert!(!format!("{redacted:?}").contains("a1B2"), "{redacted:?}");
    assert_eq!(
        (redacted.phase, redacted.round, redacted.owner),
        ("draft", 1, "gpt")
    );
    assert_eq!(redacted.request[1].1, "plain");
    for (text, begins) in [
        (&redacted.model, "m "),
        (&redacted.reply, "r "),
        (&redacted.error, "e "),
    ] {
        assert!(text.starts_with(begins), "{text}");
    }
}

#[tokio::test]
async fn critique_record_contains_its_verdict() {
    let said = [
        (critique(&[], true), "approved"),
        (critique(&[("warning", "build", "slow")], true), "approved"),
        (
            critique(&[("error", "build", "uses sudo")], true),
            "objected",
        ),
        (critique(&[], false), "objected"),
    ];
    for (reply, verdict) in said {
        let mut stage = Stage::new([good(), last()], [says(&reply)]);
        stage.hold(1).await.unwrap();
        let verdicts: Vec<&str> = stage
            .kept
            .messages
            .iter()
            .map(|message| message.verdict)
            .collect();
        assert_eq!(verdicts, ["", verdict, ""]);
    }
    let mut stage = Stage::new([good()], [Reply::Answer("{\"approved\":true}".to_owned())]);
    stage.hold(1).await.unwrap_err();
    assert_eq!(stage.kept.messages[1].verdict, "");
}
