//! The notation by which a requirement names its tests.
//!
//! A line of its own, possibly as a list item: `Test: NAME in PATH`. NAME is what the test's runner reports, and PATH is the
//! file that defines the test. Without ` in PATH`, NAME begins with the path and `::`, as pytest reports tests.

use std::fmt;
use std::str::FromStr;

use crucible_model::{RepoPath, RepoPathError, is_hidden};
use serde::{Deserialize, Serialize};

/// The most tests of one requirement.
pub const MAX_TESTS: usize = 50;
/// The longest name in bytes; verify reports cut longer ones.
const MAX_NAME: usize = 400;
/// What begins the line.
const MARK: &str = "Test:";
/// What divides the name from the path.
const IN: &str = " in ";

/// A test by the name that its runner reports, and the file that defines it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedTest {
    /// The name, exactly as verify reports have it.
    pub name: String,
    /// The path of its file in the repository.
    pub file: RepoPath,
}

/// A line does not name a test.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamedTestError {
    /// It has no name.
    #[error("no test is named; write `Test: NAME in PATH`")]
    Empty,
    /// The name is too long.
    #[error("the name has more than {MAX_NAME} bytes")]
    TooLong,
    /// It contains characters that no reader sees.
    #[error("it contains an invisible character or a direction mark")]
    Hidden,
    /// It has no path.
    #[error("the test has no file; write `Test: NAME in PATH`, or `Test: PATH::NAME`")]
    NoFile,
    /// The path is not one of a repository.
    #[error("the path {path:?} is invalid: {error}")]
    Path {
        /// The path as written.
        path: String,
        /// What is wrong.
        error: RepoPathError,
    },
}

impl NamedTest {
    /// Returns whether a file's content mentions the test by the last part of its name, as a whole word: all that is known of a
    /// file in a language whose definitions are not read.
    ///
    /// The part follows the last `::`, ` > ` or `.`. Parameters in brackets and the names of subtests after `/` are
    /// ignored, because code makes them.
    #[must_use]
    pub fn is_in(&self, content: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(content) else {
            return false;
        };
        let word = self.last_part();
        if word.is_empty() {
            return false;
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let ends = |at: usize| {
            let before = text.get(..at).and_then(|text| text.chars().next_back());
            let after = text
                .get(at + word.len()..)
                .and_then(|text| text.chars().next());
            let continues_before = before.is_some_and(is_word) && word.starts_with(is_word);
            let continues_after = after.is_some_and(is_word) && word.ends_with(is_word);
            !continues_before && !continues_after
        };
        text.match_indices(word).any(|(at, _)| ends(at))
    }

    /// The part of the name by which its file defines it.
    fn last_part(&self) -> &str {
        let name = self.name.split('[').next().unwrap_or_default().trim_end();
        if let Some((_, title)) = name.rsplit_once(" > ") {
            return title;
        }
        let part = name.rsplit("::").next().unwrap_or(name);
        // A title has spaces, and may have dots and slashes.
        if part.contains(' ') {
            return part;
        }
        let part = part.split('/').next_back().map_or(part, |last| {
            // `TestArea/with_zero` is a subtest, `tests/area_test.sh` a file.
            let first = part.split('/').next().unwrap_or(part);
            if first.contains("Test") && !last.contains('.') {
                first
            } else {
                last
            }
        });
        let is_file = self.file.file_name() == part;
        match part.rsplit_once('.') {
            Some((_, last)) if !is_file => last,
            _ => part,
        }
    }
}

impl FromStr for NamedTest {
    type Err = NamedTestError;

    /// Parses the text after `Test:`.
    fn from_str(text: &str) -> Result<Self, NamedTestError> {
        let text = text.trim();
        if text.chars().any(is_hidden) {
            return Err(NamedTestError::Hidden);
        }
        let (name, path) = match text.rsplit_once(IN) {
            Some((name, path)) => (unquoted(name), unquoted(path)),
            None => {
                let name = unquoted(text);
                let path = name.split_once("::").map(|(path, _)| path);
                match path {
                    Some(path) => (name, path),
                    None if name.is_empty() => return Err(NamedTestError::Empty),
                    None => return Err(NamedTestError::NoFile),
                }
            }
        };
        if name.is_empty() {
            return Err(NamedTestError::Empty);
        }
        if name.len() > MAX_NAME {
            return Err(NamedTestError::TooLong);
        }
        let file = path.parse().map_err(|error| NamedTestError::Path {
            path: path.to_owned(),
            error,
        })?;
        Ok(Self {
            name: name.to_owned(),
            file,
        })
    }
}

impl fmt::Display for NamedTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = self.name.split_once("::").map(|(path, _)| path);
        if prefix == Some(self.file.as_str()) && !self.name.contains(IN) {
            f.write_str(&self.name)
        } else {
            write!(f, "{}{IN}{}", self.name, self.file)
        }
    }
}

/// The tests that a text names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedTests {
    /// The tests, in the order of their lines, each once.
    pub tests: Vec<NamedTest>,
    /// Lines that begin like one that names a test and do not name one, with the reason.
    pub faults: Vec<(String, NamedTestError)>,
}

/// Returns the tests that these lines name. The caller leaves out code blocks.
#[must_use]
pub fn named_tests<'a>(lines: impl IntoIterator<Item = &'a str>) -> NamedTests {
    let mut found = NamedTests::default();
    for line in lines {
        let Some(text) = test_line(line) else {
            continue;
        };
        match text.parse::<NamedTest>() {
            Ok(test) if found.tests.contains(&test) => {}
            Ok(test) => found.tests.push(test),
            Err(error) => found.faults.push((line.trim().to_owned(), error)),
        }
    }
    found
}

/// Returns the lines that name no test.
pub fn without_tests<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    lines
        .into_iter()
        .filter(|line| test_line(line).is_none())
        .collect()
}

/// The text after `Test:`, if the line begins so, possibly as a list item.
fn test_line(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let item = ["- ", "* ", "+ "]
        .into_iter()
        .find_map(|mark| line.strip_prefix(mark));
    item.unwrap_or(line).trim_start().strip_prefix(MARK)
}

/// Removes one pair of backticks.
fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inner = text
        .strip_prefix('`')
        .and_then(|rest| rest.strip_suffix('`'));
    inner.unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<(String, String), NamedTestError> {
        let test: NamedTest = text.parse()?;
        Ok((test.name, test.file.to_string()))
    }

    #[test]
    fn test_is_named_with_its_file() {
        for (text, name, file) in [
            (
                "tests/test_a.py::test_b",
                "tests/test_a.py::test_b",
                "tests/test_a.py",
            ),
            (
                " `tests/test_a.py::A::test_b` ",
                "tests/test_a.py::A::test_b",
                "tests/test_a.py",
            ),
            (
                "it::area::is_wide in tests/it.rs",
                "it::area::is_wide",
                "tests/it.rs",
            ),
            (
                "`a > works in time` in `a.test.mjs`",
                "a > works in time",
                "a.test.mjs",
            ),
            (
                "tests/area_test.sh in tests/area_test.sh",
                "tests/area_test.sh",
                "tests/area_test.sh",
            ),
        ] {
            assert_eq!(
                parse(text),
                Ok((name.to_owned(), file.to_owned())),
                "{text}"
            );
        }
    }

    #[test]
    fn malformed_name_is_refused_with_reason() {
        for (text, error) in [
            ("", NamedTestError::Empty),
            ("``", NamedTestError::Empty),
            (" in a.py", NamedTestError::NoFile),
            ("that the lamp is on", NamedTestError::NoFile),
            ("test_b", NamedTestError::NoFile),
            ("a::b\u{202e}", NamedTestError::Hidden),
            ("a\u{200b} in b", NamedTestError::Hidden),
        ] {
            assert_eq!(parse(text), Err(error), "{text}");
        }
        assert_eq!(
            parse(&format!("{} in a", "x".repeat(MAX_NAME + 1))),
            Err(NamedTestError::TooLong)
        );
        for path in ["../a.py", "/etc/passwd", ".git/config", "a//b"] {
            let parsed = parse(&format!("x in {path}"));
            assert!(matches!(parsed, Err(NamedTestError::Path { .. })), "{path}");
        }
    }

    #[test]
    fn lines_are_read_and_faults_reported() {
        let lines = [
            "text",
            "- Test: a.py::b",
            "  * Test: a.py::b",
            "Test: nothing",
            "Tests: x",
        ];
        let found = named_tests(lines);
        assert_eq!(found.tests.len(), 1);
        assert_eq!(
            found.faults,
            [("Test: nothing".to_owned(), NamedTestError::NoFile)]
        );
        assert_eq!(without_tests(lines), ["text", "Tests: x"]);
    }

    #[test]
    fn test_name_matches_whole_words_in_file() {
        for (test, content, expected) in [
            ("t.py::test_b", "def test_b():", true),
            ("t.py::test_b", "def test_bc():", false),
            ("t.py::test_b", "def a_test_b():", false),
            ("t.py::A::test_b[1-2]", "def test_b(a):", true),
            ("t.A.test_b in t.py", "def test_b(a):", true),
            ("it::m::wide in it.rs", "fn wide() {", true),
            (
                "p.TestArea/zero in a_test.go",
                "func TestArea(t *testing.T)",
                true,
            ),
            ("a > adds 1.5 in a.mjs", "test(\"adds 1.5\", f)", true),
            ("a > adds 1.5 in a.mjs", "test(\"adds 1.55\", f)", false),
            ("tests/a.sh in tests/a.sh", "a.sh", true),
            ("t.py:: in t.py", "anything", false),
        ] {
            let named: NamedTest = test.parse().unwrap();
            assert_eq!(named.is_in(content.as_bytes()), expected, "{test}");
        }
        let named: NamedTest = "t.py::test_b".parse().unwrap();
        assert!(!named.is_in(b"\xff test_b"));
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn name_that_is_read_is_written_the_same(name in "[a-z:.> ]{1,30}", path in "[a-z]{1,5}/[a-z]{1,5}") {
                if let Ok(test) = format!("{name} in {path}").parse::<NamedTest>() {
                    prop_assert_eq!(test.to_string().parse::<NamedTest>().unwrap(), test);
                }
            }

            #[test]
            fn any_line_is_read_without_panic(line in "\\PC{0,80}") {
                let found = named_tests([line.as_str(), &format!("Test: {line}")]);
                for test in found.tests {
                    let _ = test.is_in(line.as_bytes());
                }
            }
        }
    }
}
