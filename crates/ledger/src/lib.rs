//! The ledger: what happened, in a record that cannot be quietly rewritten.
//!
//! One SQLite database holds the chain of events, the artifacts they speak of by digest, the list of runs,
//! the sessions of crawls with their artifacts and messages, a cache of searches, the receipts of specs, the story of skills,
//! and a table of model calls with an allowance for each run ([`Ledger::reserve_call`]). Each event carries the hash of the one
//! before it; hashes are taken over canonical JSON, so the same event has the same hash everywhere. [`Ledger::verify`] reads it
//! all again and names the first bad event.
//!
//! What always holds:
//!
//! - Events and artifacts are written once. Triggers refuse every change and removal through SQL; what goes
//!   around them is found by `verify`. A cut tail is found through the head's own row, and through anchors:
//!   heads that are known from elsewhere, such as the trailers of landed commits.
//! - Several writes can be one transaction ([`Ledger::transact`]); then they are made together or not at all.
//! - A call that returns is on the disk (`synchronous = FULL`), one that fails has changed nothing.
//! - Any number of processes may write; each appends under an immediate transaction, so there is one chain.
//! - Memory does not grow with the database when verifying.

mod artifact;
mod calls;
mod chain;
mod crawl;
mod error;
mod event;
mod exit_status;
mod forge;
mod moment;
mod recorded_rows;
mod run_list;
mod runs;
mod spec_receipts;
mod store;
mod verify;

pub use calls::{
    Allowance, BudgetedResource, CallRow, CallState, MicroDollars, NewCall, Reservation,
    Settlement, Usage,
};
pub use chain::ChainHead;
pub use crawl::{
    CrawlArtifactRow, CrawlFact, CrawlMessageRow, CrawlRow, CrawlStatus, LISTED_CRAWLS, NewCrawl,
    NewCrawlArtifact, NewCrawlMessage, crawl_run_id,
};
pub use error::LedgerError;
pub use event::{ArtifactRef, EventRecord, MAX_BODY_BYTES, NewEvent};
pub use forge::{
    NewPromotion, NewSkill, NewSkillBuild, NewSkillRun, NewVerification, PromotionRow, SideEffect,
    SkillArtifactKind, SkillArtifactRow, SkillBuildEnd, SkillBuildRow, SkillBuildStatus,
    SkillGateRow, SkillRow, SkillRunOutcome, SkillRunRow, SkillStatus, VerificationEnd,
    VerificationLevel, VerificationRow, VerificationStatus, skill_run_id,
};
pub use moment::Moment;
pub use recorded_rows::{RowFault, RowKind};
pub use run_list::{CostRow, DayCostRow, Page, RunFilter, RunUsageRow, StateCountRow};
pub use runs::RunRow;
pub use spec_receipts::{NewSpecReceipt, ReceiptWriter, SpecReceiptRow, spec_run_id};
pub use store::{Ledger, LedgerTransaction};
pub use verify::Anchor;
