//! `crucible context`: builds the context pack of a request or a goal without a run.
//!
//! The pack is the one that a run makes: the same documents first, the same denials, the same budget. Without a request
//! that
//! names files, all files that git tracks are ranked for a goal, as a run's chair ranks them.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{ArgGroup, Args, Subcommand};
use crucible_model::{ExitStatus, Failure, one_line, to_canonical_json};
use crucible_run::{ContextRequest, WrittenDocument};
use serde::Serialize;

use crate::app::App;

/// Build the context pack that a model may see
#[derive(Subcommand)]
pub(crate) enum ContextCommand {
    Build(Build),
}

/// Build a context pack from repository files within a budget
///
/// The same inputs give the same bytes. Without --out the pack goes to standard output. A file that holds a
/// secret, has a denied path or does not fit is left out, and the pack lists it. For example: `crucible
/// context build --repo . --request file_request.json --out context_pack.json`, or without a request
/// `crucible context build --goal "the parser must accept CRLF" --max-bytes 60000`.
#[derive(Args)]
#[command(
    after_help = "Exits 7 when the mandatory documents do not fit the budget, 3 for an invalid request, 8 when the goal or the request itself holds a secret; `crucible --help` lists all exit codes."
)]
#[command(group = ArgGroup::new("needs").required(true).args(["request", "goal"]))]
pub(crate) struct Build {
    /// A directory in the repository
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo: PathBuf,
    /// The file request (format: docs/contracts/file_request.md)
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// Rank all tracked files for this goal and pack the best ones
    #[arg(long, value_name = "TEXT")]
    goal: Option<String>,
    /// Output of a failing test run, to rank its tests and stack frames higher. With --goal
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    gate_output: Option<PathBuf>,
    /// Maximum number of files. With --goal [default: run.max_files, 30]
    #[arg(long, value_name = "N", conflicts_with = "request", value_parser = limit_parser())]
    max_files: Option<u64>,
    /// Maximum bytes of content. With --goal [default: run.max_total_bytes, 60000]
    #[arg(long, value_name = "N", conflicts_with = "request", value_parser = limit_parser())]
    max_bytes: Option<u64>,
    /// Write the pack to this file [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the file request made from --goal to this file
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    request_out: Option<PathBuf>,
    /// Write the ranking with the parts of each score to this file. With --goal
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    ranking_out: Option<PathBuf>,
}

impl ContextCommand {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let Self::Build(build) = self;
        build.run(app)
    }
}

impl Build {
    fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let repo = app.absolute(&self.repo);
        let request = ContextRequest {
            repo: &repo,
            file: self.request.as_deref().map(|path| app.absolute(path)),
            goal: self.goal.as_deref().unwrap_or_default(),
            gate_output: self.gate_output.as_deref().map(|path| app.absolute(path)),
            max_files: self.max_files,
            max_bytes: self.max_bytes,
        };
        let named = request.read(self.request.as_deref())?;
        let config = app.config(&repo, &[])?;
        let runtime = app.runtime();
        let built = app.block_on(request.build(&runtime, &config, named))?;
        let written = |path: &Option<PathBuf>, bytes: Result<Vec<u8>, Failure>| {
            path.as_deref()
                .map(|path| WrittenDocument::write(path, &app.absolute(path), &bytes?))
                .transpose()
        };
        let bytes = built.pack.to_bytes()?;
        let request = written(&self.request_out, canonical(&built.request))?;
        let ranking = match &built.ranking {
            Some(ranking) => written(&self.ranking_out, canonical(ranking))?,
            None => None,
        };
        let Some(out) = &self.out else {
            app.output.bytes(&bytes);
            if !app.output.is_json() {
                built
                    .lines()
                    .iter()
                    .for_each(|line| app.output.remark(&one_line(line)));
            }
            return Ok(ExitStatus::Success);
        };
        let out = WrittenDocument::write(out, &app.absolute(out), &bytes)?;
        app.output.show(
            || built.document(&out, request, ranking),
            || {
                app.output.line(&one_line(&format!(
                    "packed to {}: {}",
                    out.path, out.digest
                )));
                built
                    .lines()
                    .iter()
                    .for_each(|line| app.output.line(&one_line(line)));
            },
        )
    }
}

fn canonical<T: Serialize>(document: &T) -> Result<Vec<u8>, Failure> {
    Ok(to_canonical_json(document)?)
}

/// Parses a limit of a pack; 0 is allowed.
fn limit_parser() -> RangedU64ValueParser<u64> {
    RangedU64ValueParser::new().range(0..=u64::from(u32::MAX))
}
