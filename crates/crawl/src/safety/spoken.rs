//! Parses a command by the same grammar that judges it, for users of accepted commands.

use super::finding::{FindingSink, StepLabel};
use super::paths::{Links, Place};
use super::programs;

/// The words of a command, or of one that it passes on, by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// The name of its description: `meson setup`, `cmake --build`.
    pub(crate) usage: &'static str,
    /// The words other than options.
    pub(crate) operands: Vec<String>,
    /// The values of its options, in order.
    pub(crate) values: Vec<(&'static str, String)>,
}

impl CommandLine {
    /// The value of the last option with one of these names.
    pub(crate) fn value_of(&self, names: &[&str]) -> Option<&str> {
        let mut values = self.values.iter().rev();
        values
            .find(|(name, _)| names.contains(name))
            .map(|(_, value)| value.as_str())
    }
}

/// Every command line in `words`, the outermost last. For a refused command, the parts that could be
/// parsed.
pub(crate) fn command_lines(words: &[&str]) -> Vec<CommandLine> {
    let (mut findings, mut heard) = (Vec::new(), Vec::new());
    let label = StepLabel {
        number: 1,
        name: "",
    };
    let links = Links::default();
    programs::judge(
        words,
        Place::top(&links),
        &mut FindingSink::new(label, &mut findings).heard_by(&mut heard),
    );
    heard
}
