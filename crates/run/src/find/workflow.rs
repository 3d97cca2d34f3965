//! A workflow: when it fits and what it advises, strictly parsed from TOML (`docs/contracts/workflow.md`).
//! Pure.
//!
//! A project's own workflow comes from a repository. Every list and text in it is bounded, unknown keys are
//! refused, and a model gets its words only as untrusted text.

use crucible_model::{EditFormat, PathPrefix, RepoPath, is_hidden, says_nothing, short_line};
use crucible_repo::BuildSystem;
use crucible_secrets::Scanner;
use crucible_verify::GateId;
use serde::{Deserialize, Serialize};

use crate::contract::key_lines::strip_bom;

/// The largest file of a workflow, in bytes.
pub(super) const MAX_BYTES: usize = 16 * 1024;
/// Entries of a list, characters of an id, a word or a language, of a title, and of a step.
const MAX_ITEMS: usize = 64;
const MAX_NAME: usize = 64;
const MAX_TITLE: usize = 120;
const MAX_STEP: usize = 300;

/// What kind of goal a verb states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GoalKind {
    /// Something is wrong.
    Fix,
    /// A name changes.
    Rename,
    /// Something new.
    Add,
    /// Something moves to another version or state.
    Update,
    /// Words for people.
    Document,
    /// Something goes.
    Remove,
    /// The shape changes.
    Refactor,
    /// Proof for what is there.
    Test,
}

impl GoalKind {
    /// Its name in a workflow's file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fix => "fix",
            Self::Rename => "rename",
            Self::Add => "add",
            Self::Update => "update",
            Self::Document => "document",
            Self::Remove => "remove",
            Self::Refactor => "refactor",
            Self::Test => "test",
        }
    }
}

/// A known way to work.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workflow {
    /// Its name: 1 to 64 of `a-z`, `0-9` and `-`, a letter first.
    pub id: String,
    /// Its version: one to three numbers joined by dots.
    pub version: String,
    /// What it is, on one line.
    pub title: String,
    /// When it fits.
    #[serde(default)]
    pub fits: WorkflowConditions,
    /// What it advises.
    #[serde(default)]
    pub advice: WorkflowAdvice,
}

/// The conditions of a workflow. An empty list sets no condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkflowConditions {
    /// The kinds of goal it is for.
    pub kinds: Vec<GoalKind>,
    /// Words of a goal that favour it, in any form.
    pub words: Vec<String>,
    /// It fits only if the repository has one of these languages.
    pub languages: Vec<String>,
    /// It fits only if one of these builds the repository or a part of it.
    pub build_systems: Vec<String>,
}

/// What a workflow advises. Nothing of it is done without the operator: advice widens no scope and no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkflowAdvice {
    /// Gates that a plan should declare in addition to the required ones.
    pub gates: Vec<GateId>,
    /// Places that a plan should have in scope.
    pub scope: Vec<PathPrefix>,
    /// How the model should answer.
    pub edit_format: Option<EditFormat>,
    /// How many attempts are enough.
    pub iterations: Option<u32>,
    /// Documents that the model should see.
    pub documents: Vec<RepoPath>,
    /// What to do, a sentence each.
    pub steps: Vec<String>,
}

/// Why bytes are not a workflow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkflowFault {
    /// There are too many of them.
    #[error("it has {bytes} bytes; the limit is {MAX_BYTES}")]
    TooLong {
        /// How many it has.
        bytes: usize,
    },
    /// It is not UTF-8.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// It holds what looks like a secret.
    #[error("line {line} holds what looks like a secret ({rule}); remove it: models see workflows")]
    Secret {
        /// The rule that matched.
        rule: String,
        /// The line, from 1.
        line: u64,
    },
    /// It is not TOML, or not of this shape.
    #[error("{0}")]
    Shape(String),
    /// A value is not allowed.
    #[error("`{key}` {problem}")]
    Value {
        /// Which key.
        key: &'static str,
        /// What is wrong with its value.
        problem: String,
    },
}

impl Workflow {
    /// Parses a workflow.
    ///
    /// # Errors
    ///
    /// See [`WorkflowFault`]; only the first problem is reported.
    pub fn parse(bytes: &[u8]) -> Result<Self, WorkflowFault> {
        if bytes.len() > MAX_BYTES {
            return Err(WorkflowFault::TooLong { bytes: bytes.len() });
        }
        let text = std::str::from_utf8(bytes).map_err(|_| WorkflowFault::NotUtf8)?;
        if let Some(found) = Scanner::builtin().scan(bytes).first() {
            return Err(WorkflowFault::Secret {
                rule: found.rule.to_string(),
                line: found.line,
            });
        }
        let text = strip_bom(text);
        let read: Self = toml::from_str(text)
            .map_err(|error| WorkflowFault::Shape(short_line(error.message(), 240)))?;
        read.check()?;
        Ok(read)
    }

    fn check(&self) -> Result<(), WorkflowFault> {
        let refuse = |key, problem: &str| {
            Err(WorkflowFault::Value {
                key,
                problem: problem.to_owned(),
            })
        };
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.id.len() > MAX_NAME
            || !self.id.starts_with(|c: char| c.is_ascii_lowercase())
            || !self.id.chars().all(plain)
        {
            return refuse(
                "id",
                "must have 1 to 64 of a-z, 0-9 and `-`, beginning with a letter",
            );
        }
        let number = |part: &str| {
            (1..=6).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if self.version.split('.').count() > 3 || !self.version.split('.').all(number) {
            return refuse(
                "version",
                "must be one to three numbers joined by dots, such as 1.0.0",
            );
        }
        line("title", &self.title, MAX_TITLE)?;
        let WorkflowConditions {
            kinds,
            words,
            languages,
            build_systems,
        } = &self.fits;
        let WorkflowAdvice {
            gates,
            scope,
            edit_format: _,
            iterations,
            documents,
            steps,
        } = &self.advice;
        for (key, length) in [
            ("fits.kinds", kinds.len()),
            ("fits.words", words.len()),
            ("fits.languages", languages.len()),
            ("fits.build_systems", build_systems.len()),
            ("advice.gates", gates.len()),
            ("advice.scope", scope.len()),
            ("advice.documents", documents.len()),
            ("advice.steps", steps.len()),
        ] {
            if length > MAX_ITEMS {
                return refuse(
                    key,
                    &format!("has {length} entries; the limit is {MAX_ITEMS}"),
                );
            }
        }
        for word in words {
            line("fits.words", word, MAX_NAME)?;
            if !word.chars().all(char::is_alphanumeric) {
                return refuse(
                    "fits.words",
                    &format!("must hold single words of letters and digits, not {word:?}"),
                );
            }
        }
        languages
            .iter()
            .try_for_each(|language| line("fits.languages", language, MAX_NAME))?;
        for system in build_systems {
            if let Err(error) = system.parse::<BuildSystem>() {
                return refuse("fits.build_systems", &format!("is refused: {error}"));
            }
        }
        if scope.iter().any(PathPrefix::is_everything) {
            return refuse(
                "advice.scope",
                "names the whole repository; name directories or files",
            );
        }
        if *iterations == Some(0) {
            return refuse("advice.iterations", "must be a whole number from 1");
        }
        steps
            .iter()
            .try_for_each(|step| line("advice.steps", step, MAX_STEP))
    }
}

/// Checks a non-empty text on one line.
fn line(key: &'static str, text: &str, most: usize) -> Result<(), WorkflowFault> {
    let problem = if says_nothing(text) {
        "has an empty string".to_owned()
    } else if text.chars().any(is_hidden) {
        "holds invisible characters or a line break".to_owned()
    } else if text.chars().count() > most {
        format!("has more than {most} characters")
    } else {
        return Ok(());
    };
    Err(WorkflowFault::Value { key, problem })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WHOLE: &str = r#"
id = "our-way"
version = "2.1"
title = "Our way"
[fits]
kinds = ["fix", "add"]
words = ["parser"]
languages = ["Rust"]
build_systems = ["cargo"]
[advice]
gates = ["cargo-test"]
scope = ["src/"]
edit_format = "search-replace"
iterations = 2
documents = ["docs/parser.md"]
steps = ["Read the grammar first."]
"#;

    fn fault(from: &str, to: &str) -> String {
        assert!(WHOLE.contains(from), "{from}");
        Workflow::parse(WHOLE.replacen(from, to, 1).as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_whole_workflow_is_read() {
        let workflow = Workflow::parse(format!("\u{feff}{WHOLE}").as_bytes()).unwrap();
        assert_eq!(workflow.fits.kinds, [GoalKind::Fix, GoalKind::Add]);
        assert_eq!(workflow.advice.edit_format, Some(EditFormat::SearchReplace));
        assert_eq!(workflow.advice.scope, ["src".parse().unwrap()]);
        for kind in &workflow.fits.kinds {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }

    #[test]
    fn invalid_key_is_named() {
        for (from, to, expected) in [
            (
                "[fits]",
                "command = \"rm\"\n[fits]",
                "unknown field `command`",
            ),
            ("words =", "word =", "unknown field `word`"),
            ("steps =", "run =", "unknown field `run`"),
            ("\"fix\"", "\"fiddle\"", "unknown variant `fiddle`"),
            ("our-way", "Our Way", "`id` must have"),
            ("our-way", "../x", "`id` must have"),
            ("2.1", "2.1-beta", "`version` must be"),
            ("Our way", " ", "`title` has an empty string"),
            ("Our way", "a\\nb", "`title` holds invisible characters"),
            ("Our way", "a\\u202eb", "`title` holds invisible characters"),
            (
                "\"parser\"",
                "\"two words\"",
                "`fits.words` must hold single words",
            ),
            ("\"cargo\"", "\"bazel\"", "unknown build system \"bazel\""),
            (
                "\"src/\"",
                "\".\"",
                "`advice.scope` names the whole repository",
            ),
            ("\"src/\"", "\"../src\"", "segment"),
            ("\"docs/parser.md\"", "\"/etc/passwd\"", "absolute"),
            ("\"cargo-test\"", "\"Cargo Test\"", "invalid gate name"),
            (
                "iterations = 2",
                "iterations = 0",
                "`advice.iterations` must be",
            ),
            ("iterations = 2", "iterations = -1", "invalid value"),
            ("version", "id = \"again\"\nversion", "duplicate key"),
        ] {
            let told_as = fault(from, to);
            assert!(told_as.contains(expected), "{to}: {told_as}");
        }
    }

    #[test]
    fn lists_are_bounded_and_secrets_refused() {
        let many = vec!["\"x\""; MAX_ITEMS + 1].join(",");
        assert!(fault("\"parser\"", &many).contains("65 entries"));
        assert!(
            fault("Read the grammar first.", &"x".repeat(MAX_STEP + 1)).contains("more than 300")
        );
        assert!(fault("Our way", &"x".repeat(MAX_TITLE + 1)).contains("more than 120"));
        let long = format!("# {}\n{WHOLE}", "x".repeat(MAX_BYTES));
        assert!(matches!(
            Workflow::parse(long.as_bytes()),
            Err(WorkflowFault::TooLong { .. })
        ));
        assert_eq!(Workflow::parse(b"\xff"), Err(WorkflowFault::NotUtf8));
        let key = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
        let message = fault("Read the grammar first.", &key);
        assert!(
            message.contains("secret") && !message.contains(&key),
            "{message}"
        );
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn parser_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
                let _ = Workflow::parse(&bytes);
            }
        }
    }
}
