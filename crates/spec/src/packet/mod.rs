//! The packet of a phase: what a model may see. It contains the idea, earlier artifacts and project
//! files.
//!
//! One pure step (`build`) turns candidates into a [`Packet`]: sorted, without duplicates, within the
//! limits, without secrets. The module `source` finds the project files and returns a [`Selection`]. The
//! [`PacketManifest`] lists the sizes, and a receipt's summary is derived from it alone (`record`).
//!
//! Invariants: the same candidates give the same packet, in any order. A packet that exceeds its limits
//! or contains a secret is never built, so nothing is sent. Every selected file that is not in the packet
//! is listed with the reason.

mod build;
mod record;

use std::fmt;

use crucible_model::{ByteLimit, Digest, Untrusted, short_line};
use serde::{Deserialize, Serialize};

use crate::phase_id::PhaseId;

pub(crate) use build::SECRET_FILE;
pub use build::{build_packet, build_packet_with};

/// The most characters of a name in a message.
const MAX_NAME_LEN: usize = 200;

/// The size limits of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketLimits {
    /// Bytes of all entries.
    pub max_bytes: u64,
    /// Lines of all entries.
    pub max_lines: u64,
}

impl Default for PacketLimits {
    fn default() -> Self {
        Self {
            max_bytes: 65_536,
            max_lines: 1_200,
        }
    }
}

/// A packet. Only content without secrets and within the limits becomes one.
#[derive(Debug, Clone, PartialEq)]
pub struct Packet {
    /// The entries, in display order.
    pub entries: Vec<PacketEntry>,
    /// Their sizes, and what was left out.
    pub manifest: PacketManifest,
}

/// One text of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketEntry {
    /// The kind of entry.
    pub kind: EntryKind,
    /// Its name in the prompt: `idea`, `requirements`, or the path in the project.
    pub name: String,
    /// The text.
    pub content: Untrusted,
}

/// The kind of a packet entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// The idea from which the spec started.
    Idea,
    /// The artifact of an earlier phase.
    Artifact(PhaseId),
    /// The last document of the phase itself, if the phase continues from it.
    Previous(PhaseId),
    /// A named project file, which is required.
    Named,
    /// A selected project file, included while there is room.
    Selected,
}

/// The sizes of a packet; written as `context/<receipt id>.packet.json`, even if the packet is too
/// large.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketManifest {
    /// `crucible-packet-v1`.
    pub schema_version: String,
    /// The limits within which it was built.
    pub limits: PacketLimits,
    /// Bytes of the content, or of what would have to be in it.
    pub bytes: u64,
    /// Lines of the same content.
    pub lines: u64,
    /// The entries, in order.
    pub entries: Vec<PacketRow>,
    /// Selected files that did not fit.
    pub left_out: Vec<PacketRow>,
    /// Selected files that are not shown for another reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<Omission>,
}

/// The size of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketRow {
    /// The kind of entry.
    pub kind: EntryKind,
    /// The name of the entry.
    pub name: String,
    /// The size in bytes.
    pub bytes: u64,
    /// Its lines; an unterminated last line counts. For a named file or an idea that is too large, the
    /// lines of its first 16 MiB; 0 for a selected file that was not read.
    pub lines: u64,
    /// The SHA-256 of its bytes; absent for a file that was not read because it did not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
}

/// A selected file that is not shown for a reason other than its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omission {
    /// Its path.
    pub name: String,
    /// Why it is not shown.
    pub why: OmissionReason,
}

/// Why a file is not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OmissionReason {
    /// Its name suggests that it contains secrets; it was not read.
    SecretName,
    /// It is not UTF-8, or contains a NUL byte.
    NotText,
    /// It is empty.
    Empty,
    /// It leads out of the project, or into `.git` or `.crucible`.
    OutsideProject,
    /// It is not a regular file, or its path cannot be shown.
    NotAFile,
    /// The operating system's error.
    Unreadable(String),
}

/// The project files for a packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Their texts: [`EntryKind::Named`] and [`EntryKind::Selected`].
    pub entries: Vec<PacketEntry>,
    /// Required files that were not read because they do not fit, and sources of an idea that is too
    /// large: then there is no packet.
    pub unread: Vec<PacketRow>,
    /// Selected files that did not fit.
    pub left_out: Vec<PacketRow>,
    /// Selected files that are not shown for another reason.
    pub passed_over: Vec<Omission>,
}

impl fmt::Display for Omission {
    /// One sentence for a warning.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not shown: ", short_line(&self.name, MAX_NAME_LEN))?;
        match &self.why {
            OmissionReason::SecretName => f.write_str("its name suggests that it contains secrets"),
            OmissionReason::NotText => f.write_str("it is not UTF-8 text"),
            OmissionReason::Empty => f.write_str("it is empty"),
            OmissionReason::OutsideProject => f.write_str(
                "it leads out of the project, or to files that are never shown to a model",
            ),
            OmissionReason::NotAFile => f.write_str("it is not a regular file with a plain name"),
            OmissionReason::Unreadable(error) => {
                write!(f, "it cannot be read ({})", short_line(error, MAX_NAME_LEN))
            }
        }
    }
}

impl PacketEntry {
    /// The location of its text, for a message: a redacted path in the spec's directory or in the
    /// project.
    pub(crate) fn place(&self) -> String {
        match self.kind {
            EntryKind::Artifact(phase) | EntryKind::Previous(phase) => {
                format!("artifacts/{}", phase.artifact())
            }
            EntryKind::Idea | EntryKind::Named | EntryKind::Selected => {
                build::display_name(&self.name)
            }
        }
    }
}

impl PacketRow {
    /// The row of an entry.
    pub(crate) fn from_entry(entry: &PacketEntry) -> Self {
        let text = entry.content.as_str();
        Self {
            kind: entry.kind,
            name: entry.name.clone(),
            bytes: text.len() as u64,
            lines: lines_of(text),
            sha256: Some(Digest::compute(text.as_bytes())),
        }
    }
}

/// The number of lines; an unterminated last line counts.
pub(crate) fn lines_of(text: &str) -> u64 {
    lines_of_bytes(text.as_bytes())
}

/// The number of lines of bytes.
pub(crate) fn lines_of_bytes(bytes: &[u8]) -> u64 {
    let ends = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    ends + u64::from(bytes.last().is_some_and(|last| *last != b'\n'))
}

/// How much of a text that is too large is read to count its lines.
pub(crate) const COUNTED: ByteLimit = ByteLimit(16 << 20);

impl PacketLimits {
    /// The room that is left besides these entries; zero if they exceed it.
    #[must_use]
    pub fn subtract_entries(self, entries: &[PacketEntry]) -> Self {
        entries
            .iter()
            .map(|entry| entry.content.as_str())
            .fold(self, |limits, text| Self {
                max_bytes: limits.max_bytes.saturating_sub(text.len() as u64),
                max_lines: limits.max_lines.saturating_sub(lines_of(text)),
            })
    }
}

impl Packet {
    /// The text of the entry of this kind, if there is one.
    #[must_use]
    pub fn text_of(&self, kind: EntryKind) -> Option<&Untrusted> {
        self.entries
            .iter()
            .find(|entry| entry.kind == kind)
            .map(|entry| &entry.content)
    }

    /// All project files in the packet, named or selected.
    pub fn files(&self) -> impl Iterator<Item = &PacketEntry> {
        self.entries
            .iter()
            .filter(|entry| matches!(entry.kind, EntryKind::Named | EntryKind::Selected))
    }
}
