//! A private copy of the granted directories, in which a skill writes, and the way of what it wrote into the project.
//!
//! A skill of the class FILE_WRITE never writes into the project itself. Its granted directories are copied, without what is hidden from
//! it; it works on the copy; and only when the run succeeded do the changed files change places with those of the project, in one
//! journalled change. A run that was denied, failed or was killed leaves the project as it was.
//!
//! What always holds: no link is followed in the project; a file that another process changed meanwhile keeps its content, and then no file
//! changes; a process that is killed while files change places leaves a journal, by which the next run finishes that or takes it back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_host::WorkDir;
use crucible_host::fs::{
    FsError, create_dir_all, create_dir_beneath, make_link, read_beneath, read_regular_up_to,
    set_mode, write_unflushed,
};
use crucible_host::lock::{Lock, LockError};
use crucible_model::{ByteLimit, Digest, RepoPath};
use crucible_repo::{
    EditClaim, EditJournal, NewFile, TreeEdit, TreeEditError, edit_tree, pending_tree_edit,
    recover_tree_edit,
};
use crucible_secrets::{is_secret_directory, is_secret_file};
use tokio::time::sleep;

use super::RunnerError;
use super::call_sandbox::MAX_ENTRIES;
use crate::paths::SkillPaths;
use crate::places::is_own;
use crate::project::ForgeProject;

/// The most bytes of granted directories that are copied: 1 GiB.
const MAX_BYTES: u64 = 1 << 30;
/// Bits of a mode that say who may do what.
const MODE: u32 = 0o7777;
/// How long another run of the same skill may take to bring its files.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// Why what a skill wrote did not come to the project. The project is as it was.
#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    /// The files cannot change places.
    #[error(transparent)]
    Edit(#[from] TreeEditError),
    /// The copy cannot be read.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// Another run of this skill brings its files.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// What is there cannot be brought.
    #[error("{path}: {why}")]
    Unfit {
        /// Where, from the project's top.
        path: String,
        /// Why not.
        why: &'static str,
    },
}

/// The copy of one run.
#[derive(Debug)]
pub(super) struct Staging {
    /// Its top, which stands for that of the project; gone when this is dropped.
    top: WorkDir,
    places: Vec<RepoPath>,
    files: BTreeMap<String, Copied>,
    directories: BTreeSet<String>,
    links: BTreeSet<String>,
}

/// A file of the copy, as it was made.
#[derive(Debug)]
struct Copied {
    digest: Digest,
    stamp: Stamp,
}

/// By what a file of the copy is known to be unchanged.
type Stamp = (u64, u64, i64, i64);

impl Staging {
    /// Copies these places of the project at `root` into the directory `top`, which is empty.
    pub(super) fn copy(
        root: &Path,
        places: &[RepoPath],
        top: WorkDir,
    ) -> Result<Self, RunnerError> {
        let mut staging = Self {
            top,
            places: outermost(places),
            files: BTreeMap::new(),
            directories: BTreeSet::new(),
            links: BTreeSet::new(),
        };
        let (mut seen, mut bytes) = (0, 0);
        for place in staging.places.clone() {
            let mut open = vec![place.as_str().to_owned()];
            while let Some(at) = open.pop() {
                staging.copy_directory(root, &at, &mut seen, &mut bytes, &mut open)?;
            }
        }
        // Only now: what was written into them changed their times, and some may be closed to us.
        for (directory, mode) in modes_of(root, &staging.directories) {
            set_mode(&staging.top().join(directory), mode)?;
        }
        Ok(staging)
    }

    fn copy_directory(
        &mut self,
        root: &Path,
        at: &str,
        seen: &mut usize,
        bytes: &mut u64,
        open: &mut Vec<String>,
    ) -> Result<(), RunnerError> {
        create_dir_all(&self.top().join(at))?;
        self.directories.insert(at.to_owned());
        for (name, meta) in entries(&root.join(at), seen)? {
            // What has no name in UTF-8 stays out, as what is hidden does.
            let Some(name) = name.to_str() else { continue };
            let below = format!("{at}/{name}");
            let target = self.top().join(&below);
            if is_own(name) {
                continue;
            } else if meta.is_dir() {
                if !is_secret_directory(&below) {
                    open.push(below);
                }
            } else if meta.is_symlink() {
                let leads =
                    std::fs::read_link(root.join(&below)).map_err(|source| FsError::Io {
                        action: "read the link",
                        path: root.join(&below),
                        source,
                    })?;
                make_link(&leads, &target)?;
                self.links.insert(below);
            } else if meta.is_file() && !is_secret_file(&below) {
                let left = MAX_BYTES.saturating_sub(*bytes);
                let content = match read_beneath(root, &below, ByteLimit(left)) {
                    Ok(content) => content,
                    Err(FsError::TooLarge { .. }) => {
                        return Err(RunnerError::TooMuchToCopy {
                            path: at.to_owned(),
                            most: MAX_BYTES >> 20,
                        });
                    }
                    // The skill could not read it either.
                    Err(_) => continue,
                };
                *bytes += content.len() as u64;
                write_unflushed(&target, &content, meta.permissions().mode() & MODE)?;
                let stamp = stamp(&look(&target)?);
                self.files.insert(
                    below,
                    Copied {
                        digest: Digest::compute(&content),
                        stamp,
                    },
                );
            }
        }
        Ok(())
    }

    /// The top of the copy.
    pub(super) fn top(&self) -> &Path {
        self.top.path()
    }

    /// Its granted directories, from its top; none lies in another.
    pub(super) fn places(&self) -> &[RepoPath] {
        &self.places
    }

    /// Brings what is different in the copy to the project, all of it or nothing.
    pub(super) async fn copy_to_project(
        &self,
        project: &ForgeProject,
        home: &Path,
        paths: &SkillPaths,
    ) -> Result<(), StagingError> {
        let Different { edits, directories } = self.different()?;
        let removed: Vec<&String> = self.directories.difference(&directories).collect();
        let new: Vec<&String> = directories.difference(&self.directories).collect();
        if edits.is_empty() && removed.is_empty() && new.is_empty() {
            return Ok(());
        }
        let _alone = alone(project, home, paths).await?;
        let place = journal_place(project, home, paths)?;
        let ours = |claim: &EditClaim| is_ours(claim, &self.places);
        let journal = EditJournal {
            path: &place,
            purpose: purpose(paths),
            agrees: &ours,
        };
        let modes = modes_of(project.root(), &directories);
        edit_tree(project.root(), &edits, &journal)?;
        for directory in new {
            // Those that hold something were made with it.
            create_dir_beneath(project.root(), directory)?;
        }
        // A directory goes with its last file, but the skill left these.
        for (directory, mode) in modes {
            let place = project.root().join(directory);
            if place.symlink_metadata().is_err() {
                create_dir_beneath(project.root(), directory)?;
                set_mode(&place, mode)?;
            }
        }
        // What lies in one comes after it.
        for directory in removed.into_iter().rev() {
            remove_empty(project.root(), directory);
        }
        Ok(())
    }

    /// What is different in the copy since it was made.
    fn different(&self) -> Result<Different, StagingError> {
        let mut edits = Vec::new();
        let mut directories = BTreeSet::new();
        let (mut files, mut links) = (BTreeSet::new(), BTreeSet::new());
        let mut seen = 0;
        let mut open: Vec<String> = self
            .places
            .iter()
            .map(|place| place.as_str().to_owned())
            .collect();
        while let Some(at) = open.pop() {
            let listed =
                entries(&self.top().join(&at), &mut seen).map_err(|_| StagingError::Unfit {
                    path: at.clone(),
                    why: "it cannot be listed",
                })?;
            directories.insert(at.clone());
            for (name, meta) in listed {
                let below = format!("{at}/{}", name.to_string_lossy());
                let unfit = |why| StagingError::Unfit {
                    path: below.clone(),
                    why,
                };
                if name.to_str().is_none() {
                    return Err(unfit("its name is not UTF-8"));
                }
                if meta.is_dir() {
                    open.push(below);
                } else if meta.is_symlink() {
                    links.insert(below);
                } else if meta.is_file() {
                    files.insert(below.clone());
                    let copied = self.files.get(&below);
                    if copied.is_some_and(|copied| copied.stamp == stamp(&meta)) {
                        continue;
                    }
                    let path: RepoPath = below
                        .parse()
                        .map_err(|_| unfit("its name cannot be used in a project"))?;
                    let bytes = read_regular_up_to(&self.top().join(&below), ByteLimit(MAX_BYTES))?;
                    let before = copied.map(|copied| copied.digest);
                    if before != Some(Digest::compute(&bytes)) {
                        edits.push(TreeEdit {
                            path,
                            before,
                            after: Some(bytes),
                            new_file: NewFile::Plain,
                        });
                    }
                } else {
                    return Err(unfit("it is neither a file nor a directory"));
                }
            }
        }
        if let Some(link) = self.links.symmetric_difference(&links).next() {
            let why = "a symbolic link came or went, and links are not changed";
            return Err(StagingError::Unfit {
                path: link.clone(),
                why,
            });
        }
        for (path, copied) in self.files.iter().filter(|(path, _)| !files.contains(*path)) {
            let path = path.parse().map_err(|_| StagingError::Unfit {
                path: path.clone(),
                why: "its name cannot be used in a project",
            })?;
            let before = Some(copied.digest);
            edits.push(TreeEdit {
                path,
                before,
                after: None,
                new_file: NewFile::Plain,
            });
        }
        Ok(Different { edits, directories })
    }
}

/// What is different in a copy.
struct Different {
    edits: Vec<TreeEdit>,
    /// All that are there now.
    directories: BTreeSet<String>,
}

/// Finishes, or takes back, what a killed run of the skill left half done in the project.
pub(super) async fn recover(
    project: &ForgeProject,
    home: &Path,
    paths: &SkillPaths,
    places: &[RepoPath],
) -> Result<(), StagingError> {
    let place = journal_place(project, home, paths)?;
    if !place.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return Ok(());
    }
    let _alone = alone(project, home, paths).await?;
    if pending_tree_edit(&place)?.is_some() {
        let ours = |claim: &EditClaim| is_ours(claim, places);
        let journal = EditJournal {
            path: &place,
            purpose: purpose(paths),
            agrees: &ours,
        };
        recover_tree_edit(project.root(), &journal)?;
    }
    Ok(())
}

/// Waits until no other run of this skill brings its files.
async fn alone(
    project: &ForgeProject,
    home: &Path,
    paths: &SkillPaths,
) -> Result<Lock, StagingError> {
    let file =
        project
            .own_directory(home)?
            .join(format!("{}-{}-run.lock", project.key(), paths.module));
    let mut waited = Duration::ZERO;
    loop {
        match Lock::acquire(&file, "crucible skill run") {
            Err(LockError::Held { .. }) if waited < TIMEOUT => {
                sleep(PAUSE).await;
                waited += PAUSE;
            }
            taken => return Ok(taken?),
        }
    }
}

fn journal_place(
    project: &ForgeProject,
    home: &Path,
    paths: &SkillPaths,
) -> Result<PathBuf, LockError> {
    Ok(project
        .own_directory(home)?
        .join(format!("{}-{}-run.json", project.key(), paths.module)))
}

fn purpose(paths: &SkillPaths) -> Digest {
    Digest::compute(format!("crucible skill run {}", paths.module).as_bytes())
}

/// Whether a record is of files below these places alone.
fn is_ours(claim: &EditClaim, places: &[RepoPath]) -> bool {
    let below = |path: &RepoPath| {
        places.iter().any(|place| {
            path.as_str()
                .strip_prefix(place.as_str())
                .is_some_and(|rest| rest.starts_with('/'))
        })
    };
    claim.edits.iter().all(|edit| below(&edit.path))
}

/// Those of the places that lie in no other.
fn outermost(places: &[RepoPath]) -> Vec<RepoPath> {
    let lies_in = |path: &RepoPath, other: &RepoPath| {
        path.as_str()
            .strip_prefix(other.as_str())
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let mut outer: Vec<RepoPath> = places
        .iter()
        .filter(|path| !places.iter().any(|other| lies_in(path, other)))
        .cloned()
        .collect();
    outer.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    outer.dedup();
    outer
}

/// Returns the modes of those directories that exist below `root`, outer ones first.
fn modes_of<'d>(root: &Path, directories: &'d BTreeSet<String>) -> Vec<(&'d str, u32)> {
    let mode = |directory: &'d String| {
        let meta = root.join(directory).symlink_metadata().ok()?;
        let is_directory = meta.is_dir();
        is_directory.then(|| (directory.as_str(), meta.permissions().mode() & MODE))
    };
    directories.iter().filter_map(mode).collect()
}

/// Removes a directory where it is empty and no link leads to it.
fn remove_empty(root: &Path, directory: &str) {
    let place = root.join(directory);
    if place.canonicalize().is_ok_and(|real| real == place) {
        // Where something else came to lie in it, it stays.
        let _stays = std::fs::remove_dir(place);
    }
}

fn look(path: &Path) -> Result<Metadata, FsError> {
    path.symlink_metadata().map_err(|source| FsError::Io {
        action: "look at",
        path: path.to_owned(),
        source,
    })
}

fn stamp(meta: &Metadata) -> Stamp {
    (meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec())
}

fn entries(
    directory: &Path,
    seen: &mut usize,
) -> Result<Vec<(std::ffi::OsString, Metadata)>, RunnerError> {
    let fail = |source| FsError::Io {
        action: "list",
        path: directory.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        *seen += 1;
        if *seen > MAX_ENTRIES {
            let place = format!("in {}", directory.display());
            return Err(RunnerError::TooManyPlaces {
                place,
                most: MAX_ENTRIES,
            });
        }
        found.push((entry.file_name(), entry.metadata().map_err(fail)?));
    }
    Ok(found)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out files by hand")]
mod tests {
    use super::*;

    struct Room {
        dir: tempfile::TempDir,
        project: ForgeProject,
        paths: SkillPaths,
    }

    impl Room {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap().join("project");
            std::fs::create_dir_all(root.join("notes/sub")).unwrap();
            std::fs::create_dir_all(dir.path().join("home")).unwrap();
            let project =
                ForgeProject::new(root, Digest::compute(b"p"), "skillset".parse().unwrap());
            let paths = project.paths(&"word_count".parse().unwrap()).unwrap();
            let fixture = Self {
                dir,
                project,
                paths,
            };
            fixture.put("notes/a.md", "a");
            fixture.put("notes/sub/b.md", "b");
            fixture
        }

        fn put(&self, path: &str, text: &str) {
            std::fs::write(self.project.root().join(path), text).unwrap();
        }

        fn text(&self, path: &str) -> Option<String> {
            std::fs::read_to_string(self.project.root().join(path)).ok()
        }

        fn staging(&self) -> Staging {
            let top = WorkDir::create(self.dir.path(), "staging-", "test").unwrap();
            Staging::copy(self.project.root(), &["notes".parse().unwrap()], top).unwrap()
        }

        async fn bring(&self, staging: &Staging) -> Result<(), StagingError> {
            staging
                .copy_to_project(&self.project, &self.dir.path().join("home"), &self.paths)
                .await
        }
    }

    #[tokio::test]
    async fn changes_come_to_the_project_only_when_brought() {
        let fixture = Room::new();
        fixture.put("notes/.env", "KEY=hidden");
        let mode = PermissionsExt::from_mode(0o640);
        std::fs::set_permissions(fixture.project.root().join("notes/a.md"), mode).unwrap();
        let staging = fixture.staging();
        assert!(!staging.top().join("notes/.env").exists());
        std::fs::write(staging.top().join("notes/a.md"), "A").unwrap();
        std::fs::create_dir_all(staging.top().join("notes/deep/er")).unwrap();
        std::fs::create_dir_all(staging.top().join("notes/empty")).unwrap();
        std::fs::write(staging.top().join("notes/deep/er/new.md"), "new").unwrap();
        std::fs::remove_dir_all(staging.top().join("notes/sub")).unwrap();
        assert_eq!(fixture.text("notes/a.md").as_deref(), Some("a"));
        assert!(fixture.text("notes/deep/er/new.md").is_none());
        fixture.bring(&staging).await.unwrap();
        assert_eq!(fixture.text("notes/a.md").as_deref(), Some("A"));
        assert_eq!(fixture.text("notes/deep/er/new.md").as_deref(), Some("new"));
        assert_eq!(fixture.text("notes/.env").as_deref(), Some("KEY=hidden"));
        let root = fixture.project.root();
        assert!(root.join("notes/empty").is_dir() && !root.join("notes/sub").exists());
        assert_eq!(
            root.join("notes/a.md")
                .metadata()
                .unwrap()
                .permissions()
                .mode()
                & MODE,
            0o640
        );
    }

    #[tokio::test]
    async fn directory_without_its_last_file_stays() {
        let fixture = Room::new();
        let root = fixture.project.root();
        let mode_of = |place: &str| {
            let meta = root.join(place).metadata();
            meta.map(|meta| meta.permissions().mode() & MODE).ok()
        };
        for (place, mode) in [("notes/sub", 0o775), ("notes", 0o755)] {
            let mode = PermissionsExt::from_mode(mode);
            std::fs::set_permissions(root.join(place), mode).unwrap();
        }
        let staging = fixture.staging();
        std::fs::remove_file(staging.top().join("notes/a.md")).unwrap();
        std::fs::remove_file(staging.top().join("notes/sub/b.md")).unwrap();
        fixture.bring(&staging).await.unwrap();
        assert!(fixture.text("notes/sub/b.md").is_none());
        assert_eq!(mode_of("notes/sub"), Some(0o775));
        assert_eq!(mode_of("notes"), Some(0o755));
        let staging = fixture.staging();
        std::fs::remove_dir(staging.top().join("notes/sub")).unwrap();
        fixture.bring(&staging).await.unwrap();
        assert_eq!(mode_of("notes/sub"), None);
        assert_eq!(mode_of("notes"), Some(0o755));
    }

    #[tokio::test]
    async fn file_changed_during_run_prevents_all_copies() {
        let fixture = Room::new();
        let staging = fixture.staging();
        std::fs::write(staging.top().join("notes/a.md"), "A").unwrap();
        std::fs::write(staging.top().join("notes/sub/b.md"), "B").unwrap();
        fixture.put("notes/sub/b.md", "theirs");
        let error = fixture.bring(&staging).await.unwrap_err().to_string();
        assert!(error.contains("notes/sub/b.md"), "{error}");
        assert_eq!(fixture.text("notes/a.md").as_deref(), Some("a"));
        assert_eq!(fixture.text("notes/sub/b.md").as_deref(), Some("theirs"));
    }

    #[tokio::test]
    async fn a_link_swapped_in_meanwhile_is_not_followed() {
        for swapped in ["notes", "notes/sub", "notes/sub/b.md"] {
            let fixture = Room::new();
            let staging = fixture.staging();
            std::fs::write(staging.top().join("notes/sub/b.md"), "B").unwrap();
            std::fs::write(staging.top().join("notes/sub/new.md"), "new").unwrap();
            let outside = fixture.dir.path().join("outside");
            std::fs::rename(fixture.project.root().join(swapped), &outside).unwrap();
            std::os::unix::fs::symlink(&outside, fixture.project.root().join(swapped)).unwrap();
            fixture.bring(&staging).await.unwrap_err();
            let places = [
                outside.clone(),
                outside.join("b.md"),
                outside.join("sub/b.md"),
            ];
            let b = places.into_iter().find(|path| path.is_file());
            assert_eq!(
                std::fs::read_to_string(b.unwrap()).unwrap(),
                "b",
                "{swapped}"
            );
            assert!(
                !outside.join("new.md").exists() && !outside.join("sub/new.md").exists(),
                "{swapped}"
            );
        }
    }

    #[tokio::test]
    async fn a_link_that_went_is_refused() {
        let fixture = Room::new();
        std::os::unix::fs::symlink("a.md", fixture.project.root().join("notes/link")).unwrap();
        let staging = fixture.staging();
        assert_eq!(
            std::fs::read_to_string(staging.top().join("notes/link")).unwrap(),
            "a"
        );
        std::fs::remove_file(staging.top().join("notes/link")).unwrap();
        std::fs::write(staging.top().join("notes/a.md"), "A").unwrap();
        let error = fixture.bring(&staging).await.unwrap_err().to_string();
        assert!(error.starts_with("notes/link: "), "{error}");
        assert_eq!(fixture.text("notes/a.md").as_deref(), Some("a"));
    }

    #[tokio::test]
    async fn nothing_written_changes_nothing() {
        let fixture = Room::new();
        let staging = fixture.staging();
        fixture.put("notes/a.md", "theirs");
        fixture.bring(&staging).await.unwrap();
        assert_eq!(fixture.text("notes/a.md").as_deref(), Some("theirs"));
    }
}
