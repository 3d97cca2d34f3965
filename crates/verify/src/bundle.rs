//! `failure_bundle.zip`: everything a colleague needs to understand a failure, in one file that
//! opens without Crucible.
//!
//! It contains the start record, the trace, the events, the model calls, `artifacts/`, `attempts/`,
//! `reviews/`, `outbox/` and `logs/`. The same run gives the same bytes: entries are sorted, times and
//! permissions fixed, and `MANIFEST.json` describes each entry: its digest, and whether something was cut,
//! replaced or left out.
//!
//! What always holds: no link is followed, no device or pipe opened; every entry has passed redaction; what
//! the seed demands and the run does not have is there as a placeholder that says why.

mod manifest;
mod read;

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use crucible_model::{CanonicalError, Digest, to_canonical_json};
use crucible_secrets::Scanner;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

pub(crate) use manifest::{BundleCut, BundleOrigin};

/// The entry that describes all others.
pub(crate) const MANIFEST_NAME: &str = "MANIFEST.json";

/// The directories in a bundle, and the important part of a long file.
const DIRECTORIES: [(&str, read::KeptEnd); 5] = [
    ("artifacts", read::KeptEnd::Beginning),
    ("attempts", read::KeptEnd::Beginning),
    ("logs", read::KeptEnd::End),
    ("outbox", read::KeptEnd::Beginning),
    ("reviews", read::KeptEnd::Beginning),
];

/// Further files in a bundle.
const FILES: [(&str, read::KeptEnd); 5] = [
    ("TRACE.md", read::KeptEnd::End),
    ("cassette.jsonl", read::KeptEnd::End),
    ("events.jsonl", read::KeptEnd::End),
    ("receipt.json", read::KeptEnd::Beginning),
    ("run.json", read::KeptEnd::Beginning),
];

/// Required files, and the text for a missing one.
const REQUIRED: [(&str, &str); 5] = [
    ("TRACE.md", "this run has no trace"),
    (
        "artifacts/PLAN.md",
        "this run ended before a plan was signed",
    ),
    (
        "artifacts/diff.patch",
        "this run ended before a patch was proposed",
    ),
    (
        "artifacts/verify_report.json",
        "this run ended before anything was verified",
    ),
    ("events.jsonl", "this run has no events"),
];

/// Directories with an entry of their own, so that empty ones are visible.
const SHOWN_DIRECTORIES: [&str; 2] = ["outbox/", "reviews/"];

/// A bundle could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The run directory is not there or is not a directory.
    #[error("{} is not a run directory; list runs with `crucible run list`", path.display())]
    NoRun {
        /// What was given.
        path: PathBuf,
    },
    /// The archive cannot be created.
    #[error(
        "cannot create the bundle: {0}; remove large files from the run directory, then try again"
    )]
    Archive(#[from] ZipError),
    /// An entry could not be written into the archive.
    #[error("cannot write the bundle: {0}; free some memory, then try again")]
    Write(#[from] std::io::Error),
    /// The manifest has no canonical form.
    #[error("cannot write the bundle's manifest: {0}; report this as a bug in Crucible")]
    Manifest(#[from] CanonicalError),
}

/// Creates the bundle of a run from the files that belong to it. `is_told_of` decides that by the path in
/// `run_dir`; others have an unknown origin. The manifest names unreadable files and files left out; they are
/// not an error.
///
/// # Errors
///
/// Fails when `run_dir` is not a directory, or when the archive cannot be created.
pub fn failure_bundle(
    run_dir: &Path,
    is_told_of: &dyn Fn(&Path) -> bool,
) -> Result<Vec<u8>, BundleError> {
    if !run_dir.is_dir() {
        return Err(BundleError::NoRun {
            path: run_dir.to_owned(),
        });
    }
    let mut collected = read::collect(
        run_dir,
        is_told_of,
        &FILES,
        &DIRECTORIES,
        Scanner::builtin(),
    );
    for (name, why) in REQUIRED {
        if !collected.has(name) {
            let text = format!("placeholder: {why}\n");
            collected.add(
                name.to_owned(),
                text.into_bytes(),
                BundleOrigin::Placeholder,
                0,
                None,
            );
        }
    }
    collected.entries.sort_by(|a, b| a.name.cmp(&b.name));
    let manifest = to_canonical_json(&collected.manifest())?;
    collected.add(
        MANIFEST_NAME.to_owned(),
        manifest,
        BundleOrigin::Manifest,
        0,
        None,
    );
    collected.entries.sort_by(|a, b| a.name.cmp(&b.name));
    write(&collected.entries)
}

/// One file of the bundle, ready to be written.
struct Ready {
    name: String,
    bytes: Vec<u8>,
    digest: Digest,
    origin: BundleOrigin,
    redacted: u64,
    cut: Option<BundleCut>,
}

fn write(entries: &[Ready]) -> Result<Vec<u8>, BundleError> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(6))
        .last_modified_time(DateTime::DEFAULT);
    let mut names: Vec<(&str, Option<&Ready>)> =
        SHOWN_DIRECTORIES.iter().map(|name| (*name, None)).collect();
    names.extend(
        entries
            .iter()
            .map(|entry| (entry.name.as_str(), Some(entry))),
    );
    names.sort_by_key(|(name, _)| *name);
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, entry) in names {
        match entry {
            None => archive.add_directory(name, options.unix_permissions(0o755))?,
            Some(entry) => {
                archive.start_file(name, options.unix_permissions(0o644))?;
                archive.write_all(&entry.bytes)?;
            }
        }
    }
    Ok(archive.finish()?.into_inner())
}

#[cfg(test)]
mod tests;
