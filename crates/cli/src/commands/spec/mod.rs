//! `crucible spec`, `crucible resume` and `crucible status`: a spec from idea to final, phase by phase, the runs of its
//! tasks, and the evidence for its requirements.

mod evidence;
mod fixups;
mod flags;
mod host;
mod outline_status;
mod progress;
pub(crate) mod resume;
mod run;
mod show;
mod sources;
pub(crate) mod start;
pub(crate) mod status;
