//! Prepares a gate's output for a prompt: short, and equal for equal failures.

mod condense;
mod diagnostics;
mod evidence;
mod excerpt;
mod libtest;
mod line;
mod normalise;

pub use evidence::{FailureEvidence, StackFrame};
pub use excerpt::excerpt;
pub(crate) use line::visible;
pub use normalise::{Normaliser, normalise};
