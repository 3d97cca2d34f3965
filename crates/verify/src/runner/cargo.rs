//! `cargo test`: `Cargo.toml` at the top. Offline, because the sandbox has no network.

use super::format::libtest;
use super::{
    Call, CommandOutput, NotRunReason, ReportContext, Reporting, Runner, Tool, TreeView, command,
};
use crate::results::TestResults;
use crate::tally::TestRunner;

/// What cargo and rustup print, nextest's call included, when something is missing.
pub(super) const SIGNS: &[(&str, &str)] = &[
    ("but --offline was specified", FETCH),
    ("to run without the --offline flag", FETCH),
    ("error: no matching package named", FETCH),
    ("using offline mode (--offline)", FETCH),
    ("error: failed to download", FETCH),
    ("error: failed to get `", FETCH),
    (
        "could not choose a version of cargo to run",
        "run `rustup default stable`",
    ),
    (
        "is not installed for the toolchain",
        "install that component with `rustup component add`",
    ),
    (
        "can't find crate for `std`",
        "install the standard library of that target with `rustup target add`",
    ),
    (
        "error: linker `",
        "install a C compiler, such as `apt install gcc`",
    ),
    ("because it requires rustc", "run `rustup update stable`"),
    ("` requires rustc ", "run `rustup update stable`"),
    (
        "error: failed to parse lock file",
        "run `rustup update stable`",
    ),
];

const FETCH: &str = "gates have no network: run `cargo fetch` once";

pub(super) struct Cargo;

impl Runner for Cargo {
    fn id(&self) -> &'static str {
        "cargo-test"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "cargo",
            install: "install Rust from https://rustup.rs, then run `rustup default stable`",
        }
    }

    fn reads(&self) -> &'static [&'static str] {
        &["Cargo.toml"]
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let manifest = view
            .has("Cargo.toml")
            .then(|| view.text("Cargo.toml").unwrap_or_default())?;
        let mut words = command(&["cargo", "test", "--offline", "--quiet"]);
        // Without this, a package at the top would be tested and the other members would not.
        let is_workspace = toml::from_str::<toml::Table>(manifest)
            .is_ok_and(|table| table.contains_key("workspace"));
        if is_workspace {
            words.push("--workspace".to_owned());
        }
        Some((words, "there is a Cargo.toml at the top".to_owned()))
    }

    /// What the other members depend on may never have been fetched.
    fn alternatives(&self, view: &TreeView) -> Vec<Vec<String>> {
        let words = self
            .detect(view)
            .map(|(words, _)| words)
            .unwrap_or_default();
        let of_top: Vec<String> = words
            .iter()
            .filter(|word| *word != "--workspace")
            .cloned()
            .collect();
        let is_other = of_top.len() < words.len();
        is_other.then_some(of_top).into_iter().collect()
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == "cargo" && matches!(call.subcommand(), Some("test" | "t"))
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[("CARGO_NET_OFFLINE", "true")]
    }

    /// Without `--quiet` the harness names its tests; with `--no-fail-fast` a failed target does not keep the next ones from running.
    fn reporting(&self, call: &Call<'_>, _: &ReportContext<'_>) -> Option<Reporting> {
        let end = call
            .args
            .iter()
            .position(|word| word == "--")
            .unwrap_or(call.args.len());
        let (own, harness) = call.args.split_at(end);
        let is_quiet = |word: &&String| matches!(word.as_str(), "--quiet" | "-q");
        let mut args: Vec<String> = own.iter().filter(|word| !is_quiet(word)).cloned().collect();
        if !call.has("--no-fail-fast") {
            args.push("--no-fail-fast".to_owned());
        }
        args.extend(harness.iter().filter(|word| !is_quiet(word)).cloned());
        Some(Reporting::lines(call.with_args(args)))
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        Some(libtest::read(output))
    }

    fn suite(&self) -> &'static str {
        "rust"
    }

    fn counts(&self) -> Option<TestRunner> {
        Some(TestRunner::Libtest)
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        SIGNS
    }

    fn obstacle(&self, output: &CommandOutput<'_>) -> Option<NotRunReason> {
        if output.has_finished_test() {
            None
        } else {
            toolchain(output).or_else(|| subcommand(output))
        }
    }
}

/// A toolchain that is named and not installed: `error: toolchain '1.80' is not installed`.
pub(super) fn toolchain(output: &CommandOutput<'_>) -> Option<NotRunReason> {
    let line = output.stderr.lines().find(|line| {
        line.starts_with("error: ")
            && line.contains("toolchain '")
            && line.contains("' is not installed")
    })?;
    let name = line.split('\'').nth(1).unwrap_or("stable");
    Some(NotRunReason::quoting(
        line,
        format!("run `rustup toolchain install {name}`"),
    ))
}

/// A subcommand that is not installed: "error: no such command: `nextest`".
fn subcommand(output: &CommandOutput<'_>) -> Option<NotRunReason> {
    let line = output
        .line_with("error: no such command: `")
        .or_else(|| output.line_with("error: no such subcommand: `"))?;
    let name = line.split('`').nth(1).filter(|name| {
        name.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    });
    Some(NotRunReason::quoting(
        line,
        format!(
            "run `cargo install cargo-{} --locked`",
            name.unwrap_or("NAME")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::tree_view::view;

    #[test]
    fn a_workspace_is_tested_as_a_whole() {
        let words = |manifest| {
            Cargo
                .detect(&view(&[("Cargo.toml", manifest)]))
                .unwrap()
                .0
                .join(" ")
        };
        assert_eq!(words("[package]\nname='x'"), "cargo test --offline --quiet");
        assert_eq!(
            words("[workspace]\nmembers=[]"),
            "cargo test --offline --quiet --workspace"
        );
        assert_eq!(
            words("# [workspace]\n[broken"),
            "cargo test --offline --quiet"
        );
        assert!(Cargo.detect(&view(&[("sub/Cargo.toml", "")])).is_none());
    }
}
