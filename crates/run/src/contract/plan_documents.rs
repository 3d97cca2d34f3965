//! A plan with the documents that belong to it, judged as a whole: the gate `plan_check`. Pure.

use std::collections::{BTreeMap, HashSet};

use crucible_model::{Code, Finding, RepoPath, Verdict};

use crate::contract::expected_results::{
    EvidenceFound, check_evidence, check_gates, known_results, read_results,
};
use crate::contract::plan::{Plan, check_plan};
use crate::contract::reasons::check_reasons;

const MISSING_DOCUMENT: Code = Code::new("plan-document-missing");
const NOT_EXECUTED: Code = Code::new("plan-gate-not-executed");

/// A plan and its documents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanDocuments<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The text of `REASONS.md`, if present.
    pub reasons: Option<&'a str>,
    /// The text of `EXPECTED_RESULTS.md`, if present.
    pub results: Option<&'a str>,
    /// The behaviours of the repository's catalogue.
    pub behaviors: &'a [String],
}

impl PlanDocuments<'_> {
    /// Judges the plan, its reasons and its expected results by themselves and against each other.
    #[must_use]
    pub(crate) fn check(&self) -> Verdict {
        let known = self.results.map(known_results).unwrap_or_default();
        let mut verdict = check_plan(self.plan, self.behaviors, &known);
        match self.results {
            Some(text) => {
                let (results, form) = read_results(text);
                verdict.merge(form);
                verdict.merge(check_gates(&results, self.plan));
            }
            None => verdict.push(missing("EXPECTED_RESULTS.md")),
        }
        match self.reasons {
            Some(text) => verdict.merge(check_reasons(text, self.behaviors, &known)),
            None => verdict.push(missing("REASONS.md")),
        }
        verdict
    }

    /// The files that the expected results name as evidence, each once.
    #[must_use]
    pub(crate) fn evidence(&self) -> Vec<RepoPath> {
        let results = self
            .results
            .map(|text| read_results(text).0)
            .unwrap_or_default();
        let mut paths: Vec<RepoPath> = results
            .into_iter()
            .flat_map(|result| result.evidence)
            .collect();
        paths.sort();
        paths.dedup();
        paths
    }

    /// Checks the evidence against what was found at its paths.
    #[must_use]
    pub(crate) fn check_evidence(&self, found: &BTreeMap<RepoPath, EvidenceFound>) -> Verdict {
        let results = self
            .results
            .map(|text| read_results(text).0)
            .unwrap_or_default();
        check_evidence(&results, found)
    }
}

/// Judges whether every gate that the plan declares is among those that were executed.
#[must_use]
pub(crate) fn check_executed(plan: &Plan, executed: &[String]) -> Verdict {
    let executed: HashSet<&str> = executed.iter().map(String::as_str).collect();
    let left = plan
        .gates
        .iter()
        .filter(|gate| !executed.contains(gate.as_str()));
    let finding = |gate: &String| {
        Finding::error(
            NOT_EXECUTED,
            gate,
            "The plan declares this gate, but it did not run.",
        )
    };
    Verdict::new(left.map(finding).collect())
}

fn missing(name: &str) -> Finding {
    Finding::error(
        MISSING_DOCUMENT,
        name,
        "Add this document beside the plan; docs/contracts/ has its grammar.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "Status: SIGNED\nScope-Allow: src/\nScope-Deny:\n\
                        Gates: lite, plan_check, patch_check, behavior_catalog_check\nStop: verified\nBudgets: 1\n\
                        Behaviors: B001\nResults: R001\n";
    const REASONS: &str = "- R001: because\n- B001: it is touched\n";
    const RESULTS: &str = "## R001\nAcceptance: it works\nEvidence: a.txt\nRelated-Gates: lite\n";

    fn codes(verdict: &Verdict) -> Vec<String> {
        verdict
            .findings()
            .iter()
            .map(|finding| format!("{} {}", finding.code, finding.subject))
            .collect()
    }

    fn judged(
        plan: &str,
        reasons: Option<&str>,
        results: Option<&str>,
        behaviors: &[&str],
    ) -> Vec<String> {
        let plan = Plan::parse(plan).unwrap();
        let behaviors: Vec<String> = behaviors.iter().map(|id| (*id).to_owned()).collect();
        codes(
            &PlanDocuments {
                plan: &plan,
                reasons,
                results,
                behaviors: &behaviors,
            }
            .check(),
        )
    }

    #[test]
    fn missing_plan_parts_are_named() {
        assert_eq!(
            judged(PLAN, Some(REASONS), Some(RESULTS), &["B001"]),
            [""; 0]
        );
        assert_eq!(
            judged(PLAN, Some(REASONS), Some(RESULTS), &[]),
            ["plan-id-unresolved B001", "plan-reason-unresolved B001"]
        );
        assert_eq!(
            judged(PLAN, None, Some(RESULTS), &["B001"]),
            ["plan-document-missing REASONS.md"]
        );
        assert_eq!(
            judged(PLAN, Some(REASONS), None, &["B001"]),
            [
                "plan-id-unresolved R001",
                "plan-document-missing EXPECTED_RESULTS.md",
                "plan-reason-unresolved R001"
            ]
        );
        let other = RESULTS.replace("lite", "lite, web");
        assert_eq!(
            judged(PLAN, Some(REASONS), Some(&other), &["B001"]),
            ["plan-result-gate R001"]
        );
    }

    #[test]
    fn every_declared_gate_must_have_been_executed() {
        let plan = Plan::parse(PLAN).unwrap();
        let all: Vec<String> = plan.gates.clone();
        assert_eq!(codes(&check_executed(&plan, &all)), [""; 0]);
        assert_eq!(
            codes(&check_executed(&plan, &all[..3])),
            ["plan-gate-not-executed behavior_catalog_check"]
        );
        assert_eq!(
            check_executed(&plan, &["Lite".to_owned()]).findings().len(),
            4
        );
    }

    #[test]
    fn each_evidence_file_is_looked_at_once() {
        let plan = Plan::parse(PLAN).unwrap();
        let results = format!("{RESULTS}\n{}", RESULTS.replace("R001", "R002"));
        let documents = PlanDocuments {
            plan: &plan,
            reasons: None,
            results: Some(&results),
            behaviors: &[],
        };
        assert_eq!(documents.evidence(), ["a.txt".parse().unwrap()]);
        assert_eq!(
            documents.check_evidence(&BTreeMap::new()).findings().len(),
            2
        );
    }
}
