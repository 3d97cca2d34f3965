//! Why a run could not go on. A refusal by a judge is no error: it is a state.

use std::path::{Path, PathBuf};

use crucible_host::words::shell_word;
use crucible_model::{CanonicalError, RepoPath, RunId, counted};
use crucible_pack::OmittedReason;
use crucible_repo::BranchReach;

/// Why a command on a run ended early. The run itself stays as it is, and can be advanced again.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The file system refused.
    #[error(transparent)]
    Fs(#[from] crucible_host::fs::FsError),
    /// Another process works on this run.
    #[error(transparent)]
    Lock(#[from] crucible_host::lock::LockError),
    /// The ledger refused.
    #[error(transparent)]
    Ledger(#[from] crucible_ledger::LedgerError),
    /// The repository cannot be used.
    #[error(transparent)]
    Repo(#[from] crucible_repo::RepoError),
    /// A process could not be started as required.
    #[error(transparent)]
    Sandbox(#[from] crucible_sandbox::SandboxError),
    /// The context pack could not be built.
    #[error(transparent)]
    Pack(#[from] crucible_pack::PackError),
    /// The model could not be called, or did not answer.
    #[error(transparent)]
    Call(#[from] crucible_llm::CallError),
    /// A value has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// The gates of the repository cannot be detected.
    #[error(transparent)]
    Detect(#[from] crucible_verify::DetectError),
    /// The failure bundle could not be created.
    #[error(transparent)]
    Bundle(#[from] crucible_verify::BundleError),
    /// The repository's own workflows are not usable.
    #[error(transparent)]
    Workflows(#[from] crate::find::WorkflowsError),
    /// A service is called that was not prepared.
    #[error("no client is available for {name:?}, which serves a role of this run")]
    NoClient {
        /// The service.
        name: String,
    },
    /// A proposal is submitted that no prompt asks for.
    #[error("the run {run} does not wait for a proposal; it is {state}")]
    NoProposalOwed {
        /// The run.
        run: RunId,
        /// The name of its state.
        state: &'static str,
    },
    /// A proposal has no text.
    #[error("the proposal is empty")]
    EmptyProposal,
    /// A proposal is too large.
    #[error("the proposal has {bytes} bytes; the limit is {limit}")]
    LargeProposal {
        /// Its size.
        bytes: usize,
        /// The largest size.
        limit: u64,
    },
    /// The goal holds a secret.
    #[error("the goal holds what looks like a secret ({rule}); remove it")]
    SecretInGoal {
        /// The rule that matched.
        rule: String,
    },
    /// A file that the operator names is secret.
    #[error(
        "{path} holds what looks like a secret ({rule}), so no model may see it; name another file, or remove the secret"
    )]
    SecretInNamed {
        /// Which file.
        path: RepoPath,
        /// The matching rule; `secret-file` if the name decides it.
        rule: String,
    },
    /// A file that the operator names cannot be shown whole.
    #[error("{path} cannot be shown to a model in full ({}); {}", reason.as_str(), way_to_show(*reason))]
    NamedUnseen {
        /// Which file.
        path: RepoPath,
        /// Why.
        reason: OmittedReason,
    },
    /// A request for files holds a secret, which its pack would repeat.
    #[error("{place} of the file request holds what looks like a secret ({rule}); remove it")]
    SecretInRequest {
        /// The rule that matched.
        rule: String,
        /// Which of its words: `the goal`, `the reason`, or a path by its number.
        place: String,
    },
    /// A permitted path is invalid.
    #[error("--allow {text:?}: {error}")]
    NotAllowable {
        /// What was named.
        text: String,
        /// Why it is no place.
        error: crate::scope::NamedPlaceError,
    },
    /// A verified run has nothing left to change.
    #[error("run {id} is {state}; nothing more can be allowed or accepted")]
    NothingToAllow {
        /// Which run.
        id: String,
        /// Where it stands.
        state: &'static str,
    },
    /// There is no plan to approve, or it is too late.
    #[error("run {id} is {state}; a plan is approved after it was signed and before the run lands")]
    NothingToApprove {
        /// Which run.
        id: String,
        /// Where it stands.
        state: &'static str,
    },
    /// A gate of the door has an invalid name.
    #[error(
        "the policy's gate {id:?} has an invalid name; use lowercase letters, digits, `-` and `_`"
    )]
    DoorGate {
        /// The name.
        id: String,
    },
    /// An approval from another machine cannot be used.
    #[error("cannot use the approval: {why}")]
    ApprovalRefused {
        /// What is wrong.
        why: String,
    },
    /// The goal is empty.
    #[error("the goal is empty; describe what the change should achieve")]
    EmptyGoal,
    /// One of Crucible's own directories is inside the repository.
    #[error("Crucible's own directory {} is inside the repository; set CRUCIBLE_RUNS_ROOT or CRUCIBLE_HOME to a directory outside it", path.display())]
    RunInsideRepository {
        /// The place of runs or temporary copies.
        path: PathBuf,
    },
    /// Tracked files differ from the last commit.
    #[error(
        "{} changed since the last commit, including {first}; commit or stash them, then start the run",
        counted(*count as u64, "tracked file")
    )]
    DirtyRepository {
        /// How many.
        count: usize,
        /// The first of them.
        first: String,
    },
    /// An unfinished git operation, which a commit of ours would become part of.
    #[error(
        "a {what} is in progress in this repository; finish it (`git {what} --continue`) or abort it (`git {what} --abort`) first"
    )]
    UnderWay {
        /// The command of git.
        what: &'static str,
    },
    /// The repository is not at the commit where the run started.
    #[error(
        "the repository is no longer at {base}, where the run started; return to that commit (commit or stash your changes), then run `{then}`, or start a new run"
    )]
    RepositoryChanged {
        /// The run's base.
        base: String,
        /// The command to call again.
        then: &'static str,
    },
    /// The repository is not at the base of an ended run.
    #[error(
        "run {id} has ended, and the repository is no longer at its base {base}; check its record with `crucible run verify-record {id}`; to run its gates again, check out {base} on the run's branch, for example in a clone"
    )]
    EndedElsewhere {
        /// The run.
        id: String,
        /// The run's base.
        base: String,
    },
    /// A gate could not run before any change, which proves nothing about the code.
    #[error("gate {gate} could not run `{command}`: {cause}")]
    GateCouldNotRun {
        /// Which gate.
        gate: String,
        /// Its command on one line.
        command: String,
        /// The telling line of its output, or why it did not start.
        cause: String,
        /// What helps.
        remedy: String,
    },
    /// No gate tests the files that a change would touch.
    #[error(
        "gate {gate} does not test the repository's sources: `{command}` had the same result on deliberately broken sources, so it probably tests an installed copy"
    )]
    GateUnaffected {
        /// Which gate.
        gate: String,
        /// Its command on one line.
        command: String,
        /// What helps.
        remedy: String,
    },
    /// The ledger's verification failed.
    #[error("ledger verification failed: {first}; landing refused: see `crucible ledger verify`")]
    LedgerBroken {
        /// The first finding.
        first: String,
    },
    /// There is no gate to prove a change.
    #[error(
        "no gate found in {looked_in}, so no change could be verified; Crucible looked for {looked_for}"
    )]
    NoGates {
        /// The directories.
        looked_in: String,
        /// The kinds of gates.
        looked_for: String,
    },
    /// A file that the run depends on was edited after it had been recorded.
    #[error("{} was changed after it was recorded; restore the recorded version, or start a new run", path.display())]
    Edited {
        /// Which file.
        path: PathBuf,
    },
    /// A recorded file was edited; the ledger has the recorded version.
    #[error(
        "{} was changed after it was recorded; restore it with `{}`, or start a new run",
        path.display(), restore_command(digest, path)
    )]
    EditedSince {
        /// Which file.
        path: PathBuf,
        /// What it was.
        digest: String,
    },
    /// The commit of a landed run is not on its branch any more.
    #[error(
        "run {id} landed as commit {commit}, but {}, or start a new run on the current state",
        missing_commit_hint(commit, branch, *reach)
    )]
    CommitGone {
        /// Which run.
        id: String,
        /// The commit.
        commit: String,
        /// Where it landed.
        branch: String,
        /// What has become of it there.
        reach: BranchReach,
    },
    /// The repository is at the run's base, but some files are not.
    #[error(
        "these paths have uncommitted changes: {first}{}; the run needs an unchanged base: stash or undo them, then run `{then}`",
        format_more(*count)
    )]
    BaseDirty {
        /// How many.
        count: usize,
        /// The first of them.
        first: String,
        /// The command to call again.
        then: &'static str,
    },
    /// The repository is not at the path where the run was started.
    #[error(
        "the repository is no longer at {}, where the run was started; move it back, or start a new run at its new path",
        repo.display()
    )]
    RepositoryElsewhere {
        /// Where it was.
        repo: PathBuf,
    },
    /// A file of the run cannot be understood.
    #[error("cannot read {}: {problem}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no such run.
    #[error("no run {id} in {}; list runs with `crucible run list`", root.display())]
    NoSuchRun {
        /// What was asked for.
        id: String,
        /// Where it was looked for.
        root: PathBuf,
    },
    /// The run is not in a state that allows the command.
    #[error("run {id} is {state}, not verified: {hint}")]
    NotVerified {
        /// Which run.
        id: String,
        /// Its state.
        state: &'static str,
        /// What to do.
        hint: String,
    },
    /// A gate of level `full`, or another one run with it, refuses what the attempts' gates accepted.
    #[error(
        "cannot land run {id}: {first}; see {report} in the run's directory, or run `crucible verify --run {id} --gate full`; fix the gate or start a new run"
    )]
    FullGates {
        /// Which run.
        id: String,
        /// The first finding.
        first: String,
        /// Which file tells all.
        report: String,
    },
    /// Held-out tests refuse what the gates accepted. Their content is not shown.
    #[error(
        "cannot land run {id}: {first}; no model has seen these tests, so read them yourself, or start a new run"
    )]
    HeldOutRefused {
        /// Which run.
        id: String,
        /// The finding.
        first: String,
    },
    /// A held-out file is not what it was when the run began.
    #[error(
        "the held-out file {path} has changed since the run began; restore it, or start a new run"
    )]
    HeldOutChanged {
        /// Where it is.
        path: PathBuf,
    },
    /// The patch gate refuses what it accepted before: attributes, submodules or settings of the repository
    /// changed since.
    #[error(
        "cannot land run {id}: the patch gate refuses the verified patch on the current repository: {first}; undo the later changes, or start a new run"
    )]
    NoLongerAccepted {
        /// Which run.
        id: String,
        /// The first finding.
        first: String,
    },
    /// Reservations of model calls are missing in the ledger, so the used budget is unknown.
    #[error(
        "the ledger lacks {} that the run's events record, so the remaining budget is unknown; restore the ledger from a copy, or start a new run",
        counted(*lost, "booked model call")
    )]
    BookingsLost {
        /// How many at least.
        lost: u64,
    },
    /// A reservation or settlement of a model call differs from the chain.
    #[error(
        "the ledger's row of a model call was edited ({first}), so the remaining budget is unknown; restore the ledger from a copy, or start a new run"
    )]
    BookingsEdited {
        /// The first of them.
        first: String,
    },
    /// The record of the run does not hold, so its change does not land.
    #[error(
        "record verification failed: {first}; landing refused: see `crucible run verify-record {id}`"
    )]
    RecordBroken {
        /// Which run.
        id: String,
        /// The first finding.
        first: String,
    },
    /// The statement about the commit could not be signed, and a signature is required.
    #[error(
        "cannot land run {id}: a signature is required ([attest] required or sign_commits), and signing failed: {why}; nothing was changed"
    )]
    Unsigned {
        /// Which run.
        id: String,
        /// Why it failed.
        why: String,
    },
    /// The commit is made, and its note is not.
    #[error(
        "{commit} landed, but its note with the signed statements could not be written: {why}; run `crucible run land` again"
    )]
    NoteNotWritten {
        /// The commit.
        commit: String,
        /// Why not.
        why: String,
    },
    /// What was recorded under a pinned clock cannot land.
    #[error(
        "this run used a pinned clock ({}), or would land under one, and satisfies no gate; unset the variable, and start a new run if `crucible run verify-record` reports a pinned event",
        crucible_host::clock::CLOCK_VARIABLE
    )]
    PinnedClock,
}

/// Describes why a commit is no longer on its branch, and how to restore it.
fn missing_commit_hint(commit: &str, branch: &str, reach: BranchReach) -> String {
    // A cherry-pick would be another commit, which has no statement.
    match reach {
        BranchReach::NoBranch => {
            format!("{branch} no longer exists; restore it with `git branch {branch} {commit}`")
        }
        BranchReach::NoCommit => {
            "the repository no longer has it; fetch it from the remote it was pushed to".to_owned()
        }
        BranchReach::Reached | BranchReach::Unreached => {
            format!(
                "{branch} no longer contains it: the branch was reset or the commit amended; restore it with `git merge {commit}`"
            )
        }
    }
}

/// That there are more than the one that is named.
fn format_more(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        _ => format!(" and {} more", count - 1),
    }
}

/// Returns what helps if a file cannot be shown.
fn way_to_show(reason: OmittedReason) -> &'static str {
    match reason {
        OmittedReason::BudgetExceeded | OmittedReason::TooLarge => {
            "raise [run] max_total_bytes and max_files, or name other files"
        }
        OmittedReason::Denied
        | OmittedReason::Irrelevant
        | OmittedReason::NotFound
        | OmittedReason::InvalidRequest => {
            "this path is never shown, or it is not a regular file of the repository; name another file"
        }
    }
}

/// Returns the command that restores a file from the ledger.
pub(crate) fn restore_command(digest: &str, path: &Path) -> String {
    format!(
        "crucible ledger show {digest} > {}",
        shell_word(&path.to_string_lossy())
    )
}
