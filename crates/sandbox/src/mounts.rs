//! Directories that are mounted at another path in the sandbox.
//!
//! A [`Mount`] puts a directory, or an empty one, over an existing path. A [`MountTable`] translates paths between the sandbox and
//! the host, so that covers below a mount apply to the mounted directory.
//!
//! Invariants: a target is an existing path without links, outside of system directories, and not one that the sandbox
//! hides or protects. Below an outer mount, it is judged by the content of that mount. A read-only source is not a secret and
//! contains none.

use std::path::{Component, Path, PathBuf};

use crucible_host::env::Environment;

use crate::directory::Directory;
use crate::error::PathProblem;
use crate::hidden;

/// A directory that replaces a path in the sandbox. Needs namespaces: without them, the program works in the source directories at
/// their own paths, and the layer [`crate::Layer::Masks`] is reported as missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// An absolute path of an existing directory. Below another mount, one that exists in the source of that mount.
    pub target: PathBuf,
    /// The mounted directory.
    pub content: MountContent,
}

/// The content of a [`Mount`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountContent {
    /// This directory, writable.
    Writable(PathBuf),
    /// This directory, read-only.
    ReadOnly(PathBuf),
    /// This directory with a private overlay: writes go to memory and are discarded after the run. Read-only if
    /// the kernel has no overlays.
    Overlay(PathBuf),
}

impl Mount {
    /// Returns the source directory if this mount makes it writable.
    pub(crate) fn writable_source(&self) -> Option<&Path> {
        match &self.content {
            MountContent::Writable(source) => Some(source),
            MountContent::ReadOnly(_) | MountContent::Overlay(_) => None,
        }
    }
}

/// Every mount of one run that has a source, outer ones first.
#[derive(Debug, Default)]
pub(crate) struct MountTable {
    /// Target and source.
    pairs: Vec<(PathBuf, PathBuf)>,
}

impl MountTable {
    /// Translates a path of the sandbox to the host.
    pub(crate) fn to_host(&self, inside: &Path) -> PathBuf {
        self.around(inside)
            .map_or_else(|| inside.to_owned(), |(_, _, real)| real)
    }

    /// Translates a path of the host to the sandbox, if a mount shows it.
    pub(crate) fn to_sandbox(&self, outside: &Path) -> PathBuf {
        let holding = self
            .pairs
            .iter()
            .filter(|(_, source)| outside.starts_with(source));
        match holding.max_by_key(|(_, source)| source.components().count()) {
            Some((target, source)) => rebase(outside, source, target),
            None => outside.to_owned(),
        }
    }

    /// Returns the innermost mount at or above `inside`: its target, its source, and the host path.
    pub(crate) fn around(&self, inside: &Path) -> Option<(&Path, &Path, PathBuf)> {
        let holding = self
            .pairs
            .iter()
            .filter(|(target, _)| inside.starts_with(target));
        let (target, source) = holding.max_by_key(|(target, _)| target.components().count())?;
        Some((target, source, rebase(inside, target, source)))
    }

    /// Checks `mount`, adds its source, and returns the opened source. Its target exists, or lies in the program's own
    /// `home`, which is empty and has no link.
    pub(crate) fn add(
        &mut self,
        mount: &Mount,
        home: &Path,
        env: &Environment,
    ) -> Result<Directory, PathProblem> {
        let target = &mount.target;
        if !target.is_absolute() {
            return Err(PathProblem::Relative);
        }
        let plain = target
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if !plain || hidden::is_system(target) {
            return Err(PathProblem::System);
        }
        let real = self.to_host(target);
        // A link in the path would redirect the mount.
        let is_made = target != home && target.starts_with(home);
        if !is_made && (real.canonicalize()? != real || !real.is_dir()) {
            return Err(PathProblem::NotADirectory);
        }
        let (source, read_only) = match &mount.content {
            MountContent::Writable(source) => (source, false),
            MountContent::ReadOnly(source) | MountContent::Overlay(source) => (source, true),
        };
        let directory = Directory::open(source)?;
        if hidden::is_system(&directory.path) {
            return Err(PathProblem::System);
        }
        if read_only && directory.path != *source {
            return Err(PathProblem::NotADirectory);
        }
        let holds_secrets = |secret: &Path| {
            let secret = secret.canonicalize();
            secret.is_ok_and(|secret| source.starts_with(&secret) || secret.starts_with(source))
        };
        if read_only
            && hidden::secrets(env)
                .iter()
                .any(|secret| holds_secrets(secret))
        {
            return Err(PathProblem::Hidden);
        }
        self.pairs.push((target.clone(), directory.path.clone()));
        Ok(directory)
    }
}

/// Moves `path` from below `from` to below `to`.
fn rebase(path: &Path, from: &Path, to: &Path) -> PathBuf {
    match path.strip_prefix(from) {
        Ok(rest) if rest.as_os_str().is_empty() => to.to_owned(),
        Ok(rest) => to.join(rest),
        Err(_) => path.to_owned(),
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests lay out directories and links by hand"
)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::identity::CONFINED_HOME;

    fn create_files(root: &Path, names: &[&str]) {
        names
            .iter()
            .for_each(|name| std::fs::create_dir_all(root.join(name)).unwrap());
    }

    #[test]
    fn paths_are_mapped_through_the_innermost_mount() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        create_files(&root, &["repo/.venv/bin", "copy/.venv", "copy/src"]);
        let (repo, copy) = (root.join("repo"), root.join("copy"));
        let mut table = MountTable::default();
        let env = Environment::default();
        let outer = Mount {
            target: repo.clone(),
            content: MountContent::Writable(copy.clone()),
        };
        let venv = repo.join(".venv");
        let inner = Mount {
            target: venv.clone(),
            content: MountContent::ReadOnly(venv.clone()),
        };
        table.add(&outer, Path::new(CONFINED_HOME), &env).unwrap();
        table.add(&inner, Path::new(CONFINED_HOME), &env).unwrap();
        assert_eq!(table.to_host(&repo.join("src/a")), copy.join("src/a"));
        assert_eq!(table.to_host(&venv.join("bin/x")), venv.join("bin/x"));
        assert_eq!(table.to_host(Path::new("/usr/bin")), Path::new("/usr/bin"));
        assert_eq!(table.to_sandbox(&copy.join("src")), repo.join("src"));
        assert_eq!(table.to_sandbox(&copy), repo);
        assert_eq!(table.to_sandbox(&venv.join("bin")), venv.join("bin"));
    }

    #[test]
    fn link_targets_and_system_paths_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        create_files(&root, &["repo", "copy", "deps", "home/.ssh/keys"]);
        symlink(root.join("deps"), root.join("link")).unwrap();
        symlink("../deps", root.join("copy/node_modules")).unwrap();
        let env = Environment::from_pairs([("HOME", root.join("home").as_os_str())], "/");
        let mut table = MountTable::default();
        let mut tried = |target: &Path, content: MountContent| {
            table
                .add(
                    &Mount {
                        target: target.to_owned(),
                        content,
                    },
                    Path::new(CONFINED_HOME),
                    &env,
                )
                .map(drop)
        };
        let deps = || MountContent::ReadOnly(root.join("deps"));
        for target in ["/", "/usr", "/etc", "/proc/self", "/dev/shm", "/tmp"] {
            assert!(
                matches!(tried(Path::new(target), deps()), Err(PathProblem::System)),
                "{target}"
            );
        }
        assert!(matches!(
            tried(Path::new("repo"), deps()),
            Err(PathProblem::Relative)
        ));
        assert!(matches!(
            tried(&root.join("repo/../deps"), deps()),
            Err(PathProblem::System)
        ));
        assert!(matches!(
            tried(&root.join("link"), deps()),
            Err(PathProblem::NotADirectory)
        ));
        assert!(matches!(
            tried(&root.join("none"), deps()),
            Err(PathProblem::Io(_))
        ));
        let through = MountContent::ReadOnly(root.join("link"));
        assert!(matches!(
            tried(&root.join("repo"), through),
            Err(PathProblem::NotADirectory)
        ));
        for secret in ["home/.ssh", "home/.ssh/keys", "home"] {
            let content = MountContent::ReadOnly(root.join(secret));
            assert!(
                matches!(tried(&root.join("repo"), content), Err(PathProblem::Hidden)),
                "{secret}"
            );
        }
        tried(
            &root.join("repo"),
            MountContent::Writable(root.join("copy")),
        )
        .unwrap();
        // What the copy has at the place of the inner mount decides, not what the original has.
        create_files(&root, &["repo/node_modules"]);
        let inner = tried(&root.join("repo/node_modules"), deps());
        assert!(
            matches!(inner, Err(PathProblem::NotADirectory)),
            "{inner:?}"
        );
    }
}
