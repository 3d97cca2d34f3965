//! The five keys of a patch policy, as users write them.

use std::collections::BTreeMap;

use crucible_patch::{Policy, Proposal, apply, judge, parse};
use serde_json::{Value, json};

#[test]
fn five_policy_keys_admit_new_source_by_path() {
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
    let unusual_text = "units/dev\\x2did.mount";
    assert_eq!(
        admits(
            json!({ "allow_roots": ["."], "named": [unusual_text] }),
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
        let before = BTreeMap::from([(unusual_text.parse().unwrap(), b"x\n".to_vec())]);
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
        quoted(json!({ "allow_roots": ["units/"], "named": [unusual_text] })),
        [""; 0]
    );
    assert_eq!(quoted(json!({ "allow_roots": [unusual_text] })), [""; 0]);
    assert_eq!(
        quoted(json!({ "allow_roots": ["src/"] })),
        ["patch-path-outside-scope", "patch-backslash"]
    );
}
