//! Recognises parts of a tree that are not the project: histories, installed packages, caches, databases.
//!
//! How it works: by what is there where that tells it (a virtual environment has its `pyvenv.cfg`, a
//! repository its objects, a database its first bytes), and by the name where the name alone is enough. Case
//! is ignored.
//!
//! What always holds: a renamed directory or database is known by what it holds.

use std::ffi::OsString;
use std::path::Path;

use crucible_model::{RepoPath, RepoPathError};
use rustix::fs::FileType;

use super::OmitReason;

/// A name in a directory, with its kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListedName {
    pub(super) name: OsString,
    pub(super) kind: ListedKind,
}

/// The kind of an entry; links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ListedKind {
    Directory,
    File,
    Link,
    Special,
}

impl From<FileType> for ListedKind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::Directory => Self::Directory,
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Link,
            _ => Self::Special,
        }
    }
}

/// The file that marks a cache directory, and its first bytes.
pub(super) const CACHE_TAG: &str = "CACHEDIR.TAG";
/// How it begins.
pub(super) const CACHE_SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

const HISTORIES: [&str; 6] = [".hg", ".svn", ".jj", ".bzr", "_darcs", ".pijul"];
const PACKAGES: [&str; 3] = ["node_modules", "bower_components", "__pypackages__"];
const ENVIRONMENTS: [&str; 1] = [".venv"];
const CACHES: [&str; 10] = [
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".pytype",
    ".hypothesis",
    ".tox",
    ".nox",
    ".cache",
    ".ipynb_checkpoints",
];
const DATABASES: [&str; 4] = [".sqlite", ".sqlite3", ".db", ".db3"];
/// What databases write beside themselves.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Returns why an entry of this name is not part of the project.
pub(super) fn of_name(name: &str) -> Option<OmitReason> {
    let lower = name.to_ascii_lowercase();
    let is_one = |names: &[&str]| names.contains(&lower.as_str());
    if name.parse::<RepoPath>() == Err(RepoPathError::GitDirectory) || is_one(&HISTORIES) {
        return Some(OmitReason::Repository);
    }
    if is_one(&ENVIRONMENTS) {
        return Some(OmitReason::VirtualEnvironment);
    }
    if is_one(&PACKAGES) {
        return Some(OmitReason::Packages);
    }
    if is_one(&CACHES) {
        return Some(OmitReason::Cache);
    }
    let bare = BESIDE
        .iter()
        .find_map(|end| lower.strip_suffix(end))
        .unwrap_or(&lower);
    DATABASES
        .iter()
        .any(|end| bare.len() > end.len() && bare.ends_with(end))
        .then_some(OmitReason::Database)
}

/// Returns why a directory with these names is not part of the project. `tag` says whether its [`CACHE_TAG`]
/// file is genuine.
pub(super) fn of_directory(names: &[ListedName], tag: impl FnOnce() -> bool) -> Option<OmitReason> {
    let has = |name: &str, kind: ListedKind| {
        names
            .iter()
            .any(|listed| listed.kind == kind && listed.name.as_os_str() == name)
    };
    use ListedKind::{Directory, File};
    if has("HEAD", File) && has("objects", Directory) && has("refs", Directory) {
        return Some(OmitReason::Repository);
    }
    if has("pyvenv.cfg", File) || has("conda-meta", Directory) {
        return Some(OmitReason::VirtualEnvironment);
    }
    (has(CACHE_TAG, File) && tag()).then_some(OmitReason::Cache)
}

/// Returns why a file that begins with these bytes is not part of the project.
pub(super) fn of_content(head: &[u8]) -> Option<OmitReason> {
    let is_sqlite = head.starts_with(b"SQLite format 3\0");
    // Its log of changes and its journal hold rows as well.
    let is_beside = head.starts_with(&[0x37, 0x7f, 0x06, 0x82])
        || head.starts_with(&[0x37, 0x7f, 0x06, 0x83])
        || head.starts_with(&[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
    let is_duckdb = head.get(8..12) == Some(b"DUCK");
    (is_sqlite || is_beside || is_duckdb).then_some(OmitReason::Database)
}

/// Returns why a link of this name is left out wherever it points: git accepts no repository with it.
pub(super) fn of_link(path: &Path) -> Option<OmitReason> {
    let name = path.file_name()?;
    name.eq_ignore_ascii_case(".gitmodules")
        .then_some(OmitReason::Repository)
}
