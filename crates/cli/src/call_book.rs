//! A budget whose reservations stand in the ledger: what was reserved outlives the process, and binds every other one
//! that goes on with the same run.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crucible_ledger::{Allowance, Ledger, LedgerError, MicroDollars, NewCall, Scarce, Settlement};
use crucible_llm::{
    Amount, BookError, BudgetLimits, CallBook, CallEnd, Limit, PlannedCall, Resource, Ticket,
};
use crucible_model::{Clock, RunId};

/// The reservations of one run, through a connection of its own.
pub(crate) struct LedgerBook {
    ledger: Mutex<Ledger>,
    run: RunId,
    clock: Box<dyn Clock>,
}

impl LedgerBook {
    /// The book of `run`.
    pub(crate) fn new(ledger: Ledger, run: RunId, clock: Box<dyn Clock>) -> Self {
        Self { ledger: Mutex::new(ledger), run, clock }
    }

    /// Each use of the connection is one transaction, so a panic elsewhere leaves nothing half done.
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallBook for LedgerBook {
    fn reserve(&self, call: &PlannedCall<'_>, limits: &BudgetLimits) -> Result<Ticket, BookError> {
        let request = call.request().map_err(|error| BookError::Unavailable { detail: error.to_string() })?;
        let new = NewCall {
            run: self.run.clone(),
            provider: call.provider.to_owned(),
            model: call.invocation.model.clone(),
            request,
            ts: self.clock.now(),
            tokens: call.worst.tokens,
            cost: MicroDollars(call.worst.micro_dollars),
        };
        let allowance = Allowance {
            calls: bound(limits.calls),
            tokens: bound(limits.tokens),
            cost: bound(limits.micro_dollars).map(MicroDollars),
        };
        match self.ledger().reserve_call(&new, &allowance).map_err(unavailable)? {
            crucible_ledger::Reservation::Granted { seq } => Ok(Ticket(seq)),
            crucible_ledger::Reservation::Refused { what, used, wanted, limit } => {
                let resource = match what {
                    Scarce::Calls => Resource::Calls,
                    Scarce::Tokens => Resource::Tokens,
                    Scarce::Cost => Resource::MicroDollars,
                };
                Err(BookError::Exhausted { resource, limit, attempted: used.saturating_add(wanted) })
            }
        }
    }

    fn settle(&self, ticket: Ticket, _held: Amount, end: &CallEnd) -> Result<(), BookError> {
        let settlement = Settlement {
            ts: self.clock.now(),
            outcome: end.outcome.to_owned(),
            tokens_in: end.tokens.map(|(input, _)| input),
            tokens_out: end.tokens.map(|(_, output)| output),
            cost: end.micro_dollars.map(MicroDollars),
        };
        self.ledger().settle_call(&self.run, ticket.0, &settlement).map_err(unavailable)
    }

    fn used(&self) -> Result<Amount, BookError> {
        let usage = self.ledger().usage(&self.run).map_err(unavailable)?;
        Ok(Amount { calls: usage.calls, tokens: usage.tokens, micro_dollars: usage.cost.0 })
    }
}

fn bound(limit: Limit) -> Option<u64> {
    match limit {
        Limit::Unlimited => None,
        Limit::At(most) => Some(most),
    }
}

fn unavailable(error: LedgerError) -> BookError {
    BookError::Unavailable { detail: error.to_string() }
}
