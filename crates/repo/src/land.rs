//! Landing: the one place where the user's repository is written.
//!
//! The steps, in their order: write the objects, write the commit, move the branch from the base to it (a comparison and
//! an exchange), bring the changed files of the work tree, bring their entries of the index. The commit is the same
//! object however often it is made, because its dates and names are given. So a landing that was interrupted anywhere
//! is finished by landing again: a commit that is on the branch already is found by its run and its tree, and a file
//! that is new already is left alone.
//!
//! A file is only ever replaced when it holds exactly what the base holds there; anything else is the user's and is an
//! error before the branch moves. What the user changed in other files stays as it is, staged or not.

mod work_tree;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_model::{RunId, Timestamp};

use crate::error::RepoError;
use crate::git::{Branch, Call, Flush, Git};
use crate::identity::Identity;
use crate::oid::Oid;
use crate::tree::{TemporaryIndex, TreeChange};

/// The key of the trailer by which the commit of a run is known.
pub const RUN_TRAILER: &str = "Crucible-Run";

/// Maximum number of commits searched for an earlier landing.
const SEARCHED: u64 = 200;

/// Number of checks whether the index lock is gone; two seconds in all.
const LOCK_LOOKS: u32 = 40;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// What to land, on which branch, and with which message.
#[derive(Debug, Clone)]
pub struct LandRequest<'a> {
    /// The run; the message must hold its `Crucible-Run:` trailer.
    pub run: &'a RunId,
    /// The commit the change was verified on.
    pub base: &'a Oid,
    /// What was checked out then.
    pub branch: &'a Branch,
    /// The verified patch.
    pub patch: &'a [u8],
    /// The tree that was verified.
    pub tree: &'a Oid,
    /// The message of the commit, trailers included.
    pub message: &'a str,
    /// Author and committer.
    pub identity: &'a Identity,
    /// The instant of the commit. Landing again after an interruption must give the same one.
    pub at: Timestamp,
    /// The signature of the commit as text, over the bytes of [`Git::unsigned_commit`]; `None` for an unsigned one.
    pub signature: Option<&'a str>,
}

/// A commit that landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The commit.
    pub oid: Oid,
    /// Whether this call made it.
    pub landed: Landed,
}

/// Whether a call of [`Git::land`] made the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landed {
    /// The branch moved now.
    Now,
    /// The branch had it already; only missing changes of the work tree were made.
    Before,
}

impl Git {
    /// Commits a verified patch to its branch, and updates the work tree.
    ///
    /// # Errors
    ///
    /// [`RepoError::Moved`], [`RepoError::OtherBranch`], [`RepoError::Dirty`] and [`RepoError::IndexLocked`]
    /// name what the user has to fix; nothing visible changes until the branch has moved.
    pub async fn land(&self, request: &LandRequest<'_>) -> Result<Commit, RepoError> {
        let trailer = trailer(request);
        if !request.message.lines().any(|line| line == trailer) {
            return Err(RepoError::NoTrailer { trailer });
        }
        self.await_index().await?;
        let now = self.tracked_state().await?;
        require_branch(request.branch, &now.branch)?;
        if now.commit != *request.base {
            let Some(commit) = self.find_landed(request).await? else {
                return Err(RepoError::Moved {
                    expected: request.base.clone(),
                    found: now.commit,
                });
            };
            // Behind later commits the work tree is the user's business.
            if commit == now.commit {
                let changes = self.tree_changes(request.base, &commit, &[]).await?;
                if !self.index_has(&changes).await? {
                    self.update_work_tree(&changes).await?;
                }
            }
            return Ok(Commit {
                oid: commit,
                landed: Landed::Before,
            });
        }

        let changes = self.write_tree(request).await?;
        let changed = now.changed.into_iter().map(|entry| entry.path).collect();
        refuse_dirty(in_the_way(
            changed,
            changes.iter().map(|change| change.path.as_path()),
        ))?;
        // Untracked files are the user's, ignored ones too: a change must not write over one.
        refuse_dirty(work_tree::occupied_paths(self.top(), &changes)?)?;
        let commit = self.write_commit(request, &[], Flush::Yes).await?;
        self.move_branch(request, &commit).await?;
        self.update_work_tree(&changes).await?;
        Ok(Commit {
            oid: commit,
            landed: Landed::Now,
        })
    }

    /// Checks branch and tracked files as [`Git::land`] does, before anything is changed. `touched` are the
    /// paths of the change.
    ///
    /// # Errors
    ///
    /// [`RepoError::OtherBranch`], [`RepoError::Moved`], [`RepoError::Dirty`] or [`RepoError::IndexLocked`].
    pub async fn require_landable(
        &self,
        base: &Oid,
        branch: &Branch,
        touched: &[&Path],
    ) -> Result<(), RepoError> {
        self.await_index().await?;
        let now = self.tracked_state().await?;
        require_branch(branch, &now.branch)?;
        if now.commit != *base {
            return Err(RepoError::Moved {
                expected: base.clone(),
                found: now.commit,
            });
        }
        let changed = now.changed.into_iter().map(|entry| entry.path).collect();
        refuse_dirty(in_the_way(changed, touched.iter().copied()))
    }

    /// Waits a little while another git holds the lock of the index: an interrupted landing may have left one that
    /// still runs.
    pub(super) async fn await_index(&self) -> Result<(), RepoError> {
        let path = self.index_lock();
        for _ in 0..LOCK_LOOKS {
            if !path.exists() {
                return Ok(());
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
        Err(RepoError::IndexLocked { path })
    }

    /// Returns the commit between base and tip that this request made earlier.
    async fn find_landed(&self, request: &LandRequest<'_>) -> Result<Option<Oid>, RepoError> {
        let range = format!("{}..HEAD", request.base);
        let words = [
            "log".to_owned(),
            "-z".to_owned(),
            "--first-parent".to_owned(),
            format!("--max-count={SEARCHED}"),
            "--format=%H %T %P%n%B".to_owned(),
            "--end-of-options".to_owned(),
            range,
        ];
        let output = self.run_ok(Call::new(words)).await?;
        let trailer = trailer(request);
        for record in output.records() {
            let text = String::from_utf8_lossy(record);
            let (names, message) = text.split_once('\n').unwrap_or((&text, ""));
            let fields: Vec<&str> = names.split(' ').collect();
            let [commit, tree, parent] = fields[..] else {
                continue;
            };
            let is_ours = tree == request.tree.as_str()
                && parent == request.base.as_str()
                && message.lines().any(|line| line.trim_end() == trailer);
            if is_ours {
                return commit.parse().map(Some).map_err(|_| output.unreadable());
            }
        }
        Ok(None)
    }

    /// Writes the objects to the repository itself. They are invisible until a branch names them.
    async fn write_tree(&self, request: &LandRequest<'_>) -> Result<Vec<TreeChange>, RepoError> {
        let temporary_index = TemporaryIndex::new(self)?.in_repository();
        let found = self
            .apply_to_index(
                request.base,
                request.patch,
                &temporary_index.env,
                Flush::Yes,
            )
            .await?;
        if found != *request.tree {
            return Err(RepoError::TreeChanged {
                expected: request.tree.clone(),
                found,
            });
        }
        let changes = self.tree_changes(request.base, request.tree, &[]).await?;
        // Attributes outside the commit may be others than when the change was tried.
        let refused = self.checked_out(&changes, &temporary_index).await?.refused;
        if refused.is_empty() {
            return Ok(changes);
        }
        Err(RepoError::Rewritten {
            paths: refused.into_keys().collect(),
        })
    }

    /// Returns the commit that [`Git::land`] would make, without writing anything to the repository.
    ///
    /// # Errors
    ///
    /// [`RepoError::TreeChanged`] if the patch gives another tree than the verified one. Fails when git does.
    pub async fn commit_before_landing(&self, request: &LandRequest<'_>) -> Result<Oid, RepoError> {
        let temporary_index = self.verified_index(request).await?;
        self.write_commit(request, &temporary_index.env, Flush::No)
            .await
    }

    /// Applies the patch in an index aside, and checks that it gives the verified tree.
    async fn verified_index(&self, request: &LandRequest<'_>) -> Result<TemporaryIndex, RepoError> {
        let temporary_index = TemporaryIndex::new(self)?;
        let found = self
            .apply_to_index(request.base, request.patch, &temporary_index.env, Flush::No)
            .await?;
        if found == *request.tree {
            return Ok(temporary_index);
        }
        Err(RepoError::TreeChanged {
            expected: request.tree.clone(),
            found,
        })
    }

    /// Returns the bytes of the commit that [`Git::land`] would make without a signature. They are what is signed.
    ///
    /// # Errors
    ///
    /// Those of [`Git::commit_before_landing`].
    pub async fn unsigned_commit(&self, request: &LandRequest<'_>) -> Result<Vec<u8>, RepoError> {
        let temporary_index = self.verified_index(request).await?;
        let commit = self
            .write_unsigned(request, &temporary_index.env, Flush::No)
            .await?;
        let call = Call::new(["cat-file", "commit", commit.as_str()]);
        Ok(self
            .run_ok(call.with_envs(&temporary_index.env))
            .await?
            .stdout)
    }

    async fn write_commit(
        &self,
        request: &LandRequest<'_>,
        env: &[(OsString, OsString)],
        flush: Flush,
    ) -> Result<Oid, RepoError> {
        let Some(signature) = request.signature else {
            return self.write_unsigned(request, env, flush).await;
        };
        let unsigned = self.unsigned_commit(request).await?;
        let signed = with_signature(&unsigned, signature, request.base);
        let call = Call::new(["hash-object", "-t", "commit", "-w", "--stdin"])
            .reading(signed)
            .flushing(flush);
        self.run_oid(call.with_envs(env)).await
    }

    async fn write_unsigned(
        &self,
        request: &LandRequest<'_>,
        env: &[(OsString, OsString)],
        flush: Flush,
    ) -> Result<Oid, RepoError> {
        let words = [
            "commit-tree",
            "-p",
            request.base.as_str(),
            "-F",
            "-",
            request.tree.as_str(),
        ];
        let call = Call::new(words)
            .reading(request.message.as_bytes().to_vec())
            .flushing(flush);
        self.run_oid(
            call.with_envs(&identity_env(request.identity, request.at))
                .with_envs(env),
        )
        .await
    }

    async fn move_branch(&self, request: &LandRequest<'_>, commit: &Oid) -> Result<(), RepoError> {
        let name = match request.branch {
            Branch::Named(name) => format!("refs/heads/{name}"),
            Branch::Detached => "HEAD".to_owned(),
        };
        let note = format!("crucible: land {}", request.run);
        let words = [
            "update-ref",
            "--no-deref",
            "--create-reflog",
            "-m",
            &note,
            &name,
            commit.as_str(),
            request.base.as_str(),
        ];
        let output = self.run(Call::new(words).flushing(Flush::Yes)).await?;
        if output.code == 0 {
            return Ok(());
        }
        let found = self.head().await?.commit;
        // The git of an interrupted landing moved the branch meanwhile, to the same commit.
        if found == *commit {
            return Ok(());
        }
        if found == *request.base {
            return Err(output.into_error());
        }
        Err(RepoError::Moved {
            expected: request.base.clone(),
            found,
        })
    }
}

/// Returns a commit with a signature as its last header, as `git commit -S` writes it. The header's name says which names
/// objects have in this repository.
fn with_signature(unsigned: &[u8], signature: &str, base: &Oid) -> Vec<u8> {
    let end = unsigned.windows(2).position(|pair| pair == b"\n\n");
    let (head, message) = unsigned.split_at(end.map_or(unsigned.len(), |end| end + 1));
    let name = match base.as_str().len() {
        64 => "gpgsig-sha256",
        _ => "gpgsig",
    };
    let lines = signature.trim_end().replace('\n', "\n ");
    let header = format!("{name} {lines}\n");
    [head, header.as_bytes(), message].concat()
}

/// Returns the variables that make this identity author and committer at this instant.
pub(crate) fn identity_env(identity: &Identity, at: Timestamp) -> Vec<(OsString, OsString)> {
    let date = format!("@{} +0000", at.unix_millis().div_euclid(1000));
    let mut env = Vec::new();
    for who in ["AUTHOR", "COMMITTER"] {
        for (what, value) in [
            ("NAME", &identity.name),
            ("EMAIL", &identity.email),
            ("DATE", &date),
        ] {
            env.push((format!("GIT_{who}_{what}").into(), value.into()));
        }
    }
    env
}

fn require_branch(expected: &Branch, found: &Branch) -> Result<(), RepoError> {
    if expected == found {
        return Ok(());
    }
    Err(RepoError::OtherBranch {
        expected: expected.to_string(),
        found: found.to_string(),
    })
}

/// Returns the user's changed files that the change modifies, contains or is inside of. Attributes always
/// count, because they affect how other files are written.
fn in_the_way<'c>(
    changed: Vec<PathBuf>,
    touched: impl Iterator<Item = &'c Path> + Clone,
) -> Vec<PathBuf> {
    let meets = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name == ".gitattributes")
            || touched
                .clone()
                .any(|other| path.starts_with(other) || other.starts_with(path))
    };
    changed.into_iter().filter(meets).collect()
}

fn refuse_dirty(paths: Vec<PathBuf>) -> Result<(), RepoError> {
    if paths.is_empty() {
        Ok(())
    } else {
        Err(RepoError::Dirty { paths })
    }
}

/// The line by which a commit of this run is known.
fn trailer(request: &LandRequest<'_>) -> String {
    format!("{RUN_TRAILER}: {}", request.run)
}
