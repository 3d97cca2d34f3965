//! Parses the output of the `gemini` program: a pure function.
//!
//! Success is an exit code of 0 and JSON with text, no error, and statistics of exactly one request of
//! one model. The exit code alone is not enough: it is also 0 if the program sent nothing, or joined the
//! texts before and after a broken stream. A version or a wrapper without JSON support prints only the
//! text; that is an answer without token counts. On failure the exit code is the status modulo 256,
//! unless it is one of the program's own. Standard error then ends in JSON, whose code is the status if
//! there was one. Other text there quotes the server, so only fixed phrases are searched.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::answer_body::model_name;
use crate::client_program::{AGAIN, Ended, broken_connection, no_key};
use crate::error::{AnswerFault, LlmError};
use crate::http_fault::CallTarget;
use crate::invocation::LlmResult;

/// How many tokens below its limit an answer still counts as cut off, because the API's count may differ
/// from the limit.
const SLACK: u64 = 8;

/// The most lines beginning with a brace, from the end of standard error, that are tried as JSON.
const MAX_STARTS: usize = 16;

#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    response: Option<String>,
    stats: Stats,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Stats {
    models: BTreeMap<String, ModelStats>,
}

#[derive(Deserialize)]
struct ModelStats {
    api: Requests,
    tokens: Tokens,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Requests {
    total_requests: u64,
    total_errors: u64,
}

#[derive(Deserialize)]
struct Tokens {
    prompt: u64,
    candidates: u64,
    /// The model's thinking tokens, which count as output.
    #[serde(default)]
    thoughts: u64,
}

/// The JSON at the end of standard error when the program failed.
#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "session_id")]
    _session: String,
    error: Reported,
}

#[derive(Deserialize)]
struct Reported {
    #[serde(default)]
    message: String,
    #[serde(default)]
    code: Value,
}

/// Parses the output of a program that exited with 0. The text may be empty.
pub(super) fn answer(target: CallTarget<'_>, stdout: &[u8]) -> Result<LlmResult, LlmError> {
    if stdout.trim_ascii().is_empty() {
        return Err(target.unreadable("the program ended with code 0 and printed nothing", AGAIN));
    }
    let Ok(output) = serde_json::from_slice::<Output>(stdout) else {
        return plain_text(target, stdout);
    };
    let Output {
        response,
        stats: Stats { models },
        error,
    } = output;
    let text = response.unwrap_or_default();
    let sum = |of: fn(&Requests) -> u64| {
        models
            .values()
            .map(|m| of(&m.api))
            .fold(0, u64::saturating_add)
    };
    let [requests, errors] = [sum(|api| api.total_requests), sum(|api| api.total_errors)];
    if error.is_some_and(|error| !error.is_null()) || errors > 0 {
        return Err(if text.trim().is_empty() {
            target.unusable(
                AnswerFault::Empty,
                "the answer broke off before any text came",
                "try again",
            )
        } else {
            target.unreadable(
                "the answer broke off; the partial text is not used",
                "try again",
            )
        });
    }
    if models.is_empty() || requests == 0 {
        return Err(target.unreadable("the program reports success but sent no request", AGAIN));
    }
    let mut speakers = models
        .iter()
        .filter(|(_, model)| model.api.total_requests == 1);
    let (1, Some((speaker, ModelStats { tokens, .. }))) = (requests, speakers.next()) else {
        return Err(target.unreadable(
            format!(
                "the program made {requests} requests for one answer; its text may be several answers joined"
            ),
            "try again; name one model, not an alias for several",
        ));
    };
    Ok(LlmResult {
        raw_response: text,
        provider: target.provider.to_owned(),
        model_used: model_name(Some(speaker), target.model),
        tokens_input: Some(tokens.prompt),
        tokens_output: Some(tokens.candidates.saturating_add(tokens.thoughts)),
        timed_out: Some(false),
        extensions: BTreeMap::new(),
    })
}

/// Parses an answer without statistics. Text that begins like the program's JSON but is invalid was cut
/// off or is an error.
fn plain_text(target: CallTarget<'_>, stdout: &[u8]) -> Result<LlmResult, LlmError> {
    let text = std::str::from_utf8(stdout)
        .ok()
        .filter(|text| !text.trim_start().starts_with('{'));
    let Some(text) = text else {
        return Err(target.unreadable(
            "the program ended with code 0, but its output is neither its JSON nor plain text",
            AGAIN,
        ));
    };
    Ok(LlmResult {
        raw_response: text.to_owned(),
        provider: target.provider.to_owned(),
        model_used: model_name(None, target.model),
        tokens_input: None,
        tokens_output: None,
        timed_out: Some(false),
        extensions: BTreeMap::new(),
    })
}

/// Whether an answer has its maximum length, and so was probably cut off.
pub(super) fn fills(result: &LlmResult, max_tokens: u64) -> bool {
    result
        .tokens_output
        .is_some_and(|tokens| tokens.saturating_add(SLACK) >= max_tokens)
}

/// The error for an exit code other than 0.
pub(super) fn failure(target: CallTarget<'_>, ended: &Ended) -> LlmError {
    let envelope = envelope(&ended.complaint);
    let stated = envelope
        .as_ref()
        .and_then(|reported| status(reported.code.as_u64()?));
    let broken = |reported: &Reported| {
        reported.message == "terminated"
            || reported.message.contains("fetch failed sending request")
    };
    if let Some(status) = stated.or_else(|| not_found(&ended.complaint)) {
        return target.on_status(status, &BTreeMap::new());
    }
    if envelope.as_ref().is_some_and(broken) {
        return broken_connection(target);
    }
    if let Some(error) = own_code(target, ended.code) {
        return error;
    }
    if let (None, Some(status)) = (&envelope, folded(ended.code)) {
        return target.on_status(status, &BTreeMap::new());
    }
    let error = target.unreadable(format!("the program ended with code {}", ended.code), AGAIN);
    // If there is an envelope, a server was called, and the text around it quotes its answer.
    if envelope.is_none() && !ended.complaint.contains("\"error\"") {
        ended.explain(error)
    } else {
        error
    }
}

/// The program's own exit codes.
fn own_code(target: CallTarget<'_>, code: i32) -> Option<LlmError> {
    Some(match code {
        41 => no_key(target, "gemini"),
        42 => LlmError::Unsupported(target.fault("the program found no prompt", "ask something")),
        44 | 52 => LlmError::Misconfiguration(target.fault(
            format!("the program does not accept its settings (exit code {code})"),
            "check that the program is version 0.61 or later, and your own settings of it",
        )),
        53 => target.unusable(
            AnswerFault::Empty,
            "the model asked for a tool instead of answering",
            "try again or choose another model",
        ),
        55 => LlmError::Misconfiguration(target.fault(
            "the program does not trust the empty directory it runs in",
            "check that the program is version 0.61 or later",
        )),
        130 => target.unreadable("the program was interrupted", "try again"),
        _ => return None,
    })
}

/// The last JSON of the program's own form on standard error. It starts on its own line.
fn envelope(complaint: &str) -> Option<Reported> {
    let starts = complaint.rmatch_indices('{').filter(|(at, _)| {
        let before = complaint[..*at].rsplit('\n').next().unwrap_or_default();
        before.is_empty() || before == "[ERROR] "
    });
    let read = |(at, _): (usize, &str)| {
        let mut values =
            serde_json::Deserializer::from_str(&complaint[at..]).into_iter::<Envelope>();
        values.next()?.ok()
    };
    starts
        .take(MAX_STARTS)
        .find_map(read)
        .map(|envelope| envelope.error)
}

/// For an unknown model or address the JSON holds no status, but the stack trace above it does.
fn not_found(complaint: &str) -> Option<u16> {
    (complaint.contains("ModelNotFoundError")
        && complaint.lines().any(|line| line.trim() == "code: 404"))
    .then_some(404)
}

fn status(code: u64) -> Option<u16> {
    u16::try_from(code)
        .ok()
        .filter(|status| (300..600).contains(status))
}

/// The status that the kernel truncated to this exit code: 400 to 511, and 520 and above from proxies.
fn folded(code: i32) -> Option<u16> {
    let code = u16::try_from(code).ok()?;
    match code {
        144..=255 => Some(code + 256),
        8..=18 => Some(code + 512),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ASKED: CallTarget<'static> = CallTarget {
        provider: "gemini-cli",
        model: "m",
    };

    #[test]
    fn last_envelope_on_stderr_is_used() {
        let own = |code: u64| {
            format!(
                "{{\n \"session_id\": \"s\",\n \"error\": {{\"message\": \"x\", \"code\": {code}}}\n}}"
            )
        };
        let code = |text: &str| envelope(text).map(|reported| reported.code);
        assert_eq!(
            code(&format!("warning {{\n{}", own(401))),
            Some(Value::from(401))
        );
        assert_eq!(
            code(&format!("{}\n[ERROR] {}\n", own(500), own(53))),
            Some(Value::from(53))
        );
        // A server's text is inside a string, or does not name a session.
        assert_eq!(
            code(&format!("{}\n{{\"error\": {{\"code\": 200}}}}", own(429))),
            Some(Value::from(429))
        );
        assert_eq!(
            code("said: {\"session_id\": \"s\", \"error\": {\"code\": 429}}"),
            None
        );
        assert_eq!(code(""), None);
    }

    #[test]
    fn only_possible_exit_codes_become_statuses() {
        for status in (400..=511).chain(520..=530) {
            assert_eq!(folded(i32::from(status) % 256), Some(status));
        }
        for code in [-1, 0, 1, 2, 41, 42, 53, 55, 124, 130, 137, 143, 256, 429] {
            assert_eq!(folded(code), None, "{code}");
        }
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn no_output_makes_the_readers_panic(
                stdout in proptest::collection::vec(any::<u8>(), 0..200),
                complaint in "(\\PC|\n|[{}\":]|session_id|error|code){0,60}",
                code in any::<i32>(),
            ) {
                let _any = answer(ASKED, &stdout);
                let _any = (envelope(&complaint), not_found(&complaint), folded(code), own_code(ASKED, code));
            }

            /// For any statistics, an accepted answer has one request of one model.
            #[test]
            fn answer_requires_one_request_of_one_model(counts in proptest::collection::vec((0_u64..3, 0_u64..2), 0..4)) {
                let models: BTreeMap<String, Value> = (counts.iter().enumerate())
                    .map(|(at, (requests, errors))| {
                        let api = serde_json::json!({"totalRequests": requests, "totalErrors": errors});
                        let tokens = serde_json::json!({"prompt": 1, "candidates": u64::MAX, "thoughts": u64::MAX});
                        (format!("m{at}"), serde_json::json!({"api": api, "tokens": tokens}))
                    })
                    .collect();
                let stdout = serde_json::json!({"response": "x", "stats": {"models": models}}).to_string();
                let good = counts.iter().map(|(requests, _)| requests).sum::<u64>() == 1
                    && counts.iter().all(|(_, errors)| *errors == 0);
                prop_assert_eq!(answer(ASKED, stdout.as_bytes()).is_ok(), good);
            }
        }
    }
}
