//! What a file's score is made of.

use serde::{Deserialize, Serialize};

/// The parts of a score. They make it up: `mentioned + evidence + (names + paths + symbols + text + history + imports) *
/// class_percent / 100 + tested + manifest`, the division rounded down and the whole never below nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreParts {
    /// The goal names the file, or a directory on the way to it, by its path.
    pub mentioned: u64,
    /// Failing gates point at it: by a stack frame, as a failing test, by what failing tests import.
    #[serde(default)]
    pub evidence: u64,
    /// Its own name holds words of the goal.
    pub names: u64,
    /// Directories on the way to it hold words of the goal.
    pub paths: u64,
    /// It defines what the goal names.
    pub symbols: u64,
    /// Its text holds words of the goal; rare ones count more.
    pub text: u64,
    /// Earlier commits that speak of the goal changed it, or it was changed together with the best files.
    pub history: u64,
    /// The best files import it.
    #[serde(default)]
    pub imports: u64,
    /// What is kept of the six before, by the kind of file: 100 of a source, less of all others.
    pub class_percent: u64,
    /// A test gets a share of what it tests has, and stays behind it: this is what that adds or takes.
    pub tested: i64,
    /// It names the parts of the project.
    pub manifest: u64,
}

impl ScoreParts {
    /// What the parts come to.
    #[must_use]
    pub fn score(&self) -> u64 {
        self.relevance().saturating_add(self.manifest)
    }

    /// The score for what is shared with the goal alone.
    pub(super) fn relevance(&self) -> u64 {
        let shared =
            self.names + self.paths + self.symbols + self.text + self.history + self.imports;
        (self.mentioned + self.evidence + shared * self.class_percent / 100)
            .saturating_add_signed(self.tested)
    }
}
