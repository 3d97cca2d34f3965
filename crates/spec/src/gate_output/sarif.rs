//! A judgement as SARIF 2.1.0 for code scanning.

use crucible_model::{Failure, SarifRule, SarifRun, Timestamp, sarif_unjudged};
use serde_json::Value;

use super::GateView;

/// The page of the gate's codes; its text is the rules' help.
const PAGE: &str = include_str!("../../../../docs/codes/gate.md");
/// The page and the code of the one finding that is not the gate's own.
const FIXUP_PAGE: &str = include_str!("../../../../docs/codes/fixup.md");
const FIXUP_CODE: &str = "fixup-under-way";

/// The log of one judgement.
#[must_use]
pub fn log(view: &GateView<'_>) -> Value {
    let mut rules = SarifRule::of_page(PAGE);
    rules.extend(
        SarifRule::of_page(FIXUP_PAGE)
            .into_iter()
            .filter(|rule| rule.code == FIXUP_CODE),
    );
    let findings: Vec<_> = view
        .findings
        .iter()
        .map(|found| (&found.finding, view.places.file(found)))
        .collect();
    SarifRun {
        id: &id(view.report.spec_id.as_str()),
        rules: &rules,
        findings: &findings,
        left_out: view.left_out,
        exit_code: view.report.exit_status().code(),
        at: view.report.judged_at,
    }
    .log()
}

/// The log of a gate that reached no verdict: no result, and the reason.
#[must_use]
pub fn unjudged(spec: &str, at: Timestamp, error: &Failure) -> Value {
    sarif_unjudged(&id(spec), at, error)
}

fn id(spec: &str) -> String {
    format!("crucible-gate/{spec}/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heading_of_page_is_described_rule() {
        let rules = SarifRule::of_page(PAGE);
        assert_eq!(
            rules.len(),
            PAGE.lines().filter(|line| line.starts_with("## ")).count()
        );
        for SarifRule { code, help } in &rules {
            assert!(
                code.starts_with("gate-") && help.ends_with('.') && help.len() > 30,
                "{code}: {help}"
            );
        }
    }
}
