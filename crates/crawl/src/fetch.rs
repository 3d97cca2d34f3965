//! Fetches a repository's files: a release's archive, a clone at a ref, or a clone of the default
//! branch.
//!
//! The network is used only by `gh` and by one shallow `git clone`. A clone cannot take a commit id, so
//! that is fetched as an archive. A local repository is cloned from its `file://` address by the same
//! code.
//!
//! Invariants: all files are in the given directory. The reported commit is that of the files: an archive
//! must match the commit that GitHub reports for its tag. `gh` and git use the same host, so that a
//! repository of one is not reported as that of the other. Omitted parts of a repository are reported.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

use crucible_host::env::Environment;
use crucible_host::fs::{FsError, create_dir_all, remove_file};
use crucible_model::RepoPath;
use crucible_repo::{
    ArchiveError, ArchiveLimits, Branch, CloneAt, CloneError, CloneLimits, CloneRequest, CloneUrl,
    Cloned, DirtyKind, Git, RefName, RefNameError, RepoError, Unpacked, clone, unpack,
};
use crucible_sandbox::Sandbox;

use crate::artifact::{FetchMethod, InspectedRepository};
use crate::github::{FoundRepo, GitHub, GitHubError};
use crate::observer::CrawlObserver;
use crate::target::{RefChoice, RepoName, TargetError, is_commit_id};

/// The fewest commit digits in the name of an archive's top folder.
const SHORTEST: usize = 7;

/// git's name for a checkout that is not on a branch.
const DETACHED: &str = "HEAD";

/// The tools for fetching.
#[derive(Debug, Clone)]
pub struct FetchTools {
    /// Runs git.
    pub sandbox: Arc<Sandbox>,
    /// The environment with git and the user's network settings.
    pub env: Environment,
    /// The base address of clones, if it differs from the host that `gh` uses.
    pub clone_base: Option<CloneUrl>,
}

impl FetchTools {
    /// The base address of clones from `host`.
    fn base(&self, host: &str) -> Result<CloneUrl, FetchError> {
        let Some(base) = &self.clone_base else {
            return Ok(CloneUrl::of_host(host)?);
        };
        let requested = CloneUrl::of_host(host)?;
        match (base.host(), requested.host()) {
            (Some(own), Some(requested_host)) if !own.eq_ignore_ascii_case(requested_host) => {
                Err(FetchError::OtherHost {
                    base: base.to_string(),
                    host: host.to_owned(),
                })
            }
            _ => Ok(base.clone()),
        }
    }
}

/// A repository's files on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Their directory; the creator of the parent deletes it.
    pub tree: PathBuf,
    /// The repository and its commit.
    pub repo: InspectedRepository,
    /// How they were fetched.
    pub method: FetchMethod,
    /// The requested sub-project: by `:PATH`, or by naming a directory below the top level of a local
    /// repository.
    pub subpath: Option<RepoPath>,
}

/// Why the files cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// GitHub returned an error.
    #[error(transparent)]
    GitHub(#[from] GitHubError),
    /// GitHub returned an invalid repository name.
    #[error(transparent)]
    Name(#[from] TargetError),
    /// The ref is invalid.
    #[error("{text:?} is not a ref: {why}; write a tag, a branch or a full commit id")]
    Ref {
        /// The given ref.
        text: String,
        /// What is wrong with it.
        why: RefNameError,
    },
    /// `gh` and git would use different hosts.
    #[error(
        "crawl.clone_base is {base}, and gh asks {host}: another repository may have the same name there; take crawl.clone_base \
         out of the configuration, or set GH_HOST to its host"
    )]
    OtherHost {
        /// The clone address.
        base: String,
        /// The host of `gh`.
        host: String,
    },
    /// The path does not exist.
    #[error("{} does not exist; name an existing directory, or owner/repo for a GitHub repository", path.display())]
    NoSuchPath {
        /// The path as given.
        path: PathBuf,
    },
    /// The path is not a directory.
    #[error("{} is not a directory; name the directory of its repository", path.display())]
    NotADirectory {
        /// The path as given.
        path: PathBuf,
    },
    /// The local repository has no work tree.
    #[error(
        "{} is a bare repository, which a crawl cannot read; `git clone` it, and name the clone", path.display()
    )]
    Bare {
        /// The repository.
        path: PathBuf,
    },
    /// The local repository has no commits.
    #[error(
        "{} has no commits, and a crawl reads only committed files; commit its files, and try again", path.display()
    )]
    Unborn {
        /// The top level of its work tree.
        path: PathBuf,
    },
    /// The clone failed.
    #[error(transparent)]
    Clone(#[from] CloneError),
    /// A commit id was given for a local repository.
    #[error(
        "a local repository can be cloned only at a branch or tag, but {id} is a commit id; tag it: git tag NAME {id}"
    )]
    LocalCommit {
        /// The commit id as given.
        id: String,
    },
    /// The archive is unusable.
    #[error(
        "{source}\nthe archive was for {reference} in {repo}; name a branch or tag with --ref to have it \
        cloned instead"
    )]
    Archive {
        /// The repository.
        repo: String,
        /// The tag or commit.
        reference: String,
        /// What is wrong with it.
        source: ArchiveError,
    },
    /// The archive is for another commit.
    #[error(
        "the archive of {reference} in {repo} is not for the commit {commit} that GitHub reports: {found}; \
        try again, or name a \
         branch or tag with --ref to have it cloned"
    )]
    OtherCommit {
        /// The repository.
        repo: String,
        /// The tag or commit.
        reference: String,
        /// The commit that GitHub reports.
        commit: String,
        /// The commit in the archive.
        found: String,
    },
    /// The local repository cannot be read.
    #[error(transparent)]
    Local(#[from] RepoError),
    /// The work directory cannot be used.
    #[error(transparent)]
    Fs(#[from] FsError),
}

/// Fetches a GitHub repository into `workdir`, an empty directory that the caller created and deletes.
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
    observer: &dyn CrawlObserver,
) -> Result<Fetched, FetchError> {
    let clone_base = tools.base(github.host())?;
    observer.progress(&format!("looking up {}", repo.full_name()));
    let candidate = github.repository(repo).await?;
    if !candidate.full_name.eq_ignore_ascii_case(&repo.full_name()) {
        observer.warning(&format!(
            "{} was renamed or transferred; GitHub answers with {}, which is used",
            repo.full_name(),
            candidate.full_name
        ));
    }
    // Use the current name of a renamed repository: git does not follow the redirect from the old one.
    let remote = Remote {
        github,
        repo: &RepoName::parse(&candidate.full_name)?,
        candidate,
        choice,
        workdir,
        observer,
    };
    match &choice.reference {
        Some(id) if is_commit_id(id) => remote.archive(id, id.clone()).await,
        Some(name) => {
            let name = ref_name(name)?;
            remote.clone(tools, &clone_base, CloneAt::Named(name)).await
        }
        None => match github.latest_release(remote.repo).await? {
            Some(tag) => {
                let commit = github.commit(remote.repo, &tag).await?;
                remote.archive(&tag, commit).await
            }
            None => remote.clone(tools, &clone_base, CloneAt::Head).await,
        },
    }
}

/// Fetches the local repository that contains the directory at `path`, relative to the working directory; needs no GitHub.
/// Below the repository's top level, that directory is the sub-project unless `choice` names one. The repository is not
/// modified, and uncommitted changes are not fetched.
///
/// # Errors
///
/// See [`FetchError`].
pub async fn fetch_local(
    tools: &FetchTools,
    path: &Path,
    choice: &RefChoice,
    workdir: &Path,
    observer: &dyn CrawlObserver,
) -> Result<Fetched, FetchError> {
    let at = match &choice.reference {
        Some(id) if is_commit_id(id) => return Err(FetchError::LocalCommit { id: id.clone() }),
        Some(name) => CloneAt::Named(ref_name(name)?),
        None => CloneAt::Head,
    };
    let place = directory_at(&tools.env.working_directory().join(path))?;
    observer.progress(&format!("opening {}", place.display()));
    let git = Git::open(Arc::clone(&tools.sandbox), &tools.env, &place)
        .await
        .map_err(|error| match error {
            RepoError::Bare { path } => FetchError::Bare { path },
            RepoError::Empty { path } => FetchError::Unborn { path },
            other => other.into(),
        })?;
    let subpath = match &choice.subpath {
        Some(subpath) => Some(subpath.clone()),
        None => part_at(&place, git.top())?,
    };
    if choice.reference.is_none() {
        warn_of_changes(&git, observer).await;
    }
    let default_branch = match git.branch().await? {
        Branch::Named(name) => name,
        Branch::Detached => DETACHED.to_owned(),
    };
    let directory = git
        .top()
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let url = CloneUrl::of_directory(git.top())?;
    observer.progress(&format!("cloning {}", git.top().display()));
    let cloned =
        shallow_clone(tools, url.clone(), at, workdir.join("repository"), observer).await?;
    let selected = choice
        .reference
        .clone()
        .unwrap_or_else(|| default_branch.clone());
    let repo = InspectedRepository {
        full_name: format!("./{directory}"),
        url: url.to_string(),
        selected_ref: selected_ref(&selected, subpath.as_ref()),
        resolved_commit: cloned.commit.to_string(),
        default_branch,
    };
    Ok(Fetched {
        tree: cloned.tree,
        repo,
        method: FetchMethod::ShallowClone,
        subpath,
    })
}

/// The directory at `path`, as a path without links.
fn directory_at(path: &Path) -> Result<PathBuf, FetchError> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let path = path.to_owned();
    match path.canonicalize() {
        Ok(place) if place.is_dir() => Ok(place),
        Ok(_) => Err(FetchError::NotADirectory { path }),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => {
            Err(FetchError::NoSuchPath { path })
        }
        Err(source) => Err(RepoError::Io {
            action: "open",
            path,
            source,
        }
        .into()),
    }
}

/// The part of the repository at `top` that `place` is; none for the top level itself.
fn part_at(place: &Path, top: &Path) -> Result<Option<RepoPath>, FetchError> {
    let below = place.strip_prefix(top).unwrap_or(Path::new(""));
    if below.as_os_str().is_empty() {
        return Ok(None);
    }
    let why = match RepoPath::from_bytes(below.as_os_str().as_bytes()) {
        Ok(part) => return Ok(Some(part)),
        Err(why) => why,
    };
    Err(TargetError::Subpath {
        text: below.display().to_string(),
        why,
    }
    .into())
}

/// Warns about changes that are ignored because they are not committed.
async fn warn_of_changes(git: &Git, observer: &dyn CrawlObserver) {
    let left_out = match git.status().await {
        Ok(entries) => entries
            .iter()
            .filter(|entry| entry.kind != DirtyKind::Hidden)
            .count(),
        Err(error) => {
            let why = format!("cannot check for uncommitted changes, which are ignored: {error}");
            return observer.warning(&why);
        }
    };
    if left_out > 0 {
        let what = if left_out == 1 {
            "1 path is".to_owned()
        } else {
            format!("{left_out} paths are")
        };
        observer.warning(&format!(
            "{what} changed or untracked in {}: only committed files are read; commit first if it matters",
            git.top().display()
        ));
    }
}

/// A GitHub repository under its current name.
struct Remote<'a> {
    github: &'a GitHub<'a>,
    repo: &'a RepoName,
    candidate: FoundRepo,
    choice: &'a RefChoice,
    workdir: &'a Path,
    observer: &'a dyn CrawlObserver,
}

impl Remote<'_> {
    /// Fetches the archive of a tag or a commit, which must be for `commit`.
    async fn archive(&self, reference: &str, commit: String) -> Result<Fetched, FetchError> {
        let full_name = self.repo.full_name();
        let archive = self.workdir.join(format!("{}.tar.gz", self.repo.name()));
        self.observer
            .progress(&format!("downloading {full_name} at {reference}"));
        self.github.tarball(self.repo, reference, &archive).await?;
        self.observer.progress("unpacking the archive");
        let limits = ArchiveLimits::DEFAULT;
        let unpacked = unpack_aside(archive.clone(), self.workdir.join("archive"), limits).await?;
        let unpacked = unpacked.map_err(|source| FetchError::Archive {
            repo: full_name.clone(),
            reference: reference.to_owned(),
            source,
        })?;
        remove_file(&archive)?;
        if let Some(found) = disagreement(&unpacked, &commit) {
            let reference = reference.to_owned();
            return Err(FetchError::OtherCommit {
                repo: full_name,
                reference,
                commit,
                found,
            });
        }
        if unpacked.special_bits > 0 {
            self.observer.warning(&format!(
                "set-user, set-group and sticky bits of the archive's entries, left out: {}",
                unpacked.special_bits
            ));
        }
        // An archive has no information about submodules; their directories are empty.
        if unpacked.tree.join(".gitmodules").symlink_metadata().is_ok() {
            self.observer.warning(
                "the repository has submodules (see .gitmodules), whose files are not read",
            );
        }
        Ok(self.fetched(unpacked.tree, reference, commit, FetchMethod::Tarball))
    }

    async fn clone(
        &self,
        tools: &FetchTools,
        base: &CloneUrl,
        at: CloneAt,
    ) -> Result<Fetched, FetchError> {
        let url = base.join(&format!("{}.git", self.repo.full_name()));
        self.observer.progress(&format!("cloning {url}"));
        let selected = match &at {
            CloneAt::Named(name) => Some(name.to_string()),
            CloneAt::Head => None,
        };
        let into = self.workdir.join(self.repo.name());
        let cloned = shallow_clone(tools, url, at, into, self.observer).await?;
        let selected = selected
            .or(cloned.head_branch)
            .unwrap_or_else(|| self.candidate.default_branch.clone());
        Ok(self.fetched(
            cloned.tree,
            &selected,
            cloned.commit.to_string(),
            FetchMethod::ShallowClone,
        ))
    }

    fn fetched(
        &self,
        tree: PathBuf,
        reference: &str,
        commit: String,
        method: FetchMethod,
    ) -> Fetched {
        let repo = InspectedRepository {
            full_name: self.repo.full_name(),
            url: self.candidate.url.clone(),
            selected_ref: selected_ref(reference, self.choice.subpath.as_ref()),
            resolved_commit: commit,
            default_branch: self.candidate.default_branch.clone(),
        };
        Fetched {
            tree,
            repo,
            method,
            subpath: self.choice.subpath.clone(),
        }
    }
}

fn ref_name(text: &str) -> Result<RefName, FetchError> {
    text.parse().map_err(|why| FetchError::Ref {
        text: text.to_owned(),
        why,
    })
}

fn selected_ref(reference: &str, subpath: Option<&RepoPath>) -> String {
    subpath.map_or_else(
        || reference.to_owned(),
        |path| format!("{reference}:{path}"),
    )
}

async fn shallow_clone(
    tools: &FetchTools,
    url: CloneUrl,
    at: CloneAt,
    into: PathBuf,
    observer: &dyn CrawlObserver,
) -> Result<Cloned, FetchError> {
    let request = CloneRequest {
        url,
        at,
        into,
        limits: CloneLimits::DEFAULT,
    };
    let cloned = clone(Arc::clone(&tools.sandbox), &tools.env, &request).await?;
    if cloned.submodules > 0 {
        observer.warning(&format!(
            "submodules, whose files are not read: {}",
            cloned.submodules
        ));
    }
    Ok(cloned)
}

/// How the archive contradicts the commit that GitHub reports; none if it agrees.
fn disagreement(unpacked: &Unpacked, commit: &str) -> Option<String> {
    if let Some(own) = &unpacked.commit
        && own.as_str() != commit
    {
        return Some(format!("it names the commit {own}"));
    }
    let short = unpacked.top.rsplit('-').next().unwrap_or_default();
    let agrees = short.len() >= SHORTEST && commit.starts_with(short);
    (!agrees).then(|| format!("its top folder is {:?}", unpacked.top))
}

/// Unpacks on a blocking thread. If this future is dropped, the thread ends first, so that the directory
/// can be deleted safely.
async fn unpack_aside(
    archive: PathBuf,
    into: PathBuf,
    limits: ArchiveLimits,
) -> Result<Result<Unpacked, ArchiveError>, FsError> {
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
        unpack(&archive, &into, &limits, &stop)
    });
    let unpacked = tokio::time::timeout(limits.time, unpacking).await;
    drop(guard);
    let Ok(unpacked) = unpacked else {
        return Ok(Err(ArchiveError::TimedOut { limit: limits.time }));
    };
    // The task was aborted together with the runtime.
    Ok(unpacked.unwrap_or(Err(ArchiveError::Stopped)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crucible_host::fs::write_unflushed;
    use crucible_testkit::{fake_sha, tarball};

    use super::*;

    /// A slow disk creates some hundred of 60,000 directories per second; a millisecond's limit is
    /// exceeded by fewer.
    #[tokio::test]
    async fn unpacking_stops_at_time_limit() {
        let temp_dir = tempfile::tempdir().unwrap();
        let sha = fake_sha("acme/widget", "v1");
        let names: Vec<String> = (0..2_000).map(|number| format!("d{number}/f")).collect();
        let bytes = tarball(
            "acme",
            "widget",
            &sha,
            names.iter().map(|name| (name.as_str(), "")),
        );
        let archive = temp_dir.path().join("a.tar.gz");
        write_unflushed(&archive, &bytes, 0o600).unwrap();
        let unpack = async |into: &str, time: Duration| {
            let limits = ArchiveLimits {
                time,
                ..ArchiveLimits::DEFAULT
            };
            unpack_aside(archive.clone(), temp_dir.path().join(into), limits)
                .await
                .unwrap()
        };
        let begun = tokio::time::Instant::now();
        let ended = unpack("late", Duration::from_millis(1)).await.unwrap_err();
        assert!(matches!(ended, ArchiveError::TimedOut { .. }), "{ended}");
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "it ends soon after its limit"
        );
        assert!(
            ended.to_string().contains("set TMPDIR to a faster disk"),
            "{ended}"
        );
        let unpacked_tree = unpack("whole", ArchiveLimits::DEFAULT.time).await.unwrap();
        assert_eq!(
            std::fs::read_dir(unpacked_tree.tree).unwrap().count(),
            2_000
        );
    }
}
