//! Placeholders: what has to exist for a moment so that something can be mounted over it.

use std::path::PathBuf;

/// Empty files and directories that the mounting of masks leaves in writable directories. They are removed
/// when the run is over, where they are still empty.
#[derive(Debug, Default)]
pub(crate) struct Placeholders(pub(crate) Vec<PathBuf>);

impl Placeholders {
    /// Removes them.
    pub(crate) fn remove(&mut self) {
        for path in self.0.drain(..).rev() {
            let Ok(meta) = path.symlink_metadata() else { continue };
            // What cannot be removed stays as an empty file or directory: harmless, and seen in the diff.
            if meta.is_dir() {
                let _ = std::fs::remove_dir(&path);
            } else if meta.is_file() && meta.len() == 0 {
                let _ = crucible_host::fs::remove_file(&path);
            }
        }
    }
}
