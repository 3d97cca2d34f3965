//! Reads the most informative files until a limit is reached. Each is opened once and read with one call.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::rules::FileKind;
use super::{RepoSample, SampleCap, SampleCaps, SampleExtent, SampledFile, depth};
use crate::beneath::Root;

/// Of this many bytes at most one is not UTF-8: more make it something else than text.
const TEXT_OF: usize = 10;

/// Reads files of the listing.
pub(super) fn read(root: &Root, caps: &SampleCaps, sampling: &mut RepoSample) {
    let listing = std::mem::take(&mut sampling.listing);
    let (order, extent) = order(&listing, caps.files);
    if extent == SampleExtent::Beginning {
        sampling.caps_hit.insert(SampleCap::Files);
    }
    let mut buffer = vec![0; caps.file_bytes];
    let mut left = caps.total_bytes;
    for (kind, path) in order {
        let read_limit = left.min(caps.file_bytes);
        let Ok((read, total_bytes)) = read_beginning(root, path, &mut buffer[..read_limit]) else {
            sampling.unreadable += 1;
            continue;
        };
        let extent = if read as u64 == total_bytes {
            SampleExtent::Whole
        } else {
            SampleExtent::Beginning
        };
        let Some(content) = text(&buffer[..read], extent) else {
            sampling.skipped_binaries += 1;
            continue;
        };
        left -= content.len();
        if total_bytes > caps.file_bytes as u64 {
            sampling.caps_hit.insert(SampleCap::FileBytes);
        }
        let is_last = extent == SampleExtent::Beginning && read_limit < caps.file_bytes;
        if read_limit > 0 || total_bytes == 0 {
            sampling.files.push(SampledFile {
                path: path.to_owned(),
                kind,
                content,
                total_bytes,
                extent,
            });
        }
        if is_last {
            sampling.caps_hit.insert(SampleCap::TotalBytes);
            break;
        }
    }
    sampling.listing = listing;
}

/// Returns at most `most` files to read: build files before source, upper directories before lower ones. Also
/// returns whether there are more.
fn order(listing: &[String], most: usize) -> (Vec<(FileKind, &str)>, SampleExtent) {
    let rank = |path: &'_ String| {
        let kind = FileKind::of_listed(path)?;
        Some((kind == FileKind::Source, depth(path), kind))
    };
    let mut order: Vec<_> = listing
        .iter()
        .filter_map(|path| Some((rank(path)?, path.as_str())))
        .collect();
    let extent = if order.len() > most {
        SampleExtent::Beginning
    } else {
        SampleExtent::Whole
    };
    if extent == SampleExtent::Beginning {
        // Putting all of them in order would cost more than reading the first ones.
        order.select_nth_unstable(most);
        order.truncate(most);
    }
    order.sort_unstable();
    (
        order
            .into_iter()
            .map(|((_, _, kind), path)| (kind, path))
            .collect(),
        extent,
    )
}

/// Reads as much of a regular file as fits into `buffer`: how much that was, and how large the file is.
fn read_beginning(root: &Root, path: &str, buffer: &mut [u8]) -> Result<(usize, u64), Errno> {
    // What was a file while it was listed may be a pipe by now; opening one must not wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = root.open_file(Path::new(path), flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&fd)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let requested = usize::try_from(size)
        .unwrap_or(usize::MAX)
        .min(buffer.len());
    let read = rustix::io::pread(fd.as_fd(), &mut buffer[..requested], 0)?;
    Ok((read, size))
}

/// Decodes bytes to text of at most the same length; `None` if not text. A character split by the cut is
/// dropped.
fn text(bytes: &[u8], extent: SampleExtent) -> Option<String> {
    if bytes.contains(&0) {
        return None;
    }
    let mut text = String::with_capacity(bytes.len());
    let mut foreign = 0;
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        text.push_str(chunk.valid());
        let is_split = extent == SampleExtent::Beginning
            && chunks.peek().is_none()
            && is_begun(chunk.invalid());
        if !is_split {
            foreign += chunk.invalid().len();
            text.extend(std::iter::repeat_n('?', chunk.invalid().len()));
        }
    }
    (foreign * TEXT_OF <= bytes.len()).then_some(text)
}

/// Returns whether invalid UTF-8 is only incomplete at its end.
fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
