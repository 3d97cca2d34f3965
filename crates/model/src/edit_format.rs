//! The formats in which a model can return a change.

use serde::{Deserialize, Serialize};

/// The format in which a model is asked for a change. Each backend has one, chosen by measurements
/// (decision 0008).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EditFormat {
    /// For each changed file a line `FILE: path` and the whole new content in a fenced block below it. Small local
    /// models get this right most often: of ten tries of a 1.5B coder, seven whole files fixed the bug, one
    /// search-and-replace edit did, no diff did.
    WholeFile,
    /// Below a line with the path, blocks of `<<<<<<< SEARCH`, `=======`, `>>>>>>> REPLACE`. Large models are
    /// reliable with it, and it costs fewer tokens.
    SearchReplace,
    /// For each changed file a line `FILE: path` and a fenced block below it that holds only the functions, types,
    /// constants and methods that change; Crucible puts them into the file by its syntax tree.
    Definitions,
    /// One git-format diff and nothing else.
    UnifiedDiff,
}

impl EditFormat {
    /// Every form.
    pub const ALL: [Self; 4] = [
        Self::WholeFile,
        Self::SearchReplace,
        Self::Definitions,
        Self::UnifiedDiff,
    ];

    /// Its name, as configuration and JSON have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WholeFile => "whole-file",
            Self::SearchReplace => "search-replace",
            Self::Definitions => "definitions",
            Self::UnifiedDiff => "unified-diff",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_one_in_json() {
        for format in EditFormat::ALL {
            assert_eq!(serde_json::to_value(format).unwrap(), format.as_str());
        }
    }
}
