//! What a hostile gate would try to reach outside: other processes, their secrets, sockets, devices.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};

use crucible_sandbox::{Confinement, Sandbox, Strength};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::support::{Scratch, eventually, output, part, play, run};

/// Ends with the test.
struct Decoy(Child);

impl Drop for Decoy {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn levels(scratch: &Scratch) -> [(Sandbox, Strength); 2] {
    [
        (scratch.sandbox(), Strength::Required),
        (scratch.without_bubblewrap(), Strength::BestEffort),
    ]
}

/// Plays the gate: tries everything, and tells what it reached.
fn attack(argument: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut words = argument.split(' ');
    let pids: Vec<i32> = words
        .next()
        .unwrap()
        .split(',')
        .map(|pid| pid.parse().unwrap())
        .collect();
    let (name, socket) = (words.next().unwrap(), words.next().unwrap());
    for pid in pids {
        for file in [
            "environ",
            "mem",
            "maps",
            "root/etc/passwd",
            "cwd/.",
            "fd/0",
            "exe",
        ] {
            // A link is followed, a file is read: both need the right to look into the process.
            let path = format!("/proc/{pid}/{file}");
            let mut byte = [0];
            let read = |mut file: std::fs::File| {
                std::io::Read::read(&mut file, &mut byte).is_ok_and(|n| n > 0)
            };
            if std::fs::File::open(&path).is_ok_and(read) || std::fs::read_dir(&path).is_ok() {
                found.push(path.clone());
            }
        }
        let target = Pid::from_raw(pid).unwrap();
        if kill_process(target, Signal::WINCH).is_ok()
            || kill_process_group(target, Signal::WINCH).is_ok()
        {
            found.push(format!("{pid} with a signal"));
        }
    }
    let address = SocketAddr::from_abstract_name(name).unwrap();
    if UnixStream::connect_addr(&address).is_ok() {
        found.push("the abstract socket".to_owned());
    }
    if UnixStream::connect(socket).is_ok() {
        found.push("the socket in the home".to_owned());
    }
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let leads = std::fs::read_link(entry.path());
        if entry.file_name().to_str().unwrap().parse::<u32>().unwrap() > 2
            && leads.is_ok_and(|to| !to.starts_with("/proc/"))
        {
            found.push(format!("descriptor {:?}", entry.file_name()));
        }
    }
    for device in [
        "mem",
        "kmsg",
        "port",
        "vda",
        "sda",
        "nvme0n1",
        "kvm",
        "fuse",
        "loop-control",
        "net/tun",
    ] {
        if std::fs::File::open(format!("/dev/{device}")).is_ok() {
            found.push(format!("device {device}"));
        }
    }
    for file in [
        "/proc/kcore",
        "/proc/kmsg",
        "/proc/sysrq-trigger",
        "/sys/kernel/uevent_helper",
    ] {
        let open = |write: bool| {
            std::fs::OpenOptions::new()
                .read(!write)
                .write(write)
                .open(file)
                .is_ok()
        };
        if open(true) || (file.starts_with("/proc/k") && open(false)) {
            found.push(file.to_owned());
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    for line in status
        .lines()
        .filter(|line| line.starts_with("CapEff") || line.starts_with("CapPrm"))
    {
        if !line.ends_with("0000000000000000") {
            found.push(line.to_owned());
        }
    }
    found
}

/// Called for an ordinary user as well: the superuser could be kept out for lack of capabilities alone.
#[test]
pub(crate) fn nothing_outside_can_be_reached() {
    if let Some(argument) = part().filter(|argument| argument.contains(' ')) {
        for found in attack(&argument) {
            println!("\nREACHED {found}");
        }
        println!("\ntried everything");
        return;
    }
    let scratch = Scratch::new();
    let decoy = Decoy(
        Command::new("sleep")
            .arg("60")
            .env("SECRET", "of another process")
            .spawn()
            .unwrap(),
    );
    let name = format!("crucible-test-{}", std::process::id());
    let _listening =
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    // A short name: an address has room for no more than 107 bytes.
    let socket = scratch.home.join("s");
    let _listening_too = UnixListener::bind(&socket).unwrap();
    let argument = format!(
        "{},{} {name} {}",
        std::process::id(),
        decoy.0.id(),
        socket.display()
    );
    for (sandbox, strength) in levels(&scratch) {
        let mut spawn = scratch.confined_with("", |profile| profile.strength = strength);
        spawn.program = std::env::current_exe().unwrap();
        let mut command = Command::new("unused");
        play(
            &mut command,
            "escapes::nothing_outside_can_be_reached",
            &argument,
        );
        spawn.args = command.get_args().map(Into::into).collect();
        let vars = command
            .get_envs()
            .filter_map(|(name, value)| Some((name.into(), value?.into())));
        spawn.env.extend(vars);
        let message = output(&sandbox, spawn.clone());
        let reached: Vec<_> = message
            .lines()
            .filter(|line| line.contains("REACHED"))
            .collect();
        assert!(message.contains("tried everything"), "{message}");
        assert_eq!(reached, [""; 0], "{strength:?}");

        // Without isolation it reaches a lot, so the test can fail.
        let Confinement::Confined(profile) = &mut spawn.confinement else {
            panic!("it is confined")
        };
        profile.strength = Strength::Off;
        let text = run(&sandbox, spawn).unwrap().stdout.text().into_owned();
        for what in [
            "environ",
            "with a signal",
            "the abstract socket",
            "the socket in the home",
        ] {
            assert!(text.contains(what), "{what}: {text}");
        }
    }
}

/// A service's socket that lies in the file system: covered, while a plain file beside it is seen. The part runs in a
/// mount namespace of its own, because only the superuser may put something where services put theirs.
#[test]
fn sockets_of_services_are_covered() {
    if part().is_some() {
        std::fs::write("/srv/plain", "").unwrap();
        let _listening = UnixListener::bind("/srv/s").unwrap();
        let scratch = Scratch::new();
        let look = "test -e /srv/plain && echo seen; test -S /srv/s && echo REACHED; true";
        let message = output(&scratch.sandbox(), scratch.confined(look));
        assert_eq!(message, "seen\n");
        assert_eq!(
            output(&scratch.sandbox(), scratch.script(look)),
            "seen\nREACHED\n"
        );
        println!("looked at both");
        return;
    }
    let mut part = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        part.args(["--user", "--map-root-user"]);
    }
    part.args([
        "--mount",
        "sh",
        "-c",
        "mount -t tmpfs none /srv && exec \"$@\"",
        "sh",
    ]);
    part.arg(std::env::current_exe().unwrap());
    play(
        &mut part,
        "escapes::sockets_of_services_are_covered",
        "inside",
    );
    let done = part.output().unwrap();
    let text =
        String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(
        text.contains("looked at both") && done.status.success(),
        "{text}"
    );
}

/// What connects to each socket it is given, and tells what came of it.
const CONNECT: &str = "import os, socket, sys\n\
    for path in sys.argv[1:]:\n\
    \x20   try:\n\
    \x20       socket.socket(socket.AF_UNIX).connect(path)\n\
    \x20       print('REACHED', path)\n\
    \x20   except OSError:\n\
    \x20       pass\n\
    os.unlink('old')\n\
    own = socket.socket(socket.AF_UNIX)\n\
    own.bind('old')\n\
    own.listen()\n\
    socket.socket(socket.AF_UNIX).connect('old')\n\
    print('its own works')\n";

/// A socket of the machine in what a program may write to: covered, however it was bound, unless nobody listens there any more.
#[test]
fn sockets_in_a_writable_directory_are_covered() {
    if part().is_some() {
        let _listening = UnixListener::bind("deep/relative").unwrap();
        println!("bound");
        std::io::stdin().read_line(&mut String::new()).unwrap();
        return;
    }
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.copy.join("deep")).unwrap();
    let _listening = UnixListener::bind(scratch.copy.join("s")).unwrap();
    drop(UnixListener::bind(scratch.copy.join("old")).unwrap());
    let mut part = Command::new(std::env::current_exe().unwrap());
    play(
        &mut part,
        "escapes::sockets_in_a_writable_directory_are_covered",
        "inside",
    );
    part.current_dir(&scratch.copy)
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let _part = Decoy(part.spawn().unwrap());
    eventually("the socket is bound", || {
        scratch.copy.join("deep/relative").exists()
    });
    // Names that no socket was bound by.
    let _moved = UnixListener::bind(scratch.copy.join("before")).unwrap();
    std::fs::rename(scratch.copy.join("before"), scratch.copy.join("moved")).unwrap();
    std::fs::hard_link(scratch.copy.join("s"), scratch.copy.join("deep/linked")).unwrap();
    let _elsewhere = UnixListener::bind(scratch.home.join("elsewhere")).unwrap();
    std::fs::rename(
        scratch.home.join("elsewhere"),
        scratch.copy.join("deep/came"),
    )
    .unwrap();

    let mut spawn = scratch.python(CONNECT, |_| {});
    spawn
        .args
        .extend(["s", "deep/relative", "moved", "deep/linked", "deep/came"].map(Into::into));
    assert_eq!(output(&scratch.sandbox(), spawn.clone()), "its own works\n");
    assert!(scratch.copy.join("s").exists() && scratch.copy.join("deep/relative").exists());

    // Without isolation both are reached, so the test can fail.
    let Confinement::Confined(profile) = &mut spawn.confinement else {
        panic!("it is confined")
    };
    profile.strength = Strength::Off;
    let message = output(&scratch.sandbox(), spawn);
    assert_eq!(
        message,
        "REACHED s\nREACHED deep/relative\nREACHED moved\nREACHED deep/linked\nREACHED deep/came\nits own works\n"
    );
}

#[test]
fn kernel_keys_and_addresses_are_covered() {
    let scratch = Scratch::new();
    let script = "cat /proc/keys /proc/key-users /proc/kallsyms /proc/timer_list /proc/slabinfo 2>/dev/null\n\
        grep -q . /proc/self/status && grep -q . /proc/cpuinfo && grep -q . /proc/meminfo && cat /proc/uptime > /dev/null && echo the rest";
    assert_eq!(
        output(&scratch.sandbox(), scratch.confined(script)),
        "the rest\n"
    );
    // Without isolation the kernel tells something, so the test can fail.
    assert!(output(&scratch.sandbox(), scratch.script(script)).len() > "the rest\n".len());
}
