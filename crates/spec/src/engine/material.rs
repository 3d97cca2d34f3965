//! What a phase is given: the idea, the artifacts that it is made from, and which files of the project it may see.

use crucible_llm::ReceiptWarning;
use crucible_model::{RepoPath, Untrusted, says_nothing};

use super::way::made_from;
use crate::document::{read_tasks, review_targets};
use crate::error::SpecError;
use crate::packet::{EntryKind, PacketEntry};
use crate::phase_id::PhaseId;
use crate::source::FileSelectors;
use crate::store::SpecStore;

/// Where the idea is kept, by its path in the spec's directory.
pub const IDEA: &str = "context/idea.md";

/// What has to be in the packet: the idea for the first phase, the artifacts for the others.
pub(super) fn fixed_entries(
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
        entries.push(PacketEntry { kind: EntryKind::Idea, name: "idea".to_owned(), content });
    }
    for before in made_from(phase) {
        let path = format!("artifacts/{}", before.artifact());
        let Some(content) = text(store, &path)? else {
            let why = format!("it is gone; make it again with --phase {before}");
            return Err(SpecError::Source { source_name: path, why });
        };
        let (kind, name) = (EntryKind::Artifact(*before), before.as_str().to_owned());
        entries.push(PacketEntry { kind, name, content });
    }
    Ok(entries)
}

/// Which files of the project the phase may see, of those that are named and selected. A review also sees those that the tasks name,
/// and a fixup only those that somebody named and those that the review names; the last phase sees none.
pub(super) fn selectors_of(
    phase: PhaseId,
    fixed: &[PacketEntry],
    given: FileSelectors,
    warnings: &mut Vec<ReceiptWarning>,
) -> FileSelectors {
    let text = |phase| {
        let entry = fixed.iter().find(|entry| entry.kind == EntryKind::Artifact(phase));
        entry.map_or("", |entry| entry.content.as_str())
    };
    match phase {
        PhaseId::Requirements | PhaseId::Design | PhaseId::Tasks => given,
        PhaseId::Review => {
            let (tasks, _) = read_tasks(&text(PhaseId::Tasks).replace("\r\n", "\n"));
            let named = tasks.into_iter().flat_map(|task| task.files).filter_map(|path| path.parse().ok());
            let (mut include, _) = there(&given, named);
            include.extend(given.include.iter().cloned());
            FileSelectors { include, ..given }
        }
        PhaseId::Fixup => {
            let named = review_targets(&Untrusted::new(text(PhaseId::Review)));
            let (include, gone) = there(&given, named);
            if !gone.is_empty() {
                let message = format!("the review names files that are not there: {}", gone.join(", "));
                warnings.push(ReceiptWarning { kind: "review_target_missing".to_owned(), message });
            }
            FileSelectors { include, ..given }
        }
        PhaseId::Final => FileSelectors { named: Vec::new(), include: Vec::new(), ..given },
    }
}

/// Of these files of the project those that are there, and those that are not.
fn there(given: &FileSelectors, paths: impl IntoIterator<Item = RepoPath>) -> (Vec<String>, Vec<String>) {
    let is_there = |path: &RepoPath| given.root.join(path.as_str()).is_file();
    let (there, gone): (Vec<RepoPath>, Vec<RepoPath>) = paths.into_iter().partition(is_there);
    let names = |paths: Vec<RepoPath>| paths.into_iter().map(|path| path.to_string()).collect();
    (names(there), names(gone))
}

/// A file of the spec's directory as text.
fn text(store: &SpecStore, path: &str) -> Result<Option<Untrusted>, SpecError> {
    let Some(bytes) = store.read(path)? else {
        return Ok(None);
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(Untrusted::new(text))),
        Err(error) => {
            let at = error.utf8_error().valid_up_to() + 1;
            let why = format!("it is not UTF-8 (at byte {at}); convert it, or make it again");
            Err(SpecError::Source { source_name: path.to_owned(), why })
        }
    }
}
