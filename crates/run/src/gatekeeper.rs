//! The patch gate of a run: from an answer to a patch that may be tested.
//!
//! The answer becomes a proposal, then file contents, then the canonical patch. The patch is judged twice: as
//! text against the policy, and by the tree it produces in a temporary index, which must match the text. Only
//! a change that passes both is tested, byte for byte.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

use crucible_model::{
    ByteLimit, Code, EditFormat, Finding, Outcome, PathPrefix, RepoPath, Untrusted, Verdict,
    single_spaced,
};
use crucible_patch::{
    AnswerError, Change as FileChange, Content, FileMode, ParsedAnswer, Patch, Policy,
    PolicySource, Proposal, RestoredDefinitions, TreeEntry, adds_paths, apply, as_line_edits,
    collisions, is_test_path, judge_entries, judge_paths, link_target_prefixes, make_diff, parse,
    read_any_answer, restore_lost_definitions, submodule,
};
use crucible_repo::{Git, MAX_TOUCHED, Oid, ProducedTree, RepoError, TreeChange, check_agreement};
use crucible_secrets::{MARKER_BEGIN, Scanner};

use crate::contract::{PatchLimits, Plan, RunRecord};
use crate::error::RunError;

mod apply;
mod check;
#[cfg(test)]
mod history;
mod signed;
#[cfg(test)]
mod whole_gate;

pub use apply::{AppliedPatch, AppliedPatchDocument, apply_patch_locked};
pub use check::check_patch;
pub use signed::{SignedPlan, run_of, signed_plan};

/// File contents by path.
pub(crate) type Files = BTreeMap<RepoPath, Vec<u8>>;

const NOT_TEXT: Code = Code::new("run-answer-not-text");
pub(crate) const UNCHANGED: Code = Code::new("run-answer-unchanged");
const NOT_APPLICABLE: Code = Code::new("run-patch-not-applicable");
const TOO_MANY_FILES: Code = Code::new("patch-too-many-files");
const TOO_MUCH_CONTENT: Code = Code::new("patch-files-too-large");
const GUARDED: Code = Code::new("patch-guarded-place");
const SECRET_IN_ANSWER: Code = Code::new("run-secret-in-answer");

/// Bytes read of the files of an already refused proposal, so that one verdict names its other problems too.
const READ_OF_REFUSED: ByteLimit = ByteLimit(4 << 20);

/// Maximum total length in bytes of the file names in one call of git.
const MAX_NAMES: usize = 256 << 10;

/// How much of a marker's rule is compared, in characters; no rule has a longer name.
const MAX_RULE_NAME: usize = 64;

/// The patch gate's result for an answer.
pub(crate) struct PatchVerdict {
    /// The patch, if the answer contains one.
    pub(crate) patch: Option<Vec<u8>>,
    /// What was found.
    pub(crate) verdict: Verdict,
    /// What to try; there only when the verdict passes.
    pub(crate) change: Option<Change>,
    /// The edit format of the answer, if recognised.
    pub(crate) read_as: Option<EditFormat>,
    /// Whether only the form of the answer is at fault.
    pub(crate) is_malformed: bool,
}

/// A change that was let through.
pub(crate) struct Change {
    /// The tree it makes.
    pub(crate) tree: ProducedTree,
}

impl PatchVerdict {
    pub(crate) fn refused(finding: Finding) -> Self {
        Self::from_verdict(Verdict::new(vec![finding]))
    }

    fn from_verdict(verdict: Verdict) -> Self {
        Self {
            patch: None,
            verdict,
            change: None,
            read_as: None,
            is_malformed: false,
        }
    }

    /// An answer that came and cannot be read.
    pub(crate) fn malformed(finding: Finding) -> Self {
        Self {
            is_malformed: true,
            ..Self::refused(finding)
        }
    }

    fn unread(error: &AnswerError) -> Self {
        Self {
            is_malformed: error.is_of_form(),
            ..Self::refused(error.finding())
        }
    }
}

/// What a patch is judged on.
#[derive(Clone, Copy)]
pub(crate) struct PatchContext<'a> {
    /// The repository.
    pub(crate) git: &'a Git,
    /// What the run was started with.
    pub(crate) record: &'a RunRecord,
    /// How the answer is to be read.
    pub(crate) format: EditFormat,
    /// The signed plan.
    pub(crate) plan: &'a Plan,
    /// The files that judge the change ([`crate::Analysis::gate_files`]).
    pub(crate) gate_files: &'a [RepoPath],
}

/// Whether an answer holds a secret. One that was recorded holds a marker in its place: see [`brings_marker`].
pub(crate) fn holds_secret(answer: &Untrusted) -> bool {
    Scanner::builtin()
        .first_in_file(answer.as_str().as_bytes())
        .is_some()
}

/// Whether a file afterwards holds more markers of a redacted secret than it did: the answer held one there. A marker that
/// the file had is its text.
fn brings_marker(before: &Files, after: &Files) -> bool {
    after.iter().any(|(path, bytes)| {
        let mut there = before
            .get(path)
            .map(|bytes| markers(bytes))
            .unwrap_or_default();
        markers(bytes)
            .into_iter()
            .any(|(marker, count)| there.remove(&marker).unwrap_or(0) < count)
    })
}

/// Returns the markers in a text with their counts.
fn markers(bytes: &[u8]) -> BTreeMap<String, usize> {
    let text = String::from_utf8_lossy(bytes);
    let mut markers = BTreeMap::new();
    for (at, _) in text.match_indices(MARKER_BEGIN) {
        let rule = text[at + MARKER_BEGIN.len()..]
            .split([']', '\n'])
            .next()
            .unwrap_or_default();
        *markers
            .entry(rule.chars().take(MAX_RULE_NAME).collect())
            .or_default() += 1;
    }
    markers
}

/// The code of a path in a place that is closed.
pub(crate) const DENIED: &str = "patch-path-denied";
/// Why a file of a gate may not change.
pub(crate) const GATE_FILE: &str =
    "a gate consists of this file, so a change of it could grade itself";

/// The policy that a plan, the run's limits and its gates amount to.
pub(crate) fn policy(context: &PatchContext<'_>) -> Policy {
    let mut policy = plan_policy(context.plan, context.record.settings.patch);
    deny(&mut policy, context.plan, context.gate_files);
    policy
}

fn deny(policy: &mut Policy, plan: &Plan, gate_files: &[RepoPath]) {
    // A test that may be added to is protected by the policy itself.
    let may_grow = |path: &RepoPath| {
        is_test_path(path) && plan.may_add.iter().any(|place| place.contains(path))
    };
    let denied = gate_files
        .iter()
        .filter(|path| !plan.names.contains(path) && !may_grow(path));
    policy
        .deny_prefixes
        .extend(denied.cloned().map(PathPrefix::from));
}

/// The policy that a plan amounts to, within limits.
#[must_use]
pub fn plan_policy(plan: &Plan, limits: PatchLimits) -> Policy {
    Policy {
        allow_sources: plan.scope_sources.clone(),
        deny_prefixes: plan.scope_deny.clone(),
        max_files: limits.max_files,
        max_added_lines: limits.max_added_lines,
        named: plan.names.clone(),
        may_drop: plan.may_drop.clone(),
        may_add: plan.may_add.clone(),
        renames: plan.renames.clone(),
        source: PolicySource::Plan,
        ..Policy::for_roots(plan.scope_allow.clone())
    }
}

/// Judges an answer against the plan.
///
/// # Errors
///
/// Fails only if judging is impossible; a bad answer is a verdict.
pub(crate) async fn judge(
    context: &PatchContext<'_>,
    answer: &Untrusted,
    attempt: u64,
) -> Result<PatchVerdict, RunError> {
    let PatchContext { format, plan, .. } = *context;
    if holds_secret(answer) {
        return Ok(PatchVerdict::refused(secret_in_answer(attempt)));
    }
    let editable: Vec<RepoPath> = plan
        .scope_allow
        .iter()
        .filter_map(|scope| scope.to_string().parse().ok())
        .collect();
    let reading = match read_any_answer(format, answer, &editable) {
        Ok(reading) => reading,
        Err(error) => return Ok(PatchVerdict::unread(&error)),
    };
    let read_as = Some(reading.format);
    Ok(PatchVerdict {
        read_as,
        ..judge_reading(context, reading, attempt).await?
    })
}

async fn judge_reading(
    context: &PatchContext<'_>,
    reading: ParsedAnswer,
    attempt: u64,
) -> Result<PatchVerdict, RunError> {
    let PatchContext {
        git, record, plan, ..
    } = *context;
    let ParsedAnswer { format, proposal } = reading;
    let paths = match touched(&proposal) {
        Ok(paths) => paths,
        Err(error) => return Ok(PatchVerdict::unread(&error)),
    };
    let places = judge_paths(&proposal, &policy(context));
    let before = match may_read(&places, &paths) {
        Ok(limit) => git.files_at(&record.base_commit, &paths, limit).await,
        Err(refusal) => {
            return Ok(PatchVerdict {
                patch: diff_of(&proposal),
                ..PatchVerdict::from_verdict(refusal)
            });
        }
    };
    let before = match before {
        Ok(before) => before,
        Err(error) => {
            return Ok(PatchVerdict {
                patch: diff_of(&proposal),
                ..PatchVerdict::from_verdict(too_large(places, error)?)
            });
        }
    };
    let (proposal, after) = match applied(proposal, &before) {
        Ok(applied) => applied,
        Err((proposal, error)) => {
            let finding = not_applied(git, &record.base_commit, &error).await?;
            let refused = PatchVerdict {
                is_malformed: error.is_of_form(),
                ..PatchVerdict::refused(finding)
            };
            return Ok(PatchVerdict {
                patch: diff_of(&proposal),
                ..refused
            });
        }
    };
    let RestoredDefinitions {
        files: after,
        findings,
    } = restore_lost_definitions(&proposal, &before, after, &plan.may_drop);
    let mut judged = if brings_marker(&before, &after) {
        PatchVerdict::refused(secret_in_answer(attempt))
    } else {
        let context = PatchContext { format, ..*context };
        judge_files(&context, &proposal, &paths, &before, &after).await?
    };
    judged.verdict.merge(Verdict::new(findings));
    Ok(judged)
}

/// Applies a proposal to the files, and returns what was applied: hunks at wrong positions are placed by
/// their lines, if there is only one place for each.
fn applied(
    proposal: Proposal,
    before: &Files,
) -> Result<(Proposal, Files), (Proposal, AnswerError)> {
    let error = match apply(&proposal, before) {
        Ok(after) => return Ok((proposal, after)),
        Err(error) => error,
    };
    match as_line_edits(&proposal).map(|edits| (apply(&edits, before), edits)) {
        Some((Ok(after), edits)) => Ok((edits, after)),
        // Lines that occur more than once are the more useful error.
        Some((Err(several @ AnswerError::NotOneMatch { matches: 2.., .. }), _)) => {
            Err((proposal, several))
        }
        Some((Err(_), _)) | None => Err((proposal, error)),
    }
}

/// Judges the file contents that an answer produces.
async fn judge_files(
    context: &PatchContext<'_>,
    proposal: &Proposal,
    paths: &[RepoPath],
    before: &Files,
    after: &Files,
) -> Result<PatchVerdict, RunError> {
    if matches!(proposal, Proposal::Edits(_))
        && after
            .iter()
            .all(|(path, bytes)| before.get(path) == Some(bytes))
    {
        let hint = match context.format {
            EditFormat::Definitions => {
                "The answer is what the file holds already: nothing would change. Find the lines that keep the goal from \
                 being reached, and answer with the complete definitions in which they are changed."
            }
            EditFormat::WholeFile | EditFormat::SearchReplace | EditFormat::UnifiedDiff => {
                "The answer is the file as it stands: nothing would change. Find the lines that keep the goal from being \
                 reached, and answer with the complete file in which they are changed."
            }
        };
        let named = paths
            .iter()
            .map(RepoPath::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        return Ok(PatchVerdict::refused(Finding::error(
            UNCHANGED, named, hint,
        )));
    }
    let bytes = match proposal {
        Proposal::Diff(bytes) => bytes.clone(),
        Proposal::Edits(_) => match make_diff(before, after) {
            Ok(bytes) => bytes,
            Err(error) => {
                let finding = Finding::error(NOT_TEXT, "the answer", error.to_string());
                return Ok(PatchVerdict::refused(finding));
            }
        },
    };
    let judged = judge_patch(
        context.git,
        &context.record.base_commit,
        &policy(context),
        bytes,
        before,
        after,
    )
    .await?;
    Ok(PatchVerdict {
        verdict: naming_gate_files(&judged.verdict, context),
        ..judged
    })
}

/// Adds to each refused file that it is part of a gate, if that is the only reason.
fn naming_gate_files(verdict: &Verdict, context: &PatchContext<'_>) -> Verdict {
    let is_gate_file = |path: &RepoPath| {
        context.gate_files.contains(path)
            && !context
                .plan
                .scope_deny
                .iter()
                .any(|place| place.denies(path))
    };
    let named = |finding: &Finding| {
        let is_named = finding.code.as_str() == DENIED
            && finding
                .subject
                .parse()
                .is_ok_and(|path| is_gate_file(&path));
        if is_named {
            Finding {
                hint: GATE_FILE.to_owned(),
                ..finding.clone()
            }
        } else {
            finding.clone()
        }
    };
    Verdict::new(verdict.findings().iter().map(named).collect())
}

/// Judges a previously accepted patch again, in the same way.
pub(crate) async fn judge_again(
    context: &PatchContext<'_>,
    patch: &[u8],
) -> Result<PatchVerdict, RunError> {
    judge_diff(
        context.git,
        &context.record.base_commit,
        &policy(context),
        patch,
    )
    .await
}

async fn judge_diff(
    git: &Git,
    base: &Oid,
    policy: &Policy,
    patch: &[u8],
) -> Result<PatchVerdict, RunError> {
    let proposal = Proposal::Diff(patch.to_vec());
    let paths = match touched(&proposal) {
        Ok(paths) => paths,
        Err(error) => return Ok(PatchVerdict::refused(error.finding())),
    };
    let places = judge_paths(&proposal, policy);
    let before = match may_read(&places, &paths) {
        Ok(limit) => git.files_at(base, &paths, limit).await,
        Err(refusal) => return Ok(PatchVerdict::from_verdict(refusal)),
    };
    let before = match before {
        Ok(before) => before,
        Err(error) => return Ok(PatchVerdict::from_verdict(too_large(places, error)?)),
    };
    match apply(&proposal, &before) {
        Ok(after) => judge_patch(git, base, policy, patch.to_vec(), &before, &after).await,
        Err(error) => Ok(PatchVerdict::refused(not_applied(git, base, &error).await?)),
    }
}

/// Judges a patch as text and by the tree it produces from `base`.
pub(crate) async fn judge_patch(
    git: &Git,
    base: &Oid,
    policy: &Policy,
    bytes: Vec<u8>,
    before: &Files,
    after: &Files,
) -> Result<PatchVerdict, RunError> {
    let patch = match parse(&bytes) {
        Ok(patch) => patch,
        Err(error) => {
            return Ok(PatchVerdict {
                patch: Some(bytes),
                ..PatchVerdict::refused(error.finding())
            });
        }
    };
    let mut verdict = crucible_patch::judge(&patch, policy, before, after);
    if verdict.outcome() == Outcome::Fail {
        return Ok(PatchVerdict {
            patch: Some(bytes),
            ..PatchVerdict::from_verdict(verdict)
        });
    }
    // Neither needs the other, and both wait for git.
    let (tree, spared, apart) = tokio::join!(
        git.tree_after_patch(base, &bytes),
        spares_guarded(git, policy, &patch),
        names_apart(git, base, &patch)
    );
    let tree = match tree {
        Ok(tree) => tree,
        Err(RepoError::PatchRefused { detail }) => {
            return Ok(PatchVerdict {
                patch: Some(bytes),
                ..PatchVerdict::refused(not_applicable(&detail))
            });
        }
        Err(error) => {
            return Ok(PatchVerdict {
                patch: Some(bytes),
                ..PatchVerdict::from_verdict(too_large(verdict, error)?)
            });
        }
    };
    verdict.merge(check_agreement(&bytes, &patch, before, &tree));
    verdict.merge(judge_trees(git, base, policy, &patch, &tree.changes, &tree.after).await?);
    verdict.merge(spared);
    verdict.merge(apart?);
    let change = verdict.passes().then_some(Change { tree });
    Ok(PatchVerdict {
        patch: Some(bytes),
        change,
        ..PatchVerdict::from_verdict(verdict)
    })
}

/// Returns how much of these files may be read, or why none is. A proposal with more files than allowed is
/// refused without reading, and so is one with more names than fit into a call of git.
fn may_read(places: &Verdict, paths: &[RepoPath]) -> Result<ByteLimit, Verdict> {
    let is_too_many = |finding: &Finding| finding.code == TOO_MANY_FILES;
    if places.errors().any(is_too_many) {
        return Err(places.clone());
    }
    let named: usize = paths.iter().map(|path| path.as_str().len() + 1).sum();
    if named > MAX_NAMES {
        let hint = format!(
            "their names have more than {MAX_NAMES} bytes together; make the change smaller"
        );
        let mut refusal = places.clone();
        refusal.push(Finding::error(
            TOO_MANY_FILES,
            paths.len().to_string(),
            hint,
        ));
        return Err(refusal);
    }
    Ok(if places.passes() {
        MAX_TOUCHED
    } else {
        READ_OF_REFUSED
    })
}

/// Returns the refusal of a patch whose files are too large, with earlier findings; any other error makes
/// judging impossible.
fn too_large(mut found: Verdict, error: RepoError) -> Result<Verdict, RunError> {
    match error {
        // Already refused content is read only a little, so its size does not matter.
        RepoError::TooLarge { .. } if !found.passes() => {}
        RepoError::TooLarge { limit, .. } => {
            let hint =
                format!("the files have more than {limit} bytes together; change smaller ones");
            found.push(Finding::error(TOO_MUCH_CONTENT, "the patch", hint));
        }
        other => return Err(other.into()),
    }
    Ok(found)
}

/// Checks that a patch does not change what decides which programs git runs, except files named by the
/// policy.
async fn spares_guarded(git: &Git, policy: &Policy, patch: &Patch) -> Verdict {
    let mut verdict = Verdict::default();
    if patch.files.is_empty() {
        return verdict;
    }
    let places = git.guards().await;
    let mut written: Vec<&RepoPath> = patch.files.iter().map(|file| &file.path).collect();
    written.extend(patch.files.iter().filter_map(|file| match &file.change {
        FileChange::Rename { from } => Some(from),
        _ => None,
    }));
    for path in written {
        if let Some(why) = places.refusal(path, &policy.named) {
            let hint = format!("{why}; leave it as it is, or have the plan name this file");
            verdict.push(Finding::error(GUARDED, path.as_str(), hint));
        }
    }
    verdict
}

/// Checks that every file system can hold the patch's new names besides the existing ones.
async fn names_apart(git: &Git, base: &Oid, patch: &Patch) -> Result<Verdict, RunError> {
    if !adds_paths(patch) {
        return Ok(Verdict::default());
    }
    let standing = git.paths_at(base).await?;
    Ok(collisions(patch, standing.iter().map(String::as_str)))
}

/// A patch may omit the mode of a changed file, so only the trees show a changed link target. Binary content
/// is checked here, because the patch's text does not show it.
async fn judge_trees(
    git: &Git,
    base: &Oid,
    policy: &Policy,
    patch: &Patch,
    changes: &[TreeChange],
    after: &BTreeMap<Oid, Vec<u8>>,
) -> Result<Verdict, RunError> {
    let entry = |change: &TreeChange| {
        // A path outside our types is not named by the patch's text, and refused for that.
        let path = RepoPath::from_bytes(change.path.as_os_str().as_bytes()).ok()?;
        let content = change
            .new_oid
            .as_ref()
            .and_then(|oid| after.get(oid))
            .map(Vec::as_slice);
        Some(TreeEntry {
            path,
            old: change.old_mode,
            new: change.new_mode,
            content,
        })
    };
    let entries: Vec<TreeEntry<'_>> = changes.iter().filter_map(entry).collect();
    let ways = link_target_prefixes(&entries);
    let standing = if ways.is_empty() {
        BTreeMap::new()
    } else {
        git.modes_at(base, &ways).await?
    };
    let mut verdict = judge_entries(patch, policy, &entries, &standing);
    let is_binary = |path: &RepoPath| {
        patch
            .files
            .iter()
            .any(|file| file.path == *path && file.content == Content::Binary)
    };
    for entry in entries.iter().filter(|entry| is_binary(&entry.path)) {
        if Scanner::builtin()
            .first_in_file(entry.content.unwrap_or_default())
            .is_some()
        {
            let hint = "The binary content holds what looks like a secret.";
            verdict.push(Finding::error(SECRET_IN_ANSWER, entry.path.as_str(), hint));
        }
    }
    Ok(verdict)
}

/// Returns the finding for a patch that does not apply. The path may not be a file: a submodule's patch may
/// omit its kind.
async fn not_applied(git: &Git, base: &Oid, error: &AnswerError) -> Result<Finding, RunError> {
    if let AnswerError::UnknownFile { path } = error {
        let modes = git.modes_at(base, std::slice::from_ref(path)).await?;
        if modes.get(path) == Some(&FileMode::Gitlink) {
            return Ok(submodule(path));
        }
    }
    Ok(error.finding())
}

/// Converts git's message on a refused patch.
fn not_applicable(detail: &str) -> Finding {
    let detail: String = single_spaced(detail).chars().take(300).collect();
    Finding::error(
        NOT_APPLICABLE,
        detail,
        "git does not take this patch on the base of the run.",
    )
}

fn secret_in_answer(attempt: u64) -> Finding {
    let hint = "The answer holds what looks like a secret; it is kept redacted.";
    Finding::error(SECRET_IN_ANSWER, format!("attempt {attempt}"), hint)
}

fn touched(proposal: &Proposal) -> Result<Vec<RepoPath>, AnswerError> {
    let mut paths = match proposal {
        Proposal::Edits(edits) => edits.iter().map(|edit| edit.path.clone()).collect(),
        Proposal::Diff(bytes) => parse(bytes)?
            .paths()
            .into_iter()
            .cloned()
            .collect::<Vec<_>>(),
    };
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn diff_of(proposal: &Proposal) -> Option<Vec<u8>> {
    match proposal {
        Proposal::Diff(bytes) => Some(bytes.clone()),
        Proposal::Edits(_) => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The codes of a verdict's errors.
    pub(super) fn codes(verdict: &Verdict) -> Vec<String> {
        verdict
            .errors()
            .map(|finding| finding.code.to_string())
            .collect()
    }

    /// A run on `repo` with these gates.
    pub(crate) fn record(repo: &std::path::Path, gates: &[&[&str]]) -> RunRecord {
        let gate = |command: &&[&str]| {
            serde_json::json!({
                "id": "tests", "command": command, "timeout_ms": 1000, "source": "the test"
            })
        };
        let settings = serde_json::json!({
            "provider": "p", "model": "m", "edit_format": "whole-file", "parameters": {}, "model_timeout_s": 1,
            "max_calls": 1, "gates": gates.iter().map(gate).collect::<Vec<_>>(), "sandbox": "off",
            "patch": { "max_files": 5, "max_added_lines": 100 }, "max_files": 1, "max_total_bytes": 1,
            "max_iterations": 1, "named": [], "context": { "contract": "where-present", "mandatory": [] },
        });
        serde_json::from_value(serde_json::json!({
            "schema_version": "crucible-run-v1", "run_id": "r", "goal": "g", "repo": repo, "repo_slug": "r",
            "base_commit": "0".repeat(40), "branch": "detached", "created_at": "2026-01-31T09:30:00Z",
            "clock": "system", "settings": settings,
        }))
        .unwrap()
    }

    fn plan(allow: &str, names: &str) -> Plan {
        let text = format!(
            "Status: SIGNED\nScope-Allow: {allow}\nScope-Deny:\nNames: {names}\nGates: lite\nStop: verified\nBudgets: 1\n\
             Behaviors:\nResults:\n"
        );
        Plan::parse(&text).unwrap()
    }

    #[test]
    fn gate_files_are_denied_unless_named() {
        let temp_dir = tempfile::tempdir().unwrap();
        let files: Vec<RepoPath> = ["ci/check.sh", "src/self_test.py"]
            .map(|path| path.parse().unwrap())
            .into();
        let record = record(temp_dir.path(), &[]);
        let denied = |plan: &Plan| -> Vec<String> {
            let mut policy = plan_policy(plan, record.settings.patch);
            deny(&mut policy, plan, &files);
            policy
                .deny_prefixes
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        assert_eq!(
            denied(&plan("src", "")),
            ["ci/check.sh", "src/self_test.py"]
        );
        assert_eq!(denied(&plan("src", "src/self_test.py")), ["ci/check.sh"]);
    }

    #[test]
    fn only_new_marker_shows_a_secret() {
        let files = |path: &str, text: &str| Files::from([(path.parse().unwrap(), text.into())]);
        let mark = |rule: &str| format!("{MARKER_BEGIN}{rule}]");
        let before = files(
            "a.rs",
            &format!("one {} two {}", mark("aws-key"), mark("token")),
        );
        for (after, brings) in [
            ("nothing".to_owned(), false),
            (format!("{} {} new", mark("token"), mark("aws-key")), false),
            (format!("{} {}", mark("token"), mark("token")), true),
            (format!("{} {}", mark("other"), mark("token")), true),
            (
                format!("{} {} {MARKER_BEGIN}cut", mark("aws-key"), mark("token")),
                true,
            ),
        ] {
            assert_eq!(
                brings_marker(&before, &files("a.rs", &after)),
                brings,
                "{after}"
            );
        }
        assert!(brings_marker(&before, &files("b.rs", &mark("token"))));
    }
}
