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
mod receipt;
mod run;
mod tally;
mod way;

#[cfg(test)]
mod tests;

pub(crate) use way::made_from;

pub use apply::{FixupRun, WaitingFixup, waiting_fixup};
pub use failure::failure_class;
pub use run::{PhaseOrder, PhaseRun, Trial};
pub use way::{check_transition, phases_to_run, valid_phases};
