//! `crucible spec`.

use clap::{Args, Subcommand};
use crucible_model::{ExitStatus, Failure};
use crucible_spec::session::{Applying, PhaseWork, StartedPhases, no_fixup_pending};
use crucible_spec::{PhaseId, PhaseIdError, SpecId};

use super::evidence::SpecEvidence;
use super::flags::PhaseFlags;
use super::host::CommandHost;
use super::run::SpecRun;
use super::sources::Unnamed;
use crate::app::App;
use crate::names::spec_id;

/// The exit codes of commands that run phases, as their help lists them.
pub(super) const ENDS: &str = "Exit codes: 0 done, 1 a fixup or a hook refused, 2 usage or configuration, 3 the model's answer is not the \
    document, 7 the packet is too large, 8 secret found, 9 another process is at work on the spec, 10 timed out, 70 model provider or \
    budget, 130 interrupted.";

/// Take an idea through the phases of a spec
///
/// The phases are requirements, design, tasks, review, fixup and final. Each calls a model and writes an
/// artifact and a receipt to .crucible/specs/SPEC-ID. For example:
///
/// `echo "users can export their data" | crucible spec export-data`, or in one command
/// `crucible spec export-data --source idea.md --through tasks`
///
/// A new idea runs the phases again from the first one; without a new idea, only unfinished phases run. A
/// spec that already has an idea takes a new one from --source, or from standard input with
/// `--source -`.
#[derive(Args)]
#[command(
    after_help = ENDS,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
pub(crate) struct Spec {
    #[command(subcommand)]
    command: Option<SpecCommand>,
    /// The id of the spec: letters, digits, `-`, `_` and `.`
    #[arg(value_name = "SPEC-ID", value_parser = spec_id, required = true)]
    spec: Option<SpecId>,
    /// The last phase to run
    #[arg(long, value_name = "PHASE", default_value = "requirements", value_parser = phase)]
    through: PhaseId,
    #[command(flatten)]
    phases: PhaseFlags,
}

/// What else there is to do with a spec.
#[derive(Subcommand)]
enum SpecCommand {
    Run(Box<SpecRun>),
    Evidence(SpecEvidence),
}

impl Spec {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        match (&self.command, &self.spec) {
            (Some(SpecCommand::Run(command)), _) => command.run(app),
            (Some(SpecCommand::Evidence(command)), _) => command.run(app),
            (None, Some(spec)) => self.run_phases(app, spec),
            (None, None) => Err(Failure::usage("no spec is named")),
        }
    }

    fn run_phases(&self, app: &App, spec: &SpecId) -> Result<ExitStatus, Failure> {
        let runtime = app.runtime();
        let session = self.phases.session(app, &runtime, spec)?;
        let host = CommandHost::new(app);
        self.phases.check_applying(spec)?;
        self.phases
            .check_fixups(PhaseId::Requirements, self.through)?;
        // A spec that does not exist has no pending fixup, and no directory is created for a refused
        // command.
        if self.phases.applies() && self.through < PhaseId::Fixup && !session.store.exists()? {
            return Err(no_fixup_pending(spec));
        }
        let idea = self.phases.sources.idea(
            app,
            &session.store,
            session.idea_limit(),
            Unnamed::StandardInput,
        )?;
        let is_new = idea.is_new(&session.store)?;
        // A new idea is stored before the provider is prepared, so that it is not lost if that fails.
        let model = match is_new && !self.phases.dry_run {
            true => Some(session.prepare_model(&host)?),
            false => None,
        };
        let mut work = PhaseWork::begin(&host, &session, app.ledger()?)?;
        work.model = model;
        work.idea = Some(idea);
        let StartedPhases {
            due,
            applying,
            pinned,
        } = work.start(self.through, is_new)?;
        if app.output.is_json() {
            app.output.json(&work.start_overview()?)?;
            return Ok(ExitStatus::Success);
        }
        match due.as_slice() {
            [] if applying == Some(Applying::Applied) => {}
            [] => {
                app.output.line(&format!(
                    "{} is done up to {}; no model was called",
                    spec, self.through
                ));
                for phase in pinned {
                    app.output.remark(&format!("warning: {phase} was written under a pinned clock (CRUCIBLE_CLOCK), which a gate refuses"));
                }
                app.output.remark(&format!(
                    "note: `crucible resume {} --phase {}` runs a phase again",
                    spec, self.through
                ));
            }
            [_, later @ ..] if self.phases.dry_run && !later.is_empty() => {
                let later: Vec<&str> = later.iter().map(|phase| phase.as_str()).collect();
                app.output.line(&format!(
                    "then {}, which are made from its artifact",
                    later.join(", ")
                ));
            }
            _ => {}
        }
        host.conclude(&work, self.phases.dry_run)?;
        Ok(ExitStatus::Success)
    }
}

/// Parses the name of a phase.
pub(super) fn phase(text: &str) -> Result<PhaseId, PhaseIdError> {
    text.parse()
}
