//! Locates a repository by searching `.git` upwards, and checks what it claims.
//!
//! A `.git` directory is what it is. A `.git` file is accepted when the place it names says that it belongs
//! here: a linked work tree is registered in its repository, and a submodule's configuration names its work
//! tree. Anything else could lead git into a repository that the user did not mean.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crucible_host::fs::read_up_to;
use crucible_model::ByteLimit;

use super::command::as_path;
use super::config::ConfigListing;
use super::git_dir::is_git_directory;
use crate::error::RepoError;

/// The directories to pass to git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitLocation {
    /// The top of the work tree.
    pub(crate) top: PathBuf,
    /// The git directory of this work tree.
    pub(crate) git_dir: PathBuf,
    /// The git directory that all work trees share: objects, branches, configuration.
    pub(crate) common_dir: PathBuf,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `.git` is a directory.
    Plain,
    /// `.git` names a repository that lists this work tree.
    Linked,
    /// `.git` names a directory that may be a submodule's: its configuration has to name this work tree.
    Named,
}

/// Finds the repository that contains `path`.
pub(crate) fn locate(path: &Path) -> Result<GitLocation, RepoError> {
    let start = fs::canonicalize(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => RepoError::NotThere {
            path: path.to_owned(),
        },
        _ => RepoError::io("open", path, source),
    })?;
    for directory in start.ancestors() {
        if let Some(place) = place_at(directory)? {
            return Ok(place);
        }
        // Below `.git`, the work tree is its parent.
        let is_inside = directory.file_name() == Some(OsStr::new(".git"));
        if !is_inside && is_git_directory(directory) {
            return Err(RepoError::Bare {
                path: directory.to_owned(),
            });
        }
    }
    Err(RepoError::NotARepository { path: start })
}

impl GitLocation {
    /// Checks the configuration of this place.
    pub(crate) fn check(&self, listing: &ConfigListing) -> Result<(), RepoError> {
        let named = listing
            .work_tree
            .as_ref()
            .map(|path| self.git_dir.join(path));
        let is_here = named
            .as_ref()
            .map(|path| fs::canonicalize(path).is_ok_and(|path| path == self.top));
        match (self.kind, is_here, named) {
            (Kind::Named, None, _) => {
                let why = "its configuration does not name this directory as its work tree";
                Err(self.elsewhere(why))
            }
            (_, Some(false), Some(target)) => Err(RepoError::WorkTreeElsewhere {
                path: self.top.clone(),
                target,
            }),
            (Kind::Plain, None, _) if listing.is_bare => Err(RepoError::Bare {
                path: self.top.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn elsewhere(&self, why: &'static str) -> RepoError {
        RepoError::GitDirElsewhere {
            path: self.top.clone(),
            target: self.git_dir.clone(),
            why,
        }
    }
}

/// Returns the repository whose top is `directory`, if it is one.
fn place_at(directory: &Path) -> Result<Option<GitLocation>, RepoError> {
    let dot_git = directory.join(".git");
    let meta = match fs::symlink_metadata(&dot_git) {
        Ok(meta) => meta,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(source) => return Err(RepoError::io("look at", dot_git, source)),
    };
    let refuse = |target: &Path, why| {
        Err(RepoError::GitDirElsewhere {
            path: directory.to_owned(),
            target: target.to_owned(),
            why,
        })
    };
    if meta.is_symlink() {
        return refuse(
            &fs::read_link(&dot_git).unwrap_or_default(),
            "`.git` is a symbolic link",
        );
    }
    if meta.is_dir() {
        if !is_git_directory(&dot_git) {
            return Ok(None);
        }
        if fs::symlink_metadata(dot_git.join("commondir")).is_ok() {
            return refuse(
                &dot_git.join("commondir"),
                "it shares branches and settings with another repository",
            );
        }
        return Ok(Some(GitLocation {
            top: directory.to_owned(),
            common_dir: dot_git.clone(),
            git_dir: dot_git,
            kind: Kind::Plain,
        }));
    }
    if !meta.is_file() {
        return Ok(None);
    }
    let Some(git_dir) = read_path(&dot_git, b"gitdir: ", directory)? else {
        return refuse(&dot_git, "`.git` is a file that does not name a directory");
    };
    let Some(common_dir) = read_path(&git_dir.join("commondir"), b"", &git_dir)? else {
        return if is_git_directory(&git_dir) {
            let (top, common_dir) = (directory.to_owned(), git_dir.clone());
            Ok(Some(GitLocation {
                top,
                git_dir,
                common_dir,
                kind: Kind::Named,
            }))
        } else {
            refuse(&git_dir, "there is no git directory")
        };
    };
    let knows_us = read_path(&git_dir.join("gitdir"), b"", &git_dir)?.is_some_and(|back| {
        fs::canonicalize(&dot_git).is_ok_and(|current_dir| current_dir == back)
    });
    let is_registered = git_dir.parent() == Some(&common_dir.join("worktrees"));
    if knows_us && is_registered && is_git_directory(&common_dir) {
        Ok(Some(GitLocation {
            top: directory.to_owned(),
            git_dir,
            common_dir,
            kind: Kind::Linked,
        }))
    } else {
        refuse(
            &git_dir,
            "that repository does not list this work tree; if it moved, run `git worktree repair` there",
        )
    }
}

/// Returns the path in a small git file after `prefix`, resolved against `base`. `None` without such a file
/// or path.
pub(super) fn read_path(
    file: &Path,
    prefix: &[u8],
    base: &Path,
) -> Result<Option<PathBuf>, RepoError> {
    let path = read_named(file, prefix, base)?;
    Ok(path.and_then(|path| fs::canonicalize(path).ok()))
}

/// Returns the path that a file of git names after `prefix`, as written and whether or not it exists.
pub(super) fn read_named(
    file: &Path,
    prefix: &[u8],
    base: &Path,
) -> Result<Option<PathBuf>, RepoError> {
    match fs::symlink_metadata(file) {
        Ok(meta) if meta.is_file() => {}
        _ => return Ok(None),
    }
    let bytes = read_up_to(file, ByteLimit(64 << 10))?;
    let mut path = bytes.strip_prefix(prefix);
    // A blank may be part of the name.
    while let Some(shorter) = path.and_then(|path| {
        path.strip_suffix(b"\n")
            .or_else(|| path.strip_suffix(b"\r"))
    }) {
        path = Some(shorter);
    }
    Ok(path.map(|path| base.join(as_path(path))))
}
