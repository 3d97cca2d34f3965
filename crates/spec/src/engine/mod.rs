//! The runtime around the phases: which may run, what one is given, the asking, and what it leaves behind.
//!
//! `way` says which phases may run, as pure functions of what is known of a spec. `material` gathers what a phase is given. `run` is one try
//! of one phase, a value with a fixed order of steps; `ask` is the step in which a model is asked and corrected; `receipt`, `tally` and `failure`
//! make the receipt of it. `calls` keeps answers that were paid for and not used.
//!
//! What always holds: a try that began ends with exactly one receipt, whatever stops it, with the exit code of the process; an
//! artifact and the receipt that names it appear together; a fixup changes nothing but `.crucible/`.

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

pub(crate) use phase_order::made_from;

pub use apply::{FixupRun, WaitingFixup, waiting_fixup};
pub use failure::failure_class;
pub use phase_order::{check_transition, phases_to_run, valid_phases};
pub use run::{PhaseOrder, PhaseRun, Trial};
