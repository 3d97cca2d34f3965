//! A look at source text that is good enough to say which definitions it holds and which parts of it are tests.
//!
//! It is no parser: comments and literals are blanked ([`mask`]), the rest is read as words and punctuation. The
//! reading never fails, whatever the bytes, and takes time linear in them.

mod definitions;
mod doctests;
mod mask;
mod python;
mod rust_tests;
mod token;
mod tricks;

use crucible_model::RepoPath;

pub(crate) use definitions::{Definition, definitions};
pub(crate) use doctests::{doctests, may_be_doctest};
pub(crate) use tricks::{Role, Sight, Trick, Weight, may_matter, sights};

/// The languages whose definitions are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// `.rs`
    Rust,
    /// `.py`, `.pyi`
    Python,
    /// JavaScript and TypeScript.
    Script,
    /// `.go`
    Go,
    /// C and C++.
    C,
}

impl Language {
    /// The language of a file by its extension; none for everything else.
    pub(crate) fn of(path: &RepoPath) -> Option<Self> {
        match path.extension()? {
            "rs" => Some(Self::Rust),
            "py" | "pyi" => Some(Self::Python),
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => Some(Self::Script),
            "go" => Some(Self::Go),
            "c" | "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" => Some(Self::C),
            _ => None,
        }
    }
}

/// The test code inside a source file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestCode<'a> {
    /// Each test item with its attributes or decorators, and how deep in other items it stands.
    pub(crate) items: Vec<(usize, &'a [u8])>,
    /// The conditions under which the whole file is compiled.
    pub(crate) conditions: Vec<&'a [u8]>,
}

impl TestCode<'_> {
    /// Whether every test item of `self` still stands, letter for letter and in this order, in `after`. New ones may
    /// stand between them; the conditions may not change as soon as there is something to lose.
    pub(crate) fn survives_in(&self, after: &TestCode<'_>) -> bool {
        if self.items.is_empty() {
            return true;
        }
        let mut rest = after.items.iter();
        self.items.iter().all(|item| rest.any(|candidate| candidate == item))
            && self.conditions == after.conditions
    }
}

/// Finds the test code inside a source file. Languages that keep their tests in files of their own have none.
pub(crate) fn test_code(language: Language, source: &[u8]) -> TestCode<'_> {
    match language {
        Language::Rust => rust_tests::find(source),
        Language::Python => python::tests(source),
        Language::Script => tricks::script_tests(source),
        Language::Go | Language::C => TestCode::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quadratic reading of any of these would take minutes.
    #[test]
    fn hostile_source_is_read_in_linear_time() {
        for piece in [
            "mod a{",
            "# ",
            "#[a]",
            "#[",
            "/a/ ",
            "f() ",
            "f(",
            "r#",
            "r\"",
            "'",
            "`${",
            "class A{",
            "func (",
            "/*",
            "}",
            "R\"(",
            "@a\n",
            "def test():\n",
            "#define a \\\n",
            "\"\"\"",
            " ",
            "proptest!",
            "#![cfg(a)]",
            "pub ",
            "const enum ",
            "if(import.meta.vitest){",
            "#[cfg(test)]",
            "#[cfg(",
            "cfg!(",
            "use a,",
            "use ",
            "func init(){",
            "def f(\n",
            " if a:\n",
            "del test_a,",
            "/// ```\n",
        ] {
            let source = piece.repeat(300_000 / piece.len() + 1);
            for language in [Language::Rust, Language::Python, Language::Script, Language::Go, Language::C] {
                let _ = definitions(language, source.as_bytes());
                let _ = test_code(language, source.as_bytes());
                for role in [Role::Test, Role::Library] {
                    let _ = sights(language, role, &source.as_bytes()[..40_000]);
                }
            }
            let _ = doctests(source.as_bytes());
        }
    }
}
