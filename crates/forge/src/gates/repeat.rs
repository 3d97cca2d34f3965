//! The skill's own test again, with another hash seed: a test that depends on the order of a set passes only sometimes.
//!
//! The gate `pytest` judges everything else about the test, so this one reports only which tests fail.

use async_trait::async_trait;
use crucible_model::{Code, Finding, Verdict};
use serde_json::json;

use super::pytest::tests;
use super::witness::TestReport;
use super::{ForgeGate, GateAnswer, GateError, GateSite, SkillGate};

/// The seed. The gate `pytest` leaves it to Python, which draws one.
const SEED: (&str, &str) = ("PYTHONHASHSEED", "0");

pub(super) struct Repeat;

#[async_trait]
impl ForgeGate for Repeat {
    fn id(&self) -> SkillGate {
        SkillGate::Repeat
    }

    fn runs_tests(&self) -> bool {
        true
    }

    async fn run(&self, site: &GateSite<'_>) -> Result<GateAnswer, GateError> {
        let too_large = site.too_large();
        if !too_large.passes() {
            return Ok(GateAnswer::from_verdict(too_large));
        }
        let (run, report) = tests(site, "repeat", &[site.test.path.as_str()], &[SEED]).await?;
        let verdict = match (run.abnormal_end(), &report) {
            (Some(ended), _) => Verdict::new(vec![ended]),
            (None, None) => Verdict::new(vec![run.failed(run.exit_code().unwrap_or(-1))]),
            (None, Some(report)) => judge(report),
        };
        let mut answer = run.answer(verdict);
        answer.facts.insert("seed".to_owned(), json!(SEED.1));
        Ok(answer)
    }
}

/// Judges the report of the repeated test.
fn judge(report: &TestReport) -> Verdict {
    let (name, seed) = SEED;
    let finding = |test: &str| {
        let hint = format!(
            "It fails with {name}={seed}. Sort what comes from a set, and compare no hash; if the gate pytest fails too, fix that first."
        );
        Finding::error(Code::new("forge-test-unstable"), test, hint)
    };
    let failures = report.complaints.iter();
    let mut verdict = Verdict::new(failures.map(|failure| finding(&failure.test)).collect());
    if verdict.passes() && report.failed + report.errors > 0 {
        verdict.push(finding("a test"));
    }
    verdict
}

#[cfg(test)]
mod judge_tests {
    use super::*;
    use crate::gates::witness::TestFailure;

    #[test]
    fn each_failed_test_is_unstable() {
        let failure = |test: &str| TestFailure {
            test: test.to_owned(),
            line: None,
            text: "AssertionError".to_owned(),
        };
        let report = TestReport {
            passed: 1,
            failed: 2,
            complaints: vec![failure("test_a"), failure("test_b")],
            ..TestReport::default()
        };
        let verdict = judge(&report);
        let subjects: Vec<&str> = verdict
            .errors()
            .map(|finding| finding.subject.as_str())
            .collect();
        assert_eq!(subjects, ["test_a", "test_b"]);
        assert!(verdict.findings()[0].hint.contains("PYTHONHASHSEED=0"));
    }

    #[test]
    fn counted_failures_without_details_fail() {
        let report = |failed, errors| TestReport {
            passed: 3,
            failed,
            errors,
            ..TestReport::default()
        };
        assert!(judge(&report(0, 0)).passes());
        assert!(!judge(&report(1, 0)).passes());
        assert!(!judge(&report(0, 1)).passes());
    }
}
