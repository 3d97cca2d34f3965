//! `submit_proposal`: the client's own change for a run that waits for one.

use std::sync::Arc;

use async_trait::async_trait;
use crucible_model::{Failure, RunId};
use crucible_run::{status, submit_proposal};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::arguments;
use crate::session::Session;
use crate::tool::{Effect, ToolKind, schema_of};
use crate::work;

/// The tool.
pub(crate) struct SubmitProposal;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The run, by its id or a prefix of it.
    run: String,
    /// The change: a git unified diff, or two lines `CANNOT: reason` and `CONFLICT: what it conflicts with`.
    patch: String,
}

#[derive(Serialize)]
struct Submitted {
    schema_version: &'static str,
    run_id: RunId,
    next: &'static str,
}

#[async_trait(?Send)]
impl ToolKind for SubmitProposal {
    fn name(&self) -> &'static str {
        "submit_proposal"
    }

    fn title(&self) -> &'static str {
        "Submit a change"
    }

    fn description(&self) -> &'static str {
        "Submit your change, as a patch, to a run that waits for one (started with proposer \"client\"). It is judged and tested in \
         the background as every proposal is; follow it with run_status. The repository's own files have to stay as they are: \
         write the patch yourself, or edit a linked work tree (`git worktree add`) and pass what `git diff` prints."
    }

    fn effect(&self) -> Effect {
        Effect::Works
    }

    fn schema(&self) -> Arc<JsonObject> {
        schema_of::<Arguments>()
    }

    async fn call(&self, session: &Session<'_>, arguments: JsonObject) -> Result<Answer, Failure> {
        let arguments: Arguments = arguments::read(self.name(), arguments)?;
        work::require_room(session)?;
        let (runtime, _, world) = session.runs_here()?;
        let run = session.run(&world, &arguments.run)?;
        submit_proposal(&world, &run.dir, &run.ledger, &arguments.patch).await?;
        let run_id = status(&run.dir, &run.ledger)?.run.run_id;
        work::advance(session, &runtime, &run.repository, &run_id).await?;
        let document = Submitted {
            schema_version: "crucible-mcp-submitted-v1",
            run_id,
            next: "Follow the run with run_status.",
        };
        Answer::document("The proposal is being judged.\n", "run", &document)
    }
}
