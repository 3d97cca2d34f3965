//! `crucible sandbox`: what this machine offers, and any command behind it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedI64ValueParser;
use clap::{Args, Subcommand, ValueEnum};
use crucible_forge::{CommandSurvey, GitWrites};
use crucible_llm::configured::strength;
use crucible_model::{ExitStatus, Failure, Finding, counted, one_line};
use crucible_repo::git_directory_around;
use crucible_sandbox::{
    AllowedHost, CONFINED_HOME, Completed, Confinement, End, Identity, InputSource, LayerState,
    Layers, Limits, Network, Profile, Sandbox, Spawn, Stdin, Strength, SyscallClass, base_env,
    toolchain_env,
};
use crucible_terminal::{InputStream, UserInput, run_attached, user_input};
use serde::Serialize;

use crate::app::App;
use crate::arguments::strengths;

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
        let mut survey = CommandSurvey::new(directories, |directory| app.repository_of(directory));
        let sandbox = app.runtime().sandbox;
        let git_writes = match self.write_git {
            true => GitWrites::Allowed,
            false => GitWrites::Refused,
        };
        let read_only =
            app.block_on(async { survey.protect(&sandbox, &app.env, git_writes).await })?;
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
        // Asked to end once more, it compares only what git ran before.
        let refreshed = app.block_on(async {
            survey.refresh(&sandbox, &app.env).await;
            Ok(())
        });
        if let Err(error) = refreshed {
            survey.git_failed(error.to_string());
        }
        let left = survey.left(&current_dir);
        let print_notes = || {
            for line in left.notes() {
                app.output.remark(&one_line(&line));
            }
        };
        // Also of a command that was interrupted.
        let completed = ran.inspect_err(|_| print_notes())?;
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
            print_notes();
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
        if completed.ran_out_of_memory && !completed.is_killed() {
            app.output.remark(
                "warning: the kernel ended a process, because the command used up its memory; [sandbox] memory_mib sets how much it gets",
            );
        }
        completed.exit(self.timeout).map_err(|error| {
            let needs_git = !self.write_git
                && matches!(completed.end, End::Exited(_))
                && !(completed.ran_out_of_memory && completed.is_killed())
                && completed
                    .stderr
                    .text()
                    .lines()
                    .any(|line| line.contains(READ_ONLY) && line.contains(".git"));
            match needs_git {
                true => error.hint("Git directories are read-only; pass --write-git if the command has to commit or change them."),
                false => error,
            }
        })
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
