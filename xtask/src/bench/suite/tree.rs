//! The source trees that are measured on: dependencies of this workspace, as cargo has unpacked them.
//!
//! Two of them, because they ask for different things: the largest one is bytes, the one with the most Rust files
//! is paths. Only text counts: a pack, a scan and a patch are about source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_metadata::MetadataCommand;
use crucible_model::RepoPath;
use ignore::WalkBuilder;
use tempfile::TempDir;

use crate::error::TaskError;
use crate::root::Root;

/// The trees of one run.
#[derive(Debug)]
pub(super) struct Trees {
    /// The one with the most bytes.
    pub(super) largest: SourceTree,
    /// The one with the most Rust files.
    pub(super) branched: SourceTree,
}

/// One package's text files.
#[derive(Debug)]
pub(super) struct SourceTree {
    /// The name and the version of the package.
    pub(super) name: String,
    /// Its path.
    pub(super) folder: PathBuf,
    /// Its text files, sorted.
    pub(super) files: Vec<RepoPath>,
    /// The bytes of those files.
    pub(super) bytes: u64,
}

/// A repository whose only commit holds a tree.
#[derive(Debug)]
pub(super) struct Repository {
    folder: TempDir,
}

/// What a package holds, by names and sizes alone.
struct Candidate {
    name: String,
    folder: PathBuf,
    paths: Vec<PathBuf>,
    bytes: u64,
}

impl Trees {
    /// Finds them among the dependencies that this machine builds.
    pub(super) fn find(root: &Root) -> Result<Self, TaskError> {
        let metadata = MetadataCommand::new()
            .current_dir(root.path())
            .other_options(["--filter-platform", "host-tuple", "--all-features"].map(str::to_owned))
            .exec()?;
        let candidates: Vec<Candidate> = metadata
            .packages
            .iter()
            .filter(|package| package.source.is_some())
            .filter_map(|package| {
                let folder = package.manifest_path.parent()?.as_std_path();
                Some(Candidate::look(
                    format!("{}-{}", package.name, package.version),
                    folder,
                ))
            })
            .collect();
        let missing = || TaskError::Missing {
            what: "a dependency with sources".to_owned(),
            fix: "Build the workspace first.".to_owned(),
        };
        let most = |weight: fn(&Candidate) -> u64| {
            candidates
                .iter()
                .max_by_key(|one| weight(one))
                .ok_or_else(missing)
        };
        let trees = Self {
            largest: SourceTree::read(most(|one| one.bytes)?)?,
            branched: SourceTree::read(most(Candidate::rust_files)?)?,
        };
        for tree in [&trees.largest, &trees.branched] {
            eprintln!("  on {}", tree.describe());
        }
        Ok(trees)
    }

    /// Both.
    pub(super) fn both(&self) -> [&SourceTree; 2] {
        [&self.largest, &self.branched]
    }
}

impl SourceTree {
    fn read(candidate: &Candidate) -> Result<Self, TaskError> {
        let mut files = Vec::new();
        let mut bytes = 0;
        for path in &candidate.paths {
            let Some(name) = path.to_str().and_then(|path| path.parse().ok()) else {
                continue;
            };
            let content = read(&candidate.folder.join(path))?;
            if !content.contains(&0) && std::str::from_utf8(&content).is_ok() {
                bytes += content.len() as u64;
                files.push(name);
            }
        }
        files.sort();
        Ok(Self {
            name: candidate.name.clone(),
            folder: candidate.folder.clone(),
            files,
            bytes,
        })
    }

    /// The name, how many files, how many bytes.
    pub(super) fn describe(&self) -> String {
        let kilobytes = self.bytes / 1000;
        format!(
            "{}: {} files, {}.{} MB",
            self.name,
            self.files.len(),
            kilobytes / 1000,
            kilobytes % 1000 / 100
        )
    }

    /// What its files hold, in their order.
    pub(super) fn contents(&self) -> Result<Vec<Vec<u8>>, TaskError> {
        self.files
            .iter()
            .map(|path| read(&self.folder.join(path)))
            .collect()
    }

    /// About the first so many bytes of what its files hold.
    pub(super) fn text(&self, bytes: usize) -> Result<String, TaskError> {
        let mut text = String::with_capacity(bytes);
        for path in &self.files {
            let left = bytes.saturating_sub(text.len());
            if left == 0 {
                break;
            }
            // All of them were read as UTF-8 when the tree was found.
            let content = String::from_utf8_lossy(&read(&self.folder.join(path))?).into_owned();
            text.push_str(&content[..content.floor_char_boundary(left)]);
        }
        Ok(text)
    }

    /// Makes a repository of its files.
    pub(super) fn repository(&self) -> Result<Repository, TaskError> {
        let repository = Repository { folder: scratch()? };
        for path in &self.files {
            let target = repository.path().join(path);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).map_err(TaskError::io("create", parent))?;
            }
            fs::write(&target, read(&self.folder.join(path))?)
                .map_err(TaskError::io("write", &target))?;
        }
        for words in [
            &["init", "--quiet"][..],
            &["add", "--all", "--force"],
            &["commit", "--quiet", "--message", "What is measured"],
            &["gc", "--quiet"],
        ] {
            succeed(repository.git(words))?;
        }
        Ok(repository)
    }
}

impl Candidate {
    fn look(name: String, folder: &Path) -> Self {
        let mut candidate = Self {
            name,
            folder: folder.to_owned(),
            paths: Vec::new(),
            bytes: 0,
        };
        for entry in WalkBuilder::new(folder)
            .standard_filters(false)
            .build()
            .flatten()
        {
            if entry.file_type().is_some_and(|kind| kind.is_file())
                && let Ok(path) = entry.path().strip_prefix(folder)
            {
                candidate.bytes += entry.metadata().map_or(0, |meta| meta.len());
                candidate.paths.push(path.to_owned());
            }
        }
        candidate
    }

    fn rust_files(&self) -> u64 {
        let is_rust = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "rs");
        self.paths.iter().filter(is_rust).count() as u64
    }
}

impl Repository {
    /// The top of its work tree.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What lies at the top of its work tree, git's own folder aside.
    pub(super) fn entries(&self) -> Result<Vec<PathBuf>, TaskError> {
        let listed = || -> std::io::Result<Vec<PathBuf>> {
            fs::read_dir(self.path())?
                .map(|entry| entry.map(|entry| entry.path()))
                .collect()
        };
        let mut entries = listed().map_err(TaskError::io("list", self.path()))?;
        entries.retain(|path| path.file_name() != Some(".git".as_ref()));
        entries.sort();
        Ok(entries)
    }

    /// A call of git in it, without any configuration but its own.
    pub(super) fn git(&self, words: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .args([
                "-c",
                "user.name=bench",
                "-c",
                "user.email=bench@example.invalid",
            ])
            .args(words)
            .current_dir(self.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }
}

/// An empty folder that goes away when it is dropped.
pub(super) fn scratch() -> Result<TempDir, TaskError> {
    tempfile::tempdir().map_err(TaskError::io("create", "a temporary folder"))
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, TaskError> {
    fs::read(path).map_err(TaskError::io("read", path))
}

/// Runs a command that has to succeed.
pub(super) fn succeed(mut command: Command) -> Result<(), TaskError> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(TaskError::Failed {
            command: format!("{command:?}"),
            status,
        }),
        Err(source) => Err(TaskError::Spawn {
            command: format!("{command:?}"),
            source,
        }),
    }
}
