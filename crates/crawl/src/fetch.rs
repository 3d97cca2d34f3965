//! Getting a repository's files: a release's archive, a clone at a ref, or a clone of the default branch (seed 000 §3.1).
//!
//! The network is reached through `gh` and through one shallow `git clone`, so a commit id, which no clone takes, comes as an
//! archive. A local repository is cloned from its `file://` address by the same code.
//!
//! What always holds: everything is put below the given directory; the commit that is reported is the one whose files are
//! there: an archive has to agree with what GitHub says its tag resolves to.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

use crucible_host::env::Environment;
use crucible_host::fs::{FsError, create_dir_all, remove_file};
use crucible_model::RepoPath;
use crucible_repo::{
    ArchiveError, ArchiveLimits, Branch, CloneAt, CloneError, CloneLimits, CloneRequest, CloneUrl, Cloned,
    Git, RefName, RefNameError, RepoError, Unpacked, clone, unpack,
};
use crucible_sandbox::Sandbox;
use crucible_secrets::Scanner;

use crate::artifact::{FetchMethod, RepoAt};
use crate::github::{FoundRepo, GitHub, GitHubError};
use crate::target::{RefChoice, RepoName, TargetError, is_commit_id};
use crate::witness::CrawlWitness;

/// How many digits of a commit the name of an archive's top folder has at least.
const SHORTEST: usize = 7;

/// What is checked out where that is no branch.
const DETACHED: &str = "HEAD";

/// What fetching needs of the machine.
#[derive(Debug, Clone)]
pub struct FetchTools {
    /// Runs git.
    pub sandbox: Arc<Sandbox>,
    /// Where git is, and the user's way through their network.
    pub env: Environment,
    /// Where GitHub's repositories are cloned from: `https://github.com`.
    pub clone_base: CloneUrl,
}

/// A repository's files on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Where they lie; whoever made the directory removes it.
    pub tree: PathBuf,
    /// Which repository at which commit.
    pub repo: RepoAt,
    /// How they were got.
    pub method: FetchMethod,
}

/// Why there are no files.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// GitHub has no answer.
    #[error(transparent)]
    GitHub(#[from] GitHubError),
    /// GitHub calls the repository something that is no name.
    #[error(transparent)]
    Name(#[from] TargetError),
    /// The ref is none.
    #[error("{text:?} names no ref: {why}; write a tag, a branch or a whole commit id")]
    Ref {
        /// What was asked for.
        text: String,
        /// What is wrong with it.
        why: RefNameError,
    },
    /// It could not be cloned.
    #[error(transparent)]
    Clone(#[from] CloneError),
    /// A commit of a local repository was asked for by its id.
    #[error(
        "a local repository is cloned at a branch or a tag, and {id} is a commit id; give it a tag: git tag NAME {id}"
    )]
    LocalCommit {
        /// The id.
        id: String,
    },
    /// The archive cannot be used.
    #[error(
        "{source}\nthe archive was the one of {reference} in {repo}; name a branch or tag with --ref to have it cloned instead"
    )]
    Archive {
        /// The repository.
        repo: String,
        /// The tag or commit.
        reference: String,
        /// What is wrong with it.
        source: ArchiveError,
    },
    /// The archive is of another commit.
    #[error(
        "the archive of {reference} in {repo} is not of the commit {commit} that GitHub names: {found}; try again, or name a \
         branch or tag with --ref to have it cloned"
    )]
    OtherCommit {
        /// The repository.
        repo: String,
        /// The tag or commit.
        reference: String,
        /// What GitHub says it is.
        commit: String,
        /// What the archive says.
        found: String,
    },
    /// The local repository cannot be read.
    #[error(transparent)]
    Local(#[from] RepoError),
    /// The work directory cannot be used.
    #[error(transparent)]
    Fs(#[from] FsError),
}

/// Fetches a repository of GitHub into `workdir`, an empty directory of the caller's that is removed by it.
///
/// # Errors
///
/// See [`FetchError`].
pub async fn fetch(
    github: &GitHub<'_>,
    tools: &FetchTools,
    repo: &RepoName,
    choice: &RefChoice,
    workdir: &Path,
    witness: &dyn CrawlWitness,
) -> Result<Fetched, FetchError> {
    witness.progress(&format!("looking up {}", repo.full_name()));
    let candidate = github.repository(repo).await?;
    // A repository that was renamed answers by its new name; git would be sent there by a redirect, which it does not follow.
    let remote =
        Remote { github, repo: &RepoName::parse(&candidate.full_name)?, candidate, choice, workdir, witness };
    match &choice.reference {
        Some(id) if is_commit_id(id) => remote.archive(id, id.clone()).await,
        Some(name) => {
            let name = ref_name(name)?;
            remote.clone(tools, CloneAt::Named(name)).await
        }
        None => match github.latest_release(remote.repo).await? {
            Some(tag) => {
                let commit = github.commit(remote.repo, &tag).await?;
                remote.archive(&tag, commit).await
            }
            None => remote.clone(tools, CloneAt::Head).await,
        },
    }
}

/// Fetches the repository of this machine that `path` lies in, relative to the working directory; needs no GitHub. Nothing in
/// that repository is written.
///
/// # Errors
///
/// See [`FetchError`].
pub async fn fetch_local(
    tools: &FetchTools,
    path: &Path,
    choice: &RefChoice,
    workdir: &Path,
    witness: &dyn CrawlWitness,
) -> Result<Fetched, FetchError> {
    let at = match &choice.reference {
        Some(id) if is_commit_id(id) => return Err(FetchError::LocalCommit { id: id.clone() }),
        Some(name) => CloneAt::Named(ref_name(name)?),
        None => CloneAt::Head,
    };
    let git = Git::open(Arc::clone(&tools.sandbox), &tools.env, path).await?;
    let default_branch = match git.branch().await? {
        Branch::Named(name) => name,
        Branch::Detached => DETACHED.to_owned(),
    };
    let directory =
        git.top().file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let url = CloneUrl::of_directory(git.top())?;
    witness.progress(&format!("cloning {}", git.top().display()));
    let cloned = shallow_clone(tools, url.clone(), at, workdir.join("repository")).await?;
    let selected = choice.reference.clone().unwrap_or_else(|| default_branch.clone());
    let repo = RepoAt {
        full_name: format!("./{directory}"),
        url: url.to_string(),
        selected_ref: selected_ref(&selected, choice.subpath.as_ref()),
        resolved_commit: cloned.commit.to_string(),
        default_branch,
    };
    Ok(Fetched { tree: cloned.tree, repo, method: FetchMethod::ShallowClone })
}

/// A repository of GitHub under the name it has now.
struct Remote<'a> {
    github: &'a GitHub<'a>,
    repo: &'a RepoName,
    candidate: FoundRepo,
    choice: &'a RefChoice,
    workdir: &'a Path,
    witness: &'a dyn CrawlWitness,
}

impl Remote<'_> {
    /// Has the files from the archive of a tag or a commit, which must be the one of `commit`.
    async fn archive(&self, reference: &str, commit: String) -> Result<Fetched, FetchError> {
        let full_name = self.repo.full_name();
        let archive = self.workdir.join(format!("{}.tar.gz", self.repo.name()));
        self.witness.progress(&format!("downloading {full_name} at {reference}"));
        self.github.tarball(self.repo, reference, &archive).await?;
        self.witness.progress("unpacking the archive");
        let unpacked = unpack_aside(archive.clone(), self.workdir.join("archive")).await?;
        let unpacked = unpacked.map_err(|source| FetchError::Archive {
            repo: full_name.clone(),
            reference: reference.to_owned(),
            source,
        })?;
        remove_file(&archive)?;
        if let Some(found) = disagreement(&unpacked, &commit) {
            let reference = reference.to_owned();
            return Err(FetchError::OtherCommit { repo: full_name, reference, commit, found });
        }
        Ok(self.fetched(unpacked.tree, reference, commit, FetchMethod::Tarball))
    }

    async fn clone(&self, tools: &FetchTools, at: CloneAt) -> Result<Fetched, FetchError> {
        let url = tools.clone_base.join(&format!("{}.git", self.repo.full_name()));
        self.witness.progress(&format!("cloning {url}"));
        let selected = match &at {
            CloneAt::Named(name) => Some(name.to_string()),
            CloneAt::Head => None,
        };
        let cloned = shallow_clone(tools, url, at, self.workdir.join(self.repo.name())).await?;
        let selected =
            selected.or(cloned.head_branch).unwrap_or_else(|| self.candidate.default_branch.clone());
        Ok(self.fetched(cloned.tree, &selected, cloned.commit.to_string(), FetchMethod::ShallowClone))
    }

    fn fetched(&self, tree: PathBuf, reference: &str, commit: String, method: FetchMethod) -> Fetched {
        let repo = RepoAt {
            full_name: self.repo.full_name(),
            url: self.candidate.url.clone(),
            selected_ref: selected_ref(reference, self.choice.subpath.as_ref()),
            resolved_commit: commit,
            default_branch: self.candidate.default_branch.clone(),
        };
        Fetched { tree, repo, method }
    }
}

fn ref_name(text: &str) -> Result<RefName, FetchError> {
    text.parse().map_err(|why| FetchError::Ref { text: text.to_owned(), why })
}

fn selected_ref(reference: &str, subpath: Option<&RepoPath>) -> String {
    subpath.map_or_else(|| reference.to_owned(), |path| format!("{reference}:{path}"))
}

async fn shallow_clone(
    tools: &FetchTools,
    url: CloneUrl,
    at: CloneAt,
    into: PathBuf,
) -> Result<Cloned, FetchError> {
    let request = CloneRequest { url, at, into, limits: CloneLimits::DEFAULT };
    let redacted = |text: &str| Scanner::builtin().redact(text).text.into_owned();
    match clone(Arc::clone(&tools.sandbox), &tools.env, &request).await {
        Ok(cloned) => Ok(cloned),
        // The other side's own words are among these.
        Err(CloneError::Unreachable { url, detail }) => {
            Err(CloneError::Unreachable { url, detail: redacted(&detail) }.into())
        }
        Err(CloneError::Repo(RepoError::GitFailed { command, code, stderr })) => {
            let stderr = redacted(&stderr);
            Err(CloneError::Repo(RepoError::GitFailed { command, code, stderr }).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Where the archive contradicts the commit that GitHub names; nothing where it agrees.
fn disagreement(unpacked: &Unpacked, commit: &str) -> Option<String> {
    if let Some(own) = &unpacked.commit
        && own.as_str() != commit
    {
        return Some(format!("it says that it is of {own}"));
    }
    let short = unpacked.top.rsplit('-').next().unwrap_or_default();
    let agrees = short.len() >= SHORTEST && commit.starts_with(short);
    (!agrees).then(|| format!("its top folder is {:?}", unpacked.top))
}

/// Unpacks on a thread of its own. When this future is dropped, the thread ends before the drop does: who removes the directory
/// afterwards finds nobody at work in it.
async fn unpack_aside(archive: PathBuf, into: PathBuf) -> Result<Result<Unpacked, ArchiveError>, FsError> {
    struct EndsFirst(Arc<AtomicBool>, Receiver<()>);
    impl Drop for EndsFirst {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
            let _gone_when_it_ended = self.1.recv();
        }
    }
    create_dir_all(&into)?;
    let (at_work, ended) = sync_channel(0);
    let stop = Arc::new(AtomicBool::new(false));
    let guard = EndsFirst(Arc::clone(&stop), ended);
    let unpacking = tokio::task::spawn_blocking(move || {
        let _at_work: std::sync::mpsc::SyncSender<()> = at_work;
        unpack(&archive, &into, &ArchiveLimits::DEFAULT, &stop)
    });
    let unpacked = unpacking.await;
    drop(guard);
    // A task that did not end by itself was given up together with the runtime.
    Ok(unpacked.unwrap_or(Err(ArchiveError::Stopped)))
}
