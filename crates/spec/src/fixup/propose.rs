//! Parses an answer into a diff that may be applied: a pure function.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::{Code, Digest, EditFormat, Finding, RepoPath, Untrusted, Verdict};
use crucible_patch::{
    Change, Policy, Proposal, RestoredDefinitions, apply, judge, make_diff, parse, read_answer,
    restore_lost_definitions,
};
use crucible_secrets::{MARKER_BEGIN, Scanner};

use super::ProposedFixup;
use super::blocks::dropped_block;
use crate::receipt::FixedFile;

type Files = BTreeMap<RepoPath, Vec<u8>>;

/// Parses an answer in this format as a change of `files`, every file that the model was shown, and judges it.
///
/// # Errors
///
/// A verdict whose findings can be sent to the model as a correction.
pub(crate) fn propose_fixup(
    answer: &Untrusted,
    format: EditFormat,
    files: &BTreeMap<RepoPath, Vec<u8>>,
    policy: &Policy,
) -> Result<ProposedFixup, Verdict> {
    let scanner = Scanner::builtin();
    if !scanner.scan(answer.as_str().as_bytes()).is_empty() {
        return Err(refused(secret("the answer")));
    }
    let paths: Vec<RepoPath> = files.keys().cloned().collect();
    let proposal = read_answer(format, answer, &paths).map_err(|error| refused(error.finding()))?;
    if let Some(finding) = dropped_block(format, answer.as_str(), &proposal) {
        return Err(refused(finding));
    }
    let after = apply(&proposal, files).map_err(|error| refused(error.finding()))?;
    // A small model omits unchanged definitions, and the gate would refuse the file for that.
    let RestoredDefinitions {
        files: after,
        findings: kept,
    } = restore_lost_definitions(&proposal, files, after, &policy.may_drop);
    let touched = touched(&proposal, files, &after, policy)?;
    let before: Files = touched
        .iter()
        .filter_map(|path| files.get_key_value(path))
        .map(|(path, bytes)| (path.clone(), bytes.clone()))
        .collect();
    if let Some(path) = with_new_secret(scanner, &before, &after) {
        return Err(refused(secret(path.as_str())));
    }
    let diff = make_diff(&before, &after).map_err(|error| refused(error.finding()))?;
    if diff.is_empty() {
        let hint = "the answer changes no file; change the lines that the review asks for";
        return Err(refused(Finding::error(
            Code::new("fixup-unchanged"),
            "the answer",
            hint,
        )));
    }
    let patch = parse(&diff).map_err(|error| refused(error.finding()))?;
    let mut verdict = judge(&patch, policy, &before, &after);
    if !verdict.passes() {
        return Err(verdict);
    }
    verdict.merge(Verdict::new(kept));
    // Only the diff is stored, so it has to describe exactly this change.
    let changed: Files = after
        .into_iter()
        .filter(|(path, bytes)| before.get(path) != Some(bytes))
        .collect();
    if apply(&Proposal::Diff(diff.clone()), &before).as_ref() != Ok(&changed) {
        let hint = "the change has no diff that says exactly the same; give the changed files in another way";
        return Err(refused(Finding::error(
            Code::new("fixup-not-canonical"),
            "the answer",
            hint,
        )));
    }
    let files = patch
        .files
        .iter()
        .map(|file| FixedFile {
            path: file.path.to_string(),
            before: before.get(&file.path).map(|bytes| Digest::compute(bytes)),
            after: changed.get(&file.path).map(|bytes| Digest::compute(bytes)),
        })
        .collect();
    Ok(ProposedFixup {
        diff,
        files,
        verdict,
    })
}

/// The paths that are added, changed or removed. A diff from the model is judged in its original form
/// first: the canonical one has no modes, renames or binary content, and a forbidden change must not pass
/// because it was dropped.
fn touched(
    proposal: &Proposal,
    files: &Files,
    after: &Files,
    policy: &Policy,
) -> Result<BTreeSet<RepoPath>, Verdict> {
    let bytes = match proposal {
        Proposal::Edits(edits) => return Ok(edits.iter().map(|edit| edit.path.clone()).collect()),
        Proposal::Diff(bytes) => bytes,
    };
    let patch = parse(bytes).map_err(|error| refused(error.finding()))?;
    let read: Files = patch
        .paths()
        .into_iter()
        .filter_map(|path| files.get_key_value(path))
        .map(|(path, bytes)| (path.clone(), bytes.clone()))
        .collect();
    let verdict = judge(&patch, policy, &read, after);
    if !verdict.passes() {
        return Err(verdict);
    }
    let mut touched = BTreeSet::new();
    for file in patch.files {
        touched.insert(file.path);
        if let Change::Rename { from } = file.change {
            touched.insert(from);
        }
    }
    Ok(touched)
}

/// The first file with more secrets, or more marks of redacted ones, than before. A recorded answer has a
/// mark in place of each secret.
fn with_new_secret<'a>(
    scanner: &Scanner,
    before: &Files,
    after: &'a Files,
) -> Option<&'a RepoPath> {
    let marks = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches(MARKER_BEGIN).count();
    after.iter().find_map(|(path, bytes)| {
        let old = before.get(path).map(Vec::as_slice).unwrap_or_default();
        let is_new = bytes != old
            && (scanner.scan(bytes).len() > scanner.scan(old).len() || marks(bytes) > marks(old));
        is_new.then_some(path)
    })
}

fn secret(subject: &str) -> Finding {
    let hint = "what looks like a secret is written into no file; leave it out, or read it from the environment";
    Finding::error(Code::new("fixup-secret"), subject, hint)
}

fn refused(finding: Finding) -> Verdict {
    Verdict::new(vec![finding])
}
