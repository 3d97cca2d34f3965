//! The council as a service of a run.

use std::sync::Arc;

use crucible_council::CouncilBackend;
use crucible_council::configured::ConfiguredCouncil;
use crucible_ledger::Ledger;
use crucible_llm::{CallBudget, LlmBackend};
use crucible_model::Failure;
use crucible_run::configured::RunHost;
use crucible_run::{COUNCIL, CouncilService, DispatchConfig};
use crucible_settings::Settings;

use crate::app::App;

/// A configured council that serves roles of a run. No model was called yet.
struct ReadyCouncil(ConfiguredCouncil);

impl CouncilService for ReadyCouncil {
    fn backend(self: Box<Self>, budget: &Arc<CallBudget>) -> Box<dyn LlmBackend> {
        Box::new(CouncilBackend::new(self.0, Arc::clone(budget)))
    }
}

impl RunHost for App {
    fn council(
        &self,
        settings: &Settings,
        dispatch: &DispatchConfig,
        provider: &str,
    ) -> Result<Option<Box<dyn CouncilService>>, Failure> {
        if !dispatch.clients().contains(COUNCIL) {
            return Ok(None);
        }
        let council = ConfiguredCouncil::for_run(&self.runtime(), settings, provider)?;
        Ok(Some(Box::new(ReadyCouncil(council))))
    }

    fn ledger(&self) -> Result<Ledger, Failure> {
        App::ledger(self)
    }
}
