//! A seccomp filter that refuses system calls that builds and tests do not need.
//!
//! A refused call fails with `EPERM`, as for a user without the permission. `clone3` and `openat2` fail
//! with `ENOSYS`, because a filter cannot read their flags. Libraries then fall back to `clone` and
//! `openat`, whose flags it can read. Calls of another architecture kill the program; x32 calls fail.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use crate::spawn::Network;
use crate::wire::{StageIsolation, StageRequest};

/// Calls that are refused with any arguments.
const REFUSED: &[libc::c_long] = &[
    // Other processes' memory.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    // The kernel itself.
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_syslog,
    // Keys of the user.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Ways around path checks and filters.
    libc::SYS_open_by_handle_at,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    // System settings.
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_memfd_secret,
];

/// Refused calls that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_kexec_file_load,
    libc::SYS_uselib,
    libc::SYS__sysctl,
];
/// No other architecture has more of them.
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[libc::SYS_kexec_file_load];

/// Flags of `clone` that create a namespace.
const NAMESPACE_FLAGS: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// `ioctl` requests that insert text into a terminal's input.
const TERMINAL_REQUESTS: [u64; 2] = [0x5412, 0x541c];

/// Kinds of sockets inside a network namespace. Others, such as the ones to a virtual machine's host or
/// to raw devices, are not bound to the namespace.
const SOCKETS_IN_NAMESPACE: [libc::c_int; 4] = [
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
];

/// The set-user-id and set-group-id bits. A confined program could otherwise leave a program in the
/// user's directories that any user of the machine could run with the owner's rights.
const SET_ID: [u64; 2] = [libc::S_ISUID as u64, libc::S_ISGID as u64];
/// Calls that set the mode of a file, with the index of the mode.
const MODE_CALLS: &[(libc::c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    (libc::SYS_mknodat, 2),
];
/// The same calls that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const MODE_CALLS_HERE: &[(libc::c_long, u8)] = &[
    (libc::SYS_chmod, 1),
    (libc::SYS_creat, 1),
    (libc::SYS_mknod, 1),
];
/// No other architecture has more of them.
#[cfg(not(target_arch = "x86_64"))]
const MODE_CALLS_HERE: &[(libc::c_long, u8)] = &[];
/// Calls that open a file, with the index of the flags. The mode is the next argument and matters only
/// if the flags create a file.
const OPEN_CALLS: &[(libc::c_long, u8)] = &[(libc::SYS_openat, 2)];
/// The same calls that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const OPEN_CALLS_HERE: &[(libc::c_long, u8)] = &[(libc::SYS_open, 1)];
/// No other architecture has more of them.
#[cfg(not(target_arch = "x86_64"))]
const OPEN_CALLS_HERE: &[(libc::c_long, u8)] = &[];
/// Flags that create a file: `O_CREAT`, and the bit of `O_TMPFILE` that it does not share with `O_DIRECTORY`.
const MAKING_FLAGS: [u64; 2] = [
    libc::O_CREAT as u64,
    (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64,
];

/// The first number of the x32 variant of x86-64.
const X32: u32 = 0x4000_0000;

pub(super) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Filters the system calls of this process and its descendants.
pub(crate) fn apply(order: &StageRequest) -> Result<String, String> {
    for program in programs(order)? {
        seccompiler::apply_filter(&program).map_err(|error| error.to_string())?;
    }
    Ok(format!(
        "{} calls refused",
        REFUSED.len() + REFUSED_HERE.len()
    ))
}

fn programs(order: &StageRequest) -> Result<[BpfProgram; 2], String> {
    let mut rules: Rules = REFUSED
        .iter()
        .chain(REFUSED_HERE)
        .map(|call| (*call, Vec::new()))
        .collect();
    let mut namespaces = Vec::new();
    for flag in NAMESPACE_FLAGS {
        let flag = u64::from(flag.cast_unsigned());
        namespaces.push(rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)])?);
    }
    rules.insert(libc::SYS_clone, namespaces);
    let mut terminal = Vec::new();
    for request in TERMINAL_REQUESTS {
        terminal.push(rule(&[(1, SeccompCmpOp::Eq, request)])?);
    }
    rules.insert(libc::SYS_ioctl, terminal);
    for (call, mode) in MODE_CALLS.iter().chain(MODE_CALLS_HERE) {
        let bits = SET_ID
            .iter()
            .map(|bit| rule(&[(*mode, SeccompCmpOp::MaskedEq(*bit), *bit)]));
        rules.insert(*call, bits.collect::<Result<_, _>>()?);
    }
    for (call, flags) in OPEN_CALLS.iter().chain(OPEN_CALLS_HERE) {
        let cases = MAKING_FLAGS
            .iter()
            .flat_map(|making| SET_ID.map(|bit| (*making, bit)));
        let bits = cases.map(|(making, bit)| {
            rule(&[
                (*flags, SeccompCmpOp::MaskedEq(making), making),
                (flags + 1, SeccompCmpOp::MaskedEq(bit), bit),
            ])
        });
        rules.insert(*call, bits.collect::<Result<_, _>>()?);
    }
    for (call, rule) in mark_changes()? {
        rules.insert(call, vec![rule]);
    }
    let refused = match (order.surroundings, &order.network) {
        // All kinds: a local socket reaches system services, whose sockets are not covered, and some of them
        // start programs on request. Another call creates socket pairs.
        (StageIsolation::Machine, Network::None | Network::Hosts(_)) => Vec::new(),
        (StageIsolation::Machine, Network::Host) | (StageIsolation::Namespaces, _) => {
            let kinds = SOCKETS_IN_NAMESPACE.iter();
            let other: Vec<_> = kinds
                .map(|kind| (0, SeccompCmpOp::Ne, u64::from(kind.cast_unsigned())))
                .collect();
            vec![rule(&other)?]
        }
    };
    rules.insert(libc::SYS_socket, refused);
    let refuse = |errno: libc::c_int| SeccompAction::Errno(errno.cast_unsigned());
    let refusing = compile(rules, SeccompAction::Allow, refuse(libc::EPERM))?;
    let unknown = [libc::SYS_clone3, libc::SYS_openat2].map(|call| (call, Vec::new()));
    let unknown = compile(
        Rules::from(unknown),
        SeccompAction::Allow,
        refuse(libc::ENOSYS),
    )?;
    Ok([refuse_x32(refusing), unknown])
}

/// The calls that change the limit of file locks, by which the guard finds a program; reading it is allowed.
fn mark_changes() -> Result<[(libc::c_long, SeccompRule); 2], String> {
    let is = |index, length, operator, value| {
        SeccompCondition::new(index, length, operator, value).map_err(|error| error.to_string())
    };
    let locks = u64::from(libc::RLIMIT_LOCKS);
    let is_locks = |index| is(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, locks);
    let sets = is(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let rule = |conditions| SeccompRule::new(conditions).map_err(|error| error.to_string());
    Ok([
        (libc::SYS_setrlimit, rule(vec![is_locks(0)?])?),
        (libc::SYS_prlimit64, rule(vec![is_locks(1)?, sets])?),
    ])
}

/// Creates a rule that matches if all conditions do. A condition is the index of an argument, a comparison of its
/// lower 32 bits, and a value. The kernel ignores the upper bits of these arguments.
pub(super) fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, String> {
    let condition = |(index, operator, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*index, SeccompCmpArgLen::Dword, operator.clone(), *value)
    };
    let conditions: Result<Vec<_>, _> = conditions.iter().map(condition).collect();
    SeccompRule::new(conditions.map_err(|error| error.to_string())?)
        .map_err(|error| error.to_string())
}

/// Compiles a filter with one action for calls that match the rules and another for all others.
pub(super) fn compile(
    rules: Rules,
    others: SeccompAction,
    named: SeccompAction,
) -> Result<BpfProgram, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let filter =
        SeccompFilter::new(rules, others, named, arch).map_err(|error| error.to_string())?;
    filter
        .try_into()
        .map_err(|error: seccompiler::BackendError| error.to_string())
}

/// Prepends a refusal of every x32 call. These calls have their own numbers, which the rules do not list.
/// Other architectures have no numbers that high.
fn refuse_x32(program: BpfProgram) -> BpfProgram {
    let load_number = sock_filter {
        code: 0x20,
        jt: 0,
        jf: 0,
        k: 0,
    };
    let skip_if_lower = sock_filter {
        code: 0x35,
        jt: 0,
        jf: 1,
        k: X32,
    };
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    let refuse = sock_filter {
        code: 0x06,
        jt: 0,
        jf: 0,
        k: refuse,
    };
    [load_number, skip_if_lower, refuse]
        .into_iter()
        .chain(program)
        .collect()
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make files and their modes by hand"
)]
mod tests {
    use std::io::Error;

    use super::*;
    use crate::spawn::{Cap, Resources, Strength, SyscallClass};
    use crate::terminal_end::Terminal;
    use crate::wire::{IdentifiedDir, PrivateSize};

    fn order(surroundings: StageIsolation, network: Network) -> StageRequest {
        StageRequest {
            program: "/bin/true".into(),
            arg0: "true".into(),
            terminal: Terminal::None,
            args: Vec::new(),
            env: Vec::new(),
            cwd: IdentifiedDir {
                path: "/".into(),
                identity: (0, 0),
            },
            writable: Vec::new(),
            read_only: Vec::new(),
            has_moved_mount: false,
            readable: Vec::new(),
            home: None,
            surroundings,
            private: PrivateSize::Sized,
            network,
            calls: SyscallClass::Tools,
            listen: Vec::new(),
            resources: Resources::DEFAULT,
            memory_each: Cap::Unlimited,
            strength: Strength::Required,
        }
    }

    #[expect(unsafe_code, reason = "the calls under test have no safe wrapper")]
    fn call(number: libc::c_long, first: libc::c_long, second: libc::c_long) -> i32 {
        // SAFETY: with these arguments none of the calls below reads or writes memory of this process.
        let result = unsafe { libc::syscall(number, first, second, 0, 0, 0) };
        if result >= 0 {
            0
        } else {
            Error::last_os_error().raw_os_error().unwrap()
        }
    }

    #[test]
    fn setuid_and_setgid_bits_cannot_be_set() {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        let dir = tempfile::tempdir().unwrap();
        let refused =
            |result: std::io::Result<()>| result.unwrap_err().raw_os_error() == Some(libc::EPERM);
        filtered(StageIsolation::Namespaces, Network::None, || {
            let path = dir.path().join("program");
            std::fs::write(&path, "").unwrap();
            for mode in [0o4755, 0o2755, 0o6000] {
                assert!(
                    refused(std::fs::set_permissions(
                        &path,
                        PermissionsExt::from_mode(mode)
                    )),
                    "{mode:o}"
                );
                assert!(refused(
                    std::fs::File::open(&path)
                        .unwrap()
                        .set_permissions(PermissionsExt::from_mode(mode))
                ));
                let made = std::fs::OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(mode)
                    .open(dir.path().join("new"));
                assert!(refused(made.map(drop)), "{mode:o}");
            }
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o1755)).unwrap();
            // Without a flag that makes a file, the mode is whatever lies on the stack.
            std::fs::OpenOptions::new()
                .read(true)
                .mode(0o6755)
                .open(&path)
                .unwrap();
            std::fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o755)
                .open(dir.path().join("plain"))
                .unwrap();
        });
    }

    #[test]
    fn mark_of_guard_can_be_read_not_changed() {
        use rustix::process::{Resource, getrlimit, setrlimit};
        filtered(StageIsolation::Namespaces, Network::None, || {
            let mark = getrlimit(Resource::Locks);
            assert_eq!(
                setrlimit(Resource::Locks, mark),
                Err(rustix::io::Errno::PERM)
            );
            let other = getrlimit(Resource::Core);
            assert_eq!(setrlimit(Resource::Core, other), Ok(()));
            let locks = libc::RLIMIT_LOCKS.into();
            assert_eq!(call(libc::SYS_setrlimit, locks, 0), libc::EPERM);
        });
    }

    /// A filter binds the thread that applies it, so each case has a thread of its own.
    fn filtered<T: Send>(
        surroundings: StageIsolation,
        network: Network,
        test: impl FnOnce() -> T + Send,
    ) -> T {
        std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    apply(&order(surroundings, network)).unwrap();
                    test()
                })
                .join()
                .unwrap()
        })
    }

    #[test]
    fn dangerous_system_calls_are_refused_ordinary_are_not() {
        // Only calls that fail or do nothing with arguments of zero, should the filter not hold.
        let harmless = [
            libc::SYS_ptrace,
            libc::SYS_bpf,
            libc::SYS_userfaultfd,
            libc::SYS_keyctl,
            libc::SYS_add_key,
            libc::SYS_io_uring_setup,
            libc::SYS_open_by_handle_at,
            libc::SYS_mount,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_process_vm_readv,
            libc::SYS_perf_event_open,
            libc::SYS_init_module,
            libc::SYS_kexec_load,
            libc::SYS_swapon,
            libc::SYS_pivot_root,
            libc::SYS_quotactl,
        ];
        filtered(StageIsolation::Namespaces, Network::None, || {
            for number in harmless {
                assert_eq!(call(number, 0, 0), libc::EPERM, "call {number}");
            }
            assert_eq!(call(libc::SYS_clone3, 0, 0), libc::ENOSYS);
            assert_eq!(call(libc::SYS_getpid, 0, 0), 0);
            assert!(
                std::thread::spawn(|| 7)
                    .join()
                    .is_ok_and(|seven| seven == 7)
            );
        });
        assert_ne!(
            call(libc::SYS_unshare, 0, 0),
            libc::EPERM,
            "without the filter it is allowed"
        );
    }

    #[test]
    fn no_flag_of_clone_makes_a_namespace() {
        filtered(StageIsolation::Namespaces, Network::None, || {
            for flag in NAMESPACE_FLAGS {
                // Sharing signal handlers without sharing memory is an error, so that no process comes to be
                // should the filter not hold.
                let flags = flag | libc::CLONE_SIGHAND;
                assert_eq!(
                    call(libc::SYS_clone, flags.into(), 0),
                    libc::EPERM,
                    "flag {flag:#x}"
                );
            }
            assert_eq!(
                call(libc::SYS_clone, libc::CLONE_SIGHAND.into(), 0),
                libc::EINVAL
            );
        });
    }

    #[test]
    fn words_cannot_be_put_into_a_terminal() {
        filtered(StageIsolation::Namespaces, Network::None, || {
            for request in [0x5412, 0x541c, 0x1_0000_5412] {
                assert_eq!(
                    call(libc::SYS_ioctl, 0, request),
                    libc::EPERM,
                    "{request:#x}"
                );
            }
            assert_ne!(call(libc::SYS_ioctl, 0, 0x5401), libc::EPERM);
        });
    }

    #[test]
    fn only_sockets_that_stay_inside_can_be_made() {
        let stream = libc::SOCK_STREAM.into();
        let socket = |kind: libc::c_int| call(libc::SYS_socket, kind.into(), stream);
        filtered(StageIsolation::Namespaces, Network::None, || {
            assert_eq!((socket(libc::AF_INET), socket(libc::AF_UNIX)), (0, 0));
            assert_eq!(
                (socket(libc::AF_VSOCK), socket(libc::AF_PACKET)),
                (libc::EPERM, libc::EPERM)
            );
        });
        filtered(StageIsolation::Machine, Network::None, || {
            assert!(std::os::unix::net::UnixStream::pair().is_ok());
            for kind in [
                libc::AF_UNIX,
                libc::AF_INET,
                libc::AF_INET6,
                libc::AF_NETLINK,
                libc::AF_VSOCK,
            ] {
                assert_eq!(socket(kind), libc::EPERM, "{kind}");
            }
        });
        filtered(StageIsolation::Machine, Network::Host, || {
            assert_eq!(socket(libc::AF_INET), 0)
        });
    }

    #[test]
    fn calls_of_the_x32_variant_are_refused_first() {
        let [program, _] = programs(&order(StageIsolation::Namespaces, Network::None)).unwrap();
        assert_eq!((program[1].k, program[1].jf), (X32, 1));
        assert_eq!(
            program[2].k,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned()
        );
    }
}
