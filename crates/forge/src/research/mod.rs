//! Research into a failure of a skill: its kind, what is known of it, what a model advises, and
//! whether a person must review it.
//!
//! - [`standing_failure`]: which attempt or verification failed last, with nothing that succeeded since.
//! - [`diagnose`]: its kind and facts, from the records of the code that saw it fail; log text only where there is no such record.
//! - [`escalation`]: the five [`EscalationTrigger`]s.
//! - [`research`]: the step, which keeps a [`ResearchNote`] and, where a model was asked, its [`StoredAdvice`].
//! - [`needs_review`], [`record_review`], [`retry_material`]: what the next attempt asks before it begins, and is given.
//!
//! What always holds: the three judges are pure; nothing that an agent, a skill or a model printed makes a failure look milder; a note holds
//! no secret and nothing of the held-out examples; what a model advises is text in a fence, and never what a skill may do.

mod advice;
mod diagnose;
mod escalation;
mod excerpt;
mod failed;
mod note;
mod review;
mod step;
#[cfg(test)]
mod tests;

pub use advice::AdviceSource;
pub use diagnose::{DiagnosisBasis, FailureDiagnosis, FailureFact};
pub use escalation::{EscalationAdvice, EscalationTrigger, escalation};
pub use note::{NotedAdvice, ResearchNote};
pub use review::{RetryMaterial, needs_review};
pub(crate) use review::{record_review, retry_material};
pub use step::{ResearchError, ResearchOutcome, research};
