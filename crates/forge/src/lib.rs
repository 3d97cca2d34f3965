//! The skill forge: code that a model wrote, earned into trust (seed 004).
//!
//! A skill is a small Python module with its test. It is proposed, built by an agent on a copy of the project, verified by gates, promoted by
//! somebody who answers for its bytes, and run with exactly those bytes behind the walls that its class of side effects names.
//!
//! - [`SkillName`] and [`SkillPaths`]: everything about where a skill lies follows from its name.
//! - [`Grants`]: what a class of side effects is narrowed to.
//! - [`SkillProposal`]: a skill that is asked for, with its [`IoSchema`] and [`HeldOutExample`]s.
//! - [`SkillStep`]: which step may follow where a skill stands.
//! - [`Skeleton`]: the Python package that a project with skills begins with.
//!
//! What always holds: an agent's words and files reach the project through the gate of changes alone; what is promoted is what was
//! verified, byte for byte; nothing a skill or an agent prints chooses what becomes of it.

mod examples;
mod failure;
mod grants;
mod invariants;
mod io_schema;
mod name;
mod paths;
mod policy;
mod project;
mod proposal;
mod python;
mod skeleton;
mod status;
mod world;

pub use examples::{ExamplesError, HeldOutExample, MAX_EXAMPLES, MAX_EXAMPLES_BYTES};
pub use failure::{FailureKind, SkillFailure};
pub use grants::{Grants, GrantsError, HostName, HostNameError, SecretName, SecretNameError};
pub use invariants::check_invariants;
pub use io_schema::{IoSchema, IoSchemaError, IoSide, MAX_SCHEMA_BYTES};
pub use name::{SkillName, SkillNameError};
pub use paths::{PackageName, SkillPaths};
pub use policy::{MAX_POLICY_BYTES, SkillPolicy, SkillPolicyError, check_policy};
pub use project::{ForgeProject, POLICY_FILE};
pub use proposal::{MAX_DESCRIPTION_CHARS, ProposalError, ProposalParts, SkillProposal};
pub use python::{MAX_SKILL_BYTES, PythonFault, PythonSource};
pub use skeleton::{LaidSkeleton, Skeleton, SkeletonError};
pub use status::{SkillStep, StepRefused};
pub use world::ForgeWorld;
