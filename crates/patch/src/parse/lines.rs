//! A cursor over the lines of a patch, which knows the number of the line it stands on.

use super::{PatchError, PatchErrorKind};
use crate::patch::split_line;

/// The lines of a text that ends with a newline, split at line feeds and at nothing else.
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    number: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self {
            rest: text,
            number: 1,
        }
    }

    /// The number of the line that [`Lines::peek`] shows, counted from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn peek(&self) -> Option<&'a [u8]> {
        split_line(self.rest).map(|(line, _)| line)
    }

    pub(super) fn peek_second(&self) -> Option<&'a [u8]> {
        let (_, rest) = split_line(self.rest)?;
        split_line(rest).map(|(line, _)| line)
    }

    pub(super) fn next(&mut self) -> Option<&'a [u8]> {
        let (line, rest) = split_line(self.rest)?;
        self.rest = rest;
        self.number += 1;
        Some(line)
    }

    /// The next line, which is a header and so must not end with a carriage return.
    pub(super) fn next_header(&mut self) -> Result<Option<&'a [u8]>, PatchError> {
        let line = self.number;
        match self.next() {
            Some(text) if text.ends_with(b"\r") => Err(PatchError {
                line,
                kind: PatchErrorKind::CarriageReturn,
            }),
            other => Ok(other),
        }
    }
}
