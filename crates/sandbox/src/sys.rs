//! The `unsafe` code of this crate, each block with its reason, and the one function that creates a command.
//!
//! Invariants: code that runs between `fork` and `exec` only makes system calls, and does not allocate, lock or
//! panic. All `unsafe` code of the crate is in this file.

use std::ffi::{CString, OsStr, OsString, c_char};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::process::{Pid, Resource, Signal, setrlimit};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use tokio::io::unix::AsyncFd;

use crate::cgroup::CgroupEntries;
use crate::guard;
use crate::terminal_end::{Terminal, TerminalSize};

/// The first descriptor that no child inherits.
const FIRST_PRIVATE: RawFd = 3;
/// The end of the descriptors that are marked one by one on kernels without `close_range`.
const HIGHEST_MARKED: RawFd = 65_536;

/// Creates a command for `program` without arguments.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that makes processes"
)]
pub(crate) fn command(program: &OsStr) -> Command {
    Command::new(program)
}

/// What a child does between `fork` and `exec`.
pub(crate) struct ChildSettings {
    /// The working directory.
    pub(crate) cwd: OwnedFd,
    /// The inherited descriptors above 2: the socket of the inner stage, and the input of bubblewrap.
    pub(crate) keep: Vec<OwnedFd>,
    /// The signal that it gets when this process dies.
    pub(crate) on_orphaned: Signal,
    /// The control groups to join.
    pub(crate) doors: CgroupEntries,
    /// Whether its standard input becomes its controlling terminal.
    pub(crate) terminal: Terminal,
}

/// Gives the child of `command` its own session and process group and makes it the reaper of its orphans. It dies
/// with this process, inherits only the listed descriptors, and starts in its directory.
#[expect(
    unsafe_code,
    reason = "pre_exec is the only way to act in the child before its program"
)]
pub(crate) fn prepare_child(command: &mut Command, settings: ChildSettings) {
    let supervisor = rustix::process::getpid();
    let mark = guard::mark(settings.on_orphaned);
    let from_kernel = match mark {
        // From the guard, once, with all that it started: what it starts to clean up must not get it, too.
        Some(_) if settings.on_orphaned == Signal::TERM => None,
        _ => Some(settings.on_orphaned),
    };
    // SAFETY: the closure only makes system calls on values that it owns and that were made before the
    // fork. It allocates nothing, takes no lock, and its errors are plain numbers.
    unsafe {
        command.pre_exec(move || {
            if let Some(mark) = mark {
                setrlimit(Resource::Locks, mark)?;
            }
            rustix::process::setsid()?;
            rustix::process::set_parent_process_death_signal(from_kernel)?;
            if rustix::process::getppid() != Some(supervisor) {
                return Err(Errno::SRCH.into());
            }
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
            if settings.terminal == Terminal::Controlling {
                take_terminal()?;
            }
            let doors = &settings.doors.files;
            let enters = |door: &OwnedFd| rustix::io::write(door, b"0") == Ok(1);
            // Without a report, the parent does not rely on a group.
            if doors.iter().all(enters)
                && let Some(report) = &settings.doors.report
            {
                let _ = rustix::io::write(report, b"1");
            }
            mark_private_descriptors()?;
            for keep in &settings.keep {
                fcntl_setfd(keep, FdFlags::empty())?;
            }
            rustix::process::fchdir(&settings.cwd)?;
            Ok(())
        });
    }
}

/// Makes the child of `command` a session of its own that outlives this process, closes what it must not hold, and puts it into
/// its directory.
#[expect(
    unsafe_code,
    reason = "pre_exec is the only way to act in the child before its program"
)]
pub(crate) fn prepare_background(command: &mut Command, cwd: OwnedFd) {
    // SAFETY: as in `prepare_child`.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            mark_private_descriptors()?;
            rustix::process::fchdir(&cwd)?;
            Ok(())
        });
    }
}

/// Goes on in a child of this process, which ends. It must have a single thread.
#[expect(unsafe_code, reason = "fork has no safe wrapper")]
pub(crate) fn leave_parent() -> io::Result<()> {
    // SAFETY: with a single thread, no lock is held and nothing is half done in the child. The parent only ends.
    match unsafe { libc::fork() } {
        0 => Ok(()),
        -1 => Err(io::Error::last_os_error()),
        _ => unsafe { libc::_exit(0) },
    }
}

/// Marks every descriptor above 2 to be closed when the next program starts. Safe to call between `fork`
/// and `exec`.
#[expect(unsafe_code, reason = "close_range has no safe wrapper")]
pub(crate) fn mark_private_descriptors() -> io::Result<()> {
    // SAFETY: with CLOEXEC no descriptor is closed now, so no owned descriptor becomes invalid.
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
    // Linux before 5.11, or a seccomp filter that rejects the call.
    for descriptor in FIRST_PRIVATE..HIGHEST_MARKED {
        // SAFETY: setting a flag on a number; an unused number is an error that does not matter here.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

/// Opens a terminal: our end, which does not block, and the program's.
#[expect(
    unsafe_code,
    reason = "no safe wrapper opens the other end by its descriptor"
)]
pub(crate) fn open_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let own_fd = rustix::fs::open("/dev/ptmx", flags, Mode::empty())?;
    let unlocked: libc::c_int = 0;
    // SAFETY: the first call reads one number, which lives until it returns; the second takes flags and returns a descriptor.
    let other_count = unsafe {
        if libc::ioctl(own_fd.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked) != 0 {
            return Err(io::Error::last_os_error());
        }
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        libc::ioctl(own_fd.as_raw_fd(), libc::TIOCGPTPEER, flags)
    };
    if other_count < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
    Ok((own_fd, unsafe { OwnedFd::from_raw_fd(other_count) }))
}

/// Lets the asynchronous runtime watch a descriptor.
#[expect(
    unsafe_code,
    reason = "the runtime must be promised that the descriptor stays open"
)]
pub(crate) fn watch_descriptor(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned by what is made here, which closes it last and gives it to nobody.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}

/// Sets the size of a terminal.
#[expect(unsafe_code, reason = "ioctl has no safe wrapper")]
pub(crate) fn resize_terminal(terminal: &OwnedFd, size: TerminalSize) -> io::Result<()> {
    let size = libc::winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the call reads the structure, which lives until it returns.
    match unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes standard input the controlling terminal of this session, of which this process is the leader. Safe to call between
/// `fork` and `exec`.
#[expect(unsafe_code, reason = "ioctl has no safe wrapper")]
pub(crate) fn take_terminal() -> io::Result<()> {
    // SAFETY: the call takes a number and touches no memory.
    match unsafe { libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Moves this process into its own user and mount namespaces. It must have a single thread.
#[expect(unsafe_code, reason = "unshare has no safe wrapper")]
pub(crate) fn leave_user_and_mount_namespaces() -> io::Result<()> {
    let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNS;
    // SAFETY: only sharing the table of descriptors must not end, and it does not.
    unsafe { unshare_unsafe(flags) }.map_err(Into::into)
}

/// Takes ownership of an inherited descriptor.
#[expect(
    unsafe_code,
    reason = "an inherited descriptor is only known by its number"
)]
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

/// Converts a raw process id.
pub(crate) fn pid(raw: i32) -> Option<Pid> {
    Pid::from_raw(raw)
}

/// The arguments of a program to start, at secret random addresses. A seccomp filter permits `execve` only with these
/// addresses. The memory is unmapped when the program replaces this process.
pub(crate) struct StartArguments {
    program: *const c_char,
    args: *const *const c_char,
    env: *const *const c_char,
}

/// Where the words may lie: in the upper part of what a process can map, as far down as the least of the supported machines has it.
const LOWEST: usize = 1 << 36;
const SPAN: usize = if cfg!(target_arch = "x86_64") {
    1 << 46
} else {
    1 << 38
};
const PAGE: usize = 4096;
/// The most addresses to try; most are free.
const TRIES: usize = 32;

impl StartArguments {
    /// Writes the path, the arguments (`argv[0]` first) and the variables of a program into the memory.
    #[expect(
        unsafe_code,
        reason = "memory at an address of our own choice has no safe wrapper"
    )]
    pub(crate) fn new(
        program: &OsStr,
        called: &OsStr,
        args: &[OsString],
        env: &[(OsString, OsString)],
    ) -> io::Result<Self> {
        let c = |text: &OsStr| CString::new(text.as_bytes()).map_err(io::Error::from);
        let mut words = vec![c(program)?, c(called)?];
        for arg in args {
            words.push(c(arg)?);
        }
        let first_variable = words.len();
        for (name, value) in env {
            words.push(c(&[name, OsStr::new("="), value]
                .into_iter()
                .collect::<OsString>())?);
        }
        // Two tables, each with a zero at its end, then the words.
        let pointers = (words.len() - 1) + 2;
        let width = size_of::<*const c_char>();
        let needed = pointers * width
            + words
                .iter()
                .map(|word| word.as_bytes_with_nul().len())
                .sum::<usize>();
        let (place, offset) = random_place(needed + PAGE)?;
        let base = place.wrapping_byte_add(offset / width * width);
        let mut entry = base.cast::<*const c_char>();
        let mut text = base.wrapping_byte_add(pointers * width).cast::<u8>();
        let mut start = Self {
            program: ptr::null(),
            args: entry.cast(),
            env: ptr::null(),
        };
        for (index, word) in words.iter().enumerate() {
            let bytes = word.as_bytes_with_nul();
            // SAFETY: the place holds a page more than `needed`; the offset is less than a page, and `needed` counts every entry and byte.
            unsafe {
                if index == first_variable {
                    entry.write(ptr::null());
                    entry = entry.add(1);
                    start.env = entry.cast();
                }
                if index == 0 {
                    start.program = text.cast();
                } else {
                    entry.write(text.cast());
                    entry = entry.add(1);
                }
                text.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                text = text.add(bytes.len());
            }
        }
        // SAFETY: as above: the two zeros are counted.
        unsafe {
            entry.write(ptr::null());
            if start.env.is_null() {
                entry = entry.add(1);
                start.env = entry.cast();
                entry.write(ptr::null());
            }
        }
        Ok(start)
    }

    /// Returns the addresses of the path, the arguments and the variables.
    pub(crate) fn addresses(&self) -> [u64; 3] {
        [
            self.program.addr() as u64,
            self.args.addr() as u64,
            self.env.addr() as u64,
        ]
    }

    /// Replaces this process by the program, with default signal handling. Returns only on failure.
    #[expect(unsafe_code, reason = "the call must be made with these very pointers")]
    pub(crate) fn become_it(self) -> io::Error {
        // SAFETY: the set is initialised before it is used; the three pointers lead to words and tables that end with a zero, as laid out above, and stay mapped.
        unsafe {
            let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
            // Rust ignores SIGPIPE, and `execve` keeps ignored signals ignored.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::execve(self.program, self.args, self.env);
        }
        io::Error::last_os_error()
    }
}

/// Maps memory of this size at a random address, and returns a random offset below a page.
#[expect(
    unsafe_code,
    reason = "memory at an address of our own choice has no safe wrapper"
)]
fn random_place(size: usize) -> io::Result<(*mut libc::c_void, usize)> {
    for _ in 0..TRIES {
        let token = crucible_host::random::token().map_err(io::Error::other)?;
        let number = u128::from_str_radix(&token, 16).map_err(io::Error::other)?;
        let page = usize::try_from(number % (SPAN / PAGE) as u128).unwrap_or_default();
        let offset = usize::try_from((number >> 64) % PAGE as u128).unwrap_or_default();
        let requested = LOWEST + page * PAGE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
        // SAFETY: this flag never replaces a mapping, so nobody's memory changes.
        let made = unsafe {
            mmap_anonymous(
                ptr::without_provenance_mut(requested),
                size,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )
        };
        // Linux before 4.17 treats the address as a hint.
        if let Ok(place) = made {
            return Ok((place, offset));
        }
    }
    Err(Errno::NOMEM.into())
}
