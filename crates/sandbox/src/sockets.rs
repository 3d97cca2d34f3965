//! Finds sockets of system services in the file system outside of the covered directories.
//!
//! A network namespace cuts a program off from network addresses and abstract sockets. But every program that sees the path
//! of a socket can connect to it. The kernel lists the bound sockets and the mounts.

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

/// The kernel's list of bound sockets.
const LIST: &str = "/proc/net/unix";
/// The kernel's list of mounts: a socket can be mounted, too.
const MOUNTS: &str = "/proc/self/mountinfo";
/// The most bytes of a list that are read: some hundred thousand sockets.
const LIST_READ: ByteLimit = ByteLimit(64 * 1024 * 1024);
/// The most entries of the writable directories that are checked.
const MAX_ENTRIES: usize = 2_000_000;
/// The longest path that fits into a socket address.
const MAX_PATH: usize = 100;
/// Directories of service sockets besides the covered ones. Sockets elsewhere come and go with the user's own
/// programs, and a path that no longer exists cannot be covered.
const SERVICES: [&str; 5] = ["/etc", "/opt", "/srv", "/usr", "/var"];

/// Returns the paths of the sockets of services.
pub(crate) fn of_services() -> Vec<PathBuf> {
    let is_service = |path: &PathBuf| SERVICES.iter().any(|place| path.starts_with(place));
    let found = bound(&list(LIST)).into_iter().filter(is_service);
    found
        .filter(|path| path.symlink_metadata().is_ok())
        .collect()
}

/// Returns the canonical paths of the sockets below these directories that a program holds open or that are mounted. Checks every
/// entry, because a socket may have been moved or linked since it was bound under the name in the kernel's list. A socket
/// that no program holds open is harmless, and the program may want to create it again.
///
/// Only the first [`MAX_ENTRIES`] entries are checked. Later sockets are found only by their names in the kernel's lists.
pub(crate) fn of_directories(directories: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut left = MAX_ENTRIES;
    let mut found: BTreeSet<PathBuf> = directories
        .iter()
        .flat_map(|directory| sockets_in(directory, &mut left))
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

/// Returns whether a program holds the socket at `path` open, in any network namespace. The kernel finds the socket by its inode and
/// reports this before it compares socket types. A service does not notice a datagram socket that connects, so it is not disturbed.
fn is_held(path: &Path) -> bool {
    let Ok(socket) = UnixDatagram::unbound() else {
        return true;
    };
    let connected = match (
        path.as_os_str().len() > MAX_PATH,
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

/// Reads a list of the kernel; empty if it does not exist.
fn list(place: &str) -> Vec<u8> {
    read_prefix(Path::new(place), LIST_READ)
        .map(|read| read.bytes)
        .unwrap_or_default()
}

/// Returns the path with links in its parent directories resolved.
fn real(path: &Path) -> Option<PathBuf> {
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|meta| meta.file_type().is_socket())
}

/// Returns every socket below a directory without following links, among at most `left` entries. A directory that cannot be listed
/// here cannot be listed in the sandbox either.
fn sockets_in(directory: &Path, left: &mut usize) -> Vec<PathBuf> {
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

/// Parses the absolute paths in the kernel's list of sockets.
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

/// Parses the mount points: the fifth column of the list, in which a space is `\040`.
fn mounted(list: &[u8]) -> Vec<PathBuf> {
    let places = list
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    places
        .map(|place| PathBuf::from(OsStr::from_bytes(&unescaped(place))))
        .collect()
}

/// Decodes the escapes `\NNN`.
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
