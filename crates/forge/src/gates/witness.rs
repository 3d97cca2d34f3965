//! What a small plugin of pytest (`witness.py`) reports about a run of tests. The plugin is not part of the tests.
//!
//! An exit code is not proof that tests ran: the code under test can end the process with any. So the plugin tells, when pytest is done,
//! what was collected, what came of it and whether the skill itself was run, and signs it with a word that was made for this run. What remains possible: the tests run in
//! the same process, and one that searches the memory of the interpreter can find the word. That is what the policy for tests forbids.
//!
//! What always holds: text that is not signed with the word of this run was printed by a test, and is ignored.

use std::path::PathBuf;

use serde::Deserialize;

/// The plugin, and the name that it is imported by.
pub(super) const PLUGIN: (&str, &str) = ("crucible_witness", include_str!("witness.py"));

/// What the witness tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestReport {
    /// How many tests were found.
    pub(super) collected: u64,
    /// How many of them came to their end.
    pub(super) finished: u64,
    /// In how many of them the skill itself was run.
    pub(super) ran: u64,
    /// How pytest wants to end.
    pub(super) exit: Option<i32>,
    /// The file that the skill was imported from.
    pub(super) module: Option<PathBuf>,
    /// What did not pass.
    pub(super) complaints: Vec<TestFailure>,
    /// Which were skipped, or expected to fail.
    pub(super) left_out: Vec<String>,
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) errors: u64,
    pub(super) skipped: u64,
    pub(super) xfailed: u64,
    pub(super) xpassed: u64,
}

/// A test that did not pass, or a file that could not be read as tests.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestFailure {
    /// Which.
    pub(super) test: String,
    /// The line in its file, from 1 on.
    pub(super) line: Option<u64>,
    /// The first line of what is wrong.
    pub(super) text: String,
}

impl TestReport {
    /// Returns the report after this word in the output; `None` if the word is absent or occurs more than once.
    pub(super) fn find(output: &str, word: &str) -> Option<Self> {
        let mut report_lines = output
            .lines()
            .filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
        let only = report_lines.next()?;
        match report_lines.next() {
            None => serde_json::from_str(only).ok(),
            Some(_) => None,
        }
    }
}
