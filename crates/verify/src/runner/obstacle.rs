//! Why a gate could not run, and how that is quoted from its output.

/// The longest quotation from an output, in characters.
const MAX_QUOTE: usize = 200;

/// Why a gate could not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRunReason {
    /// What is missing, on one line.
    pub cause: String,
    /// What helps, an imperative that holds one command.
    pub remedy: String,
}

impl NotRunReason {
    /// Quotes the output.
    pub(super) fn quoting(line: &str, remedy: impl Into<String>) -> Self {
        let quote: String = line.trim().chars().take(MAX_QUOTE).collect();
        Self {
            cause: format!("it says {quote:?}"),
            remedy: remedy.into(),
        }
    }
}
