//! The phases: their prompts, and the parsers of their answers.
//!
//! A phase is a [`PhaseDefinition`] in its own file, listed in [`phases`]; the trait is in `definition.rs`. Its prompt and its parser are
//! pure functions of [`PhaseInput`]; the runtime around them is `engine`.

mod definition;
mod design;
mod final_;
mod fixup;
mod prompt;
mod requirements;
mod review;
mod tasks;

pub use definition::{CorrectionBrief, LastArtifact, PhaseDefinition, PhaseDocument, PhaseInput};

/// Every phase, in order.
#[must_use]
pub fn phases() -> [&'static dyn PhaseDefinition; 6] {
    [
        &requirements::RequirementsPhase,
        &design::DesignPhase,
        &tasks::TasksPhase,
        &review::ReviewPhase,
        &fixup::FixupPhase,
        &final_::FinalPhase,
    ]
}

#[cfg(test)]
mod tests;
