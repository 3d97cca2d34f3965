//! The recording of a command's calls that a user asked for with `--record`.
//!
//! What holds: its file is begun by this program and no other, in a place where nothing was; it begins with the first
//! call; one that holds no call in the end is taken away again, so a command that asks nobody leaves nothing behind.

use std::cell::{Cell, OnceCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::fs;
use crucible_llm::{
    Backend, CassetteError, CassetteHeader, CassetteWriter, MAX_CASSETTE, Recording, Reuse,
};

use crate::error::CommandError;

/// A file for calls.
pub(crate) struct Record {
    path: PathBuf,
    begun: OnceCell<Arc<CassetteWriter>>,
    /// Whether calls were copied into it.
    copied: Cell<bool>,
}

impl Record {
    /// One in this file. It is not begun yet, but nothing is in its way.
    pub(crate) fn at(path: PathBuf) -> Result<Self, CommandError> {
        if path.symlink_metadata().is_ok() {
            return Err(CommandError::usage(format!(
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
            return Err(CommandError::usage(format!(
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
            Some(_) | None => Err(CommandError::usage(format!(
                "--record: {} is in no directory",
                path.display()
            ))
            .hint("Make the directory first, or name a file in one that exists.")),
        }
    }

    /// Where the calls to this backend are written.
    pub(crate) fn of(&self, backend: &Backend) -> Result<Recording, CommandError> {
        if let Some(begun) = self.begun.get() {
            return Ok(Recording::To(Arc::clone(begun)));
        }
        fs::create_new(&self.path)
            .map_err(|error| CommandError::usage(format!("--record: {error}")))?;
        let speaker = backend.speaker();
        let (provider, model) = (speaker.provider.clone(), speaker.model.clone());
        let header = CassetteHeader::new(provider, model, backend.capabilities());
        let writer =
            CassetteWriter::open(&self.path, &header, Reuse::Nothing).map_err(|error| {
                self.take_away();
                match error {
                    CassetteError::File(error) => CommandError::usage(format!("--record: {error}")),
                    error => error.into(),
                }
            })?;
        Ok(Recording::To(Arc::clone(
            self.begun.get_or_init(|| Arc::new(writer)),
        )))
    }

    /// Adds the calls of another recording, which were made through this backend or one like it. One that is not there adds none.
    pub(crate) fn copy(&self, backend: &Backend, from: &Path) -> Result<(), CommandError> {
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
                self.of(backend)?;
                fs::append_durable(&self.path, calls)?;
                self.copied.set(true);
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// What is kept of a question that was interrupted; nothing where no call was written down.
    pub(crate) fn kept(&self) -> Option<String> {
        let kept = || {
            format!(
                "Calls that were answered are in {}; of all else nothing was kept.",
                self.path.display()
            )
        };
        self.holds_calls().then(kept)
    }

    fn holds_calls(&self) -> bool {
        self.copied.get() || self.begun.get().is_some_and(|begun| begun.calls() > 0)
    }

    fn take_away(&self) {
        let _a_file_without_a_call_does_no_harm = fs::remove_file(&self.path);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.begun.get().is_some() && !self.holds_calls() {
            self.take_away();
        }
    }
}
