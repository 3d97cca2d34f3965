//! The run directory: its files, and how they are read and written.
//!
//! Paths in it are relative and fixed; the only names that vary are attempt numbers and gate ids. Files are
//! written atomically, so no process sees a partial file. Content that the ledger also holds is not flushed
//! again ([`RunDir::write_recorded`], and `restore.rs`); everything else is on disk before anything relies on
//! it. Links in the directory are never followed, for reading or writing.

use std::path::{Path, PathBuf};

use crucible_host::fs::{self, FsError};
use crucible_host::lock::{Lock, holder};
use crucible_llm::MAX_CASSETTE;
use crucible_model::{ByteLimit, Digest, RunId, to_canonical_line};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::contract::RunRecord;
use crate::document::{self, Document};
use crate::error::RunError;

/// What a run was started with.
pub(crate) const RUN: &str = "run.json";
/// The events, a JSON object a line; derived from the ledger.
pub const EVENTS: &str = "events.jsonl";
/// The story of the run for people; derived from the events.
pub(crate) const TRACE: &str = "TRACE.md";
/// What the model calls cost and how they ended; derived from the events.
pub(crate) const RECEIPT: &str = "receipt.json";
/// Every model call with its answer.
pub const CASSETTE: &str = "cassette.jsonl";
/// The recording that answers, in a run of the provider `replay`: a copy of the one it was started with.
pub const SOURCE: &str = "source.jsonl";
/// How far the run may go.
pub(crate) const GUARDRAILS: &str = "artifacts/guardrails.md";
/// Who serves which role.
pub(crate) const DISPATCH: &str = "artifacts/dispatch_config.json";
/// What was found in the repository, and how its gates fared before any change.
pub(crate) const ANALYSIS: &str = "artifacts/analysis.json";
/// Which workflow fits the goal, of those that are known.
pub(crate) const FIND_RESULT: &str = "artifacts/find_result.json";
/// Pages that a researcher fetched for the run.
pub(crate) const FIND_WEB: &str = "artifacts/find_web.json";
/// The chair's request to the librarian.
pub(crate) const FILE_REQUEST: &str = "artifacts/file_request.json";
/// What the chair did not ask for, and why.
pub(crate) const LEFT_OUT: &str = "artifacts/left_out.json";
/// What the model may see.
pub(crate) const CONTEXT_PACK: &str = "artifacts/context_pack.json";
/// The plan as proposed.
pub(crate) const PLAN_DRAFT: &str = "artifacts/PLAN_draft.md";
/// The plan as signed.
pub const PLAN: &str = "artifacts/PLAN.md";
/// The reasons of the plan.
pub(crate) const REASONS: &str = "artifacts/REASONS.md";
/// The required results of the change and their evidence.
pub(crate) const EXPECTED_RESULTS: &str = "artifacts/EXPECTED_RESULTS.md";
/// The approval of the plan.
pub(crate) const SIGNATURE: &str = "artifacts/signature.json";
/// The patch that was proposed last, or accepted.
pub(crate) const PATCH: &str = "artifacts/diff.patch";
/// How the gates ended.
pub(crate) const VERIFY_REPORT: &str = "artifacts/verify_report.json";
/// Where a person writes tests against a change.
pub(crate) const OBJECTIONS: &str = "artifacts/objections.json";
/// Where a person writes what such a test must expect.
pub(crate) const EXPECTATION: &str = "artifacts/expectation.json";
/// What held-out tests showed before the landing.
pub(crate) const HELD_OUT: &str = "artifacts/held_out.json";
/// The commit that landed.
pub(crate) const LANDING: &str = "artifacts/landing.json";
/// What the commit proves of the requirements of the run's task.
pub(crate) const EVIDENCE: &str = "artifacts/evidence.json";
/// The signature of the commit.
pub(crate) const COMMIT_SIGNATURE: &str = "artifacts/commit.sig";
/// The signed statements about the commit, one bundle per line: the commit's note.
pub(crate) const ATTESTATION: &str = "artifacts/attestation.jsonl";
/// Why the run failed for good.
pub(crate) const FAILURE: &str = "artifacts/failure.json";
/// The contract guardian's review of the plan.
pub(crate) const REVIEW_CONTRACT: &str = "reviews/review_contract.md";
/// The cost controller's review of the plan.
pub(crate) const REVIEW_COST: &str = "reviews/review_cost.md";
/// A second opinion on the plan, in addition to the contract guardian's.
pub(crate) const SECOND_REVIEW_CONTRACT: &str = "reviews/review_contract_second.md";
/// A second opinion on the plan, in addition to the cost controller's.
pub(crate) const SECOND_REVIEW_COST: &str = "reviews/review_cost_second.md";
/// Every review of the plan: the local ones, which are always there, and the second opinions.
pub(crate) const REVIEWS: [&str; 4] = [
    REVIEW_CONTRACT,
    REVIEW_COST,
    SECOND_REVIEW_CONTRACT,
    SECOND_REVIEW_COST,
];
/// The patch gate's review of the patch.
pub(crate) const REVIEW_PATCH: &str = "reviews/review_patch.md";
/// Everything a colleague needs to understand a failure.
pub(crate) const BUNDLE: &str = "failure_bundle.zip";
/// Standard output of the gates.
pub(crate) const STDOUT_LOG: &str = "logs/verify.stdout.log";
/// Standard error of the gates.
pub(crate) const STDERR_LOG: &str = "logs/verify.stderr.log";

/// What holds the run for one process.
pub(crate) const LOCK: &str = "lock";
/// Where temporary files lie.
pub(crate) const SCRATCH: &str = "tmp";
const DIRECTORIES: [&str; 6] = [
    "artifacts",
    "reviews",
    "logs",
    "outbox",
    "attempts",
    "answers",
];

/// No file of ours is larger: a cassette is the largest.
const MAX_FILE: ByteLimit = MAX_CASSETTE;

/// A run's directory.
#[derive(Debug, Clone)]
pub struct RunDir {
    root: PathBuf,
}

impl RunDir {
    /// The directory of a run below the run root.
    #[must_use]
    pub fn new(runs_root: &Path, id: &RunId) -> Self {
        Self {
            root: runs_root.join(id.as_str()),
        }
    }

    /// The directory at a path that is already known.
    #[must_use]
    pub fn from_path(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns the run's start record. The directory's name must be the run's: a copy is not a run.
    pub(crate) fn record(&self) -> Result<RunRecord, RunError> {
        let record: RunRecord = self.read_document(RUN)?;
        if self.root.file_name().and_then(|name| name.to_str()) == Some(record.run_id.as_str()) {
            Ok(record)
        } else {
            Err(self.malformed(RUN, "it belongs to another directory"))
        }
    }

    /// Makes the directory and its parts.
    pub(crate) fn create(&self) -> Result<(), FsError> {
        DIRECTORIES
            .iter()
            .try_for_each(|name| fs::create_dir_beneath(&self.root, name))
    }

    /// The directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A file in it.
    #[must_use]
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Returns the directory for temporary files of this run, such as copies of the repository.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.root.join(SCRATCH)
    }

    /// Empties the scratch directory of leftovers from a killed process. Called under the run's lock.
    pub(crate) fn fresh_scratch(&self) -> Result<PathBuf, FsError> {
        let scratch = self.scratch();
        fs::remove_dir_all(&scratch)?;
        fs::create_dir_beneath(&self.root, SCRATCH)?;
        Ok(scratch)
    }

    /// Locks the run for one process, and removes partial files of a killed one.
    ///
    /// # Errors
    ///
    /// Fails when another process holds the run, the directory is not accessible, or a link is in the place
    /// of a file or directory of the run.
    pub(crate) fn acquire(&self, what_for: &str) -> Result<Lock, RunError> {
        let lock = Lock::acquire(&self.lock(), what_for)?;
        // Others read these by their paths.
        for name in [RUN, EVENTS, TRACE, RECEIPT, CASSETTE, SOURCE]
            .into_iter()
            .chain(DIRECTORIES)
        {
            fs::refuse_link(&self.path(name))?;
        }
        fs::remove_stale_temporaries(&self.root)?;
        for part in DIRECTORIES {
            fs::remove_stale_temporaries(&self.root.join(part))?;
        }
        let mut number = 1;
        while self.path(&attempt_file(number, "")).is_dir() {
            fs::remove_stale_temporaries(&self.path(&attempt_file(number, "")))?;
            number += 1;
        }
        Ok(lock)
    }

    /// Returns a description of the process that holds the run, if any. Does not take the lock.
    ///
    /// # Errors
    ///
    /// Fails when the lock cannot be read.
    pub fn lock_holder(&self) -> Result<Option<String>, FsError> {
        holder(&self.lock())
    }

    fn lock(&self) -> PathBuf {
        self.root.join(LOCK)
    }

    /// Whether a file is there.
    #[must_use]
    pub fn has(&self, relative: &str) -> bool {
        fs::is_file_beneath(&self.root, relative)
    }

    /// Returns a file's bytes.
    ///
    /// # Errors
    ///
    /// Fails when it does not exist, is reached through a link, or cannot be read.
    pub fn read(&self, relative: &str) -> Result<Vec<u8>, FsError> {
        self.read_up_to(relative, MAX_FILE)
    }

    /// Returns a file's bytes, if it has at most `limit` of them.
    pub(crate) fn read_up_to(&self, relative: &str, limit: ByteLimit) -> Result<Vec<u8>, FsError> {
        fs::read_beneath(&self.root, relative, limit)
    }

    /// Returns a file's bytes, if it exists. A path through a link, a special file or an oversized file is
    /// not part of the run, so a planted one cannot block the status.
    pub(crate) fn read_if_there(&self, relative: &str) -> Result<Option<Vec<u8>>, FsError> {
        match self.read(relative) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_not_found() || error.is_no_file() => Ok(None),
            Err(FsError::TooLarge { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A text file.
    pub(crate) fn read_text(&self, relative: &str) -> Result<String, RunError> {
        String::from_utf8(self.read(relative)?)
            .map_err(|_| self.malformed(relative, "it is not UTF-8"))
    }

    /// Parses a document of the run, in the known version.
    pub(crate) fn read_document<T: Document>(&self, relative: &str) -> Result<T, RunError> {
        document::read(&self.read(relative)?)
            .map_err(|fault| self.malformed(relative, &fault.to_string()))
    }

    /// A JSON value that carries no version of ours.
    pub(crate) fn read_json<T: DeserializeOwned>(&self, relative: &str) -> Result<T, RunError> {
        serde_json::from_slice(&self.read(relative)?)
            .map_err(|error| self.malformed(relative, &error.to_string()))
    }

    /// Writes a file that is held nowhere else. It is on disk when this returns.
    pub(crate) fn write(&self, relative: &str, bytes: &[u8]) -> Result<Digest, RunError> {
        fs::write_beneath(&self.root, relative, bytes)?;
        Ok(Digest::compute(bytes))
    }

    /// Writes a file whose bytes go into the ledger with its event, or that is derived from the ledger. It is
    /// not flushed: after a crash it is restored, or created again if no event records it.
    pub(crate) fn write_recorded(&self, relative: &str, bytes: &[u8]) -> Result<Digest, RunError> {
        fs::write_beneath_unflushed(&self.root, relative, bytes)?;
        Ok(Digest::compute(bytes))
    }

    /// Flushes files that were just written without it, and their directories.
    pub(crate) fn flush(&self, relatives: &[&str]) -> Result<(), FsError> {
        fs::flush_beneath(&self.root, relatives)
    }

    pub(crate) fn write_json<T: Serialize>(
        &self,
        relative: &str,
        value: &T,
    ) -> Result<Digest, RunError> {
        self.write(relative, &to_canonical_line(value)?)
    }

    /// A JSON document, written as [`RunDir::write_recorded`] does.
    pub(crate) fn write_json_recorded<T: Serialize>(
        &self,
        relative: &str,
        value: &T,
    ) -> Result<Digest, RunError> {
        self.write_recorded(relative, &to_canonical_line(value)?)
    }

    pub(crate) fn malformed(&self, relative: &str, problem: &str) -> RunError {
        RunError::Malformed {
            path: self.path(relative),
            problem: problem.to_owned(),
        }
    }
}

/// Returns the files of the `number`th run of gates before a landing: their report and their output.
#[must_use]
pub(crate) fn full_gates_files(number: u64) -> [String; 3] {
    [
        format!("artifacts/full_gates_{number:03}.json"),
        format!("logs/full_gates_{number:03}.stdout.log"),
        format!("logs/full_gates_{number:03}.stderr.log"),
    ]
}

/// A file of attempt `number`, counted from 1.
#[must_use]
pub(crate) fn attempt_file(number: u64, name: &str) -> String {
    format!("attempts/{number:03}/{name}")
}
