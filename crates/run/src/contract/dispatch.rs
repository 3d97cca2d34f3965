//! `artifacts/dispatch_config.json`: who serves which role.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::{Code, Finding, Verdict};
use serde::{Deserialize, Serialize};

use crate::document::versions;

const UNKNOWN_SERVICE: Code = Code::new("dispatch-service-unknown");
const NOT_FOR_ROLE: Code = Code::new("dispatch-service-unfit");
const NO_PROMPTS: Code = Code::new("dispatch-no-prompts");

/// The provider behind `ollama_agent`: Ollama has the same API as every other server of the gateway.
const OLLAMA: &str = "gateway";

/// The roles of a run. They are contracts: each has an input, an output artifact and a judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunRole {
    /// Drafts the plan.
    Chair,
    /// Gathers the context; local and deterministic, unless a person does it.
    Librarian,
    /// Judges plans against the contract.
    ContractGuardian,
    /// Judges what a plan may cost.
    CostController,
    /// Brings outside knowledge.
    Researcher,
    /// Proposes the change.
    Patchmaker,
    /// Proposes again after a refusal.
    Fixer,
    /// Writes tests against a change.
    Objector,
    /// Derives what such a test must expect, without seeing the change.
    SecondAuthor,
}

impl RunRole {
    /// Every role.
    pub const ALL: [Self; 9] = [
        Self::Chair,
        Self::Librarian,
        Self::ContractGuardian,
        Self::CostController,
        Self::Researcher,
        Self::Patchmaker,
        Self::Fixer,
        Self::Objector,
        Self::SecondAuthor,
    ];

    /// The roles that objections need.
    pub(crate) const OF_OBJECTIONS: [Self; 2] = [Self::Objector, Self::SecondAuthor];

    /// The role's name in artifacts and events.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chair => "chair",
            Self::Librarian => "librarian",
            Self::ContractGuardian => "contract_guardian",
            Self::CostController => "cost_controller",
            Self::Researcher => "researcher",
            Self::Patchmaker => "patchmaker",
            Self::Fixer => "fixer",
            Self::Objector => "objector",
            Self::SecondAuthor => "second_author",
        }
    }
}

/// The default service of roles that name none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DispatchMode {
    /// A person answers prompts laid into `outbox/`.
    ManualOutbox,
    /// A local model server.
    OllamaAgent,
    /// A configured external command.
    ApiAgent,
    /// Code of Crucible's own.
    LocalExec,
}

impl DispatchMode {
    /// Its name, which is also the name of its service.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ManualOutbox => "manual_outbox",
            Self::OllamaAgent => "ollama_agent",
            Self::ApiAgent => "api_agent",
            Self::LocalExec => "local_exec",
        }
    }
}

/// What serves a role, understood.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// Code of Crucible's own.
    LocalExec,
    /// A person, through `outbox/`.
    ManualOutbox,
    /// A configured command.
    ApiAgent,
    /// A council of models, which deliberates and gives one answer.
    Council,
    /// The coding agent of this client's name, such as `agent:claude`.
    Agent(String),
    /// The model provider of this name.
    Model(String),
}

impl Service {
    /// The service of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "local_exec" => Self::LocalExec,
            "manual_outbox" => Self::ManualOutbox,
            "api_agent" => Self::ApiAgent,
            COUNCIL => Self::Council,
            agent if agent.starts_with(AGENT_PREFIX) => Self::Agent(agent.to_owned()),
            "ollama_agent" => Self::Model(OLLAMA.to_owned()),
            provider => Self::Model(provider.to_owned()),
        }
    }

    /// Returns the name of its client; `None` if code serves the role.
    #[must_use]
    pub fn client(&self) -> Option<&str> {
        match self {
            Self::LocalExec => None,
            Self::ManualOutbox => Some(MANUAL_OUTBOX),
            Self::ApiAgent => Some(API_AGENT),
            Self::Council => Some(COUNCIL),
            Self::Agent(client) => Some(client),
            Self::Model(provider) => Some(provider),
        }
    }
}

/// The client of whatever a person answers.
pub const MANUAL_OUTBOX: &str = "manual_outbox";
/// The client of whatever a configured command answers.
pub(crate) const API_AGENT: &str = "api_agent";
/// The client of whatever a council of models answers.
pub const COUNCIL: &str = "council";

/// The provider of whatever a coding agent answers.
pub(crate) const AGENT: &str = "agent";
/// What precedes an agent's name in the name of its client.
pub(crate) const AGENT_PREFIX: &str = "agent:";

/// Who serves one role: a provider kind of the seed, or the name of a model provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RoleProvider(pub String);

/// Limits of the dispatcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DispatchBudgets {
    /// Prompts for a person at the most.
    pub max_outbox_prompts: u64,
}

/// The whole document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DispatchConfig {
    /// Which version of the document this is.
    pub schema_version: DispatchVersion,
    /// The mode of roles that are not listed.
    pub mode: DispatchMode,
    /// Who serves each role.
    pub role_providers: BTreeMap<RunRole, RoleProvider>,
    /// Limits.
    pub budgets: DispatchBudgets,
}

impl DispatchConfig {
    /// Returns the configuration of a run with the model `provider`: it serves patchmaker and fixer, all else
    /// is local.
    #[must_use]
    pub(crate) fn for_model(provider: &str) -> Self {
        let local = RoleProvider("local_exec".to_owned());
        let model = RoleProvider(provider.to_owned());
        let role_providers = BTreeMap::from([
            (RunRole::Chair, local.clone()),
            (RunRole::Librarian, local.clone()),
            (RunRole::ContractGuardian, local.clone()),
            (RunRole::CostController, local),
            (
                RunRole::Researcher,
                RoleProvider("manual_outbox".to_owned()),
            ),
            (RunRole::Patchmaker, model.clone()),
            (RunRole::Fixer, model),
        ]);
        Self {
            schema_version: DispatchVersion::V1,
            mode: DispatchMode::LocalExec,
            role_providers,
            budgets: DispatchBudgets {
                max_outbox_prompts: 0,
            },
        }
    }

    /// What serves a role. A role that is not listed follows the mode, but for those that code serves in every mode:
    /// the librarian and the two reviewers.
    #[must_use]
    pub fn service(&self, role: RunRole) -> Service {
        match (self.role_providers.get(&role), role) {
            (Some(provider), _) => Service::from_name(&provider.0),
            // Without objections nobody serves the last two.
            (
                None,
                RunRole::Librarian
                | RunRole::ContractGuardian
                | RunRole::CostController
                | RunRole::Objector
                | RunRole::SecondAuthor,
            ) => Service::LocalExec,
            (None, RunRole::Researcher) => Service::ManualOutbox,
            (None, RunRole::Chair | RunRole::Patchmaker | RunRole::Fixer) => {
                Service::from_name(self.mode.name())
            }
        }
    }

    /// Lets the service that proposes changes also write objections, unless another one is listed for them.
    pub(crate) fn add_objectors(&mut self) {
        let service = self.service(RunRole::Patchmaker);
        let proposer = service.client().unwrap_or_default().to_owned();
        for role in RunRole::OF_OBJECTIONS {
            let provider = || RoleProvider(proposer.clone());
            self.role_providers.entry(role).or_insert_with(provider);
        }
    }

    /// The clients that the roles of a run need, by name.
    #[must_use]
    pub fn clients(&self) -> BTreeSet<String> {
        let services = RunRole::ALL.into_iter().map(|role| self.service(role));
        services
            .filter_map(|service| service.client().map(str::to_owned))
            .collect()
    }

    /// Checks the configuration: every service exists and fits its role, and prompts are allowed if a person
    /// serves a role. `providers` are the names of the model providers.
    #[must_use]
    pub fn check(&self, providers: &[&str]) -> Verdict {
        let mut verdict = Verdict::default();
        for role in RunRole::ALL {
            let service = self.service(role);
            let subject = || {
                format!(
                    "{}: {}",
                    role.name(),
                    service.client().unwrap_or("local_exec")
                )
            };
            let known = match &service {
                Service::Model(name) => providers.contains(&name.as_str()),
                Service::LocalExec
                | Service::ManualOutbox
                | Service::ApiAgent
                | Service::Council
                | Service::Agent(_) => true,
            };
            if !known {
                let hint = format!(
                    "Name local_exec, manual_outbox, api_agent, ollama_agent, council or a provider: {}.",
                    providers.join(", ")
                );
                verdict.push(Finding::error(UNKNOWN_SERVICE, subject(), hint));
                continue;
            }
            let misfit = match (role, &service) {
                (RunRole::Librarian, Service::LocalExec) => None,
                (RunRole::Librarian, Service::ManualOutbox)
                    if self.mode == DispatchMode::ManualOutbox =>
                {
                    None
                }
                (RunRole::Librarian, Service::ManualOutbox) => {
                    Some("A person can pack the files only if the mode is manual_outbox, too.")
                }
                (RunRole::Librarian, _) => Some(
                    "The librarian is local and deterministic; set it to local_exec, or let a person serve it.",
                ),
                (RunRole::Patchmaker | RunRole::Fixer, Service::LocalExec) => Some(
                    "Crucible itself proposes no changes; name a model, a person or a command.",
                ),
                (RunRole::Objector | RunRole::SecondAuthor, Service::LocalExec)
                    if self.role_providers.contains_key(&role) =>
                {
                    Some(
                        "Crucible itself writes no objections; name a model, a council, a person or a command.",
                    )
                }
                (RunRole::Researcher, Service::Model(_)) => {
                    Some("A model has no pages to cite; let a person or a command provide them.")
                }
                (RunRole::Researcher, Service::Council) => {
                    Some("A council has no pages to cite; let a person or a command provide them.")
                }
                (RunRole::Patchmaker | RunRole::Fixer, Service::Council) => Some(
                    "A council writes no changes; let a model, a person or a command propose them, and give the council the chair or a review.",
                ),
                (RunRole::Patchmaker | RunRole::Fixer, Service::Agent(_)) => None,
                (_, Service::Agent(_)) => Some(
                    "A coding agent proposes changes and nothing else; let a model, a person or a command serve this role.",
                ),
                _ => None,
            };
            if let Some(hint) = misfit {
                verdict.push(Finding::error(NOT_FOR_ROLE, subject(), hint));
            }
            if service == Service::ManualOutbox
                && role != RunRole::Researcher
                && self.budgets.max_outbox_prompts == 0
            {
                let hint =
                    "A person serves a role but no prompt is allowed; raise max_outbox_prompts.";
                verdict.push(Finding::error(NO_PROMPTS, subject(), hint));
            }
        }
        verdict
    }
}

versions! {
    /// The schema id of `artifacts/dispatch_config.json`.
    pub DispatchConfig, DispatchVersion = "ctcp-dispatch-config-v1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn person_packs_only_if_mode_and_role_agree() {
        let check = |mode: DispatchMode, service: &str| {
            let mut dispatch = DispatchConfig {
                mode,
                ..DispatchConfig::for_model("gateway")
            };
            dispatch.budgets.max_outbox_prompts = 3;
            dispatch
                .role_providers
                .insert(RunRole::Librarian, RoleProvider(service.to_owned()));
            dispatch.check(&["gateway"]).passes()
        };
        assert!(check(DispatchMode::ManualOutbox, "manual_outbox"));
        assert!(check(DispatchMode::ManualOutbox, "local_exec"));
        assert!(!check(DispatchMode::LocalExec, "manual_outbox"));
        for other in ["api_agent", "gateway", "council"] {
            assert!(!check(DispatchMode::ManualOutbox, other), "{other}");
        }
        // The mode alone leaves it to code.
        let mut dispatch = DispatchConfig {
            mode: DispatchMode::ManualOutbox,
            ..DispatchConfig::for_model("gateway")
        };
        dispatch.role_providers.clear();
        assert_eq!(dispatch.service(RunRole::Librarian), Service::LocalExec);
    }

    #[test]
    fn a_council_deliberates_and_does_no_other_work() {
        for role in RunRole::ALL {
            let mut dispatch = DispatchConfig::for_model("gateway");
            dispatch
                .role_providers
                .insert(role, RoleProvider(COUNCIL.to_owned()));
            assert_eq!(dispatch.service(role), Service::Council);
            let fits = matches!(
                role,
                RunRole::Chair
                    | RunRole::ContractGuardian
                    | RunRole::CostController
                    | RunRole::Objector
                    | RunRole::SecondAuthor
            );
            let verdict = dispatch.check(&["gateway"]);
            assert_eq!(verdict.passes(), fits, "{}: {verdict:?}", role.name());
            assert!(
                verdict.errors().all(|finding| finding.code == NOT_FOR_ROLE),
                "{verdict:?}"
            );
        }
    }
}
