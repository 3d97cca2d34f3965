//! The policy of skills: rules of the operator, and that no text makes it panic.

use crucible_forge::{Grants, PythonSource, SkillPolicy, check_policy};
use crucible_ledger::SideEffect;
use proptest::prelude::*;
use serde_json::json;

use crate::judged::judged;

#[test]
fn operator_policy_is_enforced() {
    let source = PythonSource::parse(b"import yaml\nimport random\nx = 1  # TODO\n").unwrap();
    let policy = SkillPolicy::read(
        "allowed_imports: [yaml]\nforbidden_imports: [random]\nforbidden_patterns: [TODO]\n",
    )
    .unwrap();
    let found = check_policy(&source, &policy, SideEffect::ReadOnly, &Grants::default());
    let found: Vec<_> = found
        .findings()
        .iter()
        .map(|finding| (finding.code.as_str(), finding.subject.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("forge-import-forbidden", "line 2, column 1: random"),
            ("forge-pattern", "line 3, column 10")
        ]
    );
    // What is granted and left out is told as that.
    for (class, granted, line, list) in [
        (
            SideEffect::FileWrite,
            json!({"write_paths": ["notes"]}),
            "open('notes/x.md', 'w')",
            "allowed_write_paths",
        ),
        (
            SideEffect::Network,
            json!({"hosts": ["127.0.0.1"]}),
            "x = 'http://127.0.0.1/x'",
            "allowed_network",
        ),
    ] {
        let source =
            PythonSource::parse(format!("def f() -> None:\n    {line}\n").as_bytes()).unwrap();
        let grants: Grants = serde_json::from_value(granted).unwrap();
        let judged = |policy: &str| {
            check_policy(&source, &SkillPolicy::read(policy).unwrap(), class, &grants)
        };
        assert!(judged("forbidden_imports: []\n").passes(), "{line}");
        let left_out = judged(&format!("{list}: []\n"));
        assert!(
            left_out
                .findings()
                .iter()
                .any(|finding| finding.hint.contains(list)),
            "{left_out:?}"
        );
    }
    let opened = SkillPolicy::read("allowed_imports: [subprocess]\n").unwrap();
    let source = PythonSource::parse(b"import subprocess\n").unwrap();
    assert!(!check_policy(&source, &opened, SideEffect::ReadOnly, &Grants::default()).passes());
}

const WORDS: [&str; 24] = [
    "import os\n",
    "os",
    ".",
    "system",
    "(",
    ")",
    "[",
    "]",
    " = ",
    "\n",
    "    ",
    "def f():\n",
    "class A(",
    "):\n",
    "x",
    ",",
    "open",
    "'w'",
    "f'{",
    "}'",
    "lambda: ",
    "from os import ",
    "as ",
    ":=",
];

mod properties {
    use super::*;

    proptest! {
        #[test]
        fn no_text_brings_the_judges_down(words in proptest::collection::vec(0..WORDS.len(), 0..60)) {
            let text: String = words.into_iter().filter_map(|word| WORDS.get(word)).copied().collect();
            judged(text.as_bytes(), SideEffect::ReadOnly);
        }
    }
}
