//! `list_runs`: the runs of the repositories.

use std::sync::Arc;

use async_trait::async_trait;
use crucible_model::{Failure, RunId};
use crucible_view::RunList;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::Answer;
use crate::arguments;
use crate::session::Session;
use crate::tool::{Effect, ToolKind, schema_of};

/// Runs of one answer.
const MAX_RUNS: usize = 50;

/// The tool.
pub(crate) struct ListRuns;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {}

#[async_trait(?Send)]
impl ToolKind for ListRuns {
    fn name(&self) -> &'static str {
        "list_runs"
    }

    fn title(&self) -> &'static str {
        "List runs"
    }

    fn description(&self) -> &'static str {
        "List the newest 50 runs of the repositories that this server reaches, newest first."
    }

    fn effect(&self) -> Effect {
        Effect::Reads
    }

    fn schema(&self) -> Arc<JsonObject> {
        schema_of::<Arguments>()
    }

    async fn call(&self, session: &Session<'_>, arguments: JsonObject) -> Result<Answer, Failure> {
        let Arguments {} = arguments::read(self.name(), arguments)?;
        let list = match session.host.existing_ledger()? {
            Some(ledger) => {
                let runs = session.reach.runs(session.host, &ledger)?;
                let ids: Vec<RunId> = runs.into_iter().map(|run| run.id).collect();
                RunList::of_runs(&ledger, &ids, MAX_RUNS)?
            }
            None => RunList::empty(),
        };
        let sentence = if list.total > MAX_RUNS as u64 {
            "The newest 50 runs; there are more.\n"
        } else {
            "The runs.\n"
        };
        Answer::document(sentence, "runs", &list)
    }
}
