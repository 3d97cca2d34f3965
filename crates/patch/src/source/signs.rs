//! What a source says of itself as a part of a program that tests: whether it holds the entry point, and whether it asserts.
//!
//! A test program of a compiled language is distinguished from the product by its text alone. An assertion is known by the name of what is called; a
//! plain `assert` also stands in products, so it says less than a call that has no other use than to test. Test code inside a file of
//! Rust does not count here: it is kept by the judge of patches.

use std::collections::BTreeSet;

use crucible_model::RepoPath;

use super::mask::mask;
use super::token::{Token, tokens};
use super::{Language, definitions, rust_tests};

/// What a source says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceSigns {
    /// Whether it defines `main`.
    pub has_main: bool,
    /// How clearly it asserts.
    pub asserts: Asserts,
}

/// How clearly a source asserts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asserts {
    /// Not at all.
    No,
    /// As a product may, too: plain assertions, or helpers whose names only sound so.
    Plain,
    /// As only tests do.
    Clearly,
}

/// The words that names of assertions begin with.
const WORDS: [&str; 5] = ["assert", "check", "expect", "fail", "require"];
/// Assertions that products use as well.
const OF_PRODUCTS: [&str; 7] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "static_assert",
];

/// Returns what a source of a compiled language says of itself.
#[must_use]
pub fn source_signs(path: &RepoPath, source: &[u8]) -> SourceSigns {
    let language = Language::from_path(path).unwrap_or(Language::C);
    let masked = mask(language, source);
    let tokens = tokens(&masked);
    let tests = if language == Language::Rust {
        rust_tests::ranges(&tokens)
    } else {
        Vec::new()
    };
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.is(text));
    let defined: BTreeSet<String> = definitions(language, source)
        .into_keys()
        .map(|definition| definition.name)
        .collect();
    let has_main = defined.contains("main")
        // In a class, or with the types of its parameters behind them.
        || (0..tokens.len()).any(|at| {
            let before = at.checked_sub(1).is_some_and(|before| is(before, "void") || is(before, "int"));
            before && is(at, "main") && is(at + 1, "(")
        });
    let mut asserts = Asserts::No;
    for (at, token) in tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.is_word())
    {
        let is_call = is(at + 1, "(") || language == Language::Rust && is(at + 1, "!");
        if !is_call || tests.iter().any(|range| range.contains(&at)) {
            continue;
        }
        let name = token.name();
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        asserts = asserts.max(match of_name(&name) {
            Asserts::Clearly if is_lower(&name) => match before {
                // The helper itself, in the file that defines it.
                Some(kind) if kind.is("void") => Asserts::Plain,
                Some(kind) if kind.is_word() && !kind.is("else") && !kind.is("do") => Asserts::No,
                // A value that goes on elsewhere is what a product asks for.
                Some(mark) if !is_end(mark) => Asserts::Plain,
                _ => Asserts::Clearly,
            },
            found => found,
        });
    }
    SourceSigns { has_main, asserts }
}

/// Returns whether a file defines macros or functions whose names say that they assert.
#[must_use]
pub fn defines_assertions(path: &RepoPath, source: &[u8]) -> bool {
    let language = Language::from_path(path).unwrap_or(Language::C);
    definitions(language, source)
        .keys()
        .any(|definition| of_name(&definition.name) == Asserts::Clearly)
}

fn is_lower(name: &str) -> bool {
    !name.bytes().any(|byte| byte.is_ascii_uppercase())
        || name.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Whether a statement begins behind this token.
fn is_end(token: &Token<'_>) -> bool {
    [";", "{", "}", ")", "else", "do", ":"]
        .iter()
        .any(|mark| token.is(mark))
}

/// What the name of something that is called says.
fn of_name(name: &str) -> Asserts {
    if OF_PRODUCTS.contains(&name) {
        return if name.starts_with("static") {
            Asserts::No
        } else {
            Asserts::Plain
        };
    }
    let name = name.trim_start_matches('_');
    let is_word = |part: &str| WORDS.contains(&part.to_ascii_lowercase().as_str());
    let mut parts = name.split('_').filter(|part| !part.is_empty());
    if !is_lower(name) {
        let is_test = |part: &str| part == "TEST" || part == "TESTS";
        return match parts.any(|part| is_word(part) || is_test(part)) {
            true => Asserts::Clearly,
            false => Asserts::No,
        };
    }
    // `assertEquals`: the first word ends where a capital begins.
    let first = parts.next().unwrap_or_default();
    let end = first
        .find(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit())
        .unwrap_or(first.len());
    let begins = is_word(&first[..end]);
    match begins || parts.any(|part| part == "assert") {
        true => Asserts::Clearly,
        false => Asserts::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(path: &str, source: &str) -> (bool, Asserts) {
        let signs = source_signs(&path.parse().unwrap(), source.as_bytes());
        (signs.has_main, signs.asserts)
    }

    #[test]
    fn entry_points_are_known_in_each_language() {
        for (path, source) in [
            ("a.c", "int main(void) { return 0; }"),
            (
                "a.c",
                "int main(argc, argv) int argc; char **argv; { return 0; }",
            ),
            ("a.cpp", "auto main() -> int {}"),
            ("a.rs", "fn main() {}"),
            ("a.go", "package main\nfunc main() {}"),
            (
                "A.java",
                "class A { public static void main(String[] args) {} }",
            ),
        ] {
            assert!(signs(path, source).0, "{source}");
        }
        for (path, source) in [
            (
                "a.c",
                "/* int main(void) {} */ int domain(int x) { return main_of(x); }",
            ),
            ("a.rs", "fn other() { let s = \"fn main() {}\"; }"),
            ("A.java", "class A { void run() { // void main(\n } }"),
        ] {
            assert!(!signs(path, source).0, "{source}");
        }
    }

    #[test]
    fn test_assertions_are_distinguished_from_product_assertions() {
        for source in [
            "TEST(Add, Works) { EXPECT_EQ(add(1, 1), 2); }",
            "void add_works(void) { check_equal(add(1, 1), 2); }",
            "void add_works(void) { if (x) check(add(1, 1) == 2); }",
            "static void t(void) { mu_assert(add(1, 1) == 2); BOOST_CHECK(1); }",
            "void t() { assertEquals(2, add(1, 1)); }",
            "void t() { fail(\"no\"); }",
        ] {
            assert_eq!(signs("a.cpp", source).1, Asserts::Clearly, "{source}");
        }
        for source in [
            "int add(int *p) { assert(p != 0); return *p; }",
            "int all(void) { return check_one() + check_two(); }",
            "void check_equal(int a, int b) { if (a != b) failures++; }",
        ] {
            assert_eq!(signs("a.c", source).1, Asserts::Plain, "{source}");
        }
        for source in [
            "int checksum(int a) { return a; } int f(void) { checkout(); failover(); return checksum(1); }",
            "bool check_password(const char *p) { return *p; }",
            "static_assert(1, \"x\"); #define SIZE(x) x\nint a = SIZE(1);",
            "// check(1);\nconst char *s = \"ASSERT(1)\";",
            "int f(void) { LATEST(1); CHECKSUM(2); return 0; }",
        ] {
            assert_eq!(signs("a.c", source).1, Asserts::No, "{source}");
        }
        let rust = "pub fn f(x: u8) { assert!(x > 1); }\n#[test]\nfn t() { check(1); }\n";
        assert_eq!(signs("a.rs", rust).1, Asserts::Plain);
        assert_eq!(
            signs("a.rs", "fn main() { check!(f(1)); expect_two(2); }").1,
            Asserts::Clearly
        );
    }

    #[test]
    fn definitions_of_assertions_are_found() {
        let defines = |source: &str| defines_assertions(&"a.h".parse().unwrap(), source.as_bytes());
        assert!(defines(
            "#define CHECK(x) do { if (!(x)) exit(1); } while (0)\n"
        ));
        assert!(defines(
            "static void expect_int(int a, int b) { if (a != b) abort(); }\n"
        ));
        assert!(!defines("#define MAX(a) a\nint add(int a);\n"));
    }
}
