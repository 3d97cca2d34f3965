//! Directories opened by handle, so that a replaced directory is detected and links are not followed.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::PathProblem;

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory {
    /// The path without links, at the time of opening.
    pub(crate) path: PathBuf,
    /// The open descriptor (`O_PATH`).
    pub(crate) handle: OwnedFd,
    /// The device and the inode.
    pub(crate) identity: (u64, u64),
}

impl Directory {
    /// Opens a directory by its absolute path. Refuses a link as the last component.
    pub(crate) fn open(path: &Path) -> Result<Self, PathProblem> {
        if !path.is_absolute() {
            return Err(PathProblem::Relative);
        }
        // With a trailing slash, the kernel would follow a link as the last component.
        let plain: PathBuf = path.components().collect();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle =
            rustix::fs::open(&plain, flags, Mode::empty()).map_err(|errno| match errno {
                Errno::NOTDIR | Errno::LOOP => PathProblem::NotADirectory,
                other => PathProblem::Io(other.into()),
            })?;
        let stat = rustix::fs::fstat(&handle).map_err(std::io::Error::from)?;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()))?;
        Ok(Self {
            path,
            handle,
            identity: (stat.st_dev, stat.st_ino),
        })
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
    fn final_link_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let link = home.path().join("link");
        std::os::unix::fs::symlink("/etc", &link).unwrap();
        for spelling in ["link", "link/", "link/."] {
            let opened = Directory::open(&home.path().join(spelling));
            assert!(
                matches!(opened, Err(PathProblem::NotADirectory)),
                "{spelling}: {opened:?}"
            );
        }
        assert!(Directory::open(home.path()).is_ok());
        assert!(matches!(
            Directory::open(Path::new("tmp")),
            Err(PathProblem::Relative)
        ));
    }

    #[test]
    fn links_in_parents_are_resolved() {
        let home = tempfile::tempdir().unwrap();
        let real = home.path().join("real/inner");
        std::fs::DirBuilder::new()
            .recursive(true)
            .create(&real)
            .unwrap();
        std::os::unix::fs::symlink(home.path().join("real"), home.path().join("link")).unwrap();
        let opened = Directory::open(&home.path().join("link/inner")).unwrap();
        assert_eq!(opened.path, real.canonicalize().unwrap());
    }
}
