//! `crucible run advance`: a run goes on where it stopped.

use std::path::PathBuf;

use clap::Args;
use crucible_model::{ExitStatus, Failure};
use crucible_run::configured::ExistingRun;
use crucible_run::{Permission, status};
use crucible_verify::ACCEPTABLE;

use crate::app::App;
use crate::arguments::{overrides, path_text};
use crate::live_trace::send_trace;
use crate::progress::Progress;
use crate::run_start::{ENDS, conclude};

/// Continue an interrupted run
///
/// Finished steps are not repeated. The run keeps its model and limits. Only its call limit can grow: set a
/// larger `llm.budget.calls`, and the run records and uses it. `--allow` widens what the run may change, and
/// `--accept` takes a change that nothing shows to be right. Both also continue a failed run. For example, after Ctrl-C: `crucible run advance`
#[derive(Args)]
#[command(after_help = ENDS)]
pub(crate) struct Advance {
    /// The run's id or a prefix of it [default: newest run of this repository]
    run: Option<String>,
    /// The recording for a run of the provider `replay` [default: the run's own copy]
    #[arg(long, value_name = "FILE")]
    cassette: Option<PathBuf>,
    /// Also allow changes to this file, directory or glob; the plan is reviewed and signed again. May be
    /// given several times
    #[arg(long, value_name = "PATH")]
    allow: Vec<String>,
    /// Accept this refusal of the gates for the run, such as verify-change-not-noticed. The plan is reviewed and signed
    /// again, and a change refused for nothing else is verified again. May be given several times
    #[arg(long, value_name = "CODE", value_parser = ACCEPTABLE)]
    accept: Vec<String>,
}

impl Advance {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let runtime = app.runtime();
        let flags = overrides([("llm.replay.cassette", path_text(&self.cassette))]);
        let nearby = app.config(app.env.working_directory(), &flags)?;
        let world = app.world(&runtime.sandbox, &nearby)?;
        let (mut ledger, dir) = app.find_run(&world, self.run.as_deref())?;
        let run = status(&dir, &ledger)?.run;
        let config = app.config(&run.repo, &flags)?;
        let ledger_file = app.ledger_path()?;
        let existing = ExistingRun {
            world: &world,
            dir: &dir,
            ledger_file: &ledger_file,
            settings: &config,
            names_cassette: self.cassette.is_some(),
            permission: Permission {
                paths: &self.allow,
                accepts: &self.accept,
            },
        };
        let events = ledger.events(Some(&run.run_id))?;
        let known = events.last().map_or(0, |event| event.seq);
        let mut progress = Progress::after(&app.output, known);
        let advanced = app.block_on(existing.advance(&runtime, app, &mut ledger, &mut progress));
        progress.finish();
        let ended = advanced.and_then(|_| conclude(app, &dir, &ledger));
        send_trace(app, &dir, known);
        ended
    }
}
