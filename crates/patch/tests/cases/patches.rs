//! Each folder in `scenarios/` is one patch, the policy it is judged by, the files it meets, and what must come out.
//!
//! `expected.json` holds either the verdict with every finding's code and subject in order, or the code and line of
//! the error with which the patch is refused before it is judged. The files afterwards are what applying the patch
//! gives; where it does not apply they are the files before, as they would be in a tree that something else changed.

use std::collections::BTreeMap;
use std::path::Path;

use crucible_model::RepoPath;
use crucible_patch::{Policy, Proposal, apply, judge, parse};
use serde_json::{Value, json};

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn outcome(folder: &Path) -> Value {
    let raw = read(&folder.join("patch.diff"));
    let policy: Policy = serde_json::from_slice(&read(&folder.join("policy.json"))).unwrap();
    let before: BTreeMap<RepoPath, String> =
        serde_json::from_slice(&read(&folder.join("before.json"))).unwrap();
    let before: BTreeMap<RepoPath, Vec<u8>> = before
        .into_iter()
        .map(|(path, text)| (path, text.into_bytes()))
        .collect();
    let patch = match parse(&raw) {
        Ok(patch) => patch,
        Err(error) => return json!({ "error": error.code(), "line": error.line }),
    };
    let after = apply(&Proposal::Diff(raw), &before).unwrap_or_else(|_| before.clone());
    let verdict = judge(&patch, &policy, &before, &after);
    let findings: Vec<_> = verdict
        .findings()
        .iter()
        .map(|finding| json!([finding.code, finding.subject]))
        .collect();
    for finding in verdict.findings() {
        assert!(
            !finding.hint.is_empty() && !finding.hint.contains("plan"),
            "there is no plan here: {}",
            finding.hint
        );
    }
    json!({ "verdict": verdict.outcome(), "findings": findings })
}

/// Compares the verdict with `expected.json`.
pub(crate) fn check(folder: &Path) -> Result<(), String> {
    let expected: Value = serde_json::from_slice(&read(&folder.join("expected.json"))).unwrap();
    let found = outcome(folder);
    (found == expected)
        .then_some(())
        .ok_or_else(|| format!("expected {expected}, found {found}"))
}
