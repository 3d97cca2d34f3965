//! Parses the output of the `claude` program: a pure function.
//!
//! The last valid JSON object on standard output is the result. It is a success if the exit code is 0,
//! every field of the object says so, a model is named, and there is text. `subtype` alone is not enough:
//! it is `success` on errors too. Tokens come from `modelUsage`, because `usage` is zero after a cut
//! stream. A text of several turns counts as cut off, because only the last turn is returned.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::answer_body::{model_name, reason};
use crate::budget::REPORTED_COST;
use crate::client_program::{AGAIN, broken_connection, no_key};
use crate::error::{AnswerFault, LlmError};
use crate::http_fault::CallTarget;
use crate::invocation::LlmResult;
use crate::price::micro_dollars;

/// Parses the output of a program that exited with this code.
pub(super) fn read(
    target: CallTarget<'_>,
    code: i32,
    stdout: &[u8],
) -> Result<LlmResult, LlmError> {
    let Some(result) = last_object(stdout) else {
        let what = if stdout.trim_ascii().is_empty() {
            format!("the program ended with code {code} and printed nothing")
        } else {
            format!("the program ended with code {code} and printed no JSON")
        };
        return Err(target.unreadable(what, AGAIN));
    };
    if result.get("type").and_then(Value::as_str) != Some("result") {
        return Err(target.unreadable(
            "the last thing the program printed is not its result",
            AGAIN,
        ));
    }
    if let Some(status) = result
        .get("api_error_status")
        .filter(|status| !status.is_null())
    {
        return Err(api_error(target, status));
    }
    match result.get("api_error").and_then(Value::as_str) {
        Some("connection_failed") => return Err(broken_connection(target)),
        Some("max_output_tokens") => {
            return Err(target.unusable(
                AnswerFault::TooLarge,
                "the answer was cut off at its token limit",
                "raise max_tokens or ask for less at once",
            ));
        }
        Some(_) | None => {}
    }
    let text = result
        .get("result")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let subtype = result
        .get("subtype")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if result.get("is_error").and_then(Value::as_bool) != Some(false)
        || subtype.starts_with("error")
    {
        return Err(if asks_for_login(text) {
            no_key(target, "claude")
        } else {
            target.unreadable(
                format!("the program reports an error (exit code {code})"),
                AGAIN,
            )
        });
    }
    if code != 0 {
        return Err(target.unreadable(format!("the program ended with code {code}"), AGAIN));
    }
    if text.trim().is_empty() {
        let next = "try again or choose another model";
        return Err(target.unusable(AnswerFault::Empty, "the answer contains no text", next));
    }
    let Some(by_model) = result
        .get("modelUsage")
        .and_then(Value::as_object)
        .filter(|usage| !usage.is_empty())
    else {
        return Err(target.unreadable(
            "the program answered by itself, without asking a model",
            AGAIN,
        ));
    };
    Ok(answer(target, text, &result, by_model))
}

/// The last JSON object: the whole output, or else the last line that is one.
fn last_object(stdout: &[u8]) -> Option<Map<String, Value>> {
    let object = |bytes: &[u8]| match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Some(object),
        Ok(_) | Err(_) => None,
    };
    object(stdout).or_else(|| stdout.rsplit(|&byte| byte == b'\n').find_map(object))
}

fn api_error(target: CallTarget<'_>, status: &Value) -> LlmError {
    let number = status.as_u64().or_else(|| status.as_str()?.parse().ok());
    match number.and_then(|number| u16::try_from(number).ok()) {
        Some(status) => target.on_status(status, &BTreeMap::new()),
        None => target.unreadable(
            "the program reports an error of the API without a status",
            "try again",
        ),
    }
}

/// Whether the text is the program's message for a missing or refused key; the API is not called then, so
/// there is no status.
fn asks_for_login(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["/login", "api key", "not logged in", "authentication"]
        .iter()
        .any(|sign| text.contains(sign))
}

fn answer(
    target: CallTarget<'_>,
    text: &str,
    result: &Map<String, Value>,
    by_model: &Map<String, Value>,
) -> LlmResult {
    let count = |usage: &Value, names: &[&str]| -> u64 {
        names
            .iter()
            .filter_map(|name| usage.get(name)?.as_u64())
            .fold(0, u64::saturating_add)
    };
    const INPUT: [&str; 3] = [
        "inputTokens",
        "cacheReadInputTokens",
        "cacheCreationInputTokens",
    ];
    let total = |names: &[&str]| {
        by_model
            .values()
            .map(|usage| count(usage, names))
            .fold(0, u64::saturating_add)
    };
    // Helper models of the client may have answered too; the one with the most output is the main one.
    let speaker = by_model
        .iter()
        .max_by_key(|(_, usage)| count(usage, &["outputTokens"]))
        .map(|(model, _)| model);
    let mut extensions = BTreeMap::new();
    // After a turn that reached its limit the program lets the model continue, and returns only the last
    // turn.
    let turns = result.get("num_turns").and_then(Value::as_u64).unwrap_or(1);
    let last_part = (turns > 1).then(|| "max_tokens".to_owned());
    let stated = || {
        result
            .get("stop_reason")
            .and_then(Value::as_str)
            .map(reason)
    };
    if let Some(why) = last_part.or_else(stated) {
        extensions.insert(LlmResult::FINISH_REASON.to_owned(), Value::from(why));
    }
    if let Some(denied) = result
        .get("permission_denials")
        .and_then(Value::as_array)
        .filter(|list| !list.is_empty())
    {
        extensions.insert("permission_denials".to_owned(), Value::from(denied.len()));
    }
    if let Some(cost) = result
        .get("total_cost_usd")
        .and_then(Value::as_f64)
        .and_then(micro_dollars)
    {
        extensions.insert(REPORTED_COST.to_owned(), Value::from(cost));
    }
    LlmResult {
        raw_response: text.to_owned(),
        provider: target.provider.to_owned(),
        model_used: model_name(speaker.map(String::as_str), target.model),
        tokens_input: Some(total(&INPUT)),
        tokens_output: Some(total(&["outputTokens"])),
        timed_out: Some(false),
        extensions,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const ASKED: CallTarget<'static> = CallTarget {
        provider: "claude-cli",
        model: "sonnet",
    };

    fn success() -> Value {
        json!({
            "type": "result", "subtype": "success", "is_error": false, "api_error_status": null,
            "result": "hello", "stop_reason": "end_turn", "total_cost_usd": 0.0012345,
            "usage": {"input_tokens": 0, "output_tokens": 0}, "permission_denials": [],
            "modelUsage": {
                "small": {"inputTokens": 5, "outputTokens": 1},
                "large": {"inputTokens": 10, "outputTokens": 20, "cacheReadInputTokens": 100},
            },
        })
    }

    fn with(name: &str, value: Value) -> Vec<u8> {
        let mut result = success();
        result[name] = value;
        result.to_string().into_bytes()
    }

    #[test]
    fn usage_comes_from_reliable_fields() {
        let result = read(ASKED, 0, success().to_string().as_bytes()).unwrap();
        assert_eq!(result.raw_response, "hello");
        assert_eq!(result.model_used, "large");
        assert_eq!(
            (result.tokens_input, result.tokens_output),
            (Some(115), Some(21))
        );
        assert_eq!(result.extensions[REPORTED_COST], 1235);
        assert_eq!(result.finish(), crate::invocation::Finish::Complete);
    }

    #[test]
    fn a_success_that_is_none_is_an_error() {
        let broken: [(i32, Vec<u8>); 15] = [
            (0, Vec::new()),
            (143, Vec::new()),
            (0, b"Error: not json".to_vec()),
            (0, b"[1,2]\n42\n".to_vec()),
            (0, br#"{"type":"system"}"#.to_vec()),
            (0, br#"{"type":"result"}"#.to_vec()),
            (0, with("is_error", json!(true))),
            (0, with("result", json!(""))),
            (0, with("result", Value::Null)),
            (0, with("subtype", json!("error_max_turns"))),
            (0, with("api_error_status", json!("what"))),
            (1, success().to_string().into_bytes()),
            // Its reply to a prompt that it takes for its own command.
            (0, with("modelUsage", json!({}))),
            (0, with("modelUsage", Value::Null)),
            (0, with("modelUsage", json!(["claude-x"]))),
        ];
        for (code, stdout) in broken {
            let error = read(ASKED, code, &stdout).unwrap_err();
            assert_eq!(
                error.class(),
                "provider_outage",
                "{}",
                String::from_utf8_lossy(&stdout)
            );
            assert!(!error.is_transient());
        }
    }

    #[test]
    fn api_status_overrides_subtype() {
        for (status, class) in [
            (401, "provider_auth"),
            (429, "provider_quota"),
            (529, "provider_outage"),
            (400, "unsupported"),
        ] {
            let mut result = success();
            result["is_error"] = json!(true);
            result["api_error_status"] = json!(status);
            result["result"] = json!("API Error: sk-secret");
            let error = read(ASKED, 1, result.to_string().as_bytes()).unwrap_err();
            assert_eq!(error.class(), class);
            assert!(!format!("{error}{error:?}").contains("sk-secret"));
        }
        for (api_error, class) in [
            ("connection_failed", "transport"),
            ("max_output_tokens", "provider_outage"),
        ] {
            let mut result = success();
            result["is_error"] = json!(true);
            result["api_error"] = json!(api_error);
            assert_eq!(
                read(ASKED, 1, result.to_string().as_bytes())
                    .unwrap_err()
                    .class(),
                class
            );
        }
        let login = with("result", json!("Invalid API key · Please run /login"));
        let mut login: Value = serde_json::from_slice(&login).unwrap();
        login["is_error"] = json!(true);
        assert_eq!(
            read(ASKED, 1, login.to_string().as_bytes())
                .unwrap_err()
                .class(),
            "provider_auth"
        );
    }

    #[test]
    fn last_of_several_turns_is_cut_off() {
        assert!(
            read(ASKED, 0, &with("num_turns", json!(1)))
                .unwrap()
                .complete_answer()
                .is_ok()
        );
        let last = read(ASKED, 0, &with("num_turns", json!(2))).unwrap();
        assert!(last.complete_answer().is_err());
        assert_eq!(last.tokens_output, Some(21));
    }

    #[test]
    fn implausible_cost_is_ignored() {
        for cost in [json!(-1.0), json!(1e300), json!("1")] {
            let result = read(ASKED, 0, &with("total_cost_usd", cost)).unwrap();
            assert!(!result.extensions.contains_key(REPORTED_COST));
        }
    }

    #[test]
    fn names_and_reasons_are_one_short_line() {
        let usage = json!({"outputTokens": 1});
        let mut result = success();
        result["modelUsage"] = json!({format!("m\n\u{1b}[31m{}", "x".repeat(5000)): usage});
        result["stop_reason"] = json!(format!("end\r\n{}", "y".repeat(5000)));
        let result = read(ASKED, 0, result.to_string().as_bytes()).unwrap();
        let reason = result.extensions[LlmResult::FINISH_REASON]
            .as_str()
            .unwrap();
        for (stated, begin) in [(result.model_used.as_str(), "m[31mx"), (reason, "endy")] {
            assert!(stated.starts_with(begin) && stated.len() <= 200, "{stated}");
        }
    }

    #[test]
    fn the_last_valid_object_wins() {
        let first = String::from_utf8(with("result", json!("first"))).unwrap();
        let last = String::from_utf8(with("result", json!("last"))).unwrap();
        let stdout = format!("warning: x\n{first}\n{{\"type\":\"res\n{last}\nbye {{\n");
        assert_eq!(
            read(ASKED, 0, stdout.as_bytes()).unwrap().raw_response,
            "last"
        );
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn no_output_makes_it_panic(code in any::<i32>(), stdout in proptest::collection::vec(any::<u8>(), 0..200)) {
                let _any = read(ASKED, code, &stdout);
            }
        }
    }
}
