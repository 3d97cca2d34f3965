//! Writes the directory of an export.
//!
//! ```text
//! manifest.json   search.json   inspect.json   plan.json   recipe.json
//! meta/debate-transcript.json   meta/config-snapshot.json
//! ```
//!
//! An export is checked as a whole before anything is written: five consistent documents, a plan that passes the safety
//! rules, no secret. Each file is written atomically, with exactly the bytes that were hashed, and the manifest is last: a
//! directory with a manifest is complete. A failed export deletes its files, so the directory can be used again. A killed
//! export leaves a mark by which the next one recognises the files as its own. Other files are neither overwritten nor
//! deleted, and no link is followed below the directory.

mod contents;
mod meta;
mod output_dir;

pub(crate) use contents::check as check_export;
pub use contents::{export_filename, manifest_entry};
pub use output_dir::OutputDir;

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crucible_host::fs::{self, FsError};
use crucible_model::ByteLimit;
use rustix::fs::{Access, access};

use crate::artifact::{CheckedArtifact, ManifestV1};

const MANIFEST: &str = "manifest.json";
const META: &str = "meta";
pub(crate) const DEBATE_TRANSCRIPT: &str = "meta/debate-transcript.json";
pub(crate) const CONFIG_SNAPSHOT: &str = "meta/config-snapshot.json";

/// All files of an export.
const FILES: [&str; 7] = [
    "search.json",
    "inspect.json",
    "plan.json",
    "recipe.json",
    DEBATE_TRANSCRIPT,
    CONFIG_SNAPSHOT,
    MANIFEST,
];

/// The mark of an export that is in progress or was killed.
const UNFINISHED: &str = ".crucible-export-unfinished";

/// The content of the mark.
const UNFINISHED_TEXT: &[u8] =
    b"An export is being written here, or was cut off. The next one into this directory replaces it.\n";

/// The largest manifest of an earlier export that is read.
const MAX_MANIFEST: ByteLimit = ByteLimit(1 << 20);

/// The content of an export.
#[derive(Debug)]
pub struct Export<'a> {
    /// One each of `search.json`, `inspect.json`, `plan.json`, `recipe.json` and `manifest.json`, in any order.
    pub artifacts: &'a [CheckedArtifact],
    /// `meta/debate-transcript.json`, canonical JSON.
    pub debate_transcript: &'a str,
    /// `meta/config-snapshot.json`, canonical JSON.
    pub config_snapshot: &'a str,
}

/// A written export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The directory, as an absolute path without links.
    pub dir: PathBuf,
    /// The files, relative to it, in writing order.
    pub files: Vec<String>,
}

/// Why nothing was exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A file could not be written.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The path of the directory is not absolute.
    #[error("the output directory {} is not absolute; give an absolute path", path.display())]
    Relative {
        /// The given path.
        path: PathBuf,
    },
    /// The directory belongs to the system.
    #[error("the output directory {} is in the system directory {system}{}; choose a directory of your own",
            path.display(), by_way_of(path, real))]
    System {
        /// The given path.
        path: PathBuf,
        /// The path with all links resolved.
        real: PathBuf,
        /// The system directory.
        system: &'static str,
    },
    /// The directory is inside the `.git` of a repository.
    #[error("the output directory {} is inside a .git directory, which belongs to git; choose another one", path.display())]
    InsideGit {
        /// The given path.
        path: PathBuf,
    },
    /// The path is not a directory.
    #[error("{} is not a directory, so nothing can be exported there; choose another one", path.display())]
    NotADirectory {
        /// The path as given.
        path: PathBuf,
    },
    /// A link is in place of a directory or a file of the export.
    #[error("{} is a link or another kind of file that an export does not overwrite; remove it, or choose another directory",
            path.display())]
    Link {
        /// The path of the link.
        path: PathBuf,
    },
    /// The user may not write there.
    #[error("{} cannot be written to; make it writable, or choose another output directory", path.display())]
    NotWritable {
        /// The directory, or the one to create it in.
        path: PathBuf,
    },
    /// The directory contains files that no export wrote.
    #[error("the output directory {} contains files that no export wrote ({entry}); choose another directory, or empty it",
            path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
        /// One of those files.
        entry: String,
    },
    /// Another export is being written there.
    #[error("another export is being written to {}; wait for it to end, or choose another directory", path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// The directory, or a part of its path, was replaced during the export.
    #[error("{} changed while it was in use; find out what changes it, and choose another directory", path.display())]
    Moved {
        /// The directory.
        path: PathBuf,
    },
    /// The plan does not pass the safety rules.
    #[error("the plan did not pass the safety rules, so nothing is exported: {}", violations.join("; "))]
    UnsafePlan {
        /// Each violated rule, as a sentence.
        violations: Vec<String>,
    },
    /// The documents are inconsistent.
    #[error("the export documents are invalid: {why}; this is a bug in Crucible, please report it")]
    Contents {
        /// What is wrong.
        why: String,
    },
    /// A file would contain a secret.
    #[error(
        "{file} would contain a secret ({}), so nothing is exported; remove the secret from its source",
        rules.join(", ")
    )]
    Secret {
        /// The name of the file in the export.
        file: &'static str,
        /// The rules that matched.
        rules: Vec<String>,
    },
}

impl ExportError {
    fn unreadable(path: &Path, source: io::Error) -> Self {
        Self::Fs(FsError::Io {
            action: "look at",
            path: path.to_owned(),
            source,
        })
    }
}

/// The real path of a directory, if it differs.
fn by_way_of(path: &Path, real: &Path) -> String {
    if path == real {
        String::new()
    } else {
        format!(", because it is {}", real.display())
    }
}

/// Writes an export, the manifest last, so a directory with a manifest is complete. An earlier export in the directory is
/// replaced.
///
/// # Errors
///
/// See [`ExportError`]; the directory then contains no file of the export.
pub fn write_export(dir: &OutputDir, export: &Export<'_>) -> Result<Exported, ExportError> {
    let files = check_export(export)?;
    fs::create_dir_all(dir.path())?;
    let lock = lock(dir)?;
    stays(dir.path())?;
    if let Some(entry) = occupied(dir.path())? {
        return Err(ExportError::Occupied {
            path: dir.path().to_owned(),
            entry,
        });
    }
    refuse_what_is_in_the_way(dir.path())?;
    fs::create_dir_all(&dir.path().join(META))?;
    let mark = dir.path().join(UNFINISHED);
    fs::write_atomic(&mark, UNFINISHED_TEXT)?;
    // From here on the earlier export is incomplete, and must not look complete.
    fs::remove_file(&dir.manifest())?;
    let written = write_files(dir.path(), &files);
    if written.is_err() {
        for (name, _) in &files {
            let _stays = fs::remove_file(&dir.path().join(name));
        }
    }
    let unmarked = fs::remove_file(&mark);
    drop(lock);
    written?;
    unmarked?;
    let files = files.into_iter().map(|(name, _)| name.to_owned()).collect();
    Ok(Exported {
        dir: dir.path().to_owned(),
        files,
    })
}

fn write_files(dir: &Path, files: &[(&'static str, &str)]) -> Result<(), ExportError> {
    for (name, json) in files {
        let path = dir.join(name);
        // The path of a file is checked each time, because a link may have been inserted.
        stays(path.parent().unwrap_or(dir))?;
        fs::write_atomic(&path, json.as_bytes())?;
    }
    stays(&dir.join(META))
}

/// Refuses a directory with an entry that an export would overwrite or write through.
fn refuse_what_is_in_the_way(dir: &Path) -> Result<(), ExportError> {
    let meta = dir.join(META);
    match meta.symlink_metadata() {
        Ok(found) if !found.is_dir() => return Err(ExportError::Link { path: meta }),
        Ok(_) if access(&meta, Access::WRITE_OK | Access::EXEC_OK).is_err() => {
            return Err(ExportError::NotWritable { path: meta });
        }
        Ok(_) | Err(_) => {}
    }
    FILES
        .iter()
        .chain(&[UNFINISHED])
        .try_for_each(|name| refuse_what_is_no_file(&dir.join(name)))
}

/// Locks the directory itself, so that no lock file is left in it.
fn lock(dir: &OutputDir) -> Result<File, ExportError> {
    let fail = |source| ExportError::unreadable(dir.path(), source);
    let file = File::open(dir.path()).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ExportError::Busy {
            path: dir.path().to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(fail(source)),
    }
}

/// Whether a path still contains no links.
fn stays(path: &Path) -> Result<(), ExportError> {
    let real =
        std::fs::canonicalize(path).map_err(|source| ExportError::unreadable(path, source))?;
    if real == path {
        Ok(())
    } else {
        Err(ExportError::Moved {
            path: path.to_owned(),
        })
    }
}

fn refuse_what_is_no_file(path: &Path) -> Result<(), ExportError> {
    match path.symlink_metadata() {
        Ok(found) if !found.is_file() => Err(ExportError::Link {
            path: path.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// An entry of a directory that is neither empty nor an earlier export. An empty `meta` is ignored: a
/// failed export leaves it.
fn occupied(dir: &Path) -> Result<Option<String>, ExportError> {
    let fail = |source| ExportError::unreadable(dir, source);
    let mut something = None;
    for entry in std::fs::read_dir(dir).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let is_leftover = entry.file_name() == META
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && std::fs::read_dir(entry.path()).is_ok_and(|mut entries| entries.next().is_none());
        if !is_leftover {
            something = Some(entry.file_name().to_string_lossy().into_owned());
            break;
        }
    }
    Ok(something.filter(|_| !holds_export(dir)))
}

/// Whether a directory holds an export, by its manifest or by the mark of an interrupted one.
fn holds_export(dir: &Path) -> bool {
    let mark = dir.join(UNFINISHED);
    let is_cut_off = mark.symlink_metadata().is_ok_and(|found| found.is_file())
        && fs::read_regular_up_to(&mark, MAX_MANIFEST).is_ok_and(|bytes| bytes == UNFINISHED_TEXT);
    is_cut_off || holds_whole_export(dir)
}

fn holds_whole_export(dir: &Path) -> bool {
    let manifest = dir.join(MANIFEST);
    manifest
        .symlink_metadata()
        .is_ok_and(|found| found.is_file())
        && fs::read_regular_up_to(&manifest, MAX_MANIFEST)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<ManifestV1>(&bytes).ok())
            .is_some_and(|manifest| manifest.schema == ManifestV1::SCHEMA)
}
