//! Sockets of the machine's services that lie in the file system outside of what is covered anyway.
//!
//! A namespace of its own cuts a program from every network address and from abstract sockets; a socket with a
//! path can be connected to by whoever sees the path. The kernel lists those that are bound, and what is mounted.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

use crucible_host::fs::read_prefix;
use crucible_model::ByteLimit;

/// Where the kernel lists them.
const LIST: &str = "/proc/net/unix";
/// Where the kernel lists what is mounted: a socket may be, too.
const MOUNTS: &str = "/proc/self/mountinfo";
/// How much of a list is read: some hundred thousand sockets.
const LIST_READ: ByteLimit = ByteLimit(64 * 1024 * 1024);
/// Where services put theirs, besides what is covered whole. What lies elsewhere comes and goes with people's own
/// programs, and a path that is gone could not be covered.
const SERVICES: [&str; 5] = ["/etc", "/opt", "/srv", "/usr", "/var"];

/// The paths of the services' sockets.
pub(crate) fn of_services() -> Vec<PathBuf> {
    let is_service = |path: &PathBuf| SERVICES.iter().any(|place| path.starts_with(place));
    let found = bound(&list(LIST)).into_iter().filter(is_service);
    found.filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// The sockets below these directories, paths without links, that somebody listens at or that are mounted there. What nobody listens at is
/// no way out, and the program may want to make it anew.
pub(crate) fn of_directories(directories: &[PathBuf]) -> BTreeSet<PathBuf> {
    if directories.is_empty() {
        return BTreeSet::new();
    }
    let (sockets, mounts) = (list(LIST), list(MOUNTS));
    let is_below = |path: &Path| directories.iter().any(|directory| path.starts_with(directory));
    let named = bound(&sockets).into_iter().chain(mounted(&mounts)).filter_map(|path| real(&path));
    let mut found: BTreeSet<PathBuf> = named.filter(|path| is_below(path) && is_socket(path)).collect();
    // One that was bound by a relative path may lie anywhere.
    let relative = bound_relatively(&sockets);
    if !relative.is_empty() {
        for directory in directories {
            let all = below(directory).into_iter();
            found.extend(all.filter(|path| relative.iter().any(|end| path.ends_with(end))));
        }
    }
    found
}

/// A list of the kernel's. Where it has none there is nothing to list.
fn list(place: &str) -> Vec<u8> {
    read_prefix(Path::new(place), LIST_READ).map(|read| read.bytes).unwrap_or_default()
}

/// The path without links in the directories on its way.
fn real(path: &Path) -> Option<PathBuf> {
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket())
}

/// Every socket below a directory, links not followed. What cannot be listed from here cannot be from within.
fn below(directory: &Path) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(at) = left.pop() {
        for entry in std::fs::read_dir(&at).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => left.push(entry.path()),
                Ok(kind) if kind.is_socket() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found
}

/// The absolute paths in the kernel's list of sockets.
fn bound(list: &[u8]) -> BTreeSet<PathBuf> {
    let paths = list.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
        // Seven columns come before the path, which may hold spaces; `@` begins an abstract name.
        let start = line.iter().position(|byte| *byte == b'/')?;
        Some(PathBuf::from(OsStr::from_bytes(line.get(start..)?)))
    });
    paths.collect()
}

/// The relative paths in that list, without the steps at their beginning.
fn bound_relatively(list: &[u8]) -> BTreeSet<PathBuf> {
    let paths = list.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
        let mut rest = line.trim_ascii_start();
        for _ in 0..7 {
            let end = rest.iter().position(u8::is_ascii_whitespace)?;
            rest = rest.get(end..)?.trim_ascii_start();
        }
        (!rest.is_empty() && !matches!(rest[0], b'/' | b'@')).then(|| PathBuf::from(OsStr::from_bytes(rest)))
    });
    let steps = |part: &Component<'_>| !matches!(part, Component::Normal(_));
    paths
        .map(|path| path.components().skip_while(steps).collect())
        .filter(|path: &PathBuf| path.file_name().is_some())
        .collect()
}

/// The places where something is mounted: the fifth column of the list, in which a blank is `\040`.
fn mounted(list: &[u8]) -> Vec<PathBuf> {
    let places = list.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    places.map(|place| PathBuf::from(OsStr::from_bytes(&unescaped(place)))).collect()
}

/// The bytes that `\NNN` stands for.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| *first == b'\\').and_then(|code| std::str::from_utf8(code).ok());
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
        // An abstract name that looks like a path is taken for one, and so is the end of a relative one; nothing lies there.
        assert_eq!(bound(LISTED), paths(&["/home/me/s", "/run/my s", "/var/abstract", "/var/lib/my sql/s"]));
        assert_eq!(bound_relatively(LISTED), paths(&["run/my s"]));
        assert!(bound(b"").is_empty() && bound_relatively(b"").is_empty());
    }

    #[test]
    fn places_are_taken_from_the_list_of_mounts() {
        let list = b"22 1 0:1 / / rw - ext4 /dev/x rw\n23 22 0:2 /s /home/me/a\\040b/s rw - tmpfs t rw\n";
        assert_eq!(mounted(list), [Path::new("/"), Path::new("/home/me/a b/s")]);
    }
}
