//! GitHub, asked through `gh` alone.
//!
//! A question is `gh api -i --method GET`: status and headers come before the body, so that a refusal is read, not guessed from
//! words. A download is `gh api` with its output streamed to a new file, which is removed unless `gh` succeeded: `gh` prints the
//! body of an error where the archive should be.
//!
//! What always holds:
//!
//! - Every call is built in `command`, with an environment made from nothing: of the user's variables only those by which
//!   `gh` logs in and reaches GitHub.
//! - A name from outside is percent-encoded into one part of a path, never an option, a placeholder or a way up.
//! - Time and size of every answer are bounded, and nothing of `gh` is left when a call ends or its future is dropped.

mod command;
mod download;
mod error;
mod request;
mod response;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_host::env::{Environment, ProgramError};
use crucible_model::ByteLimit;
use crucible_sandbox::Sandbox;

pub use error::{GhError, LimitReset};
pub use request::{GhRequest, is_github_name, is_github_owner};
pub use response::GhResponse;

/// Maximum response size: a hundred repositories with the longest texts that GitHub allows are below 1 MiB.
const MAX_ANSWER: ByteLimit = ByteLimit(32 << 20);

/// GitHub's command line, ready to be called. Whether it is installed shows at the first call.
#[derive(Debug, Clone)]
pub struct Gh {
    sandbox: Arc<Sandbox>,
    program: Result<PathBuf, ProgramError>,
    env: Vec<(OsString, OsString)>,
    host: String,
    deadlines: GhDeadlines,
}

/// Time limits for `gh`, which has none of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GhDeadlines {
    /// For a question.
    pub answer: Duration,
    /// For a download.
    pub download: Duration,
}

impl Default for GhDeadlines {
    /// A minute for a question, ten for a download.
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(60),
            download: Duration::from_secs(600),
        }
    }
}

impl Gh {
    /// The `gh` of the user's `PATH`, in the user's login.
    #[must_use]
    pub fn new(sandbox: Arc<Sandbox>, env: &Environment) -> Self {
        Self {
            sandbox,
            program: env.find_program("gh"),
            env: command::environment(env),
            host: command::host(env),
            deadlines: GhDeadlines::default(),
        }
    }

    /// The same, with other deadlines.
    #[must_use]
    pub fn with_deadlines(mut self, deadlines: GhDeadlines) -> Self {
        self.deadlines = deadlines;
        self
    }

    /// Returns its host: `github.com`, unless the user's `GH_HOST` names another.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Asks, and reads the whole answer.
    ///
    /// # Errors
    ///
    /// [`GhError`] unless GitHub answered with success.
    pub async fn get(&self, request: &GhRequest) -> Result<GhResponse, GhError> {
        let completed = self.run(self.read_call(request)?).await?;
        response::read(
            &completed,
            request.path(),
            MAX_ANSWER,
            self.deadlines.answer,
        )
    }

    /// Downloads to the new file `to`, at most `limit` bytes; how many there were. On any failure the file is gone.
    ///
    /// # Errors
    ///
    /// [`GhError`] unless GitHub answered with success and all of it came.
    pub async fn download(
        &self,
        request: &GhRequest,
        to: &Path,
        limit: ByteLimit,
    ) -> Result<u64, GhError> {
        download::download(self, request, to, limit).await
    }
}
