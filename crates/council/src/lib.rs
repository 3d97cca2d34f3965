//! A council of models: a triage configures it, seats deliberate in loops, a red team attacks their positions in each
//! loop, and one model writes the answer.
//!
//! [`Crucible`] is the only entry point. Its parts (triage, executor, prompts, transport) are private:
//!
//! ```compile_fail
//! use crucible_council::executor::execute;
//! ```
//!
//! The crate's README follows.
#![doc = include_str!("../README.md")]

mod after_attack;
mod backend;
mod caller;
mod config;
pub mod configured;
mod context;
mod council;
mod degradation;
mod deliberation;
mod delta;
mod engine;
mod error;
mod executor;
mod exit_status;
mod grammar;
mod independence;
mod red_team;
mod result;
mod seat;
mod similarity;
mod summary;
mod synthesis;
pub mod text;
mod trace;
mod triage;
mod turn;
mod usage;

pub use after_attack::AfterAttack;
pub use backend::CouncilBackend;
pub use config::{CouncilLimits, DeltaChoice, EngineConfig, HintedModels, Observability, Wording};
pub use context::TriageContext;
pub use degradation::{Degradation, DegradationKind, Part};
pub use delta::{DeltaStrategy, DeltaVerdict, Positions};
pub use engine::Crucible;
pub use error::{CouncilError, CouncilFailure, Violation};
pub use independence::{Independence, PairSimilarity};
pub use result::{ExecutorResult, LoopRecord};
pub use seat::{ComplexityDomain, CouncilRole, LoopGrammar, RedTeamFlavor, SeatId};
pub use triage::{CouncilSeat, TriageOutput};
pub use turn::{Turn, TurnKind};
pub use usage::CallUsage;

/// Checks that paths are private. Test builds import each path, so a renamed item must also be renamed here; rustdoc
/// tries to compile an import from outside for each path, which must fail.
macro_rules! hidden {
    ($($module:ident :: $name:ident,)+) => {
        #[cfg(test)]
        #[expect(unused_imports, reason = "the import only has to compile")]
        mod hidden {
            $(use crate::$module::$name as _;)+
        }

        $(
            #[doc = concat!(
                "```compile_fail\nuse crucible_council::", stringify!($module), "::", stringify!($name), ";\n```\n",
            )]
        )+
        #[cfg(doctest)]
        struct Hidden;
    };
}

hidden! {
    after_attack::after_attacks,
    caller::CallRequest,
    caller::Caller,
    caller::CallFailure,
    caller::CallAnswer,
    council::Council,
    council::Seat,
    delta::calls,
    delta::detect,
    executor::execute,
    executor::worst_case,
    grammar::Draft,
    grammar::ActiveLoop,
    grammar::Grammar,
    grammar::LoopState,
    grammar::grammar,
    independence::independence,
    independence::similarity_to_prior,
    red_team::attack_messages,
    red_team::attack_schema,
    red_team::states_no_objection,
    red_team::messages,
    red_team::read_attack,
    red_team::system,
    similarity::Shingles,
    summary::summary,
    synthesis::answer_directly,
    synthesis::synthesize,
    trace::records,
    triage::triage,
}
