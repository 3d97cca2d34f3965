//! Notes of commits: read, compared and written.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::{ByteLimit, Timestamp};
use crucible_patch::FileMode;

use super::{CommitReader, ReadObject, empty_tree, hash_of};
use crate::error::RepoError;
use crate::git::store::{ObjectKind, TreeMode, tree_entries};
use crate::git::{Call, Flush};
use crate::identity::Identity;
use crate::land::identity_env;
use crate::oid::Oid;

/// How often a note is written again because another process wrote one at the same time.
const NOTE_TRIES: u32 = 5;
/// The longest list of all notes: some hundred thousand.
const MAX_NOTES_LIST: ByteLimit = ByteLimit(32 << 20);
/// The largest tree of notes: some hundred thousand in one directory.
const MAX_TREE: ByteLimit = ByteLimit(64 << 20);

/// How notes differ from older ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotesChange {
    /// The commits whose note is missing or another one.
    pub lost: Vec<Oid>,
    /// The commits whose note is new or another one.
    pub written: Vec<Oid>,
    /// Whether something was added that is no regular file, such as a submodule. git writes notes without it, or takes it
    /// for a note.
    pub has_other_entries: bool,
}

impl CommitReader {
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
        let blobs_of = |commit: &Oid| known.get(commit.as_str()).map_or(&[][..], Vec::as_slice);
        let blobs: Vec<Oid> = commits
            .iter()
            .flat_map(|commit| blobs_of(commit).to_vec())
            .collect();
        let mut read = self
            .read_objects(&blobs, ObjectKind::Blob, limit)
            .await?
            .into_iter();
        let mut notes = Vec::with_capacity(commits.len());
        for commit in commits {
            let parts: Vec<ReadObject> = blobs_of(commit)
                .iter()
                .filter_map(|_| read.next())
                .collect();
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
        let written = names.iter().filter_map(|name| name.parse().ok()).collect();
        let Some(older) = older else {
            return Ok(NotesChange {
                lost: Vec::new(),
                written,
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
            written,
            has_other_entries,
        })
    }

    /// Refuses notes with too many entries. `diff-tree` collects all before it prints any, and a few trees can stand for
    /// billions; `ls-tree` prints each at once, and is ended at the limit.
    async fn bound_notes(&self, notes: &Oid) -> Result<(), RepoError> {
        let words = [
            // With mode and object, an entry takes at least 50 bytes, however short its name is.
            "ls-tree",
            "-r",
            "-t",
            "-z",
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
