//! `crucible demo`: the whole way on a bundled repository, with a model's recorded words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use crucible_host::fs::{create_dir_all, read_up_to, temp_dir_in, write_atomic};
use crucible_ledger::{EventRecord, Ledger};
use crucible_llm::{CassetteSource, ProviderSettings, configured};
use crucible_model::{ByteLimit, EditFormat, ExitStatus};
use crucible_patch::{DEFAULT_MAX_ADDED_LINES, DEFAULT_MAX_FILES};
use crucible_repo::baseline;
use crucible_run::{
    AgentCommands, AnswersFrom, ContextSettings, EventKind, Opening, PatchLimits, RunClient,
    RunDir, RunObserver, RunOptions, RunSettings, RunState, World, advance, create, land, status,
};
use crucible_sandbox::Strength;

use crate::app::{App, LEDGER};
use crate::error::CommandError;
use crate::output::Output;
use crate::progress::Progress;

/// What the model is asked for.
const GOAL: &str = "twelve must return 12 when hour % 12 is 0";

/// How long the demo's own tests may take.
const GATE_TIMEOUT: Duration = Duration::from_secs(600);

/// Calls the demo may make.
const MAX_CALLS: u64 = 8;

/// The repository: a small library with a failing test.
const FILES: [(&str, &str); 3] = [
    ("Cargo.toml", include_str!("../../demo/Cargo.toml.txt")),
    ("Cargo.lock", include_str!("../../demo/Cargo.lock.txt")),
    ("src/lib.rs", include_str!("../../demo/lib.rs.txt")),
];

/// What a real model answered, made by `crucible demo --record`. The questions were worded anew since; those of the recording were
/// put in their place, the answers are as they came.
const CASSETTE: &[u8] = include_bytes!("../../demo/cassette.jsonl");

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
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let root = self.root(app)?;
        let (repo, home) = (root.join("repository"), root.join("crucible"));
        for (path, content) in FILES {
            let path = repo.join(path);
            create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
            write_atomic(&path, content.as_bytes())?;
        }
        create_dir_all(&home)?;
        let runtime = app.runtime();
        let sandbox = Arc::clone(&runtime.sandbox);
        let world = World {
            env: &app.env,
            clock: app.clock.as_ref(),
            sandbox: Arc::clone(&sandbox),
            runs_root: home.join("runs"),
            tmp: home.join("tmp"),
        };
        let (provider, settings) = self.provider(app)?;
        let here = app.config(app.env.working_directory(), &[])?;
        let backend = configured::backend(&runtime, &here, provider, &settings)?;
        let speaker = backend.speaker().clone();
        let ledger_path = home.join(LEDGER);
        let mut ledger = Ledger::open(&ledger_path)?;
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
            story.say(&format!(
                "The model's answers below come from a recording of {} with the provider `{}`.",
                speaker.model, speaker.provider
            ));
        }
        story.say(&format!("Goal: {GOAL}\n"));
        let options = options(provider, speaker.model);
        let outcome = app.block_on(async {
            baseline(Arc::clone(&sandbox), &app.env, &repo).await?;
            identify(&repo)?;
            let git = world.repository(&repo).await?;
            let id = create(&world, &git, options, &mut ledger, &mut story).await?;
            let dir = RunDir::of(&world.runs_root, &id);
            story.dir = Some(dir.clone());
            let config = app.config(&repo, &[])?;
            let client = RunClient::new(&world, &ledger_path, &dir, &config)?;
            let open = |opening: &Opening<'_>| client.open(|_| Ok(backend.clone()), opening);
            let state = advance(&world, &dir, open, &mut ledger, &mut story).await?;
            let landing = match state {
                RunState::Verified => {
                    Some(land(&world, &dir, None, &mut ledger, &mut story).await?)
                }
                _ => None,
            };
            Ok((dir, state, landing))
        });
        story.progress.finish();
        let (dir, state, landing) = outcome?;
        if let Some(path) = &self.record {
            write_atomic(&app.absolute(path), &dir.read(crucible_run::CASSETTE)?)?;
        }
        let Some(landing) = landing else {
            let failure = status(&dir, &ledger)?
                .failure
                .map(|finding| finding.hint)
                .unwrap_or_default();
            return Err(CommandError::new(
                ExitStatus::Refused,
                format!("the demo ended {}", state.name()),
            )
            .hint(failure));
        };
        if app.output.is_json() {
            app.output.json(&serde_json::json!({
                "schema_version": "crucible-demo-v1", "repository": repo, "evidence": dir.root(), "commit": landing.commit,
                "recorded_model": status(&dir, &ledger)?.run.settings.model,
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

    fn root(&self, app: &App) -> Result<PathBuf, CommandError> {
        match &self.directory {
            Some(directory) => {
                let directory = app.absolute(directory);
                if directory.symlink_metadata().is_ok() {
                    return Err(CommandError::usage(format!(
                        "{} already exists",
                        directory.display()
                    ))
                    .hint("Name a directory that does not exist yet."));
                }
                create_dir_all(&directory)?;
                Ok(directory)
            }
            None => Ok(temp_dir_in(&app.env.temporary_directory(), "crucible-demo-")?.keep()),
        }
    }

    fn provider(&self, app: &App) -> Result<(&'static str, ProviderSettings), CommandError> {
        if self.record.is_some() {
            let config = app.config(app.env.working_directory(), &[])?;
            let runtime = app.runtime();
            return Ok((
                "gateway",
                configured::provider_settings(&runtime, &config, "gateway"),
            ));
        }
        let cassette = Some(CassetteSource::Bytes(CASSETTE.into()));
        Ok((
            "replay",
            ProviderSettings {
                cassette,
                ..ProviderSettings::default()
            },
        ))
    }
}

/// Gives the demo's repository a name to commit under: the user may have none.
fn identify(repo: &Path) -> Result<(), CommandError> {
    let path = repo.join(".git/config");
    let mut config = read_up_to(&path, ByteLimit(64 * 1024))?;
    config.extend_from_slice(b"[user]\n\tname = Crucible demo\n\temail = demo@localhost\n");
    Ok(write_atomic(&path, &config)?)
}

/// The demo's run. Nothing here comes from the user's configuration, so that the questions are those of the recording.
fn options(provider: &str, model: String) -> RunOptions {
    let settings = RunSettings {
        provider: provider.to_owned(),
        model,
        role_models: BTreeMap::new(),
        edit_format: EditFormat::WholeFile,
        parameters: BTreeMap::from([
            ("max_tokens".to_owned(), 1500.into()),
            ("temperature".to_owned(), 1.0.into()),
        ]),
        model_timeout_s: Duration::from_secs(300).as_secs(),
        max_calls: MAX_CALLS,
        gates: Vec::new(),
        sandbox: Strength::BestEffort,
        patch: PatchLimits {
            max_files: DEFAULT_MAX_FILES,
            max_added_lines: DEFAULT_MAX_ADDED_LINES,
        },
        max_files: 20,
        max_total_bytes: 60_000,
        max_iterations: 4,
        max_malformed: 0,
        max_file_requests: 0,
        context_window: None,
        candidates: 1,
        named: Vec::new(),
        directories: Vec::new(),
        message: None,
        may_drop: Vec::new(),
        context: ContextSettings::default(),
        dispatch: None,
        agents: AgentCommands::default(),
        web: None,
    };
    RunOptions {
        goal: GOAL.to_owned(),
        settings,
        found_gate_timeout: GATE_TIMEOUT,
        started_in: None,
        answers: AnswersFrom::Provider,
        warnings: Vec::new(),
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
