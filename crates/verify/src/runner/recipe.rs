//! Whether the recipe of a makefile or a justfile only runs a suite that is a gate already.

use crucible_host::words::split_words;

use super::{TreeView, has_suite, runner_of};

/// Programs that test nothing.
const QUIET: [&str; 7] = ["echo", "printf", "true", ":", "mkdir", "rm", "set"];

/// Returns whether these commands run nothing but suites that this tree has as gates of their own.
pub(super) fn runs_known_suite(commands: &[String], view: &TreeView) -> bool {
    let mut tests = 0;
    for line in commands {
        for part in line.split("&&").map(str::trim).filter(|part| !part.is_empty()) {
            let part = with_variables(part.trim_start_matches(['@', '-', '+', ' ']));
            let first = part.split_whitespace().next().unwrap_or_default();
            if QUIET.contains(&first) {
                continue;
            }
            let Ok(words) = split_words(&part) else { return false };
            match runner_of(&words) {
                Some(runner) if !runner.suite().is_empty() && has_suite(view, runner.suite()) => tests += 1,
                _ => return false,
            }
        }
    }
    tests > 0
}

/// The command with the usual variables for programs written as programs, and without those for more options.
fn with_variables(command: &str) -> String {
    let mut written = String::with_capacity(command.len());
    let mut rest = command;
    while let Some((before, inner)) = rest.split_once('$') {
        written.push_str(before);
        let (open, close) = if inner.starts_with('{') { ('{', '}') } else { ('(', ')') };
        match inner.strip_prefix(open).and_then(|inner| inner.split_once(close)) {
            Some((name, behind)) => {
                match name {
                    "PYTHON" | "PYTHON3" | "PY" => written.push_str("python3"),
                    "PYTEST" => written.push_str("pytest"),
                    "GO" | "CARGO" | "NPM" | "PNPM" | "YARN" | "NODE" => {
                        written.push_str(&name.to_ascii_lowercase())
                    }
                    name if ["ARGS", "FLAGS", "OPTS", "OPTIONS"].iter().any(|end| name.ends_with(end)) => {}
                    _ => written.push('$'),
                }
                rest = behind;
            }
            None => {
                written.push('$');
                rest = inner;
            }
        }
    }
    written.push_str(rest);
    written
}
