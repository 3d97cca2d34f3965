//! Which processes descend from which, read from `/proc`, and how whole trees are ended.
//!
//! How it works: this process and each program it starts are "child subreapers": a process whose parent
//! dies goes to the nearest one above it. While a program runs, everything it started is below it, however
//! often it forked or opened a new session. When it ends, what it left behind becomes our own child. We
//! start every program in a session of its own, so a child of ours in another session than ours that is
//! not on the list of running programs is such a stray, and it can be distinguished from children that some other
//! part of this process started.
//!
//! What always holds: a program is put on the list under the same lock under which strays are looked for,
//! so no program is taken for a stray.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crucible_host::process::ProcessStat;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, waitid,
    waitpid,
};

use crate::sys;

/// Rounds of looking for new descendants before the root of a tree is ended regardless.
const ROUNDS: u32 = 40;
/// Time between two rounds, for the kernel to end what was killed.
const ROUND: Duration = Duration::from_micros(250);

/// The programs that are running.
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// The list of running programs, locked.
pub(crate) struct RunningPrograms(MutexGuard<'static, BTreeSet<i32>>);

impl RunningPrograms {
    /// Locks the list.
    pub(crate) fn lock() -> Self {
        Self(RUNNING.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a program on the list.
    pub(crate) fn add(&mut self, pid: Pid) {
        self.0.insert(pid.as_raw_nonzero().get());
    }

    /// Takes a program off the list, once it has been waited for or given up.
    pub(crate) fn remove(&mut self, pid: Pid) {
        self.0.remove(&pid.as_raw_nonzero().get());
    }
}

/// Ends everything below `root`, then `root`. It is stopped first, so that it cannot start anything new
/// meanwhile; a descendant whose parent dies stays below it, so none is lost from sight.
pub(crate) fn kill_tree(root: Pid) {
    // Errors mean that a process has gone already, which is what we want.
    let _ = kill_process(root, Signal::STOP);
    for _ in 0..ROUNDS {
        let living = living_descendants(root);
        if living.is_empty() {
            break;
        }
        for pid in living {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(ROUND);
    }
    // A program that was stopped in the middle of a fork has a child by now that no look has found. The kernel sends the signal to
    // the whole group or lets no such fork succeed.
    let _ = kill_process_group(root, Signal::KILL);
    let _ = kill_process(root, Signal::KILL);
}

/// Sends TERM to every process below `root`, not to `root` itself.
pub(crate) fn terminate_descendants(root: Pid) {
    for pid in living_descendants(root) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Whether this process has no child at all, running or dead. The kernel knows it for certain, while the lists in
/// `/proc` may miss one that moves.
pub(crate) fn is_childless() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, look), Err(Errno::CHILD))
}

/// Kills the strays of programs that have ended and reaps those that are dead. Returns who is left.
pub(crate) fn sweep() -> Vec<Pid> {
    let register = RunningPrograms::lock();
    let myself = rustix::process::getpid();
    let mut found = children(myself);
    found.retain(|child| !register.0.contains(&child.as_raw_nonzero().get()));
    if found.is_empty() {
        return Vec::new();
    }
    // Read from `/proc` as the others' sessions are: in a container whose init stands outside of its process
    // namespace our session has no number there, and zero is what `/proc` says of us and of our own children.
    let Some(ProcessStat { session, .. }) = stat(myself) else {
        return Vec::new();
    };
    let mut left = Vec::new();
    for child in found {
        let Some(stat) = stat(child) else { continue };
        if stat.session == session {
            continue;
        }
        if stat.has_ended() {
            let _ = waitpid(Some(child), WaitOptions::NOHANG);
        } else {
            for below in living_descendants(child) {
                let _ = kill_process(below, Signal::KILL);
            }
            let _ = kill_process(child, Signal::KILL);
        }
        left.push(child);
    }
    left
}

/// `root` and every process below it that is not dead yet.
pub(crate) fn live_processes(root: Pid) -> Vec<Pid> {
    let mut all = living_descendants(root);
    all.push(root);
    all
}

/// Every process below `root` that is not dead yet, parents before their children.
fn living_descendants(root: Pid) -> Vec<Pid> {
    let mut found = children(root);
    let mut seen: BTreeSet<i32> = found.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        for child in children(pid) {
            if seen.insert(child.as_raw_nonzero().get()) {
                found.push(child);
            }
        }
    }
    found.retain(|pid| stat(*pid).is_some_and(|stat| !stat.has_ended()));
    found
}

/// The children of a process, whichever of its threads they hang on.
fn children(parent: Pid) -> Vec<Pid> {
    let raw = parent.as_raw_nonzero();
    let Ok(threads) = std::fs::read_dir(format!("/proc/{raw}/task")) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut listed = ChildListing::No;
    for thread in threads.flatten() {
        if let Ok(text) = std::fs::read_to_string(thread.path().join("children")) {
            listed = ChildListing::Yes;
            found.extend(
                text.split_ascii_whitespace()
                    .filter_map(|pid| sys::pid(pid.parse().ok()?)),
            );
        }
    }
    match listed {
        ChildListing::Yes => found,
        ChildListing::No => children_by_search(raw.get()),
    }
}

/// Whether the kernel lists children by parent.
enum ChildListing {
    Yes,
    No,
}

/// The children of a process on a kernel that does not list them: every process is asked for its parent.
fn children_by_search(parent: i32) -> Vec<Pid> {
    all_processes()
        .filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == parent))
        .collect()
}

/// Every process that the system lists.
pub(crate) fn all_processes() -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| sys::pid(entry.file_name().to_str()?.parse().ok()?))
}

fn stat(pid: Pid) -> Option<ProcessStat> {
    ProcessStat::read(pid.as_raw_nonzero().get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_child_searches_agree_on_this_process() {
        // Our own child and not ourselves: as the first process of a container we have no parent.
        let mut child = sys::command("sleep".as_ref()).arg("30").spawn().unwrap();
        let pid = sys::pid(i32::try_from(child.id()).unwrap()).unwrap();
        let me = rustix::process::getpid();
        let found = [children(me), children_by_search(me.as_raw_nonzero().get())];
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            found.iter().all(|children| children.contains(&pid)),
            "{pid:?} is not in {found:?}"
        );
    }
}
