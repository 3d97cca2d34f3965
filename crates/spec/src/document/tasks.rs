//! The tasks: ordered steps, each for existing requirements, numbered by code.

use std::collections::{BTreeMap, BTreeSet};

use crucible_llm::ReceiptWarning;
use crucible_model::{Finding, RepoPath, single_spaced};

use super::answer::{Draft, trimmed};
use super::design::unknown_references;
use super::fault::Fault;
use super::filler::is_filler;
use super::ids::{Lead, format_id, format_ids, leading, mentions, parse_ids};
use super::lines::{LineKind, list_item, scan};
use super::stray::{Standing, headed};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    /// The number in the answer, if any.
    pub(crate) id: Option<u32>,
    /// The requirements that it serves.
    pub(crate) serves: BTreeSet<u32>,
    /// The step, on one line.
    pub(crate) text: String,
    /// The files that it changes, as written.
    pub(crate) files: Vec<String>,
    /// Its continuation lines.
    details: Vec<String>,
}

/// A parsed list of tasks.
#[derive(Debug)]
pub(crate) struct TaskList {
    pub(crate) tasks: Vec<Task>,
    /// The number of lines that belong to no task.
    left_out: u64,
    /// Lines that begin like a task but are not valid ones.
    stray: Vec<String>,
}

/// Parses the document of an answer. `known` are the ids of the requirements, if they are known.
///
/// # Errors
///
/// The findings about the answer.
pub(crate) fn tasks(
    draft: Draft,
    fallback_title: &str,
    known: Option<&BTreeSet<u32>>,
) -> Result<(String, usize, Vec<ReceiptWarning>), Vec<Finding>> {
    let mut warnings = draft.warnings;
    let TaskList {
        mut tasks,
        left_out,
        stray,
    } = read_tasks(&draft.body);
    let mut findings: Vec<Finding> = stray
        .iter()
        .map(|line| Fault::LineForm.into_finding(line))
        .collect();
    if tasks.is_empty() {
        findings.push(Fault::NoEntries.into_finding("no task"));
        return Err(findings);
    }
    if left_out > 0 {
        warnings.push(trimmed(left_out, "task"));
    }
    let mut numbers = BTreeMap::new();
    for (place, task) in tasks.iter().enumerate() {
        if let Some(id) = task.id
            && numbers.insert(id, number(place)).is_some()
        {
            findings.push(Fault::DoubleId.into_finding(&format_id(id, 'T')));
        }
        let name = format_id(number(place), 'T');
        if task.serves.is_empty() {
            findings.push(
                Fault::LineForm
                    .into_finding(&format!("{name} names no requirement: {}", task.text)),
            );
        }
        if is_filler(&task.text) {
            findings.push(Fault::Incomplete.into_finding(&format!("{name} has no text")));
        }
        let bad = task
            .files
            .iter()
            .filter(|file| file.parse::<RepoPath>().is_err());
        findings.extend(bad.map(|file| Fault::BadPath.into_finding(file)));
    }
    if let Some(known) = known {
        let served: BTreeSet<u32> = tasks
            .iter()
            .flat_map(|task| task.serves.iter().copied())
            .collect();
        findings.extend(unknown_references(&served, known));
        findings.extend(
            known
                .difference(&served)
                .map(|id| Fault::Unserved.into_finding(&format_id(*id, 'R'))),
        );
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    let mut text = format!(
        "# Tasks: {}\n\n",
        draft.title.as_deref().unwrap_or(fallback_title)
    );
    let count = tasks.len();
    for (place, task) in tasks.iter_mut().enumerate() {
        let name = format_id(number(place), 'T');
        let serves = format_ids(task.serves.iter().copied(), 'R');
        text.push_str(&format!(
            "- [ ] {name} ({serves}): {}\n",
            renumbered(&task.text, &numbers)
        ));
        if !task.files.is_empty() {
            text.push_str(&format!("  files: {}\n", task.files.join(", ")));
        }
        for detail in &task.details {
            text.push_str(&format!("  {}\n", renumbered(detail, &numbers)));
        }
    }
    Ok((text, count, warnings))
}

/// Parses the tasks of a document or an answer.
pub(crate) fn read_tasks(body: &str) -> TaskList {
    let mut tasks: Vec<Task> = Vec::new();
    let mut left_out = 0;
    let mut stray = Vec::new();
    for line in scan(body).0 {
        let indented = line.text.starts_with([' ', '\t']);
        let item = list_item(line.text).filter(|_| line.kind == LineKind::Text);
        let is_read = (item.is_some() && !indented)
            || matches!(line.kind, LineKind::Heading { title, .. } if leading(title, 'T').is_some());
        if !is_read && headed(line.text, 'T', Standing::Within).is_some() {
            stray.push(line.text.trim().to_owned());
            continue;
        }
        match (line.kind, tasks.last_mut()) {
            (LineKind::Blank | LineKind::Rule, _) => {}
            (LineKind::Text, Some(task)) if indented || files(line.text).is_some() => {
                task.take(line.text)
            }
            (LineKind::Text, _) if item.is_some() && !indented => {
                tasks.push(task(item.unwrap_or_default()))
            }
            (LineKind::Fenced, Some(task)) => task.details.push(line.text.to_owned()),
            (LineKind::Heading { title, .. }, _) if leading(title, 'T').is_some() => {
                tasks.push(task(title))
            }
            _ => left_out += 1,
        }
    }
    TaskList {
        tasks,
        left_out,
        stray,
    }
}

impl Task {
    /// Its continuation lines, without those that name files.
    pub(crate) fn details(&self) -> &[String] {
        &self.details
    }

    fn take(&mut self, line: &str) {
        match files(line) {
            Some(files) => {
                let names = files
                    .split(',')
                    .map(|name| name.trim().trim_matches('`'))
                    .filter(|name| !name.is_empty());
                let names = names.filter(|name| {
                    !matches!(name.to_ascii_lowercase().as_str(), "none" | "n/a" | "-")
                });
                self.files.extend(names.map(str::to_owned));
            }
            None => self.details.push(line.trim().to_owned()),
        }
    }
}

/// Parses the text after a list marker: `[ ] T-001 (R-001, R-002): text`.
fn task(item: &str) -> Task {
    let item = item
        .strip_prefix("[ ]")
        .or_else(|| item.strip_prefix("[x]"))
        .or_else(|| item.strip_prefix("[X]"))
        .unwrap_or(item);
    let item = item.trim().trim_start_matches(['*', '`']).trim();
    let (lead, rest) = match leading(item, 'T') {
        Some((lead, rest)) => (Some(lead), rest),
        None => (None, item),
    };
    let id = match lead {
        Some(Lead::Numbered(id)) => Some(id),
        Some(Lead::New) | None => None,
    };
    let grouped = rest
        .strip_prefix(['(', '['])
        .and_then(|rest| rest.split_once([')', ']']));
    let (serves, text) = match grouped.filter(|(group, _)| !parse_ids(group, 'R').is_empty()) {
        Some((group, text)) => (parse_ids(group, 'R'), text),
        None => (parse_ids(rest, 'R'), rest),
    };
    let text = single_spaced(text.trim_start_matches(['*', '`', ' ', ':', '-', '–', '—']));
    Task {
        id,
        serves,
        text,
        files: Vec::new(),
        details: Vec::new(),
    }
}

/// The text after `files:`.
fn files(line: &str) -> Option<&str> {
    let line = list_item(line)
        .unwrap_or(line)
        .trim()
        .trim_start_matches('*');
    let (word, rest) = line.split_once(':')?;
    matches!(word.trim().to_ascii_lowercase().as_str(), "files" | "file")
        .then(|| rest.trim_start_matches('*'))
}

/// Replaces the ids of tasks by their new ones.
fn renumbered(text: &str, numbers: &BTreeMap<u32, u32>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (range, id) in mentions(text, 'T') {
        if let Some(number) = numbers.get(&id) {
            out.push_str(text.get(from..range.start).unwrap_or_default());
            out.push_str(&format_id(*number, 'T'));
            from = range.end;
        }
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

fn number(place: usize) -> u32 {
    u32::try_from(place + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_tasks(
        body: &str,
        known: &[u32],
    ) -> Result<(String, usize, Vec<ReceiptWarning>), Vec<Finding>> {
        let known = known.iter().copied().collect();
        tasks(
            Draft {
                title: None,
                body: body.to_owned(),
                warnings: Vec::new(),
            },
            "export",
            Some(&known),
        )
    }

    fn codes(body: &str, known: &[u32]) -> Vec<String> {
        build_tasks(body, known)
            .unwrap_err()
            .iter()
            .map(|finding| finding.code.to_string())
            .collect()
    }

    #[test]
    fn tasks_are_numbered_by_code_and_references_follow() {
        let body = "## Backend\n- [x] T-004 (R-1): Write it\n  files: `src/a.rs`, src/b.rs\n  - after nothing\n\
                    * **T-002** (R-001, R-2): Test T-004, not T-9\nFiles: none\n1. Ship (R-002)\n### T-7: R-2 announce\n";
        let (text, count, warnings) = build_tasks(body, &[1, 2]).unwrap();
        assert_eq!(
            text,
            "# Tasks: export\n\n\
             - [ ] T-001 (R-001): Write it\n  files: src/a.rs, src/b.rs\n  - after nothing\n\
             - [ ] T-002 (R-001, R-002): Test T-001, not T-9\n\
             - [ ] T-003 (R-002): Ship (R-002)\n\
             - [ ] T-004 (R-002): R-2 announce\n"
        );
        assert_eq!((count, warnings.len()), (4, 1));
        assert_eq!(warnings[0].message, "1 line outside of the tasks left out");
        assert_eq!(
            build_tasks(text.split_once("\n\n").unwrap().1, &[1, 2])
                .unwrap()
                .0,
            text,
            "reading it again changes nothing"
        );
    }

    #[test]
    fn requirement_without_a_task_is_named() {
        let findings = build_tasks("- [ ] T-001 (R-001): a", &[1, 2, 3]).unwrap_err();
        let subjects: Vec<_> = findings
            .iter()
            .map(|finding| finding.subject.as_str())
            .collect();
        assert_eq!(subjects, ["R-002", "R-003"]);
    }

    #[test]
    fn malformed_task_is_never_dropped() {
        for hidden in [
            "T-002 (R-001): Drop the old table before release",
            "**T-002** (R-001): Drop the old table before release",
            "[ ] T-002 (R-001): Drop the old table before release",
            "| T-002 | R-001 | Drop the old table before release |",
            "> - [ ] T-002 (R-001): Drop the old table before release",
            "  - [ ] T-002 (R-001): Drop the old table before release",
            "  T-002: Drop the old table before release",
            "```\n- [ ] T-002 (R-001): Drop the old table before release\n```",
        ] {
            for body in [
                format!("- [ ] T-001 (R-001): a\n\n{hidden}\n"),
                format!("{hidden}\n\n- [ ] T-001 (R-001): a\n"),
            ] {
                assert_eq!(codes(&body, &[1]), ["spec-answer-line-form"], "{body}");
            }
        }
        let (text, ..) =
            build_tasks("- [ ] T-001 (R-001): a\n  T-001 comes first\n", &[1]).unwrap();
        assert!(text.ends_with("  T-001 comes first\n"), "{text}");
    }

    #[test]
    fn invalid_tasks_are_reported() {
        assert_eq!(codes("Nothing to do.", &[1]), ["spec-answer-no-entries"]);
        assert_eq!(
            codes("- [ ] T-001 (R-1): a\n- [ ] T-1 (R-1): b", &[1]),
            ["spec-answer-double-id"]
        );
        assert_eq!(
            codes("- [ ] T-001 (R-9): a", &[]),
            ["spec-answer-unknown-id"]
        );
        assert_eq!(codes("- [ ] T-001: a", &[]), ["spec-answer-line-form"]);
        for nothing in ["", " TODO", " .", " R-001", " I cannot help with that."] {
            let body = format!("- [ ] T-001 (R-1):{nothing}");
            assert_eq!(
                codes(&body, &[1]),
                ["spec-answer-incomplete"],
                "{nothing:?}"
            );
        }
        assert_eq!(
            codes("- [ ] T-001 (R-1): a\n  files: ../x, /etc/passwd", &[1]),
            ["spec-answer-bad-path"; 2]
        );
    }
}
