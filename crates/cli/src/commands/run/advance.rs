//! `crucible run advance`: a run goes on where it stopped.

use std::sync::Arc;

use clap::Args;
use crucible_llm::{CallError, CassetteSource, configured, construct};
use crucible_model::{ExitStatus, Failure};
use crucible_run::{CASSETTE, Opening, RunClient, SOURCE, advance, allow, raise_budget, status};

use super::{ENDS, conclude};
use crate::app::App;
use crate::arguments::{overrides, path_text};
use crate::progress::Progress;
use crate::run_council::council_of_run;

/// The setting that says how many calls a run may make.
const BUDGET: &str = "llm.budget.calls";

/// Continue an interrupted run
///
/// Finished steps are not repeated. The run keeps its model and limits. Only its call limit can grow: set a
/// larger `llm.budget.calls`, and the run records and uses it. `--allow` widens what the run may change, and
/// also continues a failed run. For example, after Ctrl-C: `crucible run advance`
#[derive(Args)]
#[command(after_help = ENDS)]
pub(crate) struct Advance {
    /// The run's id or a prefix of it [default: newest run of this repository]
    run: Option<String>,
    /// The recording for a run of the provider `replay` [default: the run's own copy]
    #[arg(long, value_name = "FILE")]
    cassette: Option<std::path::PathBuf>,
    /// Also allow changes to this file, directory or glob; the plan is reviewed and signed again. May be
    /// given several times
    #[arg(long, value_name = "PATH")]
    allow: Vec<String>,
}

impl Advance {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let runtime = app.runtime();
        let sandbox = Arc::clone(&runtime.sandbox);
        let here = app.env.working_directory().to_owned();
        let flags = overrides([("llm.replay.cassette", path_text(&self.cassette))]);
        let nearby = app.config(&here, &flags)?;
        let world = app.world(&sandbox, &nearby)?;
        let (mut ledger, dir) = app.find_run(&world, self.run.as_deref())?;
        let status = status(&dir, &ledger)?;
        let run = &status.run;
        let config = app.config(&run.repo, &flags)?;
        let context = configured::context(&runtime, &config)?;
        let ledger_path = app.ledger_path()?;
        let council = council_of_run(
            &runtime,
            &config,
            &run.settings.dispatch(),
            &run.settings.provider,
        )?;
        let client = RunClient::new(&world, &ledger_path, &dir, &config)?.with_council(council);
        // Only those that serve a role are made ready, with the run's own recording where they answer from one.
        let ready = |name: &str| {
            let mut settings = configured::provider_settings(&runtime, &config, name);
            if self.cassette.is_none() && dir.has(SOURCE) {
                settings.cassette = Some(CassetteSource::File(dir.path(SOURCE)));
            }
            settings.already_played = Some(dir.path(CASSETTE)).filter(|path| path.exists());
            Ok(construct(name, &settings, &context).map_err(CallError::from)?)
        };
        let open = |opening: &Opening<'_>| client.open(ready, opening);
        let known = ledger
            .events(Some(&run.run_id))?
            .last()
            .map_or(0, |event| event.seq);
        let mut progress = Progress::after(&app.output, known);
        let set = config.is_set(BUDGET);
        if set && !status.state.is_end() {
            raise_budget(
                &world,
                &dir,
                config.budget.calls,
                &mut ledger,
                &mut progress,
            )?;
        }
        if !self.allow.is_empty() {
            app.drive(allow(&world, &dir, &self.allow, &mut ledger, &mut progress))?;
        }
        let advanced = app.drive(advance(&world, &dir, open, &mut ledger, &mut progress));
        progress.finish();
        advanced?;
        conclude(app, &dir, &ledger)
    }
}
