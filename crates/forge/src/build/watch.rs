//! What an agent creates and changes while it works, for the user who watches. Sizes and times only: the result is judged afterwards, by digest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The most names that are looked at; a tree with more is not watched.
const LIMIT: usize = 20_000;

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChange {
    /// It was not there before.
    Made,
    /// Its size or its time is another one.
    Changed,
    /// It is gone.
    Removed,
}

impl FileChange {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

/// What was seen of a copy so far.
pub(super) struct CopyWatch {
    root: PathBuf,
    snapshot: BTreeMap<PathBuf, (u64, Option<SystemTime>)>,
}

impl CopyWatch {
    /// Watches this copy from now on.
    pub(super) fn on(root: &Path) -> Self {
        let seen = look(root).unwrap_or_default();
        Self {
            root: root.to_owned(),
            snapshot: seen,
        }
    }

    /// What happened to which file since the last look, from the top on. Nothing where there are too many to be watched.
    pub(super) fn news(&mut self) -> Vec<(PathBuf, FileChange)> {
        let Some(now) = look(&self.root) else {
            return Vec::new();
        };
        let mut news: Vec<(PathBuf, FileChange)> = now
            .iter()
            .filter_map(|(path, state)| match self.snapshot.get(path) {
                None => Some((path.clone(), FileChange::Made)),
                Some(before) if before != state => Some((path.clone(), FileChange::Changed)),
                Some(_) => None,
            })
            .collect();
        let removed = self.snapshot.keys().filter(|path| !now.contains_key(*path));
        news.extend(removed.map(|path| (path.clone(), FileChange::Removed)));
        self.snapshot = now;
        news
    }
}

/// Size and time of every file below, by its path from there; nothing where there are too many. No link is followed, and the repository of
/// the copy is passed over.
fn look(root: &Path) -> Option<BTreeMap<PathBuf, (u64, Option<SystemTime>)>> {
    let mut found = BTreeMap::new();
    let mut names = 0;
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(root.join(&directory)) else {
            continue;
        };
        for entry in entries.flatten() {
            names += 1;
            if names > LIMIT {
                return None;
            }
            let path = directory.join(entry.file_name());
            let Ok(meta) = entry.metadata() else { continue };
            if !meta.is_dir() {
                found.insert(path, (meta.len(), meta.modified().ok()));
            } else if path != Path::new(".git") {
                waiting.push(path);
            }
        }
    }
    Some(found)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test plays the agent")]
mod tests {
    use super::*;

    #[test]
    fn each_file_change_is_reported_once() {
        let copy = tempfile::tempdir().unwrap();
        let at = |name: &str| copy.path().join(name);
        std::fs::create_dir_all(at("src/.git")).unwrap();
        std::fs::create_dir_all(at(".git")).unwrap();
        std::fs::write(at("src/old.py"), "a").unwrap();
        let mut watch = CopyWatch::on(copy.path());
        assert_eq!(watch.news(), []);
        std::fs::write(at("src/new.py"), "a").unwrap();
        std::fs::write(at("src/old.py"), "longer").unwrap();
        std::fs::write(at(".git/config"), "a").unwrap();
        std::os::unix::fs::symlink("..", at("src/loop")).unwrap();
        let news = watch.news();
        let changes: Vec<_> = news
            .iter()
            .map(|(path, what)| (path.to_str().unwrap(), *what))
            .collect();
        assert_eq!(
            changes,
            [
                ("src/loop", FileChange::Made),
                ("src/new.py", FileChange::Made),
                ("src/old.py", FileChange::Changed)
            ]
        );
        std::fs::remove_file(at("src/old.py")).unwrap();
        assert_eq!(
            watch.news(),
            [(PathBuf::from("src/old.py"), FileChange::Removed)]
        );
        std::fs::remove_dir_all(at("src")).unwrap();
        assert_eq!(watch.news().len(), 2);
    }
}
