//! The format of GitHub Spec Kit: `specs/NNN-name/{spec,tasks}.md`.
//!
//! Requirements are the user stories (`US1`) and the entries `**FR-001**`. A task is `- [ ] T001 [P] [US1] text`: it serves
//! its story and the requirements that its text names.

use crucible_evidence::SpecFormat;

use super::markdown::{after_word, boxed_item, heading_of, indent, numbered};
use super::{FolderFormat, FolderTexts, OutlineParts, OutlineTask, RequirementText};
use crate::document::{LineKind, list_item, scan};

const SPEC: &str = "spec.md";
const TASKS: &str = "tasks.md";
/// Prefixes of the ids of requirements. Success criteria (`SC-001`) are goals of the whole spec.
const PREFIXES: [&str; 2] = ["FR-", "NFR-"];

/// The format.
pub(super) struct SpecKit;

impl FolderFormat for SpecKit {
    fn format(&self) -> SpecFormat {
        SpecFormat::SpecKit
    }

    fn places(&self) -> &'static [&'static str] {
        &["specs"]
    }

    fn files(&self, _place: &str) -> &'static [&'static str] {
        &[SPEC, TASKS]
    }

    fn read(&self, texts: &FolderTexts) -> OutlineParts {
        let text = |path: &str| texts.get(path).map(String::as_str).unwrap_or_default();
        OutlineParts {
            requirements: requirements(text(SPEC)),
            tasks: tasks(text(TASKS)),
        }
    }
}

fn requirements(text: &str) -> Vec<RequirementText> {
    let mut found: Vec<RequirementText> = Vec::new();
    let mut is_open = false;
    let mut is_story = false;
    for line in scan(text).0 {
        if let Some((level, title)) = heading_of(&line) {
            if let Some((id, title)) = story(title) {
                found.push(new(id, title));
                (is_open, is_story) = (true, true);
            } else if !is_story || level <= 3 {
                is_open = false;
            }
            continue;
        }
        let item = list_item(line.text).filter(|_| line.kind == LineKind::Text);
        if let Some((id, title)) = item.and_then(entry) {
            found.push(new(id, title));
            (is_open, is_story) = (true, false);
            continue;
        }
        // The next item of the list is not part of the requirement before it.
        if !is_story && item.is_some() && indent(line.text) < 2 {
            is_open = false;
        }
        if let Some(last) = found.last_mut().filter(|_| is_open) {
            last.push(&line);
        }
    }
    found
}

fn new(id: String, title: &str) -> RequirementText {
    RequirementText {
        id,
        title: title.to_owned(),
        file: SPEC.to_owned(),
        ..RequirementText::default()
    }
}

/// Parses `User Story 1 - Title (Priority: P1)`.
fn story(title: &str) -> Option<(String, &str)> {
    let rest = after_word(title, "User Story ")?;
    let (number, title) = numbered(rest)?;
    Some((
        format!("US{number}"),
        title.trim_start_matches(['-', '–', '—', ' ']),
    ))
}

/// Parses `**FR-001**: text`.
fn entry(item: &str) -> Option<(String, &str)> {
    let item = item.trim_start_matches('*');
    let prefix = PREFIXES
        .into_iter()
        .find(|prefix| item.starts_with(prefix))?;
    let rest = item.strip_prefix(prefix)?;
    let end = rest
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(rest.len());
    let (number, text) = rest.split_at(end);
    let text = text.trim_start_matches('*').strip_prefix(':')?;
    let text = text.trim_start_matches('*').trim();
    (number.starts_with(|c: char| c.is_ascii_digit()) && number.len() <= 8)
        .then(|| (format!("{prefix}{number}"), text))
}

fn tasks(text: &str) -> Vec<OutlineTask> {
    let mut tasks: Vec<OutlineTask> = Vec::new();
    for line in scan(text).0 {
        if line.kind != LineKind::Text {
            continue;
        }
        if let Some(found) = boxed_item(line.text) {
            if let Some((id, text)) = task_id(found.text) {
                let (serves, text) = labels(text);
                tasks.push(OutlineTask {
                    id,
                    is_done: found.is_done,
                    serves: serves.into_iter().chain(mentioned(text)).collect(),
                    text: text.to_owned(),
                    details: Vec::new(),
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

/// Splits `T001` from the text.
fn task_id(text: &str) -> Option<(String, &str)> {
    let (id, rest) = text.split_once(' ').unwrap_or((text, ""));
    let digits = id.strip_prefix('T')?;
    let is_id = (1..=6).contains(&digits.len())
        && digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_alphanumeric());
    is_id.then(|| (id.to_owned(), rest.trim()))
}

/// Splits labels such as `[P] [US1]` from the text, and returns the stories.
fn labels(mut text: &str) -> (Vec<String>, &str) {
    let mut stories = Vec::new();
    while let Some((label, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let is_story = label
            .strip_prefix("US")
            .is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()));
        if is_story {
            stories.push(label.to_owned());
        } else if label != "P" {
            break;
        }
        text = rest.trim_start();
    }
    (stories, text)
}

/// The requirements that a text names.
fn mentioned(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let is_id = |word: &&str| {
        PREFIXES.iter().any(|prefix| {
            word.strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    words.filter(is_id).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stories_and_requirements_are_read() {
        let spec = "# Feature Specification: Lamps\n\n## User Scenarios & Testing *(mandatory)*\n\n\
            ### User Story 1 - Lamps follow the hours (Priority: P1)\n\nA gardener sets hours.\n\n**Acceptance Scenarios**:\n\n\
            1. **Given** six, **When** it strikes, **Then** on\n   - Test: tests/test_lamp.py::test_six\n\n---\n\n### Edge Cases\n\n- What if?\n\n\
            ## Requirements *(mandatory)*\n\n### Functional Requirements\n\n\
            - **FR-001**: System MUST switch\n  - Test: tests/test_lamp.py::test_switch\n- **FR-002**: System MUST log\n- plain\n\n\
            ## Success Criteria\n\n- **SC-001**: fast\n";
        let found = requirements(spec);
        let ids: Vec<&str> = found.iter().map(|found| found.id.as_str()).collect();
        assert_eq!(ids, ["US1", "FR-001", "FR-002"]);
        assert_eq!(found[0].title, "Lamps follow the hours (Priority: P1)");
        assert!(found[0].body.iter().any(|line| line.contains("test_six")));
        assert!(!found[0].body.iter().any(|line| line.contains("What if")));
        assert_eq!(found[1].body, ["  - Test: tests/test_lamp.py::test_switch"]);
        assert_eq!(found[2].title, "System MUST log");
        assert!(found[2].body.is_empty());
    }

    #[test]
    fn tasks_name_their_story_and_requirements() {
        let text = "# Tasks\n\n## Phase 1: Setup\n\n- [ ] T001 Create project structure\n- [x] T002 [P] [US1] Add lamp in src/lamp.py (FR-001)\n  with care\n\
            - [ ] no id\n- [ ] T003 [US2][P] b\n```\n- [ ] T004 c\n```\n";
        let found = tasks(text);
        let rows: Vec<_> = found
            .iter()
            .map(|task| (task.id.as_str(), task.is_done, task.serves.join(",")))
            .collect();
        assert_eq!(
            rows,
            [
                ("T001", false, String::new()),
                ("T002", true, "US1,FR-001".to_owned()),
                ("T003", false, "US2".to_owned()),
            ]
        );
        assert_eq!(found[1].text, "Add lamp in src/lamp.py (FR-001)");
        assert_eq!(found[1].details, ["with care"]);
    }
}
