//! The small part of a repository by which its runners are detected: names near the top, a few manifests, and the beginnings of test
//! files.
//!
//! [`TreeView::read`] is the only function here that touches the disk. It does not follow links and does not open special files.
//! What always holds: a manifest is read whole or refused; of a test file only the beginning is read, and of at most [`MAX_SOURCES`] files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crucible_host::fs::{FsError, read_prefix};
use crucible_model::ByteLimit;

use super::Call;
use super::spec::{Runner, find_runner};

/// Maximum bytes of a manifest. Real ones are far smaller, and a truncated one may mean something else.
const MAX_MANIFEST: ByteLimit = ByteLimit(1 << 20);

/// Bytes read of a test file. Imports are at its top.
const MAX_SOURCE: ByteLimit = ByteLimit(16 << 10);

/// Maximum number of test files that are read.
const MAX_SOURCES: usize = 200;

/// Maximum number of listed directories below the top.
const MAX_DIRS: usize = 200;

/// Directories that are listed with their subdirectories.
const TEST_DIRS: [&str; 5] = ["tests", "test", "spec", "__tests__", "t"];

/// The usual Python environments of a project; the first that exists is the one that gates use.
const ENVIRONMENTS: [&str; 3] = [".venv/", "venv/", "env/"];

/// Files at the top that hold tests under a name that no runner collects.
pub(crate) const LONE_TESTS: [&str; 2] = ["test.py", "tests.py"];

/// Why a tree cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum DetectError {
    /// The top directory cannot be listed.
    #[error("cannot list {path:?}: {source}")]
    List {
        /// Which directory.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A manifest is too large.
    #[error(
        "the manifest {path:?} is larger than {limit} bytes; make it smaller, or configure the gates yourself"
    )]
    TooLarge {
        /// Which file.
        path: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// A manifest cannot be read.
    #[error(transparent)]
    Read(#[from] FsError),
}

/// A detected command that checks a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedGate {
    /// The gate's name, which is its runner's.
    pub id: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Commands for the same tests, if this one cannot run.
    pub alternatives: Vec<Vec<String>>,
    /// Commands that build what its tests run, where they do not run the sources.
    pub builds: Vec<Vec<String>>,
    /// Which file shows it, one sentence.
    pub why: String,
}

/// What a runner may look at to be detected. Names are relative to the top, parts separated by `/`.
#[derive(Clone, Default)]
pub struct TreeView {
    /// The names at the top and in test directories; directories end with `/`.
    pub names: BTreeSet<String>,
    /// The contents of the manifests that runners ask for, and the beginnings of test files.
    pub contents: BTreeMap<String, Vec<u8>>,
    /// Every runner, in the order in which their gates run.
    pub runners: &'static [&'static dyn Runner],
}

impl TreeView {
    /// Looks at the tree at `root`, for these runners.
    ///
    /// # Errors
    ///
    /// Fails when `root` cannot be listed, or when a manifest is too large or cannot be read.
    pub fn read(root: &Path, runners: &'static [&'static dyn Runner]) -> Result<Self, DetectError> {
        let mut view = Self {
            runners,
            ..Self::default()
        };
        view.list(root, "").map_err(|source| DetectError::List {
            path: root.to_string_lossy().into_owned(),
            source,
        })?;
        for dir in view.test_dirs() {
            // A directory that cannot be listed is treated as having no tests.
            let _ = view.list(&root.join(&dir), &dir);
        }
        let below: Vec<String> = view
            .names
            .iter()
            .filter(|name| is_below_test_dir(name))
            .cloned()
            .collect();
        for dir in below.into_iter().take(MAX_DIRS) {
            let _ = view.list(&root.join(&dir), &dir);
        }
        for name in runners.iter().flat_map(|runner| runner.reads()) {
            view.add_below(root, name);
            let is_new = view.names.contains(*name) && !view.contents.contains_key(*name);
            if is_new && let Some(bytes) = read_manifest(root, name)? {
                view.contents.insert((*name).to_owned(), bytes);
            }
        }
        view.add_environments(root);
        let sources: Vec<String> = view
            .names
            .iter()
            .filter(|name| is_test_source(name))
            .cloned()
            .collect();
        for name in sources.into_iter().take(MAX_SOURCES) {
            if let Ok(prefix) = read_prefix(&root.join(&name), MAX_SOURCE) {
                let text = String::from_utf8_lossy(&prefix.bytes).into_owned();
                view.contents.insert(name, text.into_bytes());
            }
        }
        Ok(view)
    }

    /// Returns the gates of this tree, one for each suite.
    #[must_use]
    pub fn gates(&self) -> Vec<DetectedGate> {
        let gate = |runner: &dyn Runner, found: Option<(Vec<String>, String)>| {
            found.map(|(command, why)| DetectedGate {
                id: runner.id().to_owned(),
                alternatives: runner.alternatives(self),
                builds: runner.builds(self),
                command,
                why,
            })
        };
        let gates: Vec<DetectedGate> = self
            .runners
            .iter()
            .filter_map(|runner| gate(*runner, runner.detect(self)))
            .collect();
        if gates.is_empty() {
            return self
                .runners
                .iter()
                .find_map(|runner| gate(*runner, runner.detect_alone(self)))
                .into_iter()
                .collect();
        }
        gates
    }

    /// Returns whether there is a gate for the tests of this language.
    pub(crate) fn has_suite(&self, suite: &str) -> bool {
        self.runners
            .iter()
            .any(|runner| runner.suite() == suite && runner.detect(self).is_some())
    }

    /// Returns the runner that a command starts.
    pub(crate) fn runner_of(&self, command: &[String]) -> Option<&'static dyn Runner> {
        find_runner(self.runners, &Call::parse(command)?)
    }

    /// Adds a manifest that a runner reads in a directory which is not listed. One that is too large is not added.
    fn add_below(&mut self, root: &Path, name: &str) {
        let Some((directory, _)) = name.rsplit_once('/') else {
            return;
        };
        if self.names.contains(&format!("{directory}/"))
            && std::fs::symlink_metadata(root.join(name))
                .is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_MANIFEST.0)
        {
            self.names.insert(name.to_owned());
        }
    }

    /// Adds the programs of Python environments that show whether pytest is installed there.
    fn add_environments(&mut self, root: &Path) {
        for name in ENVIRONMENTS {
            for program in ["bin/python", "bin/pytest"] {
                let name = format!("{name}{program}");
                if std::fs::symlink_metadata(root.join(&name)).is_ok_and(|meta| !meta.is_dir()) {
                    self.names.insert(name);
                }
            }
        }
    }

    /// Returns whether the repository's Python environment has no pytest.
    pub(crate) fn lacks_pytest(&self) -> bool {
        let has = |name: &&&str| self.has(&format!("{name}bin/python"));
        let own = ENVIRONMENTS.iter().find(has);
        own.is_some_and(|name| !self.has(&format!("{name}bin/pytest")))
    }

    /// Returns whether a file or, with a trailing `/`, a directory of this name exists.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns the first of these names that is there.
    pub(crate) fn first<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().find(|name| self.has(name)).copied()
    }

    /// Returns the content of a file, if it was read and is UTF-8.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.contents.get(name)?).ok()
    }

    /// Returns the usual test directories below the top.
    fn test_dirs(&self) -> Vec<String> {
        let at_top = self
            .names
            .iter()
            .filter(|name| name.ends_with('/') && !is_foreign(name));
        let mut dirs: Vec<String> = Vec::new();
        for name in at_top.take(MAX_DIRS) {
            if TEST_DIRS.contains(&name.trim_end_matches('/')) || name == ".config/" {
                dirs.push(name.clone());
            } else {
                dirs.extend(["tests/", "test/"].map(|inner| format!("{name}{inner}")));
            }
        }
        dirs
    }

    /// Reads every name, because the order of a file system is arbitrary.
    fn list(&mut self, dir: &Path, prefix: &str) -> std::io::Result<()> {
        // Opening a link as a directory would follow it.
        if !prefix.is_empty() && !std::fs::symlink_metadata(dir_itself(dir))?.is_dir() {
            return Ok(());
        }
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            // No runner knows a name that is not UTF-8.
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

/// Returns the path without a trailing `/`, with which a link would be followed.
fn dir_itself(dir: &Path) -> std::path::PathBuf {
    dir.components().collect()
}

/// Returns whether a directory has third-party files, or nothing that is tested.
fn is_foreign(name: &str) -> bool {
    let name = name.trim_end_matches('/');
    let is_hidden = name.starts_with('.') && name != ".config";
    is_hidden
        || [
            "node_modules",
            "target",
            "vendor",
            "venv",
            "env",
            "build",
            "dist",
            "docs",
        ]
        .contains(&name)
}

/// Whether a name is a directory right below a test directory.
fn is_below_test_dir(name: &str) -> bool {
    let mut parts = name.trim_end_matches('/').split('/');
    let first = parts.next().unwrap_or_default();
    name.ends_with('/') && TEST_DIRS.contains(&first) && parts.count() == 1
}

/// Returns whether a file has tests in a language where only its text shows the runner.
fn is_test_source(name: &str) -> bool {
    is_python_test(name) || is_node_test(name) || LONE_TESTS.contains(&name)
}

/// Whether a name is one that pytest and unittest collect.
pub(crate) fn is_python_test(name: &str) -> bool {
    let stem = file_name(name).strip_suffix(".py");
    stem.is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}

/// Returns whether `node --test` treats a name as a test.
pub(crate) fn is_node_test(name: &str) -> bool {
    let Some((stem, ending)) = file_name(name).rsplit_once('.') else {
        return false;
    };
    let is_named = stem == "test"
        || stem.starts_with("test-")
        || [".test", "-test", "_test"]
            .iter()
            .any(|end| stem.ends_with(end));
    ["js", "mjs", "cjs"].contains(&ending) && (is_named || name.starts_with("test/"))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn read_manifest(root: &Path, name: &str) -> Result<Option<Vec<u8>>, DetectError> {
    match read_prefix(&root.join(name), MAX_MANIFEST) {
        Ok(prefix) if prefix.total > MAX_MANIFEST.0 => Err(DetectError::TooLarge {
            path: name.to_owned(),
            limit: MAX_MANIFEST.0,
        }),
        Ok(prefix) => Ok(Some(prefix.bytes)),
        Err(FsError::Io { source, .. })
            if source.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            Ok(None)
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
pub(crate) fn view(files: &[(&str, &str)]) -> TreeView {
    let mut view = TreeView {
        runners: super::runners(),
        ..TreeView::default()
    };
    for (name, content) in files {
        view.names.insert((*name).to_owned());
        for (at, _) in name.match_indices('/') {
            view.names.insert(name[..=at].to_owned());
        }
        view.contents
            .insert((*name).to_owned(), content.as_bytes().to_vec());
    }
    view
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests lay out directories and links by hand"
)]
mod tests {
    use super::*;
    use crate::runner::{detect, runners};

    #[test]
    fn every_name_is_listed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tests")).unwrap();
        for number in 0..10_050 {
            std::fs::File::create(dir.path().join(format!("tests/{number}"))).unwrap();
        }
        let view = TreeView::read(dir.path(), runners()).unwrap();
        assert_eq!(view.names.len(), 10_051);
    }

    #[test]
    fn oversized_manifest_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut text = "x".repeat(1 << 20);
        std::fs::write(dir.path().join("Makefile"), &text).unwrap();
        assert_eq!(detect(dir.path()).unwrap(), []);
        text.push_str("\ntest:\n\ttrue\n");
        std::fs::write(dir.path().join("Makefile"), &text).unwrap();
        assert!(matches!(
            detect(dir.path()),
            Err(DetectError::TooLarge {
                limit: 1_048_576,
                ..
            })
        ));
    }

    #[test]
    fn links_and_special_files_are_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("Cargo.toml")).unwrap();
        std::fs::create_dir(dir.path().join("pkg")).unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("pkg/tests")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            dir.path().join("go.mod"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(detect(dir.path()).unwrap(), []);
        assert_eq!(
            TreeView::read(dir.path(), runners())
                .unwrap()
                .names
                .into_iter()
                .collect::<Vec<_>>(),
            ["pkg/"]
        );
    }

    #[test]
    fn package_test_file_reads_are_limited() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("pkg/tests")).unwrap();
        std::fs::write(dir.path().join("pkg/tests/test_a.py"), "ü".repeat(20_000)).unwrap();
        let view = TreeView::read(dir.path(), runners()).unwrap();
        assert!(
            view.text("pkg/tests/test_a.py")
                .is_some_and(|text| text.len() <= (16 << 10) + 3)
        );
    }
}
