//! The limits of what a fixup may change.

use std::path::Path;

use crucible_model::{PathPrefix, RepoPath};
use crucible_patch::{Policy, PolicySource, SpecialEntries};
use crucible_repo::{GuardedPlaces, LinkPolicy, RecoveredEdit};

use crate::project::is_own;

/// What the fixups of a command may change, when proposed and when applied.
#[derive(Debug, Clone)]
pub(crate) struct FixupChoice {
    /// The policy of this command.
    pub policy: Policy,
    /// Whether to follow links inside the project.
    pub links: LinkPolicy,
    /// The locations in the project that control what git runs. Only files that the policy names may be
    /// there.
    pub guarded: GuardedPlaces,
    /// The recovery that this command has already done.
    pub recovered: RecoveredEdit,
}

impl FixupChoice {
    /// Uses this policy without following links and without guarded locations.
    #[must_use]
    pub(crate) fn unguarded(policy: Policy) -> Self {
        Self {
            policy,
            links: LinkPolicy::Refuse,
            guarded: GuardedPlaces::none(),
            recovered: RecoveredEdit::nothing(),
        }
    }
}

/// The policy of fixups: the whole project, within the minimum rules of the patch gate. `named` are the
/// paths that the user allows for this command, literally: only these may be created or deleted, or be a
/// test, a manifest, a lock file or a CI setting. Crucible's own directory cannot be named.
#[must_use]
pub(crate) fn fixup_policy(max_files: u64, max_added_lines: u64, named: Vec<RepoPath>) -> Policy {
    let named = named.into_iter().filter(|path| !is_own(path)).collect();
    let (unusual, source) = (SpecialEntries::Never, PolicySource::Command);
    Policy {
        max_files,
        max_added_lines,
        named,
        unusual,
        source,
        ..Policy::for_roots(vec![PathPrefix::ALL])
    }
}

/// Why naming this path would have no effect in the project at `root`; nothing if it names an existing or
/// possible file.
#[must_use]
pub(crate) fn not_nameable(root: &Path, path: &RepoPath) -> Option<String> {
    if is_own(path) {
        return Some(format!(
            "{path} lies in Crucible's own directory, which no fixup changes; leave it out"
        ));
    }
    let place = root.join(path);
    if place.is_dir() {
        return Some(format!(
            "{path} is a directory, and a path stands for one file; name each file"
        ));
    }
    let text = path.as_str();
    let is_choice = text
        .split_once('{')
        .is_some_and(|(_, rest)| rest.contains(',') && rest.contains('}'));
    // A file may have such a name.
    let is_there = place.symlink_metadata().is_ok();
    ((text.contains(['*', '?']) || is_choice) && !is_there).then(|| {
        format!("{path} looks like a pattern, and a path is taken word for word; name each file")
    })
}
