//! `crucible ledger`: the chain of events, checked and shown.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use crucible_ledger::{Anchor, Ledger};
use crucible_model::{Digest, ExitStatus, Failure, IdError, counted, one_line};
use crucible_repo::{Git, RUN_TRAILER};
use crucible_run::{LEDGER_TRAILER, run_id, verify_ledger};

use crate::app::App;

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
/// before the landing of the newest landed commit does not pass. Without, an emptied or rewritten ledger passes. For example: `crucible ledger verify --repo .`
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
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        match self {
            Self::Verify(verify) => verify.run(app),
            Self::Log(log) => log.run(app),
            Self::Show(show) => show.run(app),
        }
    }
}

fn existing(app: &App) -> Result<Ledger, Failure> {
    let path = app.ledger_path()?;
    Ledger::open_existing(&path)?.ok_or_else(|| {
        Failure::usage(format!("there is no ledger at {} yet", path.display()))
            .hint("It is made by the first `crucible run start`.")
    })
}

impl Verify {
    fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let ledger = existing(app)?;
        let (mut anchors, mut landed) = (Vec::new(), BTreeSet::new());
        for text in &self.anchor {
            anchors.push(parse_anchor(text).ok_or_else(|| {
                Failure::usage(format!("{:?} is no anchor", text))
                    .hint("An anchor is SEQ:HASH, as in a commit's Crucible-Ledger trailer.")
            })?);
        }
        let sandbox = app.runtime().sandbox;
        for repo in &self.repo {
            let path = app.absolute(repo);
            let (heads, runs) = app.block_on(async {
                let git = Git::open(Arc::clone(&sandbox), &app.env, &path).await?;
                Ok((
                    git.trailers(LEDGER_TRAILER).await?,
                    git.trailers(RUN_TRAILER).await?,
                ))
            })?;
            anchors.extend(heads.iter().filter_map(|text| parse_anchor(text)));
            landed.extend(runs.iter().filter_map(|text| text.parse().ok()));
        }
        let head = ledger.head()?;
        let config = app.config(app.env.working_directory(), &[])?;
        let world = app.world(&sandbox, &config)?;
        let (verdict, recordings) = verify_ledger(&world, &ledger, &anchors, &landed)?;
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

fn parse_anchor(text: &str) -> Option<Anchor> {
    let (seq, hash) = text.trim().split_once(':')?;
    Some(Anchor {
        seq: seq.parse().ok()?,
        hash: hash.parse().ok()?,
    })
}

impl Log {
    fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let ledger = existing(app)?;
        let runs = ledger.runs()?;
        let ids = || runs.iter().map(|run| run.id.as_str());
        let run = self
            .run
            .as_deref()
            .map(|named| run_id(named, ids())?.parse().map_err(unknown))
            .transpose()?;
        let events = ledger.events(run.as_ref())?;
        if let Some(run) = run.filter(|_| events.is_empty()) {
            return Err(Failure::usage(format!("the ledger knows no run {run}"))
                .hint("`crucible run list` shows the ones there are."));
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

fn unknown(error: IdError) -> Failure {
    Failure::usage(error.to_string())
}

impl Show {
    fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let digest: Digest =
            self.digest
                .parse()
                .map_err(|error: crucible_model::DigestError| {
                    Failure::usage(error.to_string()).hint(
                    "`crucible run status --json` lists the artifacts of a run with their digests.",
                )
                })?;
        let ledger = existing(app)?;
        let bytes = ledger.artifact(&digest)?.ok_or_else(|| {
            Failure::usage(format!("the ledger holds no artifact {digest}")).hint(
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
