//! Parses a command by the same grammar that judges it, for users of accepted commands.

use super::command_line::CommandLine;
use super::finding::{FindingSink, StepLabel};
use super::paths::{Links, StepDirectory};
use super::programs;

/// Every command line in `words`, the outermost last. For a refused command, the parts that could be
/// parsed.
pub(crate) fn command_lines(words: &[&str]) -> Vec<CommandLine> {
    let (mut findings, mut commands) = (Vec::new(), Vec::new());
    let label = StepLabel {
        number: 1,
        name: "",
    };
    let links = Links::default();
    programs::judge(
        words,
        StepDirectory::top(&links),
        &mut FindingSink::new(label, &mut findings).with_command_lines(&mut commands),
    );
    commands
}
