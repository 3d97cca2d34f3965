//! `crucible run bundle`: everything a colleague needs, in one archive.

use std::path::{Path, PathBuf};

use clap::Args;
use crucible_host::fs::{read_regular_up_to, write_atomic};
use crucible_model::{ByteLimit, Digest, ExitStatus, Failure, counted};
use crucible_run::{FilesListed, RunBundle, status};

use crate::app::App;

/// Write a run's evidence to a zip archive without secrets
#[derive(Args)]
pub(crate) struct Bundle {
    /// The run's id or a prefix of it
    run: String,
    /// The archive to write; a different existing file is kept [default: RUN.zip in the working directory]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// Refuses a place where something else lies. The same bundle once more changes nothing there.
fn require_free(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let most = ByteLimit(bytes.len() as u64);
    match path.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(_) if read_regular_up_to(path, most).is_ok_and(|present| present == bytes) => Ok(()),
        Ok(_) => Err(Failure::usage(format!(
            "{} already exists and differs from this bundle",
            path.display()
        ))
        .hint("Name another file with --out, or overwrite it with --force.")),
    }
}

impl Bundle {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let world = app.world_here()?;
        let (ledger, dir) = app.find_run(&world, Some(&self.run))?;
        let id = dir.root().file_name().unwrap_or_default().to_string_lossy();
        let RunBundle { bytes, left_out } = RunBundle::new(&dir, &ledger)?;
        let out = self
            .out
            .clone()
            .unwrap_or_else(|| PathBuf::from(format!("{id}.zip")));
        let path = app.absolute(&out);
        if !self.force {
            require_free(&path, &bytes)?;
        }
        write_atomic(&path, &bytes)?;
        if self.out.is_none() && path.ancestors().any(|part| part.join(".git").exists()) {
            let hint = "is an untracked file in a work tree; write it elsewhere with --out FILE";
            app.output.remark(&format!("{} {hint}", path.display()));
        }
        let digest = Digest::compute(&bytes);
        for path in &left_out.paths {
            app.output.remark(&format!(
                "{} is recorded by no event of the run; it was left out of the bundle",
                path.display()
            ));
        }
        if let FilesListed::First(most) = left_out.listed {
            app.output.remark(&format!(
                "the run directory holds more than {most} files; unrecorded files were left out, and not all are listed"
            ));
        }
        // A run that cannot be understood is what a bundle is for, too.
        match status(&dir, &ledger) {
            Ok(status) => status.edited.iter().for_each(|path| {
                let hint = "was changed after it was recorded; the bundle has the current version";
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
