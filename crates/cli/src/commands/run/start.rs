//! `crucible run start` and `crucible run new`.

use clap::Args;
use crucible_model::{ExitStatus, Failure};

use crate::app::App;
use crate::progress::Progress;
use crate::run_start::{ENDS, Options, begin, conclude, start_and_advance};

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
    /// What to achieve, in one sentence
    goal: String,
    #[command(flatten)]
    options: Options,
}

/// Create a run without advancing it
///
/// For example, to review its settings first: `crucible run new "fix the failing test in parser"`, then
/// `crucible run advance`.
#[derive(Args)]
pub(crate) struct New {
    /// What to achieve, in one sentence
    goal: String,
    #[command(flatten)]
    options: Options,
}

impl Start {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        start_and_advance(app, &self.goal, &self.options, |_| {})
    }
}

impl New {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let mut progress = Progress::new(&app.output);
        let begun = begin(app, &self.goal, &self.options, |_| {}, &mut progress);
        let (_, _, started) = app.block_on(begun)?;
        progress.finish();
        conclude(app, &started.dir, &started.ledger)
    }
}
