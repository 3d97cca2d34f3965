//! What a verification has shown, in words: no more than the report holds.

use crucible_verify::{
    BrokenOutcome, HeldOutOutcome, HeldOutReport, Objection, ObjectionOutcome, ResultsFrom,
    VerifyReport, WorldOutcome,
};

/// Returns the lines of a report that passed: the tests, the broken-change check, the second world and the strength.
#[must_use]
pub fn report_lines(report: &VerifyReport) -> Vec<String> {
    let is_full = report.isolation.iter().all(|gate| gate.missing.is_empty());
    let mut lines = vec![match (report.isolation.is_empty(), is_full) {
        (true, _) => "the gates passed".to_owned(),
        (false, true) => "the gates passed in isolation".to_owned(),
        (false, false) => "the gates passed in partial isolation".to_owned(),
    }];
    if report
        .results_from
        .iter()
        .any(|gate| gate.from == ResultsFrom::RunnerProcess)
    {
        lines.push("a process without tested code decides the results".to_owned());
    }
    if let Some(check) = &report.broken_change {
        lines.push(match check.outcome {
            BrokenOutcome::Noticed => "the gates notice the change when it is broken".to_owned(),
            BrokenOutcome::ReadsText => "the gates read the change and do not run it".to_owned(),
            BrokenOutcome::Unnoticed => "no gate notices the change when it is broken".to_owned(),
            BrokenOutcome::NotChecked => "the change could not be broken".to_owned(),
        });
    }
    if let Some(check) = &report.second_world {
        let has = |outcome| check.gates.iter().any(|gate| gate.outcome == outcome);
        lines.push(if has(WorldOutcome::Differs) {
            "the change behaves differently in a second world".to_owned()
        } else if has(WorldOutcome::Same) {
            "the same tests pass in a second world".to_owned()
        } else {
            "the gates could not run in a second world".to_owned()
        });
    }
    if let Some(choice) = &report.candidates {
        lines.push(format!(
            "chosen from {} changes that passed: {}",
            choice.compared.len(),
            choice.reason
        ));
    }
    if let Some(check) = &report.objections {
        let has_witness = |one: &&Objection| one.outcome == ObjectionOutcome::Witness;
        let witnesses = check.objections.iter().filter(has_witness).count();
        lines.push(match (check.unusable.is_some(), check.objections.len()) {
            (true, _) => "the objector gave no usable answer".to_owned(),
            (false, 0) => "no objection was raised".to_owned(),
            (false, all) => format!("objections: {all}, {witnesses} with a witness"),
        });
    }
    if let Some(strength) = &report.strength
        && let Some(percent) = strength.percent()
    {
        lines.push(match strength.mutants.saturating_sub(strength.tried) {
            0 => format!(
                "strength: {} of {} mistakes noticed ({percent} %)",
                strength.noticed, strength.tried
            ),
            left => format!(
                "strength: {} of {} tried mistakes noticed; {left} were not tried",
                strength.noticed, strength.tried
            ),
        });
    }
    lines
}

/// Returns the line of a report on held-out tests.
pub(crate) fn held_out_line(report: &HeldOutReport) -> String {
    match report.outcome {
        HeldOutOutcome::Passed => format!("held-out tests: {} passed", report.passed),
        HeldOutOutcome::Failed => format!("held-out tests: {} failed", report.failed),
        HeldOutOutcome::NotRun => "held-out tests: no gate ran them".to_owned(),
    }
}
