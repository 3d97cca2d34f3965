//! Starts programs, all from one thread that lives as long as this process.
//!
//! Why one thread: a child asks the kernel for a signal when its parent dies, and by "parent" the kernel
//! means the thread that started it. A worker of the asynchronous runtime may end long before the process
//! does, and would take the child with it.
//!
//! What always holds: a started program is owned by a [`Running`]; when that is dropped before the program
//! has been waited for, the program and everything below it is killed at once.

use std::io;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use crate::masks::Placeholders;
use crate::sys;
use crate::tree::{self, RunningPrograms};

/// How often a program file that is still being written is tried again.
const BUSY_TRIES: u32 = 20;
/// Time between two such tries.
const BUSY_PAUSE: Duration = Duration::from_millis(5);
/// How often strays are looked for after a program lost its owner, 2 ms apart.
const SWEEPS: u32 = 1000;

type Job = Box<dyn FnOnce() + Send>;

/// Who gets the signals of a graceful end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalTarget {
    /// The program itself, with its group.
    Group,
    /// What is below the program: it is a launcher that would not pass the signal on.
    Below,
}

/// A started program.
pub(crate) struct Running {
    child: Child,
    pid: Pid,
    reach: SignalTarget,
    state: State,
    /// Dropped last: placeholders must exist as long as a process can see them.
    _placeholders: Placeholders,
}

#[derive(PartialEq, Eq)]
enum State {
    Running,
    WaitedFor,
    Settled,
}

/// Starts `command`, which must already hold its settings for the child.
pub(crate) async fn start(
    command: Command,
    reach: SignalTarget,
    placeholders: Placeholders,
) -> io::Result<Running> {
    let (answer, receiver) = oneshot::channel();
    let runtime = Handle::current();
    let job: Job = Box::new(move || {
        let _entered = runtime.enter();
        // When nobody waits for the answer any more, it is dropped here, and the program ends with it.
        let _ = answer.send(start_here(command, reach, placeholders));
    });
    let thread_ended = || io::Error::other("the thread that starts programs has ended");
    starter()?.send(job).map_err(|_| thread_ended())?;
    receiver.await.map_err(|_| thread_ended())?
}

/// Starts `command` as a process that nobody owns: it goes on when this process ends. Tells when it has ended.
pub(crate) async fn start_in_background(command: Command) -> io::Result<watch::Receiver<bool>> {
    let (answer, receiver) = oneshot::channel();
    let runtime = Handle::current();
    let job: Job = Box::new(move || {
        let _entered = runtime.enter();
        // When nobody waits for the answer any more, the process goes on all the same.
        let _ = answer.send(background_here(command));
    });
    let thread_ended = || io::Error::other("the thread that starts programs has ended");
    starter()?.send(job).map_err(|_| thread_ended())?;
    receiver.await.map_err(|_| thread_ended())?
}

fn background_here(command: Command) -> io::Result<watch::Receiver<bool>> {
    let mut command = tokio::process::Command::from(command);
    let mut register = RunningPrograms::lock();
    let mut child = command.spawn()?;
    let raw = child.id().and_then(|id| i32::try_from(id).ok());
    let pid = raw
        .and_then(sys::pid)
        .ok_or_else(|| io::Error::other("the child has no id"))?;
    register.add(pid);
    drop(register);
    let (sender, has_ended) = watch::channel(false);
    tokio::spawn(async move {
        // An error means that somebody else has waited for it.
        let _ = child.wait().await;
        RunningPrograms::lock().remove(pid);
        sender.send_replace(true);
    });
    Ok(has_ended)
}

fn start_here(
    command: Command,
    reach: SignalTarget,
    placeholders: Placeholders,
) -> io::Result<Running> {
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true);
    let mut tries = 0;
    loop {
        let mut register = RunningPrograms::lock();
        match command.spawn() {
            Ok(child) => {
                let raw = child.id().and_then(|id| i32::try_from(id).ok());
                let pid = raw
                    .and_then(sys::pid)
                    .ok_or_else(|| io::Error::other("the child has no id"))?;
                register.add(pid);
                return Ok(Running {
                    child,
                    pid,
                    reach,
                    state: State::Running,
                    _placeholders: placeholders,
                });
            }
            // Another thread's child may hold the file open for writing between its fork and its exec.
            Err(error)
                if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES =>
            {
                drop(register);
                tries += 1;
                std::thread::sleep(BUSY_PAUSE);
            }
            Err(error) => {
                // A runtime that is shut down meanwhile refuses the pipes of a program that has started already.
                drop(register);
                end_strays();
                return Err(error);
            }
        }
    }
}

/// Kills what has no owner any more, and looks for more until nothing is left, without keeping the caller.
fn end_strays() {
    if tree::is_childless() {
        return;
    }
    tree::sweep();
    let job: Job = Box::new(|| {
        // As in `settle`: one look may miss a process that moves.
        let mut quiet = 0;
        for _ in 0..SWEEPS {
            quiet = if tree::sweep().is_empty() {
                quiet + 1
            } else {
                0
            };
            if quiet == 2 || tree::is_childless() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    if let Ok(starter) = starter() {
        let _ = starter.send(job);
    }
}

/// The thread's inbox; the first call starts it and makes this process the guardian of orphans.
fn starter() -> io::Result<&'static Sender<Job>> {
    static STARTER: OnceLock<Sender<Job>> = OnceLock::new();
    if let Some(sender) = STARTER.get() {
        return Ok(sender);
    }
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let (sender, jobs): (Sender<Job>, Receiver<Job>) = channel();
    std::thread::Builder::new()
        .name("starter".to_owned())
        .spawn(move || {
            for job in jobs {
                job();
            }
        })?;
    // Of two first callers one loses; its thread ends as its sender is dropped.
    Ok(STARTER.get_or_init(|| sender))
}

impl Running {
    /// The three ends of its pipes, where they are pipes. Each can be taken once.
    pub(crate) fn pipes(
        &mut self,
    ) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (
            self.child.stdin.take(),
            self.child.stdout.take(),
            self.child.stderr.take(),
        )
    }

    /// Waits until the program itself has ended. Can be dropped and called again.
    pub(crate) async fn wait(&mut self) -> io::Result<std::process::ExitStatus> {
        let status = self.child.wait().await?;
        if self.state == State::Running {
            self.state = State::WaitedFor;
            RunningPrograms::lock().remove(self.pid);
        }
        Ok(status)
    }

    /// The program itself.
    pub(crate) fn root(&self) -> Pid {
        self.pid
    }

    /// The program's process id.
    pub(crate) fn id(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Asks the program to end.
    pub(crate) fn terminate(&self) {
        if self.state != State::Running {
            return;
        }
        match self.reach {
            // An error means that nobody is left in the group.
            SignalTarget::Group => drop(kill_process_group(self.pid, Signal::TERM)),
            SignalTarget::Below => tree::terminate_descendants(self.pid),
        }
    }

    /// Ends the program and everything below it.
    pub(crate) fn kill(&self) {
        if self.state == State::Running {
            tree::kill_tree(self.pid);
        }
    }

    /// Says that the program has been waited for and nothing is left of it.
    pub(crate) fn mark_reaped(mut self) {
        self.state = State::Settled;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.state == State::Settled {
            return;
        }
        if self.state == State::Running {
            tree::kill_tree(self.pid);
            RunningPrograms::lock().remove(self.pid);
        }
        end_strays();
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "what is started is what is tested"
    )]
    fn program_that_a_gone_runtime_refuses_is_ended() {
        starter().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let handle = runtime.handle().clone();
        drop(runtime);
        let _entered = handle.enter();
        let mut command = Command::new("sleep");
        command.arg("3600").stdout(std::process::Stdio::piped());
        let cwd = OwnedFd::from(std::fs::File::open("/").unwrap());
        let settings = sys::ChildSettings {
            on_orphaned: Signal::KILL,
            keep: Vec::new(),
            cwd,
            doors: crate::cgroup::CgroupEntries::default(),
            terminal: crate::terminal_end::Terminal::None,
        };
        sys::prepare_child(&mut command, settings);
        assert!(start_here(command, SignalTarget::Group, Placeholders::default()).is_err());
        let is_gone = (0..4_000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            tree::is_childless()
        });
        assert!(is_gone, "the program outlives its start");
    }
}
