//! Names of tests that are the same in every run.

use std::collections::BTreeMap;

use crate::results::{TestResults, TestStatus};
use crate::text::visible;

/// The longest name of a test, in characters.
const MAX_NAME: usize = 1_000;

/// Adds a test under a name that is the same in every run.
pub(in crate::runner) fn add(results: &mut TestResults, name: &str, status: TestStatus) {
    let name = stable(name);
    if !name.is_empty() {
        results.add(name, status);
    }
}

/// How many tests of the same name are numbered; the others count with the last of them.
const MAX_SAME: usize = 100;

/// Adds tests in the order in which they ran. Those of the same name are numbered, so that one that turns red cannot hide
/// behind another.
pub(in crate::runner) struct Numbered {
    results: TestResults,
    seen: BTreeMap<String, usize>,
}

impl Numbered {
    pub(in crate::runner) fn new(results: TestResults) -> Self {
        Self {
            results,
            seen: BTreeMap::new(),
        }
    }

    pub(in crate::runner) fn add(&mut self, name: &str, status: TestStatus) {
        let name = stable(name);
        if name.is_empty() {
            return;
        }
        let count = self.seen.entry(name.clone()).or_default();
        *count = (*count + 1).min(MAX_SAME);
        let name = match count {
            1 => name,
            count => format!("{name} #{count}"),
        };
        self.results.add(name, status);
    }

    pub(in crate::runner) fn into_results(self) -> TestResults {
        self.results
    }
}

/// Decimal places of a number that was measured: no author of a test writes so many.
const MEASURED: usize = 7;

/// Returns a name on one line without varying parts: memory addresses become `0x`, and measured numbers `0.0`.
fn stable(name: &str) -> String {
    let line: String = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = visible(&line);
    let mut normalized = String::with_capacity(line.len());
    let mut rest = line.as_str();
    while let Some((before, behind)) = rest.split_once("0x") {
        let digits = behind.bytes().take_while(u8::is_ascii_hexdigit).count();
        normalized.push_str(before);
        normalized.push_str("0x");
        // Shorter numbers are parameters of tests.
        rest = if digits >= 8 {
            behind.get(digits..).unwrap_or_default()
        } else {
            behind
        };
    }
    normalized.push_str(rest);
    let normalized = without_measured(&normalized);
    match normalized.char_indices().nth(MAX_NAME) {
        Some((end, _)) => normalized[..end].to_owned(),
        None => normalized,
    }
}

/// Replaces decimal numbers with many places, such as a duration in a name.
fn without_measured(name: &str) -> String {
    let mut normalized = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, behind)) = rest.split_once('.') {
        let places = behind.bytes().take_while(u8::is_ascii_digit).count();
        let full_text = before.trim_end_matches(|c: char| c.is_ascii_digit());
        if places >= MEASURED && full_text.len() < before.len() {
            normalized.push_str(full_text);
            normalized.push_str("0.0");
            rest = behind.get(places..).unwrap_or_default();
        } else {
            normalized.push_str(before);
            normalized.push('.');
            rest = behind;
        }
    }
    normalized.push_str(rest);
    normalized
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
        assert_eq!(
            stable("chars=15 ms=0.3050430000000688 of 1.5 s, a.1234567 v1.2.3 0.123456"),
            "chars=15 ms=0.0 of 1.5 s, a.1234567 v1.2.3 0.123456"
        );
        assert_eq!(stable("\u{1b}[31mred\u{1b}[0m\u{7}"), "red");
        assert_eq!(stable(&"é".repeat(2_000)).chars().count(), MAX_NAME);
    }
}
