//! A pool: a common limit for several budgets.
//!
//! Each budget has its own book and its own limits; a reservation is made in both, in the pool first. The
//! pool lives as long as the process.
//!
//! Invariant: an attempt that exceeds the pool's limits is not sent, and [`CallPool::has_refused`]
//! reports that.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::budget::{
    Amount, BudgetLimits, CallBudget, CallEnd, PlannedCall, ReservationError, ReservationStore,
    Ticket, carried,
};

/// A common limit for several budgets.
pub struct CallPool {
    limits: BudgetLimits,
    used: Mutex<Amount>,
    refused: AtomicBool,
}

impl CallPool {
    /// Creates a pool of which `used` is already spent.
    #[must_use]
    pub fn new(limits: BudgetLimits, used: Amount) -> Arc<Self> {
        Arc::new(Self {
            limits,
            used: Mutex::new(used),
            refused: AtomicBool::new(false),
        })
    }

    /// Whether an attempt was refused because of the pool's limits.
    #[must_use]
    pub fn has_refused(&self) -> bool {
        self.refused.load(Ordering::SeqCst)
    }

    /// Wraps the book of one budget with this pool.
    #[must_use]
    pub fn share(self: &Arc<Self>, own: Arc<dyn ReservationStore>) -> Arc<dyn ReservationStore> {
        Arc::new(PooledReservations {
            own,
            pool: Arc::clone(self),
            reserved: Mutex::default(),
        })
    }

    /// Creates a budget with only the pool's limits.
    #[must_use]
    pub fn budget(self: &Arc<Self>) -> Arc<CallBudget> {
        CallBudget::with_store(
            self.limits,
            self.share(Arc::<MemoryReservations>::default()),
        )
    }

    fn take(&self, worst: Amount) -> Result<(), ReservationError> {
        let mut used = lock(&self.used);
        let after = carried(*used, worst, &self.limits);
        if after.is_err() {
            self.refused.store(true, Ordering::SeqCst);
        }
        *used = after?;
        Ok(())
    }

    /// Replaces a reservation by the actual usage.
    fn replace(&self, reserved: Amount, spent: Amount) {
        let mut used = lock(&self.used);
        let replaced = |used: u64, reserved: u64, spent: u64| {
            used.saturating_sub(reserved).saturating_add(spent)
        };
        used.calls = replaced(used.calls, reserved.calls, spent.calls);
        used.tokens = replaced(used.tokens, reserved.tokens, spent.tokens);
        used.micro_dollars = replaced(
            used.micro_dollars,
            reserved.micro_dollars,
            spent.micro_dollars,
        );
    }
}

/// A book in memory without limits.
#[derive(Default)]
struct MemoryReservations(Mutex<Amount>);

impl ReservationStore for MemoryReservations {
    fn reserve(&self, call: &PlannedCall, _: &BudgetLimits) -> Result<Ticket, ReservationError> {
        let mut used = lock(&self.0);
        used.calls += call.worst.calls;
        Ok(Ticket(used.calls))
    }

    fn settle(&self, _: Ticket, _: &CallEnd) -> Result<(), ReservationError> {
        Ok(())
    }

    fn used(&self) -> Result<Amount, ReservationError> {
        Ok(*lock(&self.0))
    }
}

/// The book of one budget within a pool.
struct PooledReservations {
    own: Arc<dyn ReservationStore>,
    pool: Arc<CallPool>,
    reserved: Mutex<BTreeMap<u64, Amount>>,
}

impl ReservationStore for PooledReservations {
    fn reserve(
        &self,
        call: &PlannedCall,
        limits: &BudgetLimits,
    ) -> Result<Ticket, ReservationError> {
        self.pool.take(call.worst)?;
        let ticket = self.own.reserve(call, limits).inspect_err(|_| {
            self.pool.replace(call.worst, Amount::default());
        })?;
        lock(&self.reserved).insert(ticket.0, call.worst);
        Ok(ticket)
    }

    fn settle(&self, ticket: Ticket, end: &CallEnd) -> Result<(), ReservationError> {
        if let Some(reserved) = lock(&self.reserved).remove(&ticket.0) {
            let spent = Amount {
                calls: reserved.calls,
                tokens: end.tokens.map_or(reserved.tokens, |(input, output)| {
                    input.saturating_add(output)
                }),
                micro_dollars: end.micro_dollars.unwrap_or(reserved.micro_dollars),
            };
            self.pool.replace(reserved, spent);
        }
        self.own.settle(ticket, end)
    }

    fn used(&self) -> Result<Amount, ReservationError> {
        self.own.used()
    }
}

/// A panic in another thread leaves consistent values.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use crucible_model::Digest;

    use super::*;
    use crate::budget::Limit;

    fn call(tokens: u64) -> PlannedCall {
        let worst = Amount {
            calls: 1,
            tokens,
            micro_dollars: 0,
        };
        PlannedCall {
            provider: "p",
            model: "m".to_owned(),
            request: Digest::ZERO,
            worst,
        }
    }

    #[test]
    fn two_books_never_spend_more_than_their_pool() {
        let limits = BudgetLimits {
            tokens: Limit::At(100),
            ..BudgetLimits::calls(3)
        };
        let pool = CallPool::new(
            limits,
            Amount {
                calls: 1,
                ..Amount::default()
            },
        );
        let [first, second] = [(); 2].map(|()| pool.share(Arc::<MemoryReservations>::default()));
        let ticket = first.reserve(&call(80), &limits).unwrap();
        assert!(matches!(
            second.reserve(&call(30), &limits),
            Err(ReservationError::Exhausted { limit: 100, .. })
        ));
        assert!(pool.has_refused());
        // The surplus is released; the call itself counts.
        first
            .settle(
                ticket,
                &CallEnd {
                    outcome: "ok",
                    tokens: Some((5, 5)),
                    micro_dollars: None,
                },
            )
            .unwrap();
        second.reserve(&call(30), &limits).unwrap();
        assert!(matches!(
            first.reserve(&call(1), &limits),
            Err(ReservationError::Exhausted { limit: 3, .. })
        ));
    }
}
