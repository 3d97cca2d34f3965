//! `crucible skill verify`.

use clap::Args;
use crucible_forge::configured::PythonPlaces;
use crucible_forge::{
    SkillGate, SkillGateObserver, SkillGateOutcome, SkillName, SkillVerification,
    VerificationResult,
};
use crucible_ledger::{SkillStatus, VerificationLevel};
use crucible_model::{ExitStatus, Failure};
use crucible_terminal::{lines_of, table};

use super::place::{self, SkillContext};
use crate::app::App;

/// Ask every gate about a skill that is built: ruff, mypy, its test, the policy, the invariants, and its held-out examples where it has some
///
/// All gates are asked, on a copy of the project that they can only read and without a network. A skill that passes every one is VERIFIED, and
/// what was verified are the two files as they are when the command begins.
///
/// For example: `crucible skill verify word_count`, or `crucible skill verify word_count --full`
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 it is verified, 1 a gate did not pass, or the skill is not built, 2 usage, or a program or file is missing, \
    3 the policy is invalid, 7 a file is too large, 9 another process works on the skill, 10 the time of a gate was over, 130 interrupted."
)]
pub(crate) struct Verify {
    /// The name of the skill
    #[arg(value_name = "NAME", value_parser = place::skill_name)]
    name: SkillName,
    /// Run the project's whole test suite besides
    #[arg(long)]
    full: bool,
}

/// Prints each gate to standard error.
struct GateProgress<'a>(&'a App);

impl SkillGateObserver for GateProgress<'_> {
    fn started(&self, _: SkillGate) {}

    fn ended(&self, outcome: &SkillGateOutcome) {
        let found = outcome.verdict.errors().count();
        let word = match found {
            0 => "passed".to_owned(),
            1 => "failed, 1 finding".to_owned(),
            many => format!("failed, {many} findings"),
        };
        self.0.output.remark_of(
            outcome.gate.as_str(),
            &format!("{word} ({})", seconds(outcome)),
        );
    }
}

impl Verify {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let context = SkillContext::new(app, &[])?;
        let (project, settings) = (&context.project, &context.settings);
        let places = PythonPlaces::from_settings(settings)?;
        let level = match self.full {
            true => VerificationLevel::Full,
            false => VerificationLevel::Skill,
        };
        let request = places.verify_request(settings, &self.name, level)?;
        let world = context.world()?;
        let (mut ledger, _) = context.skill(&self.name)?;
        let mut verification = app.block_on(async {
            Ok(SkillVerification::prepare(&world, &mut ledger, project, request).await?)
        })?;
        if let Some(note) = verification.omission_note() {
            app.output.remark(&note);
        }
        let verified =
            app.block_on(async { Ok(verification.run(&mut ledger, &GateProgress(app)).await?) });
        // Where it was interrupted it stopped in the middle, and nobody has said so yet.
        verification.abort(&mut ledger)?;
        let verified = verified?;
        self.print_verification(app, &verification, &verified)?;
        Ok(match (verified.verdict.passes(), verified.timed_out()) {
            (true, _) => ExitStatus::Success,
            (false, true) => ExitStatus::TimedOut,
            (false, false) => ExitStatus::Refused,
        })
    }

    fn print_verification(
        &self,
        app: &App,
        verification: &SkillVerification<'_>,
        verified: &VerificationResult,
    ) -> Result<(), Failure> {
        let row = &verified.row;
        if app.output.is_json() {
            return app
                .output
                .json(&verified.document(&self.name, verification));
        }
        for finding in verified.verdict.findings() {
            app.output.finding(finding);
        }
        let mut rows = table(["gate", "verdict", "time", "found"]);
        for outcome in &verified.gates {
            let word = if outcome.verdict.passes() {
                "passed"
            } else {
                "failed"
            };
            rows.add_row([
                outcome.gate.as_str(),
                word,
                &seconds(outcome),
                &outcome.finding_counts(),
            ]);
        }
        app.output.line(&lines_of(&rows));
        app.output.line(&format!(
            "{} is {}: skill {}  test {}",
            self.name,
            verified.status.as_str(),
            row.skill,
            row.test
        ));
        app.output.line(&match verified.status {
            SkillStatus::Verified => {
                format!("next: crucible skill promote {} --by YOUR_NAME", self.name)
            }
            _ => format!("next: crucible skill research {}", self.name),
        });
        Ok(())
    }
}

fn seconds(outcome: &SkillGateOutcome) -> String {
    format!("{:.2} s", outcome.duration.as_secs_f64())
}
