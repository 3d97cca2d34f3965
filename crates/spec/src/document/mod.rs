//! The documents of a spec: reading them out of a model's answer, and writing them down.
//!
//! A document is Markdown with LF line ends and one final newline. [`answer`] finds it in an answer and refuses what
//! is none; a file for each kind of document reads its content and writes its one form. Everything is a pure function, and
//! linear in the answer.

mod answer;
mod design;
mod fault;
mod filler;
mod ids;
mod lines;
mod merge;
mod non_answer;
mod requirements;
mod review;
mod stray;
mod tasks;
mod trace;

pub(crate) use answer::{Form, begins_as, measured, open, warning};
pub(crate) use design::{design, sections, unknown};
pub(crate) use fault::Fault;
pub use ids::RequirementId;
pub(crate) use ids::named;
pub(crate) use merge::{begins_changes, is_no_changes, merge};
pub(crate) use non_answer::of_no_document;
pub(crate) use requirements::Requirements;
pub use requirements::requirement_ids;
pub use review::review_targets;
pub(crate) use review::{Remark, Target, read_review, review};
pub(crate) use tasks::{read_tasks, tasks};
pub(crate) use trace::{TRACE_HEADING, traceability, without_trace};
