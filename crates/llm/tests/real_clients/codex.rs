//! `codex-cli` with the real `codex`.

use std::time::Duration;

use crucible_llm::{AnswerFault, Finish, LlmError, Login};
use crucible_testkit::Reply;
use serde_json::Value;

use crate::harness::{
    Client, Outcome, answer, ask, assert_answered, prompt_is_kept_below, rate_limited, run_input, tool_call,
};

fn client() -> Client {
    Client::new("codex-cli", "codex", "/v1")
}

#[tokio::test]
async fn answers_and_neither_reads_nor_runs_nor_keeps_anything() {
    let client = client();
    let (words, tempting) = client.tempting();
    let good = client.ask([answer()], ask(&tempting), Login::Isolated).await;
    assert_answered(&good);
    let [request] = good.requests.as_slice() else { panic!("{} requests", good.requests.len()) };
    assert_no_tools(&request.body);
    let said = format!("{} {}", request.body["instructions"], request.body["input"]);
    assert!(said.contains("You are terse indeed.") && !said.contains("You are a coding agent"), "{said}");
    assert!(!said.contains(words), "the file that the prompt names was sent");

    for tool in ["exec_command", "shell"] {
        let outcome = client.call(tool_call(tool, run_input(&client.forbidden(tool)))).await;
        assert_eq!(outcome.requests.len(), 2);
        assert_answered(&outcome);
    }

    let settings = client.home().join(".codex");
    std::fs::create_dir(&settings).unwrap();
    std::fs::write(
        settings.join("config.toml"),
        "[features]\nshell_tool = true\n[history]\npersistence = \"save-all\"\n",
    )
    .unwrap();
    let good = client.ask([answer()], ask(&tempting), Login::User).await;
    assert_answered(&good);
    assert_no_tools(&good.requests[0].body);
    assert!(!prompt_is_kept_below(&client.home()), "the prompt stays in the user's home");
}

/// What it cannot be kept from offering asks the user something, and there is none.
fn assert_no_tools(body: &Value) {
    let tools: Vec<&str> =
        body["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(tools.is_empty() || tools == ["request_user_input"], "{tools:?}");
    assert_eq!(tools.len(), body["tools"].as_array().unwrap().len());
}

#[tokio::test]
async fn refusals_become_the_error_of_their_status() {
    let client = client();
    let cases = [
        (400, "unsupported"),
        (401, "provider_auth"),
        (403, "provider_auth"),
        (404, "misconfiguration"),
        (500, "provider_outage"),
        (503, "provider_outage"),
        (529, "provider_outage"),
    ];
    client.fails(cases.map(|(status, class)| (Reply::Status(status), class))).await;
    let once = client.call([rate_limited(), answer()]).await;
    assert!(matches!(once.result, Err(LlmError::ProviderQuota(_))), "it tried again by itself");
    assert_eq!(once.requests.len(), 1);
}

#[tokio::test]
async fn what_breaks_on_the_way_is_no_answer() {
    let client = client();
    client
        .fails([
            (Reply::Drop, "transport"),
            (Reply::DropHalfway, "transport"),
            (Reply::EndHalfway, "transport"),
            (Reply::FailHalfway, "transport"),
            (Reply::BadJson, "transport"),
            (Reply::EmptyChoices, "provider_outage"),
        ])
        .await;
    let empty = client.call([Reply::NullContent]).await;
    assert_eq!(empty.result.unwrap_err().answer_fault(), Some(AnswerFault::Empty));
    let cut = client.call([Reply::CutAnswer("half of it".to_owned())]).await.result.unwrap();
    assert_eq!((cut.raw_response.as_str(), cut.finish()), ("half of it", Finish::CutShort));
}

#[tokio::test]
async fn a_call_that_takes_long_is_waited_for_ended_or_given_up() {
    let client = client();
    let Outcome { result, .. } =
        client.call([Reply::SlowAnswer("slowly".to_owned(), Duration::from_millis(300))]).await;
    assert_eq!(result.unwrap().raw_response, "slowly");
    client.hang().await;
    client.abandon().await;
}
