//! What the model saw of the repository, and what it did not.

use crucible_run::RunDocuments;
use serde::{Deserialize, Serialize};

use crate::text::RedactedText;

/// The context of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextView {
    /// What was left out and why, in a sentence or two.
    pub summary: RedactedText,
    /// The files that the model saw, in their order.
    pub files: Vec<PackedFileView>,
    /// The sum of their bytes.
    pub bytes: u64,
    /// Requested files that the model did not see.
    pub omitted: Vec<OmittedView>,
    /// Files that nobody requested.
    pub not_requested: Vec<OmittedView>,
    /// What was not copied for the gates, with the reasons.
    pub not_copied: Vec<RedactedText>,
}

/// A file that the model saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedFileView {
    /// Its path.
    pub path: RedactedText,
    /// Why the model saw it.
    pub why: RedactedText,
    /// The bytes that the model saw.
    pub bytes: u64,
    /// Whether these are only the beginning of the file.
    pub is_truncated: bool,
}

/// A file that the model did not see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OmittedView {
    /// Its path.
    pub path: RedactedText,
    /// The reason.
    pub reason: RedactedText,
}

impl ContextView {
    /// Returns the context; `None` if no pack was built yet.
    pub(crate) fn from_documents(documents: &RunDocuments) -> Option<Self> {
        let pack = documents.pack.as_ref()?;
        let omitted = |path: &str, reason: &str| OmittedView {
            path: RedactedText::new(path),
            reason: RedactedText::new(reason),
        };
        let files: Vec<PackedFileView> = pack
            .files
            .iter()
            .map(|file| PackedFileView {
                path: RedactedText::new(&file.path),
                why: RedactedText::new(&file.why),
                bytes: file.content.len() as u64,
                is_truncated: file.truncated,
            })
            .collect();
        Some(Self {
            summary: RedactedText::new(&pack.summary),
            bytes: files.iter().map(|file| file.bytes).sum(),
            files,
            omitted: pack
                .omitted
                .iter()
                .map(|file| omitted(&file.path, file.reason.as_str()))
                .collect(),
            not_requested: documents
                .not_requested
                .iter()
                .map(|file| omitted(&file.path, &file.reason))
                .collect(),
            not_copied: RedactedText::all(&documents.not_copied),
        })
    }
}
