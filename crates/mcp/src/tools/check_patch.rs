//! `check_patch`: the patch gate on its own.

use std::sync::Arc;

use async_trait::async_trait;
use crucible_model::{Failure, Outcome};
use crucible_run::PLAN;
use crucible_run::configured::PatchMeasure;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::Answer;
use crate::arguments;
use crate::session::Session;
use crate::tool::{Effect, ToolKind, schema_of};

/// The longest patch, in bytes: a message has to hold it.
const MAX_PATCH: usize = 4 << 20;

/// The tool.
pub(crate) struct CheckPatch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The patch, a git unified diff.
    patch: String,
    /// The policy: {"allow_roots": ["src/"], "max_files": 5, "max_added_lines": 400}. Either this or `run`.
    policy: Option<JsonObject>,
    /// The run whose signed plan is the measure. Either this or `policy`.
    run: Option<String>,
    /// A directory of the repository. Default: the server's own repository, or that of the run.
    repo: Option<String>,
}

#[async_trait(?Send)]
impl ToolKind for CheckPatch {
    fn name(&self) -> &'static str {
        "check_patch"
    }

    fn title(&self) -> &'static str {
        "Check a patch"
    }

    fn description(&self) -> &'static str {
        "Judge a patch against a policy, or against the signed plan of a run. Nothing is applied. The answer is the document that \
         `crucible patch check --json` prints: a verdict and its findings."
    }

    fn effect(&self) -> Effect {
        Effect::Reads
    }

    fn schema(&self) -> Arc<JsonObject> {
        schema_of::<Arguments>()
    }

    async fn call(&self, session: &Session<'_>, arguments: JsonObject) -> Result<Answer, Failure> {
        let arguments: Arguments = arguments::read(self.name(), arguments)?;
        arguments::limited("patch", &arguments.patch, MAX_PATCH)?;
        let named = |named: Option<&str>| session.reach.directory(session.host, named);
        let (measure, directory) = match (&arguments.policy, &arguments.run) {
            (Some(policy), None) => {
                let policy = serde_json::Value::Object(policy.clone()).to_string();
                let measure = PatchMeasure::of_policy(policy.as_bytes(), "`policy`")?;
                (measure, named(arguments.repo.as_deref())?)
            }
            (None, Some(run)) => {
                let (_, _, world) = session.runs_here()?;
                let run = session.run(&world, run)?;
                let directory = match arguments.repo.as_deref() {
                    Some(repo) => named(Some(repo))?,
                    None => run.repository.clone(),
                };
                let settings = || session.host.settings(&directory, &[]);
                let measure = PatchMeasure::of_plan(&run.dir.path(PLAN), settings)?;
                (measure, directory)
            }
            _ => {
                return Err(Failure::usage("name either `policy` or `run`")
                    .hint("`policy` is a policy as JSON; `run` is a run with a signed plan."));
            }
        };
        let runtime = session.host.runtime();
        let patch = arguments.patch.as_bytes();
        let report = measure.judge(&runtime, &directory, patch).await?;
        let sentence = match report.verdict {
            Outcome::Pass => "The patch may be applied.\n",
            Outcome::Fail => "The patch is refused.\n",
        };
        Answer::document(sentence, "verdict", &report)
    }
}
