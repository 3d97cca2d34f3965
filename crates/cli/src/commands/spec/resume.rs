//! `crucible resume`.

use clap::Args;
use crucible_model::ExitStatus;
use crucible_spec::{PhaseId, ResumeOverview, SpecError, SpecId, SpecState, phases_to_run};

use super::place;
use super::sources::Unnamed;
use super::start::{ENDS, phase};
use super::work::{Desk, PhaseFlags, Work};
use crate::app::App;
use crate::error::CommandError;

/// Go on with a spec from any phase
///
/// Runs the phase that comes next, or the one that is named, however often it ran before. For example:
///
/// `crucible resume export-data`, `crucible resume export-data --phase design --through tasks`, or, to be told what would happen,
/// `crucible resume export-data --dry-run --json`
#[derive(Args)]
#[command(after_help = ENDS)]
pub(crate) struct Resume {
    /// The name of the spec
    #[arg(value_name = "SPEC-ID", value_parser = place::spec_id)]
    spec: SpecId,
    /// The phase to run; without it the next one
    #[arg(long, value_name = "PHASE", value_parser = phase)]
    phase: Option<PhaseId>,
    /// The last phase to run; without it that phase alone
    #[arg(long, value_name = "PHASE", value_parser = phase)]
    through: Option<PhaseId>,
    #[command(flatten)]
    phases: PhaseFlags,
}

impl Resume {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let desk = Desk::new(app, &self.spec, &self.phases)?;
        if !desk.store.exists() {
            return Err(SpecError::Unknown { spec: desk.store.spec().clone() }.into());
        }
        let phase = match self.phase {
            Some(phase) => phase,
            None => next_phase(&desk.store.state(None)?, self.phases.applies()),
        };
        let through = self.through.unwrap_or(phase);
        if through < phase {
            return Err(CommandError::usage(format!("--through {through} comes before {phase}"))
                .hint("The phases are requirements, design, tasks, review, fixup, final, in this order."));
        }
        let idea = match phase {
            PhaseId::Requirements => {
                Some(self.phases.sources.idea(app, &desk.store, desk.idea_limit(), Unnamed::Kept)?)
            }
            _ if self.phases.sources.names_an_idea() => {
                return Err(CommandError::usage(format!("the phase {phase} reads no idea"))
                    .hint("Only requirements is made from it; show other phases files of the project with --context."));
            }
            _ => None,
        };
        let mut work = Work::begin(app, &desk, &self.phases, idea)?;
        let mut packet = None;
        if self.phases.dry_run {
            let receipt = work.try_dry(phase)?;
            packet = receipt.phases.into_iter().find_map(|entry| entry.packet);
        } else {
            let phases: Vec<PhaseId> = through.up_to().filter(|later| *later >= phase).collect();
            work.run(&phases)?;
        }
        if app.output.is_json() {
            let overview = ResumeOverview::new(work.status()?, phase, desk.summary(), work.ran().to_vec());
            app.output.json(&if self.phases.dry_run { overview.of_a_dry_run(packet) } else { overview })?;
        } else {
            work.conclude()?;
        }
        Ok(ExitStatus::Success)
    }
}

/// The phase that comes next; of a spec that is done the last one, again.
fn next_phase(state: &SpecState, applies: bool) -> PhaseId {
    if applies {
        return PhaseId::Fixup;
    }
    phases_to_run(state, PhaseId::Final).first().copied().unwrap_or(PhaseId::Final)
}
