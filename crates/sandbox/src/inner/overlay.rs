//! The stage before bubblewrap: private layers over directories of the machine.
//!
//! It runs as `crucible __sandbox-exec overlay N -- PROGRAM ARGS`, where descriptor N holds an [`OverlayRequest`]. In a user and mount
//! namespace of its own it mounts an overlay for each directory, with what is written in memory, and becomes `PROGRAM`: bubblewrap,
//! which binds the overlays to their places. Released bubblewraps have such an option only since 0.11.
//!
//! What always holds: the machine's own paths show what they showed before, so a program that binds one of them by mistake
//! finds no overlay there, and a failed overlay is not a path at all.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};

use crate::sys;
use crate::wire::OverlayRequest;

/// The word that asks for this stage.
pub(crate) const WORD: &str = "overlay";

/// The overlay of the directory at `index` of an order whose layers lie at `place`.
pub(crate) fn merged(place: &Path, index: usize) -> PathBuf {
    place.join(index.to_string()).join("merged")
}

/// Mounts the overlays, and becomes the program. Returns only when that failed, with the reason.
pub(super) fn run(args: &[OsString]) -> Result<Infallible, String> {
    let [number, separator, program, args @ ..] = args else {
        return Err("it takes a descriptor and a program".to_owned());
    };
    let number = number.to_str().and_then(|word| word.parse().ok());
    let descriptor = number
        .filter(|_| separator == "--")
        .and_then(|number| sys::adopt_descriptor(number).ok())
        .ok_or("it takes an open descriptor")?;
    let mut bytes = Vec::new();
    File::from(descriptor)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("reading the order: {error}"))?;
    let order: OverlayRequest =
        serde_json::from_slice(&bytes).map_err(|error| format!("reading the order: {error}"))?;
    mount_all(&order)?;
    let error = sys::command(program).args(args).env_clear().exec();
    Err(format!("starting {program:?}: {error}"))
}

fn mount_all(order: &OverlayRequest) -> Result<(), String> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: rustix::io::Errno| format!("{what}: {error}")
    };
    let (user, group) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    sys::leave_user_and_mount_namespaces()
        .map_err(|error| format!("making namespaces: {error}"))?;
    write("/proc/self/setgroups", "deny").map_err(failed("giving up groups"))?;
    write("/proc/self/uid_map", &format!("{user} {user} 1")).map_err(failed("mapping the user"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))
        .map_err(failed("mapping the group"))?;
    let alone = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", alone).map_err(failed("separating the mounts"))?;
    // Opened before something may be mounted above them.
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lower = order.lower.iter().map(|path| {
        let opened = rustix::fs::open(path, directory, Mode::empty());
        opened.map_err(|error| format!("opening {path:?}: {error}"))
    });
    let lower = lower.collect::<Result<Vec<_>, _>>()?;
    let place = Path::new(&order.place);
    let options = order.size.map_or_else(
        || "mode=0755".to_owned(),
        |size| format!("mode=0755,size={size}"),
    );
    let options = std::ffi::CString::new(options).map_err(|error| error.to_string())?;
    mount("tmpfs", place, "tmpfs", PLAIN, options.as_c_str())
        .map_err(failed("mounting a place in memory"))?;
    rustix::process::chdir(place).map_err(failed("entering the place in memory"))?;
    for (index, lower) in lower.iter().enumerate() {
        overlay(index, &format!("/proc/self/fd/{}", lower.as_raw_fd()))?;
    }
    if lower.is_empty() {
        try_out()?;
    }
    rustix::process::chdir("/").map_err(failed("entering the root"))
}

/// Of every mount that is made here.
const PLAIN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Mounts the overlay over `lower`, at its place below the working directory.
fn overlay(index: usize, lower: &str) -> Result<(), String> {
    let own = Path::new("").join(index.to_string());
    let mode = Mode::from_raw_mode(0o755);
    for directory in [
        own.clone(),
        own.join("upper"),
        own.join("work"),
        own.join("merged"),
    ] {
        rustix::fs::mkdir(&directory, mode)
            .map_err(|error| format!("making {directory:?}: {error}"))?;
    }
    let options = format!("lowerdir={lower},upperdir={index}/upper,workdir={index}/work,userxattr");
    let options = std::ffi::CString::new(options).map_err(|error| error.to_string())?;
    mount(
        "overlay",
        own.join("merged"),
        "overlay",
        PLAIN,
        options.as_c_str(),
    )
    .map_err(|error| format!("mounting an overlay: {error}"))
}

/// Changes an overlay over a directory of its own in every way that needs an attribute of the file system.
fn try_out() -> Result<(), String> {
    let mode = Mode::from_raw_mode(0o755);
    let step = |result: rustix::io::Result<()>| {
        result.map_err(|error| format!("changing an overlay: {error}"))
    };
    step(rustix::fs::mkdir("lower", mode))?;
    step(rustix::fs::mkdir("lower/a", mode))?;
    overlay(0, "lower")?;
    step(rustix::fs::rmdir("0/merged/a"))?;
    step(rustix::fs::mkdir("0/merged/a", mode))?;
    step(rustix::fs::mkdir("0/merged/a/b", mode))
}

fn write(path: &str, text: &str) -> rustix::io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text.as_bytes()).map(drop)
}
