//! The place of a recording that is replayed.

use std::path::PathBuf;
use std::sync::Arc;

use crucible_host::fs;
use crucible_model::ByteLimit;

use crate::cassette::CassetteError;
use crate::error::{Fault, LlmError};

/// The provider that replays recordings.
pub(crate) const REPLAY: &str = "replay";

/// The largest recording that is read.
pub const MAX_CASSETTE: ByteLimit = ByteLimit(512 * 1024 * 1024);

/// The source of a recording.
#[derive(Clone)]
pub enum CassetteSource {
    /// In this file.
    File(PathBuf),
    /// These bytes.
    Bytes(Arc<[u8]>),
}

impl CassetteSource {
    /// Reads the recording, for callers that need its bytes more than once.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] if the file cannot be read, or is too large for a recording.
    pub fn bytes(&self) -> Result<Arc<[u8]>, LlmError> {
        match self {
            Self::Bytes(bytes) => Ok(Arc::clone(bytes)),
            Self::File(path) => fs::read_regular_up_to(path, MAX_CASSETTE)
                .map(Arc::from)
                .map_err(|error| unusable_recording(&CassetteError::from(error))),
        }
    }
}

impl From<PathBuf> for CassetteSource {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

/// The error for a recording that cannot be replayed.
pub(crate) fn unusable_recording(error: &CassetteError) -> LlmError {
    LlmError::Misconfiguration(Fault::new(
        REPLAY,
        "",
        error.to_string(),
        "name a recording that this version can read",
    ))
}
