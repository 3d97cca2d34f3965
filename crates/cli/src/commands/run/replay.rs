//! `crucible run replay`: the same run once more, offline.

use std::sync::Arc;

use clap::Args;
use crucible_llm::{CassetteSource, configured};
use crucible_model::{ExitStatus, Failure, counted, one_line};
use crucible_run::{CASSETTE, replay};

use crate::app::App;
use crate::progress::Progress;

/// Replay a run from its recording and compare its artifacts
///
/// No model is called and your repository is not changed. The base commit is checked out into a temporary
/// directory.
#[derive(Args)]
pub(crate) struct Replay {
    /// The run's id or a prefix of it
    run: String,
}

impl Replay {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let runtime = app.runtime();
        let sandbox = Arc::clone(&runtime.sandbox);
        let config = app.config(app.env.working_directory(), &[])?;
        let world = app.world(&sandbox, &config)?;
        let (ledger, dir) = app.find_run(&world, Some(&self.run))?;
        let mut settings = configured::provider_settings(&runtime, &config, "replay");
        settings.cassette = Some(CassetteSource::File(dir.path(CASSETTE)));
        let client =
            configured::replaying(configured::backend(&runtime, &config, "replay", &settings)?);
        let mut progress = Progress::new(&app.output);
        let replayed = app.drive(replay(&world, &dir, &client, &ledger, &mut progress));
        progress.finish();
        let replayed = replayed?;
        if app.output.is_json() {
            app.output.json(&replayed)?;
        } else {
            for finding in &replayed.findings {
                app.output.finding(finding);
            }
            for path in &replayed.different {
                app.output.line(&one_line(&format!("different  {path}")));
            }
            app.output.line(&format!(
                "{} the same, {} different; the replay is {}",
                counted(replayed.same.len() as u64, "artifact"),
                replayed.different.len(),
                replayed.state.name()
            ));
        }
        Ok(if replayed.different.is_empty() {
            ExitStatus::Success
        } else {
            ExitStatus::Refused
        })
    }
}
