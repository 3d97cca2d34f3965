//! As many calls at once as a council makes, to a model that takes 200 ms for each.
//!
//! The calls are made by a process of its own, which does nothing else, so that its memory is what asking takes; the
//! server lives in this process. The clients ask twice: first without a connection, then over the pool that the
//! first time left behind. What opening as many bare connections takes is measured apart.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, io};

use crucible_llm::{CallBudget, LlmInvocation, ModelClient, Recording};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::asking::{AMPLE, Asking, question};
use super::bench::{Bench, Context, unmeasured};
use super::measure::{Case, Goal, Pair, median};
use super::model_server::ModelServer;
use super::tree::scratch;
use crate::error::TaskError;

const NAME: &str = "council";

/// How many calls are in flight at once.
const CALLS: usize = 64;

/// How long the model thinks.
const LATENCY: Duration = Duration::from_millis(200);

/// The most times that one call takes.
const LIMIT: f64 = 1.1;

/// The most memory that the process of the calls has resident at any moment, in bytes.
const MEMORY: u64 = 40_000_000;

/// How long the questions are: one about a finding, and one with a context pack.
const QUESTIONS: [usize; 2] = [4_000, 100_000];

/// The bench of many calls at once.
pub(super) struct Council;

impl Bench for Council {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let server =
            ModelServer::start(LATENCY).map_err(TaskError::io("start", "the model's server"))?;
        let folder = scratch()?;
        let mut cases = Vec::new();
        for bytes in QUESTIONS {
            let text = folder.path().join(format!("{bytes}.txt"));
            let content = context.trees()?.branched.text(bytes)?;
            fs::write(&text, content).map_err(TaskError::io("write", &text))?;
            let mut rounds = Vec::new();
            for _ in 0..context.rounds {
                rounds.push(Round::run(&server, &text)?);
            }
            cases.extend(cases_of(bytes, &rounds));
        }
        Ok(cases)
    }
}

fn cases_of(bytes: usize, rounds: &[Round]) -> [Case; 3] {
    let times = |of: fn(&Waves) -> u64| -> Vec<Duration> {
        rounds
            .iter()
            .map(|round| Duration::from_micros(of(&round.waves)))
            .collect()
    };
    let alone = times(|waves| waves.alone_us);
    let connections = rounds
        .iter()
        .map(|round| round.connections)
        .max()
        .unwrap_or_default();
    let peak = rounds
        .iter()
        .map(|round| round.peak)
        .max()
        .unwrap_or_default();
    let case = |what: &str, own_durations: Vec<Duration>, goal: Goal| Case {
        bench: NAME,
        ours: format!("{CALLS} calls of {} kB at once, {what}", bytes / 1000),
        beside: "one by the HTTP client".to_owned(),
        pair: Pair {
            ours: own_durations,
            beside: alone.clone(),
        },
        goal,
    };
    let duration = median(&times(|waves| waves.connect_us));
    let (cold, warm) = (times(|waves| waves.cold_us), times(|waves| waves.warm_us));
    [
        case(
            "no connection yet",
            cold.clone(),
            Goal::TimesAtMostBeyond {
                times: LIMIT,
                apart: duration,
            },
        ),
        case(
            &format!("again; {connections} connections in all"),
            warm,
            Goal::TimesAtMost(LIMIT),
        ),
        case(
            "its peak of memory",
            cold,
            Goal::MemoryAtMost { peak, most: MEMORY },
        ),
    ]
}

/// What one process of calls measured.
#[derive(Debug, Serialize, Deserialize)]
struct Waves {
    /// Opening as many bare connections at once.
    connect_us: u64,
    /// All calls at once, in a process that has no connection.
    cold_us: u64,
    /// All calls at once, once more.
    warm_us: u64,
    /// One exchange of about as many bytes by the HTTP client, over a connection that stands.
    alone_us: u64,
}

/// What one process of calls took.
struct Round {
    waves: Waves,
    /// The most bytes it had resident.
    peak: u64,
    /// On how many connections it asked.
    connections: usize,
}

impl Round {
    fn run(server: &ModelServer, text: &Path) -> Result<Self, TaskError> {
        let before = server.connections();
        let program = env::current_exe().map_err(TaskError::io("find", "this program"))?;
        let mut command = Command::new(program);
        command
            .args([
                "bench",
                "--ask-at-once",
                &server.address().to_string(),
                "--about",
            ])
            .arg(text);
        let (line, peak) = peak_of(command)?;
        Ok(Self {
            waves: serde_json::from_str(&line)?,
            peak,
            connections: server.connections() - before,
        })
    }
}

fn first_line(from: ChildStdout) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(from).read_line(&mut line)?;
    Ok(line)
}

/// Starts a process with its input and output in our hands, and gives back the first line that it says and the most bytes that
/// it has had resident by then. It has to wait until its input ends, so that it can still be looked at.
pub(super) fn peak_of(mut command: Command) -> Result<(String, u64), TaskError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let spawned = command.spawn();
    let mut child = spawned.map_err(|source| TaskError::Spawn {
        command: format!("{command:?}"),
        source,
    })?;
    let stdout = child
        .stdout
        .take()
        .map_or(Err(io::ErrorKind::BrokenPipe.into()), first_line);
    let peak = stdout.and_then(|line| {
        let status = fs::read_to_string(PathBuf::from(format!("/proc/{}/status", child.id())))?;
        Ok((line, peak_in(&status)?))
    });
    drop(child.stdin.take());
    let status = child
        .wait()
        .map_err(TaskError::io("wait for", "the process that measures"))?;
    if !status.success() {
        return Err(TaskError::Failed {
            command: format!("{command:?}"),
            status,
        });
    }
    peak.map_err(TaskError::io("read", "what a process measured"))
}

/// The most that a process had resident, in bytes, as its status tells.
pub(super) fn peak_in(status: &str) -> io::Result<u64> {
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let kilobytes = kilobytes.ok_or(io::ErrorKind::Unsupported)?;
    kilobytes
        .parse()
        .map(|kilobytes: u64| kilobytes * 1024)
        .map_err(io::Error::other)
}

/// The process of the calls: asks, says what it measured, and waits for the end of its input.
pub(super) fn ask_at_once(address: &str, text: &Path) -> Result<(), TaskError> {
    let address = address.parse().map_err(unmeasured(NAME))?;
    let asking = Asking::new(NAME, address)?;
    let client = Arc::new(asking.client(Recording::Off, CallBudget::new(AMPLE))?);
    let text = fs::read_to_string(text).map_err(TaskError::io("read", text))?;
    let waves = asking.runtime.block_on(async {
        let connect_us = connect(address)
            .await
            .map_err(TaskError::io("reach", "the model's server"))?;
        let cold_us = wave(&client, &text).await?;
        let warm_us = wave(&client, &text).await?;
        let alone_us = alone(&asking, &text).await?;
        Ok::<_, TaskError>(Waves {
            connect_us,
            cold_us,
            warm_us,
            alone_us,
        })
    })?;
    let line = serde_json::to_string(&waves)?;
    let mut out = io::stdout();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(TaskError::io("write", "standard output"))?;
    io::copy(&mut io::stdin(), &mut io::sink()).map_err(TaskError::io("read", "standard input"))?;
    Ok(())
}

async fn connect(address: std::net::SocketAddr) -> io::Result<u64> {
    let start = Instant::now();
    let mut opened = JoinSet::new();
    for _ in 0..CALLS {
        opened.spawn(TcpStream::connect(address));
    }
    for stream in opened.join_all().await {
        stream?;
    }
    Ok(micros(start))
}

/// The time in which all calls are answered that are made at once. The questions are made before it starts.
async fn wave(client: &Arc<ModelClient>, text: &str) -> Result<u64, TaskError> {
    let questions: Vec<LlmInvocation> = (0..CALLS).map(|_| question(text)).collect();
    let start = Instant::now();
    let mut calls = JoinSet::new();
    for question in questions {
        let client = Arc::clone(client);
        calls.spawn(async move { client.call(question).await.map(|_| ()) });
    }
    for answered in calls.join_all().await {
        answered.map_err(unmeasured(NAME))?;
    }
    Ok(micros(start))
}

async fn alone(asking: &Asking, text: &str) -> Result<u64, TaskError> {
    let request = asking.request(text.as_bytes().to_vec());
    let start = Instant::now();
    asking
        .http()
        .send(request)
        .await
        .map_err(unmeasured(NAME))?;
    Ok(micros(start))
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_memory_is_parsed_from_process_status() {
        assert_eq!(
            peak_in("Name:\tx\nVmHWM:\t   12345 kB\nVmRSS:\t 1 kB\n").unwrap(),
            12345 * 1024
        );
        assert!(peak_in("Name:\tx\n").is_err());
    }

    #[test]
    fn both_waves_wait_once_and_share_connections() {
        let server = ModelServer::start(Duration::from_millis(50)).unwrap();
        let asking = Asking::new(NAME, server.address()).unwrap();
        let client = Arc::new(
            asking
                .client(Recording::Off, CallBudget::new(AMPLE))
                .unwrap(),
        );
        let (first, second) = asking.runtime.block_on(async {
            (
                wave(&client, "fn main() {}\n").await.unwrap(),
                wave(&client, "fn main() {}\n").await.unwrap(),
            )
        });
        // One after the other they would take 3.2 seconds each at the very least.
        assert!(
            first.min(second) >= 50_000 && first.max(second) < 50_000 * CALLS as u64,
            "{first} {second}"
        );
        assert!(server.connections() < 2 * CALLS, "{}", server.connections());
    }
}
