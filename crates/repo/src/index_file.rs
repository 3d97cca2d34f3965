//! An index of git's in the oldest form that git still reads (version 2), for a private place that is gone soon.
//!
//! Each entry has a path, a mode and the name of an object, and nothing of a work tree. The sum at the end is left out: it is
//! all zeros, which git takes for "not summed". Whether a path may stand in a tree is not asked here; git asks it of every path
//! that a patch touches.
//!
//! What always holds: entries stand as git sorts them, byte by byte, each path once.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crucible_patch::FileMode;

use crate::oid::Oid;

/// Times, device and number of a file in a work tree: of none.
const NO_FILE: [u8; 24] = [0; 24];
/// Owner, group and size of a file in a work tree: of none.
const NO_OWNER: [u8; 12] = [0; 12];
/// The largest length of a path that has room among an entry's flags; a longer one ends with its NUL.
const LONGEST_TOLD: usize = 0xfff;
/// Entries begin at multiples of it.
const STEP: usize = 8;

/// The bytes of an index with these entries. All names of objects have one length.
pub(crate) fn bytes<'a>(entries: impl Iterator<Item = (&'a Path, FileMode, &'a Oid)>) -> Vec<u8> {
    let sorted: BTreeMap<&[u8], (FileMode, &Oid)> =
        entries.map(|(path, mode, oid)| (path.as_os_str().as_bytes(), (mode, oid))).collect();
    let mut bytes = b"DIRC".to_vec();
    bytes.extend(2_u32.to_be_bytes());
    bytes.extend(u32::try_from(sorted.len()).unwrap_or(u32::MAX).to_be_bytes());
    let mut sum = 0;
    for (path, (mode, oid)) in sorted {
        let begin = bytes.len();
        bytes.extend(NO_FILE);
        bytes.extend(u32::from_str_radix(mode.as_str(), 8).unwrap_or_default().to_be_bytes());
        bytes.extend(NO_OWNER);
        let name = oid.raw();
        sum = name.len();
        bytes.extend(name);
        bytes.extend(u16::try_from(path.len().min(LONGEST_TOLD)).unwrap_or_default().to_be_bytes());
        bytes.extend(path);
        let length = bytes.len() - begin;
        bytes.resize(begin + (length / STEP + 1) * STEP, 0);
    }
    bytes.resize(bytes.len() + sum, 0);
    bytes
}
