//! The examples in documentation that a test runner runs: in Rust fenced blocks in `///` and `//!` comments, in Python what follows
//! `>>>` in a string, with what it is expected to print.

use super::mask::mask;
use super::{Language, python};

/// How a block is fenced, and what it holds so far.
struct Open {
    fence: &'static str,
    runs: Runs,
    text: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Runs {
    Yes,
    No,
}

/// The text of every example that is run, in their order.
pub(crate) fn doctests(language: Language, source: &[u8]) -> Vec<Vec<u8>> {
    match language {
        Language::Rust => blocks(source),
        Language::Python => python::doctests(&mask(language, source), source),
        Language::Script | Language::Go | Language::C => Vec::new(),
    }
}

/// The blocks of Rust.
fn blocks(source: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut open: Option<Open> = None;
    for line in source.split(|byte| *byte == b'\n') {
        let Some(text) = comment(line) else {
            open = None;
            continue;
        };
        let trimmed = text.trim_ascii();
        match &mut open {
            None => {
                let fence = ["```", "~~~"]
                    .into_iter()
                    .find(|fence| trimmed.starts_with(fence.as_bytes()));
                open = fence.map(|fence| Open {
                    fence,
                    runs: runs(&trimmed[3..]),
                    text: Vec::new(),
                });
            }
            Some(block) if trimmed.starts_with(block.fence.as_bytes()) => {
                if block.runs == Runs::Yes {
                    found.push(std::mem::take(&mut block.text));
                }
                open = None;
            }
            Some(block) => {
                block.text.extend_from_slice(trimmed);
                block.text.push(b'\n');
            }
        }
    }
    found
}

/// Whether a changed line can be part of an example. In Python any can: what is expected stands by itself.
pub(crate) fn may_be_doctest(language: Language, line: &[u8]) -> bool {
    match language {
        Language::Rust => comment(line).is_some(),
        Language::Python => true,
        Language::Script | Language::Go | Language::C => false,
    }
}

fn comment(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_start();
    let text = line
        .strip_prefix(b"///")
        .or_else(|| line.strip_prefix(b"//!"))?;
    (!text.starts_with(b"/")).then_some(text)
}

/// What the words behind a fence say: an unknown one is a language, and then nothing runs.
fn runs(info: &[u8]) -> Runs {
    let mut words = info
        .split(|byte| matches!(byte, b',' | b' ' | b'{' | b'}'))
        .map(<[u8]>::trim_ascii);
    let is_known = words.all(|word| {
        matches!(
            word,
            b"" | b"rust"
                | b"should_panic"
                | b"compile_fail"
                | b"test_harness"
                | b"standalone_crate"
        ) || word.starts_with(b"edition")
            || word.first() == Some(&b'E') && word[1..].iter().all(u8::is_ascii_digit)
    });
    if is_known { Runs::Yes } else { Runs::No }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(source: &str) -> usize {
        doctests(Language::Rust, source.as_bytes()).len()
    }

    #[test]
    fn only_what_the_runner_runs_is_an_example() {
        for source in [
            "/// ```\n/// a();\n/// ```\nfn a() {}",
            "//! ```rust,should_panic\n//! a();\n//! ```\n",
            "    /// ~~~edition2021\n    /// a();\n    /// ~~~\n",
            "/// ```compile_fail,E0277\n/// a();\n/// ```",
        ] {
            assert_eq!(count(source), 1, "{source}");
        }
        for source in [
            "/// ```ignore\n/// a();\n/// ```",
            "/// ```no_run\n/// a();\n/// ```",
            "/// ```text\n/// a\n/// ```",
            "//// ```\n//// a();\n//// ```",
            "// ```\n// a();\n// ```",
            "/// ```\n/// a();\nfn a() {}\n/// ```",
        ] {
            assert_eq!(count(source), 0, "{source}");
        }
        assert_eq!(
            count("/// ```\n/// a();\n/// ```\n/// and\n/// ```\n/// b();\n/// ```"),
            2
        );
    }
}
