//! Whether the recipe of a makefile or a justfile adds a gate to those that the tree has.

use crucible_host::words::split_words;

use super::TreeView;
use crate::makefile::Makefile;

/// Programs that test nothing.
const QUIET: [&str; 7] = ["echo", "printf", "true", ":", "mkdir", "rm", "set"];

/// Programs that start a container or a machine, which no gate can reach.
const ENGINES: [&str; 5] = ["docker", "docker-compose", "nerdctl", "podman", "vagrant"];

/// A command without the variables that the makefile does not set, as in `python -m unittest ${tests}`: make runs it without them.
/// A program in a variable stays.
fn without_unset(command: &str) -> String {
    let is_unset = |word: &str| {
        word.strip_prefix('$').is_some_and(|name| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
    };
    let words = command.split_whitespace().enumerate();
    let remaining = words.filter(|(at, word)| *at == 0 || !is_unset(word));
    remaining
        .map(|(_, word)| word)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns whether these commands run only containers and suites that are separate gates of this tree; `made` has their variables.
pub(super) fn adds_no_gate(commands: &[String], makefile: &Makefile, view: &TreeView) -> bool {
    let mut tests = 0;
    for line in commands {
        for part in line
            .split("&&")
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let part = makefile.expand(part.trim_start_matches(['@', '-', '+', ' ']));
            let first = part.split_whitespace().next().unwrap_or_default();
            if QUIET.contains(&first) {
                continue;
            }
            if ENGINES.contains(&first) {
                tests += 1;
                continue;
            }
            let Ok(words) = split_words(&without_unset(&part)) else {
                return false;
            };
            match view.runner_of(&words) {
                Some(runner) if !runner.suite().is_empty() && view.has_suite(runner.suite()) => {
                    tests += 1
                }
                _ => return false,
            }
        }
    }
    tests > 0
}
