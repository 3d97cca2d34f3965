//! Budget reservations in the ledger. They survive the process and bind every other process that continues
//! the same run.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crucible_ledger::{
    Allowance, BudgetedResource, CallRow, EventRecord, Ledger, LedgerError, MicroDollars, NewCall,
    RowFault, RowKind, Settlement, Usage,
};
use crucible_llm::{
    Amount, BudgetLimits, CallEnd, Limit, PlannedCall, ReservationError, ReservationStore,
    Resource, Ticket,
};
use crucible_model::{Clock, RunId};
use serde_json::Value;

use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::receipt::LLM;
use crate::state::RunState;

/// The reservations of one run, with its own database connection.
pub struct LedgerReservations {
    ledger: Mutex<Ledger>,
    run: RunId,
    clock: Box<dyn Clock>,
}

impl LedgerReservations {
    /// The book of `run`.
    #[must_use]
    pub fn new(ledger: Ledger, run: RunId, clock: Box<dyn Clock>) -> Self {
        Self {
            ledger: Mutex::new(ledger),
            run,
            clock,
        }
    }

    /// Each use of the connection is one transaction, so a panic elsewhere leaves no partial state.
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReservationStore for LedgerReservations {
    fn reserve(
        &self,
        call: &PlannedCall,
        limits: &BudgetLimits,
    ) -> Result<Ticket, ReservationError> {
        let new = NewCall {
            run: self.run.clone(),
            provider: call.provider.to_owned(),
            model: call.model.clone(),
            request: call.request,
            ts: self.clock.now(),
            tokens: call.worst.tokens,
            cost: MicroDollars(call.worst.micro_dollars),
        };
        let allowance = Allowance {
            calls: bound(limits.calls),
            tokens: bound(limits.tokens),
            cost: bound(limits.micro_dollars).map(MicroDollars),
        };
        let mut ledger = self.ledger();
        let events = ledger.events(Some(&self.run)).map_err(unavailable)?;
        let booked = RecordedUsage::read(&ledger, &self.run, &events).map_err(unavailable)?;
        if let Some(fault) = booked.fault() {
            return Err(ReservationError::Unavailable {
                detail: fault.to_string(),
            });
        }
        match ledger.reserve_call(&new, &allowance).map_err(unavailable)? {
            crucible_ledger::Reservation::Granted { seq } => Ok(Ticket(seq)),
            crucible_ledger::Reservation::Refused {
                what,
                used,
                wanted,
                limit,
            } => {
                let resource = match what {
                    BudgetedResource::Calls => Resource::Calls,
                    BudgetedResource::Tokens => Resource::Tokens,
                    BudgetedResource::Cost => Resource::MicroDollars,
                };
                Err(ReservationError::Exhausted {
                    resource,
                    limit,
                    attempted: used.saturating_add(wanted),
                })
            }
        }
    }

    fn settle(&self, ticket: Ticket, end: &CallEnd) -> Result<(), ReservationError> {
        let settlement = Settlement {
            ts: self.clock.now(),
            outcome: end.outcome.to_owned(),
            tokens_in: end.tokens.map(|(input, _)| input),
            tokens_out: end.tokens.map(|(_, output)| output),
            cost: end.micro_dollars.map(MicroDollars),
        };
        self.ledger()
            .settle_call(&self.run, ticket.0, &settlement)
            .map_err(unavailable)
    }

    fn used(&self) -> Result<Amount, ReservationError> {
        let usage = self.ledger().usage(&self.run).map_err(unavailable)?;
        Ok(Amount {
            calls: usage.calls,
            tokens: usage.tokens,
            micro_dollars: usage.cost.0,
        })
    }
}

/// What the rows of a run say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedUsage {
    /// What is used.
    pub(crate) usage: Usage,
    /// Number of missing bookings; `None` if none is missing.
    pub(crate) lost: Option<u64>,
    /// The rows of the run that the chain does not confirm.
    pub(crate) row_faults: Vec<RowFault>,
    /// The state of the run in the list of runs; `None` if the chain does not confirm it.
    pub(crate) state: Option<RunState>,
}

impl RecordedUsage {
    /// The bookings of a run of these events.
    pub(crate) fn read(
        ledger: &Ledger,
        run: &RunId,
        events: &[EventRecord],
    ) -> Result<Self, LedgerError> {
        let row_faults = ledger.row_faults(run)?;
        let is_confirmed = !row_faults.iter().any(|fault| fault.of == RowKind::Run);
        let row = ledger.run(run)?.filter(|_| is_confirmed);
        Ok(Self {
            usage: ledger.usage(run)?,
            lost: lost_bookings(events, &ledger.calls(run)?),
            row_faults,
            state: row.and_then(|row| RunState::parse(&row.state)),
        })
    }

    /// Returns the error if the bookings cannot support a budget.
    pub(crate) fn fault(&self) -> Option<RunError> {
        let edited = self
            .row_faults
            .iter()
            .find(|fault| fault.of == RowKind::Call);
        self.lost
            .map(|lost| RunError::BookingsLost { lost })
            .or_else(|| {
                edited.map(
                    |RowFault {
                         subject, problem, ..
                     }| RunError::BookingsEdited {
                        first: format!("{subject}: {problem}"),
                    },
                )
            })
    }
}

/// Returns how many bookings are missing, given the events and the numbers of the existing bookings. A call
/// is booked before it is sent, so every answered or attempted call has a booking.
fn lost_bookings(events: &[EventRecord], calls: &[CallRow]) -> Option<u64> {
    // They are numbered without gaps.
    let numbered = calls.iter().map(|call| call.seq).max().unwrap_or_default();
    let lost_count = recorded_calls(events)
        .max(numbered)
        .saturating_sub(calls.len() as u64);
    (lost_count > 0).then_some(lost_count)
}

/// Returns the number of calls in these events that require a booking.
fn recorded_calls(events: &[EventRecord]) -> u64 {
    events.iter().filter(|event| was_booked(event)).count() as u64
}

/// Returns whether an event records a call that requires a booking.
fn was_booked(event: &EventRecord) -> bool {
    match EventKind::parse(&event.event) {
        Some(EventKind::ModelAnswered) => true,
        // What the budget, a setting or the request itself refused was never booked.
        Some(EventKind::ModelFailed) => {
            let error = event
                .body
                .get(LLM)
                .and_then(|llm| llm.get("error"))
                .and_then(Value::as_str);
            error.is_some_and(|class| {
                matches!(
                    class,
                    "transport"
                        | "provider_auth"
                        | "provider_quota"
                        | "provider_outage"
                        | "timeout"
                )
            })
        }
        _ => false,
    }
}

fn bound(limit: Limit) -> Option<u64> {
    match limit {
        Limit::Unlimited => None,
        Limit::At(most) => Some(most),
    }
}

fn unavailable(error: LedgerError) -> ReservationError {
    ReservationError::Unavailable {
        detail: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crucible_host::clock::SystemClock;
    use crucible_model::Digest;

    use super::*;

    fn book(path: &Path) -> LedgerReservations {
        LedgerReservations::new(
            Ledger::open(path).unwrap(),
            "run".parse().unwrap(),
            Box::new(SystemClock),
        )
    }

    fn reserve(
        book: &LedgerReservations,
        worst: Amount,
        limits: &BudgetLimits,
    ) -> Result<Ticket, ReservationError> {
        let request = Digest::compute(b"request");
        book.reserve(
            &PlannedCall {
                provider: "gateway",
                model: "m".to_owned(),
                request,
                worst,
            },
            limits,
        )
    }

    #[test]
    fn concurrent_books_respect_the_limit() {
        let temp_dir = tempfile::tempdir().unwrap();
        let path = temp_dir.path().join("ledger.db");
        drop(Ledger::open(&path).unwrap());
        let limits = BudgetLimits::calls(20);
        let granted: usize = std::thread::scope(|scope| {
            let work = || {
                let book = book(&path);
                (0..10)
                    .filter(|_| {
                        reserve(
                            &book,
                            Amount {
                                calls: 1,
                                tokens: 7,
                                micro_dollars: 3,
                            },
                            &limits,
                        )
                        .is_ok()
                    })
                    .count()
            };
            let workers: Vec<_> = (0..6).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap())
                .sum()
        });
        assert_eq!(granted, 20);
        // A later process finds reservations that were never settled.
        let later = book(&path);
        assert_eq!(
            later.used().unwrap(),
            Amount {
                calls: 20,
                tokens: 140,
                micro_dollars: 60
            }
        );
        let refused = reserve(
            &later,
            Amount {
                calls: 1,
                ..Amount::default()
            },
            &limits,
        )
        .unwrap_err();
        assert_eq!(
            refused,
            ReservationError::Exhausted {
                resource: Resource::Calls,
                limit: 20,
                attempted: 21
            }
        );
    }

    #[test]
    fn lost_bookings_are_detected() {
        let temp_dir = tempfile::tempdir().unwrap();
        let path = temp_dir.path().join("ledger.db");
        let book = book(&path);
        for _ in 0..3 {
            reserve(
                &book,
                Amount {
                    calls: 1,
                    ..Amount::default()
                },
                &BudgetLimits::calls(9),
            )
            .unwrap();
        }
        let calls = book.ledger().calls(&book.run).unwrap();
        let answered = |count: usize| {
            let answer = EventRecord {
                seq: 1,
                run: book.run.clone(),
                ts: "2026-01-31T09:30:00Z".parse().unwrap(),
                role: "fixer".to_owned(),
                event: EventKind::ModelAnswered.name().to_owned(),
                path: None,
                key: None,
                artifacts: Vec::new(),
                body: serde_json::json!({}),
                prev: Digest::ZERO,
                hash: Digest::ZERO,
            };
            vec![answer; count]
        };
        assert_eq!(lost_bookings(&answered(3), &calls), None);
        assert_eq!(
            lost_bookings(&answered(2), &calls),
            None,
            "a call that was cut off is booked, too"
        );
        assert_eq!(lost_bookings(&answered(5), &calls), Some(2));
        let gap = [calls[0].clone(), calls[2].clone()];
        assert_eq!(
            lost_bookings(&answered(2), &gap),
            Some(1),
            "the numbers have a gap"
        );
        assert_eq!(lost_bookings(&answered(2), &calls[1..]), Some(1));
    }

    #[test]
    fn unreported_usage_counts_as_reserved() {
        let temp_dir = tempfile::tempdir().unwrap();
        let book = book(&temp_dir.path().join("ledger.db"));
        let limits = BudgetLimits {
            tokens: Limit::At(300),
            micro_dollars: Limit::At(300),
            ..BudgetLimits::calls(9)
        };
        let worst = Amount {
            calls: 1,
            tokens: 100,
            micro_dollars: 100,
        };
        let ticket = reserve(&book, worst, &limits).unwrap();
        book.settle(
            ticket,
            &CallEnd {
                outcome: "ok",
                tokens: Some((3, 4)),
                micro_dollars: Some(5),
            },
        )
        .unwrap();
        let silent = reserve(&book, worst, &limits).unwrap();
        book.settle(
            silent,
            &CallEnd {
                outcome: "timeout",
                tokens: None,
                micro_dollars: None,
            },
        )
        .unwrap();
        assert_eq!(
            book.used().unwrap(),
            Amount {
                calls: 2,
                tokens: 107,
                micro_dollars: 105
            }
        );
        let resource = |amount| match reserve(&book, amount, &limits) {
            Err(ReservationError::Exhausted { resource, .. }) => Some(resource),
            Ok(_) | Err(ReservationError::Unavailable { .. }) => None,
        };
        assert_eq!(
            resource(Amount {
                tokens: 194,
                ..worst
            }),
            Some(Resource::Tokens)
        );
        assert_eq!(
            resource(Amount {
                micro_dollars: 196,
                ..worst
            }),
            Some(Resource::MicroDollars)
        );
        assert_eq!(
            resource(Amount {
                tokens: 193,
                micro_dollars: 195,
                ..worst
            }),
            None
        );
    }
}
