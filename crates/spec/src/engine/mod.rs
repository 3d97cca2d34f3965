//! The runtime of the phases: which may run, their input, the model call, and the results.
//!
//! `phase_order` decides which phases may run, by pure functions of the state of a spec. `material`
//! gathers the input of a phase. `run` is one attempt of one phase, a value with a fixed order of steps;
//! `ask` is the step that calls a model and requests corrections; `receipt`, `tally` and `failure` build
//! its receipt. `calls` keeps answers that were paid for but not used.
//!
//! Invariants: an attempt ends with exactly one receipt, whatever stops it, with the exit code of the
//! process. An artifact and its receipt appear together. A fixup changes nothing outside of `.crucible/`
//! until it is applied.

mod apply;
mod ask;
mod calls;
mod failure;
mod material;
mod phase_order;
mod receipt;
mod run;
mod tally;

#[cfg(test)]
mod tests;

pub(crate) use phase_order::upstream_phases;

pub(crate) use apply::{FixupRun, WaitingFixup, waiting_fixup};
pub(crate) use failure::failure_class;
pub(crate) use phase_order::phases_to_run;
pub use run::Trial;
pub(crate) use run::{PhaseOrder, PhaseRun};
