//! Who is told while a model is asked, so that a program can show what it waits for.
//!
//! What always holds: whoever is told that an attempt began is told of its end, too, however it ends: with an answer, with an
//! error, or because nobody waits for it any more.

/// Is told of each attempt to ask a model: retries count by themselves, and an attempt that the budget refuses is none. Many
/// can be under way at once. What is told holds nothing of a request or an answer.
pub trait CallWatch: Send + Sync {
    /// An attempt for this phase begins. It waits until this returns.
    fn asked(&self, phase_id: &str);

    /// An attempt for this phase is over: answered, failed or abandoned.
    fn answered(&self, phase_id: &str);
}

/// An attempt under way; its end is told when it is dropped.
pub(crate) struct InFlight<'w> {
    watch: &'w dyn CallWatch,
    phase_id: String,
}

impl<'w> InFlight<'w> {
    /// Tells that an attempt begins.
    pub(crate) fn new(watch: &'w dyn CallWatch, phase_id: String) -> Self {
        watch.asked(&phase_id);
        Self { watch, phase_id }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.watch.answered(&self.phase_id);
    }
}
