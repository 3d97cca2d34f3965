//! Parses a response as printed by `gh api -i`: status line, headers, an empty line, the body.
//!
//! Invariants: only a status of 2xx with exit code 0 is success. The body of a refusal has GitHub's message.
//! Headers distinguish 403 and 429 first: either can be a rate limit, and 403 often is not.

use std::borrow::Cow;
use std::time::Duration;

use crucible_model::{ByteLimit, Timestamp, is_hidden, single_spaced};
use crucible_sandbox::{Completed, End, Extent, FORBIDDEN_SIGNAL};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{GhError, LimitReset};

/// How many characters of `gh`'s words an error shows; they are redacted.
const SHOWN: usize = 300;

/// How many characters of GitHub's words an error keeps, for one who redacts them and then shows the first few.
const KEPT: usize = SHOWN + 4096;

/// The exit code of `gh` without a login.
const NO_LOGIN: i32 = 4;

/// What GitHub answered with success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GhResponse {
    /// The body as it came.
    pub body: Vec<u8>,
    what: String,
}

impl GhResponse {
    /// The body, read as JSON of this shape.
    ///
    /// # Errors
    ///
    /// [`GhError::Unreadable`] when it is something else.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, GhError> {
        serde_json::from_slice(&self.body).map_err(|error| GhError::Unreadable {
            what: self.what.clone(),
            why: format!(
                "it is not the JSON that was expected ({}); see what `gh api {}` prints",
                short_text(&error.to_string()),
                self.what
            ),
        })
    }
}

/// Returns when the download API's limit ends, from GitHub's response about the limits; only if it is
/// exhausted.
pub(super) fn exhausted_until(answer: &GhResponse) -> LimitReset {
    let Ok(body) = answer.json::<Value>() else {
        return LimitReset::default();
    };
    let core = &body["resources"]["core"];
    let at = core["reset"]
        .as_u64()
        .filter(|_| core["remaining"].as_u64() == Some(0));
    LimitReset {
        at: at.map(|seconds| Timestamp::from_unix(Duration::from_secs(seconds))),
        after: None,
    }
}

/// What came before the body.
#[derive(Debug, Default, PartialEq, Eq)]
struct Head {
    status: u16,
    remaining: Option<u64>,
    reset: LimitReset,
}

/// Parses the output of `gh api -i`.
pub(super) fn read(
    completed: &Completed,
    what: &str,
    limit: ByteLimit,
    deadline: Duration,
) -> Result<GhResponse, GhError> {
    let stderr = short_text(&completed.stderr.text());
    let code = exit_code(completed.end, what, limit, deadline, &stderr)?;
    if completed.stdout.extent == Extent::Cut {
        return Err(GhError::TooLarge {
            what: what.to_owned(),
            limit: limit.0,
        });
    }
    let Some((head, body)) = split(&completed.stdout.bytes) else {
        // GitHub did respond if `gh` prints its status, whatever happened to the headers.
        return Err(match status_of(&completed.stderr.text()).filter(|_| code != 0) {
            Some(status) => error_from_text(status, &completed.stdout.bytes, what),
            None if code == 0 && !completed.stdout.bytes.trim_ascii().is_empty() => GhError::Unreadable {
                what: what.to_owned(),
                why: "the output of `gh` is not a response of GitHub's API; check with `gh --version` that it is GitHub's own program"
                    .to_owned(),
            },
            None => no_response_error(code, what, stderr),
        });
    };
    match (code, head.status) {
        (0, 200..=299) => Ok(GhResponse {
            body: body.to_vec(),
            what: what.to_owned(),
        }),
        (_, 200..=299) => Err(GhError::Unreadable {
            what: what.to_owned(),
            why: format!("it was cut off ({stderr})"),
        }),
        (_, status) => Err(refusal(status, &head, body, what)),
    }
}

/// The exit code of a `gh` that ended by itself.
pub(super) fn exit_code(
    end: End,
    what: &str,
    limit: ByteLimit,
    deadline: Duration,
    stderr: &str,
) -> Result<i32, GhError> {
    let what = what.to_owned();
    match end {
        End::Exited(NO_LOGIN) => Err(GhError::NotLoggedIn {
            message: stderr.to_owned(),
        }),
        End::Exited(code) => Ok(code),
        End::TimedOut => Err(GhError::TimedOut {
            what,
            after: deadline,
        }),
        End::OutputLimit | End::DiskLimit => Err(GhError::TooLarge {
            what,
            limit: limit.0,
        }),
        End::Signalled(signal) => Err(GhError::NotRun {
            message: format!("`gh` was ended by signal {signal}"),
        }),
        End::Forbidden => Err(GhError::NotRun {
            message: format!("`gh` was ended by signal {FORBIDDEN_SIGNAL}"),
        }),
    }
}

/// The error of a `gh` that printed no answer at all.
pub(super) fn no_response_error(code: i32, what: &str, stderr: String) -> GhError {
    match code {
        0 => GhError::Unreadable {
            what: what.to_owned(),
            why: "`gh` printed nothing".to_owned(),
        },
        _ => GhError::Unreachable { message: stderr },
    }
}

/// Returns the error of a refusal without headers, from the text of `gh` and the printed body.
pub(super) fn error_from_text(status: u16, body: &[u8], what: &str) -> GhError {
    refusal(
        status,
        &Head {
            status,
            ..Head::default()
        },
        body,
        what,
    )
}

/// Returns the status that `gh` prints on standard error: `gh: Not Found (HTTP 404)`, or `gh: HTTP 502`.
pub(super) fn status_of(stderr: &str) -> Option<u16> {
    let line = stderr.lines().find(|line| line.starts_with("gh: "))?;
    let digits = line.get(line.rfind("HTTP ")? + "HTTP ".len()..)?.get(..3)?;
    digits.parse().ok()
}

fn refusal(status: u16, head: &Head, body: &[u8], what: &str) -> GhError {
    let reason = message(body);
    let what = what.to_owned();
    match status {
        403 | 429 if status == 429 || is_limit(head, &reason) => GhError::RateLimited(head.reset),
        401 => GhError::NotLoggedIn { message: reason },
        403 => GhError::Forbidden {
            what,
            message: reason,
        },
        404 | 410 => GhError::NotFound { what },
        400..=499 => GhError::Invalid {
            what,
            status,
            message: reason,
        },
        _ => GhError::Server {
            status,
            message: reason,
        },
    }
}

/// Returns whether a 403 is a rate limit: the primary one leaves nothing, secondary ones state a time or say
/// so.
fn is_limit(head: &Head, message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let words = ["rate limit", "abuse detection"];
    head.remaining == Some(0)
        || head.reset.after.is_some()
        || words.iter().any(|word| message.contains(word))
}

/// Returns GitHub's message on a refusal, followed by its details.
fn message(body: &[u8]) -> String {
    let Ok(json) = serde_json::from_slice::<Value>(body) else {
        return line(
            &String::from_utf8_lossy(body.get(..body.len().min(4 * KEPT)).unwrap_or_default()),
            KEPT,
        );
    };
    let mut reason = json["message"]
        .as_str()
        .unwrap_or("it gave no reason")
        .to_owned();
    for mistake in json["errors"].as_array().into_iter().flatten().take(5) {
        let words = mistake
            .as_str()
            .or_else(|| mistake["message"].as_str())
            .or_else(|| mistake["code"].as_str());
        if let Some(words) = words {
            reason.push_str("; ");
            reason.push_str(words);
        }
    }
    line(&reason, KEPT)
}

/// Returns the text of `gh` on one short line, without hidden characters.
pub(super) fn short_text(text: &str) -> String {
    line(text, SHOWN)
}

fn line(text: &str, most: usize) -> String {
    let short: String = single_spaced(text)
        .chars()
        .filter(|c| !is_hidden(*c))
        .take(most)
        .collect();
    if short.is_empty() {
        "it said nothing".to_owned()
    } else {
        short
    }
}

/// Splits head and body; `None` without a status line.
fn split(bytes: &[u8]) -> Option<(Head, &[u8])> {
    let mut rest = bytes;
    let mut line = || -> Option<Cow<'_, str>> {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let (line, after) = rest.split_at_checked(end + 1)?;
        rest = after;
        Some(String::from_utf8_lossy(line.trim_ascii_end()))
    };
    let first = line()?;
    let status = first
        .strip_prefix("HTTP/")?
        .split(' ')
        .nth(1)?
        .parse()
        .ok()?;
    let mut head = Head {
        status,
        ..Head::default()
    };
    loop {
        let line = line()?;
        if line.is_empty() {
            return Some((head, rest));
        }
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let number = || value.trim().parse::<u64>().ok();
        match name.trim().to_ascii_lowercase().as_str() {
            "x-ratelimit-remaining" => head.remaining = number(),
            "x-ratelimit-reset" => {
                head.reset.at =
                    number().map(|seconds| Timestamp::from_unix(Duration::from_secs(seconds)));
            }
            "retry-after" => head.reset.after = number().map(Duration::from_secs),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, headers: &str, body: &str) -> GhError {
        let text = format!("HTTP/2.0 {status} Whatever\r\n{headers}\r\n{body}");
        let (head, body) = split(text.as_bytes()).unwrap();
        refusal(head.status, &head, body, "repos/a/b")
    }

    const WORDS: &str = r#"{"message":"API rate limit exceeded for user"}"#;

    #[test]
    fn rate_limit_is_recognised_by_headers() {
        let at = Some(Timestamp::from_unix(Duration::from_secs(1_700_000_000)));
        let reset = "X-Ratelimit-Remaining: 0\r\nX-Ratelimit-Reset: 1700000000\r\n";
        for status in [403, 429] {
            assert_eq!(
                error(status, reset, "{}"),
                GhError::RateLimited(LimitReset { at, after: None })
            );
            let after = Some(Duration::from_secs(7));
            assert_eq!(
                error(status, "Retry-After: 7\r\n", ""),
                GhError::RateLimited(LimitReset { at: None, after })
            );
            assert_eq!(
                error(status, "", WORDS),
                GhError::RateLimited(LimitReset::default())
            );
        }
        assert_eq!(
            error(429, "", "slow down"),
            GhError::RateLimited(LimitReset::default())
        );
        for headers in [
            "",
            "x-ratelimit-remaining: 12\r\nx-ratelimit-reset: 1700000000\r\n",
        ] {
            let refused = error(403, headers, r#"{"message":"Resource protected by SAML"}"#);
            assert!(matches!(refused, GhError::Forbidden { .. }), "{refused:?}");
        }
    }

    #[test]
    fn invalid_header_numbers_are_ignored() {
        let unusual_text = "retry-after: -3\r\nx-ratelimit-reset: 99999999999999999999999\r\nx-ratelimit-remaining: none\r\n";
        assert_eq!(
            error(429, unusual_text, ""),
            GhError::RateLimited(LimitReset::default())
        );
        let far = error(429, "x-ratelimit-reset: 18446744073709551615\r\n", "");
        assert!(matches!(
            far,
            GhError::RateLimited(LimitReset { at: Some(_), .. })
        ));
    }

    #[test]
    fn http_status_maps_to_error_with_message() {
        assert!(matches!(error(401, "", WORDS), GhError::NotLoggedIn { .. }));
        assert!(matches!(error(404, "", ""), GhError::NotFound { .. }));
        assert!(matches!(
            error(500, "", ""),
            GhError::Server { status: 500, .. }
        ));
        assert!(matches!(
            error(304, "", ""),
            GhError::Server { status: 304, .. }
        ));
        let body = r#"{"message":"Validation Failed","errors":[{"message":"q is bad"},{"code":"missing"},"third"]}"#;
        let text = error(422, "", body).to_string();
        assert!(
            text.contains("(HTTP 422): Validation Failed; q is bad; missing; third"),
            "{text}"
        );
    }

    #[test]
    fn status_is_parsed_from_gh_message() {
        assert_eq!(status_of("gh: Not Found (HTTP 404)\n"), Some(404));
        assert_eq!(status_of("gh: HTTP 502\n"), Some(502));
        assert_eq!(
            status_of("gh: HTTP 200 is a lie (HTTP 403)\ngh: This API operation needs a scope\n"),
            Some(403)
        );
        assert_eq!(status_of("unexpected EOF\n"), None);
        assert_eq!(status_of("gh: HTTP\n"), None);
    }

    #[test]
    fn foreign_words_are_short_and_on_one_line() {
        let body = format!(
            r#"{{"message":"a\u001b[31m\u202eb\n{}"}}"#,
            "x".repeat(100_000)
        );
        let GhError::Invalid { message, .. } = error(422, "", &body) else {
            panic!("another error")
        };
        assert!(
            message.starts_with("a[31mb x") && message.chars().count() <= KEPT,
            "{message}"
        );
    }

    #[test]
    fn invalid_response_is_an_error() {
        for text in [
            "",
            "{\"message\":\"x\"}\n",
            "HTTP/1.1\r\n\r\n",
            "HTTP/1.1 abc\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\r\n",
        ] {
            assert_eq!(split(text.as_bytes()), None, "{text:?}");
        }
        let (head, body) = split(b"HTTP/1.1 200 OK\nA: b\n\nbody\n\nmore").unwrap();
        assert_eq!((head.status, body), (200, b"body\n\nmore".as_slice()));
    }
}
