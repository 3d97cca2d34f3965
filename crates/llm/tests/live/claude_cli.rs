//! `claude-cli` with the real program, which calls the model server in Anthropic's Messages format.

use crucible_llm::{Backend, LlmBackend, Login, ProviderSettings, construct};
use crucible_testkit::{live_address, real_client};

use crate::support::{MAX_TOKENS, MODEL, Summary, ask, context};

const KEY: (&str, &str) = ("ANTHROPIC_API_KEY", "a-local-server-takes-any-key");

fn claude(base_url: String) -> Backend {
    let settings = ProviderSettings {
        base_url: Some(base_url),
        api_key_env: Some(KEY.0.to_owned()),
        binary: Some(real_client("claude")),
        login: Login::Isolated,
        model: Some(MODEL.to_owned()),
        max_tokens: Some(MAX_TOKENS),
        ..ProviderSettings::default()
    };
    construct("claude-cli", &settings, &context(KEY)).unwrap()
}

#[tokio::test]
async fn real_program_returns_answer_and_tokens() {
    let mut summary = Summary::new(
        "the real claude",
        "the capital of France, through the program",
    );
    let mut inv = ask("What is the capital of France?");
    inv.metadata.clear();
    let result = claude(live_address()).invoke(inv).await.unwrap();
    summary.answered(&result);
    assert!(
        result.complete_answer().unwrap().as_str().contains("Paris"),
        "{}",
        result.raw_response
    );
    assert_eq!(
        (result.provider.as_str(), result.model_used.as_str()),
        ("claude-cli", MODEL)
    );
    let (input, output) = (result.tokens_input.unwrap(), result.tokens_output.unwrap());
    assert!(
        input > 0 && (1..=MAX_TOKENS).contains(&output),
        "{input} {output}"
    );
    summary.passed("whole, names Paris, tokens reported");
}

/// Nothing reaches the model: the server does not know the address.
#[tokio::test]
async fn real_program_failure_marked_success_is_error() {
    let summary = Summary::new(
        "the real claude, failing",
        "at an address that the server does not know",
    );
    let error = claude(format!("{}/nowhere", live_address()))
        .invoke(ask("Say hello."))
        .await
        .unwrap_err();
    assert_eq!(error.class(), "misconfiguration", "{error}");
    assert!(!format!("{error:?}").contains(KEY.1), "{error:?}");
    summary.passed("a typed error, no key in it");
}
