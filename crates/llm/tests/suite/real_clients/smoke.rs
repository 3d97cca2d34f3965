//! One call of each real program: the answer is complete, takes one request, and is charged.

use crucible_testkit::Reply;

use super::support::{Claude, Codex, Gemini, KEY, PROMPT, Program};

#[tokio::test]
async fn claude_call_returns_answer_and_tokens() {
    call_returns_answer_and_tokens(Claude).await;
}

#[tokio::test]
async fn gemini_call_returns_answer_and_tokens() {
    call_returns_answer_and_tokens(Gemini).await;
}

#[tokio::test]
async fn codex_call_returns_answer_and_tokens() {
    call_returns_answer_and_tokens(Codex).await;
}

async fn call_returns_answer_and_tokens(program: Program) {
    let answer = "the answer\nin two lines, with é and \"quotes\"";
    let stand = program.against([Reply::Answer(answer.to_owned())]);
    let result = stand.call("a file").await.expect("an answer");
    assert_eq!(result.complete_answer().expect("whole").as_str(), answer);
    assert_eq!(result.provider, program.provider());
    assert_eq!(result.model_used, "a-model", "{program:?}");
    let request = stand.only_request();
    let prompt_tokens = u64::try_from(request.prompt_tokens()).expect("a count");
    assert_eq!(
        (result.tokens_input, result.tokens_output),
        (Some(prompt_tokens), Some(12)),
        "{program:?}"
    );
    let body = request.body.to_string();
    for part in [PROMPT, "the-system-prompt", "a file"] {
        assert!(
            body.contains(part),
            "{program:?} does not send {part}: {body}"
        );
    }
    assert_eq!(request.key(), Some(KEY), "{program:?}");
    assert!(!body.contains(KEY), "{program:?} sends its key in the body");
    assert_eq!(
        stand.api.requests().len(),
        1,
        "{program:?} asks for more than the answer"
    );
}
