//! Walking a directory: every file below it, in the order of their names, links not followed.

use std::path::{Path, PathBuf};

/// The files below `root`, or `root` itself where it is a file. `.git` and what git's ignore files name are left
/// out; hidden files are not. An error is one sentence that names the place.
pub fn files(root: &Path) -> impl Iterator<Item = Result<PathBuf, String>> + use<> {
    ignore::WalkBuilder::new(root)
        .hidden(false)
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build()
        .filter_map(|entry| match entry {
            Ok(entry) => entry.file_type().is_some_and(|kind| kind.is_file()).then(|| Ok(entry.into_path())),
            Err(error) => Some(Err(error.to_string())),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_hidden_files_and_passes_over_git_and_what_it_ignores() {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in
            [("b", ""), (".env", ""), ("skip.log", ""), (".gitignore", "*.log\n"), (".git/config", "")]
        {
            let path = dir.path().join(name);
            crate::fs::create_dir_all(path.parent().unwrap()).unwrap();
            crate::fs::write_atomic(&path, content.as_bytes()).unwrap();
        }
        let found: Vec<_> =
            files(dir.path()).map(|file| file.unwrap().file_name().unwrap().to_owned()).collect();
        assert_eq!(found, [".env", ".gitignore", "b"]);
    }
}
