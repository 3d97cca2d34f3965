//! The name of a skill, from which everything else about its place follows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest name, in bytes.
const MAX_LEN: usize = 64;

/// Words that Python keeps for itself, as far as a name could be one of them; `case`, `match`, `type` and the others that are words only in
/// some places can be names.
const KEYWORDS: [&str; 32] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif",
    "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
    "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Names that the package uses itself.
const TAKEN: [&str; 2] = ["base", "conftest"];

/// The name of a skill: `[a-z][a-z0-9_]*`, at most 64 bytes, not a Python keyword. So it is one plain file name, one module and,
/// in another spelling, one class.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SkillName(String);

/// The text is not the name of a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillNameError {
    /// It is not of that form.
    #[error(
        "not the name of a skill: {text:?}; it takes 1 to {MAX_LEN} small letters, digits and `_`, and begins with a letter: word_count"
    )]
    Form {
        /// The text, or its beginning.
        text: String,
    },
    /// It means something else to Python or to the package.
    #[error(
        "not the name of a skill: {text:?} means something else to Python or to the package; add a word to it: {text}_skill"
    )]
    Reserved {
        /// The name as given.
        text: String,
    },
}

impl SkillName {
    /// The name as text: the module.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of its class: `WordCountSkill` for `word_count`. Each skill has its own module, so
    /// two skills may have the same class name (`sha1` and `sha_1`).
    #[must_use]
    pub fn class(&self) -> String {
        let mut class = String::with_capacity(self.0.len() + 5);
        for word in self.0.split('_') {
            let mut letters = word.chars();
            class.extend(letters.next().map(|first| first.to_ascii_uppercase()));
            class.push_str(letters.as_str());
        }
        class + "Skill"
    }
}

impl FromStr for SkillName {
    type Err = SkillNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let begins = text.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
        if !begins || text.len() > MAX_LEN || !text.bytes().all(allowed) {
            return Err(SkillNameError::Form {
                text: text.chars().take(MAX_LEN + 8).collect(),
            });
        }
        if KEYWORDS.contains(&text) || TAKEN.contains(&text) {
            return Err(SkillNameError::Reserved {
                text: text.to_owned(),
            });
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for SkillName {
    type Error = SkillNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SkillName> for String {
    fn from(name: SkillName) -> Self {
        name.0
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn skill_name_is_a_valid_module_name() {
        for (good, class) in [
            ("word_count", "WordCountSkill"),
            ("a", "ASkill"),
            ("sha256_sum", "Sha256SumSkill"),
            ("match", "MatchSkill"),
            ("sha_1", "Sha1Skill"),
            ("top_10_words", "Top10WordsSkill"),
            ("x_", "XSkill"),
            ("x__y", "XYSkill"),
        ] {
            assert_eq!(good.parse::<SkillName>().unwrap().class(), class);
        }
        for bad in [
            "",
            "../../../evil",
            "TIMEOUT_x",
            "class",
            "base",
            "conftest",
            "Word",
            "1st",
            "_x",
            "wörter",
            "a-b",
            "a.b",
            "a b",
            "a\n",
            "a\0",
            &"a".repeat(65),
            "con/x",
        ] {
            assert!(bad.parse::<SkillName>().is_err(), "{bad:?}");
        }
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn every_skill_identifier_gives_valid_class_name(text in "[a-z][a-z0-9_]{0,63}") {
                match text.parse::<SkillName>() {
                    Ok(name) => {
                        let class = name.class();
                        prop_assert!(class.starts_with(|first: char| first.is_ascii_uppercase()));
                        prop_assert!(class.bytes().all(|b| b.is_ascii_alphanumeric()));
                    }
                    Err(error) => prop_assert!(matches!(error, SkillNameError::Reserved { .. }), "{}", error),
                }
            }

            #[test]
            fn any_accepted_name_is_one_path_component(text in any::<String>()) {
                if let Ok(name) = text.parse::<SkillName>() {
                    prop_assert!(name.as_str().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
                }
            }
        }
    }
}
