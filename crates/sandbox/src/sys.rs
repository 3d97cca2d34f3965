//! The few steps that Rust has no safe words for, each with its reason, and the one place that makes a command.
//!
//! What always holds: code that runs between `fork` and `exec` makes system calls and nothing else: no
//! allocation, no lock, no panic. Every `unsafe` of the crate is in this file.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal};

/// The first descriptor that no child is given.
const FIRST_PRIVATE: RawFd = 3;
/// How far descriptors are marked one by one on kernels without `close_range`.
const HIGHEST_MARKED: RawFd = 65_536;

/// A command for `program`, with nothing decided yet.
#[expect(clippy::disallowed_methods, reason = "this is the one place that makes processes")]
pub(crate) fn command(program: &OsStr) -> Command {
    Command::new(program)
}

/// What a child does between its birth and its program.
pub(crate) struct ChildSettings {
    /// The directory it enters.
    pub(crate) cwd: OwnedFd,
    /// The one descriptor above 2 that it keeps: the socket of the inner stage.
    pub(crate) keep: Option<OwnedFd>,
    /// What it is sent when this process dies.
    pub(crate) on_orphaned: Signal,
}

/// Makes the child of `command` a session and group of its own and the guardian of its own orphans, lets
/// it die with this process, closes what it must not hold, and puts it into its directory.
#[expect(unsafe_code, reason = "pre_exec is the only way to act in the child before its program")]
pub(crate) fn prepare_child(command: &mut Command, settings: ChildSettings) {
    let supervisor = rustix::process::getpid();
    // SAFETY: the closure only makes system calls on values that it owns and that were made before the
    // fork. It allocates nothing, takes no lock, and its errors are plain numbers.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            rustix::process::set_parent_process_death_signal(Some(settings.on_orphaned))?;
            if rustix::process::getppid() != Some(supervisor) {
                return Err(Errno::SRCH.into());
            }
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
            mark_private_descriptors()?;
            if let Some(keep) = &settings.keep {
                fcntl_setfd(keep, FdFlags::empty())?;
            }
            rustix::process::fchdir(&settings.cwd)?;
            Ok(())
        });
    }
}

/// Marks every descriptor above 2 to be closed when the next program starts. Safe to call between `fork`
/// and `exec`.
#[expect(unsafe_code, reason = "close_range has no safe wrapper")]
pub(crate) fn mark_private_descriptors() -> io::Result<()> {
    // SAFETY: with CLOEXEC no descriptor is closed now, so none that somebody owns goes stale.
    let marked = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST_PRIVATE as libc::c_uint,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if marked == 0 {
        return Ok(());
    }
    // Before Linux 5.11, or under a filter that does not know the call.
    for descriptor in FIRST_PRIVATE..HIGHEST_MARKED {
        // SAFETY: setting a flag on a number; an unused number is an error that does not matter here.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

/// Takes over a descriptor that this process was started with.
#[expect(unsafe_code, reason = "an inherited descriptor is only known by its number")]
pub(crate) fn adopt_descriptor(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl only asks whether the number is open.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    // A descriptor that this process opened itself has close-on-exec set, as Rust always does; an
    // inherited one has not. So a wrong number can never take a descriptor from its owner.
    if number < FIRST_PRIVATE || flags < 0 || flags & libc::FD_CLOEXEC != 0 {
        return Err(Errno::BADF.into());
    }
    // SAFETY: the number is open, was inherited, and nobody else in this process knows it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
    Ok(descriptor)
}

/// A process id as the kernel spells it.
pub(crate) fn pid(raw: i32) -> Option<Pid> {
    Pid::from_raw(raw)
}
