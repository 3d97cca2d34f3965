//! A look at source text that is good enough to say which definitions it holds and which parts of it are tests.
//!
//! It is no parser: comments and literals are blanked ([`mask`]), the rest is read as words and punctuation. The
//! reading never fails, whatever the bytes, and takes time linear in them.

mod definitions;
mod doctests;
mod grammar;
mod included;
mod mask;
mod python;
mod rust_tests;
mod signs;
mod token;
mod tricks;

use std::collections::BTreeSet;

use crucible_model::RepoPath;

pub(crate) use definitions::{Definition, definitions, is_private, mentions};
pub(crate) use doctests::{doctests, may_be_doctest};
pub(crate) use included::{Included, Names, Reach, included};
pub use signs::{Asserts, SourceSigns, defines_assertions, source_signs};
pub(crate) use tricks::{Detection, Role, Tampering, Weight, may_matter, sights};

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
        match path.extension()?.to_ascii_lowercase().as_str() {
            "rs" => Some(Self::Rust),
            "py" | "pyi" => Some(Self::Python),
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => Some(Self::Script),
            "go" => Some(Self::Go),
            "c" | "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" => Some(Self::C),
            _ => None,
        }
    }
}

/// The names that a source file defines; empty for a language whose definitions are not known.
#[must_use]
pub fn defined_names(path: &RepoPath, source: &[u8]) -> BTreeSet<String> {
    let known = Language::of(path).map(|language| definitions(language, source));
    known
        .into_iter()
        .flatten()
        .map(|(definition, _)| definition.name)
        .collect()
}

/// The test code inside a source file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestCode<'a> {
    /// The test items.
    pub(crate) items: Vec<TestItem<'a>>,
    /// The conditions under which the whole file is compiled.
    pub(crate) conditions: Vec<&'a [u8]>,
}

/// One test item with its attributes or decorators.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestItem<'a> {
    /// How deep in other items it stands.
    pub(crate) depth: usize,
    /// Its text; of a module only what stands before its items.
    pub(crate) text: &'a [u8],
    /// The items of a test module.
    pub(crate) inside: Vec<TestItem<'a>>,
    /// What it brings into the module that it stands in.
    pub(crate) brings: NewNames<'a>,
    /// The words in it, where it stands in a test module.
    pub(crate) words: Vec<&'a [u8]>,
}

/// What a new item would do to the items that stand beside it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum NewNames<'a> {
    /// Only these names: a file that does not use them is not affected.
    Names(Vec<&'a [u8]>),
    /// Nobody can tell.
    #[default]
    Anything,
}

impl TestCode<'_> {
    /// Whether every test item of `self` still stands, letter for letter and in this order, in `after`. New ones may
    /// stand between them, in a test module only such as leave the meaning of the old ones alone; the conditions may
    /// not change as soon as there is something to lose.
    pub(crate) fn survives_in(&self, after: &TestCode<'_>) -> bool {
        if self.items.is_empty() {
            return true;
        }
        let mut rest = after.items.iter();
        self.items
            .iter()
            .all(|item| rest.any(|candidate| item.is_kept_as(candidate)))
            && self.conditions == after.conditions
    }
}

impl TestItem<'_> {
    fn is_kept_as(&self, candidate: &TestItem<'_>) -> bool {
        if self.depth != candidate.depth || self.text != candidate.text {
            return false;
        }
        let mut rest = self.inside.iter().peekable();
        let mut added = Vec::new();
        for item in &candidate.inside {
            if rest.next_if(|wanted| wanted.is_kept_as(item)).is_none() {
                added.push(item);
            }
        }
        let used: BTreeSet<&[u8]> = if added.is_empty() {
            BTreeSet::new()
        } else {
            self.inside.iter().flat_map(TestItem::words).collect()
        };
        rest.peek().is_none()
            && added.iter().all(|item| match &item.brings {
                NewNames::Names(names) => names.iter().all(|name| !used.contains(name)),
                NewNames::Anything => false,
            })
    }

    fn words(&self) -> Vec<&[u8]> {
        self.words
            .iter()
            .copied()
            .chain(self.inside.iter().flat_map(TestItem::words))
            .collect()
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

fn contains(text: &[u8], word: &[u8]) -> bool {
    let Some(first) = word.first() else {
        return true;
    };
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        rest = &rest[at..];
        if rest.starts_with(word) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quadratic reading of any of these would take minutes, and a test that takes so long is ended as failed.
    #[test]
    fn hostile_source_is_read_in_linear_time() {
        const ALL: [Language; 5] = [
            Language::Rust,
            Language::Python,
            Language::Script,
            Language::Go,
            Language::C,
        ];
        for (languages, pieces) in [
            (&ALL[..], &["f() ", "f(", "'", "}", " "][..]),
            (
                &[Language::Rust],
                &[
                    "mod a{",
                    "# ",
                    "#[a]",
                    "#[",
                    "r#",
                    "r\"",
                    "/*",
                    "proptest!",
                    "#![cfg(a)]",
                    "pub ",
                    "#[cfg(test)]",
                    "#[cfg(",
                    "cfg!(",
                    "use a,",
                    "use ",
                    "/// ```\n",
                    "#[ignore ",
                    "#[cfg_attr(ignore,",
                    "extern \"C\" { ",
                    "use process::*; exit(",
                    "{exit}=process ",
                    "} from \"process",
                    "NODE_ENV===\"test\"",
                    "import os as o\n",
                    "x(as test_a:=1;\n",
                    "mod tests{fn a(){}",
                    "#[test] r#a ",
                    "include!(",
                    "include!(concat!(",
                    "#[cfg_attr(a,path=",
                    "macro_rules! a{",
                    "macro_rules! a{($b:expr)=>{include!($b)}}a!(",
                    "asm!(concat!(",
                ],
            ),
            (
                &[Language::Script],
                &[
                    "/a/ ",
                    "`${",
                    "class A{",
                    "const enum ",
                    "if(import.meta.vitest){",
                    "a/b ",
                    "from \"assert\" ",
                    "[\"exit\"]",
                    "assert[",
                    "if(x)/",
                    "require(",
                    "a=require;a(",
                    "import('./'+",
                ],
            ),
            (&[Language::Go], &["func (", "func init(){", "/*"]),
            (
                &[Language::C],
                &[
                    "R\"(",
                    "#define a \\\n",
                    "class A{",
                    "const enum ",
                    "#include <",
                    "#include a\n",
                    "#define a b\n#include a\n",
                    "asm(",
                    "asm(a ",
                    ".incbin \"",
                ],
            ),
            (
                &[Language::Python],
                &[
                    "@a\n",
                    "def test():\n",
                    "\"\"\"",
                    "def f(\n",
                    " if a:\n",
                    "del test_a,",
                    "class A:\n",
                    "    >>> a\n",
                    "f\"{",
                    "f'{a:{",
                    "unittest.",
                    "a[",
                    "sys.exit(",
                    "\"_exit\" ",
                ],
            ),
        ] {
            for piece in pieces {
                let source = piece.repeat(150_000 / piece.len() + 1);
                for language in languages {
                    let _ = definitions(*language, source.as_bytes());
                    let _ = test_code(*language, source.as_bytes());
                    let _ = doctests(*language, source.as_bytes());
                    for path in [
                        "a/b.rs", "a/b.c", "a/b.S", "a/b.js", "a/b.go", "a/b.py", "a/b.php",
                        "a/b.rst", "a/b.zig", "a/b.x",
                    ] {
                        let path = path.parse().unwrap();
                        let names = Names::of([(&path, source.as_bytes())]);
                        let _ = included(&path, source.as_bytes(), &names);
                    }
                    for role in [Role::Test, Role::Source] {
                        let _ = sights(*language, role, source.as_bytes());
                    }
                }
            }
        }
    }
}
