//! The format of Kiro: `.kiro/specs/NAME/{requirements,tasks}.md`.
//!
//! `### Requirement 1` has numbered acceptance criteria, each of which is a requirement here (`1.2`). A requirement without
//! criteria is one itself (`1`). A task is `- [ ] 1.1 text`, with `_Requirements: 1.1, 2_` below it; `2` means all criteria
//! of requirement 2.

use crucible_evidence::SpecFormat;

use super::markdown::{after_word, boxed_item, heading_of, indent, numbered};
use super::{FolderFormat, FolderTexts, OutlineParts, OutlineTask, RequirementText};
use crate::document::{LineKind, list_item, scan};

const REQUIREMENTS: &str = "requirements.md";
const TASKS: &str = "tasks.md";

/// The format.
pub(super) struct Kiro;

impl FolderFormat for Kiro {
    fn format(&self) -> SpecFormat {
        SpecFormat::Kiro
    }

    fn places(&self) -> &'static [&'static str] {
        &[".kiro/specs"]
    }

    fn files(&self, _place: &str) -> &'static [&'static str] {
        &[REQUIREMENTS, TASKS]
    }

    fn read(&self, texts: &FolderTexts) -> OutlineParts {
        let text = |path: &str| texts.get(path).map(String::as_str).unwrap_or_default();
        let requirements = requirements(text(REQUIREMENTS));
        let mut tasks = tasks(text(TASKS));
        for task in &mut tasks {
            task.serves = expanded(&task.serves, &requirements);
        }
        OutlineParts {
            requirements,
            tasks,
        }
    }
}

fn requirements(text: &str) -> Vec<RequirementText> {
    let mut found: Vec<RequirementText> = Vec::new();
    let mut full_requirement_text: Option<RequirementText> = None;
    let mut has_criteria = false;
    let mut is_in_criteria = false;
    let end = |whole: &mut Option<RequirementText>, has: bool, found: &mut Vec<_>| {
        if let Some(whole) = whole.take().filter(|_| !has) {
            found.push(whole);
        }
    };
    for line in scan(text).0 {
        if let Some((level, title)) = heading_of(&line) {
            if let Some((id, title)) = after_word(title, "Requirement ").and_then(numbered) {
                end(&mut full_requirement_text, has_criteria, &mut found);
                full_requirement_text = Some(new(id, title));
                (has_criteria, is_in_criteria) = (false, false);
            } else if level <= 2 {
                end(&mut full_requirement_text, has_criteria, &mut found);
                (has_criteria, is_in_criteria) = (false, false);
            } else {
                is_in_criteria = after_word(title, "Acceptance Criteria").is_some();
            }
            continue;
        }
        let Some(current) = &mut full_requirement_text else {
            continue;
        };
        let criterion = Some(line.text)
            .filter(|text| is_in_criteria && line.kind == LineKind::Text && indent(text) < 2)
            .and_then(|text| Some((numbered(text)?.0, list_item(text)?)));
        if let Some((number, text)) = criterion {
            found.push(new(format!("{}.{number}", current.id), text));
            has_criteria = true;
        } else if is_in_criteria && has_criteria {
            if let Some(last) = found.last_mut() {
                last.push(&line);
            }
        } else {
            current.push(&line);
        }
    }
    end(&mut full_requirement_text, has_criteria, &mut found);
    found
}

fn new(id: String, title: &str) -> RequirementText {
    RequirementText {
        title: if title.is_empty() {
            format!("Requirement {id}")
        } else {
            title.to_owned()
        },
        id,
        file: REQUIREMENTS.to_owned(),
        ..RequirementText::default()
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
            continue;
        }
        let Some(task) = tasks.last_mut() else {
            continue;
        };
        let item = list_item(line.text).unwrap_or(line.text.trim());
        match after_word(item.trim_matches('_').trim(), "Requirements:") {
            Some(ids) => {
                let ids = ids
                    .split(',')
                    .map(|id| id.trim().trim_end_matches('_').trim());
                task.serves
                    .extend(ids.filter(|id| !id.is_empty()).map(str::to_owned));
            }
            None => task.details.push(item.to_owned()),
        }
    }
    tasks
}

/// Replaces the number of a requirement by those of its criteria.
fn expanded(serves: &[String], requirements: &[RequirementText]) -> Vec<String> {
    let mut ids = Vec::new();
    for id in serves {
        let prefix = format!("{id}.");
        let criteria = requirements
            .iter()
            .filter(|requirement| requirement.id.starts_with(&prefix));
        let criteria: Vec<String> = criteria.map(|requirement| requirement.id.clone()).collect();
        if criteria.is_empty() {
            ids.push(id.clone());
        } else {
            ids.extend(criteria);
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criteria_are_requirements_and_tasks_name_them() {
        let text = "# Requirements Document\n\n## Introduction\n\nLamps.\n\n## Requirements\n\n### Requirement 1: Hours\n\n\
            **User Story:** As a gardener, I want hours.\n\n#### Acceptance Criteria\n\n\
            1. WHEN it is six THE SYSTEM SHALL switch on\n   - Test: t.py::six\n2. IF it rains THEN the system SHALL wait\n\n\
            ### Requirement 2\n\nNo criteria.\nTest: t.py::two\n\n## Notes\n\n1. none\n";
        let plan = "# Implementation Plan\n\n- [x] 1. Hours\n- [ ] 1.1 Switch\n  - Create `lamp.py`\n  - _Requirements: 1.1, 2_\n\
            - [ ]* 2. All\n  - _Requirements: 1_\n";
        let texts = FolderTexts::from([
            (REQUIREMENTS.to_owned(), text.to_owned()),
            (TASKS.to_owned(), plan.to_owned()),
        ]);
        let parts = Kiro.read(&texts);
        let ids: Vec<&str> = parts
            .requirements
            .iter()
            .map(|found| found.id.as_str())
            .collect();
        assert_eq!(ids, ["1.1", "1.2", "2"]);
        assert_eq!(
            parts.requirements[0].title,
            "WHEN it is six THE SYSTEM SHALL switch on"
        );
        assert_eq!(parts.requirements[0].body, ["   - Test: t.py::six"]);
        assert_eq!(parts.requirements[2].title, "Requirement 2");
        let rows: Vec<_> = parts
            .tasks
            .iter()
            .map(|task| (task.id.as_str(), task.is_done, task.serves.join(",")))
            .collect();
        assert_eq!(
            rows,
            [
                ("1", true, String::new()),
                ("1.1", false, "1.1,2".to_owned()),
                ("2", false, "1.1,1.2".to_owned()),
            ]
        );
        assert_eq!(parts.tasks[1].details, ["Create `lamp.py`"]);
    }
}
