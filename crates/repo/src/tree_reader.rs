//! Reads files of a work tree that others may be changing, so that the checked file is the read one.
//!
//! A name is resolved by the kernel from the open top directory, with links refused in every part. Where
//! there is a link, the way is walked part by part, and every place it leads over is returned, so that the
//! caller can judge each of them. A link that is absolute, climbs out or reaches git's own directory leaves
//! the tree, even where it comes back. A file that becomes a link after it was looked at is not read.

use std::path::{Component, Path, PathBuf};

use crucible_model::{ByteLimit, RepoPath};
use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::beneath::Root;
use crate::error::RepoError;

/// Maximum number of links in one path; the kernel's own limit.
const MAX_LINKS: usize = 40;

/// Maximum buffer allocated from a file's stated size, in bytes.
const MAX_CONCURRENT: u64 = 1 << 20;

/// Initial read of a file that is longer than stated, in bytes.
const FIRST_STEP: usize = 1 << 16;

/// A work tree that files are read from.
#[derive(Debug)]
pub struct TreeReader {
    root: Root,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathState {
    /// A regular file, without any link in its path.
    File {
        /// Its size in bytes.
        size: u64,
    },
    /// A regular file behind links.
    ViaLink {
        /// The target of each link but the last, with the rest of the path.
        through: Vec<RepoPath>,
        /// Where it really lies.
        to: RepoPath,
        /// Its size in bytes.
        size: u64,
    },
    /// Nothing.
    Missing,
    /// A directory, a device, a pipe.
    NotAFile,
    /// A link leaves the tree or enters git's own directory.
    Outside,
    /// Links lead in circles, or over more of them than are followed.
    LinkLoop,
    /// A link leads to nothing.
    DanglingLink,
    /// The system refuses to look.
    Unreadable {
        /// What it says.
        problem: String,
    },
}

impl TreeReader {
    /// Opens the top directory of a work tree; links in its path are followed.
    ///
    /// # Errors
    ///
    /// Fails when there is no such directory.
    pub fn open(top: &Path) -> Result<Self, RepoError> {
        Ok(Self {
            root: Root::open(top)?,
        })
    }

    /// Returns what exists at `path`, without reading content.
    #[must_use]
    pub fn state(&self, path: &RepoPath) -> PathState {
        match self.stat(path.as_ref()) {
            Ok((FileType::RegularFile, size)) => PathState::File { size },
            Ok((FileType::Symlink, _)) | Err(Errno::LOOP) => self.follow(path),
            other => Self::plain(other),
        }
    }

    /// Reads the first `limit` bytes of a regular file into `bytes`, which is cleared first, and returns the
    /// file's length in bytes. Does not follow links and does not block.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read, is not regular, or is reached through a link.
    pub fn read_prefix(
        &self,
        path: &RepoPath,
        limit: ByteLimit,
        bytes: &mut Vec<u8>,
    ) -> Result<u64, RepoError> {
        let fail = |errno| self.root.fail("read", path.as_ref(), errno);
        bytes.clear();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self
            .root
            .open_file(path.as_ref(), flags, Mode::empty())
            .map_err(fail)?;
        let stat = rustix::fs::fstat(&file).map_err(fail)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(fail(Errno::INVAL));
        }
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        let limit = usize::try_from(limit.0).unwrap_or(usize::MAX);
        // One extra byte reveals the end of the file without another call.
        let hint = usize::try_from(size.min(MAX_CONCURRENT))
            .unwrap_or_default()
            .saturating_add(1)
            .min(limit);
        bytes.reserve_exact(hint);
        while bytes.len() < limit {
            if bytes.len() == bytes.capacity() {
                bytes.reserve_exact(bytes.len().max(FIRST_STEP).min(limit - bytes.len()));
            }
            match rustix::io::read(&file, spare_capacity(bytes)) {
                Ok(0) => break,
                Ok(_) if bytes.len() == usize::try_from(size).unwrap_or(usize::MAX) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(fail(errno)),
            }
        }
        bytes.truncate(limit);
        Ok(size.max(bytes.len() as u64))
    }

    fn stat(&self, path: &Path) -> Result<(FileType, u64), Errno> {
        let file = self.root.open_file(path, OFlags::PATH, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        Ok((
            FileType::from_raw_mode(stat.st_mode),
            u64::try_from(stat.st_size).unwrap_or_default(),
        ))
    }

    /// Converts the result for a path without links.
    fn plain(looked: Result<(FileType, u64), Errno>) -> PathState {
        match looked {
            Ok((FileType::RegularFile, size)) => PathState::File { size },
            Ok(_) => PathState::NotAFile,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => PathState::Missing,
            Err(errno) => PathState::Unreadable {
                problem: errno.to_string(),
            },
        }
    }

    /// Resolves a path with links component by component. `behind` never has a link in it.
    fn follow(&self, path: &RepoPath) -> PathState {
        let mut target_path = PathBuf::new();
        let mut ahead: Vec<String> = path.segments().rev().map(str::to_owned).collect();
        let mut over: Vec<RepoPath> = Vec::new();
        while let Some(part) = ahead.pop() {
            if part == ".." {
                if !target_path.pop() {
                    return PathState::Outside;
                }
                continue;
            }
            target_path.push(&part);
            let looked = self.stat(&target_path);
            match looked {
                Ok((FileType::Symlink, _)) => {
                    if over.len() >= MAX_LINKS {
                        return PathState::LinkLoop;
                    }
                    let Some(target) = self.target_of(&target_path) else {
                        return PathState::Outside;
                    };
                    target_path.pop();
                    ahead.extend(target.into_iter().rev());
                    let Some(place) = place(&target_path, &ahead) else {
                        return PathState::Outside;
                    };
                    over.push(place);
                }
                Ok((FileType::Directory, _)) if !ahead.is_empty() => {}
                // The path ends here, or cannot continue.
                Ok((FileType::RegularFile, size)) if ahead.is_empty() => {
                    let Some(to) = over.pop() else {
                        return PathState::File { size };
                    };
                    return PathState::ViaLink {
                        through: over,
                        to,
                        size,
                    };
                }
                Ok(_) if ahead.is_empty() => return PathState::NotAFile,
                Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => {
                    return if over.is_empty() {
                        PathState::Missing
                    } else {
                        PathState::DanglingLink
                    };
                }
                Err(errno) => {
                    return PathState::Unreadable {
                        problem: errno.to_string(),
                    };
                }
            }
        }
        PathState::NotAFile
    }

    /// Returns the components of a link's target; `None` if it is absolute, or not UTF-8.
    fn target_of(&self, link: &Path) -> Option<Vec<String>> {
        let target = self.root.read_link(link).ok()?;
        let mut parts = Vec::new();
        for part in target.components() {
            match part {
                Component::Normal(name) => parts.push(name.to_str()?.to_owned()),
                Component::ParentDir => parts.push("..".to_owned()),
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        (!parts.is_empty()).then_some(parts)
    }
}

/// Returns the destination of a path by its names; `None` if it leaves the root or enters git's own
/// directory.
fn place(target_path: &Path, ahead: &[String]) -> Option<RepoPath> {
    let mut parts: Vec<&str> = target_path
        .components()
        .filter_map(|part| part.as_os_str().to_str())
        .collect();
    for part in ahead.iter().rev() {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    parts.join("/").parse().ok()
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests lay out trees with links by hand"
)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Tree {
        dir: tempfile::TempDir,
    }

    impl Tree {
        fn new(files: &[&str], links: &[(&str, &str)]) -> Self {
            let tree = Self {
                dir: tempfile::tempdir().unwrap(),
            };
            for path in files {
                let at = tree.top().join(path);
                std::fs::create_dir_all(at.parent().unwrap()).unwrap();
                std::fs::write(at, "four").unwrap();
            }
            for (link, target) in links {
                let at = tree.top().join(link);
                std::fs::create_dir_all(at.parent().unwrap()).unwrap();
                symlink(target, at).unwrap();
            }
            tree
        }

        fn top(&self) -> PathBuf {
            self.dir.path().join("top")
        }

        fn look(&self, path: &str) -> PathState {
            TreeReader::open(&self.top())
                .unwrap()
                .state(&path.parse().unwrap())
        }
    }

    fn linked(through: &[&str], to: &str) -> PathState {
        let through = through.iter().map(|place| place.parse().unwrap()).collect();
        PathState::ViaLink {
            through,
            to: to.parse().unwrap(),
            size: 4,
        }
    }

    #[test]
    fn every_link_target_is_reported() {
        let tree = Tree::new(
            &["src/a.rs", "src/deep/b.rs", "build/x.rs"],
            &[
                ("one", "src/a.rs"),
                ("two", "./one"),
                ("dir", "src/deep"),
                ("src/up", "../src/deep/../a.rs"),
                ("src/deep/top", "../.."),
                ("detour", "build/back"),
                ("build/back", "../src/a.rs"),
                ("loop", "loop"),
                ("dangling", "src/none"),
                ("past", "src/a.rs/x"),
            ],
        );
        for (path, expected) in [
            ("src/a.rs", PathState::File { size: 4 }),
            ("one", linked(&[], "src/a.rs")),
            ("two", linked(&["one"], "src/a.rs")),
            ("dir/b.rs", linked(&[], "src/deep/b.rs")),
            ("src/up", linked(&[], "src/a.rs")),
            ("src/deep/top/one", linked(&["one"], "src/a.rs")),
            ("detour", linked(&["build/back"], "src/a.rs")),
            ("dir", PathState::NotAFile),
            ("src", PathState::NotAFile),
            ("src/b.rs", PathState::Missing),
            ("src/a.rs/x", PathState::Missing),
            ("none/x", PathState::Missing),
            ("loop", PathState::LinkLoop),
            ("dangling", PathState::DanglingLink),
            ("past", PathState::DanglingLink),
            ("one/x", PathState::DanglingLink),
        ] {
            assert_eq!(tree.look(path), expected, "{path}");
        }
    }

    #[test]
    fn link_leaving_tree_is_outside() {
        let tree = Tree::new(
            &["src/a.rs", ".git/config", "sub/.git/config", "a/b/c/x"],
            &[],
        );
        std::fs::write(tree.dir.path().join("outside"), "secret").unwrap();
        let absolute = tree.top().join("src/a.rs");
        for (link, target) in [
            ("out", "../outside"),
            ("out-and-in", "../top/src/a.rs"),
            ("a/b/c/up", "../../../.."),
            ("far", "a/b/c/up/outside"),
            ("etc", "/etc/passwd"),
            ("absolute", absolute.to_str().unwrap()),
            ("proc", "/proc/self/environ"),
            ("git", ".git/config"),
            ("sub-git", "sub/.git"),
            ("chain", "git"),
        ] {
            symlink(target, tree.top().join(link)).unwrap();
            let path = if link == "sub-git" {
                "sub-git/config"
            } else {
                link
            };
            let path = if link == "a/b/c/up" {
                "a/b/c/up/outside"
            } else {
                path
            };
            assert_eq!(tree.look(path), PathState::Outside, "{link}");
        }
        let names: Vec<String> = (0..50).map(|number| format!("n{number}")).collect();
        for pair in names.windows(2) {
            symlink(&pair[1], tree.top().join(&pair[0])).unwrap();
        }
        symlink("src/a.rs", tree.top().join("n49")).unwrap();
        assert_eq!(tree.look("n0"), PathState::LinkLoop);
        assert!(
            matches!(tree.look("n20"), PathState::ViaLink { through, .. } if through.len() == 29)
        );
    }

    #[test]
    fn only_regular_files_are_read_within_limit() {
        let tree = Tree::new(&["a", "dir/b"], &[("link", "a"), ("to-dir", "dir")]);
        let pipe = tree.top().join("pipe");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
        let sparse = std::fs::File::create(tree.top().join("sparse")).unwrap();
        sparse.set_len(300 << 20).unwrap();
        let reader = TreeReader::open(&tree.top()).unwrap();
        let mut bytes = b"what was before".to_vec();
        let mut read = |path: &str, limit: u64| {
            let size = reader.read_prefix(&path.parse().unwrap(), ByteLimit(limit), &mut bytes);
            size.map(|size| (bytes.clone(), size))
                .map_err(|error| error.to_string())
        };
        assert_eq!(read("a", 100), Ok((b"four".to_vec(), 4)));
        assert_eq!(read("dir/b", 3), Ok((b"fou".to_vec(), 4)));
        assert_eq!(read("a", 0), Ok((Vec::new(), 4)));
        assert_eq!(read("sparse", 1000), Ok((vec![0; 1000], 300 << 20)));
        for path in ["link", "to-dir/b", "dir", "pipe", "none"] {
            assert!(
                read(path, 100).is_err_and(|error| error.contains(path)),
                "{path}"
            );
        }
        assert!(bytes.capacity() < 1 << 20, "{}", bytes.capacity());
        assert_eq!(reader.state(&"pipe".parse().unwrap()), PathState::NotAFile);
    }
}
