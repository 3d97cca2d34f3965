//! The read model: runs, costs and the ledger as typed, serialisable documents.
//!
//! The page, the report, traces, statistics and `--json` are made of these documents, so their numbers are equal by
//! construction. [`RunList`] reads the ledger by one query, [`RunView`] reads one run, [`CostView`] and [`LedgerView`] read
//! the ledger as a whole.
//!
//! Invariants: nothing here writes, prints, or knows a page. Each text that a person, a model, a repository or a program
//! wrote is a [`RedactedText`], which contains no detected secret. Money is in millionths of a US dollar, time in
//! milliseconds, and both are integers.

mod attempt;
mod call;
mod context;
mod cost;
mod diff;
mod event;
mod landing;
mod ledger;
mod list;
mod plan;
mod run;
mod text;
mod verification;

pub use attempt::{AttemptView, FindingView};
pub use call::{CallView, ExchangeView, Totals};
pub use context::{ContextView, OmittedView, PackedFileView};
pub use cost::{CostGroup, CostView, DayCost, DayOutcomes};
pub use diff::{DiffFile, DiffHunk, DiffLine, DiffRow, DiffView, LineChange};
pub use event::{ChainView, EventView};
pub use landing::{LandingView, StatementView};
pub use ledger::LedgerView;
pub use list::{ListQuery, RunList, RunOutcome, RunSummary};
pub use plan::{PlanView, ReviewView};
pub use run::{ArtifactView, OwedView, RunView};
pub use text::RedactedText;
pub use verification::{
    BrokenChangeView, CommandView, GateResultView, GateView, SinkView, StrengthView, SurvivorView, TestsView,
    VerificationView,
};
