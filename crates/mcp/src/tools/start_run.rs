//! `start_run`: a governed change begins.

use std::sync::Arc;

use async_trait::async_trait;
use crucible_model::{Failure, RunId};
use crucible_run::configured::StartRequest;
use crucible_run::{NoopObserver, check_subject, status};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::arguments;
use crate::session::Session;
use crate::tool::{Effect, ToolKind, schema_of};
use crate::work;

/// The most files that a client names.
const MAX_FILES: usize = 100;
/// The service that answers prompts by files in the run's directory.
const CLIENT: &str = "manual_outbox";

/// The tool.
pub(crate) struct StartRun;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What to achieve, in one sentence.
    goal: String,
    /// A directory of the repository. Default: the server's own repository.
    repo: Option<String>,
    /// Files, directories or globs that may change, relative to the repository's top. Default: chosen for the goal.
    #[serde(default)]
    #[schemars(length(max = 100))]
    files: Vec<String>,
    /// The subject of the commit. Default: the goal, shortened.
    message: Option<String>,
    /// Who proposes the change. Default: "configured".
    #[serde(default)]
    proposer: Proposer,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Proposer {
    /// The model or the coding agent of the user's settings.
    #[default]
    Configured,
    /// You: the run waits until `submit_proposal` is called.
    Client,
}

#[derive(Serialize)]
struct Started {
    schema_version: &'static str,
    run_id: RunId,
    state: &'static str,
    next: &'static str,
}

#[async_trait(?Send)]
impl ToolKind for StartRun {
    fn name(&self) -> &'static str {
        "start_run"
    }

    fn title(&self) -> &'static str {
        "Start a change"
    }

    fn description(&self) -> &'static str {
        "Start a run, which plans, checks and verifies a change in the background. The answer comes at once and has the run's id. \
         The repository must have no uncommitted changes, and its files do not change. Only a verified change can land. The \
         user's settings decide the gates, the model and the budget."
    }

    fn effect(&self) -> Effect {
        Effect::Works
    }

    fn schema(&self) -> Arc<JsonObject> {
        schema_of::<Arguments>()
    }

    async fn call(&self, session: &Session<'_>, arguments: JsonObject) -> Result<Answer, Failure> {
        let arguments: Arguments = arguments::read(self.name(), arguments)?;
        if arguments.files.len() > MAX_FILES {
            return Err(Failure::usage(format!(
                "`files` has {} entries; the limit is {MAX_FILES}",
                arguments.files.len()
            ))
            .hint("Name directories or globs."));
        }
        if let Some(message) = &arguments.message {
            check_subject(message)
                .map_err(|error| Failure::usage(format!("`message`: {error}")))?;
        }
        work::require_room(session)?;
        let host = session.host;
        let directory = session.reach.directory(host, arguments.repo.as_deref())?;
        let top = host.repository_of(&directory);
        let request = StartRequest {
            goal: &arguments.goal,
            directory: &directory,
            top: top.as_deref(),
            model: None,
            files: &arguments.files,
            tests: &[],
            may_drop: &[],
            message: arguments.message.as_deref(),
            dispatch: None,
            held_out: &[],
            cassette: None,
        };
        request.check()?;
        let flags = match arguments.proposer {
            Proposer::Configured => Vec::new(),
            Proposer::Client => vec![
                ("dispatch.patchmaker", CLIENT.to_owned()),
                ("dispatch.fixer", CLIENT.to_owned()),
                ("run.agent", String::new()),
            ],
        };
        let settings = host.settings(&directory, &flags)?;
        let runtime = host.runtime();
        let world = host.world(&runtime.sandbox, &settings)?;
        let started = request
            .start(&runtime, &settings, &world, host, |_| {}, &mut NoopObserver)
            .await?;
        let begun = status(&started.dir, &started.ledger)?;
        let (run_id, state) = (begun.run.run_id, begun.state.name());
        // Its process opens the ledger and the services itself.
        drop(started);
        work::advance(session, &runtime, &begun.run.repo, &run_id).await?;
        let document = Started {
            schema_version: "crucible-mcp-started-v1",
            run_id,
            state,
            next: "Follow the run with run_status.",
        };
        Answer::document("The run has started.\n", "run", &document)
    }
}
