//! The read model: runs, costs and the ledger as typed, serialisable documents.
//!
//! The page, the report, traces, statistics and `--json` are made of these documents, so their numbers are equal by
//! construction. [`RunList`] reads the ledger by one query, and [`StatsView`] sums it up. [`RunView`] reads one run, and
//! [`CompareView`] compares two. [`CostView`] and [`LedgerView`] read the ledger as a whole.
//!
//! Invariants: nothing here writes, prints, or knows a page. Each text that a person, a model, a repository or a program
//! wrote is a [`RedactedText`], which contains no detected secret. Money is in millionths of a US dollar, time in
//! milliseconds, and both are integers.

mod attempt;
mod call;
mod compare;
mod context;
mod cost;
mod diff;
mod duration;
mod event;
mod landing;
mod ledger;
mod list;
mod plan;
mod policy;
mod run;
mod stats;
mod text;
mod verification;
mod week;

pub use attempt::{AttemptView, FindingView};
pub use call::{CallView, ExchangeView, Totals};
pub use compare::{CompareView, RunFacts};
pub use context::{ContextView, OmittedView, PackedFileView};
pub use cost::{CostGroup, CostView, DayCost, DayOutcomes};
pub use diff::{DiffFile, DiffHunk, DiffLine, DiffRow, DiffView, LineChange};
pub use duration::duration;
pub use event::{ChainView, EventView};
pub use landing::{LandingView, StatementView};
pub use ledger::LedgerView;
pub use list::{ListQuery, RunList, RunOutcome, RunSummary};
pub use plan::{PlanView, ReviewView};
pub use policy::{PolicyRun, PolicyView, RuleView};
pub use run::{ArtifactView, OwedView, RunView};
pub use stats::{StatsGroup, StatsKey, StatsRow, StatsView};
pub use text::RedactedText;
pub use verification::{
    BrokenChangeView, CommandView, GateResultView, GateView, SinkView, StrengthView, SurvivorView,
    TestsView, VerificationView,
};
pub use week::Week;
