//! `crucible skill show`: the whole story of a skill.

use clap::Args;
use crucible_forge::{SkillHistory, SkillName};
use crucible_model::{ExitStatus, Failure};

use super::place::{self, SkillContext};
use crate::app::App;

/// Show the whole story of a skill: attempts, gates, promotions, runs, and the digest of all that was kept
///
/// Packets, logs and reports are named by their digests. Of each kind the newest are shown, and how many there are.
#[derive(Args)]
pub(crate) struct Show {
    /// The name of the skill
    #[arg(value_name = "NAME", value_parser = place::skill_name)]
    name: SkillName,
}

impl Show {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let context = SkillContext::new(app, &[])?;
        let (ledger, skill) = context.skill(&self.name)?;
        let paths = context.project.paths(&self.name)?;
        let history = SkillHistory::read(&ledger, skill)?;
        app.output.show(
            || history.document(&paths),
            || {
                app.output.line(&history.lines().join("\n"));
            },
        )
    }
}
