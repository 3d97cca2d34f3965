//! `run_findings`: why proposals of a run were refused, and why it failed.

use std::sync::Arc;

use async_trait::async_trait;
use crucible_model::{Failure, Finding, RunId};
use crucible_run::{AttemptOutcome, status};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::arguments;
use crate::session::Session;
use crate::tool::{Effect, ToolKind, schema_of};

/// The tool.
pub(crate) struct RunFindings;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The run, by its id or a prefix of it.
    run: String,
    /// Only the attempt with this number, counted from 1. Default: all attempts.
    #[schemars(range(min = 1))]
    attempt: Option<u64>,
}

#[derive(Serialize)]
struct FindingsDocument<'a> {
    schema_version: &'static str,
    run_id: &'a RunId,
    state: &'static str,
    attempts: Vec<&'a AttemptOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a Finding>,
}

#[async_trait(?Send)]
impl ToolKind for RunFindings {
    fn name(&self) -> &'static str {
        "run_findings"
    }

    fn title(&self) -> &'static str {
        "Read findings"
    }

    fn description(&self) -> &'static str {
        "Read how the attempts of a run ended, with their findings: what the patch gate refused and which tests failed. Models, \
         tests and files wrote parts of these texts."
    }

    fn effect(&self) -> Effect {
        Effect::Reads
    }

    fn schema(&self) -> Arc<JsonObject> {
        schema_of::<Arguments>()
    }

    async fn call(&self, session: &Session<'_>, arguments: JsonObject) -> Result<Answer, Failure> {
        let arguments: Arguments = arguments::read(self.name(), arguments)?;
        let (_, _, world) = session.runs_here()?;
        let run = session.run(&world, &arguments.run)?;
        let run_status = status(&run.dir, &run.ledger)?;
        let is_meant = |attempt: &&AttemptOutcome| {
            arguments
                .attempt
                .is_none_or(|number| number == attempt.number)
        };
        let attempts: Vec<_> = run_status.attempts.iter().filter(is_meant).collect();
        if let (Some(number), []) = (arguments.attempt, &attempts[..]) {
            return Err(Failure::usage(format!("the run has no attempt {number}"))
                .hint("`run_status` has the number of attempts."));
        }
        let document = FindingsDocument {
            schema_version: "crucible-mcp-findings-v1",
            run_id: &run_status.run.run_id,
            state: run_status.state.name(),
            attempts,
            failure: run_status.failure.as_ref(),
        };
        Answer::document("The findings of the run.\n", "findings", &document)
    }
}
