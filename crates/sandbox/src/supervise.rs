//! Watches a started program until nothing is left of it.
//!
//! How it works: reading both outputs, writing the input and talking to the inner stage go on side by side
//! while the program runs, so none can block another. The program ends by itself, or is asked to end
//! (TERM) when its time is over or it prints or writes without end, and is killed after the grace period. Then what
//! it left behind is killed too, and the pipes are read to their end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::process::ChildStdin;
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};

use crucible_host::clock::Stopwatch;

use crate::capture::{Capture, SecretHandling, pump};
use crate::cgroup::Group;
use crate::completed::{Captured, End, HostConnections, Stopped};
use crate::descriptors;
use crate::disk::DiskUsage;
use crate::error::SandboxError;
use crate::forward::Forwarder;
use crate::layers::ResourceLevel;
use crate::plan::{Plan, StageChannel};
use crate::spawn::{Keep, Limits, Redaction, Stdin, Stdout};
use crate::spawner;
use crate::tree;

/// How long strays may take to die after KILL.
const STRAYS: Duration = Duration::from_secs(5);
/// How long the pipes may stay open once everything that could hold them is dead.
const PIPES: Duration = Duration::from_secs(2);
/// The longest report the inner stage may send.
const REPORT: usize = 256 << 10;
/// How much of it is read at once.
const CHUNK: usize = 4 << 10;

/// What was seen of a program.
pub(crate) struct ObservedProgram {
    pub(crate) end: End,
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
    /// What the inner stage said, where there is one.
    pub(crate) report: Vec<u8>,
    /// What the program did with the hosts that it could reach.
    pub(crate) contacts: Vec<HostConnections>,
    /// What bounded its memory and its processes.
    pub(crate) resources: ResourceLevel,
    pub(crate) stopped: Option<Stopped>,
    pub(crate) ran_out_of_memory: bool,
}

/// How a program is watched.
pub(crate) struct Watch {
    pub(crate) limits: Limits,
    pub(crate) stdin: Stdin,
    pub(crate) stdout: Stdout,
    pub(crate) keep: Keep,
    pub(crate) redaction: Redaction,
    /// The directories that it may write to, which are watched.
    pub(crate) writable: Vec<PathBuf>,
    /// The control group that it enters.
    pub(crate) group: Option<Group>,
    /// Ends the program as the end of its time does.
    pub(crate) stop: Arc<Notify>,
}

/// Why the waiting was over.
enum Cause {
    Ended(ExitStatus),
    TimedOut,
    OutputLimit,
    DiskLimit,
}

/// Starts the plan's program and watches it to its end. Dropping the future kills everything at once.
pub(crate) async fn supervise(plan: Plan, watch: Watch) -> Result<ObservedProgram, SandboxError> {
    let Plan {
        command,
        reach,
        placeholders,
        mut conversation,
        program,
        ..
    } = plan;
    let limits = watch.limits;
    let stop = watch.stop;
    let deadline = timeout(limits.wall, stop.notified());
    let disk = DiskUsage::before(watch.writable, limits.resources.disk).await;
    // Goes after the program: who is in it keeps it.
    let group = watch.group;
    let started = spawner::start(command, reach, placeholders).await;
    let mut running = started.map_err(|source| SandboxError::Exec { program, source })?;
    let counted = group.as_ref().filter(|group| group.was_entered());
    let resources = match (counted, &mut conversation) {
        (Some(_), _) => ResourceLevel::Cgroup,
        (None, Some(talk)) => {
            talk.order = std::mem::take(&mut talk.order_without_group);
            ResourceLevel::Rlimit
        }
        (None, None) => ResourceLevel::None,
    };
    let (stdin, stdout, stderr) = running.pipes();

    let (of_out, of_err) = match watch.redaction {
        Redaction::Redact => (SecretHandling::Replaced, SecretHandling::Replaced),
        Redaction::OnlyStderr => (SecretHandling::Kept, SecretHandling::Replaced),
        Redaction::Raw => (SecretHandling::Kept, SecretHandling::Kept),
    };
    let mut out = match watch.stdout {
        Stdout::Memory => Capture::new(watch.keep, limits.stdout, of_out),
        Stdout::File(file) => Capture::in_file(file, limits.stdout),
    };
    let mut err = Capture::new(watch.keep, limits.stderr, of_err);
    let mut report = Vec::new();
    let routes = conversation
        .as_ref()
        .map(|talk| talk.routes.clone())
        .unwrap_or_default();
    let mut forwarder = Forwarder::new(routes);
    let (listening, listeners) = oneshot::channel();
    let runaway = Notify::new();
    let cause;
    let mut stopped = None;
    {
        let mut talk = pin!(async {
            tokio::join!(
                pump(stdout, &mut out, limits.runaway, &runaway),
                pump(stderr, &mut err, limits.runaway, &runaway),
                converse(conversation, &mut report, listening),
            );
        });
        // Goes on no longer than the program, whose input may have no end.
        let mut feeding = pin!(async {
            feed(stdin, watch.stdin).await;
            std::future::pending::<()>().await;
        });
        let mut deadline = pin!(deadline);
        let mut full = pin!(watch_disk(disk, running.root()));
        let mut forwarding = pin!(forwarder.serve(listeners));
        let mut talking = Talking::Yes;
        cause = loop {
            tokio::select! {
                status = running.wait() => break Cause::Ended(status.map_err(supervision("waiting for a process"))?),
                _ = &mut deadline => break Cause::TimedOut,
                () = runaway.notified() => break Cause::OutputLimit,
                () = &mut full => break Cause::DiskLimit,
                () = &mut forwarding => {}
                () = &mut feeding => {}
                () = &mut talk, if talking == Talking::Yes => talking = Talking::No,
            }
        };
        if !matches!(cause, Cause::Ended(_)) {
            running.terminate();
            let since = Stopwatch::start();
            let mut was_killed = false;
            let mut grace = pin!(sleep(limits.grace));
            loop {
                tokio::select! {
                    _ = running.wait() => break,
                    () = &mut grace => {
                        was_killed = true;
                        running.kill();
                        break;
                    }
                    () = &mut forwarding => {}
                    () = &mut feeding => {}
                    () = &mut talk, if talking == Talking::Yes => talking = Talking::No,
                }
            }
            // A killed process that the kernel does not let go must not hold us: it is named below.
            if timeout(STRAYS, running.wait()).await.is_err() {
                return Err(SandboxError::Survivors {
                    pids: vec![running.id()],
                });
            }
            let (grace_ms, ended_after_ms) =
                (milliseconds(limits.grace), milliseconds(since.elapsed()));
            stopped = Some(Stopped {
                grace_ms,
                ended_after_ms,
                was_killed,
            });
        }
        settle().await?;
        if talking == Talking::Yes {
            // Nobody is left to write. If a pipe stays open it was handed to somebody outside our reach,
            // and what has been read until now is the answer.
            let _ = timeout(PIPES, talk).await;
        }
    }
    let contacts = forwarder.end().await;
    running.mark_reaped();
    // What is still in a pipe when its writer ends is read afterwards: whether it was too much must not hang on who was faster.
    let over = [&out, &err]
        .iter()
        .any(|capture| capture.is_over(limits.runaway));
    let end = match cause {
        Cause::Ended(_) if over => End::OutputLimit,
        Cause::Ended(status) => status.code().map_or_else(
            || End::Signalled(status.signal().unwrap_or_default()),
            End::Exited,
        ),
        Cause::TimedOut => End::TimedOut,
        Cause::OutputLimit => End::OutputLimit,
        Cause::DiskLimit => End::DiskLimit,
    };
    let capture_error = supervision("keeping what a program printed");
    let (stdout, stderr) = (
        out.finish().map_err(&capture_error)?,
        err.finish().map_err(&capture_error)?,
    );
    let ran_out_of_memory = counted.is_some_and(Group::ran_out_of_memory);
    Ok(ObservedProgram {
        end,
        stdout,
        stderr,
        report,
        contacts,
        resources,
        stopped,
        ran_out_of_memory,
    })
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns when the program has written more than it may; never where that is not bounded.
async fn watch_disk(disk: Option<DiskUsage>, root: Pid) {
    match disk {
        Some(disk) => disk.exceeded(root).await,
        None => std::future::pending().await,
    }
}

/// Whether the pipes are still in use.
#[derive(PartialEq, Eq)]
enum Talking {
    Yes,
    No,
}

/// Kills strays until the kernel knows of no child at all, or two looks in a row find none; the list of children may
/// miss one that moves while it is read.
async fn settle() -> Result<(), SandboxError> {
    if tree::is_childless() {
        return Ok(());
    }
    let mut quiet = 0;
    let mut last: Vec<Pid> = Vec::new();
    let finished = timeout(STRAYS, async {
        while quiet < 2 {
            last = tree::sweep();
            if last.is_empty() {
                quiet += 1;
            } else {
                quiet = 0;
                sleep(Duration::from_millis(1)).await;
            }
        }
    })
    .await;
    match finished {
        Ok(()) => Ok(()),
        Err(_) => Err(SandboxError::Survivors {
            pids: last.iter().map(|pid| pid.as_raw_nonzero().get()).collect(),
        }),
    }
}

/// Writes the whole input and closes it. A child that does not want it all is no error.
async fn feed(pipe: Option<ChildStdin>, input: Stdin) {
    let Some(mut pipe) = pipe else { return };
    let _ = match input {
        Stdin::Empty | Stdin::Terminal(_) => Ok(()),
        Stdin::Bytes(bytes) => pipe.write_all(&bytes).await,
        Stdin::Stream(source) => {
            let mut source = source.0.lock().await;
            tokio::io::copy(&mut *source, &mut pipe).await.map(drop)
        }
    };
    let _ = pipe.shutdown().await;
}

/// Sends the order to the inner stage and reads its report until it closes the socket.
async fn converse(
    conversation: Option<StageChannel>,
    report: &mut Vec<u8>,
    listening: oneshot::Sender<Vec<OwnedFd>>,
) {
    let Some(StageChannel {
        socket,
        order,
        routes,
        ..
    }) = conversation
    else {
        return;
    };
    // A failure shows as a report that is missing, which the caller treats as a failed set-up.
    let Ok(mut socket) = UnixStream::from_std(socket) else {
        return;
    };
    if socket.write_all(&order).await.is_err() || socket.shutdown().await.is_err() {
        return;
    }
    let mut listening = Some(listening);
    let mut listeners = Vec::new();
    let mut chunk = [0; CHUNK];
    while report.len() < REPORT {
        let read = socket
            .async_io(Interest::READABLE, || {
                descriptors::receive(&socket, &mut chunk, &mut listeners)
            })
            .await;
        let Ok(length @ 1..) = read else { return };
        report.extend(chunk.get(..length).unwrap_or_default());
        if listeners.len() == routes.len()
            && let Some(listening) = listening.take()
        {
            // An error means that the run is over.
            let _ = listening.send(std::mem::take(&mut listeners));
        }
    }
}

fn supervision(action: &'static str) -> impl Fn(io::Error) -> SandboxError {
    move |source| SandboxError::Supervision { action, source }
}
