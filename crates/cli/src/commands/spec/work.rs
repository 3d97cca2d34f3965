//! What `crucible spec` and `crucible resume` share: running phases, one after the other, each with its receipt.
//!
//! How it works: everything that can be wrong with the command line, the configuration and the sources is found before the spec's lock is
//! taken; who is asked is made ready before the first phase begins. Then each phase is one [`PhaseRun`]: hooks before it, its packet, the asking, hooks after
//! it, and its receipt. A phase that fails ends the command with the exit code that its receipt holds.
//!
//! What always holds: the new idea is kept once the packet with it is found free of secrets and small enough, and not before; Ctrl-C
//! leaves a receipt; whoever is asked is within one budget for all phases of the command.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use crucible_host::config::Config;
use crucible_ledger::Ledger;
use crucible_llm::{
    Backend, BudgetLimits, CallBudget, CallWatch, CassetteHeader, ClientOptions, Limit, ModelClient,
    PriceTable, ReceiptWarning, Selected,
};
use crucible_model::{ByteLimit, EditFormat, ExitStatus, Untrusted};
use crucible_sandbox::Sandbox;
use crucible_spec::{
    ConfigSummary, FileSelectors, FixupChoice, HookConsequence, HookMoment, HookSubject, IDEA, LockClaim,
    PhaseId, PhaseOrder, PhaseRun, PhaseStatus, SpecError, SpecId, SpecLock, SpecProject, SpecReceipt,
    SpecStatus, SpecStore, Trial, apply_pending, failure_class, pending_fixups, spec_status,
};

use super::fixups::{FixupFlags, FixupWish, show_applied, show_pending};
use super::hooks::Hooks;
use super::progress::PhaseProgress;
use super::show::{show_dry, show_phase};
use super::sources::{GivenIdea, IdeaOrigin, SourceFlags, packet_limits};
use super::{place, show};
use crate::app::App;
use crate::commands::council::number;
use crate::commands::model;
use crate::commands::record::Record;
use crate::commands::run::{providers, require_controlled, shared_sandbox};
use crate::error::CommandError;
use crate::output::Output;

/// How phases are run
#[derive(Args, Default)]
pub(crate) struct PhaseFlags {
    #[command(flatten)]
    pub(crate) sources: SourceFlags,
    #[command(flatten)]
    fixups: FixupFlags,
    /// Put the packet together and check it, and ask nobody. Counts for nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Who answers; without it the configured one (llm.provider, which has no default)
    #[arg(long, value_name = "NAME", value_parser = providers())]
    provider: Option<String>,
    /// Who answers where that provider cannot be made ready; without it as configured (llm.fallback_provider, none)
    #[arg(long, value_name = "NAME", value_parser = providers())]
    fallback_provider: Option<String>,
    /// The recording that answers, for the provider `replay`
    #[arg(long, value_name = "FILE")]
    cassette: Option<PathBuf>,
    /// The model to ask in every phase; without it the one that [phases] names for the phase, else the provider's own
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Who may act on what a model says: `controlled`, Crucible alone, which is all there is
    #[arg(long, value_name = "STRATEGY")]
    execution_strategy: Option<String>,
    /// Write every call to this new file; the provider `replay` answers the same command from it again
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Take the spec's lock from a process that holds it; that process keeps nothing
    #[arg(long)]
    force: bool,
    /// The workspace.yaml whose directory is the project; without it the project that holds the working directory
    #[arg(long, value_name = "FILE")]
    workspace: Option<PathBuf>,
}

/// A command at work on a spec, its lock held.
pub(crate) struct Work<'a> {
    app: &'a App,
    flags: &'a PhaseFlags,
    desk: &'a Desk,
    lock: SpecLock,
    ledger: Ledger,
    idea: Option<GivenIdea>,
    files: FileSelectors,
    asked: Option<Asked>,
    progress: Option<Arc<PhaseProgress>>,
    /// What was run, in order.
    ran: Vec<PhaseId>,
}

/// What is known before the lock is taken.
pub(crate) struct Desk {
    pub(crate) config: Config,
    pub(crate) project: SpecProject,
    pub(crate) store: SpecStore,
    hooks: Hooks,
    sandbox: Arc<Sandbox>,
    record: Option<Record>,
    bounds: Bounds,
}

/// What each phase is held to.
struct Bounds {
    attempts: u64,
    phase_time: Duration,
    call_time: Duration,
}

/// Who is asked.
struct Asked {
    backend: Backend,
    model: String,
    warnings: Vec<ReceiptWarning>,
    budget: Arc<CallBudget>,
    prices: Arc<PriceTable>,
}

impl PhaseFlags {
    /// The settings that the options stand for.
    fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = Vec::new();
        let mut add = |key, value: Option<String>| settings.extend(value.map(|value| (key, value)));
        add("llm.provider", self.provider.clone());
        add("llm.fallback_provider", self.fallback_provider.clone());
        add("llm.execution_strategy", self.execution_strategy.clone());
        add("llm.replay.cassette", self.cassette.as_ref().map(|path| path.display().to_string()));
        settings
    }

    /// Whether fixups are to be applied.
    pub(crate) fn applies(&self) -> bool {
        self.fixups.wish() == FixupWish::Apply
    }
}

impl Desk {
    /// Reads the configuration and looks at what the command line names. Nothing is changed.
    pub(crate) fn new(app: &App, spec: &SpecId, flags: &PhaseFlags) -> Result<Self, CommandError> {
        let project = place::project(app, flags.workspace.as_deref())?;
        let config = app.config(project.root(), &flags.settings())?;
        require_controlled(&config)?;
        model::check_cassette(flags.cassette.as_deref(), config.text("llm.provider").unwrap_or_default())?;
        model::check_budget(&config)?;
        let seconds = |key: &str| number(&config, key).map(Duration::from_secs);
        let bounds = Bounds {
            attempts: number(&config, "spec.attempts")?,
            phase_time: seconds("spec.phase_timeout_s")?,
            call_time: seconds("llm.timeout_s")?,
        };
        number(&config, "spec.max_packet_bytes")?;
        number(&config, "spec.max_packet_lines")?;
        let hooks = Hooks::read(app, &config, &project)?;
        let record = flags.record.as_deref().map(|path| Record::at(app.absolute(path))).transpose()?;
        let store = SpecStore::new(&project, spec.clone());
        Ok(Self { config, project, store, hooks, sandbox: shared_sandbox(app), record, bounds })
    }

    /// The most bytes of an idea.
    pub(crate) fn idea_limit(&self) -> ByteLimit {
        ByteLimit(packet_limits(&self.config).max_bytes)
    }

    /// What the documents say of the configuration.
    pub(crate) fn summary(&self) -> ConfigSummary {
        ConfigSummary::of(self.config.text("llm.provider").unwrap_or_default())
    }
}

impl<'a> Work<'a> {
    /// Takes the spec's lock.
    pub(crate) fn begin(
        app: &'a App,
        desk: &'a Desk,
        flags: &'a PhaseFlags,
        idea: Option<GivenIdea>,
    ) -> Result<Self, CommandError> {
        let files = flags.sources.files(app, &desk.project, &desk.config)?;
        let ledger = app.ledger()?;
        let claim = if flags.force { LockClaim::Force } else { LockClaim::Wait };
        let owner = format!("crucible, process {}", std::process::id());
        let lock = desk.store.lock(&owner, claim)?;
        Ok(Self { app, flags, desk, lock, ledger, idea, files, asked: None, progress: None, ran: Vec::new() })
    }

    /// Where the spec stands now.
    pub(crate) fn status(&self) -> Result<SpecStatus, CommandError> {
        Ok(spec_status(&self.lock.store().state(None)?, self.app.clock.now()))
    }

    /// The spec under its lock.
    pub(crate) fn lock(&self) -> &SpecLock {
        &self.lock
    }

    /// The phases that were run.
    pub(crate) fn ran(&self) -> &[PhaseId] {
        &self.ran
    }

    /// Runs these phases, in order, and shows what each did.
    pub(crate) fn run(&mut self, phases: &[PhaseId]) -> Result<(), CommandError> {
        for phase in phases {
            if *phase == PhaseId::Fixup && self.flags.applies() && self.apply()? {
                continue;
            }
            let receipt = self.phase(*phase)?;
            self.ran.push(*phase);
            self.show(*phase, &receipt)?;
            if *phase == PhaseId::Fixup && self.flags.applies() {
                self.apply()?;
            }
        }
        Ok(())
    }

    /// Tries one phase dry.
    pub(crate) fn try_dry(&mut self, phase: PhaseId) -> Result<SpecReceipt, CommandError> {
        let order = PhaseOrder {
            trial: Trial::Dry,
            ..self.order(phase, EditFormat::WholeFile, String::new(), Vec::new())
        };
        let mut run = PhaseRun::begin(&self.lock, self.app.clock.as_ref(), order)?;
        let idea = self.idea.as_ref().map(|given| &given.idea.text);
        if let Err(error) = run.gather(idea, self.files.clone()) {
            return Err(ended(self.app, &mut run, &mut self.ledger, error));
        }
        let receipt = run.tried_dry(&mut self.ledger)?;
        if !self.app.output.is_json() {
            show_dry(self.app, phase, &receipt);
        }
        Ok(receipt)
    }

    /// Applies the fixup that waits; false where none does that is made from what is there now.
    pub(crate) fn apply(&mut self) -> Result<bool, CommandError> {
        let choice = FixupChoice {
            policy: self.flags.fixups.policy(&self.desk.config),
            links: self.flags.fixups.links(),
        };
        let clock = self.app.clock.as_ref();
        let applied = apply_pending(&self.lock, &self.desk.project, &choice, clock, &mut self.ledger)?;
        let Some((applied, _receipt)) = applied else {
            return Ok(false);
        };
        self.ran.push(PhaseId::Fixup);
        if !self.app.output.is_json() {
            show_applied(self.app, &applied);
        }
        Ok(true)
    }

    /// Runs one phase to its receipt.
    fn phase(&mut self, phase: PhaseId) -> Result<SpecReceipt, CommandError> {
        self.choose()?;
        let Some(asked) = &self.asked else {
            return Err(nobody());
        };
        let format = asked.backend.capabilities().edit_format;
        let order = self.order(phase, format, asked.model.clone(), asked.warnings.clone());
        let mut run = PhaseRun::begin(&self.lock, self.app.clock.as_ref(), order)?;
        let worked = self.worked(&mut run, asked);
        if let Some(progress) = &self.progress {
            progress.finish();
        }
        let ended = match worked {
            Ok(Ok(())) => run
                .succeed(&mut self.ledger)
                .map_err(|error| ended(self.app, &mut run, &mut self.ledger, error)),
            Ok(Err(error)) => Err(ended(self.app, &mut run, &mut self.ledger, error)),
            // The future was dropped where it stood.
            Err(error) => Err(interrupted(self.app, &mut run, &mut self.ledger, error)),
        };
        if let Some(record) = &self.desk.record {
            record.copy(&asked.backend, run.calls())?;
        }
        ended
    }

    /// Everything of a phase but its receipt. The outer error is an interruption.
    fn worked(&self, run: &mut PhaseRun<'_>, asked: &Asked) -> Result<Result<(), SpecError>, CommandError> {
        let phase = run.phase();
        let subject = HookSubject {
            receipt_id: Some(run.id().as_str().to_owned()),
            ..HookSubject::before(self.desk.store.spec().clone(), phase)
        };
        let before =
            self.app.block_on(async { Ok(self.hooked(run, HookMoment::PrePhase, &subject).await) })?;
        let done = before.and_then(|()| self.prepared(run)).and_then(|()| self.client(run, asked));
        let done = match done {
            Ok(client) => self.app.block_on(async { Ok(run.ask(&client).await) })?,
            Err(error) => Err(error),
        };
        if !self.desk.hooks.any(HookMoment::PostPhase, phase) {
            return Ok(done);
        }
        let status = if done.is_ok() { PhaseStatus::Success } else { PhaseStatus::Failed };
        let artifact = match done.is_ok().then(|| run.draft()).transpose() {
            Ok(draft) => draft.flatten(),
            Err(error) => return Ok(Err(error)),
        };
        let subject = HookSubject { status: Some(status), artifact, ..subject };
        let after =
            self.app.block_on(async { Ok(self.hooked(run, HookMoment::PostPhase, &subject).await) })?;
        // What the phase failed for counts before what its hooks say.
        Ok(done.and(after))
    }

    /// Runs the hooks of a moment.
    async fn hooked(
        &self,
        run: &mut PhaseRun<'_>,
        moment: HookMoment,
        subject: &HookSubject,
    ) -> Result<(), SpecError> {
        let outcome = self.desk.hooks.run(self.app, &self.desk.sandbox, moment, subject).await;
        run.hooks_ran(outcome.receipts);
        match outcome.consequence {
            HookConsequence::GoOn(warnings) => {
                warnings.into_iter().for_each(|warning| run.warn(warning));
                Ok(())
            }
            HookConsequence::Fail(error) => Err(error),
        }
    }

    /// Puts the packet together, and keeps a new idea once it is found to be free of secrets.
    fn prepared(&self, run: &mut PhaseRun<'_>) -> Result<(), SpecError> {
        let given = self.idea.as_ref().filter(|_| run.phase() == PhaseId::Requirements);
        for passed_over in given.into_iter().flat_map(|given| &given.idea.passed_over) {
            run.warn(ReceiptWarning {
                kind: "file_passed_over".to_owned(),
                message: passed_over.to_string(),
            });
        }
        for note in given.into_iter().flat_map(|given| &given.idea.notes) {
            run.warn(ReceiptWarning { kind: "source_note".to_owned(), message: note.clone() });
        }
        run.gather(given.map(|given| &given.idea.text), self.files.clone())?;
        match given {
            Some(GivenIdea { idea, origin: IdeaOrigin::Given }) => keep(&self.lock, &idea.text),
            Some(_) | None => Ok(()),
        }
    }

    fn client(&self, run: &mut PhaseRun<'_>, asked: &Asked) -> Result<ModelClient, SpecError> {
        let speaker = asked.backend.speaker();
        let header = CassetteHeader::new(
            speaker.provider.clone(),
            speaker.model.clone(),
            asked.backend.capabilities(),
        );
        Ok(ModelClient::new(
            asked.backend.clone(),
            ClientOptions {
                recording: run.recording(&header)?,
                prices: Arc::clone(&asked.prices),
                ..ClientOptions::new(Arc::clone(&asked.budget))
            },
        ))
    }

    fn order(
        &self,
        phase: PhaseId,
        edit_format: EditFormat,
        model: String,
        warnings: Vec<ReceiptWarning>,
    ) -> PhaseOrder {
        let bounds = &self.desk.bounds;
        PhaseOrder {
            phase,
            trial: Trial::Real,
            limits: packet_limits(&self.desk.config),
            attempts: bounds.attempts,
            phase_time: bounds.phase_time,
            call_time: bounds.call_time,
            model,
            edit_format,
            policy: self.flags.fixups.policy(&self.desk.config),
            warnings,
        }
    }

    /// Makes whoever is asked ready, once.
    fn choose(&mut self) -> Result<(), CommandError> {
        if self.asked.is_some() {
            return Ok(());
        }
        let config = &self.desk.config;
        let provider = config.text("llm.provider").ok_or_else(nobody)?;
        let Selected { backend, fell_back, .. } =
            model::selected(self.app, config, &self.desk.sandbox, provider)?;
        // The name of a model means nothing to another provider.
        let model = self.flags.model.clone().filter(|_| fell_back.is_none()).unwrap_or_default();
        if let (Some(wanted), Some(_)) = (&self.flags.model, &fell_back) {
            let own = backend.default_model();
            self.app
                .output
                .remark(&format!("note: the fallback is asked with its own model {own}, not with {wanted}"));
        }
        let backend = match wants_progress(&self.app.output) {
            false => backend,
            true => {
                let name = if model.is_empty() { backend.default_model() } else { &model };
                let asked = format!("{} ({name})", backend.provider());
                let progress = Arc::new(PhaseProgress::new(&self.app.output, asked));
                self.progress = Some(Arc::clone(&progress));
                backend.watched(progress as Arc<dyn CallWatch>)
            }
        };
        let limits =
            BudgetLimits { calls: Limit::At(config.number("llm.budget.calls")), ..model::limits(config)? };
        self.asked = Some(Asked {
            backend,
            model,
            warnings: fell_back.iter().map(ReceiptWarning::fallback).collect(),
            budget: CallBudget::new(limits),
            prices: Arc::new(model::prices(config)?),
        });
        Ok(())
    }

    /// Shows what a phase did, and the fixups that it proposes.
    fn show(&self, phase: PhaseId, receipt: &SpecReceipt) -> Result<(), CommandError> {
        if self.app.output.is_json() {
            return Ok(());
        }
        let store = self.lock.store();
        show_phase(self.app, store, phase, receipt);
        if phase != PhaseId::Fixup || pending_fixups(&store.state(None)?) == 0 {
            return Ok(());
        }
        match store.read(crucible_spec::FIXUP_DIFF)? {
            Some(diff) => show_pending(self.app, store.spec(), &diff),
            None => Ok(()),
        }
    }

    /// Tells what comes next.
    pub(crate) fn conclude(&self) -> Result<(), CommandError> {
        show::show_next(self.app, self.status()?.next.as_ref());
        Ok(())
    }
}

/// Whoever reads a document finds nothing on standard error but what went wrong; a spinner leaves nothing behind.
fn wants_progress(output: &Output) -> bool {
    !output.is_json() || output.live
}

/// Keeps the idea, where it is not the one that is kept.
fn keep(lock: &SpecLock, idea: &Untrusted) -> Result<(), SpecError> {
    let bytes = idea.as_str().as_bytes();
    if lock.store().read(IDEA)?.as_deref() == Some(bytes) {
        return Ok(());
    }
    lock.write_context(IDEA.trim_start_matches("context/"), bytes)
}

/// Ends a try that failed with its receipt. What was wrong with the command line leaves none, and neither does a lock that is lost.
fn ended(app: &App, run: &mut PhaseRun<'_>, ledger: &mut Ledger, error: SpecError) -> CommandError {
    let class = failure_class(&error);
    let message = app.env.without_home(&error.to_string());
    let command = CommandError::from(error);
    if !matches!(class, "usage" | "lock") {
        told(app, run, ledger, class, &message, command.status);
    }
    command
}

/// Ends a try that was interrupted with its receipt.
fn interrupted(app: &App, run: &mut PhaseRun<'_>, ledger: &mut Ledger, error: CommandError) -> CommandError {
    let class = if error.status == ExitStatus::Interrupted { "interrupted" } else { "internal" };
    told(app, run, ledger, class, &app.env.without_home(&error.message), error.status);
    match error.status {
        ExitStatus::Interrupted => error.hint("Phases that were done are kept; the same command goes on, and answers that were paid for are not asked for again."),
        _ => error,
    }
}

fn told(
    app: &App,
    run: &mut PhaseRun<'_>,
    ledger: &mut Ledger,
    class: &str,
    message: &str,
    exit: ExitStatus,
) {
    if let Err(second) = run.fail(class, message, exit, ledger) {
        app.output.remark(&format!("warning: no receipt of this could be written: {second}"));
    }
}

fn nobody() -> CommandError {
    CommandError::usage("no model is configured").hint(format!(
        "Say whom to ask: --provider NAME, or {} for every command; `crucible doctor` shows who can be asked.",
        crucible_host::config::variable_of("llm.provider")
    ))
}
