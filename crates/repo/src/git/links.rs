//! Links: where a path really is, and which other names its files have.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::error::RepoError;

/// The most links that a path may lead through, as for the kernel.
const MAX_LINKS: usize = 40;

/// Device and number of a file.
pub(super) type FileId = (u64, u64);

/// Returns the identity of a regular file that has more than one name, and how many it has.
pub(super) fn hard_linked(path: &Path) -> Option<(FileId, u64)> {
    let meta = path.symlink_metadata().ok()?;
    let is_linked = meta.is_file() && meta.nlink() > 1;
    is_linked.then(|| ((meta.dev(), meta.ino()), meta.nlink()))
}

/// Returns the first name of one of these files in a directory that is in none of the places `guarded_places`.
///
/// # Errors
///
/// A directory that cannot be listed, unless it was removed meanwhile.
pub(super) fn unguarded_link(
    directory: &Path,
    files: &HashSet<FileId>,
    guarded_places: &BTreeSet<PathBuf>,
) -> Result<Option<(PathBuf, FileId)>, RepoError> {
    let mut left = vec![directory.to_owned()];
    while let Some(at) = left.pop() {
        let entries = match fs::read_dir(&at) {
            Ok(entries) => entries,
            Err(error) if super::nested::is_harmless(&at, &error) => continue,
            Err(source) => return Err(RepoError::io("search", at, source)),
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if guarded_places.contains(&path) {
                continue;
            }
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => left.push(path),
                Ok(meta) if meta.is_file() && meta.nlink() > 1 => {
                    let id = (meta.dev(), meta.ino());
                    if files.contains(&id) {
                        return Ok(Some((path, id)));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(None)
}

/// Keeps the files for which not all names are known: each with its identity.
pub(super) fn retain_incomplete_links(paths: &BTreeSet<PathBuf>) -> BTreeMap<FileId, PathBuf> {
    let mut names: BTreeMap<FileId, (u64, u64, &PathBuf)> = BTreeMap::new();
    for path in paths {
        if let Some((id, count)) = hard_linked(path) {
            let entry = names.entry(id).or_insert((count, 0, path));
            entry.1 += 1;
        }
    }
    let unknown = names
        .into_iter()
        .filter(|(_, (count, known, _))| known < count);
    unknown
        .map(|(id, (_, _, path))| (id, path.clone()))
        .collect()
}

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
