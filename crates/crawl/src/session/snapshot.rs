//! The configuration of a crawl in its recorded form: by name, without secrets.

use std::collections::BTreeMap;

use crucible_model::{CanonicalError, to_canonical_json};
use crucible_secrets::Scanner;
use serde::Serialize;

/// The replacement for a secret value.
const WITHHELD: &str = "[withheld]";

/// Suffixes of names whose values are always withheld. `api_key_env` is not one: it names a variable.
const SECRET_NAMES: [&str; 6] = [
    "key",
    "token",
    "secret",
    "password",
    "passphrase",
    "credential",
];

/// The configuration of a crawl, as canonical JSON: `meta/config-snapshot.json` and a column of the
/// session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigSnapshot {
    json: String,
}

#[derive(Serialize)]
struct Document {
    schema_version: &'static str,
    values: BTreeMap<String, String>,
}

impl ConfigSnapshot {
    /// Creates the recorded form of these settings: secrets are redacted, including those in addresses, and values with secret names
    /// are withheld. If a name occurs several times, the last value is used.
    ///
    /// # Errors
    ///
    /// Never in practice: names and values are strings.
    pub fn new<K: Into<String>, V: Into<String>>(
        settings: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, CanonicalError> {
        let values = settings
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        let values = values
            .map(|(name, value)| redacted_entry(name, &value))
            .collect();
        let json = to_canonical_json(&Document {
            schema_version: "crucible-crawl-config-v1",
            values,
        })?;
        Ok(Self {
            json: String::from_utf8_lossy(&json).into_owned(),
        })
    }

    /// The canonical JSON.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }
}

fn redacted_entry(name: String, value: &str) -> (String, String) {
    let last = name
        .rsplit(['.', '_', '-'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    if SECRET_NAMES.contains(&last.as_str()) && !value.is_empty() {
        return (name, WITHHELD.to_owned());
    }
    // Some rules need a name next to its value.
    let line = format!("{name} = {value}");
    let redacted = Scanner::builtin().redact(&line).text;
    let value = redacted
        .strip_prefix(&format!("{name} = "))
        .unwrap_or(WITHHELD);
    let value = without_user_info(value);
    let name = Scanner::builtin().redact(&name).text.into_owned();
    (name, value)
}

/// An address without user name and password.
fn without_user_info(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else {
        return value.to_owned();
    };
    let authority = rest.find(['/', '?', '#', ' ']).unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        Some(at) => format!("{scheme}://{WITHHELD}{}", &rest[at..]),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(settings: &[(&str, &str)]) -> serde_json::Value {
        serde_json::from_str(
            ConfigSnapshot::new(settings.iter().copied())
                .unwrap()
                .json(),
        )
        .unwrap()
    }

    #[test]
    fn snapshot_lists_settings_in_name_order() {
        let snapshot = ConfigSnapshot::new([
            ("llm.provider", "gateway"),
            ("crawl.clone_base", "https://github.com"),
        ]);
        assert_eq!(
            snapshot.unwrap().json(),
            r#"{"schema_version":"crucible-crawl-config-v1","values":{"crawl.clone_base":"https://github.com","llm.provider":"gateway"}}"#
        );
    }

    #[test]
    fn snapshot_redacts_secrets() {
        let token = crucible_testkit::made_up_token();
        let found = snapshot(&[
            ("llm.openai.api_key", "anything at all"),
            ("llm.openai.api_key_env", "OPENAI_API_KEY"),
            ("llm.openai.max_tokens", "4000"),
            ("forge.password", "x"),
            ("github.auth-token", "short"),
            ("note", &format!("use {token} here")),
            ("proxy", "http://me:hunter2@proxy.test:3128/x@y"),
            ("mail", "me@proxy.test"),
            ("empty_key", ""),
        ]);
        let values = &found["values"];
        assert_eq!(values["llm.openai.api_key"], WITHHELD);
        assert_eq!(values["llm.openai.api_key_env"], "OPENAI_API_KEY");
        assert_eq!(values["llm.openai.max_tokens"], "4000");
        assert_eq!(values["forge.password"], WITHHELD);
        assert_eq!(values["github.auth-token"], WITHHELD);
        assert_eq!(values["proxy"], "http://[withheld]@proxy.test:3128/x@y");
        assert_eq!(values["mail"], "me@proxy.test");
        assert_eq!(values["empty_key"], "");
        let text = found.to_string();
        assert!(
            !text.contains(&token) && text.contains("[secret:github-personal-token]"),
            "{text}"
        );
    }
}
