//! `claude-cli` with the real `claude`.

use crucible_llm::{AnswerFault, Finish, LlmError, Login};
use crucible_testkit::Reply;
use serde_json::json;

use crate::harness::{
    Client, Outcome, answer, ask, assert_answered, prompt_is_kept_below, rate_limited, run_input, tool_call,
};

fn client() -> Client {
    Client::new("claude-cli", "claude", "")
}

#[tokio::test]
async fn answers_and_neither_reads_nor_runs_nor_keeps_anything() {
    let client = client();
    let (words, tempting) = client.tempting();
    let good = client.ask([answer()], ask(&tempting), Login::Isolated).await;
    assert_answered(&good);
    assert_eq!(good.result.unwrap().finish(), Finish::Complete);
    let [request] = good.requests.as_slice() else { panic!("{} requests", good.requests.len()) };
    assert_eq!(request.body["tools"], json!([]));
    assert_eq!(request.body["max_tokens"], 4000);
    assert!(request.body["system"].to_string().contains("You are terse indeed."));
    assert!(!request.body.to_string().contains(words), "the file that the prompt names was sent");

    for tool in ["Write", "Bash"] {
        let outcome = client.call(tool_call(tool, run_input(&client.forbidden(tool)))).await;
        assert_answered(&outcome);
    }
    // A prompt that looks like one of the program's own commands is a prompt.
    let mut command = ask("x");
    command.messages.remove(0);
    command.messages[0].content =
        crucible_model::PromptBuilder::new().ours("/help with the words that only the prompt holds").build();
    assert_answered(&client.ask([answer()], command, Login::Isolated).await);

    let settings = client.home().join(".claude");
    std::fs::create_dir(&settings).unwrap();
    let touch = format!("touch {}", client.forbidden("hook").display());
    let servers = json!({"mcpServers": {"x": {"command": "touch", "args": [client.forbidden("server")]}}});
    std::fs::write(client.home().join(".claude.json"), servers.to_string()).unwrap();
    std::fs::write(settings.join("settings.json"), json!({"env": {"X": touch}}).to_string()).unwrap();
    assert_answered(&client.ask([answer()], ask(&tempting), Login::User).await);
    assert!(!prompt_is_kept_below(&client.home()), "the prompt stays in the user's home");
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
    client.fails([(rate_limited(), "provider_quota")]).await;
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
            (Reply::BadJson, "provider_outage"),
            (Reply::Html, "provider_outage"),
            (Reply::EmptyChoices, "provider_outage"),
            (Reply::NullContent, "provider_outage"),
            (Reply::CutAnswer("half".to_owned()), "provider_outage"),
        ])
        .await;
    let empty = client.call([Reply::EmptyChoices]).await;
    assert_eq!(empty.result.unwrap_err().answer_fault(), Some(AnswerFault::Empty));
    // After a stream that broke off it asks again for the whole; the tokens of both are counted.
    let cut = client.call([Reply::DropHalfway, answer()]).await;
    assert_eq!(cut.requests.len(), 2);
    assert_answered(&cut);
}

#[tokio::test]
async fn a_call_that_takes_long_is_waited_for_ended_or_given_up() {
    let client = client();
    let Outcome { result, .. } =
        client.call([Reply::SlowAnswer("slowly".to_owned(), std::time::Duration::from_millis(300))]).await;
    assert_eq!(result.unwrap().raw_response, "slowly");
    client.hang().await;
    client.abandon().await;
}
