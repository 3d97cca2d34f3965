//! `crucible skill verify`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use crucible_forge::{
    GateObstacle, SkillGate, SkillGateObserver, SkillGateOutcome, SkillName, SkillVerification,
    SkillVerified, ToolsMissing, VerifyRequest, VerifyStepError, WorkspaceError,
};
use crucible_ledger::{SkillStatus, VerificationLevel};
use crucible_model::{ExitStatus, Level, Verdict};
use crucible_repo::{Omission, OmitReason};
use serde_json::{Value, json};

use super::place;
use crate::app::App;
use crate::error::CommandError;
use crate::table::{lines_of, table};

/// The form of the result.
const FORM: &str = "skill-verify.v1";
/// The most paths left out of the copy that are named.
const NAMED: usize = 5;

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

/// Tells of each gate on standard error.
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
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let project = place::project(app)?;
        let config = app.config(project.root(), &[])?;
        let tools = config.forge.tools.clone().map(PathBuf::from);
        let python = config.forge.python.clone().map(PathBuf::from);
        let site_packages = place::site_packages(&config)?;
        let seconds = match config.forge.gate_timeout_s {
            0 => {
                return Err(CommandError::usage(
                    "forge.gate_timeout_s: a gate needs at least one second",
                ));
            }
            seconds => seconds,
        };
        let request = VerifyRequest {
            name: &self.name,
            level: if self.full {
                VerificationLevel::Full
            } else {
                VerificationLevel::Skill
            },
            tools: tools.as_deref(),
            python: python.as_deref(),
            site_packages: &site_packages,
            timeout: Duration::from_secs(seconds),
        };
        let world = place::world(app, &project)?;
        let (mut ledger, _) = place::skill(app, &project, &self.name)?;
        let mut verification = app.block_on(async {
            Ok(SkillVerification::prepare(&world, &mut ledger, &project, request).await?)
        })?;
        tell_omitted(app, verification.omitted());
        let verified =
            app.block_on(async { Ok(verification.run(&mut ledger, &GateProgress(app)).await?) });
        // Where it was interrupted it stopped in the middle, and nobody has said so yet.
        verification.abort(&mut ledger)?;
        let verified = verified?;
        self.tell(app, &verification, &verified)?;
        Ok(match (verified.verdict.passes(), verified.timed_out()) {
            (true, _) => ExitStatus::Success,
            (false, true) => ExitStatus::TimedOut,
            (false, false) => ExitStatus::Refused,
        })
    }

    fn tell(
        &self,
        app: &App,
        verification: &SkillVerification<'_>,
        verified: &SkillVerified,
    ) -> Result<(), CommandError> {
        let row = &verified.row;
        if app.output.is_json() {
            let report = verified.verdict.report(FORM);
            let tools: Vec<Value> = verification
                .tools()
                .all()
                .map(|tool| json!({ "name": tool.name, "version": tool.version }))
                .to_vec();
            return app.output.json(&json!({
                "schema_version": report.schema_version, "verdict": report.verdict, "findings": report.findings,
                "name": self.name, "status": verified.status, "level": row.level, "verification": row.id,
                "build": row.build, "skill_digest": row.skill, "test_digest": row.test,
                "gates": verified.gates.iter().map(SkillGateOutcome::document).collect::<Vec<_>>(),
                "tools": tools, "report": verified.report,
            }));
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
                &found(&outcome.verdict),
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

fn found(verdict: &Verdict) -> String {
    let count = |level: Level| {
        verdict
            .findings()
            .iter()
            .filter(|finding| finding.level == level)
            .count()
    };
    match (count(Level::Error), count(Level::Warning)) {
        (0, 0) => String::new(),
        (0, warnings) => format!("{warnings} to look at"),
        (errors, 0) => errors.to_string(),
        (errors, warnings) => format!("{errors}, and {warnings} to look at"),
    }
}

/// Says what the copy does not have because it looks like a secret: a test could miss it.
fn tell_omitted(app: &App, omitted: &[Omission]) {
    let secrets: Vec<String> = omitted
        .iter()
        .filter(|left| matches!(left.reason, OmitReason::Secret(_)))
        .map(|left| left.path.display().to_string())
        .collect();
    if secrets.is_empty() {
        return;
    }
    let named = secrets
        .iter()
        .take(NAMED)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    let more = secrets.len().saturating_sub(NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    app.output.remark(&format!(
        "not in the copy, for it holds what looks like a secret: {named}{more}"
    ));
}

impl From<VerifyStepError> for CommandError {
    fn from(error: VerifyStepError) -> Self {
        let message = error.to_string();
        match error {
            VerifyStepError::Unknown { .. } => {
                Self::usage(message).hint("`crucible skill list` shows those there are.")
            }
            VerifyStepError::Lock(error) => error.into(),
            VerifyStepError::Unsettled(error) => error.into(),
            VerifyStepError::Step(refused) => refused.into(),
            VerifyStepError::Record { .. } => Self::new(ExitStatus::Refused, message),
            VerifyStepError::File { source, .. } => {
                let status = Self::unreadable(source).status;
                Self::new(status, message).hint("`crucible skill build` makes both files.")
            }
            VerifyStepError::Tools(error) => error.into(),
            VerifyStepError::Policy(error) => error.into(),
            VerifyStepError::Workspace(WorkspaceError::InsideProject { .. }) => {
                Self::usage(message)
            }
            VerifyStepError::Workspace(WorkspaceError::Repo(error)) => error.into(),
            VerifyStepError::Workspace(WorkspaceError::Fs(error)) => error.into(),
            VerifyStepError::Python(error) => error.into(),
            VerifyStepError::Obstacle { source, .. } => {
                let status = match source {
                    GateObstacle::Sandbox(error) => Self::from(error).status,
                    GateObstacle::Runner(error) => Self::from(error).status,
                    GateObstacle::Fs(error) => Self::from(error).status,
                };
                Self::new(status, message)
            }
            VerifyStepError::Ledger(error) => error.into(),
            VerifyStepError::Path(error) => place::no_path(&error),
            VerifyStepError::Canonical(_) => Self::new(ExitStatus::Refused, message),
        }
    }
}

impl From<ToolsMissing> for CommandError {
    fn from(error: ToolsMissing) -> Self {
        Self::usage(error.to_string())
            .hint("`crucible doctor` says which programs are there; nothing was recorded.")
    }
}
