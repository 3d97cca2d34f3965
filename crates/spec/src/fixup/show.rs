//! Describes the changes of a fixup, for people.

use std::collections::BTreeMap;

use crucible_model::{RepoPath, Verdict, counted, short_line};
use crucible_patch::{Change, parse};

use super::places::real_place;
use crate::project::SpecProject;

/// The most characters of a path that are shown.
const MAX_PATH_LEN: usize = 200;

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FixupChange {
    /// The file's path in the project. Escape it before display.
    pub path: String,
    /// The kind of change.
    pub kind: FixupChangeKind,
    /// Lines that come.
    pub added: u64,
    /// Lines that go.
    pub removed: u64,
}

/// The kind of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FixupChangeKind {
    /// The file is created.
    New,
    /// The content changes.
    Changed,
    /// The file is deleted.
    Removed,
}

impl FixupChangeKind {
    /// The word for it.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

/// Lists the changes of a diff, file by file.
///
/// # Errors
///
/// A verdict if it is not a diff.
pub(crate) fn fixup_changes(diff: &[u8]) -> Result<Vec<FixupChange>, Verdict> {
    let patch = parse(diff).map_err(|error| Verdict::new(vec![error.finding()]))?;
    let change = |file: &crucible_patch::FilePatch| FixupChange {
        path: file.path.to_string(),
        kind: match file.change {
            Change::Create | Change::Copy { .. } => FixupChangeKind::New,
            Change::Modify | Change::Rename { .. } => FixupChangeKind::Changed,
            Change::Delete => FixupChangeKind::Removed,
        },
        added: file.added(),
        removed: file.removed(),
    };
    Ok(patch.files.iter().map(change).collect())
}

/// The paths that lead through a link inside the project, with their real files.
#[must_use]
pub(crate) fn fixup_links(
    project: &SpecProject,
    changes: &[FixupChange],
) -> BTreeMap<String, RepoPath> {
    let led = |change: &FixupChange| {
        let path: RepoPath = change.path.parse().ok()?;
        let place = real_place(project, &path)
            .ok()
            .filter(|place| *place != path)?;
        Some((change.path.clone(), place))
    };
    changes.iter().filter_map(led).collect()
}

/// The changes as a Markdown list, one line per file.
#[must_use]
pub(crate) fn describe_fixup(changes: &[FixupChange]) -> String {
    let line = |change: &FixupChange| {
        // A path may contain a character that would end the quotation.
        let path = short_line(&change.path, MAX_PATH_LEN).replace('`', "\u{2019}");
        let (added, removed) = (
            counted(change.added, "line"),
            counted(change.removed, "line"),
        );
        format!(
            "- `{path}`: {}, {added} added, {removed} removed\n",
            change.kind.as_str()
        )
    };
    changes.iter().map(line).collect()
}
