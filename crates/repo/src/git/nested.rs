//! What lies in a directory and is trusted later: repositories and `.crucible` directories at any depth, and where the hooks and the
//! settings of a repository really are, when links lead there.
//!
//! What always holds: no link is followed into a directory; a search that would take too long, or comes to where it may not look,
//! is an error and no shorter list. A directory whose path is too long to be opened counts as such a place, with all beside it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crucible_patch::FileMode;

use super::locate::read_named;
use super::store::HashKind;
use crate::error::RepoError;
use crate::index_file;

/// How many entries are looked at.
const MOST_ENTRIES: usize = 300_000;
/// Directories for output of builds and installations, of any size; no one clones into them.
const NOT_SEARCHED: [&str; 2] = ["node_modules", "target"];
/// The entries of a bare repository.
const BARE: [&str; 3] = ["HEAD", "objects", "refs"];
/// What of a git directory starts programs, and may be a link.
const STARTS_PROGRAMS: [&str; 4] = ["config", "config.worktree", "commondir", "hooks"];

/// Returns `.git` of each repository below `directory` with its target, bare repositories, and each
/// `.crucible`.
pub(super) fn places(directory: &Path) -> Result<Vec<PathBuf>, RepoError> {
    places_within(directory, MOST_ENTRIES)
}

fn places_within(directory: &Path, most: usize) -> Result<Vec<PathBuf>, RepoError> {
    let (mut found, mut left) = (Vec::new(), vec![directory.to_owned()]);
    let mut seen = 0_usize;
    while let Some(at) = left.pop() {
        let entries = match fs::read_dir(&at) {
            Ok(entries) => entries,
            Err(error) if is_harmless(&at, &error) => continue,
            // The paths in it are too long to name. Its parent is guarded as a whole instead.
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                found.extend(
                    at.parent()
                        .filter(|parent| *parent != directory)
                        .map(Path::to_owned),
                );
                continue;
            }
            Err(source) => return Err(RepoError::io("search", at, source)),
        };
        let (mut below, mut of_bare) = (Vec::new(), 0);
        for entry in entries {
            let entry = entry.map_err(|source| RepoError::io("search", &at, source))?;
            seen += 1;
            if seen > most {
                let why = format!(
                    "it has more than {most} entries, and one may be a repository. Keep build output outside it, or in directories named {}, which are not searched; a hook without a sandbox (hooks.NAME.sandbox = \"off\" in your own \
                     configuration) needs no search",
                    NOT_SEARCHED.join(" or ")
                );
                return Err(RepoError::io("search", directory, io::Error::other(why)));
            }
            let name = entry.file_name();
            of_bare += usize::from(BARE.iter().any(|part| name == *part));
            let path = entry.path();
            if name == ".git" {
                found.extend(of_repository(&path, &at)?);
                if at != directory {
                    found.extend(submodules(&path, &at)?);
                }
                found.push(path);
            } else if name == ".crucible" {
                found.push(path);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir())
                && !NOT_SEARCHED.iter().any(|other| name == *other)
            {
                below.push(path);
            }
        }
        if of_bare == BARE.len() && at != directory {
            found.extend(programs(&at));
            found.push(at);
        } else {
            left.append(&mut below);
        }
    }
    Ok(found)
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

/// What `.git` of the work tree `top` leads to: the directories that a file names, and the targets of links.
fn of_repository(dot_git: &Path, top: &Path) -> Result<Vec<PathBuf>, RepoError> {
    let Some(git_dir) = git_dir_of(dot_git, top)? else {
        return Ok(Vec::new());
    };
    if git_dir == dot_git {
        return Ok(programs(dot_git));
    }
    if !git_dir.exists() {
        // A process that creates it decides what git runs in `top`.
        return Ok(vec![git_dir.join("")]);
    }
    let mut places = programs(&git_dir);
    if let Ok(Some(common)) = read_named(&git_dir.join("commondir"), b"", &git_dir) {
        places.extend(programs(&common));
        places.push(common);
    }
    places.push(git_dir);
    Ok(places)
}

/// The git directory of a work tree: `.git` itself, or what it names.
fn git_dir_of(dot_git: &Path, top: &Path) -> Result<Option<PathBuf>, RepoError> {
    if dot_git.is_dir() {
        return Ok(Some(dot_git.to_owned()));
    }
    read_named(dot_git, b"gitdir: ", top)
}

/// The places of the submodules that the index of a nested repository names.
///
/// The index of the searched work tree itself is git's to read. If a nested one is split, sparse or damaged, its whole
/// work tree is such a place.
fn submodules(dot_git: &Path, top: &Path) -> Result<Vec<PathBuf>, RepoError> {
    let Some(git_dir) = git_dir_of(dot_git, top)? else {
        return Ok(Vec::new());
    };
    let file = git_dir.join("index");
    let bytes = match fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(RepoError::io("read", file, source)),
    };
    let index = [HashKind::Sha1, HashKind::Sha256]
        .into_iter()
        .find_map(|hash| index_file::read(&bytes, hash));
    let Some(index) = index else {
        return Ok(vec![top.to_owned()]);
    };
    Ok(index
        .entries
        .iter()
        .filter(|entry| entry.mode == FileMode::Gitlink)
        .map(|entry| submodule(&top.join(&entry.path)))
        .collect())
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

/// The hooks and the settings of a git directory that have another name: what links lead to, and files with hard links.
pub(super) fn programs(git_dir: &Path) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = STARTS_PROGRAMS
        .iter()
        .filter_map(|name| other_name(&git_dir.join(name)))
        .collect();
    places.extend(links_in(&git_dir.join("hooks")));
    places
}

/// The same for the files of a directory.
pub(super) fn links_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| other_name(&entry.path()))
        .collect()
}

/// The target of a link, or the file itself if it has a hard link.
fn other_name(path: &Path) -> Option<PathBuf> {
    target(path).or_else(|| has_hard_link(path).then(|| path.to_owned()))
}

/// Whether a regular file has more than one name, so that protecting one of them protects nothing.
#[must_use]
pub fn has_hard_link(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|meta| meta.is_file() && meta.nlink() > 1)
}

/// Returns the target of a link as it names it, even if it does not exist.
fn target(link: &Path) -> Option<PathBuf> {
    Some(link.parent()?.join(fs::read_link(link).ok()?))
}

/// The work trees that a repository has beside its main one.
pub(super) fn linked_work_trees(common_dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(common_dir.join("worktrees"));
    let top = |entry: fs::DirEntry| {
        let dot_git = read_named(&entry.path().join("gitdir"), b"", &entry.path()).ok()??;
        dot_git.parent().map(Path::to_owned)
    };
    entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(top)
        .collect()
}

/// The most links that a path may lead through, as for the kernel.
const MAX_LINKS: usize = 40;

/// Resolves every part of an absolute path but its last, and returns the links that it leads through as well.
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
            Ok(named) if !left.is_empty() && links.len() < MAX_LINKS => {
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
        let found = places(&root).unwrap();
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with(&inner) && found[0].is_dir(),
            "{}",
            found[0].display()
        );
        fs::create_dir_all(root.join("src/.git")).unwrap();
        assert!(places(&root).unwrap().contains(&root.join("src/.git")));
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
        let mut found = places(&root).unwrap();
        found.sort();
        let mut expected = [
            ".git",
            ".git/hooks/../../tools/check",
            "a/b/c/.git",
            "bare.git",
            "named/../away",
            "named/.git",
            "x/.crucible",
        ]
        .map(|name| root.join(name));
        expected.sort();
        assert_eq!(found, expected);
        assert!(
            places_within(&root, 5)
                .unwrap_err()
                .to_string()
                .contains("more than 5 entries")
        );
        let said = places_within(&root, 5).unwrap_err().to_string();
        assert!(
            said.contains("named node_modules or target") && said.contains("sandbox = \"off\""),
            "{said}"
        );
    }
}
