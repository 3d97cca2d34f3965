//! What a gate printed, made fit for a prompt: the same for the same failure, and short.

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
