//! The story of a crawl: search, choose, fetch and inspect, plan, export. One value for one command.
//!
//! Each step hands its documents out as [`Checked`]: they passed their schema and were kept in the session, so whoever
//! prints them prints nothing else. Between the steps the caller may ask the user; nothing here asks, prints or decides
//! what a process ends with.
//!
//! What always holds: every instant in a document is the one that the crawl began with; what was fetched lies in the work
//! directory alone; a plan that the safety rules reject is handed out and never exported.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_model::{CanonicalError, RepoPath, Timestamp, to_canonical_json};
use serde::Serialize;

use crate::artifact::{
    ArtifactError, ArtifactType, CheckedArtifact, ManifestV1, Reproducibility, SearchItem, SearchV1,
    TokenBudgets,
};
use crate::debate::{
    CRITIQUE_TOKENS, Claude, DRAFT_TOKENS, DebateError, DebateOutcome, DebateRounds, Gpt, RedactedMessage,
    SYNTHESIS_TOKENS, Transcript, debate,
};
use crate::export::{
    CONFIG_SNAPSHOT, DEBATE_TRANSCRIPT, Export, ExportError, Exported, OutputDir, check_export,
    export_filename, manifest_entry, write_export,
};
use crate::fetch::{FetchError, FetchTools, Fetched, fetch, fetch_local};
use crate::github::{GitHub, GitHubError};
use crate::inspect::{InspectError, Inspection, inspect};
use crate::offline::{OfflineError, offline_plan};
use crate::plan::{Planned, assemble};
use crate::rank::rank;
use crate::recipe::derive_recipe;
use crate::search::{SearchError, SearchOptions, search};
use crate::session::{CrawlSession, SessionError, SessionStatus};
use crate::target::{RefChoice, RepoName};
use crate::witness::CrawlObserver;

/// The schema of the debate's transcript in an export, see `docs/contracts`.
const TRANSCRIPT_SCHEMA: &str = "crucible-crawl-transcript-v1";

/// One crawl from its beginning to its end.
pub struct Pipeline<'a> {
    session: CrawlSession,
    now: Timestamp,
    witness: &'a dyn CrawlObserver,
    messages: Vec<RedactedMessage>,
}

/// A document that passed its schema and is kept, with the bytes that did.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked<T> {
    /// The document.
    pub document: T,
    /// Its bytes.
    pub artifact: CheckedArtifact,
}

/// An inspection, and its document.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspected {
    /// All that was found.
    pub inspection: Inspection,
    /// The document.
    pub artifact: CheckedArtifact,
}

/// Who plans.
pub enum Planner<'p> {
    /// The table of standard steps.
    Offline,
    /// Two models.
    Debate {
        /// Drafts, revises and settles.
        gpt: &'p Gpt,
        /// Criticises and approves.
        claude: &'p Claude,
        /// For this many rounds.
        rounds: DebateRounds,
        /// Each call may take this long, its retries included.
        timeout: Duration,
    },
}

/// A plan, judged, and how it came to be.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCrawl {
    /// The plan with the verdict on it.
    pub planned: Planned,
    /// Its document.
    pub artifact: CheckedArtifact,
    /// What the debate settled, or the table.
    pub outcome: DebateOutcome,
    /// What was said, in order; secrets are replaced.
    pub messages: Vec<RedactedMessage>,
}

/// What an export is made of.
#[derive(Debug, Clone, Copy)]
pub struct ExportOf<'e> {
    /// How the repository was found.
    pub search: &'e Checked<SearchV1>,
    /// What was found in it.
    pub inspected: &'e Inspected,
    /// How it is built.
    pub planned: &'e PlannedCrawl,
    /// The configuration, canonical JSON without secrets.
    pub config_snapshot: &'e str,
    /// The program's version.
    pub crucible_version: &'e str,
}

/// An export that is ready to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedExport {
    /// In the order in which they are written; the manifest is the last.
    artifacts: Vec<CheckedArtifact>,
    debate_transcript: String,
    config_snapshot: String,
}

/// Why a crawl went no further.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    /// GitHub has no answer.
    #[error(transparent)]
    GitHub(#[from] GitHubError),
    /// The search.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The files.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The look at them.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// The plan without a model.
    #[error(transparent)]
    Offline(#[from] OfflineError),
    /// The debate.
    #[error(transparent)]
    Debate(#[from] DebateError),
    /// A document that does not match its schema.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// The record.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The export.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The transcript has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// A piece of work ended before it was done.
    #[error("the inspection ended early: {why}; try again")]
    Interrupted {
        /// How.
        why: String,
    },
    /// The safety rules reject the plan, so there is no export.
    #[error("the safety rules reject the plan, so nothing is exported: {}", violations.join("; "))]
    PlanRejected {
        /// Why.
        violations: Vec<String>,
    },
}

impl<'a> Pipeline<'a> {
    /// A crawl that begins at `now`.
    #[must_use]
    pub fn new(session: CrawlSession, now: Timestamp, witness: &'a dyn CrawlObserver) -> Self {
        Self { session, now, witness, messages: Vec::new() }
    }

    /// Its session.
    #[must_use]
    pub fn session(&self) -> &CrawlSession {
        &self.session
    }

    /// Searches and ranks. A rate limit is no error; see [`SearchV1::rate_limited`].
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub async fn search(
        &mut self,
        github: &GitHub<'_>,
        query: &str,
        options: &SearchOptions,
    ) -> Result<Checked<SearchV1>, CrawlError> {
        let found = search(github, &mut self.session, query, options, self.now, self.witness).await?;
        self.keep(ArtifactType::Search, found)
    }

    /// Looks a repository up that was named: a search that found it alone.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub async fn look_up(
        &mut self,
        github: &GitHub<'_>,
        repo: &RepoName,
    ) -> Result<Checked<SearchV1>, CrawlError> {
        let mut candidate = github.repository(repo).await?;
        candidate.has_releases = Some(github.has_releases(&candidate.full_name).await?);
        let results = rank(&[candidate], repo.name(), self.now);
        // The query is what the score was computed for.
        self.keep(ArtifactType::Search, self.found(repo.name().to_owned(), results))
    }

    /// The document for a local repository, for which nothing was searched.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub fn nothing_searched(&mut self, inspected: &Inspected) -> Result<Checked<SearchV1>, CrawlError> {
        let query = inspected.inspection.artifact.repo.full_name.clone();
        self.keep(ArtifactType::Search, self.found(query, Vec::new()))
    }

    fn found(&self, query: String, results: Vec<SearchItem>) -> SearchV1 {
        SearchV1 {
            schema: SearchV1::SCHEMA.to_owned(),
            query,
            queried_at: self.now,
            result_count: results.len() as u64,
            rate_limited: false,
            cached: false,
            results,
        }
    }

    /// Fetches a repository of GitHub into `work`, an empty directory that its maker removes.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub async fn fetch(
        &mut self,
        github: &GitHub<'_>,
        tools: &FetchTools,
        repo: &RepoName,
        choice: &RefChoice,
        work: &Path,
    ) -> Result<Fetched, CrawlError> {
        self.session.selected(&repo.full_name(), choice.reference.as_deref())?;
        let fetched = fetch(github, tools, repo, choice, work, self.witness).await?;
        self.session.selected(&fetched.repo.full_name, Some(&fetched.repo.selected_ref))?;
        Ok(fetched)
    }

    /// Fetches the repository of this machine that `path` lies in, in the same way.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub async fn fetch_local(
        &mut self,
        tools: &FetchTools,
        path: &Path,
        choice: &RefChoice,
        work: &Path,
    ) -> Result<Fetched, CrawlError> {
        let place = path.to_string_lossy();
        self.session.selected(&place, choice.reference.as_deref())?;
        let fetched = fetch_local(tools, path, choice, work, self.witness).await?;
        self.session.selected(&fetched.repo.full_name, Some(&fetched.repo.selected_ref))?;
        Ok(fetched)
    }

    /// Looks at what was fetched, or at one part of it. Nothing is kept yet: with several projects the user may be asked
    /// which one is meant.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub async fn look(
        &self,
        fetched: &Fetched,
        subpath: Option<&RepoPath>,
    ) -> Result<Inspection, CrawlError> {
        self.witness.progress("inspecting the files");
        let (files, part, now) = (fetched.clone(), subpath.cloned(), self.now);
        // Beside the loop, so that an interruption is heard while a large tree is walked.
        let looked = tokio::task::spawn_blocking(move || inspect(&files, part.as_ref(), now)).await;
        Ok(looked.map_err(|error| CrawlError::Interrupted { why: error.to_string() })??)
    }

    /// Tells what an inspection warns of, and keeps its document.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub fn inspected(&mut self, inspection: Inspection) -> Result<Inspected, CrawlError> {
        for warning in &inspection.warnings {
            self.witness.warning(warning);
        }
        let Checked { document, artifact } = self.keep(ArtifactType::Inspect, inspection.artifact.clone())?;
        self.session.selected(&document.repo.full_name, Some(&document.repo.selected_ref))?;
        self.session.detected(&document.build_system.name)?;
        Ok(Inspected { inspection, artifact })
    }

    /// Has a plan made, and judges it. One that is rejected is handed out with its violations.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub async fn plan(
        &mut self,
        inspected: &Inspected,
        planner: &Planner<'_>,
    ) -> Result<PlannedCrawl, CrawlError> {
        let inspection = &inspected.inspection;
        let outcome = match planner {
            Planner::Offline => offline_plan(inspection)?,
            Planner::Debate { gpt, claude, rounds, timeout } => {
                let label = self.label();
                let mut both = Both { session: &mut self.session, messages: &mut self.messages };
                debate(gpt, claude, inspection, *rounds, *timeout, &label, &mut both, self.witness).await?
            }
        };
        let planned = assemble(&outcome, inspection, self.now);
        self.session.debated(outcome.rounds, &outcome.summary)?;
        let Checked { document, artifact } = self.keep(ArtifactType::Plan, planned.plan.clone())?;
        self.session.planned(&document)?;
        Ok(PlannedCrawl { planned, artifact, outcome, messages: self.messages.clone() })
    }

    /// Makes the documents of an export and checks them as a whole; nothing is written yet.
    ///
    /// # Errors
    ///
    /// [`CrawlError::PlanRejected`] where the safety rules reject the plan, and see [`CrawlError`].
    pub fn prepare_export(&mut self, of: &ExportOf<'_>) -> Result<PreparedExport, CrawlError> {
        let PlannedCrawl { planned: Planned { plan, safety }, outcome, messages, .. } = of.planned;
        if !safety.valid() || !plan.safety_validated {
            return Err(CrawlError::PlanRejected { violations: plan.safety_violations.clone() });
        }
        let recipe = derive_recipe(plan, &of.inspected.inspection, self.now);
        let recipe = self.keep(ArtifactType::Recipe, recipe)?;
        let mut artifacts = vec![
            of.search.artifact.clone(),
            of.inspected.artifact.clone(),
            of.planned.artifact.clone(),
            recipe.artifact,
        ];
        let manifest = ManifestV1 {
            schema: ManifestV1::SCHEMA.to_owned(),
            crucible_version: of.crucible_version.to_owned(),
            created_at: self.now,
            crawl_session_id: self.session.id(),
            repo: plan.repo.full_name.clone(),
            reference: plan.repo.selected_ref.clone(),
            artifacts: artifacts.iter().map(manifest_entry).collect(),
            plan_hash: plan.plan_hash.clone(),
            prompt_hash: plan.prompt_hash.clone(),
            reproducibility: Reproducibility {
                gpt_model: outcome.gpt_model.clone(),
                claude_model: outcome.claude_model.clone(),
                debate_rounds: u64::from(outcome.rounds),
                token_budgets: TokenBudgets {
                    draft: DRAFT_TOKENS,
                    critique: CRITIQUE_TOKENS,
                    synthesis: SYNTHESIS_TOKENS,
                },
            },
        };
        artifacts.push(self.keep(ArtifactType::Manifest, manifest)?.artifact);
        let transcript =
            TranscriptFile { schema_version: TRANSCRIPT_SCHEMA, summary: &outcome.summary, messages };
        let prepared = PreparedExport {
            artifacts,
            debate_transcript: String::from_utf8_lossy(&to_canonical_json(&transcript)?).into_owned(),
            config_snapshot: of.config_snapshot.to_owned(),
        };
        check_export(&prepared.export())?;
        Ok(prepared)
    }

    /// Writes an export.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub fn export(&mut self, prepared: &PreparedExport, dir: &OutputDir) -> Result<Exported, CrawlError> {
        let exported = write_export(dir, &prepared.export())?;
        self.session.exported(&exported)?;
        Ok(exported)
    }

    /// Ends the session.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub fn end(&mut self, status: SessionStatus) -> Result<(), CrawlError> {
        Ok(self.session.end(status)?)
    }

    /// What the session is called in calls of models.
    fn label(&self) -> String {
        if self.session.is_dry() { "crawl-dry".to_owned() } else { format!("crawl-{}", self.session.id()) }
    }

    /// Checks a document against its schema, and keeps it.
    fn keep<T: Serialize>(&mut self, kind: ArtifactType, document: T) -> Result<Checked<T>, CrawlError> {
        let artifact = CheckedArtifact::new(kind, &document)?;
        self.session.store(&artifact)?;
        Ok(Checked { document, artifact })
    }
}

impl PreparedExport {
    /// The manifest, which stands for the whole.
    #[must_use]
    pub fn manifest(&self) -> Option<&CheckedArtifact> {
        self.artifacts.last()
    }

    /// The files that it consists of, below `dir`.
    #[must_use]
    pub fn files(&self, dir: &Path) -> Vec<PathBuf> {
        let names = self.artifacts.iter().map(|artifact| export_filename(artifact.kind()));
        names.chain([DEBATE_TRANSCRIPT, CONFIG_SNAPSHOT]).map(|name| dir.join(name)).collect()
    }

    fn export(&self) -> Export<'_> {
        Export {
            artifacts: &self.artifacts,
            debate_transcript: &self.debate_transcript,
            config_snapshot: &self.config_snapshot,
        }
    }
}

/// `meta/debate-transcript.json`.
#[derive(Serialize)]
struct TranscriptFile<'t> {
    schema_version: &'static str,
    summary: &'t str,
    messages: &'t [RedactedMessage],
}

/// Keeps a message in the session and for the export.
struct Both<'b> {
    session: &'b mut CrawlSession,
    messages: &'b mut Vec<RedactedMessage>,
}

impl Transcript for Both<'_> {
    fn keep(&mut self, message: &RedactedMessage) -> Result<(), String> {
        self.session.keep(message)?;
        self.messages.push(message.clone());
        Ok(())
    }
}
