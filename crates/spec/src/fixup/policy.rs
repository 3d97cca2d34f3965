//! What a fixup may touch.

use std::path::Path;

use crucible_model::{PathPrefix, RepoPath};
use crucible_patch::{Policy, PolicySource, Unusual};
use crucible_repo::{GuardedPlaces, LinkPolicy, RecoveredEdit};

use crate::project::is_own;

/// What the fixups of a command may touch, when they are proposed and when they are applied.
#[derive(Debug, Clone)]
pub struct FixupChoice {
    /// The policy of this command.
    pub policy: Policy,
    /// Whether links inside the project are followed.
    pub links: LinkPolicy,
    /// The places of the project that decide what git runs. Only the files that the policy names may lie there.
    pub guarded: GuardedPlaces,
    /// What this command has already settled of an application that was broken off.
    pub recovered: RecoveredEdit,
}

impl FixupChoice {
    /// This policy, where no link is followed and no place is guarded.
    #[must_use]
    pub fn unguarded(policy: Policy) -> Self {
        Self {
            policy,
            links: LinkPolicy::Refuse,
            guarded: GuardedPlaces::none(),
            recovered: RecoveredEdit::nothing(),
        }
    }
}

/// The policy of fixups: the whole project, within the floor of the patch gate. `named` are the paths that the user names for this
/// command, word for word: only they may be new, go away, or be a test, a manifest, a lock file or a setting of CI. Crucible's own
/// directory cannot be named.
#[must_use]
pub fn fixup_policy(max_files: u64, max_added_lines: u64, named: Vec<RepoPath>) -> Policy {
    let named = named.into_iter().filter(|path| !is_own(path)).collect();
    let (unusual, source) = (Unusual::Never, PolicySource::Command);
    Policy { max_files, max_added_lines, named, unusual, source, ..Policy::within(vec![PathPrefix::ALL]) }
}

/// Why naming this path would do nothing, in the project at `root`; nothing where it names a file that is there or may come.
#[must_use]
pub fn not_nameable(root: &Path, path: &RepoPath) -> Option<String> {
    if is_own(path) {
        return Some(format!(
            "{path} lies in Crucible's own directory, which no fixup changes; leave it out"
        ));
    }
    let place = root.join(path);
    if place.is_dir() {
        return Some(format!("{path} is a directory, and a path stands for one file; name each file"));
    }
    let text = path.as_str();
    let is_choice = text.split_once('{').is_some_and(|(_, rest)| rest.contains(',') && rest.contains('}'));
    // A file may be called like that.
    let is_there = place.symlink_metadata().is_ok();
    ((text.contains(['*', '?']) || is_choice) && !is_there)
        .then(|| format!("{path} looks like a pattern, and a path is taken word for word; name each file"))
}
