//! Walls on dependencies: some libraries belong to one crate, and the pure crates reach nothing outside.
//!
//! Dependencies of tests are free: a test may open the ledger's database by hand to damage it.

use super::super::rule::{Report, Rule};
use super::super::source::{self, Kind};
use super::super::workspace::Workspace;
use super::super::workspace::{Need, Package, Parsed, SourceFile};

/// A library and the crates whose product may depend on it.
const OWNERS: &[(&str, &[&str])] = &[
    ("askama", &["serve"]),
    ("axum", &["agents", "mcp", "serve", "testkit"]),
    ("clap", &["cli", "xtask"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("comfy-table", &["terminal", "xtask"]),
    ("gix-hash", &["repo"]),
    ("gix-object", &["repo"]),
    ("gix-pack", &["repo"]),
    ("gix-zlib", &["repo"]),
    ("hyper", &["serve"]),
    ("hyper-util", &["serve"]),
    ("indicatif", &["terminal"]),
    ("landlock", &["sandbox"]),
    ("miette", &["cli"]),
    ("prost", &["trace"]),
    ("process-wrap", &["sandbox"]),
    ("ratatui", &["tui"]),
    ("reqwest", &["host"]),
    ("rmcp", &["mcp"]),
    // The bench measures the ledger beside the bare database.
    ("rusqlite", &["ledger", "xtask"]),
    ("rusqlite_migration", &["ledger"]),
    ("rustls", &["host"]),
    ("seccompiler", &["sandbox"]),
    ("toml_edit", &["settings"]),
];

/// Crates that do no I/O and read neither clock nor environment.
const PURE: &[&str] = &["model", "secrets", "patch", "pack", "evidence"];

/// Libraries that exist to reach outside.
const OUTSIDE: &[&str] = &[
    "async-std",
    "cap-std",
    "fs-err",
    "getrandom",
    "ignore",
    "libc",
    "nix",
    "rand",
    "reqwest",
    "rusqlite",
    "rustix",
    "tempfile",
    "tokio",
    "ureq",
    "walkdir",
];

const OUTSIDE_MODULES: &[&str] = &["fs", "env", "net", "process"];

/// Each library with side effects is used by its owner only.
pub(in super::super) struct Dependencies;

impl Rule for Dependencies {
    fn name(&self) -> &'static str {
        "dependencies"
    }

    fn check(&self, workspace: &Workspace, report: &mut Report<'_>) {
        for package in workspace.packages() {
            check_dependencies(package, report);
        }
        for (package, file, parsed) in workspace.product_code() {
            if PURE.contains(&package.short_name()) {
                check_purity(package, file, parsed, report);
            }
        }
    }
}

fn check_dependencies(package: &Package, report: &mut Report<'_>) {
    let owner = package.short_name();
    for dependency in package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind == Need::Product)
    {
        let name = dependency.name.as_str();
        if let Some((_, owners)) = OWNERS.iter().find(|(library, _)| *library == name)
            && !owners.contains(&owner)
        {
            let message = format!(
                "`{owner}` depends on `{name}`, which belongs to {}",
                owners.join(", ")
            );
            report(&package.manifest(), 1, message);
        }
        if PURE.contains(&owner) && OUTSIDE.contains(&name) {
            let message =
                format!("`{owner}` is pure and depends on `{name}`, which reaches outside");
            report(&package.manifest(), 1, message);
        }
    }
}

fn check_purity(package: &Package, file: &SourceFile, parsed: &Parsed, report: &mut Report<'_>) {
    let owner = package.short_name();
    for path in source::paths(&parsed.product) {
        let second = path.segments.get(1).map(String::as_str).unwrap_or_default();
        let reaches_out = path.starts_with(&["std"]) && OUTSIDE_MODULES.contains(&second);
        let reads_clock = path.segments.len() > 1 && path.ends_with(&["now"]);
        if reaches_out || reads_clock {
            report(
                &file.path,
                path.line,
                format!("`{owner}` is pure and uses `{path}`: take the value as an argument"),
            );
        }
    }
    for token in &parsed.product {
        if token.kind == Kind::Ident && matches!(token.text.as_str(), "SystemTime" | "Instant") {
            let message = format!(
                "`{owner}` is pure and names `{}`: take an instant as an argument",
                token.text
            );
            report(&file.path, token.line, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rule_findings;
    use super::*;

    fn findings_of(package: Package, code: &str) -> Vec<String> {
        let path = package.targets[0].path.clone();
        rule_findings(
            &Dependencies,
            &Workspace::from_files(&[(&path, code)], vec![package]),
        )
    }

    #[test]
    fn library_in_forbidden_crate_is_reported() {
        let findings = findings_of(
            Package::sample("crucible-run")
                .needs("rusqlite")
                .needs("clap")
                .needs("serde"),
            "",
        );
        assert_eq!(
            findings,
            [
                "crates/run/Cargo.toml:1: `run` depends on `clap`, which belongs to cli, xtask",
                "crates/run/Cargo.toml:1: `run` depends on `rusqlite`, which belongs to ledger, xtask",
            ]
        );
    }

    #[test]
    fn a_pure_crate_that_reaches_outside_is_named() {
        assert_eq!(
            findings_of(Package::sample("crucible-pack").needs("tokio"), "").len(),
            1
        );
        for code in [
            "use std::{fmt, fs};",
            "fn f() { std::env::var(\"HOME\"); }",
            "use std::net::TcpStream;",
            "fn f() { ::std::process::id(); }",
            "use std::time::SystemTime;",
            "fn f(at: Instant) {}",
            "fn f() { jiff::Timestamp::now(); }",
        ] {
            assert_eq!(
                findings_of(Package::sample("crucible-model"), code).len(),
                1,
                "{code}"
            );
        }
    }

    #[test]
    fn owners_tests_and_impure_crates_are_free() {
        assert_eq!(
            findings_of(
                Package::sample("crucible-ledger").needs("rusqlite"),
                "use std::fs;"
            ),
            [""; 0]
        );
        assert_eq!(
            findings_of(Package::sample("crucible-run").tests_need("rusqlite"), ""),
            [""; 0]
        );
        let tested = "//! Says `std::fs`.\n#[cfg(test)] mod tests { use std::fs; }";
        assert_eq!(
            findings_of(
                Package::sample("crucible-patch").tests_need("tempfile"),
                tested
            ),
            [""; 0]
        );
    }
}
