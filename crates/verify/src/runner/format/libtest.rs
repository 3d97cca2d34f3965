//! Rust's own harness in `cargo test`: `test a::b ... ok`.
//!
//! Cargo names the target on standard error (`Running tests/it.rs (target/debug/deps/it-0123…)`), the harness
//! lists its tests on standard output. They are matched by order: as many targets as lists, doc tests last.
//! If the numbers differ, names have no target.

use std::collections::BTreeMap;

use crate::results::{TestResults, TestStatus};
use crate::runner::CommandOutput;

/// The tests of one `running N tests`.
type List = Vec<(String, TestStatus)>;

/// Reads the output of a gate.
pub(in crate::runner) fn read(output: &CommandOutput<'_>) -> TestResults {
    let lists = lists(&output.stdout);
    let targets = numbered(
        output
            .stderr
            .lines()
            .filter_map(target)
            .map(str::to_owned)
            .collect(),
    );
    let (first, docs) = lists.split_at(targets.len().min(lists.len()));
    let is_joined = first.len() == targets.len()
        && !first.iter().any(is_of_docs)
        && docs.iter().all(|list| list.is_empty() || is_of_docs(list));
    let mut results = output.new_results();
    for (at, list) in lists.iter().enumerate() {
        for (name, status) in list {
            match targets.get(at).filter(|_| is_joined) {
                Some(target) => super::add(&mut results, &format!("{target}::{name}"), *status),
                None => super::add(&mut results, name, *status),
            }
        }
    }
    results
}

/// Returns whether a list is one of doc tests: each name begins with its file, and ends there for the file's
/// own text.
fn is_of_docs(list: &List) -> bool {
    list.first()
        .is_some_and(|(name, _)| name.contains(" - ") || name.ends_with(" -"))
}

/// The name of the target that cargo is about to run.
fn target(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("Running ")?;
    let path = rest.strip_suffix(')')?.rsplit_once('(')?.1;
    let file = path.rsplit(['/', '\\']).next()?;
    let (name, hash) = file.rsplit_once('-')?;
    (hash.len() >= 16 && hash.bytes().take(16).all(|byte| byte.is_ascii_hexdigit())).then_some(name)
}

/// The names, each that stood before with its number: packages of a workspace may have targets of one name, and so may a package.
fn numbered(names: Vec<String>) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let number = |name: String| {
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 {
            name
        } else {
            format!("{name} #{count}")
        }
    };
    names.into_iter().map(number).collect()
}

/// Takes the lines from the names of doc tests, which move with the text above them. Those of one item are numbered from the top.
fn without_lines(list: Vec<(String, TestStatus)>) -> List {
    let mut parts: Vec<(String, u64, TestStatus)> = Vec::new();
    for (name, status) in list {
        let (name, line) = own_name(&name);
        parts.push((name, line, status));
    }
    parts.sort_by_key(|(_, line, _)| *line);
    let names = numbered(parts.iter().map(|(name, ..)| name.clone()).collect());
    names
        .into_iter()
        .zip(parts)
        .map(|(name, (.., status))| (name, status))
        .collect()
}

fn lists(stdout: &str) -> Vec<List> {
    let mut lists: Vec<List> = Vec::new();
    // Inside of a list, before the outputs of its failed tests.
    let mut open = false;
    let mut pending: Option<&str> = None;
    for line in stdout.lines() {
        if is_announcement(line) {
            lists.push(List::new());
            open = true;
            pending = None;
            continue;
        }
        let Some(list) = lists.last_mut().filter(|_| open) else {
            continue;
        };
        if line == "failures:" || line == "successes:" || line.starts_with("test result: ") {
            open = false;
        } else if let Some((name, status_text)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.split_once(" ... "))
        {
            match status(status_text) {
                Some(status) => list.push((name.to_owned(), status)),
                // With `--nocapture` the output of a test precedes its result.
                None => pending = Some(name),
            }
        } else if let (Some(name), Some(status)) = (pending, status(line)) {
            list.push((name.to_owned(), status));
            pending = None;
        }
    }
    lists.into_iter().map(without_lines).collect()
}

/// `running 3 tests`.
fn is_announcement(line: &str) -> bool {
    let count = line
        .strip_prefix("running ")
        .and_then(|rest| rest.split_once(' '));
    count.is_some_and(|(count, word)| {
        matches!(word, "test" | "tests")
            && !count.is_empty()
            && count.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn status(status_text: &str) -> Option<TestStatus> {
    match status_text.split([' ', ',', ':']).next() {
        Some("ok" | "bench") => Some(TestStatus::Passed),
        Some("FAILED") => Some(TestStatus::Failed),
        Some("ignored") => Some(TestStatus::Skipped),
        _ => None,
    }
}

/// Returns the name without additions of the harness, and the line of a doc test.
fn own_name(name: &str) -> (String, u64) {
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    match name
        .split_once(" (line ")
        .and_then(|(before, rest)| Some((before, rest.split_once(')')?)))
    {
        Some((before, (line, behind))) if line.bytes().all(|byte| byte.is_ascii_digit()) => (
            format!("{before}{behind}"),
            line.parse().unwrap_or_default(),
        ),
        _ => (name.to_owned(), 0),
    }
}
