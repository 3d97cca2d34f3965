//! No lint is silenced, no test is skipped, and every crate takes the workspace's lints.
//!
//! `expect(lint, reason = "…")` is the only way to make an exception: it says why, and it fails when
//! it is no longer needed.

use super::super::rule::{Report, Rule};
use super::super::source::{self, Attribute};
use super::super::workspace::SourceFile;
use super::super::workspace::Workspace;

/// Looks at every attribute, of tests too.
pub(in super::super) struct Lints;

impl Rule for Lints {
    fn name(&self) -> &'static str {
        "lints"
    }

    fn check(&self, workspace: &Workspace, report: &mut Report<'_>) {
        for file in workspace.rust_files() {
            check_source(file, report);
        }
        for package in workspace.packages() {
            let manifest = package.manifest();
            let text = workspace
                .file(&manifest)
                .map_or("", |file| file.text.as_str());
            if !text.contains("[lints]\nworkspace = true\n") {
                report(
                    &manifest,
                    1,
                    "takes its own lints: add `[lints]` with `workspace = true`".to_owned(),
                );
            }
        }
        if let Some(file) = workspace.file("Cargo.toml") {
            for (at, line) in file.text.lines().enumerate() {
                if line.contains("\"allow\"") {
                    report(
                        "Cargo.toml",
                        at + 1,
                        "a workspace lint is set to allow: leave it out instead".to_owned(),
                    );
                }
            }
        }
    }
}

fn check_source(file: &SourceFile, report: &mut Report<'_>) {
    for (at, line) in file.text.lines().enumerate() {
        let line = line.trim_start();
        let doc = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"))
            .unwrap_or_default();
        if doc
            .trim_start()
            .strip_prefix("```")
            .is_some_and(|info| info.contains("ignore"))
        {
            report(
                &file.path,
                at + 1,
                "an example that never runs: make it run, or `text`".to_owned(),
            );
        }
    }
    let Ok(parsed) = file.parsed() else { return };
    for attribute in source::attributes(&parsed.tokens) {
        let line = attribute.line;
        if calls(&attribute, "allow").is_some() {
            let message =
                "`allow` silences a lint: use `expect(lint, reason = \"…\")`, or better, fix it";
            report(&file.path, line, message.to_owned());
        }
        if calls(&attribute, "expect").is_some_and(|gives_reason| !gives_reason) {
            report(
                &file.path,
                line,
                "`expect` without `reason = \"…\"`".to_owned(),
            );
        }
        if has_word(&attribute, "ignore") {
            report(
                &file.path,
                line,
                "an ignored test proves nothing: make it run or delete it".to_owned(),
            );
        }
    }
}

/// Whether the attribute is `name(…)`, also inside `cfg_attr`; and if so, whether it gives a reason.
fn calls(attribute: &Attribute, name: &str) -> Option<bool> {
    let tokens = &attribute.tokens;
    let start = (0..tokens.len()).find(|at| {
        (*at == 0 || is_conditional(attribute))
            && tokens.get(*at).is_some_and(|token| token.is(name))
            && tokens.get(at + 1).is_some_and(|token| token.is("("))
    })?;
    let end = source::closing(tokens, start + 1);
    Some(
        tokens
            .get(start..end)
            .unwrap_or_default()
            .iter()
            .any(|token| token.is("reason")),
    )
}

fn has_word(attribute: &Attribute, word: &str) -> bool {
    let mut words = attribute.tokens.iter();
    if is_conditional(attribute) {
        words.any(|token| token.is(word))
    } else {
        words.next().is_some_and(|token| token.is(word))
    }
}

fn is_conditional(attribute: &Attribute) -> bool {
    attribute
        .tokens
        .first()
        .is_some_and(|token| token.is("cfg_attr"))
}

#[cfg(test)]
mod tests {
    use super::super::super::rule_findings;
    use super::super::super::workspace::Package;
    use super::*;

    const MANIFEST: (&str, &str) = (
        "crates/a/Cargo.toml",
        "[package]\n\n[lints]\nworkspace = true\n",
    );

    fn findings_of(code: &str) -> Vec<String> {
        let files = [("crates/a/src/lib.rs", code), MANIFEST];
        rule_findings(
            &Lints,
            &Workspace::from_files(&files, vec![Package::sample("crucible-a")]),
        )
    }

    #[test]
    fn silenced_lints_are_named() {
        for code in [
            "#![allow(dead_code)]",
            "#[allow(clippy::unwrap_used, reason = \"no\")] fn f() {}",
            "#[cfg_attr(unix, allow(dead_code))] fn f() {}",
            "fn f() { let _ = { #[allow(unused)] 1 }; }",
            "#[expect(dead_code)] fn f() {}",
            "#[cfg(test)] mod tests { #[test] #[ignore] fn f() {} }",
            "#[cfg(test)] mod tests { #[test] #[ignore = \"slow\"] fn f() {} }",
            "#[cfg_attr(unix, ignore)] fn f() {}",
            "/// ```ignore\n/// f()\n/// ```\nfn f() {}",
        ] {
            assert_eq!(findings_of(code).len(), 1, "{code}");
        }
    }

    #[test]
    fn reasons_comments_and_other_attributes_are_fine() {
        for code in [
            "#[expect(dead_code, reason = \"the format has it\")] fn f() {}",
            "// #[allow(dead_code)]\nfn f() -> &'static str { \"#[ignore]\" }",
            "#[arg(allow(x), long)] struct A;",
            "#[serde(rename = \"ignore\")] struct A;",
        ] {
            assert_eq!(findings_of(code), [""; 0], "{code}");
        }
    }

    #[test]
    fn a_crate_with_its_own_lints_is_named() {
        let files = [
            ("crates/a/Cargo.toml", "[package]\n"),
            (
                "Cargo.toml",
                "[workspace.lints.rust]\ndead_code = \"allow\"\n",
            ),
        ];
        let findings = rule_findings(
            &Lints,
            &Workspace::from_files(&files, vec![Package::sample("crucible-a")]),
        );
        assert_eq!(findings.len(), 2);
        assert!(findings[0].starts_with("Cargo.toml:2: "));
        assert!(findings[1].starts_with("crates/a/Cargo.toml:1: "));
    }
}
