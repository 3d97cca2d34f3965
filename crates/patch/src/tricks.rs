//! What a patch brings in that makes tests pass without doing what they test.
//!
//! Only what there is more of afterwards counts, over all touched files together: a construct that stays, moves or
//! is edited was not added by the patch. What honest code does too is a warning; the rest is refused, whatever
//! the plan names: naming a file lets its tests be changed, not the way in which they are run.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::{Code, Finding, RepoPath};

use crate::class::is_test_path;
use crate::hidden::hidden_characters;
use crate::patch::{Change, Content, FilePatch, Files, LineKind, Patch};
use crate::policy::{Policy, PolicySource};
use crate::source::{
    Confidence, Detection, Included, Language, Reach, Role, Tampering, definitions, detections,
    doctests, included, may_be_doctest, may_matter,
};

/// How often each construct stands in one text.
type Counts = BTreeMap<Detection, i64>;

/// Finds what `patch` brings in. `before` and `after` are what the judge was given.
pub(crate) fn judge_added(
    patch: &Patch,
    policy: &Policy,
    before: &Files,
    after: &Files,
) -> Vec<Finding> {
    let texts: Vec<Text<'_>> = patch
        .files
        .iter()
        .filter_map(|file| Text::new(file, before, after))
        .collect();
    let mut findings = constructs(&texts, policy);
    findings.extend(hidden_characters(patch, policy, after));
    findings.extend(lost_examples(&texts, policy));
    findings.extend(read_from_outside(patch, policy, before, after));
    findings
}

/// One touched source file, before and after.
struct Text<'a> {
    file: &'a FilePatch,
    language: Language,
    old: Option<(&'a RepoPath, &'a [u8])>,
    new: Option<&'a [u8]>,
}

impl<'a> Text<'a> {
    fn new(file: &'a FilePatch, before: &'a Files, after: &'a Files) -> Option<Self> {
        let language = Language::from_path(&file.path).filter(|_| file.content == Content::Text)?;
        // What is copied stays where it was.
        let old = file
            .old_path()
            .filter(|_| !matches!(file.change, Change::Copy { .. }));
        let old = old
            .and_then(|path| before.get_key_value(path))
            .map(|(path, text)| (path, text.as_slice()));
        let new = after
            .get(&file.path)
            .filter(|_| file.change != Change::Delete)
            .map(Vec::as_slice);
        Some(Self {
            file,
            language,
            old,
            new,
        })
    }
}

/// Whether one of the lines that the patch adds or removes may do what `matters` says. A copy or a rename need not
/// show the lines that it brings to another place.
fn touches(file: &FilePatch, matters: impl Fn(&[u8]) -> bool) -> bool {
    let mut lines = file.hunks.iter().flat_map(crate::patch::Hunk::lines);
    !matches!(file.change, Change::Modify)
        || lines.any(|line| line.kind != LineKind::Context && matters(line.text))
}

fn constructs(texts: &[Text<'_>], policy: &Policy) -> Vec<Finding> {
    let mut total = Counts::new();
    let mut by_file: Vec<(&RepoPath, Counts)> = Vec::new();
    for text in texts
        .iter()
        .filter(|text| touches(text.file, |line| may_matter(text.language, line)))
    {
        let mut counts = Counts::new();
        if let Some((path, old)) = text.old {
            let role = Role::new(text.language, path, Some(old));
            for detection in detections(text.language, role, old) {
                *counts.entry(detection).or_default() -= 1;
            }
        }
        if let Some(new) = text.new {
            let role = Role::new(text.language, &text.file.path, text.old.map(|(_, old)| old));
            for detection in detections(text.language, role, new) {
                *counts.entry(detection).or_default() += 1;
            }
        }
        for (detection, count) in &counts {
            *total.entry(detection.clone()).or_default() += count;
        }
        by_file.push((&text.file.path, counts));
    }
    let is_ignored = |detection: &Detection| detection.test.is_some();
    let old_tests: BTreeSet<String> = if total.keys().any(is_ignored) {
        let old = texts
            .iter()
            .filter_map(|text| Some((text.language, text.old?.1)));
        old.flat_map(|(language, old)| definitions(language, old))
            .map(|(known, _)| known.name)
            .collect()
    } else {
        BTreeSet::new()
    };
    let concerns = |detection: &Detection| {
        detection
            .test
            .as_ref()
            .is_none_or(|test| old_tests.contains(test))
    };
    let mut findings = Vec::new();
    for (path, counts) in by_file {
        let more = counts
            .into_iter()
            .filter(|(detection, count)| *count > 0 && total.get(detection) > Some(&0));
        let more = more.map(|(detection, _)| detection).filter(concerns);
        findings.extend(more.map(|detection| finding(&detection, path, policy)));
    }
    findings.dedup();
    findings
}

fn finding(detection: &Detection, path: &RepoPath, policy: &Policy) -> Finding {
    let (code, hint) = match detection.trick {
        Tampering::Exit => (
            Code::new("patch-exits-process"),
            "the end of the process ends the tests with it; return an error instead",
        ),
        Tampering::Shadow => (
            Code::new("patch-assertion-replaced"),
            "leave the assertions that tests are written with as they are",
        ),
        Tampering::TestAware => (
            Code::new("patch-test-aware"),
            "make the code do the same whether it is tested or used",
        ),
        Tampering::Disabled => (
            Code::new("patch-test-disabled"),
            "let every test run, and let its result count",
        ),
        Tampering::Report => (
            Code::new("patch-prints-report"),
            "leave the words of a test runner's report to the runner",
        ),
        Tampering::HiddenName => (
            Code::new("patch-hides-name"),
            "write the name of what is called as it is",
        ),
        Tampering::Replaced => (
            Code::new("patch-test-replaced"),
            "leave the names of tests to the tests",
        ),
    };
    let subject = format!("{} in {path}", detection.what);
    // Whoever names a file that holds no tests may mean its end, too.
    let is_meant = detection.trick == Tampering::Exit && policy.names(path) && !is_test_path(path);
    match detection.weight {
        Confidence::Certain if !is_meant => Finding::error(code, subject, hint),
        Confidence::Certain | Confidence::Doubtful => Finding::warning(code, subject, hint),
    }
}

/// The code of a changed example in documentation that runs as a test; the subject is the file.
pub const EXAMPLE_CHANGED: Code = Code::new("patch-doctest-changed");

/// Examples in documentation are tests too: fewer of them prove less, and changed ones prove something else.
fn lost_examples(texts: &[Text<'_>], policy: &Policy) -> Vec<Finding> {
    let mut balance: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    let mut removed_examples: Vec<(&RepoPath, Vec<Vec<u8>>)> = Vec::new();
    let touched = texts
        .iter()
        .filter(|text| touches(text.file, |line| may_be_doctest(text.language, line)));
    for text in touched.filter(|text| text.file.change != Change::Delete) {
        let old = text
            .old
            .map(|(_, old)| doctests(text.language, old))
            .unwrap_or_default();
        for example in &old {
            *balance.entry(example.clone()).or_default() -= 1;
        }
        for example in text
            .new
            .map(|new| doctests(text.language, new))
            .unwrap_or_default()
        {
            *balance.entry(example).or_default() += 1;
        }
        removed_examples.push((&text.file.path, old));
    }
    let fewer = balance.values().sum::<i64>() < 0;
    let is_lost = |example: &Vec<u8>| balance.get(example).is_some_and(|count| *count < 0);
    let files = removed_examples
        .into_iter()
        .filter(|(_, old)| old.iter().any(is_lost));
    files
        .map(|(path, _)| {
            if fewer && policy.may_drop.is_empty() && !policy.names(path) {
                let naming = policy.source.naming_hint();
                let hint = format!("an example that was run as a test is gone; keep it, or {naming}");
                Finding::error(EXAMPLE_CHANGED, path.to_string(), hint)
            } else {
                let hint = "an example that is run as a test changed; see that it still shows what it showed";
                Finding::warning(EXAMPLE_CHANGED, path.to_string(), hint)
            }
        })
        .collect()
}

/// Files outside of the repository that what is built would hold, or whatever loads the sources would run, and constructs of which
/// nobody can tell what they read. Naming a file never lifts the first. It lifts the second where a person names it: a plan names
/// files to change them, and the author of the plan is not trusted here.
fn read_from_outside(
    patch: &Patch,
    policy: &Policy,
    before: &Files,
    after: &Files,
) -> Vec<Finding> {
    let mut olds: Vec<(&RepoPath, &[u8])> = Vec::new();
    let mut news: Vec<(&RepoPath, &[u8])> = Vec::new();
    for file in patch
        .files
        .iter()
        .filter(|file| file.content == Content::Text)
    {
        let stays = |path: &&RepoPath| {
            !matches!(file.change, Change::Copy { .. }) && before.contains_key(*path)
        };
        let old = file.old_path().filter(stays);
        olds.extend(old.and_then(|path| Some((path, before.get(path)?.as_slice()))));
        let new = after
            .get(&file.path)
            .filter(|_| file.change != Change::Delete);
        news.extend(new.map(|new| (&file.path, new.as_slice())));
    }
    let mut balance: BTreeMap<Included, i64> = BTreeMap::new();
    for seen in included(&olds).into_iter().flat_map(|(_, seen)| seen) {
        *balance.entry(seen).or_default() -= 1;
    }
    let mut brought: Vec<(&RepoPath, BTreeSet<Included>)> = Vec::new();
    for (path, new) in included(&news) {
        for seen in &new {
            *balance.entry(seen.clone()).or_default() += 1;
        }
        brought.push((path, new.into_iter().collect()));
    }
    let is_more = |seen: &Included| balance.get(seen).is_some_and(|count| *count > 0);
    let code = || Code::new("patch-reads-outside");
    let finding = |path: &RepoPath, seen: Included| {
        let subject = format!("{} in {path}", seen.what());
        let is_permitted = policy.source != PolicySource::Plan && policy.names(path);
        match seen.reach {
            Reach::Outside => {
                let hint = "the path leaves the repository; copy what the code needs into it and name it there";
                Finding::error(code(), subject, hint)
            }
            Reach::Unknown if is_permitted => Finding::warning(
                code(),
                subject,
                "cannot tell what it reads; see that it stays in the repository",
            ),
            Reach::Unknown => {
                let permit = match policy.source {
                    PolicySource::Plan => "make this change by hand",
                    source => source.naming_hint(),
                };
                let hint = format!(
                    "cannot tell what it reads; write one literal without escapes, relative to the file, or {permit}"
                );
                Finding::error(code(), subject, hint)
            }
        }
    };
    let each = brought
        .into_iter()
        .flat_map(|(path, seen)| seen.into_iter().map(move |seen| (path, seen)));
    each.filter(|(_, seen)| is_more(seen))
        .map(|(path, seen)| finding(path, seen))
        .collect()
}
