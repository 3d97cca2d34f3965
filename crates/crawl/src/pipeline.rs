//! The steps of a crawl: search, choose, fetch and inspect, plan, export. One value per command.
//!
//! Each step returns its documents as [`ValidatedDocument`]: they match their schema and are stored in the session,
//! so only checked documents can be printed. Between the steps the caller may ask the user; nothing here
//! asks, prints or chooses exit codes.
//!
//! Invariants: all documents have the time at which the crawl began. Fetched files are only in the work
//! directory. A plan that the safety rules reject is returned, but never exported.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_model::{CanonicalError, RepoPath, Timestamp, to_canonical_json};
use serde::Serialize;

use crate::artifact::{
    ArtifactError, ArtifactType, CheckedArtifact, ManifestV1, Reproducibility, SearchItem,
    SearchV1, TokenBudgets,
};
use crate::debate::{
    CRITIQUE_TOKENS, DRAFT_TOKENS, DebateError, DebateOutcome, DebateRounds, PlanAuthor,
    PlanCritic, RedactedMessage, SYNTHESIS_TOKENS, Transcript, debate,
};
use crate::export::{
    CONFIG_SNAPSHOT, DEBATE_TRANSCRIPT, Export, ExportError, Exported, OutputDir, check_export,
    export_filename, manifest_entry, write_export,
};
use crate::fetch::{FetchError, FetchTools, Fetched, fetch, fetch_local};
use crate::github::{GitHub, GitHubError};
use crate::inspect::{InspectError, Inspection, inspect};
use crate::observer::CrawlObserver;
use crate::offline::{OfflineError, offline_plan};
use crate::plan::{Planned, assemble};
use crate::rank::rank;
use crate::recipe::derive_recipe;
use crate::search::{SearchError, SearchOptions, search};
use crate::session::{CrawlSession, SessionError, SessionStatus};
use crate::target::{RefChoice, RepoName};

/// The schema name of the debate's transcript in an export, see `docs/contracts`.
const TRANSCRIPT_SCHEMA: &str = "crucible-crawl-transcript-v1";

/// One crawl from its beginning to its end.
pub(crate) struct Pipeline<'a> {
    session: CrawlSession,
    now: Timestamp,
    observer: &'a dyn CrawlObserver,
    messages: Vec<RedactedMessage>,
}

/// A stored document that matches its schema, with its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidatedDocument<T> {
    /// The parsed form of the document.
    pub document: T,
    /// Its bytes.
    pub artifact: CheckedArtifact,
}

/// An inspection with its document.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspected {
    /// The whole result.
    pub inspection: Inspection,
    /// The document.
    pub artifact: CheckedArtifact,
}

/// The source of plans.
pub enum Planner<'p> {
    /// The table of standard steps.
    Offline,
    /// Two models.
    Debate {
        /// Drafts, revises and finishes.
        gpt: &'p PlanAuthor,
        /// Criticises and approves.
        claude: &'p PlanCritic,
        /// The maximum number of rounds.
        rounds: DebateRounds,
        /// The time limit of each call, retries included.
        timeout: Duration,
    },
}

/// A judged plan, and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCrawl {
    /// The plan with its verdict.
    pub planned: Planned,
    /// Its document.
    pub artifact: CheckedArtifact,
    /// The result of the debate, or of the table.
    pub outcome: DebateOutcome,
    /// The redacted messages, in order.
    pub messages: Vec<RedactedMessage>,
}

/// The input of an export.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExportInput<'e> {
    /// How the repository was found.
    pub search: &'e ValidatedDocument<SearchV1>,
    pub inspected: &'e Inspected,
    /// The plan.
    pub planned: &'e PlannedCrawl,
    /// The configuration, as canonical JSON without secrets.
    pub config_snapshot: &'e str,
    /// The program's version.
    pub crucible_version: &'e str,
}

/// An export that is ready to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedExport {
    /// The documents in writing order; the manifest is last.
    artifacts: Vec<CheckedArtifact>,
    debate_transcript: String,
    config_snapshot: String,
}

/// Why a crawl failed.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    /// A GitHub call failed.
    #[error(transparent)]
    GitHub(#[from] GitHubError),
    /// The search failed.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// Fetching failed.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The inspection failed.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// There is no plan without a model.
    #[error(transparent)]
    Offline(#[from] OfflineError),
    /// The debate failed.
    #[error(transparent)]
    Debate(#[from] DebateError),
    /// A document does not match its schema.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// The session cannot be recorded.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The export failed.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The transcript has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// A task ended early.
    #[error("the inspection ended early: {why}; try again")]
    Interrupted {
        /// The cause.
        why: String,
    },
    /// The safety rules reject the plan, so there is no export.
    #[error("the safety rules reject the plan, so nothing is exported: {}", violations.join("; "))]
    PlanRejected {
        /// Each violated rule, as a sentence.
        violations: Vec<String>,
    },
}

impl<'a> Pipeline<'a> {
    /// Starts a crawl at `now`.
    #[must_use]
    pub(crate) fn new(
        session: CrawlSession,
        now: Timestamp,
        observer: &'a dyn CrawlObserver,
    ) -> Self {
        Self {
            session,
            now,
            observer,
            messages: Vec::new(),
        }
    }

    #[must_use]
    pub(crate) fn session(&self) -> &CrawlSession {
        &self.session
    }

    /// Searches and ranks. A rate limit is not an error; see [`SearchV1::rate_limited`].
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub(crate) async fn search(
        &mut self,
        github: &GitHub<'_>,
        query: &str,
        options: &SearchOptions,
    ) -> Result<ValidatedDocument<SearchV1>, CrawlError> {
        let found = search(
            github,
            &mut self.session,
            query,
            options,
            self.now,
            self.observer,
        )
        .await?;
        self.keep(ArtifactType::Search, found)
    }

    /// Looks up a named repository, as a search with one result.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub(crate) async fn look_up(
        &mut self,
        github: &GitHub<'_>,
        repo: &RepoName,
    ) -> Result<ValidatedDocument<SearchV1>, CrawlError> {
        let mut candidate = github.repository(repo).await?;
        candidate.has_releases = Some(github.has_releases(&candidate.full_name).await?);
        let results = rank(&[candidate], repo.name(), self.now);
        // The score was computed for this query.
        self.keep(
            ArtifactType::Search,
            self.found(repo.name().to_owned(), results),
        )
    }

    /// The search document of a local repository, without a search.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub(crate) fn local_search_document(
        &mut self,
        inspected: &Inspected,
    ) -> Result<ValidatedDocument<SearchV1>, CrawlError> {
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

    /// Fetches a GitHub repository into `work`, an empty directory that its creator deletes.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub(crate) async fn fetch(
        &mut self,
        github: &GitHub<'_>,
        tools: &FetchTools,
        repo: &RepoName,
        choice: &RefChoice,
        work: &Path,
    ) -> Result<Fetched, CrawlError> {
        self.session
            .record_selection(&repo.full_name(), choice.reference.as_deref())?;
        let fetched = fetch(github, tools, repo, choice, work, self.observer).await?;
        self.session
            .record_selection(&fetched.repo.full_name, Some(&fetched.repo.selected_ref))?;
        Ok(fetched)
    }

    /// Fetches the local repository that contains `path`.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub(crate) async fn fetch_local(
        &mut self,
        tools: &FetchTools,
        path: &Path,
        choice: &RefChoice,
        work: &Path,
    ) -> Result<Fetched, CrawlError> {
        let place = path.to_string_lossy();
        self.session
            .record_selection(&place, choice.reference.as_deref())?;
        let fetched = fetch_local(tools, path, choice, work, self.observer).await?;
        self.session
            .record_selection(&fetched.repo.full_name, Some(&fetched.repo.selected_ref))?;
        Ok(fetched)
    }

    /// Inspects the fetched files, or one part of them. Nothing is stored yet: if there are several projects, the caller may
    /// ask the user to choose.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub(crate) async fn run_inspection(
        &self,
        fetched: &Fetched,
        subpath: Option<&RepoPath>,
    ) -> Result<Inspection, CrawlError> {
        self.observer.progress("inspecting the files");
        let (files, part, now) = (fetched.clone(), subpath.cloned(), self.now);
        // On a blocking thread, so that an interrupt is handled while a large tree is walked.
        let looked = tokio::task::spawn_blocking(move || inspect(&files, part.as_ref(), now)).await;
        Ok(looked.map_err(|error| CrawlError::Interrupted {
            why: error.to_string(),
        })??)
    }

    /// Reports the warnings of an inspection, and stores its document.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub(crate) fn inspected(&mut self, inspection: Inspection) -> Result<Inspected, CrawlError> {
        for warning in &inspection.warnings {
            self.observer.warning(warning);
        }
        let ValidatedDocument { document, artifact } =
            self.keep(ArtifactType::Inspect, inspection.artifact.clone())?;
        self.session
            .record_selection(&document.repo.full_name, Some(&document.repo.selected_ref))?;
        self.session
            .record_build_system(&document.build_system.name)?;
        Ok(Inspected {
            inspection,
            artifact,
        })
    }

    /// Has a plan made, and judges it. A rejected plan is returned with its violations.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub(crate) async fn plan(
        &mut self,
        inspected: &Inspected,
        planner: &Planner<'_>,
    ) -> Result<PlannedCrawl, CrawlError> {
        let inspection = &inspected.inspection;
        let outcome = match planner {
            Planner::Offline => offline_plan(inspection)?,
            Planner::Debate {
                gpt,
                claude,
                rounds,
                timeout,
            } => {
                let label = self.label();
                let mut both = Both {
                    session: &mut self.session,
                    messages: &mut self.messages,
                };
                debate(
                    gpt,
                    claude,
                    inspection,
                    *rounds,
                    *timeout,
                    &label,
                    &mut both,
                    self.observer,
                )
                .await?
            }
        };
        let planned = assemble(&outcome, inspection, self.now);
        self.session
            .record_debate(outcome.rounds, &outcome.summary)?;
        let ValidatedDocument { document, artifact } =
            self.keep(ArtifactType::Plan, planned.plan.clone())?;
        self.session.record_plan(&document)?;
        Ok(PlannedCrawl {
            planned,
            artifact,
            outcome,
            messages: self.messages.clone(),
        })
    }

    /// Creates the documents of an export and checks them as a whole; writes nothing yet.
    ///
    /// # Errors
    ///
    /// [`CrawlError::PlanRejected`] if the safety rules reject the plan, and see [`CrawlError`].
    pub(crate) fn prepare_export(
        &mut self,
        of: &ExportInput<'_>,
    ) -> Result<PreparedExport, CrawlError> {
        let PlannedCrawl {
            planned: Planned { plan, safety },
            outcome,
            messages,
            ..
        } = of.planned;
        if !safety.is_valid() || !plan.safety_validated {
            return Err(CrawlError::PlanRejected {
                violations: plan.safety_violations.clone(),
            });
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
        let transcript = TranscriptFile {
            schema_version: TRANSCRIPT_SCHEMA,
            summary: &outcome.summary,
            messages,
        };
        let prepared = PreparedExport {
            artifacts,
            debate_transcript: String::from_utf8_lossy(&to_canonical_json(&transcript)?)
                .into_owned(),
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
    pub(crate) fn export(
        &mut self,
        prepared: &PreparedExport,
        dir: &OutputDir,
    ) -> Result<Exported, CrawlError> {
        let exported = write_export(dir, &prepared.export())?;
        self.session.record_export(&exported)?;
        Ok(exported)
    }

    /// Ends the session.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub(crate) fn end(&mut self, status: SessionStatus) -> Result<(), CrawlError> {
        Ok(self.session.end(status)?)
    }

    /// The label of the session in model calls.
    fn label(&self) -> String {
        if self.session.is_dry() {
            "crawl-dry".to_owned()
        } else {
            format!("crawl-{}", self.session.id())
        }
    }

    /// Checks a document against its schema, and stores it.
    fn keep<T: Serialize>(
        &mut self,
        kind: ArtifactType,
        document: T,
    ) -> Result<ValidatedDocument<T>, CrawlError> {
        let artifact = CheckedArtifact::new(kind, &document)?;
        self.session.store(&artifact)?;
        Ok(ValidatedDocument { document, artifact })
    }
}

impl PreparedExport {
    /// Returns the manifest, the last document of the export.
    #[must_use]
    pub fn manifest(&self) -> Option<&CheckedArtifact> {
        self.artifacts.last()
    }

    /// Its files, below `dir`.
    #[must_use]
    pub fn files(&self, dir: &Path) -> Vec<PathBuf> {
        let names = self
            .artifacts
            .iter()
            .map(|artifact| export_filename(artifact.kind()));
        names
            .chain([DEBATE_TRANSCRIPT, CONFIG_SNAPSHOT])
            .map(|name| dir.join(name))
            .collect()
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

/// Stores a message in the session and for the export.
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
