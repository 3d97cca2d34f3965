//! `crucible eval import`: instances of SWE-bench become tasks.

use std::path::PathBuf;

use clap::Args;
use crucible_eval::import_swe_bench;
use crucible_model::{ExitStatus, Failure};

use crate::app::App;

/// Create tasks from a file in SWE-bench format
///
/// For example: `crucible eval import instances.jsonl --repos clones --out tasks`, then `crucible eval tasks
/// --repos clones --provider gateway`
#[derive(Args)]
pub(super) struct Import {
    /// The instances, one JSON object per line
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A directory of clones, each named OWNER__NAME, OWNER/NAME or NAME
    #[arg(long, value_name = "DIR")]
    repos: PathBuf,
    /// Write the tasks to this directory
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Import {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let [file, repos, out] =
            [&self.file, &self.repos, &self.out].map(|path| app.absolute(path));
        let imported = import_swe_bench(&file, &repos, &out)?;
        for (name, why) in &imported.skipped {
            app.output.remark(&format!("skipped {name}: {why}"));
        }
        let text = || app.output.line(&imported.summary());
        app.output.show(|| imported.document(), text)?;
        Ok(if imported.written.is_empty() {
            ExitStatus::Refused
        } else {
            ExitStatus::Success
        })
    }
}
