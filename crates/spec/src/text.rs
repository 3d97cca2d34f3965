//! Results of phases and fixups as lines for people.

use crucible_llm::cost_in_words;
use crucible_model::{RepoPath, Timestamp, counted, one_line};
use crucible_repo::{EditRecovery, RecoveredEdit};

use crate::error::SpecError;
use crate::fixup::{AppliedFixup, FixupChangeKind, fixup_changes, fixup_links};
use crate::phase_id::PhaseId;
use crate::project::SpecProject;
use crate::receipt::PhaseEntry;

/// Returns a proposed diff: each file with its added and removed lines and its real location.
///
/// # Errors
///
/// Fails if the diff is not a fixup.
pub fn proposed_fixup(project: &SpecProject, diff: &[u8]) -> Result<Vec<String>, SpecError> {
    let changes = fixup_changes(diff).map_err(|verdict| SpecError::FixupRefused { verdict })?;
    let links = fixup_links(project, &changes);
    let files = counted(changes.len() as u64, "file");
    let mut lines = vec![format!("proposed fixups: {files}")];
    for change in &changes {
        let kind = match change.kind {
            FixupChangeKind::Changed => String::new(),
            FixupChangeKind::New | FixupChangeKind::Removed => {
                format!(" ({})", change.kind.as_str())
            }
        };
        let path = one_line(&change.path);
        let led = links.get(&change.path).map_or_else(String::new, |place| {
            format!(", through a link to {}", one_line(place.as_str()))
        });
        lines.push(format!(
            "  {path} +{} -{}{kind}{led}",
            change.added, change.removed
        ));
    }
    Ok(lines)
}

/// Returns the files of an applied fixup.
#[must_use]
pub fn applied_fixup(applied: &AppliedFixup) -> Vec<String> {
    let files = counted(applied.files.len() as u64, "file");
    let mut lines = vec![format!("applied fixups: {files}")];
    for file in &applied.files {
        let kind = match (file.before, file.after) {
            (None, _) => " (new)",
            (_, None) => " (removed)",
            (Some(_), Some(_)) => "",
        };
        lines.push(format!("  {}{kind}", one_line(&file.path)));
    }
    lines
}

/// Returns, file by file, how a partly applied fixup of a killed process was recovered; empty if there was none.
#[must_use]
pub fn recovered_fixup(recovered: &RecoveredEdit) -> Vec<String> {
    let (others, files): (Vec<_>, Vec<_>) = recovered
        .files
        .iter()
        .partition(|path| recovered.edited_since.contains(path));
    let names = |paths: &[&RepoPath]| {
        paths
            .iter()
            .map(|path| one_line(path.as_str()))
            .collect::<Vec<_>>()
            .join(", ")
    };
    if recovered.files.is_empty() {
        return Vec::new();
    }
    let what = match recovered.outcome {
        EditRecovery::Nothing => return Vec::new(),
        EditRecovery::Finished => "finished: the fixup is applied to these files",
        EditRecovery::RolledBack => "rolled back: the fixup is not applied to these files",
    };
    let files = if files.is_empty() {
        "none".to_owned()
    } else {
        names(&files)
    };
    let mut lines = vec![format!(
        "warning: a process was killed while it applied a fixup, which is now {what}: {files}"
    )];
    if !others.is_empty() {
        lines.push(format!(
            "warning: these files were changed after that and are left as they are; check them: {}",
            names(&others)
        ));
    }
    lines
}

/// Returns what a dry run would send.
#[must_use]
pub fn dry_run(phase: PhaseId, entry: &PhaseEntry) -> Vec<String> {
    let packet = entry.packet.as_ref().map_or_else(String::new, |packet| {
        let texts = counted(packet.entries, "text");
        let left_out = match packet.left_out {
            0 => String::new(),
            several => format!("; {} left out", counted(several, "file")),
        };
        format!(
            ": {texts}, {}, {}{left_out}",
            counted(packet.bytes, "byte"),
            counted(packet.lines, "line")
        )
    });
    let mut lines = vec![format!("{:<13}would ask now{packet}", phase.as_str())];
    for input in &entry.inputs {
        lines.push(one_line(&format!(
            "{:<13}  {} ({} bytes)",
            "", input.path, input.bytes
        )));
    }
    lines
}

/// Returns the usage of a phase: the model, tokens, cost and time.
#[must_use]
pub fn phase_usage(entry: &PhaseEntry) -> String {
    let mut parts = Vec::new();
    match &entry.llm {
        Some(llm) => {
            let model = llm.model_used.as_deref().unwrap_or("a model");
            let provider = llm.provider.as_deref().unwrap_or("a provider");
            parts.push(one_line(&format!("{model} ({provider})")));
            if let (Some(input), Some(output)) = (llm.tokens_input, llm.tokens_output) {
                parts.push(format!("{input} + {output} tokens"));
            }
            parts.extend(
                llm.cost
                    .as_ref()
                    .map(|cost| cost_in_words(Some(cost.micro_dollars), Some(cost.basis))),
            );
        }
        None => parts.push("no model was asked".to_owned()),
    }
    if let (Some(from), Some(to)) = (entry.started_at, entry.finished_at) {
        parts.push(seconds(from, to));
    }
    let refused = entry.findings.len() as u64;
    if refused > 0 {
        parts.push(format!("corrected ({})", counted(refused, "finding")));
    }
    parts.join(", ")
}

fn seconds(from: Timestamp, to: Timestamp) -> String {
    let millis = to.unix_millis().saturating_sub(from.unix_millis()).max(0);
    format!("{}.{} s", millis / 1000, millis % 1000 / 100)
}
