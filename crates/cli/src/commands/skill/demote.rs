//! `crucible skill demote`.

use clap::Args;
use crucible_forge::{Approval, SkillName, demote_skill};
use crucible_model::ExitStatus;

use super::{place, promote};
use crate::app::App;
use crate::error::CommandError;

/// Withdraw the approval of a skill, so that it no longer runs
///
/// It counts as built then: it is verified again before anybody approves it, or built anew. Crucible demotes by itself what keeps failing
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
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let approval = Approval::new(&self.by, &self.reason)?;
        let project = place::project(app)?;
        // A skill that nobody proposed needs no ledger to be made for it.
        let _known = place::skill(app, &project, &self.name)?;
        let world = place::world(app, &project)?;
        let mut ledger = app.ledger()?;
        let change = demote_skill(&world, &mut ledger, &project, &self.name, &approval)?;
        promote::tell(app, &self.name, &change, "demoted", "verify")
    }
}
