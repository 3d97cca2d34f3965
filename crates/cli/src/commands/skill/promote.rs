//! `crucible skill promote`, and what it shares with `demote`: how a promotion or a demotion is reported.

use clap::Args;
use crucible_forge::{Approval, ExamplesRule, SkillName, TrustChange, promote_skill};
use crucible_model::{ExitStatus, Failure, short_line};

use super::place::{self, SkillContext};
use crate::app::App;

/// Approve a skill, so that its verified bytes may run
///
/// The skill has to be verified, and its two files have to be what was verified. Who promotes is named in the ledger for good. The project's
/// .crucible/skills/registry.yaml is derived from the ledger and rewritten.
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
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let approval = Approval::new(&self.by, &self.reason)?;
        let context = SkillContext::new(app, &[])?;
        let rule = ExamplesRule::from_settings(&context.settings)?;
        let _known = context.skill(&self.name)?;
        let (world, mut ledger) = (context.world()?, app.ledger()?);
        let project = &context.project;
        let change = promote_skill(&world, &mut ledger, project, &self.name, &approval, rule)?;
        show(app, &self.name, &change, "promoted", "run")
    }
}

/// Prints a promotion or a demotion, and the next step.
pub(super) fn show(
    app: &App,
    name: &SkillName,
    change: &TrustChange,
    word: &str,
    next: &str,
) -> Result<ExitStatus, Failure> {
    let status = match change.verdict.passes() {
        true => ExitStatus::Success,
        false => ExitStatus::Refused,
    };
    if app.output.is_json() {
        app.output.json(&change.document(name))?;
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
