//! Reads commits and notes of any repository: one with a work tree, a bare one on a server, and the objects of a push
//! that is not accepted yet.
//!
//! A push is judged before its objects belong to the repository. Git then names their directory in the environment of
//! the hook, and only in that case are its variables taken from there. Commits are read in batches, so the number of
//! processes does not grow with the number of commits. The bytes of each object are hashed again.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_host::fs;
use crucible_model::{ByteLimit, Timestamp};
use crucible_patch::FileMode;
use crucible_sandbox::Sandbox;

use crate::error::RepoError;
use crate::git::store::{HashKind, ObjectKind, TreeMode, tree_entries};
use crate::git::{Call, Flush, Git, MAX_COMMIT, Output, Runner};
use crate::identity::Identity;
use crate::land::identity_env;
use crate::oid::Oid;
use crate::tree::quoted;

/// The variables of a hook that judges a push, and the one that says so.
const QUARANTINE: &str = "GIT_QUARANTINE_PATH";
const OBJECTS: &str = "GIT_OBJECT_DIRECTORY";
const ALTERNATES: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES";

/// What git says of objects that are not there or damaged.
const MISSING: [&str; 6] = [
    "missing ",
    "bad object ",
    "bad tree object ",
    "Could not read ",
    "unable to read ",
    "unable to parse ",
];
/// How often a note is written again because another process wrote one at the same time.
const NOTE_TRIES: u32 = 5;
/// The most commits whose common ancestor is searched: the time grows with their square.
const MAX_ROOTS: usize = 100;
/// git knows these two without reading them.
const EMPTY_TREE_SHA1: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_TREE_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";
/// The longest list of the names of all notes: some hundred thousand.
const MAX_NOTES_LIST: ByteLimit = ByteLimit(32 << 20);
/// The largest tree of notes: some hundred thousand in one directory.
const MAX_TREE: ByteLimit = ByteLimit(64 << 20);

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

/// How notes differ from older ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotesChange {
    /// The commits whose note is missing or another one.
    pub lost: Vec<Oid>,
    /// Whether something was added that is no regular file, such as a submodule. git writes notes without it, or takes it
    /// for a note.
    pub has_other_entries: bool,
}

/// A position in the history, as the user wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revisions<'a> {
    /// One commit.
    Commit(&'a str),
    /// The commits of a range such as `main..topic`.
    Range(&'a str),
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
            Err(RepoError::Bare { path }) => (path.clone(), path),
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

    /// Returns the commits that the user named, oldest first; `None` if there are more than `most`.
    ///
    /// # Errors
    ///
    /// [`RepoError::NoSuchRevision`] if there is no such commit, [`RepoError::AmbiguousRevision`] if git would choose
    /// one of several meanings.
    pub async fn commits(
        &self,
        named: Revisions<'_>,
        most: usize,
    ) -> Result<Option<Vec<Oid>>, RepoError> {
        let (Revisions::Commit(words) | Revisions::Range(words)) = named;
        let missing = || RepoError::NoSuchRevision {
            name: words.to_owned(),
        };
        let is_known = self.has_revision(words).await?;
        match named {
            Revisions::Commit(name) => {
                let commit = self.resolve(name).await?.ok_or_else(missing)?;
                Ok(Some(vec![commit]))
            }
            Revisions::Range(_) if !is_known => Err(missing()),
            Revisions::Range(_) => {
                let (tips, left_out) = self.ends(named).await?;
                self.new_commits(&tips, &left_out, most).await
            }
        }
    }

    /// Returns whether words of a user name a revision or a range.
    ///
    /// # Errors
    ///
    /// [`RepoError::AmbiguousRevision`] if git would choose one of several meanings.
    pub async fn has_revision(&self, words: &str) -> Result<bool, RepoError> {
        let call = Call::new(["rev-parse", "--end-of-options", words])
            .with_setting("core.warnAmbiguousRefs", "true");
        let output = self.run(call).await?;
        // git chooses a tag before a branch, and a ref before an object, and only warns.
        let warned = output.stderr.lines().find_map(|line| {
            let name = line.strip_prefix("warning: refname '")?;
            let name = name.strip_suffix("' is ambiguous.")?;
            // The whole name of an object always means the object.
            name.parse::<Oid>().is_err().then_some(name)
        });
        match warned {
            Some(found) => Err(RepoError::AmbiguousRevision {
                name: words.to_owned(),
                found: found.to_owned(),
            }),
            None => Ok(output.code == 0),
        }
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

    /// Returns the commits of `tips` that none of `known` contains, oldest first; `None` if there are more than `most`.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn new_commits(
        &self,
        tips: &[Oid],
        known: &[Oid],
        most: usize,
    ) -> Result<Option<Vec<Oid>>, RepoError> {
        if tips.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let call = Call::new(["rev-list", "--topo-order", "--stdin"]);
        let output = self.ok(call.reading(revisions(tips, known))).await?;
        let mut listed = oids(&output)?;
        listed.reverse();
        // git stops early where a commit is dated before its ancestors, and then lists known ones, too.
        let contained = self.contained(&listed, known).await?;
        listed.retain(|commit| !contained.contains(commit));
        Ok((listed.len() <= most).then_some(listed))
    }

    /// Returns which of `commits` are in the history of `known`, whatever the dates say. If one of them is not of this push
    /// only, the whole history is listed.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn contained(
        &self,
        commits: &[Oid],
        known: &[Oid],
    ) -> Result<BTreeSet<Oid>, RepoError> {
        if known.is_empty() || commits.is_empty() {
            return Ok(BTreeSet::new());
        }
        // The history of a ref is in the repository itself.
        let names = commits.iter().map(|commit| format!("{commit}\n"));
        let call = Call::new(["cat-file", "--batch-check=%(objectname)"])
            .reading(names.collect::<String>().into_bytes())
            .with_env("GIT_DIR", self.git_dir.as_os_str());
        let output = self.runner.run(&self.git_dir, None, &[], call).await?;
        if output.code != 0 {
            return Err(output.into_error());
        }
        let lines = output.stdout.split(|byte| *byte == b'\n');
        let stored: BTreeSet<Oid> = lines.filter_map(Oid::from_ascii).collect();
        if stored.is_empty() {
            return Ok(stored);
        }
        let call = Call::new(["rev-list", "--stdin"]);
        let output = self.ok(call.reading(revisions(known, &[]))).await?;
        let history = oids(&output)?.into_iter();
        Ok(history.filter(|commit| stored.contains(commit)).collect())
    }

    /// Returns the commits in the history of `tips` that have a parent among `bases`. Each of `bases` must be one of `roots`
    /// or have one of them in its history: the history is searched down to the commit that all of `roots` contain.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn children(
        &self,
        bases: &BTreeSet<Oid>,
        roots: &[Oid],
        tips: &[Oid],
    ) -> Result<Vec<Oid>, RepoError> {
        if bases.is_empty() || tips.is_empty() {
            return Ok(Vec::new());
        }
        // Without a common commit, or with one that was not fetched, the whole history is searched.
        let mut below = Vec::new();
        if roots.len() <= MAX_ROOTS {
            let words = ["merge-base", "--octopus"].into_iter();
            let words = words.chain(roots.iter().map(Oid::as_str));
            let common = self.run(Call::new(words)).await?;
            if common.code == 0 {
                below.extend(Oid::from_ascii(common.stdout.trim_ascii()));
            }
        }
        let call = Call::new(["rev-list", "--parents", "--stdin"]);
        let output = self.ok(call.reading(revisions(tips, &below))).await?;
        let mut children = Vec::new();
        for line in output.stdout.split(|byte| *byte == b'\n') {
            let mut oids = line.split(|byte| *byte == b' ').filter_map(Oid::from_ascii);
            let Some(child) = oids.next() else { continue };
            if oids.any(|parent| bases.contains(&parent)) {
                children.push(child);
            }
        }
        Ok(children)
    }

    /// Returns the commits at both ends of what the user named: its tips, and those that it leaves out.
    ///
    /// # Errors
    ///
    /// Fails when git cannot be run.
    pub async fn ends(&self, named: Revisions<'_>) -> Result<(Vec<Oid>, Vec<Oid>), RepoError> {
        let (Revisions::Commit(words) | Revisions::Range(words)) = named;
        let words = ["rev-parse", "--revs-only", "--end-of-options", words];
        let output = self.run(Call::new(words)).await?;
        let (mut tips, mut left_out) = (Vec::new(), Vec::new());
        for line in output.stdout.split(|byte| *byte == b'\n') {
            match line.strip_prefix(b"^") {
                Some(line) => left_out.extend(Oid::from_ascii(line)),
                None => tips.extend(Oid::from_ascii(line)),
            }
        }
        Ok((tips, left_out))
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

    /// Reads the notes of commits, in the given order. `notes` is the value of the notes' ref.
    ///
    /// # Errors
    ///
    /// Fails when git does, or when the notes are not a tree of files.
    pub async fn read_notes(
        &self,
        notes: Option<&Oid>,
        commits: &[Oid],
        limit: ByteLimit,
    ) -> Result<Vec<ReadObject>, RepoError> {
        let Some(notes) = notes else {
            return Ok(vec![ReadObject::Missing; commits.len()]);
        };
        let names = commits.iter().map(Oid::to_string).collect();
        let known = self.note_blobs(notes, &names).await?;
        let of = |commit: &Oid| known.get(commit.as_str()).map_or(&[][..], Vec::as_slice);
        let blobs: Vec<Oid> = commits
            .iter()
            .flat_map(|commit| of(commit).to_vec())
            .collect();
        let mut read = self
            .read_objects(&blobs, ObjectKind::Blob, limit)
            .await?
            .into_iter();
        let mut notes = Vec::with_capacity(commits.len());
        for commit in commits {
            let parts: Vec<ReadObject> = of(commit).iter().filter_map(|_| read.next()).collect();
            notes.push(joined(parts));
        }
        Ok(notes)
    }

    /// Returns how the notes `newer` differ from `older`, or from none.
    ///
    /// # Errors
    ///
    /// Fails when git does, or when the notes are not a tree of files.
    pub async fn notes_change(
        &self,
        older: Option<&Oid>,
        newer: &Oid,
    ) -> Result<NotesChange, RepoError> {
        self.bound_notes(newer).await?;
        let words = [
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            "--end-of-options",
            older.map_or(empty_tree(newer), Oid::as_str),
            newer.as_str(),
        ];
        let output = self.ok(Call::new(words)).await?;
        let (mut names, mut has_other_entries) = (BTreeSet::new(), false);
        let mut records = output.records();
        while let (Some(entry), Some(path)) = (records.next(), records.next()) {
            // `:OLD_MODE NEW_MODE …`; the mode of a removed entry is 0.
            let mode = entry.split(|byte| *byte == b' ').nth(1);
            has_other_entries |=
                mode.is_none_or(|mode| !matches!(mode, b"100644" | b"100755" | b"000000"));
            let name = String::from_utf8_lossy(path).replace('/', "");
            if name.parse::<Oid>().is_ok() {
                names.insert(name);
            }
        }
        let Some(older) = older else {
            return Ok(NotesChange {
                lost: Vec::new(),
                has_other_entries,
            });
        };
        let newer = self.note_blobs(newer, &names).await?;
        let older = self.note_blobs(older, &names).await?;
        let lost = older
            .into_iter()
            .filter(|(commit, blobs)| newer.get(commit) != Some(blobs))
            .filter_map(|(commit, _)| commit.parse().ok());
        Ok(NotesChange {
            lost: lost.collect(),
            has_other_entries,
        })
    }

    /// Refuses notes with too many entries. `diff-tree` collects all before it prints any, and a few trees can stand for
    /// billions; `ls-tree` prints each at once, and is ended at the limit.
    async fn bound_notes(&self, notes: &Oid) -> Result<(), RepoError> {
        let words = [
            "ls-tree",
            "-r",
            "-t",
            "-z",
            "--name-only",
            "--full-tree",
            notes.as_str(),
        ];
        match self
            .ok(Call::new(words).with_max_output(MAX_NOTES_LIST))
            .await
        {
            Err(RepoError::TooLarge { limit, .. }) => Err(RepoError::TooLarge {
                what: "the list of the notes".to_owned(),
                limit,
            }),
            listed => listed.map(drop),
        }
    }

    /// Returns the files that differ between `older` and `newer`, also those that one of them does not have. Without `older`,
    /// all files of `newer`.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn changed_files(
        &self,
        older: Option<&Oid>,
        newer: &Oid,
    ) -> Result<BTreeSet<String>, RepoError> {
        let words = [
            "diff-tree",
            "-r",
            "-z",
            "--name-only",
            "--no-renames",
            "--end-of-options",
            older.map_or(empty_tree(newer), Oid::as_str),
            newer.as_str(),
        ];
        let output = self.ok(Call::new(words)).await?;
        let names = output.records();
        Ok(names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect())
    }

    /// Returns which of `paths` lead to another file in `newer` than in `older`, links followed. Directories do not count.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn changed_behind_links(
        &self,
        older: &Oid,
        newer: &Oid,
        paths: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, RepoError> {
        let paths: Vec<&String> = paths.iter().filter(|path| !path.contains('\n')).collect();
        let names = [older, newer]
            .into_iter()
            .flat_map(|tree| paths.iter().map(move |path| format!("{tree}:{path}\n")));
        let names = names.collect::<String>().into_bytes();
        let words = [
            "cat-file",
            "--batch-check=%(objecttype) %(objectname)",
            "--follow-symlinks",
        ];
        let output = self.ok(Call::new(words).reading(names)).await?;
        let mut rest = output.stdout.as_slice();
        let mut replies = Vec::with_capacity(paths.len() * 2);
        while !rest.is_empty() {
            replies.push(take_reply(&mut rest));
        }
        let (before, after) = replies.split_at(replies.len() / 2);
        // Without an object, a reply repeats the name with its tree.
        let without = |reply: &[u8], tree: &Oid| {
            String::from_utf8_lossy(reply).replacen(tree.as_str(), "", 1)
        };
        let changed = paths.into_iter().zip(before.iter().zip(after));
        Ok(changed
            .filter(|(_, (before, after))| {
                without(before, older) != without(after, newer) && !after.starts_with(b"tree ")
            })
            .map(|(path, _)| path.clone())
            .collect())
    }

    /// Returns whether the repository has all objects that these contain, so that git accepts refs to them.
    ///
    /// # Errors
    ///
    /// Fails when git does for another reason than a missing object.
    pub async fn is_connected(&self, tips: &[Oid]) -> Result<bool, RepoError> {
        if tips.is_empty() {
            return Ok(true);
        }
        let words = [
            "rev-list",
            "--objects",
            "--quiet",
            "--stdin",
            "--not",
            "--all",
        ];
        let tips = tips.iter().map(|tip| format!("{tip}\n"));
        let call = Call::new(words).reading(tips.collect::<String>().into_bytes());
        let output = self.run(call).await?;
        let is_missing = || MISSING.iter().any(|text| output.stderr.contains(text));
        match output.code {
            0 => Ok(true),
            _ if is_missing() => Ok(false),
            _ => Err(output.into_error()),
        }
    }

    /// Returns the newest commit that both `tip` and one of `known` contain, if they have one.
    ///
    /// # Errors
    ///
    /// Fails when git cannot be run.
    pub async fn fork_point(&self, tip: &Oid, known: &[Oid]) -> Result<Option<Oid>, RepoError> {
        if known.is_empty() {
            return Ok(None);
        }
        let words = ["merge-base", tip.as_str()].into_iter();
        let call = Call::new(words.chain(known.iter().map(Oid::as_str)));
        let output = self.run(call).await?;
        Ok((output.code == 0)
            .then(|| Oid::from_ascii(output.stdout.trim_ascii()))
            .flatten())
    }

    /// The blobs of the notes of these commits. A note may be at `aabb…` and at `aa/bb…`; both count. Only the trees on the
    /// way to one of them are read, each level by one process.
    async fn note_blobs(
        &self,
        notes: &Oid,
        wanted: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, Vec<Oid>>, RepoError> {
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let root = format!("{notes}^{{tree}}");
        let output = self
            .ok(Call::new([
                "rev-parse",
                "--verify",
                "--end-of-options",
                &root,
            ]))
            .await?;
        let root =
            Oid::from_ascii(output.stdout.trim_ascii()).ok_or_else(|| output.unreadable())?;
        let mut found: BTreeMap<String, Vec<Oid>> = BTreeMap::new();
        let mut level = vec![(String::new(), root)];
        while !level.is_empty() {
            let trees: Vec<Oid> = level.iter().map(|(_, tree)| tree.clone()).collect();
            let read = self
                .read_objects(&trees, ObjectKind::Tree, MAX_TREE)
                .await?;
            let mut below = Vec::new();
            for ((prefix, oid), read) in level.into_iter().zip(read) {
                let leads = |name: &[u8]| {
                    let name = format!("{prefix}{}", String::from_utf8_lossy(name));
                    let first = wanted.range(name.clone()..).next()?;
                    first.starts_with(&name).then_some(name)
                };
                let entries = match read {
                    ReadObject::Bytes(bytes) => tree_entries(bytes, hash_of(&oid), leads),
                    ReadObject::Missing | ReadObject::TooLarge => None,
                };
                for (name, entry) in entries.ok_or(RepoError::DamagedObject { oid })? {
                    match entry.mode {
                        TreeMode::Tree => below.push((name, entry.oid)),
                        TreeMode::File(mode)
                            if mode != FileMode::Gitlink && wanted.contains(&name) =>
                        {
                            found.entry(name).or_default().push(entry.oid);
                        }
                        TreeMode::File(_) => {}
                    }
                }
            }
            // The same tree at the same name, on several ways there.
            below.sort_unstable();
            below.dedup();
            level = below;
        }
        Ok(found)
    }

    /// Returns whether `older` is an ancestor of `newer`.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn is_ancestor(&self, older: &Oid, newer: &Oid) -> Result<bool, RepoError> {
        let words = [
            "merge-base",
            "--is-ancestor",
            older.as_str(),
            newer.as_str(),
        ];
        let output = self.run(Call::new(words)).await?;
        match output.code {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(output.into_error()),
        }
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

    /// Writes the note of a commit in `notes_ref`, in place of an older one.
    ///
    /// # Errors
    ///
    /// Fails when git does, or when others keep writing notes at the same time.
    pub async fn write_note(
        &self,
        notes_ref: &str,
        commit: &Oid,
        content: &[u8],
        identity: &Identity,
        at: Timestamp,
    ) -> Result<(), RepoError> {
        let call =
            Call::new(["hash-object", "-w", "-t", "blob", "--stdin"]).reading(content.to_vec());
        let output = self.ok(call.flushing(Flush::Yes)).await?;
        let blob =
            Oid::from_ascii(output.stdout.trim_ascii()).ok_or_else(|| output.unreadable())?;
        let name = format!("--ref={notes_ref}");
        let words = [
            "notes",
            &name,
            "add",
            "--force",
            "-C",
            blob.as_str(),
            commit.as_str(),
        ];
        let mut tries = 0;
        loop {
            let call = Call::new(words).flushing(Flush::Yes);
            let written = self
                .run(call.with_envs(&identity_env(identity, at)))
                .await?;
            // Another process may have moved the ref in between, and its commit would lack this note.
            let notes = self.resolve(notes_ref).await?;
            let limit = ByteLimit(content.len() as u64);
            let read = self
                .read_notes(notes.as_ref(), std::slice::from_ref(commit), limit)
                .await?;
            if read.first() == Some(&ReadObject::Bytes(content.to_vec())) {
                return Ok(());
            }
            tries += 1;
            if tries == NOTE_TRIES {
                return Err(written.into_error());
            }
        }
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
        let wanted = names
            .iter()
            .zip(&read)
            .filter(|(_, read)| matches!(read, ReadObject::Bytes(_)));
        let input = list(&mut wanted.map(|(name, _)| name));
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

/// Takes one reply of `cat-file --follow-symlinks`. A link that leads nowhere in the tree has a second line, of the size that
/// the first one gives.
fn take_reply<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let text = *rest;
    let line_end = |from: usize| {
        let end = text[from..].iter().position(|byte| *byte == b'\n');
        end.map_or(text.len(), |end| from + end)
    };
    let first = line_end(0);
    let line = std::str::from_utf8(&text[..first]).unwrap_or_default();
    let end = match line.split_once(' ') {
        Some(("dangling" | "symlink" | "loop" | "notdir", size)) => {
            let size = size.parse().unwrap_or(0);
            text.len().min(first.saturating_add(1).saturating_add(size))
        }
        _ => first,
    };
    *rest = text.get(end + 1..).unwrap_or_default();
    &text[..end]
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

/// The standard input of `git rev-list --stdin`.
fn revisions(tips: &[Oid], known: &[Oid]) -> Vec<u8> {
    let tips = tips.iter().map(|tip| format!("{tip}\n"));
    let known = known.iter().map(|known| format!("^{known}\n"));
    tips.chain(known).collect::<String>().into_bytes()
}

/// The names that git printed, one a line.
fn oids(output: &Output) -> Result<Vec<Oid>, RepoError> {
    let lines = output.stdout.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| Oid::from_ascii(line).ok_or_else(|| output.unreadable()))
        .collect()
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

fn joined(parts: Vec<ReadObject>) -> ReadObject {
    let mut whole = ReadObject::Missing;
    for part in parts {
        whole = match (whole, part) {
            (ReadObject::Missing, part) => part,
            (ReadObject::Bytes(mut bytes), ReadObject::Bytes(more)) => {
                bytes.extend(more);
                ReadObject::Bytes(bytes)
            }
            (ReadObject::Bytes(_) | ReadObject::TooLarge, _) => ReadObject::TooLarge,
        };
    }
    whole
}
