//! `crucible run replay`: the same run once more, offline.

use clap::Args;
use crucible_llm::CassetteSource;
use crucible_model::ExitStatus;
use crucible_run::{CASSETTE, replay};

use crate::app::App;
use crate::commands::model;
use crate::commands::run::{shared_sandbox, world};
use crate::error::CommandError;
use crate::output::escaped;
use crate::progress::Progress;

/// Repeat a run from its recording and compare every artifact
///
/// No model is asked and your repository is not touched: the base is checked out into a temporary directory.
#[derive(Args)]
pub(crate) struct Replay {
    /// The run's id
    run: String,
}

impl Replay {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let sandbox = shared_sandbox(app);
        let config = app.config(app.env.working_directory(), &[])?;
        let world = world(app, &sandbox, &config)?;
        let dir = world.open_run(&self.run)?;
        let mut settings = model::settings(app, &config, "replay");
        settings.cassette = Some(CassetteSource::File(dir.path(CASSETTE)));
        let client = model::replaying(model::backend(app, &sandbox, "replay", &settings)?);
        let mut progress = Progress::new(&app.output);
        let replayed = app.block_on(async { Ok(replay(&world, &dir, &client, &mut progress).await?) });
        progress.finish();
        let replayed = replayed?;
        if app.output.is_json() {
            app.output.json(&replayed)?;
        } else {
            for path in &replayed.different {
                app.output.line(&escaped(&format!("different  {path}")));
            }
            let (same, different) = (replayed.same.len(), replayed.different.len());
            app.output.line(&format!(
                "{same} artifacts are the same, {different} differ; the replay is {}",
                replayed.state.name()
            ));
        }
        Ok(if replayed.different.is_empty() { ExitStatus::Success } else { ExitStatus::Refused })
    }
}
