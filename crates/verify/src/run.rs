//! Runs the gates one after another, each command in the sandbox.
//!
//! A gate's setup commands run before it in the same copy, with the same variables, limits and isolation.
//! Invariants: no command has a network except the loopback of its own sandbox, and none starts in a
//! directory outside the copy.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_model::{ByteLimit, RepoPath};
use crucible_sandbox::{
    Cap, Captured, Completed, Confinement, End, Extent, FORBIDDEN_SIGNAL, Identity, Keep, Limits,
    Mount, MountContent, Network, Profile, Redaction, Resources, Sandbox, SandboxError, Spawn,
    Stdin, Stdout, Strength, SyscallClass,
};

use crate::gate::{GateEnd, GateInput, GateOutcome, GateRun, GateSpec, NotStarted};
use crate::results::TestResults;
use crate::runner;
use crate::spelling::{Spelling, respelled};
use crate::text::Normaliser;

/// Where and how the commands of gates run.
#[derive(Debug, Clone)]
pub struct GateSetting {
    /// The copy of the repository with the change in it: working directory, and writable.
    pub copy: PathBuf,
    /// Other directories that the commands may write to, such as a private build cache.
    pub writable: Vec<PathBuf>,
    /// Paths that must not be read or created.
    pub masked: Vec<PathBuf>,
    /// A directory outside the copy for runners' reports, with one subdirectory per gate; without it,
    /// commands run unchanged and give no results per test.
    pub reports: Option<PathBuf>,
    /// What they find at other paths, the copy itself among it.
    pub mounts: Vec<Mount>,
    /// The whole environment of the commands.
    pub env: Vec<(OsString, OsString)>,
    /// The user and the machine that they see.
    pub identity: Identity,
    /// How their words are written.
    pub spelling: Spelling,
    /// The required sandbox strength. The only network is the command's own loopback.
    pub strength: Strength,
    /// Bytes kept of each output stream, from its end.
    pub log_limit: ByteLimit,
}

impl GateSetting {
    /// The other path at which commands find the copy.
    fn mounted_at(&self) -> Option<&Path> {
        let copy = MountContent::Writable(self.copy.clone());
        self.mounts
            .iter()
            .find(|mount| mount.content == copy)
            .map(|mount| mount.target.as_path())
    }

    /// Replaces the copy's path, wherever commands see it.
    fn normaliser(&self) -> Normaliser {
        let normaliser = Normaliser::new(&self.copy);
        self.mounted_at().map_or(normaliser.clone(), |target| {
            normaliser.also(target, "<copy>")
        })
    }
}

/// Hears how the gates fare, while they run.
pub trait GateObserver: Send + Sync {
    /// A gate begins.
    fn started(&self, gate: &GateInput);

    /// A gate has ended.
    fn finished(&self, outcome: &GateOutcome);
}

/// Ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopObserver;

impl GateObserver for NoopObserver {
    fn started(&self, _: &GateInput) {}

    fn finished(&self, _: &GateOutcome) {}
}

/// What the gates printed, all of them in one text for each stream, a heading before each gate's part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Logs {
    /// `logs/verify.stdout.log`.
    pub stdout: Vec<u8>,
    /// `logs/verify.stderr.log`.
    pub stderr: Vec<u8>,
}

/// Checks every gate in order, even after a failure, so that the next attempt sees all problems at once.
/// Returns one outcome per gate; a command that cannot be started is an outcome too.
///
/// Dropping the future kills the running command and its children.
pub async fn run_gates(
    sandbox: &Sandbox,
    gates: &[GateInput],
    setting: &GateSetting,
    observer: &dyn GateObserver,
) -> Vec<GateOutcome> {
    let mut outcomes = Vec::with_capacity(gates.len());
    for gate in gates {
        observer.started(gate);
        let outcome = match gate {
            GateInput::Verdict { id, verdict } => GateOutcome::Judged {
                id: id.clone(),
                verdict: verdict.clone(),
            },
            GateInput::Command(spec) => {
                let mut run = run_command(sandbox, spec, setting, Resources::DEFAULT).await;
                run.results = TestResults::of_run(&run, &setting.normaliser());
                GateOutcome::Ran(Box::new(run))
            }
        };
        observer.finished(&outcome);
        outcomes.push(outcome);
    }
    outcomes
}

/// Combines the kept output of all commands.
#[must_use]
pub fn logs(outcomes: &[GateOutcome]) -> Logs {
    let mut logs = Logs::default();
    for outcome in outcomes {
        if let GateOutcome::Ran(run) = outcome {
            append(&mut logs.stdout, run, &run.stdout);
            append(&mut logs.stderr, run, &run.stderr);
        }
    }
    logs
}

fn append(log: &mut Vec<u8>, run: &GateRun, captured: &Captured) {
    log.extend_from_slice(format!("==> {}: {}\n", run.id, run.command_line()).as_bytes());
    let kept_bytes = captured.bytes.len() as u64;
    if captured.extent == Extent::Cut {
        log.extend_from_slice(
            format!(
                "[only the last {kept_bytes} of {} bytes were kept]\n",
                captured.total
            )
            .as_bytes(),
        );
    }
    log.extend_from_slice(&captured.bytes);
    if captured.bytes.last().is_some_and(|last| *last != b'\n') {
        log.push(b'\n');
    }
}

/// Runs a gate's setup, then its command.
async fn run_command(
    sandbox: &Sandbox,
    spec: &GateSpec,
    setting: &GateSetting,
    resources: Resources,
) -> GateRun {
    let cwd = match spec
        .cwd
        .as_ref()
        .map_or(Some(setting.copy.clone()), |path| {
            inside(&setting.copy, path)
        }) {
        Some(cwd) => cwd,
        None => {
            let named = spec.cwd.as_ref().map_or("", RepoPath::as_str);
            let message = format!(
                "its directory {named:?} is not in the repository's copy; correct gates.{}.cwd",
                spec.id
            );
            return not_started(spec, NotStarted::Setup, message);
        }
    };
    for words in &spec.setup {
        let step = GateSpec {
            command: words.clone(),
            ..spec.clone()
        };
        let run = run_words(sandbox, &step, &cwd, setting, resources).await;
        if run.end != GateEnd::Exited(0) {
            return setup_failed(spec, run);
        }
    }
    run_words(sandbox, spec, &cwd, setting, resources).await
}

/// Returns the directory `path` in the copy, unless it leaves the copy through a link.
fn inside(copy: &Path, path: &RepoPath) -> Option<PathBuf> {
    let real = std::fs::canonicalize(copy.join(path)).ok()?;
    (real.is_dir() && real.starts_with(std::fs::canonicalize(copy).ok()?)).then_some(real)
}

/// Returns the gate's run if a setup command failed with `run`; its output is kept.
fn setup_failed(spec: &GateSpec, run: GateRun) -> GateRun {
    let command = run.command_line();
    let how = match &run.end {
        GateEnd::NotStarted { message, .. } => message.clone(),
        GateEnd::TimedOut { after } => format!("it was killed after {} s", after.as_secs_f64()),
        _ => {
            let text = [run.stderr.text(), run.stdout.text()].concat();
            let last = text
                .lines()
                .rev()
                .find(|line| !line.trim().is_empty())
                .unwrap_or_default()
                .trim();
            let last_line: String = last.chars().take(200).collect();
            let last_line = if last_line.is_empty() {
                String::new()
            } else {
                format!(" and printed {last_line:?}")
            };
            format!("it exited with code {}{last_line}", run.exit_code())
        }
    };
    let message = format!(
        "its setup command `{command}` failed: {how}; correct gates.{}.setup",
        spec.id
    );
    GateRun {
        command: spec.command.clone(),
        end: GateEnd::NotStarted {
            why: NotStarted::Setup,
            message,
        },
        ..run
    }
}

/// Runs one command: the gate's own, or one of its setup commands.
async fn run_words(
    sandbox: &Sandbox,
    spec: &GateSpec,
    cwd: &Path,
    setting: &GateSetting,
    resources: Resources,
) -> GateRun {
    let private = setting
        .reports
        .as_ref()
        .map(|reports| reports.join(spec.id.as_str()));
    let prepared = runner::prepare(&spec.command, cwd, private.as_deref());
    let inputs = prepared.command(&spec.command);
    let command = match setting.spelling {
        Spelling::AsGiven => inputs.to_vec(),
        Spelling::Other => respelled(inputs, cwd, &setting.env),
    };
    let Some((program, args)) = command
        .split_first()
        .filter(|(program, _)| !program.is_empty())
    else {
        let message = format!(
            "gate {} has no command; set one in the configuration",
            spec.id
        );
        return not_started(spec, NotStarted::EmptyCommand, message);
    };
    let normaliser = setting.normaliser();
    let mut writable = setting.writable.clone();
    if setting.mounted_at().is_none() {
        writable.push(setting.copy.clone());
    }
    writable.extend(prepared.writable());
    let mut env = setting.env.clone();
    env.retain(|(name, _)| {
        !name
            .to_str()
            .is_some_and(|name| spec.env.contains_key(name))
    });
    env.extend(
        spec.env
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    prepared.extend(&mut env);
    let spawn = Spawn {
        program: PathBuf::from(program),
        args: args.iter().map(OsString::from).collect(),
        cwd: cwd.to_owned(),
        env,
        stdin: Stdin::Empty,
        stdout: Stdout::Memory,
        limits: Limits {
            stdout: setting.log_limit,
            stderr: setting.log_limit,
            resources,
            ..Limits::new(spec.timeout)
        },
        confinement: Confinement::Confined(Profile {
            strength: setting.strength,
            writable,
            masked: setting.masked.clone(),
            read_only: Vec::new(),
            mounts: setting.mounts.clone(),
            network: Network::None,
            calls: SyscallClass::Tools,
            identity: setting.identity.clone(),
        }),
        keep: Keep::Tail,
        redaction: Redaction::Redact,
    };
    match sandbox.run(spawn).await {
        Ok(mut completed) => {
            let stdout = &completed.stdout;
            let collected = prepared.collect(cwd, &setting.copy, &stdout.bytes, stdout.extent);
            if let Some(bytes) = collected.stdout {
                completed.stdout.bytes = bytes;
            }
            for stream in [&mut completed.stdout, &mut completed.stderr] {
                stream.bytes = prepared.without_report_path(std::mem::take(&mut stream.bytes));
            }
            GateRun {
                report: collected.report,
                ..finished(spec, resources.disk, completed)
            }
        }
        Err(error) => {
            let message = normaliser
                .apply(explain(program, &error).as_bytes())
                .trim_end()
                .to_owned();
            not_started(spec, obstacle(&error), message)
        }
    }
}

fn finished(spec: &GateSpec, disk: Cap, completed: Completed) -> GateRun {
    let end = match completed.end {
        End::Exited(code) => GateEnd::Exited(code),
        End::Signalled(signal) => GateEnd::Signalled(signal),
        End::Forbidden => GateEnd::Signalled(FORBIDDEN_SIGNAL),
        End::TimedOut => GateEnd::TimedOut {
            after: spec.timeout,
        },
        End::OutputLimit => GateEnd::OutputLimit,
        End::DiskLimit => GateEnd::DiskLimit {
            most: match disk {
                Cap::At(most) => ByteLimit(most),
                Cap::Unlimited => ByteLimit(u64::MAX),
            },
        },
    };
    GateRun {
        id: spec.id.clone(),
        command: spec.command.clone(),
        end,
        duration: completed.duration,
        stdout: completed.stdout,
        stderr: completed.stderr,
        report: None,
        isolation: Some(completed.receipt),
        results: None,
    }
}

fn not_started(spec: &GateSpec, why: NotStarted, message: String) -> GateRun {
    GateRun {
        id: spec.id.clone(),
        command: spec.command.clone(),
        end: GateEnd::NotStarted { why, message },
        duration: Duration::ZERO,
        stdout: Captured::default(),
        stderr: Captured::default(),
        report: None,
        isolation: None,
        results: None,
    }
}

fn obstacle(error: &SandboxError) -> NotStarted {
    match error {
        SandboxError::NotFound { .. }
        | SandboxError::NotExecutable { .. }
        | SandboxError::Exec { .. } => NotStarted::ToolMissing,
        SandboxError::WorkingDirectory { .. }
        | SandboxError::Writable { .. }
        | SandboxError::Masked { .. }
        | SandboxError::ReadOnly { .. }
        | SandboxError::Mounted { .. }
        | SandboxError::BadArgument { .. }
        | SandboxError::Host(_)
        | SandboxError::LayersMissing { .. }
        | SandboxError::Setup { .. }
        | SandboxError::Supervision { .. }
        | SandboxError::Survivors { .. } => NotStarted::Sandbox,
    }
}

/// Describes a missing program in the same words on every machine: the report has no search path.
fn explain(program: &str, error: &SandboxError) -> String {
    match error {
        SandboxError::NotFound { .. } => format!("program {program:?} was not found on PATH"),
        SandboxError::NotExecutable { problem, .. } => {
            format!("{program:?} cannot be run: {problem}")
        }
        SandboxError::Exec { source, .. } => format!("{program:?} could not be started: {source}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test reads PATH to find a shell"
)]
mod tests {
    use crucible_host::env::Environment;
    use crucible_sandbox::base_env;

    use super::*;
    use crate::classify::{FailureClass, classify};
    use crate::judge::judge_run;

    #[tokio::test]
    async fn endless_output_kills_gate() {
        let dir = tempfile::tempdir().unwrap();
        let env = Environment::from_pairs([("PATH", std::env::var_os("PATH").unwrap())], "/");
        let setting = GateSetting {
            copy: dir.path().to_owned(),
            writable: Vec::new(),
            masked: Vec::new(),
            reports: None,
            mounts: Vec::new(),
            env: base_env(&env),
            identity: Identity::default(),
            spelling: Spelling::AsGiven,
            strength: Strength::BestEffort,
            log_limit: ByteLimit(4096),
        };
        let script = "while :; do head -c 4000000 /dev/zero >> big; sleep 0.02; done";
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        let spec = GateSpec::new(
            "fill".parse().unwrap(),
            command,
            Duration::from_secs(30),
            "test",
        );
        let resources = Resources {
            disk: Cap::At(20 << 20),
            ..Resources::DEFAULT
        };
        let run = run_command(&Sandbox::new(None, &env), &spec, &setting, resources).await;
        assert_eq!(
            run.end,
            GateEnd::DiskLimit {
                most: ByteLimit(20 << 20)
            }
        );
        assert_eq!(
            (classify(&run), run.exit_code()),
            (FailureClass::DiskLimit, 125)
        );
        let verdict = judge_run(&run);
        let finding = verdict.errors().next().unwrap();
        assert_eq!(finding.code.as_str(), "verify-gate-disk-limit");
        assert!(
            finding.hint.contains("more than 20 MiB to the disk"),
            "{}",
            finding.hint
        );
    }
}
