//! Observes model calls, so that a program can show what it waits for.
//!
//! Invariant: every reported start of an attempt is followed by a report of its end: answered, failed or
//! abandoned.

/// Is notified about each attempt to call a model: retries count separately, and attempts that the budget
/// refuses do not count. Many can be in flight at once. It gets neither requests nor answers.
pub trait CallObserver: Send + Sync {
    /// An attempt for this phase begins. The attempt waits until this returns.
    fn call_started(&self, phase_id: &str);

    /// An attempt for this phase has ended: answered, failed or abandoned.
    fn call_ended(&self, phase_id: &str);
}

/// An attempt in flight; dropping it reports its end.
pub(crate) struct InFlight<'w> {
    watch: &'w dyn CallObserver,
    phase_id: String,
}

impl<'w> InFlight<'w> {
    /// Reports the beginning of an attempt.
    pub(crate) fn new(watch: &'w dyn CallObserver, phase_id: String) -> Self {
        watch.call_started(&phase_id);
        Self { watch, phase_id }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.watch.call_ended(&self.phase_id);
    }
}
