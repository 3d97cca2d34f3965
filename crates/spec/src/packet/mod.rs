//! What a model may see in a phase: the idea, the artifacts of earlier phases, and files of the project.
//!
//! Candidates become a [`Packet`] in one pure step (`build`): sorted, each text once, within the limits, free of secrets. What the
//! project's files are is asked in `source`, which hands over a [`Selection`]. The packet's sizes are its [`PacketManifest`], and what a
//! receipt says of it is made from that alone (`record`).
//!
//! What always holds: the same candidates make the same packet, whatever their order; a packet is within its limits and holds no secret, or
//! there is none, before anybody is asked; what was selected and is not in it is named with the reason.

mod build;
mod record;

use std::fmt;

use crucible_model::{ByteLimit, Digest, Untrusted, short_line};
use serde::{Deserialize, Serialize};

use crate::phase_id::PhaseId;

pub(crate) use build::SECRET_FILE;
pub use build::{build_packet, build_packet_with};

/// How many characters of a name a message shows.
const LONGEST_NAME: usize = 200;

/// How large a packet may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketLimits {
    /// Bytes of all entries.
    pub max_bytes: u64,
    /// Lines of all entries.
    pub max_lines: u64,
}

impl Default for PacketLimits {
    fn default() -> Self {
        Self { max_bytes: 65_536, max_lines: 1_200 }
    }
}

/// What a model may see. Only what is free of secrets and within the limits becomes one.
#[derive(Debug, Clone, PartialEq)]
pub struct Packet {
    /// The entries, in the order in which they are shown.
    pub entries: Vec<PacketEntry>,
    /// Their sizes, and what was left out.
    pub manifest: PacketManifest,
}

/// One text of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketEntry {
    /// What it is.
    pub kind: EntryKind,
    /// Its name in the prompt: `idea`, `requirements`, or the path in the project.
    pub name: String,
    /// The text.
    pub content: Untrusted,
}

/// What an entry of a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// What was asked for.
    Idea,
    /// The artifact of an earlier phase.
    Artifact(PhaseId),
    /// What the phase itself wrote the last time, where it goes on from that.
    Previous(PhaseId),
    /// A file of the project that has to be there: one that was named.
    Named,
    /// A file of the project that a selector found, taken while there is room.
    Selected,
}

/// The sizes of a packet; written beside it as `context/<receipt id>.packet.json`, also where the packet is too large.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketManifest {
    /// `crucible-packet-v1`.
    pub schema_version: String,
    /// The limits.
    pub limits: PacketLimits,
    /// Bytes of what is in it, or would have to be.
    pub bytes: u64,
    /// Lines of the same.
    pub lines: u64,
    /// What is in it, in order.
    pub entries: Vec<PacketRow>,
    /// What was selected and left out for want of room.
    pub left_out: Vec<PacketRow>,
    /// What was selected and is not shown for another reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<PassedOver>,
}

/// The size of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketRow {
    /// What it is.
    pub kind: EntryKind,
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
    /// Its lines; a last line without an end counts. Of a named file or an idea that is too large those in its first 16 MiB; 0 for a
    /// selected file that was not read.
    pub lines: u64,
    /// The SHA-256 of its bytes; absent for a file that was not read, because it has more bytes than there was room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
}

/// A file that was selected and is not shown, for another reason than its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOver {
    /// Its path.
    pub name: String,
    /// Why it is not shown.
    pub why: PassedOverReason,
}

/// Why a file is not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PassedOverReason {
    /// Its name says that it holds secrets; it was not read.
    SecretName,
    /// It is not UTF-8, or holds a NUL byte.
    NotText,
    /// There is nothing in it.
    Empty,
    /// It leads to a place outside of the project, or into `.git` or `.crucible`.
    OutsideProject,
    /// It is no regular file, or its path is no path that can be shown.
    NotAFile,
    /// The operating system refused: what it said.
    Unreadable(String),
}

/// The files of a project that a packet may show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Their texts: [`EntryKind::Named`] and [`EntryKind::Selected`].
    pub entries: Vec<PacketEntry>,
    /// Files that have to be shown and were not read, as there is no room for them, and sources of an idea that is too large: there is
    /// no packet then.
    pub unread: Vec<PacketRow>,
    /// Files that were selected and left out for want of room.
    pub left_out: Vec<PacketRow>,
    /// Files that were selected and are not shown for another reason.
    pub passed_over: Vec<PassedOver>,
}

impl fmt::Display for PassedOver {
    /// One sentence for a warning.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not shown: ", short_line(&self.name, LONGEST_NAME))?;
        match &self.why {
            PassedOverReason::SecretName => f.write_str("its name suggests that it contains secrets"),
            PassedOverReason::NotText => f.write_str("it is not UTF-8 text"),
            PassedOverReason::Empty => f.write_str("it is empty"),
            PassedOverReason::OutsideProject => {
                f.write_str("it leads out of the project, or to files that are never shown to a model")
            }
            PassedOverReason::NotAFile => f.write_str("it is not a regular file with a plain name"),
            PassedOverReason::Unreadable(said) => {
                write!(f, "it cannot be read ({})", short_line(said, LONGEST_NAME))
            }
        }
    }
}

impl PacketEntry {
    /// Where its text stands, for a message: a file of the spec's directory or of the project, free of secrets.
    pub(crate) fn place(&self) -> String {
        match self.kind {
            EntryKind::Artifact(phase) | EntryKind::Previous(phase) => {
                format!("artifacts/{}", phase.artifact())
            }
            EntryKind::Idea | EntryKind::Named | EntryKind::Selected => build::shown(&self.name),
        }
    }
}

impl PacketRow {
    /// The row of an entry.
    pub(crate) fn of(entry: &PacketEntry) -> Self {
        let text = entry.content.as_str();
        Self {
            kind: entry.kind,
            name: entry.name.clone(),
            bytes: text.len() as u64,
            lines: lines_of(text),
            sha256: Some(Digest::of(text.as_bytes())),
        }
    }
}

/// The lines of a text; a last line without an end counts.
pub(crate) fn lines_of(text: &str) -> u64 {
    lines_of_bytes(text.as_bytes())
}

/// The same of bytes.
pub(crate) fn lines_of_bytes(bytes: &[u8]) -> u64 {
    let ends = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    ends + u64::from(bytes.last().is_some_and(|last| *last != b'\n'))
}

/// How much of a text that is too large is read to count its lines.
pub(crate) const COUNTED: ByteLimit = ByteLimit(16 << 20);

impl PacketLimits {
    /// What is left of them beside these entries; nothing where they fill it.
    #[must_use]
    pub fn beside(self, entries: &[PacketEntry]) -> Self {
        entries.iter().map(|entry| entry.content.as_str()).fold(self, |room, text| Self {
            max_bytes: room.max_bytes.saturating_sub(text.len() as u64),
            max_lines: room.max_lines.saturating_sub(lines_of(text)),
        })
    }
}

impl Packet {
    /// The text of the entry of this kind, where there is one.
    #[must_use]
    pub fn text_of(&self, kind: EntryKind) -> Option<&Untrusted> {
        self.entries.iter().find(|entry| entry.kind == kind).map(|entry| &entry.content)
    }

    /// Every file of the project that is shown, named or selected.
    pub fn files(&self) -> impl Iterator<Item = &PacketEntry> {
        self.entries.iter().filter(|entry| matches!(entry.kind, EntryKind::Named | EntryKind::Selected))
    }
}
