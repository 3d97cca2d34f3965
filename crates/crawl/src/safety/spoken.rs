//! What a command says, read by the same grammar that judges it: so that whoever works with accepted commands needs no other one.

use super::finding::{Desk, StepLabel};
use super::paths::{Links, Place};
use super::programs;

/// The words of a command, or of one that it passes on, sorted by what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// What its description calls it: `meson setup`, `cmake --build`.
    pub(crate) usage: &'static str,
    /// The words that are no options.
    pub(crate) operands: Vec<String>,
    /// The values of its options, in their order.
    pub(crate) values: Vec<(&'static str, String)>,
}

impl CommandLine {
    /// The value of the last option with one of these names.
    pub(crate) fn value_of(&self, names: &[&str]) -> Option<&str> {
        let mut values = self.values.iter().rev();
        values.find(|(name, _)| names.contains(name)).map(|(_, value)| value.as_str())
    }
}

/// Every command line in `words`, the outermost last. Of a command that is refused, it is what could be read.
pub(crate) fn command_lines(words: &[&str]) -> Vec<CommandLine> {
    let (mut findings, mut heard) = (Vec::new(), Vec::new());
    let label = StepLabel { number: 1, name: "" };
    let links = Links::default();
    programs::judge(words, Place::top(&links), &mut Desk::new(label, &mut findings).heard_by(&mut heard));
    heard
}
