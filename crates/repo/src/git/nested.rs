//! Finds repositories and `.crucible` directories at any depth of a directory, and where the parts of a repository really are.
//!
//! Invariant: no link is followed into a directory. A search that takes too long, or reaches a place that it may not read, is an
//! error and no shorter list. A directory whose path is too long to open counts as such a place, with its siblings.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crucible_patch::FileMode;

use super::locate::{Place, read_named};
use super::store::HashKind;
use crate::error::RepoError;
use crate::index_file;

/// The most entries that a search reads.
const MOST_ENTRIES: usize = 300_000;
/// Directories for output of builds and installations, of any size; no one clones into them.
const NOT_SEARCHED: [&str; 2] = ["node_modules", "target"];
/// The entries of a bare repository.
const BARE: [&str; 3] = ["HEAD", "objects", "refs"];
/// Where objects are borrowed from, and where that is written.
const OBJECT_INFO: &str = "objects/info";
const ALTERNATES: &str = "alternates";
/// Directories of a git directory whose entries decide what git runs and believes.
const LISTED: [&str; 7] = [
    "",
    "hooks",
    "info",
    "modules",
    "objects",
    OBJECT_INFO,
    "worktrees",
];

/// A git directory, and a work tree that uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    /// The top of the work tree; `None` for a bare repository.
    top: Option<PathBuf>,
    git_dir: PathBuf,
    /// Shared by all work trees.
    common_dir: PathBuf,
}

impl Repository {
    /// Returns the repository of `.git` in `top`; `None` if it is a file that names none.
    fn of(dot_git: &Path, top: &Path) -> Result<Option<Self>, RepoError> {
        let git_dir = if dot_git.is_dir() {
            Some(dot_git.to_owned())
        } else {
            named_in(dot_git, b"gitdir: ", top)?
        };
        let with_common_dir = |git_dir: PathBuf| {
            let common_dir = named_in(&git_dir.join("commondir"), b"", &git_dir)?;
            Ok(Self {
                top: Some(top.to_owned()),
                common_dir: common_dir.unwrap_or_else(|| git_dir.clone()),
                git_dir,
            })
        };
        git_dir.map(with_common_dir).transpose()
    }

    fn bare(git_dir: &Path) -> Self {
        Self {
            top: None,
            git_dir: git_dir.to_owned(),
            common_dir: git_dir.to_owned(),
        }
    }

    /// Returns the git directories, and the entries in them that have another name.
    pub(super) fn places(&self) -> Vec<PathBuf> {
        let mut places = other_names(&self.common_dir);
        if self.git_dir != self.common_dir {
            places.extend(other_names(&self.git_dir));
            places.push(self.git_dir.clone());
        }
        places.push(self.common_dir.clone());
        places
    }

    /// Returns the files with settings of this repository and of all its work trees, which need not exist.
    pub(super) fn settings(&self) -> Vec<PathBuf> {
        let mut files = vec![self.common_dir.join("config")];
        let dirs = [self.common_dir.clone(), self.git_dir.clone()];
        let dirs = dirs.into_iter().chain(work_tree_dirs(&self.common_dir));
        files.extend(dirs.map(|dir| dir.join("config.worktree")));
        files
    }

    /// Returns the tops of all work trees, in which git runs programs of the settings.
    pub(super) fn tops(&self) -> Vec<PathBuf> {
        let of_linked = |dir: PathBuf| {
            let dot_git = named_in(&dir.join("gitdir"), b"", &dir).ok()??;
            dot_git.parent().map(Path::to_owned)
        };
        let linked = work_tree_dirs(&self.common_dir)
            .into_iter()
            .filter_map(of_linked);
        let is_main = self.common_dir.ends_with(".git");
        let main = self.common_dir.parent().filter(|_| is_main);
        let mut tops: Vec<PathBuf> = self
            .top
            .clone()
            .into_iter()
            .chain(main.map(Path::to_owned))
            .chain(linked)
            .collect();
        tops.sort();
        tops.dedup();
        tops
    }

    /// Returns the directory to which `core.worktree` is relative.
    pub(super) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Returns the places of the submodules that the index names; `None` if only git can read the index.
    pub(super) fn submodules(&self) -> Result<Option<Vec<PathBuf>>, RepoError> {
        let Some(top) = &self.top else {
            return Ok(Some(Vec::new()));
        };
        let file = self.git_dir.join("index");
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
        let places = |index: index_file::IndexFile| {
            let entries = index.entries.iter();
            entries
                .filter(|entry| entry.mode == FileMode::Gitlink)
                .map(|entry| submodule(&top.join(&entry.path)))
                .collect()
        };
        Ok(index.map(places))
    }
}

impl From<&Place> for Repository {
    fn from(place: &Place) -> Self {
        Self {
            top: Some(place.top.clone()),
            git_dir: place.git_dir.clone(),
            common_dir: place.common_dir.clone(),
        }
    }
}

/// The repositories in a directory, and other places that are trusted later.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) places: Vec<PathBuf>,
    pub(super) repositories: Vec<Repository>,
}

impl Found {
    /// Searches below `directory`, and adds the repositories `known`: paths of `.git` and of bare repositories.
    pub(super) fn below(directory: &Path, known: &[PathBuf]) -> Result<Self, RepoError> {
        let mut found = Self::default();
        found.search(directory, MOST_ENTRIES)?;
        let seen: HashSet<PathBuf> = found.places.iter().cloned().collect();
        for path in known.iter().filter(|path| !seen.contains(*path)) {
            match (path.file_name(), path.parent()) {
                (Some(name), Some(top)) if name.eq_ignore_ascii_case(".git") => {
                    found.add(path, top, directory)?;
                }
                _ => found.add_bare(path),
            }
        }
        Ok(found)
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
            let (mut below, mut of_bare) = (Vec::new(), 0);
            for entry in entries {
                let entry = entry.map_err(|source| RepoError::io("search", &at, source))?;
                seen += 1;
                if seen > most {
                    return Err(too_many_entries(directory, most));
                }
                let name = entry.file_name();
                of_bare += usize::from(BARE.iter().any(|part| name == *part));
                let path = entry.path();
                if name == ".git" {
                    self.add(&path, &at, directory)?;
                } else if name == ".crucible" {
                    self.places.push(path);
                } else if entry.file_type().is_ok_and(|kind| kind.is_dir())
                    && !NOT_SEARCHED.iter().any(|other| name == *other)
                {
                    below.push(path);
                }
            }
            if of_bare == BARE.len() && at != directory {
                self.add_bare(&at);
            } else {
                left.append(&mut below);
            }
        }
        Ok(())
    }

    /// Adds `.git` of the work tree `top`.
    fn add(&mut self, dot_git: &Path, top: &Path, directory: &Path) -> Result<(), RepoError> {
        self.places.push(dot_git.to_owned());
        let Some(repository) = Repository::of(dot_git, top)? else {
            return Ok(());
        };
        if !repository.git_dir.exists() {
            // A process that creates it decides what git runs in `top`.
            self.places.push(repository.git_dir.join(""));
            return Ok(());
        }
        self.places.extend(repository.places());
        // The index of the searched work tree itself is read where that is located. If that of a nested one is unreadable, its
        // whole work tree is such a place.
        if top != directory {
            let submodules = repository.submodules()?;
            self.places
                .extend(submodules.unwrap_or_else(|| vec![top.to_owned()]));
        }
        self.repositories.push(repository);
        Ok(())
    }

    fn add_bare(&mut self, git_dir: &Path) {
        let repository = Repository::bare(git_dir);
        self.places.extend(repository.places());
        self.repositories.push(repository);
    }
}

fn too_many_entries(directory: &Path, most: usize) -> RepoError {
    let why = format!(
        "it has more than {most} entries, and one may be a repository. Keep build output outside it, or in directories named {}, which are not searched; a hook without a sandbox (hooks.NAME.sandbox = \"off\" in your own \
         configuration) needs no search",
        NOT_SEARCHED.join(" or ")
    );
    RepoError::io("search", directory, io::Error::other(why))
}

/// Returns whether an unlistable directory cannot be changed: it is gone, or belongs to another user.
fn is_harmless(directory: &Path, error: &io::Error) -> bool {
    let is_foreign = || {
        let ours = rustix::process::geteuid().as_raw();
        ours != 0
            && directory
                .symlink_metadata()
                .is_ok_and(|meta| meta.uid() != ours)
    };
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => true,
        io::ErrorKind::PermissionDenied => is_foreign(),
        _ => false,
    }
}

/// Returns the path that a file of git names. git follows a link to the file.
fn named_in(file: &Path, prefix: &[u8], base: &Path) -> Result<Option<PathBuf>, RepoError> {
    match file.canonicalize() {
        Ok(real) => read_named(&real, prefix, base),
        Err(_) => Ok(None),
    }
}

/// The place in which a submodule's repository is or would be created.
///
/// An empty directory is guarded as a whole, so that git does not find a placeholder called `.git` in it.
pub(super) fn submodule(path: &Path) -> PathBuf {
    match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
        Ok(true) => path.to_owned(),
        Ok(false) => path.join(".git").join(""),
        Err(_) => path.join(""),
    }
}

/// Returns the directories that a git directory has for linked work trees.
fn work_tree_dirs(common_dir: &Path) -> Vec<PathBuf> {
    paths_in(&common_dir.join("worktrees"))
}

fn paths_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Returns the links in a git directory, and its files with hard links, apart from objects.
fn other_names(git_dir: &Path) -> Vec<PathBuf> {
    let dirs = LISTED.iter().map(|name| (git_dir.join(name), *name));
    let of_work_trees = work_tree_dirs(git_dir).into_iter().map(|dir| (dir, ""));
    let mut found = Vec::new();
    for (dir, name) in dirs.chain(of_work_trees) {
        found.extend(paths_in(&dir).into_iter().filter(|path| {
            // A local clone shares the other files there.
            let may_share = name == OBJECT_INFO && !path.ends_with(ALTERNATES);
            path.is_symlink() || (!may_share && has_hard_link(path))
        }));
    }
    found
}

/// Returns the links in a directory, and the files with hard links.
pub(super) fn links_in(directory: &Path) -> Vec<PathBuf> {
    let mut paths = paths_in(directory);
    paths.retain(|path| path.is_symlink() || has_hard_link(path));
    paths
}

/// Returns whether a regular file has more than one name, so that protecting one of them protects nothing.
#[must_use]
pub fn has_hard_link(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|meta| meta.is_file() && meta.nlink() > 1)
}

/// The most links that a path may lead through, as for the kernel.
const MAX_LINKS: usize = 40;

/// Resolves every part of an absolute path, which need not exist, and returns the links that it leads through as well.
///
/// Each link decides what the path means, so a writer who replaces one changes what is found there.
pub(super) fn resolve(path: &Path) -> (PathBuf, Vec<PathBuf>) {
    let mut links = Vec::new();
    let mut left: Vec<OsString> = parts(path);
    let mut at = PathBuf::from("/");
    while let Some(part) = left.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        match fs::read_link(&next) {
            Ok(named) if links.len() < MAX_LINKS => {
                links.push(next);
                if named.is_absolute() {
                    at = PathBuf::from("/");
                }
                left.extend(parts(&named));
            }
            _ => at = next,
        }
    }
    if path.as_os_str().as_bytes().ends_with(b"/") {
        at.push("");
    }
    (at, links)
}

/// The parts of a path from its end, without the root and `.`.
fn parts(path: &Path) -> Vec<OsString> {
    let named = |part: Component<'_>| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        _ => None,
    };
    path.components().rev().filter_map(named).collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out files by hand")]
mod tests {
    use super::*;

    fn places(root: &Path) -> Vec<PathBuf> {
        Found::below(root, &[]).unwrap().places
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
            "x/.crucible/specs",
            "away/objects",
            "node_modules/y/.git",
        ] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("bare.git/HEAD"), "").unwrap();
        fs::create_dir(root.join("named")).unwrap();
        fs::write(root.join("named/.git"), "gitdir: ../away\n").unwrap();
        std::os::unix::fs::symlink("../../tools/check", root.join(".git/hooks/pre-commit"))
            .unwrap();
        std::os::unix::fs::symlink(&root, root.join("a/round")).unwrap();
        let mut found = places(&root);
        found.sort();
        found.dedup();
        let mut expected = [
            ".git",
            ".git/hooks/pre-commit",
            "a/b/c/.git",
            "bare.git",
            "named/../away",
            "named/.git",
            "x/.crucible",
        ]
        .map(|name| root.join(name));
        expected.sort();
        assert_eq!(found, expected);
        let said = Found::default().search(&root, 5).unwrap_err().to_string();
        assert!(said.contains("more than 5 entries"), "{said}");
        assert!(
            said.contains("named node_modules or target") && said.contains("sandbox = \"off\""),
            "{said}"
        );
    }
}
