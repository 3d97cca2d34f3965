//! `artifacts/dispatch_config.json` (seed 003 K): who serves which role.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::document::versions;

/// The roles of a run. They are contracts: each has an input, an output artifact and a judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunRole {
    /// Drafts the plan.
    Chair,
    /// Gathers the context; always local and deterministic.
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
}

impl RunRole {
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
        }
    }
}

/// How a run finds its helpers where a role does not say.
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
    /// The configuration of a run whose model is `provider`: it serves patchmaker and fixer, all else is local.
    #[must_use]
    pub fn for_model(provider: &str) -> Self {
        let local = RoleProvider("local_exec".to_owned());
        let model = RoleProvider(provider.to_owned());
        let role_providers = BTreeMap::from([
            (RunRole::Chair, local.clone()),
            (RunRole::Librarian, local.clone()),
            (RunRole::ContractGuardian, local.clone()),
            (RunRole::CostController, local),
            (RunRole::Researcher, RoleProvider("manual_outbox".to_owned())),
            (RunRole::Patchmaker, model.clone()),
            (RunRole::Fixer, model),
        ]);
        Self {
            schema_version: DispatchVersion::V1,
            mode: DispatchMode::LocalExec,
            role_providers,
            budgets: DispatchBudgets { max_outbox_prompts: 0 },
        }
    }
}

versions! {
    /// The schema id of `artifacts/dispatch_config.json`.
    pub DispatchConfig, DispatchVersion = "ctcp-dispatch-config-v1"
}
