//! The JSON documents that other programs read.

mod resume;
mod spec;
mod status;

pub use resume::{RESUME_SCHEMA, ResumeOverview};
pub use spec::{ConfigSummary, PhaseOverview, SPEC_SCHEMA, SpecOverview};
pub(crate) use status::{
    ANSWER_REUSED, LLM_REPLAYED, age, applied_fixups, contradicts, rerun, standing,
    tells_of_success,
};
pub use status::{
    NextStep, PhaseCondition, PhaseSummary, STATUS_SCHEMA, SpecStatus, StatusProblem, StepReason,
    pending_fixups, spec_status,
};
