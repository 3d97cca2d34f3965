//! Builds a packet from candidates: order, limits, secrets.
//!
//! The steps are fixed, so the result is deterministic: sort, scan names, check sizes, scan texts. The
//! first problem in packet order is reported.

use std::collections::HashSet;

use crucible_model::short_line;
use crucible_secrets::{Scanner, is_secret_file};

use super::{
    EntryKind, MAX_NAME_LEN, OmissionReason, Packet, PacketEntry, PacketLimits, PacketManifest,
    PacketRow, Selection,
};
use crate::error::SpecError;

/// The schema of the manifest.
const SCHEMA: &str = "crucible-packet-v1";

/// The rule that a file name alone breaks.
pub(crate) const SECRET_FILE: &str = "secret-file";

/// Builds a packet from candidates: idea and artifacts first, then the phase's last document, then named files, then selected ones,
/// each group sorted by name (artifacts by phase). Everything except selected files must fit; selected files are added while there
/// is room. A repeated text is included once, and a file that is both named and selected counts as named.
///
/// # Errors
///
/// [`SpecError::PacketOverLimit`] with the manifest, [`SpecError::SecretInPacket`] with rule and place; [`SpecError::Source`] for a
/// text with a NUL byte, and for one name with two texts. All before anything is sent.
pub fn build_packet(
    candidates: Vec<PacketEntry>,
    limits: PacketLimits,
) -> Result<Packet, SpecError> {
    build_packet_with(candidates, Selection::default(), limits)
}

/// Builds a packet that also contains project files from [`select_files`](crate::select_files); files that could not be shown
/// are listed in the manifest.
///
/// # Errors
///
/// As [`build_packet`]; [`SpecError::PacketOverLimit`] also for named files that were not read because they cannot fit.
pub fn build_packet_with(
    fixed: Vec<PacketEntry>,
    selection: Selection,
    limits: PacketLimits,
) -> Result<Packet, SpecError> {
    let Selection {
        entries,
        unread,
        mut left_out,
        mut passed_over,
    } = selection;
    let candidates = in_order(fixed, entries)?;
    candidates
        .iter()
        .try_for_each(|entry| check_name(entry.kind, &entry.name))?;
    unread
        .iter()
        .try_for_each(|row| check_name(row.kind, &row.name))?;
    let split = candidates.partition_point(|entry| entry.kind != EntryKind::Selected);
    let mut rows: Vec<PacketRow> = candidates.iter().map(PacketRow::from_entry).collect();
    let optional = rows.split_off(split);
    rows.extend(unread);
    rows.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    let (mut bytes, mut lines) = rows.iter().fold((0_u64, 0_u64), |(bytes, lines), row| {
        (
            bytes.saturating_add(row.bytes),
            lines.saturating_add(row.lines),
        )
    });
    let fits = |bytes: u64, lines: u64| bytes <= limits.max_bytes && lines <= limits.max_lines;
    let is_whole = fits(bytes, lines) && rows.iter().all(|row| row.sha256.is_some());

    let mut packet_entries: Vec<PacketEntry> = Vec::with_capacity(candidates.len());
    let mut optional = optional.into_iter();
    for entry in candidates {
        if entry.kind != EntryKind::Selected {
            packet_entries.push(entry);
        } else if let Some(row) = optional.next() {
            let with = (
                bytes.saturating_add(row.bytes),
                lines.saturating_add(row.lines),
            );
            if is_whole && fits(with.0, with.1) {
                (bytes, lines) = with;
                rows.push(row);
                packet_entries.push(entry);
            } else {
                left_out.push(row);
            }
        }
    }
    // A named link is followed, even if a pattern that also matches it does not follow it.
    let files = packet_entries.iter().filter(|entry| is_file(entry.kind));
    let shown: HashSet<&str> = files.map(|entry| entry.name.as_str()).collect();
    passed_over.retain(|file| !shown.contains(file.name.as_str()));
    // These names reach a file, never a prompt.
    let redacted = |name: &mut String| *name = Scanner::builtin().redact(name).text.into_owned();
    left_out.iter_mut().for_each(|row| redacted(&mut row.name));
    for file in &mut passed_over {
        redacted(&mut file.name);
        if let OmissionReason::Unreadable(error) = &mut file.why {
            redacted(error);
        }
    }
    left_out.sort_by(|a, b| a.name.cmp(&b.name));
    passed_over.sort_by(|a, b| a.name.cmp(&b.name));
    passed_over.dedup();

    let schema_version = SCHEMA.to_owned();
    let manifest = PacketManifest {
        schema_version,
        limits,
        bytes,
        lines,
        entries: rows,
        left_out,
        passed_over,
    };
    if !is_whole {
        return Err(SpecError::PacketOverLimit {
            manifest: Box::new(manifest),
        });
    }
    packet_entries.iter().try_for_each(check_text)?;
    Ok(Packet {
        entries: packet_entries,
        manifest,
    })
}

/// The candidates in packet order, without duplicates.
fn in_order(
    fixed: Vec<PacketEntry>,
    selected: Vec<PacketEntry>,
) -> Result<Vec<PacketEntry>, SpecError> {
    let mut candidates = fixed;
    candidates.extend(selected);
    candidates.sort_by(|a, b| {
        (a.kind, &a.name, a.content.as_str()).cmp(&(b.kind, &b.name, b.content.as_str()))
    });
    candidates.dedup();
    for pair in candidates.windows(2) {
        if let [a, b] = pair
            && a.kind == b.kind
            && (a.name == b.name || !is_file(a.kind))
        {
            return Err(SpecError::Source {
                source_name: display_name(&b.name),
                why: "it is given twice, with two different texts; name it once".to_owned(),
            });
        }
    }
    let named: HashSet<String> = candidates
        .iter()
        .filter(|entry| entry.kind == EntryKind::Named)
        .map(|entry| entry.name.clone())
        .collect();
    candidates.retain(|entry| entry.kind != EntryKind::Selected || !named.contains(&entry.name));
    Ok(candidates)
}

/// Checks a name, which the model also sees; the name of a file that was not read is shown to readers of
/// the manifest.
fn check_name(kind: EntryKind, name: &str) -> Result<(), SpecError> {
    let secret = |rule: &str| SpecError::SecretInPacket {
        entry: display_name(name),
        rule: rule.to_owned(),
        line: 0,
    };
    if is_file(kind) && is_secret_file(name) {
        return Err(secret(SECRET_FILE));
    }
    match Scanner::builtin().scan(name.as_bytes()).first() {
        Some(found) => Err(secret(found.rule.as_str())),
        None => Ok(()),
    }
}

fn check_text(entry: &PacketEntry) -> Result<(), SpecError> {
    let text = entry.content.as_str();
    if text.contains('\0') {
        return Err(SpecError::Source {
            source_name: display_name(&entry.name),
            why: "it contains a NUL byte, so it is not text; leave it out".to_owned(),
        });
    }
    match Scanner::builtin().scan(text.as_bytes()).first() {
        Some(found) => Err(SpecError::SecretInPacket {
            entry: entry.place(),
            rule: found.rule.to_string(),
            line: found.line,
        }),
        None => Ok(()),
    }
}

fn is_file(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::Named | EntryKind::Selected)
}

/// A name for a message: redacted and on one line.
pub(super) fn display_name(name: &str) -> String {
    short_line(&Scanner::builtin().redact(name).text, MAX_NAME_LEN)
}
