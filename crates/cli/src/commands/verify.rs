//! `crucible verify`: the gates of a run once more.

use std::path::Path;

use clap::{Args, ValueEnum};
use crucible_model::{ExitStatus, Failure, RunId};
use crucible_run::{RunDir, verify_again};
use crucible_verify::GateLevel;

use crate::app::App;
use crate::progress::Progress;

/// Run the gates of a run's change again and judge them
///
/// The patch is checked and tested on a copy, as in the run. The run's record does not change. The repository
/// must be at the commit that the run started from. For example: `crucible verify --run RUN --gate full`
#[derive(Args)]
pub(crate) struct Verify {
    /// The run's id, a prefix of it, or its directory
    #[arg(long, value_name = "RUN")]
    run: String,
    /// Which gates to run: those of every attempt, or all
    #[arg(long, value_enum, default_value_t = Set::Lite)]
    gate: Set,
}

#[derive(Clone, Copy, ValueEnum)]
enum Set {
    Lite,
    Full,
}

impl Verify {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let world = app.world_here()?;
        let (ledger, dir) = match directory(&app.absolute(Path::new(&self.run))) {
            Some(dir) => (app.required_ledger()?, dir),
            None => app.find_run(&world, Some(&self.run))?,
        };
        let level = match self.gate {
            Set::Lite => GateLevel::Lite,
            Set::Full => GateLevel::Full,
        };
        let mut progress = Progress::new(&app.output);
        let verification = app.drive(verify_again(&world, &dir, &ledger, level, &mut progress));
        progress.finish();
        let verification = verification?;
        let report = verification.verdict.report("crucible-verify-v1");
        if app.output.is_json() {
            app.output.json(&verification.document())?;
            return Ok(report.verdict.exit_status());
        }
        for row in verification
            .report
            .iter()
            .flat_map(|report| &report.commands)
        {
            app.output
                .line(&format!("exit {}  {}", row.exit_code, row.cmd));
        }
        app.output.verdict(&report, "every gate accepts the change")
    }
}

/// The run directory at a path; nothing if it does not exist.
fn directory(path: &Path) -> Option<RunDir> {
    let name = path.file_name()?.to_str()?;
    (name.parse::<RunId>().is_ok() && path.join("run.json").is_file())
        .then(|| RunDir::from_path(path.to_owned()))
}
