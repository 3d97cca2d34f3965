//! `crucible run start` and `crucible run new`.

use clap::Args;
use crucible_model::{ExitStatus, Failure};

use super::{ENDS, conclude};
use crate::app::App;
use crate::progress::Progress;
use crate::run_start::{Options, begin};

/// Start a run and advance it as far as possible
///
/// Your files do not change until `crucible run land`. For example: `crucible run start "fix the failing test
/// in parser" --repo . --provider gateway`
///
/// The gates are the commands of `--test`, such as `--test "npm test"`, else [gates] in the configuration,
/// else what `crucible gates` finds from the start directory.
#[derive(Args)]
#[command(after_help = ENDS)]
pub(crate) struct Start {
    #[command(flatten)]
    options: Options,
}

/// Create a run without advancing it
///
/// For example, to review its settings first: `crucible run new "fix the failing test in parser"`, then
/// `crucible run advance`.
#[derive(Args)]
pub(crate) struct New {
    #[command(flatten)]
    options: Options,
}

impl Start {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let mut progress = Progress::new(&app.output);
        let (config, sandbox, started) =
            app.block_on(begin(app, &self.options, |_| {}, &mut progress))?;
        if !app.output.is_json() {
            app.output
                .remark(&format!("run {}", started.dir.root().display()));
        }
        let world = app.world(&sandbox, &config)?;
        let ledger = app.ledger_path()?;
        let advanced = app.block_on(async {
            let (dir, ledger, advanced) = started
                .advance(&world, &ledger, None, &mut progress)
                .await?;
            Ok((dir, ledger, advanced?))
        });
        progress.finish();
        let (dir, ledger, _) = advanced?;
        conclude(app, &dir, &ledger)
    }
}

impl New {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let mut progress = Progress::new(&app.output);
        let (_, _, started) = app.block_on(begin(app, &self.options, |_| {}, &mut progress))?;
        progress.finish();
        conclude(app, &started.dir, &started.ledger)
    }
}
