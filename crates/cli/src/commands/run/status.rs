//! `crucible run status`: where a run stands.

use clap::Args;
use crucible_model::ExitStatus;
use crucible_run::status;

use crate::app::App;
use crate::commands::run::{find, shared_sandbox, summary, world};
use crate::error::CommandError;
use crate::text::one_line;

/// Show where a run stands, its artifacts with their digests, and what to do next
#[derive(Args)]
pub(crate) struct Status {
    /// The run's id or its beginning; without it the newest
    run: Option<String>,
}

impl Status {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let sandbox = shared_sandbox(app);
        let config = app.config(app.env.working_directory(), &[])?;
        let world = world(app, &sandbox, &config)?;
        let (ledger, dir) = find(app, &world, self.run.as_deref())?;
        let status = status(&dir, &ledger)?;
        if app.output.is_json() {
            app.output.json(&status)?;
            return Ok(ExitStatus::Success);
        }
        for line in summary(&status) {
            app.output.line(&one_line(&line));
        }
        app.output.line("");
        for artifact in &status.artifacts {
            let digest = artifact.digest.map_or_else(|| "-".to_owned(), |digest| digest.short());
            app.output.line(&format!("{digest:<12}  {}", artifact.path));
        }
        for attempt in &status.attempts {
            app.output.line("");
            let end = serde_json::to_value(attempt.end).ok().and_then(|end| end.as_str().map(str::to_owned));
            app.output.line(&format!(
                "attempt {}: {}",
                attempt.number,
                end.unwrap_or_default().replace('_', " ")
            ));
            for finding in &attempt.findings {
                app.output.finding(finding);
            }
        }
        Ok(ExitStatus::Success)
    }
}
