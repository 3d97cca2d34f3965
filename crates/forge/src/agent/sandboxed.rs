//! Running an agent's program in a sandbox: it writes to the copy and its scratch directory, and reaches the hosts that it needs.

use std::ffi::OsString;
use std::path::PathBuf;

use crucible_host::fs::create_dir_all;
use crucible_model::{ByteLimit, Code, Finding, Secret};
use crucible_sandbox::{
    Cap, Captured, Confinement, End, Extent, Identity, Keep, Limits, Network, Profile, Redaction,
    Resources, Spawn, Stdin, SyscallClass, base_env, toolchain_env,
};
use crucible_secrets::{ProvidedValues, Scanner};
use serde_json::{Map, Value, json};

use super::{AgentEnd, AgentError, AgentOutcome, AgentTask};

/// The program of the agent failed.
pub(crate) const FAILED: Code = Code::new("forge-agent-failed");
pub(super) const TIMEOUT: Code = Code::new("forge-agent-timeout");
const OUTPUT: Code = Code::new("forge-agent-output");
const DISK: Code = Code::new("forge-agent-disk");

/// How much of each stream is kept: its end, where a program says why it stopped.
const KEPT: ByteLimit = ByteLimit(256 << 10);
/// A program that prints more than this on one stream is ended.
const RUNAWAY: ByteLimit = ByteLimit(32 << 20);
/// The most processes of an agent.
const PROCESSES: u64 = 512;

/// The directories of one run, below the scratch directory of its copy.
pub(super) struct AgentPlaces {
    /// An empty home.
    pub(super) home: PathBuf,
    /// For temporary files.
    pub(super) temporary: PathBuf,
}

impl AgentPlaces {
    pub(super) fn make(task: &AgentTask<'_>) -> Result<Self, AgentError> {
        let [home, temporary] = ["home", "tmp"].map(|name| task.workspace.scratch().join(name));
        create_dir_all(&home)?;
        create_dir_all(&temporary)?;
        Ok(Self { home, temporary })
    }
}

/// A program to run as an agent.
pub(super) struct AgentProgram {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    /// On top of what any program is given.
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) network: Network,
    /// What is taken out of everything that it prints.
    pub(super) keys: Vec<Secret>,
}

/// Runs it with the packet on its standard input, and waits for its end.
pub(super) async fn run(
    task: &AgentTask<'_>,
    program: AgentProgram,
) -> Result<AgentOutcome, AgentError> {
    let AgentProgram {
        program,
        args,
        env: own,
        network,
        keys,
    } = program;
    let mut env = base_env(task.world.env);
    env.extend(toolchain_env(task.world.env));
    env.retain(|(name, _)| own.iter().all(|(set, _)| set != name));
    env.extend(own);
    let spawn = Spawn {
        args,
        env,
        stdin: Stdin::Bytes(task.packet.as_str().as_bytes().to_vec()),
        limits: Limits {
            stdout: KEPT,
            stderr: KEPT,
            runaway: RUNAWAY,
            resources: Resources {
                disk: Cap::At(task.disk.0),
                file_size: Cap::At(task.disk.0),
                processes: Cap::At(PROCESSES),
                ..Resources::DEFAULT
            },
            ..Limits::new(task.timeout)
        },
        confinement: Confinement::Confined(Profile {
            strength: task.world.strength,
            writable: vec![
                task.workspace.root().to_owned(),
                task.workspace.scratch().to_owned(),
            ],
            masked: Vec::new(),
            read_only: Vec::new(),
            mounts: Vec::new(),
            network,
            calls: SyscallClass::Tools,
            identity: Identity::default(),
        }),
        keep: Keep::Tail,
        redaction: Redaction::Redact,
        ..Spawn::new(&program, task.workspace.root(), Limits::new(task.timeout))
    };
    let completed = task.world.sandbox.run(spawn).await?;
    let name = program
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let end = agent_end(&completed.end, &name, task);
    let mut facts = Map::new();
    facts.extend(ending(&completed.end));
    facts.insert("seconds".to_owned(), json!(completed.duration.as_secs()));
    facts.insert(
        "printed_bytes".to_owned(),
        json!(
            completed
                .stdout
                .total
                .saturating_add(completed.stderr.total)
        ),
    );
    let log = log(&completed.stdout, &completed.stderr, &keys);
    Ok(AgentOutcome {
        end,
        log,
        facts,
        receipt: Some(completed.receipt),
    })
}

/// How a program ended, as a measured value: a number where there is one.
fn ending(end: &End) -> Option<(String, Value)> {
    match serde_json::to_value(end) {
        Ok(Value::Object(map)) => {
            map.into_iter()
                .next()
                .map(|(kind, number)| match kind.as_str() {
                    "exited" => ("exit_code".to_owned(), number),
                    "signalled" => ("signal".to_owned(), number),
                    _ => (kind, number),
                })
        }
        Ok(word) => Some(("ended".to_owned(), word)),
        Err(_) => None,
    }
}

/// What an end amounts to. Pure.
fn agent_end(end: &End, name: &str, task: &AgentTask<'_>) -> AgentEnd {
    let failed =
        |code: Code, what: String, hint: &str| AgentEnd::Failed(Finding::error(code, what, hint));
    match end {
        End::Exited(0) => AgentEnd::Done,
        End::Exited(code) => failed(
            FAILED,
            format!("{name} ended with exit code {code}"),
            "The attempt's log has its output. If that does not explain the failure, run the program by hand.",
        ),
        End::Signalled(signal) => failed(
            FAILED,
            format!("{name} was ended by signal {signal}"),
            "Another process ended it, or the machine had no memory left. Try again.",
        ),
        End::Forbidden => failed(
            FAILED,
            format!(
                "{name} was ended by the kernel for a system call that its sandbox does not allow"
            ),
            "No agent needs such a call. Look at what it did.",
        ),
        End::TimedOut => AgentEnd::TimedOut(Finding::error(
            TIMEOUT,
            format!("{name} was not done after {} s", task.timeout.as_secs()),
            "Give it more time with --timeout, or ask for less.",
        )),
        End::OutputLimit => failed(
            OUTPUT,
            format!(
                "{name} was ended when it had printed more than {} bytes",
                RUNAWAY.0
            ),
            "An agent that does its work says less. Look at the log of the attempt.",
        ),
        End::DiskLimit => failed(
            DISK,
            format!(
                "{name} was ended when it had written more than {} bytes",
                task.disk.0
            ),
            "A skill and its test take some kilobytes. Look at the log of the attempt.",
        ),
    }
}

/// Both streams as one text.
fn log(stdout: &Captured, stderr: &Captured, keys: &[Secret]) -> Vec<u8> {
    let mut log = String::new();
    for (name, stream) in [("standard output", stdout), ("standard error", stderr)] {
        if stream.total == 0 {
            continue;
        }
        log.push_str(&format!("== {name}, {} bytes\n", stream.total));
        if stream.extent == Extent::Cut {
            log.push_str("[the beginning was not kept]\n");
        }
        log.push_str(&stream.text());
        if !log.ends_with('\n') {
            log.push('\n');
        }
    }
    redact_values(&log, keys)
}

/// A text without secrets, and without these.
pub(super) fn redact_values(text: &str, keys: &[Secret]) -> Vec<u8> {
    let text = ProvidedValues::new(keys).out_of_text(text);
    Scanner::builtin()
        .redact(&text)
        .text
        .into_owned()
        .into_bytes()
}

/// A measured value that is not text.
pub(super) fn insert_fact(facts: &mut Map<String, Value>, name: &str, value: Value) {
    facts.insert(name.to_owned(), value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_is_measured_as_a_number() {
        let measured = |end: End| ending(&end).unwrap();
        assert_eq!(measured(End::Exited(3)), ("exit_code".to_owned(), json!(3)));
        assert_eq!(measured(End::Signalled(9)), ("signal".to_owned(), json!(9)));
        assert_eq!(
            measured(End::TimedOut),
            ("ended".to_owned(), json!("timed_out"))
        );
    }
}
