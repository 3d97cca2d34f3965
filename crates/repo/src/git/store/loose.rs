//! Reads one loose object: a compressed file that begins with the object's kind and size.
//!
//! Invariants: the file is opened without waiting for a writer and must be regular; its header is read first,
//! and no more bytes are inflated than it states.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::ZlibDecoder;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{Object, ObjectKind, ReadFailure};
use crate::oid::Oid;

/// The longest header: `commit`, a space, twenty digits and a zero byte fit well.
const MAX_HEADER: usize = 64;

/// How much of the file is read at once.
const AT_ONCE: usize = 8 << 10;

/// Initial buffer size.
const FIRST: u64 = 1 << 20;

/// Calls `visit` with the length of each file of a loose object.
pub(super) fn each(objects: &Path, mut visit: impl FnMut(u64)) -> Result<(), ReadFailure> {
    let list = |path: &Path| std::fs::read_dir(path).map_err(|_| ReadFailure::AskGit);
    for fan in list(objects)?.flatten() {
        let name = fan.file_name();
        if name.len() != 2 || !name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit) {
            continue;
        }
        for file in list(&fan.path())?.flatten() {
            visit(file.metadata().map_or(0, |meta| meta.len()));
        }
    }
    Ok(())
}

/// An open loose object with a parsed header.
pub(super) struct Loose {
    kind: ObjectKind,
    pub(super) size: u64,
    rest: ZlibDecoder<File>,
}

impl Loose {
    /// Opens the object; `None` if this directory has no such file.
    pub(super) fn open(objects: &Path, oid: &Oid) -> Result<Option<Self>, ReadFailure> {
        let (fan, name) = oid.as_str().split_at(2);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let path = objects.join(fan).join(name);
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(_) => return Err(ReadFailure::AskGit),
        };
        let stat = rustix::fs::fstat(&file).map_err(|_| ReadFailure::AskGit)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Fifo => return Err(ReadFailure::Pipe(path)),
            _ => return Err(ReadFailure::AskGit),
        }
        let mut rest = ZlibDecoder::new_with_buf(File::from(file), vec![0; AT_ONCE]);
        let mut header = Vec::new();
        let mut byte = [0];
        while header.len() < MAX_HEADER {
            rest.read_exact(&mut byte)
                .map_err(|_| ReadFailure::AskGit)?;
            if byte == [0] {
                let (kind, size) = parse(&header).ok_or(ReadFailure::AskGit)?;
                return Ok(Some(Self { kind, size, rest }));
            }
            header.extend(byte);
        }
        Err(ReadFailure::AskGit)
    }

    /// Reads what follows the header.
    pub(super) fn read(self, limit: u64) -> Result<Object, ReadFailure> {
        if self.size > limit {
            return Err(ReadFailure::TooLarge);
        }
        let mut bytes =
            Vec::with_capacity(usize::try_from(self.size.min(FIRST)).unwrap_or_default());
        // One extra byte reveals an object longer than its header states.
        let most = self.size.saturating_add(1);
        self.rest
            .take(most)
            .read_to_end(&mut bytes)
            .map_err(|_| ReadFailure::AskGit)?;
        if bytes.len() as u64 == self.size {
            Ok(Object {
                kind: self.kind,
                bytes,
            })
        } else {
            Err(ReadFailure::AskGit)
        }
    }
}

/// `kind SP size`
fn parse(header: &[u8]) -> Option<(ObjectKind, u64)> {
    let space = header.iter().position(|byte| *byte == b' ')?;
    let kind = ObjectKind::from_bytes(&header[..space]).ok()?;
    let digits = std::str::from_utf8(&header[space + 1..]).ok()?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        Some((kind, digits.parse().ok()?))
    } else {
        None
    }
}
