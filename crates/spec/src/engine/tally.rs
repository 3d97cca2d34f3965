//! Sums the calls of a phase, corrections included, for the receipt.
//!
//! A figure that one of the answered calls does not state is omitted, so that an incomplete sum is never
//! shown as complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crucible_llm::{CallObserver, Cost, CostBasis, LlmReceipt};

/// Counts started attempts, and notifies another observer.
pub(super) struct AttemptCounter {
    pub(super) count: Arc<AtomicU64>,
    pub(super) observer: Option<Arc<dyn CallObserver>>,
}

impl CallObserver for AttemptCounter {
    fn call_started(&self, phase_id: &str) {
        self.count.fetch_add(1, Ordering::SeqCst);
        if let Some(shown) = &self.observer {
            shown.call_started(phase_id);
        }
    }

    fn call_ended(&self, phase_id: &str) {
        if let Some(shown) = &self.observer {
            shown.call_ended(phase_id);
        }
    }
}

/// The calls of one attempt.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    attempts: u64,
    answered: Vec<LlmReceipt>,
    last: Option<LlmReceipt>,
}

impl Tally {
    /// Adds a call that was answered after this many attempts.
    pub(super) fn record_call(&mut self, call: LlmReceipt, attempts: u64) {
        self.attempts = self.attempts.saturating_add(attempts);
        self.answered.push(call.clone());
        self.last = Some(call);
    }

    /// Adds a call that failed after this many attempts.
    pub(super) fn failed(&mut self, call: Option<LlmReceipt>, attempts: u64) {
        self.attempts = self.attempts.saturating_add(attempts);
        self.last = call.or(self.last.take());
    }

    /// Attempts that were sent.
    pub(super) fn attempts(&self) -> u64 {
        self.attempts
    }

    /// The last call, with the tokens and cost of all answered calls; nothing if there was no call.
    pub(super) fn receipt(&self) -> Option<LlmReceipt> {
        let last = self.last.clone()?;
        Some(LlmReceipt {
            tokens_input: self.sum(|call| call.tokens_input),
            tokens_output: self.sum(|call| call.tokens_output),
            cost: self.cost(),
            ..last
        })
    }

    fn sum(&self, of: impl Fn(&LlmReceipt) -> Option<u64>) -> Option<u64> {
        if self.answered.is_empty() {
            return None;
        }
        self.answered
            .iter()
            .try_fold(0, |sum: u64, call| Some(sum.saturating_add(of(call)?)))
    }

    fn cost(&self) -> Option<Cost> {
        let micro_dollars = self.sum(|call| call.cost.as_ref().map(|cost| cost.micro_dollars))?;
        // A sum that contains an estimate is an estimate.
        let costs = || self.answered.iter().filter_map(|call| call.cost.as_ref());
        let estimate = costs().find(|cost| cost.basis == CostBasis::Estimated);
        let (basis, price_date) = match estimate {
            Some(estimate) => (CostBasis::Estimated, estimate.price_date.clone()),
            None => (CostBasis::Reported, None),
        };
        Some(Cost {
            micro_dollars,
            basis,
            price_date,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tokens: Option<u64>, cost: Option<(u64, CostBasis)>) -> LlmReceipt {
        let cost = cost.map(|(micro_dollars, basis)| Cost {
            micro_dollars,
            basis,
            price_date: None,
        });
        LlmReceipt {
            provider: Some("gateway".to_owned()),
            tokens_input: tokens,
            tokens_output: tokens,
            cost,
            ..LlmReceipt::default()
        }
    }

    #[test]
    fn corrections_are_counted_and_unknown_values_stay_unknown() {
        let mut tally = Tally::default();
        assert_eq!((tally.receipt(), tally.attempts()), (None, 0));
        tally.record_call(call(Some(10), Some((5, CostBasis::Reported))), 2);
        tally.record_call(call(Some(1), Some((2, CostBasis::Estimated))), 1);
        let summed = tally.receipt().unwrap();
        assert_eq!(
            (summed.tokens_input, summed.tokens_output, tally.attempts()),
            (Some(11), Some(11), 3)
        );
        let cost = summed.cost.unwrap();
        assert_eq!((cost.micro_dollars, cost.basis), (7, CostBasis::Estimated));
        tally.record_call(call(None, None), 1);
        let summed = tally.receipt().unwrap();
        assert_eq!((summed.tokens_input, summed.cost), (None, None));
    }

    #[test]
    fn failure_after_answer_keeps_the_answers_usage() {
        let mut tally = Tally::default();
        tally.record_call(call(Some(10), None), 1);
        let failed = LlmReceipt {
            error: Some("timeout".to_owned()),
            ..LlmReceipt::default()
        };
        tally.failed(Some(failed), 3);
        let summed = tally.receipt().unwrap();
        assert_eq!(
            (summed.error.as_deref(), summed.tokens_input),
            (Some("timeout"), Some(10))
        );
        assert_eq!(tally.attempts(), 4);
        tally.failed(None, 0);
        assert_eq!(tally.receipt().unwrap().error.as_deref(), Some("timeout"));
    }
}
