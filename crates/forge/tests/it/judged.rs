//! A skill as policy and invariants judge it.

#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot be read fails its test"
)]

use crucible_forge::{
    Grants, PythonSource, SkillPaths, SkillPolicy, check_invariants, check_policy,
};
use crucible_ledger::SideEffect;
use crucible_model::Verdict;

/// The verdict on a skill called `demo` with one grant of each kind.
pub(crate) fn judged(bytes: &[u8], class: SideEffect) -> Verdict {
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
    let paths = SkillPaths::new(&"skillset".parse().unwrap(), &name).unwrap();
    let mut verdict = check_policy(&source, &SkillPolicy::default(), class, &grants);
    verdict.merge(check_invariants(&source, &name, &paths, class));
    verdict
}
