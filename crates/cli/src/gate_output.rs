//! Gates and their results, as `crucible gates` and `crucible init` run and print them.

use std::path::Path;

use crucible_model::Failure;
use crucible_run::{GateCheck, RunError, check_gates};
use crucible_sandbox::Strength;
use crucible_settings::Settings;
use crucible_verify::GateSpec;

use crate::app::App;
use crate::progress::Progress;

/// Runs these gates on copies of the repository at `top`. The inner error is what stands in the way of a copy.
pub(crate) fn checked(
    app: &App,
    config: &Settings,
    top: &Path,
    gates: &[GateSpec],
    strength: Strength,
) -> Result<Result<Vec<GateCheck>, RunError>, Failure> {
    let sandbox = app.runtime().sandbox;
    let world = app.world(&sandbox, config)?;
    let mut progress = Progress::new(&app.output);
    let checks = app.block_on(async {
        Ok(match world.repository(top).await {
            Ok(git) => check_gates(&world, git, gates, strength, &mut progress).await,
            Err(error) => Err(error),
        })
    });
    progress.finish();
    checks
}

/// Prints how gates fare, for people.
pub(crate) fn show_results(app: &App, checks: &[GateCheck]) {
    for line in checks.iter().flat_map(GateCheck::lines) {
        app.output.line(&line);
    }
}
