//! Judges the requirements of a spec by the landed runs. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::{Code, Digest, Finding, RunId, Verdict};

use crate::matrix::{
    EvidenceCounts, EvidenceMatrix, EvidenceState, MatrixVersion, RequirementEvidence,
    TestEvidence, TestOrigin, TestState,
};
use crate::named_test::NamedTest;
use crate::task::{RequirementTests, SpecFormat};

const PARTIAL: Code = Code::new("evidence-partial");
const MISSING: Code = Code::new("evidence-missing");
const NO_TEST: Code = Code::new("evidence-no-test");
const NO_REQUIREMENTS: Code = Code::new("evidence-no-requirements");

/// What is judged.
#[derive(Debug, Clone, Copy)]
pub struct EvidenceInput<'a> {
    /// The spec: its id, or the path of its folder in the repository.
    pub spec: &'a str,
    /// The format of the spec.
    pub format: SpecFormat,
    /// The commit that is judged.
    pub commit: &'a str,
    /// The requirements as they are now, in order.
    pub requirements: &'a [RequirementTests],
    /// The runs of this spec that landed on the commit's history and whose records verify, oldest first.
    pub runs: &'a [LandedRun],
    /// The tests that their files define at the commit.
    pub defined: &'a BTreeSet<NamedTest>,
}

/// A landed run of a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedRun {
    /// The id of the run.
    pub run: RunId,
    /// The commit that it landed.
    pub commit: String,
    /// The requirements that its task serves, with the digests of their texts at that time.
    pub serves: BTreeMap<String, Digest>,
    /// What its verify reports say of tests, by name.
    pub outcomes: BTreeMap<String, (TestOutcome, TestOrigin)>,
}

/// What the verify reports of a run say of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TestOutcome {
    /// It passed.
    Passed,
    /// It passed, also with the changed code broken on purpose.
    Unaffected,
    /// It failed, was skipped or was flaky.
    Failed,
}

/// Returns the requirements with their evidence.
///
/// For each test, the newest run that serves the requirement and reported the test decides.
#[must_use]
pub fn judge_evidence(input: &EvidenceInput<'_>) -> EvidenceMatrix {
    let requirements: Vec<RequirementEvidence> = input
        .requirements
        .iter()
        .map(|requirement| of_requirement(input, requirement))
        .collect();
    let count = |state| {
        let of_state = requirements.iter().filter(|row| row.state == state);
        of_state.count() as u64
    };
    EvidenceMatrix {
        schema_version: MatrixVersion::V1,
        spec: input.spec.to_owned(),
        format: input.format,
        commit: input.commit.to_owned(),
        counts: EvidenceCounts {
            proven: count(EvidenceState::Proven),
            partial: count(EvidenceState::Partial),
            none: count(EvidenceState::None),
        },
        requirements,
    }
}

fn of_requirement(
    input: &EvidenceInput<'_>,
    requirement: &RequirementTests,
) -> RequirementEvidence {
    let tests: Vec<TestEvidence> = requirement
        .tests
        .iter()
        .map(|test| of_test(input, requirement, test))
        .collect();
    let proven = tests
        .iter()
        .filter(|test| test.state == TestState::Proven)
        .count();
    RequirementEvidence {
        id: requirement.id.clone(),
        title: requirement.title.clone(),
        state: match proven {
            0 => EvidenceState::None,
            _ if proven == tests.len() => EvidenceState::Proven,
            _ => EvidenceState::Partial,
        },
        tests,
    }
}

fn of_test(
    input: &EvidenceInput<'_>,
    requirement: &RequirementTests,
    test: &NamedTest,
) -> TestEvidence {
    let newest = input.runs.iter().rev().find_map(|run| {
        let text = run.serves.get(&requirement.id)?;
        let (outcome, origin) = run.outcomes.get(&test.name)?;
        Some((run, text, *outcome, *origin))
    });
    let state = match newest {
        _ if !input.defined.contains(test) => TestState::Gone,
        None => TestState::NotRun,
        Some((_, _, TestOutcome::Failed, _)) => TestState::Failed,
        Some((_, text, ..)) if *text != requirement.text => TestState::Outdated,
        Some((_, _, TestOutcome::Unaffected, _)) => TestState::Unaffected,
        Some((_, _, TestOutcome::Passed, _)) => TestState::Proven,
    };
    TestEvidence {
        name: test.name.clone(),
        file: test.file.to_string(),
        state,
        run: newest.map(|(run, ..)| run.run.clone()),
        commit: newest.map(|(run, ..)| run.commit.clone()),
        origin: newest.map(|(.., origin)| origin),
    }
}

/// Returns one error for each requirement that is not proven, for a gate. A spec without requirements is an error, too.
#[must_use]
pub fn evidence_findings(matrix: &EvidenceMatrix) -> Verdict {
    let mut verdict = Verdict::default();
    if matrix.requirements.is_empty() {
        let hint = "the spec has no requirement, so nothing can be proven";
        verdict.push(Finding::error(NO_REQUIREMENTS, matrix.spec.as_str(), hint));
    }
    for row in &matrix.requirements {
        let first = row
            .tests
            .iter()
            .find(|test| test.state != TestState::Proven);
        let (code, what) = match row.state {
            EvidenceState::Proven => continue,
            EvidenceState::Partial => (PARTIAL, "some of its tests are not proven"),
            EvidenceState::None if row.tests.is_empty() => {
                let hint = "it names no test; add a line `Test: NAME in PATH` to it";
                verdict.push(Finding::error(NO_TEST, row.id.as_str(), hint));
                continue;
            }
            EvidenceState::None => (MISSING, "none of its tests is proven"),
        };
        let why = first.map_or_else(String::new, |test| {
            format!(": {} {}", test.name, test.state.words())
        });
        verdict.push(Finding::error(
            code,
            row.id.as_str(),
            format!("{what}{why}"),
        ));
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(id: &str, text: &str, tests: &[&str]) -> RequirementTests {
        RequirementTests {
            id: id.to_owned(),
            title: format!("Title of {id}"),
            text: Digest::compute(text.as_bytes()),
            tests: tests.iter().map(|test| test.parse().unwrap()).collect(),
        }
    }

    fn run(at: u32, serves: &[(&str, &str)], outcomes: &[(&str, TestOutcome)]) -> LandedRun {
        LandedRun {
            run: format!("20261127-09300{at}-abcdef").parse().unwrap(),
            commit: at.to_string().repeat(40),
            serves: serves
                .iter()
                .map(|(id, text)| ((*id).to_owned(), Digest::compute(text.as_bytes())))
                .collect(),
            outcomes: outcomes
                .iter()
                .map(|(name, outcome)| ((*name).to_owned(), (*outcome, TestOrigin::Existing)))
                .collect(),
        }
    }

    fn states(
        requirements: &[RequirementTests],
        runs: &[LandedRun],
    ) -> Vec<(EvidenceState, Vec<TestState>)> {
        let defined = requirements
            .iter()
            .flat_map(|row| row.tests.clone())
            .filter(|test| !test.name.contains("gone"))
            .collect();
        let matrix = judge_evidence(&EvidenceInput {
            spec: "export",
            format: SpecFormat::Crucible,
            commit: "c",
            requirements,
            runs,
            defined: &defined,
        });
        let counts = matrix.counts;
        assert_eq!(
            (counts.proven + counts.partial + counts.none) as usize,
            requirements.len()
        );
        assert_eq!(
            evidence_findings(&matrix).passes(),
            !requirements.is_empty() && counts.partial + counts.none == 0
        );
        let row = |row: RequirementEvidence| {
            (row.state, row.tests.iter().map(|test| test.state).collect())
        };
        matrix.requirements.into_iter().map(row).collect()
    }

    use EvidenceState as E;
    use TestOutcome::{Failed, Passed, Unaffected};
    use TestState as T;

    #[test]
    fn requirement_is_proven_only_if_every_test_is() {
        let requirements = [
            requirement("R-001", "a", &["t.py::one", "t.py::two"]),
            requirement("R-002", "b", &["t.py::one"]),
            requirement("R-003", "c", &[]),
        ];
        let serves = [("R-001", "a"), ("R-002", "b"), ("R-003", "c")];
        let one = run(1, &serves, &[("t.py::one", Passed)]);
        assert_eq!(
            states(&requirements, std::slice::from_ref(&one)),
            [
                (E::Partial, vec![T::Proven, T::NotRun]),
                (E::Proven, vec![T::Proven]),
                (E::None, vec![]),
            ]
        );
        let two = run(2, &serves, &[("t.py::two", Passed)]);
        assert_eq!(states(&requirements, &[one, two])[0].0, E::Proven);
        assert_eq!(
            states(&requirements[..2], &[])[0],
            (E::None, vec![T::NotRun; 2])
        );
        assert_eq!(states(&[], &[]), []);
    }

    #[test]
    fn newest_run_decides_and_unrelated_requirements_are_ignored() {
        let requirements = [requirement("R-001", "a", &["t.py::one"])];
        let passed = |at| run(at, &[("R-001", "a")], &[("t.py::one", Passed)]);
        let failed = |at| run(at, &[("R-001", "a")], &[("t.py::one", Failed)]);
        let state = |runs: &[LandedRun]| states(&requirements, runs)[0].1[0];
        assert_eq!(state(&[passed(1), failed(2)]), T::Failed);
        assert_eq!(state(&[failed(1), passed(2)]), T::Proven);
        // It reported other tests only.
        assert_eq!(
            state(&[passed(1), run(2, &[("R-001", "a")], &[])]),
            T::Proven
        );
        assert_eq!(
            state(&[run(1, &[("R-002", "a")], &[("t.py::one", Passed)])]),
            T::NotRun
        );
        assert_eq!(
            state(&[run(1, &[("R-001", "old")], &[("t.py::one", Passed)])]),
            T::Outdated
        );
        assert_eq!(
            state(&[run(1, &[("R-001", "a")], &[("t.py::one", Unaffected)])]),
            T::Unaffected
        );
    }

    #[test]
    fn test_that_is_gone_proves_nothing() {
        let requirements = [requirement("R-001", "a", &["t.py::gone"])];
        let passed = run(1, &[("R-001", "a")], &[("t.py::gone", Passed)]);
        assert_eq!(states(&requirements, &[passed]), [(E::None, vec![T::Gone])]);
    }
}
