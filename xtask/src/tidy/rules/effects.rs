//! Who may act on the world: only `terminal` prints and exits, only `sandbox` starts processes.
//!
//! Clippy enforces most of this; this rule also sees macros, and who lifts clippy's ban with an
//! `expect` attribute: product code may do that in `host` (files, environment, time) and `sandbox`
//! (processes) alone. The tooling in `xtask` is free.

use super::super::rule::{Report, Rule};
use super::super::source::{self, Kind, Token};
use super::super::workspace::Workspace;

const PRINTERS: &[&str] = &["print", "println", "eprint", "eprintln"];

/// Effects stay in the crates that own them.
pub(in super::super) struct Effects;

impl Rule for Effects {
    fn name(&self) -> &'static str {
        "effects"
    }

    fn check(&self, workspace: &Workspace, report: &mut Report<'_>) {
        for (package, file, parsed) in workspace.product_code() {
            let owner = package.short_name();
            if owner == "xtask" || file.path == format!("{}/build.rs", package.folder) {
                continue;
            }
            let tokens = &parsed.product;
            if owner != "terminal" {
                for (line, name) in printers(tokens) {
                    report(
                        &file.path,
                        line,
                        format!("`{name}!`: only terminal prints; return a value instead"),
                    );
                }
            }
            for path in source::paths(tokens) {
                if owner != "terminal" && path.ends_with(&["process", "exit"]) {
                    report(
                        &file.path,
                        path.line,
                        format!("`{path}`: only terminal ends the program"),
                    );
                }
                if owner != "sandbox"
                    && path.ends_with(&["Command", "new"])
                    && !path.starts_with(&["clap"])
                {
                    report(
                        &file.path,
                        path.line,
                        format!("`{path}`: only sandbox starts processes"),
                    );
                }
            }
            if !matches!(owner, "host" | "sandbox") {
                for attribute in source::attributes(tokens) {
                    if attribute
                        .tokens
                        .iter()
                        .any(|token| token.is("disallowed_methods"))
                    {
                        let message =
                            "lifts the ban on disallowed methods: call host or sandbox instead";
                        report(&file.path, attribute.line, message.to_owned());
                    }
                }
            }
        }
    }
}

fn printers(tokens: &[Token]) -> impl Iterator<Item = (usize, &str)> {
    tokens.windows(3).filter_map(|three| match three {
        [name, bang, open]
            if name.kind == Kind::Ident
                && PRINTERS.contains(&name.text.as_str())
                && bang.is("!")
                && open.kind == Kind::Open =>
        {
            Some((name.line, name.text.as_str()))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::rule_findings;
    use super::super::super::workspace::Package;
    use super::*;

    fn findings_of(package: &str, code: &str) -> Vec<String> {
        let package = Package::sample(package);
        let path = package.targets[0].path.clone();
        rule_findings(
            &Effects,
            &Workspace::from_files(&[(&path, code)], vec![package]),
        )
    }

    #[test]
    fn library_that_prints_exits_or_spawns_is_named() {
        assert_eq!(
            findings_of(
                "crucible-a",
                "fn f() {\n println!(\"x\");\n std::process::exit(1);\n Command::new(\"ls\");\n}"
            ),
            [
                "crates/a/src/lib.rs:2: `println!`: only terminal prints; return a value instead",
                "crates/a/src/lib.rs:3: `std::process::exit`: only terminal ends the program",
                "crates/a/src/lib.rs:4: `Command::new`: only sandbox starts processes",
            ]
        );
        assert_eq!(
            findings_of(
                "crucible-host",
                "fn f() { tokio::process::Command::new(\"ls\"); }"
            )
            .len(),
            1
        );
        assert_eq!(
            findings_of("crucible", "fn f() { std::process::Command::new(\"ls\"); }").len(),
            1
        );
    }

    #[test]
    fn crate_lifting_the_ban_is_named() {
        let code = "#[expect(clippy::disallowed_methods, reason = \"quick\")] fn f() {}";
        assert_eq!(findings_of("crucible-run", code).len(), 1);
        assert_eq!(findings_of("crucible-host", code), [""; 0]);
    }

    #[test]
    fn owners_tests_and_argument_parsers_are_free() {
        assert_eq!(
            findings_of("crucible-sandbox", "fn f() { Command::new(\"ls\"); }"),
            [""; 0]
        );
        assert_eq!(
            findings_of(
                "crucible-terminal",
                "fn f() { println!(\"x\"); std::process::exit(1); }"
            ),
            [""; 0]
        );
        assert_eq!(
            findings_of("crucible", "fn f() { clap::Command::new(\"x\"); }"),
            [""; 0]
        );
        assert_eq!(
            findings_of(
                "crucible-a",
                "#[cfg(test)] mod tests { fn f() { println!(\"x\"); } }"
            ),
            [""; 0]
        );
        assert_eq!(
            findings_of("crucible-testkit", "fn f() { Command::new(\"git\"); }"),
            [""; 0]
        );
        assert_eq!(
            findings_of("xtask", "fn f() { println!(\"x\"); Command::new(\"ls\"); }"),
            [""; 0]
        );
    }
}
