//! Detects an unfinished application of fixups, without changing anything.

use std::path::PathBuf;

use crucible_model::{Code, Finding, RepoPath, counted};
use crucible_repo::{TreeEditError, pending_tree_edit};

use super::FIXUP_DIFF;
use super::apply::file_system;
use super::record::place;
use crate::error::SpecError;
use crate::gate::GateFinding;
use crate::id::SpecId;
use crate::json_output::SpecStatus;
use crate::store::SpecStore;

/// The most files that are named.
const NAMED: usize = 5;

/// An unfinished application of fixups, by a running process or one that was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixupUnderWay {
    spec: SpecId,
    /// The path of its journal.
    pub record: PathBuf,
    /// The files in the journal; empty if it cannot be read.
    pub files: Vec<RepoPath>,
}

/// Looks for an unfinished application of fixups in Crucible's journal. Nothing is changed; if the store has no directory
/// for journals, no application is unfinished.
///
/// # Errors
///
/// File system errors. An invalid journal counts as an unfinished application.
pub fn fixup_under_way(store: &SpecStore) -> Result<Option<FixupUnderWay>, SpecError> {
    let Some(record) = place(store.project(), store)? else {
        return Ok(None);
    };
    let files = match pending_tree_edit(&record) {
        Ok(None) => return Ok(None),
        Ok(Some(claim)) => claim.edits.into_iter().map(|edit| edit.path).collect(),
        Err(TreeEditError::Journal { .. }) => Vec::new(),
        Err(error) => return Err(file_system(error)),
    };
    Ok(Some(FixupUnderWay {
        spec: store.spec().clone(),
        record,
        files,
    }))
}

impl FixupUnderWay {
    /// The gate's finding about it. It refuses, because files may be partly changed.
    #[must_use]
    pub fn finding(&self) -> GateFinding {
        let hint = format!(
            "Applying fixups started and has not finished, so files may be partly changed: {}. If no process \
            is working on it, \
             `crucible resume {} --phase fixup --apply-fixups` completes it or rolls it back.",
            self.file_names().join(", "),
            self.spec
        );
        let finding = Finding::error(Code::new("fixup-under-way"), FIXUP_DIFF, hint);
        GateFinding {
            finding,
            file: FIXUP_DIFF.to_owned(),
        }
    }

    /// The first few files, or the path of the journal.
    fn file_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .files
            .iter()
            .take(NAMED)
            .map(|path| crucible_model::short_line(path.as_str(), 100))
            .collect();
        match self.files.len().saturating_sub(NAMED) {
            0 => {}
            more => names.push(format!("and {} more", counted(more as u64, "file"))),
        }
        if self.files.is_empty() {
            names.push(format!(
                "listed in {}, which cannot be read",
                self.record.display()
            ));
        }
        names
    }
}

impl SpecStatus {
    /// Adds the unfinished application to the status.
    #[must_use]
    pub fn with_under_way(mut self, under_way: Option<&FixupUnderWay>) -> Self {
        if let Some(under_way) = under_way {
            self.fixup_under_way = under_way.file_names();
            self.has_errors = true;
        }
        self
    }
}
