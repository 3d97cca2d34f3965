//! A crawl command: the pipeline and its session, which every exit path ends.

use std::cell::OnceCell;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use crucible_host::WorkDir;
use crucible_host::clock::clock_from;
use crucible_ledger::Ledger;
use crucible_llm::ReservationStore;
use crucible_model::{ClockSource, ExitStatus, Failure, RepoPath, RepoPathError, RunId};
use crucible_repo::{CloneUrl, Gh};
use crucible_sandbox::Runtime;
use crucible_settings::Settings;

use crate::artifact::{SearchItem, SearchV1, SubProject};
use crate::cleanup;
use crate::configured::{OpenPlannerBackends, PlannerBackends};
use crate::export::{Exported, OutputDir};
use crate::fetch::FetchTools;
use crate::github::GitHub;
use crate::inspect::InspectError;
use crate::observer::CrawlObserver;
use crate::pipeline::{
    CrawlError, ExportInput, Inspected, Pipeline, PlannedCrawl, PreparedExport, ValidatedDocument,
};
use crate::search::SearchOptions;
use crate::session::{ConfigSnapshot, CrawlSession, SessionStatus};
use crate::target::{RefChoice, RepoName, Target};

/// The prefix of work directories.
const WORK_PREFIX: &str = "crucible-crawl-";

/// The program that runs a crawl: its event loop, its records and its questions.
pub trait CrawlHost {
    /// Returns the observer of the steps.
    fn observer(&self) -> &dyn CrawlObserver;

    /// Runs `work` to its end. If the user interrupts, drops it where it is and fails.
    ///
    /// # Errors
    ///
    /// Fails as `work` does, if the user interrupts, or if the event loop cannot start.
    fn drive<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure>;

    /// Called before anything else is shown.
    fn progress_ended(&self);

    /// Returns the ledger, and the common directory for the locks of sessions. A dry run calls neither this nor
    /// [`CrawlHost::reservations`].
    ///
    /// # Errors
    ///
    /// Fails if the ledger cannot be opened.
    fn records(&self) -> Result<(Ledger, PathBuf), Failure>;

    /// Returns a book that counts the model calls of a session in the ledger.
    ///
    /// # Errors
    ///
    /// Fails if the ledger cannot be opened.
    fn reservations(&self, run: &RunId) -> Result<Arc<dyn ReservationStore>, Failure>;

    /// Asks the user to choose among search results.
    ///
    /// # Errors
    ///
    /// Fails if the user chooses none.
    fn choose_result<'r>(&self, results: &'r [SearchItem]) -> Result<&'r SearchItem, Failure>;

    /// Called with the best search result, which is used without a question.
    fn took_best(&self, best: &SearchItem);

    /// Asks the user to choose a sub-project, or the top level if a build system is found there.
    ///
    /// # Errors
    ///
    /// Fails if the user chooses none.
    fn choose_project(
        &self,
        top: Option<&str>,
        projects: &[SubProject],
    ) -> Result<Option<String>, Failure>;
}

/// The purpose of a session.
pub struct SessionPurpose {
    query: Option<String>,
    is_dry: bool,
    /// Command-line options that are not settings, for the snapshot of the configuration.
    options: Vec<(&'static str, String)>,
}

impl SessionPurpose {
    /// Creates the purpose of a session without a search; nothing of a dry session is recorded.
    #[must_use]
    pub fn new(is_dry: bool) -> Self {
        Self {
            query: None,
            is_dry,
            options: Vec::new(),
        }
    }

    /// Adds a search.
    #[must_use]
    pub fn search(self, query: &str, options: &SearchOptions) -> Self {
        let results = ("--max-results", options.max_results.get().to_string());
        Self {
            query: Some(query.to_owned()),
            ..self
        }
        .with([results])
    }

    /// Adds options that are not settings, by name.
    #[must_use]
    pub fn with(mut self, options: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        self.options.extend(options);
        self
    }
}

/// The selected repository and commit.
pub struct RepoSelection {
    /// How the repository is given.
    pub source: RepoSource,
    /// The commit and the sub-project.
    pub choice: RefChoice,
    /// Whether the user may be asked questions.
    pub may_ask: bool,
}

impl RepoSelection {
    /// The purpose of a session about this repository.
    #[must_use]
    pub fn intent(&self, is_dry: bool) -> SessionPurpose {
        match &self.source {
            RepoSource::Named(_) => SessionPurpose::new(is_dry),
            RepoSource::Found { query, options, .. } => {
                SessionPurpose::new(is_dry).search(query, options)
            }
        }
    }
}

/// How the repository is given.
pub enum RepoSource {
    /// By name.
    Named(Target),
    /// By a search.
    Found {
        /// The text to search for.
        query: String,
        /// The options of the search.
        options: SearchOptions,
        /// How to choose among the results.
        pick: SelectionMode,
    },
}

/// How to choose among search results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectionMode {
    /// Take the best one.
    Best,
    /// Ask the user.
    User,
}

/// Whether to look up a named repository as if it had been searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupMode {
    /// For an export, which records how the repository was found.
    Yes,
    /// Not needed.
    No,
}

/// The working state of a running command.
pub struct CrawlContext<'a, H> {
    runtime: &'a Runtime<'a>,
    config: &'a Settings,
    host: &'a H,
    tools: FetchTools,
    /// Created on demand: a local repository needs no `gh`. There is one, so that its rate limit is awaited once.
    github: OnceCell<GitHub<'a>>,
    pipeline: Pipeline<'a>,
    snapshot: ConfigSnapshot,
    /// The fetched files. They are removed when the command ends, after its result was printed: many files take a while.
    fetched: Option<WorkDir>,
}

impl<'a, H: CrawlHost> CrawlContext<'a, H> {
    /// Starts a session, does the work, and ends the session with its outcome.
    ///
    /// # Errors
    ///
    /// Fails as `work` does, or if a setting cannot be used or the session cannot be recorded.
    pub fn open(
        runtime: &'a Runtime<'a>,
        config: &'a Settings,
        host: &'a H,
        intent: &SessionPurpose,
        work: impl FnOnce(&mut Self) -> Result<ExitStatus, Failure>,
    ) -> Result<ExitStatus, Failure> {
        // The default clone address is GitHub's own host; if gh uses another host, that one is cloned
        // from.
        let is_set = config.is_set("crawl.clone_base");
        let clone_base = config.crawl.clone_base.as_deref().filter(|_| is_set);
        let clone_base = clone_base
            .map(CloneUrl::parse)
            .transpose()
            .map_err(|error| Failure::usage(format!("crawl.clone_base: {error}")))?;
        let tools = FetchTools {
            sandbox: Arc::clone(&runtime.sandbox),
            env: runtime.env.clone(),
            clone_base,
        };
        let snapshot = snapshot(runtime, config, intent)?;
        cleanup::sweep(host, runtime.env.temporary_directory(), WORK_PREFIX)?;
        let session = if intent.is_dry {
            CrawlSession::dry()
        } else {
            let (ledger, locks) = host.records()?;
            let clock = clock_from(runtime.env)?;
            CrawlSession::begin(ledger, &locks, clock, intent.query.as_deref(), &snapshot)
                .map_err(CrawlError::from)?
        };
        let pipeline = Pipeline::new(session, runtime.clock.now(), host.observer());
        let github = OnceCell::new();
        let mut context = Self {
            runtime,
            config,
            host,
            tools,
            github,
            pipeline,
            snapshot,
            fetched: None,
        };
        let worked = work(&mut context);
        host.progress_ended();
        let status = match &worked {
            Ok(ExitStatus::Success) => SessionStatus::Completed,
            Err(error) if error.status == ExitStatus::Interrupted => SessionStatus::Aborted,
            Ok(_) | Err(_) => SessionStatus::Failed,
        };
        let worked = worked.map_err(|error| match (error.status, intent.is_dry) {
            (ExitStatus::Interrupted, true) => error.hint("Nothing was written."),
            (ExitStatus::Interrupted, false) => {
                error.hint("`crucible crawl history` shows the session as aborted.")
            }
            _ => error,
        });
        // The record comes first: what follows may take long, and may be interrupted.
        let worked = match (worked, context.pipeline.end(status)) {
            (Ok(_), Err(error)) => Err(error.into()),
            (worked, _) => worked,
        };
        match context.fetched.take() {
            Some(fetched) => cleanup::remove_fetched(host, fetched, worked),
            None => worked,
        }
    }

    /// Opens the planner within this session. Its calls are counted in the ledger, except in a dry run.
    ///
    /// # Errors
    ///
    /// Fails if a price or a limit cannot be used, or if the ledger cannot be opened.
    pub fn open_planner(&self, backends: PlannerBackends) -> Result<OpenPlannerBackends, Failure> {
        let book = match (self.pipeline.session().run_id(), &backends) {
            (Some(run), PlannerBackends::Both(_)) => Some(self.host.reservations(run)?),
            _ => None,
        };
        backends.open(self.config, book)
    }

    /// The session's number.
    #[must_use]
    pub fn session(&self) -> u64 {
        self.pipeline.session().id()
    }

    /// Searches and ranks.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub fn search(
        &mut self,
        query: &str,
        options: &SearchOptions,
    ) -> Result<ValidatedDocument<SearchV1>, Failure> {
        let (host, runtime) = (self.host, self.runtime);
        let github = github(&self.github, runtime, &self.tools, host);
        let pipeline = &mut self.pipeline;
        let found = host.drive(async { Ok(pipeline.search(github, query, options).await?) });
        host.progress_ended();
        found
    }

    /// Finds the selected repository, fetches it and inspects it. Also returns how it was found, if
    /// requested or if it was a search.
    ///
    /// # Errors
    ///
    /// Fails if nothing is found or chosen, and see [`CrawlError`].
    pub fn inspect(
        &mut self,
        requested: &RepoSelection,
        look_up: LookupMode,
    ) -> Result<(Inspected, Option<ValidatedDocument<SearchV1>>), Failure> {
        let (target, found) = match (&requested.source, look_up) {
            (
                RepoSource::Found {
                    query,
                    options,
                    pick,
                },
                _,
            ) => {
                let found = self.search(query, options)?;
                (self.picked(&found.document, *pick)?, Some(found))
            }
            (RepoSource::Named(Target::GitHub(name)), LookupMode::Yes) => {
                let (host, runtime) = (self.host, self.runtime);
                let github = github(&self.github, runtime, &self.tools, host);
                let pipeline = &mut self.pipeline;
                let found = host.drive(async { Ok(pipeline.look_up(github, name).await?) })?;
                (Target::GitHub(name.clone()), Some(found))
            }
            (RepoSource::Named(target), _) => (target.clone(), None),
        };
        let inspected = self.look_at(&target, &requested.choice, requested.may_ask);
        self.host.progress_ended();
        Ok((inspected?, found))
    }

    /// The repository that the best result, or the user, names.
    fn picked(&self, found: &SearchV1, pick: SelectionMode) -> Result<Target, Failure> {
        let Some(best) = found.results.first() else {
            return Err(if found.rate_limited {
                Failure::new(
                    ExitStatus::RateLimited,
                    "GitHub's rate limit is exhausted and nothing was found before",
                )
                .hint("Try again later, or name the repository.")
            } else {
                Failure::refused(format!("GitHub found no repository for {:?}", found.query))
                    .hint("Search for something else, or name the repository.")
            });
        };
        let chosen = match pick {
            SelectionMode::Best => {
                self.host.took_best(best);
                best
            }
            SelectionMode::User => self.host.choose_result(&found.results)?,
        };
        let name = RepoName::parse(&chosen.full_name)
            .map_err(|error| Failure::refused(error.to_string()))?;
        Ok(Target::GitHub(name))
    }

    /// Fetches files and inspects them.
    fn look_at(
        &mut self,
        target: &Target,
        choice: &RefChoice,
        may_ask: bool,
    ) -> Result<Inspected, Failure> {
        let (host, runtime) = (self.host, self.runtime);
        let session = self.pipeline.session();
        let label = if session.is_dry() {
            "dry".to_owned()
        } else {
            session.id().to_string()
        };
        let work = WorkDir::create(&runtime.env.temporary_directory(), WORK_PREFIX, &label)?;
        let directory = work.path().to_owned();
        self.fetched = Some(work);
        let fetched = match target {
            Target::GitHub(name) => {
                let github = github(&self.github, runtime, &self.tools, host);
                let (pipeline, tools) = (&mut self.pipeline, &self.tools);
                host.drive(async {
                    Ok(pipeline
                        .fetch(github, tools, name, choice, &directory)
                        .await?)
                })?
            }
            Target::Local(path) => {
                let (pipeline, tools) = (&mut self.pipeline, &self.tools);
                host.drive(async {
                    Ok(pipeline
                        .fetch_local(tools, path, choice, &directory)
                        .await?)
                })?
            }
        };
        let pipeline = &mut self.pipeline;
        let looked = host.drive(async {
            Ok(pipeline
                .run_inspection(&fetched, choice.subpath.as_ref())
                .await)
        })?;
        let sub_projects = match &looked {
            Err(CrawlError::Inspect(InspectError::ChooseSubProject { sub_projects, .. })) => {
                sub_projects
            }
            Ok(seen) if fetched.subpath.is_none() => &seen.artifact.sub_projects,
            _ => &Vec::new(),
        };
        let mut chosen = None;
        if may_ask && !sub_projects.is_empty() {
            self.host.progress_ended();
            let top = looked
                .as_ref()
                .ok()
                .map(|seen| seen.artifact.build_system.name.as_str());
            chosen = host.choose_project(top, sub_projects)?;
        }
        let inspection = match chosen {
            None => looked?,
            Some(path) => {
                let path: RepoPath = path
                    .parse()
                    .map_err(|error: RepoPathError| Failure::refused(error.to_string()))?;
                host.drive(async { Ok(pipeline.run_inspection(&fetched, Some(&path)).await?) })?
            }
        };
        Ok(pipeline.inspected(inspection)?)
    }

    /// Has a plan made, and judges it.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub fn plan(
        &mut self,
        inspected: &Inspected,
        backends: &OpenPlannerBackends,
    ) -> Result<PlannedCrawl, Failure> {
        let (pipeline, planner) = (&mut self.pipeline, backends.planner());
        let planned = self
            .host
            .drive(async { Ok(pipeline.plan(inspected, &planner).await?) });
        self.host.progress_ended();
        planned
    }

    /// Prepares the documents of an export.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub fn prepare(
        &mut self,
        search: Option<ValidatedDocument<SearchV1>>,
        inspected: &Inspected,
        planned: &PlannedCrawl,
    ) -> Result<PreparedExport, Failure> {
        let search = match search {
            Some(search) => search,
            None => self.pipeline.local_search_document(inspected)?,
        };
        Ok(self.pipeline.prepare_export(&ExportInput {
            search: &search,
            inspected,
            planned,
            config_snapshot: self.snapshot.json(),
            crucible_version: env!("CARGO_PKG_VERSION"),
        })?)
    }

    /// Writes an export.
    ///
    /// # Errors
    ///
    /// See [`CrawlError`].
    pub fn export(
        &mut self,
        prepared: &PreparedExport,
        dir: &OutputDir,
    ) -> Result<Exported, Failure> {
        Ok(self.pipeline.export(prepared, dir)?)
    }
}

/// The GitHub client of a command.
fn github<'d, 'a, H: CrawlHost>(
    slot: &'d OnceCell<GitHub<'a>>,
    runtime: &'a Runtime<'a>,
    tools: &FetchTools,
    host: &'a H,
) -> &'d GitHub<'a> {
    let gh = || Gh::new(Arc::clone(&tools.sandbox), runtime.env);
    slot.get_or_init(|| GitHub::new(gh(), runtime.clock, host.observer()))
}

/// The effective configuration, the additional options, and whether the clock is real.
fn snapshot(
    runtime: &Runtime<'_>,
    config: &Settings,
    intent: &SessionPurpose,
) -> Result<ConfigSnapshot, Failure> {
    let settings = config.effective().map(|(key, setting)| {
        let value = setting
            .value
            .as_str()
            .map_or_else(|| setting.value.to_string(), str::to_owned);
        (key.to_owned(), value)
    });
    let clock = match runtime.clock.source() {
        ClockSource::System => "system",
        ClockSource::Pinned => "pinned",
    };
    let options = intent
        .options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    let extra = options.chain([("clock".to_owned(), clock.to_owned())]);
    Ok(ConfigSnapshot::new(settings.chain(extra)).map_err(CrawlError::from)?)
}
