//! The documents of a spec: parsing them from a model's answer, and formatting them.
//!
//! A document is Markdown with LF line endings and one final newline. [`answer`] finds it in an answer or
//! refuses the answer; one file per kind of document parses its content and writes its canonical form.
//! Everything is a pure function, linear in the answer.

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
pub(crate) use design::{design, sections, unknown_references};
pub(crate) use fault::Fault;
pub(crate) use ids::RequirementId;
pub(crate) use ids::parse_ids;
pub(crate) use lines::{Line, LineKind, list_item, scan};
pub(crate) use merge::{begins_changes, is_no_changes, merge};
pub(crate) use non_answer::of_no_document;
pub(crate) use requirements::Requirements;
pub(crate) use review::review_targets;
pub(crate) use review::{Remark, Target, read_review, review};
pub(crate) use tasks::{read_tasks, tasks};
pub(crate) use trace::{TRACE_HEADING, traceability, without_trace};
