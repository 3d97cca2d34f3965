//! One repository, opened.
//!
//! Opening looks for `.git` itself, judges where it points (`locate`), reads the configuration once to learn which
//! programs it names (`config`), and from then on hands git its directories explicitly: git never searches, and
//! never believes the repository about where its work tree is.
//!
//! Objects (`store`), the index (`index`), what is checked out (`checked_out`) and whether files are unchanged (`unchanged`) are read in
//! this process, which costs no process for each question. What is not in the usual form, not there or broken is asked of git, so
//! git decides what it means and its failure is the one that is reported. Reading objects waits for the disk: it runs on
//! a thread for blocking work.

mod addresses;
mod branch;
mod checked_out;
mod command;
mod command_files;
mod commit;
mod config;
mod config_files;
mod git_call;
mod git_dir;
mod guard_conflict;
mod guarded;
mod history;
mod identity;
mod index;
mod links;
mod locate;
mod nested;
pub(crate) mod objects;
pub(crate) mod parse;
mod pieces;
mod programs;
mod push;
mod search_path;
mod shell;
mod status;
pub(crate) mod store;
pub(crate) mod unchanged;
mod understood;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_sandbox::Sandbox;

use crate::error::RepoError;
use crate::oid::Oid;

pub use branch::Branch;
pub(crate) use command::{Call, Flush, Output, Runner, as_path};
pub(crate) use commit::MAX_COMMIT;
pub use commit::{BranchReach, CommitObject};
use config::{Format, LineEnds, SparseWorkTree};
pub use git_dir::{git_directory_around, is_dot_git, is_git_directory, is_git_entry};
pub use guard_conflict::GuardConflict;
pub use guarded::{Guards, RunByGit};
pub use history::CommitFiles;
use index::IndexCache;
pub use index::TrackedFile;
use locate::GitLocation;
pub use status::{DirtyEntry, DirtyKind, TrackedState};
use store::{ReadFailure, Reader, Store};

/// A git repository with a work tree and at least one commit.
#[derive(Debug, Clone)]
pub struct Git {
    runner: Runner,
    place: GitLocation,
    /// Settings that disable programs of the repository's own configuration.
    neutral: Vec<(OsString, OsString)>,
    line_ends: LineEnds,
    sparse: SparseWorkTree,
    /// Where `origin` is.
    origin: Option<Vec<u8>>,
    index: Arc<IndexCache>,
    /// The objects; `None` if only git can read them.
    store: Option<Arc<Store>>,
    /// Variables for the user's own configuration, used only to read the identity.
    user_config: Vec<(OsString, OsString)>,
    env: Environment,
    scratch: PathBuf,
    opened_at: Head,
}

/// The commit that is checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The commit.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
}

/// Files that git keeps during an unfinished operation, and the command that continues or aborts it.
const UNDER_WAY: [(&str, &str); 5] = [
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
];

impl Git {
    /// Opens the repository that contains `path`: its top, a directory or file below it, or a linked work
    /// tree.
    ///
    /// # Errors
    ///
    /// [`RepoError`] distinguishes no repository, a bare one, one without a commit, one whose git directory
    /// or work tree is elsewhere, and a missing or outdated git.
    pub async fn open(
        sandbox: Arc<Sandbox>,
        env: &Environment,
        path: &Path,
    ) -> Result<Self, RepoError> {
        let runner = Runner::find(sandbox, env)?;
        let place = locate::locate(&env.working_directory().join(path))?;
        let listing = config::list(&runner, &place, config::TIMEOUT).await?;
        place.check(&listing)?;
        let neutral = listing.disabling_settings(&place.top)?;
        let store = match listing.format {
            Format::Files(hash) => {
                Some(Arc::new(Store::new(hash, place.common_dir.join("objects"))))
            }
            Format::Other => None,
        };
        Ok(Self {
            opened_at: head_of(store.as_ref(), &runner, &place, &neutral).await?,
            store,
            runner,
            neutral,
            line_ends: listing.line_ends,
            sparse: listing.sparse,
            origin: listing.origin,
            index: Arc::default(),
            place,
            user_config: identity::user_config(env),
            env: env.clone(),
            scratch: env.temporary_directory(),
        })
    }

    /// Returns the top of the work tree that contains `path`, without calling git, so that files can be read
    /// at once. [`Git::open`] checks whether the repository is usable.
    ///
    /// # Errors
    ///
    /// Those of [`Git::open`] for no repository.
    pub fn find_top(env: &Environment, path: &Path) -> Result<PathBuf, RepoError> {
        Ok(locate::locate(&env.working_directory().join(path))?.top)
    }

    /// Returns the git directory of the work tree that contains `path`, and the one with its objects.
    pub(crate) fn directories(path: &Path) -> Result<(PathBuf, PathBuf), RepoError> {
        let place = locate::locate(path)?;
        Ok((place.git_dir, place.common_dir))
    }

    /// The git directory that all work trees share, from that of one of them.
    pub(crate) fn common_directory(git_dir: &Path) -> Result<PathBuf, RepoError> {
        let common_dir = locate::read_path(&git_dir.join("commondir"), b"", git_dir)?;
        Ok(common_dir.unwrap_or_else(|| git_dir.to_owned()))
    }

    /// The commit that was checked out when the repository was opened, and its tree; it may have moved since.
    #[must_use]
    pub fn opened_at(&self) -> &Head {
        &self.opened_at
    }

    /// The same repository, with temporary files below `scratch`, which must exist.
    #[must_use]
    pub fn with_scratch(mut self, scratch: PathBuf) -> Self {
        self.scratch = scratch;
        self
    }

    /// The top of the work tree, without symbolic links.
    #[must_use]
    pub fn top(&self) -> &Path {
        &self.place.top
    }

    /// What git is in the middle of here, such as `merge`: the next commit would become a part of it.
    #[must_use]
    pub fn operation_under_way(&self) -> Option<&'static str> {
        UNDER_WAY
            .iter()
            .find(|(file, _)| self.place.git_dir.join(file).symlink_metadata().is_ok())
            .map(|(_, name)| *name)
    }

    /// Returns the checked-out commit and its tree.
    ///
    /// # Errors
    ///
    /// [`RepoError::Empty`] if there is no commit.
    pub async fn head(&self) -> Result<Head, RepoError> {
        head_of(
            self.store.as_ref(),
            &self.runner,
            &self.place,
            &self.neutral,
        )
        .await
    }

    /// The branch that is checked out.
    ///
    /// # Errors
    ///
    /// Fails when git does, or when the branch has no UTF-8 name.
    pub async fn branch(&self) -> Result<Branch, RepoError> {
        if let Some(branch) = self
            .store
            .as_ref()
            .and_then(|_| checked_out::branch(&self.place))
        {
            return Ok(branch);
        }
        let output = self
            .run(Call::new(["symbolic-ref", "--quiet", "HEAD"]))
            .await?;
        match output.code {
            0 => {
                let name = std::str::from_utf8(output.stdout.trim_ascii_end()).ok();
                let short = name.and_then(|name| name.strip_prefix("refs/heads/"));
                short
                    .map(|name| Branch::Named(name.to_owned()))
                    .ok_or_else(|| output.unreadable())
            }
            1 => Ok(Branch::Detached),
            _ => Err(output.into_error()),
        }
    }

    /// Returns the tree of a commit.
    ///
    /// # Errors
    ///
    /// [`RepoError::MissingObject`] if there is no such commit.
    pub async fn tree_of(&self, commit: &Oid) -> Result<Oid, RepoError> {
        let requested = commit.clone();
        if let Some(tree) = self
            .read(&[], move |reader| reader.tree_of(&requested))
            .await?
        {
            return Ok(tree);
        }
        let name = format!("{commit}^{{tree}}");
        let output = self
            .run(Call::new([
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                &name,
            ]))
            .await?;
        match output.code {
            0 => Oid::from_ascii(output.stdout.trim_ascii()).ok_or_else(|| output.unreadable()),
            _ => Err(RepoError::MissingObject {
                oid: commit.to_string(),
            }),
        }
    }

    /// Reads objects, including those of the private directory that `env` names for git. `None` if git has to
    /// be asked.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        env: &[(OsString, OsString)],
        ask: impl FnOnce(&mut Reader<'_>) -> Result<T, ReadFailure> + Send + 'static,
    ) -> Result<Option<T>, RepoError> {
        let private = env.iter().find(|(name, _)| name == "GIT_OBJECT_DIRECTORY");
        read_in(
            self.store.as_ref(),
            private.map(|(_, path)| PathBuf::from(path)),
            ask,
        )
        .await
    }

    /// Returns the directory for temporary files of this session.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Returns the hash of object names, if the store is readable here.
    pub(crate) fn hash(&self) -> Option<store::HashKind> {
        self.store.as_ref().map(|store| store.hash())
    }

    pub(crate) fn objects_dir(&self) -> PathBuf {
        self.place.common_dir.join("objects")
    }

    pub(crate) fn common_dir(&self) -> &Path {
        &self.place.common_dir
    }

    /// Returns whether a setting may convert line endings, without any attribute.
    pub(crate) fn converts(&self) -> bool {
        self.line_ends == LineEnds::Set
    }

    /// The attributes that no commit holds.
    pub(crate) fn info_attributes(&self) -> PathBuf {
        self.place.common_dir.join("info/attributes")
    }

    pub(crate) fn index_lock(&self) -> PathBuf {
        self.place.git_dir.join("index.lock")
    }

    /// Runs git in this repository.
    pub(crate) async fn run(&self, call: Call) -> Result<Output, RepoError> {
        self.runner
            .run(&self.place.top, Some(&self.place), &self.neutral, call)
            .await
    }

    /// Runs git in `directory`, not in this repository; any failure is an error.
    pub(crate) async fn run_bare(&self, directory: &Path, call: Call) -> Result<Output, RepoError> {
        let output = self.runner.run(directory, None, &[], call).await?;
        if output.code == 0 {
            Ok(output)
        } else {
            Err(output.into_error())
        }
    }

    /// The same, but exit code 1 is a valid result.
    pub(crate) async fn run_elsewhere(
        &self,
        directory: &Path,
        call: Call,
    ) -> Result<(), RepoError> {
        let output = self.runner.run(directory, None, &[], call).await?;
        if output.code <= 1 {
            Ok(())
        } else {
            Err(output.into_error())
        }
    }

    /// Runs git in this repository; any failure is an error.
    pub(crate) async fn run_ok(&self, call: Call) -> Result<Output, RepoError> {
        let output = self.run(call).await?;
        if output.code == 0 {
            Ok(output)
        } else {
            Err(output.into_error())
        }
    }

    /// Returns the first output line of a successful call as an object name.
    pub(crate) async fn run_oid(&self, call: Call) -> Result<Oid, RepoError> {
        let output = self.run_ok(call).await?;
        Oid::from_ascii(output.stdout.trim_ascii()).ok_or_else(|| output.unreadable())
    }
}

/// Reads objects of a store on a separate thread. `None` if git has to be asked, also after a panic if the
/// build unwinds.
async fn read_in<T: Send + 'static>(
    store: Option<&Arc<Store>>,
    private: Option<PathBuf>,
    ask: impl FnOnce(&mut Reader<'_>) -> Result<T, ReadFailure> + Send + 'static,
) -> Result<Option<T>, RepoError> {
    let Some(store) = store.map(Arc::clone) else {
        return Ok(None);
    };
    let answer = tokio::task::spawn_blocking(move || ask(&mut store.reader(private)?)).await;
    match answer {
        Ok(Ok(found)) => Ok(Some(found)),
        Ok(Err(ReadFailure::Damaged(oid))) => Err(RepoError::DamagedObject { oid }),
        Ok(Err(ReadFailure::Pipe(path))) => Err(store::pipe(&path)),
        Ok(Err(ReadFailure::AskGit | ReadFailure::TooLarge)) | Err(_) => Ok(None),
    }
}

/// What is checked out.
async fn head_of(
    store: Option<&Arc<Store>>,
    runner: &Runner,
    place: &GitLocation,
    neutral: &[(OsString, OsString)],
) -> Result<Head, RepoError> {
    let git_location = place.clone();
    let read = read_in(store, None, move |reader| {
        let (_, commit) = checked_out::checked_out(&git_location, reader.hash())?;
        let tree = reader.tree_of_commit(&commit)?;
        Ok(Head { commit, tree })
    });
    match read.await? {
        Some(head) => Ok(head),
        None => read_head(runner, place, neutral).await,
    }
}

/// Returns what is checked out, with one call.
async fn read_head(
    runner: &Runner,
    place: &GitLocation,
    neutral: &[(OsString, OsString)],
) -> Result<Head, RepoError> {
    let call = Call::new(["cat-file", "--batch-check=%(objectname)"]);
    let call = call.reading(b"HEAD^{commit}\nHEAD^{tree}\n".to_vec());
    let output = runner.run(&place.top, Some(place), neutral, call).await?;
    if output.code != 0 {
        return Err(output.into_error());
    }
    let lines: Vec<&[u8]> = output.stdout.split(|byte| *byte == b'\n').collect();
    match lines[..] {
        [commit, tree, b""] if !commit.ends_with(b" missing") => {
            match (Oid::from_ascii(commit), Oid::from_ascii(tree)) {
                (Some(commit), Some(tree)) => Ok(Head { commit, tree }),
                (Some(commit), None) => Err(RepoError::MissingObject {
                    oid: commit.to_string(),
                }),
                _ => Err(output.unreadable()),
            }
        }
        [_, _, b""] => Err(RepoError::Empty {
            path: place.top.clone(),
        }),
        _ => Err(output.unreadable()),
    }
}
