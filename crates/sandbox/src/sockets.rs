//! Sockets of the machine's services that lie in the file system outside of what is covered anyway.
//!
//! A namespace of its own cuts a program from every network address and from abstract sockets; a socket with a
//! path can be connected to by every program that sees the path. The kernel lists those that are bound, and what is mounted.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use crucible_host::fs::read_prefix;
use crucible_model::ByteLimit;

/// Where the kernel lists them.
const LIST: &str = "/proc/net/unix";
/// Where the kernel lists what is mounted: a socket may be, too.
const MOUNTS: &str = "/proc/self/mountinfo";
/// How much of a list is read: some hundred thousand sockets.
const LIST_READ: ByteLimit = ByteLimit(64 * 1024 * 1024);
/// How many entries of the writable directories are looked at.
const MOST_ENTRIES: usize = 2_000_000;
/// The longest path that an address of a socket takes.
const MOST_PATH: usize = 100;
/// Where services put theirs, besides what is covered whole. What lies elsewhere comes and goes with people's own
/// programs, and a path that is gone could not be covered.
const SERVICES: [&str; 5] = ["/etc", "/opt", "/srv", "/usr", "/var"];

/// The paths of the services' sockets.
pub(crate) fn of_services() -> Vec<PathBuf> {
    let is_service = |path: &PathBuf| SERVICES.iter().any(|place| path.starts_with(place));
    let found = bound(&list(LIST)).into_iter().filter(is_service);
    found
        .filter(|path| path.symlink_metadata().is_ok())
        .collect()
}

/// The sockets below these directories, paths without links, that a program holds open or that are mounted there. Every entry is looked at,
/// whatever its name: the kernel's list has the name that a socket was bound by, and it may have been moved or linked since. A socket
/// that no program holds open is no way out, and the program may want to make it anew.
///
/// The first [`MOST_ENTRIES`] entries are looked at. Behind them only those are found whose names are in the kernel's lists.
pub(crate) fn of_directories(directories: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut left = MOST_ENTRIES;
    let mut found: BTreeSet<PathBuf> = directories
        .iter()
        .flat_map(|directory| below(directory, &mut left))
        .filter(|path| is_held(path))
        .collect();
    if left == 0 {
        let is_below = |path: &Path| {
            directories
                .iter()
                .any(|directory| path.starts_with(directory))
        };
        let named = bound(&list(LIST))
            .into_iter()
            .chain(mounted(&list(MOUNTS)))
            .filter_map(|path| real(&path));
        found.extend(named.filter(|path| is_below(path) && is_socket(path)));
    }
    found
}

/// Whether a program holds the socket at `path` open, in whichever network namespace. The kernel finds it by its inode. It tells before it
/// compares kinds, and nobody notices a datagram socket that connects; so no service is disturbed.
fn is_held(path: &Path) -> bool {
    let Ok(socket) = UnixDatagram::unbound() else {
        return true;
    };
    let connected = match (
        path.as_os_str().len() > MOST_PATH,
        path.parent().map(File::open),
        path.file_name(),
    ) {
        (true, Some(Ok(directory)), Some(name)) => socket.connect(
            Path::new("/proc/self/fd")
                .join(directory.as_raw_fd().to_string())
                .join(name),
        ),
        _ => socket.connect(path),
    };
    connected
        .err()
        .is_none_or(|error| error.kind() != ErrorKind::ConnectionRefused)
}

/// A list of the kernel's. Where it has none there is nothing to list.
fn list(place: &str) -> Vec<u8> {
    read_prefix(Path::new(place), LIST_READ)
        .map(|read| read.bytes)
        .unwrap_or_default()
}

/// The path without links in the directories on its way.
fn real(path: &Path) -> Option<PathBuf> {
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|meta| meta.file_type().is_socket())
}

/// Every socket below a directory, links not followed, among as many entries as are left. What cannot be listed from here cannot be from
/// within.
fn below(directory: &Path, left: &mut usize) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).into_iter().flatten().flatten() {
            if *left == 0 {
                return found;
            }
            *left -= 1;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_socket() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found
}

/// The absolute paths in the kernel's list of sockets.
fn bound(list: &[u8]) -> BTreeSet<PathBuf> {
    let paths = list
        .split(|byte| *byte == b'\n')
        .skip(1)
        .filter_map(|line| {
            // Seven columns come before the path, which may hold spaces; `@` begins an abstract name.
            let start = line.iter().position(|byte| *byte == b'/')?;
            Some(PathBuf::from(OsStr::from_bytes(line.get(start..)?)))
        });
    paths.collect()
}

/// The places where something is mounted: the fifth column of the list, in which a blank is `\040`.
fn mounted(list: &[u8]) -> Vec<PathBuf> {
    let places = list
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    places
        .map(|place| PathBuf::from(OsStr::from_bytes(&unescaped(place))))
        .collect()
}

/// The bytes that `\NNN` stands for.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &after[3..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &[u8] = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
        0: 00000002 00000000 00010000 0001 01 17 /var/lib/my sql/s\n\
        0: 00000002 00000000 00010000 0001 01 18 /home/me/s\n\
        0: 00000003 00000000 00000000 0001 03 19\n\
        0: 00000002 00000000 00010000 0001 01 21 ../run/my s\n\
        0: 00000002 00000000 00010000 0001 01 20 @/var/abstract\n";

    #[test]
    fn paths_are_taken_from_the_kernels_list() {
        let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        // An abstract name that looks like a path is taken for one; nothing lies there.
        assert_eq!(
            bound(LISTED),
            paths(&[
                "/home/me/s",
                "/run/my s",
                "/var/abstract",
                "/var/lib/my sql/s"
            ])
        );
        assert!(bound(b"").is_empty());
    }

    #[test]
    fn places_are_taken_from_the_list_of_mounts() {
        let list =
            b"22 1 0:1 / / rw - ext4 /dev/x rw\n23 22 0:2 /s /home/me/a\\040b/s rw - tmpfs t rw\n";
        assert_eq!(mounted(list), [Path::new("/"), Path::new("/home/me/a b/s")]);
    }
}
