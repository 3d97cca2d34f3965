//! `land_run`: a verified change becomes a commit, where the user's settings allow it.

use std::sync::Arc;

use async_trait::async_trait;
use crucible_model::Failure;
use crucible_run::{NoopObserver, Signing, land};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::Answer;
use crate::arguments;
use crate::session::Session;
use crate::tool::{Effect, ToolKind, schema_of};

/// The tool.
pub(crate) struct LandRun;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The run, by its id or a prefix of it.
    run: String,
}

#[async_trait(?Send)]
impl ToolKind for LandRun {
    fn name(&self) -> &'static str {
        "land_run"
    }

    fn title(&self) -> &'static str {
        "Land a verified change"
    }

    fn description(&self) -> &'static str {
        "Commit the verified change of a run to the branch that it started from. No file of the change may have other changes in \
         the work tree."
    }

    fn effect(&self) -> Effect {
        Effect::Lands
    }

    fn schema(&self) -> Arc<JsonObject> {
        schema_of::<Arguments>()
    }

    async fn call(&self, session: &Session<'_>, arguments: JsonObject) -> Result<Answer, Failure> {
        let Arguments { run } = arguments::read(self.name(), arguments)?;
        let (runtime, settings, world) = session.runs_here()?;
        let home = session.host.home()?;
        let sandbox = Arc::clone(&runtime.sandbox);
        let signing = Signing::configured(&settings, sandbox, runtime.env, &home)?;
        let mut run = session.run(&world, &run)?;
        let landed = land(
            &world,
            &run.dir,
            None,
            &signing,
            &mut run.ledger,
            &mut NoopObserver,
        )
        .await?;
        Answer::document("The change has landed.\n", "landing", &landed)
    }
}
