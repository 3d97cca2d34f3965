//! A command as the grammar reads it.

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
