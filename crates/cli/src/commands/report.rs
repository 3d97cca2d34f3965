//! `crucible report`: a run as one file.

use std::path::PathBuf;

use clap::Args;
use crucible_host::fs::write_atomic;
use crucible_model::{Digest, ExitStatus, Failure, counted};
use crucible_serve::{html_report, markdown_report};

use crate::app::App;

/// Write a run as one HTML file or as Markdown
///
/// Both have the goal, the context, the plan, each attempt with its diff and findings, the gates, the costs and the events. Secrets are
/// replaced. The HTML file opens anywhere, loads nothing and has no script. For example: `crucible report RUN --html run.html`
#[derive(Args)]
pub(crate) struct Report {
    /// The run's id or a prefix of it [default: newest run of this repository]
    run: Option<String>,
    /// Write one HTML file; an existing file is replaced
    #[arg(long, value_name = "FILE", conflicts_with = "markdown")]
    html: Option<PathBuf>,
    /// Write Markdown for a pull request [default: standard output]
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    markdown: Option<Option<PathBuf>>,
}

impl Report {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let run = app.run_view(self.run.as_deref())?;
        let (file, text) = match (&self.html, &self.markdown) {
            (Some(file), _) => (Some(file), html_report(&run)?),
            (None, Some(file)) => (file.as_ref(), markdown_report(&run)),
            (None, None) if app.output.is_json() => {
                app.output.json(&run)?;
                return Ok(ExitStatus::Success);
            }
            (None, None) => (None, markdown_report(&run)),
        };
        let Some(file) = file else {
            if app.output.is_json() {
                let document =
                    serde_json::json!({ "schema_version": "crucible-report-v1", "markdown": text });
                app.output.json(&document)?;
            } else {
                app.output.line(text.trim_end());
            }
            return Ok(ExitStatus::Success);
        };
        let path = app.absolute(file);
        write_atomic(&path, text.as_bytes())?;
        let digest = Digest::compute(text.as_bytes());
        if app.output.is_json() {
            let document = serde_json::json!({ "schema_version": "crucible-report-v1", "path": path, "digest": digest, "size": text.len() });
            app.output.json(&document)?;
        } else {
            app.output.line(&format!(
                "{} ({})",
                path.display(),
                counted(text.len() as u64, "byte")
            ));
        }
        Ok(ExitStatus::Success)
    }
}
