//! Search, inspect, plan, export: from a name to a build plan that is safe to run.
//!
//! `Pipeline` runs the steps: `search` ranks repositories, `inspect` fetches one and examines it, `plan` has a plan drafted,
//! criticised and judged, and `export` writes it for other programs. All decisions are pure functions: [`rank`], the
//! detection in `crucible-repo`, [`validate_plan_safety`], `derive_recipe`. Only `debate` calls models.
//!
//! Invariants:
//!
//! - The network is used only by `gh`, by a shallow `git clone`, and by the models' own clients.
//! - Nothing of a repository is executed, and no model decides about rank, build system or safety.
//! - Every artifact matches its schema before it is printed, stored or written; every exported plan passes the safety rules.
//! - A limit that is reached is reported.

mod artifact;
mod cleanup;
mod configured;
mod context;
mod debate;
mod exit_status;
mod export;
mod fetch;
mod github;
mod history;
mod inspect;
mod observer;
mod offline;
mod pipeline;
mod plan;
mod rank;
mod recipe;
mod safety;
mod search;
mod session;
mod target;
pub mod text;
mod words;

pub use artifact::*;
pub use configured::{DebateBackends, OpenPlannerBackends, PlannerBackends};
pub use context::{
    CrawlContext, CrawlHost, LookupMode, RepoSelection, RepoSource, SelectionMode, SessionPurpose,
};
pub use debate::{
    CRITIQUE_TOKENS, DRAFT_TOKENS, DebateContext, DebateError, DebateOutcome, DebatePhase,
    DebateRole, DebateRounds, MessageRecord, PlanAuthor, PlanCritic, PlanCritique, PlanDraft,
    PlanSynthesis, REVISION_TOKENS, RedactedMessage, ReplyFault, SYNTHESIS_TOKENS, Transcript,
    debate, prompt_hash,
};
pub use export::{
    Export, ExportError, Exported, OutputDir, export_filename, manifest_entry, write_export,
};
pub use fetch::{FetchError, FetchTools, Fetched, fetch, fetch_local};
pub use github::{FoundRepo, GitHub, GitHubError, SearchPage};
pub use history::{PastCrawl, PastDocument, PastMessage, PastSession};
pub use inspect::{BuildFile, InspectError, Inspection, inspect, workspace_of};
pub use observer::CrawlObserver;
pub use offline::OfflineError;
pub use pipeline::{
    CrawlError, Inspected, PlannedCrawl, Planner, PreparedExport, ValidatedDocument,
};
pub use plan::Planned;
pub use rank::rank;
pub use safety::{PlanSafety, Workspace, allowed_prefixes, judge_plan, validate_plan_safety};
pub use search::{MaxResults, SearchError, SearchOptions, UseCache, search};
pub use session::{ConfigSnapshot, CrawlSession, SessionError, SessionStatus, abort_dead_sessions};
pub use target::{RefChoice, RepoName, Target, TargetError};
