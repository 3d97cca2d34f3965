//! The order in which seats speak: three grammars behind one trait.
//!
//! Invariants: in every grammar the red team speaks in every loop, and a loop without its answer is an
//! error. A seat without an answer is noted and skipped. The run ends if fewer than two seats are left.
//! Calls that do not depend on each other run concurrently.

mod active_loop;
mod debate;
mod loop_state;
mod parallel;
mod prompt;
mod sequential;
#[cfg(test)]
pub(crate) mod shown;

use crate::seat::LoopGrammar;

pub(crate) use active_loop::{ActiveLoop, Grammar};
pub(crate) use loop_state::{Draft, LoopState};

/// The implementation of a grammar.
pub(crate) fn grammar(grammar: LoopGrammar) -> &'static dyn Grammar {
    match grammar {
        LoopGrammar::Parallel => &parallel::Parallel,
        LoopGrammar::Sequential => &sequential::Sequential,
        LoopGrammar::Debate => &debate::Debate,
    }
}
