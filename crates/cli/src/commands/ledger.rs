//! `crucible ledger`: the chain of events, checked and shown.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use crucible_ledger::{Anchor, Ledger};
use crucible_model::{Code, Digest, ExitStatus, Finding, IdError, RunId, counted};
use crucible_repo::Git;
use crucible_run::{EVENTS, LEDGER_TRAILER, check_recording};

use crate::app::App;
use crate::commands::run::{known, shared_sandbox, world};
use crate::error::CommandError;
use crate::text::one_line;

const UNANCHORED: Code = Code::new("ledger-unanchored");
const RUN_UNKNOWN: Code = Code::new("ledger-run-unknown");

/// What no reading of the database alone can find.
const NOT_DETECTED: &str = "no landed commit vouches for this ledger: an emptied database, and a history written anew with its hashes, are not detected; \
                            name the repositories with --repo, or a head with --anchor";

/// Check and read the record of what happened
#[derive(Subcommand)]
pub(crate) enum LedgerCommand {
    Verify(Verify),
    Log(Log),
    Show(Show),
}

/// Re-compute the whole chain and name the first bad event
///
/// With --repo, the heads that landed commits carry in their trailers are checked, too. So a ledger that was cut
/// before the head of the newest landed commit does not pass. Without, an emptied or rewritten ledger passes. For example: `crucible ledger verify --repo .`
#[derive(Args)]
pub(crate) struct Verify {
    /// A repository whose landed commits vouch for the ledger; may be given several times
    #[arg(long, value_name = "DIR")]
    repo: Vec<PathBuf>,
    /// A head that is known from elsewhere, as SEQ:HASH; may be given several times
    #[arg(long, value_name = "SEQ:HASH")]
    anchor: Vec<String>,
}

/// List the events
#[derive(Args)]
pub(crate) struct Log {
    /// Only those of this run, named by its id or its beginning
    #[arg(long)]
    run: Option<String>,
}

/// Print an artifact by its digest
///
/// `crucible run status --json` has the digests of a run. The bytes are printed as they are, on a terminal escaped.
#[derive(Args)]
pub(crate) struct Show {
    /// The artifact's SHA-256
    digest: String,
}

impl LedgerCommand {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        match self {
            Self::Verify(verify) => verify.run(app),
            Self::Log(log) => log.run(app),
            Self::Show(show) => show.run(app),
        }
    }
}

fn existing(app: &App) -> Result<Ledger, CommandError> {
    let path = app.ledger_path()?;
    Ledger::open_existing(&path)?.ok_or_else(|| {
        CommandError::usage(format!("there is no ledger at {} yet", path.display()))
            .hint("It is made by the first `crucible run start`.")
    })
}

impl Verify {
    fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let ledger = existing(app)?;
        let mut anchors = Vec::new();
        for text in &self.anchor {
            anchors.push(parse_anchor(text).ok_or_else(|| {
                CommandError::usage(format!("{:?} is no anchor", text))
                    .hint("An anchor is SEQ:HASH, as in a commit's Crucible-Ledger trailer.")
            })?);
        }
        let sandbox = shared_sandbox(app);
        for repo in &self.repo {
            let path = app.absolute(repo);
            let trailers = app.block_on(async {
                let git = Git::open(Arc::clone(&sandbox), &app.env, &path).await?;
                Ok(git.trailers(LEDGER_TRAILER).await?)
            })?;
            anchors.extend(trailers.iter().filter_map(|text| parse_anchor(text)));
        }
        let head = ledger.head()?;
        let mut verdict = ledger.verify(&anchors)?;
        if anchors.is_empty() {
            verdict.push(Finding::info(
                UNANCHORED,
                "the head of the chain",
                NOT_DETECTED,
            ));
        }
        let config = app.config(app.env.working_directory(), &[])?;
        let world = world(app, &sandbox, &config)?;
        let mut recordings = 0;
        for run in unknown_runs(&world.runs_root, &ledger)? {
            let hint = "its directory holds events, and the ledger knows none of them: the ledger was emptied or replaced, or the directory belongs to another one";
            verdict.push(Finding::warning(RUN_UNKNOWN, format!("run {run}"), hint));
        }
        // The digests of a ledger that does not hold together prove nothing.
        let runs = if verdict.passes() {
            ledger.runs()?
        } else {
            Vec::new()
        };
        for run in runs {
            // A run whose directory was removed, or lies elsewhere, has no recording here.
            let Ok(dir) = world.open_run(run.id.as_str()) else {
                continue;
            };
            verdict.merge(check_recording(&dir, &run.id, &ledger)?);
            recordings += 1;
        }
        let passed = format!(
            "{}, {}, {}, head {}",
            counted(head.seq, "event"),
            counted(anchors.len() as u64, "anchor"),
            counted(recordings, "recording"),
            head.hash
        );
        app.output
            .verdict(&verdict.report("crucible-ledger-verify-v1"), &passed)
    }
}

/// The runs of which a directory tells and the ledger does not, in order.
fn unknown_runs(runs_root: &Path, ledger: &Ledger) -> Result<Vec<RunId>, CommandError> {
    let Ok(entries) = std::fs::read_dir(runs_root) else {
        return Ok(Vec::new());
    };
    let mut unknown = Vec::new();
    for entry in entries.flatten() {
        let Some(run) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<RunId>().ok())
        else {
            continue;
        };
        let tells = entry
            .path()
            .join(EVENTS)
            .metadata()
            .is_ok_and(|events| events.is_file() && events.len() > 0);
        if tells && ledger.run(&run)?.is_none() && ledger.events(Some(&run))?.is_empty() {
            unknown.push(run);
        }
    }
    unknown.sort();
    Ok(unknown)
}

fn parse_anchor(text: &str) -> Option<Anchor> {
    let (seq, hash) = text.trim().split_once(':')?;
    Some(Anchor {
        seq: seq.parse().ok()?,
        hash: hash.parse().ok()?,
    })
}

impl Log {
    fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let ledger = existing(app)?;
        let runs = ledger.runs()?;
        let ids = || runs.iter().map(|run| run.id.as_str());
        let run = self
            .run
            .as_deref()
            .map(|named| known(named, ids())?.parse().map_err(unknown))
            .transpose()?;
        let events = ledger.events(run.as_ref())?;
        if let Some(run) = run.filter(|_| events.is_empty()) {
            return Err(
                CommandError::usage(format!("the ledger knows no run {run}"))
                    .hint("`crucible run list` shows the ones there are."),
            );
        }
        if app.output.is_json() {
            let rows: Vec<_> = events
                .iter()
                .map(|event| {
                    serde_json::json!({ "seq": event.seq, "ts": event.ts, "run": event.run, "role": event.role, "event": event.event,
                        "path": event.path, "artifacts": event.artifacts, "body": event.body, "prev": event.prev, "hash": event.hash })
                })
                .collect();
            app.output.json(
                &serde_json::json!({ "schema_version": "crucible-ledger-log-v1", "events": rows }),
            )?;
        } else {
            for event in &events {
                let path = event.path.as_deref().unwrap_or_default();
                let line = format!(
                    "{:>5} {} {} {} {} {path}",
                    event.seq, event.ts, event.run, event.role, event.event
                );
                app.output.line(&one_line(&line));
            }
        }
        Ok(ExitStatus::Success)
    }
}

fn unknown(error: IdError) -> CommandError {
    CommandError::usage(error.to_string())
}

impl Show {
    fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let digest: Digest =
            self.digest
                .parse()
                .map_err(|error: crucible_model::DigestError| {
                    CommandError::usage(error.to_string()).hint(
                    "`crucible run status --json` lists the artifacts of a run with their digests.",
                )
                })?;
        let ledger = existing(app)?;
        let bytes = ledger.artifact(&digest)?.ok_or_else(|| {
            CommandError::usage(format!("the ledger holds no artifact {digest}")).hint(
                "`crucible run status --json` lists the artifacts of a run with their digests.",
            )
        })?;
        if app.output.is_json() {
            let text = String::from_utf8_lossy(&bytes);
            app.output.json(&serde_json::json!({ "schema_version": "crucible-artifact-v1", "digest": digest, "size": bytes.len(), "text": text }))?;
        } else {
            app.output.bytes(&bytes);
        }
        Ok(ExitStatus::Success)
    }
}
