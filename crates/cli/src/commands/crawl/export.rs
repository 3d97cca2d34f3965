//! `crucible crawl export`: a whole crawl, written to files for another program.

use std::path::PathBuf;

use clap::Args;
use crucible_crawl::{CheckedArtifact, LookupMode, OutputDir};
use crucible_model::{ExitStatus, Failure, counted, one_line};

use super::flags::{Debating, OutputArgs, OutputFlag, Trace, Which};
use super::host::CommandHost;
use super::wanted::selection;
use crate::app::App;

/// Search, inspect, plan, and export the result for another program
///
/// Writes the search, the inspection, the plan, the recipe and a manifest. A plan that the safety rules
/// reject is not exported. For example:
/// `crucible crawl export BurntSushi/ripgrep --output-dir ./ripgrep-build`, or without a model:
/// `crucible crawl export ./my-project --offline`
#[derive(Args, Default)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) debating: Debating,
    #[command(flatten)]
    pub(crate) place: OutputFlag,
    #[command(flatten)]
    pub(crate) output_args: OutputArgs,
    #[command(flatten)]
    pub(crate) trace: Trace,
}

impl Export {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let requested = selection(app, &self.which, &self.output_args)?;
        let config = app.config(app.env.working_directory(), &self.debating.settings())?;
        let minds = self.debating.backends(app, &config, self.trace)?;
        // Refused before anything is fetched or sent, and checked again before anything is written.
        let named = self
            .place
            .output_dir
            .as_ref()
            .map(|dir| OutputDir::resolve(&app.absolute(dir)))
            .transpose()?;
        let intent = requested.intent(self.trace.dry_run).with(minds.options());
        CommandHost::run(app, &config, &intent, |context| {
            let minds = context.open_planner(minds)?;
            let (inspected, search) = context.inspect(&requested, LookupMode::Yes)?;
            let planned = context.plan(&inspected, &minds)?;
            let prepared = context.prepare(search, &inspected, &planned)?;
            if self.trace.dry_run {
                let dir = named.as_ref().map(|dir| dir.path().to_owned());
                let dir =
                    dir.map_or_else(|| Ok(app.home()?.join("exports/SESSION")), Ok::<_, Failure>)?;
                print(
                    app,
                    prepared.manifest(),
                    "would write",
                    &prepared.files(&dir),
                );
                return Ok(ExitStatus::Success);
            }
            let dir = match &named {
                Some(dir) => dir.clone(),
                None => {
                    OutputDir::in_home(&app.home()?, context.session()).map_err(Failure::from)?
                }
            };
            let exported = context.export(&prepared, &dir)?;
            let files: Vec<_> = exported
                .files
                .iter()
                .map(|file| exported.dir.join(file))
                .collect();
            print(app, prepared.manifest(), "wrote", &files);
            Ok(ExitStatus::Success)
        })
    }
}

/// Prints the manifest for the whole export, and its directory on standard error.
fn print(app: &App, manifest: Option<&CheckedArtifact>, did: &str, files: &[PathBuf]) {
    let dir = files
        .first()
        .and_then(|file| file.parent())
        .map(|dir| dir.display().to_string());
    let summary = format!(
        "{did} {} to {}",
        counted(files.len() as u64, "file"),
        dir.unwrap_or_default()
    );
    if app.output.is_json() {
        app.output.remark(&one_line(&summary));
        if let Some(manifest) = manifest {
            app.output.json_text(manifest.json());
        }
        return;
    }
    app.output.line(&one_line(&summary));
    for file in files {
        app.output.line(&one_line(&format!("  {}", file.display())));
    }
}
