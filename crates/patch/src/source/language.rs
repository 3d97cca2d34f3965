//! The languages whose source text is read.

use crucible_model::RepoPath;

/// The languages whose definitions are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// `.rs`
    Rust,
    /// `.py`, `.pyi`
    Python,
    /// JavaScript and TypeScript.
    Script,
    /// `.go`
    Go,
    /// C and C++.
    C,
}

impl Language {
    /// The language of a file by its extension; none for everything else.
    pub(crate) fn from_path(path: &RepoPath) -> Option<Self> {
        match path.extension()?.to_ascii_lowercase().as_str() {
            "rs" => Some(Self::Rust),
            "py" | "pyi" => Some(Self::Python),
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => Some(Self::Script),
            "go" => Some(Self::Go),
            "c" | "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" => Some(Self::C),
            _ => None,
        }
    }
}
