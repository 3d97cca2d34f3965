//! The environment of a crawl command: the pipeline and its session, which every exit path ends.

use std::cell::OnceCell;
use std::sync::Arc;

use crucible_crawl::{
    Checked, ConfigSnapshot, CrawlError, CrawlSession, ExportOf, Exported, FetchTools, GitHub,
    InspectError, Inspected, OpenPlannerBackends, OutputDir, Pipeline, PlannedCrawl,
    PlannerBackends, PreparedExport, RefChoice, SearchOptions, SearchV1, SessionStatus, Target,
};
use crucible_host::WorkDir;
use crucible_host::clock::clock_from;
use crucible_ledger::Ledger;
use crucible_llm::CallBook;
use crucible_model::{ClockSource, ExitStatus, RepoPath};
use crucible_repo::{CloneUrl, Gh};
use crucible_run::LedgerBook;
use crucible_settings::Settings;

use super::ask;
use super::flags::Trace;
use super::progress::CrawlProgress;
use super::wanted::{RepoSelection, RepoSource, picked};
use crate::app::App;
use crate::error::CommandError;

/// The prefix of work directories.
const WORK_PREFIX: &str = "crucible-crawl-";

/// The purpose of a session.
pub(crate) struct Intent {
    query: Option<String>,
    dry: bool,
    /// Command-line options that are not settings, for the snapshot of the configuration.
    options: Vec<(&'static str, String)>,
}

impl Intent {
    pub(crate) fn new(trace: &Trace) -> Self {
        Self {
            query: None,
            dry: trace.dry_run,
            options: Vec::new(),
        }
    }

    pub(crate) fn query(self, query: &str) -> Self {
        Self {
            query: Some(query.to_owned()),
            ..self
        }
    }

    /// Adds options that are not settings, by name.
    pub(crate) fn with(
        mut self,
        options: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Self {
        self.options.extend(options);
        self
    }
}

/// Whether to look up a named repository as if it had been searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookUp {
    /// For an export, which records how the repository was found.
    Yes,
    /// Not needed.
    No,
}

/// The working state of a running command.
pub(crate) struct CrawlContext<'a> {
    pub(crate) app: &'a App,
    pub(crate) config: &'a Settings,
    tools: FetchTools,
    progress: &'a CrawlProgress,
    /// Created on demand: a local repository needs no `gh`.
    github: OnceCell<GitHub<'a>>,
    pipeline: Pipeline<'a>,
    snapshot: ConfigSnapshot,
}

impl CrawlContext<'_> {
    /// Starts a session, does the work, and ends the session with its outcome.
    pub(crate) fn open(
        app: &App,
        config: &Settings,
        intent: Intent,
        work: impl FnOnce(&mut CrawlContext<'_>) -> Result<ExitStatus, CommandError>,
    ) -> Result<ExitStatus, CommandError> {
        let progress = CrawlProgress::new(&app.output);
        // The default clone address is GitHub's own host; if gh uses another host, that one is cloned
        // from.
        let is_set = config.is_set("crawl.clone_base");
        let clone_base = config.crawl.clone_base.as_deref().filter(|_| is_set);
        let clone_base = clone_base
            .map(CloneUrl::parse)
            .transpose()
            .map_err(|error| CommandError::usage(format!("crawl.clone_base: {error}")))?;
        let tools = FetchTools {
            sandbox: app.runtime().sandbox,
            env: app.env.clone(),
            clone_base,
        };
        let snapshot = snapshot(app, config, &intent)?;
        WorkDir::sweep(&app.env.temporary_directory(), WORK_PREFIX);
        let session = if intent.dry {
            CrawlSession::dry()
        } else {
            let (ledger, locks) = (app.ledger()?, app.home()?.join("tmp"));
            let clock = clock_from(&app.env)?;
            CrawlSession::begin(ledger, &locks, clock, intent.query.as_deref(), &snapshot)
                .map_err(CrawlError::from)?
        };
        let pipeline = Pipeline::new(session, app.clock.now(), &progress);
        let github = OnceCell::new();
        let mut context = CrawlContext {
            app,
            config,
            tools,
            progress: &progress,
            github,
            pipeline,
            snapshot,
        };
        let worked = work(&mut context);
        progress.finish();
        let status = match &worked {
            Ok(ExitStatus::Success) => SessionStatus::Completed,
            Err(error) if error.status == ExitStatus::Interrupted => SessionStatus::Aborted,
            Ok(_) | Err(_) => SessionStatus::Failed,
        };
        let worked = worked.map_err(|error| match (error.status, intent.dry) {
            (ExitStatus::Interrupted, true) => {
                error.hint("Fetched files were removed, and nothing was written.")
            }
            (ExitStatus::Interrupted, false) => error
                .hint("Fetched files were removed; `crucible crawl history` shows the session as aborted."),
            _ => error,
        });
        match (worked, context.pipeline.end(status)) {
            (Ok(_), Err(error)) => Err(error.into()),
            (worked, _) => worked,
        }
    }

    /// Opens the planner within this session. Its calls are counted in the ledger, except in a dry run.
    pub(crate) fn open_planner(
        &self,
        backends: PlannerBackends,
    ) -> Result<OpenPlannerBackends, CommandError> {
        let book = match (self.pipeline.session().run_id(), &backends) {
            (Some(run), PlannerBackends::Both(_)) => {
                let ledger = Ledger::open(&self.app.ledger_path()?)?;
                let book = LedgerBook::new(ledger, run.clone(), clock_from(&self.app.env)?);
                Some(Arc::new(book) as Arc<dyn CallBook>)
            }
            _ => None,
        };
        Ok(backends.open(self.config, book)?)
    }

    /// The session's number.
    pub(crate) fn session(&self) -> u64 {
        self.pipeline.session().id()
    }

    pub(crate) fn search(
        &mut self,
        query: &str,
        options: &SearchOptions,
    ) -> Result<Checked<SearchV1>, CommandError> {
        let github = github(&self.github, self.app, &self.tools, self.progress);
        let pipeline = &mut self.pipeline;
        let found = self
            .app
            .block_on(async { Ok(pipeline.search(github, query, options).await?) });
        self.progress.finish();
        found
    }

    /// Finds the selected repository, fetches it and inspects it. Also returns how it was found, if
    /// requested or if it was a search.
    pub(crate) fn inspect(
        &mut self,
        wanted: &RepoSelection,
        look_up: LookUp,
    ) -> Result<(Inspected, Option<Checked<SearchV1>>), CommandError> {
        let (target, found) = match (&wanted.source, look_up) {
            (
                RepoSource::Found {
                    query,
                    options,
                    pick,
                },
                _,
            ) => {
                let found = self.search(query, options)?;
                (picked(self.app, &found.document, *pick)?, Some(found))
            }
            (RepoSource::Named(Target::GitHub(name)), LookUp::Yes) => {
                let github = github(&self.github, self.app, &self.tools, self.progress);
                let pipeline = &mut self.pipeline;
                let found = self
                    .app
                    .block_on(async { Ok(pipeline.look_up(github, name).await?) })?;
                (Target::GitHub(name.clone()), Some(found))
            }
            (RepoSource::Named(target), _) => (target.clone(), None),
        };
        let inspected = self.look_at(&target, &wanted.choice, wanted.may_ask);
        self.progress.finish();
        Ok((inspected?, found))
    }

    /// Inspects the fetched files, which are deleted when this returns or is interrupted.
    fn look_at(
        &mut self,
        target: &Target,
        choice: &RefChoice,
        may_ask: bool,
    ) -> Result<Inspected, CommandError> {
        let app = self.app;
        let session = self.pipeline.session();
        let label = if session.is_dry() {
            "dry".to_owned()
        } else {
            session.id().to_string()
        };
        let work = WorkDir::create(&app.env.temporary_directory(), WORK_PREFIX, &label)?;
        let fetched = match target {
            Target::GitHub(name) => {
                let github = github(&self.github, app, &self.tools, self.progress);
                let (pipeline, tools) = (&mut self.pipeline, &self.tools);
                app.block_on(async {
                    Ok(pipeline
                        .fetch(github, tools, name, choice, work.path())
                        .await?)
                })?
            }
            Target::Local(path) => {
                let (pipeline, tools) = (&mut self.pipeline, &self.tools);
                app.block_on(async {
                    Ok(pipeline
                        .fetch_local(tools, path, choice, work.path())
                        .await?)
                })?
            }
        };
        let pipeline = &mut self.pipeline;
        let looked =
            app.block_on(async { Ok(pipeline.look(&fetched, choice.subpath.as_ref()).await) })?;
        let sub_projects = match &looked {
            Err(CrawlError::Inspect(InspectError::ChooseSubProject { sub_projects, .. })) => {
                sub_projects
            }
            Ok(seen) if fetched.subpath.is_none() => &seen.artifact.sub_projects,
            _ => &Vec::new(),
        };
        let mut chosen = None;
        if may_ask && !sub_projects.is_empty() {
            self.progress.finish();
            let top = looked
                .as_ref()
                .ok()
                .map(|seen| seen.artifact.build_system.name.as_str());
            chosen = ask::choose_project(app, top, sub_projects)?;
        }
        let inspection = match chosen {
            None => looked?,
            Some(path) => {
                let path: RepoPath = path
                    .parse()
                    .map_err(|error| CommandError::new(ExitStatus::Refused, format!("{error}")))?;
                app.block_on(async { Ok(pipeline.look(&fetched, Some(&path)).await?) })?
            }
        };
        Ok(pipeline.inspected(inspection)?)
    }

    pub(crate) fn plan(
        &mut self,
        inspected: &Inspected,
        minds: &OpenPlannerBackends,
    ) -> Result<PlannedCrawl, CommandError> {
        let (pipeline, planner) = (&mut self.pipeline, minds.planner());
        let planned = self
            .app
            .block_on(async { Ok(pipeline.plan(inspected, &planner).await?) });
        self.progress.finish();
        planned
    }

    /// Prepares the documents of an export.
    pub(crate) fn prepare(
        &mut self,
        search: Option<Checked<SearchV1>>,
        inspected: &Inspected,
        planned: &PlannedCrawl,
    ) -> Result<PreparedExport, CommandError> {
        let search = match search {
            Some(search) => search,
            None => self.pipeline.nothing_searched(inspected)?,
        };
        Ok(self.pipeline.prepare_export(&ExportOf {
            search: &search,
            inspected,
            planned,
            config_snapshot: self.snapshot.json(),
            crucible_version: env!("CARGO_PKG_VERSION"),
        })?)
    }

    pub(crate) fn export(
        &mut self,
        prepared: &PreparedExport,
        dir: &OutputDir,
    ) -> Result<Exported, CommandError> {
        Ok(self.pipeline.export(prepared, dir)?)
    }
}

/// The GitHub client of this command; there is one, so that its rate limit is awaited once.
fn github<'d, 'a>(
    slot: &'d OnceCell<GitHub<'a>>,
    app: &'a App,
    tools: &FetchTools,
    progress: &'a CrawlProgress,
) -> &'d GitHub<'a> {
    let gh = || Gh::new(Arc::clone(&tools.sandbox), &app.env);
    slot.get_or_init(|| GitHub::new(gh(), app.clock.as_ref(), progress))
}

/// The effective configuration, the additional options, and whether the clock is real.
fn snapshot(app: &App, config: &Settings, intent: &Intent) -> Result<ConfigSnapshot, CommandError> {
    let settings = config.effective().map(|(key, setting)| {
        let value = setting
            .value
            .as_str()
            .map_or_else(|| setting.value.to_string(), str::to_owned);
        (key.to_owned(), value)
    });
    let clock = match app.clock.source() {
        ClockSource::System => "system",
        ClockSource::Pinned => "pinned",
    };
    let options = intent
        .options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    let beside = options.chain([("clock".to_owned(), clock.to_owned())]);
    Ok(ConfigSnapshot::of(settings.chain(beside)).map_err(CrawlError::from)?)
}
