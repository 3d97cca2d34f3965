//! `gemini-cli` with the real `gemini`.

use std::time::Duration;

use crucible_llm::{AnswerFault, Finish, LlmError, Login};
use crucible_testkit::Reply;
use serde_json::json;

use crate::harness::{Client, Outcome, answer, ask, assert_answered, rate_limited, run_input, tool_call};

fn client() -> Client {
    Client::new("gemini-cli", "gemini", "")
}

#[tokio::test]
async fn answers_and_neither_reads_nor_runs_anything() {
    let client = client();
    let (words, tempting) = client.tempting();
    let mut inv = ask(&tempting);
    inv.metadata.insert("temperature".to_owned(), json!(0.25));
    let good = client.ask([answer()], inv, Login::Isolated).await;
    assert_answered(&good);
    let [request] = good.requests.as_slice() else { panic!("{} requests", good.requests.len()) };
    assert_no_tools(&request.body);
    assert_eq!(request.body["systemInstruction"]["parts"], json!([{"text": "You are terse indeed."}]));
    assert_eq!(request.body["generationConfig"]["maxOutputTokens"], 4000);
    assert_eq!(request.body["generationConfig"]["temperature"], 0.25);
    assert!(!request.body.to_string().contains(words), "the file that the prompt names was sent");

    for tool in ["write_file", "run_shell_command"] {
        let outcome = client.call(tool_call(tool, run_input(&client.forbidden(tool)))).await;
        assert_eq!(outcome.result.unwrap_err().answer_fault(), Some(AnswerFault::Empty));
        assert_eq!(outcome.requests.len(), 1);
    }

    // The user's own settings bring tools, a tool server and a hook; none of them is there.
    let settings = client.home().join(".gemini");
    std::fs::create_dir(&settings).unwrap();
    let touch = json!([{"hooks": [{"type": "command", "command": format!("touch {}", client.forbidden("hook").display())}]}]);
    let users = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "tools": {"core": ["write_file", "run_shell_command"]},
        "mcpServers": {"x": {"command": "touch", "args": [client.forbidden("server")]}},
        "hooks": {"SessionStart": touch, "BeforeModel": touch},
    });
    std::fs::write(settings.join("settings.json"), users.to_string()).unwrap();
    let good = client.ask([answer()], ask(&tempting), Login::User).await;
    assert_answered(&good);
    assert_no_tools(&good.requests[0].body);
}

/// The request may hold the list of tools, if nothing is in it.
fn assert_no_tools(body: &serde_json::Value) {
    for tools in body["tools"].as_array().into_iter().flatten() {
        assert_eq!(tools, &json!({"functionDeclarations": []}));
    }
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
            (Reply::EndHalfway, "provider_outage"),
            (Reply::FailHalfway, "provider_outage"),
            (Reply::BadJson, "provider_outage"),
            (Reply::EmptyChoices, "provider_outage"),
        ])
        .await;
    let mut short = ask("x");
    short.metadata.insert("max_tokens".to_owned(), json!(5));
    let cut = client.ask([Reply::CutAnswer("half of it, and more".to_owned())], short, Login::Isolated).await;
    assert_eq!(cut.result.unwrap().finish(), Finish::CutShort);
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
