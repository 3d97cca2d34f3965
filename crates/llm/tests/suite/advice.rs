//! Advice from real servers on loopback, and the two kinds of failure.

use std::collections::BTreeMap;
use std::time::Duration;

use crucible_llm::{
    AdviceError, AdviceFailure, AdviceLimits, Advisor, CallError, LlmError, ModelClient, Question,
    Recording, RetryPolicy, construct,
};
use crucible_model::Untrusted;
use crucible_testkit::{FakeApi, Reply};
use serde_json::json;

use crate::support::{client, context, gateway, gateway_settings};

fn asking(base_url: &str) -> ModelClient {
    client(gateway(base_url, None), Recording::Off, RetryPolicy::NEVER)
}

fn question<'q>(material: &'q [(&'q str, Untrusted)]) -> Question<'q> {
    let hints = BTreeMap::from([("max_tokens".to_owned(), json!(200))]);
    Question {
        spec_id: "skill-1",
        phase_id: "research",
        task: "Say what is wrong.",
        material,
        hints,
    }
}

async fn advice_from(
    reply: Reply,
    limits: AdviceLimits,
) -> Result<crucible_llm::Advice, AdviceError> {
    let server = FakeApi::start([reply]);
    let client = asking(&server.base_url());
    Advisor::new(&client, limits)
        .advise(question(&[("log", Untrusted::new("it failed"))]))
        .await
}

#[test]
fn the_limits_are_those_of_the_seed() {
    let limits = AdviceLimits::default();
    assert_eq!(
        (limits.max_prompt_chars, limits.timeout),
        (8_000, Duration::from_secs(30))
    );
}

#[tokio::test]
async fn advice_prompt_is_bounded_and_reports_omissions() {
    let server = FakeApi::start([Reply::Answer("look at line 3".to_owned())]);
    let client = asking(&server.base_url());
    let log = [("log", Untrusted::new("ä".repeat(9_000)))];
    let advisor = Advisor::new(&client, AdviceLimits::default());
    let advice = advisor.advise(question(&log)).await.unwrap();
    assert_eq!(advice.text.as_str(), "look at line 3");
    assert_eq!(advice.model, "test-model");

    let seen = server.requests();
    let prompt = seen[0].body["messages"][0]["content"].as_str().unwrap();
    assert_eq!(seen[0].body["max_tokens"], 200);
    assert_eq!(prompt.chars().count(), 8_000);
    assert_eq!(prompt.matches('ä').count(), 9_000 - advice.left_out_chars);
}

#[tokio::test]
async fn unreachable_advisor_is_distinguished_from_unhelpful_one() {
    let short = AdviceLimits {
        timeout: Duration::from_millis(300),
        ..AdviceLimits::default()
    };
    let late = advice_from(Reply::Hang, short).await.unwrap_err();
    assert!(
        matches!(late, AdviceError::Unavailable(LlmError::Timeout { .. })),
        "{late}"
    );
    let dropped = advice_from(Reply::Drop, AdviceLimits::default())
        .await
        .unwrap_err();
    assert!(
        matches!(dropped, AdviceError::Unavailable(LlmError::Transport(_))),
        "{dropped}"
    );
    let unset = construct("gateway", &gateway_settings(), &context(&[]))
        .err()
        .unwrap();
    assert!(matches!(
        AdviceError::from(unset),
        AdviceError::Unavailable(_)
    ));

    for reply in [
        Reply::Answer(" \n".to_owned()),
        Reply::NullContent,
        Reply::EmptyChoices,
        Reply::Html,
        Reply::Status(400),
        Reply::Status(401),
        Reply::Status(429),
        Reply::Status(500),
    ] {
        let error = advice_from(reply.clone(), AdviceLimits::default())
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                AdviceError::Failed(AdviceFailure::Call(CallError::Llm(_)))
            ),
            "{reply:?}: {error}"
        );
    }
}

#[tokio::test]
async fn truncated_advice_is_an_error() {
    let error = advice_from(
        Reply::CutAnswer("do not".to_owned()),
        AdviceLimits::default(),
    )
    .await
    .unwrap_err();
    assert!(
        matches!(error, AdviceError::Failed(AdviceFailure::Truncated(_))),
        "{error}"
    );
}

#[tokio::test]
async fn a_secret_in_the_material_is_not_sent() {
    let server = FakeApi::start([Reply::Answer("fine".to_owned())]);
    let client = asking(&server.base_url());
    let log = [(
        "log",
        Untrusted::new(format!("key = \"{}{}\"", "AKIA", "Z7QK3MTVW2YH5XNB")),
    )];
    let error = Advisor::new(&client, AdviceLimits::default())
        .advise(question(&log))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            AdviceError::Failed(AdviceFailure::Call(CallError::Secret(_)))
        ),
        "{error}"
    );
    assert_eq!(server.requests().len(), 0);
}
