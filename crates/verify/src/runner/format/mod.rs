//! Formats in which runners report test by test, one file each.

mod automake;
mod gtest;
pub(super) mod jest_json;
pub(super) mod junit;
pub(super) mod libtest;
pub(super) mod tap;
pub(super) mod trx;
pub(super) mod xml;

use super::{CommandOutput, nextest, unittest};
use crate::results::{TestResults, TestStatus};
use crate::text::visible;

/// The longest name of a test, in characters.
const MAX_NAME: usize = 1_000;

/// Parses the output of an unknown runner, for formats that are recognisable.
pub(super) fn any_stream(told: &CommandOutput<'_>) -> Option<TestResults> {
    let readers: [fn(&CommandOutput<'_>) -> TestResults; 6] = [
        nextest::read,
        libtest::read,
        unittest::read,
        gtest::read,
        automake::read,
        |told| tap::read(&told.stdout, told),
    ];
    readers
        .iter()
        .map(|read| read(told))
        .find(|results| !results.tests.is_empty())
}

/// Adds a test under a name that is the same in every run.
pub(super) fn add(results: &mut TestResults, name: &str, status: TestStatus) {
    let name = stable(name);
    if !name.is_empty() {
        results.add(name, status);
    }
}

/// Returns a name on one line without varying parts: memory addresses become `0x`.
fn stable(name: &str) -> String {
    let line: String = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = visible(&line);
    let mut kept = String::with_capacity(line.len());
    let mut rest = line.as_str();
    while let Some((before, behind)) = rest.split_once("0x") {
        let digits = behind.bytes().take_while(u8::is_ascii_hexdigit).count();
        kept.push_str(before);
        kept.push_str("0x");
        // Shorter numbers are parameters of tests.
        rest = if digits >= 8 {
            behind.get(digits..).unwrap_or_default()
        } else {
            behind
        };
    }
    kept.push_str(rest);
    match kept.char_indices().nth(MAX_NAME) {
        Some((end, _)) => kept[..end].to_owned(),
        None => kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_in_every_run() {
        assert_eq!(
            stable("t[<A object at 0x7f3a00aa1200>]\n  b"),
            "t[<A object at 0x>] b"
        );
        assert_eq!(
            stable("reads 0xff and 0x7fc7c991f0d0 0xé"),
            "reads 0xff and 0x 0xé"
        );
        assert_eq!(stable("\u{1b}[31mred\u{1b}[0m\u{7}"), "red");
        assert_eq!(stable(&"é".repeat(2_000)).chars().count(), MAX_NAME);
    }
}
