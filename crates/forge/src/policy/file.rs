//! The operator's own rules for skills: `.crucible/skills/policy.yaml`.
//!
//! A missing file and an empty one mean the defaults: nothing beyond what is built in. The built-in rules cannot be taken back by it: what it
//! allows is a module that the built-in table does not know, never one that the table refuses.

use crucible_model::{PathPrefix, short_line};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::grants::HostName;

/// The largest file, in bytes: 64 KiB.
pub(crate) const MAX_POLICY_BYTES: usize = 64 << 10;

/// The most entries of each list, and the longest pattern in bytes.
const LIMIT: usize = 256;
const MAX_PATTERN_LEN: usize = 512;

/// How large a compiled pattern may be, in bytes.
const PATTERN_SIZE: usize = 1 << 20;

/// The operator's rules.
#[derive(Debug, Clone, Default)]
pub struct SkillPolicy {
    /// Modules, with what is below them, that skills may import besides the built-in ones.
    pub allowed_imports: Vec<String>,
    /// Modules, with what is below them, that no skill may import.
    pub forbidden_imports: Vec<String>,
    /// Hosts that skills may name at all; where the list is missing, what a skill is granted is enough.
    pub allowed_network: Option<Vec<HostName>>,
    /// Places that skills may write at all; where the list is missing, what a skill is granted is enough.
    pub allowed_write_paths: Option<Vec<PathPrefix>>,
    pub(super) forbidden_patterns: Vec<Regex>,
}

/// The file holds no rules for skills.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillPolicyError {
    /// It is larger than is read.
    #[error("the policy has {bytes} bytes; the limit is {MAX_POLICY_BYTES}; shorten it")]
    TooLarge {
        /// How many.
        bytes: usize,
    },
    /// It has another form.
    #[error(
        "the policy is not of its form: {why}; it takes the lists allowed_imports, forbidden_imports, allowed_network, allowed_write_paths and forbidden_patterns"
    )]
    Form {
        /// What the reader of YAML says.
        why: String,
    },
    /// A list is too long.
    #[error(
        "{list} has {count} entries, at most {LIMIT} are taken; fewer and wider ones are easier to answer for"
    )]
    TooMany {
        /// Which.
        list: &'static str,
        /// How many.
        count: usize,
    },
    /// An entry is not a module.
    #[error("{text:?} is not a module name; write it like an import, such as yaml or google.cloud")]
    Module {
        /// The entry.
        text: String,
    },
    /// An entry is not a pattern.
    #[error(
        "{text:?} is not a pattern: {why}; write a regular expression of at most {MAX_PATTERN_LEN} bytes, without look-around"
    )]
    Pattern {
        /// The entry.
        text: String,
        /// What is wrong.
        why: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    allowed_imports: Vec<String>,
    #[serde(default)]
    forbidden_imports: Vec<String>,
    #[serde(default)]
    allowed_network: Option<Vec<HostName>>,
    #[serde(default)]
    allowed_write_paths: Option<Vec<PathPrefix>>,
    #[serde(default)]
    forbidden_patterns: Vec<String>,
}

impl SkillPolicy {
    /// Reads the text of a policy file.
    ///
    /// # Errors
    ///
    /// [`SkillPolicyError`] where it has another form, an unknown key among it, or goes beyond a bound.
    pub fn read(text: &str) -> Result<Self, SkillPolicyError> {
        if text.len() > MAX_POLICY_BYTES {
            return Err(SkillPolicyError::TooLarge { bytes: text.len() });
        }
        if text
            .lines()
            .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
        {
            return Ok(Self::default());
        }
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: 8, max_nodes: 4_000, max_aliases: 0, max_anchors: 0, max_documents: 1, },
            no_schema: true,
            with_snippet: false,
        };
        let written: Written =
            serde_saphyr::from_str_with_options(text, options).map_err(|error| {
                SkillPolicyError::Form {
                    why: short_line(&error.to_string(), 200),
                }
            })?;
        let counts = [
            ("allowed_imports", written.allowed_imports.len()),
            ("forbidden_imports", written.forbidden_imports.len()),
            (
                "allowed_network",
                written.allowed_network.as_ref().map_or(0, Vec::len),
            ),
            (
                "allowed_write_paths",
                written.allowed_write_paths.as_ref().map_or(0, Vec::len),
            ),
            ("forbidden_patterns", written.forbidden_patterns.len()),
        ];
        if let Some((list, count)) = counts.into_iter().find(|(_, count)| *count > LIMIT) {
            return Err(SkillPolicyError::TooMany { list, count });
        }
        let word = |word: &str| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let modules = written
            .allowed_imports
            .iter()
            .chain(&written.forbidden_imports);
        if let Some(text) = modules
            .into_iter()
            .find(|module| !module.split('.').all(word))
        {
            return Err(SkillPolicyError::Module {
                text: text.chars().take(80).collect(),
            });
        }
        Ok(Self {
            allowed_imports: written.allowed_imports,
            forbidden_imports: written.forbidden_imports,
            allowed_network: written.allowed_network,
            allowed_write_paths: written.allowed_write_paths,
            forbidden_patterns: written
                .forbidden_patterns
                .iter()
                .map(|text| pattern(text))
                .collect::<Result<_, _>>()?,
        })
    }
}

fn pattern(text: &str) -> Result<Regex, SkillPolicyError> {
    let refuse = |why: String| SkillPolicyError::Pattern {
        text: text.chars().take(80).collect(),
        why,
    };
    if text.is_empty() || text.len() > MAX_PATTERN_LEN {
        return Err(refuse(format!("it has {} bytes", text.len())));
    }
    let built = RegexBuilder::new(text)
        .multi_line(true)
        .size_limit(PATTERN_SIZE)
        .build();
    built.map_err(|error| {
        refuse(
            error
                .to_string()
                .lines()
                .last()
                .unwrap_or_default()
                .chars()
                .take(120)
                .collect(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_five_lists_and_nothing_else() {
        let policy = SkillPolicy::read(
            "allowed_imports: [yaml, google.cloud]\nforbidden_imports:\n  - random\nallowed_network: [api.example.com]\nallowed_write_paths: [notes/]\nforbidden_patterns: ['TODO', '^x = \\d+$']\n",
        )
        .unwrap();
        assert_eq!(policy.allowed_imports, ["yaml", "google.cloud"]);
        assert_eq!(policy.forbidden_patterns.len(), 2);
        assert!(SkillPolicy::read("").unwrap().allowed_network.is_none());
        assert!(SkillPolicy::read("# nothing yet\n").is_ok());
        for bad in [
            "allow_imports: [yaml]\n",
            "allowed_imports: ['os; import x']\n",
            "allowed_imports: [a..b]\n",
            "allowed_network: ['*']\n",
            "allowed_write_paths: ['../x']\n",
            "forbidden_patterns: ['(']\n",
            "forbidden_patterns: ['']\n",
            "forbidden_patterns: ['(?=x)']\n",
            "forbidden_patterns: ['(a{1000}){1000}']\n",
            "- a\n",
            "a: &a [*a]\n",
            "allowed_imports: [a]\n---\nallowed_imports: [b]\n",
        ] {
            assert!(SkillPolicy::read(bad).is_err(), "{bad}");
        }
        let many = format!("allowed_imports: [{}]\n", vec!["a"; LIMIT + 1].join(","));
        assert!(matches!(
            SkillPolicy::read(&many),
            Err(SkillPolicyError::TooMany { .. })
        ));
        assert!(matches!(
            SkillPolicy::read(&"#".repeat(MAX_POLICY_BYTES + 1)),
            Err(SkillPolicyError::TooLarge { .. })
        ));
    }
}
