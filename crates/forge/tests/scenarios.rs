//! Each folder in `scenarios/` is one skill, the class that it is judged by, and the expected findings.
//!
//! The first line of `expected` names the class, and each other line a code that must be found. Without such lines
//! nothing may be found.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario that cannot be read fails its test"
)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use crucible_ledger::SideEffect;
use crucible_testkit::{ScenarioSet, run_scenarios};
use judged::judged;

#[path = "it/judged.rs"]
mod judged;

fn main() -> ExitCode {
    run_scenarios(vec![ScenarioSet {
        name: "skills",
        root: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios"),
        at_least: 359,
        check,
    }])
}

fn check(folder: &Path) -> Result<(), String> {
    let expected = std::fs::read_to_string(folder.join("expected")).unwrap();
    let mut lines = expected.lines();
    let class = lines.next().unwrap();
    let class = SideEffect::ALL
        .iter()
        .copied()
        .find(|known| known.as_str() == class)
        .unwrap_or_else(|| panic!("unknown class {class}"));
    let codes: BTreeSet<&str> = lines.collect();
    let verdict = judged(&std::fs::read(folder.join("skill.py")).unwrap(), class);
    let found: BTreeSet<&str> = verdict
        .findings()
        .iter()
        .map(|finding| finding.code.as_str())
        .collect();
    let is_right = if codes.is_empty() {
        found.is_empty()
    } else {
        codes.is_subset(&found)
    };
    is_right
        .then_some(())
        .ok_or_else(|| format!("expected {codes:?}, found {:?}", verdict.findings()))
}
