//! What a fixup may touch.

use crucible_model::{PathPrefix, RepoPath};
use crucible_patch::Policy;

use crate::project::is_own;

/// The policy of fixups: the whole project, within the floor of the patch gate. `named` are the paths that the user names for this
/// command, word for word: only they may be new, go away, or be a test, a manifest, a lock file or a setting of CI. Crucible's own
/// directory cannot be named.
#[must_use]
pub fn fixup_policy(max_files: u64, max_added_lines: u64, named: Vec<RepoPath>) -> Policy {
    let named = named.into_iter().filter(|path| !is_own(path)).collect();
    Policy { max_files, max_added_lines, named, ..Policy::within(vec![PathPrefix::ALL]) }
}
