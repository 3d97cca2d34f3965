//! `crucible crawl validate`: checks the schema and the safety of any plan.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use crucible_crawl::{Workspace, judge_plan, workspace_of};
use crucible_host::fs::read_regular_up_to;
use crucible_model::{ByteLimit, ExitStatus, Failure};

use super::flags::OutputArgs;
use crate::app::App;

/// The largest plan that is read.
const MAX_PLAN: ByteLimit = ByteLimit(4 * 1024 * 1024);

/// The schema name of the JSON result.
const SCHEMA: &str = "crucible-crawl-validate-v1";

/// Check the schema and the safety of a build plan
///
/// The plan is a viv-git-plan.v1 document from any source. Only the document and the directory of --repo
/// are read. Exit code 0: it passes, perhaps with warnings; 2: the safety rules reject it; 3: it does not
/// match its schema. For example: `crucible crawl validate plan.json`, or
/// `crucible crawl plan BurntSushi/ripgrep --offline | crucible crawl validate -`
#[derive(Args)]
pub(crate) struct Validate {
    /// The plan; `-` for standard input
    #[arg(value_name = "PLAN.json")]
    plan: PathBuf,
    /// Check against this repository: its links, and what its package.json declares
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output_args: OutputArgs,
}

impl Validate {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let bytes = self.read(app)?;
        let workspace = match &self.repo {
            Some(directory) => workspace_of(&app.absolute(directory))?,
            // It is unknown where the plan will run. Every path in a plan is relative, so any root gives
            // the same verdict.
            None => Workspace {
                root: PathBuf::from("/workspace"),
                ..Workspace::default()
            },
        };
        let (verdict, refused) = match judge_plan(&bytes, &workspace) {
            Ok(safety) => (safety.verdict, ExitStatus::PlanRejected),
            Err(verdict) => (verdict, ExitStatus::Schema),
        };
        let passes = verdict.passes();
        let _status = app.output.verdict(
            &verdict.report(SCHEMA),
            "the plan passes its schema and the safety rules",
        )?;
        Ok(if passes { ExitStatus::Success } else { refused })
    }

    fn read(&self, app: &App) -> Result<Vec<u8>, Failure> {
        if self.plan != Path::new("-") {
            return Ok(read_regular_up_to(&app.absolute(&self.plan), MAX_PLAN)?);
        }
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .take(MAX_PLAN.0.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| {
                Failure::usage(format!("cannot read the plan from standard input: {error}"))
                    .hint("Pipe it in, or name its file.")
            })?;
        if bytes.len() as u64 > MAX_PLAN.0 {
            return Err(
                Failure::usage(format!("the plan has more than {} bytes", MAX_PLAN.0))
                    .hint("Check that this file is a build plan."),
            );
        }
        Ok(bytes)
    }
}
