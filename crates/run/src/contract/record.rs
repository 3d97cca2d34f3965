//! `run.json` and `artifacts/signature.json`: the initial state of a run, and the approval.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crucible_agents::AgentProfile;
use crucible_evidence::SpecTask;
use crucible_llm::ReceiptWarning;
use crucible_model::{ClockSource, Digest, EditFormat, PathPrefix, RepoPath, RunId, Timestamp};
use crucible_repo::{Branch, Oid};
use crucible_sandbox::Strength;
use crucible_verify::{BrokenPolicy, GateSpec, ObjectionPolicy, ResultsPolicy, WorldPolicy};
use serde::{Deserialize, Serialize};

use crate::contract::{DispatchConfig, RunRole, WebLimits};
use crate::document::versions;
use crate::find::PastRuns;
use crate::held_out::HeldOut;

/// How large a patch may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchLimits {
    /// Files a patch may touch.
    pub max_files: u64,
    /// Lines a patch may add.
    pub max_added_lines: u64,
}

/// Which documents a context pack begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextSettings {
    /// Whether the contract's documents must be there.
    pub contract: ContractDocuments,
    /// Documents on top of the contract's.
    pub mandatory: Vec<RepoPath>,
}

/// Whether the three contract documents are required.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContractDocuments {
    /// Required if the repository has `ai_context/`; elsewhere each is included if present.
    #[default]
    WherePresent,
    /// They must be.
    Required,
}

/// The settings of a run: its models, gates and limits. They are fixed at its start; later configuration
/// changes have no effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSettings {
    /// The model provider.
    pub provider: String,
    /// The model that is asked.
    pub model: String,
    /// Models of roles with their own model, by role name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub role_models: BTreeMap<String, String>,
    /// The requested answer format.
    pub edit_format: EditFormat,
    /// Parameters of each call, such as `temperature` and `max_tokens`.
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// Seconds one call may take.
    pub model_timeout_s: u64,
    /// Calls this run may make.
    pub max_calls: u64,
    /// The configured gates; if empty, the detected ones.
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
    /// The model's context window in tokens, if known and used for the limits of the context pack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Which results of the broken-change check refuse a change.
    #[serde(default, skip_serializing_if = "BrokenPolicy::is_default")]
    pub broken_change: BrokenPolicy,
    /// Which results of the second world refuse a change.
    #[serde(default, skip_serializing_if = "WorldPolicy::is_default")]
    pub second_world: WorldPolicy,
    /// Whether a gate must take its results from a process without tested code.
    #[serde(default, skip_serializing_if = "ResultsPolicy::is_default")]
    pub results_outside: ResultsPolicy,
    /// The share of mistakes in changed lines that the gates must notice, in percent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub min_strength: u64,
    /// Seconds for gates on such mistakes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub strength_budget_s: u64,
    /// Kinds of new sinks that a change may have only if the operator approves them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sinks_need_approval: Vec<String>,
    /// Which objections refuse a change.
    #[serde(default, skip_serializing_if = "ObjectionPolicy::is_default")]
    pub objections: ObjectionPolicy,
    /// Tests that no proposer sees.
    #[serde(default, skip_serializing_if = "HeldOut::is_none")]
    pub held_out: HeldOut,
    /// Answers that are sampled for each attempt.
    #[serde(default = "default_count")]
    pub candidates: u64,
    /// Files that the operator named for the change; empty if the chair chooses.
    pub named: Vec<RepoPath>,
    /// Directories that the operator named as the ones to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<PathPrefix>,
    /// The commit's subject, if the operator gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Definitions that the operator allows the patch to remove, in addition to those named by the goal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_drop: Vec<String>,
    /// What the context pack begins with.
    pub context: ContextSettings,
    /// Services of the roles; `None` if the provider proposes the changes and code does the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<DispatchConfig>,
    /// The commands of roles that a command serves.
    #[serde(default, skip_serializing_if = "AgentCommands::is_none")]
    pub agents: AgentCommands,
    /// The coding agent that proposes the changes, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coding_agent: Option<CodingAgentSettings>,
    /// What a researcher may cite from the web; `None` if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebLimits>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn default_count() -> u64 {
    1
}

/// Maximum prompts for a researcher if not configured: the first, and one per refused answer.
const RESEARCH_PROMPTS: u64 = 3;

impl RunSettings {
    /// Returns whether the operator named what to change, so that no role chooses it.
    pub(crate) fn has_named_paths(&self) -> bool {
        !self.named.is_empty() || !self.directories.is_empty()
    }

    /// Who serves which role.
    #[must_use]
    pub fn dispatch(&self) -> DispatchConfig {
        self.dispatch.clone().unwrap_or_else(|| {
            let mut dispatch = DispatchConfig::for_model(&self.provider);
            // A researcher is a person by default, and a person needs a prompt.
            if self.web.is_some() {
                dispatch.budgets.max_outbox_prompts = RESEARCH_PROMPTS;
            }
            dispatch
        })
    }
}

/// A coding agent, and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodingAgentSettings {
    /// How it is started and connected.
    pub profile: AgentProfile,
    /// Seconds one turn may take.
    pub timeout_s: u64,
    /// Mebibytes that it may write.
    pub disk_mib: u64,
}

/// The commands that serve roles, one string per argument; empty if no command serves a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentCommands {
    /// Answers what the chair owes (`SDDAI_PLAN_CMD`).
    #[serde(default)]
    pub plan: Vec<String>,
    /// Serves patchmaker and fixer (`SDDAI_PATCH_CMD`).
    #[serde(default)]
    pub patch: Vec<String>,
    /// Serves every role without its own command (`SDDAI_AGENT_CMD`).
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
    pub fn command(&self, role: RunRole) -> &[String] {
        let own = match role {
            RunRole::Chair => &self.plan,
            RunRole::Patchmaker | RunRole::Fixer => &self.patch,
            RunRole::Librarian
            | RunRole::ContractGuardian
            | RunRole::CostController
            | RunRole::Researcher
            | RunRole::Objector
            | RunRole::SecondAuthor => &self.agent,
        };
        if own.is_empty() { &self.agent } else { own }
    }
}

/// The identity and the start of a run. Written once.
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
    /// The task of a spec that it works on, if it was started for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<SpecTask>,
    /// How it works.
    pub settings: RunSettings,
}

impl RunRecord {
    /// Returns the names of the tests that the requirements of its task name.
    pub(crate) fn named_tests(&self) -> BTreeSet<String> {
        let requirements = self.task.iter().flat_map(|task| &task.requirements);
        requirements
            .flat_map(|requirement| &requirement.tests)
            .map(|test| test.name.clone())
            .collect()
    }
}

/// The approval of a plan: the digests of the plan and of its approving reviews. It has no time, so that a
/// replay writes the same bytes; the event has it.
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
