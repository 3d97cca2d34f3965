//! Ends the programs of a Crucible that was killed and could not end them itself.
//!
//! How it works: a guard process reads a pipe whose only writer is this process, so the end of file is the end of this
//! process, however it came. Every program is started with a mark that its descendants inherit: a hard limit of file
//! locks, which Linux ignores and which nobody without privileges can raise. The guard ends the processes that have
//! the mark, wherever they went: an orphan, another session, or a bubblewrap whose parent died before it let it begin.
//!
//! What always holds: a program has its mark before it checks that this process lives, so the guard misses none. The
//! guard is no child of this process, has no mark of its own, and ends within [`GRACE`] and [`KILLING`].

use std::collections::BTreeSet;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::unix::process::CommandExt;
use std::process::{ExitCode, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use crucible_host::clock::Stopwatch;
use crucible_host::process::ProcessStat;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getrlimit, kill_process, set_child_subreaper, setrlimit,
};

use crate::spawn::Launcher;
use crate::{sys, tree};

/// The argument of the inner stage's program that makes it the guard.
pub(crate) const WORD: &str = "guard";
/// Its name in process lists, so that a `killall crucible` does not end it.
const NAME: &str = "sandbox-guard";
/// Time between TERM and KILL for trusted programs.
const GRACE: Duration = Duration::from_secs(5);
/// How long processes may take to die after KILL.
const KILLING: Duration = Duration::from_secs(5);
/// Time between two looks while something lives.
const PAUSE: Duration = Duration::from_millis(5);
/// The line of a process's limits that has the mark.
const LIMIT: &str = "Max file locks";

/// The mark of this process's programs, and the pipe that ends with this process; nothing where there is no guard.
static GUARD: OnceLock<Option<(Mark, PipeWriter)>> = OnceLock::new();

/// A hard limit of file locks. It is even for programs that are killed, and one more for those that get TERM first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark(u64);

impl Mark {
    /// Chooses a mark below the limit of this process, which may itself have the mark of another.
    fn random() -> io::Result<Self> {
        let most = getrlimit(Resource::Locks).maximum.unwrap_or(u64::MAX);
        // A part of the numbers is left for marks below marks.
        let range = most >> 16;
        if range <= u64::from(u32::MAX) {
            return Err(io::Error::other("too few marks are left"));
        }
        let token = crucible_host::random::token().map_err(io::Error::other)?;
        let number = u128::from_str_radix(&token, 16).map_err(io::Error::other)?;
        let number = u64::try_from(number % u128::from(range)).map_err(io::Error::other)?;
        Ok(Self((most - 2 - number) & !1))
    }

    fn limit(self, on_orphaned: Signal) -> u64 {
        self.0 | u64::from(on_orphaned == Signal::TERM)
    }

    /// The live processes that have this mark, with the signal that each gets first.
    fn processes(self) -> Vec<(Pid, ProcessStat, Signal)> {
        let marked = tree::all_processes().filter_map(|pid| {
            let limit = limit_of(pid)?;
            let signals = [Signal::TERM, Signal::KILL];
            let signal = signals.into_iter().find(|s| self.limit(*s) == limit)?;
            let stat = ProcessStat::read(pid.as_raw_nonzero().get())?;
            (!stat.has_ended()).then_some((pid, stat, signal))
        });
        marked.collect()
    }
}

/// The hard limit of a process, if it has one.
fn limit_of(process: Pid) -> Option<u64> {
    let path = format!("/proc/{}/limits", process.as_raw_nonzero());
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(LIMIT))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Starts the guard of this process, unless the first call has decided. Without a guard, the kernel's signal to the
/// programs themselves remains. Must come before the first program, while nothing can be taken for a stray.
pub(crate) fn start(launcher: Option<&Launcher>) {
    GUARD.get_or_init(|| start_guard(launcher?).ok());
}

fn start_guard(launcher: &Launcher) -> io::Result<(Mark, PipeWriter)> {
    if rustix::process::getpid().is_init() {
        return Err(io::Error::other("everything ends with the first process"));
    }
    let mark = Mark::random()?;
    // The guard becomes an orphan, which must not come back to us.
    set_child_subreaper(None)?;
    let (reader, writer) = io::pipe()?;
    let mut command = sys::command(launcher.program.as_os_str());
    command
        .arg0(NAME)
        .args(&launcher.args)
        .args([WORD, &mark.0.to_string()])
        .env_clear()
        .stdin(reader)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    sys::prepare_background(&mut command, File::open("/")?.into());
    match command.status()?.success() {
        true => Ok((mark, writer)),
        false => Err(io::Error::other("the guard was not started")),
    }
}

/// The limit that a program gets before it starts.
pub(crate) fn mark(on_orphaned: Signal) -> Option<Rlimit> {
    let (mark, _) = GUARD.get()?.as_ref()?;
    let limit = Some(mark.limit(on_orphaned));
    Some(Rlimit {
        current: limit,
        maximum: limit,
    })
}

/// Runs the guard: `args` has the mark, and standard input ends with the process that is guarded.
pub(crate) fn run(args: &[OsString]) -> io::Result<ExitCode> {
    let mark = args.first().and_then(|word| word.to_str()?.parse().ok());
    let mark = Mark(mark.ok_or(io::ErrorKind::InvalidInput)?);
    // The guard of a process that started us ends our programs only if we live.
    let none = Some(0);
    setrlimit(
        Resource::Locks,
        Rlimit {
            current: none,
            maximum: none,
        },
    )?;
    sys::leave_parent()?;
    rustix::thread::set_name(&CString::new(NAME)?)?;
    // An error is an end, too.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    end_processes(mark);
    Ok(ExitCode::SUCCESS)
}

/// Ends every process with the mark: until two looks in a row find none, for one may miss a process that moves.
fn end_processes(mark: Mark) {
    let watch = Stopwatch::start();
    let mut quiet = 0;
    let mut terminated = BTreeSet::new();
    while quiet < 2 && watch.elapsed() < GRACE + KILLING {
        let found = mark.processes();
        quiet = if found.is_empty() { quiet + 1 } else { 0 };
        let numbers: BTreeSet<i32> = found.iter().map(|(pid, ..)| pid.as_raw_pid()).collect();
        let is_first = terminated.is_empty();
        for (pid, stat, first) in found {
            let signal = match first {
                Signal::TERM if watch.elapsed() < GRACE => {
                    // A program that got it may start others to clean up: they are spared as long as it lives.
                    let is_spared = !is_first && numbers.contains(&stat.parent);
                    if is_spared || !terminated.insert((pid.as_raw_pid(), stat.started)) {
                        continue;
                    }
                    Signal::TERM
                }
                _ => Signal::KILL,
            };
            // An error means that it has ended.
            let _ = kill_process(pid, signal);
        }
        if quiet == 0 {
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_differ_and_fit_below_the_limit() {
        let marks = [Mark::random().unwrap(), Mark::random().unwrap()];
        assert_ne!(marks[0], marks[1]);
        for mark in marks {
            let (killed, asked) = (mark.limit(Signal::KILL), mark.limit(Signal::TERM));
            assert_eq!(asked, killed + 1);
            assert!(asked < u64::MAX);
        }
    }
}
