//! Whether an application of fixups was begun and is not over, told without a change.

use std::path::PathBuf;

use crucible_model::{Code, Finding, RepoPath, counted};
use crucible_repo::{TreeEditError, tree_edit_under_way};

use super::FIXUP_DIFF;
use super::apply::file_system;
use super::record::place;
use crate::error::SpecError;
use crate::gate::GateFinding;
use crate::id::SpecId;
use crate::json_output::SpecStatus;
use crate::store::SpecStore;

/// How many files are named.
const NAMED: usize = 5;

/// An application of fixups that was begun and is not over: of a living process, or of one that was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixupUnderWay {
    spec: SpecId,
    /// The record of it.
    pub record: PathBuf,
    /// The files that the record names; none where it cannot be read.
    pub files: Vec<RepoPath>,
}

/// Looks for an application of fixups that is under way, as the record says that Crucible keeps of it. Nothing is changed; where the store does not know where
/// records are kept, there is none.
///
/// # Errors
///
/// Fails when the file system refuses. A record that is none is one of something.
pub fn fixup_under_way(store: &SpecStore) -> Result<Option<FixupUnderWay>, SpecError> {
    let Some(record) = place(store.project(), store)? else { return Ok(None) };
    let files = match tree_edit_under_way(&record) {
        Ok(None) => return Ok(None),
        Ok(Some(claim)) => claim.edits.into_iter().map(|edit| edit.path).collect(),
        Err(TreeEditError::Journal { .. }) => Vec::new(),
        Err(error) => return Err(file_system(error)),
    };
    Ok(Some(FixupUnderWay { spec: store.spec().clone(), record, files }))
}

impl FixupUnderWay {
    /// What a gate says of it. It refuses: files may be changed, and may not.
    #[must_use]
    pub fn finding(&self) -> GateFinding {
        let hint = format!(
            "Applying fixups started and has not finished, so files may be partly changed: {}. If no process \
            is working on it, \
             `crucible resume {} --phase fixup --apply-fixups` completes it or rolls it back.",
            self.told().join(", "),
            self.spec
        );
        let finding = Finding::error(Code::new("fixup-under-way"), FIXUP_DIFF, hint);
        GateFinding { finding, file: FIXUP_DIFF.to_owned() }
    }

    /// What is told of its files: the first few, or the record.
    fn told(&self) -> Vec<String> {
        let mut told: Vec<String> = self
            .files
            .iter()
            .take(NAMED)
            .map(|path| crucible_model::short_line(path.as_str(), 100))
            .collect();
        match self.files.len().saturating_sub(NAMED) {
            0 => {}
            more => told.push(format!("and {} more", counted(more as u64, "file"))),
        }
        if self.files.is_empty() {
            told.push(format!("listed in {}, which cannot be read", self.record.display()));
        }
        told
    }
}

impl SpecStatus {
    /// The same, with what is under way.
    #[must_use]
    pub fn with_under_way(mut self, under_way: Option<&FixupUnderWay>) -> Self {
        if let Some(under_way) = under_way {
            self.fixup_under_way = under_way.told();
            self.has_errors = true;
        }
        self
    }
}
