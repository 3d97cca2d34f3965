//! What is known of an agent, as data that a run keeps.
//!
//! Arguments, variables and files hold placeholders in braces, which are filled in for each session
//! ([`crate::Launch`]):
//! `{endpoint}`, `{token}`, `{home}`, `{model}`, `{prompt}` and `{prompt_file}`.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use crate::error::AgentError;

/// The placeholders.
pub(crate) const WORDS: [&str; 6] = [
    "endpoint",
    "token",
    "home",
    "model",
    "prompt",
    "prompt_file",
];

/// The API that an agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Anthropic's messages and token counts.
    Anthropic,
    /// OpenAI's chat completions and responses.
    OpenAi,
    /// Gemini's `generateContent` and its stream.
    Gemini,
}

impl Wire {
    /// Every wire.
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::Gemini];

    /// Its name in settings and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
        }
    }

    /// The wire of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|wire| wire.as_str() == name)
    }
}

/// How an agent gets its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptDelivery {
    /// On standard input.
    Stdin,
    /// In an argument, at `{prompt}`.
    Argument,
    /// In a file that an argument names, at `{prompt_file}`.
    File,
}

impl PromptDelivery {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Stdin, Self::Argument, Self::File];

    /// Its name in settings and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdin => "stdin",
            Self::Argument => "argument",
            Self::File => "file",
        }
    }

    /// The way of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.as_str() == name)
    }
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentProfile {
    /// The name that users call it by.
    pub name: String,
    /// Its program, by name or absolute path.
    pub program: String,
    /// Arguments for one unattended session.
    pub args: Vec<String>,
    /// Arguments for a further turn of the same session; empty if it cannot continue one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resume: Vec<String>,
    /// How it gets its prompt.
    pub prompt: PromptDelivery,
    /// The API that it speaks.
    pub wire: Wire,
    /// The provider that its requests are forwarded to.
    pub provider: String,
    /// The model that it uses.
    pub model: String,
    /// Variables that connect it to the endpoint, and switch off updates and telemetry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Files of its private home, by their paths in it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Paths of a repository that would configure it: they are left out of its working copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disabled: Vec<String>,
    /// Patterns, as in `.gitignore`, of files that it leaves in a working copy for itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<String>,
    /// Hosts besides the endpoint that it reaches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

impl AgentProfile {
    /// Checks what a user may have written.
    ///
    /// # Errors
    ///
    /// [`AgentError::Setting`] for a program or a path that could come from a repository, an unknown placeholder, or a
    /// prompt that would not arrive.
    pub fn check(&self) -> Result<(), AgentError> {
        let bad = |field: &'static str, why: String| AgentError::Setting {
            name: self.name.clone(),
            field,
            why,
        };
        if self.program.trim().is_empty() {
            return Err(bad("program", "it is not set".to_owned()));
        }
        if self.program.contains('/') && !Path::new(&self.program).is_absolute() {
            let why = format!(
                "{:?} is a relative path, which would come from the repository; name a program on the PATH or an absolute path",
                self.program
            );
            return Err(bad("program", why));
        }
        for (field, texts) in [
            ("args", self.args.iter().collect::<Vec<_>>()),
            ("resume", self.resume.iter().collect()),
            ("env", self.env.values().collect()),
            ("files", self.files.values().collect()),
        ] {
            if let Some(word) = texts.into_iter().find_map(|text| unknown_placeholder(text)) {
                let known = WORDS.join("}, {");
                return Err(bad(
                    field,
                    format!("unknown placeholder {{{word}}}; use {{{known}}}"),
                ));
            }
        }
        let mark = match self.prompt {
            PromptDelivery::Stdin => None,
            PromptDelivery::Argument => Some("{prompt}"),
            PromptDelivery::File => Some("{prompt_file}"),
        };
        if let Some(mark) = mark {
            for (field, args) in [("args", &self.args), ("resume", &self.resume)] {
                let has_placeholder = args.iter().any(|argument| argument.contains(mark));
                if !has_placeholder && (field == "args" || !args.is_empty()) {
                    return Err(bad(field, format!("no argument holds {mark}")));
                }
            }
        }
        let is_plain = |path: &String| {
            let mut parts = Path::new(path).components();
            !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
        };
        for (field, paths) in [
            ("files", self.files.keys().collect::<Vec<_>>()),
            ("disabled", self.disabled.iter().collect()),
        ] {
            if let Some(path) = paths.into_iter().find(|path| !is_plain(path)) {
                return Err(bad(
                    field,
                    format!("{path:?} is not a relative path without `..`"),
                ));
            }
        }
        Ok(())
    }
}

/// Replaces the placeholders of a text, once.
pub(crate) fn fill_placeholders<'v>(text: &str, value: impl Fn(&str) -> &'v str) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        match after.split_once('}') {
            Some((word, behind)) if WORDS.contains(&word) => {
                filled.push_str(value(word));
                rest = behind;
            }
            _ => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// Returns the first word in braces that looks like a placeholder but is not known.
fn unknown_placeholder(text: &str) -> Option<&str> {
    text.split('{').skip(1).find_map(|part| {
        let (word, _) = part.split_once('}')?;
        let is_word = !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        (is_word && !WORDS.contains(&word)).then_some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::registry;

    fn profile() -> AgentProfile {
        registry()[0].profile()
    }

    #[test]
    fn placeholders_are_replaced_once() {
        let value = |word: &str| if word == "home" { "{token}" } else { "T" };
        assert_eq!(
            fill_placeholders("{home}/{token}{token}", value),
            "{token}/TT"
        );
        for text in ["", "{", "{}", "{\"a\": {\"b\": 1}}", "}{", "{HOME}"] {
            assert_eq!(fill_placeholders(text, value), text);
            assert_eq!(unknown_placeholder(text), None, "{text}");
        }
        assert_eq!(unknown_placeholder("{home} {secret}"), Some("secret"));
    }

    #[test]
    fn names_are_those_of_settings() {
        for wire in Wire::ALL {
            assert_eq!(serde_json::to_value(wire).unwrap(), wire.as_str());
            assert_eq!(Wire::parse(wire.as_str()), Some(wire));
        }
        for by in PromptDelivery::ALL {
            assert_eq!(serde_json::to_value(by).unwrap(), by.as_str());
            assert_eq!(PromptDelivery::parse(by.as_str()), Some(by));
        }
    }

    #[test]
    fn profile_that_cannot_work_is_refused() {
        assert!(profile().check().is_ok());
        type Change = fn(&mut AgentProfile);
        let wrong: [(&str, Change); 7] = [
            ("program", |agent| agent.program.clear()),
            ("program", |agent| agent.program = "./tool".to_owned()),
            ("args", |agent| agent.args.push("{secret}".to_owned())),
            ("args", |agent| agent.prompt = PromptDelivery::Argument),
            ("files", |agent| {
                drop(agent.files.insert("../x".to_owned(), String::new()));
            }),
            ("disabled", |agent| agent.disabled.push("/etc".to_owned())),
            ("env", |agent| {
                drop(agent.env.insert("A".to_owned(), "{nothing}".to_owned()));
            }),
        ];
        for (expected, change) in wrong {
            let mut agent = profile();
            change(&mut agent);
            let Err(AgentError::Setting { field, .. }) = agent.check() else {
                panic!("{expected}: accepted");
            };
            assert_eq!(field, expected);
        }
    }
}
