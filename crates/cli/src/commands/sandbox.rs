//! `crucible sandbox`: what this machine offers, and any command behind it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::builder::RangedI64ValueParser;
use clap::{Args, Subcommand, ValueEnum};
use crucible_forge::{DirectoryState, LeftBehind};
use crucible_llm::configured::strength;
use crucible_model::{ExitStatus, Failure, Finding, counted, one_line, short_line};
use crucible_repo::{Git, Guards, RunByGit, git_directory_around};
use crucible_sandbox::{
    AllowedHost, CONFINED_HOME, Completed, Confinement, End, Identity, InputSource, LayerState,
    Layers, Limits, Network, Profile, Sandbox, Spawn, Stdin, Stopped, Strength, SyscallClass,
    base_env, toolchain_env,
};
use crucible_terminal::{InputStream, UserInput, run_attached, user_input};
use serde::Serialize;

use crate::app::App;
use crate::arguments::strengths;

/// Crucible's own directory in a project.
const OWN: &str = ".crucible";
/// What the kernel says of a place that is read-only.
const READ_ONLY: &str = "Read-only file system";

/// The longest time a command can be given: a year.
const MAX_SECONDS: i64 = 365 * 24 * 60 * 60;

/// See and use the sandbox
#[derive(Subcommand)]
pub(crate) enum SandboxCommand {
    /// Tell which layers of isolation this machine offers, and what is missing
    Status,
    Exec(Exec),
}

/// Run a command in the sandbox: no network, a read-only world, a private home
///
/// For example: `crucible sandbox exec --write . -- cargo test --offline`
/// or `crucible sandbox exec --net api.example.com --calls connect -- python3 ask.py`
///
/// The command reads standard input; in a loop that reads a list, add `< /dev/null`. On a terminal it gets one of its own, with job
/// control; what it prints there is neither kept nor redacted.
///
/// Git directories stay read-only in a writable directory, and so does `.crucible`. Files that other programs run or obey are
/// listed at the end when the command made or changed them.
#[derive(Args)]
pub(crate) struct Exec {
    /// A directory that the command may write to; may be given several times
    #[arg(long, value_name = "DIR")]
    write: Vec<PathBuf>,
    /// Let the command change git directories too: hooks, settings and commits
    #[arg(long)]
    write_git: bool,
    /// Let the command use this machine's network
    #[arg(long)]
    network: bool,
    /// Let the command reach this host by TCP: a name or an address, with a port or on 443 and 80; may be given several times
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with = "network")]
    net: Vec<AllowedHost>,
    /// Which system calls the command may make; one of another class ends it
    #[arg(long, value_name = "CLASS", value_enum, default_value_t = CallClass::Tools)]
    calls: CallClass,
    /// How strong the sandbox must be; without it as configured (sandbox.strength, required)
    #[arg(long, value_name = "STRENGTH", value_parser = strengths())]
    sandbox: Option<String>,
    /// Seconds until the command is ended
    #[arg(long, default_value_t = 600, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds())]
    timeout: u64,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// What the system calls of a command may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CallClass {
    /// Whatever builds and tests do
    Tools,
    /// Read and compute: write nothing, connect nowhere, start nothing
    Compute,
    /// Read, compute and lock what is read, such as databases: write nothing, connect nowhere, start nothing
    Read,
    /// Read, compute and write: connect nowhere, start nothing
    Files,
    /// Read, compute and connect: write nothing, start nothing
    Connect,
}

impl From<CallClass> for SyscallClass {
    fn from(class: CallClass) -> Self {
        match class {
            CallClass::Tools => Self::Tools,
            CallClass::Compute => Self::Compute,
            CallClass::Read => Self::Read,
            CallClass::Files => Self::Files,
            CallClass::Connect => Self::Connect,
        }
    }
}

impl SandboxCommand {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        match self {
            Self::Status => status(app),
            Self::Exec(exec) => exec.run(app),
        }
    }
}

fn seconds() -> RangedI64ValueParser<u64> {
    RangedI64ValueParser::new().range(1..=MAX_SECONDS)
}

/// What the machine offers, and what that means for the configured strength.
#[derive(Serialize)]
struct Status<'a> {
    #[serde(flatten)]
    layers: &'a Layers,
    strength: Strength,
    findings: &'a [Finding],
}

fn status(app: &App) -> Result<ExitStatus, Failure> {
    let config = app.config(app.env.working_directory(), &[])?;
    let strength = strength(&config)?;
    let sandbox = app.sandbox();
    let layers = sandbox.layers();
    let verdict = layers.verdict(strength);
    if app.output.is_json() {
        app.output.json(&Status {
            layers,
            strength,
            findings: verdict.findings(),
        })?;
        return Ok(ExitStatus::Success);
    }
    for layer in &layers.layers {
        let state = match layer.state {
            LayerState::Available => "available",
            LayerState::Missing => "missing",
        };
        app.output.line(&format!(
            "{:<12} {state:<10} {}",
            layer.layer.to_string(),
            layer.detail
        ));
    }
    for finding in verdict.findings() {
        app.output.line(&one_line(&finding.to_string()));
    }
    Ok(ExitStatus::Success)
}

impl Exec {
    /// What the command can reach.
    fn reachable(&self) -> Network {
        match (self.network, &self.net[..]) {
            (true, _) => Network::Host,
            (false, []) => Network::None,
            (false, hosts) => Network::Hosts(hosts.to_vec()),
        }
    }

    /// The directories that the command may write to, without links.
    fn directories(&self, app: &App) -> Result<Vec<PathBuf>, Failure> {
        let mut directories = BTreeSet::new();
        for path in &self.write {
            // What is not a directory is refused by the sandbox, with its own words.
            let Ok(real) = app.absolute(path).canonicalize() else {
                continue;
            };
            if let Some(git) = git_directory_around(&real).filter(|_| !self.write_git) {
                let (real, git) = (real.display(), git.display());
                return Err(Failure::usage(format!(
                    "cannot hand out {real}: {git} is a git directory"
                ))
                .hint(
                    "Pass --write-git if the command has to change what git runs and believes.",
                ));
            }
            directories.insert(real);
        }
        Ok(directories.into_iter().collect())
    }

    /// What in the writable directories stays as it is: git directories, what decides which programs git starts, and `.crucible`.
    /// Also all that git runs or obeys there.
    async fn read_only(
        &self,
        app: &App,
        sandbox: &Arc<Sandbox>,
        before: &[DirectoryState],
        directories: &[PathBuf],
    ) -> Result<(Vec<PathBuf>, RunByGit), Failure> {
        if directories.is_empty() {
            return Ok((Vec::new(), RunByGit::default()));
        }
        let known = repositories(before);
        let sandbox = Arc::clone(sandbox);
        let mut guards = match Git::guarded_places(sandbox, &app.env, directories, &known).await {
            Ok(guards) => guards,
            Err(_) if self.write_git => Guards::default(),
            Err(error) => {
                let directories: Vec<_> = directories
                    .iter()
                    .map(|one| one.display().to_string())
                    .collect();
                return Err(Failure::usage(format!(
                    "cannot tell what git runs in {}: {error}",
                    directories.join(" and ")
                ))
                .hint("Hand out a directory below it, or pass --write-git to leave git directories unprotected."));
            }
        };
        let run_by_git = guards.run_by_git();
        if self.write_git {
            let is_own = |place: &Path| place.file_name().is_some_and(|name| name == OWN);
            guards.places.retain(|place| is_own(place));
            guards.conflicts.retain(|conflict| is_own(conflict.place()));
        }
        match guards.conflicts.first() {
            Some(conflict) => Err(Failure::usage(conflict.to_string())
                .hint("Pass another directory to --write, or pass --write-git, which leaves files that git runs unprotected.")),
            None => Ok((guards.places, run_by_git)),
        }
    }

    fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let current_dir = app.env.working_directory().to_owned();
        let flags: Vec<(&str, String)> = self
            .sandbox
            .iter()
            .map(|value| ("sandbox.strength", value.clone()))
            .collect();
        let config = app.config(&current_dir, &flags)?;
        let Some((program, args)) = self.command.split_first() else {
            return Err(Failure::usage("there is no command; name it after `--`"));
        };
        let mut env = base_env(&app.env);
        env.extend(toolchain_env(&app.env));
        env.push(("HOME".into(), CONFINED_HOME.into()));
        let directories = self.directories(app)?;
        let is_outer = |directory: &&PathBuf| {
            let mut others = directories.iter().filter(|other| other != directory);
            !others.any(|other| directory.starts_with(other))
        };
        let mut before: Vec<DirectoryState> = directories
            .iter()
            .filter(is_outer)
            .map(|directory| {
                let top = app
                    .repository_of(directory)
                    .unwrap_or_else(|| directory.clone());
                DirectoryState::survey(&top, std::slice::from_ref(directory))
            })
            .collect();
        let sandbox = app.runtime().sandbox;
        let (read_only, run_by_git) =
            app.block_on(async { self.read_only(app, &sandbox, &before, &directories).await })?;
        before
            .iter_mut()
            .for_each(|state| state.keep_guarded(&run_by_git.paths));
        let profile = Profile {
            strength: strength(&config)?,
            writable: self.write.iter().map(|path| app.absolute(path)).collect(),
            // The sandbox knows Crucible's own directory; where else the runs lie only the configuration tells.
            masked: config
                .paths
                .runs_root
                .iter()
                .map(|root| current_dir.join(root).join(""))
                .collect(),
            read_only,
            mounts: Vec::new(),
            network: self.reachable(),
            calls: self.calls.into(),
            identity: Identity::default(),
        };
        let spawn = Spawn {
            args: args.to_vec(),
            env,
            confinement: Confinement::Confined(profile),
            ..Spawn::new(
                program,
                &current_dir,
                Limits::new(Duration::from_secs(self.timeout)),
            )
        };
        let ran = app.block_on(execute(app, &sandbox, spawn));
        let of_git = app.block_on(async {
            let known = run_by_git.clone();
            Ok(OfGit::after(app, &sandbox, &before, &directories, known).await)
        });
        // Asked to end once more, it compares only what git ran before.
        let of_git = of_git.unwrap_or_else(|error| OfGit {
            all: run_by_git,
            failure: Some(error.to_string()),
        });
        let left = Left::new(&current_dir, &before, of_git);
        // Also of a command that was interrupted.
        let completed = ran.inspect_err(|_| left.print_notes(app))?;
        if app.output.is_json() {
            app.output.json(&serde_json::json!({
                "schema_version": "crucible-sandbox-exec-v1",
                "end": completed.end,
                "stdout": completed.stdout.text(),
                "stderr": completed.stderr.text(),
                "isolation": completed.receipt,
                "contacts": completed.contacts,
                "stopped": completed.stopped,
                "ran_out_of_memory": completed.ran_out_of_memory,
                "left_behind": left.paths,
                "may_be_run_by_git": left.may_be_run,
                "left_behind_is_whole": left.is_whole,
            }))?;
        } else {
            app.output.bytes(&completed.stdout.bytes);
            app.output.write_stderr(&completed.stderr.bytes);
            for missing in &completed.receipt.missing {
                app.output.remark(&format!(
                    "[sandbox] without {}: {}",
                    missing.layer, missing.reason
                ));
            }
            left.print_notes(app);
            for contact in completed
                .contacts
                .iter()
                .filter(|contact| contact.failed > 0)
            {
                let tries = counted(contact.failed, "connection");
                app.output.remark(&one_line(&format!(
                    "[sandbox] {} port {}: {tries} not made: {}",
                    contact.host, contact.port, contact.last_failure
                )));
            }
        }
        let needs_git = !self.write_git
            && completed
                .stderr
                .text()
                .lines()
                .any(|line| line.contains(READ_ONLY) && line.contains(".git"));
        // Inside namespaces a program that was killed shows as one that exited with 137.
        let is_killed = matches!(completed.end, End::Exited(137) | End::Signalled(9));
        if completed.ran_out_of_memory && is_killed {
            return Err(
                Failure::refused("the command was ended because it used up its memory")
                    .hint("Give it more with [sandbox] memory_mib in the configuration."),
            );
        }
        if completed.ran_out_of_memory {
            app.output.remark(
                "warning: the kernel ended a process, because the command used up its memory; [sandbox] memory_mib sets how much it gets",
            );
        }
        match completed.end {
            End::Exited(0) => Ok(ExitStatus::Success),
            End::Exited(code) => {
                let error = Failure::refused(format!(
                    "the command ended with exit code {code}; what it printed says why"
                ));
                Err(if needs_git {
                    error.hint("Git directories are read-only; pass --write-git if the command has to commit or change them.")
                } else {
                    error
                })
            }
            End::Signalled(signal) => Err(Failure::refused(format!(
                "the command was ended by signal {signal}; try it again, or find out which program sent it"
            ))),
            End::Forbidden => Err(Failure::refused(
                "the command was ended because it made a system call that --calls does not allow",
            )
            .hint("Choose a wider class with --calls, or change the command.")),
            End::TimedOut => Err(Failure::new(
                ExitStatus::TimedOut,
                format!(
                    "the command was ended after {}{}",
                    counted(self.timeout, "second"),
                    killed(&completed)
                ),
            )
            .hint("Give it more time with --timeout.")),
            End::OutputLimit => Err(Failure::new(
                ExitStatus::OverLimit,
                format!(
                    "the command was ended because it printed without end{}",
                    killed(&completed)
                ),
            )
            .hint("Send its output to a file below a directory given with --write.")),
            End::DiskLimit => Err(Failure::new(
                ExitStatus::OverLimit,
                format!(
                    "the command was ended because it wrote too much to the disk{}",
                    killed(&completed)
                ),
            )
            .hint("Let it write less, or in several commands.")),
        }
    }
}

/// Runs the command on the user's terminal if there is one, else with standard input as it comes. In the background of a terminal
/// the command gets no input.
async fn execute(app: &App, sandbox: &Sandbox, spawn: Spawn) -> Result<Completed, Failure> {
    // Tried out before the input is touched, which can be passed on once.
    let _known = sandbox.layers();
    let stdin = match user_input() {
        UserInput::Terminal if !app.output.is_json() => return run_attached(sandbox, spawn).await,
        UserInput::Terminal | UserInput::Stream => {
            Stdin::Stream(InputSource::new(InputStream::open()))
        }
        UserInput::None => Stdin::Empty,
    };
    Ok(sandbox.run(Spawn { stdin, ..spawn }).await?)
}

/// What the report says of a command that ignored TERM.
fn killed(completed: &Completed) -> String {
    match completed.stopped {
        Some(Stopped {
            ended_after_ms,
            grace_ms,
            was_killed: true,
        }) => format!(
            "; it ignored TERM and was killed {:.1} s later (grace period: {:.1} s)",
            Duration::from_millis(ended_after_ms).as_secs_f64(),
            Duration::from_millis(grace_ms).as_secs_f64()
        ),
        Some(_) | None => String::new(),
    }
}

/// The repositories that were found before a command ran.
fn repositories(before: &[DirectoryState]) -> Vec<PathBuf> {
    before
        .iter()
        .flat_map(DirectoryState::repositories)
        .cloned()
        .collect()
}

/// What git runs or obeys in the writable directories after a command, and what it did before.
struct OfGit {
    all: RunByGit,
    /// Why the present settings of git could not be read.
    failure: Option<String>,
}

impl OfGit {
    /// Reads the settings again: others may have changed them during the run.
    async fn after(
        app: &App,
        sandbox: &Arc<Sandbox>,
        before: &[DirectoryState],
        directories: &[PathBuf],
        mut all: RunByGit,
    ) -> Self {
        if directories.is_empty() {
            return Self { all, failure: None };
        }
        let known = repositories(before);
        let sandbox = Arc::clone(sandbox);
        match Git::run_by_git(sandbox, &app.env, directories, &known).await {
            Ok(now) => {
                // A directory that git no longer takes programs from may be filled with other files.
                all.paths.retain(|path| path.is_symlink() || !path.is_dir());
                all.paths.extend(now.paths);
                all.unclear.extend(now.unclear);
                Self { all, failure: None }
            }
            Err(error) => Self {
                all,
                failure: Some(error.to_string()),
            },
        }
    }
}

/// The most paths that a terminal shows.
const MAX_REPORTED: usize = 20;

/// The characters of a path that a terminal shows.
const MAX_PATH_LEN: usize = 200;

/// The most names that the line about files that git may run has.
const MAX_NAMES: usize = 3;

/// Changed files, any of which git may run.
#[derive(Serialize)]
struct MayBeRunByGit {
    /// The settings, variables and hooks with a command that is not understood.
    because_of: BTreeSet<String>,
    files: Vec<String>,
}

impl MayBeRunByGit {
    /// Returns the line for a person.
    fn line(&self) -> String {
        format!(
            "note: made or changed {} that git may run, because Crucible cannot tell what {} runs: {}",
            counted(self.files.len() as u64, "file"),
            first_names(self.because_of.iter()),
            first_names(self.files.iter()),
        )
    }
}

/// Returns the first names, and how many there are besides.
fn first_names<'n>(names: impl ExactSizeIterator<Item = &'n String>) -> String {
    let more = names.len().saturating_sub(MAX_NAMES);
    let lines: Vec<String> = names
        .take(MAX_NAMES)
        .map(|name| short_line(name, MAX_PATH_LEN))
        .collect();
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", lines.join(", "))
}

/// What a command left that other programs run or obey.
struct Left {
    paths: Vec<LeftBehind>,
    may_be_run: Option<MayBeRunByGit>,
    is_whole: bool,
    /// Why it is unknown what git runs now.
    git_failure: Option<String>,
}

impl Left {
    /// Looks at what came or changed since; paths are shown as they are called from `here`.
    fn new(current_dir: &Path, before: &[DirectoryState], of_git: OfGit) -> Self {
        let here = current_dir
            .canonicalize()
            .unwrap_or_else(|_| current_dir.to_owned());
        let shown = |state: &DirectoryState, path: &str| {
            let path = state.root().join(path);
            let path = path.strip_prefix(&here).unwrap_or(&path).to_string_lossy();
            if path.is_empty() {
                ".".to_owned()
            } else {
                path.into_owned()
            }
        };
        let RunByGit { paths, unclear } = of_git.all;
        let all_left = before.iter().flat_map(|state| {
            let left = state.left_behind(&paths).into_iter();
            left.map(move |left| LeftBehind {
                path: shown(state, &left.path),
                ..left
            })
        });
        let all_left = all_left.collect();
        let files: Vec<String> = if unclear.is_empty() {
            Vec::new()
        } else {
            let changed = before.iter().map(|state| (state, state.changed_files()));
            changed
                .flat_map(|(state, files)| {
                    let shown = files.iter().map(|file| shown(state, file));
                    shown.collect::<Vec<_>>()
                })
                .collect()
        };
        Self {
            paths: all_left,
            may_be_run: (!files.is_empty()).then_some(MayBeRunByGit {
                because_of: unclear,
                files,
            }),
            is_whole: before.iter().all(DirectoryState::is_whole) && of_git.failure.is_none(),
            git_failure: of_git.failure,
        }
    }

    /// Says so on standard error.
    fn print_notes(&self, app: &App) {
        for left in self.paths.iter().take(MAX_REPORTED) {
            let more = match left.paths {
                0 | 1 => String::new(),
                paths => format!(" ({})", counted(paths as u64, "path")),
            };
            let why = left.why.as_str();
            app.output.remark(&one_line(&format!(
                "note: made or changed {}{more}: {why}",
                short_line(&left.path, MAX_PATH_LEN)
            )));
        }
        let rest: usize = self
            .paths
            .iter()
            .skip(MAX_REPORTED)
            .map(|left| left.paths)
            .sum();
        if rest > 0 {
            app.output.remark(&format!(
                "note: and {} more; `--json` lists them",
                counted(rest as u64, "path")
            ));
        }
        if let Some(may_be_run) = &self.may_be_run {
            app.output.remark(&one_line(&may_be_run.line()));
        }
        if let Some(failure) = &self.git_failure {
            app.output.remark(&one_line(&format!(
                "note: files that git runs since the command began may be missing from this list: {failure}"
            )));
        } else if !self.is_whole {
            app.output
                .remark("note: there are too many files to look at all of them for changes; repositories among the rest, in node_modules or target, were not protected");
        }
    }
}
