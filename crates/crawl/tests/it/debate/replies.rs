//! Invalid replies: each is refused as a whole, with its kind of failure.

use crucible_crawl::{DebateError, DebatePhase, DebateRole, ReplyFault};
use crucible_model::Digest;
use crucible_model::strict_json::StrictFault;
use crucible_testkit::{Reply, made_up_token};
use serde_json::json;

use super::support::{Stage, critique, plan, says, step, synthesis, uncounted};

fn good() -> Reply {
    says(&plan(&[step("build", "cargo build")]))
}

/// The fault of this critique.
async fn fault_of(reply: Reply) -> ReplyFault {
    let mut stage = Stage::new([good()], [reply]);
    match stage.hold(2).await.unwrap_err() {
        DebateError::Reply {
            owner: DebateRole::Claude,
            phase: DebatePhase::Critique,
            why,
            ..
        } => {
            assert_eq!(
                stage.phases(),
                [("draft", 1, "gpt"), ("critique", 1, "claude")]
            );
            why
        }
        other => panic!("{other}"),
    }
}

async fn detail_of(text: &str) -> (&'static str, String) {
    match fault_of(uncounted(text)).await {
        ReplyFault::Strict(StrictFault::NoJson { detail }) => ("no json", detail),
        ReplyFault::Strict(StrictFault::WrongShape { detail }) => ("shape", detail),
        ReplyFault::Strict(StrictFault::TooLong { .. }) => ("too long", String::new()),
        ReplyFault::TruncatedAnswer { .. } | ReplyFault::OverBudget { .. } => {
            ("budget", String::new())
        }
    }
}

#[tokio::test]
async fn invalid_json_differs_from_wrong_shape() {
    let critique = critique(&[], true).to_string();
    let cases = [
        ("no json", "I approve.".to_owned()),
        ("no json", format!("```json\n{critique}\n```")),
        ("no json", format!("Here it is: {critique}")),
        ("no json", format!("{critique}{critique}")),
        ("no json", format!("{critique}\n{{}}")),
        ("no json", format!("\u{feff}{critique}")),
        ("no json", format!("\u{a0}{critique}")),
        ("no json", critique[..critique.len() - 1].to_owned()),
        ("no json", critique.replace("true", "True")),
        ("no json", critique.replace("true", "NaN")),
        ("no json", critique.replace("true", "true,")),
        ("no json", critique.replace('"', "'")),
        ("no json", "[".repeat(10_000)),
        (
            "shape",
            format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
        ),
        ("shape", "null".to_owned()),
        ("shape", "\"approved\"".to_owned()),
        ("shape", "true".to_owned()),
        ("shape", "1e999".to_owned()),
        ("shape", format!("[{critique}]")),
        ("shape", "[[],[],true]".to_owned()),
        ("shape", r#"{"approved":"true"}"#.to_owned()),
        ("shape", critique.replace("true", "\"true\"")),
        ("shape", critique.replace("true", "1")),
        ("shape", critique.replace("true", "null")),
        ("shape", critique.replace("true", "true,\"approved\":false")),
        ("shape", critique.replace("true", "true,\"rounds\":9")),
        ("shape", critique.replace("\"approved\"", "\"Approved\"")),
        ("shape", critique.replace("\"issues\":[]", "\"issues\":{}")),
        (
            "shape",
            critique.replace("\"issues\":[]", "\"issues\":[[\"error\",\"s\",\"d\"]]"),
        ),
        (
            "shape",
            critique.replace("\"issues\":[]", "\"issues\":[\"\\ud800\"]"),
        ),
        ("shape", "{}".to_owned()),
    ];
    for (kind, text) in cases {
        let (seen, detail) = detail_of(&text).await;
        assert_eq!(seen, kind, "{detail}: {}", &text[..text.len().min(80)]);
    }
}

#[tokio::test]
async fn whitespace_around_object_is_accepted() {
    let mut stage = Stage::new(
        [good(), says(&synthesis(&[step("build", "cargo build")]))],
        [Reply::Answer(format!(
            "\r\n\t {} \n\n",
            critique(&[], true)
        ))],
    );
    stage.hold(1).await.unwrap();
}

#[tokio::test]
async fn lists_and_texts_are_bounded() {
    let issue = ("warning", "s", "d");
    let many = critique(&vec![issue; 51], false).to_string();
    assert_eq!(
        detail_of(&many).await.1,
        "`issues` of the reply has 51 items, more than 50"
    );
    let long = critique(&[("error", "s", &"x".repeat(2001))], false).to_string();
    assert_eq!(
        detail_of(&long).await.1,
        "`description` of item 1 of `issues` of the reply is longer than 2000 characters"
    );
    let huge = critique(&vec![issue; 100_000], false).to_string();
    assert!(matches!(
        fault_of(uncounted(&huge)).await,
        ReplyFault::Strict(StrictFault::TooLong { limit: 65_536, .. })
    ));
    for ten_megabytes in [Reply::Huge(10 << 20), uncounted(&"x".repeat(10 << 20))] {
        let fault = fault_of(ten_megabytes).await;
        assert!(
            matches!(
                fault,
                ReplyFault::OverBudget { budget: 2000, .. }
                    | ReplyFault::Strict(StrictFault::TooLong { .. })
            ),
            "{fault}"
        );
    }
}

#[tokio::test]
async fn reply_error_quotes_at_most_one_word() {
    for (text, detail) in [
        (
            r#"{"issues":[],"suggestions":[]}"#,
            "the reply lacks `approved`",
        ),
        (
            r#"{"issues":[{"severity":"fatal hostile words","step_name":"s","description":"d"}],"suggestions":[],"approved":false}"#,
            "`severity` of item 1 of `issues` of the reply is \"fatal hostile words\", none of error, warning",
        ),
        (
            r#"{"issues":[],"suggestions":[{"action":"add","step_name":"s","description":" "}],"approved":false}"#,
            "`description` of item 1 of `suggestions` of the reply is empty",
        ),
        (
            r#"{"issues":[],"suggestions":[],"approved":"hostile words"}"#,
            "`approved` of the reply is a text, not true or false",
        ),
        ("[]", "the reply is a list, not an object"),
    ] {
        assert_eq!(detail_of(text).await, ("shape", detail.to_owned()));
    }
    let key = format!(
        r#"{{"issues":[],"suggestions":[],"approved":true,"a\u001b[2J\u202e{}":1}}"#,
        "k".repeat(500)
    );
    let (_, detail) = detail_of(&key).await;
    assert_eq!(
        detail,
        format!(
            "the reply has the unknown key `a\\u{{1b}}[2J\\u{{202e}}{}…`",
            "k".repeat(41)
        )
    );
}

#[tokio::test]
async fn plans_are_parsed_strictly() {
    let plan = plan(&[step("build", "cargo build")]).to_string();
    for (from, to, detail) in [
        (
            "\"cargo build\"",
            "\" \"",
            "`cmd` of item 1 of `steps` of the reply is empty",
        ),
        (
            "\"cwd\":\".\"",
            "\"cwd\":\"\"",
            "`cwd` of item 1 of `steps` of the reply is empty",
        ),
        (
            "\"cwd\":\".\",",
            "",
            "item 1 of `steps` of the reply lacks `cwd`",
        ),
        (
            "\"env\":[]",
            "\"env\":[[\"A\",\"1\"]]",
            "item 1 of `env` of item 1 of `steps` of the reply is a list, not an object",
        ),
        (
            "\"env\":[]",
            "\"env\":{\"A\":1}",
            "a value of `env` of item 1 of `steps` of the reply is a number, not a text",
        ),
        (
            "\"env\":[]",
            "\"env\":[{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"A\",\"value\":\"2\"}]",
            "`env` of item 1 of `steps` of the reply sets a variable twice",
        ),
        (
            "\"env\":[]",
            "\"env\":\"CI=1\"",
            "`env` of item 1 of `steps` of the reply is a text, not a list",
        ),
        (
            "\"tools\":[\"cargo\"]",
            "\"tools\":\"cargo\"",
            "`tools` of `dependencies` of the reply is a text, not a list",
        ),
        (
            "\"warnings\":[]",
            "\"warnings\":[],\"safety_validated\":true",
            "the reply has the unknown key `safety_validated`",
        ),
    ] {
        let text = plan.replace(from, to);
        assert_ne!(text, plan, "{from}");
        let mut stage = Stage::new([Reply::Answer(text)], [Reply::Hang]);
        match stage.hold(1).await.unwrap_err() {
            DebateError::Reply {
                phase: DebatePhase::Draft,
                why: ReplyFault::Strict(StrictFault::WrongShape { detail: seen }),
                ..
            } => {
                assert_eq!(seen, detail);
            }
            other => panic!("{other}"),
        }
        assert!(stage.claude.requests().is_empty());
    }
    let none = plan.replace("[{\"cmd\"", "[],\"x\":[{\"cmd\"");
    assert!(none.contains("\"steps\":[]"));
}

#[tokio::test]
async fn a_plan_without_steps_is_no_plan() {
    let mut stage = Stage::new([says(&plan(&[]))], [Reply::Hang]);
    let error = stage.hold(1).await.unwrap_err().to_string();
    assert!(error.contains("(`steps` of the reply is empty)"), "{error}");
}

#[tokio::test]
async fn variables_are_accepted_as_list_or_object() {
    for env in [json!([{"name": "CI", "value": "1"}]), json!({"CI": "1"})] {
        let mut one = step("build", "cargo build");
        one["env"] = env;
        let mut stage = Stage::new(
            [says(&plan(&[one.clone()])), says(&synthesis(&[one]))],
            [says(&critique(&[], true))],
        );
        let outcome = stage.hold(1).await.unwrap();
        assert_eq!(outcome.steps[0].env["CI"], "1");
        let text = super::support::question(&stage.claude.completions()[0]);
        assert!(
            text.contains("\"name\": \"CI\",\n          \"value\": \"1\""),
            "{text}"
        );
    }
}

#[tokio::test]
async fn cut_or_oversized_answer_is_refused() {
    let full_text = critique(&[], true).to_string();
    assert_eq!(
        fault_of(Reply::CutAnswer(full_text.clone())).await,
        ReplyFault::TruncatedAnswer { budget: 2000 }
    );
    let body = json!({
        "model": "m", "usage": {"prompt_tokens": 5, "completion_tokens": 2001},
        "choices": [{"message": {"content": full_text}, "finish_reason": "stop"}],
    });
    let fault = fault_of(Reply::Raw(200, body.to_string().into_bytes())).await;
    assert_eq!(
        fault,
        ReplyFault::OverBudget {
            tokens: 2001,
            budget: 2000
        }
    );
}

#[tokio::test]
async fn reply_error_names_owner_phase_digest() {
    let text = "no plan today";
    let mut stage = Stage::new([Reply::Answer(text.to_owned())], [Reply::Hang]);
    let error = stage.hold(1).await.unwrap_err();
    let digest = Digest::compute(text.as_bytes());
    assert!(matches!(&error, DebateError::Reply { digest: seen, .. } if *seen == digest));
    let content = error.to_string();
    assert!(
        content.starts_with("the draft of gpt is invalid: it is not a single JSON object"),
        "{content}"
    );
    assert!(
        content.contains(&format!("shows the reply (digest {digest})")),
        "{content}"
    );
    assert!(!content.contains("today"));
    let stored_message = &stage.kept.messages[0];
    assert_eq!(
        (stored_message.reply.as_str(), stored_message.error.as_str()),
        (text, content.as_str())
    );
}

/// The end of a secret, which escapes at its beginning do not hide.
fn tail() -> String {
    made_up_token().split_off(10)
}

#[tokio::test]
async fn answer_with_secret_is_withheld() {
    let plain = plan(&[step("build", &format!("cargo build {}", made_up_token()))]).to_string();
    let escaped = made_up_token().replace("ghp_", "\\u0067hp_");
    let good = plan(&[step("build", "cargo build")]).to_string();
    let with_key = good.replacen('{', &format!("{{\"{escaped}\":1,"), 1);
    let forms = [
        plain.clone(),
        plain.replace(&made_up_token(), &escaped),
        with_key.clone(),
        with_key.replacen('{', &format!("{{\"{escaped}\":2,"), 1),
        with_key[..with_key.len() - 2].to_owned(),
        format!("here it is: {escaped}"),
    ];
    for text in forms {
        let over_budget = json!({
            "model": "m", "usage": {"prompt_tokens": 5, "completion_tokens": 9999},
            "choices": [{"message": {"content": text.clone()}, "finish_reason": "stop"}],
        });
        let over_budget = Reply::Raw(200, over_budget.to_string().into_bytes());
        for reply in [
            Reply::Answer(text.clone()),
            Reply::CutAnswer(text.clone()),
            over_budget,
        ] {
            let mut stage = Stage::new([reply], [Reply::Hang]);
            let error = stage.hold(1).await.unwrap_err();
            let is_secret = matches!(
                error,
                DebateError::Secret {
                    owner: DebateRole::Gpt,
                    phase: DebatePhase::Draft
                }
            );
            assert!(is_secret, "{error}");
            assert!(
                error.to_string().contains("holds what looks like a secret"),
                "{error}"
            );
            let everything = format!("{error} {error:?} {:?}", stage.kept.messages);
            assert!(!everything.contains(&tail()), "{everything}");
            let stored_text = &stage.kept.messages[0].reply;
            assert!(
                stored_text
                    .starts_with("[withheld: the reply holds what looks like a secret; its digest"),
                "{stored_text}"
            );
            assert!(stage.claude.requests().is_empty());
        }
    }
}
