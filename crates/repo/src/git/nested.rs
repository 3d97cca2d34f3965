//! Finds the repositories in, around and behind directories, and `.crucible` directories at any depth.
//!
//! A repository counts if its work tree contains a directory or is in one, and if another one leads to it: the main repository of a
//! linked work tree, the linked work trees, and the repositories of submodules, checked out or not.
//!
//! Invariant: no link is followed into a directory that is searched. A search that takes too long, or reaches a place that it may not
//! read, is an error and no shorter list. A directory whose path is too long to open counts as such a place, with its siblings.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crucible_host::env::Environment;
use crucible_patch::FileMode;

use super::git_dir::{is_dot_git, is_git_directory, is_git_directory_without_objects};
use super::locate::read_named;
use super::store::HashKind;
use crate::error::RepoError;
use crate::index_file;

/// The most entries that a search reads.
const MAX_ENTRIES: usize = 300_000;
/// Directories for output of builds and installations, of any size; no one clones into them.
const NOT_SEARCHED: [&str; 2] = ["node_modules", "target"];

/// A git directory, and the work trees that use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    /// The tops of the work trees, as far as known without settings.
    pub(super) tops: BTreeSet<PathBuf>,
    pub(super) git_dir: PathBuf,
    /// Shared by all work trees.
    pub(super) common_dir: PathBuf,
    /// Whether git finds it from one of the searched directories, and so must be able to read it.
    pub(super) is_around: bool,
}

impl Repository {
    /// Returns the files with settings of this repository, which need not exist.
    pub(super) fn settings(&self) -> BTreeSet<PathBuf> {
        [
            self.common_dir.join("config"),
            self.common_dir.join("config.worktree"),
            self.git_dir.join("config.worktree"),
        ]
        .into()
    }

    /// Returns the paths of the submodules that the index names; `None` if only git can read the index.
    pub(super) fn submodules(&self) -> Result<Option<Vec<PathBuf>>, RepoError> {
        Self::submodules_in(self.git_dir.join("index"))
    }

    /// Returns the same for any file with an index.
    pub(super) fn submodules_in(file: PathBuf) -> Result<Option<Vec<PathBuf>>, RepoError> {
        let bytes = match fs::metadata(&file) {
            Ok(meta) if meta.is_file() => {
                fs::read(&file).map_err(|source| RepoError::io("read", file, source))?
            }
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(Vec::new())),
            Err(source) => return Err(RepoError::io("look at", file, source)),
        };
        let index = [HashKind::Sha1, HashKind::Sha256]
            .into_iter()
            .find_map(|hash| index_file::read(&bytes, hash));
        let paths = |index: index_file::IndexFile| {
            let links = index
                .entries
                .into_iter()
                .filter(|entry| entry.mode == FileMode::Gitlink);
            links.map(|entry| entry.path).collect()
        };
        Ok(index.map(paths))
    }
}

/// The repositories of some directories, and other places that are trusted later.
#[derive(Debug, Default)]
pub(super) struct FoundRepositories {
    pub(super) places: Vec<PathBuf>,
    pub(super) repositories: Vec<Repository>,
    /// Where the repository with this git directory is in the list.
    indexes: HashMap<PathBuf, usize>,
    /// Files `.git` that were followed.
    followed: HashSet<PathBuf>,
    /// Whether a variable names the objects of every repository.
    has_objects_elsewhere: bool,
}

impl FoundRepositories {
    /// Searches `directories` and what is around them and around the working directory. `known` are paths of `.git` and of bare
    /// repositories in them.
    pub(super) fn find(
        directories: &[PathBuf],
        known: &[PathBuf],
        env: &Environment,
    ) -> Result<Self, RepoError> {
        let mut found = Self {
            has_objects_elsewhere: env.get_os("GIT_OBJECT_DIRECTORY").is_some(),
            ..Self::default()
        };
        for directory in directories {
            for at in directory.ancestors() {
                found.add_around(at)?;
                found.mark_around(at);
            }
            if directory.join(".git").symlink_metadata().is_ok() {
                // A new one would hold settings and receipts that are believed.
                found.places.push(directory.join(".crucible").join(""));
            }
            let is_inner = directories
                .iter()
                .any(|other| other != directory && directory.starts_with(other));
            if !is_inner {
                found.search(directory, MAX_ENTRIES)?;
            }
        }
        for path in known {
            match (path.file_name(), path.parent()) {
                (Some(name), Some(top)) if is_dot_git(name) => found.add_dot_git(path, top)?,
                _ => found.add(path, None)?,
            }
        }
        for at in env.working_directory().ancestors() {
            found.add_around(at)?;
        }
        found.add_of_environment(env)?;
        Ok(found)
    }

    /// Adds the repository whose top or git directory is `at`.
    fn add_around(&mut self, at: &Path) -> Result<(), RepoError> {
        let dot_git = at.join(".git");
        if dot_git.symlink_metadata().is_ok() {
            self.add_dot_git(&dot_git, at)?;
        }
        if self.is_git_directory(at) {
            self.add(at, None)?;
        }
        Ok(())
    }

    fn is_git_directory(&self, path: &Path) -> bool {
        is_git_directory(path)
            || self.has_objects_elsewhere && is_git_directory_without_objects(path)
    }

    /// Marks the repository whose top or git directory is `at`.
    fn mark_around(&mut self, at: &Path) {
        let has_objects_elsewhere = self.has_objects_elsewhere;
        for repository in &mut self.repositories {
            let is_here = repository.tops.contains(at) || repository.git_dir == at;
            let git_dir = &repository.git_dir;
            let is_one = is_git_directory(git_dir)
                || has_objects_elsewhere && is_git_directory_without_objects(git_dir);
            repository.is_around |= is_here && is_one;
        }
    }

    /// Adds the repository that variables name.
    fn add_of_environment(&mut self, env: &Environment) -> Result<(), RepoError> {
        let path = |name: &str| {
            let value = env.get_os(name).filter(|value| !value.is_empty());
            value.map(|value| env.working_directory().join(value))
        };
        let top = path("GIT_WORK_TREE");
        let git_dirs = [path("GIT_DIR"), path("GIT_COMMON_DIR")];
        for git_dir in git_dirs.into_iter().flatten() {
            if git_dir.is_dir() {
                let top = top.as_deref().unwrap_or(env.working_directory());
                self.add(&git_dir, Some(top))?;
            } else {
                self.places.push(git_dir.join(""));
            }
        }
        Ok(())
    }

    fn search(&mut self, directory: &Path, most: usize) -> Result<(), RepoError> {
        let mut left = vec![directory.to_owned()];
        let mut seen = 0_usize;
        while let Some(at) = left.pop() {
            let entries = match fs::read_dir(&at) {
                Ok(entries) => entries,
                Err(error) if is_harmless(&at, &error) => continue,
                // The paths in it are too long to name. Its parent is guarded as a whole instead.
                Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                    let parent = at.parent().filter(|parent| *parent != directory);
                    self.places.extend(parent.map(Path::to_owned));
                    continue;
                }
                Err(source) => return Err(RepoError::io("search", at, source)),
            };
            let (mut below, mut has_head) = (Vec::new(), false);
            for entry in entries {
                let entry = entry.map_err(|source| RepoError::io("search", &at, source))?;
                seen += 1;
                if seen > most {
                    return Err(too_many_entries(directory, most));
                }
                let name = entry.file_name();
                has_head |= name == "HEAD";
                if is_dot_git(&name) {
                    self.add_dot_git(&entry.path(), &at)?;
                } else if name == ".crucible" {
                    self.places.push(entry.path());
                } else if entry.file_type().is_ok_and(|kind| kind.is_dir())
                    && !NOT_SEARCHED.iter().any(|other| name == *other)
                {
                    below.push(entry.path());
                }
            }
            if has_head && at != directory && self.is_git_directory(&at) {
                self.add(&at, None)?;
            } else {
                left.append(&mut below);
            }
        }
        Ok(())
    }

    /// Adds `.git` of the work tree `top`, and the repository that it is or names.
    fn add_dot_git(&mut self, dot_git: &Path, top: &Path) -> Result<(), RepoError> {
        if !self.followed.insert(dot_git.to_owned()) {
            return Ok(());
        }
        self.places.push(dot_git.to_owned());
        let git_dir = if dot_git.is_dir() {
            Some(dot_git.to_owned())
        } else {
            named_in(dot_git, b"gitdir: ", top)?
        };
        match git_dir {
            Some(git_dir) if git_dir.is_dir() => self.add(&git_dir, Some(top)),
            // A process that creates it decides what git runs in `top`.
            Some(git_dir) => {
                self.places.push(git_dir.join(""));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Adds a repository, and those that it leads to.
    fn add(&mut self, git_dir: &Path, top: Option<&Path>) -> Result<(), RepoError> {
        let mut left = vec![(git_dir.to_owned(), top.map(Path::to_owned))];
        while let Some((git_dir, top)) = left.pop() {
            let key = git_dir.canonicalize().unwrap_or_else(|_| git_dir.clone());
            if let Some(index) = self.indexes.get(&key) {
                self.repositories[*index].tops.extend(top);
                continue;
            }
            let common_dir = named_in(&git_dir.join("commondir"), b"", &git_dir)?
                .unwrap_or_else(|| git_dir.clone());
            self.indexes.insert(key, self.repositories.len());
            self.repositories.push(Repository {
                tops: top.into_iter().collect(),
                git_dir: git_dir.clone(),
                common_dir: common_dir.clone(),
                is_around: false,
            });
            if common_dir != git_dir {
                let is_main = common_dir.ends_with(".git");
                let top = common_dir.parent().filter(|_| is_main).map(Path::to_owned);
                left.push((common_dir.clone(), top));
            }
            for dir in paths_in(&common_dir.join("worktrees")) {
                let dot_git = named_in(&dir.join("gitdir"), b"", &dir)?;
                let top = dot_git.and_then(|dot_git| dot_git.parent().map(Path::to_owned));
                self.places.extend(top.as_deref().map(absent_repository));
                left.push((dir, top));
            }
            for modules in [common_dir.join("modules"), git_dir.join("modules")] {
                left.extend(
                    git_directories_in(&modules)
                        .into_iter()
                        .map(|dir| (dir, None)),
                );
            }
        }
        Ok(())
    }
}

fn too_many_entries(directory: &Path, most: usize) -> RepoError {
    let why = format!(
        "it has more than {most} entries, and one may be a repository. Keep build output outside it, or in directories named {}, which are not searched",
        NOT_SEARCHED.join(" or ")
    );
    RepoError::io("search", directory, io::Error::other(why))
}

/// Returns whether an unlistable directory cannot be changed: it is gone, or belongs to another user.
pub(super) fn is_harmless(directory: &Path, error: &io::Error) -> bool {
    let is_foreign = || {
        let own_count = rustix::process::geteuid().as_raw();
        own_count != 0
            && directory
                .symlink_metadata()
                .is_ok_and(|meta| meta.uid() != own_count)
    };
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => true,
        io::ErrorKind::PermissionDenied => is_foreign(),
        _ => false,
    }
}

/// Returns the path that a file of git names. git follows a link to the file.
pub(super) fn named_in(
    file: &Path,
    prefix: &[u8],
    base: &Path,
) -> Result<Option<PathBuf>, RepoError> {
    match file.canonicalize() {
        Ok(real) => read_named(&real, prefix, base),
        Err(_) => Ok(None),
    }
}

/// The place in which a repository with the work tree `top` is or would be created.
///
/// An empty directory is guarded as a whole, so that git does not find a placeholder called `.git` in it.
pub(super) fn absent_repository(top: &Path) -> PathBuf {
    match fs::read_dir(top).map(|mut entries| entries.next().is_none()) {
        Ok(true) => top.to_owned(),
        Ok(false) => {
            let dot_git = top.join(".git");
            if dot_git.symlink_metadata().is_ok() {
                dot_git
            } else {
                dot_git.join("")
            }
        }
        Err(_) => top.join(""),
    }
}

/// Returns the paths of the entries of a directory; none if it cannot be listed.
pub(super) fn paths_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Returns the git directories in `modules`: a name of a submodule may have slashes.
fn git_directories_in(modules: &Path) -> Vec<PathBuf> {
    let (mut left, mut found) = (vec![modules.to_owned()], Vec::new());
    let mut seen = HashSet::new();
    while let Some(at) = left.pop() {
        // A link may lead back.
        if !at.canonicalize().is_ok_and(|real| seen.insert(real)) {
            continue;
        }
        for path in paths_in(&at) {
            if is_git_directory(&path) {
                found.push(path);
            } else if path.is_dir() {
                left.push(path);
            }
        }
    }
    found
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out files by hand")]
mod tests {
    use super::*;

    fn places(root: &Path) -> Vec<PathBuf> {
        let mut found = FoundRepositories::default();
        found.search(root, MAX_ENTRIES).unwrap();
        let mut places = found.places;
        places.extend(
            found
                .repositories
                .into_iter()
                .map(|repository| repository.git_dir),
        );
        places.sort();
        places.dedup();
        places
    }

    #[test]
    fn path_too_long_to_open_guards_its_surroundings() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("src")).unwrap();
        let name = "d".repeat(200);
        // Made from the inside out, since no path names the innermost.
        let mut inner = root.join("part");
        fs::create_dir(&inner).unwrap();
        for _ in 0..30 {
            let outer = root.join("next");
            fs::create_dir(&outer).unwrap();
            fs::rename(&inner, outer.join(&name)).unwrap();
            fs::rename(&outer, root.join("part")).unwrap();
            inner = root.join("part");
        }
        let found = places(&root);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with(&inner) && found[0].is_dir(),
            "{}",
            found[0].display()
        );
        fs::create_dir_all(root.join("src/.git")).unwrap();
        assert!(places(&root).contains(&root.join("src/.git")));
    }

    #[test]
    fn trusted_places_are_found_at_any_depth() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in [
            ".git/hooks",
            "a/b/c/.git",
            "bare.git/objects",
            "bare.git/refs",
            "no.git/objects",
            "no.git/refs",
            "split",
            "x/.crucible/specs",
            "away/objects",
            "node_modules/y/.git",
            ".git/modules/libs/sub/objects",
            ".git/modules/libs/sub/refs",
        ] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["bare.git", "split", ".git/modules/libs/sub"] {
            fs::write(root.join(name).join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        fs::write(root.join("no.git/HEAD"), "no reference\n").unwrap();
        fs::write(root.join("split/commondir"), "../parts\n").unwrap();
        fs::create_dir(root.join("named")).unwrap();
        fs::write(root.join("named/.git"), "gitdir: ../away\n").unwrap();
        std::os::unix::fs::symlink(&root, root.join("a/round")).unwrap();
        let mut expected = [
            ".git",
            ".git/modules/libs/sub",
            "a/b/c/.git",
            "bare.git",
            "named/../away",
            "named/.git",
            "split",
            "split/../parts",
            "x/.crucible",
        ]
        .map(|name| root.join(name));
        expected.sort();
        assert_eq!(places(&root), expected);
        let message = FoundRepositories::default()
            .search(&root, 5)
            .unwrap_err()
            .to_string();
        assert!(message.contains("more than 5 entries"), "{message}");
        assert!(
            message.contains("named node_modules or target"),
            "{message}"
        );
    }
}
