//! Each folder in `scenarios/` is one skill, the class that it is judged by, and what must come out.
//!
//! The first line of `expected` names the class; every other one is a code that has to be found. Where there is none, nothing may be found
//! at all.

#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot be read fails its test"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crucible_forge::{
    Grants, PythonSource, SkillPaths, SkillPolicy, check_invariants, check_policy,
};
use crucible_ledger::SideEffect;
use crucible_model::Verdict;
use proptest::prelude::*;
use serde_json::json;

fn judged(bytes: &[u8], class: SideEffect) -> Verdict {
    let source = match PythonSource::parse(bytes) {
        Ok(source) => source,
        Err(fault) => return Verdict::new(vec![fault.finding()]),
    };
    let grants = Grants {
        hosts: vec!["api.example.com".parse().unwrap()],
        write_paths: vec!["notes/".parse().unwrap()],
        secrets: vec!["API_KEY".parse().unwrap()],
        read_paths: vec!["logs/".parse().unwrap()],
    };
    let name = "demo".parse().unwrap();
    let paths = SkillPaths::of(&"skillset".parse().unwrap(), &name).unwrap();
    let mut verdict = check_policy(&source, &SkillPolicy::default(), class, &grants);
    verdict.merge(check_invariants(&source, &name, &paths, class));
    verdict
}

#[test]
fn every_skill_comes_out_as_expected() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    let (mut hostile, mut harmless, mut wrong) = (0, 0, Vec::new());
    for folder in folders {
        let expected = std::fs::read_to_string(folder.join("expected")).unwrap();
        let mut lines = expected.lines();
        let class = lines.next().unwrap();
        let class = SideEffect::ALL
            .iter()
            .copied()
            .find(|known| known.as_str() == class)
            .unwrap_or_else(|| panic!("{class}"));
        let codes: BTreeSet<&str> = lines.collect();
        let verdict = judged(&std::fs::read(folder.join("skill.py")).unwrap(), class);
        let found: BTreeSet<&str> = verdict
            .findings()
            .iter()
            .map(|finding| finding.code.as_str())
            .collect();
        let right = if codes.is_empty() {
            found.is_empty()
        } else {
            codes.is_subset(&found)
        };
        if codes.is_empty() {
            harmless += 1
        } else {
            hostile += 1
        }
        if !right {
            wrong.push(format!(
                "{}\n  expected {codes:?}\n  got      {:?}",
                folder.display(),
                verdict.findings()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        hostile >= 240 && harmless >= 55,
        "scenarios are missing: {hostile} and {harmless}"
    );
}

#[test]
fn the_operators_own_rules_are_kept() {
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
