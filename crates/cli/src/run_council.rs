//! The council as a service of a run.

use std::sync::Arc;

use crucible_council::CouncilBackend;
use crucible_council::configured::{ConfiguredCouncil, ModelArguments};
use crucible_llm::{CallBudget, LlmBackend, UNSPECIFIED};
use crucible_model::Failure;
use crucible_run::{COUNCIL, CouncilService, DispatchConfig};
use crucible_sandbox::Runtime;
use crucible_settings::{Settings, variable_of};

/// The council that serves roles of a run, checked and not yet asked.
struct ReadyCouncil(ConfiguredCouncil);

impl CouncilService for ReadyCouncil {
    fn backend(self: Box<Self>, budget: &Arc<CallBudget>) -> Box<dyn LlmBackend> {
        Box::new(CouncilBackend::new(self.0, Arc::clone(budget)))
    }
}

/// Prepares the council, if the dispatch of a run names one; `provider` is the run's own.
pub(crate) fn council_of_run(
    runtime: &Runtime<'_>,
    config: &Settings,
    dispatch: &DispatchConfig,
    provider: &str,
) -> Result<Option<Box<dyn CouncilService>>, Failure> {
    if !dispatch.clients().contains(COUNCIL) {
        return Ok(None);
    }
    let provider = provider_of_council(config, provider)?;
    let council = ConfiguredCouncil::new(runtime, config, &ModelArguments::default(), provider)?;
    Ok(Some(Box::new(ReadyCouncil(council))))
}

/// Returns the provider of a council that serves a run of this provider.
fn provider_of_council<'c>(config: &'c Settings, provider: &'c str) -> Result<&'c str, Failure> {
    let is_model = |name: &&str| crucible_llm::provider(name).is_ok();
    let named = config.council.provider.as_deref();
    let named = named
        .or(Some(provider).filter(is_model))
        .or(config.llm.provider.as_deref());
    named.ok_or_else(|| {
        Failure::usage(format!(
            "{UNSPECIFIED}: a council serves this run, and it needs models"
        ))
        .hint(format!(
            "Set council.provider ({}).",
            variable_of("council.provider")
        ))
    })
}
