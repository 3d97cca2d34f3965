//! A new run: what the command line asks for, and what the run is created with.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crucible_ledger::Ledger;
use crucible_llm::configured::{strength, temperature};
use crucible_llm::{Backend, CallPool, Origin, ReceiptWarning, Upstream};
use crucible_model::{EditFormat, ExitStatus, Failure};
use crucible_repo::{Git, TrackedFile};
use crucible_sandbox::Runtime;
use crucible_settings::Settings;

use super::agents::{agents, coding_agent};
use super::find::find_settings;
use super::gates::{GateChoice, default_timeout};
use super::limits::{
    change_policies, context_settings, edit_format, limit, pack_limits, patch_limits,
};
use super::roles::{Proposer, RoleBackends};
use crate::contract::{FindMode, RunSettings};
use crate::engine::advance;
use crate::error::RunError;
use crate::held_out::HeldOut;
use crate::journal::RunObserver;
use crate::layout::RunDir;
use crate::recording::{ClientContext, parameters_of_recording};
use crate::run_client::{CouncilService, RunClientsBuilder};
use crate::run_context::RunContext;
use crate::scope::{NamedPaths, named_places};
use crate::start::{RunOptions, create};
use crate::state::RunState;

/// The longest goal, in bytes. It is part of every prompt and of the commit's first line.
const MAX_GOAL: usize = 16 * 1024;

/// What the command line says of a new run, besides the settings that it overrides.
pub struct StartRequest<'a> {
    /// What to achieve.
    pub goal: &'a str,
    /// The absolute path of the directory that the run starts in.
    pub directory: &'a Path,
    /// The top of its repository; `None` outside of one.
    pub top: Option<&'a Path>,
    /// The model that the roles of the configured provider use.
    pub model: Option<&'a str>,
    /// Files, directories and globs that may change.
    pub files: &'a [String],
    /// The commands of `--test`.
    pub tests: &'a [String],
    /// Definitions that may be removed or renamed.
    pub may_drop: &'a [String],
    /// The subject of the commit.
    pub message: Option<&'a str>,
    /// The dispatch configuration.
    pub dispatch: Option<&'a Path>,
    /// Files and directories of tests that no proposer sees.
    pub held_out: &'a [String],
    /// The recording that answers.
    pub cassette: Option<&'a Path>,
}

impl StartRequest<'_> {
    /// Checks the goal and the path, before anything else is read.
    ///
    /// # Errors
    ///
    /// Fails if the goal is too long, or if the path is not UTF-8.
    pub fn check(&self) -> Result<(), Failure> {
        if self.goal.len() > MAX_GOAL {
            let message = format!(
                "the goal has {} bytes; the limit is {MAX_GOAL}",
                self.goal.len()
            );
            return Err(Failure::new(ExitStatus::OverLimit, message)
                .hint("Shorten it; name documents with the details in [context] mandatory."));
        }
        if self.directory.to_str().is_none() {
            // A run's record is JSON and names its repository.
            let message = format!(
                "the repository's path is not UTF-8: {}",
                self.directory.display()
            );
            return Err(
                Failure::usage(message).hint("Rename the directory, or work in a clone elsewhere.")
            );
        }
        Ok(())
    }

    /// Returns what the run is created with. Files that do not exist yet, and a model that no role uses, are notices.
    ///
    /// # Errors
    ///
    /// Fails if a setting or an argument is not allowed, or if git cannot list its files.
    pub(crate) async fn run_options(
        &self,
        runtime: &Runtime<'_>,
        settings: &Settings,
        git: &Git,
        backends: &RoleBackends,
    ) -> Result<RunOptions, Failure> {
        let named = if self.files.is_empty() {
            NamedPaths::default()
        } else {
            let tracked = git.tracked_files().await.map_err(RunError::from)?;
            self.named_paths(runtime, &tracked)?
        };
        let proposer = self.proposer(runtime, settings, backends);
        let choice = GateChoice::new(self.tests, self.top, self.directory);
        let agents = agents(runtime.env, settings, backends.dispatch.as_ref())?;
        let requested = edit_format(settings)?;
        let (pack, context_window) = pack_limits(settings, &proposer.name)?;
        let run = &settings.run;
        let policies = change_policies(settings)?;
        let coding_agent = coding_agent(runtime, settings, self.model, backends.dispatch.as_ref())?;
        let settings_of_run = RunSettings {
            edit_format: match proposer
                .backend
                .map(|backend| (backend.origin(), backend.capabilities()))
            {
                Some((Origin::Live, best)) => requested.unwrap_or(best.edit_format),
                // A recording answers only the requests that it was made with.
                Some((Origin::Recording | Origin::Unpaid, own)) => own.edit_format,
                // Whoever is not a model writes a diff.
                None => EditFormat::UnifiedDiff,
            },
            parameters: proposer
                .backend
                .map(|backend| parameters(settings, &proposer.name, backend))
                .unwrap_or_default(),
            provider: proposer.name,
            model: proposer.model,
            role_models: proposer.of_roles,
            model_timeout_s: limit("llm.timeout_s", settings.llm.timeout_s)?,
            max_calls: if coding_agent.is_some() && !settings.is_set("llm.budget.calls") {
                limit("run.agent_calls", run.agent_calls)?
            } else {
                settings.budget.calls
            },
            coding_agent,
            gates: choice.named_gates(settings)?,
            sandbox: strength(settings)?,
            patch: patch_limits(settings),
            max_files: pack.max_files,
            max_total_bytes: pack.max_total_bytes,
            context_window,
            max_iterations: limit("run.max_iterations", run.max_iterations)?,
            max_malformed: run.max_malformed.min(u64::from(u32::MAX)),
            max_file_requests: run.max_file_requests.min(u64::from(u32::MAX)),
            broken_change: policies.broken_change,
            second_world: policies.second_world,
            results_outside: policies.results_outside,
            min_strength: policies.min_strength,
            strength_budget_s: run.strength_budget_s,
            sinks_need_approval: policies.sinks_need_approval,
            objections: policies.objections,
            held_out: self.held_out(runtime, settings)?,
            candidates: limit("run.candidates", run.candidates)?,
            named: named.files,
            directories: named.directories,
            message: self.message.map(str::to_owned),
            may_drop: self.may_drop.to_vec(),
            context: context_settings(settings)?,
            dispatch: backends.dispatch.clone(),
            agents,
            web: match find_settings(settings)? {
                FindMode::ResolverOnly => None,
                FindMode::ResolverPlusWeb(web) => Some(web),
            },
        };
        Ok(RunOptions {
            goal: self.goal.to_owned(),
            settings: settings_of_run,
            found_gate_timeout: default_timeout(),
            started_in: choice.directory,
            answers: backends.answers.clone(),
            warnings: backends
                .fell_back
                .iter()
                .map(ReceiptWarning::fallback)
                .collect(),
            task: None,
        })
    }

    /// Reads the held-out tests of the command line and the settings.
    fn held_out(&self, runtime: &Runtime<'_>, settings: &Settings) -> Result<HeldOut, Failure> {
        let places = self.held_out.iter().chain(&settings.run.held_out);
        let places: Vec<_> = places
            .map(|place| runtime.absolute(Path::new(place)))
            .collect();
        HeldOut::read(&places, self.top.unwrap_or(self.directory)).map_err(|error| {
            Failure::usage(format!("--held-out: {error}"))
                .hint("Name files or directories outside of the repository.")
        })
    }

    /// Returns the files and directories that may change, each once.
    fn named_paths(
        &self,
        runtime: &Runtime<'_>,
        tracked: &[TrackedFile],
    ) -> Result<NamedPaths, Failure> {
        let places = named_places(self.files, tracked).map_err(|(text, error)| {
            Failure::usage(format!("--file {text:?}: {error}")).hint(
                "Name files, directories or globs relative to the repository's top directory.",
            )
        })?;
        for path in &places.new {
            match self.top.map(|top| top.join(path.as_str())) {
                Some(place) if place.is_dir() => {
                    return Err(Failure::usage(format!(
                        "--file {path:?}: git tracks nothing in this directory"
                    ))
                    .hint("Name the files that the model may create in it."));
                }
                Some(place) if place.symlink_metadata().is_err() => {
                    runtime.notices.notice(&format!(
                        "note: file {path} does not exist yet; the model may create it"
                    ));
                }
                _ => {}
            }
        }
        Ok(places)
    }

    /// Returns the service that proposes changes, and the model of each role.
    fn proposer<'c>(
        &self,
        runtime: &Runtime<'_>,
        settings: &Settings,
        backends: &'c RoleBackends,
    ) -> Proposer<'c> {
        let provider = settings.llm.provider.as_deref().unwrap_or_default();
        let (provider, chosen) = match &backends.fell_back {
            Some(fell_back) => (fell_back.fallback.as_str(), None),
            None => (provider, self.model),
        };
        let proposer = backends.proposer(provider, chosen);
        let is_used = |model: &str| {
            (proposer.backend.is_some() && proposer.model == model)
                || proposer.of_roles.values().any(|own| own == model)
        };
        match self.model {
            Some(requested) if backends.fell_back.is_some() => {
                let own = &proposer.model;
                runtime.notices.notice(&format!(
                    "note: the fallback uses its own model {own}, not {requested}"
                ));
            }
            Some(request) if !is_used(request) => {
                runtime.notices.notice(&format!(
                    "note: the model {request} is not used: its provider serves no role of this run"
                ));
            }
            Some(_) | None => {}
        }
        proposer
    }
}

/// A run that was created, with the backends that serve it.
pub struct StartedRun {
    /// The run's directory.
    pub dir: RunDir,
    /// The ledger.
    pub ledger: Ledger,
    settings: Settings,
    models: BTreeMap<String, Backend>,
    council: Option<Box<dyn CouncilService>>,
    upstream: Option<Upstream>,
}

impl StartedRun {
    /// Creates the run.
    ///
    /// # Errors
    ///
    /// Fails as [`create`] does.
    pub async fn create(
        world: &RunContext<'_>,
        git: &Git,
        options: RunOptions,
        backends: StartSettings,
        mut ledger: Ledger,
        observer: &mut dyn RunObserver,
    ) -> Result<Self, RunError> {
        let id = create(world, git, options, &mut ledger, observer).await?;
        let StartSettings {
            settings,
            models,
            council,
            upstream,
        } = backends;
        Ok(Self {
            dir: RunDir::new(&world.runs_root, &id),
            ledger,
            settings,
            models,
            council,
            upstream,
        })
    }

    /// Advances the run as far as possible, within `pool` if several runs share a budget. `ledger_file` is the ledger's
    /// file. An error of the run itself is returned beside its directory and ledger.
    ///
    /// # Errors
    ///
    /// Fails if a price or a limit cannot be used.
    pub async fn advance(
        self,
        world: &RunContext<'_>,
        ledger_file: &Path,
        pool: Option<Arc<CallPool>>,
        observer: &mut dyn RunObserver,
    ) -> Result<(RunDir, Ledger, Result<RunState, RunError>), Failure> {
        let Self {
            settings,
            mut models,
            council,
            upstream,
            dir,
            mut ledger,
        } = self;
        let client = RunClientsBuilder::new(world, ledger_file, &dir, &settings)?
            .with_council(council)
            .with_upstream(upstream);
        let open = |opening: &ClientContext<'_>| {
            let ready = |name: &str| {
                models.remove(name).ok_or_else(|| RunError::NoClient {
                    name: name.to_owned(),
                })
            };
            client.with_pool(pool).open(ready, opening)
        };
        let advanced = advance(world, &dir, open, &mut ledger, observer).await;
        Ok((dir, ledger, advanced))
    }
}

/// The settings and backends that a new run starts with.
pub struct StartSettings {
    /// The settings.
    pub settings: Settings,
    /// The backends of the model providers, by name.
    pub models: BTreeMap<String, Backend>,
    /// The council, if it serves a role.
    pub council: Option<Box<dyn CouncilService>>,
    /// The server that an agent's requests are forwarded to, if one proposes changes.
    pub upstream: Option<Upstream>,
}

/// Returns the parameters of each request for a change.
#[must_use]
pub fn parameters(
    settings: &Settings,
    provider: &str,
    backend: &Backend,
) -> BTreeMap<String, serde_json::Value> {
    let mut parameters = parameters_of_recording(backend.parameters());
    let max_tokens = settings.provider(provider).max_tokens;
    if max_tokens > 0 {
        parameters.insert("max_tokens".to_owned(), max_tokens.into());
    }
    if let Some(temperature) = temperature(settings, provider) {
        parameters.insert("temperature".to_owned(), temperature.into());
    }
    parameters
}
