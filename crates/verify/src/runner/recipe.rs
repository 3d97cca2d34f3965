//! Whether the recipe of a makefile or a justfile only runs a suite that is a gate already.

use crucible_host::words::split_words;

use super::{TreeView, has_suite, runner_of};
use crate::makefile::Makefile;

/// Programs that test nothing.
const QUIET: [&str; 7] = ["echo", "printf", "true", ":", "mkdir", "rm", "set"];

/// Returns whether these commands run only suites that are separate gates of this tree; `made` has their
/// variables.
pub(super) fn runs_known_suite(commands: &[String], made: &Makefile, view: &TreeView) -> bool {
    let mut tests = 0;
    for line in commands {
        for part in line.split("&&").map(str::trim).filter(|part| !part.is_empty()) {
            let part = made.expand(part.trim_start_matches(['@', '-', '+', ' ']));
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
