//! Runs the exact bytes of a skill, in the sandbox of its class.
//!
//! [`execute`] starts Python with a small script (`runner.py`), which reads the source of the skill, the base class and the input
//! from standard input. It compiles the skill from memory: nothing of the project is imported, and no file can
//! be replaced between the hash and the run. The result arrives on its own descriptor, separate from printed output.
//!
//! Invariants: only the bytes in the [`SkillCode`] run. The class and the grants alone decide the sandbox (`call_sandbox`). Nothing that a
//! skill prints or claims turns a process that was killed or denied into a success, nor one that left files which other
//! programs load (`left_behind`). Written files reach the project only after a successful run (`staging`).

mod answer;
mod call_sandbox;
mod command_survey;
mod left_behind;
mod python;
mod staging;
mod step;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_host::WorkDir;
use crucible_host::fs::{FsError, create_dir_all};
use crucible_ledger::SideEffect;
use crucible_model::{ByteLimit, RepoPath, SECRET_REACH, Secret};
use crucible_repo::Git;
use crucible_sandbox::{
    CONFINED_HOME, Cap, Captured, Confinement, IsolationReceipt, Keep, Limits, Redaction,
    Resources, SandboxError, Spawn, Stdin,
};
use serde_json::{Value, json};

pub use command_survey::{CommandSurvey, GitWrites, LeftByCommand};
pub use left_behind::{LeftBehind, ResidueReason};

use left_behind::DirectoryState;
pub(crate) use python::find_python;
pub use staging::StagingError;
pub use step::{RegistryListing, RunRequest, RunStepError, SkillRunReport, run_skill};

use crate::context::ForgeContext;
use crate::grants::{Grants, SecretName};
use crate::paths::{PackageName, SkillPaths};
use crate::places::RefusedPlace;
use crate::skeleton::BASE_CLASS;
use staging::Staging;

/// The largest result, in bytes of JSON: 4 MiB.
pub(crate) const MAX_RESULT_BYTES: u64 = 4 << 20;
/// The largest input, in bytes of JSON: 4 MiB.
pub const MAX_INPUT_BYTES: u64 = 4 << 20;

/// The most bytes of printed output that are kept.
const PRINTED: ByteLimit = ByteLimit(64 << 10);
/// The most bytes that a skill may print before it is killed.
const RUNAWAY: ByteLimit = ByteLimit(64 << 20);
/// The grace period of a process that is asked to end.
const GRACE: Duration = Duration::from_millis(300);
/// The name prefix of the working directories of skills.
const EMPTY: &str = "skill-run-";
/// The denial of a run that left such files.
const LEFT_SOMETHING: &str = "it left behind what git or other programs obey, or take for a secret";
/// The limits of memory, files and threads of one skill.
const RESOURCES: Resources = Resources {
    memory: Cap::At(2 << 30),
    address_space: Cap::At(2 << 30),
    file_size: Cap::At(256 << 20),
    processes: Cap::At(128),
    open_files: Cap::At(256),
    disk: Cap::At(256 << 20),
};

/// What is executed.
#[derive(Debug, Clone)]
pub struct SkillCode {
    /// Its places: the names of module and class.
    pub paths: SkillPaths,
    /// The package it is in.
    pub package: PackageName,
    /// The bytes to execute.
    pub skill: Vec<u8>,
}

/// One call of a skill.
#[derive(Debug)]
pub struct SkillCall<'a> {
    /// What is executed.
    pub code: &'a SkillCode,
    /// What it may do.
    pub class: SideEffect,
    /// The grants that limit the class further.
    pub grants: &'a Grants,
    /// The secrets that it was granted, with their values.
    pub secrets: Vec<(SecretName, Secret)>,
    /// The input, a JSON object.
    pub input: &'a Value,
    /// The time limit.
    pub timeout: Duration,
    /// The project or a copy of it; a skill of class FILE_WRITE works there.
    pub project_root: &'a Path,
    /// The interpreter itself ([`find_python`]), not a script that starts one.
    pub python: &'a Path,
    /// Directories with third-party modules.
    pub site_packages: &'a [PathBuf],
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum SkillEnd {
    /// It returned this value, which is not yet checked against the schema.
    Returned(Value),
    /// It raised an exception, whose texts contain no granted secret.
    Raised {
        /// Its class.
        kind: String,
        /// Its text.
        message: String,
        /// The traceback, for people.
        traceback: String,
    },
    /// It tried an action that its class does not permit.
    Denied {
        /// The action, as far as it is known.
        what: String,
    },
    /// The result contains the value of this granted secret, and is withheld.
    HoldsSecret {
        /// Which.
        secret: SecretName,
    },
    /// It exceeded its time limit.
    TimedOut,
    /// It returned no valid result.
    Broken {
        /// What it did instead.
        why: String,
    },
}

/// A call that ended.
#[derive(Debug)]
pub struct CallResult {
    /// How.
    pub end: SkillEnd,
    /// Written files that other programs load, or that look like secrets. With any of them, there is no result.
    pub left_behind: Vec<LeftBehind>,
    /// The printed output, redacted and truncated at the end.
    pub printed: Captured,
    /// The duration of the run.
    pub duration: Duration,
    /// The isolation of the run.
    pub receipt: IsolationReceipt,
    /// The written files, which are not in the project yet.
    staging: Option<Staging>,
}

/// Why a skill was not run.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The process could not be started as asked.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A directory cannot be created.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The source is not UTF-8.
    #[error("the skill is not UTF-8; a skill is a text of at most 256 KiB")]
    NotText,
    /// The input is too large.
    #[error(
        "the input has {bytes} bytes of JSON; the limit is {MAX_INPUT_BYTES}; pass less data, or a file path"
    )]
    InputTooLarge {
        /// How many.
        bytes: usize,
    },
    /// A granted path cannot be used.
    #[error("the granted path {path} cannot be used: {why}")]
    GrantedPath {
        /// Which.
        path: String,
        /// Why not, and what to do.
        why: String,
    },
    /// A directory has more entries than the limit.
    #[error(
        "there are more than {most} files and directories {place}, too many to hide the others; grant a separate directory"
    )]
    TooManyPlaces {
        /// Where.
        place: String,
        /// How many are looked at.
        most: usize,
    },
    /// The granted directories exceed the size limit.
    #[error(
        "{path} and the other granted directories hold more than {most} MiB, which is what is copied for a skill; grant a smaller directory"
    )]
    TooMuchToCopy {
        /// Where the limit was reached.
        path: String,
        /// How many MiB are copied at most.
        most: u64,
    },
    /// A secret has no value.
    #[error("the secret {name} is not set or empty; set it: {name}=… crucible skill run …")]
    SecretMissing {
        /// Which.
        name: SecretName,
    },
    /// A secret cannot be distinguished from other text.
    #[error(
        "the value of {name} has fewer than {least} characters, or more than one line: it could not be kept out of what the skill prints"
    )]
    SecretUnfit {
        /// Which.
        name: SecretName,
        /// The fewest.
        least: usize,
    },
    /// No interpreter was found.
    #[error(
        "no Python: {why}; install Python 3.10 or newer, or name one: [forge] python in your own configuration"
    )]
    NoPython {
        /// What was found instead.
        why: String,
    },
    /// The interpreter is in a directory that is hidden from skills.
    #[error("{} lies in the project, which is hidden from skills; name another in your own configuration: [forge] python", python.display())]
    PythonInProject {
        /// Which.
        python: PathBuf,
    },
}

impl From<RefusedPlace> for RunnerError {
    fn from(refused: RefusedPlace) -> Self {
        Self::GrantedPath {
            path: refused.path.clone(),
            why: format!("{refused}; that is for a new proposal of the skill"),
        }
    }
}

/// Runs a skill. Its writes go to a copy of its granted directories, not to the project. Dropping the future kills it and its
/// child processes.
///
/// # Errors
///
/// [`RunnerError`] when nothing was run. Whatever the skill did is a [`CallResult`].
pub async fn execute(
    world: &ForgeContext<'_>,
    call: &SkillCall<'_>,
) -> Result<CallResult, RunnerError> {
    let order = order(call)?;
    let secrets = answer::ProvidedSecrets::new(&call.secrets)?;
    create_dir_all(&world.tmp)?;
    WorkDir::sweep(&world.tmp, EMPTY);
    let call_sandbox = call_sandbox::prepare_sandbox(
        world,
        call,
        WorkDir::create(&world.tmp, EMPTY, call.class.as_str())?,
    )?;
    let before = match &call_sandbox.staging {
        Some(staging) => {
            let places: Vec<PathBuf> = staging
                .places()
                .iter()
                .map(|place| staging.top().join(place.as_str()))
                .collect();
            Some(DirectoryState::look(staging.top(), &places)?)
        }
        None => None,
    };
    let limits = Limits {
        stdout: ByteLimit(MAX_RESULT_BYTES + 4096),
        stderr: ByteLimit(PRINTED.0 + SECRET_REACH as u64),
        runaway: RUNAWAY,
        grace: GRACE,
        resources: RESOURCES,
        ..Limits::new(call.timeout)
    };
    let spawn = Spawn {
        args: [
            "-I",
            "-B",
            "-S",
            "-X",
            "utf8",
            "-c",
            include_str!("runner.py"),
        ]
        .map(Into::into)
        .to_vec(),
        env: environment(world, call),
        stdin: Stdin::Bytes(order),
        confinement: Confinement::Confined(call_sandbox.profile),
        keep: Keep::Head,
        // Granted values are redacted first and completely, before a rule can redact a part of one.
        redaction: Redaction::Raw,
        ..Spawn::new(call.python, call_sandbox.cwd.clone(), limits)
    };
    let completed = world.sandbox.run(spawn).await?;
    let (duration, receipt) = (completed.duration, completed.receipt.clone());
    let printed = secrets.redacted_output(completed.stderr.clone());
    let left_behind = match (before, &call_sandbox.staging) {
        (Some(before), Some(staging)) => {
            before.left_behind(&run_by_git(world, call.project_root, staging).await)
        }
        _ => Vec::new(),
    };
    let end = match answer::read(&completed, &secrets) {
        SkillEnd::Returned(_) if !left_behind.is_empty() => SkillEnd::Denied {
            what: LEFT_SOMETHING.to_owned(),
        },
        end => end,
    };
    Ok(CallResult {
        end,
        left_behind,
        printed,
        duration,
        receipt,
        staging: call_sandbox.staging,
    })
}

/// Returns the paths in the copy that git runs or obeys at their places in the project; all if nobody can tell.
async fn run_by_git(world: &ForgeContext<'_>, root: &Path, staging: &Staging) -> BTreeSet<PathBuf> {
    let in_copy = |place: &RepoPath| staging.top().join(place.as_str());
    let all = || staging.places().iter().map(in_copy).collect();
    let Ok(root) = root.canonicalize() else {
        return all();
    };
    let directories: Vec<PathBuf> = staging
        .places()
        .iter()
        .map(|place| root.join(place.as_str()))
        .collect();
    let sandbox = Arc::clone(&world.sandbox);
    match Git::run_by_git(sandbox, world.env, &directories, &[]).await {
        Ok(of_git) => of_git
            .paths
            .iter()
            .filter_map(|path| Some(staging.top().join(path.strip_prefix(&root).ok()?)))
            .collect(),
        Err(_) => all(),
    }
}

/// Returns the complete request to `runner.py`.
fn order(call: &SkillCall<'_>) -> Result<Vec<u8>, RunnerError> {
    let SkillCode {
        paths,
        package,
        skill,
    } = call.code;
    let bytes = call.input.to_string().len();
    if bytes as u64 > MAX_INPUT_BYTES {
        return Err(RunnerError::InputTooLarge { bytes });
    }
    let skill = std::str::from_utf8(skill).map_err(|_| RunnerError::NotText)?;
    let order = json!({
        "package": package, "module": paths.module, "class": paths.class, "file": paths.skill, "skill": skill,
        "longest": answer::MAX_STATED_LEN, "base": BASE_CLASS, "base_file": paths.base, "input": call.input, "site_packages": call.site_packages,
    });
    Ok(order.to_string().into_bytes())
}

/// Returns the environment of the process: only the user's time zone and the granted secrets.
fn environment(
    world: &ForgeContext<'_>,
    call: &SkillCall<'_>,
) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    // The sandbox shows the directories of `PATH`, in a home too; no program is ever started from them.
    let path = std::env::join_paths(call.site_packages).unwrap_or_default();
    let mut env = vec![
        ("PATH".into(), path),
        ("LANG".into(), "C.UTF-8".into()),
        ("HOME".into(), CONFINED_HOME.into()),
    ];
    env.extend(
        world
            .env
            .get_os("TZ")
            .map(|zone| ("TZ".into(), zone.to_owned())),
    );
    env.extend(
        call.secrets
            .iter()
            .map(|(name, value)| (name.as_str().into(), value.expose().into())),
    );
    env
}

/// Returns the path of a granted directory below the project.
fn granted(prefix: &crucible_model::PathPrefix) -> Option<RepoPath> {
    prefix.to_string().parse().ok()
}
