//! What a fixup changes, for people.

use std::collections::BTreeMap;

use crucible_model::{RepoPath, Verdict, counted, short_line};
use crucible_patch::{Change, parse};

use super::places::real_place;
use crate::project::SpecProject;

/// The longest path that is shown, in characters.
const LONGEST_PATH: usize = 200;

/// What a fixup does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixupChange {
    /// The file's path in the project. Escaped for display by whoever prints it.
    pub path: String,
    /// Whether it comes, stays or goes away.
    pub kind: FixupChangeKind,
    /// Lines that come.
    pub added: u64,
    /// Lines that go.
    pub removed: u64,
}

/// Whether a file comes, stays or goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixupChangeKind {
    /// It is new.
    New,
    /// It stays, with other content.
    Changed,
    /// It goes away.
    Removed,
}

impl FixupChangeKind {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

/// What a diff changes, file by file.
///
/// # Errors
///
/// A verdict where it is no diff.
pub fn fixup_changes(diff: &[u8]) -> Result<Vec<FixupChange>, Verdict> {
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

/// Which of these paths lead through a link inside of the project, and to which file.
#[must_use]
pub fn fixup_links(project: &SpecProject, changes: &[FixupChange]) -> BTreeMap<String, RepoPath> {
    let led = |change: &FixupChange| {
        let path: RepoPath = change.path.parse().ok()?;
        let place = real_place(project, &path).ok().filter(|place| *place != path)?;
        Some((change.path.clone(), place))
    };
    changes.iter().filter_map(led).collect()
}

/// The changes as a list in Markdown, one line for each file.
#[must_use]
pub fn describe_fixup(changes: &[FixupChange]) -> String {
    let line = |change: &FixupChange| {
        // A path may hold what would end the quotation.
        let path = short_line(&change.path, LONGEST_PATH).replace('`', "\u{2019}");
        let (added, removed) = (counted(change.added, "line"), counted(change.removed, "line"));
        format!("- `{path}`: {}, {added} added, {removed} removed\n", change.kind.as_str())
    };
    changes.iter().map(line).collect()
}
