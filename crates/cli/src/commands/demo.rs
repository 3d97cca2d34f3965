//! `crucible demo`: the whole way on a bundled repository, with a model's recorded words.

use std::path::PathBuf;

use clap::Args;
use crucible_host::fs::{create_dir_all, temp_dir_in, write_atomic};
use crucible_ledger::EventRecord;
use crucible_model::{ExitStatus, Failure};
use crucible_run::demo::{self, Demo as DemoRun, DemoAnswers, DemoStory};
use crucible_run::{RunObserver, status};
use crucible_terminal::Output;

use crate::app::App;
use crate::progress::Progress;

/// Run a complete change on a bundled repository, offline
///
/// Writes a small repository with a failing test to a temporary directory and makes a governed change in it.
/// The model's answers come from a recording, so no key and no network is needed.
#[derive(Args)]
pub(crate) struct Demo {
    /// Write the demo's repository and evidence to this directory [default: a new temporary directory]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Call a live gateway instead and record its answers in this file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl Demo {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let root = self.root(app)?;
        let settings = app.config(app.env.working_directory(), &[])?;
        let answers = match self.record {
            Some(_) => DemoAnswers::Live,
            None => DemoAnswers::Recorded,
        };
        let mut demo = DemoRun::new(&app.runtime(), &settings, &root, answers)?;
        let repo = demo.repository().to_owned();
        let mut story = Story {
            output: app.output.clone(),
            progress: Progress::new(&app.output),
            text: DemoStory::default(),
        };
        for line in demo.introduction(answers) {
            story.say(&line);
        }
        let outcome = app.block_on(async {
            let dir = demo.create(&mut story).await?;
            story.text = DemoStory::from_dir(dir.clone());
            let config = app.config(&repo, &[])?;
            let (state, landing) = demo.finish(&config, &dir, &mut story).await?;
            Ok((dir, state, landing))
        });
        story.progress.finish();
        let (dir, state, landing) = outcome?;
        if let Some(path) = &self.record {
            write_atomic(&app.absolute(path), &dir.read(crucible_run::CASSETTE)?)?;
        }
        let Some(landing) = landing else {
            let failure = status(&dir, demo.ledger())?
                .failure
                .map(|finding| finding.hint)
                .unwrap_or_default();
            return Err(Failure::refused(format!("the demo ended {}", state.name())).hint(failure));
        };
        if app.output.is_json() {
            app.output.json(&serde_json::json!({
                "schema_version": "crucible-demo-v1", "repository": repo, "evidence": dir.root(), "commit": landing.commit,
                "recorded_model": status(&dir, demo.ledger())?.run.settings.model,
            }))?;
            return Ok(ExitStatus::Success);
        }
        for line in demo::conclusion(&dir, &landing) {
            app.output.line(&line);
        }
        Ok(ExitStatus::Success)
    }

    fn root(&self, app: &App) -> Result<PathBuf, Failure> {
        match &self.directory {
            Some(directory) => {
                let directory = app.absolute(directory);
                if directory.symlink_metadata().is_ok() {
                    return Err(
                        Failure::usage(format!("{} already exists", directory.display()))
                            .hint("Name a directory that does not exist yet."),
                    );
                }
                create_dir_all(&directory)?;
                Ok(directory)
            }
            None => Ok(temp_dir_in(&app.env.temporary_directory(), "crucible-demo-")?.keep()),
        }
    }
}

/// Prints each stage as it happens.
struct Story {
    output: Output,
    progress: Progress,
    text: DemoStory,
}

impl Story {
    fn say(&mut self, text: &str) {
        self.progress.finish();
        self.output.remark(text);
    }
}

impl RunObserver for Story {
    fn working(&mut self, role: &str, what: &str) {
        self.progress.working(role, what);
    }

    fn note(&mut self, line: &str) {
        self.say(&format!("  {}", line.trim_start()));
    }

    fn event(&mut self, event: &EventRecord) {
        for line in self.text.lines(event) {
            self.say(&line);
        }
    }
}
