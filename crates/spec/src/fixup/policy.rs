//! What a fixup may touch.

use crucible_model::{PathPrefix, RepoPath};
use crucible_patch::Policy;

/// The policy of fixups: the whole project, within the floor of the patch gate. `named` are the paths that the user names for this
/// command, word for word: only they may be new, go away, or be a test, a manifest, a lock file or a setting of CI. Crucible's own
/// directory cannot be named.
#[must_use]
pub fn fixup_policy(max_files: u64, max_added_lines: u64, named: Vec<RepoPath>) -> Policy {
    let named = named.into_iter().filter(|path| !is_crucibles(path)).collect();
    Policy { max_files, max_added_lines, named, ..Policy::within(vec![PathPrefix::ALL]) }
}

/// Whether the path lies in a directory of Crucible's, under any spelling that a file system takes for it.
pub(super) fn is_crucibles(path: &RepoPath) -> bool {
    path.segments().any(|segment| {
        let name = segment.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
        name.eq_ignore_ascii_case(crate::project::CRUCIBLE)
    })
}
