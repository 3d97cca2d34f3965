//! The program's end of a terminal, and what a terminal is to it.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters of a line.
    pub columns: u16,
}

/// What standard input is to a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Terminal {
    /// A stream.
    None,
    /// The terminal that controls its session.
    Controlling,
}

/// The program's end. Each holder keeps the terminal open.
#[derive(Clone)]
pub struct ProgramTerminal(Arc<OwnedFd>);

impl fmt::Debug for ProgramTerminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgramTerminal")
    }
}

impl ProgramTerminal {
    pub(crate) fn new(end: OwnedFd) -> Self {
        Self(Arc::new(end))
    }

    /// One more descriptor of this end.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }
}
