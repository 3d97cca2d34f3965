//! The recording of a council's calls that somebody asked for.
//!
//! What holds: its file is begun by this program and no other, in a place where nothing was; it begins with the first
//! engine; one that holds no call in the end is taken away again, so a command that asks nobody leaves nothing behind.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;

use crucible_host::fs;
use crucible_llm::{Backend, CassetteError, CassetteHeader, CassetteWriter, Recording, Reuse};

use crate::error::CommandError;

/// A file for calls.
pub(super) struct Record {
    path: PathBuf,
    begun: OnceCell<Arc<CassetteWriter>>,
}

impl Record {
    /// One in this file. It is not begun yet, but nothing is in its way.
    pub(super) fn at(path: PathBuf) -> Result<Self, CommandError> {
        if path.symlink_metadata().is_ok() {
            return Err(CommandError::usage(format!(
                "--record: there is something at {} already",
                path.display()
            ))
            .hint("Name a file that does not exist yet; a recording holds the calls of one command."));
        }
        match path.parent() {
            Some(directory) if directory.is_dir() => Ok(Self { path, begun: OnceCell::new() }),
            Some(_) | None => {
                Err(CommandError::usage(format!("--record: {} is in no directory", path.display()))
                    .hint("Make the directory first, or name a file in one that exists."))
            }
        }
    }

    /// Where the calls to this backend are written.
    pub(super) fn of(&self, backend: &Backend) -> Result<Recording, CommandError> {
        if let Some(begun) = self.begun.get() {
            return Ok(Recording::To(Arc::clone(begun)));
        }
        fs::create_new(&self.path).map_err(|error| CommandError::usage(format!("--record: {error}")))?;
        let speaker = backend.speaker();
        let (provider, model) = (speaker.provider.clone(), speaker.model.clone());
        let header = CassetteHeader::new(provider, model, backend.capabilities());
        let writer = CassetteWriter::open(&self.path, &header, Reuse::Nothing).map_err(|error| {
            self.take_away();
            match error {
                CassetteError::File(error) => CommandError::usage(format!("--record: {error}")),
                error => error.into(),
            }
        })?;
        Ok(Recording::To(Arc::clone(self.begun.get_or_init(|| Arc::new(writer)))))
    }

    /// What is kept of a question that was interrupted; nothing where no call was written down.
    pub(super) fn kept(&self) -> Option<String> {
        let kept = || {
            format!("Calls that were answered are in {}; of all else nothing was kept.", self.path.display())
        };
        self.begun.get().is_some_and(|begun| begun.calls() > 0).then(kept)
    }

    fn take_away(&self) {
        let _a_file_without_a_call_does_no_harm = fs::remove_file(&self.path);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.begun.get().is_some_and(|begun| begun.calls() == 0) {
            self.take_away();
        }
    }
}
