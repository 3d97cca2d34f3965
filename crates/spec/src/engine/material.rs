//! The input of a phase: the idea, the artifacts it depends on, its last document, and project files.

use crucible_llm::ReceiptWarning;
use crucible_model::{RepoPath, Untrusted, says_nothing};

use super::phase_order::upstream_phases;
use crate::document::{read_tasks, review_targets};
use crate::error::SpecError;
use crate::packet::{EntryKind, Packet, PacketEntry, PacketLimits, Selection, build_packet_with};
use crate::phase::{LastArtifact, PhaseDefinition};
use crate::phase_id::PhaseId;
use crate::project::IDEA;
use crate::source::{FileSelectors, Idea, gather_packet};
use crate::store::SpecStore;

/// The name of the idea in the packet.
const IDEA_ENTRY: &str = "idea";

/// Builds the packet of a phase. A secret in the idea is reported by its source.
pub(super) fn packet(
    store: &SpecStore,
    phase: &dyn PhaseDefinition,
    idea: Option<&Idea>,
    selectors: FileSelectors,
    limits: PacketLimits,
    warnings: &mut Vec<ReceiptWarning>,
) -> Result<Packet, SpecError> {
    let built = built(store, phase, idea, selectors, limits, warnings);
    built.map_err(|error| match error {
        SpecError::SecretInPacket { entry, rule, line } if entry == IDEA_ENTRY => {
            let (entry, line) = match idea {
                Some(idea) => idea.place_of(line).unwrap_or((entry, line)),
                None => (IDEA.to_owned(), line),
            };
            SpecError::SecretInPacket { entry, rule, line }
        }
        error => error,
    })
}

fn built(
    store: &SpecStore,
    phase: &dyn PhaseDefinition,
    idea: Option<&Idea>,
    file_selectors: FileSelectors,
    limits: PacketLimits,
    warnings: &mut Vec<ReceiptWarning>,
) -> Result<Packet, SpecError> {
    if let Some(idea) =
        idea.filter(|idea| phase.id() == PhaseId::Requirements && !idea.unread.is_empty())
    {
        let selection = Selection {
            unread: idea.unread.clone(),
            ..Selection::default()
        };
        return build_packet_with(Vec::new(), selection, limits);
    }
    let fixed = fixed_entries(store, phase.id(), idea.map(|idea| &idea.text))?;
    let selectors = selectors_of(phase.id(), &fixed, file_selectors, warnings);
    let Some(previous) = previous(store, phase, warnings)? else {
        return gather_packet(fixed, &selectors, limits);
    };
    let mut with_previous = fixed.clone();
    with_previous.push(previous);
    match gather_packet(with_previous, &selectors, limits) {
        Err(SpecError::PacketOverLimit { manifest })
            if phase.last_artifact() == LastArtifact::Shown =>
        {
            let packet = gather_packet(fixed, &selectors, limits)?;
            let why = format!(
                "with it the packet has {} bytes and {} lines",
                manifest.bytes, manifest.lines
            );
            warnings.push(unused(phase.id(), &why));
            Ok(packet)
        }
        built => built,
    }
}

/// The last document of the phase, if the phase continues from it.
fn previous(
    store: &SpecStore,
    phase: &dyn PhaseDefinition,
    warnings: &mut Vec<ReceiptWarning>,
) -> Result<Option<PacketEntry>, SpecError> {
    if phase.last_artifact() == LastArtifact::Unseen {
        return Ok(None);
    }
    let id = phase.id();
    match text(store, &format!("artifacts/{}", id.artifact())) {
        Ok(found) => Ok(found.map(|content| PacketEntry {
            kind: EntryKind::Previous(id),
            name: format!("the last {id}"),
            content,
        })),
        Err(SpecError::Source { why, .. }) if phase.last_artifact() == LastArtifact::Shown => {
            warnings.push(unused(id, &why));
            Ok(None)
        }
        Err(SpecError::Source { source_name, .. }) => {
            let why = "it is not UTF-8; fix it, or move it away to start over".to_owned();
            Err(SpecError::Source { source_name, why })
        }
        Err(error) => Err(error),
    }
}

fn unused(phase: PhaseId, why: &str) -> ReceiptWarning {
    let message = format!(
        "artifacts/{} of the last run is not reused: {why}",
        phase.artifact()
    );
    ReceiptWarning {
        kind: "previous_unused".to_owned(),
        message,
    }
}

/// The required entries: the idea for the first phase, the artifacts for the others.
fn fixed_entries(
    store: &SpecStore,
    phase: PhaseId,
    idea: Option<&Untrusted>,
) -> Result<Vec<PacketEntry>, SpecError> {
    let mut entries = Vec::new();
    if phase == PhaseId::Requirements {
        let content = match idea {
            Some(idea) => idea.clone(),
            None => text(store, IDEA)?.ok_or(SpecError::EmptyIdea)?,
        };
        if says_nothing(content.as_str()) {
            return Err(SpecError::EmptyIdea);
        }
        entries.push(PacketEntry {
            kind: EntryKind::Idea,
            name: IDEA_ENTRY.to_owned(),
            content,
        });
    }
    for before in upstream_phases(phase) {
        let path = format!("artifacts/{}", before.artifact());
        let Some(content) = text(store, &path)? else {
            let why = format!("it is missing; recreate it with --phase {before}");
            return Err(SpecError::Source {
                source_name: path,
                why,
            });
        };
        let (kind, name) = (EntryKind::Artifact(*before), before.as_str().to_owned());
        entries.push(PacketEntry {
            kind,
            name,
            content,
        });
    }
    Ok(entries)
}

/// The project files that the phase may see, of those named and selected. A review also sees the files
/// that the tasks name. A fixup sees the files that the user and the review name; the last phase only
/// those that the user names.
fn selectors_of(
    phase: PhaseId,
    fixed: &[PacketEntry],
    selectors: FileSelectors,
    warnings: &mut Vec<ReceiptWarning>,
) -> FileSelectors {
    let text = |phase| {
        let entry = fixed
            .iter()
            .find(|entry| entry.kind == EntryKind::Artifact(phase));
        entry.map_or("", |entry| entry.content.as_str())
    };
    match phase {
        PhaseId::Requirements | PhaseId::Design | PhaseId::Tasks => selectors,
        PhaseId::Review => {
            let tasks = read_tasks(&text(PhaseId::Tasks).replace("\r\n", "\n")).tasks;
            let named = tasks
                .into_iter()
                .flat_map(|task| task.files)
                .filter_map(|path| path.parse().ok());
            let (mut include, _) = existing_artifacts(&selectors, named);
            include.extend(selectors.include.iter().cloned());
            FileSelectors {
                include,
                ..selectors
            }
        }
        PhaseId::Fixup => {
            let named = review_targets(&Untrusted::new(text(PhaseId::Review)));
            let (include, missing) = existing_artifacts(&selectors, named);
            if !missing.is_empty() {
                let message = format!(
                    "the review names files that do not exist: {}",
                    missing.join(", ")
                );
                warnings.push(ReceiptWarning {
                    kind: "review_target_missing".to_owned(),
                    message,
                });
            }
            FileSelectors {
                include,
                ..selectors
            }
        }
        PhaseId::Final => FileSelectors {
            include: Vec::new(),
            ..selectors
        },
    }
}

/// Splits these project files into existing and missing ones.
fn existing_artifacts(
    given: &FileSelectors,
    paths: impl IntoIterator<Item = RepoPath>,
) -> (Vec<String>, Vec<String>) {
    let is_there = |path: &RepoPath| given.root.join(path.as_str()).is_file();
    let (current_paths, missing): (Vec<RepoPath>, Vec<RepoPath>) =
        paths.into_iter().partition(is_there);
    let names = |paths: Vec<RepoPath>| paths.into_iter().map(|path| path.to_string()).collect();
    (names(current_paths), names(missing))
}

/// Reads a file of the spec's directory as text.
fn text(store: &SpecStore, path: &str) -> Result<Option<Untrusted>, SpecError> {
    let Some(bytes) = store.read(path)? else {
        return Ok(None);
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(Untrusted::new(text))),
        Err(error) => {
            let at = error.utf8_error().valid_up_to() + 1;
            let why = format!("it is not UTF-8 (at byte {at}); convert it, or recreate it");
            Err(SpecError::Source {
                source_name: path.to_owned(),
                why,
            })
        }
    }
}
