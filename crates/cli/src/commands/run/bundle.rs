//! `crucible run bundle`: everything a colleague needs, in one archive.

use std::path::PathBuf;

use clap::Args;
use crucible_host::fs::write_atomic;
use crucible_model::{Digest, ExitStatus, counted};
use crucible_run::status;
use crucible_verify::failure_bundle;

use crate::app::App;
use crate::commands::run::{find, shared_sandbox, world};
use crate::error::CommandError;

/// Write a run's evidence as one zip archive, secrets redacted
#[derive(Args)]
pub(crate) struct Bundle {
    /// The run's id or its beginning
    run: String,
    /// Where to write it; without this, RUN.zip in the working directory
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Bundle {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let sandbox = shared_sandbox(app);
        let config = app.config(app.env.working_directory(), &[])?;
        let (ledger, dir) = find(app, &world(app, &sandbox, &config)?, Some(&self.run))?;
        let bytes = failure_bundle(dir.root()).map_err(crucible_run::RunError::from)?;
        let id = dir.root().file_name().unwrap_or_default().to_string_lossy();
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from(format!("{id}.zip")));
        let path = app.absolute(&out);
        write_atomic(&path, &bytes)?;
        let digest = Digest::of(&bytes);
        // A run that cannot be understood is what a bundle is for, too.
        match status(&dir, &ledger) {
            Ok(status) => status.edited.iter().for_each(|path| {
                let hint = "was changed after it was recorded; the bundle holds it as it is now";
                app.output.remark(&format!("{path} {hint}"));
            }),
            Err(error) => app.output.remark(&error.to_string()),
        }
        if app.output.is_json() {
            let report = serde_json::json!({ "schema_version": "crucible-bundle-v1", "path": path, "digest": digest, "size": bytes.len() });
            app.output.json(&report)?;
        } else {
            app.output.line(&format!(
                "{} ({}, sha256 {digest})",
                path.display(),
                counted(bytes.len() as u64, "byte")
            ));
        }
        Ok(ExitStatus::Success)
    }
}
