//! Which gates a repository has: how its own tests are run.
//!
//! Each detector is a pure function from a small view of the tree (the names at the top and in its test directories,
//! the contents of a few manifests) to one gate. Nothing is run. Adding a detector is one file and one line below.

mod cargo;
mod go;
mod make;
mod npm;
mod pytest;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crucible_host::fs::{FsError, read_prefix};
use crucible_model::ByteLimit;

use crate::error::RepoError;

/// The longest manifest. No tool's own is near it, and what a part of one says is not what the whole says.
const MAX_MANIFEST: ByteLimit = ByteLimit(1 << 20);

/// The directories besides the top whose names are looked at.
const TEST_DIRS: [&str; 2] = ["tests", "test"];

/// A way to check the repository that it brings along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedGate {
    /// The gate's name, which is its detector's.
    pub id: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What gave it away, one sentence.
    pub why: String,
}

/// What a detector may look at. Names are relative to the top, parts separated by `/`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeView {
    /// The names at the top and in its test directories; directories end with `/`.
    pub names: BTreeSet<String>,
    /// The contents of the files that the detectors ask for, where they are there.
    pub contents: BTreeMap<String, Vec<u8>>,
}

/// Finds one kind of gate.
pub trait Detector: Sync {
    /// The name of the gate.
    fn id(&self) -> &'static str;

    /// The files at the top whose contents it needs.
    fn reads(&self) -> &'static [&'static str];

    /// The command that runs the gate, and what gave it away; nothing where the tree has no such gate.
    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)>;
}

/// Every detector, in the order in which their gates run.
#[must_use]
pub fn detectors() -> &'static [&'static dyn Detector] {
    &[&cargo::Cargo, &npm::Npm, &pytest::Pytest, &go::Go, &make::Make]
}

/// The gates of the tree at `root`.
///
/// # Errors
///
/// Fails when `root` cannot be listed, or when a manifest is too large to be read.
pub fn detect(root: &Path) -> Result<Vec<DetectedGate>, RepoError> {
    Ok(TreeView::read(root)?.gates())
}

impl TreeView {
    /// The gates of this tree.
    #[must_use]
    pub fn gates(&self) -> Vec<DetectedGate> {
        let gate = |detector: &&dyn Detector| {
            let (command, why) = detector.detect(self)?;
            Some(DetectedGate { id: detector.id().to_owned(), command, why })
        };
        detectors().iter().filter_map(gate).collect()
    }

    /// Looks at the tree at `root`. Links and special files are not followed or opened.
    ///
    /// # Errors
    ///
    /// Fails when `root` cannot be listed, or when a manifest is too large to be read.
    pub fn read(root: &Path) -> Result<Self, RepoError> {
        let mut view = Self::default();
        view.list(root, "").map_err(|source| RepoError::io("list", root, source))?;
        for dir in TEST_DIRS {
            if view.names.contains(&format!("{dir}/")) {
                // A directory that cannot be listed has no tests that we know of.
                let _ = view.list(&root.join(dir), &format!("{dir}/"));
            }
        }
        for name in detectors().iter().flat_map(|detector| detector.reads()) {
            let is_new = view.names.contains(*name) && !view.contents.contains_key(*name);
            if is_new && let Some(bytes) = read_manifest(&root.join(name))? {
                view.contents.insert((*name).to_owned(), bytes);
            }
        }
        Ok(view)
    }

    /// The content of a file as text, where it was read and is UTF-8.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.contents.get(name)?).ok()
    }

    /// Takes every name: which ones a file system gives first says nothing.
    fn list(&mut self, dir: &Path, prefix: &str) -> std::io::Result<()> {
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            // A name that is not UTF-8 is no name that a detector knows.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if kind.is_dir() {
                self.names.insert(format!("{prefix}{name}/"));
            } else if kind.is_file() {
                self.names.insert(format!("{prefix}{name}"));
            }
        }
        Ok(())
    }
}

fn read_manifest(path: &Path) -> Result<Option<Vec<u8>>, RepoError> {
    match read_prefix(path, MAX_MANIFEST) {
        Ok(prefix) if prefix.total > MAX_MANIFEST.0 => {
            let what = format!("the manifest {}", path.display());
            Err(RepoError::TooLarge { what, limit: MAX_MANIFEST.0 })
        }
        Ok(prefix) => Ok(Some(prefix.bytes)),
        Err(FsError::Io { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => Ok(None),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Words of ours as a command.
pub(crate) fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
pub(crate) fn view(files: &[(&str, &str)]) -> TreeView {
    let mut view = TreeView::default();
    for (name, content) in files {
        view.names.insert((*name).to_owned());
        view.contents.insert((*name).to_owned(), content.as_bytes().to_vec());
    }
    view
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out directories and links by hand")]
mod tests {
    use super::*;

    #[test]
    fn an_empty_tree_has_no_gates_and_a_mixed_one_has_several_in_order() {
        assert_eq!(TreeView::default().gates(), []);
        let mixed = view(&[("Makefile", "test:\n\ttrue\n"), ("go.mod", ""), ("Cargo.toml", "[package]\n")]);
        let ids: Vec<String> = mixed.gates().into_iter().map(|gate| gate.id).collect();
        assert_eq!(ids, ["cargo-test", "go-test", "make-test"]);
    }

    #[test]
    fn every_name_counts_however_many_there_are() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tests")).unwrap();
        for number in 0..10_050 {
            std::fs::File::create(dir.path().join(format!("tests/{number}"))).unwrap();
        }
        let view = TreeView::read(dir.path()).unwrap();
        assert_eq!(view.names.len(), 10_051);
    }

    #[test]
    fn a_manifest_is_read_whole_or_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut text = "x".repeat(1 << 20);
        std::fs::write(dir.path().join("Makefile"), &text).unwrap();
        assert_eq!(detect(dir.path()).unwrap(), []);
        text.push_str("\ntest:\n\ttrue\n");
        std::fs::write(dir.path().join("Makefile"), &text).unwrap();
        assert!(matches!(detect(dir.path()), Err(RepoError::TooLarge { limit: 1_048_576, .. })));
    }

    #[test]
    fn links_and_special_files_are_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("Cargo.toml")).unwrap();
        let pipe = dir.path().join("go.mod");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(detect(dir.path()).unwrap(), []);
    }
}
