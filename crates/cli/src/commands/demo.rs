//! `crucible demo`: the whole way on a bundled repository, with a model's recorded words.

use std::path::PathBuf;

use clap::Args;
use crucible_host::fs::{create_dir_all, temp_dir_in, write_atomic};
use crucible_ledger::EventRecord;
use crucible_llm::Speaker;
use crucible_model::{ExitStatus, Failure};
use crucible_run::demo::{Demo as DemoRun, DemoAnswers, GOAL};
use crucible_run::{EventKind, RunDir, RunObserver, status};
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
        let here = app.config(app.env.working_directory(), &[])?;
        let answers = match self.record {
            Some(_) => DemoAnswers::Live,
            None => DemoAnswers::Recorded,
        };
        let mut demo = DemoRun::new(&app.runtime(), &here, &root, answers)?;
        let repo = demo.repository().to_owned();
        let mut story = Story {
            output: app.output.clone(),
            progress: Progress::new(&app.output),
            dir: None,
        };
        story.say(&format!(
            "A small repository with a failing test: {}",
            repo.display()
        ));
        if self.record.is_none() {
            let Speaker {
                model, provider, ..
            } = demo.speaker();
            story.say(&format!(
                "The model's answers below come from a recording of {model} with the provider `{provider}`."
            ));
        }
        story.say(&format!("Goal: {GOAL}\n"));
        let outcome = app.block_on(async {
            let dir = demo.create(&mut story).await?;
            story.dir = Some(dir.clone());
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
        let out = |line: &str| app.output.line(line);
        out(&format!(
            "\nCommitted {} with the evidence in its trailers:",
            landing.commit
        ));
        for line in landing
            .message
            .lines()
            .filter(|line| line.starts_with("Crucible-"))
        {
            out(&format!("  {line}"));
        }
        out(&format!("Evidence: {}", dir.root().display()));
        out("\nOn your own code:");
        out("  crucible init");
        out("  crucible run start \"fix the failing test in parser\" --repo . --provider gateway");
        out("  crucible run status");
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

/// Tells each stage as it happens, with what is worth seeing of its artifact.
struct Story {
    output: Output,
    progress: Progress,
    dir: Option<RunDir>,
}

impl Story {
    fn say(&mut self, text: &str) {
        self.progress.finish();
        self.output.remark(text);
    }

    fn show(&mut self, path: &str, lines: usize) {
        let Some(bytes) = self.dir.as_ref().and_then(|dir| dir.read(path).ok()) else {
            return;
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for line in text.lines().take(lines) {
            self.say(&format!("      {line}"));
        }
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
        let path = event.path.clone().unwrap_or_default();
        let number = |what: &str| {
            event
                .body
                .get("attempt")
                .map(|n| format!("{what} {n}"))
                .unwrap_or_default()
        };
        match EventKind::of(&event.event) {
            Some(EventKind::RepositoryAnalysed) => {
                self.say("1. Inspected the repository; its tests fail before any change.")
            }
            Some(EventKind::ContextPacked) => {
                let files: Vec<String> = self.packed();
                self.say(&format!("2. What the model may see: {}", files.join(", ")));
            }
            Some(EventKind::PlanSigned) => {
                self.say("3. The plan, reviewed and signed by its digest:");
                self.show("artifacts/PLAN.md", 7);
            }
            Some(EventKind::ModelAsked) => {
                self.say(&format!("\n{}: calling the model.", number("Attempt")))
            }
            Some(EventKind::PatchProposed) => {
                self.say("  It proposes:");
                self.show(&path, 40);
            }
            Some(EventKind::PatchAccepted) => self
                .say("  The patch gate accepts it; running the repository's own tests on a copy."),
            Some(EventKind::PatchRejected) => {
                self.say("  The patch gate refuses it; the reason goes back to the model.")
            }
            Some(EventKind::VerifyFailed) => {
                self.say("  The tests fail; their output goes back to the model.")
            }
            Some(EventKind::VerifyPassed) => self.say("  Verified."),
            _ => {}
        }
    }
}

impl Story {
    fn packed(&self) -> Vec<String> {
        let pack = self
            .dir
            .as_ref()
            .and_then(|dir| dir.read("artifacts/context_pack.json").ok());
        let pack: Option<serde_json::Value> =
            pack.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let files = pack.as_ref().and_then(|pack| pack.get("files")?.as_array());
        files
            .into_iter()
            .flatten()
            .filter_map(|file| file.get("path")?.as_str().map(str::to_owned))
            .collect()
    }
}
