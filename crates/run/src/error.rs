//! Why a run could not go on. A refusal by a judge is no error: it is a state.

use std::path::PathBuf;

use crucible_model::{CanonicalError, counted};

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
    /// A request for files holds a secret, which its pack would repeat.
    #[error("{place} of the file request holds what looks like a secret ({rule}); word it without")]
    SecretInRequest {
        /// The rule that matched.
        rule: String,
        /// Which of its words: `the goal`, `the reason`, or a path by its number.
        place: String,
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
        "the repository is no longer at {base}, where the run started; go back there (commit or stash what differs), then `crucible run advance`, or start a new run"
    )]
    RepositoryChanged {
        /// The run's base.
        base: String,
    },
    /// A gate cannot run here at all.
    #[error(
        "gate {gate} cannot run here, so nothing could be proved: {message}; or name other gates under [gates] in \
         .crucible/config.toml and start again"
    )]
    GateUnusable {
        /// Which gate.
        gate: String,
        /// Why.
        message: String,
    },
    /// The ledger does not hold together.
    #[error("the ledger does not hold together ({first}); nothing lands on it: see `crucible ledger verify`")]
    LedgerBroken {
        /// The first finding.
        first: String,
    },
    /// There is no gate to prove a change.
    #[error(
        "no gate was found: Crucible knows cargo, npm, pytest, go and make; name the command in .crucible/config.toml, for example\n\n    [gates.tests]\n    command = [\"./run-tests\"]\n"
    )]
    NoGates,
    /// A file that the run depends on was edited after it had been recorded.
    #[error("{} was changed after it was recorded; restore it from the ledger (`crucible ledger show`) or start a new run", path.display())]
    Edited {
        /// Which file.
        path: PathBuf,
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
    /// What was recorded under a pinned clock cannot land.
    #[error(
        "this run was recorded under a pinned clock ({}) and satisfies no gate; unset it and start again",
        crucible_host::clock::CLOCK_VARIABLE
    )]
    PinnedClock,
}
