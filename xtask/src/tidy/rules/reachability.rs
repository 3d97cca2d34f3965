//! Every source file is compiled, and reads as Rust.

use super::super::rule::{Report, Rule};
use super::super::workspace::Workspace;

/// Files under `src` are reached by `mod` from a crate root.
pub(in super::super) struct Reachability;

impl Rule for Reachability {
    fn name(&self) -> &'static str {
        "modules"
    }

    fn check(&self, workspace: &Workspace, report: &mut Report<'_>) {
        for file in workspace.rust_files() {
            if let Err(problem) = file.parsed() {
                report(
                    &file.path,
                    problem.line,
                    format!("does not parse: {}", problem.message),
                );
            }
            if workspace.reach(file).is_none() {
                report(
                    &file.path,
                    1,
                    "no `mod` reaches this file: declare it or delete it".to_owned(),
                );
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
    fn stray_and_broken_files_are_named() {
        let files = [
            ("crates/a/src/lib.rs", "mod broken;"),
            ("crates/a/src/broken.rs", "\nfn ("),
            ("crates/a/src/stray.rs", ""),
        ];
        let findings = rule_findings(
            &Reachability,
            &Workspace::from_files(&files, vec![Package::sample("crucible-a")]),
        );
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].starts_with("crates/a/src/broken.rs:2: does not parse"));
        assert!(findings[1].starts_with("crates/a/src/stray.rs:1: no `mod` reaches"));
    }

    #[test]
    fn declared_files_and_fixtures_of_tests_are_fine() {
        let files = [
            ("crates/a/src/lib.rs", "mod one;"),
            ("crates/a/src/one.rs", ""),
            ("crates/a/tests/fixtures/broken.rs", "fn ("),
        ];
        assert_eq!(
            rule_findings(
                &Reachability,
                &Workspace::from_files(&files, vec![Package::sample("crucible-a")])
            ),
            [""; 0]
        );
    }
}
