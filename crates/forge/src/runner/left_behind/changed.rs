//! Lists every changed file, for commands of git's settings that may run any of them.

use crucible_repo::{is_dot_git, is_git_entry};

use super::run_by_git::is_placeholder;
use super::{DirectoryState, entries, is_repository};
use crate::places::is_own;

impl DirectoryState {
    /// Returns the new and changed files and links in the scanned directories, except those of git and Crucible, in the order of
    /// their paths. Directories that cannot be listed are left out; [`Self::left_behind`] reports them.
    pub(in crate::runner) fn changed_files(&self) -> Vec<String> {
        let mut changed = Vec::new();
        let mut seen = 0;
        let mut open = self.places.clone();
        while let Some(at) = open.pop() {
            let Ok(entries) = entries(&at, &mut seen, self.most) else {
                continue;
            };
            let is_repository = is_repository(&at, &entries);
            for (name, path, meta) in entries {
                let is_of_git = is_repository && is_git_entry(name.as_ref());
                if is_of_git || is_dot_git(name.as_ref()) || is_own(&name) {
                    continue;
                }
                if meta.is_dir() {
                    open.push(path);
                } else if self.is_new(&path, &meta)
                    && (self.found.contains_key(&path) || !is_placeholder(&meta))
                {
                    changed.push(self.relative_path(&path));
                }
            }
        }
        changed.sort();
        changed
    }
}
