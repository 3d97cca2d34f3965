//! What can fail when pages are made or served.

use crucible_host::fs::FsError;
use crucible_ledger::LedgerError;
use crucible_run::RunError;
use crucible_view::RedactedText;

/// Why a page could not be made or served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port cannot be opened.
    #[error("cannot open port {port} on 127.0.0.1: {source}")]
    Port {
        /// The requested port; 0 for any.
        port: u16,
        /// The reason.
        source: std::io::Error,
    },
    /// The kernel's random device cannot be read.
    #[error(transparent)]
    Random(#[from] FsError),
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A run cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A document of the project cannot be read.
    #[error("{0}")]
    Project(RedactedText),
    /// A document has another version than this program.
    #[error("a document of the project is of another version: {0}")]
    Document(#[from] serde_json::Error),
    /// A template cannot be rendered.
    #[error("cannot render the page: {0}")]
    Template(#[from] askama::Error),
}
