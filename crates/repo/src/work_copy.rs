//! A working copy for a program that changes files: a throwaway git directory in it, and the difference afterwards.
//!
//! The copy gets a `.git` with one commit of its own files, without the history, the objects and the settings of the
//! original. What it is compared with lies outside of it: a second git directory, whose index holds the files as they were
//! when the copy was made. It has objects of its own. Git decides with the rules in the copy which new files are ignored.
//!
//! What always holds: the `.git` in the copy is never read again, whatever became of it. Nothing that git runs by its
//! settings runs, because the copy has no say in the settings of the second directory. Before git reads the copy,
//! everything is removed that is not a file, directory or link: git would wait for a pipe named `.gitignore`.

use std::path::{Path, PathBuf};

use crucible_host::fs;
use crucible_model::ByteLimit;

use crate::baseline::WHO;
use crate::error::RepoError;
use crate::git::{Call, Flush, Git, as_path};
use crate::oid::Oid;

/// The longest list of new files.
const MAX_LIST: ByteLimit = ByteLimit(2 << 20);
/// The largest pack of the copy's files.
const MAX_PACK: ByteLimit = ByteLimit(1 << 30);
/// The most bytes of new files.
const MAX_NEW: u64 = 64 << 20;
/// The words of git that pack a commit or a tree, read from standard input.
const PACK: [&str; 5] = [
    "pack-objects",
    "--quiet",
    "--revs",
    "--stdout",
    "--window=0",
];
/// The message of the one commit.
const MESSAGE: &str = "-mThe state before the change";

/// A working copy whose changes are wanted.
#[derive(Debug)]
pub struct WorkCopy {
    git_dir: PathBuf,
    top: PathBuf,
    before: Oid,
}

impl Git {
    /// Makes `copy`, which has the files of `commit`, a working copy. `scratch_dir` is a directory that does not exist yet, outside
    /// of the copy. New files that match a pattern of `leftovers`, as in `.gitignore`, are not a change.
    ///
    /// # Errors
    ///
    /// Fails when git does, or when the copy already has a `.git`.
    pub async fn work_copy(
        &self,
        commit: &Oid,
        copy: &Path,
        scratch_dir: &Path,
        leftovers: &[String],
    ) -> Result<WorkCopy, RepoError> {
        let own = copy.join(".git");
        if own.symlink_metadata().is_ok() {
            return Err(RepoError::DestinationTaken { path: own });
        }
        let mut exclude =
            fs::read_regular_up_to(&self.common_dir().join("info/exclude"), ByteLimit(1 << 20))
                .unwrap_or_default();
        exclude.push(b'\n');
        for pattern in leftovers {
            exclude.extend_from_slice(pattern.as_bytes());
            exclude.push(b'\n');
        }
        let format = if commit.as_str().len() == 64 {
            "--object-format=sha256"
        } else {
            "--object-format=sha1"
        };
        let mut work = WorkCopy {
            git_dir: scratch_dir.to_owned(),
            top: copy.to_owned(),
            before: commit.clone(),
        };
        for directory in [scratch_dir, own.as_path()] {
            fs::create_dir_all(directory)?;
            let words = [
                "init",
                "--quiet",
                "--template=",
                "--initial-branch=main",
                format,
            ];
            self.run_bare(
                copy,
                Call::new(words)
                    .with_env("GIT_DIR", directory)
                    .with_env("GIT_WORK_TREE", copy),
            )
            .await?;
            fs::create_dir_all(&directory.join("info"))?;
            fs::write_unflushed(&directory.join("info/exclude"), &exclude, 0o644)?;
        }
        // Of its own: git would touch the files of objects that it finds in another store.
        let tree = self.tree_of(commit).await?;
        let pack = packing(Call::new(PACK), &tree);
        let pack = self.run_ok(pack).await?.stdout;
        self.run_bare(copy, work.call(["index-pack", "--stdin"]).reading(pack))
            .await?;
        work.run(self, ["read-tree", tree.as_str()]).await?;
        work.before = work.tree(self).await?;
        let start = work
            .run(self, ["commit-tree", MESSAGE, work.before.as_str()])
            .await?;
        let start = Oid::from_ascii(start.trim_ascii());
        let start = start.ok_or_else(|| RepoError::Unreadable {
            command: "commit-tree".to_owned(),
        })?;
        let pack = packing(work.call(PACK), &start);
        let pack = self.run_bare(copy, pack).await?.stdout;
        let inside = |words: &[&str]| {
            Call::new(words.iter().copied())
                .flushing(Flush::No)
                .with_env("GIT_DIR", &own)
                .with_env("GIT_WORK_TREE", copy)
        };
        self.run_bare(copy, inside(&["index-pack", "--stdin"]).reading(pack))
            .await?;
        for words in [
            &["update-ref", "refs/heads/main", start.as_str()][..],
            &["read-tree", "main"],
            &["config", "user.name", "Agent"],
            &["config", "user.email", "agent@localhost"],
        ] {
            self.run_bare(copy, inside(words)).await?;
        }
        // Its exit code tells of files that differ, such as ones that git keeps in another form.
        self.run_elsewhere(copy, inside(&["update-index", "-q", "--refresh"]))
            .await?;
        Ok(work)
    }
}

impl WorkCopy {
    /// Applies a patch to the files, as an earlier change of them.
    ///
    /// # Errors
    ///
    /// Fails if it does not apply.
    pub async fn apply(&self, git: &Git, patch: Vec<u8>) -> Result<(), RepoError> {
        let call = self
            .call(["apply", "--whitespace=nowarn", "-"])
            .reading(patch);
        git.run_bare(&self.top, call).await.map(drop)
    }

    /// Returns the difference between the files as they were and as they are, as a patch in git's format; empty if there is
    /// none. Ignored files are no difference.
    ///
    /// # Errors
    ///
    /// [`RepoError::TooLarge`] if the new files are too many or too large, or the patch is longer than `limit`.
    pub async fn diff(&self, git: &Git, limit: ByteLimit) -> Result<Vec<u8>, RepoError> {
        remove_foreign(&self.top)?;
        let list = self.call(["ls-files", "-z", "--others", "--exclude-standard"]);
        let list = git
            .run_bare(&self.top, list.with_max_output(MAX_LIST))
            .await?;
        let sizes = list.records().filter_map(|path| {
            let path = self.top.join(as_path(path));
            Some(path.symlink_metadata().ok()?.len())
        });
        if sizes.fold(0, u64::saturating_add) > MAX_NEW {
            return Err(RepoError::TooLarge {
                what: "the new files together".to_owned(),
                limit: MAX_NEW,
            });
        }
        let after = self.tree(git).await?;
        let words = [
            "diff-tree",
            "-r",
            "-p",
            "--binary",
            "--full-index",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            self.before.as_str(),
            after.as_str(),
        ];
        Ok(git
            .run_bare(&self.top, self.call(words).with_max_output(limit))
            .await?
            .stdout)
    }

    /// Returns how many files differ from what they were, without reading those that did not change.
    ///
    /// # Errors
    ///
    /// Fails when git does, or when the new files are too many.
    pub async fn changed_files(&self, git: &Git) -> Result<usize, RepoError> {
        let words = [
            "ls-files",
            "-z",
            "--deduplicate",
            "--modified",
            "--others",
            "--exclude-standard",
        ];
        let list = git.run_bare(&self.top, self.call(words).with_max_output(MAX_LIST));
        Ok(list.await?.records().count())
    }

    /// Takes the files into the index as they are, and returns their tree.
    async fn tree(&self, git: &Git) -> Result<Oid, RepoError> {
        self.run(git, ["add", "--all", "."]).await?;
        let output = self.run(git, ["write-tree"]).await?;
        Oid::from_ascii(output.trim_ascii()).ok_or_else(|| RepoError::Unreadable {
            command: "write-tree".to_owned(),
        })
    }

    async fn run<const N: usize>(&self, git: &Git, words: [&str; N]) -> Result<Vec<u8>, RepoError> {
        Ok(git.run_bare(&self.top, self.call(words)).await?.stdout)
    }

    fn call<const N: usize>(&self, words: [&str; N]) -> Call {
        let mut call = Call::new(words)
            .flushing(Flush::No)
            .with_setting("core.protectNTFS", "false")
            .with_setting("core.protectHFS", "false")
            .with_env("GIT_DIR", &self.git_dir)
            .with_env("GIT_WORK_TREE", &self.top);
        for (name, value) in WHO {
            call = call.with_env(name, value);
        }
        call
    }
}

/// Removes what cannot be part of a change and would stop git: pipes, sockets, devices, and git directories below the top,
/// whose files become ordinary ones. The program that wrote the copy has ended, so nothing changes meanwhile.
fn remove_foreign(top: &Path) -> Result<(), RepoError> {
    let mut directories = vec![top.to_owned()];
    while let Some(directory) = directories.pop() {
        let fail = |source| RepoError::io("read", &directory, source);
        for entry in std::fs::read_dir(&directory).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let kind = entry.file_type().map_err(fail)?;
            let (path, is_git) = (entry.path(), entry.file_name() == ".git");
            if is_git && directory == top {
                continue;
            }
            match (kind.is_dir(), is_git) {
                (true, true) => fs::remove_dir_all(&path)?,
                (true, false) => directories.push(path),
                (false, true) => fs::remove_file(&path)?,
                (false, false) if kind.is_file() || kind.is_symlink() => {}
                (false, false) => fs::remove_file(&path)?,
            }
        }
    }
    Ok(())
}

fn packing(call: Call, root: &Oid) -> Call {
    call.reading(format!("{root}\n").into_bytes())
        .with_max_output(MAX_PACK)
}
