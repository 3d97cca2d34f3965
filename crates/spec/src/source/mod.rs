//! The sources of a spec: its idea, and the project files that a phase may see.
//!
//! [`IdeaBuilder`] joins the sources of the idea: standard input, files, directories, GitHub issues.
//! [`select_files`] finds the named and selected files, and [`gather_packet`] builds the packet with
//! them.
//!
//! Invariants: all of this is foreign text. Before [`build_packet_with`] has scanned it for secrets, it
//! must be neither sent nor written. Only regular files are read, none whose name suggests secrets, and
//! no more bytes than can be used. Everything left out is listed.

mod files;
mod idea;
mod issue;

use crate::error::SpecError;
use crate::packet::{Packet, PacketEntry, PacketLimits, build_packet_with};

pub(crate) use files::check_named_files;
pub use files::{FileSelectors, select_files};
pub use idea::{Idea, IdeaBuilder};
pub use issue::IssueRef;

/// Builds the packet of a phase: the idea and the artifacts in `fixed`, the required project files, and selected ones while there
/// is room.
///
/// # Errors
///
/// As [`select_files`] and [`build_packet_with`].
pub fn gather_packet(
    fixed: Vec<PacketEntry>,
    selectors: &FileSelectors,
    limits: PacketLimits,
) -> Result<Packet, SpecError> {
    let selection = select_files(selectors, limits.subtract_entries(&fixed))?;
    build_packet_with(fixed, selection, limits)
}
