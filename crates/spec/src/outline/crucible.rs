//! Crucible's own format: `.crucible/specs/ID/artifacts/`.

use crucible_evidence::SpecFormat;

use super::{FolderFormat, FolderTexts, OutlineParts, OutlineTask, RequirementText};
use crate::document::{LineKind, RequirementId, Requirements, read_tasks, scan};

const REQUIREMENTS: &str = "artifacts/00-requirements.md";
const TASKS: &str = "artifacts/20-tasks.md";

/// The format.
pub(super) struct Crucible;

impl FolderFormat for Crucible {
    fn format(&self) -> SpecFormat {
        SpecFormat::Crucible
    }

    fn places(&self) -> &'static [&'static str] {
        &[".crucible/specs"]
    }

    fn files(&self, _place: &str) -> &'static [&'static str] {
        &[REQUIREMENTS, TASKS]
    }

    fn read(&self, texts: &FolderTexts) -> OutlineParts {
        let text = |path: &str| texts.get(path).map(String::as_str).unwrap_or_default();
        let document = Requirements::of_artifact(text(REQUIREMENTS));
        let requirements = document.blocks.iter().map(|block| {
            let mut requirement = RequirementText {
                id: RequirementId(block.id).to_string(),
                title: block.title.clone(),
                file: REQUIREMENTS.to_owned(),
                ..RequirementText::default()
            };
            let body = block.text.split_once('\n').map_or("", |(_, body)| body);
            scan(body).0.iter().for_each(|line| requirement.push(line));
            requirement
        });
        let tasks = read_tasks(text(TASKS)).tasks;
        OutlineParts {
            requirements: requirements.collect(),
            tasks: tasks
                .into_iter()
                .zip(1..)
                .map(|(task, place)| {
                    let serves = task.serves.iter().map(|id| RequirementId(*id).to_string());
                    let mut details = Vec::new();
                    if !task.files.is_empty() {
                        details.push(format!("Files: {}", task.files.join(", ")));
                    }
                    details.extend(task.details().iter().cloned());
                    OutlineTask {
                        id: format!("T-{:03}", task.id.unwrap_or(place)),
                        serves: serves.collect(),
                        is_done: is_checked(text(TASKS), task.id),
                        text: task.text,
                        details,
                    }
                })
                .collect(),
        }
    }
}

/// Whether the box of the task with this number is checked.
fn is_checked(text: &str, id: Option<u32>) -> bool {
    let Some(id) = id else { return false };
    let name = format!("T-{id:03}");
    scan(text)
        .0
        .iter()
        .filter(|line| line.kind == LineKind::Text)
        .filter_map(|line| super::markdown::boxed_item(line.text))
        .any(|item| item.is_done && item.text.starts_with(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_are_read_with_their_tests() {
        let requirements = "# Requirements: x\n\n### R-001: Area\n\nThe area.\n- Test: t.py::a\n\n```\n- Test: no.py::b\n```\n\n### R-002: B\nb\n";
        let tasks = "# Tasks: x\n\n- [x] T-001 (R-001): Multiply\n  files: src/a.py\n- [ ] T-002 (R-001, R-002): Test it\n  more\n";
        let texts = FolderTexts::from([
            (REQUIREMENTS.to_owned(), requirements.to_owned()),
            (TASKS.to_owned(), tasks.to_owned()),
        ]);
        let parts = Crucible.read(&texts);
        assert_eq!(parts.requirements[0].id, "R-001");
        assert_eq!(parts.requirements[0].fenced.len(), 3);
        assert_eq!(parts.requirements.len(), 2);
        let [first, second] = &parts.tasks[..] else {
            panic!("{:?}", parts.tasks)
        };
        assert_eq!((first.id.as_str(), first.is_done), ("T-001", true));
        assert_eq!(first.details, ["Files: src/a.py"]);
        assert_eq!(second.serves, ["R-001", "R-002"]);
        assert_eq!(
            (second.is_done, &second.details[..]),
            (false, &["more".to_owned()][..])
        );
    }
}
