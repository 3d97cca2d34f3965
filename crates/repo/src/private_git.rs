//! A git directory of its own for a copy, with the history that tests ask for: versions from tags, `git log`, `git status`.
//!
//! How it works: [`Git::private_git`] writes one into a directory, once: a detached `HEAD` at the commit, its branch and the tags that it
//! contains, and one pack. A small history comes whole, a large one as its commits and the files of the commit alone.
//! [`PrivateGit::install_into`] puts a copy of that into a copy of the work tree, with an index (`index`). git packs; what is packed is
//! listed here, and asked of git where objects or references are in a form that only git reads.
//!
//! What always holds: nothing of the original's hooks, remotes, settings, stashes and other branches is in it; no object of a file whose name
//! says that it holds secrets; and it borrows nothing, so that who writes in it reaches no object of the original.

mod index;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_host::fs;
use crucible_model::ByteLimit;

use crate::beneath::Root;
use crate::error::RepoError;
use crate::git::store::HashKind;
use crate::git::{Branch, Call, Git, as_path};
use crate::oid::Oid;
use crate::snapshot::{SecretCheck, copy_plain};
use crate::tree::quoted;
use index::Entry;

/// How much history is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Maximum objects of a repository whose complete history is included.
    pub objects: u64,
    /// Their bytes on the disk.
    pub bytes: ByteLimit,
}

impl HistoryLimits {
    /// 50,000 objects, 64 MiB.
    pub const STANDARD: Self = Self {
        objects: 50_000,
        bytes: ByteLimit(64 << 20),
    };
}

/// Bytes of names that one call may print.
const MAX_LIST: ByteLimit = ByteLimit(64 << 20);
/// What names of tags begin with.
const TAGS: &[u8] = b" refs/tags/";
/// Bytes of the pack.
const MAX_PACK: ByteLimit = ByteLimit(128 << 20);
/// Time limit for listing and for packing.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A git directory that is ready to be given to copies.
#[derive(Debug, Clone)]
pub struct PrivateGit {
    template: PathBuf,
    files: Vec<PathBuf>,
    /// The files of the commit; `None` if git wrote an index into the template.
    entries: Option<Arc<Vec<Entry>>>,
}

impl Git {
    /// Writes a git directory at `commit` into `scratch_dir`, which is not there yet.
    ///
    /// # Errors
    ///
    /// Fails when git does, or when `scratch_dir` cannot be written.
    pub async fn private_git(
        &self,
        commit: &Oid,
        scratch_dir: &Path,
        secret: &SecretCheck,
        limits: HistoryLimits,
    ) -> Result<PrivateGit, RepoError> {
        for directory in [
            "objects/info",
            "objects/pack",
            "refs/heads",
            "refs/tags",
            "info",
        ] {
            fs::create_dir_all(&scratch_dir.join(directory))?;
        }
        let tags = self.tags_in(commit).await?;
        let sha256 = match self.hash() {
            Some(hash) => hash == HashKind::Sha256,
            None => {
                let format = self
                    .run_ok(Call::new(["rev-parse", "--show-object-format"]))
                    .await?;
                format.stdout.trim_ascii() == b"sha256"
            }
        };
        let mut written = vec![
            ("config", config(sha256).into_bytes()),
            ("HEAD", format!("{commit}\n").into_bytes()),
            (
                "packed-refs",
                packed_refs(commit, &self.branch().await?, &tags),
            ),
        ];
        let shallow =
            fs::read_regular_up_to(&self.common_dir().join("shallow"), ByteLimit(1 << 20));
        let shallow = shallow.unwrap_or_default();
        let shallow: Vec<Oid> = shallow
            .split(|byte| *byte == b'\n')
            .filter_map(Oid::from_ascii)
            .collect();
        if !shallow.is_empty() {
            written.push(("shallow", lines(&shallow)));
        }
        for (name, bytes) in &written {
            fs::write_unflushed(&scratch_dir.join(name), bytes, 0o644)?;
        }
        self.pack_history(commit, &tags, shallow, scratch_dir, secret, limits)
            .await?;
        let mut files: Vec<PathBuf> = written
            .iter()
            .map(|(name, _)| PathBuf::from(name))
            .collect();
        let entries = self.entries_of(commit).await?;
        if entries.is_none() {
            let index = scratch_dir.join("index");
            let call = Call::new(["read-tree", commit.as_str()]).with_env("GIT_INDEX_FILE", &index);
            self.run_ok(call).await?;
            files.push("index".into());
        }
        let packs = std::fs::read_dir(scratch_dir.join("objects/pack"));
        let packs = packs.map_err(|source| RepoError::io("list", scratch_dir, source))?;
        // A call that failed may have left a part of a pack.
        let packs = packs.flatten().map(|entry| entry.file_name());
        let packs = packs.filter(|name| name.to_string_lossy().starts_with("pack-"));
        files.extend(packs.map(|name| Path::new("objects/pack").join(name)));
        Ok(PrivateGit {
            template: scratch_dir.to_owned(),
            files,
            entries: entries.map(Arc::new),
        })
    }

    /// Writes the pack.
    async fn pack_history(
        &self,
        commit: &Oid,
        tags: &[(Vec<u8>, Oid)],
        shallow: Vec<Oid>,
        scratch_dir: &Path,
        secret: &SecretCheck,
        limits: HistoryLimits,
    ) -> Result<(), RepoError> {
        if self.is_small(limits).await? {
            let starts = std::iter::once(commit)
                .chain(tags.iter().map(|(_, object)| object))
                .cloned();
            let (starts, hide): (Vec<Oid>, _) = (starts.collect(), Arc::clone(secret));
            let shallow: HashSet<Oid> = shallow.into_iter().collect();
            let read = self.read(&[], move |reader| {
                reader.reachable(&starts, &shallow, limits.objects, &hide)
            });
            if let Some(ids) = read.await.ok().flatten()
                && self.pack_small(lines(&ids), scratch_dir).await.is_ok()
            {
                return Ok(());
            }
            // A partial clone lacks objects; git reports which.
            if let Ok(ids) = self.whole_history(commit, tags, secret).await {
                return self.pack(ids, scratch_dir).await;
            }
        }
        let ids = self.short_history(commit, tags, secret).await?;
        self.pack(ids, scratch_dir).await
    }

    /// Packs objects in one call, which writes the pack into `scratch_dir` by itself.
    async fn pack_small(&self, ids: Vec<u8>, scratch_dir: &Path) -> Result<(), RepoError> {
        let objects = scratch_dir.join("objects");
        let words = [
            "pack-objects",
            "--quiet",
            "--window=0",
            "--delta-base-offset",
        ]
        .map(OsString::from);
        let name = objects.join("pack/pack").into_os_string();
        let call = Call::new(words.into_iter().chain([name]))
            .reading(ids)
            .with_timeout(TIMEOUT);
        // git writes its output beside its objects.
        let call = call.with_env("GIT_OBJECT_DIRECTORY", &objects).with_env(
            "GIT_ALTERNATE_OBJECT_DIRECTORIES",
            quoted(&self.objects_dir()),
        );
        self.run_ok(call.with_setting("pack.compression", "1"))
            .await
            .map(drop)
    }

    /// Packs objects of any size: no more than a limit is written to the disk.
    async fn pack(&self, ids: Vec<u8>, scratch_dir: &Path) -> Result<(), RepoError> {
        // Without a file name git writes only the objects that it reads.
        let words = [
            "pack-objects",
            "--quiet",
            "--stdout",
            "--window=0",
            "--delta-base-offset",
        ];
        let call = Call::new(words)
            .reading(ids)
            .with_max_output(MAX_PACK)
            .with_timeout(TIMEOUT);
        let pack = self
            .run_ok(call.with_setting("pack.compression", "1"))
            .await?
            .stdout;
        let call = Call::new(["index-pack", "--stdin"])
            .reading(pack)
            .with_timeout(TIMEOUT);
        self.run_bare(scratch_dir, call.with_env("GIT_DIR", scratch_dir))
            .await
            .map(drop)
    }

    /// The tags that the history of `commit` contains: the line of each in `packed-refs`, and its object.
    async fn tags_in(&self, commit: &Oid) -> Result<Vec<(Vec<u8>, Oid)>, RepoError> {
        if self.has_no_tags() {
            return Ok(Vec::new());
        }
        let format = "--format=%(objectname) %(*objectname) %(refname)";
        let merged = format!("--merged={commit}");
        let call = Call::new([
            "for-each-ref",
            "--sort=refname",
            format,
            &merged,
            "refs/tags",
        ]);
        let output = self
            .run_ok(call.with_max_output(MAX_LIST).with_timeout(TIMEOUT))
            .await?;
        let lines = output.stdout.split(|byte| *byte == b'\n');
        Ok(lines
            .filter_map(|line| {
                let mut fields = line.splitn(3, |byte| *byte == b' ');
                let object = Oid::from_ascii(fields.next()?)?;
                let peeled = Oid::from_ascii(fields.next()?);
                let mut entry = object.to_string().into_bytes();
                entry.push(b' ');
                entry.extend_from_slice(fields.next()?);
                entry.push(b'\n');
                if let Some(peeled) = peeled {
                    entry.extend_from_slice(format!("^{peeled}\n").as_bytes());
                }
                Some((entry, object))
            })
            .collect())
    }

    /// Returns whether there is no tag, as far as visible without git.
    fn has_no_tags(&self) -> bool {
        let loose = std::fs::read_dir(self.common_dir().join("refs/tags"));
        let has_loose = match loose {
            Ok(mut names) => names.next().is_some(),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        };
        let packed = fs::read_regular_up_to(&self.common_dir().join("packed-refs"), MAX_LIST);
        let has_packed = match packed {
            Ok(packed) => packed.windows(TAGS.len()).any(|window| window == TAGS),
            Err(error) => !error.is_not_found(),
        };
        self.hash().is_some() && !has_loose && !has_packed
    }

    /// Whether the whole history is to be packed.
    async fn is_small(&self, limits: HistoryLimits) -> Result<bool, RepoError> {
        if let Some((objects, bytes)) = self
            .read(&[], |reader| reader.extent())
            .await
            .ok()
            .flatten()
        {
            return Ok(objects <= limits.objects && bytes <= limits.bytes.0);
        }
        let output = self.run_ok(Call::new(["count-objects", "-v"])).await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let count = |name: &str| -> u64 {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.and_then(|count| count.parse().ok())
                .unwrap_or_default()
        };
        // The sizes are in KiB.
        let bytes = count("size")
            .saturating_add(count("size-pack"))
            .saturating_mul(1024);
        Ok(
            count("count").saturating_add(count("in-pack")) <= limits.objects
                && bytes <= limits.bytes.0,
        )
    }

    /// Every object that the commit and the tags lead to.
    async fn whole_history(
        &self,
        commit: &Oid,
        tags: &[(Vec<u8>, Oid)],
        secret: &SecretCheck,
    ) -> Result<Vec<u8>, RepoError> {
        // A partial clone lacks objects that are not fetched for this.
        let call = Call::new(["rev-list", "--objects", "--missing=print", "--stdin"]);
        let call = call
            .reading(starts(commit, tags))
            .with_max_output(MAX_LIST)
            .with_timeout(TIMEOUT);
        let output = self.run_ok(call).await?;
        let mut ids = Vec::new();
        for line in output.stdout.split(|byte| *byte == b'\n') {
            let mut fields = line.splitn(2, |byte| *byte == b' ');
            let id = fields.next().unwrap_or_default();
            let path = as_path(fields.next().unwrap_or_default());
            if Oid::from_ascii(id).is_some()
                && (path.as_os_str().is_empty() || secret(&path).is_none())
            {
                ids.extend_from_slice(id);
                ids.push(b'\n');
            }
        }
        Ok(ids)
    }

    /// Every commit, and the files of the one.
    async fn short_history(
        &self,
        commit: &Oid,
        tags: &[(Vec<u8>, Oid)],
        secret: &SecretCheck,
    ) -> Result<Vec<u8>, RepoError> {
        let call = Call::new(["rev-list", "--stdin"]).reading(starts(commit, tags));
        let mut ids = self
            .run_ok(call.with_max_output(MAX_LIST).with_timeout(TIMEOUT))
            .await?
            .stdout;
        let tree = self.tree_of(commit).await?;
        let named = [tree]
            .into_iter()
            .chain(tags.iter().map(|(_, object)| object.clone()));
        ids.extend(named.flat_map(|id| format!("{id}\n").into_bytes()));
        let call = Call::new(["ls-tree", "-r", "-t", "-z", commit.as_str()]);
        let output = self
            .run_ok(call.with_max_output(MAX_LIST).with_timeout(TIMEOUT))
            .await?;
        for record in output.records() {
            // `mode SP type SP id TAB path`
            let (head, path) =
                record.split_at(record.iter().position(|byte| *byte == b'\t').unwrap_or(0));
            let mut fields = head.split(|byte| *byte == b' ').skip(1);
            let (kind, id) = (
                fields.next().unwrap_or_default(),
                fields.next().unwrap_or_default(),
            );
            let path = as_path(path.get(1..).unwrap_or_default());
            if kind == b"tree" || (kind == b"blob" && secret(&path).is_none()) {
                ids.extend_from_slice(id);
                ids.push(b'\n');
            }
        }
        Ok(ids)
    }
}

impl PrivateGit {
    /// Installs it in `copy`, whose files are those of the commit, and records their metadata in the index.
    ///
    /// # Errors
    ///
    /// Fails when `copy` has a `.git`, is not writable, or git fails.
    pub async fn install_into(&self, git: &Git, copy: &Path) -> Result<(), RepoError> {
        let git_dir = copy.join(".git");
        if git_dir.symlink_metadata().is_ok() {
            return Err(RepoError::DestinationTaken { path: git_dir });
        }
        for directory in [
            "objects/info",
            "objects/pack",
            "refs/heads",
            "refs/tags",
            "info",
        ] {
            fs::create_dir_all(&git_dir.join(directory))?;
        }
        let (from, to, files) = (
            Root::open(&self.template)?,
            Root::open(&git_dir)?,
            self.files.clone(),
        );
        let copied = tokio::task::spawn_blocking(move || copy_plain(&from, &to, &files)).await;
        copied
            .map_err(|error| RepoError::io("copy to", &git_dir, std::io::Error::other(error)))??;
        if let Some(entries) = &self.entries {
            let (entries, top) = (Arc::clone(entries), copy.to_owned());
            let index_metadata =
                tokio::task::spawn_blocking(move || index::write(&top, &entries)).await;
            let noted = index_metadata.map_err(|error| {
                RepoError::io("write", &git_dir, std::io::Error::other(error))
            })??;
            if noted == index::IndexMetadata::All {
                return Ok(());
            }
        }
        let call = Call::new(["update-index", "-q", "--refresh"])
            .with_env("GIT_DIR", &git_dir)
            .with_env("GIT_WORK_TREE", copy);
        // Its exit code reports missing files; omitted ones are missing.
        git.run_elsewhere(copy, call).await
    }
}

fn config(sha256: bool) -> String {
    let (version, format) = if sha256 {
        (1, "[extensions]\n\tobjectformat = sha256\n")
    } else {
        (0, "")
    };
    format!(
        "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = false\n\
         \tlogallrefupdates = false\n{format}"
    )
}

/// The branch and the tags, sorted by name.
fn packed_refs(commit: &Oid, branch: &Branch, tags: &[(Vec<u8>, Oid)]) -> Vec<u8> {
    let mut refs = b"# pack-refs with: peeled fully-peeled sorted \n".to_vec();
    if let Branch::Named(name) = branch {
        refs.extend_from_slice(format!("{commit} refs/heads/{name}\n").as_bytes());
    }
    tags.iter()
        .for_each(|(line, _)| refs.extend_from_slice(line));
    refs
}

/// Where the history begins, for `rev-list --stdin`.
fn starts(commit: &Oid, tags: &[(Vec<u8>, Oid)]) -> Vec<u8> {
    lines(
        [commit]
            .into_iter()
            .chain(tags.iter().map(|(_, object)| object)),
    )
}

/// Names of objects as git reads them.
fn lines<'a>(ids: impl IntoIterator<Item = &'a Oid>) -> Vec<u8> {
    ids.into_iter()
        .flat_map(|id| format!("{id}\n").into_bytes())
        .collect()
}
