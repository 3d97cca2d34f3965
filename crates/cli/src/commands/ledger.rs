//! `crucible ledger`: the chain of events, checked and shown.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use crucible_ledger::{Anchor, Ledger};
use crucible_model::{Digest, ExitStatus};
use crucible_repo::Git;

use crate::app::App;
use crate::commands::run::shared_sandbox;
use crate::error::CommandError;
use crate::output::escaped;

/// Check and read the record of what happened
#[derive(Subcommand)]
pub(crate) enum LedgerCommand {
    Verify(Verify),
    Log(Log),
    Show(Show),
}

/// Re-compute the whole chain and name the first bad event
///
/// With --repo, the heads that landed commits carry in their trailers are checked, too: so a ledger whose end
/// was cut off does not pass.
#[derive(Args)]
pub(crate) struct Verify {
    /// A repository whose landed commits vouch for the ledger; may be given several times
    #[arg(long)]
    repo: Vec<PathBuf>,
    /// A head that is known from elsewhere, as SEQ:HASH; may be given several times
    #[arg(long, value_name = "SEQ:HASH")]
    anchor: Vec<String>,
}

/// List the events
#[derive(Args)]
pub(crate) struct Log {
    /// Only those of this run
    #[arg(long)]
    run: Option<String>,
}

/// Print an artifact by its digest
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
    let path = app.home()?.join("ledger.db");
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
                Ok(git.trailers("Crucible-Ledger").await?)
            })?;
            anchors.extend(trailers.iter().filter_map(|text| parse_anchor(text)));
        }
        let head = ledger.head()?;
        let verdict = ledger.verify(&anchors)?;
        let passed = format!("{} events, {} anchors, head {}", head.seq, anchors.len(), head.hash);
        app.output.verdict(&verdict.report("crucible-ledger-verify-v1"), &passed)
    }
}

fn parse_anchor(text: &str) -> Option<Anchor> {
    let (seq, hash) = text.trim().split_once(':')?;
    Some(Anchor { seq: seq.parse().ok()?, hash: hash.parse().ok()? })
}

impl Log {
    fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let ledger = existing(app)?;
        let run = self.run.as_deref().map(str::parse).transpose();
        let run = run.map_err(|error: crucible_model::IdError| CommandError::usage(error.to_string()))?;
        let events = ledger.events(run.as_ref())?;
        if app.output.is_json() {
            let rows: Vec<_> = events
                .iter()
                .map(|event| {
                    serde_json::json!({ "seq": event.seq, "ts": event.ts, "run": event.run, "role": event.role, "event": event.event,
                        "path": event.path, "body": event.body, "prev": event.prev, "hash": event.hash })
                })
                .collect();
            app.output
                .json(&serde_json::json!({ "schema_version": "crucible-ledger-log-v1", "events": rows }))?;
        } else {
            for event in &events {
                let path = event.path.as_deref().unwrap_or_default();
                let line = format!(
                    "{:>5} {} {} {} {} {path}",
                    event.seq, event.ts, event.run, event.role, event.event
                );
                app.output.line(&escaped(&line));
            }
        }
        Ok(ExitStatus::Success)
    }
}

impl Show {
    fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let digest: Digest = self.digest.parse().map_err(|error: crucible_model::DigestError| {
            CommandError::usage(error.to_string())
                .hint("`crucible run status` lists the artifacts of a run with their digests.")
        })?;
        let ledger = existing(app)?;
        let bytes = ledger
            .artifact(&digest)?
            .ok_or_else(|| CommandError::usage(format!("the ledger holds no artifact {digest}")))?;
        if app.output.is_json() {
            let text = String::from_utf8_lossy(&bytes);
            app.output.json(&serde_json::json!({ "schema_version": "crucible-artifact-v1", "digest": digest, "size": bytes.len(), "text": text }))?;
        } else {
            let _closed_pipe_is_fine = std::io::Write::write_all(&mut std::io::stdout(), &bytes);
        }
        Ok(ExitStatus::Success)
    }
}
