//! A crawl session in the ledger: its row, artifacts, messages and end. A dry run has none of them.
//!
//! A session is active until it is ended. A dropped session is aborted; the session of a killed process
//! is aborted when the next one begins. Every text is scanned for secrets: messages, queries and settings
//! are redacted. An artifact with a secret is refused, because its hash covers its exact bytes.
//!
//! A dry session never touches the disk: it has no ledger, reads no cache and holds no lock.

mod liveness;
mod snapshot;

pub use crucible_ledger::CrawlStatus as SessionStatus;
pub use liveness::abort_dead_sessions;
pub use snapshot::ConfigSnapshot;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crucible_host::lock::LockError;
use crucible_ledger::{
    CrawlFact, Ledger, LedgerError, Moment, NewCrawl, NewCrawlArtifact, NewCrawlMessage,
    crawl_run_id,
};
use crucible_model::{CanonicalError, Clock, RunId, Timestamp, to_canonical_json};
use crucible_secrets::Scanner;

use crate::artifact::{CheckedArtifact, PlanV1};
use crate::debate::{RedactedMessage, Transcript};
use crate::export::Exported;
use liveness::SessionLock;

/// The most characters of a debate's summary.
const MAX_SUMMARY: usize = 1000;

/// A crawl in progress; a dry run is not recorded.
pub struct CrawlSession {
    recorded: Option<RecordedSession>,
}

/// A session that is recorded.
struct RecordedSession {
    ledger: Ledger,
    clock: Box<dyn Clock>,
    id: u64,
    run: RunId,
    /// Released when it has ended.
    pulse: Option<SessionLock>,
}

/// Why a session cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The lock of the session cannot be taken.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A message has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// An artifact contains a secret.
    #[error("the {artifact} artifact holds a secret ({}), so it is not saved; remove the secret from its source, and revoke it", rules.join(", "))]
    Secret {
        /// `search`, `inspect`, `plan`, `recipe` or `manifest`.
        artifact: &'static str,
        /// The rules that matched.
        rules: Vec<String>,
    },
}

impl CrawlSession {
    /// Creates a dry run: nothing is written, nothing is read.
    #[must_use]
    pub fn dry() -> Self {
        Self { recorded: None }
    }

    /// Begins a session in `ledger`, after ending those whose processes are gone. `locks` is the common directory for the locks of
    /// running sessions; it is created if missing.
    ///
    /// # Errors
    ///
    /// See [`SessionError`]; then no session has begun.
    pub fn begin(
        mut ledger: Ledger,
        locks: &Path,
        clock: Box<dyn Clock>,
        query: Option<&str>,
        config: &ConfigSnapshot,
    ) -> Result<Self, SessionError> {
        abort_dead_sessions(&mut ledger, locks, Moment::now(clock.as_ref()))?;
        let new = NewCrawl {
            moment: Moment::now(clock.as_ref()),
            query: query.map(redacted),
            config_snapshot: config.json().to_owned(),
        };
        let (id, pulse) = ledger.begin_crawl(&new, |id| {
            SessionLock::begin(locks, id).map_err(SessionError::from)
        })?;
        let run = crawl_run_id(id)?;
        Ok(Self {
            recorded: Some(RecordedSession {
                ledger,
                clock,
                id,
                run,
                pulse: Some(pulse),
            }),
        })
    }

    /// The session number; 0 for a dry run.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.recorded.as_ref().map_or(0, |session| session.id)
    }

    /// The run id for the ledger's events and model calls; none for a dry run.
    #[must_use]
    pub fn run_id(&self) -> Option<&RunId> {
        self.recorded.as_ref().map(|session| &session.run)
    }

    /// Whether it is a dry run.
    #[must_use]
    pub fn is_dry(&self) -> bool {
        self.recorded.is_none()
    }

    /// Records the chosen repository, and its tag, branch or commit if known.
    ///
    /// # Errors
    ///
    /// See [`SessionError`].
    pub fn record_selection(
        &mut self,
        repo: &str,
        reference: Option<&str>,
    ) -> Result<(), SessionError> {
        self.note(CrawlFact::Selected {
            repo: redacted(repo),
            reference: reference.map(redacted),
        })
    }

    /// Records the build system.
    ///
    /// # Errors
    ///
    /// See [`SessionError`].
    pub fn record_build_system(&mut self, build_system: &str) -> Result<(), SessionError> {
        self.note(CrawlFact::Detected {
            build_system: build_system.to_owned(),
        })
    }

    /// Records the debate and its summary.
    ///
    /// # Errors
    ///
    /// See [`SessionError`].
    pub fn record_debate(&mut self, rounds: u32, summary: &str) -> Result<(), SessionError> {
        let summary = redacted(summary).chars().take(MAX_SUMMARY).collect();
        self.note(CrawlFact::Debated { rounds, summary })
    }

    /// Records the hashes of the plan.
    ///
    /// # Errors
    ///
    /// See [`SessionError`].
    pub fn record_plan(&mut self, plan: &PlanV1) -> Result<(), SessionError> {
        let (plan_hash, prompt_hash) = (plan.plan_hash.to_string(), plan.prompt_hash.to_string());
        self.note(CrawlFact::Planned {
            plan_hash,
            prompt_hash,
        })
    }

    /// Records the export.
    ///
    /// # Errors
    ///
    /// See [`SessionError`].
    pub fn record_export(&mut self, exported: &Exported) -> Result<(), SessionError> {
        let path = exported.dir.to_string_lossy().into_owned();
        let file = |name: &String| Some((name.strip_suffix(".json")?.to_owned(), name.clone()));
        let files = exported.files.iter().filter_map(file).collect();
        self.note(CrawlFact::Exported { path, files })
    }

    /// Stores an artifact. One that contains a secret is refused, even in a dry run.
    ///
    /// # Errors
    ///
    /// See [`SessionError`].
    pub fn store(&mut self, artifact: &CheckedArtifact) -> Result<(), SessionError> {
        let kind = artifact.kind();
        let rules = secrets_in(artifact.json());
        if !rules.is_empty() {
            return Err(SessionError::Secret {
                artifact: kind.as_str(),
                rules,
            });
        }
        let Some(session) = &mut self.recorded else {
            return Ok(());
        };
        session.ledger.put_crawl_artifact(&NewCrawlArtifact {
            crawl: session.id,
            moment: session.moment(),
            kind: kind.as_str(),
            schema: kind.schema_id(),
            content: artifact.json().to_owned(),
        })?;
        Ok(())
    }

    /// Ends it. Only the first end counts.
    ///
    /// # Errors
    ///
    /// See [`SessionError`].
    pub fn end(&mut self, status: SessionStatus) -> Result<(), SessionError> {
        let Some(session) = &mut self.recorded else {
            return Ok(());
        };
        if session.pulse.is_none() {
            return Ok(());
        }
        session
            .ledger
            .end_crawl(session.id, session.moment(), status)?;
        if let Some(pulse) = session.pulse.take() {
            pulse.end();
        }
        Ok(())
    }

    /// The valid cache entry under a key; none in a dry run.
    pub(crate) fn cached(&self, key: &str, now: Timestamp) -> Result<Option<String>, SessionError> {
        let Some(session) = &self.recorded else {
            return Ok(None);
        };
        Ok(session.ledger.crawl_cached(key, now)?)
    }

    /// Adds a cache entry, and deletes expired ones; does nothing in a dry run.
    pub(crate) fn cache(
        &mut self,
        key: &str,
        content: &str,
        now: Timestamp,
        fresh: Duration,
    ) -> Result<(), SessionError> {
        let Some(session) = &mut self.recorded else {
            return Ok(());
        };
        session.ledger.prune_crawl_cache(now)?;
        Ok(session.ledger.cache_crawl(key, content, now, fresh)?)
    }

    fn note(&mut self, fact: CrawlFact) -> Result<(), SessionError> {
        let Some(session) = &mut self.recorded else {
            return Ok(());
        };
        Ok(session
            .ledger
            .note_crawl(session.id, session.moment(), &fact)?)
    }
}

impl fmt::Debug for CrawlSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrawlSession")
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

impl Transcript for CrawlSession {
    fn keep(&mut self, message: &RedactedMessage) -> Result<(), String> {
        let Some(session) = &mut self.recorded else {
            return Ok(());
        };
        session.message(message).map_err(|error| error.to_string())
    }
}

impl RecordedSession {
    fn moment(&self) -> Moment {
        Moment::now(self.clock.as_ref())
    }

    fn message(&mut self, message: &RedactedMessage) -> Result<(), SessionError> {
        let content = to_canonical_json(message)?;
        self.ledger.put_crawl_message(&NewCrawlMessage {
            crawl: self.id,
            moment: self.moment(),
            phase: message.phase.to_owned(),
            round: message.round,
            owner: message.owner.to_owned(),
            provider: message.provider.clone(),
            model: message.model.clone(),
            content: String::from_utf8_lossy(&content).into_owned(),
        })?;
        Ok(())
    }
}

impl Drop for CrawlSession {
    fn drop(&mut self) {
        // If this fails, the next session that begins aborts it.
        let _stays_active = self.end(SessionStatus::Aborted);
    }
}

/// The names of the rules that match a text, without duplicates.
pub(crate) fn secrets_in(text: &str) -> Vec<String> {
    let mut rules: Vec<String> = Scanner::builtin()
        .scan(text.as_bytes())
        .iter()
        .map(|found| found.rule.as_str().to_owned())
        .collect();
    rules.sort();
    rules.dedup();
    rules
}

fn redacted(text: &str) -> String {
    Scanner::builtin().redact(text).text.into_owned()
}
