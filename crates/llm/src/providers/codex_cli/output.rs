//! Parses the output of the `codex` program: a pure function.
//!
//! It prints one JSON event per line. Success is an exit code of 0, a completed turn, and a message with
//! text; a turn can also be completed without one. The reason of a failed turn may quote the server, so
//! only its beginning is examined, for the status.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::client_program::{AGAIN, broken_connection, no_key};
use crate::error::LlmError;
use crate::http_fault::{CallTarget, Silence};
use crate::invocation::LlmResult;

/// The events of a turn.
#[derive(Default)]
struct Turn {
    /// The last message of the model.
    text: Option<String>,
    /// The usage, if the turn was completed.
    usage: Option<Value>,
    /// The reason of a failed turn.
    failure: Option<String>,
    /// Whether any line was an event.
    began: bool,
}

/// Parses the output of a program that exited with this code.
pub(super) fn read(
    target: CallTarget<'_>,
    code: i32,
    stdout: &[u8],
) -> Result<LlmResult, LlmError> {
    let Turn {
        text,
        usage,
        failure,
        began,
    } = turn(stdout);
    let text = text.filter(|text| !text.trim().is_empty());
    if let Some(reason) = failure {
        return match (
            reason.strip_prefix("Incomplete response returned, reason: "),
            text,
        ) {
            (Some(reason), Some(text)) => {
                Ok(result(target, text, usage.as_ref(), Some(cut_by(reason))))
            }
            (Some(_), None) => Err(target.wordless(Silence::TokenLimit)),
            (None, _) => Err(failed(target, &reason)),
        };
    }
    if !began {
        return Err(target.unreadable(
            format!("the program ended with code {code} and reported no event"),
            AGAIN,
        ));
    }
    let Some(usage) = usage.filter(|_| code == 0) else {
        return Err(target.unreadable(
            format!("the program ended with code {code} before the turn was completed"),
            AGAIN,
        ));
    };
    match text {
        Some(text) => Ok(result(target, text, Some(&usage), None)),
        None => Err(target.wordless(Silence::Unexplained)),
    }
}

/// Reads the relevant events. Other lines are warnings of the program.
fn turn(stdout: &[u8]) -> Turn {
    let mut turn = Turn::default();
    let message_of = |event: &Value| event["message"].as_str().map(str::to_owned);
    for line in stdout.split(|&byte| byte == b'\n') {
        let Ok(mut event @ Value::Object(_)) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        turn.began = true;
        match event["type"].as_str().unwrap_or_default() {
            "item.completed" if event["item"]["type"] == "agent_message" => {
                turn.text = event["item"]["text"].as_str().map(str::to_owned);
            }
            "turn.completed" => turn.usage = Some(event["usage"].take()),
            "turn.failed" => {
                turn.failure = Some(message_of(&event["error"]).unwrap_or_default());
            }
            _ => {}
        }
    }
    turn
}

fn result(
    target: CallTarget<'_>,
    text: String,
    usage: Option<&Value>,
    finish: Option<&'static str>,
) -> LlmResult {
    let count = |name: &str| usage.and_then(|usage| usage.get(name)?.as_u64());
    let finish = finish.map(|reason| (LlmResult::FINISH_REASON.to_owned(), Value::from(reason)));
    LlmResult {
        raw_response: text,
        provider: target.provider.to_owned(),
        // The program does not say which model answered.
        model_used: target.model.to_owned(),
        tokens_input: count("input_tokens"),
        tokens_output: count("output_tokens"),
        timed_out: Some(false),
        extensions: finish.into_iter().collect(),
    }
}

fn cut_by(reason: &str) -> &'static str {
    if reason.trim() == "content_filter" {
        "content_filter"
    } else {
        "length"
    }
}

/// The error for a failed turn.
fn failed(target: CallTarget<'_>, reason: &str) -> LlmError {
    if let Some(status) = status(reason) {
        return target.on_status(status, &BTreeMap::new());
    }
    let starts = |signs: &[&str]| signs.iter().any(|sign| reason.starts_with(sign));
    if starts(&[
        "stream disconnected",
        "Connection failed",
        "error sending request",
    ]) {
        return broken_connection(target);
    }
    if starts(&["Codex ran out of room"]) {
        return LlmError::Unsupported(target.fault(
            "the prompt does not fit into the model's context",
            "lower the context budget",
        ));
    }
    if starts(&[
        "Quota exceeded",
        "You've hit your usage limit",
        "You’ve hit your usage limit",
    ]) {
        return LlmError::ProviderQuota(target.fault("the quota is used up", "wait, or raise it"));
    }
    if starts(&[
        "Missing environment variable",
        "Your access token could not be refreshed",
    ]) {
        return no_key(target, "codex login");
    }
    target.unreadable("the program reports an error without a status", AGAIN)
}

/// The status at the beginning of the reason, in one of the program's forms.
fn status(reason: &str) -> Option<u16> {
    const FORMS: [&str; 2] = ["unexpected status ", "exceeded retry limit, last status: "];
    if let Some(rest) = FORMS.iter().find_map(|form| reason.strip_prefix(form)) {
        return rest
            .get(..3)?
            .parse()
            .ok()
            .filter(|status| (300..600).contains(status));
    }
    // For a refused request the reason is only the body of the response.
    if reason.starts_with('{') {
        return Some(400);
    }
    // OpenAI's message for an unknown model, which comes without a status.
    if reason.starts_with("The model `") {
        return Some(404);
    }
    // Its message for a 500, with either apostrophe.
    (reason.starts_with("We") && reason.contains("currently experiencing high demand"))
        .then_some(500)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ASKED: CallTarget<'static> = CallTarget {
        provider: "codex-cli",
        model: "m",
    };

    #[test]
    fn status_is_read_only_from_reason_start() {
        assert_eq!(
            status("unexpected status 529 <unknown status code>: x"),
            Some(529)
        );
        assert_eq!(
            status("exceeded retry limit, last status: 429 Too Many Requests"),
            Some(429)
        );
        assert_eq!(status("{\"error\": {}}"), Some(400));
        assert_eq!(
            status("We’re currently experiencing high demand"),
            Some(500)
        );
        for none in [
            "",
            "x unexpected status 401",
            "unexpected status ",
            "unexpected status 4é",
            "unexpected status 200 OK",
        ] {
            assert_eq!(status(none), None, "{none}");
        }
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn no_output_makes_the_reader_panic(
                code in any::<i32>(),
                bytes in proptest::collection::vec(any::<u8>(), 0..200),
                reason in "(unexpected status |\\PC){0,30}",
                kind in "item.completed|turn.completed|turn.failed|error|\\PC{0,5}",
            ) {
                let _any = read(ASKED, code, &bytes);
                let event = serde_json::json!({"type": kind, "item": reason, "error": {"message": reason}, "usage": reason});
                let mut stdout = event.to_string().into_bytes();
                stdout.extend(bytes);
                let _any = read(ASKED, code, &stdout);
            }
        }
    }
}
