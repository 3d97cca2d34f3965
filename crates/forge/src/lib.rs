//! The skill forge: from model-written code to trusted code.
//!
//! A skill is a small Python module with its test. It is proposed, built by an agent on a copy of the project, verified by gates, promoted by
//! a person who approves its bytes, and run with exactly those bytes, sandboxed by its effect class.
//!
//! - [`SkillName`] and [`SkillPaths`]: everything about where a skill lies follows from its name.
//! - [`Grants`]: what a class of side effects is narrowed to.
//! - [`SkillProposal`]: a skill that is asked for, with its [`IoSchema`] and [`HeldOutExample`]s.
//! - [`SkillStep`]: which step may follow where a skill stands.
//! - [`Skeleton`]: the Python package that a project with skills begins with.
//!
//! What always holds: an agent's words and files reach the project through the gate of changes alone; what is promoted is what was
//! verified, byte for byte; nothing a skill or an agent prints chooses what becomes of it.

mod agent;
mod answer_form;
mod build;
mod check;
pub mod configured;
mod context;
mod examples;
mod exit_status;
mod failure;
mod gates;
mod grants;
mod invariants;
mod io_schema;
mod json_output;
mod name;
mod packet;
mod paths;
mod places;
mod policy;
mod project;
mod proposal;
mod python;
mod registry;
mod research;
mod runner;
mod skeleton;
mod status;
mod text;
mod trust;
mod verify;
mod workspace;

pub use agent::{AgentCommandError, AgentEnd, AgentError, AgentOutcome, AgentTask, SkillAgent};
pub use answer_form::AnswerForm;
pub use build::{
    BuildObserver, BuildRequest, FileChange, SettleError, SkillBuildError, SkillBuildOutcome,
    SkillBuildReport, build_skill, settle_interrupted,
};
pub use check::SkillCheck;
pub use context::ForgeContext;
pub use examples::{ExamplesError, HeldOutExample, MAX_EXAMPLES_BYTES};
pub use failure::{FailureKind, SkillFailure};
pub use gates::{GateError, SkillGate, SkillGateOutcome, SkillTool, SkillTools, ToolsMissing};
pub use grants::{Grants, GrantsError, HostName, HostNameError, SecretName, SecretNameError};
pub use invariants::check_invariants;
pub use io_schema::{IoSchema, IoSchemaError, IoSide, MAX_SCHEMA_BYTES};
pub use json_output::SkillHistory;
pub use name::{SkillName, SkillNameError};
pub use packet::{PacketParts, build_packet};
pub use paths::{PackageName, SkillPaths};
pub use places::RefusedPlace;
pub use policy::{SkillPolicy, SkillPolicyError, check_policy, check_test_policy};
pub use project::{ForgeProject, PolicyReadError};
pub use proposal::{ProposalError, ProposalParts, SkillProposal};
pub use python::{PythonFault, PythonSource};
pub use registry::{RegistryError, SkillRegistry, TrustedFile, UnhashedPolicy};
pub use research::{
    AdviceSource, DiagnosisBasis, EscalationAdvice, EscalationTrigger, FailureDiagnosis,
    FailureFact, NotedAdvice, ResearchError, ResearchNote, ResearchOutcome, RetryMaterial,
    escalation, needs_review, research,
};
pub use runner::{
    CallResult, CommandSurvey, GitWrites, LeftBehind, LeftByCommand, MAX_INPUT_BYTES,
    RegistryListing, ResidueReason, RunRequest, RunStepError, RunnerError, SkillCall, SkillCode,
    SkillEnd, SkillRunReport, StagingError, execute, run_skill,
};
pub use skeleton::{Skeleton, SkeletonError, WrittenSkeleton};
pub use status::{SkillStep, StepRefused};
pub use trust::{
    Approval, ApprovalError, ExamplesRule, TrustChange, TrustError, demote_skill, promote_skill,
};
pub use verify::{
    SkillGateObserver, SkillVerification, VerificationResult, VerifyRequest, VerifyStepError,
};
pub use workspace::{BuiltFile, CopyBackError, Scope, SkillWorkspace, WorkspaceError};
