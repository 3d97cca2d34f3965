//! Parts of what git prints and stores.

use crucible_patch::FileMode;

/// The parts of `bytes` before and after the first `separator`.
pub(crate) fn split_at(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == separator)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

/// Parses a mode of six octal digits: `None` for "missing", an error for an invalid mode.
pub(crate) fn read_mode(digits: &[u8]) -> Option<Option<FileMode>> {
    match digits {
        b"000000" => Some(None),
        // Trees that very old versions of git wrote have it.
        b"100664" => Some(Some(FileMode::Regular)),
        digits => FileMode::parse(digits).map(Some),
    }
}
