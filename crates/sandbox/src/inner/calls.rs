//! seccomp filters that limit a program to the system calls of its class.
//!
//! There are two filters. The first kills the process at a call that the class forbids; no signal handler runs. The
//! second allows the calls of the class; any other call fails with `ENOSYS`, as on a kernel without it. If both filters
//! match, the kernel takes the stricter action.
//!
//! The `execve` that starts the program is itself forbidden afterwards. The filter recognises it by the addresses of its
//! arguments. They are at a random place in a range of 2^46 bytes, which is unmapped once the program runs
//! (`crate::sys::StartArguments`). A program that wants to start another one has one guess.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule,
};

use super::filter::{Rules, compile, rule};
use crate::spawn::SyscallClass;

/// Calls that create, change or delete files.
const WRITING: &[libc::c_long] = &[
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_mknodat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_memfd_create,
];
/// The same calls that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const WRITING_X86_64: &[libc::c_long] = &[
    libc::SYS_creat,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_mknod,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
/// No other architecture has more of them.
#[cfg(not(target_arch = "x86_64"))]
const WRITING_X86_64: &[libc::c_long] = &[];

/// Calls that create links. A more privileged process could later follow them.
const LINKING: &[libc::c_long] = &[libc::SYS_linkat, libc::SYS_symlinkat];
/// The same calls that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const LINKING_X86_64: &[libc::c_long] = &[libc::SYS_link, libc::SYS_symlink];
/// No other architecture has more of them.
#[cfg(not(target_arch = "x86_64"))]
const LINKING_X86_64: &[libc::c_long] = &[];

/// Further calls that only a class with writes needs.
const WRITE_EXTRAS: &[libc::c_long] = &[libc::SYS_flock, libc::SYS_sync_file_range];

/// Calls that connect a socket.
const CONNECTING: &[libc::c_long] = &[libc::SYS_socketpair, libc::SYS_connect, libc::SYS_bind];
/// Calls that accept connections. No class may make them.
const SERVING: &[libc::c_long] = &[libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4];
/// Calls on an open socket: harmless if none can be opened.
const SOCKET_CALLS: &[libc::c_long] = &[
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_shutdown,
];

/// Calls that start, trace or change another process. No class may make them.
const PROCESSES: &[libc::c_long] = &[
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_send_signal,
    libc::SYS_pidfd_getfd,
    libc::SYS_unshare,
    libc::SYS_setns,
];
/// The same calls that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const PROCESSES_HERE: &[libc::c_long] = &[libc::SYS_fork, libc::SYS_vfork];
/// No other architecture has more of them.
#[cfg(not(target_arch = "x86_64"))]
const PROCESSES_HERE: &[libc::c_long] = &[];

/// Calls that every class may make, whatever their arguments.
const HARMLESS: &[libc::c_long] = &[
    // Open files; reading directories and metadata.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_copy_file_range,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_umask,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    // Waiting.
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_signalfd4,
    libc::SYS_pipe2,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_sched_yield,
    libc::SYS_wait4,
    libc::SYS_waitid,
    // Memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_msync,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_membarrier,
    // Threads and signals of its own.
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_rseq,
    libc::SYS_gettid,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_setitimer,
    libc::SYS_getitimer,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_gettime,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_delete,
    libc::SYS_prctl,
    // Queries.
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getpgid,
    libc::SYS_getsid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_capget,
    libc::SYS_getrusage,
    libc::SYS_getpriority,
    libc::SYS_getcpu,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_rr_get_interval,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_times,
    libc::SYS_gettimeofday,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_getrandom,
    // The inner stage reports with it that the program did not start.
    libc::SYS_sendto,
];
/// The same calls that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const HARMLESS_HERE: &[libc::c_long] = &[
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_getdents,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_signalfd,
    libc::SYS_alarm,
    libc::SYS_pause,
    libc::SYS_getpgrp,
    libc::SYS_getrlimit,
    libc::SYS_time,
    libc::SYS_arch_prctl,
];
/// No other architecture has more of them.
#[cfg(not(target_arch = "x86_64"))]
const HARMLESS_HERE: &[libc::c_long] = &[];

/// Calls that open a file, with the index of the flags.
#[cfg(target_arch = "x86_64")]
const OPENING: &[(libc::c_long, u8)] = &[(libc::SYS_open, 1), (libc::SYS_openat, 2)];
/// Calls that open a file, with the index of the flags.
#[cfg(not(target_arch = "x86_64"))]
const OPENING: &[(libc::c_long, u8)] = &[(libc::SYS_openat, 2)];
/// Flags that open for writing or create a file: a mask, and the value of the masked bits.
const OPENING_TO_WRITE: [(u64, u64); 6] = [
    (libc::O_ACCMODE as u64, libc::O_WRONLY as u64),
    (libc::O_ACCMODE as u64, libc::O_RDWR as u64),
    // Access mode 3, for `ioctl` on devices only.
    (libc::O_ACCMODE as u64, libc::O_ACCMODE as u64),
    (libc::O_CREAT as u64, libc::O_CREAT as u64),
    (libc::O_TRUNC as u64, libc::O_TRUNC as u64),
    (
        (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64,
        (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64,
    ),
];

/// Calls whose first argument is a process id, which must be the program's own.
const OWN_PID: &[libc::c_long] = &[
    libc::SYS_kill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
];
/// The same, but zero also means the program itself. Another process id fails.
const OWN_PID_OR_ZERO: &[libc::c_long] = &[libc::SYS_prlimit64, libc::SYS_sched_setaffinity];

/// `ioctl` requests that only query, or that concern the descriptor itself.
const REQUESTS: [u64; 9] = [
    0x5401,      // TCGETS
    0x802c_542a, // TCGETS2
    0x540f,      // TIOCGPGRP
    0x5411,      // TIOCOUTQ
    0x5413,      // TIOCGWINSZ
    0x541b,      // FIONREAD
    0x5421,      // FIONBIO
    0x5450,      // FIONCLEX
    0x5451,      // FIOCLEX
];
/// `fcntl` commands that have the kernel signal a chosen process.
const SIGNALLING_COMMANDS: [u64; 5] = [8, 10, 15, 1024, 1026];
/// `fcntl` commands that lock a file, so that other processes wait.
const LOCKING_COMMANDS: [u64; 4] = [F_SETLK, 7, 37, 38];
/// `F_SETLK`: locks without waiting.
const F_SETLK: u64 = 6;

/// The kinds of sockets that reach the internet.
const INTERNET: [u64; 2] = [libc::AF_INET as u64, libc::AF_INET6 as u64];
/// Local sockets. C libraries try one for the name service before they read files; a failure is silent.
const LOCAL: u64 = libc::AF_UNIX as u64;
/// Netlink sockets. C libraries query the machine's addresses with one.
const KERNEL: u64 = libc::AF_NETLINK as u64;

/// What identifies the program's own `execve`: the addresses of its path, arguments and variables.
pub(super) type ExecAddresses = [u64; 3];

/// Returns the filters of a class in the order to apply them, none for tools. The last one allows only the class's calls.
pub(super) fn programs(
    calls: SyscallClass,
    start: ExecAddresses,
    pid: u32,
) -> Result<Vec<BpfProgram>, String> {
    if calls == SyscallClass::Tools {
        return Ok(Vec::new());
    }
    let ending = compile(
        forbidden(calls, start, pid)?,
        SeccompAction::Allow,
        SeccompAction::KillProcess,
    )?;
    let unknown = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    Ok(vec![
        ending,
        compile(allowed(calls, pid)?, unknown, SeccompAction::Allow)?,
    ])
}

/// Describes the class for the receipt.
pub(super) fn describe(calls: SyscallClass) -> &'static str {
    match calls {
        SyscallClass::Tools => "",
        SyscallClass::Compute | SyscallClass::Read => {
            ", and what writes, connects or starts another process ends the program"
        }
        SyscallClass::Files => {
            ", and what links, connects or starts another process ends the program"
        }
        SyscallClass::Connect => {
            ", and what writes, serves or starts another process ends the program"
        }
    }
}

/// Returns the calls that kill the program.
fn forbidden(calls: SyscallClass, start: ExecAddresses, pid: u32) -> Result<Rules, String> {
    let mut rules = whatever(&[PROCESSES, PROCESSES_HERE, SERVING, LINKING, LINKING_X86_64]);
    let mut other = Vec::new();
    for (index, address) in (0..).zip(start) {
        let differs =
            SeccompCondition::new(index, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, address);
        other.push(all_of(vec![differs.map_err(|error| error.to_string())?])?);
    }
    rules.insert(libc::SYS_execve, other);
    let thread = libc::CLONE_THREAD as u64;
    rules.insert(
        libc::SYS_clone,
        vec![rule(&[(0, SeccompCmpOp::MaskedEq(thread), 0)])?],
    );
    for call in OWN_PID {
        rules.insert(*call, vec![rule(&[(0, SeccompCmpOp::Ne, pid.into())])?]);
    }
    let mut fine = vec![LOCAL];
    if calls == SyscallClass::Connect {
        fine.extend(INTERNET);
        fine.push(KERNEL);
    } else {
        rules.extend(whatever(&[CONNECTING]));
    }
    let kinds: Vec<_> = fine
        .iter()
        .map(|kind| (0, SeccompCmpOp::Ne, *kind))
        .collect();
    rules.insert(libc::SYS_socket, vec![rule(&kinds)?]);
    if calls != SyscallClass::Files {
        rules.extend(whatever(&[WRITING, WRITING_X86_64]));
        for (call, flags) in OPENING {
            let cases = OPENING_TO_WRITE.iter();
            let cases =
                cases.map(|(mask, bits)| rule(&[(*flags, SeccompCmpOp::MaskedEq(*mask), *bits)]));
            rules.insert(*call, cases.collect::<Result<_, _>>()?);
        }
    }
    Ok(rules)
}

/// Returns the calls that the program may make. A call that is forbidden with some arguments is listed with all.
fn allowed(calls: SyscallClass, pid: u32) -> Result<Rules, String> {
    let mut rules = whatever(&[
        HARMLESS,
        HARMLESS_HERE,
        OWN_PID,
        &[libc::SYS_execve, libc::SYS_clone],
    ]);
    rules.extend(OPENING.iter().map(|(call, _)| (*call, Vec::new())));
    for call in OWN_PID_OR_ZERO {
        let process_rule = |process: u32| rule(&[(0, SeccompCmpOp::Eq, process.into())]);
        rules.insert(*call, vec![process_rule(0)?, process_rule(pid)?]);
    }
    let asking = REQUESTS
        .iter()
        .map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)]));
    rules.insert(libc::SYS_ioctl, asking.collect::<Result<_, _>>()?);
    let mut commands = SIGNALLING_COMMANDS.to_vec();
    if calls == SyscallClass::Files {
        rules.extend(whatever(&[WRITING, WRITING_X86_64, WRITE_EXTRAS]));
    } else {
        // The kernel refuses a write lock on a file that is open for reading only.
        let is_lock_to_read = |command: &&u64| calls == SyscallClass::Read && **command == F_SETLK;
        commands.extend(
            LOCKING_COMMANDS
                .iter()
                .filter(|command| !is_lock_to_read(command)),
        );
    }
    let others: Vec<_> = commands
        .iter()
        .map(|command| (1, SeccompCmpOp::Ne, *command))
        .collect();
    rules.insert(libc::SYS_fcntl, vec![rule(&others)?]);
    if calls == SyscallClass::Connect {
        rules.extend(whatever(&[CONNECTING, SOCKET_CALLS]));
        let mut kinds = Vec::new();
        for kind in INTERNET {
            kinds.push(rule(&[(0, SeccompCmpOp::Eq, kind)])?);
        }
        let routes = libc::NETLINK_ROUTE as u64;
        kinds.push(rule(&[
            (0, SeccompCmpOp::Eq, KERNEL),
            (2, SeccompCmpOp::Eq, routes),
        ])?);
        rules.insert(libc::SYS_socket, kinds);
    }
    Ok(rules)
}

/// Returns rules that match these calls with any arguments.
fn whatever(lists: &[&[libc::c_long]]) -> Rules {
    lists
        .iter()
        .flat_map(|list| list.iter())
        .map(|call| (*call, Vec::new()))
        .collect::<BTreeMap<_, _>>()
}

fn all_of(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, String> {
    SeccompRule::new(conditions).map_err(|error| error.to_string())
}
