//! Evidence: which requirement of a spec is proven by which test, in which run, at which commit.
//!
//! A requirement names its tests ([`NamedTest`]). A run keeps the task that it works on ([`SpecTask`]). [`judge_evidence`]
//! compares the requirements of a spec with the landed runs and with the files at a commit, and returns an
//! [`EvidenceMatrix`]. The specs and the runs belong to crates that do not know each other; this is what they share.
//!
//! What always holds: no I/O, and the same input gives the same matrix. A model's words never count. Only results that a
//! gate reported for a test, in a run that landed, do.

mod judge;
mod markdown;
mod matrix;
mod named_test;
mod task;

pub use judge::{EvidenceInput, LandedRun, TestOutcome, evidence_findings, judge_evidence};
pub use markdown::to_markdown;
pub use matrix::{
    EvidenceCounts, EvidenceMatrix, EvidenceState, MatrixVersion, RequirementEvidence,
    TestEvidence, TestOrigin, TestState,
};
pub use named_test::{
    MAX_TESTS, NamedTest, NamedTestError, NamedTests, named_tests, without_tests,
};
pub use task::{RequirementTests, SpecFormat, SpecTask};
