//! What is ready on this machine for a run, and what is missing: providers, programs, walls.
//!
//! [`examine`] looks: it makes each provider ready as a run would, which sends nothing, and asks the programs there are
//! for their versions, side by side, behind the sandbox and without a network. [`verdict`] then judges what was seen,
//! as a pure function.
//!
//! What always holds: no model is asked and no connection is opened; a program is given `--version` and nothing else,
//! its environment holds no key; no value of a key is ever in a [`Diagnosis`], only whether there is one.

mod judge;
mod program;
mod provider;

use std::collections::BTreeMap;

use crucible_sandbox::{Layers, Strength};
use futures_util::future::{join, join_all};
use serde::Serialize;

pub use judge::verdict;
pub use program::{NeededBy, ProgramCheck, ProgramState};
pub use provider::{KeyCheck, KeyState, KeyWanted, Problem, ProviderCheck, Reach, Readiness};

use crate::registry::{Context, ProviderSettings, registry};
use crate::strategy::{ExecutionStrategy, StrategyError};

/// What a configuration says, as far as it has to be ready.
#[derive(Default)]
pub struct Configured {
    /// The settings of each provider, by its name; a provider that is not named has none.
    pub settings: BTreeMap<String, ProviderSettings>,
    /// The provider that is to answer; empty where none is chosen.
    pub provider: String,
    /// The one that answers where that one cannot be made ready; empty where there is none.
    pub fallback: String,
    /// Who may act on what a model says.
    pub strategy: String,
}

/// What was seen.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    /// The chosen provider; empty where none is.
    pub provider: String,
    /// Its fallback; empty where there is none.
    pub fallback: String,
    /// Why the configured strategy cannot be used; absent where it can.
    #[serde(skip)]
    pub strategy: Option<StrategyError>,
    /// Every provider, in the order of the registry.
    pub providers: Vec<ProviderCheck>,
    /// The programs that Crucible itself uses.
    pub programs: Vec<ProgramCheck>,
    /// How strong the sandbox must be.
    pub strength: Strength,
    /// What it offers.
    pub layers: Layers,
}

/// Looks at everything at once; takes about as long as the slowest program takes to tell its version, and no longer
/// than the limit of [`crucible_sandbox::Sandbox::version_of`].
pub async fn examine(configured: &Configured, strength: Strength, context: &Context) -> Diagnosis {
    // The walls are tried first: afterwards every program is asked behind them at once.
    let layers = context.sandbox.layers().clone();
    let none = ProviderSettings::default();
    let providers = registry().iter().map(|kind| {
        let settings = configured.settings.get(kind.name()).unwrap_or(&none);
        provider::check(*kind, settings, context)
    });
    let programs = program::OWN.iter().map(|own| program::check(own.asked(), context));
    let (providers, programs) = join(join_all(providers), join_all(programs)).await;
    Diagnosis {
        provider: configured.provider.clone(),
        // One and the same is no other choice.
        fallback: Some(&configured.fallback)
            .filter(|name| **name != configured.provider)
            .cloned()
            .unwrap_or_default(),
        strategy: configured.strategy.parse().and_then(ExecutionStrategy::accepted).err(),
        providers,
        programs,
        strength,
        layers,
    }
}
