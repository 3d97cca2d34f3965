//! What came back: the runner's answer, read strictly, and without the secrets that were handed out.
//!
//! What always holds: only a process that ended by itself and well gave a result; how it ended comes from the kernel and the
//! supervisor, what it says of itself only where those have nothing against it.

use crucible_model::{SECRET_REACH, Secret, UniqueJson, short_line};
use crucible_sandbox::{Captured, Completed, End, Extent};
use crucible_secrets::{ProvidedValues, SHORTEST_PROVIDED, Scanner};
use serde_json::Value;

use super::{MAX_RESULT_BYTES, RUNAWAY, RunnerError, SkillEnd};
use crate::grants::SecretName;

/// Errors by which the kernel refuses what the sandbox does not allow: EPERM, EACCES, EROFS, ENETDOWN, ENETUNREACH, ECONNREFUSED,
/// EHOSTUNREACH; nothing inside the sandbox gives another reason for them.
const REFUSALS: [i64; 7] = [1, 13, 30, 100, 101, 111, 113];
/// The errors of looking up a name: the only names there are those of granted hosts.
const NO_SUCH_NAME: [i64; 4] = [-2, -3, -4, -5];

/// The maximum number of characters of a text about an exception or an invalid result.
pub(super) const MAX_STATED_LEN: usize = 64 << 10;
/// The most characters that are shown of the place of an invalid result, and of its content.
const MAX_PLACE_LEN: usize = 120;
/// The most bytes that stand for one byte of a value that is taken out.
const GROWTH: usize = 4;

/// The secrets that a call was handed.
pub(super) struct ProvidedSecrets<'a> {
    secrets: Vec<(&'a SecretName, &'a str)>,
    keys: ProvidedValues,
    /// The bytes of the longest spelling of one of them.
    longest: usize,
}

impl<'a> ProvidedSecrets<'a> {
    /// Refuses values that could not be found again.
    pub(super) fn new(secrets: &'a [(SecretName, Secret)]) -> Result<Self, RunnerError> {
        let mut values = Vec::new();
        for (name, value) in secrets {
            let value = value.expose();
            if value.is_empty() {
                return Err(RunnerError::SecretMissing { name: name.clone() });
            }
            let has_lines = value.contains(['\n', '\r', '\0']);
            // Space around it is not a part of it: who hands on what is between still hands it on.
            let value = value.trim();
            if value.len() < SHORTEST_PROVIDED || has_lines {
                return Err(RunnerError::SecretUnfit {
                    name: name.clone(),
                    least: SHORTEST_PROVIDED,
                });
            }
            values.push((name, value));
        }
        let spelled: Vec<Secret> = values
            .iter()
            .flat_map(|(_, value)| spellings(value))
            .collect();
        let longest = spelled
            .iter()
            .map(|value| value.expose().len())
            .max()
            .unwrap_or_default();
        Ok(Self {
            secrets: values,
            keys: ProvidedValues::new(&spelled),
            longest,
        })
    }

    /// The text without their values, nor what looks like any other secret.
    fn redacted(&self, text: &str) -> String {
        Scanner::builtin()
            .redact(&self.keys.out_of_text(text))
            .text
            .into_owned()
    }

    /// What was printed, without their values; where it was cut, without the bytes in which a secret may have been cut.
    pub(super) fn redacted_output(&self, printed: Captured) -> Captured {
        let text = self.of_cut(&printed.text(), printed.extent);
        Captured {
            bytes: text.into_bytes(),
            ..printed
        }
    }

    /// A text without their values; where it was cut, without the end in which one may have been cut.
    fn of_cut(&self, text: &str, extent: Extent) -> String {
        let mut text = self.redacted(text);
        if extent == Extent::Cut {
            let sure = text
                .len()
                .saturating_sub(SECRET_REACH.max(self.longest.saturating_mul(GROWTH)));
            text.truncate(text.floor_char_boundary(sure));
        }
        text
    }

    /// What the runner reported, whole or cut at its bound, without their values.
    fn redacted_report(&self, text: &str) -> String {
        let is_cut = text.chars().count() >= MAX_STATED_LEN;
        self.of_cut(text, if is_cut { Extent::Cut } else { Extent::Whole })
    }

    /// Which of them a value holds, in a text or a key, or spelled in its JSON.
    fn held_in(&self, value: &Value) -> Option<&SecretName> {
        let text = value.to_string();
        let found = self
            .secrets
            .iter()
            .find(|(_, secret)| text.contains(secret) || is_in(value, secret));
        found.map(|(name, _)| *name)
    }
}

/// A value as it is, and as JSON and Python show it between quotes: a program that prints a document or looks up a missing key does so
/// without meaning to.
fn spellings(value: &str) -> [Secret; 3] {
    let json = Value::from(value).to_string();
    let json = json
        .strip_prefix('"')
        .and_then(|json| json.strip_suffix('"'))
        .unwrap_or_default();
    let python = value.replace('\\', "\\\\").replace('\'', "\\'");
    [value, json, &python].map(|spelled| Secret::new(spelled.to_owned()))
}

fn is_in(value: &Value, secret: &str) -> bool {
    match value {
        Value::String(text) => text.contains(secret),
        Value::Array(items) => items.iter().any(|item| is_in(item, secret)),
        Value::Object(map) => map
            .iter()
            .any(|(key, item)| key.contains(secret) || is_in(item, secret)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// How the call ended.
pub(super) fn read(completed: &Completed, secrets: &ProvidedSecrets<'_>) -> SkillEnd {
    let broken = |why: String| SkillEnd::Broken { why };
    if completed.ran_out_of_memory {
        return broken("it needed more memory than it may use".to_owned());
    }
    match completed.end {
        End::Exited(0) => {}
        End::TimedOut => return SkillEnd::TimedOut,
        End::Forbidden => {
            let what =
                "a system call that its class does not allow; the kernel ended it there".to_owned();
            return SkillEnd::Denied { what };
        }
        End::Exited(code) => return broken(format!("it ended the process with exit code {code}")),
        End::Signalled(signal) => return broken(format!("it was ended by signal {signal}")),
        End::OutputLimit => return broken(format!("it printed more than {} MiB", RUNAWAY.0 >> 20)),
        End::DiskLimit => return broken("it wrote more than 256 MiB".to_owned()),
    }
    if completed.stdout.extent == Extent::Cut {
        return broken(format!(
            "its result has more than {} MiB",
            MAX_RESULT_BYTES >> 20
        ));
    }
    if completed.stdout.bytes.is_empty() {
        return broken("it ended the process without giving a result".to_owned());
    }
    match serde_json::from_slice::<UniqueJson>(&completed.stdout.bytes) {
        Ok(UniqueJson(Value::Object(answer))) if answer.len() == 1 => {
            let (kind, value) = answer.into_iter().next().unwrap_or_default();
            redacted_end(&kind, value, secrets)
        }
        Ok(_) | Err(_) => broken("it wrote something else where its result belongs".to_owned()),
    }
}

fn redacted_end(kind: &str, value: Value, secrets: &ProvidedSecrets<'_>) -> SkillEnd {
    // Nothing is cut before the secrets are out of it: what is left of one that was cut is found by nobody.
    let text = |key: &str, most: usize| {
        let redacted =
            secrets.redacted_report(value.get(key).and_then(Value::as_str).unwrap_or_default());
        match redacted.char_indices().nth(most) {
            Some((end, _)) => format!("{}…", redacted.get(..end).unwrap_or_default()),
            None => redacted,
        }
    };
    match kind {
        "returned" => match secrets.held_in(&value) {
            Some(secret) => SkillEnd::HoldsSecret {
                secret: secret.clone(),
            },
            None => SkillEnd::Returned(value),
        },
        "misfit" => match secrets.held_in(&value) {
            Some(secret) => SkillEnd::HoldsSecret {
                secret: secret.clone(),
            },
            None => {
                let (place, what) = (text("place", MAX_PLACE_LEN), text("what", MAX_PLACE_LEN));
                SkillEnd::Broken {
                    why: short_line(&format!("{place} {what}"), 400),
                }
            }
        },
        "raised" => {
            let (kind, message) = (text("kind", 120), text("message", 2_000));
            match value.get("errno").and_then(Value::as_i64) {
                Some(number) if REFUSALS.contains(&number) || NO_SUCH_NAME.contains(&number) => {
                    SkillEnd::Denied {
                        what: short_line(&format!("{kind}: {message}"), 400),
                    }
                }
                _ => SkillEnd::Raised {
                    kind,
                    message,
                    traceback: text("traceback", 8_000),
                },
            }
        }
        _ => SkillEnd::Broken {
            why: "it wrote something else where its result belongs".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: &str = "Zebra-Walnut-Lantern-Copper-Meadow-Thimble-42x";

    fn parse_answer(answer: &Value, secrets: &[(SecretName, Secret)]) -> SkillEnd {
        let (kind, value) = answer.as_object().unwrap().iter().next().unwrap();
        redacted_end(kind, value.clone(), &ProvidedSecrets::new(secrets).unwrap())
    }

    fn key() -> [(SecretName, Secret); 1] {
        [("KEY".parse().unwrap(), Secret::new(KEY.to_owned()))]
    }

    /// No text shows so much of the value that a run of its characters could be told.
    fn shows_nothing_of_it(text: &str) {
        for start in 0..KEY.len() - 6 {
            assert!(!text.contains(&KEY[start..start + 6]), "{text}");
        }
    }

    #[test]
    fn secret_in_exception_is_redacted_before_cutting() {
        // Wherever the cut of each text falls in the value.
        for (field, most) in [
            ("kind", 120),
            ("message", 2_000),
            ("traceback", 8_000),
            ("message", MAX_STATED_LEN),
        ] {
            for shown_count in [0, 1, 7, 30, KEY.len() - 1, KEY.len()] {
                let text: String = "q"
                    .repeat(most - shown_count)
                    .chars()
                    .chain(KEY.chars())
                    .take(MAX_STATED_LEN)
                    .collect();
                for errno in [Value::Null, json!(13)] {
                    let answer = json!({"raised": {"kind": "E", "message": "", "traceback": "", "errno": errno, field: text}});
                    let end = format!("{:?}", parse_answer(&answer, &key()));
                    shows_nothing_of_it(&end);
                    assert!(end.len() < 9_000, "{}", end.len());
                }
            }
        }
        // What stands for a value is longer than a short one is: what is behind many of them is not sure either.
        let secrets = [
            ("SHORT".parse().unwrap(), Secret::new("abcdef".to_owned())),
            (
                "LONG".parse().unwrap(),
                Secret::new(format!("begin{}", "abcdef".repeat(400))),
            ),
        ];
        let message: String = "q"
            .repeat(MAX_STATED_LEN - 2_000)
            .chars()
            .chain(secrets[1].1.expose().chars())
            .take(MAX_STATED_LEN)
            .collect();
        let redacted = ProvidedSecrets::new(&secrets)
            .unwrap()
            .redacted_report(&message);
        assert!(
            !redacted.contains("begin") && !redacted.contains("abc"),
            "{}",
            redacted.len()
        );
    }

    #[test]
    fn secret_in_invalid_result_is_withheld() {
        for (place, what) in [
            (
                format!("the result/{KEY}"),
                "is of the type object".to_owned(),
            ),
            (
                format!("the result/{}{KEY}/x", "a".repeat(90)),
                "is not a finite number".to_owned(),
            ),
            (
                "the result/a".to_owned(),
                format!("is of the type {}{KEY}", "A".repeat(50)),
            ),
        ] {
            let end = parse_answer(&json!({"misfit": {"place": place, "what": what}}), &key());
            assert!(
                matches!(&end, SkillEnd::HoldsSecret { secret } if secret.as_str() == "KEY"),
                "{end:?}"
            );
        }
        // A value that was cut at the bound is none, and is not shown.
        for shown_count in [0, 1, 7, 30, KEY.len() - 1] {
            let place: String = "a"
                .repeat(MAX_STATED_LEN - shown_count)
                .chars()
                .chain(KEY.chars())
                .take(MAX_STATED_LEN)
                .collect();
            let end = parse_answer(
                &json!({"misfit": {"place": place, "what": "is of the type set"}}),
                &key(),
            );
            let SkillEnd::Broken { why } = end else {
                panic!("{end:?}")
            };
            shows_nothing_of_it(&why);
            assert!(why.ends_with("… is of the type set"), "{why}");
        }
    }

    #[test]
    fn secret_is_redacted_in_every_spelling() {
        let secrets = [(
            "KEY".parse().unwrap(),
            Secret::new("\"it's\" a\\value".to_owned()),
        )];
        let provided = ProvidedSecrets::new(&secrets).unwrap();
        for text in [
            "\"it's\" a\\value",
            "\\\"it's\\\" a\\\\value",
            "\"it\\'s\" a\\\\value",
        ] {
            assert_eq!(
                provided.redacted(&format!("x {text} y")),
                "x [secret:handed-over] y",
                "{text}"
            );
        }
    }

    #[test]
    fn secret_in_result_is_found_despite_whitespace() {
        let secrets = [(
            "KEY".parse().unwrap(),
            Secret::new("  a-value of \"ours\" ".to_owned()),
        )];
        let provided = ProvidedSecrets::new(&secrets).unwrap();
        for held in [
            json!({"text": "it is a-value of \"ours\"."}),
            json!({"a-value of \"ours\"": [1]}),
            json!([{"deep": ["  a-value of \"ours\" "]}]),
        ] {
            assert!(provided.held_in(&held).is_some(), "{held}");
        }
        assert!(
            provided
                .held_in(&json!({"text": "a-value of theirs"}))
                .is_none()
        );
    }
}
