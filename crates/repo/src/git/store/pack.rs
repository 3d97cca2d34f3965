//! Reads objects of packs, through `gix-pack`.
//!
//! What always holds: an index or a pack is mapped only when it is a regular file. A whole entry takes the memory that its header
//! tells, which is checked against the caller's limit first. A delta takes at most [`MAX_DELTA_MEMORY`], whatever the sizes in its
//! chain say; chains longer than [`MAX_CHAIN`] and readers that copied more than [`MAX_COPIED`] bytes while applying deltas are left to
//! git, which has a deadline.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use flate2::{Decompress, FlushDecompress};
use gix_hash::ObjectId;
use gix_pack::cache::Never;
use gix_pack::data::Entry;
use gix_pack::data::decode::entry::ResolvedBase;
use gix_pack::data::entry::Header;

use super::{HashKind, Object, ObjectKind, ReadFailure, is_pipe};

/// The most memory for the buffers of one delta, in bytes: two contents and the instructions of the chain.
const MAX_DELTA_MEMORY: usize = 64 << 20;

/// Maximum length of a delta chain. git creates chains of 50, and of 250 with aggressive settings.
const MAX_CHAIN: u32 = 512;

/// How many bytes a reader copies for deltas at most.
const MAX_COPIED: u64 = 32 << 30;

/// Maximum bytes of the two sizes at the start of a delta.
const DELTA_HEADER: usize = 20;

/// A reader's decoder, and its use of delta memory.
pub(super) struct Decoder {
    inflate: gix_zlib::Inflate,
    /// Inflates the beginning of a delta.
    probe: Decompress,
    copied: u64,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self {
            inflate: gix_zlib::Inflate::default(),
            probe: Decompress::new(true),
            copied: 0,
        }
    }
}

/// A pack with its index.
pub(super) struct Pack {
    index: gix_pack::index::File,
    /// Mapped on the first read; an inner `None` if that failed.
    data: OnceLock<Option<gix_pack::data::File>>,
    path: PathBuf,
}

impl std::fmt::Debug for Pack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pack")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Opens the pack indexes of an object directory. Unreadable ones are skipped: git is asked for their
/// objects. Returns a pipe in the place of one.
pub(super) fn list(
    objects: &Path,
    hash: HashKind,
    most: usize,
    packs: &mut Vec<Pack>,
) -> Result<Option<PathBuf>, ReadFailure> {
    let Ok(entries) = fs::read_dir(objects.join("pack")) else {
        return Ok(None);
    };
    let mut pipe = None;
    for entry in entries {
        let index = entry.map_err(|_| ReadFailure::AskGit)?.path();
        if index.extension().is_none_or(|extension| extension != "idx") {
            continue;
        }
        if packs.len() >= most {
            return Err(ReadFailure::AskGit);
        }
        let path = index.with_extension("pack");
        pipe = pipe.or_else(|| {
            [&index, &path]
                .into_iter()
                .find(|path| is_pipe(path))
                .cloned()
        });
        if is_file(&index)
            && is_file(&path)
            && let Ok(index) = gix_pack::index::File::at(&index, hash)
        {
            packs.push(Pack {
                index,
                data: OnceLock::new(),
                path,
            });
        }
    }
    Ok(pipe)
}

impl Pack {
    /// How many objects it holds.
    pub(super) fn count(&self) -> u64 {
        u64::from(self.index.num_objects())
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |meta| meta.len())
    }

    /// The offset of an object; `None` if the pack lacks it or cannot be read.
    pub(super) fn find(&self, id: &ObjectId) -> Option<Entry> {
        let offset = self.index.pack_offset_at_index(self.index.lookup(id)?);
        self.data()?.entry(offset).ok()
    }

    /// The size of the object that begins there.
    pub(super) fn size(&self, entry: &Entry, decoder: &mut Decoder) -> Result<u64, ReadFailure> {
        if !entry.header.is_delta() {
            return Ok(entry.decompressed_size);
        }
        let data = self.data().ok_or(ReadFailure::AskGit)?;
        let end = entry
            .data_offset
            .saturating_add(u64::try_from(DELTA_HEADER * 8).unwrap_or_default());
        let end = end.min(data.pack_end() as u64);
        let compressed = data
            .entry_slice(entry.data_offset..end)
            .ok_or(ReadFailure::AskGit)?;
        let mut header = [0; DELTA_HEADER];
        decoder.probe.reset(true);
        decoder
            .probe
            .decompress(compressed, &mut header, FlushDecompress::None)
            .map_err(|_| ReadFailure::AskGit)?;
        let written = usize::try_from(decoder.probe.total_out()).unwrap_or_default();
        let header = &header[..written.min(DELTA_HEADER)];
        // The size of the base, then that of the result.
        let (_, rest) = varint(header).ok_or(ReadFailure::AskGit)?;
        varint(rest)
            .map(|(size, _)| size)
            .ok_or(ReadFailure::AskGit)
    }

    /// Reads the object that begins there.
    pub(super) fn read(
        &self,
        entry: &Entry,
        limit: u64,
        decoder: &mut Decoder,
    ) -> Result<Object, ReadFailure> {
        let data = self.data().ok_or(ReadFailure::AskGit)?;
        let size = self.size(entry, decoder)?;
        let inflate = &mut decoder.inflate;
        if size > limit {
            return Err(ReadFailure::TooLarge);
        }
        if let Some(kind) = entry.header.as_kind() {
            let mut bytes = vec![0; usize::try_from(size).map_err(|_| ReadFailure::TooLarge)?];
            data.decompress_entry(entry, inflate, &mut bytes)
                .map_err(|_| ReadFailure::AskGit)?;
            return Ok(Object { kind, bytes });
        }
        let (kind, length) = self.chain(entry)?;
        if size > MAX_DELTA_MEMORY as u64 || decoder.copied > MAX_COPIED {
            return Err(ReadFailure::AskGit);
        }
        let in_pack = |id: &gix_hash::oid, _: &mut Vec<u8>| {
            Ok(self.find(&id.to_owned()).map(ResolvedBase::InPack))
        };
        let mut bytes = Vec::new();
        data.decode_entry(entry.clone(), &mut bytes, inflate, &in_pack, &mut Never)
            .map_err(|_| ReadFailure::AskGit)?;
        // The limit covers what each step may have copied.
        decoder.copied += bytes.capacity() as u64 * u64::from(length);
        if bytes.len() as u64 != size {
            return Err(ReadFailure::AskGit);
        }
        bytes.shrink_to_fit();
        Ok(Object { kind, bytes })
    }

    /// Returns the kind at the end of a delta chain, and its length.
    fn chain(&self, entry: &Entry) -> Result<(ObjectKind, u32), ReadFailure> {
        let data = self.data().ok_or(ReadFailure::AskGit)?;
        let mut at = entry.clone();
        for length in 0..=MAX_CHAIN {
            at = match at.header {
                Header::OfsDelta { base_distance } => {
                    let offset = at
                        .checked_base_pack_offset(base_distance)
                        .ok_or(ReadFailure::AskGit)?;
                    data.entry(offset).map_err(|_| ReadFailure::AskGit)?
                }
                Header::RefDelta { base_id } => self.find(&base_id).ok_or(ReadFailure::AskGit)?,
                Header::Commit | Header::Tree | Header::Blob | Header::Tag => {
                    let kind = at.header.as_kind().ok_or(ReadFailure::AskGit)?;
                    return Ok((kind, length));
                }
            };
        }
        Err(ReadFailure::AskGit)
    }

    fn data(&self) -> Option<&gix_pack::data::File> {
        let open = || {
            let is_file = is_file(&self.path);
            let file = is_file
                .then(|| gix_pack::data::File::at(&self.path, self.index.object_hash()).ok())??;
            Some(file.with_alloc_limit_bytes(Some(MAX_DELTA_MEMORY)))
        };
        self.data.get_or_init(open).as_ref()
    }
}

/// Whether opening it waits for nobody.
fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file())
}

/// Parses a number of seven bits per byte, low bits first, and returns the rest.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(9) {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[at + 1..]));
        }
    }
    None
}
