//! `build_context`: what a model may see of a repository.

use std::sync::Arc;

use async_trait::async_trait;
use crucible_model::Failure;
use crucible_run::ContextRequest;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::Answer;
use crate::arguments;
use crate::session::Session;
use crate::tool::{Effect, ToolKind, schema_of};

/// The tool.
pub(crate) struct BuildContext;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What is to be achieved, in one sentence; the files are ranked for it.
    goal: String,
    /// A directory of the repository. Default: the server's own repository.
    repo: Option<String>,
    /// Maximum number of files. Default: the user's setting.
    #[schemars(range(max = 1000))]
    max_files: Option<u32>,
    /// Maximum bytes of content. Default: the user's setting.
    #[schemars(range(max = 2_000_000))]
    max_bytes: Option<u32>,
}

/// The most bytes of content that a client may ask for.
const MAX_BYTES: u32 = 2_000_000;

#[async_trait(?Send)]
impl ToolKind for BuildContext {
    fn name(&self) -> &'static str {
        "build_context"
    }

    fn title(&self) -> &'static str {
        "Build a context pack"
    }

    fn description(&self) -> &'static str {
        "Pack the tracked files that matter for a goal, within a budget. Files with secrets are left out, and each omission is \
         listed with its reason. The same inputs give the same bytes."
    }

    fn effect(&self) -> Effect {
        Effect::Reads
    }

    fn schema(&self) -> Arc<JsonObject> {
        schema_of::<Arguments>()
    }

    async fn call(&self, session: &Session<'_>, arguments: JsonObject) -> Result<Answer, Failure> {
        let arguments: Arguments = arguments::read(self.name(), arguments)?;
        let repo = session
            .reach
            .directory(session.host, arguments.repo.as_deref())?;
        let request = ContextRequest {
            repo: &repo,
            file: None,
            goal: &arguments.goal,
            gate_output: None,
            max_files: arguments.max_files.map(u64::from),
            max_bytes: arguments.max_bytes.map(|most| most.min(MAX_BYTES).into()),
        };
        let named = request.read(None)?;
        let settings = session.host.settings(&repo, &[])?;
        let built = request
            .build(&session.host.runtime(), &settings, named)
            .await?;
        Answer::document("The context pack.\n", "context pack", &built.pack)
    }
}
