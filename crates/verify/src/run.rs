//! Runs the gates, one after the other, each command in the sandbox.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crucible_model::ByteLimit;
use crucible_sandbox::{
    Calls, Cap, Captured, Completed, Confinement, End, FORBIDDEN_SIGNAL, Keep, Limits, Mount, MountContent,
    Network, Profile, Redaction, Resources, Sandbox, SandboxError, Spawn, Stdin, Stdout, Strength,
};

use crate::gate::{GateEnd, GateInput, GateOutcome, GateRun, GateSpec, NotStarted};
use crate::text::Normaliser;

/// Where and how the commands of gates run.
#[derive(Debug, Clone)]
pub struct GateSetting {
    /// The copy of the repository with the change in it: working directory, and writable.
    pub copy: PathBuf,
    /// Other directories that the commands may write to, such as a private build cache.
    pub writable: Vec<PathBuf>,
    /// Paths that must be neither read nor made.
    pub masked: Vec<PathBuf>,
    /// What they find at other paths, the copy itself among it.
    pub mounts: Vec<Mount>,
    /// The whole environment of the commands.
    pub env: Vec<(OsString, OsString)>,
    /// How strong the sandbox must be. The network is never reachable.
    pub strength: Strength,
    /// How much of each output stream is kept, from its end.
    pub log_limit: ByteLimit,
}

/// Hears how the gates fare, while they run.
pub trait GateObserver: Send + Sync {
    /// A gate begins.
    fn started(&self, gate: &GateInput);

    /// A gate has ended.
    fn finished(&self, outcome: &GateOutcome);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl GateObserver for Silent {
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

/// Checks every gate in order. All of them are checked, also after one has failed, so that whoever repairs the
/// change sees everything at once. Gives one outcome for each gate; a command that cannot be started is an
/// outcome too.
///
/// Dropping the future ends the running command and everything it started.
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
            GateInput::Verdict { id, verdict } => {
                GateOutcome::Judged { id: id.clone(), verdict: verdict.clone() }
            }
            GateInput::Command(spec) => {
                let run = run_command(sandbox, spec, setting, Resources::DEFAULT).await;
                GateOutcome::Ran(Box::new(run))
            }
        };
        observer.finished(&outcome);
        outcomes.push(outcome);
    }
    outcomes
}

/// Puts the kept output of all commands together.
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
    let kept = captured.bytes.len() as u64;
    if captured.extent == crucible_sandbox::Extent::Cut {
        log.extend_from_slice(
            format!("[only the last {kept} of {} bytes were kept]\n", captured.total).as_bytes(),
        );
    }
    log.extend_from_slice(&captured.bytes);
    if captured.bytes.last().is_some_and(|last| *last != b'\n') {
        log.push(b'\n');
    }
}

async fn run_command(
    sandbox: &Sandbox,
    spec: &GateSpec,
    setting: &GateSetting,
    resources: Resources,
) -> GateRun {
    let Some((program, args)) = spec.command.split_first().filter(|(program, _)| !program.is_empty()) else {
        let message = format!("gate {} has no command; name a program in the configuration", spec.id);
        return not_started(spec, NotStarted::EmptyCommand, message);
    };
    let mut normaliser = Normaliser::new(&setting.copy);
    let mut writable = setting.writable.clone();
    let copy = MountContent::Writable(setting.copy.clone());
    match setting.mounts.iter().find(|mount| mount.content == copy) {
        Some(mount) => normaliser = normaliser.also(&mount.target, "<copy>"),
        None => writable.push(setting.copy.clone()),
    }
    let spawn = Spawn {
        program: PathBuf::from(program),
        args: args.iter().map(OsString::from).collect(),
        cwd: setting.copy.clone(),
        env: setting.env.clone(),
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
            calls: Calls::Tools,
        }),
        keep: Keep::Tail,
        redaction: Redaction::Redact,
    };
    match sandbox.run(spawn).await {
        Ok(completed) => finished(spec, resources.disk, completed),
        Err(error) => {
            let message = normaliser.apply(explain(program, &error).as_bytes());
            not_started(spec, obstacle(&error), message)
        }
    }
}

fn finished(spec: &GateSpec, disk: Cap, completed: Completed) -> GateRun {
    let end = match completed.end {
        End::Exited(code) => GateEnd::Exited(code),
        End::Signalled(signal) => GateEnd::Signalled(signal),
        End::Forbidden => GateEnd::Signalled(FORBIDDEN_SIGNAL),
        End::TimedOut => GateEnd::TimedOut { after: spec.timeout },
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
        isolation: Some(completed.receipt),
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
        isolation: None,
    }
}

fn obstacle(error: &SandboxError) -> NotStarted {
    match error {
        SandboxError::NotFound { .. } | SandboxError::NotExecutable { .. } | SandboxError::Exec { .. } => {
            NotStarted::ToolMissing
        }
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

/// In words that are the same on every machine where a program is missing: the report holds no search path.
fn explain(program: &str, error: &SandboxError) -> String {
    match error {
        SandboxError::NotFound { .. } => format!("program {program:?} was not found on PATH; install it"),
        SandboxError::NotExecutable { problem, .. } => format!("{program:?} cannot be run: {problem}"),
        SandboxError::Exec { source, .. } => format!("{program:?} could not be started: {source}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reads PATH to find a shell")]
mod tests {
    use crucible_host::env::Environment;
    use crucible_sandbox::base_env;

    use super::*;
    use crate::classify::{FailureClass, classify};
    use crate::judge::judge_run;

    #[tokio::test]
    async fn a_gate_that_writes_without_end_is_ended_and_said() {
        let dir = tempfile::tempdir().unwrap();
        let env = Environment::from_pairs([("PATH", std::env::var_os("PATH").unwrap())], "/");
        let setting = GateSetting {
            copy: dir.path().to_owned(),
            writable: Vec::new(),
            masked: Vec::new(),
            mounts: Vec::new(),
            env: base_env(&env),
            strength: Strength::BestEffort,
            log_limit: ByteLimit(4096),
        };
        let script = "while :; do head -c 4000000 /dev/zero >> big; sleep 0.02; done";
        let spec = GateSpec {
            id: "fill".parse().unwrap(),
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            timeout: Duration::from_secs(30),
            source: "test".to_owned(),
            level: crate::GateLevel::Lite,
        };
        let resources = Resources { disk: Cap::At(20 << 20), ..Resources::DEFAULT };
        let run = run_command(&Sandbox::new(None, &env), &spec, &setting, resources).await;
        assert_eq!(run.end, GateEnd::DiskLimit { most: ByteLimit(20 << 20) });
        assert_eq!((classify(&run), run.exit_code()), (FailureClass::DiskLimit, 125));
        let verdict = judge_run(&run);
        let finding = verdict.errors().next().unwrap();
        assert_eq!(finding.code.as_str(), "verify-gate-disk-limit");
        assert!(finding.hint.contains("more than 20 MiB to the disk"), "{}", finding.hint);
    }
}
