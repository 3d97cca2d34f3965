//! A pool: what several budgets may spend together.
//!
//! Each of them keeps its own book and its own limits; a reservation stands in both, the pool's first. The pool lives as long as the
//! process.
//!
//! What always holds: an attempt that the pool does not carry is not sent, and [`CallPool::has_refused`] tells that one was refused.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::budget::{
    Amount, BookError, BudgetLimits, CallBook, CallBudget, CallEnd, PlannedCall, Ticket, carried,
};

/// What several budgets may spend together.
pub struct CallPool {
    limits: BudgetLimits,
    used: Mutex<Amount>,
    refused: AtomicBool,
}

impl CallPool {
    /// A pool of which `used` is spent already.
    #[must_use]
    pub fn new(limits: BudgetLimits, used: Amount) -> Arc<Self> {
        Arc::new(Self { limits, used: Mutex::new(used), refused: AtomicBool::new(false) })
    }

    /// Whether an attempt was refused because of the pool's limits.
    #[must_use]
    pub fn has_refused(&self) -> bool {
        self.refused.load(Ordering::SeqCst)
    }

    /// The book of one of the budgets, within this pool.
    #[must_use]
    pub fn share(self: &Arc<Self>, own: Arc<dyn CallBook>) -> Arc<dyn CallBook> {
        Arc::new(SharedBook { own, pool: Arc::clone(self), held: Mutex::default() })
    }

    /// A budget with the pool's own limits and no others.
    #[must_use]
    pub fn budget(self: &Arc<Self>) -> Arc<CallBudget> {
        CallBudget::kept(self.limits, self.share(Arc::<OpenBook>::default()))
    }

    fn take(&self, worst: Amount) -> Result<(), BookError> {
        let mut used = lock(&self.used);
        let after = carried(*used, worst, &self.limits);
        if after.is_err() {
            self.refused.store(true, Ordering::SeqCst);
        }
        *used = after?;
        Ok(())
    }

    /// Replaces what was held by what was spent.
    fn replace(&self, held: Amount, spent: Amount) {
        let mut used = lock(&self.used);
        let replaced = |used: u64, held: u64, spent: u64| used.saturating_sub(held).saturating_add(spent);
        used.calls = replaced(used.calls, held.calls, spent.calls);
        used.tokens = replaced(used.tokens, held.tokens, spent.tokens);
        used.micro_dollars = replaced(used.micro_dollars, held.micro_dollars, spent.micro_dollars);
    }
}

/// A book that sets no limit and outlives nothing.
#[derive(Default)]
struct OpenBook(Mutex<Amount>);

impl CallBook for OpenBook {
    fn reserve(&self, call: &PlannedCall, _: &BudgetLimits) -> Result<Ticket, BookError> {
        let mut used = lock(&self.0);
        used.calls += call.worst.calls;
        Ok(Ticket(used.calls))
    }

    fn settle(&self, _: Ticket, _: &CallEnd) -> Result<(), BookError> {
        Ok(())
    }

    fn used(&self) -> Result<Amount, BookError> {
        Ok(*lock(&self.0))
    }
}

/// One budget's book within a pool.
struct SharedBook {
    own: Arc<dyn CallBook>,
    pool: Arc<CallPool>,
    held: Mutex<BTreeMap<u64, Amount>>,
}

impl CallBook for SharedBook {
    fn reserve(&self, call: &PlannedCall, limits: &BudgetLimits) -> Result<Ticket, BookError> {
        self.pool.take(call.worst)?;
        let ticket = self.own.reserve(call, limits).inspect_err(|_| {
            self.pool.replace(call.worst, Amount::default());
        })?;
        lock(&self.held).insert(ticket.0, call.worst);
        Ok(ticket)
    }

    fn settle(&self, ticket: Ticket, end: &CallEnd) -> Result<(), BookError> {
        if let Some(held) = lock(&self.held).remove(&ticket.0) {
            let spent = Amount {
                calls: held.calls,
                tokens: end.tokens.map_or(held.tokens, |(input, output)| input.saturating_add(output)),
                micro_dollars: end.micro_dollars.unwrap_or(held.micro_dollars),
            };
            self.pool.replace(held, spent);
        }
        self.own.settle(ticket, end)
    }

    fn used(&self) -> Result<Amount, BookError> {
        self.own.used()
    }
}

/// A panic elsewhere leaves whole values behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use crucible_model::Digest;

    use super::*;
    use crate::budget::Limit;

    fn call(tokens: u64) -> PlannedCall {
        let worst = Amount { calls: 1, tokens, micro_dollars: 0 };
        PlannedCall { provider: "p", model: "m".to_owned(), request: Digest::ZERO, worst }
    }

    #[test]
    fn two_books_never_spend_more_than_their_pool() {
        let limits = BudgetLimits { tokens: Limit::At(100), ..BudgetLimits::calls(3) };
        let pool = CallPool::new(limits, Amount { calls: 1, ..Amount::default() });
        let [first, second] = [(); 2].map(|()| pool.share(Arc::<OpenBook>::default()));
        let ticket = first.reserve(&call(80), &limits).unwrap();
        assert!(matches!(second.reserve(&call(30), &limits), Err(BookError::Exhausted { limit: 100, .. })));
        assert!(pool.has_refused());
        // What was not needed is free again; the call stays used.
        first.settle(ticket, &CallEnd { outcome: "ok", tokens: Some((5, 5)), micro_dollars: None }).unwrap();
        second.reserve(&call(30), &limits).unwrap();
        assert!(matches!(first.reserve(&call(1), &limits), Err(BookError::Exhausted { limit: 3, .. })));
    }
}
