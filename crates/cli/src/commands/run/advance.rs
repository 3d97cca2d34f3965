//! `crucible run advance`: a run goes on where it stopped.

use clap::Args;
use crucible_model::ExitStatus;
use crucible_run::{advance, status};

use crate::app::App;
use crate::commands::model;
use crate::commands::run::{conclude, find, shared_sandbox, world};
use crate::error::CommandError;
use crate::progress::Progress;

/// Continue a run that was interrupted
///
/// What is done is not done again. The run keeps the limits and the model it was started with.
#[derive(Args)]
pub(crate) struct Advance {
    /// The run's id; without it the newest
    run: Option<String>,
    /// The recording that answers, for a run of the provider `replay`
    #[arg(long, value_name = "FILE")]
    cassette: Option<std::path::PathBuf>,
}

impl Advance {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let sandbox = shared_sandbox(app);
        let here = app.env.working_directory().to_owned();
        let flags: Vec<(&str, String)> =
            self.cassette.iter().map(|path| ("llm.replay.cassette", path.display().to_string())).collect();
        let nearby = app.config(&here, &flags)?;
        let world = world(app, &sandbox, &nearby)?;
        let dir = find(app, &world, self.run.as_deref())?;
        let run = status(&dir)?.run;
        let config = app.config(&run.repo, &flags)?;
        let mut settings = model::settings(app, &config, &run.settings.provider);
        settings.already_played = Some(dir.path(crucible_run::CASSETTE)).filter(|path| path.exists());
        let backend = model::backend(app, &sandbox, &run.settings.provider, &settings)?;
        let client = model::client(backend, &dir, &config, run.settings.max_calls)?;
        let mut ledger = app.ledger()?;
        let mut progress = Progress::new(&app.output);
        let advanced =
            app.block_on(async { Ok(advance(&world, &dir, &client, &mut ledger, &mut progress).await?) });
        progress.finish();
        advanced?;
        conclude(app, &dir)
    }
}
