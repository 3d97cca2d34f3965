//! The inner stage: confines itself, reports the layers, and becomes the program.
//!
//! It runs as `crucible __sandbox-exec N`, where N is the descriptor of the socket with the request. It
//! checks that the directories are the intended ones, enters the working directory by
//! handle, and listens for the reachable hosts. Then it limits, in this order, resources, writes
//! (Landlock) and system calls (seccomp).
//!
//! Invariants: the report is sent before the program starts, and the program does not inherit the socket.

mod calls;
mod filter;
mod landlock;
mod limits;
mod network;
pub(crate) mod overlay;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use rustix::thread::{
    CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities,
};

use crate::directory::Directory;
use crate::guard;
use crate::hosts::AllowedHost;
use crate::layers::{ActiveLayer, Layer, MissingLayer};
use crate::spawn::{Network, Strength};
use crate::sys::{self, StartArguments};
use crate::terminal_end::Terminal;
use crate::wire::{IdentifiedDir, Report, StageIsolation, StageRequest};

/// The exit code if the program could not be started; the report has the reason.
const NOT_STARTED: u8 = 126;

/// Runs `crucible __sandbox-exec`; `args` are the arguments after that name. Returns only if the
/// program could not be started, after the report gave the reason. With the argument `nothing` it
/// succeeds at once, which tests the sandbox. With `overlay` first, it is the stage before
/// bubblewrap. With `guard` first, it ends the programs of a process that was killed.
#[must_use]
pub fn inner_main(args: &[OsString]) -> ExitCode {
    if let [word] = args
        && word == "nothing"
    {
        return ExitCode::SUCCESS;
    }
    if let [word, rest @ ..] = args
        && word == overlay::WORD
    {
        let Err(why) = overlay::run(rest);
        // Ignored if standard error is closed.
        let _ = writeln!(std::io::stderr(), "overlay: {why}");
        return ExitCode::from(NOT_STARTED);
    }
    if let [word, rest @ ..] = args
        && word == guard::WORD
    {
        return guard::run(rest).unwrap_or(ExitCode::from(NOT_STARTED));
    }
    let number = args.first().and_then(|word| word.to_str()?.parse().ok());
    if let Some(descriptor) = number.and_then(|number| sys::adopt_descriptor(number).ok()) {
        let mut socket = UnixStream::from(descriptor);
        let last = match run_request(&mut socket) {
            Ok(never) => match never {},
            Err(report) => report,
        };
        // Ignored if the outer stage is gone.
        let _ = send_report(&mut socket, &last);
    }
    ExitCode::from(NOT_STARTED)
}

/// Replaces the process by the requested program; returns only on failure.
fn run_request(socket: &mut UnixStream) -> Result<std::convert::Infallible, Report> {
    let failed = |detail: String| Report::Failed { detail };
    let mut bytes = Vec::new();
    socket
        .read_to_end(&mut bytes)
        .map_err(|error| failed(format!("reading the order: {error}")))?;
    let order: StageRequest = serde_json::from_slice(&bytes)
        .map_err(|error| failed(format!("reading the order: {error}")))?;

    for place in &order.writable {
        open_place(place)?;
    }
    let cwd = open_place(&order.cwd)?;
    rustix::process::fchdir(&cwd.handle)
        .map_err(|errno| failed(format!("entering {:?}: {errno}", order.cwd.path)))?;
    sys::mark_private_descriptors()
        .map_err(|error| failed(format!("closing descriptors: {error}")))?;

    if order.terminal == Terminal::Controlling {
        // It fails where this process leads its session already.
        let _leads = rustix::process::setsid();
        sys::take_terminal().map_err(|error| failed(format!("taking the terminal: {error}")))?;
    }

    let mut layers = LayersInForce::from_request(&order);
    network::listen_on(&order.listen, socket).map_err(failed)?;
    layers.record(Layer::ResourceLimits, limits::apply(&order));
    rustix::thread::set_no_new_privs(true)
        .map_err(|errno| failed(format!("giving up privileges: {errno}")))?;
    give_up_capabilities().map_err(|errno| failed(format!("giving up capabilities: {errno}")))?;
    let landlock = landlock::apply(&order);
    let start = StartArguments::new(&order.program, &order.arg0, &order.args, &order.env)
        .map_err(|error| failed(format!("laying out the program's words: {error}")))?;
    let last = calls::programs(order.calls, start.addresses(), std::process::id());
    let seccomp = filter::apply(&order).and_then(|detail| match &last {
        Ok(_) => Ok(detail + calls::describe(order.calls)),
        Err(why) => Err(why.clone()),
    });
    if order.surroundings == StageIsolation::Machine && order.network != Network::Host {
        layers.record(
            Layer::NetworkCut,
            cut_without_namespaces(&order.network, &seccomp),
        );
    }
    layers.record(Layer::Landlock, landlock);
    layers.record(Layer::Seccomp, seccomp);
    if order.strength == Strength::Required && !layers.missing.is_empty() {
        return Err(Report::Refused {
            missing: layers.missing,
        });
    }
    send_report(
        socket,
        &Report::Ready {
            reached: layers.reached,
            missing: layers.missing,
        },
    )
    .map_err(|error| failed(format!("reporting: {error}")))?;
    // After the last filter, this stage can only start the program.
    for program in last.unwrap_or_default() {
        seccompiler::apply_filter(&program)
            .map_err(|error| failed(format!("naming its calls: {error}")))?;
    }
    let error = start.become_it();
    Err(Report::NotStarted {
        errno: error.raw_os_error().unwrap_or(libc::EINVAL),
    })
}

/// Drops the capabilities of root, if the user is root: with them it could read memory and disks of the
/// machine, which the other layers do not protect.
fn give_up_capabilities() -> rustix::io::Result<()> {
    for capability in CapabilitySet::all().iter() {
        // Only who may change it has anything in it that counts; others fail here, and have none below.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let none = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
}

/// Opens a directory and checks its identity.
fn open_place(place: &IdentifiedDir) -> Result<Directory, Report> {
    let path = Path::new(&place.path);
    let directory = Directory::open(path).map_err(|problem| Report::Failed {
        detail: format!("{path:?}: {problem}"),
    })?;
    if directory.identity != place.identity {
        return Err(Report::Failed {
            detail: format!("{path:?} was exchanged for another directory"),
        });
    }
    Ok(directory)
}

fn send_report(socket: &mut UnixStream, report: &Report) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    socket.write_all(&line)
}

/// The layers in force so far.
struct LayersInForce {
    reached: Vec<ActiveLayer>,
    missing: Vec<MissingLayer>,
}

impl LayersInForce {
    /// Lists the layers that the outer stage set up, or did not.
    fn from_request(order: &StageRequest) -> Self {
        let mut layers = Self {
            reached: Vec::new(),
            missing: Vec::new(),
        };
        match order.surroundings {
            StageIsolation::Namespaces => {
                let kinds = "user mount pid ipc uts, cgroup where the kernel has it";
                layers.record(Layer::Namespaces, Ok(kinds.to_owned()));
                if order.network != Network::Host {
                    let mut detail = "a network namespace with a loopback of its own".to_owned();
                    if let Network::Hosts(hosts) = &order.network {
                        let hosts: Vec<_> = hosts.iter().map(AllowedHost::to_string).collect();
                        detail.push_str(&format!("; of what is outside only {}", hosts.join(", ")));
                    }
                    layers.record(Layer::NetworkCut, Ok(detail));
                }
                let mut detail =
                    "mounts over the home directories, but their tools, and each other place"
                        .to_owned();
                if !order.read_only.is_empty() {
                    detail.push_str("; what is to stay as it is is mounted read-only");
                }
                if order.has_moved_mount {
                    detail.push_str("; the copy stands at the path of the original");
                }
                layers.record(Layer::Masks, Ok(detail));
            }
            StageIsolation::Machine => {
                layers.record(
                    Layer::Namespaces,
                    Err("bubblewrap does not work here".to_owned()),
                );
                let mut reason =
                    "needs namespaces: what is to be hidden inside the writable directories is not"
                        .to_owned();
                for place in &order.read_only {
                    reason.push_str(&format!("; {} can be changed", place.to_string_lossy()));
                }
                if order.has_moved_mount {
                    reason.push_str("; the copy is not at the path of the original");
                }
                layers.record(Layer::Masks, Err(reason));
            }
        }
        layers
    }

    fn record(&mut self, layer: Layer, result: Result<String, String>) {
        match result {
            Ok(detail) => self.reached.push(ActiveLayer { layer, detail }),
            Err(reason) => self.missing.push(MissingLayer { layer, reason }),
        }
    }
}

/// Without a network namespace, the filter refuses to create any socket.
fn cut_without_namespaces(
    network: &Network,
    seccomp: &Result<String, String>,
) -> Result<String, String> {
    match (seccomp, network) {
        (Ok(_), Network::Hosts(_)) => {
            Ok("no socket can be made, so the allowed hosts are not reached either".to_owned())
        }
        (Ok(_), _) => Ok("no socket can be made, not even for the loopback".to_owned()),
        (Err(reason), _) => Err(format!("needs a network namespace or seccomp: {reason}")),
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests lay out directories and links by hand"
)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_exchanged_is_noticed() {
        let home = tempfile::tempdir().unwrap();
        let [copy, other] = ["copy", "other"].map(|name| {
            let path = home.path().join(name);
            std::fs::DirBuilder::new().create(&path).unwrap();
            path
        });
        let identity = Directory::open(&copy).unwrap().identity;
        let open = |path: &Path| {
            open_place(&IdentifiedDir {
                path: path.as_os_str().to_owned(),
                identity,
            })
        };
        assert!(open(&copy).is_ok());
        assert!(matches!(open(&other), Err(Report::Failed { .. })));
        let link = home.path().join("link");
        std::os::unix::fs::symlink(&copy, &link).unwrap();
        assert!(matches!(open(&link), Err(Report::Failed { .. })));
    }

    #[test]
    fn words_that_name_no_inherited_descriptor_do_nothing() {
        for word in ["", "x", "-1", "0", "2", "99999"] {
            assert_ne!(
                format!("{:?}", inner_main(&[word.into()])),
                format!("{:?}", ExitCode::SUCCESS)
            );
        }
        // One of our own, which is closed when a program starts: nobody was given it.
        let own = std::fs::File::open("/").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&own).to_string();
        assert_ne!(
            format!("{:?}", inner_main(&[number.into()])),
            format!("{:?}", ExitCode::SUCCESS)
        );
        assert!(own.metadata().is_ok(), "it was taken from its owner");
    }
}
