//! What came back: the runner's answer, read strictly, and without the secrets that were handed out.
//!
//! What always holds: only a process that ended by itself and well gave a result; how it ended comes from the kernel and the
//! supervisor, what it says of itself only where those have nothing against it.

use crucible_model::{SECRET_REACH, Secret, UniqueJson, short_line};
use crucible_sandbox::{Captured, Completed, End, Extent};
use crucible_secrets::{HandedKeys, SHORTEST_HANDED, Scanner};
use serde_json::Value;

use super::{MAX_RESULT_BYTES, RUNAWAY, RunnerError, SkillEnd};
use crate::grants::SecretName;

/// Errors by which the kernel refuses what the walls do not allow: EPERM, EACCES, EROFS, ENETDOWN, ENETUNREACH, ECONNREFUSED,
/// EHOSTUNREACH; nothing behind the walls gives another reason for them.
const REFUSALS: [i64; 7] = [1, 13, 30, 100, 101, 111, 113];
/// The errors of looking up a name: the only names there are those of granted hosts.
const NO_SUCH_NAME: [i64; 4] = [-2, -3, -4, -5];

/// The secrets that a call was handed.
pub(super) struct Handed<'a> {
    secrets: Vec<(&'a SecretName, &'a str)>,
    keys: HandedKeys,
}

impl<'a> Handed<'a> {
    /// Refuses values that could not be found again.
    pub(super) fn new(secrets: &'a [(SecretName, Secret)]) -> Result<Self, RunnerError> {
        let mut handed = Vec::new();
        for (name, value) in secrets {
            let value = value.expose();
            if value.is_empty() {
                return Err(RunnerError::SecretMissing { name: name.clone() });
            }
            let has_lines = value.contains(['\n', '\r', '\0']);
            // Space around it is no part of it: who hands on what is between still hands it on.
            let value = value.trim();
            if value.len() < SHORTEST_HANDED || has_lines {
                return Err(RunnerError::SecretUnfit { name: name.clone(), least: SHORTEST_HANDED });
            }
            handed.push((name, value));
        }
        let keys = HandedKeys::new(secrets.iter().map(|(_, value)| value));
        Ok(Self { secrets: handed, keys })
    }

    /// The text without their values, nor what looks like any other secret.
    fn redacted(&self, text: &str) -> String {
        Scanner::builtin().redact(&self.keys.out_of_text(text)).text.into_owned()
    }

    /// What was printed, without their values; where it was cut, without the bytes in which a secret may have been cut.
    pub(super) fn taken_out(&self, printed: Captured) -> Captured {
        let mut text = self.redacted(&printed.text());
        if printed.extent == Extent::Cut {
            let longest = self.secrets.iter().map(|(_, value)| value.len()).max().unwrap_or_default();
            let sure = text.len().saturating_sub(SECRET_REACH.max(longest));
            text.truncate(text.floor_char_boundary(sure));
        }
        Captured { bytes: text.into_bytes(), ..printed }
    }

    /// Which of them a value holds, in a text or a key, or spelled in its JSON.
    fn held_in(&self, value: &Value) -> Option<&SecretName> {
        let text = value.to_string();
        let found = self.secrets.iter().find(|(_, secret)| text.contains(secret) || is_in(value, secret));
        found.map(|(name, _)| *name)
    }
}

fn is_in(value: &Value, secret: &str) -> bool {
    match value {
        Value::String(text) => text.contains(secret),
        Value::Array(items) => items.iter().any(|item| is_in(item, secret)),
        Value::Object(map) => map.iter().any(|(key, item)| key.contains(secret) || is_in(item, secret)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// How the call ended.
pub(super) fn read(completed: &Completed, secrets: &Handed<'_>) -> SkillEnd {
    let broken = |why: String| SkillEnd::Broken { why };
    match completed.end {
        End::Exited(0) => {}
        End::TimedOut => return SkillEnd::TimedOut,
        End::Forbidden => {
            let what = "a system call that its class does not allow; the kernel ended it there".to_owned();
            return SkillEnd::Denied { what };
        }
        End::Exited(code) => return broken(format!("it ended the process with exit code {code}")),
        End::Signalled(signal) => return broken(format!("it was ended by signal {signal}")),
        End::OutputLimit => return broken(format!("it printed more than {} MiB", RUNAWAY.0 >> 20)),
        End::DiskLimit => return broken("it wrote more than 256 MiB".to_owned()),
    }
    if completed.stdout.extent == Extent::Cut {
        return broken(format!("its result has more than {} MiB", MAX_RESULT_BYTES >> 20));
    }
    if completed.stdout.bytes.is_empty() {
        return broken("it ended the process without giving a result".to_owned());
    }
    match serde_json::from_slice::<UniqueJson>(&completed.stdout.bytes) {
        Ok(UniqueJson(Value::Object(answer))) if answer.len() == 1 => {
            let (kind, value) = answer.into_iter().next().unwrap_or_default();
            of(&kind, value, secrets)
        }
        Ok(_) | Err(_) => broken("it wrote something else where its result belongs".to_owned()),
    }
}

fn of(kind: &str, value: Value, secrets: &Handed<'_>) -> SkillEnd {
    let text = |key: &str, most: usize| {
        let found = value.get(key).and_then(Value::as_str).unwrap_or_default();
        secrets.redacted(found).chars().take(most).collect::<String>()
    };
    match kind {
        "returned" => match secrets.held_in(&value) {
            Some(secret) => SkillEnd::HoldsSecret { secret: secret.clone() },
            None => SkillEnd::Returned(value),
        },
        "misfit" => {
            let why = secrets.redacted(value.as_str().unwrap_or_default());
            SkillEnd::Broken { why: short_line(&why, 400) }
        }
        "raised" => {
            let (kind, message) = (text("kind", 120), text("message", 2_000));
            match value.get("errno").and_then(Value::as_i64) {
                Some(number) if REFUSALS.contains(&number) || NO_SUCH_NAME.contains(&number) => {
                    SkillEnd::Denied { what: short_line(&format!("{kind}: {message}"), 400) }
                }
                _ => SkillEnd::Raised { kind, message, traceback: text("traceback", 8_000) },
            }
        }
        _ => SkillEnd::Broken { why: "it wrote something else where its result belongs".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_that_holds_a_handed_value_is_known_with_and_without_the_space_around_it() {
        let secrets = [("KEY".parse().unwrap(), Secret::new("  a-value of \"ours\" ".to_owned()))];
        let handed = Handed::new(&secrets).unwrap();
        for held in [
            json!({"text": "it is a-value of \"ours\"."}),
            json!({"a-value of \"ours\"": [1]}),
            json!([{"deep": ["  a-value of \"ours\" "]}]),
        ] {
            assert!(handed.held_in(&held).is_some(), "{held}");
        }
        assert!(handed.held_in(&json!({"text": "a-value of theirs"})).is_none());
    }
}
