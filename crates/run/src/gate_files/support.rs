//! Sources that only tests use and that say so themselves: with them a change could grade itself, although no gate names them and their
//! names are those of ordinary sources.
//!
//! - Rust: the file of a module below `#[cfg(test)]`, and everything below it.
//! - Go: a file that imports `testing` beside others of its package that do not, or in an `internal` directory.
//! - JavaScript: a file that imports a test runner which the project does not offer to others.
//! - Python: the modules that a `conftest.py` names in `pytest_plugins`, but for a project that is a plugin itself.
//!
//! A helper that says nothing of this kind counts as a source.

use std::collections::BTreeSet;
use std::ops::Bound;

use crucible_model::RepoPath;
use crucible_patch::is_test_path;

use super::{Mode, directory, file_name, normal};

/// How many files are read.
const MAX_READ: usize = 4000;
/// The endings of JavaScript's sources.
const SCRIPTS: [&str; 8] = ["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"];
/// What a file of tests imports, and no product: runners.
const RUNNERS: [&str; 7] = [
    "@jest/globals",
    "ava",
    "mocha",
    "node:test",
    "tap",
    "uvu",
    "vitest",
];
/// Files that describe a Python project.
const PYTHON_PROJECT: [&str; 3] = ["pyproject.toml", "setup.cfg", "setup.py"];

/// The tracked sources that only tests use, sorted. `read` gives the beginning of a tracked regular file. Pure.
pub(crate) fn test_support(
    tracked: &[(&str, Mode)],
    read: impl FnMut(&RepoPath) -> Option<Vec<u8>>,
) -> Vec<RepoPath> {
    let mut tree = Tree {
        paths: tracked.iter().map(|(path, _)| *path).collect(),
        read,
        left: MAX_READ,
    };
    let mut found = BTreeSet::new();
    tree.rust(&mut found);
    tree.go(&mut found);
    tree.scripts(&mut found);
    tree.python(&mut found);
    found
        .into_iter()
        .filter_map(|path| path.parse().ok())
        .collect()
}

struct Tree<'t, R> {
    paths: BTreeSet<&'t str>,
    read: R,
    left: usize,
}

impl<'t, R: FnMut(&RepoPath) -> Option<Vec<u8>>> Tree<'t, R> {
    fn text(&mut self, path: &str) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        let content = (self.read)(&path.parse().ok()?)?;
        Some(String::from_utf8_lossy(&content).into_owned())
    }

    /// The tracked files with such an ending.
    fn ending(&self, endings: &[&str]) -> Vec<&'t str> {
        let is_one = |path: &&&str| {
            path.rsplit_once('.')
                .is_some_and(|(_, ending)| endings.contains(&ending))
        };
        self.paths.iter().filter(is_one).copied().collect()
    }

    fn rust(&mut self, found: &mut BTreeSet<&'t str>) {
        for path in self.ending(&["rs"]) {
            let Some(text) = self.text(path).filter(|text| text.contains("test")) else {
                continue;
            };
            for module in test_modules(&text) {
                let files = self.files_of(path, &module);
                found.extend(files);
            }
        }
    }

    /// Returns the files of a module and of its submodules.
    fn files_of(&self, declared_in: &str, module: &Module<'_>) -> Vec<&'t str> {
        let base_dir = directory(declared_in);
        if let Some(path) = module.path {
            let path = normal(&format!("{base_dir}/{path}"));
            return path
                .and_then(|path| self.paths.get(path.as_str()).copied())
                .into_iter()
                .collect();
        }
        let stem = file_name(declared_in).trim_end_matches(".rs");
        let below = format!("{base_dir}/{stem}");
        let places = match stem {
            "lib" | "main" | "mod" => [base_dir, &below],
            _ => [&below, base_dir],
        };
        for place in places {
            let base = format!("{place}/{}", module.name);
            let base = base.trim_start_matches('/');
            let own = [format!("{base}.rs"), format!("{base}/mod.rs")];
            let own: Vec<&str> = own
                .iter()
                .filter_map(|path| self.paths.get(path.as_str()).copied())
                .collect();
            if !own.is_empty() {
                let start = format!("{base}/");
                let from = (Bound::Included(start.as_str()), Bound::Unbounded);
                let inner = self
                    .paths
                    .range::<str, _>(from)
                    .take_while(|path| path.starts_with(&start));
                return own.into_iter().chain(inner.copied()).collect();
            }
        }
        Vec::new()
    }

    fn go(&mut self, found: &mut BTreeSet<&'t str>) {
        let mut packages: Vec<(&str, Vec<(&'t str, bool)>)> = Vec::new();
        for path in self
            .ending(&["go"])
            .into_iter()
            .filter(|path| !path.ends_with("_test.go"))
        {
            let Some(text) = self.text(path) else {
                continue;
            };
            let file = (path, imports_testing(&text));
            match packages
                .last_mut()
                .filter(|(package, _)| *package == directory(path))
            {
                Some((_, files)) => files.push(file),
                None => packages.push((directory(path), vec![file])),
            }
        }
        for (package, files) in packages {
            // A package with nothing else is a test library, and thus a product.
            let is_inner = package.split('/').any(|part| part == "internal");
            if is_inner || files.iter().any(|(_, imports)| !imports) {
                found.extend(
                    files
                        .into_iter()
                        .filter(|(_, imports)| *imports)
                        .map(|(path, _)| path),
                );
            }
        }
    }

    fn scripts(&mut self, found: &mut BTreeSet<&'t str>) {
        let sources = self.ending(&SCRIPTS);
        if sources.is_empty() {
            return;
        }
        let packages: Vec<&str> = self
            .paths
            .iter()
            .filter(|path| file_name(path) == "package.json")
            .copied()
            .collect();
        let mut offered = BTreeSet::new();
        for package in packages {
            let text = self.text(package).unwrap_or_default();
            let package: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            let names = ["dependencies", "peerDependencies"].map(|kind| package[kind].as_object());
            let name = package["name"].as_str().map(str::to_owned);
            offered.extend(
                names
                    .into_iter()
                    .flatten()
                    .flat_map(|names| names.keys().cloned())
                    .chain(name),
            );
        }
        let runners: Vec<&str> = RUNNERS
            .into_iter()
            .filter(|runner| !offered.contains(*runner))
            .collect();
        for path in sources {
            if path.parse().is_ok_and(|path| is_test_path(&path)) {
                continue;
            }
            let Some(text) = self.text(path) else {
                continue;
            };
            let imports = |runner: &&str| {
                text.lines().filter(|line| is_import(line)).any(|line| {
                    [format!("'{runner}'"), format!("\"{runner}\"")]
                        .iter()
                        .any(|name| line.contains(name))
                })
            };
            if runners.iter().any(imports) {
                found.insert(path);
            }
        }
    }

    fn python(&mut self, found: &mut BTreeSet<&'t str>) {
        let settings: Vec<&str> = self
            .paths
            .iter()
            .filter(|path| file_name(path) == "conftest.py")
            .copied()
            .collect();
        let mut named = BTreeSet::new();
        for path in settings {
            let text = self.text(path).unwrap_or_default();
            named.extend(plugins(&text));
        }
        let is_plugin = |tree: &mut Self| {
            let texts = PYTHON_PROJECT.map(|path| tree.text(path).unwrap_or_default());
            texts.iter().any(|text| text.contains("pytest11"))
        };
        if named.is_empty() || is_plugin(self) {
            return;
        }
        for name in named {
            let path = name.replace('.', "/");
            let ends = [format!("{path}.py"), format!("{path}/__init__.py")];
            let is_it = |path: &&&str| {
                let rest = ends.iter().find_map(|end| path.strip_suffix(end.as_str()));
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
            };
            found.extend(self.paths.iter().filter(is_it).copied());
        }
    }
}

/// A module of Rust that is declared here and written elsewhere.
#[derive(Debug, PartialEq)]
struct Module<'t> {
    name: &'t str,
    path: Option<&'t str>,
}

/// The modules that are compiled for tests only.
fn test_modules(text: &str) -> Vec<Module<'_>> {
    let mut found = Vec::new();
    let (mut is_test, mut path) = (false, None);
    for line in text.lines() {
        let mut rest = line.trim();
        while let Some((attribute, behind)) = rest
            .strip_prefix("#[")
            .and_then(|rest| rest.split_once(']'))
        {
            let condition = attribute
                .strip_prefix("cfg(")
                .filter(|all| !all.contains("not(") && !all.contains("any("));
            is_test |= condition.is_some_and(|all| {
                all.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '"')
                    .any(|word| word == "test")
            });
            path = path.or_else(|| attribute.strip_prefix("path")?.split('"').nth(1));
            rest = behind.trim_start();
        }
        if rest.is_empty() || rest.starts_with("//") {
            continue;
        }
        let declared = rest.split_once("mod ").and_then(|(before, name)| {
            let is_visibility =
                before.is_empty() || before.trim_end().ends_with(')') || before == "pub ";
            Some(name.split_once(';')?.0.trim()).filter(|_| is_visibility)
        });
        if let Some(name) = declared.filter(|_| is_test) {
            found.push(Module { name, path });
        }
        (is_test, path) = (false, None);
    }
    found
}

/// Whether a source of Go imports the package of the tests.
fn imports_testing(text: &str) -> bool {
    let head = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("func ") && !line.starts_with("type "));
    head.into_iter().any(|line| {
        let path = line.strip_prefix("import ").unwrap_or(line);
        path == "\"testing\""
            || path
                .split_once(' ')
                .is_some_and(|(_, path)| path.trim_start() == "\"testing\"")
    })
}

/// Whether a line of JavaScript imports something.
fn is_import(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("import") || line.starts_with("} from") || line.contains("require(")
}

/// The modules in `pytest_plugins`.
fn plugins(text: &str) -> BTreeSet<String> {
    let Some((_, rest)) = text.split_once("pytest_plugins") else {
        return BTreeSet::new();
    };
    let Some(value) = rest.trim_start().strip_prefix('=') else {
        return BTreeSet::new();
    };
    let value = value.trim_start();
    let end = match value.chars().next() {
        Some('[') => value.find(']'),
        Some('(') => value.find(')'),
        _ => value.find('\n'),
    };
    let value = &value[..end.unwrap_or(value.len())];
    let is_name = |name: &&str| {
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || c == '_' || c == '.')
    };
    // Every second part is quoted.
    value
        .split(['"', '\''])
        .skip(1)
        .step_by(2)
        .filter(is_name)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: BTreeMap<&str, &str> = files.iter().copied().collect();
        let tracked: Vec<(&str, Mode)> = files.keys().map(|path| (*path, Mode::Plain)).collect();
        let read = |path: &RepoPath| {
            files
                .get(path.as_str())
                .map(|text| text.as_bytes().to_vec())
        };
        test_support(&tracked, read)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn rust_cfg_test_modules_are_support() {
        let lib = "pub mod price;\n#[cfg(test)]\nmod proof;\n#[cfg(all(test, unix))] pub(crate) mod checks;\n\
            #[cfg(test)]\n#[path = \"odd/place.rs\"]\nmod placed;\n";
        let files = [
            ("src/lib.rs", lib),
            ("src/price.rs", "#[cfg(test)]\nmod cases;\n"),
            ("src/price/cases.rs", ""),
            ("src/proof.rs", "mod inner;"),
            ("src/proof/inner.rs", ""),
            ("src/checks/mod.rs", ""),
            ("src/odd/place.rs", ""),
            ("src/cases.rs", ""),
        ];
        let expected = [
            "src/checks/mod.rs",
            "src/odd/place.rs",
            "src/price/cases.rs",
            "src/proof.rs",
            "src/proof/inner.rs",
        ];
        assert_eq!(found(&files), expected);
    }

    #[test]
    fn rust_modules_of_products_are_not() {
        for text in [
            "pub mod a;",
            "#[cfg(not(test))]\nmod a;",
            "#[cfg(any(test, feature = \"testing\"))]\npub mod a;",
            "#[cfg(feature = \"test\")]\nmod a;",
            "// #[cfg(test)]\nmod a;",
            "/// #[cfg(test)]\npub mod a;",
            "#[cfg(test)]\nuse std::fmt;\nmod a;",
            "#[cfg(test)]\nmod tests {\n    use super::*;\n}\nmod a;",
        ] {
            assert_eq!(
                found(&[("src/lib.rs", text), ("src/a.rs", "")]),
                [""; 0],
                "{text}"
            );
        }
    }

    #[test]
    fn go_files_importing_testing_are_support() {
        let tests =
            "package a\n\nimport (\n\t\"fmt\"\n\t\"testing\"\n)\n\nfunc Same(t *testing.T) {}\n";
        let plain = "package a\n\nimport \"fmt\"\n\nfunc F() { fmt.Println(\"testing\") }\n";
        assert_eq!(
            found(&[
                ("a/a.go", plain),
                ("a/same.go", tests),
                ("a/a_test.go", tests)
            ]),
            ["a/same.go"]
        );
        assert_eq!(
            found(&[("internal/assert/assert.go", tests)]),
            ["internal/assert/assert.go"]
        );
        // A library for the tests of others.
        assert_eq!(
            found(&[("assert/assert.go", tests), ("suite/suite.go", tests)]),
            [""; 0]
        );
    }

    #[test]
    fn scripts_importing_a_runner_are_support() {
        let suite = "import test from 'node:test';\nimport {\n  it\n} from \"vitest\";\ntest('a', () => {});\n";
        let plain = "// see 'vitest'\nexport const runner = 'vitest';\n";
        let package = r#"{"name": "x", "devDependencies": {"vitest": "1"}}"#;
        let files = [
            ("package.json", package),
            ("src/suite.js", suite),
            ("src/a.js", plain),
        ];
        assert_eq!(found(&files), ["src/suite.js"]);
        let helper = "const { expect } = require('vitest');\n";
        let offers = r#"{"name": "x", "peerDependencies": {"vitest": "1"}}"#;
        assert_eq!(
            found(&[("package.json", offers), ("src/index.js", helper)]),
            [""; 0]
        );
        assert_eq!(
            found(&[("package.json", package), ("src/index.js", helper)]),
            ["src/index.js"]
        );
    }

    #[test]
    fn conftest_plugin_modules_are_support() {
        let files = |project| {
            [
                ("pyproject.toml", project),
                (
                    "tests/conftest.py",
                    "pytest_plugins = [\n    \"shop.support\",\n    'other',\n]\nx = 'shop.price'\n",
                ),
                ("src/shop/support.py", ""),
                ("src/shop/price.py", ""),
                ("src/shop/other/__init__.py", ""),
            ]
        };
        assert_eq!(
            found(&files("")),
            ["src/shop/other/__init__.py", "src/shop/support.py"]
        );
        assert_eq!(
            found(&files(
                "[project.entry-points.pytest11]\nshop = 'shop.support'\n"
            )),
            [""; 0]
        );
    }
}
