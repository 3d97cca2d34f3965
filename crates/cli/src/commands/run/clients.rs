//! The services that answer in the roles of a run: one client for each service, all of them recorded in one place and within one budget.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crucible_host::clock::clock_from;
use crucible_ledger::Ledger;
use crucible_llm::{
    Backend, BackendParts, BudgetLimits, CallBook, CallBudget, CallError, CallPool, Capabilities,
    CassetteHeader, CassetteWriter, ClientExtra, ClientOptions, Limit, LlmBackend, ModelClient,
    Origin, PriceTable, Recording, Reuse, Speaker, StructuredOutput,
};
use crucible_model::{Clock, EditFormat};
use crucible_run::{
    API_AGENT, AgentBackend, COUNCIL, Clients, LedgerBook, MANUAL_OUTBOX, Opening, OutboxBackend,
    RunDir, RunError, Service, World, stand_in,
};
use crucible_settings::Settings;

use crate::app::App;
use crate::commands::model::{limits, prices};
use crate::commands::run::council::ReadyCouncil;
use crate::error::CommandError;

/// What the clients of a run are made of, besides the models that it asks.
pub(crate) struct RunClient<'a> {
    world: &'a World<'a>,
    /// The ledger's file, in which the run's reservations stand.
    ledger: &'a Path,
    dir: &'a RunDir,
    prices: Arc<PriceTable>,
    /// The limits of the run's budget, but for its calls.
    limits: BudgetLimits,
    clock: Box<dyn Clock>,
    /// The council that serves roles, where one does.
    council: Option<ReadyCouncil>,
    /// What several runs may spend together, where this is one of them.
    pool: Option<Arc<CallPool>>,
}

impl<'a> RunClient<'a> {
    /// Reads what it takes from the configuration, before anything begins.
    pub(crate) fn new(
        app: &'a App,
        world: &'a World<'a>,
        ledger: &'a Path,
        dir: &'a RunDir,
        config: &Settings,
    ) -> Result<Self, CommandError> {
        let prices = Arc::new(prices(config)?);
        Ok(Self {
            world,
            ledger,
            dir,
            prices,
            limits: limits(config)?,
            clock: clock_from(&app.env)?,
            council: None,
            pool: None,
        })
    }

    /// The same with a council that serves roles, where there is one.
    pub(crate) fn with_council(self, council: Option<ReadyCouncil>) -> Self {
        Self { council, ..self }
    }

    /// The same within what several runs may spend together.
    pub(crate) fn within(self, pool: Option<Arc<CallPool>>) -> Self {
        Self { pool, ..self }
    }

    /// Makes a client for each service that the run's dispatch names: recorded in the run's cassette, within what is left of its
    /// budget, and never asking again what was answered before the run was cut off. Called under the run's lock. `model` makes
    /// ready the model provider of a name; no other is asked for.
    pub(crate) fn open(
        self,
        mut model: impl FnMut(&str) -> Result<Backend, RunError>,
        opening: &Opening<'_>,
    ) -> Result<RunClients, RunError> {
        let Opening {
            settings,
            run,
            answered,
            calls,
        } = opening;
        let mut backends = BTreeMap::new();
        for name in settings.dispatch().clients() {
            let backend = match name.as_str() {
                MANUAL_OUTBOX => by_hand(self.dir),
                API_AGENT => by_command(self.world, self.dir)?,
                // Its client is made below: it needs the budget for the calls that it makes.
                COUNCIL => continue,
                provider => model(provider)?,
            };
            backends.insert(name, backend);
        }
        // A replay asks in the way that the header states, so it states how this run asks for changes. A run that an older program
        // made may name a provider that none of its roles is served by.
        let proposer = backends.get(&settings.provider);
        let speaker = proposer.map_or(&settings.provider, |backend| &backend.speaker().provider);
        let asked = Capabilities {
            edit_format: settings.edit_format,
            structured_output: proposer.map_or(StructuredOutput::None, |backend| {
                backend.capabilities().structured_output
            }),
        };
        let header = CassetteHeader::new(speaker.clone(), settings.model.clone(), asked);
        let path = self.dir.path(crucible_run::CASSETTE);
        let writer = CassetteWriter::open(&path, &header, Reuse::After(*answered))
            .map_err(CallError::from)?;
        let book = LedgerBook::new(Ledger::open(self.ledger)?, (*run).clone(), self.clock);
        let limits = BudgetLimits {
            calls: Limit::At(*calls),
            ..self.limits
        };
        let book: Arc<dyn CallBook> = Arc::new(book);
        let book = self
            .pool
            .map_or_else(|| Arc::clone(&book), |pool| pool.share(Arc::clone(&book)));
        let (recording, budget) = (Arc::new(writer), CallBudget::kept(limits, book));
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
        let clients = backends
            .into_iter()
            .map(|(name, backend)| (name, client(backend)));
        let mut clients: BTreeMap<String, ModelClient> = clients.collect();
        if let Some(council) = self.council {
            let recording = Recording::To(Arc::clone(&recording));
            clients.insert(COUNCIL.to_owned(), council.client(recording, &budget));
        }
        Ok(RunClients { clients })
    }
}

/// The clients of a run, by the name of their service.
pub(crate) struct RunClients {
    clients: BTreeMap<String, ModelClient>,
}

impl Clients for RunClients {
    fn client(&self, name: &str) -> Result<&ModelClient, RunError> {
        self.clients.get(name).ok_or_else(|| RunError::NoClient {
            name: name.to_owned(),
        })
    }
}

/// A person, as a backend.
fn by_hand(dir: &RunDir) -> Backend {
    no_model(MANUAL_OUTBOX, Box::new(OutboxBackend::new(dir)))
}

/// The configured commands, as a backend.
fn by_command(world: &World<'_>, dir: &RunDir) -> Result<Backend, RunError> {
    Ok(no_model(
        API_AGENT,
        Box::new(AgentBackend::new(world, dir)?),
    ))
}

/// A service that is not a model, and whose answers cost nothing by themselves: a person, a command of the user's own, or a council, whose calls
/// take their part of the budget and are booked each by itself ([`super::council`]).
pub(super) fn no_model(provider: &'static str, inner: Box<dyn LlmBackend>) -> Backend {
    let name = stand_in(&Service::of(provider))
        .unwrap_or(provider)
        .to_owned();
    Backend::new(BackendParts {
        provider,
        default_model: name.clone(),
        max_output_tokens: 0,
        extra: ClientExtra::NONE,
        capabilities: Capabilities {
            edit_format: EditFormat::UnifiedDiff,
            structured_output: StructuredOutput::None,
        },
        speaker: Speaker {
            provider: provider.to_owned(),
            model: name,
        },
        origin: Origin::Unpaid,
        parameters: BTreeMap::new(),
        inner,
    })
}
