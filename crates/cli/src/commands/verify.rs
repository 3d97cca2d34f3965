//! `crucible verify`: the gates of a run once more.

use std::path::Path;

use clap::{Args, ValueEnum};
use crucible_ledger::Ledger;
use crucible_model::{ExitStatus, Finding, Outcome, RunId};
use crucible_run::{RunDir, missing_ledger, verify_again};
use crucible_verify::{GateLevel, VerifyReport};
use serde::Serialize;

use crate::app::App;
use crate::error::CommandError;
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

/// What `--json` prints.
#[derive(Serialize)]
struct VerifyOutput<'a> {
    schema_version: &'static str,
    verdict: Outcome,
    findings: &'a [Finding],
    report: Option<&'a VerifyReport>,
}

impl Verify {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let sandbox = app.runtime().sandbox;
        let config = app.config(app.env.working_directory(), &[])?;
        let world = app.world(&sandbox, &config)?;
        let (ledger, dir) = match directory(&app.absolute(Path::new(&self.run))) {
            Some(dir) => {
                let Some(ledger) = Ledger::open_existing(&app.ledger_path()?)? else {
                    return Err(missing_ledger(&app.ledger_path()?).into());
                };
                (ledger, dir)
            }
            None => app.find_run(&world, Some(&self.run))?,
        };
        let level = match self.gate {
            Set::Lite => GateLevel::Lite,
            Set::Full => GateLevel::Full,
        };
        let mut progress = Progress::new(&app.output);
        let again = app.block_on(async {
            Ok(verify_again(&world, &dir, &ledger, level, &mut progress).await?)
        });
        progress.finish();
        let again = again?;
        let report = again.verdict.report("crucible-verify-v1");
        if app.output.is_json() {
            app.output.json(&VerifyOutput {
                schema_version: "crucible-verify-v1",
                verdict: report.verdict,
                findings: &report.findings,
                report: again.report.as_ref(),
            })?;
            return Ok(match report.verdict {
                Outcome::Pass => ExitStatus::Success,
                Outcome::Fail => ExitStatus::Refused,
            });
        }
        for row in again.report.iter().flat_map(|report| &report.commands) {
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
        .then(|| RunDir::at(path.to_owned()))
}
