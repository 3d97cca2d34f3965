//! What a skill may do, judged by its syntax tree.
//!
//! [`check_policy`] walks the tree once. Every mention of a thing counts, whether it is called or not, so that it does not matter how it is
//! passed on; modules are not values, attributes are not named by computed text, and nothing but imports, constants and definitions runs
//! while the skill is imported. What a value holds at run time is the sandbox's business, not this judge's.

mod file;
mod import_time;
mod table;
mod test_asks;
mod walk;
mod words;

use crucible_ledger::SideEffect;
use crucible_model::{Code, Finding, Verdict};

pub(crate) use file::MAX_POLICY_BYTES;
pub use file::{SkillPolicy, SkillPolicyError};
pub(crate) use table::is_sensitive_builtin;
pub(crate) use test_asks::EMPTY as TEST_EMPTY;

use crate::grants::Grants;
use crate::paths::SkillPaths;
use crate::python::PythonSource;

/// Judges the source of a skill of this class, with these grants, by the built-in rules and the operator's own.
#[must_use]
pub fn check_policy(
    source: &PythonSource,
    policy: &SkillPolicy,
    class: SideEffect,
    grants: &Grants,
) -> Verdict {
    let mut verdict = walk::Walk::judge(source, policy, class, grants, None);
    patterns(source, policy, &mut verdict);
    verdict
}

/// Judges the test of the skill of these places: by the same rules as a skill of the class `READ_ONLY`, which may also use pytest and the
/// skill, write below `tmp_path`, and replace what the skill's own module holds. What could end, skip or steer the run is refused, and so is a test
/// that compares nothing.
#[must_use]
pub fn check_test_policy(
    source: &PythonSource,
    policy: &SkillPolicy,
    paths: &SkillPaths,
) -> Verdict {
    let grants = Grants::default();
    let mut verdict = walk::Walk::judge(source, policy, SideEffect::ReadOnly, &grants, Some(paths));
    verdict.merge(test_asks::judge(source));
    patterns(source, policy, &mut verdict);
    verdict
}

/// What the operator's own patterns find.
fn patterns(source: &PythonSource, policy: &SkillPolicy, verdict: &mut Verdict) {
    for pattern in &policy.forbidden_patterns {
        if let Some(found) = pattern.find(source.text()) {
            let before = source.text().get(..found.start()).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let column = found.start() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
            verdict.push(Finding::error(
                Code::new("forge-pattern"),
                format!("line {line}, column {column}"),
                format!("The policy forbids what matches {:?}.", pattern.as_str()),
            ));
        }
    }
}
