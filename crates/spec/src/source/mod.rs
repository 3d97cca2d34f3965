//! What a spec starts from, and the files of the project that a phase may see.
//!
//! [`IdeaBuilder`] joins the sources of the idea: standard input, files, directories, issues of GitHub. [`select_files`] finds the
//! files that were named or match the selectors, and [`gather_packet`] makes the packet with them.
//!
//! What always holds: all of it is text of others, and nothing of it has been looked through for secrets before it went through
//! [`build_packet_with`]: until then it belongs neither in a prompt nor on the disk. Only regular files are read, none whose name says that
//! it holds secrets, and no more bytes than can be used. What is not taken is named.

mod files;
mod idea;
mod issue;

use crate::error::SpecError;
use crate::packet::{Packet, PacketEntry, PacketLimits, build_packet_with};

pub use files::{FileSelectors, check_named_files, select_files};
pub use idea::{Idea, IdeaBuilder};
pub use issue::IssueRef;

/// The packet of a phase: the idea and the artifacts of `fixed`, and of the project's files those that have to be there and those that
/// there is room for beside them.
///
/// # Errors
///
/// As [`select_files`] and [`build_packet_with`].
pub fn gather_packet(
    fixed: Vec<PacketEntry>,
    selectors: &FileSelectors,
    limits: PacketLimits,
) -> Result<Packet, SpecError> {
    let selection = select_files(selectors, limits.beside(&fixed))?;
    build_packet_with(fixed, selection, limits)
}
