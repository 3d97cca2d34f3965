//! `crucible spec`, `crucible resume` and `crucible status`: a spec from idea to final, phase by phase.

mod fixups;
mod flags;
mod host;
mod progress;
pub(crate) mod resume;
mod show;
mod sources;
pub(crate) mod start;
pub(crate) mod status;
