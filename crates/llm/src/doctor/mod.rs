//! Checks whether this machine is ready for a run: providers, programs, sandbox.
//!
//! [`examine`] prepares each provider as a run would, which sends nothing, and runs the installed
//! programs with `--version`, concurrently, in the sandbox and without a network. [`verdict`] judges the
//! result as a pure function.
//!
//! Invariants: no model is called and no connection is opened. A program gets only `--version`, and no
//! key in its environment. A [`Diagnosis`] never contains a key, only whether there is one.

mod judge;
mod program;
mod provider;
mod words;

use std::collections::BTreeMap;

use crucible_sandbox::{Layers, Strength};
use futures_util::future::{join, join_all};
use serde::Serialize;

pub use judge::verdict;
pub use program::{NeededBy, ProgramCheck, ProgramState};
pub use provider::{KeyCheck, KeyState, KeyWanted, Problem, ProviderCheck, Reach, Readiness};

use crate::context::Context;
use crate::provider_settings::ProviderSettings;
use crate::registry::registry;
use crate::strategy::{ExecutionStrategy, StrategyError};

/// The parts of a configuration that must be ready.
#[derive(Default)]
pub struct Configured {
    /// The settings of each provider, by name; a missing provider has none.
    pub settings: BTreeMap<String, ProviderSettings>,
    /// The configured provider; empty if none is configured.
    pub provider: String,
    /// The configured fallback; empty if none is configured.
    pub fallback: String,
    /// Who may act on a model's answer.
    pub strategy: String,
}

/// The result of the checks.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    /// The configured provider; empty if none is configured.
    pub provider: String,
    /// Its fallback; empty if none is configured.
    pub fallback: String,
    /// Why the configured strategy is not supported, if so.
    #[serde(skip)]
    pub strategy: Option<StrategyError>,
    /// All providers, in registry order.
    pub providers: Vec<ProviderCheck>,
    /// The programs that Crucible itself uses.
    pub programs: Vec<ProgramCheck>,
    /// The required strength of the sandbox.
    pub strength: Strength,
    /// The available layers of the sandbox.
    pub layers: Layers,
}

/// Runs all checks concurrently. It takes about as long as the slowest program, at most the limit of
/// [`crucible_sandbox::Sandbox::version_of`].
pub async fn examine(configured: &Configured, strength: Strength, context: &Context) -> Diagnosis {
    // The sandbox is tested first, because every program runs in it afterwards.
    let layers = context.sandbox.layers().clone();
    let none = ProviderSettings::default();
    let providers = registry().iter().map(|kind| {
        let settings = configured.settings.get(kind.name()).unwrap_or(&none);
        provider::check(*kind, settings, context)
    });
    let programs = program::OWN
        .iter()
        .map(|own| program::check(own.program(), context));
    let (providers, programs) = join(join_all(providers), join_all(programs)).await;
    Diagnosis {
        provider: configured.provider.clone(),
        // The same provider is not another choice.
        fallback: Some(&configured.fallback)
            .filter(|name| **name != configured.provider)
            .cloned()
            .unwrap_or_default(),
        strategy: configured
            .strategy
            .parse()
            .and_then(ExecutionStrategy::accepted)
            .err(),
        providers,
        programs,
        strength,
        layers,
    }
}
