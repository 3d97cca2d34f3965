//! The isolation, tried from inside.

use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crucible_host::env::Environment;
use crucible_sandbox::{
    CONFINED_HOME, Cap, Confinement, End, Identity, InnerUser, IsolationLevel, Layer, LayerState,
    Mount, MountContent, Network, PathProblem, Profile, Sandbox, SandboxError, Spawn, Strength,
};

use crate::support::{Scratch, environment, launcher, output, part, path, play, run};

impl Scratch {
    pub(crate) fn confined_with(&self, script: &str, change: impl FnOnce(&mut Profile)) -> Spawn {
        let mut profile = self.profile();
        change(&mut profile);
        let mut spawn = self.script(script);
        spawn.confinement = Confinement::Confined(profile);
        spawn
    }

    /// A sandbox on a machine where bubblewrap is not installed.
    pub(crate) fn without_bubblewrap(&self) -> Sandbox {
        let tools = self.dir.path().join("tools");
        std::fs::create_dir_all(&tools).unwrap();
        let env = Environment::from_pairs(
            [("PATH", tools.as_os_str()), ("HOME", self.home.as_os_str())],
            "/",
        );
        Sandbox::new(Some(launcher()), &env)
    }
}

pub(crate) fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn every_layer_is_available_and_in_receipt() {
    let scratch = Scratch::new();
    let sandbox = scratch.sandbox();
    for status in &sandbox.layers().layers {
        assert_eq!(status.state, LayerState::Available, "{status:?}");
    }
    let json = serde_json::to_value(sandbox.layers()).unwrap();
    assert_eq!(json["schema_version"], "crucible-sandbox-status-v1");
    assert_eq!(json["layers"][0]["layer"], "namespaces");
    let detail = json["layers"][0]["detail"].as_str().unwrap();
    assert!(detail.starts_with("bubblewrap "), "{detail}");

    let done = run(&sandbox, scratch.confined("true")).unwrap();
    assert_eq!(done.receipt.level, IsolationLevel::Full);
    let reached: Vec<_> = done
        .receipt
        .reached
        .iter()
        .map(|found| found.layer)
        .collect();
    for layer in Layer::ALL {
        assert!(reached.contains(&layer), "{layer} is not in {reached:?}");
    }
    assert_eq!(
        serde_json::to_value(&done.receipt).unwrap()["schema_version"],
        "crucible-isolation-v1"
    );
}

#[test]
fn writing_works_only_in_the_writable_directory() {
    let scratch = Scratch::new();
    let target = scratch.home.join("victim");
    write(&target, "whole");
    let leftover = std::env::temp_dir().join(format!("crucible-sandbox-{}", std::process::id()));
    let script = format!(
        "echo made > made && mkdir -p a/b && echo deep > a/b/c && mv a d && ln -s x y || exit 9\n\
         for place in {victim} {home}/new /etc/new /usr/new /var/new /proc/sys/kernel/hostname \
           /proc/sysrq-trigger /sys/kernel/mm/new /dev/new /run/new; do\n\
           (echo bad > $place) 2>/dev/null && echo wrote $place\n\
         done\n\
         rm -f {victim} 2>/dev/null; mv {victim} {victim}2 2>/dev/null; chmod 777 {victim} 2>/dev/null; \
         ln {victim} hard 2>/dev/null && echo linked\n\
         mknod node b 8 0 2>/dev/null && echo node\n\
         echo private > {leftover} && cat {leftover} && echo $HOME && touch $HOME/x && ls -A /run",
        victim = target.display(),
        home = scratch.home.display(),
        leftover = leftover.display(),
    );
    let mut spawn = scratch.confined(&script);
    spawn.env.push(("HOME".into(), CONFINED_HOME.into()));
    assert_eq!(
        output(&scratch.sandbox(), spawn),
        format!("private\n{CONFINED_HOME}\n")
    );
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "whole");
    assert_eq!(
        std::fs::read_to_string(scratch.copy.join("d/b/c")).unwrap(),
        "deep\n"
    );
    assert!(!leftover.exists());
}

#[test]
fn program_sees_the_identity_it_was_given() {
    let scratch = Scratch::new();
    let look = "id -u; id -g; uname -n; touch $HOME/new && ls -A $HOME; ls -A /tmp; echo x > made";
    let spawn = |home: &str| {
        let identity = Identity {
            home: home.into(),
            user: InnerUser::Ids {
                user: 23_456,
                group: 34_567,
            },
            host_name: "other-1".to_owned(),
        };
        let mut spawn = scratch.confined_with(look, |profile| profile.identity = identity);
        spawn.env.push(("HOME".into(), home.into()));
        spawn
    };
    for (home, tmp) in [("/tmp/other/home", "other\n"), ("/home/someone", "")] {
        assert_eq!(
            output(&scratch.sandbox(), spawn(home)),
            format!("23456\n34567\nother-1\nnew\n{tmp}")
        );
    }
    assert!(!Path::new("/home/someone").exists());
    // A directory can stand in a home that is made for the program.
    let mut moved = scratch.confined_with("pwd; echo x > here", |profile| {
        profile.identity.home = "/home/someone".into();
        profile.writable.clear();
        profile.mounts = vec![Mount {
            target: "/home/someone/src/shop".into(),
            content: MountContent::Writable(scratch.copy.clone()),
        }];
    });
    moved.env.push(("HOME".into(), "/home/someone".into()));
    assert_eq!(
        output(&scratch.sandbox(), moved),
        "/home/someone/src/shop\n"
    );
    assert!(scratch.copy.join("here").exists());
    assert!(run(&scratch.sandbox(), spawn("/etc")).is_err());
}

#[test]
fn link_out_of_writable_directory_gives_no_access() {
    let scratch = Scratch::new();
    let target = scratch.home.join("victim");
    write(&target, "whole");
    symlink(&target, scratch.copy.join("link")).unwrap();
    symlink(&scratch.home, scratch.copy.join("dir")).unwrap();
    let done = run(
        &scratch.sandbox(),
        scratch.confined("echo bad > link; echo bad > dir/new; true"),
    )
    .unwrap();
    assert!(done.stderr.total > 0);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "whole");
    assert!(!scratch.home.join("new").exists());
}

#[test]
fn the_users_secrets_cannot_be_read() {
    let scratch = Scratch::new();
    let secrets = [
        ".ssh/id_ed25519",
        ".aws/credentials",
        ".netrc",
        ".config/gh/hosts.yml",
        ".docker/config.json",
        ".cargo/credentials.toml",
        ".local/share/crucible/ledger.db",
        ".gnupg/private-keys-v1.d/x.key",
    ];
    for name in secrets {
        write(&scratch.home.join(name), "the secret");
    }
    let read = |names: &[&str]| {
        let cat = |name: &&str| format!("cat {} 2>/dev/null;", scratch.home.join(name).display());
        names.iter().map(cat).collect::<String>() + "cat /etc/shadow 2>/dev/null || echo no shadow"
    };
    // They stay hidden where the home itself is handed out.
    let home = scratch.home.clone();
    let spawn = scratch.confined_with(&read(&secrets), |profile| profile.writable.push(home));
    assert_eq!(output(&scratch.sandbox(), spawn), "no shadow\n");
    // A link to where the secret really is, as people do who keep their settings in a repository.
    write(&scratch.home.join("dotfiles/npmrc"), "the secret");
    symlink(
        scratch.home.join("dotfiles/npmrc"),
        scratch.home.join(".npmrc"),
    )
    .unwrap();
    let names = [&secrets[..], &[".npmrc", "dotfiles/npmrc"]].concat();
    assert_eq!(
        output(&scratch.sandbox(), scratch.confined(&read(&names))),
        "no shadow\n"
    );
}

#[test]
fn a_masked_path_is_hidden_and_immovable() {
    let scratch = Scratch::new();
    write(&scratch.copy.join(".git/hooks/pre-commit"), "as it was");
    write(&scratch.copy.join(".git/config"), "as it was");
    write(&scratch.copy.join("sub/dir/secret.txt"), "as it was");
    let script = "cat .git/config .git/hooks/pre-commit sub/dir/secret.txt 2>/dev/null\n\
        (echo bad > .git/hooks/pre-commit) 2>/dev/null && echo wrote\n\
        (echo bad > sub/dir/secret.txt) 2>/dev/null && echo wrote\n\
        rm -rf .git 2>/dev/null && echo removed\n\
        mv .git .git2 2>/dev/null && echo moved; mv sub sub2 2>/dev/null && echo moved\n\
        mv sub/dir sub/dir2 2>/dev/null && echo moved; rm -f sub/dir/secret.txt 2>/dev/null && echo removed\n\
        ln -s /tmp sub/dir/other && echo fine > sub/dir/free";
    let masked = vec![
        scratch.copy.join(".git"),
        scratch.copy.join("sub/dir/secret.txt"),
    ];
    let spawn = scratch.confined_with(script, |profile| profile.masked = masked);
    assert_eq!(output(&scratch.sandbox(), spawn), "");
    for name in [".git/hooks/pre-commit", ".git/config", "sub/dir/secret.txt"] {
        assert_eq!(
            std::fs::read_to_string(scratch.copy.join(name)).unwrap(),
            "as it was",
            "{name}"
        );
    }
    assert!(scratch.copy.join("sub/dir/free").exists());
}

#[test]
fn first_process_arguments_name_no_hidden_path() {
    let scratch = Scratch::new();
    crucible_host::fs::write_atomic(&scratch.copy.join("secret.txt"), b"s").unwrap();
    let masked = vec![scratch.copy.join("secret.txt")];
    let script = "tr '\\0' ' ' < /proc/1/cmdline";
    let spawn = scratch.confined_with(script, |profile| profile.masked = masked);
    let words = output(&scratch.sandbox(), spawn);
    assert!(words.contains("bwrap"), "{words}");
    assert!(
        !words.contains("secret.txt") && !words.contains(scratch.dir.path().to_str().unwrap()),
        "{words}"
    );
}

#[test]
fn masked_path_cannot_be_created() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.copy.join("sub")).unwrap();
    let script = "mkdir -p .git/hooks 2>/dev/null && echo made\n\
        (echo bad > .git/hooks/pre-commit) 2>/dev/null && echo wrote; (echo bad > .git/config) 2>/dev/null && echo wrote\n\
        rmdir .git 2>/dev/null && echo removed; mv .git x 2>/dev/null && echo moved; mv sub sub2 2>/dev/null && echo moved\n\
        (echo bad > sub/.env) 2>/dev/null && echo wrote; rm -f sub/.env 2>/dev/null && echo removed\n\
        mkdir -p deep/er 2>/dev/null && echo made; test -d .git && ls -A .git && echo empty";
    let masked = [".git/", "sub/.env", "deep/er/still"]
        .map(|name| scratch.copy.join(name))
        .to_vec();
    let spawn = scratch.confined_with(script, |profile| profile.masked = masked);
    assert_eq!(output(&scratch.sandbox(), spawn), "empty\n");
    let mut left: Vec<_> = std::fs::read_dir(&scratch.copy)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["sub"], "the placeholders are removed");
    assert_eq!(
        std::fs::read_dir(scratch.copy.join("sub")).unwrap().count(),
        0
    );
}

#[test]
fn ending_run_does_not_uncover_anothers_mask() {
    let scratch = Scratch::new();
    let sandbox = scratch.sandbox();
    let spawn = |nap: &str| {
        let script = format!(
            "sleep {nap}; (echo bad > .git/config) 2>/dev/null && echo wrote; mkdir .git 2>/dev/null && echo made; true"
        );
        scratch.confined_with(&script, |profile| {
            profile.masked = vec![scratch.copy.join(".git/")]
        })
    };
    let done = crate::support::runtime().block_on(async {
        let later = async {
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            sandbox.run(spawn("0.6")).await
        };
        let (a, b, c) = tokio::join!(sandbox.run(spawn("0.5")), sandbox.run(spawn("1.0")), later);
        [a.unwrap(), b.unwrap(), c.unwrap()]
    });
    for done in done {
        assert_eq!(done.stdout.text(), "");
    }
    assert!(!scratch.copy.join(".git").exists());
}

#[test]
fn bypassable_mask_is_refused() {
    let scratch = Scratch::new();
    symlink("/etc", scratch.copy.join(".git")).unwrap();
    let refused = |masked: PathBuf| {
        let spawn = scratch.confined_with("true", |profile| profile.masked = vec![masked]);
        match run(&scratch.sandbox(), spawn).unwrap_err() {
            SandboxError::Masked { problem, .. } => problem,
            other => panic!("{other}"),
        }
    };
    assert!(matches!(
        refused(scratch.copy.join(".git")),
        PathProblem::IsLink
    ));
    assert!(matches!(refused("relative".into()), PathProblem::Relative));
    assert!(matches!(
        refused(scratch.copy.clone()),
        PathProblem::Contradiction
    ));
}

#[test]
fn protected_path_cannot_be_writable() {
    let scratch = Scratch::new();
    symlink("/etc", scratch.copy.join("link")).unwrap();
    for place in [
        PathBuf::from("/"),
        "/proc".into(),
        "/dev/shm".into(),
        scratch.copy.join("link"),
        "/no/such".into(),
        "copy".into(),
    ] {
        let spawn = scratch.confined_with("true", |profile| profile.writable.push(place.clone()));
        let error = run(&scratch.sandbox(), spawn).unwrap_err();
        assert!(
            matches!(error, SandboxError::Writable { .. }),
            "{place:?}: {error}"
        );
    }
}

#[test]
fn crucible_home_is_hidden_except_writable_copy() {
    let scratch = Scratch::new();
    let base = scratch.home.join("data");
    write(&base.join("ledger.db"), "the ledger");
    write(&base.join("runs/one/copy/file"), "source");
    write(&base.join("runs/two/plan"), "another run");
    let env = Environment::from_pairs(
        [
            ("PATH", path()),
            ("HOME", scratch.home.clone().into()),
            ("CRUCIBLE_HOME", base.clone().into()),
        ],
        "/",
    );
    let copy = base.join("runs/one/copy");
    let script = "cat file; find ../../.. -type f; echo new > new; (echo bad > ../x) 2>/dev/null && echo wrote; true";
    let mut spawn = scratch.confined_with(script, |profile| profile.writable = vec![copy.clone()]);
    spawn.cwd.clone_from(&copy);
    let sandbox = Sandbox::new(Some(launcher()), &env);
    assert_eq!(
        output(&sandbox, spawn),
        "source../../../runs/one/copy/file\n"
    );
    assert!(copy.join("new").exists());

    // A directory that would be hidden can be worked in, but only read.
    let mut spawn = scratch.confined_with(
        "cat plan; echo x 2>/dev/null > y || echo read-only",
        |profile| profile.writable.clear(),
    );
    spawn.cwd = base.join("runs/two");
    assert_eq!(output(&sandbox, spawn), "another runread-only\n");
    let mut spawn = scratch.confined("true");
    spawn.cwd = base;
    let error = run(&sandbox, spawn).unwrap_err();
    assert!(
        matches!(
            error,
            SandboxError::WorkingDirectory {
                problem: PathProblem::Hidden,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn there_is_no_way_to_the_network() {
    let scratch = Scratch::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let (tcp_port, udp_port) = (
        tcp.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port(),
    );
    let script = format!(
        "(exec 3<>/dev/tcp/127.0.0.1/{tcp_port}) 2>/dev/null && echo tcp\n\
         (echo hello > /dev/udp/127.0.0.1/{udp_port}) 2>/dev/null && echo udp sent; true"
    );
    let bash = |mut spawn: Spawn| {
        spawn.program = "bash".into();
        spawn
    };
    let inside = output(&scratch.sandbox(), bash(scratch.confined(&script)));
    assert!(!inside.contains("tcp"), "{inside}");
    assert!(udp.recv(&mut [0; 16]).is_err(), "a datagram came out");
    let best_effort = |profile: &mut Profile| profile.strength = Strength::BestEffort;
    let inside = output(
        &scratch.without_bubblewrap(),
        bash(scratch.confined_with(&script, best_effort)),
    );
    assert_eq!(inside, "");
    assert!(udp.recv(&mut [0; 16]).is_err(), "a datagram came out");

    // The same script reaches both where the network is given, so the test can fail.
    let open = bash(scratch.confined_with(&script, |profile| profile.network = Network::Host));
    assert_eq!(output(&scratch.sandbox(), open), "tcp\nudp sent\n");
    crate::support::eventually("the datagram comes", || udp.recv(&mut [0; 16]).is_ok());
}

#[test]
fn a_loopback_of_its_own_works_inside() {
    let scratch = Scratch::new();
    let mut spawn = scratch.confined("");
    spawn.program = "bash".into();
    // Nobody listens, and that is what the kernel says: refused, not unreachable.
    spawn.args = vec![
        "-c".into(),
        "(exec 3<>/dev/tcp/127.0.0.1/9) 2>&1 | grep -q 'Connection refused' && echo refused".into(),
    ];
    assert_eq!(output(&scratch.sandbox(), spawn), "refused\n");
}

#[test]
fn proc_does_not_reveal_the_host() {
    let scratch = Scratch::new();
    let outside = std::process::id();
    let script = format!(
        "tr '\\0' '\\n' < /proc/1/environ; ls /proc | grep -c '^[0-9]'; \
         tr '\\0' ' ' < /proc/{outside}/cmdline 2>/dev/null | grep -o nextest; hostname 2>/dev/null || cat /proc/sys/kernel/hostname; \
         grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status"
    );
    let text = output(&scratch.sandbox(), scratch.confined(&script));
    let lines: Vec<_> = text.lines().collect();
    assert!(
        lines[0].parse::<u32>().unwrap() < 8,
        "the first process has an environment, or others are seen: {text}"
    );
    let expected = [
        "crucible",
        "CapPrm:\t0000000000000000",
        "CapEff:\t0000000000000000",
        "CapBnd:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
    ];
    assert_eq!(lines[1..], expected);
}

#[test]
fn namespaces_and_mounts_cannot_be_made_inside() {
    let scratch = Scratch::new();
    let script = "unshare -U true 2>/dev/null && echo user; unshare -m true 2>/dev/null && echo mount\n\
        mount -t tmpfs none . 2>/dev/null && echo mounted; umount /tmp 2>/dev/null && echo unmounted\n\
        chroot . true 2>/dev/null && echo chroot; bwrap --ro-bind / / true 2>/dev/null && echo nested; true";
    assert_eq!(output(&scratch.sandbox(), scratch.confined(script)), "");
}

#[test]
fn resources_are_bounded() {
    let scratch = Scratch::new();
    let mut spawn = scratch
        .confined("ulimit -c; ulimit -n; head -c 2000000 /dev/zero > big; echo $?; wc -c < big");
    spawn.limits.resources.open_files = Cap::At(77);
    spawn.limits.resources.file_size = Cap::At(1 << 20);
    let text = output(&scratch.sandbox(), spawn);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        (lines[0], lines[1], lines[3]),
        ("0", "77", "1048576"),
        "{text}"
    );
    assert_ne!(lines[2], "0");

    let mut spawn = scratch
        .confined("dd if=/dev/zero of=/dev/null bs=600M count=1 2>/dev/null || echo refused");
    spawn.limits.resources.address_space = Cap::At(256 << 20);
    assert_eq!(output(&scratch.sandbox(), spawn), "refused\n");
}

#[test]
fn death_by_signal_gives_shell_exit_code() {
    let scratch = Scratch::new();
    let done = run(&scratch.sandbox(), scratch.confined("kill -SEGV $$")).unwrap();
    assert_eq!(done.end, End::Exited(139));
}

#[test]
fn missing_bubblewrap_leaves_other_layers_and_is_named() {
    let scratch = Scratch::new();
    let sandbox = scratch.without_bubblewrap();
    let error = run(&sandbox, scratch.confined("true")).unwrap_err();
    let SandboxError::LayersMissing { missing } = &error else {
        panic!("{error}")
    };
    assert_eq!(
        missing.iter().map(|lost| lost.layer).collect::<Vec<_>>(),
        [Layer::Namespaces, Layer::Masks]
    );
    assert!(error.to_string().contains("no `bwrap` on PATH"), "{error}");

    let script = format!(
        "echo in > in; (echo bad > {}/new) 2>/dev/null && echo wrote; unshare -U true 2>/dev/null && echo user; \
         mount -t tmpfs none . 2>/dev/null && echo mounted; ulimit -c",
        scratch.home.display()
    );
    let spawn = scratch.confined_with(&script, |profile| profile.strength = Strength::BestEffort);
    let done = run(&sandbox, spawn).unwrap();
    assert_eq!(done.stdout.text(), "0\n", "{}", done.stderr.text());
    assert!(scratch.copy.join("in").exists() && !scratch.home.join("new").exists());
    assert_eq!(done.receipt.level, IsolationLevel::Partial);
    let missing: Vec<_> = done.receipt.missing.iter().map(|lost| lost.layer).collect();
    assert_eq!(missing, [Layer::Namespaces, Layer::Masks]);
    assert!(
        done.receipt.missing[0].reason.contains("not installed"),
        "{:?}",
        done.receipt.missing
    );
}

#[test]
fn broken_bubblewrap_is_reported_with_its_message() {
    let scratch = Scratch::new();
    let sandbox = scratch.without_bubblewrap();
    let fake = scratch.dir.path().join("tools/bwrap");
    write(
        &fake,
        "#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n",
    );
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = run(&sandbox, scratch.confined("true")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("No permissions to create a new namespace"),
        "{error}"
    );
}

#[test]
fn bubblewrap_without_namespaces_is_detected() {
    let scratch = Scratch::new();
    let sandbox = scratch.without_bubblewrap();
    // It skips all options and runs what comes after `--`, so no namespace stands.
    let fake = scratch.dir.path().join("tools/bwrap");
    write(
        &fake,
        "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done; shift\nexec \"$@\"\n",
    );
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(
        sandbox.layers().state(Layer::Namespaces),
        LayerState::Missing
    );
}

#[test]
fn disabled_sandbox_is_reported() {
    let scratch = Scratch::new();
    let script = format!("echo out > {}/new", scratch.home.display());
    let spawn = scratch.confined_with(&script, |profile| profile.strength = Strength::Off);
    let done = run(&scratch.sandbox(), spawn).unwrap();
    assert!(scratch.home.join("new").exists());
    assert_eq!(done.receipt.level, IsolationLevel::None);
    assert_eq!(done.receipt.missing.len(), Layer::ALL.len());
    assert!(done.receipt.missing[0].reason.contains("switched off"));
}

#[test]
fn missing_launcher_confines_nothing_and_required_refuses() {
    let scratch = Scratch::new();
    let sandbox = Sandbox::new(None, &environment(&scratch.home));
    assert!(matches!(
        run(&sandbox, scratch.confined("true")),
        Err(SandboxError::LayersMissing { .. })
    ));
    let spawn = scratch.confined_with("true", |profile| profile.strength = Strength::BestEffort);
    assert_eq!(
        run(&sandbox, spawn).unwrap().receipt.level,
        IsolationLevel::None
    );
    assert_eq!(
        run(&sandbox, scratch.script("true")).unwrap().end,
        End::Exited(0)
    );
}

/// Isolation is the same for an ordinary user as for the superuser.
#[test]
fn an_ordinary_user_is_confined_too() {
    if part().is_some() {
        assert!(!rustix::process::geteuid().is_root());
        every_layer_is_available_and_in_receipt();
        writing_works_only_in_the_writable_directory();
        the_users_secrets_cannot_be_read();
        masked_path_cannot_be_created();
        there_is_no_way_to_the_network();
        proc_does_not_reveal_the_host();
        crate::escapes::nothing_outside_can_be_reached();
        crate::disk::what_cannot_be_counted_counts_all_the_same();
        println!("{AS_ORDINARY_USER}");
        return;
    }
    as_an_ordinary_user("confined::an_ordinary_user_is_confined_too");
}

/// What a part says that has come to its end.
pub(crate) const AS_ORDINARY_USER: &str = "all of it, as an ordinary user";

/// Plays the part of the test `name` as an ordinary user.
pub(crate) fn as_an_ordinary_user(name: &str) {
    let myself = std::env::current_exe().unwrap();
    let place = tempfile::Builder::new()
        .permissions(PermissionsExt::from_mode(0o755))
        .tempdir_in(everybodys_place())
        .unwrap();
    let shared = place.path().join("scratch");
    std::fs::create_dir(&shared).unwrap();
    let copied = |from: &Path, name: &str| {
        let to = place.path().join(name);
        std::fs::copy(from, &to).unwrap();
        to
    };
    let (test, inner) = (
        copied(&myself, "test"),
        copied(&launcher().program, "inner"),
    );
    let mut part = if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&shared, Some(65_534), Some(65_534)).unwrap();
        let mut part = Command::new("setpriv");
        part.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(test);
        part
    } else {
        Command::new(test)
    };
    play(&mut part, name, "ordinary");
    part.env("CRUCIBLE_TEST_LAUNCHER", inner)
        .env("CRUCIBLE_TEST_SCRATCH", &shared)
        .current_dir("/");
    let done = part.output().unwrap();
    let message =
        String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(
        message.contains(AS_ORDINARY_USER) && done.status.success(),
        "{message}"
    );
}

/// A directory that every user can enter and the sandbox does not empty.
fn everybodys_place() -> PathBuf {
    let open = |place: &PathBuf| {
        place.ancestors().all(|dir| {
            dir.metadata()
                .is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0)
        })
    };
    let places = [env!("CARGO_TARGET_TMPDIR"), "/srv", "/opt", "/mnt"];
    places.into_iter().map(PathBuf::from).find(open).unwrap()
}
