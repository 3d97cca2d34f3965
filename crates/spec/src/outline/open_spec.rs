//! The format of OpenSpec: `openspec/changes/NAME/` with `tasks.md` and `specs/CAPABILITY/spec.md`, and
//! `openspec/specs/NAME/spec.md`.
//!
//! Requirements are the blocks `### Requirement: Name`, with the capability as a prefix in a change. Removed and renamed
//! ones need no evidence. A task is `- [ ] 1.1 text`. It serves the requirements whose names it contains, else all of them,
//! because the format has no reference.

use crucible_evidence::SpecFormat;

use super::markdown::{after_word, boxed_item, heading_of, indent, numbered};
use super::{FolderFormat, FolderTexts, OutlineParts, OutlineTask, RequirementText};
use crate::document::{LineKind, scan};

const CHANGES: &str = "openspec/changes";
const SPECS: &str = "openspec/specs";
const SPEC: &str = "spec.md";
const TASKS: &str = "tasks.md";
/// Sections of a delta whose requirements are not to be proven.
const WITHOUT_EVIDENCE: [&str; 2] = ["REMOVED Requirements", "RENAMED Requirements"];

/// The format.
pub(super) struct OpenSpec;

impl FolderFormat for OpenSpec {
    fn format(&self) -> SpecFormat {
        SpecFormat::OpenSpec
    }

    fn places(&self) -> &'static [&'static str] {
        &[CHANGES, SPECS]
    }

    fn files(&self, place: &str) -> &'static [&'static str] {
        if place == SPECS { &[SPEC] } else { &[TASKS] }
    }

    fn nested(&self, place: &str) -> Option<(&'static str, &'static str)> {
        (place == CHANGES).then_some(("specs", SPEC))
    }

    fn read(&self, texts: &FolderTexts) -> OutlineParts {
        let mut found = Vec::new();
        for (path, text) in texts.iter().filter(|(path, _)| path.as_str() != TASKS) {
            let capability = path
                .strip_prefix("specs/")
                .and_then(|rest| rest.strip_suffix("/spec.md"));
            requirements(path, capability, text, &mut found);
        }
        let mut tasks = tasks(texts.get(TASKS).map(String::as_str).unwrap_or_default());
        for task in &mut tasks {
            let is_named = |requirement: &&RequirementText| {
                requirement.title.chars().count() > 3 && task.text.contains(&requirement.title)
            };
            let named: Vec<String> = found
                .iter()
                .filter(is_named)
                .map(|requirement| requirement.id.clone())
                .collect();
            task.serves = if named.is_empty() {
                found
                    .iter()
                    .map(|requirement| requirement.id.clone())
                    .collect()
            } else {
                named
            };
        }
        OutlineParts {
            requirements: found,
            tasks,
        }
    }
}

fn requirements(
    path: &str,
    capability: Option<&str>,
    text: &str,
    found: &mut Vec<RequirementText>,
) {
    let (mut is_open, mut counts) = (false, true);
    for line in scan(text).0 {
        match heading_of(&line) {
            Some((..=2, title)) => {
                is_open = false;
                counts = !WITHOUT_EVIDENCE
                    .iter()
                    .any(|section| section.eq_ignore_ascii_case(title));
            }
            Some((3, title)) => {
                let name = after_word(title, "Requirement:").map(str::trim);
                is_open = counts && name.is_some();
                if let Some(name) = name.filter(|_| counts) {
                    found.push(RequirementText {
                        id: match capability {
                            Some(capability) => format!("{capability}: {name}"),
                            None => name.to_owned(),
                        },
                        title: name.to_owned(),
                        file: path.to_owned(),
                        ..RequirementText::default()
                    });
                }
            }
            Some(_) | None => {
                if let Some(last) = found.last_mut().filter(|_| is_open) {
                    last.push(&line);
                }
            }
        }
    }
}

fn tasks(text: &str) -> Vec<OutlineTask> {
    let mut tasks: Vec<OutlineTask> = Vec::new();
    for line in scan(text).0 {
        if line.kind != LineKind::Text {
            continue;
        }
        if let Some(found) = boxed_item(line.text) {
            if let Some((id, text)) = numbered(found.text) {
                tasks.push(OutlineTask {
                    id,
                    text: text.to_owned(),
                    is_done: found.is_done,
                    ..OutlineTask::default()
                });
            }
        } else if indent(line.text) >= 2
            && let Some(task) = tasks.last_mut()
        {
            task.details.push(line.text.trim().to_owned());
        }
    }
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_is_read_with_all_its_capabilities() {
        let lamps = "# Spec Delta\n\n## ADDED Requirements\n\n### Requirement: Lamps follow hours\nThe system SHALL switch.\n\n\
            #### Scenario: six\n- **WHEN** six\n- **THEN** on\n- Test: t.py::six\n\n\
            ## REMOVED Requirements\n\n### Requirement: Old\n**Reason**: gone\n\n## RENAMED Requirements\n- FROM: `### Requirement: A`\n";
        let log = "## MODIFIED Requirements\n### Requirement: Log\nText\n";
        let plan = "# Tasks\n\n## 1. Group\n\n- [x] 1.1 Add Lamps follow hours\n- [ ] 1.2 Write code\n  with care\n";
        let texts = FolderTexts::from([
            ("specs/lamps/spec.md".to_owned(), lamps.to_owned()),
            ("specs/log/spec.md".to_owned(), log.to_owned()),
            (TASKS.to_owned(), plan.to_owned()),
        ]);
        let parts = OpenSpec.read(&texts);
        let ids: Vec<&str> = parts
            .requirements
            .iter()
            .map(|found| found.id.as_str())
            .collect();
        assert_eq!(ids, ["lamps: Lamps follow hours", "log: Log"]);
        assert!(
            parts.requirements[0]
                .body
                .iter()
                .any(|line| line.contains("t.py::six"))
        );
        assert!(
            !parts.requirements[0]
                .body
                .iter()
                .any(|line| line.contains("Reason"))
        );
        let serves: Vec<usize> = parts.tasks.iter().map(|task| task.serves.len()).collect();
        assert_eq!(serves, [1, 2]);
        assert_eq!(parts.tasks[1].details, ["with care"]);
        let spec =
            "# lamps Specification\n\n## Purpose\np\n\n## Requirements\n\n### Requirement: A\na\n";
        let texts = FolderTexts::from([(SPEC.to_owned(), spec.to_owned())]);
        assert_eq!(OpenSpec.read(&texts).requirements[0].id, "A");
    }
}
