//! Records a packet: its manifest as a file, and its summary for a receipt.

use crucible_model::{CanonicalError, Digest, to_canonical_json};

use super::{EntryKind, PacketManifest, PacketRow};
use crate::project::IDEA;
use crate::receipt::{FileRecord, PacketReceipt};

impl PacketManifest {
    /// The manifest as canonical JSON, the bytes of `context/<receipt id>.packet.json`.
    ///
    /// # Errors
    ///
    /// Never for a manifest from [`build_packet`](crate::build_packet); a number over 2^53 has no canonical form.
    pub fn to_json(&self) -> Result<Vec<u8>, CanonicalError> {
        to_canonical_json(self)
    }

    /// The summary of the packet for a receipt.
    ///
    /// # Errors
    ///
    /// As [`PacketManifest::to_json`].
    pub fn receipt(&self) -> Result<PacketReceipt, CanonicalError> {
        Ok(PacketReceipt {
            sha256: Digest::compute(&self.to_json()?),
            bytes: self.bytes,
            lines: self.lines,
            entries: self.entries.len() as u64,
            left_out: self.left_out.len() as u64,
        })
    }

    /// The inputs as receipts name them: the idea as `context/idea.md`, an artifact by its path in the
    /// spec's directory, the phase's last document by its name after `previous/`, a project file by its
    /// path after `project/`.
    #[must_use]
    pub fn inputs(&self) -> Vec<FileRecord> {
        self.entries.iter().filter_map(input).collect()
    }
}

/// The record of an entry; none for a file that was not read.
fn input(row: &PacketRow) -> Option<FileRecord> {
    let path = match row.kind {
        EntryKind::Idea => IDEA.to_owned(),
        EntryKind::Artifact(phase) => format!("artifacts/{}", phase.artifact()),
        // The phase itself writes to its real path, so a later difference there would not mean that the
        // input is stale.
        EntryKind::Previous(phase) => format!("previous/{}", phase.artifact()),
        EntryKind::Named | EntryKind::Selected => format!("project/{}", row.name),
    };
    row.sha256.map(|sha256| FileRecord {
        path,
        sha256,
        bytes: row.bytes,
    })
}
