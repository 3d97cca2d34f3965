//! The traceability table: which tasks and findings belong to which requirement. Code writes it from the
//! artifacts alone.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::{RequirementId, format_id, mentions, parse_ids};
use super::lines::{LineKind, scan};
use super::requirements::Requirements;
use super::review::{Target, read_review};
use super::tasks::read_tasks;

/// The heading above the table.
pub(crate) const TRACE_HEADING: &str = "## Traceability";
/// The most characters of a title in the table.
const MAX_TITLE_LEN: usize = 60;

/// The section: one row per requirement, and one for findings about no particular requirement.
pub(crate) fn traceability(requirements: &str, tasks: &str, review: &str) -> String {
    let requirements = Requirements::of_artifact(requirements);
    let tasks = read_tasks(&tasks.replace("\r\n", "\n")).tasks;
    let remarks = read_review(&review.replace("\r\n", "\n")).remarks;
    let mut served: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let mut by_task: BTreeMap<u32, &BTreeSet<u32>> = BTreeMap::new();
    let mut by_file: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for task in &tasks {
        for file in &task.files {
            by_file.entry(file).or_default().extend(&task.serves);
        }
        let Some(id) = task.id else { continue };
        by_task.insert(id, &task.serves);
        for requirement in &task.serves {
            served
                .entry(*requirement)
                .or_default()
                .push(format_id(id, 'T'));
        }
    }
    let ids = requirements.ids();
    let mut found: BTreeMap<Option<u32>, Vec<String>> = BTreeMap::new();
    for (place, remark) in remarks.iter().enumerate() {
        let target = match &remark.target {
            Target::Artifact(name) | Target::Unknown(name) => name.as_str(),
            Target::File(path) => path.as_str(),
        };
        let mut concerned: BTreeSet<u32> = parse_ids(target, 'R');
        concerned.extend(parse_ids(&remark.text, 'R'));
        let through_tasks = [target, remark.text.as_str()]
            .into_iter()
            .flat_map(|text| mentions(text, 'T'));
        concerned.extend(
            through_tasks
                .filter_map(|(_, task)| by_task.get(&task))
                .flat_map(|serves| serves.iter()),
        );
        concerned.extend(by_file.get(target).into_iter().flatten());
        concerned.retain(|id| ids.contains(id));
        let name = format!(
            "{} [{}]",
            format_id(u32::try_from(place + 1).unwrap_or(u32::MAX), 'F'),
            remark.severity
        );
        if concerned.is_empty() {
            found.entry(None).or_default().push(name);
        } else {
            for id in concerned {
                found.entry(Some(id)).or_default().push(name.clone());
            }
        }
    }
    let mut text =
        format!("{TRACE_HEADING}\n\n| requirement | tasks | findings |\n|---|---|---|\n");
    for block in &requirements.blocks {
        let title = crucible_model::short_line(&block.title, MAX_TITLE_LEN).replace('|', "\\|");
        let id = RequirementId(block.id);
        let (tasks, findings) = (
            cell(served.get(&block.id)),
            cell(found.get(&Some(block.id))),
        );
        text.push_str(&format!("| {id} {title} | {tasks} | {findings} |\n"));
    }
    if let Some(others) = found.get(&None) {
        text.push_str(&format!(
            "| (none in particular) | – | {} |\n",
            others.join(", ")
        ));
    }
    text
}

/// The text of an answer without such a section, if it contains one.
pub(crate) fn without_trace(body: &str) -> Option<String> {
    let mut level = None;
    let mut cut = false;
    let mut body_lines = Vec::new();
    for line in scan(body).0 {
        if let LineKind::Heading { level: own, title } = line.kind {
            if level.is_some_and(|outer| own <= outer) {
                level = None;
            }
            if title.to_ascii_lowercase().starts_with("traceability") {
                level = Some(level.map_or(own, |outer: usize| outer.min(own)));
                cut = true;
            }
        }
        if level.is_none() {
            body_lines.push(line);
        }
    }
    cut.then(|| super::lines::tidied(body_lines))
}

fn cell(names: Option<&Vec<String>>) -> String {
    names.map_or_else(|| "–".to_owned(), |names| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_row_lists_tasks_and_findings_per_requirement() {
        let requirements =
            "# Requirements: x\n\n### R-001: A | b\n\n### R-002: B\n\n### R-004: C\n";
        let tasks = "# Tasks: x\n\n- [ ] T-001 (R-001, R-002): a\n  files: src/a.rs\n- [ ] T-002 (R-002): b\n";
        let review = "# Review: x\n\n## Findings\n\n- F-001 [major] `src/a.rs`: x\n- F-002 [minor] T-002: y\n\
                      - F-003 [minor] design: z\n- F-004 [blocker] R-004: no task, R-009 neither\n";
        let table = traceability(requirements, tasks, review);
        assert_eq!(
            table,
            "## Traceability\n\n| requirement | tasks | findings |\n|---|---|---|\n\
             | R-001 A \\| b | T-001 | F-001 [major] |\n\
             | R-002 B | T-001, T-002 | F-001 [major], F-002 [minor] |\n\
             | R-004 C | – | F-004 [blocker] |\n\
             | (none in particular) | – | F-003 [minor] |\n"
        );
    }

    #[test]
    fn a_table_of_the_model_is_cut() {
        let body = "## Summary\n\nText\n\n## Traceability matrix\n\n| a |\n\n### more\nx\n## Open points\n\n- y";
        assert_eq!(
            without_trace(body).unwrap(),
            "## Summary\n\nText\n\n## Open points\n\n- y"
        );
        assert_eq!(without_trace("## Summary\n\nText"), None);
    }
}
