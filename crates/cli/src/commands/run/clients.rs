//! Whoever answers for the roles of a run: one client for each service, all of them recorded in one place and within one budget.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crucible_host::clock::clock_from;
use crucible_host::config::Config;
use crucible_ledger::Ledger;
use crucible_llm::{
    Backend, BackendParts, BudgetLimits, CallBudget, CallError, Capabilities, CassetteHeader, CassetteWriter,
    ClientExtra, ClientOptions, Limit, LlmBackend, ModelClient, Origin, PriceTable, Recording, Reuse,
    Speaker, StructuredOutput,
};
use crucible_model::{Clock, EditFormat};
use crucible_run::{
    API_AGENT, AgentBackend, Clients, LedgerBook, MANUAL_OUTBOX, Opening, OutboxBackend, RunDir, RunError,
    RunSettings, World,
};
use crucible_sandbox::Sandbox;

use crate::app::App;
use crate::commands::model::{self, limits, prices};
use crate::error::CommandError;

/// What the client of a run is made of, besides its backend.
pub(crate) struct RunClient<'a> {
    /// The ledger's file, in which the run's reservations stand.
    ledger: &'a Path,
    dir: &'a RunDir,
    prices: Arc<PriceTable>,
    /// The limits of the run's budget, but for its calls.
    limits: BudgetLimits,
    clock: Box<dyn Clock>,
}

impl<'a> RunClient<'a> {
    /// Reads what it takes from the configuration, before anything begins.
    pub(crate) fn new(
        app: &'a App,
        ledger: &'a Path,
        dir: &'a RunDir,
        config: &Config,
    ) -> Result<Self, CommandError> {
        let prices = Arc::new(prices(config)?);
        Ok(Self { ledger, dir, prices, limits: limits(config)?, clock: clock_from(&app.env)? })
    }

    /// Wraps the backends of a run's services: recorded in the run's cassette, within what is left of its budget, and never
    /// asking again what was answered before the run was cut off. Called under the run's lock. The first is that of the run's
    /// provider.
    pub(crate) fn open(self, services: Services, opening: &Opening<'_>) -> Result<RunClients, RunError> {
        let Opening { settings, run, answered, calls } = opening;
        let Services { main: backend, others } = services;
        // A replay asks in the way that the header states, so it states how this run asks.
        let asked = Capabilities { edit_format: settings.edit_format, ..backend.capabilities() };
        let header = CassetteHeader::new(backend.speaker().provider.clone(), settings.model.clone(), asked);
        let path = self.dir.path(crucible_run::CASSETTE);
        let writer =
            CassetteWriter::open(&path, &header, Reuse::After(*answered)).map_err(CallError::from)?;
        let book = LedgerBook::new(Ledger::open(self.ledger)?, (*run).clone(), self.clock);
        let limits = BudgetLimits { calls: Limit::At(*calls), ..self.limits };
        let (recording, budget) = (Arc::new(writer), CallBudget::kept(limits, Arc::new(book)));
        let client = |backend: Backend| {
            ModelClient::new(
                backend,
                ClientOptions {
                    recording: Recording::To(Arc::clone(&recording)),
                    prices: Arc::clone(&self.prices),
                    ..ClientOptions::new(Arc::clone(&budget))
                },
            )
        };
        let mut clients: BTreeMap<String, ModelClient> =
            others.into_iter().map(|(name, backend)| (name, client(backend))).collect();
        clients.insert(settings.provider.clone(), client(backend));
        Ok(RunClients { clients })
    }
}

/// The clients of a run, by the name of their service.
pub(crate) struct RunClients {
    clients: BTreeMap<String, ModelClient>,
}

impl Clients for RunClients {
    fn client(&self, name: &str) -> Result<&ModelClient, RunError> {
        self.clients.get(name).ok_or_else(|| RunError::NoClient { name: name.to_owned() })
    }
}

/// The backends of a run's services.
pub(crate) struct Services {
    main: Backend,
    others: Vec<(String, Backend)>,
}

impl Services {
    /// The services of a run whose provider does all that code does not do.
    pub(crate) fn only(main: Backend) -> Self {
        Self { main, others: Vec::new() }
    }

    /// The services that a run's dispatch names besides its provider, each made ready.
    pub(crate) fn of(
        app: &App,
        config: &Config,
        sandbox: &Arc<Sandbox>,
        world: &World<'_>,
        settings: &RunSettings,
        dir: &RunDir,
    ) -> Result<OtherServices, CommandError> {
        let mut others = Vec::new();
        for name in settings.dispatch().clients() {
            let backend = match name.as_str() {
                same if same == settings.provider => continue,
                MANUAL_OUTBOX => by_hand(dir),
                API_AGENT => by_command(world, dir)?,
                provider => {
                    model::backend(app, config, sandbox, provider, &model::settings(app, config, provider))?
                }
            };
            others.push((name, backend));
        }
        Ok(OtherServices(others))
    }
}

/// The backends of a run's services besides that of its provider.
pub(crate) struct OtherServices(Vec<(String, Backend)>);

impl OtherServices {
    /// All services, with that of the run's provider.
    pub(crate) fn with(self, main: Backend) -> Services {
        Services { main, others: self.0 }
    }
}

/// A person, as a backend.
fn by_hand(dir: &RunDir) -> Backend {
    no_model(MANUAL_OUTBOX, "person", Box::new(OutboxBackend::new(dir)))
}

/// The configured commands, as a backend.
fn by_command(world: &World<'_>, dir: &RunDir) -> Result<Backend, CommandError> {
    Ok(no_model(API_AGENT, "command", Box::new(AgentBackend::new(world, dir)?)))
}

/// Somebody who answers with a diff, and whose words nobody here pays for.
fn no_model(provider: &'static str, name: &str, inner: Box<dyn LlmBackend>) -> Backend {
    Backend::new(BackendParts {
        provider,
        default_model: name.to_owned(),
        max_output_tokens: 0,
        extra: ClientExtra::NONE,
        capabilities: Capabilities {
            edit_format: EditFormat::UnifiedDiff,
            structured_output: StructuredOutput::None,
        },
        speaker: Speaker { provider: provider.to_owned(), model: name.to_owned() },
        origin: Origin::Live,
        parameters: BTreeMap::new(),
        inner,
    })
}
