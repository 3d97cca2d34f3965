//! `crucible skill demote`.

use clap::Args;
use crucible_forge::{Approval, SkillName, demote_skill};
use crucible_model::{ExitStatus, Failure};

use super::place::{self, SkillContext};
use super::promote;
use crate::app::App;

/// Withdraw the approval of a skill, so that it no longer runs
///
/// It counts as built then: it is verified again before anybody approves it, or built again. Crucible demotes by itself what keeps failing
/// ([forge] demote_after_failures).
///
/// For example: `crucible skill demote word_count --by "$(git config user.name)" --reason "It miscounts empty lines."`
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 demoted, 1 it is not trusted, 2 usage or no such skill, 8 secret found, 9 another process is at work on it."
)]
pub(crate) struct Demote {
    /// The name of the skill
    #[arg(value_name = "NAME", value_parser = place::skill_name)]
    name: SkillName,
    /// The person who withdraws the approval, by name
    #[arg(long, value_name = "WHO")]
    by: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl Demote {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let approval = Approval::new(&self.by, &self.reason)?;
        let context = SkillContext::new(app, &[])?;
        let _known = context.skill(&self.name)?;
        let (world, mut ledger) = (context.world()?, app.ledger()?);
        let change = demote_skill(&world, &mut ledger, &context.project, &self.name, &approval)?;
        promote::show(app, &self.name, &change, "demoted", "verify")
    }
}
