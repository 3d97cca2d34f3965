//! What a patch may touch, and how much of it.
//!
//! A policy is data: a scope, what is denied in it, limits, and the exact paths that the plan names. Under every
//! policy lies a floor: places that are not source code and endings that are not text. Only a
//! path that the plan names word for word reaches below that floor; a policy's own denials are never lifted.

use crucible_model::{Denial, PathPrefix, RepoPath, SourcePattern};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The largest number of files, unless the policy says otherwise.
pub const DEFAULT_MAX_FILES: u64 = 5;
/// The largest number of added lines, unless the policy says otherwise.
pub const DEFAULT_MAX_ADDED_LINES: u64 = 400;
/// The largest number of removed lines, unless the policy says otherwise.
pub(crate) const DEFAULT_MAX_REMOVED_LINES: u64 = 400;

/// The largest binary file, in bytes, unless the policy says otherwise.
pub(crate) const DEFAULT_MAX_BINARY_BYTES: u64 = 1 << 20;

/// Endings of what a compiler or a key generator wrote.
const DENIED_SUFFIXES: [&str; 18] = [
    ".exe", ".dll", ".so", ".dylib", ".a", ".o", ".obj", ".lib", ".class", ".jar", ".pyc", ".pyo",
    ".wasm", ".pem", ".key", ".p12", ".pfx", ".jks",
];

/// Where a policy comes from, and so what has to change for it to allow more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PolicySource {
    /// A policy as JSON.
    #[default]
    Document,
    /// A plan.
    Plan,
    /// The command that the user gave.
    Command,
}

impl PolicySource {
    /// How a file comes to be named.
    pub(crate) const fn naming_hint(self) -> &'static str {
        match self {
            Self::Document => "list this file in `named` of the policy",
            Self::Plan => "have the plan name the file",
            Self::Command => "name this file in the command",
        }
    }

    /// What says where files may change.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Document => "the policy",
            Self::Plan => "the plan",
            Self::Command => "the command",
        }
    }
}

/// The rules that a patch is judged by. As JSON: twelve keys, of which only `allow_roots` is
/// required.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The places that may change. None means that nothing may.
    pub allow_roots: Vec<PathPrefix>,
    /// The directories whose sources may change beside these; nothing else of them may.
    #[serde(default)]
    pub allow_sources: Vec<SourcePattern>,
    /// Places in these that may not change, on top of the built-in ones. Naming a path does not lift these.
    #[serde(default)]
    pub deny_prefixes: Vec<PathPrefix>,
    /// Endings of names that may not change, on top of the built-in ones; case is ignored. Naming a path does not
    /// lift these.
    #[serde(default)]
    pub deny_suffixes: Vec<String>,
    /// How many paths may be touched; a rename touches two.
    #[serde(default = "default_max_files")]
    pub max_files: u64,
    /// How many lines may be added.
    #[serde(default = "default_max_added_lines")]
    pub max_added_lines: u64,
    /// How many lines may be removed.
    #[serde(default = "default_max_removed_lines")]
    pub max_removed_lines: u64,
    /// The paths that the plan names, word for word: new files, files that go away, tests, manifests and the like.
    /// They have to lie in `allow_roots` nonetheless.
    #[serde(default)]
    pub named: Vec<RepoPath>,
    /// The names of definitions that the plan takes away.
    #[serde(default)]
    pub may_drop: Vec<String>,
    /// The places that may be added to: new source files and documents, new files of tests, new tests in test files. Documents
    /// for people may also change there. They need not lie in `allow_roots`.
    #[serde(default)]
    pub may_add: Vec<PathPrefix>,
    /// The old and the new name of each symbol that gets another one; a test file may change in these names alone.
    #[serde(default)]
    pub renames: Vec<(String, String)>,
    /// How many bytes a binary file may have that the plan names.
    #[serde(default = "default_max_binary_bytes")]
    pub max_binary_bytes: u64,
    /// Whether anything but plain text files may change.
    #[serde(skip)]
    pub unusual: SpecialEntries,
    /// Where these rules come from; not a part of them.
    #[serde(skip)]
    pub source: PolicySource,
}

/// Whether links, binary files and modes may change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SpecialEntries {
    /// Where the plan or the policy names the path.
    #[default]
    WhereNamed,
    /// Nowhere: applying a patch writes the contents of files and nothing else.
    Never,
}

/// A policy as it is written, before its values are judged: errors about a wrong shape use the words of JSON.
const KEYS: [(&str, Shape); 12] = [
    ("allow_roots", Shape::Texts),
    ("allow_sources", Shape::Texts),
    ("deny_prefixes", Shape::Texts),
    ("deny_suffixes", Shape::Texts),
    ("max_files", Shape::Number),
    ("max_added_lines", Shape::Number),
    ("max_removed_lines", Shape::Number),
    ("named", Shape::Texts),
    ("may_drop", Shape::Texts),
    ("may_add", Shape::Texts),
    ("renames", Shape::Pairs),
    ("max_binary_bytes", Shape::Number),
];

#[derive(Clone, Copy)]
enum Shape {
    Texts,
    Pairs,
    Number,
}

impl Shape {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Texts => value
                .as_array()
                .is_some_and(|items| items.iter().all(Value::is_string)),
            Self::Pairs => value.as_array().is_some_and(|items| {
                items.iter().all(|item| {
                    Self::Texts.fits(item) && item.as_array().is_some_and(|pair| pair.len() == 2)
                })
            }),
            Self::Number => value.is_u64(),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Texts => "a list of texts",
            Self::Pairs => "a list of pairs of texts",
            Self::Number => "a whole number that is not negative",
        }
    }
}

impl Policy {
    /// Reads a policy as people write it.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in one sentence without its end.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        // Keys that are there twice are refused by the typed reading below.
        let value: Value =
            serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON ({error})"))?;
        let Value::Object(fields) = &value else {
            return Err("it is not a JSON object".to_owned());
        };
        for (key, value) in fields {
            let Some((_, shape)) = KEYS.iter().find(|(known, _)| known == key) else {
                let known: Vec<&str> = KEYS.iter().map(|(known, _)| *known).collect();
                return Err(format!(
                    "it has no key {key:?}; there are {}",
                    known.join(", ")
                ));
            };
            if !shape.fits(value) {
                return Err(format!("{key} is {}", shape.name()));
            }
        }
        if !fields.contains_key("allow_roots") {
            return Err("allow_roots is missing: the places that may change".to_owned());
        }
        let policy: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if policy.deny_suffixes.iter().any(String::is_empty) {
            return Err("deny_suffixes holds an empty text, which every name ends with".to_owned());
        }
        for key in ["deny_prefixes", "deny_suffixes"] {
            let texts = value[key].as_array().into_iter().flatten();
            if let Some(text) = texts
                .filter_map(Value::as_str)
                .find(|text| denies_nothing(text))
            {
                return Err(format!(
                    "{key} holds {text:?}, which no usual path matches; write the text itself, without patterns, outer \
                     blanks and invisible characters"
                ));
            }
        }
        Ok(policy)
    }

    /// The default limits for a scope.
    #[must_use]
    pub fn for_roots(allow_roots: Vec<PathPrefix>) -> Self {
        Self {
            allow_roots,
            ..Self::default()
        }
    }

    pub(crate) fn names(&self, path: &RepoPath) -> bool {
        self.named.contains(path)
    }

    /// Whether the path may be a link, binary, or get another mode.
    pub(crate) fn allows_unusual(&self, path: &RepoPath) -> bool {
        self.unusual == SpecialEntries::WhereNamed && self.names(path)
    }

    /// Whether a new file at `path` is meant: it is named, or a root is this very path.
    pub(crate) fn names_new(&self, path: &RepoPath) -> bool {
        self.names(path) || self.allow_roots.contains(&PathPrefix::from(path.clone()))
    }

    /// Whether a backslash in `path` is meant: the path is named, or a root that holds the backslash holds the path.
    pub(crate) fn names_backslash(&self, path: &RepoPath) -> bool {
        let is_root = |root: &&PathPrefix| root.contains(path) && root.to_string().contains('\\');
        self.names(path) || self.allow_roots.iter().any(|root| is_root(&root))
    }

    pub(crate) fn may_add_to(&self, path: &RepoPath) -> bool {
        self.may_add.iter().any(|place| place.contains(path)) && !self.names(path)
    }

    pub(crate) fn allows_place(&self, path: &RepoPath) -> bool {
        self.allow_roots.iter().any(|root| root.contains(path))
            || self.allow_sources.iter().any(|place| place.contains(path))
    }

    /// The denied place that holds `path`, if one does.
    pub(crate) fn denied_place(&self, path: &RepoPath) -> Option<String> {
        if let Some(prefix) = self.deny_prefixes.iter().find(|prefix| prefix.denies(path)) {
            return Some(prefix.to_string());
        }
        if self.names(path) {
            return None;
        }
        crucible_model::denied_place(path, Denial::Changed).map(|name| format!("{name}/"))
    }

    /// The denied ending of `path`, if it has one.
    pub(crate) fn denied_suffix(&self, path: &RepoPath) -> Option<String> {
        // Written with a backslash, it is the same name on some systems.
        let spelled = |text: &str| text.to_ascii_lowercase().replace('\\', "/");
        let lower = spelled(path.as_str());
        let own = self
            .deny_suffixes
            .iter()
            .find(|suffix| lower.ends_with(&spelled(suffix)));
        if own.is_some() || self.names(path) {
            return own.cloned();
        }
        DENIED_SUFFIXES
            .iter()
            .find(|suffix| lower.ends_with(*suffix))
            .map(ToString::to_string)
    }
}

/// Whether a text of a denial is written as a pattern, or has characters that nobody sees.
fn denies_nothing(text: &str) -> bool {
    text.trim() != text || text.contains(['*', '?']) || text.contains(crucible_model::is_hidden)
}

/// The default limits, and no place that may change.
impl Default for Policy {
    fn default() -> Self {
        Self {
            allow_roots: Vec::new(),
            allow_sources: Vec::new(),
            deny_prefixes: Vec::new(),
            deny_suffixes: Vec::new(),
            max_files: DEFAULT_MAX_FILES,
            max_added_lines: DEFAULT_MAX_ADDED_LINES,
            max_removed_lines: DEFAULT_MAX_REMOVED_LINES,
            named: Vec::new(),
            may_drop: Vec::new(),
            may_add: Vec::new(),
            renames: Vec::new(),
            max_binary_bytes: DEFAULT_MAX_BINARY_BYTES,
            unusual: SpecialEntries::WhereNamed,
            source: PolicySource::Document,
        }
    }
}

fn default_max_files() -> u64 {
    DEFAULT_MAX_FILES
}

fn default_max_added_lines() -> u64 {
    DEFAULT_MAX_ADDED_LINES
}

fn default_max_binary_bytes() -> u64 {
    DEFAULT_MAX_BINARY_BYTES
}

fn default_max_removed_lines() -> u64 {
    DEFAULT_MAX_REMOVED_LINES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RepoPath {
        text.parse().unwrap()
    }

    #[test]
    fn built_in_denials_match_intended_paths() {
        let policy = Policy::for_roots(vec![PathPrefix::ALL]);
        for denied in [
            ".github/workflows/ci.yml",
            "sub/.github/x",
            ".crucible/config.toml",
            "a/.cargo/config.toml",
            "runs/x",
            "build/out.c",
            "dist/a.js",
            "web/node_modules/a/index.js",
            "a/__pycache__/b.txt",
            ".GitHub/x",
            "Dist/a.js",
            "target/x",
        ] {
            assert!(policy.denied_place(&path(denied)).is_some(), "{denied}");
        }
        for valid_text in [
            "src/build/mod.rs",
            "src/dist.rs",
            "packages/a/dist_util.js",
            "src/runs/x.py",
            "builder/x.c",
            "github/x",
        ] {
            assert_eq!(policy.denied_place(&path(valid_text)), None, "{valid_text}");
        }
        assert_eq!(
            policy.denied_suffix(&path("a/LIB.SO")),
            Some(".so".to_owned())
        );
        assert_eq!(policy.denied_suffix(&path("a/also")), None);
    }

    #[test]
    fn naming_overrides_floor_but_not_policy_denials() {
        let policy = Policy {
            deny_prefixes: vec!["secret/".parse().unwrap()],
            deny_suffixes: vec![".SQL".to_owned()],
            named: vec![path("build/a.c"), path("secret/a.c"), path("a.sql")],
            ..Policy::default()
        };
        assert_eq!(policy.denied_place(&path("build/a.c")), None);
        assert!(policy.denied_place(&path("build/b.c")).is_some());
        assert!(policy.denied_place(&path("secret/a.c")).is_some());
        assert!(policy.denied_suffix(&path("a.sql")).is_some());
    }

    #[test]
    fn denials_ignore_case_and_separator() {
        let policy = Policy {
            deny_prefixes: ["SRC", "app/[id]", "secrets\\prod"]
                .map(|place| place.parse().unwrap())
                .to_vec(),
            deny_suffixes: vec!["db\\dump.sql".to_owned()],
            ..Policy::for_roots(vec![PathPrefix::ALL])
        };
        for denied in [
            "src/a.py",
            "Src",
            "app/[id]/page.tsx",
            "src\\a.py",
            "secrets/prod/key",
            "secrets/Prod",
            "secrets\\prod/key",
            "secrets\\prod\\key",
            "lib/node_modules\\a.js",
            ".github\\workflows\\a.yml",
        ] {
            assert!(policy.denied_place(&path(denied)).is_some(), "{denied}");
        }
        for allowed in [
            "srcs/a.py",
            "a/src/b.py",
            "secrets/production",
            "secretsprod/key",
            "secrets\\a",
            "units/dev\\x2did.mount",
        ] {
            assert_eq!(policy.denied_place(&path(allowed)), None, "{allowed}");
        }
        for denied in ["a/db/dump.sql", "a/db\\dump.sql"] {
            assert!(policy.denied_suffix(&path(denied)).is_some(), "{denied}");
        }
        assert_eq!(policy.denied_suffix(&path("a/db-dump.sql")), None);
        // What is allowed is meant as it is written.
        let allowed = Policy::for_roots(vec!["units\\a".parse().unwrap()]);
        assert!(allowed.allows_place(&path("units\\a")));
        assert!(!allowed.allows_place(&path("units/a")));
        let allowed = Policy::for_roots(vec!["units/a".parse().unwrap()]);
        assert!(!allowed.allows_place(&path("units\\a")));
    }

    #[test]
    fn policy_errors_are_explained_in_json_terms() {
        for (text, message) in [
            ("[]", "not a JSON object"),
            ("7", "not a JSON object"),
            ("{", "not JSON"),
            ("{}", "allow_roots is missing"),
            (
                r#"{"allow_roots":"src/"}"#,
                "allow_roots is a list of texts",
            ),
            (
                r#"{"allow_roots":[],"max_files":-1}"#,
                "max_files is a whole number that is not negative",
            ),
            (
                r#"{"allow_roots":[],"max_files":"5"}"#,
                "max_files is a whole number",
            ),
            (
                r#"{"allow_roots":[],"max_fils":5}"#,
                "no key \"max_fils\"; there are allow_roots,",
            ),
            (
                r#"{"allow_roots":[],"deny_suffixes":[""]}"#,
                "deny_suffixes holds an empty text",
            ),
            (
                r#"{"allow_roots":[],"deny_prefixes":["src/*"]}"#,
                "deny_prefixes holds \"src/*\"",
            ),
            (
                r#"{"allow_roots":[],"deny_suffixes":["*.py"]}"#,
                "deny_suffixes holds \"*.py\"",
            ),
            (
                r#"{"allow_roots":[],"deny_prefixes":[" src/a.py"]}"#,
                "outer blanks",
            ),
            (
                r#"{"allow_roots":[],"deny_prefixes":["src/a.py\u200b"]}"#,
                "invisible characters",
            ),
            (r#"{"allow_roots":[],"allow_roots":["src/"]}"#, "duplicate"),
            (r#"{"allow_roots":["../x"]}"#, ""),
        ] {
            let problem = Policy::parse(text.as_bytes()).unwrap_err();
            assert!(problem.contains(message), "{text}: {problem}");
            for word in ["struct", "u64", "sequence", "element"] {
                assert!(!problem.contains(word), "{text}: {problem}");
            }
        }
        assert!(Policy::parse(br#"{"allow_roots":["src/"],"deny_suffixes":[".svg"]}"#).is_ok());
    }

    #[test]
    fn five_policy_keys_suffice_and_unknown_are_refused() {
        let policy: Policy = serde_json::from_str(
            r#"{"allow_roots":["src/"],"deny_prefixes":["docs/"],"deny_suffixes":[".svg"],"max_files":2,"max_added_lines":9}"#,
        )
        .unwrap();
        assert_eq!(
            (
                policy.max_files,
                policy.max_added_lines,
                policy.max_removed_lines
            ),
            (2, 9, 400)
        );
        assert!(serde_json::from_str::<Policy>("{}").is_err());
        assert!(serde_json::from_str::<Policy>(r#"{"allow_roots":["../x"]}"#).is_err());
        assert!(serde_json::from_str::<Policy>(r#"{"allow_roots":[],"max_fils":1}"#).is_err());
    }
}
