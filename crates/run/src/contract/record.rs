//! `run.json` and `artifacts/signature.json`: what a run began with, and what was approved.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crucible_llm::ReceiptWarning;
use crucible_model::{ClockSource, Digest, EditFormat, PathPrefix, RepoPath, RunId, Timestamp};
use crucible_repo::{Branch, Oid};
use crucible_sandbox::Strength;
use crucible_verify::GateSpec;
use serde::{Deserialize, Serialize};

use crate::contract::{DispatchConfig, RunRole, WebLimits};
use crate::document::versions;
use crate::find::PastRuns;

/// How large a patch may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchLimits {
    /// Files a patch may touch.
    pub max_files: u64,
    /// Lines a patch may add.
    pub max_added_lines: u64,
}

/// Which documents a context pack begins with (D7).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextSettings {
    /// Whether the contract's documents must be there.
    pub contract: ContractDocuments,
    /// Documents on top of the contract's.
    pub mandatory: Vec<RepoPath>,
}

/// Whether the three contract documents of seed 003 B.1 must be there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContractDocuments {
    /// They must be where the repository has `ai_context/`; elsewhere each is taken where it is there.
    #[default]
    WherePresent,
    /// They must be.
    Required,
}

/// How a run works: who is asked, what proves a change, and every limit. A run keeps what it began with, whatever the
/// configuration says later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSettings {
    /// The model provider.
    pub provider: String,
    /// The model that is asked.
    pub model: String,
    /// The models of roles that have one of their own, by the role's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub role_models: BTreeMap<String, String>,
    /// How the model is asked to answer.
    pub edit_format: EditFormat,
    /// Parameters of each call, such as `temperature` and `max_tokens`.
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// Seconds one call may take.
    pub model_timeout_s: u64,
    /// Calls this run may make.
    pub max_calls: u64,
    /// The repository's own gates; where none is given, those that are found.
    pub gates: Vec<GateSpec>,
    /// How strong the sandbox must be.
    pub sandbox: Strength,
    /// How large a patch may be.
    pub patch: PatchLimits,
    /// Files in the context pack at the most.
    pub max_files: u64,
    /// Bytes in the context pack at the most.
    pub max_total_bytes: u64,
    /// Attempts at a patch at the most.
    pub max_iterations: u64,
    /// Malformed answers that cost no attempt.
    #[serde(default)]
    pub max_malformed: u64,
    /// How often the model may ask for more files.
    #[serde(default)]
    pub max_file_requests: u64,
    /// Tokens that the model takes in, where that is known and the limits of the context pack follow from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Answers that are sampled for each attempt until one is verified.
    #[serde(default = "one")]
    pub candidates: u64,
    /// Files that the operator named as the ones to change; empty where the chair is to choose.
    pub named: Vec<RepoPath>,
    /// Directories that the operator named as the ones to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<PathPrefix>,
    /// The subject of the commit, where the operator gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Definitions that the operator lets the patch take away, besides those that the goal names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_drop: Vec<String>,
    /// What the context pack begins with.
    pub context: ContextSettings,
    /// Who serves which role; nothing where the provider proposes the changes and code does all else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<DispatchConfig>,
    /// The commands of roles that a command serves.
    #[serde(default, skip_serializing_if = "AgentCommands::is_none")]
    pub agents: AgentCommands,
    /// How much of the web a researcher may cite; nothing where none may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebLimits>,
}

fn one() -> u64 {
    1
}

/// Prompts that a researcher may be laid where nothing is configured: the first, and one for each answer that is refused.
const RESEARCH_PROMPTS: u64 = 3;

impl RunSettings {
    /// Whether the operator named what is to change, so that nobody else chooses it.
    pub(crate) fn names_places(&self) -> bool {
        !self.named.is_empty() || !self.directories.is_empty()
    }

    /// Who serves which role.
    #[must_use]
    pub fn dispatch(&self) -> DispatchConfig {
        self.dispatch.clone().unwrap_or_else(|| {
            let mut dispatch = DispatchConfig::for_model(&self.provider);
            // A researcher is a person unless somebody says otherwise, and a person needs a prompt.
            if self.web.is_some() {
                dispatch.budgets.max_outbox_prompts = RESEARCH_PROMPTS;
            }
            dispatch
        })
    }
}

/// The commands that serve roles, one text for each argument; empty where there is none (seed 003 K).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentCommands {
    /// Answers what the chair owes (`SDDAI_PLAN_CMD`).
    #[serde(default)]
    pub plan: Vec<String>,
    /// Answers what patchmaker and fixer owe (`SDDAI_PATCH_CMD`).
    #[serde(default)]
    pub patch: Vec<String>,
    /// Answers whatever has no command of its own (`SDDAI_AGENT_CMD`).
    #[serde(default)]
    pub agent: Vec<String>,
    /// Seconds a command may take.
    #[serde(default)]
    pub timeout_s: u64,
    /// What a command can reach.
    #[serde(default)]
    pub network: AgentNetwork,
    /// The names of variables that a command gets of the user's environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
}

/// What a command that serves a role can reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentNetwork {
    /// Nothing outside of its sandbox.
    #[default]
    Off,
    /// The network of the machine.
    On,
}

impl AgentCommands {
    /// Whether there is no command at all.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.plan.is_empty() && self.patch.is_empty() && self.agent.is_empty()
    }

    /// The command that serves a role.
    #[must_use]
    pub fn of(&self, role: RunRole) -> &[String] {
        let own = match role {
            RunRole::Chair => &self.plan,
            RunRole::Patchmaker | RunRole::Fixer => &self.patch,
            RunRole::Librarian
            | RunRole::ContractGuardian
            | RunRole::CostController
            | RunRole::Researcher => &self.agent,
        };
        if own.is_empty() { &self.agent } else { own }
    }
}

/// What a run is and where it starts. Written once and never again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Which version of the document this is.
    pub schema_version: RunVersion,
    /// The run's id, and its directory's name.
    pub run_id: RunId,
    /// What is to be achieved, in the operator's words.
    pub goal: String,
    /// The repository's top directory.
    pub repo: PathBuf,
    /// The repository's name without its path; goes into the context pack.
    pub repo_slug: String,
    /// The commit the run starts from.
    pub base_commit: Oid,
    /// What was checked out then; the change lands there.
    pub branch: Branch,
    /// When it began.
    pub created_at: Timestamp,
    /// Whether that instant is real.
    pub clock: ClockSource,
    /// What its receipts warn of: that a fallback provider is used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<ReceiptWarning>,
    /// Earlier runs of this repository that ended well and had goals like this one's, as they were known then.
    #[serde(default, skip_serializing_if = "PastRuns::is_empty")]
    pub past: PastRuns,
    /// How it works.
    pub settings: RunSettings,
}

/// The approval of a plan: the digests of the plan and of the reviews that let it pass. It holds no instant, so
/// that a replay writes the same bytes; the event tells when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// Which version of the document this is.
    pub schema_version: SignatureVersion,
    /// The digest of `artifacts/PLAN.md`.
    pub plan: Digest,
    /// The digests of the reviews, by path in the run directory.
    pub reviews: BTreeMap<String, Digest>,
}

versions! {
    /// The schema id of `run.json`.
    pub RunRecord, RunVersion = "crucible-run-v1"
}

versions! {
    /// The schema id of `artifacts/signature.json`.
    pub Signature, SignatureVersion = "crucible-signature-v1"
}
