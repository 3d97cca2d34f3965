//! Every source file opens with what it owns, how it works and what always holds.

use super::super::rule::{Report, Rule};
use super::super::workspace::Workspace;

/// Files under `src` begin with a `//!` comment.
pub(in super::super) struct ModuleDocs;

impl Rule for ModuleDocs {
    fn name(&self) -> &'static str {
        "module-docs"
    }

    fn check(&self, workspace: &Workspace, report: &mut Report<'_>) {
        for file in workspace.rust_files() {
            let in_source = workspace
                .package_of(file)
                .is_some_and(|package| package.holds_source(&file.path));
            let opening = file.text.lines().next().unwrap_or_default();
            let says_something = opening
                .strip_prefix("//!")
                .is_some_and(|words| !words.trim().is_empty());
            if in_source && !says_something {
                report(
                    &file.path,
                    1,
                    "the first line is no `//!` comment that says what this file owns".to_owned(),
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
    fn a_file_without_an_opening_comment_is_named() {
        let files = [
            (
                "crates/a/src/lib.rs",
                "//! Owns a.\nmod bare;\nmod empty;\n",
            ),
            ("crates/a/src/bare.rs", "// not a doc comment\nfn f() {}\n"),
            ("crates/a/src/empty.rs", "//!\nfn f() {}\n"),
            ("crates/a/tests/whole.rs", "fn outside_src() {}\n"),
        ];
        let workspace = Workspace::from_files(&files, vec![Package::sample("crucible-a")]);
        let findings = rule_findings(&ModuleDocs, &workspace);
        assert_eq!(findings.len(), 2);
        assert!(findings[0].starts_with("crates/a/src/bare.rs:1: "));
        assert!(findings[1].starts_with("crates/a/src/empty.rs:1: "));
    }
}
