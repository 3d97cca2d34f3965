//! Each folder in `scenarios/` is one patch, the policy it is judged by, the files it meets, and what must come out.
//!
//! `expected.json` holds either the verdict with every finding's code and subject in order, or the code and line of
//! the error with which the patch is refused before it is judged. The files afterwards are what applying the patch
//! gives; where it does not apply they are the files before, as they would be in a tree that something else changed.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario that cannot be read fails its test"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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

#[test]
fn every_scenario_comes_out_as_expected() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    assert!(
        folders.len() >= 40,
        "scenarios are missing: {}",
        folders.len()
    );
    let mut wrong = Vec::new();
    for folder in folders {
        let expected: Value = serde_json::from_slice(&read(&folder.join("expected.json"))).unwrap();
        let got = outcome(&folder);
        if got != expected {
            wrong.push(format!(
                "{}\n  expected {expected}\n  got      {got}",
                folder.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_seeds_five_keys_admit_a_new_source_by_its_path() {
    let admits = |policy: Value, path: &str, text: &str| {
        let policy = Policy::parse(policy.to_string().as_bytes()).unwrap();
        let diff = format!(
            "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{text}\n"
        );
        let patch = parse(diff.as_bytes()).unwrap();
        let after = apply(&Proposal::Diff(diff.into_bytes()), &BTreeMap::new()).unwrap();
        let verdict = judge(&patch, &policy, &BTreeMap::new(), &after);
        verdict
            .findings()
            .iter()
            .map(|finding| finding.code.to_string())
            .collect::<Vec<_>>()
    };
    let five = |roots: &[&str]| json!({ "allow_roots": roots, "deny_prefixes": [], "deny_suffixes": [], "max_files": 5, "max_added_lines": 400 });
    assert_eq!(
        admits(five(&["src/a.py", "src/new.py"]), "src/new.py", "x = 1"),
        [""; 0]
    );
    assert_eq!(
        admits(five(&["docs/new.md"]), "docs/new.md", "New."),
        [""; 0]
    );
    assert_eq!(
        admits(five(&["src/"]), "src/new.py", "x = 1"),
        ["patch-new-file-unnamed"]
    );
    for looked_up in [
        "src/pytest.py",
        "src/sitecustomize.py",
        "json.py",
        "include/a.h",
        "data/a.bin",
    ] {
        let found = admits(five(&[looked_up]), looked_up, "x");
        assert!(
            found.contains(&"patch-new-file-unnamed".to_owned()),
            "{looked_up}: {found:?}"
        );
        let named = json!({ "allow_roots": ["."], "named": [looked_up] });
        assert_eq!(admits(named, looked_up, "x"), [""; 0], "{looked_up}");
    }
    let test = "tests/test_new.py";
    assert_eq!(admits(five(&[test]), test, "x = 1"), ["patch-test-edited"]);
    assert_eq!(
        admits(
            json!({ "allow_roots": ["tests/"], "named": [test] }),
            test,
            "x = 1"
        ),
        [""; 0]
    );

    // A name with a backslash is opened by whoever writes it so, and by nothing else.
    let odd = "units/dev\\x2did.mount";
    assert_eq!(
        admits(
            json!({ "allow_roots": ["."], "named": [odd] }),
            "units/plain.mount",
            "x"
        ),
        ["patch-new-file-unnamed"]
    );
    let quoted = |policy: Value| {
        let policy = Policy::parse(policy.to_string().as_bytes()).unwrap();
        let diff = "diff --git \"a/units/dev\\\\x2did.mount\" \"b/units/dev\\\\x2did.mount\"\n--- \"a/units/dev\\\\x2did.mount\"\n\
            +++ \"b/units/dev\\\\x2did.mount\"\n@@ -1 +1 @@\n-x\n+y\n";
        let patch = parse(diff.as_bytes()).unwrap();
        let before = BTreeMap::from([(odd.parse().unwrap(), b"x\n".to_vec())]);
        let after = apply(&Proposal::Diff(diff.as_bytes().to_vec()), &before).unwrap();
        let verdict = judge(&patch, &policy, &before, &after);
        verdict
            .findings()
            .iter()
            .map(|finding| finding.code.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(quoted(json!({ "allow_roots": ["."] })), ["patch-backslash"]);
    assert_eq!(
        quoted(json!({ "allow_roots": ["units/"], "named": [odd] })),
        [""; 0]
    );
    assert_eq!(quoted(json!({ "allow_roots": [odd] })), [""; 0]);
    assert_eq!(
        quoted(json!({ "allow_roots": ["src/"] })),
        ["patch-path-outside-scope", "patch-backslash"]
    );
}
