//! A terminal of its own for a program: a pair of ends, of which the program has one.
//!
//! The program's end becomes the controlling terminal of its session, so job control, Ctrl-C and the size work as usual. What
//! always holds: the user's own terminal never reaches the program, so it can neither type into it nor change its settings.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

use crate::error::SandboxError;
use crate::sys;
use crate::terminal_end::{ProgramTerminal, TerminalSize};

/// Our end: what the program prints is read from it, and what the user types is written to it.
#[derive(Debug)]
pub struct TerminalMaster(AsyncFd<OwnedFd>);

impl TerminalMaster {
    /// Opens a terminal of this size. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails if the kernel has no more terminals.
    pub fn open(size: TerminalSize) -> Result<(Self, ProgramTerminal), SandboxError> {
        let failed = |source| SandboxError::Supervision {
            action: "opening a terminal for the program",
            source,
        };
        let (ours, other_fd) = sys::open_terminal().map_err(failed)?;
        sys::resize_terminal(&ours, size).map_err(failed)?;
        let ours = sys::watch_descriptor(ours).map_err(failed)?;
        Ok((Self(ours), ProgramTerminal::new(other_fd)))
    }

    /// Changes the size, of which the kernel tells the program.
    ///
    /// # Errors
    ///
    /// Fails if the terminal is gone.
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        sys::resize_terminal(self.0.get_ref(), size)
    }

    /// Reads what the program prints; 0 bytes when nobody has its end any more.
    ///
    /// # Errors
    ///
    /// Fails as reading does.
    pub async fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.readable().await?;
            let read = ready.try_io(|ours| Ok(rustix::io::read(ours.get_ref(), &mut *bytes)?));
            match read {
                Ok(Err(error)) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                    return Ok(0);
                }
                Ok(read) => return read,
                Err(_not_ready) => {}
            }
        }
    }

    /// Writes what the user types.
    ///
    /// # Errors
    ///
    /// Fails as writing does.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut ready = self.0.writable().await?;
            let written = ready.try_io(|ours| Ok(rustix::io::write(ours.get_ref(), bytes)?));
            if let Ok(written) = written {
                bytes = bytes.get(written?..).unwrap_or_default();
            }
        }
        Ok(())
    }
}
