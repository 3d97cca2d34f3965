//! Finds the files that a source file imports, by name: Python, JavaScript and TypeScript, Go, Rust, Java, C and C++.
//!
//! Import lines are recognised by their shape and resolved against the repository's paths only; no build file
//! is read. An unresolved import is treated as external.
//!
//! Invariants: the result is sorted without duplicates; parsing is bounded and never fails.

mod resolve;

use std::collections::BTreeSet;

use crucible_model::RepoPath;

use resolve::Resolver;

/// How much of a file is read for imports, in bytes.
const MAX_TEXT: usize = 256 * 1024;

/// The most import lines of one file that count.
const MAX_IMPORTS: usize = 400;

/// The paths of a repository, ready to resolve imports.
#[derive(Debug)]
pub struct ImportIndex<'p> {
    resolver: Resolver<'p>,
}

impl<'p> ImportIndex<'p> {
    /// Takes the paths of all files of a repository.
    #[must_use]
    pub fn new(paths: impl IntoIterator<Item = &'p RepoPath>) -> Self {
        Self {
            resolver: Resolver::new(paths),
        }
    }

    /// The files that the file at `path` with this text imports, without itself.
    #[must_use]
    pub fn imported(&self, path: &RepoPath, text: &str) -> BTreeSet<RepoPath> {
        let text = &text[..text.floor_char_boundary(MAX_TEXT)];
        let mut found = BTreeSet::new();
        match path
            .extension()
            .unwrap_or_default()
            .to_ascii_lowercase()
            .as_str()
        {
            "py" | "pyi" => self.python(path, text, &mut found),
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => {
                for name in script_imports(text).take(MAX_IMPORTS) {
                    self.resolver.script(path, name, &mut found);
                }
            }
            "go" => {
                self.resolver.package_of(path, &mut found);
                for name in quoted_after(text, &["\""])
                    .take(MAX_IMPORTS)
                    .filter(|name| name.contains('/'))
                {
                    self.resolver.go(name, &mut found);
                }
            }
            "rs" => {
                for words in rust_paths(text).take(MAX_IMPORTS) {
                    self.resolver.rust(path, &words, &mut found);
                }
            }
            "java" | "kt" => {
                let names = text
                    .lines()
                    .filter_map(|line| line.trim().strip_prefix("import "));
                for name in names.take(MAX_IMPORTS) {
                    self.resolver.java(
                        name.trim_start_matches("static ").trim_end_matches(';'),
                        &mut found,
                    );
                }
            }
            "c" | "cc" | "cpp" | "cxx" | "h" | "hh" | "hpp" | "hxx" | "inl" | "ipp" => {
                for name in included(text).take(MAX_IMPORTS) {
                    self.resolver.c(path, name, &mut found);
                }
            }
            _ => {}
        }
        found.remove(path);
        found
    }

    fn python(&self, path: &RepoPath, text: &str, found: &mut BTreeSet<RepoPath>) {
        let mut lines = text.lines();
        let mut count = 0;
        while let Some(line) = lines.next() {
            let line = line.trim_start();
            if count >= MAX_IMPORTS {
                return;
            }
            if let Some(names) = line.strip_prefix("import ") {
                count += 1;
                for name in names.split(',') {
                    let name = name.split_whitespace().next().unwrap_or_default();
                    self.resolver.python(path, name, &[], found);
                }
            } else if let Some((module, names)) = line
                .strip_prefix("from ")
                .and_then(|rest| rest.split_once(" import "))
            {
                count += 1;
                let mut names = names.to_owned();
                if names.trim_start().starts_with('(') {
                    for more in lines.by_ref().take(MAX_IMPORTS) {
                        if names.contains(')') {
                            break;
                        }
                        names.push_str(more.split('#').next().unwrap_or_default());
                        if more.contains(')') {
                            break;
                        }
                    }
                }
                let names: Vec<&str> = names
                    .split([',', '(', ')'])
                    .filter_map(|name| name.split_whitespace().next())
                    .collect();
                self.resolver.python(path, module.trim(), &names, found);
            }
        }
    }
}

/// Returns the quoted text after `from`, `import`, `require(` and `import(`.
fn script_imports(text: &str) -> impl Iterator<Item = &str> {
    quoted_after(
        text,
        &[
            "from '",
            "from \"",
            "import '",
            "import \"",
            "require('",
            "require(\"",
            "import('",
            "import(\"",
        ],
    )
}

/// Returns the names after `#include`, in quotes or angle brackets.
fn included(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix("include")?.trim_start();
        let name = rest.strip_prefix(['"', '<'])?;
        name.split(['"', '>']).next()
    })
}

/// Returns the text between each of these and the next matching quote on the line.
fn quoted_after<'t>(
    text: &'t str,
    before: &'static [&'static str],
) -> impl Iterator<Item = &'t str> {
    text.lines().filter_map(|line| {
        let at = before
            .iter()
            .find_map(|before| line.find(before).map(|at| at + before.len()))?;
        let quote = line[..at].chars().next_back()?;
        line[at..].split(quote).next()
    })
}

/// Returns the paths after `use` and the names after `mod` as word lists; for a braced group, all words.
fn rust_paths(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.split(';').filter_map(|statement| {
        let line = statement.trim_start();
        let at = [line.rfind("use "), line.rfind("mod ")]
            .into_iter()
            .flatten()
            .max()?;
        let words = line[at..].split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).take(60).collect();
        (words.len() > 1).then_some(words)
    })
}

#[cfg(test)]
mod tests;
