//! A work clone: a repository of our own at a commit of another one, or of a bundle, with the history up to it.
//!
//! The clone has one branch, `main`, at that commit, the tags that the commit contains, and no remote. Nothing of the source's hooks,
//! configuration or later refs comes along, and no attribute of the source changes what is checked out. Patches are applied to the index and
//! the work tree together and become commits with a fixed author and date, so the same input gives the same commit.
//!
//! What always holds: the source is only read, by `git upload-pack` or as a bundle; nothing that it names is run; no network is used.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_host::fs;
use crucible_sandbox::Sandbox;

use crate::baseline::WHO;
use crate::clone::UPLOAD_PACK;
use crate::error::RepoError;
use crate::git::{Call, Flush, Output, Runner, as_path};
use crate::oid::Oid;

/// Time limit for fetching the objects of a source.
const FETCH_TIME: Duration = Duration::from_secs(600);

/// A repository that belongs to us alone.
pub struct WorkClone {
    runner: Runner,
    top: PathBuf,
}

impl WorkClone {
    /// Clones `commit` of `source`, a repository on this machine or a bundle file, into a directory that does
    /// not exist yet.
    ///
    /// # Errors
    ///
    /// Fails when the source is neither, has no such commit on any ref, or git fails. Partial output stays.
    pub async fn create(
        sandbox: Arc<Sandbox>,
        env: &Environment,
        source: &Path,
        commit: &Oid,
        into: &Path,
    ) -> Result<Self, RepoError> {
        if into.symlink_metadata().is_ok() {
            return Err(RepoError::DestinationTaken {
                path: into.to_owned(),
            });
        }
        fs::create_dir_all(into)?;
        let clone = Self {
            runner: Runner::find(sandbox, env)?,
            top: into.to_owned(),
        };
        clone
            .ok(Call::new([
                "init",
                "--quiet",
                "--template=",
                "--initial-branch=main",
            ]))
            .await?;
        fs::create_dir_all(&into.join(".git/info"))?;
        let plain = b"* -text -ident -filter -working-tree-encoding\n";
        fs::write_atomic(&into.join(".git/info/attributes"), plain)?;
        let words = [
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-recurse-submodules",
            UPLOAD_PACK,
            "--",
        ];
        let mut words: Vec<OsString> = words.map(Into::into).to_vec();
        words.extend([source.into(), "+refs/*:refs/source/*".into()]);
        let fetch = Call::new(words)
            .with_timeout(FETCH_TIME)
            .with_setting("protocol.file.allow", "always")
            .with_env("GIT_ALLOW_PROTOCOL", "file");
        clone.ok(fetch).await?;
        clone.keep_only(commit).await?;
        clone
            .ok(Call::new(["read-tree", "--reset", "-u", "HEAD"]))
            .await?;
        clone.identify()?;
        Ok(clone)
    }

    /// Wraps a repository created by [`crate::create_baseline`].
    ///
    /// # Errors
    ///
    /// Fails when git is missing, or the repository's settings cannot be written.
    pub fn of_baseline(
        sandbox: Arc<Sandbox>,
        env: &Environment,
        top: &Path,
    ) -> Result<Self, RepoError> {
        let clone = Self {
            runner: Runner::find(sandbox, env)?,
            top: top.to_owned(),
        };
        clone.identify()?;
        Ok(clone)
    }

    /// The top of its work tree.
    #[must_use]
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Applies a patch to the index and the work tree.
    ///
    /// # Errors
    ///
    /// [`RepoError::GitFailed`] if it does not apply; then nothing changes.
    pub async fn apply(&self, patch: &[u8]) -> Result<(), RepoError> {
        self.ok(Call::new(["apply", "--index", "-"]).reading(patch.to_vec()))
            .await
            .map(drop)
    }

    /// Applies a patch to the files of `base`, discarding later changes: each touched file is first restored
    /// to its version in `base`.
    ///
    /// # Errors
    ///
    /// [`RepoError::GitFailed`] when it does not apply to `base` either.
    pub async fn apply_over(&self, patch: &[u8], base: &Oid) -> Result<(), RepoError> {
        let touched = self
            .ok(Call::new(["apply", "--numstat", "-z", "-"]).reading(patch.to_vec()))
            .await?;
        for record in touched.records() {
            // `added TAB deleted TAB path`
            let Some(path) = record.splitn(3, |byte| *byte == b'\t').nth(2) else {
                continue;
            };
            let path = as_path(path).into_os_string();
            let words = |words: &[&str]| {
                let words = words.iter().map(OsString::from).chain([path.clone()]);
                Call::new(words.collect::<Vec<_>>())
            };
            let base_tree = self
                .ok(words(&["ls-tree", "-z", base.as_str(), "--"]))
                .await?;
            match base_tree.stdout.is_empty() {
                true => {
                    self.ok(words(&[
                        "rm",
                        "--quiet",
                        "--force",
                        "--ignore-unmatch",
                        "--",
                    ]))
                    .await?
                }
                false => {
                    self.ok(words(&["checkout", "--quiet", base.as_str(), "--"]))
                        .await?
                }
            };
        }
        self.apply(patch).await
    }

    /// Adds these files of the work tree to the index, ignored ones too.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn add(&self, paths: &[&str]) -> Result<(), RepoError> {
        let words = ["add", "--force", "--"].iter().chain(paths).copied();
        self.ok(Call::new(words)).await.map(drop)
    }

    /// Commits the index. The message is one line.
    ///
    /// # Errors
    ///
    /// Fails when git fails.
    pub async fn commit(&self, message: &str) -> Result<Oid, RepoError> {
        let message = format!("--message={message}");
        let words = [
            "commit",
            "--quiet",
            "--no-verify",
            "--allow-empty",
            &message,
        ];
        self.ok(Call::new(words)).await?;
        self.head().await
    }

    /// The commit that is checked out.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn head(&self) -> Result<Oid, RepoError> {
        let output = self.ok(Call::new(["rev-parse", "HEAD"])).await?;
        Oid::from_ascii(output.stdout.trim_ascii()).ok_or_else(|| output.unreadable())
    }

    /// Puts the branch at `commit`, keeps the tags that it contains, and drops every other ref.
    async fn keep_only(&self, commit: &Oid) -> Result<(), RepoError> {
        let format = "--format=%(objectname) %(refname)";
        let refs = |more: Option<String>| {
            let words = ["for-each-ref".to_owned(), format.to_owned()];
            let prefix = if more.is_some() {
                "refs/source/tags/"
            } else {
                "refs/source/"
            };
            Call::new(words.into_iter().chain(more).chain([prefix.to_owned()]))
        };
        let mut update = format!("update refs/heads/main {commit}\n").into_bytes();
        let tags = self.ok(refs(Some(format!("--merged={commit}")))).await?;
        for (name, object) in parse_refs(&tags) {
            if let Some(tag) = name.strip_prefix("refs/source/tags/") {
                update.extend_from_slice(format!("create refs/tags/{tag} {object}\n").as_bytes());
            }
        }
        for (name, _) in parse_refs(&self.ok(refs(None)).await?) {
            update.extend_from_slice(format!("delete {name}\n").as_bytes());
        }
        self.ok(Call::new(["update-ref", "--stdin"]).reading(update))
            .await?;
        fs::remove_file(&self.top.join(".git/FETCH_HEAD")).or_else(|error| {
            match error.is_not_found() {
                true => Ok(()),
                false => Err(error.into()),
            }
        })
    }

    /// Sets a committer: the user may have none.
    fn identify(&self) -> Result<(), RepoError> {
        let config = self.top.join(".git/config");
        let mut text = fs::read_up_to(&config, crucible_model::ByteLimit(64 * 1024))?;
        text.extend_from_slice(b"[user]\n\tname = Crucible\n\temail = crucible@localhost\n");
        Ok(fs::write_atomic(&config, &text)?)
    }

    async fn ok(&self, call: Call) -> Result<Output, RepoError> {
        let mut call = call
            .flushing(Flush::No)
            .with_env("GIT_DIR", self.top.join(".git"))
            .with_env("GIT_WORK_TREE", &self.top);
        for (name, value) in WHO {
            call = call.with_env(name, value);
        }
        let output = self.runner.run(&self.top, None, &[], call).await?;
        if output.code == 0 {
            Ok(output)
        } else {
            Err(output.into_error())
        }
    }
}

/// The refs of a listing, by name, with the objects they point at.
fn parse_refs(output: &Output) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(&output.stdout);
    let pair = |line: &str| {
        line.split_once(' ')
            .map(|(object, name)| (name.to_owned(), object.to_owned()))
    };
    text.lines().filter_map(pair).collect()
}
