//! `crucible resume`.

use clap::Args;
use crucible_model::{ExitStatus, Failure};
use crucible_spec::session::{GivenIdea, PhaseWork, SpecSession};
use crucible_spec::{PhaseId, SpecId};

use super::flags::PhaseFlags;
use super::host::CommandHost;
use super::sources::Unnamed;
use super::start::{ENDS, phase};
use crate::app::App;
use crate::names::spec_id;

/// Continue a spec from any phase
///
/// Runs the next phase, or the one that is named, however often it has run. For example:
///
/// `crucible resume export-data`, `crucible resume export-data --phase design --through tasks`,
/// or, to see what would happen, `crucible resume export-data --dry-run --json`
#[derive(Args)]
#[command(after_help = ENDS)]
pub(crate) struct Resume {
    /// The id of the spec
    #[arg(value_name = "SPEC-ID", value_parser = spec_id)]
    spec: SpecId,
    /// The phase to run [default: the next one]
    #[arg(long, value_name = "PHASE", value_parser = phase)]
    phase: Option<PhaseId>,
    /// The last phase to run [default: that phase alone]
    #[arg(long, value_name = "PHASE", value_parser = phase)]
    through: Option<PhaseId>,
    #[command(flatten)]
    phases: PhaseFlags,
}

impl Resume {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let runtime = app.runtime();
        let session = self.phases.session(app, &runtime, &self.spec)?;
        let host = CommandHost::new(app);
        if !session.store.exists()? {
            return Err(session.store.unknown_spec().into());
        }
        self.phases.check_applying(&self.spec)?;
        // Named phases are checked before the lock is taken. The next phase is known only under the lock,
        // where the unfinished work of a killed process is completed.
        let named = match (self.phase, self.phases.applies()) {
            (Some(phase), _) => Some(phase),
            (None, true) => Some(PhaseId::Fixup),
            (None, false) => None,
        };
        let prepared = named
            .map(|phase| self.prepared(app, &session, phase))
            .transpose()?;
        let mut work = PhaseWork::begin(&host, &session, app.ledger()?)?;
        let (phase, through, idea) = match prepared {
            Some(prepared) => prepared,
            None => self.prepared(app, &session, work.next_phase()?)?,
        };
        work.idea = idea;
        let packet = work.resume(phase, through)?;
        if app.output.is_json() {
            app.output.json(&work.resume_overview(phase, packet)?)?;
        } else {
            host.conclude(&work, self.phases.dry_run)?;
        }
        Ok(ExitStatus::Success)
    }

    /// The phases to run, and the idea if one is read.
    fn prepared(
        &self,
        app: &App,
        session: &SpecSession<'_>,
        phase: PhaseId,
    ) -> Result<(PhaseId, PhaseId, Option<GivenIdea>), Failure> {
        let through = self.through.unwrap_or(phase);
        if through < phase {
            return Err(Failure::usage(format!("--through {through} comes before {phase}"))
                .hint("The phases are requirements, design, tasks, review, fixup, final, in this order."));
        }
        self.phases.check_fixups(phase, through)?;
        let idea = match phase {
            PhaseId::Requirements => Some(self.phases.sources.idea(
                app,
                &session.store,
                session.idea_limit(),
                Unnamed::Kept,
            )?),
            _ if self.phases.sources.names_an_idea() => {
                return Err(Failure::usage(format!("the phase {phase} does not read an idea")).hint(
                    "Only the requirements phase does; use --context to show files of the project to \
                    another phase.",
                ));
            }
            _ => None,
        };
        Ok((phase, through, idea))
    }
}
