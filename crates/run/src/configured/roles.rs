//! The service of each role of a new run, from `--dispatch`, `--mode` and the section `[dispatch]`, with its backend.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crucible_host::fs::read_regular_up_to;
use crucible_llm::configured::{check_cassette, context, named_provider, selected_with};
use crucible_llm::{Backend, CassetteSource, FellBack, NamedProvider, construct};
use crucible_model::{ByteLimit, ExitStatus, Failure};
use crucible_sandbox::Runtime;
use crucible_settings::{DispatchSection, Settings};
use crucible_verify::ObjectionPolicy;

use super::agents::require_valid;
use super::limits::change_policies;
use crate::clients::model_placeholder;
use crate::contract::{
    AGENT_PREFIX, DispatchBudgets, DispatchConfig, DispatchMode, DispatchVersion, RoleProvider,
    RunRole, Service,
};
use crate::error::RunError;
use crate::recording::AnswerSource;

/// The largest dispatch configuration that is read.
const MAX_FILE: ByteLimit = ByteLimit(64 * 1024);

/// The provider that answers from a recording.
const REPLAY: &str = "replay";

/// The services of a new run, with their backends prepared.
pub(crate) struct RoleBackends {
    /// The service of each role; `None` if nothing assigns one, and the provider serves all.
    pub dispatch: Option<DispatchConfig>,
    /// The backends of the model providers that serve roles, by name.
    pub models: BTreeMap<String, Backend>,
    /// Why a fallback replaces the configured provider, if it does.
    pub fell_back: Option<FellBack>,
    /// Where the answers come from.
    pub answers: AnswerSource,
}

impl RoleBackends {
    /// Assigns the roles and prepares the backends of the models among them. `file` is the dispatch configuration and
    /// `cassette` the recording that the command line names.
    ///
    /// # Errors
    ///
    /// Fails if the dispatch is invalid, or if a provider that serves a role cannot be prepared.
    pub(crate) fn new(
        runtime: &Runtime<'_>,
        config: &Settings,
        file: Option<&Path>,
        cassette: Option<&Path>,
    ) -> Result<Self, Failure> {
        let named = config.llm.provider.as_deref().unwrap_or_default();
        let mut dispatch = assigned(runtime, config, named, file)?;
        let client_names = clients(dispatch.as_ref(), named);
        if cassette.is_some() && !client_names.contains(REPLAY) {
            check_cassette(cassette, named)?;
            return Err(Failure::usage(
                "--cassette has no effect: no role uses the provider `replay`",
            )
            .hint("Remove it, or assign a role to `replay`."));
        }
        let context = context(runtime, config)?;
        let (mut models, mut fell_back, mut answers) =
            (BTreeMap::new(), None, AnswerSource::Provider);
        if client_names.contains(named) {
            let selected =
                selected_with(runtime, config, &context, named).map_err(|error| {
                    let failure = Failure::from(error);
                    if named.is_empty() {
                        failure.hint("Or answer the prompts yourself, without any provider: --mode manual_outbox.")
                    } else {
                        failure
                    }
                })?;
            if selected.fell_back.is_some() {
                dispatch = assigned(runtime, config, &selected.candidate.name, file)?;
            }
            fell_back = selected.fell_back;
            answers = answers_from(&selected.candidate);
            models.insert(selected.candidate.name, selected.backend);
        }
        judge(dispatch.as_ref())?;
        let provider = fell_back
            .as_ref()
            .map_or(named, |fell_back| fell_back.fallback.as_str())
            .to_owned();
        for name in clients(dispatch.as_ref(), &provider) {
            if models.contains_key(&name) || !matches!(Service::from_name(&name), Service::Model(_))
            {
                continue;
            }
            let chosen = named_provider(runtime, config, &name);
            models.insert(name, construct(&chosen.name, &chosen.settings, &context)?);
            if chosen.name == REPLAY {
                answers = answers_from(&chosen);
            }
        }
        Ok(Self {
            dispatch,
            models,
            fell_back,
            answers,
        })
    }

    /// Returns the provider of the run: the fallback if it is used, else the named one.
    #[must_use]
    pub(crate) fn provider<'a>(&'a self, named: &'a str) -> &'a str {
        self.fell_back
            .as_ref()
            .map_or(named, |fell_back| fell_back.fallback.as_str())
    }

    /// Returns the service that proposes changes: the model that is patchmaker or fixer, else the patchmaker. `chosen`
    /// is the model that the command line names; only the roles of `provider` use it.
    pub(super) fn proposer(&self, provider: &str, chosen: Option<&str>) -> Proposer<'_> {
        let dispatch = self
            .dispatch
            .clone()
            .unwrap_or_else(|| DispatchConfig::for_model(provider));
        let services = [RunRole::Patchmaker, RunRole::Fixer].map(|role| dispatch.service(role));
        let model = services
            .iter()
            .find(|service| matches!(service, Service::Model(_)));
        let service = model.unwrap_or(&services[0]);
        let name = service.client().unwrap_or_default().to_owned();
        let backend = self.models.get(&name);
        // Where no provider is configured, the one that proposes is meant.
        let owner = if provider.is_empty() {
            name.as_str()
        } else {
            provider
        };
        let chosen_of = |provider: &str| chosen.filter(|_| provider == owner);
        let requested_model = chosen_of(&name)
            .or(backend.map(Backend::default_model))
            .or(model_placeholder(service));
        let mut of_roles = match backend {
            Some(backend) if chosen_of(&name).is_none() => backend.phase_models().clone(),
            Some(_) | None => BTreeMap::new(),
        };
        for role in RunRole::ALL {
            match dispatch.service(role) {
                Service::Model(own) if own == name => {}
                Service::Model(other) => {
                    let Some(backend) = self.models.get(&other) else {
                        continue;
                    };
                    let own = || backend.phase_models().get(role.name()).map(String::as_str);
                    let requested_model = chosen_of(&other)
                        .or_else(own)
                        .unwrap_or(backend.default_model());
                    of_roles.insert(role.name().to_owned(), requested_model.to_owned());
                }
                // What no model of ours answers has no model.
                Service::LocalExec
                | Service::ManualOutbox
                | Service::ApiAgent
                | Service::Council
                | Service::Agent(_) => {
                    of_roles.remove(role.name());
                }
            }
        }
        Proposer {
            model: requested_model.unwrap_or_default().to_owned(),
            name,
            backend,
            of_roles,
        }
    }
}

/// The service that proposes the changes of a run.
pub(super) struct Proposer<'c> {
    /// The name of a provider, or the placeholder for a person or a command.
    pub(super) name: String,
    /// The model, or its placeholder.
    pub(super) model: String,
    /// The backend of the model; `None` if no model proposes.
    pub(super) backend: Option<&'c Backend>,
    /// The models of roles that have one of their own, by the role's name.
    pub(super) of_roles: BTreeMap<String, String>,
}

/// Reads which service serves each role; `None` if nothing assigns one, and the provider serves all.
///
/// # Errors
///
/// Fails if the dispatch is invalid.
pub(crate) fn configured_dispatch(
    runtime: &Runtime<'_>,
    config: &Settings,
    provider: &str,
) -> Result<Option<DispatchConfig>, Failure> {
    let dispatch = assigned(runtime, config, provider, None)?;
    judge(dispatch.as_ref())?;
    Ok(dispatch)
}

/// Returns whether a new run calls the configured provider; also true if the dispatch cannot be read.
#[must_use]
pub(crate) fn needs_provider(runtime: &Runtime<'_>, config: &Settings) -> bool {
    // No provider has this name, so it stands for whichever is chosen.
    let unnamed = "";
    assigned(runtime, config, unnamed, None).map_or(true, |assigned| {
        clients(assigned.as_ref(), unnamed).contains(unnamed)
    })
}

/// Reads which service serves each role, without a check.
fn assigned(
    runtime: &Runtime<'_>,
    config: &Settings,
    provider: &str,
    file: Option<&Path>,
) -> Result<Option<DispatchConfig>, Failure> {
    let dispatch = match file {
        Some(path) => Some(read(&runtime.absolute(path))?),
        None => configured(config, provider)?,
    };
    if change_policies(config)?.objections == ObjectionPolicy::Off {
        return Ok(dispatch);
    }
    let mut dispatch = dispatch.unwrap_or_else(|| {
        let mut dispatch = DispatchConfig::for_model(provider);
        dispatch.budgets.max_outbox_prompts = config.dispatch.max_outbox_prompts;
        dispatch
    });
    dispatch.add_objectors();
    Ok(Some(dispatch))
}

/// Refuses an invalid dispatch before a run exists that could not advance.
fn judge(dispatch: Option<&DispatchConfig>) -> Result<(), Failure> {
    let Some(dispatch) = dispatch else {
        return Ok(());
    };
    let providers: Vec<&str> = crucible_llm::registry()
        .iter()
        .map(|kind| kind.name())
        .collect();
    require_valid(
        &dispatch.check(&providers),
        "See docs/contracts/dispatch_config.md for who can serve which role.",
    )
}

/// The clients of a run's roles, by name.
fn clients(dispatch: Option<&DispatchConfig>, provider: &str) -> BTreeSet<String> {
    dispatch.map_or_else(
        || DispatchConfig::for_model(provider).clients(),
        DispatchConfig::clients,
    )
}

fn read(path: &Path) -> Result<DispatchConfig, Failure> {
    let bytes = read_regular_up_to(path, MAX_FILE).map_err(RunError::from)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Failure::new(
            ExitStatus::Schema,
            format!(
                "{} is not a valid dispatch configuration: {error}",
                path.display()
            ),
        )
        .hint("docs/contracts/dispatch_config.md shows one.")
    })
}

/// Reads the section `[dispatch]`; `None` if it sets nothing.
fn configured(config: &Settings, provider: &str) -> Result<Option<DispatchConfig>, Failure> {
    let mode = config.dispatch.mode.as_deref().map(mode).transpose()?;
    let mut listed = BTreeMap::new();
    for role in RunRole::ALL {
        if let Some(service) = service_of(&config.dispatch, role) {
            listed.insert(role, RoleProvider(service.clone()));
        }
    }
    if let Some(agent) = config
        .run
        .agent
        .as_deref()
        .filter(|agent| !agent.is_empty())
    {
        for role in [RunRole::Patchmaker, RunRole::Fixer] {
            listed.insert(role, RoleProvider(format!("{AGENT_PREFIX}{agent}")));
        }
    }
    if mode.is_none() && listed.is_empty() {
        return Ok(None);
    }
    let mut dispatch = DispatchConfig::for_model(provider);
    if let Some(mode) = mode {
        dispatch.mode = mode;
        if mode != DispatchMode::LocalExec {
            for role in [RunRole::Patchmaker, RunRole::Fixer] {
                dispatch
                    .role_providers
                    .insert(role, RoleProvider(mode.name().to_owned()));
            }
        }
    }
    dispatch.role_providers.extend(listed);
    dispatch.schema_version = DispatchVersion::V1;
    dispatch.budgets = DispatchBudgets {
        max_outbox_prompts: config.dispatch.max_outbox_prompts,
    };
    Ok(Some(dispatch))
}

/// The service that the configuration names for a role.
fn service_of(section: &DispatchSection, role: RunRole) -> Option<&String> {
    let service = match role {
        RunRole::Chair => &section.chair,
        RunRole::ContractGuardian => &section.contract_guardian,
        RunRole::CostController => &section.cost_controller,
        RunRole::Researcher => &section.researcher,
        RunRole::Patchmaker => &section.patchmaker,
        RunRole::Fixer => &section.fixer,
        RunRole::Librarian => &section.librarian,
        RunRole::Objector => &section.objector,
        RunRole::SecondAuthor => &section.second_author,
    };
    service.as_ref()
}

fn mode(name: &str) -> Result<DispatchMode, Failure> {
    serde_json::from_value(name.into()).map_err(|_| {
        Failure::usage(format!("unknown dispatch.mode {name:?}"))
            .hint("Use manual_outbox, ollama_agent, api_agent or local_exec.")
    })
}

/// Returns where the answers of a new run come from. [`named_provider`] has read the recording, so the run keeps the
/// very bytes that answer it.
fn answers_from(chosen: &NamedProvider) -> AnswerSource {
    match &chosen.settings.cassette {
        Some(CassetteSource::Bytes(bytes)) if chosen.name == REPLAY => {
            AnswerSource::Recording(std::sync::Arc::clone(bytes))
        }
        Some(_) | None => AnswerSource::Provider,
    }
}
