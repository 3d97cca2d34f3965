//! A judgement as SARIF 2.1.0 for code scanning.

use crucible_model::{Failure, SarifRule, SarifRun, Timestamp, code_sections, sarif_unjudged};
use serde_json::Value;

use super::GateView;

/// The one code that is not the gate's own.
const FIXUP_CODE: &str = "fixup-under-way";

/// The log of one judgement.
#[must_use]
pub fn log(view: &GateView<'_>) -> Value {
    let rules: Vec<SarifRule> = rules().collect();
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

/// Every code that a gate may find.
fn rules() -> impl Iterator<Item = SarifRule> {
    let of_fixups = code_sections("fixup").filter(|section| section.code == FIXUP_CODE);
    code_sections("gate").chain(of_fixups).map(SarifRule::from)
}

fn id(spec: &str) -> String {
    format!("crucible-gate/{spec}/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heading_of_page_is_described_rule() {
        let page = include_str!("../../../../docs/codes/gate.md");
        let headings = page.lines().filter(|line| line.starts_with("## ")).count();
        assert_eq!(rules().count(), headings + 1);
        for SarifRule { code, help } in rules() {
            assert!(
                (code.starts_with("gate-") || code == FIXUP_CODE)
                    && help.ends_with('.')
                    && help.len() > 30,
                "{code}: {help}"
            );
        }
    }
}
