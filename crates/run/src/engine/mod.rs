//! Advances a run as far as possible.
//!
//! Each step creates its artifact if it is missing, and then records it. A step interrupted in between is
//! repeated; a recorded step is not. All services are called in one way ([`ask`]). For a person, the run
//! stops until the answer exists. After the signed plan, attempts follow until one is verified or none is
//! left.

mod accepted;
mod ask;
mod attempts;
mod candidates;
mod more_files;
mod objections;
mod objections_report;
mod plan;
mod prepare;
mod role_requests;

use crucible_host::fs::{remove_file, temp_dir_in};
use crucible_ledger::Ledger;
use crucible_model::{Finding, RepoPath};
use crucible_repo::Git;
use crucible_verify::{GateLevel, GateSpec};

use crate::allow::Permissions;
use crate::budget::allowed;
use crate::canary::{CanaryContext, CanaryResult, run_canary, unaffected};
use crate::clients::Clients;
use crate::contract::{DispatchConfig, RunRecord};
use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::gate_workspace::SurveyCache;
use crate::journal::{Entry, Journal, RunObserver};
use crate::layout::{self, RunDir};
use crate::progress::progress;
use crate::receipt;
use crate::recording::ClientContext;
use crate::run_context::RunContext;
use crate::start::{DISPATCH_WRITTEN, GUARDRAILS_WRITTEN, record_creation, restore_initial_files};
use crate::state::RunState;
use crate::status::answers_used;
use crate::trial::{self, TrialResult, TrialSetup};
use crate::verify_record::RecordedFiles;

/// Advances a run until it is verified, blocked or failed, and returns its state. A run that already is stays
/// unchanged. `open` creates the clients once the run's lock is held and its events are complete, so no other
/// process writes the recording they read.
///
/// # Errors
///
/// After an error, advancing again continues from the last step.
pub async fn advance<C: Clients>(
    world: &RunContext<'_>,
    dir: &RunDir,
    open: impl FnOnce(&ClientContext<'_>) -> Result<C, RunError>,
    ledger: &mut Ledger,
    observer: &mut dyn RunObserver,
) -> Result<RunState, RunError> {
    let mut record = dir.record()?;
    world.require_run_outside(&record.repo, dir)?;
    let _lock = dir.acquire("advancing the run")?;
    let git = world.git(&record.repo, &dir.fresh_scratch()?).await?;
    world.require_outside(git.top())?;
    let mut journal = Journal::open(
        record.run_id.clone(),
        dir.clone(),
        ledger,
        world.clock,
        observer,
    )?;
    let allowances = Permissions::from_events(journal.events()?);
    restore_initial_files(dir, &record, &journal)?;
    allowances.extend_attempts(&mut record);
    let dispatch = dir.read_document(layout::DISPATCH)?;
    let mut engine = Engine {
        world,
        dir: dir.clone(),
        record,
        git,
        surveys: SurveyCache::default(),
        journal,
        dispatch,
        allowances,
    };
    let calls = allowed(&engine.record, engine.journal.events()?);
    // Report edited files before using them.
    let total = engine
        .journal
        .check_files()
        .and_then(|()| answers_used(dir));
    let opened = total.and_then(|answer_count| {
        let RunRecord {
            run_id, settings, ..
        } = &engine.record;
        open(&ClientContext {
            settings,
            run: run_id,
            answered: answer_count,
            calls,
        })
    });
    let done = match opened {
        // The steps together are too large for the stack of a small thread.
        Ok(clients) => Box::pin(engine.run(&clients)).await,
        Err(error) => Err(error),
    };
    // Report the error that stopped the run, not that the full disk prevents recording it.
    let run_state = engine.note_down();
    done?;
    run_state
}

struct Engine<'a> {
    world: &'a RunContext<'a>,
    dir: RunDir,
    record: RunRecord,
    git: Git,
    surveys: SurveyCache,
    journal: Journal<'a>,
    dispatch: DispatchConfig,
    /// What was permitted since the run began.
    allowances: Permissions,
}

impl Engine<'_> {
    async fn run(&mut self, clients: &dyn Clients) -> Result<(), RunError> {
        record_creation(&mut self.journal, &self.record)?;
        self.journal.record_file(
            "crucible",
            EventKind::GuardrailsWritten,
            GUARDRAILS_WRITTEN,
            layout::GUARDRAILS,
        )?;
        self.journal.record_file(
            "crucible",
            EventKind::DispatchWritten,
            DISPATCH_WRITTEN,
            layout::DISPATCH,
        )?;
        // The ledger has it; beside a plan that was widened since, it is outdated.
        let is_over =
            !self.allowances.is_empty() && !self.journal.has(&self.allowances.key("failed"));
        if is_over && self.dir.has(layout::FAILURE) {
            remove_file(&self.dir.path(layout::FAILURE))?;
        }
        match progress(&self.dir, self.journal.events()?)?.state() {
            RunState::Landed | RunState::Declined => return Ok(()),
            // The last recorded step may lack its bundle; nothing else is left.
            RunState::Failed => return self.bundle(&self.allowances.key("failed-bundle")),
            _ => {}
        }
        // A run that has ended goes through its steps once more, too: the last ones may not have been recorded.
        let analysis = Box::pin(self.analyse()).await?;
        let Some(found) = Box::pin(self.look_up_sources(clients)).await? else {
            return Ok(());
        };
        let Some((request, pack)) =
            Box::pin(self.build_context(clients, &analysis, &found)).await?
        else {
            return Ok(());
        };
        let Some(plan) = Box::pin(self.draft(clients, &analysis, &found, &request, &pack)).await?
        else {
            return Ok(());
        };
        if !Box::pin(self.review(clients, &analysis, &found, &plan, &pack)).await? {
            return Ok(());
        }
        let plan = self.sign(&plan)?;
        Box::pin(self.attempts(clients, &analysis, &found, &plan, &pack)).await
    }

    /// Updates the files derived from other files and events, and returns the state.
    fn note_down(&mut self) -> Result<RunState, RunError> {
        let reached = progress(&self.dir, self.journal.events()?)?.state();
        self.journal.write_trace()?;
        receipt::write(&self.dir, &self.record, self.journal.events()?)?;
        self.journal.update_run_row()?;
        Ok(reached)
    }

    /// Returns whether a step's file exists and is recorded. An unrecorded file may be partial or foreign: it
    /// is created again, never trusted.
    fn is_made(&self, key: &str, path: &str) -> bool {
        self.journal.has(key) && self.dir.has(path)
    }

    /// Makes the failure bundle and records it, once for each key.
    fn bundle(&mut self, key: &str) -> Result<(), RunError> {
        let recorded = self.journal.has(key);
        if recorded && self.dir.has(layout::BUNDLE) {
            return Ok(());
        }
        self.journal.write_trace()?;
        let accounted = RecordedFiles::from_events(self.journal.events()?);
        let bytes = crucible_verify::failure_bundle(self.dir.root(), &|path| accounted.has(path))?;
        let digest = self.dir.write(layout::BUNDLE, &bytes)?;
        let body = serde_json::json!({ "digest": digest });
        let entry = Entry {
            role: "verifier",
            event: EventKind::BundleCreated,
            key: key.to_owned(),
            path: layout::BUNDLE,
            body,
        };
        self.journal.record(entry)
    }

    fn fail(&mut self, failure: &Finding) -> Result<(), RunError> {
        let key = self.allowances.key("failed");
        if !self.is_made(&key, layout::FAILURE) {
            self.dir.write_json_recorded(layout::FAILURE, failure)?;
        }
        self.journal
            .record_file("crucible", EventKind::RunFailed, &key, layout::FAILURE)?;
        self.bundle(&self.allowances.key("failed-bundle"))
    }

    /// Runs the gates on a copy of the base as it is. Returns those that are used from then on.
    async fn trial(&mut self) -> Result<(TrialResult, Vec<GateSpec>), RunError> {
        let temp_dir = temp_dir_in(&self.dir.scratch(), "trial-")?;
        let base = TrialSetup::new(&self.record, &self.record.settings.gates, &self.surveys);
        let observer = self.journal.observer()?;
        trial::run_base(self.world, &self.git, base, temp_dir.path(), observer).await
    }

    /// Runs the gates on a copy with broken sources, and returns which of them count.
    async fn canary(
        &mut self,
        gates: &[GateSpec],
        gate_files: &[RepoPath],
        before: &TrialResult,
    ) -> Result<CanaryResult, RunError> {
        let temp_dir = temp_dir_in(&self.dir.scratch(), "trial-")?;
        let observer = self.journal.observer()?;
        let base = TrialSetup::new(&self.record, gates, &self.surveys);
        let level = GateLevel::Lite;
        let on = CanaryContext {
            git: &self.git,
            base,
            level,
            room: temp_dir.path(),
            gate_files,
        };
        let proof = run_canary(self.world, on, before, observer).await?;
        match proof.report_uncounted(before, observer) {
            Some(run) => Err(unaffected(run)),
            None => Ok(proof),
        }
    }
}
