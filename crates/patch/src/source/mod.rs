//! A look at source text that is good enough to say which definitions it holds and which parts of it are tests.
//!
//! It is not a parser: comments and literals are blanked ([`mask`]), the rest is read as words and punctuation. The
//! reading never fails, whatever the bytes, and takes time linear in them.

mod definitions;
mod doctests;
mod grammar;
mod included;
mod language;
mod mask;
mod named_test;
mod python;
mod rust_tests;
mod search;
mod signs;
mod test_code;
mod token;
mod tricks;

use std::collections::BTreeSet;

use crucible_model::RepoPath;

pub(crate) use definitions::{Definition, definitions, is_private, mentions};
pub(crate) use doctests::{doctests, may_be_doctest};
pub(crate) use included::{Included, Reach, included};
pub(crate) use language::Language;
pub use named_test::defines_test;
pub use signs::{Asserts, SourceSigns, defines_assertions, source_signs};
pub(crate) use test_code::{NewNames, TestCode, TestItem};
pub(crate) use tricks::{Confidence, Detection, Role, Tampering, detections, may_matter};

/// The names that a source file defines; empty for a language whose definitions are not known.
#[must_use]
pub fn defined_names(path: &RepoPath, source: &[u8]) -> BTreeSet<String> {
    let known = Language::from_path(path).map(|language| definitions(language, source));
    known
        .into_iter()
        .flatten()
        .map(|(definition, _)| definition.name)
        .collect()
}

/// The source with comments and literals blanked.
pub(crate) fn code_without_literals(language: Language, source: &[u8]) -> Vec<u8> {
    mask::mask(language, source)
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

    const ALL: [Language; 5] = [
        Language::Rust,
        Language::Python,
        Language::Script,
        Language::Go,
        Language::C,
    ];

    /// Reads long repetitions of each piece. Quadratic reading of any of these would take minutes, and a test that takes so long is ended
    /// as failed.
    fn read_all(languages: &[Language], pieces: &[&str]) {
        for piece in pieces {
            let source = piece.repeat(150_000 / piece.len() + 1);
            for language in languages {
                let _ = definitions(*language, source.as_bytes());
                let _ = test_code(*language, source.as_bytes());
                let _ = doctests(*language, source.as_bytes());
                for path in [
                    "a/b.rs", "a/b.c", "a/b.S", "a/b.js", "a/b.go", "a/b.py", "a/b.php", "a/b.rst",
                    "a/b.zig", "a/b.x",
                ] {
                    let path = path.parse().unwrap();
                    let _ = included(&[(&path, source.as_bytes())]);
                    for name in ["a", "A::test", "x::/etc/passwd"] {
                        let _ = defines_test(&path, source.as_bytes(), name);
                    }
                }
                for role in [Role::Test, Role::Source] {
                    let _ = detections(*language, role, source.as_bytes());
                }
            }
        }
    }

    #[test]
    fn hostile_text_is_read_in_linear_time() {
        read_all(&ALL, &["f() ", "f(", "'", "}", " "]);
    }

    #[test]
    fn hostile_rust_is_read_in_linear_time() {
        read_all(
            &[Language::Rust],
            &[
                "mod a{",
                "mod a{}fn a(){}",
                "#[rstest]fn a(){}",
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
                "m!(include,[<a>]",
                "macro_rules! a{()=>{a!(\"..\")}}use a as b;",
                "cr\"\\\"",
                "use include_str as a;a!(\"/etc/a\");macro_rules! b{($c:expr)=>{a!($c)}}b!(",
            ],
        );
    }

    #[test]
    fn hostile_script_is_read_in_linear_time() {
        read_all(
            &[Language::Script],
            &[
                "/a/ ",
                "a('a',",
                "describe('a',()=>{",
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
                "[require]('/etc/a'",
                "createRequire(a)(",
                "import('./'+",
                "<a>'</a>import'../../a'",
                "require('/etc/",
                "new URL(",
                "switch(NODE_ENV",
                "const a=NODE_ENV;",
                "NODE_ENV!=(",
            ],
        );
    }

    #[test]
    fn hostile_go_is_read_in_linear_time() {
        read_all(&[Language::Go], &["func (", "func init(){", "/*"]);
    }

    #[test]
    fn hostile_c_is_read_in_linear_time() {
        read_all(
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
                "??/\n//*R\"(1'",
                "#define a a##a b \"c\"\nasm(a)",
            ],
        );
    }

    #[test]
    fn hostile_python_is_read_in_linear_time() {
        read_all(
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
                "class a(a):\n def a(self):\n",
                "f\"{",
                "f'{a:{",
                "unittest.",
                "a[",
                "sys.exit(",
                "\"_exit\" ",
            ],
        );
    }
}
