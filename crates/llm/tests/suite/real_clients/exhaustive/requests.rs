//! The requests of the programs: hints and system prompt in the API's fields, and no tools.

use crucible_llm::Finish;
use crucible_testkit::{Reply, SeenRequest};
use serde_json::{Value, json};

use crate::real_clients::support::{Claude, Codex, Gemini, PROGRAMS, Program, ask};

/// Fails if a request offers the model a tool. The one that `codex` cannot be kept from offering asks the
/// user, who does not exist.
pub(crate) fn assert_no_tools(program: Program, request: &SeenRequest) {
    let tools = request.body["tools"].as_array().into_iter().flatten();
    let offered = tools.filter(|tool| **tool != json!({"functionDeclarations": []}));
    let offered: Vec<&Value> = offered
        .filter(|tool| tool["name"] != "request_user_input")
        .collect();
    assert!(offered.is_empty(), "{program:?} offers {offered:?}");
}

#[tokio::test]
async fn requests_offer_no_tools_and_follow_the_hints() {
    for program in PROGRAMS {
        let stand = program.against([Reply::Answer("ok".to_owned())]);
        let mut inv = ask("x");
        inv.metadata.insert("max_tokens".to_owned(), json!(1234));
        inv.metadata.insert("temperature".to_owned(), json!(0.25));
        stand.invoke(inv).await.expect("an answer");
        let request = stand.only_request();
        assert_no_tools(program, &request);
        let body = &request.body;
        match program {
            Claude => {
                assert_eq!(body["max_tokens"], 1234);
                assert!(body["system"].to_string().contains("the-system-prompt"));
            }
            Gemini => {
                assert_eq!(
                    body["systemInstruction"]["parts"],
                    json!([{"text": "the-system-prompt"}])
                );
                assert_eq!(body["generationConfig"]["maxOutputTokens"], 1234);
                assert_eq!(body["generationConfig"]["temperature"], 0.25);
            }
            Codex => {
                let message = format!("{} {}", body["instructions"], body["input"]);
                assert!(message.contains("the-system-prompt"), "{message}");
                assert!(
                    !message.contains("coding agent"),
                    "its own system prompt is still there: {message}"
                );
            }
        }
    }
}

/// After a broken stream it retries and answers in one turn, so the answer is complete.
#[tokio::test]
async fn an_answer_that_claude_mended_is_whole() {
    let stand = Claude.against([Reply::DropHalfway, Reply::Answer("mended".to_owned())]);
    let result = stand.call("x").await.expect("an answer");
    assert_eq!(result.complete_answer().expect("whole").as_str(), "mended");
}

/// `gemini` does not report it; its answer has the maximum length.
#[tokio::test]
async fn answer_of_maximum_length_is_cut_off() {
    for program in [Gemini, Codex] {
        let stand = program.against([Reply::CutAnswer("half of what it had to say".to_owned())]);
        let mut inv = ask("x");
        inv.metadata.insert("max_tokens".to_owned(), json!(8));
        let result = stand.invoke(inv).await.expect("an answer");
        assert_eq!(
            result.raw_response, "half of what it had to say",
            "{program:?}"
        );
        assert_eq!(result.finish(), Finish::Truncated, "{program:?}");
    }
}
