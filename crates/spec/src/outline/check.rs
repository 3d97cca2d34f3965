//! Judges what a format found: ids, references, tests and limits. Pure.

use std::collections::BTreeSet;

use crucible_evidence::{MAX_TESTS, SpecFormat, named_tests};
use crucible_model::{Code, Finding, Verdict, short_line, single_spaced};

use super::{OutlineParts, OutlineRequirement, SpecOutline, text_of};

const DUPLICATE: Code = Code::new("outline-duplicate-id");
const UNKNOWN: Code = Code::new("outline-unknown-requirement");
const TEST: Code = Code::new("outline-test-invalid");
const TOO_MANY: Code = Code::new("outline-too-many");
const EMPTY: Code = Code::new("outline-empty");

/// The most requirements, and the most tasks.
const MAX_ENTRIES: usize = 1000;
/// The most characters of a title.
const MAX_TITLE: usize = 400;
/// The most characters of a value in a finding.
const MAX_SHOWN: usize = 80;

/// Makes an outline of the parts, with a finding for each fault. An entry with a fault is left out.
pub(super) fn outline(
    name: String,
    format: SpecFormat,
    parts: OutlineParts,
    mut verdict: Verdict,
) -> SpecOutline {
    let OutlineParts {
        requirements: texts,
        mut tasks,
    } = parts;
    for (count, what) in [(texts.len(), "requirements"), (tasks.len(), "tasks")] {
        if count > MAX_ENTRIES {
            let hint = format!("it has {count} {what}; at most {MAX_ENTRIES} are read");
            verdict.push(Finding::error(TOO_MANY, name.as_str(), hint));
        }
    }
    let duplicate = |id: &str, what: &str| {
        let hint = format!("two {what} have this id; give each its own");
        Finding::error(DUPLICATE, short_line(id, MAX_SHOWN), hint)
    };
    // A file that could not be read explains references that lead nowhere.
    let is_whole = verdict.passes();
    let mut ids = BTreeSet::new();
    let mut doubles = BTreeSet::new();
    let mut requirements = Vec::new();
    for text in texts.into_iter().take(MAX_ENTRIES) {
        if !ids.insert(text.id.clone()) {
            if doubles.insert(text.id.clone()) {
                verdict.push(duplicate(&text.id, "requirements"));
            }
            continue;
        }
        let lines = text.body.iter().enumerate();
        let outside = lines.filter(|(at, _)| !text.fenced.contains(at));
        let found = named_tests(outside.map(|(_, line)| line.as_str()));
        for (line, error) in found.faults {
            let subject = format!("{}: {}", text.file, short_line(&line, MAX_SHOWN));
            verdict.push(Finding::error(TEST, subject, error.to_string()));
        }
        if found.tests.len() > MAX_TESTS {
            let hint = format!("it names more than {MAX_TESTS} tests; split it");
            verdict.push(Finding::error(TOO_MANY, text.id.as_str(), hint));
        }
        requirements.push(OutlineRequirement {
            id: text.id,
            title: short_line(&single_spaced(&text.title), MAX_TITLE),
            text: text_of(&text.body),
            tests: found.tests.into_iter().take(MAX_TESTS).collect(),
        });
    }
    if requirements.is_empty() && verdict.passes() {
        let hint = format!("no requirement of the format {format} was found in its files");
        verdict.push(Finding::error(EMPTY, name.as_str(), hint));
    }
    tasks.truncate(MAX_ENTRIES);
    let mut seen = BTreeSet::new();
    tasks.retain(|task| {
        let is_new = seen.insert(task.id.to_ascii_lowercase());
        if !is_new {
            verdict.push(duplicate(&task.id, "tasks"));
        }
        is_new
    });
    let mut unknown = BTreeSet::new();
    for task in &mut tasks {
        task.text = single_spaced(&task.text);
        task.serves.retain(|id| {
            let is_known = ids.contains(id);
            if !is_known && is_whole && unknown.insert(id.clone()) {
                let hint = format!("task {} names a requirement that does not exist", task.id);
                verdict.push(Finding::error(UNKNOWN, short_line(id, MAX_SHOWN), hint));
            }
            is_known
        });
        let mut served = BTreeSet::new();
        task.serves.retain(|id| served.insert(id.clone()));
    }
    SpecOutline {
        name,
        format,
        requirements,
        tasks,
        verdict,
    }
}
