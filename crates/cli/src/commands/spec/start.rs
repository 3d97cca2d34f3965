//! `crucible spec`.

use clap::Args;
use crucible_model::ExitStatus;
use crucible_spec::{
    IDEA, PhaseId, PhaseIdError, SpecError, SpecId, SpecOverview, pending_fixups, phases_to_run,
};

use super::place;
use super::sources::{GivenIdea, IdeaOrigin, Unnamed};
use super::work::{Desk, PhaseFlags, Work};
use crate::app::App;
use crate::error::CommandError;

/// How commands end that run phases.
pub(super) const ENDS: &str = "Exit codes: 0 done, 1 a fixup or a hook refused, 2 usage or configuration, 3 the model's answer is not the \
    document, 7 the packet is too large, 8 secret found, 9 another process is at work on the spec, 10 timed out, 70 model provider or \
    budget, 130 interrupted.";

/// Take an idea through the phases of a spec
///
/// The phases are requirements, design, tasks, review, fixup and final; each asks a model and leaves an artifact and a receipt in
/// .crucible/specs/SPEC-ID. For example:
///
/// `echo "users can export their data" | crucible spec export-data`, or in one go
/// `crucible spec export-data --source idea.md --through tasks`
///
/// With a new idea the phases run again from the first; without one, those that are not done yet.
#[derive(Args)]
#[command(after_help = ENDS)]
pub(crate) struct Spec {
    /// The name of the spec: letters, digits, `-`, `_` and `.`
    #[arg(value_name = "SPEC-ID", value_parser = place::spec_id)]
    spec: SpecId,
    /// The last phase to run
    #[arg(long, value_name = "PHASE", default_value = "requirements", value_parser = phase)]
    through: PhaseId,
    #[command(flatten)]
    phases: PhaseFlags,
}

impl Spec {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let desk = Desk::new(app, &self.spec, &self.phases)?;
        let idea = self.phases.sources.idea(app, &desk.store, desk.idea_limit(), Unnamed::StandardInput)?;
        let is_new = is_new(&desk, &idea)?;
        let mut work = Work::begin(app, &desk, &self.phases, Some(idea))?;
        let state = work.lock().store().state(None)?;
        let mut phases: Vec<PhaseId> = match is_new {
            true => self.through.up_to().collect(),
            false => phases_to_run(&state, self.through),
        };
        let waits = self.phases.applies() && self.through >= PhaseId::Fixup && pending_fixups(&state) > 0;
        if waits && !phases.iter().any(|phase| *phase <= PhaseId::Fixup) {
            phases.insert(0, PhaseId::Fixup);
        }
        if self.phases.dry_run {
            if let Some(first) = phases.first() {
                work.try_dry(*first)?;
            }
        } else {
            work.run(&phases)?;
        }
        if app.output.is_json() {
            let overview = SpecOverview::new(work.status()?, desk.summary(), work.ran().to_vec());
            app.output.json(&if self.phases.dry_run { overview.of_a_dry_run() } else { overview })?;
            return Ok(ExitStatus::Success);
        }
        match phases.as_slice() {
            [] => {
                app.output.line(&format!("{} is done up to {}; nothing was asked", self.spec, self.through));
                app.output.remark(&format!(
                    "note: `crucible resume {} --phase {}` runs a phase again",
                    self.spec, self.through
                ));
            }
            [_, later @ ..] if self.phases.dry_run && !later.is_empty() => {
                let later: Vec<&str> = later.iter().map(|phase| phase.as_str()).collect();
                app.output.line(&format!("then {}, which are made from its artifact", later.join(", ")));
            }
            _ => {}
        }
        work.conclude()?;
        Ok(ExitStatus::Success)
    }
}

/// Whether the idea is another one than the one that is kept.
fn is_new(desk: &Desk, given: &GivenIdea) -> Result<bool, SpecError> {
    Ok(match given.origin {
        IdeaOrigin::Kept => false,
        IdeaOrigin::Given => desk.store.read(IDEA)?.as_deref() != Some(given.idea.text.as_str().as_bytes()),
    })
}

/// Reads the name of a phase.
pub(super) fn phase(text: &str) -> Result<PhaseId, PhaseIdError> {
    text.parse()
}
