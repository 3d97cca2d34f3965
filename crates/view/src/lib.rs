//! The read model: runs, costs and the ledger as typed, serialisable documents.
//!
//! The page, the report, traces, statistics and `--json` are made of these documents, so their numbers are equal by
//! construction. [`RunList`] reads the ledger by one query, and [`StatsView`] sums it up. [`RunView`] reads one run, and
//! [`CompareView`] compares two. [`CostView`] and [`LedgerView`] read the ledger as a whole. [`SpecListView`],
//! [`SpecView`], [`EvidenceView`], [`SkillListView`], [`SkillView`], [`CrawlListView`] and [`CrawlView`] read the documents
//! that commands print with `--json`.
//!
//! Invariants: nothing here writes, prints, or knows a page. Each text that a person, a model, a repository or a program
//! wrote is a [`RedactedText`], which contains no detected secret. Money is in millionths of a US dollar, time in
//! milliseconds, and both are integers.

mod attempt;
mod call;
mod check;
mod compare;
mod context;
mod cost;
mod council;
mod crawl;
mod diff;
mod duration;
#[cfg(test)]
mod equal_numbers;
mod event;
mod json_text;
mod landing;
mod ledger;
mod list;
mod plan;
mod policy;
mod run;
mod skill;
mod spec;
mod stats;
mod text;
mod verification;
mod week;

pub use attempt::{AttemptView, FindingView, LogView};
pub use call::{CallView, ExchangeView, Totals};
pub use check::{
    CandidateView, CandidatesView, HeldOutResultView, HeldOutView, ObjectionView, ObjectionsView,
    SecondWorldView, WorldGateView,
};
pub use compare::{CompareView, RunFacts};
pub use context::{ContextView, OmittedView, PackedFileView};
pub use cost::{CostGroup, CostView, DayCost, DayOutcomes};
pub use council::{CouncilView, DeliberationView, LoopView, SeatView};
pub use crawl::{
    CrawlDocumentView, CrawlListView, CrawlMessageView, CrawlPlanView, CrawlRowView, CrawlStepView,
    CrawlView, RankedView,
};
pub use diff::{DiffFile, DiffHunk, DiffLine, DiffRow, DiffView, LineChange};
pub use duration::duration;
pub use event::{ChainView, EventView};
pub use json_text::JsonText;
pub use landing::{LandingView, StatementView};
pub use ledger::LedgerView;
pub use list::{ListQuery, RunList, RunOutcome, RunSummary};
pub use plan::{ApprovalView, PlanView, ReviewView};
pub use policy::{PolicyRun, PolicyView, RuleView};
pub use run::{ArtifactView, PendingView, RunView};
pub use skill::{
    PromotionView, SkillBuildView, SkillCountsView, SkillGateView, SkillListView, SkillRowView,
    SkillRunView, SkillVerificationView, SkillView,
};
pub use spec::{
    EvidenceCountsView, EvidenceView, MatrixView, NextStepView, PhaseView, RequirementTestView,
    RequirementView, SpecCountsView, SpecListView, SpecProblemView, SpecRowView, SpecView,
};
pub use stats::{StatsGroup, StatsKey, StatsRow, StatsView};
pub use text::RedactedText;
pub use verification::{
    BrokenChangeView, CommandView, GateResultView, GateView, SinkView, StrengthView, SurvivorView,
    TestsView, VerificationView,
};
pub use week::Week;
