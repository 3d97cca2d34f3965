//! Placeholders: what has to exist for a moment so that something can be mounted over it.
//!
//! What always holds: a placeholder is removed when the last run that covers it is over, and not before.
//! Removing it earlier would take the cover off it in every other run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// How many runs of this process need each placeholder.
static HELD: Mutex<BTreeMap<PathBuf, u32>> = Mutex::new(BTreeMap::new());

/// The empty files and directories that mounting the covers of one run leaves in its writable directories.
/// Dropping this removes those that no other run needs, where they are still empty.
#[derive(Debug, Default)]
pub(crate) struct Placeholders(Vec<PathBuf>);

/// What is at a path that is to be covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Something of the user's.
    Real,
    /// Nothing, or a placeholder; it is held now.
    Held,
}

impl Placeholders {
    /// Holds a placeholder at `path` unless something real is there.
    pub(crate) fn hold(&mut self, path: &Path) -> Presence {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if !held.contains_key(path) && path.symlink_metadata().is_ok() {
            return Presence::Real;
        }
        *held.entry(path.to_owned()).or_default() += 1;
        self.0.push(path.to_owned());
        Presence::Held
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        for path in self.0.drain(..).rev() {
            if let Some(count) = held.get_mut(&path) {
                *count -= 1;
                if *count > 0 {
                    continue;
                }
            }
            held.remove(&path);
            let Ok(meta) = path.symlink_metadata() else {
                continue;
            };
            // What cannot be removed stays as an empty file or directory: harmless, and seen in the diff.
            if meta.is_dir() {
                let _ = std::fs::remove_dir(&path);
            } else if meta.is_file() && meta.len() == 0 {
                let _ = crucible_host::fs::remove_file(&path);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out directories and links by hand")]
mod tests {
    use super::*;

    #[test]
    fn the_last_run_that_needs_a_placeholder_removes_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".git");
        let (mut one, mut two) = (Placeholders::default(), Placeholders::default());
        assert_eq!(one.hold(&path), Presence::Held);
        std::fs::DirBuilder::new().create(&path).unwrap();
        assert_eq!(two.hold(&path), Presence::Held);
        drop(one);
        assert!(path.exists());
        drop(two);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_the_users_stays() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("real");
        crucible_host::fs::write_atomic(&path, b"").unwrap();
        let mut one = Placeholders::default();
        assert_eq!(one.hold(&path), Presence::Real);
        drop(one);
        assert!(path.exists());
        // One that was filled meanwhile, by whom ever, is not empty and so not ours to remove.
        let other = home.path().join("other");
        let mut one = Placeholders::default();
        assert_eq!(one.hold(&other), Presence::Held);
        crucible_host::fs::write_atomic(&other, b"content").unwrap();
        drop(one);
        assert!(other.exists());
    }
}
