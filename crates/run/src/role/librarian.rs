//! The librarian: shows files of the repository, verbatim, within the budget; local and deterministic.

use std::fs;
use std::path::PathBuf;

use crucible_host::fs::read_prefix;
use crucible_model::{ByteLimit, RepoPath};
use crucible_pack::{Entry, Source, SourceError};
use crucible_secrets::Scanner;

/// A repository's work tree as the pack reads it.
pub(crate) struct WorkTree {
    root: PathBuf,
    real_root: PathBuf,
}

impl WorkTree {
    pub(crate) fn new(root: PathBuf) -> Self {
        let real_root = fs::canonicalize(&root).unwrap_or_else(|_| root.clone());
        Self { root, real_root }
    }
}

impl Source for WorkTree {
    fn entry(&self, path: &RepoPath) -> Entry {
        let mut here = self.root.clone();
        let mut linked = false;
        let mut last = None;
        for segment in path.segments() {
            here.push(segment);
            match fs::symlink_metadata(&here) {
                Err(_) if !linked => return Entry::Missing,
                Ok(meta) => {
                    linked |= meta.file_type().is_symlink();
                    last = Some(meta);
                }
                Err(_) => {}
            }
        }
        // Where no part is a link, the last look was at the file itself: nothing is left to resolve.
        if let Some(meta) = last.filter(|_| !linked) {
            return if meta.is_file() { Entry::File { size: meta.len() } } else { Entry::NotAFile };
        }
        let Ok(real) = fs::canonicalize(&here) else {
            return Entry::LeavesRepository;
        };
        let Ok(meta) = fs::metadata(&real) else {
            return Entry::Missing;
        };
        let size = meta.len();
        let inside = real.strip_prefix(&self.real_root).ok().and_then(|rest| rest.to_str());
        match inside.map(str::parse::<RepoPath>) {
            Some(Ok(to)) if meta.is_file() => Entry::Linked { to, size },
            Some(Ok(_)) => Entry::NotAFile,
            Some(Err(_)) | None => Entry::LeavesRepository,
        }
    }

    fn read(&self, path: &RepoPath, max: u64) -> Result<Vec<u8>, SourceError> {
        read_prefix(&self.root.join(path), ByteLimit(max))
            .map(|prefix| prefix.bytes)
            .map_err(|error| SourceError { path: path.clone(), problem: error.to_string() })
    }

    fn is_secret(&self, path: &RepoPath, content: &[u8]) -> Option<String> {
        if crucible_secrets::is_secret_file(path.as_str()) {
            return Some("secret-file".to_owned());
        }
        Scanner::builtin().scan(content).first().map(|found| found.rule.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test makes a work tree of its own")]
    fn what_stands_at_a_path_is_told_with_and_without_links_on_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("repo");
        fs::create_dir_all(root.join("src/deep")).unwrap();
        fs::write(root.join("src/a.rs"), "four").unwrap();
        fs::write(dir.path().join("outside"), "secret").unwrap();
        for (target, link) in [
            ("src", "to-dir"),
            ("src/a.rs", "to-file"),
            ("missing", "to-nothing"),
            ("../outside", "out"),
            ("deep", "src/to-deep"),
        ] {
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        }
        let tree = WorkTree::new(root);
        let linked = |to: &str| Entry::Linked { to: to.parse().unwrap(), size: 4 };
        for (path, expected) in [
            ("src/a.rs", Entry::File { size: 4 }),
            ("src", Entry::NotAFile),
            ("src/b.rs", Entry::Missing),
            ("src/a.rs/x", Entry::Missing),
            ("to-file", linked("src/a.rs")),
            ("to-dir/a.rs", linked("src/a.rs")),
            ("src/to-deep", Entry::NotAFile),
            ("to-nothing", Entry::LeavesRepository),
            ("out", Entry::LeavesRepository),
        ] {
            assert_eq!(tree.entry(&path.parse().unwrap()), expected, "{path}");
        }
    }
}
