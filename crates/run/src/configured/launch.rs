//! Starts and continues runs, with the services of their roles.

use std::path::Path;
use std::sync::Arc;

use crucible_ledger::{CallState, Ledger};
use crucible_llm::configured::{check_budget, context, provider_settings, require_controlled};
use crucible_llm::{CallError, CallPool, CassetteSource, construct};
use crucible_model::{Failure, RunId};
use crucible_repo::Oid;
use crucible_sandbox::Runtime;
use crucible_settings::Settings;

use super::agents::upstream;
use super::roles::RoleBackends;
use super::start::{StartRequest, StartSettings, StartedRun};
use crate::allow::{Permission, allow};
use crate::attestation::Signing;
use crate::budget::raise_budget;
use crate::contract::DispatchConfig;
use crate::engine::advance;
use crate::error::RunError;
use crate::journal::{NoopObserver, RunObserver};
use crate::land::land;
use crate::layout::{CASSETTE, RunDir, SOURCE};
use crate::recording::ClientContext;
use crate::run_client::{CouncilService, RunClientsBuilder};
use crate::run_context::RunContext;
use crate::start::RunOptions;
use crate::state::RunState;
use crate::status::status;

/// The setting that limits the calls of a run.
const BUDGET: &str = "llm.budget.calls";

/// The program that starts runs.
pub trait RunHost {
    /// Returns the council, if this dispatch needs it. `provider` is the run's own.
    ///
    /// # Errors
    ///
    /// Fails if a setting cannot be used, or if a provider cannot be prepared.
    fn council(
        &self,
        settings: &Settings,
        dispatch: &DispatchConfig,
        provider: &str,
    ) -> Result<Option<Box<dyn CouncilService>>, Failure>;

    /// Returns the ledger, created if missing.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be opened.
    fn ledger(&self) -> Result<Ledger, Failure>;
}

impl StartRequest<'_> {
    /// Creates the run; `adjust` changes what it is created with.
    ///
    /// # Errors
    ///
    /// Fails if a setting or an argument cannot be used, if a provider cannot be prepared, or if the run cannot be
    /// created.
    pub async fn start(
        &self,
        runtime: &Runtime<'_>,
        settings: &Settings,
        world: &RunContext<'_>,
        host: &dyn RunHost,
        adjust: impl FnOnce(&mut RunOptions),
        observer: &mut dyn RunObserver,
    ) -> Result<StartedRun, Failure> {
        require_controlled(settings)?;
        check_budget(settings)?;
        let backends = RoleBackends::new(runtime, settings, self.dispatch, self.cassette)?;
        let provider = backends.provider(settings.llm.provider.as_deref().unwrap_or_default());
        let council = match &backends.dispatch {
            Some(dispatch) => host.council(settings, dispatch, provider)?,
            None => None,
        };
        let git = world.repository(self.directory).await?;
        let mut options = self.run_options(runtime, settings, &git, &backends).await?;
        adjust(&mut options);
        let with = StartSettings {
            settings: settings.clone(),
            upstream: upstream(runtime, settings, options.settings.coding_agent.as_ref())?,
            models: backends.models,
            council,
        };
        let ledger = host.ledger()?;
        Ok(StartedRun::create(world, &git, options, with, ledger, observer).await?)
    }
}

/// A run that is continued.
pub struct ExistingRun<'a> {
    /// The world of the run.
    pub world: &'a RunContext<'a>,
    /// The run's directory.
    pub dir: &'a RunDir,
    /// The ledger's file.
    pub ledger_file: &'a Path,
    /// The settings of its repository.
    pub settings: &'a Settings,
    /// Whether the command line names a recording to answer from.
    pub names_cassette: bool,
    /// What a person permits for the run.
    pub permission: Permission<'a>,
}

impl ExistingRun<'_> {
    /// Raises the budget if the settings set one, widens the scope, and advances the run as far as possible.
    ///
    /// # Errors
    ///
    /// Fails if a setting cannot be used, or if the run cannot be advanced.
    pub async fn advance(
        self,
        runtime: &Runtime<'_>,
        host: &dyn RunHost,
        ledger: &mut Ledger,
        observer: &mut dyn RunObserver,
    ) -> Result<RunState, Failure> {
        let Self {
            world,
            dir,
            settings,
            ..
        } = self;
        let status = status(dir, ledger)?;
        let context = context(runtime, settings)?;
        let run = &status.run.settings;
        let council = host.council(settings, &run.dispatch(), &run.provider)?;
        let client = RunClientsBuilder::new(world, self.ledger_file, dir, settings)?
            .with_council(council)
            .with_upstream(upstream(runtime, settings, run.coding_agent.as_ref())?);
        // Only providers that serve a role are prepared, with the run's own recording if they answer from one.
        let ready = |name: &str| {
            let mut of_provider = provider_settings(runtime, settings, name);
            if !self.names_cassette && dir.has(SOURCE) {
                of_provider.cassette = Some(CassetteSource::File(dir.path(SOURCE)));
            }
            of_provider.already_played = Some(dir.path(CASSETTE)).filter(|path| path.exists());
            Ok(construct(name, &of_provider, &context).map_err(CallError::from)?)
        };
        let open = |opening: &ClientContext<'_>| client.open(ready, opening);
        if settings.is_set(BUDGET) && !status.state.is_end() {
            raise_budget(world, dir, settings.budget.calls, ledger, observer)?;
        }
        if !self.permission.is_empty() {
            allow(world, dir, self.permission, ledger, observer).await?;
        }
        Ok(advance(world, dir, open, ledger, observer).await?)
    }
}

/// A run that was taken from its start to a commit, if it came so far.
pub struct UnattendedRun {
    /// The run.
    pub id: RunId,
    /// What its calls took.
    pub spent: RunSpending,
    /// How it ended.
    pub end: UnattendedEnd,
}

/// How an unattended run ended.
pub enum UnattendedEnd {
    /// With this commit.
    Landed(Oid),
    /// Without a verified change, for this reason.
    Ended(String),
    /// With an error.
    Failed(RunError),
}

/// What the calls of a run took.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunSpending {
    /// The calls.
    pub calls: u64,
    /// The tokens sent.
    pub tokens_input: u64,
    /// The tokens received.
    pub tokens_output: u64,
    /// The cost in millionths of a US dollar, if that of each call is known.
    pub micro_dollars: Option<u64>,
}

impl StartedRun {
    /// Advances the run and lands its change if it is verified. Shows nothing.
    ///
    /// # Errors
    ///
    /// Fails if a price or a limit cannot be used, or if the record of the run cannot be read.
    pub async fn finish_unattended(
        self,
        world: &RunContext<'_>,
        ledger_file: &Path,
        pool: Arc<CallPool>,
    ) -> Result<UnattendedRun, Failure> {
        let (dir, mut ledger, advanced) = self
            .advance(world, ledger_file, Some(pool), &mut NoopObserver)
            .await?;
        let landed = match advanced {
            Ok(RunState::Verified) => land(
                world,
                &dir,
                None,
                &Signing::off(),
                &mut ledger,
                &mut NoopObserver,
            )
            .await
            .map(Some),
            Ok(_) => Ok(None),
            Err(error) => Err(error),
        };
        let status = status(&dir, &ledger)?;
        let id = status.run.run_id;
        Ok(UnattendedRun {
            spent: RunSpending::of_run(&ledger, &id)?,
            end: match landed {
                Ok(Some(landing)) => UnattendedEnd::Landed(landing.commit),
                Ok(None) => UnattendedEnd::Ended(status.failure.map_or(status.next, |failure| {
                    format!("{}: {}", failure.code, failure.hint)
                })),
                Err(error) => UnattendedEnd::Failed(error),
            },
            id,
        })
    }
}

impl RunSpending {
    /// Adds up the calls of a run. A failed call without a known cost costs nothing.
    fn of_run(ledger: &Ledger, run: &RunId) -> Result<Self, RunError> {
        let mut spent = Self {
            micro_dollars: Some(0),
            ..Self::default()
        };
        for call in ledger.calls(run)? {
            spent.calls += 1;
            let mut cost = None;
            if let CallState::Settled(end) = call.state {
                spent.tokens_input += end.tokens_in.unwrap_or_default();
                spent.tokens_output += end.tokens_out.unwrap_or_default();
                cost = end
                    .cost
                    .map(|cost| cost.0)
                    .or((end.outcome != "ok").then_some(0));
            }
            let sum = |(known, cost): (u64, u64)| known.saturating_add(cost);
            spent.micro_dollars = spent.micro_dollars.zip(cost).map(sum);
        }
        Ok(spent)
    }
}
