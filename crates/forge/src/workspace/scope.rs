//! The gate of changes: a build may create or change the skill and its test. It must leave both,
//! and must change nothing else.
//!
//! What always holds: a pure decision over what is different; everything that is different is either one of the two files, a directory on the
//! way to them, or refused; the list of findings is bounded and says so.

use std::path::Path;

use crucible_model::{Code, Finding, RepoPath, Verdict};
use crucible_repo::{CopyEntry, UnseenReason, WorkspaceChange};

use crate::answer_form::AnswerForm;
use crate::paths::SkillPaths;
use crate::python::MAX_SKILL_BYTES;

/// How many paths a verdict names.
pub(crate) const MAX_SCOPE_FINDINGS: usize = 50;

const OUTSIDE: Code = Code::new("forge-scope-outside");
const REMOVED: Code = Code::new("forge-scope-removed");
const DIRECTORY: Code = Code::new("forge-scope-directory");
const MODE: Code = Code::new("forge-scope-mode");
const KIND: Code = Code::new("forge-scope-kind");
const SIZE: Code = Code::new("forge-scope-size");
const MISSING: Code = Code::new("forge-scope-missing");
const NOTHING: Code = Code::new("forge-scope-nothing");
/// The path cannot be read.
pub(crate) const UNSEEN: Code = Code::new("forge-scope-unseen");
const HARD_LINK: Code = Code::new("forge-scope-hard-link");
const MORE: Code = Code::new("forge-scope-more");

/// What follows by itself where an agent did not come to its end: that files are missing, or nothing changed.
pub(crate) const NOT_DONE: [Code; 2] = [MISSING, NOTHING];

/// What a build may change, and what of it was there before.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The skill's places.
    pub paths: &'a SkillPaths,
    /// Which of its two files were in the copy when that was made.
    pub existing: &'a [&'a RepoPath],
    /// How the agent gives what it made: where it was to make something, nothing at all is refused.
    pub form: AnswerForm,
}

/// Judges what is different in a copy.
#[must_use]
pub(crate) fn check_scope(changes: &[WorkspaceChange], scope: &Scope<'_>) -> Verdict {
    let files = scope.paths.files();
    let named: Vec<Finding> = changes
        .iter()
        .flat_map(|change| judge(change, &files))
        .collect();
    let more = named.len().saturating_sub(MAX_SCOPE_FINDINGS);
    let mut verdict = Verdict::new(named.into_iter().take(MAX_SCOPE_FINDINGS).collect());
    if more > 0 {
        let hint = "Only the first ones are listed.";
        verdict.push(Finding::error(MORE, format!("{more} more"), hint));
    }
    let at = |path: &RepoPath| {
        changes
            .iter()
            .find(|change| change.path == Path::new(path.as_str()))
    };
    for path in files {
        let is_gone = match at(path) {
            Some(change) => change.now.is_none(),
            None => !scope.existing.contains(&path),
        };
        if is_gone {
            verdict.push(Finding::error(
                MISSING,
                path.as_str(),
                "A build makes the skill and its test.",
            ));
        }
    }
    if changes.is_empty() && scope.form != AnswerForm::StandsAlready {
        let hint = "The agent changed nothing. Ask `crucible skill research` what stood in its way; where both files are right as they stand, \
                    `--agent as-is` takes them.";
        verdict.push(Finding::error(NOTHING, scope.paths.skill.as_str(), hint));
    }
    verdict
}

fn judge(change: &WorkspaceChange, files: &[&RepoPath; 2]) -> Vec<Finding> {
    let path = change.path.as_path();
    let subject = printable_path(path);
    let one = |code, hint| vec![Finding::error(code, subject.clone(), hint)];
    if let Some(CopyEntry::Unseen { why }) = &change.now {
        return one(
            UNSEEN,
            match why {
                UnseenReason::TooMany => "The build made more files than are looked at.",
                UnseenReason::Closed => "This path cannot be read, so its type is unknown.",
            },
        );
    }
    if files.iter().any(|file| Path::new(file.as_str()) == path) {
        return judge_file(change, &subject);
    }
    match (&change.was, &change.now) {
        (None, Some(CopyEntry::Directory { .. }))
            if files
                .iter()
                .any(|file| Path::new(file.as_str()).starts_with(path)) =>
        {
            Vec::new()
        }
        (Some(_), None) => one(REMOVED, "A build removes nothing."),
        (_, Some(CopyEntry::Directory { .. })) => one(
            DIRECTORY,
            "A build makes no directories but those of its two files, and changes none.",
        ),
        (Some(CopyEntry::File { digest: was, .. }), Some(CopyEntry::File { digest: now, .. }))
            if was == now && now.is_some() =>
        {
            one(
                MODE,
                "A build changes nobody's permissions and adds no other names.",
            )
        }
        _ => one(
            OUTSIDE,
            "A build makes and changes the skill and its test, and nothing else.",
        ),
    }
}

/// Judges one of the two files themselves.
fn judge_file(change: &WorkspaceChange, subject: &str) -> Vec<Finding> {
    let one = |code, hint| vec![Finding::error(code, subject, hint)];
    let (bytes, mode, names) = match &change.now {
        Some(CopyEntry::File {
            bytes, mode, names, ..
        }) => (*bytes, *mode, *names),
        // Said of the file that is missing.
        None => return Vec::new(),
        Some(_) => return one(KIND, "The skill and its test are plain files."),
    };
    let before = match &change.was {
        Some(CopyEntry::File { mode, .. }) => *mode,
        _ => 0,
    };
    let mut findings = Vec::new();
    if bytes > MAX_SKILL_BYTES as u64 {
        findings.extend(one(
            SIZE,
            "The file is larger than the 256 KiB that are read of a skill.",
        ));
    }
    if mode & 0o7111 & !before != 0 {
        findings.extend(one(
            MODE,
            "A skill is read, not executed, and gives nobody another user's rights.",
        ));
    }
    if names > 1 {
        let hint = "The file has another name somewhere; its bytes are taken as they were read.";
        findings.push(Finding::warning(HARD_LINK, subject, hint));
    }
    findings
}

/// A path in a form that is text whatever its bytes are, and does nothing to a terminal.
pub(super) fn printable_path(path: &Path) -> String {
    let written = format!("{path:?}");
    let bare = written
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(&written);
    if bare.is_empty() {
        ".".to_owned()
    } else {
        bare.to_owned()
    }
}
