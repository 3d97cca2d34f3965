//! Writes a change into the copy of a trial: the same files, modes and links that a landing writes to the
//! work tree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crucible_host::fs;
use crucible_model::RepoPath;
use crucible_patch::FileMode;

use crate::error::RunError;
use crate::gatekeeper::{Change, Files};

/// Writes the files of a change into the copy, exactly as a landing writes them to the work tree.
pub(super) fn write_change(copy: &Path, change: &Change) -> Result<(), RunError> {
    let after = change.tree.files_checked_out();
    for changed in &change.tree.changes {
        let target = copy.join(&changed.path);
        match changed.new_mode {
            None => fs::remove_file(&target)?,
            Some(mode) => {
                let path = changed
                    .path
                    .to_str()
                    .and_then(|path| path.parse::<RepoPath>().ok());
                let Some(bytes) = path.and_then(|path| after.get(&path)) else {
                    continue;
                };
                if let Some(parent) = target.parent() {
                    fs::create_dir_all(parent)?;
                }
                if mode == FileMode::Symlink {
                    fs::remove_file(&target)?;
                    fs::make_link(Path::new(OsStr::from_bytes(bytes)), &target)?;
                    continue;
                }
                // The copy is gone when the trial is over.
                let mode = if mode == FileMode::Executable {
                    0o755
                } else {
                    0o644
                };
                fs::write_unflushed(&target, bytes, mode)?;
            }
        }
    }
    Ok(())
}

/// Files of a variant of a change, with their contents.
pub(crate) type VariantFiles = Files;

/// Writes these files into the copy, also where none is yet. A link on the way is an error.
pub(super) fn write_added(copy: &Path, files: &VariantFiles) -> Result<(), RunError> {
    for (path, bytes) in files {
        fs::write_beneath_unflushed(copy, path.as_str(), bytes)?;
    }
    Ok(())
}

/// Writes these files over those of the copy that exist; their modes stay.
pub(super) fn write_variant(copy: &Path, files: &VariantFiles) -> Result<(), RunError> {
    use std::os::unix::fs::PermissionsExt;
    for (path, bytes) in files {
        let target = copy.join(path.as_str());
        let Ok(meta) = target.symlink_metadata() else {
            continue;
        };
        if meta.is_file() {
            fs::write_unflushed(&target, bytes, meta.permissions().mode() & 0o777)?;
        }
    }
    Ok(())
}
