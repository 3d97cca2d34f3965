//! Reads a repository's behaviour catalogue and the markers in its code for [`check_behaviors`].
//!
//! Only files tracked by git are read, in the work tree or on the copy with a change. Links are not followed
//! in any part of a path; pipes and devices are not opened. Each file is read once and up to a limit; files
//! beyond it are reported. Documents, generated files and files that are secret by name are not code.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crucible_host::fs::{read_prefix, read_regular_up_to};
use crucible_model::{ByteLimit, Code, Finding, PathRole, PathRoles, RepoPath, Verdict};
use crucible_patch::FileMode;
use crucible_repo::Git;

use crate::analysis::BehaviorCatalogue;
use crate::contract::{
    BEHAVIOR_INDEX, BEHAVIOR_PAGES, BehaviorFiles, CatalogueText, behavior_markers,
    check_behaviors, is_page_name,
};
use crate::error::RunError;
use crate::gatekeeper::Change;

/// How much of one file is searched for markers.
const MAX_SEARCHED: ByteLimit = ByteLimit(8 * 1024 * 1024);
/// How much of all files together is.
const MAX_SEARCHED_ALL: u64 = 2 * 1024 * 1024 * 1024;
/// The largest index and the largest page.
const MAX_DOCUMENT: ByteLimit = ByteLimit(4 * 1024 * 1024);

const TAKEN_AWAY: Code = Code::new("behaviors-taken-away");

/// Checks the behaviour catalogue of a repository's work tree: `crucible behaviors check`.
///
/// # Errors
///
/// Fails when git cannot list the tracked files.
pub async fn check_repository_behaviors(git: &Git) -> Result<Verdict, RunError> {
    let tracked = git.tracked_names().await?;
    Ok(check_behaviors(&read_behaviors(
        git.top(),
        tracked.into_iter(),
    )))
}

/// Returns the behaviours listed in the index of the work tree at `root`; empty if there is no readable
/// index.
#[must_use]
pub(crate) fn listed_behaviors(root: &Path) -> Vec<String> {
    let mut places = Places::new(root);
    let index = places.document(Path::new(BEHAVIOR_INDEX));
    BehaviorFiles {
        index,
        ..BehaviorFiles::default()
    }
    .ids()
}

/// Reads the catalogue on a copy of the repository, with the change if there is one. A repository without a
/// place for a catalogue is not searched.
pub(crate) async fn read_copy(
    git: &Git,
    copy: &Path,
    change: Option<&Change>,
) -> Result<BehaviorFiles, RunError> {
    if copy.join(BEHAVIOR_PAGES).symlink_metadata().is_err() {
        return Ok(BehaviorFiles::default());
    }
    let mut files: HashMap<PathBuf, FileMode> = git.tracked_names().await?.into_iter().collect();
    for changed in change.iter().flat_map(|change| &change.tree.changes) {
        match changed.new_mode {
            Some(mode) => files.insert(changed.path.clone(), mode),
            None => files.remove(&changed.path),
        };
    }
    Ok(read_behaviors(copy, files.into_iter()))
}

/// Judges the catalogue that a change leaves, in a repository that began with this one.
pub(crate) fn judge_changed(before: BehaviorCatalogue, after: &BehaviorFiles) -> Verdict {
    let mut verdict = check_behaviors(after);
    if before != BehaviorCatalogue::Absent && after.index.is_none() {
        let hint = "The repository had a behaviour catalogue before the change; do not move or delete its index.";
        verdict.push(Finding::error(TAKEN_AWAY, BEHAVIOR_INDEX, hint));
    }
    verdict
}

/// Reads the catalogue and the markers of these files below `root`.
fn read_behaviors(
    root: &Path,
    tracked: impl Iterator<Item = (PathBuf, FileMode)>,
) -> BehaviorFiles {
    let mut tracked: Vec<(PathBuf, FileMode)> = tracked.collect();
    tracked.sort_by(|a, b| a.0.cmp(&b.0));
    let mut found = BehaviorFiles::default();
    let mut places = Places::new(root);
    let mut left = MAX_SEARCHED_ALL;
    for (path, mode) in &tracked {
        let content = path.to_string_lossy();
        if content == BEHAVIOR_INDEX {
            found.index = places.document(path);
        } else if let Some(name) = content
            .strip_prefix(BEHAVIOR_PAGES)
            .and_then(|rest| rest.strip_prefix('/'))
            && !name.contains('/')
            && is_page_name(name)
        {
            found
                .pages
                .extend(places.document(path).map(|text| (name.to_owned(), text)));
        } else if matches!(mode, FileMode::Regular | FileMode::Executable) && is_code(path) {
            let Some(place) = places.plain_file(path) else {
                continue;
            };
            if left == 0 {
                found.unsearched.insert(
                    content.into_owned(),
                    "the search limit was reached before it".to_owned(),
                );
                continue;
            }
            let limit = ByteLimit(MAX_SEARCHED.0.min(left));
            let Ok(prefix) = read_prefix(&place, limit) else {
                found
                    .unsearched
                    .insert(content.into_owned(), "it cannot be read".to_owned());
                continue;
            };
            let read = prefix.bytes.len() as u64;
            left = left.saturating_sub(read);
            let is_text = !prefix.bytes.iter().take(8000).any(|byte| *byte == 0);
            if prefix.total > read && is_text {
                found.unsearched.insert(
                    content.to_string(),
                    format!("only its first {read} bytes were searched"),
                );
            }
            let markers = behavior_markers(&prefix.bytes);
            if !markers.is_empty() {
                found.markers.insert(content.into_owned(), markers);
            }
        }
    }
    found
}

/// Returns whether the file at `path` is searched for markers.
fn is_code(path: &Path) -> bool {
    // A name that no pack can hold may be code all the same.
    let Ok(known) = RepoPath::from_bytes(path.as_os_str().as_bytes()) else {
        return true;
    };
    let roles = PathRoles::from_path(&known);
    !roles.has(PathRole::Document)
        && !roles.has(PathRole::Generated)
        && !crucible_secrets::is_secret_file(known.as_str())
}

/// Files below a directory that are reached without any link.
struct Places<'r> {
    root: &'r Path,
    /// Whether each path is a directory reached without links.
    plain: HashMap<PathBuf, bool>,
}

impl<'r> Places<'r> {
    fn new(root: &'r Path) -> Self {
        Self {
            root,
            plain: HashMap::new(),
        }
    }

    /// Returns the location of the regular file at `path`; `None` for anything else, or behind a link.
    fn plain_file(&mut self, path: &Path) -> Option<PathBuf> {
        let place = self.root.join(path);
        let is_there = self.is_plain_directory(path.parent()?)
            && fs::symlink_metadata(&place).is_ok_and(|meta| meta.file_type().is_file());
        is_there.then_some(place)
    }

    /// Returns the document at `path`, if present.
    fn document(&mut self, path: &Path) -> Option<CatalogueText> {
        let unreadable = |reason: &str| Some(CatalogueText::Unreadable(reason.to_owned()));
        fs::symlink_metadata(self.root.join(path)).ok()?;
        let Some(place) = self.plain_file(path) else {
            return unreadable("it is a link, reached through a link, or not a file");
        };
        match read_regular_up_to(&place, MAX_DOCUMENT).map(String::from_utf8) {
            Ok(Ok(text)) => Some(CatalogueText::Read(text)),
            Ok(Err(_)) => unreadable("it is not UTF-8"),
            Err(error) => unreadable(&error.to_string()),
        }
    }

    fn is_plain_directory(&mut self, directory: &Path) -> bool {
        let Some(parent) = directory.parent() else {
            return true;
        };
        if let Some(known) = self.plain.get(directory) {
            return *known;
        }
        let is_plain = self.is_plain_directory(parent)
            && fs::symlink_metadata(self.root.join(directory))
                .is_ok_and(|meta| meta.file_type().is_dir());
        self.plain.insert(directory.to_owned(), is_plain);
        is_plain
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const INDEX: &str = "- [B001](B001-totals.md)\n";
    const PAGE: &str = "# B001\n## Reason\n## Behavior\n## Result\n";

    fn repository(files: &[(&str, &str)]) -> tempfile::TempDir {
        let temp_dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let place = temp_dir.path().join(path);
            crucible_host::fs::create_dir_all(place.parent().unwrap()).unwrap();
            crucible_host::fs::write_atomic(&place, text.as_bytes()).unwrap();
        }
        temp_dir
    }

    fn read(temp_dir: &tempfile::TempDir, paths: &[&str]) -> BehaviorFiles {
        read_behaviors(
            temp_dir.path(),
            paths
                .iter()
                .map(|path| (PathBuf::from(path), FileMode::Regular)),
        )
    }

    fn codes(files: &BehaviorFiles) -> Vec<String> {
        check_behaviors(files)
            .findings()
            .iter()
            .map(|finding| finding.code.to_string())
            .collect()
    }

    const WHOLE: [(&str, &str); 3] = [
        (BEHAVIOR_INDEX, INDEX),
        ("docs/behaviors/B001-totals.md", PAGE),
        ("src/a.py", "# BEHAVIOR_ID: B001\n"),
    ];
    const PATHS: [&str; 3] = [BEHAVIOR_INDEX, "docs/behaviors/B001-totals.md", "src/a.py"];

    #[test]
    fn only_tracked_files_are_searched() {
        let fixture = repository(&WHOLE);
        assert_eq!(codes(&read(&fixture, &PATHS)), [""; 0]);
        assert_eq!(listed_behaviors(fixture.path()), ["B001"]);
        assert_eq!(
            codes(&read(&fixture, &PATHS[..2])),
            ["behaviors-entry-unmarked"]
        );
        assert_eq!(
            codes(&read(&fixture, &PATHS[1..])),
            ["behaviors-index-missing"]
        );
        assert_eq!(codes(&read(&fixture, &[])), ["behaviors-no-catalogue"]);
        assert_eq!(listed_behaviors(&fixture.path().join("src")), [""; 0]);
    }

    #[test]
    fn documents_generated_files_and_secrets_are_no_code() {
        let marker = "# BEHAVIOR_ID: B009\n";
        let paths = [
            "docs/guide.md",
            "a.lock",
            "Cargo.lock",
            ".env",
            "dist/a.min.js",
            "src/b.py",
        ];
        let fixture = repository(&paths.map(|path| (path, marker)));
        let files = read(&fixture, &paths);
        assert!(
            files.markers.contains_key("src/b.py") && !files.markers.contains_key("docs/guide.md")
        );
        assert!(
            !files.markers.contains_key(".env") && !files.markers.contains_key("dist/a.min.js")
        );
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test makes links")]
    fn links_in_paths_are_not_followed() {
        let outside = repository(&[
            ("INDEX.md", INDEX),
            ("B001-totals.md", PAGE),
            ("a.py", "# BEHAVIOR_ID: B001\n"),
        ]);
        let full_temp_dir = repository(&WHOLE);
        let relink = |path: &str, to: &Path| {
            let place = full_temp_dir.path().join(path);
            if place.is_dir() {
                crucible_host::fs::remove_dir_all(&place).unwrap();
            } else {
                crucible_host::fs::remove_file(&place).unwrap();
            }
            symlink(to, &place).unwrap();
        };
        relink("src/a.py", &outside.path().join("a.py"));
        assert_eq!(
            codes(&read(&full_temp_dir, &PATHS)),
            ["behaviors-entry-unmarked"]
        );
        relink("src", outside.path());
        assert_eq!(
            codes(&read(&full_temp_dir, &PATHS)),
            ["behaviors-entry-unmarked"]
        );
        relink(
            "docs/behaviors/B001-totals.md",
            &outside.path().join("B001-totals.md"),
        );
        assert_eq!(
            codes(&read(&full_temp_dir, &PATHS)),
            ["behaviors-unreadable", "behaviors-entry-unmarked"]
        );
        relink("docs/behaviors", outside.path());
        assert_eq!(
            codes(&read(&full_temp_dir, &PATHS)),
            ["behaviors-unreadable"; 2]
        );
        assert_eq!(listed_behaviors(full_temp_dir.path()), [""; 0]);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test makes a file of a hole")]
    fn partial_search_of_huge_file_is_reported() {
        let fixture = repository(&WHOLE);
        let text = format!("{}\n# BEHAVIOR_ID: B001\n", "x".repeat(9000));
        crucible_host::fs::write_atomic(&fixture.path().join("src/a.py"), text.as_bytes()).unwrap();
        let file = fs::OpenOptions::new()
            .write(true)
            .open(fixture.path().join("src/a.py"))
            .unwrap();
        file.set_len(300 * 1024 * 1024).unwrap();
        // NUL follows the text, so it is not source and has no marker.
        assert_eq!(
            codes(&read(&fixture, &PATHS)),
            ["behaviors-search-cut", "behaviors-entry-unmarked"]
        );
        crucible_host::fs::write_atomic(&fixture.path().join(BEHAVIOR_INDEX), b"\xff").unwrap();
        assert!(codes(&read(&fixture, &PATHS)).contains(&"behaviors-unreadable".to_owned()));
    }

    #[test]
    fn a_change_may_not_take_the_catalogue_away() {
        let nothing = BehaviorFiles::default();
        assert!(judge_changed(BehaviorCatalogue::Absent, &nothing).passes());
        let verdict = judge_changed(BehaviorCatalogue::Unchecked, &nothing);
        assert_eq!(verdict.errors().next().unwrap().code, TAKEN_AWAY);
        let fixture = repository(&WHOLE);
        assert!(judge_changed(BehaviorCatalogue::Unchecked, &read(&fixture, &PATHS)).passes());
        assert!(judge_changed(BehaviorCatalogue::Absent, &read(&fixture, &PATHS)).passes());
    }

    #[tokio::test]
    #[expect(
        clippy::disallowed_methods,
        reason = "git is found where the test's own PATH says"
    )]
    async fn catalogue_lists_names_only() {
        use std::sync::Arc;

        let env = crucible_host::env::Environment::from_pairs(
            [("PATH", std::env::var_os("PATH").unwrap())],
            "/",
        );
        let repo = crucible_testkit::RepoBuilder::new().files(WHOLE).build();
        let git = Git::open(
            Arc::new(crucible_sandbox::Sandbox::new(None, &env)),
            &env,
            repo.path(),
        )
        .await
        .unwrap();
        // In a partial clone, even the size of a missing object has to be fetched.
        let oid = repo.git(["rev-parse", "HEAD:src/a.py"]);
        let (directory, file) = oid.trim().split_at(2);
        fs::remove_file(repo.path().join(".git/objects").join(directory).join(file)).unwrap();
        assert!(git.tracked_files().await.is_err());
        assert!(check_repository_behaviors(&git).await.unwrap().passes());
    }
}
