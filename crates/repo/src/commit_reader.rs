//! Reads commits and notes of any repository: one with a work tree, a bare one on a server, and the objects of a push
//! that is not accepted yet.
//!
//! A push is judged before its objects belong to the repository. Git then names their directory in the environment of
//! the hook, and only in that case are its variables taken from there. Commits are read in batches, so the number of
//! processes does not grow with the number of commits. The bytes of each object are hashed again.

mod changes;
mod history;
mod notes;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_host::fs;
use crucible_model::ByteLimit;
use crucible_sandbox::Sandbox;

use crate::error::RepoError;
use crate::git::store::{HashKind, ObjectKind};
use crate::git::{Call, Git, MAX_COMMIT, Output, Runner};
use crate::oid::Oid;
use crate::tree::quoted;

pub use history::Revisions;
pub use notes::NotesChange;

/// The variables of a hook that judges a push, and the one that says so.
const QUARANTINE: &str = "GIT_QUARANTINE_PATH";
const OBJECTS: &str = "GIT_OBJECT_DIRECTORY";
const ALTERNATES: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES";

/// git knows these two without reading them.
const EMPTY_TREE_SHA1: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_TREE_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

/// Reads commits and notes.
#[derive(Debug, Clone)]
pub struct CommitReader {
    runner: Runner,
    git_dir: PathBuf,
    objects: PathBuf,
    /// Where the objects of a push are.
    quarantine: Vec<(OsString, OsString)>,
    scratch: PathBuf,
}

/// A ref of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRef {
    /// Its full name.
    pub name: String,
    /// The object that it leads to.
    pub oid: Oid,
    /// For a symbolic ref, the full name of the ref that it leads to.
    pub target: Option<String>,
}

/// An object that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadObject {
    /// Its bytes, which match its name.
    Bytes(Vec<u8>),
    /// No object has this name and kind, or its bytes do not match the name.
    Missing,
    /// It is larger than the limit.
    TooLarge,
}

impl CommitReader {
    /// Opens the repository at `path`: a work tree, a directory in one, or a bare repository.
    ///
    /// # Errors
    ///
    /// Fails when there is no repository, or git is missing.
    pub fn open(sandbox: Arc<Sandbox>, env: &Environment, path: &Path) -> Result<Self, RepoError> {
        let start = env.working_directory().join(path);
        let (git_dir, common_dir) = match Git::directories(&start) {
            Ok(directories) => directories,
            Err(RepoError::Bare { path }) => {
                let common_dir = Git::common_directory(&path)?;
                (path, common_dir)
            }
            Err(error) => return Err(error),
        };
        let mut quarantine = Vec::new();
        if env
            .get_os(QUARANTINE)
            .is_some_and(|place| !place.is_empty())
        {
            if let Some(objects) = env.get_os(OBJECTS) {
                quarantine.push((
                    OBJECTS.into(),
                    env.working_directory().join(objects).into_os_string(),
                ));
            }
            if let Some(others) = env.get_os(ALTERNATES) {
                let absolute =
                    std::env::split_paths(others).map(|other| env.working_directory().join(other));
                let joined = std::env::join_paths(absolute).unwrap_or_else(|_| others.to_owned());
                quarantine.push((ALTERNATES.into(), joined));
            }
        }
        Ok(Self {
            runner: Runner::find(sandbox, env)?,
            git_dir,
            objects: common_dir.join("objects"),
            quarantine,
            scratch: env.temporary_directory(),
        })
    }

    /// Returns every ref. A symbolic ref that leads to nothing is not listed.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn refs(&self) -> Result<Vec<ListedRef>, RepoError> {
        let words = [
            "for-each-ref",
            "--format=%(objectname) %(refname) %(symref)",
        ];
        let output = self.ok(Call::new(words)).await?;
        let listed = |line: &str| {
            let [oid, name, target] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                return None;
            };
            Some(ListedRef {
                oid: oid.parse().ok()?,
                name: name.to_owned(),
                target: (!target.is_empty()).then(|| target.to_owned()),
            })
        };
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(|line| listed(line).ok_or_else(|| output.unreadable()))
            .collect()
    }

    /// Returns the directory of git that all work trees share.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.objects.parent().unwrap_or(&self.git_dir)
    }

    /// Returns whether the history ends at commits whose parents were not fetched.
    #[must_use]
    pub fn is_shallow(&self) -> bool {
        self.directory().join("shallow").exists()
    }

    /// Returns the full name of the ref that a symbolic ref leads to, if `name` is one.
    ///
    /// # Errors
    ///
    /// Fails when git cannot be run.
    pub async fn symbolic_target(&self, name: &str) -> Result<Option<String>, RepoError> {
        let words = ["symbolic-ref", "--quiet", name];
        let output = self.run(Call::new(words)).await?;
        let target = String::from_utf8_lossy(output.stdout.trim_ascii()).into_owned();
        Ok((output.code == 0 && !target.is_empty()).then_some(target))
    }

    /// Returns the commit that a name means, if there is one.
    ///
    /// # Errors
    ///
    /// Fails when git cannot be run.
    pub async fn resolve(&self, name: &str) -> Result<Option<Oid>, RepoError> {
        let name = format!("{name}^{{commit}}");
        let words = [
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &name,
        ];
        let output = self.run(Call::new(words)).await?;
        Ok((output.code == 0)
            .then(|| Oid::from_ascii(output.stdout.trim_ascii()))
            .flatten())
    }

    /// Reads commits in the given order; one of more than a megabyte is too large.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn read_commits(&self, commits: &[Oid]) -> Result<Vec<ReadObject>, RepoError> {
        self.read_objects(commits, ObjectKind::Commit, MAX_COMMIT)
            .await
    }

    /// Returns whether the merge of two commits without conflicts has this tree. No merge driver of a configuration
    /// runs, and nothing is written to the repository.
    ///
    /// # Errors
    ///
    /// Fails when the temporary directory cannot be written, or git cannot be run.
    pub async fn is_clean_merge(&self, parents: [&str; 2], tree: &str) -> Result<bool, RepoError> {
        let temp_dir = fs::temp_dir_in(&self.scratch, "crucible-merge-")?;
        let git_dir = temp_dir.path().join("git");
        for part in ["objects", "refs"] {
            fs::create_dir_all(&git_dir.join(part))?;
        }
        fs::write_unflushed(&git_dir.join("HEAD"), b"ref: refs/heads/none\n", 0o600)?;
        if parents[0].len() == 64 {
            let format =
                b"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n";
            fs::write_unflushed(&git_dir.join("config"), format, 0o600)?;
        }
        let mut places = vec![quoted(&self.objects)];
        let named = |name: &str| {
            self.quarantine
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value)
        };
        places.extend(named(OBJECTS).map(|objects| quoted(Path::new(objects))));
        places.extend(named(ALTERNATES).cloned());
        let words = [
            "merge-tree",
            "--write-tree",
            "--no-messages",
            "--end-of-options",
            parents[0],
            parents[1],
        ];
        let call = Call::new(words)
            .with_env("GIT_DIR", git_dir.as_os_str())
            .with_env(ALTERNATES, places.join(std::ffi::OsStr::new(":")));
        let output = self.runner.run(temp_dir.path(), None, &[], call).await?;
        Ok(output.code == 0 && output.stdout.trim_ascii() == tree.as_bytes())
    }

    /// Checks out a commit into a new repository in the empty directory `dest`, which borrows the objects of this one. No
    /// hook and no filter of a configuration runs.
    ///
    /// # Errors
    ///
    /// Fails when the directory cannot be written, or when git does.
    pub async fn check_out_aside(&self, commit: &Oid, dest: &Path) -> Result<(), RepoError> {
        let git_dir = dest.join(".git");
        for part in ["objects/info", "refs/heads"] {
            fs::create_dir_all(&git_dir.join(part))?;
        }
        let write = |name: &str, text: &[u8]| fs::write_unflushed(&git_dir.join(name), text, 0o600);
        write("HEAD", format!("{commit}\n").as_bytes())?;
        let config: &[u8] = if commit.as_str().len() == 64 {
            b"[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = sha256\n"
        } else {
            b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
        };
        write("config", config)?;
        let mut places = vec![self.objects.clone()];
        for (name, value) in &self.quarantine {
            if name == OBJECTS || name == ALTERNATES {
                places.extend(std::env::split_paths(value));
            }
        }
        let lines: Vec<u8> = places
            .iter()
            .flat_map(|place| [place.as_os_str().as_bytes(), b"\n"].concat())
            .collect();
        write("objects/info/alternates", &lines)?;
        for words in [
            &["read-tree", commit.as_str()][..],
            &["checkout-index", "--all", "--force", "--index"],
        ] {
            let call = Call::new(words.iter().copied())
                .with_env("GIT_DIR", git_dir.as_os_str())
                .with_env("GIT_WORK_TREE", dest.as_os_str());
            let output = self.runner.run(dest, None, &[], call).await?;
            if output.code != 0 {
                return Err(output.into_error());
            }
        }
        Ok(())
    }

    /// Reads objects of one kind, in the given order.
    async fn read_objects(
        &self,
        names: &[Oid],
        kind: ObjectKind,
        limit: ByteLimit,
    ) -> Result<Vec<ReadObject>, RepoError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let list = |names: &mut dyn Iterator<Item = &Oid>| -> Vec<u8> {
            names
                .flat_map(|name| [name.as_str().as_bytes(), b"\n"].concat())
                .collect()
        };
        let call = Call::new(["cat-file", "--batch-check=%(objecttype) %(objectsize)"]);
        let sizes = self.ok(call.reading(list(&mut names.iter()))).await?;
        let text = String::from_utf8_lossy(&sizes.stdout);
        let mut read = Vec::with_capacity(names.len());
        for line in text.lines() {
            read.push(match line.split_once(' ') {
                Some((found, size)) if found.as_bytes() == kind.as_bytes() => {
                    match size.parse::<u64>() {
                        Ok(size) if size <= limit.0 => ReadObject::Bytes(Vec::new()),
                        Ok(_) => ReadObject::TooLarge,
                        Err(_) => ReadObject::Missing,
                    }
                }
                _ => ReadObject::Missing,
            });
        }
        if read.len() != names.len() {
            return Err(sizes.unreadable());
        }
        let requested = names
            .iter()
            .zip(&read)
            .filter(|(_, read)| matches!(read, ReadObject::Bytes(_)));
        let input = list(&mut requested.map(|(name, _)| name));
        let output = self
            .ok(Call::new(["cat-file", "--batch"]).reading(input))
            .await?;
        let mut rest = output.stdout.as_slice();
        for (name, read) in names
            .iter()
            .zip(&mut read)
            .filter(|(_, read)| matches!(read, ReadObject::Bytes(_)))
        {
            let bytes = next_object(&mut rest).ok_or_else(|| output.unreadable())?;
            let is_itself = gix_object::compute_hash(hash_of(name), kind, bytes)
                .is_ok_and(|found| found.as_bytes() == name.raw());
            *read = if is_itself {
                ReadObject::Bytes(bytes.to_vec())
            } else {
                ReadObject::Missing
            };
        }
        Ok(read)
    }

    async fn run(&self, call: Call) -> Result<Output, RepoError> {
        let call = call
            .with_env("GIT_DIR", self.git_dir.as_os_str())
            .with_envs(&self.quarantine);
        self.runner.run(&self.git_dir, None, &[], call).await
    }

    async fn ok(&self, call: Call) -> Result<Output, RepoError> {
        let output = self.run(call).await?;
        if output.code == 0 {
            Ok(output)
        } else {
            Err(output.into_error())
        }
    }
}

fn empty_tree(like: &Oid) -> &'static str {
    match hash_of(like) {
        HashKind::Sha256 => EMPTY_TREE_SHA256,
        _ => EMPTY_TREE_SHA1,
    }
}

fn hash_of(name: &Oid) -> HashKind {
    if name.as_str().len() == 64 {
        HashKind::Sha256
    } else {
        HashKind::Sha1
    }
}

/// `OID SP KIND SP SIZE LF BYTES LF`
fn next_object<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let head = std::str::from_utf8(&rest[..end]).ok()?;
    let size: usize = head.rsplit(' ').next()?.parse().ok()?;
    let (bytes, after) = rest[end + 1..].split_at_checked(size)?;
    *rest = after.strip_prefix(b"\n")?;
    Some(bytes)
}
