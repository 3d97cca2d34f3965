//! The clients of a run: one for each service, all with one recording and one budget.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crucible_host::clock::{ClockError, clock_from};
use crucible_host::http::HttpClient;
use crucible_ledger::Ledger;
use crucible_llm::configured::{limits, prices};
use crucible_llm::{
    Backend, BackendParts, BudgetLimits, CallBudget, CallError, CallPool, Capabilities,
    CassetteHeader, CassetteWriter, ClientExtra, ClientOptions, Limit, LlmBackend, ModelClient,
    Origin, PriceTable, Recording, ReservationStore, RetryPolicy, Reuse, Speaker, StructuredOutput,
    Upstream,
};
use crucible_model::{Clock, EditFormat, Failure};
use crucible_settings::Settings;
use tokio::sync::watch;

use crate::clients::{Clients, model_placeholder};
use crate::contract::{AGENT, AGENT_PREFIX, API_AGENT, COUNCIL, MANUAL_OUTBOX, Service};
use crate::dispatch::coding_agent::{CodingAgentBackend, Connection, SharedAgent};
use crate::dispatch::{AgentBackend, AgentProgress, OutboxBackend};
use crate::error::RunError;
use crate::layout::{CASSETTE, RunDir};
use crate::recording::ClientContext;
use crate::reservations::LedgerReservations;
use crate::run_context::RunContext;

/// The calls of a council count themselves; asking the council adds nothing to them.
const NO_LIMITS: BudgetLimits = BudgetLimits {
    calls: Limit::Unlimited,
    tokens: Limit::Unlimited,
    micro_dollars: Limit::Unlimited,
};

/// A prepared council that serves roles of a run.
pub trait CouncilService {
    /// Returns it as a backend, each of whose own calls also counts against `budget`.
    fn backend(self: Box<Self>, budget: &Arc<CallBudget>) -> Box<dyn LlmBackend>;
}

/// What the clients of a run need besides the models.
pub(crate) struct RunClientsBuilder<'a> {
    world: &'a RunContext<'a>,
    /// The ledger's file, which holds the run's reservations.
    ledger: &'a Path,
    dir: &'a RunDir,
    prices: Arc<PriceTable>,
    /// The limits of the run's budget, but for its calls.
    limits: BudgetLimits,
    clock: Box<dyn Clock>,
    /// The council, if it serves a role.
    council: Option<Box<dyn CouncilService>>,
    /// The shared budget, if several runs have one.
    pool: Option<Arc<CallPool>>,
    /// Where the requests of an agent are forwarded to, if one proposes changes.
    upstream: Option<Upstream>,
}

impl<'a> RunClientsBuilder<'a> {
    /// Reads prices and limits from the settings.
    ///
    /// # Errors
    ///
    /// Fails if a price, a limit or the clock's variable cannot be used.
    pub(crate) fn new(
        world: &'a RunContext<'a>,
        ledger: &'a Path,
        dir: &'a RunDir,
        config: &Settings,
    ) -> Result<Self, Failure> {
        let prices = Arc::new(prices(config)?);
        Ok(Self {
            world,
            ledger,
            dir,
            prices,
            limits: limits(config)?,
            clock: clock_from(world.env)
                .map_err(|error: ClockError| Failure::usage(error.to_string()))?,
            council: None,
            pool: None,
            upstream: None,
        })
    }

    /// Adds the council, if it serves a role.
    #[must_use]
    pub(crate) fn with_council(self, council: Option<Box<dyn CouncilService>>) -> Self {
        Self { council, ..self }
    }

    /// Adds the server that an agent's requests are forwarded to.
    #[must_use]
    pub(crate) fn with_upstream(self, upstream: Option<Upstream>) -> Self {
        Self { upstream, ..self }
    }

    /// Adds a budget that several runs share.
    #[must_use]
    pub(crate) fn with_pool(self, pool: Option<Arc<CallPool>>) -> Self {
        Self { pool, ..self }
    }

    /// Creates a client for each service that the run's dispatch names. All record into the run's cassette, share the
    /// rest of its budget, and reuse the answers from before an interruption. Called under the run's lock. `model`
    /// prepares the model provider of a name.
    ///
    /// # Errors
    ///
    /// Fails if a provider cannot be prepared, or if the cassette or the ledger cannot be opened.
    pub(crate) fn open(
        self,
        mut model: impl FnMut(&str) -> Result<Backend, RunError>,
        opening: &ClientContext<'_>,
    ) -> Result<RunClients, RunError> {
        let ClientContext {
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
                agent if agent.starts_with(AGENT_PREFIX) => continue,
                provider => model(provider)?,
            };
            backends.insert(name, backend);
        }
        // A replay asks in the way that the header states, so it states how this run asks for changes. A run that an older program
        // made may name a provider that none of its roles is served by.
        let proposer = backends.get(&settings.provider);
        let speaker = proposer.map_or(&settings.provider, |backend| &backend.speaker().provider);
        let requested = Capabilities {
            edit_format: settings.edit_format,
            structured_output: proposer.map_or(StructuredOutput::None, |backend| {
                backend.capabilities().structured_output
            }),
        };
        let header = CassetteHeader::new(speaker.clone(), settings.model.clone(), requested);
        let path = self.dir.path(CASSETTE);
        let writer = CassetteWriter::open(&path, &header, Reuse::After(*answered))
            .map_err(CallError::from)?;
        let book = LedgerReservations::new(Ledger::open(self.ledger)?, (*run).clone(), self.clock);
        let limits = BudgetLimits {
            calls: Limit::At(*calls),
            ..self.limits
        };
        let book: Arc<dyn ReservationStore> = Arc::new(book);
        let book = self
            .pool
            .as_ref()
            .map_or_else(|| Arc::clone(&book), |pool| pool.share(Arc::clone(&book)));
        let (recording, budget) = (Arc::new(writer), CallBudget::with_store(limits, book));
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
            let options = ClientOptions {
                recording: Recording::To(Arc::clone(&recording)),
                // The council retries its own calls.
                retry: RetryPolicy::NEVER,
                ..ClientOptions::new(CallBudget::new(NO_LIMITS))
            };
            let backend = without_model(COUNCIL, council.backend(&budget));
            clients.insert(COUNCIL.to_owned(), ModelClient::new(backend, options));
        }
        let mut progress = BTreeMap::new();
        let names = settings.dispatch().clients();
        for name in names
            .into_iter()
            .filter(|name| name.starts_with(AGENT_PREFIX))
        {
            let upstream = self
                .upstream
                .as_ref()
                .ok_or_else(|| RunError::NoClient { name: name.clone() })?;
            let connection = Connection {
                upstream: upstream.clone(),
                http: Arc::new(
                    HttpClient::new()
                        .map_err(|error| self.dir.malformed(CASSETTE, &error.to_string()))?,
                ),
                budget: Arc::clone(&budget),
                prices: Arc::clone(&self.prices),
            };
            let agent = Arc::new(CodingAgentBackend::new(self.world, self.dir, connection)?);
            progress.insert(name.clone(), agent.progress());
            let options = ClientOptions {
                recording: Recording::To(Arc::clone(&recording)),
                // A further turn is a further attempt, not a retry.
                retry: RetryPolicy::NEVER,
                ..ClientOptions::new(Arc::clone(&budget))
            };
            let backend = without_model(AGENT, Box::new(SharedAgent(agent)));
            clients.insert(name, ModelClient::new(backend, options));
        }
        Ok(RunClients { clients, progress })
    }
}

/// The clients of a run, by the name of their service.
pub(crate) struct RunClients {
    clients: BTreeMap<String, ModelClient>,
    /// What the agents among them have done.
    progress: BTreeMap<String, watch::Receiver<AgentProgress>>,
}

impl Clients for RunClients {
    fn client(&self, name: &str) -> Result<&ModelClient, RunError> {
        self.clients.get(name).ok_or_else(|| RunError::NoClient {
            name: name.to_owned(),
        })
    }

    fn progress(&self, name: &str) -> Option<watch::Receiver<AgentProgress>> {
        self.progress.get(name).cloned()
    }
}

/// A person, as a backend.
fn by_hand(dir: &RunDir) -> Backend {
    without_model(MANUAL_OUTBOX, Box::new(OutboxBackend::new(dir)))
}

/// The configured commands, as a backend.
fn by_command(world: &RunContext<'_>, dir: &RunDir) -> Result<Backend, RunError> {
    Ok(without_model(
        API_AGENT,
        Box::new(AgentBackend::new(world, dir)?),
    ))
}

/// Returns the backend of a service that is not a model, and whose answers cost nothing by themselves: a person, a
/// command of the user, or a council, whose own calls count one by one.
fn without_model(provider: &'static str, inner: Box<dyn LlmBackend>) -> Backend {
    let name = model_placeholder(&Service::from_name(provider))
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
