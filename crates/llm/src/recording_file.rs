//! The recording of a command's calls that `--record` requests.
//!
//! Invariants: this program creates the file, where nothing was before, at the first call. A file without a call is
//! removed again, so a command that calls no model leaves nothing behind.

use std::cell::{Cell, OnceCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::fs;
use crucible_model::Failure;

use crate::backend::Backend;
use crate::cassette::{CassetteError, CassetteHeader};
use crate::cassette_source::MAX_CASSETTE;
use crate::record::{CassetteWriter, Recording, Reuse};

/// The file that a command records its calls in.
pub struct RecordingFile {
    path: PathBuf,
    begun: OnceCell<Arc<CassetteWriter>>,
    /// Whether calls were copied into it.
    copied: Cell<bool>,
}

impl RecordingFile {
    /// Names the file, which is not created yet.
    ///
    /// # Errors
    ///
    /// Fails if the file exists, if its directory does not, or if git or Crucible keeps its own files there.
    pub fn new(path: PathBuf) -> Result<Self, Failure> {
        if path.symlink_metadata().is_ok() {
            return Err(Failure::usage(format!(
                "--record: there is something at {} already",
                path.display()
            ))
            .hint(
                "Name a file that does not exist yet; a recording holds the calls of one command.",
            ));
        }
        let place = path
            .parent()
            .and_then(|directory| directory.canonicalize().ok());
        let owner = [(".git", "git"), (".crucible", "Crucible")]
            .into_iter()
            .find(|(own, _)| {
                place
                    .iter()
                    .flat_map(|place| place.components())
                    .any(|part| part.as_os_str() == *own)
            });
        if let Some((_, owner)) = owner {
            return Err(Failure::usage(format!(
                "--record: {} cannot be written to: {owner} keeps its own files there",
                path.display()
            ))
            .hint("Name a file elsewhere."));
        }
        match path.parent() {
            Some(directory) if directory.is_dir() => Ok(Self {
                path,
                begun: OnceCell::new(),
                copied: Cell::new(false),
            }),
            Some(_) | None => Err(Failure::usage(format!(
                "--record: {} is in no directory",
                path.display()
            ))
            .hint("Make the directory first, or name a file in one that exists.")),
        }
    }

    /// Returns the recording of the calls to this backend, and creates the file at the first use.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be created or written.
    pub fn recording(&self, backend: &Backend) -> Result<Recording, Failure> {
        if let Some(begun) = self.begun.get() {
            return Ok(Recording::To(Arc::clone(begun)));
        }
        fs::create_new(&self.path).map_err(|error| Failure::usage(format!("--record: {error}")))?;
        let speaker = backend.speaker();
        let (provider, model) = (speaker.provider.clone(), speaker.model.clone());
        let header = CassetteHeader::new(provider, model, backend.capabilities());
        let writer =
            CassetteWriter::open(&self.path, &header, Reuse::Nothing).map_err(|error| {
                self.take_away();
                match error {
                    CassetteError::File(error) => Failure::usage(format!("--record: {error}")),
                    error => Failure::from(error),
                }
            })?;
        Ok(Recording::To(Arc::clone(
            self.begun.get_or_init(|| Arc::new(writer)),
        )))
    }

    /// Appends the calls of another recording, which were made through this backend or an equal one. A missing
    /// file has no calls.
    ///
    /// # Errors
    ///
    /// Fails if the other recording cannot be read or this one cannot be written.
    pub fn copy(&self, backend: &Backend, from: &Path) -> Result<(), Failure> {
        let bytes = match fs::read_regular_up_to(from, MAX_CASSETTE) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        // The first line is the header; a last one without its end was never finished.
        let end = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let start = bytes
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        match bytes.get(start..end) {
            Some(calls) if !calls.is_empty() => {
                self.recording(backend)?;
                fs::append_durable(&self.path, calls)?;
                self.copied.set(true);
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the note about the saved calls of an interrupted command; `None` if no call was recorded.
    #[must_use]
    pub fn interruption_note(&self) -> Option<String> {
        let note = || {
            format!(
                "Calls that were answered are in {}; of all else nothing was kept.",
                self.path.display()
            )
        };
        self.holds_calls().then(note)
    }

    fn holds_calls(&self) -> bool {
        self.copied.get() || self.begun.get().is_some_and(|begun| begun.calls() > 0)
    }

    fn take_away(&self) {
        let _a_file_without_a_call_does_no_harm = fs::remove_file(&self.path);
    }
}

impl Drop for RecordingFile {
    fn drop(&mut self) {
        if self.begun.get().is_some() && !self.holds_calls() {
            self.take_away();
        }
    }
}
