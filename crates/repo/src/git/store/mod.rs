//! Reads objects in this process, without starting git.
//!
//! Packs are decoded by `gix-pack`, loose objects are inflated here. The directories of objects are those that git reads: the
//! repository's own, its alternates, and a private one where a call names it. Replaced and grafted objects and the environment
//! play no part.
//!
//! What always holds: the bytes that are returned hash to the name that was asked for. A limit is checked before memory is taken,
//! and no more is taken for a delta than [`pack`] allows. Only regular files are opened. Whatever cannot be found or read here is
//! [`ReadFailure::AskGit`]: git's command line then decides, and its failure is the one that is reported.
//!
//! Reading waits for the disk, so callers run it on a thread for blocking work. In a build that unwinds, a panic in a decoder ends there as well; a release aborts.

mod loose;
mod pack;
mod reachable;
mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crucible_host::fs::{FsError, read_regular_up_to};
use crucible_model::ByteLimit;
pub(crate) use gix_hash::Kind as HashKind;
use gix_hash::ObjectId;
pub(crate) use gix_object::Kind as ObjectKind;

use super::command::as_path;
use crate::error::RepoError;
use crate::oid::Oid;
use pack::{Decoder, Pack};
pub(crate) use tree::{Difference, KnownTrees, OwnedEntry, TreeMode, tree_entries};

/// More packs than this are left to git.
const MAX_PACKS: usize = 1000;

/// The largest list of alternates, in bytes, and how far alternates of alternates are followed; both are git's to judge beyond.
const MAX_ALTERNATES: ByteLimit = ByteLimit(64 << 10);
const MAX_DEPTH: usize = 5;

/// Why something was not read here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReadFailure {
    /// It is not there, or in a form that only git reads.
    AskGit,
    /// It exceeds the caller's limit.
    TooLarge,
    /// What is stored under this name is something else.
    Damaged(Oid),
    /// A pipe is in the place of a file. git would wait for a writer.
    Pipe(PathBuf),
}

/// Refuses a pipe, behind links too.
pub(super) fn refuse_pipe(path: &Path) -> Result<(), RepoError> {
    if is_pipe(path) {
        Err(pipe(path))
    } else {
        Ok(())
    }
}

/// The error of a pipe in place of one of git's files.
pub(super) fn pipe(path: &Path) -> RepoError {
    let why = "it is a pipe; restore git's file";
    RepoError::io("read", path, std::io::Error::other(why))
}

pub(super) fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo())
}

/// An object whose bytes match the requested name.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) kind: ObjectKind,
    pub(crate) bytes: Vec<u8>,
}

/// The objects of one repository.
#[derive(Debug)]
pub(crate) struct Store {
    hash: HashKind,
    objects: PathBuf,
    places: Mutex<Option<Arc<Places>>>,
}

/// The directories of objects and the packs in them, as they were when they were listed.
#[derive(Debug)]
struct Places {
    directories: Vec<PathBuf>,
    packs: Vec<Pack>,
    /// A pipe in place of a pack or of its index.
    pipe: Option<PathBuf>,
}

impl Places {
    /// Why an object that is nowhere here is not there.
    fn missing(&self) -> ReadFailure {
        self.pipe
            .clone()
            .map_or(ReadFailure::AskGit, ReadFailure::Pipe)
    }
}

impl Store {
    /// Creates a store for the object directory `objects`. Nothing is opened yet.
    pub(crate) fn new(hash: HashKind, objects: PathBuf) -> Self {
        Self {
            hash,
            objects,
            places: Mutex::default(),
        }
    }

    /// The hash that names its objects.
    pub(crate) fn hash(&self) -> HashKind {
        self.hash
    }

    /// Begins to read. The objects of the directory `private` count, too.
    pub(crate) fn reader(&self, private: Option<PathBuf>) -> Result<Reader<'_>, ReadFailure> {
        let known = self.lock_places().clone();
        let (places, listed) = match known {
            Some(places) => (places, PackListing::Before),
            None => (self.list()?, PackListing::Now),
        };
        Ok(Reader {
            store: self,
            places,
            private,
            listed,
            decoder: Decoder::new(),
            last_pack: 0,
        })
    }

    /// Lists directories and packs again.
    fn list(&self) -> Result<Arc<Places>, ReadFailure> {
        let directories = with_alternates(&self.objects)?;
        let mut places = Places {
            directories,
            packs: Vec::new(),
            pipe: None,
        };
        for directory in &places.directories {
            let pipe = pack::list(directory, self.hash, MAX_PACKS, &mut places.packs)?;
            places.pipe = places.pipe.or(pipe);
        }
        let places = Arc::new(places);
        *self.lock_places() = Some(Arc::clone(&places));
        Ok(places)
    }

    fn lock_places(&self) -> std::sync::MutexGuard<'_, Option<Arc<Places>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the packs known to a reader were listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PackListing {
    /// By an earlier reader; there may be others by now.
    Before,
    /// By this one.
    Now,
}

/// Reads objects, one after the other.
pub(crate) struct Reader<'a> {
    store: &'a Store,
    places: Arc<Places>,
    private: Option<PathBuf>,
    listed: PackListing,
    decoder: Decoder,
    /// The pack that had the object before: the next one is likely there.
    last_pack: usize,
}

impl Reader<'_> {
    /// The hash that names the objects.
    pub(crate) fn hash(&self) -> HashKind {
        self.store.hash
    }

    /// How much is stored, alternates included: objects, and the bytes of their files.
    pub(crate) fn extent(&self) -> Result<(u64, u64), ReadFailure> {
        let (mut objects, mut bytes) = (0, 0);
        for pack in &self.places.packs {
            objects += pack.count();
            bytes += pack.len();
        }
        for directory in &self.places.directories {
            loose::each(directory, |length| {
                objects += 1;
                bytes += length;
            })?;
        }
        Ok((objects, bytes))
    }

    /// Reads an object of at most `limit` bytes.
    pub(crate) fn object(&mut self, oid: &Oid, limit: u64) -> Result<Object, ReadFailure> {
        let id = self.id(oid)?;
        loop {
            let problem = match self.object_here(&id, oid, limit) {
                Err(Some(found)) => found,
                Err(None) => self.places.missing(),
                Ok(object) => return Ok(object),
            };
            self.list_again(problem)?;
        }
    }

    /// Returns the size of an object in bytes, from its header.
    pub(crate) fn size(&mut self, oid: &Oid) -> Result<u64, ReadFailure> {
        let id = self.id(oid)?;
        loop {
            let places = Arc::clone(&self.places);
            for at in self.order() {
                if let Some(entry) = places.packs.get(at).and_then(|pack| pack.find(&id)) {
                    self.last_pack = at;
                    return places.packs[at].size(&entry, &mut self.decoder);
                }
            }
            for directory in self.private.iter().chain(&places.directories) {
                if let Some(object) = loose::Loose::open(directory, oid)? {
                    return Ok(object.size);
                }
            }
            self.list_again(self.places.missing())?;
        }
    }

    /// The object among the places that are known. An error without a reason: it is nowhere there.
    fn object_here(
        &mut self,
        id: &ObjectId,
        oid: &Oid,
        limit: u64,
    ) -> Result<Object, Option<ReadFailure>> {
        let places = Arc::clone(&self.places);
        let mut problem = None;
        // An unreadable copy is skipped for a good one, as in git; without one, git is asked.
        let note = |new: ReadFailure, problem: &mut Option<ReadFailure>| match (&*problem, &new) {
            (Some(ReadFailure::AskGit), ReadFailure::Damaged(_))
            | (Some(ReadFailure::Pipe(_)), _) => {}
            _ => *problem = Some(new),
        };
        for at in self.order() {
            let Some(pack) = places.packs.get(at) else {
                continue;
            };
            let Some(entry) = pack.find(id) else { continue };
            match pack.read(&entry, limit, &mut self.decoder) {
                Ok(object) if self.is_named(id, &object) => {
                    self.last_pack = at;
                    return Ok(object);
                }
                Ok(_) => note(ReadFailure::Damaged(oid.clone()), &mut problem),
                Err(why) => note(why, &mut problem),
            }
        }
        for directory in self.private.iter().chain(&places.directories) {
            match loose::Loose::open(directory, oid)
                .and_then(|found| found.map(|loose| loose.read(limit)).transpose())
            {
                Ok(None) => {}
                Ok(Some(object)) if self.is_named(id, &object) => return Ok(object),
                Ok(Some(_)) => note(ReadFailure::Damaged(oid.clone()), &mut problem),
                Err(why) => note(why, &mut problem),
            }
        }
        Err(problem)
    }

    /// The packs, the most promising first.
    fn order(&self) -> impl Iterator<Item = usize> + use<> {
        let (last, count) = (self.last_pack, self.places.packs.len());
        std::iter::once(last).chain((0..count).filter(move |at| *at != last))
    }

    /// Lists the packs again, once, after something was not found: git may have packed objects meanwhile.
    fn list_again(&mut self, problem: ReadFailure) -> Result<(), ReadFailure> {
        if self.listed == PackListing::Now || problem == ReadFailure::TooLarge {
            return Err(problem);
        }
        self.places = self.store.list()?;
        self.listed = PackListing::Now;
        self.last_pack = 0;
        Ok(())
    }

    fn is_named(&self, id: &ObjectId, object: &Object) -> bool {
        gix_object::compute_hash(self.hash(), object.kind, &object.bytes)
            .is_ok_and(|found| found == *id)
    }

    /// A name that is not a name in this repository is git's to refuse.
    fn id(&self, oid: &Oid) -> Result<ObjectId, ReadFailure> {
        let id = ObjectId::from_hex(oid.as_str().as_bytes()).map_err(|_| ReadFailure::AskGit)?;
        if id.kind() == self.hash() {
            Ok(id)
        } else {
            Err(ReadFailure::AskGit)
        }
    }
}

/// Whether an object of this kind, as git names kinds, has this name.
pub(crate) fn has_name(oid: &Oid, kind: &[u8], bytes: &[u8]) -> bool {
    let Ok(id) = ObjectId::from_hex(oid.as_str().as_bytes()) else {
        return false;
    };
    let Ok(kind) = ObjectKind::from_bytes(kind) else {
        return false;
    };
    gix_object::compute_hash(id.kind(), kind, bytes).is_ok_and(|found| found == id)
}

/// A name of git's from its bytes.
pub(crate) fn oid_from(bytes: &[u8]) -> Option<Oid> {
    let id = gix_hash::oid::try_from_bytes(bytes).ok()?;
    Oid::from_ascii(id.to_string().as_bytes())
}

/// The directory of objects with all its alternates.
fn with_alternates(objects: &Path) -> Result<Vec<PathBuf>, ReadFailure> {
    let mut seen = BTreeSet::new();
    let mut directories = Vec::new();
    let mut left = vec![(objects.to_owned(), 0)];
    while let Some((directory, depth)) = left.pop() {
        // git omits missing and duplicate ones.
        let Ok(real) = fs::canonicalize(&directory) else {
            continue;
        };
        if !seen.insert(real) {
            continue;
        }
        let path = directory.join("info/alternates");
        let list = match read_regular_up_to(&path, MAX_ALTERNATES) {
            Ok(list) => list,
            Err(error) if is_absent(&error) => Vec::new(),
            Err(_) if is_pipe(&path) => return Err(ReadFailure::Pipe(path)),
            Err(_) => return Err(ReadFailure::AskGit),
        };
        for line in list.split(|byte| *byte == b'\n') {
            match line.first() {
                None | Some(b'#') => continue,
                // A quoted path, or a chain that is longer than git follows.
                Some(b'"') => return Err(ReadFailure::AskGit),
                Some(_) if depth >= MAX_DEPTH => return Err(ReadFailure::AskGit),
                Some(_) => left.push((directory.join(as_path(line)), depth + 1)),
            }
        }
        directories.push(directory);
    }
    Ok(directories)
}

/// Returns whether the path or a parent directory does not exist.
pub(super) fn is_absent(error: &FsError) -> bool {
    error.is_not_found()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
