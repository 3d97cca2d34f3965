//! What is kept of a packet: its manifest as a file, and what a receipt says of it.

use crucible_model::{CanonicalError, Digest, to_canonical_json};

use super::{EntryKind, PacketManifest, PacketRow};
use crate::project::IDEA;
use crate::receipt::{FileRecord, PacketReceipt};

impl PacketManifest {
    /// The manifest as canonical JSON, the bytes of `context/<receipt id>.packet.json`.
    ///
    /// # Errors
    ///
    /// Never for a manifest that [`build_packet`](crate::build_packet) made; a number over 2^53 has no canonical form.
    pub fn to_json(&self) -> Result<Vec<u8>, CanonicalError> {
        to_canonical_json(self)
    }

    /// What a receipt says of the packet as a whole.
    ///
    /// # Errors
    ///
    /// As [`PacketManifest::to_json`].
    pub fn receipt(&self) -> Result<PacketReceipt, CanonicalError> {
        Ok(PacketReceipt {
            sha256: Digest::of(&self.to_json()?),
            bytes: self.bytes,
            lines: self.lines,
            entries: self.entries.len() as u64,
            left_out: self.left_out.len() as u64,
        })
    }

    /// What the model was given, as receipts name it: the idea as `context/idea.md`, an artifact by its path in the spec's
    /// directory, what the phase wrote the last time by its name behind `previous/`, a file of the project by its path behind `project/`.
    #[must_use]
    pub fn inputs(&self) -> Vec<FileRecord> {
        self.entries.iter().filter_map(input).collect()
    }
}

/// The record of an entry; none of a file that was not read.
fn input(row: &PacketRow) -> Option<FileRecord> {
    let path = match row.kind {
        EntryKind::Idea => IDEA.to_owned(),
        EntryKind::Artifact(phase) => format!("artifacts/{}", phase.artifact()),
        // Its place is where the phase writes: what is there later is another text, and no staleness.
        EntryKind::Previous(phase) => format!("previous/{}", phase.artifact()),
        EntryKind::Named | EntryKind::Selected => format!("project/{}", row.name),
    };
    row.sha256.map(|sha256| FileRecord { path, sha256, bytes: row.bytes })
}
