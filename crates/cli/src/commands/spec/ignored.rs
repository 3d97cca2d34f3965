//! What of Crucible's directory in a project git leaves alone.

use std::path::Path;

use crucible_host::fs::{FsError, write_atomic};

/// What is of use on this machine alone, or only while a command runs.
const IGNORED: &str = "\
# Written by Crucible where there was none. Documents and receipts are to be committed; this need not be.
/specs/*/lock
/specs/*/.lock-*
/specs/*/staging/
/specs/*/staging.new/
/specs/*/context/*.calls.jsonl
/specs/*/context/*.draft.md
.tmp-*
";

/// Tells git what in this project's `.crucible` need not be committed. What a project says itself stays, whatever it is; a directory
/// that is not there gets nothing.
pub(crate) fn keep_out_of_git(project: &Path) -> Result<(), FsError> {
    let directory = project.join(".crucible");
    let file = directory.join(".gitignore");
    let is_ours = directory.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    match file.symlink_metadata() {
        Err(error) if is_ours && error.kind() == std::io::ErrorKind::NotFound => {
            write_atomic(&file, IGNORED.as_bytes())
        }
        Ok(_) | Err(_) => Ok(()),
    }
}
