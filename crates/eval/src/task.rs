//! Tasks: one directory each, described by its `task.toml` (docs/formats/eval.md).
//!
//! Reading is strict and local. A file that a task names is in its directory; a repository is there or in the
//! directory that the user names for repositories. Links must not leave either. The digest of a task covers
//! every byte that decides an outcome.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_host::fs::read_regular_up_to;
use crucible_host::words::split_words;
use crucible_model::{ByteLimit, Digest, RepoPath};
use crucible_repo::Oid;
use serde::{Deserialize, Serialize};

use crate::error::EvalError;

/// The file that describes a task.
const TASK_FILE: &str = "task.toml";
/// The largest `task.toml`.
const MAX_TASK_FILE: ByteLimit = ByteLimit(256 * 1024);
/// The largest patch, and the largest file of a project directory.
const MAX_FILE: ByteLimit = ByteLimit(8 << 20);
/// The most files of a project directory, and their bytes together.
const MAX_PROJECT_FILES: usize = 5_000;
const MAX_PROJECT_BYTES: u64 = 64 << 20;
/// The most entries of a folder of tasks.
const MAX_TASKS: usize = 10_000;
/// The longest command that a task holds, here so that no check runs for ever.
const MAX_SECONDS: u64 = 24 * 3600;

/// The version of `task.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TaskVersion {
    /// The only one so far.
    #[serde(rename = "crucible-eval-task-v1")]
    V1,
}

/// `task.toml`, as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskFile {
    pub(crate) schema_version: TaskVersion,
    pub(crate) goal: String,
    pub(crate) repo: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) visible: Option<String>,
    pub(crate) hidden: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) solution: Option<String>,
    pub(crate) check: String,
    #[serde(default = "default_check_timeout")]
    pub(crate) check_timeout_s: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) setup: Vec<String>,
    #[serde(default = "default_setup_timeout")]
    pub(crate) setup_timeout_s: u64,
    #[serde(default)]
    pub(crate) setup_network: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) test: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) gates: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<String>,
}

fn default_check_timeout() -> u64 {
    300
}

fn default_setup_timeout() -> u64 {
    600
}

/// The source of a task's repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskSource {
    /// Plain files that become the only commit of a new repository; each with its mode.
    Project(Vec<ProjectFile>),
    /// A commit of a repository on this machine, or of a bundle.
    Commit {
        /// The repository's directory, or the bundle's file.
        repository: PathBuf,
        /// The commit to check out.
        commit: Oid,
    },
}

/// A file of a project directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    /// Its path in the project.
    pub path: RepoPath,
    /// What it holds.
    pub bytes: Vec<u8>,
    /// Whether it is a program.
    pub executable: bool,
}

/// A task that can be run.
#[derive(Debug, Clone)]
pub struct Task {
    /// The name of its directory.
    pub name: String,
    /// What is to be achieved, as a user would write it.
    pub goal: String,
    /// The repository.
    pub source: TaskSource,
    /// A patch that adds the failing test that everybody may see.
    pub visible: Option<Vec<u8>>,
    /// A patch that adds the tests that decide.
    pub hidden: Vec<u8>,
    /// A patch that solves the task, to prove that it can be.
    pub solution: Option<Vec<u8>>,
    /// Run by `sh -c` on a clone with the hidden tests; 0 means solved.
    pub check: String,
    /// How long that may take.
    pub check_timeout: Duration,
    /// Run by `sh -c`, in order, in each clone before anything else.
    pub setup: Vec<String>,
    /// Maximum duration of each of them.
    pub setup_timeout: Duration,
    /// Whether setup commands reach the network.
    pub setup_network: bool,
    /// Gates of the run, in addition to the configured ones: a name and the words of a command.
    pub gates: BTreeMap<String, Vec<String>>,
    /// The files that the direct baseline sees; the whole project if empty.
    pub files: Vec<RepoPath>,
    /// Of everything above.
    pub digest: Digest,
}

/// What is wrong with a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskProblem {
    /// The name of its directory is invalid.
    #[error("a task directory's name must have at most 100 letters, digits, `.`, `_` and `-`")]
    Name,
    /// `task.toml` cannot be understood.
    #[error("task.toml: {0}")]
    Syntax(String),
    /// A field has an invalid value.
    #[error("task.toml: {field}: {problem}")]
    Field {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A file cannot be read.
    #[error("{0}")]
    File(String),
}

impl TaskProblem {
    fn field(field: &'static str, problem: impl fmt::Display) -> Self {
        Self::Field {
            field,
            problem: problem.to_string(),
        }
    }
}

/// Reads every task of a directory in order of name, or only the `named` ones. Repositories are searched in
/// each task's directory, then in `repos`.
///
/// # Errors
///
/// Fails on the first unreadable task, and if the folder has no task.
pub fn read_tasks(
    directory: &Path,
    named: &[String],
    repos: Option<&Path>,
) -> Result<Vec<Task>, EvalError> {
    let mut names = Vec::new();
    let unreadable = |problem: io::Error| EvalError::Directory {
        directory: directory.to_owned(),
        problem,
    };
    for entry in entries(directory, MAX_TASKS).map_err(unreadable)? {
        if directory.join(&entry).join(TASK_FILE).is_file() {
            names.push(entry.to_string_lossy().into_owned());
        }
    }
    if let Some(name) = named.iter().find(|name| !names.contains(name)) {
        return Err(EvalError::NoSuchTask {
            name: name.clone(),
            directory: directory.to_owned(),
        });
    }
    names.retain(|name| named.is_empty() || named.contains(name));
    names.sort();
    if names.is_empty() {
        return Err(EvalError::NoTasks {
            directory: directory.to_owned(),
        });
    }
    let read = |name: String| match read_task(&directory.join(&name), &name, repos) {
        Ok(task) => Ok(task),
        Err(problem) => Err(EvalError::Task { name, problem }),
    };
    names.into_iter().map(read).collect()
}

/// The names in a directory, as long as there are not more than `most`.
fn entries(directory: &Path, most: usize) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        if names.len() == most {
            return Err(io::Error::other(format!("it has more than {most} entries")));
        }
        names.push(entry?.file_name());
    }
    Ok(names)
}

/// Whether a name can be that of a task, a configuration, or a directory of ours.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=100).contains(&name.len()) && !name.starts_with(['.', '-']) && name.bytes().all(plain)
}

fn read_task(directory: &Path, name: &str, repos: Option<&Path>) -> Result<Task, TaskProblem> {
    if !is_plain_name(name) {
        return Err(TaskProblem::Name);
    }
    let unreadable = |error: crucible_host::fs::FsError| TaskProblem::File(error.to_string());
    let bytes =
        read_regular_up_to(&directory.join(TASK_FILE), MAX_TASK_FILE).map_err(unreadable)?;
    let text =
        String::from_utf8(bytes).map_err(|_| TaskProblem::Syntax("it is not UTF-8".to_owned()))?;
    let file: TaskFile =
        toml::from_str(&text).map_err(|error| TaskProblem::Syntax(error.message().to_owned()))?;
    if file.goal.trim().is_empty() {
        return Err(TaskProblem::field("goal", "it is empty"));
    }
    if file.check.trim().is_empty() {
        return Err(TaskProblem::field("check", "it is empty"));
    }
    let patch = |field: &'static str, named: &str| {
        let path =
            inside(directory, named).map_err(|problem| TaskProblem::field(field, problem))?;
        read_regular_up_to(&path, MAX_FILE).map_err(unreadable)
    };
    let optional = |field, named: &Option<String>| {
        named
            .as_deref()
            .map(|named| patch(field, named))
            .transpose()
    };
    let seconds = |field, seconds: u64| match seconds {
        1..=MAX_SECONDS => Ok(Duration::from_secs(seconds)),
        _ => Err(TaskProblem::field(
            field,
            format!("it must be 1 to {MAX_SECONDS} seconds"),
        )),
    };
    let words = |(name, command): (&String, &String)| {
        if !name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            || name.is_empty()
        {
            return Err(TaskProblem::field(
                "gates",
                format!("invalid gate name {name:?}"),
            ));
        }
        match split_words(command) {
            Ok(words) if !words.is_empty() => Ok((name.clone(), words)),
            Ok(_) => Err(TaskProblem::field(
                "gates",
                format!("{name} has no command"),
            )),
            Err(error) => Err(TaskProblem::field("gates", error)),
        }
    };
    let tests = "tests".to_owned();
    let path = |path: &String| {
        path.parse()
            .map_err(|error| TaskProblem::field("files", format!("{path:?}: {error}")))
    };
    let mut task = Task {
        name: name.to_owned(),
        source: source(directory, &file, repos)?,
        visible: optional("visible", &file.visible)?,
        hidden: patch("hidden", &file.hidden)?,
        solution: optional("solution", &file.solution)?,
        check_timeout: seconds("check_timeout_s", file.check_timeout_s)?,
        setup_timeout: seconds("setup_timeout_s", file.setup_timeout_s)?,
        setup_network: file.setup_network,
        gates: file
            .test
            .iter()
            .map(|test| (&tests, test))
            .chain(&file.gates)
            .map(words)
            .collect::<Result<_, _>>()?,
        files: file.files.iter().map(path).collect::<Result<_, _>>()?,
        goal: file.goal,
        check: file.check,
        setup: file.setup,
        digest: Digest::ZERO,
    };
    task.digest = digest(&task);
    Ok(task)
}

/// Resolves a relative path below `root`; links must not leave it.
fn inside(root: &Path, named: &str) -> Result<PathBuf, String> {
    let relative: RepoPath = named
        .parse()
        .map_err(|error| format!("{named:?}: {error}"))?;
    let real = |path: &Path| {
        path.canonicalize()
            .map_err(|error| format!("{named:?}: {error}"))
    };
    let place = real(&root.join(relative.as_str()))?;
    if place.starts_with(real(root)?) {
        Ok(place)
    } else {
        Err(format!("{named:?} is outside the task"))
    }
}

fn source(
    directory: &Path,
    file: &TaskFile,
    repos: Option<&Path>,
) -> Result<TaskSource, TaskProblem> {
    let wrong = |problem: String| TaskProblem::field("repo", problem);
    let own = inside(directory, &file.repo);
    let place = match (own, repos) {
        (Ok(place), _) => place,
        (Err(_), Some(repos)) => {
            let relative: RepoPath = file
                .repo
                .parse()
                .map_err(|error| wrong(format!("{:?}: {error}", file.repo)))?;
            repos.join(relative.as_str()).canonicalize().map_err(|_| {
                wrong(format!(
                    "{:?} is not in the task or in {}",
                    file.repo,
                    repos.display()
                ))
            })?
        }
        (Err(problem), None) => {
            return Err(wrong(format!(
                "{problem}; for repositories elsewhere, pass --repos DIR"
            )));
        }
    };
    match &file.commit {
        None if place.is_dir() && place.join(".git").symlink_metadata().is_err() => {
            Ok(TaskSource::Project(project_files(&place)?))
        }
        None => Err(TaskProblem::field(
            "commit",
            "a repository or a bundle needs a full commit id",
        )),
        Some(commit) => {
            let commit = commit
                .parse()
                .map_err(|error| TaskProblem::field("commit", error))?;
            Ok(TaskSource::Commit {
                repository: place,
                commit,
            })
        }
    }
}

/// Every file of a project directory, in the order of their paths. A link is refused: it could lead anywhere.
fn project_files(root: &Path) -> Result<Vec<ProjectFile>, TaskProblem> {
    let refuse = |path: &Path, why: &str| TaskProblem::File(format!("{}: {why}", path.display()));
    let (mut files, mut total, mut open) = (Vec::new(), 0u64, vec![root.to_owned()]);
    while let Some(directory) = open.pop() {
        let entries = entries(&directory, MAX_PROJECT_FILES);
        for name in entries.map_err(|error| refuse(&directory, &error.to_string()))? {
            let path = directory.join(name);
            let meta = path
                .symlink_metadata()
                .map_err(|error| refuse(&path, &error.to_string()))?;
            if meta.is_dir() {
                open.push(path);
                if open.len() > MAX_PROJECT_FILES {
                    return Err(refuse(root, "it has too many directories"));
                }
                continue;
            }
            let relative = path.strip_prefix(root).ok().and_then(Path::to_str);
            let relative = relative.and_then(|path| path.parse::<RepoPath>().ok());
            let Some(relative) = relative.filter(|_| meta.is_file()) else {
                return Err(refuse(
                    &path,
                    "a project must hold only regular files with plain names",
                ));
            };
            let bytes = read_regular_up_to(&path, MAX_FILE)
                .map_err(|error| TaskProblem::File(error.to_string()))?;
            total = total.saturating_add(bytes.len() as u64);
            if files.len() == MAX_PROJECT_FILES || total > MAX_PROJECT_BYTES {
                return Err(refuse(
                    root,
                    "it is too large; use a repository or a bundle",
                ));
            }
            let executable =
                std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o100 != 0;
            files.push(ProjectFile {
                path: relative,
                bytes,
                executable,
            });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Hashes each part with its name and length, so that parts cannot be confused.
fn digest(task: &Task) -> Digest {
    let mut hashed = Vec::new();
    let mut add = |name: &str, bytes: &[u8]| {
        hashed.extend_from_slice(format!("{name} {}\n", bytes.len()).as_bytes());
        hashed.extend_from_slice(Digest::compute(bytes).to_string().as_bytes());
    };
    add("goal", task.goal.as_bytes());
    match &task.source {
        TaskSource::Project(files) => {
            for file in files {
                add("path", file.path.as_str().as_bytes());
                add(
                    if file.executable { "program" } else { "file" },
                    &file.bytes,
                );
            }
        }
        TaskSource::Commit { commit, .. } => add("commit", commit.as_str().as_bytes()),
    }
    add("visible", task.visible.as_deref().unwrap_or_default());
    add("hidden", &task.hidden);
    add("solution", task.solution.as_deref().unwrap_or_default());
    add(
        "check",
        format!("{:?} {}", task.check, task.check_timeout.as_secs()).as_bytes(),
    );
    let setup = format!(
        "{:?} {} {}",
        task.setup,
        task.setup_timeout.as_secs(),
        task.setup_network
    );
    add("setup", setup.as_bytes());
    add("gates", format!("{:?}", task.gates).as_bytes());
    add("files", format!("{:?}", task.files).as_bytes());
    Digest::compute(&hashed)
}
