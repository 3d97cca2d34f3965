//! Reads all that a record consists of into one value.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crucible_host::fs::{FsError, read_regular_up_to};
use crucible_ledger::{Anchor, EventRecord, Ledger, LedgerError};
use crucible_llm::MAX_CASSETTE;
use crucible_model::{ByteLimit, Digest, RepoPath, RunId, Verdict};
use crucible_repo::{Branch, BranchReach, CommitObject, Git, Oid, RepoError};

use super::unrecorded::{UnrecordedFiles, unrecorded};
use crate::attempt;
use crate::contract::RunRecord;
use crate::document;
use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::journal::{NOT_KEPT, event_line};
use crate::land::{LEDGER_TRAILER, Landing};
use crate::layout::{self, RunDir};
use crate::recorded::recorded_files;
use crate::recording::check_recording;
use crate::reservations::RecordedUsage;
use crate::run_context::RunContext;

/// Files that are checked by content, in addition to the recorded ones.
const READ: [&str; 8] = [
    layout::EVENTS,
    layout::TRACE,
    layout::RECEIPT,
    layout::PATCH,
    layout::REVIEW_PATCH,
    layout::VERIFY_REPORT,
    layout::STDOUT_LOG,
    layout::STDERR_LOG,
];

/// How much longer than the ledger's events `events.jsonl` may be and still be compared line by line, in bytes.
const MORE_THAN_DERIVED: u64 = 1 << 20;

/// How often the files are read again while another process goes on with the run.
const TRIES: usize = 3;

/// All that a record consists of.
pub(super) struct LoadedRecord {
    /// The name of the run's directory.
    pub(super) name: String,
    /// The run's events in the ledger.
    pub(super) events: Vec<EventRecord>,
    /// The verdict on the ledger's chain from the run's first event on.
    pub(super) chain: Verdict,
    /// What was started, as the ledger keeps it.
    pub(super) record: Option<RunRecord>,
    /// The files at paths of the run directory.
    pub(super) files: BTreeMap<String, FileRead>,
    /// Files that no event accounts for.
    pub(super) unrecorded: UnrecordedFiles,
    /// What the ledger's rows say of the run and its calls.
    pub(super) booked: Option<RecordedUsage>,
    /// The ledger's content of recorded files, by the digests in the events.
    pub(super) stored_bytes: BTreeMap<Digest, StoredBytes>,
    /// The recording of the model's answers.
    pub(super) recording: Result<Verdict, String>,
    /// The commit.
    pub(super) commit: CommitRead,
    /// The tree that the patch produces from the base.
    pub(super) tree: TreeRead,
}

/// What lies at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileRead {
    /// Nothing.
    Missing,
    /// Something that is not a file of ours, with the reason.
    Refused(String),
    /// A file longer than what it is compared with.
    TooLong,
    /// A file.
    Bytes(Vec<u8>),
    /// A file of which only the digest matters.
    Hashed(Digest),
}

impl FileRead {
    pub(super) fn digest(&self) -> Option<Digest> {
        match self {
            Self::Bytes(bytes) => Some(Digest::compute(bytes)),
            Self::Hashed(digest) => Some(*digest),
            Self::Missing | Self::Refused(_) | Self::TooLong => None,
        }
    }

    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Missing | Self::Refused(_) | Self::TooLong | Self::Hashed(_) => None,
        }
    }
}

/// What the ledger keeps under a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredBytes {
    /// The bytes with this digest.
    Intact,
    /// Bytes that have another one.
    Altered,
    /// Nothing.
    Missing,
}

/// The commit that a run landed as.
pub(super) enum CommitRead {
    /// The run has not landed.
    NotLanded,
    /// The repository is not there or cannot be used, with the reason.
    NoRepository(String),
    /// The repository has no such commit.
    Missing(Oid),
    /// It exists, with whether the branch where the run started contains it, or why that is unknown.
    Found(Oid, CommitObject, Result<BranchReach, String>),
}

/// The tree that the patch makes.
pub(super) enum TreeRead {
    /// There is no verified patch, or its tree comes from a commit.
    NotAsked,
    /// It could not be computed, with the reason.
    Unknown(String),
    /// This one.
    Made(Oid),
}

/// Reads everything; the repository is at the path where the run was started, or at `repo`.
pub(super) async fn read(
    world: &RunContext<'_>,
    dir: &RunDir,
    ledger: &Ledger,
    repo: Option<&Path>,
) -> Result<LoadedRecord, RunError> {
    let mut read = read_run(dir, ledger)?;
    let events = &read.events;
    let has = |kind: EventKind| events.iter().any(|event| event.event == kind.name());
    let repository = match (&read.record, has(EventKind::VerifyPassed)) {
        (Some(record), true) => Some(open(world, repo.unwrap_or(&record.repo)).await?),
        _ => None,
    };
    let landing = if has(EventKind::Landed) {
        landing(ledger, events)?
    } else {
        None
    };
    let commit = match (&repository, landing) {
        (Some(Ok(git)), Some(landing)) => match git.commit_object(&landing.commit).await? {
            Some(commit) => {
                let on_branch = on_branch(git, read.record.as_ref(), &landing.commit).await;
                CommitRead::Found(landing.commit, commit, on_branch)
            }
            None => CommitRead::Missing(landing.commit),
        },
        (Some(Err(why)), Some(_)) => CommitRead::NoRepository(why.clone()),
        _ => CommitRead::NotLanded,
    };
    let tree = match (
        &repository,
        &read.record,
        read.files.get(layout::PATCH).and_then(FileRead::bytes),
    ) {
        // Where the tree is a commit's already, making it again would touch the objects of the repository.
        _ if has(EventKind::Landed) => TreeRead::NotAsked,
        (Some(Ok(git)), Some(record), Some(patch)) => {
            match git.tree_after_patch(&record.base_commit, patch).await {
                Ok(produced) => TreeRead::Made(produced.tree),
                Err(error) => TreeRead::Unknown(error.to_string()),
            }
        }
        (Some(Err(why)), ..) => TreeRead::Unknown(why.clone()),
        _ => TreeRead::NotAsked,
    };
    let anchors: Vec<Anchor> = match &commit {
        CommitRead::Found(_, commit, _) => commit.message.lines().filter_map(anchor).collect(),
        CommitRead::NotLanded | CommitRead::NoRepository(_) | CommitRead::Missing(_) => Vec::new(),
    };
    if let Some(first) = events.first() {
        read.chain = ledger.verify_from(first.seq, &anchors)?;
    }
    Ok(LoadedRecord {
        commit,
        tree,
        ..read
    })
}

/// Reads the run directory and the ledger's data of a run, without the ledger's chain or the repository.
pub(super) fn read_run(dir: &RunDir, ledger: &Ledger) -> Result<LoadedRecord, RunError> {
    let name = dir
        .root()
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let run: Option<RunId> = name.parse().ok();
    let events_now = || match &run {
        Some(run) => ledger.events(Some(run)),
        None => Ok(Vec::new()),
    };
    let mut events = events_now()?;
    let mut files = read_files(dir, &events, ledger)?;
    for _ in 1..TRIES {
        let now = events_now()?;
        if now.len() == events.len() {
            break;
        }
        events = now;
        files = read_files(dir, &events, ledger)?;
    }
    let recording = match &run {
        Some(run) => check_recording(dir, run, ledger).map_err(|error| error.to_string()),
        None => Ok(Verdict::default()),
    };
    let booked = run
        .as_ref()
        .map(|run| RecordedUsage::read(ledger, run, &events))
        .transpose()?;
    Ok(LoadedRecord {
        name,
        chain: Verdict::default(),
        record: record(ledger, &events)?,
        files,
        unrecorded: unrecorded(dir, &events),
        booked,
        stored_bytes: stored_contents(ledger, &events)?,
        recording,
        commit: CommitRead::NotLanded,
        tree: TreeRead::NotAsked,
        events,
    })
}

/// Whether the branch that a run started from reaches a commit.
async fn on_branch(
    git: &Git,
    record: Option<&RunRecord>,
    commit: &Oid,
) -> Result<BranchReach, String> {
    match record.map(|record| &record.branch) {
        Some(Branch::Named(name)) => git
            .branch_reach(commit, name)
            .await
            .map_err(|error| error.to_string()),
        // A commit that landed on no branch is on none.
        Some(Branch::Detached) | None => Ok(BranchReach::Reached),
    }
}

/// The repository, with the place for temporary files that every command has; or why it cannot be used.
async fn open(world: &RunContext<'_>, path: &Path) -> Result<Result<Git, String>, RunError> {
    match Git::open(Arc::clone(&world.sandbox), world.env, path).await {
        Ok(git) => Ok(Ok(git)),
        Err(error @ (RepoError::GitMissing { .. } | RepoError::GitTooOld { .. })) => {
            Err(error.into())
        }
        Err(error) => Ok(Err(error.to_string())),
    }
}

fn read_files(
    dir: &RunDir,
    events: &[EventRecord],
    ledger: &Ledger,
) -> Result<BTreeMap<String, FileRead>, RunError> {
    let mut files = BTreeMap::new();
    for (path, digest) in recorded_files(events) {
        let size = match digest.parse() {
            Ok(digest) => ledger.artifact_size(&digest)?,
            Err(_) => None,
        };
        // A longer file differs, whatever its content.
        let read = read_file(dir, path, size.map_or(MAX_CASSETTE, ByteLimit));
        let hashed = match read {
            FileRead::Bytes(bytes) if !is_read(path) => FileRead::Hashed(Digest::compute(&bytes)),
            other => other,
        };
        files.insert(path.to_owned(), hashed);
    }
    for event in events
        .iter()
        .filter(|event| event.event == EventKind::PatchRejected.name())
    {
        // Its outcome is recorded, and the review follows from that.
        let outcome = event.path.as_deref().unwrap_or_default();
        let review = outcome.replace(attempt::OUTCOME, attempt::REVIEW);
        files.insert(review.clone(), read_file(dir, &review, MAX_CASSETTE));
    }
    let mut lines = 0;
    for event in events {
        lines += event_line(event)?.len() as u64;
    }
    for path in READ {
        let limit = match path {
            layout::EVENTS => ByteLimit(lines.saturating_add(MORE_THAN_DERIVED)),
            _ => MAX_CASSETTE,
        };
        files
            .entry(path.to_owned())
            .or_insert_with(|| read_file(dir, path, limit));
    }
    Ok(files)
}

/// Returns whether a file is checked by content, not by its digest alone.
fn is_read(path: &str) -> bool {
    let of_an_attempt = [
        attempt::PATCH,
        attempt::REPORT,
        attempt::OUTCOME,
        attempt::REVIEW,
    ]
    .iter()
    .any(|name| path.ends_with(name));
    of_an_attempt || path.starts_with("artifacts/") || path.starts_with("reviews/")
}

/// Reads a file of the run without following links.
fn read_file(dir: &RunDir, path: &str, limit: ByteLimit) -> FileRead {
    if path.parse::<RepoPath>().is_err() {
        return FileRead::Refused("its path leaves the run directory".to_owned());
    }
    let mut place = dir.root().to_owned();
    for part in path.split('/') {
        place.push(part);
        match place.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => {
                return FileRead::Refused("it is a symbolic link".to_owned());
            }
            // A file with a known length need not be read.
            Ok(meta) if meta.is_file() && meta.len() > limit.0 => return FileRead::TooLong,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return FileRead::Missing,
            Err(error) => return FileRead::Refused(error.to_string()),
        }
    }
    match read_regular_up_to(&place, limit) {
        Ok(bytes) => FileRead::Bytes(bytes),
        Err(FsError::TooLarge { .. }) => FileRead::TooLong,
        Err(error) if error.is_not_found() => FileRead::Missing,
        Err(FsError::Io { source, .. }) => FileRead::Refused(source.to_string()),
    }
}

/// Returns the ledger's content of every file whose bytes it holds.
fn stored_contents(
    ledger: &Ledger,
    events: &[EventRecord],
) -> Result<BTreeMap<Digest, StoredBytes>, RunError> {
    let mut digests = BTreeMap::new();
    for event in events {
        let path = event.path.as_deref().unwrap_or_default();
        let digest = event.body.get("digest").and_then(serde_json::Value::as_str);
        let Some(digest) = digest.and_then(|digest| digest.parse().ok()) else {
            continue;
        };
        if NOT_KEPT.contains(&path) || digests.contains_key(&digest) {
            continue;
        }
        let found = match ledger.artifact(&digest) {
            Ok(Some(_)) => StoredBytes::Intact,
            Ok(None) => StoredBytes::Missing,
            Err(LedgerError::Damaged { .. }) => StoredBytes::Altered,
            Err(error) => return Err(error.into()),
        };
        digests.insert(digest, found);
    }
    Ok(digests)
}

/// Returns the ledger's content of a document recorded by an event of this kind.
fn document_of<T: document::Document>(
    ledger: &Ledger,
    events: &[EventRecord],
    kind: EventKind,
) -> Result<Option<T>, RunError> {
    let event = events.iter().rfind(|event| event.event == kind.name());
    let digest = event.and_then(|event| event.body.get("digest")?.as_str()?.parse().ok());
    let Some(digest) = digest else {
        return Ok(None);
    };
    match ledger.artifact(&digest) {
        Ok(bytes) => Ok(bytes.and_then(|bytes| document::read(&bytes).ok())),
        Err(LedgerError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the start record of a run, as the ledger has it.
pub(crate) fn record(
    ledger: &Ledger,
    events: &[EventRecord],
) -> Result<Option<RunRecord>, RunError> {
    document_of(ledger, events, EventKind::RunCreated)
}

fn landing(ledger: &Ledger, events: &[EventRecord]) -> Result<Option<Landing>, RunError> {
    document_of(ledger, events, EventKind::Landed)
}

/// The head of the ledger that a line of a commit's message names.
fn anchor(line: &str) -> Option<Anchor> {
    let (key, value) = line.split_once(": ")?;
    let (seq, hash) = value.split_once(':')?;
    (key == LEDGER_TRAILER).then_some(())?;
    Some(Anchor {
        seq: seq.parse().ok()?,
        hash: hash.parse().ok()?,
    })
}
