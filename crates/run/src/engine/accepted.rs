//! Attempts that nothing shows to be right: a change that a person accepted is verified again, without another answer, and a run
//! stops where no test may be added that would show the change.

use crucible_model::{Code, EditFormat, Finding, Level};
use crucible_pack::ContextPack;

use super::Engine;
use super::attempts::{AnswerProgress, Attempt};
use crate::allow::SAME_PATCH_TWICE;
use crate::analysis::Analysis;
use crate::attempt::{self, AttemptEnd, AttemptOutcome};
use crate::clients::Clients;
use crate::contract::Plan;
use crate::error::RunError;
use crate::gatekeeper::{self, PatchContext};
use crate::layout::attempt_file;
use crate::trial::explain_base_error;

const NO_TEST_POSSIBLE: Code = Code::new("run-no-test-possible");

impl Engine<'_> {
    /// The next attempt, which verifies the change of an earlier one again.
    pub(super) fn accepted_again(&self, number: u64, earlier: &AttemptOutcome) -> AttemptOutcome {
        AttemptOutcome {
            number,
            again: Some(earlier.number),
            round: (number != 1).then_some(1),
            end: AttemptEnd::Refused,
            findings: Vec::new(),
            output: String::new(),
            ..earlier.clone()
        }
    }

    /// Verifies a change again by a plan that accepts what it was refused for.
    pub(super) async fn verify_accepted(
        &mut self,
        clients: &dyn Clients,
        on: (&Plan, &Analysis, &ContextPack),
        ended: &[AttemptOutcome],
        outcome: AttemptOutcome,
    ) -> Result<AnswerProgress, RunError> {
        let (plan, analysis, _) = on;
        let earlier = outcome.again.unwrap_or(outcome.number);
        self.journal.note(&format!(
            "  verifying the change of attempt {earlier} again; no model is asked"
        ))?;
        let patch = self.dir.read(&attempt_file(earlier, attempt::PATCH))?;
        let context = PatchContext {
            git: &self.git,
            record: &self.record,
            format: EditFormat::UnifiedDiff,
            plan,
            gate_files: &analysis.gate_files,
        };
        let judged = match gatekeeper::judge_again(&context, &patch).await {
            Ok(judged) => judged,
            Err(error) => return Err(explain_base_error(&self.git, &self.record, error).await),
        };
        let attempt = Attempt {
            number: outcome.number,
            round: 1,
            format: EditFormat::UnifiedDiff,
            served_by: "",
            ended,
        };
        self.verify_if_accepted(clients, &attempt, on, judged, outcome)
            .await
    }
}

/// Returns whether an attempt was refused only for these codes.
pub(super) fn is_refused_only_for(outcome: &AttemptOutcome, codes: &[&str]) -> bool {
    let mut errors = outcome
        .findings
        .iter()
        .filter(|finding| finding.level == Level::Error && finding.code != SAME_PATCH_TWICE)
        .peekable();
    errors.peek().is_some() && errors.all(|finding| codes.contains(&finding.code.as_str()))
}

/// Returns why another answer cannot help.
pub(super) fn no_test_possible(last: &AttemptOutcome) -> Finding {
    let hint = "No gate tests this change, and the plan opens no place for a test. Accept the change as it is, or allow a test file with `crucible run advance --allow PATH`.";
    Finding::error(NO_TEST_POSSIBLE, format!("attempt {}", last.number), hint)
}
