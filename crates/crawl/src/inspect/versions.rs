//! Reads version constraints from the build files, by program, and the scripts of a `package.json`.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::is_hidden;
use crucible_repo::ProjectFiles;
use crucible_secrets::Scanner;

/// The most bytes of a constraint or a script name.
const MAX_BYTES: usize = 100;
/// The most scripts that are read.
const MAX_SCRIPTS: usize = 200;

/// The manifests of one directory.
pub(super) struct Manifests<'a> {
    files: &'a ProjectFiles<'a>,
    directory: &'a str,
}

impl<'a> Manifests<'a> {
    /// Those in `directory`; empty means the top level.
    pub(super) fn new(files: &'a ProjectFiles<'a>, directory: &'a str) -> Self {
        Self { files, directory }
    }

    /// The constraints in the manifests. An unreadable manifest has none.
    pub(super) fn version_constraints(&self) -> BTreeMap<String, String> {
        let found = self
            .cargo()
            .into_iter()
            .chain(self.go())
            .chain(self.node())
            .chain(self.python());
        let found = found.chain(self.cmake()).chain(self.meson());
        let is_fine = |(_, text): &(&str, String)| is_shown(text);
        found
            .filter(is_fine)
            .map(|(program, text)| (program.to_owned(), text))
            .collect()
    }

    /// The names of the scripts in `package.json`.
    pub(super) fn scripts(&self) -> BTreeSet<String> {
        let manifest = self.json("package.json").unwrap_or_default();
        let scripts = manifest
            .get("scripts")
            .and_then(serde_json::Value::as_object);
        let scripts = scripts
            .into_iter()
            .flatten()
            .filter(|(_, script)| script.is_string());
        scripts
            .map(|(name, _)| name)
            .filter(|name| is_shown(name))
            .take(MAX_SCRIPTS)
            .cloned()
            .collect()
    }

    /// The packages that `package.json` declares for its own use.
    pub(super) fn declared(&self) -> BTreeSet<String> {
        let manifest = self.json("package.json").unwrap_or_default();
        let tables = ["dependencies", "devDependencies"]
            .map(|name| manifest.get(name).and_then(serde_json::Value::as_object));
        tables
            .into_iter()
            .flatten()
            .flatten()
            .filter(|(_, version)| version.is_string())
            .map(|(name, _)| name.clone())
            .collect()
    }

    fn cargo(&self) -> Option<(&'static str, String)> {
        let manifest = self.toml("Cargo.toml")?;
        let rust_version =
            |table: Option<&toml::Value>| Some(table?.get("rust-version")?.as_str()?.to_owned());
        let own = rust_version(manifest.get("package"));
        let version = own.or_else(|| rust_version(manifest.get("workspace")?.get("package")))?;
        at_least("rustc", &version)
    }

    fn go(&self) -> Option<(&'static str, String)> {
        let directive = self
            .text("go.mod")?
            .lines()
            .find_map(|line| line.trim().strip_prefix("go "))?;
        at_least("go", directive.split("//").next()?.trim())
    }

    fn node(&self) -> Vec<(&'static str, String)> {
        let manifest = self.json("package.json").unwrap_or_default();
        let engine = |program: &'static str| {
            let requested = manifest.get("engines")?.get(program)?.as_str()?;
            Some((program, requested.trim().to_owned()))
        };
        ["node", "npm", "yarn", "pnpm"]
            .into_iter()
            .filter_map(engine)
            .collect()
    }

    fn python(&self) -> Option<(&'static str, String)> {
        let manifest = self.toml("pyproject.toml")?;
        let own = manifest
            .get("project")
            .and_then(|project| project.get("requires-python"));
        let poetry = || {
            manifest
                .get("tool")?
                .get("poetry")?
                .get("dependencies")?
                .get("python")
        };
        let requested = own.or_else(poetry)?.as_str()?;
        Some(("python", requested.trim().to_owned()))
    }

    fn cmake(&self) -> Option<(&'static str, String)> {
        let text = self.text("CMakeLists.txt")?;
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'));
        // Command names are case-insensitive.
        let line = code
            .map(str::trim)
            .find(|line| starts_like(line, "cmake_minimum_required"))?;
        let (_, arguments) = line.split_once('(')?;
        let mut words = arguments
            .split([' ', '\t', ')'])
            .filter(|word| !word.is_empty());
        words.find(|word| *word == "VERSION")?;
        // The end of a range is only the newest tested version.
        at_least("cmake", words.next()?.split("...").next()?)
    }

    fn meson(&self) -> Option<(&'static str, String)> {
        let text = self.text("meson.build")?;
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'));
        let after = code
            .filter_map(|line| line.split_once("meson_version"))
            .map(|(_, after)| after)
            .next()?;
        let value = after.trim_start().strip_prefix(':')?.trim_start();
        let (version, _) = value.strip_prefix('\'')?.split_once('\'')?;
        Some(("meson", version.trim().to_owned()))
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.files.text(self.directory, name)
    }

    fn toml(&self, name: &str) -> Option<toml::Table> {
        self.files.toml(self.directory, name)
    }

    fn json(&self, name: &str) -> Option<serde_json::Value> {
        self.files.json(self.directory, name)
    }
}

/// A minimum version constraint, if the text is a version.
fn at_least(program: &'static str, version: &str) -> Option<(&'static str, String)> {
    let is_version = version.starts_with(|c: char| c.is_ascii_digit())
        && version
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
    is_version.then(|| (program, format!(">={version}")))
}

fn starts_like(line: &str, word: &str) -> bool {
    line.get(..word.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// Whether a short text from a manifest can be shown unchanged.
fn is_shown(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_BYTES
        && !text.chars().any(is_hidden)
        && Scanner::builtin().scan(text.as_bytes()).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constraints(name: &str, content: &str) -> String {
        let files = ProjectFiles::new(&[], [(name, content)]);
        let found = Manifests::new(&files, "").version_constraints();
        found
            .into_iter()
            .map(|(program, version)| format!("{program} {version}"))
            .collect::<Vec<_>>()
            .join(", ")
    }

    #[test]
    fn manifest_constraints_are_parsed() {
        for (name, content, expected) in [
            (
                "Cargo.toml",
                "[package]\nrust-version = '1.70'",
                "rustc >=1.70",
            ),
            (
                "Cargo.toml",
                "[package]\nrust-version.workspace = true\n[workspace.package]\nrust-version='1.8'",
                "rustc >=1.8",
            ),
            ("go.mod", "module x\n\ngo 1.21.3 // yes\n", "go >=1.21.3"),
            (
                "package.json",
                r#"{"engines":{"node":">=18 <23","npm":"10","vscode":"1"}}"#,
                "node >=18 <23, npm 10",
            ),
            (
                "pyproject.toml",
                "[project]\nrequires-python = '>=3.9'",
                "python >=3.9",
            ),
            (
                "pyproject.toml",
                "[tool.poetry.dependencies]\npython = '^3.8'",
                "python ^3.8",
            ),
            (
                "CMakeLists.txt",
                "# cmake_minimum_required(VERSION 1.0)\nCMAKE_minimum_required( VERSION 3.10...3.27 )",
                "cmake >=3.10",
            ),
            (
                "meson.build",
                "project('x', 'c',\n  meson_version : '>=0.50', version: '1')",
                "meson >=0.50",
            ),
        ] {
            assert_eq!(constraints(name, content), expected, "{name}");
        }
    }

    #[test]
    fn invalid_versions_are_ignored() {
        for (name, content) in [
            ("Cargo.toml", "[package]\nrust-version = '$(x)'"),
            ("Cargo.toml", "[package"),
            ("Cargo.toml", "package = 1\nworkspace = []"),
            ("go.mod", "go ; rm"),
            ("package.json", r#"{"engines":{"node":18}}"#),
            ("package.json", r#"{"engines":[]}"#),
            ("package.json", "{\"engines\":{\"node\":\"1\\u001b[2J\"}}"),
            ("pyproject.toml", "[project]\nrequires-python = ''"),
            ("CMakeLists.txt", "cmake_minimum_required(VERSION ${V})"),
            ("CMakeLists.txt", "cmake_minimum_required(FATAL)"),
            ("meson.build", "meson_version"),
        ] {
            assert_eq!(constraints(name, content), "", "{name} {content}");
        }
        let long = format!("[project]\nrequires-python = '{}'", "1".repeat(101));
        assert_eq!(constraints("pyproject.toml", &long), "");
    }

    #[test]
    fn scripts_are_those_of_the_same_directory() {
        let files = [
            ("package.json", r#"{"scripts":{"top":"x"}}"#),
            (
                "web/package.json",
                r#"{"scripts":{"build":"x","bad":1,"a\nb":"x"}}"#,
            ),
        ];
        let files = ProjectFiles::new(&[], files);
        assert_eq!(
            Manifests::new(&files, "web").scripts(),
            BTreeSet::from(["build".to_owned()])
        );
    }
}
