//! Weighs a patch against a policy.
//!
//! [`judge`] is a pure function: the patch, the policy and the contents of the touched files before and after go in,
//! findings come out. It looks at everything and stops at nothing, so that one answer names all that is wrong. What
//! it would need to see and was not given is itself a finding: nothing passes for want of evidence.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::{Code, Finding, PathRole, PathRoles, RepoPath, Verdict};

use crate::added::{NonTestChange, is_file_of_tests, only_adds_tests, only_renames};
use crate::answer::Proposal;
use crate::class::{is_ci, is_git_setting, is_lockfile, is_manifest, is_test_path};
use crate::entry::{MODE, stated_entry_findings};
use crate::parse::parse;
use crate::patch::{Change, Content, FileMode, FilePatch, Files, Patch};
use crate::policy::{Policy, PolicySource};
use crate::source::{Definition, Language, definitions, is_private, mentions, test_code};
use crate::stdlib::shadows_stdlib;
use crate::tricks::judge_added;

/// Says by the name alone whether a path is of some class.
type Class = fn(&RepoPath) -> bool;

/// Judges `patch` by `policy`. `before` and `after` hold the contents of every text file that the patch touches,
/// before it is applied and in the tree that applying it produced; a file that is not there has no entry.
#[must_use]
pub fn judge(patch: &Patch, policy: &Policy, before: &Files, after: &Files) -> Verdict {
    let mut judge = Judge {
        policy,
        before,
        after,
        verdict: Verdict::default(),
    };
    judge.amounts(patch);
    for file in &patch.files {
        let addition = judge.addition(file);
        if let Addition::MoreThanThat(finding) = &addition {
            judge.verdict.push(finding.clone());
        }
        judge.place(file, &addition);
        judge.kind(file, &addition);
        judge.content(file);
    }
    judge.definitions(patch);
    for finding in judge_added(patch, policy, before, after) {
        judge.verdict.push(finding);
    }
    judge.verdict
}

/// Judges by `policy` where a proposal changes files, and how many: all that can be said before any of them is read.
#[must_use]
pub fn judge_paths(proposal: &Proposal, policy: &Policy) -> Verdict {
    let (before, after) = (Files::new(), Files::new());
    let mut judge = Judge {
        policy,
        before: &before,
        after: &after,
        verdict: Verdict::default(),
    };
    match proposal {
        Proposal::Edits(edits) => {
            let paths: BTreeSet<&RepoPath> = edits.iter().map(|edit| &edit.path).collect();
            judge.number(paths.len() as u64);
            for path in paths {
                judge.target(path, &judge.possible_addition(path));
            }
        }
        Proposal::Diff(bytes) => match parse(bytes) {
            Ok(patch) => {
                judge.number(patch.touched());
                for file in &patch.files {
                    judge.place(file, &judge.possible_addition(&file.path));
                }
            }
            Err(error) => judge.verdict.push(error.finding()),
        },
    }
    judge.verdict
}

/// Files that are never only added to: settings, and what a package manager or a hook reads.
fn is_settled(path: &RepoPath) -> bool {
    let roles = PathRoles::from_path(path);
    let is_setting = is_manifest(path)
        || is_ci(path)
        || is_lockfile(path)
        || is_git_setting(path)
        || roles.has(PathRole::TestSettings)
        || path.file_name() == "conftest.py"
        || path.segments().any(|name| name.starts_with('.'));
    is_setting && !is_release_note(path)
}

/// Directories of notes for the next release, one new file for each change.
pub const RELEASE_NOTES: [&str; 9] = [
    ".changeset",
    "changelog",
    "changelog.d",
    "changelogs",
    "changes",
    "docs/changelog",
    "news",
    "newsfragments",
    "releasenotes/notes",
];

/// Whether a file is such a note: no source of any language, and none of a tool's settings.
fn is_release_note(path: &RepoPath) -> bool {
    let directory = path.directory();
    let is_note = match path.extension() {
        Some("md") => true,
        Some("cfg" | "ini" | "json" | "lock" | "toml" | "xml") | None => false,
        Some(_) => directory != ".changeset" && Language::from_path(path).is_none(),
    };
    is_note && RELEASE_NOTES.contains(&directory) && !path.file_name().starts_with('.')
}

/// Names that a test runner, an interpreter or a test may look up: a new file of such a name could take the place of what is meant.
const LOOKED_UP: [&str; 13] = [
    "assert",
    "chai",
    "expect",
    "jest",
    "mocha",
    "pytest",
    "setuptests",
    "sinon",
    "sitecustomize",
    "testing",
    "unittest",
    "usercustomize",
    "vitest",
];

/// Whether a new file is a source or a document that takes nobody's place. A header of C can stand for one of the system's.
fn takes_no_place(path: &RepoPath) -> bool {
    let name = path.file_name().to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    let is_header = [".h", ".hh", ".hpp", ".hxx"]
        .iter()
        .any(|end| name.ends_with(end));
    let is_looked_up = LOOKED_UP.contains(&stem) || shadows_stdlib(path);
    is_document(path) || (Language::from_path(path).is_some() && !is_header && !is_looked_up)
}

fn is_document(path: &RepoPath) -> bool {
    PathRoles::from_path(path).has(PathRole::Document)
}

/// How many dropped definitions are looked for in all touched files: each takes a pass over their text.
const MAX_LOOKED_FOR: usize = 20;

/// Documents that decide who may use the code.
const LEGAL: [&str; 8] = [
    "authors",
    "contributors",
    "copying",
    "credits",
    "licence",
    "license",
    "notice",
    "thanks",
];

/// Whether a file is text for people and nothing else: no program reads it, and it decides nothing.
fn is_prose(path: &RepoPath) -> bool {
    let name = path.file_name().to_ascii_lowercase();
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return false;
    };
    matches!(extension, "adoc" | "markdown" | "md" | "rst")
        && is_document(path)
        && !LEGAL.contains(&stem)
}

/// Whether a document shows the same examples as before, or showed none: any of them may run as a test, and a test before it may lean on one.
fn keeps_examples(path: &RepoPath, before: &[u8], after: &[u8]) -> bool {
    let (before, after) = (
        String::from_utf8_lossy(before),
        String::from_utf8_lossy(after),
    );
    // Elsewhere a row of tildes underlines a heading.
    let has_fences = !matches!(path.extension(), Some("rst" | "txt") | None);
    let lines = examples(&before, has_fences);
    lines.is_empty() || lines == examples(&after, has_fences)
}

/// The lines of a document that a program may run: fenced blocks, what follows `>>>` up to an empty line, directives with code or tests,
/// and comments, in which some tools look for their settings.
fn examples(text: &str, has_fences: bool) -> Vec<&str> {
    const DIRECTIVES: [&str; 6] = [
        "code",
        "doctest",
        "execute",
        "ipython",
        "sourcecode",
        "test",
    ];
    let mut lines = Vec::new();
    let mut fence: Option<&str> = None;
    let mut prompt = false;
    let mut directive: Option<usize> = None;
    for line in text.lines() {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| has_fences && content.starts_with(mark));
        if let Some(open) = fence {
            lines.push(line);
            fence = (mark != Some(open)).then_some(open);
            continue;
        }
        prompt = (prompt || content.starts_with(">>>")) && !content.is_empty();
        directive = directive.filter(|outer| content.is_empty() || indent > *outer);
        if mark.is_some() {
            fence = mark;
        } else if let Some((name, _)) = content
            .strip_prefix(".. ")
            .and_then(|rest| rest.split_once("::"))
            && DIRECTIVES.iter().any(|known| name.contains(known))
        {
            directive = Some(indent);
        }
        if fence.is_some() || prompt || directive.is_some() || content.starts_with("<!--") {
            lines.push(line);
        }
    }
    lines
}

fn over(have: u64, what: &str, limit: u64) -> String {
    format!("{have} {what}, and the policy allows {limit}; make the change smaller")
}

/// Whether a file is only added to, where the policy lets it be.
enum Addition {
    /// The policy does not speak of it, or it is no such change: it is judged as any other.
    No,
    /// It is only added to.
    Yes,
    /// A test file that is changed in another way.
    MoreThanThat(Finding),
}

impl Addition {
    /// Whether scope and protection have nothing to add.
    const fn settles(&self) -> bool {
        matches!(self, Self::Yes | Self::MoreThanThat(_))
    }
}

struct Judge<'a> {
    policy: &'a Policy,
    before: &'a Files,
    after: &'a Files,
    verdict: Verdict,
}

impl Judge<'_> {
    fn refuse(&mut self, code: Code, subject: impl ToString, hint: impl Into<String>) {
        self.verdict
            .push(Finding::error(code, subject.to_string(), hint));
    }

    /// How much the patch changes.
    fn amounts(&mut self, patch: &Patch) {
        if patch.files.is_empty() {
            self.refuse(
                Code::new("patch-empty"),
                "patch",
                "the patch changes nothing; answer with a change",
            );
        }
        self.number(patch.touched());
        let added: u64 = patch.files.iter().map(|file| self.added(file)).sum();
        if added > self.policy.max_added_lines {
            let hint = over(added, "lines are added", self.policy.max_added_lines);
            self.refuse(Code::new("patch-too-many-lines"), added, hint);
        }
        let removed: u64 = patch.files.iter().map(FilePatch::removed).sum();
        if removed > self.policy.max_removed_lines {
            let hint = over(removed, "lines are removed", self.policy.max_removed_lines);
            self.refuse(Code::new("patch-too-many-removed"), removed, hint);
        }
    }

    fn number(&mut self, touched: u64) {
        if touched > self.policy.max_files {
            let hint = over(touched, "files are touched", self.policy.max_files);
            self.refuse(Code::new("patch-too-many-files"), touched, hint);
        }
    }

    /// A copy adds all its lines to the tree, although its hunks show only some of them.
    fn added(&self, file: &FilePatch) -> u64 {
        match (&file.change, self.after.get(&file.path)) {
            (Change::Copy { .. }, Some(content)) => {
                content.split_inclusive(|byte| *byte == b'\n').count() as u64
            }
            _ => file.added(),
        }
    }

    /// What can be said of an addition before the content is known: that there may be one.
    fn possible_addition(&self, path: &RepoPath) -> Addition {
        if self.policy.may_add_to(path) && !is_settled(path) {
            Addition::Yes
        } else {
            Addition::No
        }
    }

    /// Whether a file is only added to.
    fn addition(&self, file: &FilePatch) -> Addition {
        let path = &file.path;
        let is_kept =
            file.content == Content::Text && matches!(file.change, Change::Create | Change::Modify);
        let is_renamed =
            |before: &[u8], after: &[u8]| only_renames(&self.policy.renames, before, after);
        let (before, after) = (self.before.get(path), self.after.get(path));
        if !is_kept || is_settled(path) || self.policy.names(path) {
            return Addition::No;
        }
        let is_in = self.policy.may_add_to(path);
        let judged = match (&file.change, before, after) {
            (Change::Modify, Some(before), Some(after)) if is_test_path(path) => {
                match is_renamed(before, after) {
                    true => Ok(()),
                    false if is_in => only_adds_tests(path, before, after),
                    false => return Addition::No,
                }
            }
            (Change::Create, None, Some(_)) if is_in && is_release_note(path) => Ok(()),
            (Change::Create, None, Some(after)) if is_in && is_test_path(path) => {
                is_file_of_tests(path, after)
            }
            (Change::Create, None, Some(_)) if is_in && takes_no_place(path) => Ok(()),
            (Change::Modify, Some(before), Some(after))
                if is_in && keeps_examples(path, before, after) =>
            {
                match is_prose(path) || is_document(path) && file.removed() == 0 {
                    true => Ok(()),
                    false => return Addition::No,
                }
            }
            _ => return Addition::No,
        };
        match judged {
            Ok(()) => Addition::Yes,
            Err(NonTestChange { line, why }) => Addition::MoreThanThat(Finding::error(
                Code::new("patch-test-edited"),
                path.to_string(),
                format!(
                    "line {line}: {why}; add whole new tests, or {}",
                    self.policy.source.naming_hint()
                ),
            )),
        }
    }

    /// Where the patch writes, and where it takes from.
    fn place(&mut self, file: &FilePatch, addition: &Addition) {
        self.target(&file.path, addition);
        let Some(from) = file.change.from() else {
            return;
        };
        let denied =
            self.policy.denied_place(from).is_some() || self.policy.denied_suffix(from).is_some();
        if denied || !self.policy.allows_place(from) {
            let by = self.policy.source.name();
            let hint =
                format!("the file is renamed or copied from a place that {by} does not allow");
            self.refuse(Code::new("patch-rename-source-outside"), from, hint);
        }
        if matches!(file.change, Change::Rename { .. }) {
            self.protected(from);
        }
    }

    /// A place that is written.
    fn target(&mut self, path: &RepoPath, addition: &Addition) {
        if !addition.settles() && !self.policy.allows_place(path) {
            let by = self.policy.source.name();
            let hint = format!("the path lies outside the scope; change only what {by} allows");
            self.refuse(Code::new("patch-path-outside-scope"), path, hint);
        }
        if path.has_backslash() && !self.policy.names_backslash(path) {
            let naming = self.policy.source.naming_hint();
            let hint =
                format!("the name holds a backslash; separate parts of a path by `/`, or {naming}");
            self.refuse(Code::new("patch-backslash"), path, hint);
        }
        if let Some(place) = self.policy.denied_place(path) {
            self.refuse(
                Code::new("patch-path-denied"),
                path,
                format!("nothing under `{place}` may change"),
            );
        }
        if let Some(suffix) = self.policy.denied_suffix(path) {
            self.refuse(
                Code::new("patch-suffix-denied"),
                path,
                format!("files ending in `{suffix}` may not change"),
            );
        }
        if !addition.settles() {
            self.protected(path);
        }
    }

    /// Files with which a patch could grade itself: out of reach unless the plan names them.
    fn protected(&mut self, path: &RepoPath) {
        if self.policy.names(path) {
            return;
        }
        let classes: [(Class, Code, &str); 5] = [
            (
                is_test_path,
                Code::new("patch-test-edited"),
                "leave tests as they are",
            ),
            (
                is_manifest,
                Code::new("patch-manifest-edited"),
                "leave build and dependency settings as they are",
            ),
            (
                is_ci,
                Code::new("patch-ci-edited"),
                "leave continuous integration as it is",
            ),
            (
                is_lockfile,
                Code::new("patch-lockfile-edited"),
                "leave lock files as they are",
            ),
            (
                is_git_setting,
                Code::new("patch-git-attributes"),
                "leave git's settings as they are",
            ),
        ];
        for (is_in_class, code, hint) in classes {
            if is_in_class(path) {
                self.refuse(
                    code,
                    path,
                    format!("{hint}, or {}", self.policy.source.naming_hint()),
                );
            }
        }
    }

    /// What kind of entry the patch makes, and whether it may come or go.
    fn kind(&mut self, file: &FilePatch, addition: &Addition) {
        let path = &file.path;
        for finding in
            stated_entry_findings(file, self.after.get(path).map(Vec::as_slice), self.policy)
        {
            self.verdict.push(finding);
        }
        let is_new = !matches!(file.change, Change::Modify | Change::Delete);
        let made_executable =
            file.change == Change::Create && file.new_mode == Some(FileMode::Executable);
        if made_executable && !self.policy.allows_unusual(path) {
            let hint = format!(
                "add nothing executable, or {}",
                self.policy.source.naming_hint()
            );
            self.refuse(MODE, path, hint);
        }
        // A root that is the file itself names it, where nothing but a program of the project reads such a file.
        let is_meant = if is_settled(path) || !takes_no_place(path) {
            Policy::names
        } else {
            Policy::names_new
        };
        if is_new && !addition.settles() && !is_meant(self.policy, path) {
            let hint = format!(
                "change the files that are there, or {}",
                self.policy.source.naming_hint()
            );
            self.refuse(Code::new("patch-new-file-unnamed"), path, hint);
        }
        let old_path = match &file.change {
            Change::Delete => Some(path),
            Change::Rename { from } => Some(from),
            Change::Create | Change::Modify | Change::Copy { .. } => None,
        };
        let Some(old_path) = old_path else { return };
        if !self.policy.names(old_path) {
            let hint = format!("keep the file, or {}", self.policy.source.naming_hint());
            self.refuse(Code::new("patch-deletes-file"), old_path, hint);
        } else if is_test_path(old_path) {
            // Who names a test lets it be changed, not taken away: without it the gates would prove less than before.
            let hint = "the change deletes a test or moves it away; keep it where it is";
            self.refuse(Code::new("run-test-deleted"), old_path, hint);
        }
    }

    /// Whether the tree got what the patch says, and whether tests inside the source were left alone.
    fn content(&mut self, file: &FilePatch) {
        if file.content != Content::Text || file.is_submodule() {
            return;
        }
        let path = &file.path;
        let old_path = file.old_path();
        let old = old_path.map_or(Some(&[][..]), |path| {
            self.before.get(path).map(Vec::as_slice)
        });
        let Some(old) = old else {
            let hint =
                "the content before the change is not known; judge the patch on its own base";
            return self.refuse(
                Code::new("patch-content-missing"),
                old_path.unwrap_or(path),
                hint,
            );
        };
        let new = if file.change == Change::Delete {
            Some(&[][..])
        } else {
            self.after.get(path).map(Vec::as_slice)
        };
        let Some(new) = new else {
            let hint =
                "the content after the change is not known; apply the patch before judging it";
            return self.refuse(Code::new("patch-content-missing"), path, hint);
        };
        let is_gone = file.change != Change::Delete || !self.after.contains_key(path);
        let was_absent = file.change != Change::Create || !self.before.contains_key(path);
        if file.apply_to(old).as_deref() != Ok(new) || !is_gone || !was_absent {
            let hint = "applying the patch does not give what its text says; make it again from the current files";
            self.refuse(Code::new("patch-tree-differs"), path, hint);
        } else if file.change == Change::Modify && old == new && file.old_mode == file.new_mode {
            self.refuse(
                Code::new("patch-empty"),
                path,
                "the file is the same afterwards; leave it out",
            );
        }
        if let (Some(language), Some(old_path)) = (Language::from_path(path), old_path)
            && !self.policy.names(path)
            && !is_test_path(path)
            && matches!(file.change, Change::Modify | Change::Rename { .. })
        {
            let language_before = Language::from_path(old_path).unwrap_or(language);
            if !test_code(language_before, old).survives_in(&test_code(language, new)) {
                let naming = self.policy.source.naming_hint();
                let hint =
                    format!("tests inside this file changed; leave them as they are, or {naming}");
                self.refuse(Code::new("patch-test-edited"), path, hint);
            }
        }
    }

    /// Whether nobody can miss a definition: nothing outside of its file knows it, and no touched file mentions it any more.
    fn is_unused(&self, path: &RepoPath, name: &str) -> bool {
        let is_private = |old: &Vec<u8>| {
            Language::from_path(path).is_some_and(|language| is_private(language, old, name))
        };
        self.before.get(path).is_some_and(is_private)
            && !self.after.values().any(|new| mentions(new, name))
    }

    /// Definitions that were there before and are nowhere in the touched files afterwards. A definition may move from
    /// one touched file to another; that a file goes away altogether has its own finding.
    fn definitions(&mut self, patch: &Patch) {
        let mut balance: BTreeMap<Definition, (i64, Option<&RepoPath>)> = BTreeMap::new();
        for file in patch
            .files
            .iter()
            .filter(|file| file.content == Content::Text)
        {
            let stays = matches!(file.change, Change::Modify | Change::Rename { .. });
            let before = file.old_path().filter(|_| stays);
            if let Some((path, old)) = before.and_then(|path| self.before.get_key_value(path))
                && let Some(language) = Language::from_path(path)
                && self.after.contains_key(&file.path)
            {
                for (definition, count) in definitions(language, old) {
                    let entry = balance.entry(definition).or_insert((0, None));
                    entry.0 -= i64::try_from(count).unwrap_or(i64::MAX);
                    entry.1.get_or_insert(path);
                }
            }
            if let (Some(new), Some(language)) =
                (self.after.get(&file.path), Language::from_path(&file.path))
            {
                for (definition, count) in definitions(language, new) {
                    balance.entry(definition).or_insert((0, None)).0 +=
                        i64::try_from(count).unwrap_or(i64::MAX);
                }
            }
        }
        let mut looked_for = 0;
        for (definition, (count, path)) in balance {
            let Some(path) = path.filter(|_| count < 0) else {
                continue;
            };
            if self.policy.may_drop.contains(&definition.name) {
                continue;
            }
            looked_for += 1;
            if looked_for > MAX_LOOKED_FOR || !self.is_unused(path, &definition.name) {
                let saying = match self.policy.source {
                    PolicySource::Document => "list the definition in `may_drop` of the policy",
                    PolicySource::Plan => "have the plan say that it goes",
                    PolicySource::Command => "take it out by hand",
                };
                let hint = format!(
                    "the answer lost a definition that was there; give the file whole, or {saying}"
                );
                self.refuse(
                    Code::new("patch-definition-dropped"),
                    format!("{definition} in {path}"),
                    hint,
                );
            }
        }
    }
}
