//! The content of a workspace file: its name, and the specs that it lists.
//!
//! Types are strict, but unknown keys are ignored: a number instead of a string is an error with its
//! line. Invariants: no id is repeated, every id is a plain directory name, and a small file cannot
//! expand to a large value.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crucible_model::{Timestamp, says_nothing, short_line};
use crucible_secrets::Scanner;
use serde::Deserialize;
use serde_saphyr::{Options, Spanned};

use super::yaml::{MAX_DEPTH, MAX_NODES};
use crate::id::SpecId;

/// The format version that is read and written.
pub(super) const VERSION: &str = "1";

/// The longest tag that a command accepts, in characters.
const MAX_TAG_LEN: usize = 64;

/// The most characters of the file in a message.
const QUOTED: usize = 80;

/// The specs of a project, as `workspace.yaml` lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecWorkspace {
    /// The name of the workspace.
    pub name: String,
    /// The specs, in the order of the file.
    pub specs: Vec<WorkspaceEntry>,
}

/// A spec in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceEntry {
    /// Which one.
    pub id: SpecId,
    /// The tags, in the order of the file.
    pub tags: Vec<String>,
    /// The time of its addition; hand-written files may omit it.
    pub added: Option<Timestamp>,
}

/// A tag that a command may write: 1 to 64 visible characters, not blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecTag(String);

/// The text is not a tag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a tag: {text}; use 1 to {MAX_TAG_LEN} visible characters, such as backend")]
pub struct SpecTagError {
    text: String,
}

/// What is wrong with the text of a workspace, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw(pub(super) String);

impl SpecWorkspace {
    /// The entry of this spec.
    #[must_use]
    pub fn entry(&self, id: &SpecId) -> Option<&WorkspaceEntry> {
        self.specs.iter().find(|entry| entry.id == *id)
    }

    /// Redacts its name and tags, because the file may come from anyone.
    #[must_use]
    pub(super) fn redacted(mut self) -> Self {
        let tags = self.specs.iter_mut().flat_map(|entry| &mut entry.tags);
        for text in tags.chain([&mut self.name]) {
            if let Cow::Owned(clean) = Scanner::builtin().redact(text).text {
                *text = clean;
            }
        }
        self
    }

    /// The listed spec with the same name in another case; none if this one is listed itself.
    #[must_use]
    pub(crate) fn spelled_otherwise(&self, id: &SpecId) -> Option<&SpecId> {
        let alike = |entry: &&WorkspaceEntry| entry.id.as_str().eq_ignore_ascii_case(id.as_str());
        let other = self.specs.iter().find(alike).map(|entry| &entry.id);
        other.filter(|_| self.entry(id).is_none())
    }

    /// Parses the text of a `workspace.yaml`.
    pub(super) fn read(text: &str) -> Result<Self, Flaw> {
        let written: Written = match serde_saphyr::from_str_with_options(text, options()) {
            Ok(written) => written,
            Err(error) => {
                if let Ok(Version { version }) =
                    serde_saphyr::from_str_with_options(text, options())
                {
                    check_version(&version)?;
                }
                return Err(Flaw::from_error(&error));
            }
        };
        check_version(&written.version)?;
        let mut seen = HashMap::new();
        let mut specs = Vec::new();
        for entry in written.specs.unwrap_or_default() {
            let line = entry.id.referenced.line();
            let id: SpecId = entry
                .id
                .value
                .parse()
                .map_err(|error| Flaw::at(line, error))?;
            if let Some(first) = seen.insert(id.clone(), line) {
                return Err(Flaw(format!(
                    "the spec {id} is listed twice, in lines {first} and {line}; remove one of the two"
                )));
            }
            let instant = |added: Spanned<String>| {
                added
                    .value
                    .parse()
                    .map_err(|error| Flaw::at(added.referenced.line(), error))
            };
            let added = entry.added.map(instant).transpose()?;
            specs.push(WorkspaceEntry {
                id,
                tags: entry.tags.unwrap_or_default(),
                added,
            });
        }
        let name = written.name;
        Ok(Self { name, specs })
    }
}

impl SpecTag {
    /// The tag as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SpecTag {
    type Err = SpecTagError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits =
            text.chars().count() <= MAX_TAG_LEN && !text.chars().any(crucible_model::is_hidden);
        if fits && !says_nothing(text) && text.trim() == text {
            Ok(Self(text.to_owned()))
        } else {
            Err(SpecTagError {
                text: short_line(text, QUOTED),
            })
        }
    }
}

impl fmt::Display for SpecTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Flaw {
    fn at(line: u64, why: impl fmt::Display) -> Self {
        Self(format!("line {line}: {why}"))
    }

    fn from_error(error: &serde_saphyr::Error) -> Self {
        let why = words_for(error);
        match error
            .location()
            .map(|location| location.line())
            .filter(|line| *line > 0)
        {
            Some(line) => Self(format!("it is not a valid workspace: line {line}: {why}")),
            None => Self(format!("it is not a valid workspace: {why}")),
        }
    }
}

/// Describes a problem in terms of the file, without terms of the YAML library.
fn words_for(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error;
    use serde_saphyr::budget::BudgetBreach;
    const SEVERAL: &str =
        "a second document begins here (`---`), but a workspace is one document; keep one of them";
    const REPEATS: &str = "it expands too many aliases (`*name`); write out their values";
    let quoted = |text: &str| short_line(text, QUOTED);
    let nested = format!("it is nested more than {MAX_DEPTH} levels deep; flatten it");
    match error.without_snippet() {
        Error::AliasError { error, .. } => words_for(error),
        Error::MultipleDocuments { .. } | Error::Budget { breach: BudgetBreach::Documents { .. }, .. } => {
            SEVERAL.to_owned()
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => nested,
        Error::ExternalMessage { msg, .. } if msg.contains("recursion") => nested,
        Error::Budget { breach: BudgetBreach::Aliases { .. } | BudgetBreach::Anchors { .. }, .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => REPEATS.to_owned(),
        Error::Budget { .. } => {
            format!(
                "it contains more than {MAX_NODES} values after expanding aliases (`*name`); split it \
            into several workspaces"
            )
        }
        Error::DuplicateMappingKey { key, .. } => {
            let key =
                key.as_ref().map_or_else(|| "a key".to_owned(), |key| format!("the key {:?}", quoted(key)));
            format!("{key} is repeated; remove one of the two")
        }
        Error::QuotingRequired { value, .. } => {
            let value = quoted(value);
            format!("{value} must be quoted, because a string is expected here: \"{value}\"")
        }
        Error::NullIntoString { .. } => "a string is missing here; write one in quotes".to_owned(),
        Error::SerdeMissingField { field, .. } => format!("the key `{field}` is missing; add it"),
        Error::SerdeInvalidType { unexpected, expected, .. }
        | Error::SerdeInvalidValue { unexpected, expected, .. } => {
            let expected = expected.strip_prefix("struct ").map_or(expected.as_str(), |_| "keys with values");
            format!("found {}, expected {}", quoted(unexpected), quoted(expected))
        }
        Error::Unexpected { expected, .. } => format!("expected {expected} here"),
        Error::Eof { .. } => "it is empty; `crucible project init` writes one".to_owned(),
        Error::UnknownAnchor { .. } => "an alias (`*name`) has no anchor (`&name`) before it".to_owned(),
        Error::ExternalMessage { msg, .. } => {
            format!(
                "it is not valid YAML: {}",
                short_line(msg.lines().next().unwrap_or_default(), 4 * QUOTED)
            )
        }
        // The remaining errors are hardly possible in such a file, and the library's text would not help.
        _ => {
            "it contains something that a workspace cannot contain; compare it with a new one from `crucible \
        project init`"
                .to_owned()
        }
    }
}

/// The file as written, without unknown keys.
#[derive(Deserialize)]
struct Written {
    version: Spanned<String>,
    name: String,
    #[serde(default)]
    specs: Option<Vec<WrittenEntry>>,
}

#[derive(Deserialize)]
struct WrittenEntry {
    id: Spanned<String>,
    #[serde(default)]
    tags: Option<Vec<String>>,
    #[serde(default)]
    added: Option<Spanned<String>>,
}

/// The only part of a file that is read if its format is unknown.
#[derive(Deserialize)]
struct Version {
    version: Spanned<String>,
}

/// A newer version may have another format, so it is checked before anything else is reported.
fn check_version(version: &Spanned<String>) -> Result<(), Flaw> {
    if version.value == VERSION {
        return Ok(());
    }
    let named = short_line(&version.value, QUOTED);
    Err(Flaw::at(
        version.referenced.line(),
        format!(
            "the version is {named:?}, but this Crucible reads only \"{VERSION}\"; use a newer one, or fix the line"
        ),
    ))
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_recorded_anchor_events: 100_000,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 100_000,
            max_replay_stack_depth: MAX_DEPTH,
            max_alias_expansions_per_anchor: 1_000,
        },
        // An unquoted number or boolean is not a string, even where another YAML version would accept it.
        no_schema: true,
        with_snippet: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: &str = r#"version: "1"
name: "my-project"
specs:
  - id: "feature-auth"
    tags: ["backend", "security"]
    added: "2024-12-01T10:00:00Z"
  - id: "feature-ui"
    tags: ["frontend"]
    added: "2024-12-01T11:00:00Z"
"#;

    fn flaw(text: &str) -> String {
        SpecWorkspace::read(text).unwrap_err().0
    }

    #[test]
    fn the_example_of_the_requirement_is_read() {
        let workspace = SpecWorkspace::read(SEED).unwrap();
        assert_eq!(workspace.name, "my-project");
        let ids: Vec<&str> = workspace
            .specs
            .iter()
            .map(|entry| entry.id.as_str())
            .collect();
        assert_eq!(ids, ["feature-auth", "feature-ui"]);
        assert_eq!(workspace.specs[0].tags, ["backend", "security"]);
        assert_eq!(
            workspace.specs[1].added,
            Some("2024-12-01T11:00:00Z".parse().unwrap())
        );
        let crlf = SEED.replace('\n', "\r\n");
        assert_eq!(SpecWorkspace::read(&crlf).unwrap(), workspace);
    }

    #[test]
    fn missing_and_unknown_keys_are_accepted() {
        let text = "# mine\nowner: {team: a, on_call: [1, 2]}\nversion: '1'\nname: x\nspecs:\n- id: a\n  weight: 3\n";
        let workspace = SpecWorkspace::read(text).unwrap();
        assert_eq!(
            (workspace.specs[0].tags.len(), workspace.specs[0].added),
            (0, None)
        );
        for none in ["", "specs:\n", "specs: []\n", "specs: ~\n"] {
            let text = format!("version: \"1\"\nname: x\n{none}");
            assert_eq!(SpecWorkspace::read(&text).unwrap().specs, []);
        }
        let aliased = "version: \"1\"\nname: x\ncommon: &t [a, b]\nspecs:\n- {id: x, tags: *t}\n- {id: z, tags: *t}\n";
        assert_eq!(
            SpecWorkspace::read(aliased).unwrap().specs[1].tags,
            ["a", "b"]
        );
    }

    #[test]
    fn duplicate_id_is_reported_with_both_lines() {
        let text = "version: \"1\"\nname: x\nspecs:\n- id: a\n- id: b\n\n- {tags: [t], id: 'a'}\n";
        let message = flaw(text);
        assert!(
            message.contains("listed twice, in lines 4 and 7"),
            "{message}"
        );
    }

    #[test]
    fn id_unfit_as_directory_is_refused_with_line() {
        for id in [
            "../x",
            "a/b",
            "..",
            "ä",
            "'a b'",
            "'x\u{1b}[2J'",
            "/etc",
            &"a".repeat(300),
        ] {
            let text = format!("version: \"1\"\nname: x\nspecs:\n- id: {id}\n");
            let message = SpecWorkspace::read(&text).unwrap_err().0;
            assert!(
                message.starts_with("line 4") || message.contains("not a valid workspace"),
                "{message}"
            );
            assert!(!message.contains('\u{1b}'), "{message}");
        }
    }

    #[test]
    fn other_version_is_reported_despite_further_errors() {
        for rest in ["name: x\n", "title: {de: x}\nspecs: 3\n"] {
            let message = flaw(&format!("version: \"2\"\n{rest}"));
            assert!(
                message.contains("line 1: the version is \"2\"") && message.contains("newer"),
                "{message}"
            );
        }
    }

    #[test]
    fn types_are_strict() {
        for (text, word) in [
            ("version: 1\nname: x\n", "quoted"),
            ("version: \"1\"\nname: 7\n", "quoted"),
            ("version: \"1\"\nname: [x]\n", "line 2"),
            ("version: \"1\"\n", "name"),
            ("name: x\n", "version"),
            ("version: \"1\"\nname: x\nspecs: {a: b}\n", "line 3"),
            ("version: \"1\"\nname: x\nspecs:\n- a\n", "line 4"),
            (
                "version: \"1\"\nname: x\nspecs:\n- id: a\n  tags: [yes]\n",
                "quoted",
            ),
            (
                "version: \"1\"\nname: x\nspecs:\n- id: a\n  tags: b\n",
                "line 5",
            ),
            (
                "version: \"1\"\nname: x\nspecs:\n- id: a\n  added: yesterday\n",
                "line 5: not an RFC 3339",
            ),
            (
                "version: \"1\"\nname: x\nname: y\n",
                "line 3: the key \"name\" is repeated; remove one",
            ),
            (
                "version: \"1\"\nname: x\n---\nversion: \"1\"\n",
                "a second document begins",
            ),
            ("version: \"1\"\nname: x\nspecs: *nobody\n", "line 3: "),
            (
                "version: \"1\"\nname: x\nspecs:\n- id: a\n  tags: !!binary x\n",
                "line 5: ",
            ),
            ("version: \"1\"\nname: ~\n", "line 2: "),
            ("%YAML 9.1\n---\nversion: [\n", "not valid YAML"),
            ("", "project init"),
            ("- a\n", "expected"),
            ("a: [\n", "not valid YAML"),
        ] {
            let message = flaw(text);
            assert!(message.contains(word), "{text:?}: {message}");
            assert!(
                !message.contains('\n') && message.chars().count() < 500,
                "{message}"
            );
            of_no_library(&message);
        }
    }

    /// Checks that a message contains no terms of the library.
    #[track_caller]
    fn of_no_library(message: &str) {
        for word in [
            "budget",
            "breach",
            "Policy",
            "Options",
            "from_str",
            "from_multiple",
            "struct",
            "Documents {",
            "event",
        ] {
            assert!(!message.contains(word), "{word}: {message}");
        }
    }

    #[test]
    fn a_small_text_cannot_become_a_large_value() {
        let mut bomb = "version: \"1\"\nname: x\na0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let before = format!("*a{}", level - 1);
            bomb.push_str(&format!(
                "a{level}: &a{level} [{}]\n",
                [before.as_str(); 9].join(", ")
            ));
        }
        bomb.push_str("specs:\n- id: a\n  tags: *a8\n");
        let repeats = flaw(&bomb);
        assert!(repeats.contains("aliases"), "{repeats}");
        let deep = |levels| {
            let nested = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            flaw(&format!("version: \"1\"\nname: x\nx: {nested}\n"))
        };
        let nested = deep(20_000);
        assert!(
            nested.contains("nested") && deep(MAX_DEPTH + 8).contains("nested"),
            "{nested}"
        );
        let wide = format!("version: \"1\"\nname: x\nx: [{}]\n", "a,".repeat(MAX_NODES));
        let wide = flaw(&wide);
        assert!(wide.contains("values"), "{wide}");
        [repeats, nested, wide]
            .iter()
            .for_each(|message| of_no_library(message));
    }

    #[test]
    fn a_tag_can_be_seen() {
        for good in ["backend", "a: b", "yes", "#1", "größe", "x y"] {
            assert_eq!(good.parse::<SpecTag>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            " ",
            " a",
            "a\nb",
            "a\u{202e}b",
            "\u{200b}",
            &"a".repeat(65),
        ] {
            assert!(bad.parse::<SpecTag>().is_err(), "{bad:?}");
        }
    }
}
