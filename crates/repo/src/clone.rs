//! A shallow clone: only the files of one commit of a remote repository.
//!
//! The clone has no work tree at first, so that what it would put there can be counted before a single file
//! is made: a small pack can name more files than any disk holds. The files are then checked out as they are
//! committed, whatever the repository's attributes say, and git's own directory is removed: what stays cannot
//! be taken for a repository.
//!
//! Addresses are `https://` and `file://` alone, and each call allows exactly its own of the two. No login,
//! no redirect, no hook, no filter, no submodule. For `file://` git itself runs `git upload-pack` in the
//! repository, where our settings do not reach; there it follows nothing that names a program unless the
//! user's own configuration does, which it does not see.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_host::fs;
use crucible_model::ByteLimit;
use crucible_sandbox::Sandbox;

use crate::error::RepoError;
use crate::git::{Call, Flush, Output, Runner};
use crate::oid::Oid;
use crate::percent::{Slash, encode};
use crate::ref_name::RefName;

/// Interval between two checks of the received size.
const LOOK: Duration = Duration::from_millis(200);

/// Maximum bytes of a file list.
const MAX_LISTING: u64 = 64 << 20;

/// User variables that git needs to reach a server: proxies and certificates.
const WAY: [&str; 10] = [
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
];

/// How git serves a local repository to us. The serving git drops our settings, so the one that allows a
/// repository of another owner is repeated. It must not reach any server itself: an old git would fetch
/// missing objects of a partial clone with a program that the repository names.
pub(crate) const UPLOAD_PACK: &str =
    "--upload-pack=GIT_ALLOW_PROTOCOL=none git -c safe.directory='*' upload-pack";

/// An address to clone from: `https://host/path` or `file:///path`, percent-encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneUrl(String);

/// What to clone, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneRequest {
    /// The repository.
    pub url: CloneUrl,
    /// The commit.
    pub at: CloneAt,
    /// A directory that does not exist yet, in one that does and is ours alone.
    pub into: PathBuf,
    /// What is too much.
    pub limits: CloneLimits,
}

/// Which commit of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloneAt {
    /// The one that the repository itself has checked out; of one on a server, the default branch's.
    Head,
    /// The one that a branch or tag names; a branch goes before a tag of the same name.
    Named(RefName),
}

/// What a clone may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloneLimits {
    /// Received bytes.
    pub received: ByteLimit,
    /// Files of the commit.
    pub files: u64,
    /// Bytes of all of them.
    pub bytes: ByteLimit,
    /// Time for each call that reaches the other side: the clone, and for a branch one look at the tags.
    pub time: Duration,
}

impl CloneLimits {
    /// 2 GiB received, 400,000 files of 4 GiB, ten minutes.
    pub const DEFAULT: Self = Self {
        received: ByteLimit(2 << 30),
        files: 400_000,
        bytes: ByteLimit(4 << 30),
        time: Duration::from_secs(600),
    };
}

/// What was cloned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cloned {
    /// The files; no repository.
    pub tree: PathBuf,
    /// Their commit, 40 digits.
    pub commit: Oid,
    /// The remote's checked-out branch; `None` if it has none or was not asked.
    pub head_branch: Option<String>,
    /// Submodules of the commit: their files are not there.
    pub submodules: u64,
}

/// Why there is no clone.
#[derive(Debug, thiserror::Error)]
pub enum CloneError {
    /// The address has no accepted form.
    #[error("cannot clone from {text:?}: {why}; write https://HOST/PATH or file:///PATH")]
    Address {
        /// What was written.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The other side has no such branch and no such tag.
    #[error("{url} has no branch or tag {name:?}; list them with `git ls-remote {url}`")]
    NoSuchRef {
        /// The repository.
        url: String,
        /// What was asked for.
        name: String,
    },
    /// The ref is a tag of something else.
    #[error(
        "{name:?} of {url} is not a commit: the tag names a tree or a blob; name a branch, or the tag of a commit"
    )]
    NotACommit {
        /// The repository.
        url: String,
        /// What was asked for.
        name: String,
    },
    /// The remote requires a login or has no such repository; servers do not distinguish the two.
    #[error(
        "{url} does not exist, or is private; clone it yourself and name the directory, such as ./path"
    )]
    NoAccess {
        /// The repository.
        url: String,
    },
    /// The other side was not reached.
    #[error("cannot reach {url}: {detail}; check the network and the proxy settings")]
    Unreachable {
        /// The repository.
        url: String,
        /// What git said.
        detail: String,
    },
    /// There is no commit.
    #[error("{url} has no commit yet, so there is nothing to inspect")]
    Empty {
        /// The repository.
        url: String,
    },
    /// Its object names have 64 digits.
    #[error(
        "{url} uses SHA-256 object names, which crawl artifacts do not support; name a repository with SHA-1 names (check a clone with `git rev-parse --show-object-format`)"
    )]
    Sha256 {
        /// The repository.
        url: String,
    },
    /// It exceeds a limit of the clone.
    #[error("{url} is too large: more than {limit} {what}; inspect a smaller repository")]
    TooLarge {
        /// The repository.
        url: String,
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// It took too long.
    #[error("cloning {url} took longer than {} s; check the network, or try again later", after.as_secs())]
    TimedOut {
        /// The repository.
        url: String,
        /// How long it was given.
        after: Duration,
    },
    /// git failed in another way.
    #[error(transparent)]
    Repo(#[from] RepoError),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Https,
    File,
}

impl CloneUrl {
    /// Parses an address.
    ///
    /// # Errors
    ///
    /// [`CloneError::Address`] for another scheme, for one with a user name or password, a query or a
    /// fragment, and for characters that an address does not have.
    pub fn parse(text: &str) -> Result<Self, CloneError> {
        // The message is shown and saved; text before an `@` may be a password.
        let refuse = |why| CloneError::Address {
            text: without_user(text),
            why,
        };
        if let Some(odd) = text
            .bytes()
            .find(|byte| !byte.is_ascii_graphic() || b"\"<>\\^`{|}".contains(byte))
        {
            return Err(refuse(if odd == b' ' {
                "it holds a space"
            } else {
                "it holds an invalid character"
            }));
        }
        if text.contains(['?', '#']) {
            return Err(refuse("it has a query or a fragment"));
        }
        if let Some(path) = text.strip_prefix("file://") {
            return if path.starts_with('/') {
                Ok(Self(text.to_owned()))
            } else {
                Err(refuse("file:// names a host"))
            };
        }
        let Some(rest) = text.strip_prefix("https://") else {
            return Err(refuse("it does not begin with https:// or file://"));
        };
        let host = rest.split('/').next().unwrap_or_default();
        // A password may contain what looks like the path.
        if rest.contains('@') {
            return Err(refuse("it holds a user name"));
        }
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte);
        if host.is_empty() || host.starts_with('-') || !host.bytes().all(is_host) {
            return Err(refuse("it has no host"));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the `file://` address of a local directory, with any bytes in its name.
    ///
    /// # Errors
    ///
    /// [`CloneError::Address`] if the path is relative.
    pub fn of_directory(path: &Path) -> Result<Self, CloneError> {
        if path.is_absolute() {
            Ok(Self(format!(
                "file://{}",
                encode(path.as_os_str().as_bytes(), Slash::Separates)
            )))
        } else {
            let text = path.to_string_lossy().into_owned();
            Err(CloneError::Address {
                text,
                why: "the path is relative",
            })
        }
    }

    /// The address of `path` below this one; its parts are separated by `/`.
    #[must_use]
    pub fn join(&self, path: &str) -> Self {
        Self(format!(
            "{}/{}",
            self.0.trim_end_matches('/'),
            encode(path.as_bytes(), Slash::Separates)
        ))
    }

    /// Returns the https address of a host.
    ///
    /// # Errors
    ///
    /// [`CloneError::Address`] if it is not a host.
    pub fn of_host(host: &str) -> Result<Self, CloneError> {
        Self::parse(&format!("https://{host}"))
    }

    /// Returns the host of an https address without a port; `None` for `file://`.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        let authority = self.0.strip_prefix("https://")?.split('/').next()?;
        match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(host),
            _ => Some(authority),
        }
    }

    /// The address as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn scheme(&self) -> Scheme {
        if self.0.starts_with("file://") {
            Scheme::File
        } else {
            Scheme::Https
        }
    }
}

impl fmt::Display for CloneUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Clones one commit, and checks its files out.
///
/// # Errors
///
/// See [`CloneError`]. Partial output is left for the owner of the directory to remove.
pub async fn clone(
    sandbox: Arc<Sandbox>,
    env: &Environment,
    request: &CloneRequest,
) -> Result<Cloned, CloneError> {
    let runner = Runner::find(sandbox, env)?;
    let parent_dir = request.into.parent().unwrap_or(Path::new("/"));
    if request.into.symlink_metadata().is_ok() {
        return Err(RepoError::DestinationTaken {
            path: request.into.clone(),
        }
        .into());
    }
    let mut git_dir = request.into.clone().into_os_string();
    git_dir.push(".git");
    let git_dir = PathBuf::from(git_dir);
    follows_our_settings(&runner, parent_dir).await?;
    receive(&runner, env, request, &git_dir, parent_dir).await?;

    let clone_dirs = CloneDirs {
        runner: &runner,
        work_dir: parent_dir,
        git_dir: &git_dir,
        tree: &request.into,
    };
    let url = || request.url.to_string();
    let commit = clone_dirs
        .run(Call::new([
            "rev-parse",
            "--verify",
            "--quiet",
            "HEAD^{commit}",
        ]))
        .await?;
    if commit.code != 0 {
        return Err(match &request.at {
            CloneAt::Head => CloneError::Empty { url: url() },
            CloneAt::Named(name) => CloneError::NotACommit {
                url: url(),
                name: name.to_string(),
            },
        });
    }
    let commit = Oid::from_ascii(commit.stdout.trim_ascii()).ok_or_else(|| commit.unreadable())?;
    if commit.as_str().len() != 40 {
        return Err(CloneError::Sha256 { url: url() });
    }
    let head_branch = match &request.at {
        CloneAt::Head => clone_dirs.head_branch().await?,
        CloneAt::Named(_) => None,
    };
    let submodules = clone_dirs.weigh(request).await?;
    clone_dirs.check_out().await?;
    fs::remove_dir_all(&git_dir).map_err(RepoError::from)?;
    Ok(Cloned {
        tree: request.into.clone(),
        commit,
        head_branch,
        submodules,
    })
}

/// Asks git for one of our settings: before 2.31 it does not read them from its environment.
async fn follows_our_settings(runner: &Runner, work_dir: &Path) -> Result<(), RepoError> {
    let output = runner
        .run(
            work_dir,
            None,
            &[],
            Call::new(["config", "--get", "core.hooksPath"]),
        )
        .await?;
    if output.stdout.trim_ascii() == b"/dev/null" {
        Ok(())
    } else {
        Err(RepoError::GitTooOld {
            found: runner.version(work_dir).await?,
        })
    }
}

/// Makes the bare, shallow clone at `git_dir`.
async fn receive(
    runner: &Runner,
    env: &Environment,
    request: &CloneRequest,
    git_dir: &Path,
    work_dir: &Path,
) -> Result<(), CloneError> {
    let running = runner.run(work_dir, None, &[], clone_call(env, request, git_dir));
    let packs = git_dir.join("objects/pack");
    let limit = request.limits.received;
    let output = tokio::select! {
        output = running => Some(output),
        () = grows_over(&packs, limit) => None,
    };
    // It may have ended between two checks.
    let Some(output) = output.filter(|_| size_of(&packs) <= limit.0) else {
        let url = request.url.to_string();
        return Err(CloneError::TooLarge {
            url,
            what: "bytes to receive",
            limit: limit.0,
        });
    };
    succeeded(output, request).map(|_| ())
}

/// Returns the output of a call to the remote, if it succeeded.
fn succeeded(
    output: Result<Output, RepoError>,
    request: &CloneRequest,
) -> Result<Output, CloneError> {
    match output {
        Ok(output) if output.code == 0 => Ok(output),
        Ok(output) => Err(why_it_failed(output, request)),
        Err(RepoError::TimedOut { after, .. }) => Err(CloneError::TimedOut {
            url: request.url.to_string(),
            after,
        }),
        // git reports what a tag names, and crashes on it.
        Err(RepoError::GitFailed {
            command,
            code,
            stderr,
        }) => Err(not_a_commit(&stderr, request).unwrap_or_else(|| {
            RepoError::GitFailed {
                command,
                code,
                stderr: plain(&stderr),
            }
            .into()
        })),
        Err(error) => Err(error.into()),
    }
}

fn clone_call(env: &Environment, request: &CloneRequest, git_dir: &Path) -> Call {
    let mut words: Vec<OsString> = [
        "clone",
        "--quiet",
        "--bare",
        "--depth=1",
        "--single-branch",
        "--no-recurse-submodules",
        "--no-tags",
        "--template=",
    ]
    .map(Into::into)
    .to_vec();
    if let CloneAt::Named(name) = &request.at {
        words.push(format!("--branch={name}").into());
    }
    reaching(env, request, words, [git_dir.into()])
        .with_setting("transfer.fsckObjects", "true")
        .with_setting("fetch.fsckObjects", "true")
        .with_setting("transfer.bundleURI", "false")
        .with_setting("clone.rejectShallow", "false")
}

/// Creates a call that may reach only the repository of the request: `words`, its address, and then `after`.
fn reaching(
    env: &Environment,
    request: &CloneRequest,
    mut words: Vec<OsString>,
    after: impl IntoIterator<Item = OsString>,
) -> Call {
    if request.url.scheme() == Scheme::File {
        words.push(UPLOAD_PACK.into());
    }
    words.extend(["--".into(), request.url.as_str().into()]);
    words.extend(after);
    let mut call = Call::new(words)
        .with_timeout(request.limits.time)
        .with_setting("transfer.credentialsInUrl", "die");
    call = match request.url.scheme() {
        Scheme::File => call
            .with_setting("protocol.file.allow", "always")
            .with_env("GIT_ALLOW_PROTOCOL", "file"),
        Scheme::Https => call
            .with_setting("protocol.https.allow", "always")
            .with_env("GIT_ALLOW_PROTOCOL", "https")
            .with_setting("http.followRedirects", "false")
            .with_setting("http.sslVerify", "true")
            .with_setting("http.lowSpeedLimit", "1000")
            .with_setting("http.lowSpeedTime", "60"),
    };
    if request.url.scheme() == Scheme::Https {
        for name in WAY {
            if let Some(value) = env.get_os(name) {
                call = call.with_env(name, value);
            }
        }
        // Not every library used by git knows the common variable.
        if let (None, Some(file)) = (env.get_os("GIT_SSL_CAINFO"), env.get_os("SSL_CERT_FILE")) {
            call = call.with_env("GIT_SSL_CAINFO", file);
        }
    }
    call
}

/// Ends when the files of `directory` together are larger than `limit`; never otherwise.
async fn grows_over(directory: &Path, limit: ByteLimit) {
    while size_of(directory) <= limit.0 {
        tokio::time::sleep(LOOK).await;
    }
}

/// Returns the bytes of the files directly in `directory`; 0 if it does not exist.
fn size_of(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .map(|meta| meta.len())
        .sum()
}

/// What git's words mean; they are English, and the other side's are among them.
fn why_it_failed(mut output: Output, request: &CloneRequest) -> CloneError {
    let stderr_contains = |words: &str| output.stderr.contains(words);
    let url = request.url.to_string();
    if let CloneAt::Named(name) = &request.at
        && stderr_contains("not found in upstream")
    {
        return CloneError::NoSuchRef {
            url,
            name: name.to_string(),
        };
    }
    if let Some(error) = not_a_commit(&output.stderr, request) {
        return error;
    }
    if stderr_contains("could not read Username")
        || stderr_contains("Authentication failed")
        || stderr_contains("does not appear to be a git repository")
        || (stderr_contains("repository '") && stderr_contains("' not found"))
    {
        return CloneError::NoAccess { url };
    }
    if stderr_contains("unable to access") || stderr_contains("Could not resolve") {
        let detail = output.stderr.lines().next_back().unwrap_or_default();
        return CloneError::Unreachable {
            url,
            detail: plain(detail),
        };
    }
    output.stderr = plain(&output.stderr);
    CloneError::Repo(output.into_error())
}

/// Returns the error for a tag that names no commit, if git itself reported it; lines of the remote have
/// another prefix.
fn not_a_commit(stderr: &str, request: &CloneRequest) -> Option<CloneError> {
    let CloneAt::Named(name) = &request.at else {
        return None;
    };
    let is_it = |line: &str| line.starts_with("error: object ") && line.ends_with(", not a commit");
    let error = || CloneError::NotACommit {
        url: request.url.to_string(),
        name: name.to_string(),
    };
    stderr.lines().any(is_it).then(error)
}

/// An address without the user name and the password in it, however the rest is wrong.
fn without_user(text: &str) -> String {
    let Some(at) = text.rfind('@') else {
        return text.to_owned();
    };
    let start = text.find("://").map_or(0, |scheme| scheme + 3).min(at);
    [
        text.get(..start).unwrap_or_default(),
        "...",
        text.get(at..).unwrap_or_default(),
    ]
    .concat()
}

/// Returns text of the remote without terminal control sequences.
fn plain(text: &str) -> String {
    text.chars()
        .take(2000)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// The clone, until its files are out.
struct CloneDirs<'a> {
    runner: &'a Runner,
    work_dir: &'a Path,
    git_dir: &'a Path,
    tree: &'a Path,
}

impl CloneDirs<'_> {
    async fn run(&self, call: Call) -> Result<Output, RepoError> {
        let call = call
            .with_env("GIT_DIR", self.git_dir)
            .with_env("GIT_WORK_TREE", self.tree);
        self.runner.run(self.work_dir, None, &[], call).await
    }

    async fn run_ok(&self, call: Call) -> Result<Output, RepoError> {
        let output = self.run(call).await?;
        if output.code == 0 {
            Ok(output)
        } else {
            Err(output.into_error())
        }
    }

    /// The branch that the other side's `HEAD` names.
    async fn head_branch(&self) -> Result<Option<String>, RepoError> {
        let output = self
            .run(Call::new(["symbolic-ref", "--quiet", "HEAD"]))
            .await?;
        let name = std::str::from_utf8(output.stdout.trim_ascii_end()).ok();
        Ok(name
            .and_then(|name| name.strip_prefix("refs/heads/"))
            .map(str::to_owned))
    }

    /// Counts what a checkout would create, and the submodules that it omits.
    async fn weigh(&self, request: &CloneRequest) -> Result<u64, CloneError> {
        let limits = &request.limits;
        let too_large = |what, limit| {
            Err(CloneError::TooLarge {
                url: request.url.to_string(),
                what,
                limit,
            })
        };
        let call = Call::new(["ls-tree", "-r", "-l", "-z", "--full-tree", "HEAD"]);
        let output = match self
            .run_ok(call.with_max_output(ByteLimit(MAX_LISTING)))
            .await
        {
            Err(RepoError::TooLarge { .. }) => {
                return too_large("bytes of file names", MAX_LISTING);
            }
            other => other?,
        };
        let (mut files, mut bytes, mut submodules) = (0, 0u64, 0);
        for record in output.records() {
            // `mode SP kind SP oid SP+ size TAB path`; a submodule has `-` for a size.
            let head = record
                .split(|byte| *byte == b'\t')
                .next()
                .unwrap_or_default();
            let size = std::str::from_utf8(head)
                .ok()
                .and_then(|head| head.split_ascii_whitespace().nth(3));
            files += 1;
            match size {
                Some("-") => submodules += 1,
                Some(size) => {
                    bytes = bytes.saturating_add(size.parse().map_err(|_| output.unreadable())?)
                }
                None => return Err(output.unreadable().into()),
            }
        }
        if files > limits.files {
            return too_large("files", limits.files);
        }
        if bytes > limits.bytes.0 {
            return too_large("bytes of files", limits.bytes.0);
        }
        Ok(submodules)
    }

    /// Makes the files, byte for byte as they are committed.
    async fn check_out(&self) -> Result<(), RepoError> {
        fs::create_dir_all(self.tree)?;
        fs::create_dir_all(&self.git_dir.join("info"))?;
        // Above every `.gitattributes` of the repository.
        let as_they_are = b"* -text -ident -filter -working-tree-encoding\n";
        fs::write_atomic(&self.git_dir.join("info/attributes"), as_they_are)?;
        self.run_ok(Call::new(["read-tree", "--reset", "-u", "HEAD"]).flushing(Flush::No))
            .await?;
        Ok(())
    }
}
