//! No file is so long that nobody reads it whole.

use super::super::rule::{Report, Rule};
use super::super::workspace::Workspace;

/// The most lines a file may have before its tests.
const MAX_LINES: usize = 1_000;

/// Counts the lines up to the first `#[cfg(test)]`.
pub(in super::super) struct FileLength;

impl Rule for FileLength {
    fn name(&self) -> &'static str {
        "file-length"
    }

    fn check(&self, workspace: &Workspace, report: &mut Report<'_>) {
        for file in workspace.rust_files() {
            let lines = file
                .text
                .lines()
                .take_while(|line| !line.trim_start().starts_with("#[cfg(test)]"))
                .count();
            if lines > MAX_LINES {
                let message =
                    format!("{lines} lines without the tests; split it below {MAX_LINES}");
                report(&file.path, MAX_LINES + 1, message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rule_findings;
    use super::super::super::workspace::Package;
    use super::*;

    #[test]
    fn only_lines_before_the_tests_count() {
        let long = "//! a\n".repeat(MAX_LINES + 1);
        let tested = format!(
            "{}#[cfg(test)]\nmod tests {{}}\n{}",
            "//! a\n".repeat(MAX_LINES),
            "\n".repeat(500)
        );
        let files = [
            ("crates/a/src/lib.rs", long.as_str()),
            ("crates/b/src/lib.rs", tested.as_str()),
        ];
        let packages = vec![Package::sample("crucible-a"), Package::sample("crucible-b")];
        let findings = rule_findings(&FileLength, &Workspace::from_files(&files, packages));
        assert_eq!(
            findings,
            ["crates/a/src/lib.rs:1001: 1001 lines without the tests; split it below 1000"]
        );
    }
}
