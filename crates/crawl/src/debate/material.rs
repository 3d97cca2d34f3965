//! The parts of an inspection that prompts show, each marked as foreign text.

use crucible_model::{Untrusted, single_spaced};

use super::prompts::{Material, Slot};
use crate::inspect::Inspection;

/// Characters of the README in a draft prompt.
const README_OF_DRAFT: usize = 2000;
/// Characters of the README in a critique prompt.
const README_OF_CRITIQUE: usize = 1000;

/// The material of a draft prompt.
pub(super) fn of_draft(inspection: &Inspection) -> Vec<Material> {
    let artifact = &inspection.artifact;
    let languages: Vec<&str> = artifact
        .detected_languages
        .iter()
        .map(|count| count.language.as_str())
        .collect();
    let facts = [
        ("name", artifact.repo.full_name.clone()),
        ("ref", artifact.repo.selected_ref.clone()),
        ("commit", artifact.repo.resolved_commit.clone()),
        ("build system", artifact.build_system.name.clone()),
        (
            "confidence",
            format!("{:.2}", artifact.build_system.confidence),
        ),
        (
            "detected files",
            artifact.build_system.detected_files.join(", "),
        ),
        ("directory of the build", inspection.build_dir.clone()),
        ("languages", languages.join(", ")),
    ];
    let files = inspection.build_files.iter();
    let files = files
        .map(|file| (format!("build file {}", file.path), file.content.clone()))
        .collect();
    vec![
        repository(&facts),
        readme(&artifact.readme_excerpt, README_OF_DRAFT),
        (Slot::BuildFiles, files),
    ]
}

/// The repository's part of a critique prompt.
pub(super) fn of_critique(inspection: &Inspection) -> Vec<Material> {
    let artifact = &inspection.artifact;
    let facts = [
        ("name", artifact.repo.full_name.clone()),
        ("build system", artifact.build_system.name.clone()),
        (
            "detected files",
            artifact.build_system.detected_files.join(", "),
        ),
        ("directory of the build", inspection.build_dir.clone()),
    ];
    vec![
        repository(&facts),
        readme(&artifact.readme_excerpt, README_OF_CRITIQUE),
    ]
}

/// One line for each fact.
fn repository(facts: &[(&str, String)]) -> Material {
    let lines: Vec<String> = facts
        .iter()
        .map(|(name, fact)| format!("{name}: {}", single_spaced(fact)))
        .collect();
    piece(Slot::Repository, "repository", lines.join("\n"))
}

fn readme(excerpt: &str, most: usize) -> Material {
    let beginning: String = excerpt.chars().take(most).collect();
    if beginning.trim().is_empty() {
        return (Slot::Readme, Vec::new());
    }
    piece(Slot::Readme, "README, its beginning", beginning)
}

/// A slot with a single piece.
pub(super) fn piece(slot: Slot, name: &str, content: String) -> Material {
    (slot, vec![(name.to_owned(), Untrusted::new(content))])
}
