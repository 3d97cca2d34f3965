//! Complete answers, and others that only look complete.

use std::time::Duration;

use crucible_llm::LlmResult;
use crucible_testkit::Reply;

use crate::real_clients::support::{
    Claude, Codex, Gemini, PROGRAMS, Stand, ask, assert_says_nothing,
};

fn answer(text: &str) -> Reply {
    Reply::Answer(text.to_owned())
}

#[tokio::test]
async fn a_slow_stream_is_waited_for() {
    for program in PROGRAMS {
        let stand = program.against([Reply::SlowAnswer(
            "slow but whole".to_owned(),
            Duration::from_millis(200),
        )]);
        assert_eq!(
            stand.call("x").await.expect("an answer").raw_response,
            "slow but whole",
            "{program:?}"
        );
    }
}

#[tokio::test]
async fn a_prompt_of_a_million_bytes_arrives_whole() {
    for program in PROGRAMS {
        let stand = program.against([answer("read")]);
        let long = format!("{} the-last-word", "line of a long file\n".repeat(50_000));
        stand.call(&long).await.expect("an answer");
        let body = stand.only_request().body.to_string();
        assert!(
            body.len() > 1_000_000 && body.contains("the-last-word"),
            "{program:?}: {} bytes",
            body.len()
        );
    }
}

/// All three programs exit with 0 here.
#[tokio::test]
async fn empty_answer_is_an_error() {
    for program in PROGRAMS {
        for reply in [Reply::EmptyChoices, Reply::NullContent] {
            let stand = program.against([reply.clone()]);
            let error = stand.call("x").await.expect_err("no answer");
            assert_eq!(
                error.class(),
                "provider_outage",
                "{program:?} {reply:?}: {error}"
            );
            assert_says_nothing(&error);
        }
    }
}

/// `claude` and `gemini` pass on such an answer silently.
#[tokio::test]
async fn answer_at_token_limit_is_cut_off() {
    let long = "x".repeat(4 * 4096);
    for program in PROGRAMS {
        let stand = program.against([Reply::CutAnswer(long.clone())]);
        let is_complete = stand
            .call("x")
            .await
            .map(|result| result.complete_answer().is_ok());
        assert!(
            !matches!(is_complete, Ok(true)),
            "{program:?} {is_complete:?}"
        );
    }
}

/// Its second request lets the model continue, and the program returns only the last part.
#[tokio::test]
async fn continued_claude_answer_is_cut_off() {
    let stand = Claude.against([
        Reply::CutAnswer("the first half".to_owned()),
        answer("the second half"),
    ]);
    let is_complete = stand
        .call("x")
        .await
        .map(|result| result.complete_answer().is_ok());
    assert!(!matches!(is_complete, Ok(true)), "{is_complete:?}");
}

#[tokio::test]
async fn a_stream_that_breaks_is_no_answer() {
    for program in PROGRAMS {
        for reply in [Reply::DropHalfway, Reply::EndHalfway, Reply::FailHalfway] {
            let stand = program.against([reply.clone()]);
            let error = stand.call("x").await.expect_err("no answer");
            assert!(
                ["transport", "provider_outage"].contains(&error.class()),
                "{program:?} {reply:?}: {error}"
            );
            assert_says_nothing(&error);
        }
    }
}

/// `claude` sends a second request without streaming; its `usage` then lacks that of the second one.
#[tokio::test]
async fn claude_stream_retry_is_paid_twice() {
    for reply in [Reply::DropHalfway, Reply::EndHalfway] {
        let stand = Claude.against([reply, answer("mended")]);
        let result = stand.call("x").await.expect("an answer");
        assert_eq!(result.raw_response, "mended");
        let [first, second] = stand.api.completions().try_into().expect("two requests");
        let both = u64::try_from(first.prompt_tokens() + second.prompt_tokens()).expect("a count");
        assert_eq!(result.tokens_input, Some(both));
    }
}

/// With more than one attempt, the program joins both texts and reports success.
#[tokio::test]
async fn gemini_answers_are_not_concatenated() {
    let stand = Gemini.against([Reply::EndHalfway, answer("the second answer")]);
    let error = stand.call("x").await.expect_err("no answer");
    assert_eq!(
        (error.class(), stand.api.completions().len()),
        ("provider_outage", 1),
        "{error}"
    );
}

#[tokio::test]
async fn invalid_api_answer_is_refused() {
    for program in PROGRAMS {
        for reply in [Reply::BadJson, Reply::Html] {
            let stand = program.against([reply.clone()]);
            let error = stand.call("x").await.expect_err("no answer");
            assert!(
                ["transport", "provider_outage"].contains(&error.class()),
                "{program:?} {reply:?}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_do_no_harm() {
    for program in [Claude, Gemini] {
        let result = program
            .against([Reply::InvalidUtf8])
            .call("x")
            .await
            .expect("an answer");
        assert_eq!(result.raw_response, "\u{fffd}\u{fffd}", "{program:?}");
    }
    let error = Codex
        .against([Reply::InvalidUtf8])
        .call("x")
        .await
        .expect_err("no answer");
    assert_eq!(error.class(), "transport", "{error}");
}

#[tokio::test]
async fn calls_at_the_same_time_do_not_mix() {
    for program in PROGRAMS {
        let stand = program.against([answer("one of two")]);
        let (first, second) = tokio::join!(raw(&stand, "first"), raw(&stand, "second"));
        assert_eq!(
            (first.as_str(), second.as_str()),
            ("one of two", "one of two"),
            "{program:?}"
        );
        let bodies: Vec<String> = stand
            .api
            .completions()
            .iter()
            .map(|seen| seen.body.to_string())
            .collect();
        assert_eq!(bodies.len(), 2, "{program:?}");
        assert!(
            !bodies
                .iter()
                .any(|body| body.contains("first-file") && body.contains("second-file"))
        );
    }
}

async fn raw(stand: &Stand, name: &str) -> String {
    let result: LlmResult = stand
        .start(ask(&format!("{name}-file")))
        .await
        .expect("an answer");
    result.raw_response
}
