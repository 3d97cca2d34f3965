//! The files in a project's `.crucible` that git ignores.

use std::path::Path;

use crucible_host::fs::{FsError, write_atomic};

/// Files that matter only on this machine, or only while a command runs.
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

/// Writes the ignore file for this project's `.crucible`. An existing one is left unchanged, and a
/// missing directory is not created.
///
/// # Errors
///
/// Fails if the file cannot be written.
pub fn keep_out_of_git(project: &Path) -> Result<(), FsError> {
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
