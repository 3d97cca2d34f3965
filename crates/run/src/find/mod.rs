//! Existing knowledge for a goal: a local resolver over known workflows, and pages that a researcher fetched.
//!
//! A [`Workflow`] is a small TOML file: when it fits and what it advises. [`Workflows`] are the embedded ones
//! and the project's own. [`resolve`] chooses among them by the goal, by what the repository is made of and
//! by earlier runs ([`PastRuns`]); [`check_web`] judges what a researcher brought from the web. [`externals`]
//! tells both.
//!
//! Invariants: nothing here fetches anything. Choosing and checking are pure: the same values, the same
//! bytes. Advice widens nothing: scope, gates and limits are what the plan, the operator and the guardrails
//! say.

mod externals;
mod facts;
mod goal;
mod past;
mod registry;
mod resolve;
mod web;
mod workflow;

pub(crate) use externals::externals;
pub(crate) use externals::quotes_external_text;
pub use facts::RepoFacts;
pub use past::{PastRun, PastRuns};
pub use registry::{WorkflowOrigin, Workflows, WorkflowsError};
pub use resolve::{FindCandidate, FindResult, FindResultVersion, resolve};
pub use web::{Domain, DomainError};
pub(crate) use web::{FindWeb, check_web};
pub use workflow::{GoalKind, Workflow, WorkflowAdvice, WorkflowConditions, WorkflowFault};
