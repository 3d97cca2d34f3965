//! Compares a tally with the one before any change. Pure.

use crucible_model::{Code, Finding, Level, Verdict};

use super::{TallyBasis, TestCounts, TestRunner, TestTally};
use crate::gate::{GateEnd, GateRun};
use crate::judge::{GateBefore, TestFilePolicy};

/// The findings about the tests of a gate that ended by itself.
///
/// - A runner announced tests of which nothing came: an error, unless the gate passed with as many before.
/// - A runner reports failed tests, although the gate says that all is well: an error, unless the gate passed with as many
///   before.
/// - A runner ran fewer tests than before, or skipped more: an error, or a warning where the plan lets the change edit
///   tests. Where the gate failed before and now gets further, skipping more is a warning, too: what lies behind the point
///   at which it stopped was never counted.
/// - A runner reported a tally before and reports none now: an error.
///
/// Where the tally before is from a cut log, the last two cannot be compared, which is reported. A cut log of the changed gate
/// excuses nothing: with a long enough output any change could have one.
pub(crate) fn compare(
    run: &GateRun,
    before: Option<&GateBefore>,
    tests: TestFilePolicy,
) -> Verdict {
    let (gate, now) = (run.id.as_str(), &TestTally::read(run));
    let mut findings = Verdict::default();
    let earlier = |runner| {
        before
            .and_then(|before| before.tally.runners.get(&runner))
            .copied()
    };
    let before_of = |runner| {
        before
            .filter(|before| before.passed)
            .and_then(|_| earlier(runner))
    };
    for (runner, counts) in &now.runners {
        let name = runner.name();
        let usual = before_of(*runner).unwrap_or_default();
        if counts.unfinished > 0 {
            let hint = format!(
                "{name} announced tests that gave no result ({}): the process ended early; the code under test must let every test finish",
                counts.unfinished
            );
            let code = Code::new("verify-tests-unfinished");
            findings.push(finding(
                unless(usual.unfinished >= counts.unfinished),
                code,
                gate,
                hint,
            ));
        }
        if counts.failed > 0 && run.end == GateEnd::Exited(0) {
            let hint = format!(
                "{name} reports {} failed and {} passed tests, but the gate exited as if all had passed; a failed test must fail its gate",
                counts.failed, counts.passed
            );
            findings.push(finding(
                unless(usual.failed >= counts.failed),
                Code::new("verify-tests-failed"),
                gate,
                hint,
            ));
        }
    }
    let Some(before) = before else {
        return findings;
    };
    for (runner, earlier) in before
        .tally
        .runners
        .iter()
        .filter(|(_, counts)| !counts.is_empty())
    {
        // A suite of tape that broke off has no summary, which distinguishes it from other reports in the same form.
        let counts = now.runners.get(runner).or_else(|| match runner {
            TestRunner::Tap => now.runners.get(&TestRunner::Node),
            _ => None,
        });
        let counts = counts.copied().unwrap_or_default();
        if counts.unfinished > 0 {
            continue;
        }
        let Some((level, code, hint)) = difference(*runner, *earlier, counts, before, now, tests)
        else {
            continue;
        };
        if before.tally.basis == TallyBasis::Cut {
            let hint = format!(
                "{hint}. Only the end of its output before the change was kept, so this is not proof"
            );
            findings.push(finding(
                Level::Warning,
                Code::new("verify-tally-incomplete"),
                gate,
                hint,
            ));
        } else {
            let cut = match now.basis {
                TallyBasis::Cut => {
                    ". Only the end of its output was kept: make it print less, as it did before the change"
                }
                TallyBasis::Whole => "",
            };
            findings.push(finding(level, code, gate, format!("{hint}{cut}")));
        }
    }
    findings
}

fn difference(
    runner: TestRunner,
    earlier: TestCounts,
    counts: TestCounts,
    before: &GateBefore,
    now: &TestTally,
    tests: TestFilePolicy,
) -> Option<(Level, Code, String)> {
    let name = runner.name();
    let level = match tests {
        TestFilePolicy::Fixed => Level::Error,
        TestFilePolicy::Editable => Level::Warning,
    };
    if counts.is_empty() {
        // If tests may be edited, they may have moved to another runner, but not to none.
        let moved = now.runners.values().any(|counts| counts.ran() > 0);
        let hint = format!(
            "{name} reported {} tests before the change and reports none now; the code under test must let them run",
            earlier.ran()
        );
        return Some((
            if moved { level } else { Level::Error },
            Code::new("verify-tally-missing"),
            hint,
        ));
    }
    if counts.ran() < earlier.ran() {
        let hint = format!(
            "{name} ran {} tests before the change and {} now ({} skipped before, {} now); every test that ran must still finish",
            earlier.ran(),
            counts.ran(),
            earlier.skipped,
            counts.skipped
        );
        return Some((level, Code::new("verify-fewer-tests"), hint));
    }
    if counts.skipped > earlier.skipped {
        let hint = format!(
            "{name} skipped {} tests before the change and {} now; the change must not make tests skip",
            earlier.skipped, counts.skipped
        );
        let further = !before.passed && counts.ran() > earlier.ran();
        let level = if further { Level::Warning } else { level };
        return Some((level, Code::new("verify-more-skipped"), hint));
    }
    None
}

/// An error, unless it was so before any change as well.
fn unless(usual: bool) -> Level {
    if usual { Level::Warning } else { Level::Error }
}

fn finding(level: Level, code: Code, gate: &str, hint: String) -> Finding {
    match level {
        Level::Error => Finding::error(code, gate, hint),
        _ => Finding::warning(code, gate, hint),
    }
}
