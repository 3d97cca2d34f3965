//! What an archive says, entry by entry.
//!
//! The `tar` crate reads blocks, checks their sums and reads their fields, in its raw mode: every header comes as it stands.
//! Which name and which size count is decided here, because this is where readers of archives differ: a PAX header, a GNU long
//! name and the entry's own field may each name it. Two that disagree where both would count make the archive refused.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use flate2::bufread::GzDecoder;
use tar::{Archive, EntryType, Header};

use super::stream::{Compressed, Stream, StreamState};
use super::{ArchiveError, ArchiveLimits, MemberName, Refusal, pax};
use crate::oid::Oid;

/// The longest PAX header; it holds two paths and little else.
const MAX_PAX: u64 = 64 << 10;

/// One thing to be made.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: MemberName,
    pub(super) kind: MemberKind,
    /// Whether the entry had a set-user, set-group or sticky bit.
    pub(super) has_special_bits: bool,
}

/// What it is.
#[derive(Debug)]
pub(super) enum MemberKind {
    /// A file of this size.
    File {
        size: u64,
        is_executable: bool,
    },
    Directory,
    /// A symbolic link, and the bytes it points with.
    Link(Vec<u8>),
    /// A second name of the file by this name.
    HardLink(Vec<u8>),
}

/// An archive that is read once.
pub(super) struct Entries<'a> {
    archive: Archive<Stream<'a, GzDecoder<BufReader<Compressed>>>>,
    limits: ArchiveLimits,
    flow: Rc<StreamState>,
}

/// Headers before an entry that describe it.
#[derive(Default)]
struct Prelude {
    pax: Option<pax::Records>,
    long_name: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
}

impl Prelude {
    fn is_empty(&self) -> bool {
        self.pax.is_none() && self.long_name.is_none() && self.long_link.is_none()
    }
}

impl<'a> Entries<'a> {
    pub(super) fn new(
        file: File,
        path: &Path,
        limits: &ArchiveLimits,
        stop: &'a AtomicBool,
    ) -> Self {
        let flow = Rc::new(StreamState::default());
        let compressed =
            BufReader::with_capacity(64 << 10, Compressed::new(file, path, limits, &flow));
        let stream = Stream::new(GzDecoder::new(compressed), limits, stop, &flow);
        Self {
            archive: Archive::new(stream),
            limits: *limits,
            flow,
        }
    }

    /// Passes every member with its content to `put`, and reads the archive to its end. Returns the commit
    /// recorded in the archive.
    pub(super) fn each(
        mut self,
        mut put: impl FnMut(Member, &mut dyn Read) -> Result<(), ArchiveError>,
    ) -> Result<Option<Oid>, ArchiveError> {
        let flow = Rc::clone(&self.flow);
        let explain = |error: io::Error| flow.explain(&error);
        let mut commit = None;
        let mut prelude = Prelude::default();
        for entry in self.archive.entries().map_err(explain)?.raw(true) {
            let mut entry = entry.map_err(explain)?;
            let header = entry.header().clone();
            let size = header.entry_size().map_err(explain)?;
            if header.as_ustar().is_none() && header.as_gnu().is_none() {
                return Err(ArchiveError::Damaged {
                    what: "an entry of an unknown format".to_owned(),
                });
            }
            let mut content = Content {
                inner: &mut entry,
                remaining_bytes: size,
                fault: None,
                flow: &flow,
            };
            match header.entry_type() {
                EntryType::XHeader => {
                    let records = pax::parse(&content.all(MAX_PAX)?)?;
                    set_once(&mut prelude.pax, records)?;
                }
                EntryType::XGlobalHeader => {
                    let records = pax::parse(&content.all(MAX_PAX)?)?;
                    if records.path.is_some() || records.link.is_some() || records.size.is_some() {
                        let what = "a global header with the name of an entry".to_owned();
                        return Err(ArchiveError::Damaged { what });
                    }
                    commit = records
                        .comment
                        .and_then(|comment| Oid::from_ascii(&comment))
                        .or(commit);
                }
                EntryType::GNULongName => {
                    set_once(&mut prelude.long_name, content.name(&self.limits)?)?
                }
                EntryType::GNULongLink => {
                    set_once(&mut prelude.long_link, content.name(&self.limits)?)?
                }
                _ => {
                    let member = judge(&header, size, std::mem::take(&mut prelude), &self.limits)?;
                    put(member, &mut content)?;
                    content.ended()?;
                }
            }
        }
        if !prelude.is_empty() {
            return Err(ArchiveError::Damaged {
                what: "a long name without its entry".to_owned(),
            });
        }
        self.end()?;
        Ok(commit)
    }

    /// Reads the end of the archive: only zeros.
    fn end(self) -> Result<(), ArchiveError> {
        let flow = self.flow;
        // The first block of zeros was read; two mark the end.
        if flow.has_ended() {
            return Err(ArchiveError::Truncated {
                what: "its end is missing",
            });
        }
        let mut stream = self.archive.into_inner();
        let mut zeros = 0;
        let mut buffer = vec![0; 16 << 10];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) if buffer[..count].iter().all(|byte| *byte == 0) => zeros += count as u64,
                Ok(_) => return Err(ArchiveError::Trailing),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(flow.explain(&error)),
            }
        }
        if zeros < 512 || zeros % 512 != 0 {
            return Err(ArchiveError::Truncated {
                what: "its end is missing",
            });
        }
        // Reading to the end has checked the checksum and the length. Other gzip files may have another
        // member here, archives may not.
        let mut rest = stream.inner.into_inner();
        match rest.fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) => Err(ArchiveError::Trailing),
            Err(error) => Err(flow.explain(&error)),
        }
    }
}

fn set_once<T>(slot: &mut Option<T>, value: T) -> Result<(), ArchiveError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(ArchiveError::Damaged {
            what: "two headers of one kind for one entry".to_owned(),
        }),
    }
}

/// Determines an entry from all of its headers.
fn judge(
    header: &Header,
    size: u64,
    prelude: Prelude,
    limits: &ArchiveLimits,
) -> Result<Member, ArchiveError> {
    let pax = prelude.pax.unwrap_or_default();
    let own = header.path_bytes();
    let name = choose(pax.path, prelude.long_name, || Some(own.to_vec()))?.unwrap_or_default();
    let refuse = |why: Refusal| why.into_error(&name);
    // A reader without PAX support would find other entries after this one.
    if pax.size.is_some_and(|other| other != size) {
        return Err(refuse(Refusal::Contradiction));
    }
    let mode = header.mode().map_err(|error| ArchiveError::Damaged {
        what: error.to_string(),
    })?;
    let is_named_as_directory = name.last() == Some(&b'/');
    let target = || {
        choose(pax.link, prelude.long_link, || {
            header.link_name_bytes().map(|link| link.to_vec())
        })
    };
    let kind = match header.entry_type() {
        EntryType::Regular => MemberKind::File {
            size,
            is_executable: mode & 0o100 != 0,
        },
        EntryType::Directory => MemberKind::Directory,
        EntryType::Symlink => MemberKind::Link(target()?.unwrap_or_default()),
        EntryType::Link => MemberKind::HardLink(target()?.unwrap_or_default()),
        _ => return Err(refuse(Refusal::Kind)),
    };
    let is_directory = matches!(kind, MemberKind::Directory);
    let has_content = !matches!(kind, MemberKind::File { .. }) && size > 0;
    if has_content || (is_named_as_directory && !is_directory) {
        return Err(refuse(Refusal::Contradiction));
    }
    let shortest = if is_directory {
        name.strip_suffix(b"/").unwrap_or(&name)
    } else {
        &name
    };
    let judged = MemberName::judge(shortest, limits).map_err(refuse)?;
    Ok(Member {
        name: judged,
        kind,
        has_special_bits: mode & 0o7000 != 0,
    })
}

/// Returns the effective name: from PAX, from GNU, or the entry's own. At most one of the first two may
/// exist.
fn choose(
    pax: Option<Vec<u8>>,
    long: Option<Vec<u8>>,
    own: impl FnOnce() -> Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, ArchiveError> {
    match (pax, long) {
        (Some(pax), Some(long)) if pax != long => Err(Refusal::Contradiction.into_error(&pax)),
        (Some(name), _) | (None, Some(name)) => Ok(Some(name)),
        (None, None) => Ok(own()),
    }
}

/// The content of an entry; knows how much is missing, and why.
struct Content<'a, R> {
    inner: R,
    remaining_bytes: u64,
    fault: Option<ArchiveError>,
    flow: &'a StreamState,
}

impl<R: Read> Content<'_, R> {
    /// All of it, of an entry that describes another one.
    fn all(&mut self, most: u64) -> Result<Vec<u8>, ArchiveError> {
        if self.remaining_bytes > most {
            return Err(ArchiveError::TooLarge {
                what: "bytes in the description of one entry",
                limit: most,
            });
        }
        let mut bytes = Vec::new();
        // The error is kept and returned by `ended`.
        let _stored_error = self.read_to_end(&mut bytes);
        self.ended().map(|()| bytes)
    }

    /// Reads all of it as a name, which GNU ends with a NUL byte.
    fn name(&mut self, limits: &ArchiveLimits) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = self.all(limits.path as u64 + 2)?;
        if bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok(bytes)
    }

    /// Whether all of it came.
    fn ended(&mut self) -> Result<(), ArchiveError> {
        match self.fault.take() {
            Some(fault) => Err(fault),
            None if self.remaining_bytes > 0 => Err(ArchiveError::Truncated {
                what: "it ends in the middle of an entry",
            }),
            None => Ok(()),
        }
    }
}

impl<R: Read> Read for Content<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(count) => {
                self.remaining_bytes = self.remaining_bytes.saturating_sub(count as u64);
                Ok(count)
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::Interrupted {
                    self.fault = Some(self.flow.explain(&error));
                }
                Err(error)
            }
        }
    }
}
