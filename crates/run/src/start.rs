//! A run begins: the repository is fit for it, the goal is fit to be recorded, the limits are written down.

use std::time::Duration;

use crucible_evidence::SpecTask;
use crucible_ledger::{Ledger, RunRow};
use crucible_llm::ReceiptWarning;
use crucible_model::{Digest, RepoPath, RunId, to_canonical_line};
use crucible_repo::{Git, TrackedState};
use crucible_secrets::Scanner;

use crate::contract::{FindMode, Guardrails, RunRecord, RunSettings, RunVersion};
use crate::error::RunError;
use crate::event_kind::{EventKind, RECORD_KEY};
use crate::find::PastRuns;
use crate::found::{detect_gates, no_gates_error};
use crate::journal::{Entry, Journal, RunObserver};
use crate::layout::{self, RunDir};
use crate::recording::AnswerSource;
use crate::restore::restore_file;
use crate::role::librarian::check_named;
use crate::run_context::RunContext;
use crate::state::RunState;
use crate::trial::describe_change;
use crate::unfinished::UnfinishedRun;

/// The event key of the guardrails.
pub(crate) const GUARDRAILS_WRITTEN: &str = "guardrails";
/// The event key of the dispatch configuration.
pub(crate) const DISPATCH_WRITTEN: &str = "dispatch";

/// What a run is started with.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// What is to be achieved.
    pub goal: String,
    /// How the run works.
    pub settings: RunSettings,
    /// Time limit of a detected gate.
    pub found_gate_timeout: Duration,
    /// The directory in the repository where gates are searched first; absent for its top.
    pub started_in: Option<RepoPath>,
    /// Who answers.
    pub answers: AnswerSource,
    /// What the run's receipts warn of.
    pub warnings: Vec<ReceiptWarning>,
    /// The task of a spec that the run works on, if it was started for one.
    pub task: Option<SpecTask>,
}

/// Creates a run for the repository `git`: checks goal and repository, and writes `run.json`, the guardrails
/// and the dispatch configuration.
///
/// # Errors
///
/// Fails without leaving a run behind when the goal is empty or holds a secret, when the repository is
/// invalid, has no commit or has uncommitted changes, when no gate is known, when a named file cannot be
/// shown to a model, or when the runs would be inside the repository.
pub async fn create(
    world: &RunContext<'_>,
    git: &Git,
    options: RunOptions,
    ledger: &mut Ledger,
    observer: &mut dyn RunObserver,
) -> Result<RunId, RunError> {
    if options.goal.trim().is_empty() {
        return Err(RunError::EmptyGoal);
    }
    if let Some(found) = Scanner::builtin().scan(options.goal.as_bytes()).first() {
        return Err(RunError::SecretInGoal {
            rule: found.rule.to_string(),
        });
    }
    world.require_outside(git.top())?;
    if let Some(what) = git.operation_under_way() {
        return Err(RunError::UnderWay { what });
    }
    let now = git.tracked_state().await?;
    require_clean(&now)?;
    let gates = if options.settings.gates.is_empty() {
        detect_gates(
            git.top(),
            options.started_in.as_ref(),
            options.found_gate_timeout,
        )?
    } else {
        options.settings.gates.clone()
    };
    if gates.is_empty() {
        return Err(no_gates_error(options.started_in.as_ref()));
    }
    let created_at = world.clock.now();
    let begun_with = format!(
        "{}\n{}\n{}\n{}",
        options.goal,
        git.top().display(),
        now.commit,
        crucible_host::random::token()?
    );
    let run_id = RunId::new(created_at, Digest::compute(begun_with.as_bytes()));
    let repo = git.top().to_string_lossy();
    let past = PastRuns::similar_to(&options.goal, ledger, &repo, layout::FIND_RESULT)?;
    let slug = git.name();
    check_named(git.top(), &slug, &options.goal, &options.settings)?;
    let record = RunRecord {
        schema_version: RunVersion::V1,
        run_id: run_id.clone(),
        goal: options.goal,
        repo: git.top().to_owned(),
        repo_slug: slug,
        base_commit: now.commit,
        branch: now.branch,
        created_at,
        clock: world.clock.source(),
        warnings: options.warnings,
        past,
        task: options.task,
        settings: RunSettings {
            gates,
            ..options.settings
        },
    };
    let unfinished = UnfinishedRun::begin(&world.runs_root, &run_id, ledger)?;
    let dir = unfinished.dir.clone();
    let _lock = dir.acquire("creating the run")?;
    let source = || match &options.answers {
        AnswerSource::Recording(bytes) => dir.write(layout::SOURCE, bytes).map(drop),
        AnswerSource::Provider => Ok(()),
    };
    if let Err(error) = source().and_then(|()| write_initial_files(&dir, &record)) {
        unfinished.discard();
        return Err(error);
    }
    let mut journal = Journal::open(run_id.clone(), dir, ledger, world.clock, observer)?;
    journal.set_run_row(run_row(&record, RunState::New, world));
    record_creation(&mut journal, &record)?;
    journal.commit()?;
    // The ledger knows the run, so its directory becomes visible.
    unfinished.finish()?;
    Ok(run_id)
}

/// Records the creation of a run and its purpose.
pub(crate) fn record_creation(
    journal: &mut Journal<'_>,
    record: &RunRecord,
) -> Result<(), RunError> {
    journal.record_file("crucible", EventKind::RunCreated, RECORD_KEY, layout::RUN)?;
    let body = serde_json::json!({ "goal": record.goal, "base_commit": record.base_commit });
    let key = "goal".to_owned();
    journal.record(Entry {
        role: "operator",
        event: EventKind::GoalStated,
        key,
        path: layout::RUN,
        body,
    })?;
    journal.record_source()
}

/// Writes the files a run begins with. `run.json` comes last: without it there is no run.
pub(crate) fn write_initial_files(dir: &RunDir, record: &RunRecord) -> Result<(), RunError> {
    dir.create()?;
    for Beginning { path, bytes, .. } in beginnings(record)? {
        dir.write_recorded(path, &bytes)?;
    }
    dir.write_json(layout::RUN, record)?;
    Ok(())
}

/// Restores initial files that a crash damaged and no event records yet: they follow from `run.json`.
pub(crate) fn restore_initial_files(
    dir: &RunDir,
    record: &RunRecord,
    journal: &Journal<'_>,
) -> Result<(), RunError> {
    for Beginning { key, path, bytes } in beginnings(record)? {
        if !journal.has(key) {
            restore_file(dir, path, &bytes)?;
        }
    }
    Ok(())
}

/// An initial file of a run besides `run.json`.
struct Beginning {
    /// The key of its event.
    key: &'static str,
    path: &'static str,
    bytes: Vec<u8>,
}

fn beginnings(record: &RunRecord) -> Result<[Beginning; 2], RunError> {
    let guardrails = Guardrails {
        find_mode: record
            .settings
            .web
            .clone()
            .map_or(FindMode::ResolverOnly, FindMode::ResolverPlusWeb),
        max_files: record.settings.max_files,
        max_total_bytes: record.settings.max_total_bytes,
        max_iterations: record.settings.max_iterations,
    };
    let (guardrails, dispatch) = (
        guardrails.render().into_bytes(),
        to_canonical_line(&record.settings.dispatch())?,
    );
    Ok([
        Beginning {
            key: GUARDRAILS_WRITTEN,
            path: layout::GUARDRAILS,
            bytes: guardrails,
        },
        Beginning {
            key: DISPATCH_WRITTEN,
            path: layout::DISPATCH,
            bytes: dispatch,
        },
    ])
}

/// Returns the run's row in the list of runs.
pub(crate) fn run_row(record: &RunRecord, state: RunState, world: &RunContext<'_>) -> RunRow {
    RunRow {
        id: record.run_id.clone(),
        goal: record.goal.clone(),
        repo: record.repo.to_string_lossy().into_owned(),
        state: state.name().to_owned(),
        created: record.created_at,
        updated: world.clock.now(),
    }
}

/// Refuses uncommitted changes: a run starts from a commit, and would not see them. Untracked files are
/// allowed; they are not part of the run.
fn require_clean(now: &TrackedState) -> Result<(), RunError> {
    match now.changed.first() {
        None => Ok(()),
        Some(first) => Err(RunError::DirtyRepository {
            count: now.changed.len(),
            first: describe_change(first),
        }),
    }
}
