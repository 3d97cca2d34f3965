//! Builds a context pack without a run: the same documents, denials and budget.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::fs::{FsError, read_prefix, read_up_to, write_atomic};
use crucible_model::{ByteLimit, Digest, ExitStatus, Failure, FileLimit};
use crucible_pack::{Budget, ContextPack, FileRequest, MAX_DOCUMENT_BYTES, Omitted};
use crucible_repo::Git;
use crucible_sandbox::Runtime;
use crucible_settings::Settings;
use serde::Serialize;

use crate::configured::{context_settings, pack_limits};
use crate::error::RunError;
use crate::role::chair::{ContextRanking, request_for_goal};
use crate::role::librarian::pack_context;

/// The longest goal, in bytes, as of a run.
const MAX_GOAL: usize = 16 * 1024;

/// How much of a gate's output is read, in bytes.
const MAX_OUTPUT: u64 = 8 * 1024 * 1024;

/// What a pack is built from: a file request, or a goal for which the tracked files are ranked.
pub struct ContextRequest<'a> {
    /// A directory in the repository.
    pub repo: &'a Path,
    /// The document of the file request.
    pub file: Option<PathBuf>,
    /// The goal; empty if there is a request.
    pub goal: &'a str,
    /// The file with the output of a failing test run.
    pub gate_output: Option<PathBuf>,
    /// Replaces `run.max_files`.
    pub max_files: Option<u64>,
    /// Replaces `run.max_total_bytes`.
    pub max_bytes: Option<u64>,
}

/// A pack, and how it came about.
pub struct BuiltContext {
    /// The pack.
    pub pack: ContextPack,
    /// The request, as given or made from the goal.
    pub request: FileRequest,
    /// The ranking for the goal.
    pub ranking: Option<ContextRanking>,
}

/// The result as JSON, if the pack is written to a file.
#[derive(Serialize)]
pub struct BuiltContextDocument<'a> {
    schema_version: &'static str,
    pack: &'a WrittenDocument,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<WrittenDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranking: Option<WrittenDocument>,
    files: usize,
    content_bytes: usize,
    summary: &'a str,
    omitted: &'a [Omitted],
}

/// A document that was written.
#[derive(Serialize)]
pub struct WrittenDocument {
    /// The path, as named on the command line.
    pub path: String,
    /// The digest of its bytes.
    pub digest: Digest,
    bytes: usize,
}

impl ContextRequest<'_> {
    /// Reads the file request, if one is named, and checks the goal. `named` is its path as the user typed it.
    ///
    /// # Errors
    ///
    /// Fails if the request cannot be read or is invalid, or if the goal is too long.
    pub fn read(&self, named: Option<&Path>) -> Result<Option<FileRequest>, Failure> {
        let read = |(path, named): (&PathBuf, &Path)| read_request(path, named);
        let request = self.file.as_ref().zip(named).map(read).transpose()?;
        match self.goal.len() {
            bytes if bytes > MAX_GOAL => {
                let message = format!("the goal has {bytes} bytes; the limit is {MAX_GOAL}");
                Err(Failure::new(ExitStatus::OverLimit, message).hint("Say it shorter."))
            }
            _ => Ok(request),
        }
    }

    /// Builds the pack for `named`, or for the goal.
    ///
    /// # Errors
    ///
    /// Fails if the repository or a file cannot be read, if a setting cannot be used, or if the pack is refused.
    pub async fn build(
        &self,
        runtime: &Runtime<'_>,
        config: &Settings,
        named: Option<FileRequest>,
    ) -> Result<BuiltContext, Failure> {
        let settings = context_settings(config)?;
        let output = self.gate_output.as_deref().map(read_output).transpose()?;
        let opened = Git::open(Arc::clone(&runtime.sandbox), runtime.env, self.repo);
        let Some(request) = named else {
            let git = opened.await?;
            let budget = self.budget(config)?;
            let (request, ranking) =
                request_for_goal(&git, self.goal, budget, &settings, output.as_deref()).await?;
            let pack =
                pack_context(git.top(), &git.name(), &settings, &request).map_err(refused)?;
            return Ok(BuiltContext {
                pack,
                request,
                ranking: Some(ranking),
            });
        };
        // The files are read and searched while git is asked; only the name of the repository is git's to tell.
        let top = Git::find_top(runtime.env, self.repo)?;
        let packing = tokio::task::spawn_blocking(move || {
            let pack = pack_context(&top, "", &settings, &request);
            (request, pack)
        });
        let (git, packed) = tokio::join!(opened, packing);
        let git = git?;
        let (request, pack) =
            packed.map_err(|died| Failure::refused(format!("packing failed: {died}")))?;
        let pack = ContextPack {
            repo_slug: git.name(),
            ..pack.map_err(refused)?
        };
        Ok(BuiltContext {
            pack,
            request,
            ranking: None,
        })
    }

    fn budget(&self, config: &Settings) -> Result<Budget, Failure> {
        let (limits, _) = pack_limits(config, config.llm.provider.as_deref().unwrap_or_default())?;
        Ok(Budget {
            max_files: FileLimit(self.max_files.unwrap_or(limits.max_files)),
            max_total_bytes: ByteLimit(self.max_bytes.unwrap_or(limits.max_total_bytes)),
        })
    }
}

impl BuiltContext {
    /// Returns the result as JSON, with the documents that were written.
    #[must_use]
    pub fn document<'a>(
        &'a self,
        pack: &'a WrittenDocument,
        request: Option<WrittenDocument>,
        ranking: Option<WrittenDocument>,
    ) -> BuiltContextDocument<'a> {
        let files = &self.pack.files;
        BuiltContextDocument {
            schema_version: "crucible-context-build-v1",
            pack,
            request,
            ranking,
            files: files.len(),
            content_bytes: files.iter().map(|file| file.content.len()).sum(),
            summary: &self.pack.summary,
            omitted: &self.pack.omitted,
        }
    }
}

impl WrittenDocument {
    /// Writes a document to `path`, which the user named as `shown`.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn write(file_path: &Path, path: &Path, bytes: &[u8]) -> Result<Self, Failure> {
        write_atomic(path, bytes)?;
        Ok(Self {
            path: file_path.display().to_string(),
            digest: Digest::compute(bytes),
            bytes: bytes.len(),
        })
    }
}

/// Why a request is not packed.
fn refused(error: RunError) -> Failure {
    let repeats = matches!(error, RunError::SecretInRequest { .. });
    let failure = Failure::from(error);
    if repeats {
        failure.hint("The pack repeats its goal, reason and paths; remove the secret from them.")
    } else {
        failure
    }
}

fn read_request(path: &Path, named: &Path) -> Result<FileRequest, Failure> {
    let refuse = |why: String| {
        let message = format!("{} is not a valid file request: {why}", named.display());
        Failure::new(ExitStatus::Schema, message)
            .hint("See docs/contracts/file_request.md, or create one: `crucible context build --goal TEXT --request-out FILE`.")
    };
    // One byte more than is parsed, so that the reader of the document says what is too large.
    let bytes = match read_up_to(path, ByteLimit(MAX_DOCUMENT_BYTES + 1)) {
        Ok(bytes) => bytes,
        Err(FsError::TooLarge { .. }) => {
            return Err(refuse(format!(
                "it has more than {MAX_DOCUMENT_BYTES} bytes"
            )));
        }
        Err(error @ FsError::Io { .. }) => return Err(Failure::usage(error.to_string())),
    };
    FileRequest::parse(&bytes).map_err(|error| refuse(error.to_string()))
}

/// What a gate printed, up to as much as a run keeps of it.
fn read_output(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = read_prefix(path, ByteLimit(MAX_OUTPUT));
    Ok(read
        .map_err(|error| Failure::usage(error.to_string()))?
        .bytes)
}
