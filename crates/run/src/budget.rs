//! The call limit of a run: the initial one, or a later one that its user allowed.
//!
//! A run with an exhausted budget is not lost: its user can raise the limit and continue. The new limit is an
//! event, so it is part of the record and later commands use it.

use crucible_ledger::{EventRecord, Ledger};
use serde_json::Value;

use crate::contract::RunRecord;
use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::journal::{Entry, Journal, RunObserver};
use crate::layout::{self, RunDir};
use crate::run_context::RunContext;

/// Raises the call limit of a run to `calls`, and records it. A smaller number changes nothing.
///
/// # Errors
///
/// Fails when another process holds the run, or its files were edited.
pub(crate) fn raise_budget(
    world: &RunContext<'_>,
    dir: &RunDir,
    calls: u64,
    ledger: &mut Ledger,
    observer: &mut dyn RunObserver,
) -> Result<(), RunError> {
    let _lock = dir.acquire("raising the budget of the run")?;
    let record = dir.record()?;
    let mut journal = Journal::open(
        record.run_id.clone(),
        dir.clone(),
        ledger,
        world.clock,
        observer,
    )?;
    journal.check_files()?;
    let before = allowed(&record, journal.events()?);
    if calls <= before {
        return Ok(());
    }
    let (key, body) = (
        format!("budget-{calls}"),
        serde_json::json!({ "calls": calls, "before": before }),
    );
    journal.record(Entry {
        role: "operator",
        event: EventKind::BudgetRaised,
        key,
        path: layout::RUN,
        body,
    })?;
    journal.note(&format!("  call limit raised from {before} to {calls}"))
}

/// The calls that a run of these events may make.
pub(crate) fn allowed(record: &RunRecord, events: &[EventRecord]) -> u64 {
    let raised = events
        .iter()
        .filter(|event| event.event == EventKind::BudgetRaised.name());
    let raised = raised.filter_map(|event| event.body.get("calls").and_then(Value::as_u64));
    raised.fold(record.settings.max_calls, u64::max)
}
