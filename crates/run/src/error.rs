//! Why a run could not go on. A refusal by a judge is no error: it is a state.

use std::path::{Path, PathBuf};

use crucible_host::words::shell_word;
use crucible_model::{CanonicalError, RepoPath, counted};
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
    /// The model could not be asked, or did not answer.
    #[error(transparent)]
    Call(#[from] crucible_llm::CallError),
    /// A value has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// The gates of the repository cannot be detected.
    #[error(transparent)]
    Detect(#[from] crucible_verify::DetectError),
    /// The failure bundle could not be made.
    #[error(transparent)]
    Bundle(#[from] crucible_verify::BundleError),
    /// The repository's own workflows cannot be used.
    #[error(transparent)]
    Workflows(#[from] crate::find::WorkflowsError),
    /// A service is asked that was not made ready.
    #[error("no client was made ready for {name:?}, which serves a role of this run")]
    NoClient {
        /// The service.
        name: String,
    },
    /// The goal holds a secret.
    #[error("the goal holds what looks like a secret ({rule}); word it without")]
    SecretInGoal {
        /// The rule that matched.
        rule: String,
    },
    /// A file that the operator names is secret.
    #[error(
        "{path} holds what looks like a secret ({rule}), so no model is shown it; name another file, or take the secret out"
    )]
    SecretInNamed {
        /// Which file.
        path: RepoPath,
        /// The rule that matched; `secret-file` where the name says it.
        rule: String,
    },
    /// A file that the operator names cannot be shown whole.
    #[error("no model can be shown {path} whole ({}); {}", reason.as_str(), way_to_show(*reason))]
    NamedUnseen {
        /// Which file.
        path: RepoPath,
        /// Why.
        reason: OmittedReason,
    },
    /// A request for files holds a secret, which its pack would repeat.
    #[error("{place} of the file request holds what looks like a secret ({rule}); word it without")]
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
    /// A run that is verified has nothing left to change.
    #[error("run {id} is {state}; nothing can be permitted to it any more")]
    NothingToAllow {
        /// Which run.
        id: String,
        /// Where it stands.
        state: &'static str,
    },
    /// The goal says nothing.
    #[error("the goal is empty; say what is to be achieved")]
    EmptyGoal,
    /// A place of ours lies inside the repository.
    #[error("Crucible's own directory {} lies inside the repository; set CRUCIBLE_RUNS_ROOT or CRUCIBLE_HOME to a place outside", path.display())]
    RunInsideRepository {
        /// Where runs or temporary copies would lie.
        path: PathBuf,
    },
    /// Tracked files differ from the last commit.
    #[error(
        "{} changed since the last commit, {first} among them; commit or stash them, so that the run has a base",
        counted(*count as u64, "tracked file")
    )]
    DirtyRepository {
        /// How many.
        count: usize,
        /// The first of them.
        first: String,
    },
    /// Git is in the middle of something, which a commit of ours would end up in.
    #[error(
        "a {what} is under way in this repository; finish it (`git {what} --continue`) or end it (`git {what} --abort`) first"
    )]
    UnderWay {
        /// The command of git.
        what: &'static str,
    },
    /// The repository is not where the run started.
    #[error(
        "the repository is no longer at {base}, where the run started; go back there (commit or stash what differs), then `{then}`, or start a new run"
    )]
    RepositoryChanged {
        /// The run's base.
        base: String,
        /// The command to call again.
        then: &'static str,
    },
    /// The repository is not where a run started that has ended.
    #[error(
        "run {id} has ended, and the repository is no longer at {base}, where it started; `crucible run verify-record {id}` checks all that it recorded, \
         and its gates run once more where {base} is checked out on the run's branch, as in a clone"
    )]
    EndedElsewhere {
        /// The run.
        id: String,
        /// The run's base.
        base: String,
    },
    /// A gate could not run before any change, which says nothing about the code.
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
        "gate {gate} does not test the repository's sources: `{command}` ended on deliberately broken sources as it did before, so it \
         probably tests an installed copy"
    )]
    GateUnaffected {
        /// Which gate.
        gate: String,
        /// Its command on one line.
        command: String,
        /// What helps.
        remedy: String,
    },
    /// The ledger does not hold together.
    #[error("the ledger does not hold together ({first}); nothing lands on it: see `crucible ledger verify`")]
    LedgerBroken {
        /// The first finding.
        first: String,
    },
    /// There is no gate to prove a change.
    #[error(
        "no gate was found in {looked_in}, so nothing could prove a change; Crucible looked for {looked_for}"
    )]
    NoGates {
        /// The directories.
        looked_in: String,
        /// The kinds of gates.
        looked_for: String,
    },
    /// A file that the run depends on was edited after it had been recorded.
    #[error("{} was changed after it was recorded; put it back as it was recorded, or start a new run", path.display())]
    Edited {
        /// Which file.
        path: PathBuf,
    },
    /// A recorded file was edited, and the ledger holds it as it was.
    #[error(
        "{} was changed after it was recorded; put it back with `{}`, or start a new run",
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
        "run {id} landed as commit {commit}, and {}, or start a new run on the present state",
        gone(commit, branch, *reach)
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
    /// The repository is where the run started, and files of it are not.
    #[error(
        "these paths have changes of your own: {first}{}; the run needs its base as it was committed: stash or undo them, \
         then `{then}`",
        more(*count)
    )]
    BaseDirty {
        /// How many.
        count: usize,
        /// The first of them.
        first: String,
        /// The command to call again.
        then: &'static str,
    },
    /// The repository is not where the run was started.
    #[error(
        "the repository is no longer at {}, where the run was started; put it back there, or start a new run where it is now",
        repo.display()
    )]
    RepositoryElsewhere {
        /// Where it was.
        repo: PathBuf,
    },
    /// A file of the run cannot be understood.
    #[error("{} cannot be read: {problem}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no such run.
    #[error("there is no run {id} in {}; `crucible run list` shows the ones there are", root.display())]
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
    /// A gate of level `full`, or another one beside it, refuses what the attempts' gates let through.
    #[error(
        "run {id} does not land: {first}; see {report} in the run's directory, or `crucible verify --run {id} --gate full`; mend the gate or start a new run"
    )]
    FullGates {
        /// Which run.
        id: String,
        /// The first finding.
        first: String,
        /// Which file tells all.
        report: String,
    },
    /// The patch gate refuses what it let through: attributes, submodules or settings of the repository changed since.
    #[error(
        "run {id} does not land: the patch gate refuses the verified patch on the repository as it is now: {first}; undo what changed there since, or start a new run"
    )]
    NoLongerAccepted {
        /// Which run.
        id: String,
        /// The first finding.
        first: String,
    },
    /// Reservations of model calls are gone from the ledger, so what the run has used cannot be told.
    #[error(
        "the ledger lacks {} that the run's events tell of, so its budget cannot be told; restore the ledger from a copy, or start a new run",
        counted(*lost, "booked model call")
    )]
    BookingsLost {
        /// How many at least.
        lost: u64,
    },
    /// A reservation or settlement of a model call is not what the chain tells of it.
    #[error(
        "the ledger's row of a model call was edited ({first}), so the run's budget cannot be told; restore the ledger from a copy, or start a new run"
    )]
    BookingsEdited {
        /// The first of them.
        first: String,
    },
    /// The record of the run does not hold, so its change does not land.
    #[error("record verification failed: {first}; landing refused: see `crucible run verify-record {id}`")]
    RecordBroken {
        /// Which run.
        id: String,
        /// The first finding.
        first: String,
    },
    /// What was recorded under a pinned clock cannot land.
    #[error(
        "this run was recorded under a pinned clock ({}), or is to land under one, and satisfies no gate; unset it, and start a new run where `crucible run verify-record` tells of a pinned event",
        crucible_host::clock::CLOCK_VARIABLE
    )]
    PinnedClock,
}

/// What has become of a commit that its branch no longer leads to, and how it comes back.
fn gone(commit: &str, branch: &str, reach: BranchReach) -> String {
    let back = format!("bring it back with `git cherry-pick {commit}`");
    match reach {
        BranchReach::NoBranch => format!("{branch} is no longer there; {back}"),
        BranchReach::NoCommit => {
            "the repository no longer holds it; fetch it from where it was pushed to".to_owned()
        }
        BranchReach::Reached | BranchReach::Unreached => {
            format!("{branch} no longer leads to it: it was reset, amended or taken back; {back}")
        }
    }
}

/// That there are more than the one that is named.
fn more(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        _ => format!(" and {} more", count - 1),
    }
}

/// What helps where a file cannot be shown.
fn way_to_show(reason: OmittedReason) -> &'static str {
    match reason {
        OmittedReason::BudgetExceeded | OmittedReason::TooLarge => {
            "raise [run] max_total_bytes and max_files, or name other files"
        }
        OmittedReason::Denied
        | OmittedReason::Irrelevant
        | OmittedReason::NotFound
        | OmittedReason::InvalidRequest => {
            "what lies in this place is never shown, or it is no plain file of the repository; name another"
        }
    }
}

/// The command that puts a file back as the ledger holds it.
pub(crate) fn restore_command(digest: &str, path: &Path) -> String {
    format!("crucible ledger show {digest} > {}", shell_word(&path.to_string_lossy()))
}
