//! Sockets of the machine's services that lie in the file system outside of what is covered anyway.
//!
//! A namespace of its own cuts a program from every network address and from abstract sockets; a socket with a
//! path can be connected to by whoever sees the path. The kernel lists those that are bound.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crucible_host::fs::read_prefix;
use crucible_model::ByteLimit;

/// Where the kernel lists them.
const LIST: &str = "/proc/net/unix";
/// How much of it is read: some hundred thousand sockets.
const LIST_READ: ByteLimit = ByteLimit(64 * 1024 * 1024);
/// Where services put theirs, besides what is covered whole. What lies elsewhere comes and goes with people's own
/// programs, and a path that is gone could not be covered.
const SERVICES: [&str; 5] = ["/etc", "/opt", "/srv", "/usr", "/var"];

/// The paths of the services' sockets.
pub(crate) fn of_services() -> Vec<PathBuf> {
    // Where the kernel has no such list there are no such sockets.
    let list = read_prefix(Path::new(LIST), LIST_READ).map(|read| read.bytes).unwrap_or_default();
    bound(&list).into_iter().filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// The paths of services in such a list.
fn bound(list: &[u8]) -> BTreeSet<PathBuf> {
    let paths = list.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
        // Seven columns come before the path, which may hold spaces; `@` begins an abstract name.
        let start = line.iter().position(|byte| *byte == b'/')?;
        Some(PathBuf::from(OsStr::from_bytes(line.get(start..)?)))
    });
    paths.filter(|path| SERVICES.iter().any(|place| path.starts_with(place))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_services_are_taken_from_the_kernels_list() {
        let list = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0: 00000002 00000000 00010000 0001 01 17 /var/lib/my sql/s\n\
            0: 00000002 00000000 00010000 0001 01 18 /home/me/s\n\
            0: 00000003 00000000 00000000 0001 03 19\n\
            0: 00000002 00000000 00010000 0001 01 20 @/var/abstract\n";
        // An abstract name that looks like a path is taken for one; nothing lies there.
        assert_eq!(
            bound(list).into_iter().collect::<Vec<_>>(),
            [Path::new("/var/abstract"), Path::new("/var/lib/my sql/s")]
        );
        assert!(bound(b"").is_empty());
    }
}
