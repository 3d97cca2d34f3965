//! `crucible context`: what a model may see of a repository, on its own.
//!
//! The pack is the one that a run makes: the same documents first, the same denials, the same budget. Without a request that
//! names files, all files that git tracks are ranked for a goal, as a run's chair ranks them.

use std::path::{Path, PathBuf};

use clap::builder::RangedU64ValueParser;
use clap::{ArgGroup, Args, Subcommand};
use crucible_host::fs::{FsError, read_prefix, read_up_to, write_atomic};
use crucible_model::{
    ByteLimit, Digest, ExitStatus, FileLimit, counted, one_line, to_canonical_json,
};
use crucible_pack::{Budget, ContextPack, FileRequest, MAX_DOCUMENT_BYTES, Omitted};
use crucible_repo::Git;
use crucible_run::configured::{context_settings, pack_limits};
use crucible_run::{ContextRanking, RankedOutcome, RunError, pack_context, request_for_goal};
use crucible_settings::Settings;
use serde::Serialize;

use crate::app::App;
use crate::error::CommandError;

/// The longest goal, in bytes, as of a run.
const MAX_GOAL: usize = 16 * 1024;

/// How much of a gate's output is read, in bytes.
const MAX_OUTPUT: u64 = 8 * 1024 * 1024;

/// How many rows of a list are shown to a person; the documents hold them all.
const SHOWN: usize = 20;

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
    #[arg(long, value_name = "N", conflicts_with = "request", value_parser = limits())]
    max_files: Option<u64>,
    /// Maximum bytes of content. With --goal [default: run.max_total_bytes, 60000]
    #[arg(long, value_name = "N", conflicts_with = "request", value_parser = limits())]
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

/// What `--json` prints where the pack goes to a file.
#[derive(Serialize)]
struct Built<'a> {
    schema_version: &'static str,
    pack: Written,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranking: Option<Written>,
    files: usize,
    content_bytes: usize,
    summary: &'a str,
    omitted: &'a [Omitted],
}

/// A document that was written.
#[derive(Serialize)]
struct Written {
    path: String,
    digest: Digest,
    bytes: usize,
}

impl ContextCommand {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let Self::Build(build) = self;
        build.run(app)
    }
}

impl Build {
    fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let repo = app.absolute(&self.repo);
        let named = self
            .request
            .as_deref()
            .map(|path| read_request(app, path))
            .transpose()?;
        if let Some(goal) = self.goal.as_ref().filter(|goal| goal.len() > MAX_GOAL) {
            let message = format!("the goal has {} bytes; the limit is {MAX_GOAL}", goal.len());
            return Err(CommandError::new(ExitStatus::OverLimit, message).hint("Say it shorter."));
        }
        let config = app.config(&repo, &[])?;
        let settings = context_settings(&config)?;
        let printed = self
            .gate_output
            .as_deref()
            .map(|path| read_output(app, path))
            .transpose()?;
        let (request, ranking, pack) = app.block_on(async {
            let opened = Git::open(app.runtime().sandbox, &app.env, &repo);
            let Some(request) = named else {
                let git = opened.await?;
                let goal = self.goal.as_deref().unwrap_or_default();
                let budget = self.budget(&config)?;
                let (request, ranking) =
                    request_for_goal(&git, goal, budget, &settings, printed.as_deref()).await?;
                let pack =
                    pack_context(git.top(), &git.name(), &settings, &request).map_err(refused)?;
                return Ok((request, Some(ranking), pack));
            };
            // The files are read and searched while git is asked; only the name of the repository is git's to tell.
            let top = Git::find_top(&app.env, &repo)?;
            let packing = tokio::task::spawn_blocking(move || {
                let pack = pack_context(&top, "", &settings, &request);
                (request, pack)
            });
            let (git, packed) = tokio::join!(opened, packing);
            let git = git?;
            let (request, pack) = packed.map_err(|died| {
                CommandError::new(ExitStatus::Refused, format!("packing failed: {died}"))
            })?;
            Ok((
                request,
                None,
                ContextPack {
                    repo_slug: git.name(),
                    ..pack.map_err(refused)?
                },
            ))
        })?;
        let bytes = pack.to_bytes().map_err(no_form)?;
        let request = self
            .request_out
            .as_deref()
            .map(|path| write(app, path, &request))
            .transpose()?;
        let written = match (&self.ranking_out, &ranking) {
            (Some(path), Some(ranking)) => Some(write(app, path, ranking)?),
            _ => None,
        };
        let Some(out) = &self.out else {
            app.output.bytes(&bytes);
            if !app.output.is_json() {
                told(&pack, ranking.as_ref())
                    .iter()
                    .for_each(|line| app.output.remark(&one_line(line)));
            }
            return Ok(ExitStatus::Success);
        };
        let out = write_bytes(app, out, &bytes)?;
        if app.output.is_json() {
            app.output.json(&Built {
                schema_version: "crucible-context-build-v1",
                pack: out,
                request,
                ranking: written,
                files: pack.files.len(),
                content_bytes: pack.files.iter().map(|file| file.content.len()).sum(),
                summary: &pack.summary,
                omitted: &pack.omitted,
            })?;
        } else {
            app.output.line(&one_line(&format!(
                "packed to {}: {}",
                out.path, out.digest
            )));
            told(&pack, ranking.as_ref())
                .iter()
                .for_each(|line| app.output.line(&one_line(line)));
        }
        Ok(ExitStatus::Success)
    }

    fn budget(&self, config: &Settings) -> Result<Budget, CommandError> {
        let (limits, _) = pack_limits(config, config.llm.provider.as_deref().unwrap_or_default())?;
        Ok(Budget {
            max_files: FileLimit(self.max_files.unwrap_or(limits.max_files)),
            max_total_bytes: ByteLimit(self.max_bytes.unwrap_or(limits.max_total_bytes)),
        })
    }
}

/// A limit of a pack; nothing at all is one too.
fn limits() -> RangedU64ValueParser<u64> {
    RangedU64ValueParser::new().range(0..=u64::from(u32::MAX))
}

/// Why a request is not packed.
fn refused(error: RunError) -> CommandError {
    let repeats = matches!(error, RunError::SecretInRequest { .. });
    let error = CommandError::from(error);
    if repeats {
        error.hint("The pack repeats its goal, reason and paths; remove the secret from them.")
    } else {
        error
    }
}

fn read_request(app: &App, path: &Path) -> Result<FileRequest, CommandError> {
    let refuse = |status, why: String| {
        CommandError::new(status, format!("{} is not a valid file request: {why}", path.display()))
            .hint("See docs/contracts/file_request.md, or create one: `crucible context build --goal TEXT --request-out FILE`.")
    };
    // One byte more than is parsed, so that the reader of the document says what is too large.
    let bytes = match read_up_to(&app.absolute(path), ByteLimit(MAX_DOCUMENT_BYTES + 1)) {
        Ok(bytes) => bytes,
        Err(FsError::TooLarge { .. }) => {
            return Err(refuse(
                ExitStatus::Schema,
                format!("it has more than {MAX_DOCUMENT_BYTES} bytes"),
            ));
        }
        Err(error @ FsError::Io { .. }) => return Err(CommandError::usage(error.to_string())),
    };
    FileRequest::parse(&bytes).map_err(|error| refuse(ExitStatus::Schema, error.to_string()))
}

/// What a gate printed, up to as much as a run keeps of it.
fn read_output(app: &App, path: &Path) -> Result<Vec<u8>, CommandError> {
    let read = read_prefix(&app.absolute(path), ByteLimit(MAX_OUTPUT));
    Ok(read
        .map_err(|error| CommandError::usage(error.to_string()))?
        .bytes)
}

fn write<T: Serialize>(app: &App, path: &Path, document: &T) -> Result<Written, CommandError> {
    write_bytes(app, path, &to_canonical_json(document).map_err(no_form)?)
}

fn write_bytes(app: &App, path: &Path, bytes: &[u8]) -> Result<Written, CommandError> {
    write_atomic(&app.absolute(path), bytes)?;
    Ok(Written {
        path: path.display().to_string(),
        digest: Digest::of(bytes),
        bytes: bytes.len(),
    })
}

fn no_form(error: crucible_model::CanonicalError) -> CommandError {
    CommandError::new(ExitStatus::Refused, error.to_string())
}

/// The pack and the ranking for a person: what is in, what is not, and why.
fn told(pack: &ContextPack, ranking: Option<&ContextRanking>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(ranking) = ranking {
        lines.extend(told_of_ranking(ranking));
    }
    lines.push(pack.summary.clone());
    for omitted in pack.omitted.iter().take(SHOWN) {
        lines.push(format!(
            "  left out  {:<16} {}",
            omitted.reason.as_str(),
            omitted.path
        ));
    }
    if let Some(more) = pack
        .omitted
        .len()
        .checked_sub(SHOWN)
        .filter(|more| *more > 0)
    {
        lines.push(format!("  and {more} more; the pack lists them all"));
    }
    lines
}

fn told_of_ranking(ranking: &ContextRanking) -> Vec<String> {
    let looked_for = match ranking.looked_for.as_slice() {
        [] => "nothing, because the goal names no place".to_owned(),
        words => words.join(", "),
    };
    let count = counted(ranking.files.len() as u64, "tracked file");
    let mut lines = vec![format!("ranked {count} by: {looked_for}")];
    if ranking.names_not_looked_for > 0 {
        let more = counted(ranking.names_not_looked_for, "word");
        lines.push(format!("  {more} more words of the goal were not searched"));
    }
    if let Some(problem) = &ranking.history.problem {
        lines.push(format!("  git's history was not used: {problem}"));
    }
    let chosen: Vec<_> = ranking
        .files
        .iter()
        .filter(|file| file.outcome == RankedOutcome::Chosen)
        .collect();
    for file in chosen.iter().take(SHOWN) {
        lines.push(format!(
            "  {:>6}  {}  {}",
            file.score, file.path, file.reason
        ));
    }
    if let Some(more) = chosen.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        lines.push(format!("  and {more} more; --ranking-out writes them all"));
    }
    lines
}
