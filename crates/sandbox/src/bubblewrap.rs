//! The outer stage: the command that starts the inner stage, inside namespaces where they work.

use std::ffi::OsString;
use std::io::{Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use crucible_host::env::Environment;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::Signal;

use crate::directory::Directory;
use crate::error::SandboxError;
use crate::hosts::{self, Route};
use crate::identity::Identity;
use crate::inner::overlay;
use crate::layers::{Layer, LayerState, Layers};
use crate::layout::{Layout, PRIVATE, SHARED_MEMORY};
use crate::masks::Placeholders;
use crate::plan::{Plan, StageChannel, Target, connect, socket_pair};
use crate::spawn::{Cap, Launcher, Network, Profile, Spawn};
use crate::spawner::SignalTarget;
use crate::sys::{ChildSettings, command, prepare_child};
use crate::terminal_end::Terminal;
use crate::wire::{
    IdentifiedDir, OverlayRequest, Overlays, PrivateSize, StageFeatures, StageIsolation,
    StageRequest,
};

/// The name of the outer stage's program.
pub(crate) const BUBBLEWRAP: &str = "bwrap";
/// Where the inner stage's own program is found inside, wherever it lies outside.
const INNER_PROGRAM: &str = "/dev/.crucible-sandbox-exec";
/// The bytes that all private places have at most: they are in memory.
const LIMIT: u64 = 4 << 30;
/// The size that a private place has at least; zero would mean without end.
const LEAST: u64 = 64 << 10;

/// What the inner stage needs to listen for hosts in the program's own network: to give its loopback addresses, to use
/// ports below 1024, and to give all of this up for good.
const NETWORK_CAPABILITIES: [&str; 3] = ["CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE", "CAP_SETPCAP"];
/// Where programs look names up first.
const HOSTS_FILE: &str = "/etc/hosts";
/// The devices of a program that reaches hosts. For terminals bubblewrap makes a second user namespace, in which nobody
/// has a right over
/// the network any more; so there are no terminals.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];
/// Links beside them.
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];

/// Returns whether the inner stage runs in namespaces on this machine.
pub(crate) fn stage_isolation(layers: &Layers) -> StageIsolation {
    match layers.state(Layer::Namespaces) {
        LayerState::Available => StageIsolation::Namespaces,
        LayerState::Missing => StageIsolation::Machine,
    }
}

/// The plan that starts `target` isolated.
pub(crate) fn plan(
    spawn: &Spawn,
    profile: &Profile,
    target: Target,
    launcher: &Launcher,
    features: StageFeatures,
    env: &Environment,
) -> Result<Plan, SandboxError> {
    let StageFeatures {
        isolation: surroundings,
        private,
        overlays,
    } = features;
    let identity = profile.identity.check();
    identity.map_err(|detail| SandboxError::Setup { detail })?;
    let (socket, other_fd) = socket_pair()?;
    let routes = match (&profile.network, surroundings) {
        (Network::Hosts(hosts), StageIsolation::Namespaces) => hosts::routes(hosts)?,
        _ => Vec::new(),
    };
    let mut layout = Layout::new(profile, &target, &spawn.env, surroundings, env)?;
    let number = other_fd.as_raw_fd().to_string();
    let mut keep = vec![other_fd];
    let mut placeholders = Placeholders::default();
    let mut command = match surroundings {
        StageIsolation::Namespaces => {
            let bubblewrap = env
                .find_program(BUBBLEWRAP)
                .map_err(|error| SandboxError::of_program(Path::new(BUBBLEWRAP), error))?;
            placeholders = std::mem::take(&mut layout.placeholders);
            placeholders
                .make()
                .map_err(|(path, error)| SandboxError::Setup {
                    detail: format!("nothing can be mounted at {}: {error}", path.display()),
                })?;
            let size = |place: &Path| size(place, private, spawn.limits.resources.disk);
            let mut words = world(&profile.network, &profile.identity);
            words.extend(size(Path::new(SHARED_MEMORY)));
            words.extend(["--tmpfs", SHARED_MEMORY].map(OsString::from));
            let layered = layout.overlay_directories();
            let layers = match overlays {
                Overlays::Available if layered.is_empty() => None,
                Overlays::Available | Overlays::Tried => {
                    layout.overlay_mount_point(&[&launcher.program, &bubblewrap])
                }
                Overlays::Missing => None,
            };
            words.extend(layout.arguments(size, layers));
            words.extend(["--dir".into(), profile.identity.home.clone().into()]);
            if matches!(profile.network, Network::Hosts(_)) {
                let (hosts, file) = hosts_file(&routes, &profile.identity.host_name)?;
                words.extend(hosts);
                keep.push(file);
            }
            words.extend([
                "--ro-bind".into(),
                launcher.program.clone().into_os_string(),
                INNER_PROGRAM.into(),
            ]);
            words.extend(["--remount-ro", "/dev", "--chdir", "/"].map(OsString::from));
            let file = words_file(&words)?;
            let mut command = match layers {
                Some(place) => {
                    let order = OverlayRequest {
                        place: place.into(),
                        size: bound(place, private, spawn.limits.resources.disk),
                        lower: layered.into_iter().map(OsString::from).collect(),
                    };
                    let (command, file) = overlay_command(&bubblewrap, launcher, &order)?;
                    keep.push(file);
                    command
                }
                None => command(bubblewrap.as_os_str()),
            };
            command.args(["--args", &file.as_raw_fd().to_string(), "--", INNER_PROGRAM]);
            keep.push(file);
            command
        }
        StageIsolation::Machine => command(launcher.program.as_os_str()),
    };
    // The words of the first process inside are readable there, and so is its environment: it has none.
    command.args(&launcher.args).arg(number).env_clear();
    connect(&mut command, &spawn.stdin)?;
    let root =
        Directory::open(Path::new("/")).map_err(|problem| SandboxError::WorkingDirectory {
            path: "/".into(),
            problem,
        })?;
    prepare_child(
        &mut command,
        ChildSettings {
            cwd: root.handle,
            keep,
            on_orphaned: Signal::KILL,
            doors: target.doors,
            // The inner stage takes it, for a session of its own.
            terminal: Terminal::None,
        },
    );
    let readable = match surroundings {
        StageIsolation::Namespaces => vec!["/".into()],
        StageIsolation::Machine => {
            let mut readable = layout.readable();
            // The trial starts it once more from within.
            readable.push(launcher.program.clone().into_os_string());
            readable
        }
    };
    let order = StageRequest {
        program: layout.program.into_os_string(),
        arg0: target.called,
        terminal: spawn.stdin.terminal(),
        args: spawn.args.clone(),
        env: spawn.env.clone(),
        cwd: IdentifiedDir {
            path: layout.cwd.into_os_string(),
            identity: target.cwd.identity,
        },
        writable: layout.writable,
        read_only: profile.read_only.iter().map(OsString::from).collect(),
        has_moved_mount: profile
            .mounts
            .iter()
            .any(|mount| mount.writable_source().is_some()),
        readable,
        home: profile
            .identity
            .homes()
            .map(|_| profile.identity.home.clone().into_os_string()),
        surroundings,
        private,
        network: profile.network.clone(),
        calls: profile.calls,
        listen: routes.iter().map(|route| route.inside).collect(),
        resources: spawn.limits.resources,
        memory_each: spawn.limits.resources.memory,
        strength: profile.strength,
    };
    let written = |order: &StageRequest| {
        serde_json::to_vec(order).map_err(|error| SandboxError::Setup {
            detail: error.to_string(),
        })
    };
    let order_without_group = written(&order)?;
    let order = written(&StageRequest {
        memory_each: Cap::Unlimited,
        ..order
    })?;
    let reach = match surroundings {
        StageIsolation::Namespaces => SignalTarget::Below,
        StageIsolation::Machine => SignalTarget::Group,
    };
    let conversation = Some(StageChannel {
        socket,
        order,
        order_without_group,
        routes,
    });
    Ok(Plan {
        command,
        reach,
        placeholders,
        conversation,
        program: target.program,
    })
}

/// The command that becomes `program` once private layers lie over directories, and the descriptor with its order.
pub(crate) fn overlay_command(
    program: &Path,
    launcher: &Launcher,
    order: &OverlayRequest,
) -> Result<(Command, OwnedFd), SandboxError> {
    let order = serde_json::to_vec(order).map_err(|error| SandboxError::Setup {
        detail: error.to_string(),
    })?;
    let file = read_by_child("layers", &order)?;
    let mut command = command(launcher.program.as_os_str());
    command
        .args(&launcher.args)
        .args([overlay::WORD, &file.as_raw_fd().to_string(), "--"]);
    command.arg(program);
    Ok((command, file))
}

/// The option that gives the private place mounted next its size: together they hold what the program may
/// write to the disk.
fn size(place: &Path, private: PrivateSize, disk: Cap) -> Vec<OsString> {
    let option = |size: u64| vec!["--size".into(), size.to_string().into()];
    bound(place, private, disk).map_or_else(Vec::new, option)
}

/// The bytes that a private place holds.
fn bound(place: &Path, private: PrivateSize, disk: Cap) -> Option<u64> {
    match (private, disk) {
        (PrivateSize::Sized, Cap::At(most)) => {
            let part = if place == Path::new(PRIVATE[0]) { 2 } else { 4 };
            Some((most.min(LIMIT) / part).max(LEAST))
        }
        (PrivateSize::Unsized, _) | (_, Cap::Unlimited) => None,
    }
}

/// The namespaces and the read-only world.
fn world(network: &Network, identity: &Identity) -> Vec<OsString> {
    let numbers = identity
        .ids()
        .map(|(user, group)| (user.to_string(), group.to_string()));
    let mut words = vec!["--unshare-user", "--unshare-all"];
    if *network == Network::Host {
        words.push("--share-net");
    }
    words.extend([
        "--die-with-parent",
        "--new-session",
        "--hostname",
        &identity.host_name,
        "--cap-drop",
        "ALL",
    ]);
    if let Some((user, group)) = &numbers {
        // Without these the superuser keeps every capability inside.
        words.extend(["--uid", user, "--gid", group]);
    }
    words.extend(["--ro-bind", "/", "/"]);
    if matches!(network, Network::Hosts(_)) {
        for capability in NETWORK_CAPABILITIES {
            words.extend(["--cap-add", capability]);
        }
        words.extend(["--tmpfs", "/dev"]);
        for device in DEVICES {
            words.extend(["--dev-bind-try", device, device]);
        }
        for (to, link) in DEVICE_LINKS {
            words.extend(["--symlink", to, link]);
        }
    } else {
        words.extend(["--dev", "/dev"]);
    }
    words.extend(["--proc", "/proc"]);
    words.iter().map(OsString::from).collect()
}

/// The descriptor that bubblewrap reads its options from. Its own words are readable inside and, outside, to everybody
/// on the machine:
/// they would tell what is hidden.
fn words_file(words: &[OsString]) -> Result<OwnedFd, SandboxError> {
    let failed = |source| SandboxError::Supervision {
        action: "passing the isolation plan",
        source,
    };
    let mut text = Vec::new();
    for word in words {
        if word.as_bytes().contains(&0) {
            // What follows would be read as a word of its own.
            return Err(failed(std::io::Error::from(
                std::io::ErrorKind::InvalidInput,
            )));
        }
        text.extend_from_slice(word.as_bytes());
        text.push(0);
    }
    read_by_child("isolation", &text)
}

/// A descriptor that a child reads `bytes` from.
fn read_by_child(name: &str, bytes: &[u8]) -> Result<OwnedFd, SandboxError> {
    let failed = |source| SandboxError::Supervision {
        action: "passing the isolation plan",
        source,
    };
    let file = memfd_create(name, MemfdFlags::CLOEXEC).map_err(|errno| failed(errno.into()))?;
    let mut file = std::fs::File::from(file);
    file.write_all(bytes)
        .and_then(|()| file.rewind())
        .map_err(failed)?;
    Ok(file.into())
}

/// The options that put a hosts file of our own over the machine's, and the descriptor that it is read from.
fn hosts_file(routes: &[Route], host_name: &str) -> Result<(Vec<OsString>, OwnedFd), SandboxError> {
    let failed = |source| SandboxError::Supervision {
        action: "making the program's hosts file",
        source,
    };
    // A link is followed: what it names is what programs read.
    let place = Path::new(HOSTS_FILE).canonicalize().map_err(failed)?;
    let (mut writer, reader) = UnixStream::pair().map_err(failed)?;
    // The text of the most hosts fits into the socket's buffer.
    writer
        .write_all(hosts::hosts_file(routes, host_name).as_bytes())
        .map_err(failed)?;
    let reader = OwnedFd::from(reader);
    let words = vec![
        "--ro-bind-data".into(),
        reader.as_raw_fd().to_string().into(),
        place.into_os_string(),
    ];
    Ok((words, reader))
}
