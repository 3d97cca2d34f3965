//! The demo: a governed change of a bundled repository, with a model's recorded answers.

mod story;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_host::fs::{create_dir_all, read_up_to, write_atomic};
use crucible_ledger::Ledger;
use crucible_llm::{Backend, CassetteSource, ProviderSettings, configured};
use crucible_model::{ByteLimit, EditFormat, Failure};
use crucible_patch::{DEFAULT_MAX_ADDED_LINES, DEFAULT_MAX_FILES};
use crucible_repo::create_baseline;
use crucible_sandbox::{Runtime, Strength};
use crucible_settings::Settings;

pub use self::story::{DemoStory, conclusion};
use crate::attestation::Signing;
use crate::contract::{AgentCommands, ContextSettings, PatchLimits, RunSettings};
use crate::engine::advance;
use crate::journal::RunObserver;
use crate::land::{Landing, land};
use crate::layout::RunDir;
use crate::recording::{AnswerSource, ClientContext};
use crate::run_client::RunClientsBuilder;
use crate::run_context::RunContext;
use crate::start::{RunOptions, create};
use crate::state::RunState;

/// What the model is asked for.
const GOAL: &str = "twelve must return 12 when hour % 12 is 0";

/// How long the demo's own tests may take.
const GATE_TIMEOUT: Duration = Duration::from_secs(600);

/// Calls the demo may make.
const MAX_CALLS: u64 = 8;

/// The repository: a small library with a failing test.
const FILES: [(&str, &str); 3] = [
    ("Cargo.toml", include_str!("../demo/Cargo.toml.txt")),
    ("Cargo.lock", include_str!("../demo/Cargo.lock.txt")),
    ("src/lib.rs", include_str!("../demo/lib.rs.txt")),
];

/// What a real model answered, made by `crucible demo --record`. The questions were reworded since; those of the recording were
/// put in their place, the answers are as they came.
const CASSETTE: &[u8] = include_bytes!("../demo/cassette.jsonl");

/// What answers in a demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoAnswers {
    /// The bundled recording.
    Recorded,
    /// The configured gateway.
    Live,
}

/// A demo that is prepared: its repository is written.
pub struct Demo<'a> {
    world: RunContext<'a>,
    repository: PathBuf,
    ledger_file: PathBuf,
    ledger: Ledger,
    provider: &'static str,
    backend: Backend,
}

impl<'a> Demo<'a> {
    /// Writes the repository below `root`, and prepares the backend.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written, or if the backend cannot be prepared.
    pub fn new(
        runtime: &Runtime<'a>,
        settings: &Settings,
        root: &Path,
        answers: DemoAnswers,
    ) -> Result<Self, Failure> {
        let (repository, home) = (root.join("repository"), root.join("crucible"));
        for (path, content) in FILES {
            let path = repository.join(path);
            create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
            write_atomic(&path, content.as_bytes())?;
        }
        create_dir_all(&home)?;
        let (provider, of_provider) = match answers {
            DemoAnswers::Live => {
                let of_gateway = configured::provider_settings(runtime, settings, "gateway");
                ("gateway", of_gateway)
            }
            DemoAnswers::Recorded => {
                let cassette = Some(CassetteSource::Bytes(CASSETTE.into()));
                let replay = ProviderSettings {
                    cassette,
                    ..ProviderSettings::default()
                };
                ("replay", replay)
            }
        };
        let backend = configured::backend(runtime, settings, provider, &of_provider)?;
        let ledger_file = home.join("ledger.db");
        Ok(Self {
            world: RunContext {
                env: runtime.env,
                clock: runtime.clock,
                sandbox: Arc::clone(&runtime.sandbox),
                runs_root: home.join("runs"),
                tmp: home.join("tmp"),
            },
            repository,
            ledger: Ledger::open(&ledger_file)?,
            ledger_file,
            provider,
            backend,
        })
    }

    /// Returns the top of the repository.
    #[must_use]
    pub fn repository(&self) -> &Path {
        &self.repository
    }

    /// Returns the ledger of the demo.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Creates the run.
    ///
    /// # Errors
    ///
    /// Fails if the repository or the run cannot be created.
    pub async fn create(&mut self, observer: &mut dyn RunObserver) -> Result<RunDir, Failure> {
        let world = &self.world;
        create_baseline(Arc::clone(&world.sandbox), world.env, &self.repository).await?;
        identify(&self.repository)?;
        let git = world.repository(&self.repository).await?;
        let options = options(self.provider, self.backend.speaker().model.clone());
        let id = create(world, &git, options, &mut self.ledger, observer).await?;
        Ok(RunDir::new(&world.runs_root, &id))
    }

    /// Advances the run, and lands its change if it is verified. `settings` are those of the repository.
    ///
    /// # Errors
    ///
    /// Fails if the run cannot be advanced or landed.
    pub async fn finish(
        &mut self,
        settings: &Settings,
        dir: &RunDir,
        observer: &mut dyn RunObserver,
    ) -> Result<(RunState, Option<Landing>), Failure> {
        let (world, ledger) = (&self.world, &mut self.ledger);
        let client = RunClientsBuilder::new(world, &self.ledger_file, dir, settings)?;
        let open = |opening: &ClientContext<'_>| client.open(|_| Ok(self.backend.clone()), opening);
        let state = advance(world, dir, open, ledger, observer).await?;
        let landing = match state {
            RunState::Verified => {
                Some(land(world, dir, None, &Signing::off(), ledger, observer).await?)
            }
            _ => None,
        };
        Ok((state, landing))
    }
}

/// Gives the demo's repository a name to commit under: the user may have none.
fn identify(repo: &Path) -> Result<(), Failure> {
    let path = repo.join(".git/config");
    let mut config = read_up_to(&path, ByteLimit(64 * 1024))?;
    config.extend_from_slice(b"[user]\n\tname = Crucible demo\n\temail = demo@localhost\n");
    Ok(write_atomic(&path, &config)?)
}

/// The demo's run. Nothing here comes from the user's configuration, so that the questions are those of the recording.
fn options(provider: &str, model: String) -> RunOptions {
    let settings = RunSettings {
        coding_agent: None,
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
        broken_change: crucible_verify::BrokenPolicy::Required,
        second_world: crucible_verify::WorldPolicy::Required,
        results_outside: crucible_verify::ResultsPolicy::Off,
        min_strength: 0,
        strength_budget_s: 0,
        objections: crucible_verify::ObjectionPolicy::Off,
        held_out: Default::default(),
        sinks_need_approval: Vec::new(),
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
        answers: AnswerSource::Provider,
        warnings: Vec::new(),
        task: None,
    }
}
