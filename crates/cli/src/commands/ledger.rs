//! `crucible ledger`: the chain of events, checked and shown.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use crucible_ledger::Ledger;
use crucible_model::{Digest, ExitStatus, Failure, IdError, one_line};
use crucible_run::{LedgerCheck, LedgerWitnesses, check_ledger, run_id};

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
            .hint("Run `crucible run start` once; it creates the ledger.")
    })
}

impl Verify {
    fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let ledger = existing(app)?;
        let mut witnesses = LedgerWitnesses::of_heads(&self.anchor)?;
        let world = app.world_here()?;
        for repo in &self.repo {
            app.block_on(witnesses.add_commits(&world, &app.absolute(repo)))?;
        }
        let LedgerCheck { verdict, summary } = check_ledger(&world, &ledger, &witnesses)?;
        app.output
            .verdict(&verdict.report("crucible-ledger-verify-v1"), &summary)
    }
}

impl Log {
    fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let ledger = existing(app)?;
        let runs = ledger.runs()?;
        let ids = || runs.iter().map(|run| run.id.as_str());
        let run = self
            .run
            .as_deref()
            .map(|named| run_id(named, ids())?.parse().map_err(invalid_id))
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

fn invalid_id(error: IdError) -> Failure {
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
