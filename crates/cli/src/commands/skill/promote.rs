//! `crucible skill promote`, and what it shares with `demote`: how a promotion or a demotion is reported.

use clap::Args;
use crucible_forge::{
    Approval, ApprovalError, ExamplesRule, REGISTRY_FILE, SkillName, TrustChange, TrustError,
    promote_skill,
};
use crucible_model::{ExitStatus, Outcome, short_line};
use crucible_settings::ExamplesNeed;

use super::place;
use crate::app::App;
use crate::error::CommandError;

/// The form of the document, for a demotion too.
const FORM: &str = "skill-promote.v1";

/// Approve a skill, so that its verified bytes may run
///
/// The skill has to be verified, and its two files have to be what was verified. Who promotes is named in the ledger for good. The project's
/// .crucible/skills/registry.yaml is derived from the ledger and written anew.
///
/// For example: `crucible skill promote word_count --by "$(git config user.name)" --reason "Read it, and its test."`
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 promoted, 1 refused, 2 usage or no such skill, 8 secret found, 9 another process is at work on it."
)]
pub(crate) struct Promote {
    /// The name of the skill
    #[arg(value_name = "NAME", value_parser = place::skill_name)]
    name: SkillName,
    /// The person who approves it, by name
    #[arg(long, value_name = "WHO")]
    by: String,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "read, and found good")]
    reason: String,
}

impl Promote {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let approval = Approval::new(&self.by, &self.reason)?;
        let project = place::project(app)?;
        let config = app.config(project.root(), &[])?;
        let rule = match config.forge.examples.get() {
            Ok(ExamplesNeed::Optional) => ExamplesRule::Optional,
            Ok(ExamplesNeed::Required) => ExamplesRule::Required,
            Err(other) => {
                let message = format!("forge.examples: {other:?} is neither optional nor required");
                return Err(CommandError::usage(message));
            }
        };
        // A skill that nobody proposed needs no ledger to be made for it.
        let _known = place::skill(app, &project, &self.name)?;
        let world = place::world(app, &project)?;
        let mut ledger = app.ledger()?;
        let change = promote_skill(&world, &mut ledger, &project, &self.name, &approval, rule)?;
        tell(app, &self.name, &change, "promoted", "run")
    }
}

/// Prints what came of a step into trust or out of it, and which step may follow.
pub(super) fn tell(
    app: &App,
    name: &SkillName,
    change: &TrustChange,
    word: &str,
    next: &str,
) -> Result<ExitStatus, CommandError> {
    let report = change.verdict.report(FORM);
    let status = match report.verdict {
        Outcome::Pass => ExitStatus::Success,
        Outcome::Fail => ExitStatus::Refused,
    };
    if app.output.is_json() {
        app.output.json(&serde_json::json!({
            "schema_version": report.schema_version, "verdict": report.verdict, "findings": report.findings, "name": name,
            "change": change.promotion.as_ref().map(|row| serde_json::json!({
                "event": row.event, "verification": row.verification, "from": row.from, "to": row.to, "approved_by": row.approved_by,
                "reason": row.reason, "skill_digest": row.skill, "test_digest": row.test, "at": row.at,
            })),
            "registry": REGISTRY_FILE,
        }))?;
        return Ok(status);
    }
    for finding in change.verdict.findings() {
        app.output.finding(finding);
    }
    if let Some(row) = &change.promotion {
        let by = short_line(&row.approved_by, 120);
        app.output.line(&format!(
            "{word} {name} by {by}: skill {}  test {}",
            row.skill, row.test
        ));
        let input = if next == "run" {
            " --input '{…}'"
        } else {
            ""
        };
        app.output
            .line(&format!("next: crucible skill {next} {name}{input}"));
    }
    Ok(status)
}

impl From<ApprovalError> for CommandError {
    fn from(error: ApprovalError) -> Self {
        match &error {
            ApprovalError::Secret { .. } => {
                Self::new(ExitStatus::SecretDetected, error.to_string())
                    .hint("Take it out. If it is a real one, revoke it.")
            }
            ApprovalError::Empty { .. }
            | ApprovalError::Long { .. }
            | ApprovalError::Hidden { .. }
            | ApprovalError::Reserved => Self::usage(error.to_string()),
        }
    }
}

impl From<TrustError> for CommandError {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::Unknown { .. } => {
                Self::usage(error.to_string()).hint("`crucible skill list` shows those there are.")
            }
            TrustError::Step(refused) => refused.into(),
            TrustError::Lock(error) => error.into(),
            TrustError::Unsettled(error) => error.into(),
            TrustError::Ledger(error) => error.into(),
            TrustError::Path(error) => place::no_path(&error),
        }
    }
}
