//! Runs phases one after the other, each with its receipt, for `crucible spec` and `crucible resume`.
//!
//! Errors in the command line, the configuration and the sources are found before the spec's lock is
//! taken. The backend is prepared before the first phase. Each phase is then one [`PhaseRun`]: hooks
//! before it, its packet, the model call, hooks after it, and its receipt. A failed phase ends the
//! command with the exit code in its receipt. Fixups are applied before any phase runs, between the hooks
//! of their phase.
//!
//! Invariants: a command never applies a fixup that it proposed itself. A new idea is stored after its
//! packet is found to be free of secrets and within limits; if a hook runs earlier, after the idea itself
//! is. Ctrl-C leaves a receipt. All phases of a command share one budget.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use crucible_ledger::Ledger;
use crucible_llm::{
    Backend, BudgetLimits, CallBudget, CallWatch, CassetteHeader, ClientOptions, Limit,
    ModelClient, PriceTable, ReceiptWarning, Selected,
};
use crucible_model::{ByteLimit, EditFormat, ExitStatus, Untrusted};
use crucible_repo::RecoveredEdit;
use crucible_sandbox::Sandbox;
use crucible_secrets::Scanner;
use crucible_settings::Settings;
use crucible_spec::{
    AppliedFixup, ConfigSummary, FileSelectors, FixupChoice, FixupRun, HookMoment, HookSubject,
    IDEA, LockClaim, PacketLimits, PhaseId, PhaseOrder, PhaseRun, PhaseStatus, PromotionEnd,
    SpecError, SpecId, SpecLock, SpecProject, SpecReceipt, SpecState, SpecStatus, SpecStore, Trial,
    WaitingFixup, check_named_files, failure_class, pending_fixups, recover_fixup, spec_status,
    waiting_fixup,
};

use super::fixups::{FIXUPS, FixupFlags, FixupWish, show_applied, show_pending, show_recovered};
use super::hooks::Hooks;
use super::ignored::keep_out_of_git;
use super::progress::PhaseProgress;
use super::show::{show_dry, show_phase};
use super::sources::{GivenIdea, IdeaOrigin, SourceFlags, packet_limits, warn_of_sources};
use super::{place, show};
use crate::app::App;
use crate::commands::council::number;
use crate::commands::model;
use crate::commands::record::Record;
use crate::commands::run::{providers, require_controlled, shared_sandbox};
use crate::error::CommandError;
use crate::output::Output;
use crate::text::one_line;

/// The flags for running phases
#[derive(Args, Default)]
pub(crate) struct PhaseFlags {
    #[command(flatten)]
    pub(crate) sources: SourceFlags,
    #[command(flatten)]
    fixups: FixupFlags,
    /// Build and check the prompt without calling a model; `gate` ignores the receipt
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Provider of all calls [default: llm.provider]
    #[arg(long, alias = "llm-provider", value_name = "NAME", value_parser = providers())]
    provider: Option<String>,
    /// Fallback if the provider is unavailable [default: llm.fallback_provider]
    #[arg(long, value_name = "NAME", value_parser = providers())]
    fallback_provider: Option<String>,
    /// The recording to answer from, for the provider `replay`
    #[arg(long, value_name = "FILE")]
    cassette: Option<PathBuf>,
    /// Model of every phase [default: the phase's in [phases], else the provider's]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Who may act on a model's answer; only `controlled`, Crucible alone, is supported
    #[arg(long, value_name = "STRATEGY")]
    execution_strategy: Option<String>,
    /// Record every call in this new file, for the provider `replay`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Take the spec's lock from another process
    ///
    /// That process then saves nothing more.
    #[arg(long)]
    force: bool,
    /// The workspace.yaml of the project [default: the project of the working directory]
    #[arg(long, value_name = "FILE")]
    workspace: Option<PathBuf>,
}

/// A running command that holds the lock of a spec.
pub(crate) struct Work<'a> {
    app: &'a App,
    flags: &'a PhaseFlags,
    session: &'a SpecSession,
    lock: SpecLock,
    ledger: Ledger,
    /// How an interrupted application of fixups was recovered.
    recovered: RecoveredEdit,
    pub(crate) idea: Option<GivenIdea>,
    pub(crate) asked: Option<PhaseModel>,
    /// The phases that have run, in order.
    ran: Vec<PhaseId>,
}

/// Everything that is known before the lock is taken.
pub(crate) struct SpecSession {
    pub(crate) config: Settings,
    pub(crate) project: SpecProject,
    pub(crate) store: SpecStore,
    files: FileSelectors,
    hooks: Hooks,
    sandbox: Arc<Sandbox>,
    record: Option<Record>,
    bounds: Bounds,
}

/// The limits of each phase.
struct Bounds {
    attempts: u64,
    phase_time: Duration,
    call_time: Duration,
}

/// The backend of the phases.
pub(crate) struct PhaseModel {
    backend: Backend,
    /// The progress display.
    progress: Option<Arc<PhaseProgress>>,
    model: String,
    warnings: Vec<ReceiptWarning>,
    budget: Arc<CallBudget>,
    prices: Arc<PriceTable>,
}

impl PhaseFlags {
    /// The settings that the options override.
    fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = Vec::new();
        let mut add = |key, value: Option<String>| settings.extend(value.map(|value| (key, value)));
        add("llm.provider", self.provider.clone());
        add("llm.fallback_provider", self.fallback_provider.clone());
        add("llm.execution_strategy", self.execution_strategy.clone());
        add(
            "llm.replay.cassette",
            self.cassette
                .as_ref()
                .map(|path| path.display().to_string()),
        );
        settings
    }

    /// Whether to apply fixups.
    pub(crate) fn applies(&self) -> bool {
        self.fixups.wish() == FixupWish::Apply
    }

    /// Refuses the fixup flags if no phase of the command proposes or applies a fixup.
    pub(crate) fn check_fixups(&self, first: PhaseId, last: PhaseId) -> Result<(), CommandError> {
        let proposes = !self.dry_run && (first..=last).contains(&PhaseId::Fixup);
        match self.fixups.widening().filter(|_| !proposes && !self.applies()) {
            Some(flag) => Err(CommandError::usage(format!(
                "no fixup is proposed or applied here, so {flag} has no effect"
            ))
            .hint(format!(
                "Pass {flag} to the command that runs the phase fixup, and to the one that applies it."
            ))),
            None => Ok(()),
        }
    }

    /// The requested recording. A dry run has no calls to record, so it refuses one.
    fn record(&self, app: &App) -> Result<Option<Record>, CommandError> {
        match &self.record {
            Some(_) if self.dry_run => Err(CommandError::usage(
                "a dry run makes no model call, so --record has nothing to write",
            )
            .hint("Omit one of the two.")),
            Some(path) => Record::at(app.absolute(path)).map(Some),
            None => Ok(None),
        }
    }

    /// Refuses `--apply-fixups` in a dry run, where it has no effect.
    pub(crate) fn check_applying(&self, spec: &SpecId) -> Result<(), CommandError> {
        match self.applies() && self.dry_run {
            true => Err(applies_nothing(
                "a dry run changes nothing, so --apply-fixups has no effect",
                spec,
            )),
            false => Ok(()),
        }
    }
}

/// The outcome of `--apply-fixups`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applying {
    /// A pending fixup was applied.
    Applied,
    /// Nothing is pending: the newest fixup is applied, or proposed no change.
    Settled,
    /// No pending fixup matches the current files.
    Missing,
}

/// The error of `--apply-fixups` if the command ends before the fixup phase and none is pending.
pub(crate) fn nothing_waits(spec: &SpecId) -> CommandError {
    applies_nothing(
        "no fixup is pending, and this command proposes none, so --apply-fixups has no effect",
        spec,
    )
}

/// The error of `--apply-fixups` if it cannot apply anything.
fn applies_nothing(why: &str, spec: &SpecId) -> CommandError {
    CommandError::usage(why.to_owned()).hint(format!(
        "`crucible resume {spec} --phase fixup --apply-fixups` applies pending fixups; without --apply-fixups \
        this command does the rest."
    ))
}

impl SpecSession {
    /// Reads the configuration and checks what the command line names. Changes nothing.
    pub(crate) fn new(app: &App, spec: &SpecId, flags: &PhaseFlags) -> Result<Self, CommandError> {
        let project = place::project(app, flags.workspace.as_deref())?;
        let config = app.config(project.root(), &flags.settings())?;
        require_controlled(&config)?;
        model::check_cassette(
            flags.cassette.as_deref(),
            config.llm.provider.as_deref().unwrap_or_default(),
        )?;
        model::check_budget(&config)?;
        let seconds = |key: &str, value: u64| number(key, value).map(Duration::from_secs);
        let bounds = Bounds {
            attempts: number("spec.attempts", config.spec.attempts)?,
            phase_time: seconds("spec.phase_timeout_s", config.spec.phase_timeout_s)?,
            call_time: seconds("llm.timeout_s", config.llm.timeout_s)?,
        };
        number("spec.max_packet_bytes", config.spec.max_packet_bytes)?;
        number("spec.max_packet_lines", config.spec.max_packet_lines)?;
        let hooks = Hooks::read(app, &config, &project)?;
        flags.fixups.check(project.root())?;
        let record = flags.record(app)?;
        // A mistyped name is found before any hook runs and any model is called.
        let files = flags.sources.files(app, &project, &config)?;
        check_named_files(&files)?;
        let home = app.home()?;
        let store = SpecStore::new(&project, spec.clone())
            .with_records(home.join(FIXUPS))
            .with_calls(home.join("calls"));
        Ok(Self {
            config,
            project,
            store,
            files,
            hooks,
            sandbox: shared_sandbox(app),
            record,
            bounds,
        })
    }

    /// The size limit of an idea.
    pub(crate) fn idea_limit(&self) -> ByteLimit {
        ByteLimit(packet_limits(&self.config).max_bytes)
    }

    /// Prepares the backend. Changes nothing.
    pub(crate) fn asked(&self, app: &App, flags: &PhaseFlags) -> Result<PhaseModel, CommandError> {
        let config = &self.config;
        let provider = config.llm.provider.as_deref().ok_or_else(nobody)?;
        let Selected {
            backend, fell_back, ..
        } = model::selected(app, config, &self.sandbox, provider)?;
        // A fallback provider does not know the model name of another provider.
        let model = flags
            .model
            .clone()
            .filter(|_| fell_back.is_none())
            .unwrap_or_default();
        if let (Some(wanted), Some(_)) = (&flags.model, &fell_back) {
            let own = backend.default_model();
            app.output.remark(&format!(
                "note: the fallback uses its own model {own}, not {wanted}"
            ));
        }
        let progress = wants_progress(&app.output).then(|| {
            let name = if model.is_empty() {
                backend.default_model()
            } else {
                &model
            };
            let asked = format!("{} ({name})", backend.provider());
            Arc::new(PhaseProgress::new(&app.output, asked))
        });
        let limits = BudgetLimits {
            calls: Limit::At(config.budget.calls),
            ..model::limits(config)?
        };
        Ok(PhaseModel {
            backend,
            progress,
            model,
            warnings: fell_back.iter().map(ReceiptWarning::fallback).collect(),
            budget: CallBudget::new(limits),
            prices: Arc::new(model::prices(config)?),
        })
    }

    /// A summary of the configuration for JSON documents.
    pub(crate) fn summary(&self) -> ConfigSummary {
        ConfigSummary::of(self.config.llm.provider.as_deref().unwrap_or_default())
    }
}

impl<'a> Work<'a> {
    /// Takes the spec's lock.
    pub(crate) fn begin(
        app: &'a App,
        session: &'a SpecSession,
        flags: &'a PhaseFlags,
    ) -> Result<Self, CommandError> {
        let mut ledger = app.ledger()?;
        // Checked before any model call, because a call that cannot be recorded must not be paid for.
        ledger.check_writable()?;
        let claim = if flags.force {
            LockClaim::Force
        } else {
            LockClaim::IfFree
        };
        let lock = session
            .store
            .lock(&format!("crucible spec {}", session.store.spec()), claim)?;
        keep_out_of_git(session.project.root())?;
        // From here on, the project's files contain a whole fixup or none of it.
        let recovered = recover_fixup(&session.project, &lock)?;
        show_recovered(app, &recovered);
        let (idea, ran) = (None, Vec::new());
        Ok(Self {
            app,
            flags,
            session,
            lock,
            ledger,
            recovered,
            idea,
            asked: None,
            ran,
        })
    }

    /// Reads the state of the spec, including the ledger's view.
    pub(crate) fn state(&self) -> Result<SpecState, SpecError> {
        self.lock.store().state(Some(&self.ledger))
    }

    /// Reads the status of the spec.
    pub(crate) fn status(&self) -> Result<SpecStatus, CommandError> {
        let state = self.state()?;
        let mut status = spec_status(&state, self.app.clock.now());
        // A dry run does not store the idea, so the next command needs it again.
        if self.flags.dry_run
            && !state.has_idea
            && let Some(next) = status
                .next
                .as_mut()
                .filter(|next| next.phase_id == PhaseId::Requirements)
        {
            next.command = self.flags.sources.again(self.session.store.spec());
        }
        Ok(status)
    }

    /// The phases that have run.
    pub(crate) fn ran(&self) -> &[PhaseId] {
        &self.ran
    }

    /// Applies the fixup that was pending when the command began, if requested, before any phase runs. A
    /// fixup that this command proposes stays pending until a person has seen it. `last` is the last
    /// phase of the command.
    pub(crate) fn applying(&mut self, last: PhaseId) -> Result<Option<Applying>, CommandError> {
        if !self.flags.applies() {
            return Ok(None);
        }
        let applying = self.apply()?;
        match applying {
            Applying::Applied => {}
            Applying::Settled | Applying::Missing if last < PhaseId::Fixup => {
                return Err(nothing_waits(self.session.store.spec()));
            }
            Applying::Settled => self.tell("no fixup is pending; none was applied"),
            Applying::Missing => {
                self.tell("no pending fixup matches the current files; none was applied");
            }
        }
        Ok(Some(applying))
    }

    fn tell(&self, what: &str) {
        if !self.app.output.is_json() {
            self.app.output.line(what);
        }
    }

    /// Runs these phases in order, and shows the result of each.
    pub(crate) fn run(&mut self, phases: &[PhaseId]) -> Result<(), CommandError> {
        for phase in phases {
            let receipt = self.phase(*phase)?;
            self.ran.push(*phase);
            self.show(*phase, &receipt)?;
        }
        Ok(())
    }

    /// Runs one phase as a dry run.
    pub(crate) fn try_dry(&mut self, phase: PhaseId) -> Result<SpecReceipt, CommandError> {
        let order = PhaseOrder {
            trial: Trial::Dry,
            ..self.order(phase, EditFormat::WholeFile, String::new(), Vec::new())
        };
        let mut run = PhaseRun::begin(&self.lock, self.app.clock.as_ref(), order, &self.ledger)?;
        let given = self
            .idea
            .as_ref()
            .filter(|_| phase == PhaseId::Requirements);
        warn_of_sources(&mut run, given);
        let idea = self.idea.as_ref().map(|given| &given.idea);
        if let Err(error) = run.gather(idea, self.session.files.clone()) {
            let fail = |told: FailureNote<'_>| {
                run.fail(told.class, told.message, told.exit, &mut self.ledger)
                    .map(drop)
            };
            return Err(ended(self.app, fail, error, Hooked::No));
        }
        let receipt = run.tried_dry(&mut self.ledger)?;
        warn_unfinished(self.app, phase, run.unfinished());
        if !self.app.output.is_json() {
            show_dry(self.app, phase, &receipt);
        }
        Ok(receipt)
    }

    /// Applies the pending fixup between the hooks of its phase.
    fn apply(&mut self) -> Result<Applying, CommandError> {
        let mut run = match waiting_fixup(&self.lock, self.app.clock.as_ref(), &self.ledger)? {
            WaitingFixup::Ready(run) => run,
            WaitingFixup::Settled => return Ok(Applying::Settled),
            WaitingFixup::Missing => return Ok(Applying::Missing),
        };
        let spec = self.session.store.spec();
        let again = format!("`crucible resume {spec} --phase fixup --apply-fixups`");
        let hooked = self.hooked_by([HookMoment::PrePhase], PhaseId::Fixup);
        let unapplied = |run: &FixupRun<'_>, ledger: &mut Ledger, stopped: Stopped| {
            let fail = |told: FailureNote<'_>| {
                run.fail(told.class, told.message, told.exit, ledger)
                    .map(drop)
            };
            stopped.ended(self.app, fail, hooked)
        };
        let mut subject = HookSubject {
            receipt_id: Some(run.id().as_str().to_owned()),
            ..HookSubject::before(spec.clone(), PhaseId::Fixup)
        };
        if let Err(stopped) = self.hooked_apply(&mut run, HookMoment::PrePhase, &subject) {
            return Err(unapplied(&run, &mut self.ledger, stopped).hint(format!(
                "The fixup is pending: {again} continues with it, without a model call."
            )));
        }
        let choice = self.fixups().map_err(Stopped::Interrupted);
        let applied = choice.and_then(|choice| {
            run.apply(&self.session.project, &choice)
                .map_err(Stopped::Failed)
        });
        let applied = match (applied, hooked) {
            (Ok(applied), _) => applied,
            (Err(stopped), Hooked::Yes) => return Err(unapplied(&run, &mut self.ledger, stopped)),
            // Nothing has happened that a receipt could record.
            (Err(stopped), Hooked::No) => return Err(stopped.into()),
        };
        if !self.app.output.is_json() {
            show_applied(self.app, &applied);
        }
        subject.status = Some(PhaseStatus::Success);
        subject.artifact = Some(run.artifact());
        let promoted = self
            .hooked_apply(&mut run, HookMoment::PostPhase, &subject)
            .and_then(|()| run.succeed(&mut self.ledger).map_err(Stopped::Failed));
        let promoted = match promoted {
            Ok(promoted) => promoted,
            // On any error, the message must name the files that were changed.
            Err(stopped) => {
                let error = unapplied(&run, &mut self.ledger, stopped);
                return Err(with_changed_files(error, &applied).hint(format!(
                    "Run {again} again for the receipt; no model is called for it."
                )));
            }
        };
        if let PromotionEnd::CleanUpPending { why } = promoted.end {
            warn_unfinished(self.app, PhaseId::Fixup, &[why]);
        }
        for warning in promoted
            .receipt
            .phases
            .iter()
            .flat_map(|entry| &entry.warnings)
        {
            if warning.kind != "fixup" && !self.app.output.is_json() {
                self.app
                    .output
                    .remark(&one_line(&format!("warning: fixup: {}", warning.message)));
            }
        }
        self.ran.push(PhaseId::Fixup);
        Ok(Applying::Applied)
    }

    /// What fixups may change now.
    fn fixups(&self) -> Result<FixupChoice, CommandError> {
        let SpecSession {
            config,
            project,
            sandbox,
            ..
        } = self.session;
        let choice = self
            .flags
            .fixups
            .choice(self.app, config, sandbox, project)?;
        Ok(FixupChoice {
            recovered: self.recovered.clone(),
            ..choice
        })
    }

    /// Runs the hooks around an application.
    fn hooked_apply(
        &self,
        run: &mut FixupRun<'_>,
        moment: HookMoment,
        subject: &HookSubject,
    ) -> Result<(), Stopped> {
        let hooks = async {
            Ok(self
                .session
                .hooks
                .run(self.app, &self.session.sandbox, moment, subject)
                .await)
        };
        let outcome = self.app.block_on(hooks).map_err(Stopped::Interrupted)?;
        run.hooked(outcome.receipts, outcome.consequence)
            .map_err(Stopped::Failed)
    }

    /// Runs one phase until its receipt is written.
    fn phase(&mut self, phase: PhaseId) -> Result<SpecReceipt, CommandError> {
        self.choose()?;
        let Some(asked) = &self.asked else {
            return Err(nobody());
        };
        let format = asked.backend.capabilities().edit_format;
        let mut order = self.order(phase, format, asked.model.clone(), asked.warnings.clone());
        if phase == PhaseId::Fixup {
            order.fixups = self.fixups()?;
        }
        let mut run = PhaseRun::begin(&self.lock, self.app.clock.as_ref(), order, &self.ledger)?;
        let worked = self.worked(&mut run, asked);
        if let Some(progress) = &asked.progress {
            progress.finish();
        }
        let promoted = match worked {
            Ok(Ok(())) => run.succeed(&mut self.ledger).map_err(Stopped::Failed),
            Ok(Err(error)) => Err(Stopped::Failed(error)),
            // The future was dropped at an arbitrary point.
            Err(error) => Err(Stopped::Interrupted(error)),
        };
        let hooked = self.hooked_by([HookMoment::PrePhase, HookMoment::PostPhase], phase);
        let ended = promoted.map_err(|stopped| {
            let fail = |told: FailureNote<'_>| {
                run.fail(told.class, told.message, told.exit, &mut self.ledger)
                    .map(drop)
            };
            stopped.ended(self.app, fail, hooked)
        });
        warn_unfinished(self.app, phase, run.unfinished());
        // The phase has its receipt with the exit code of this process; a failed recording changes
        // neither.
        let copied = self
            .session
            .record
            .as_ref()
            .map(|record| record.copy(&asked.backend, run.calls()));
        if let Some(Err(error)) = copied {
            self.app.output.remark(&one_line(&format!(
                "warning: the calls of {phase} are not in the recording of --record: {}",
                self.app.env.without_home(&error.message)
            )));
        }
        ended
    }

    /// Runs everything of a phase except its receipt. The outer error is an interruption.
    fn worked(
        &self,
        run: &mut PhaseRun<'_>,
        asked: &PhaseModel,
    ) -> Result<Result<(), SpecError>, CommandError> {
        let phase = run.phase();
        let subject = HookSubject {
            receipt_id: Some(run.id().as_str().to_owned()),
            ..HookSubject::before(self.session.store.spec().clone(), phase)
        };
        let before = match self.kept_before_hooks(phase) {
            Ok(()) => self
                .app
                .block_on(async { Ok(self.hooked(run, HookMoment::PrePhase, &subject).await) })?,
            Err(error) => Err(error),
        };
        let done = before
            .and_then(|()| self.prepared(run))
            .and_then(|()| self.client(run, asked));
        let done = match done {
            Ok(client) => self.app.block_on(async { Ok(run.ask(&client).await) })?,
            Err(error) => Err(error),
        };
        if !self.session.hooks.any(HookMoment::PostPhase, phase) {
            return Ok(done);
        }
        let status = if done.is_ok() {
            PhaseStatus::Success
        } else {
            PhaseStatus::Failed
        };
        let artifact = match done.is_ok().then(|| run.draft()).transpose() {
            Ok(draft) => draft.flatten(),
            Err(error) => return Ok(Err(error)),
        };
        let subject = HookSubject {
            status: Some(status),
            artifact,
            ..subject
        };
        let after = self
            .app
            .block_on(async { Ok(self.hooked(run, HookMoment::PostPhase, &subject).await) })?;
        // A failure of the phase takes precedence over one of its hooks.
        Ok(done.and(after))
    }

    /// Whether a hook of one of these moments runs around the phase.
    fn hooked_by<const N: usize>(&self, moments: [HookMoment; N], phase: PhaseId) -> Hooked {
        match moments
            .iter()
            .any(|moment| self.session.hooks.any(*moment, phase))
        {
            true => Hooked::Yes,
            false => Hooked::No,
        }
    }

    /// Runs the hooks of a moment.
    async fn hooked(
        &self,
        run: &mut PhaseRun<'_>,
        moment: HookMoment,
        subject: &HookSubject,
    ) -> Result<(), SpecError> {
        let outcome = self
            .session
            .hooks
            .run(self.app, &self.session.sandbox, moment, subject)
            .await;
        run.hooked(outcome.receipts, outcome.consequence)
    }

    /// Stores a new idea before a hook can fail, because piped input may have no other copy. If the idea
    /// alone exceeds the packet limits, building the packet refuses it.
    fn kept_before_hooks(&self, phase: PhaseId) -> Result<(), SpecError> {
        let Some(GivenIdea {
            idea,
            origin: IdeaOrigin::Given,
        }) = &self.idea
        else {
            return Ok(());
        };
        if phase != PhaseId::Requirements || !self.session.hooks.any(HookMoment::PrePhase, phase) {
            return Ok(());
        }
        let text = idea.text.as_str();
        if let Some(found) = Scanner::builtin().scan(text.as_bytes()).first() {
            let (entry, line) = idea
                .place_of(found.line)
                .unwrap_or_else(|| (IDEA.to_owned(), found.line));
            return Err(SpecError::SecretInPacket {
                entry,
                rule: found.rule.to_string(),
                line,
            });
        }
        let PacketLimits {
            max_bytes,
            max_lines,
        } = packet_limits(&self.session.config);
        let fits = |count: usize, most: u64| u64::try_from(count).is_ok_and(|count| count <= most);
        if text.contains('\0')
            || !fits(text.len(), max_bytes)
            || !fits(text.lines().count(), max_lines)
        {
            return Ok(());
        }
        keep(&self.lock, &idea.text)
    }

    /// Builds the packet, and stores a new idea after it is found to be free of secrets.
    fn prepared(&self, run: &mut PhaseRun<'_>) -> Result<(), SpecError> {
        let given = self
            .idea
            .as_ref()
            .filter(|_| run.phase() == PhaseId::Requirements);
        warn_of_sources(run, given);
        run.gather(given.map(|given| &given.idea), self.session.files.clone())?;
        match given {
            Some(GivenIdea {
                idea,
                origin: IdeaOrigin::Given,
            }) => keep(&self.lock, &idea.text),
            Some(_) | None => Ok(()),
        }
    }

    fn client(&self, run: &mut PhaseRun<'_>, asked: &PhaseModel) -> Result<ModelClient, SpecError> {
        let shown = asked
            .progress
            .clone()
            .map(|progress| progress as Arc<dyn CallWatch>);
        let speaker = asked.backend.speaker();
        let header = CassetteHeader::new(
            speaker.provider.clone(),
            speaker.model.clone(),
            asked.backend.capabilities(),
        );
        Ok(ModelClient::new(
            asked.backend.clone().watched(run.watch(shown)),
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
        let bounds = &self.session.bounds;
        PhaseOrder {
            phase,
            trial: Trial::Real,
            limits: packet_limits(&self.session.config),
            attempts: bounds.attempts,
            phase_time: bounds.phase_time,
            call_time: bounds.call_time,
            model,
            edit_format,
            fixups: FixupChoice::unguarded(self.flags.fixups.policy(&self.session.config)),
            warnings,
        }
    }

    /// Prepares the backend once.
    fn choose(&mut self) -> Result<(), CommandError> {
        if self.asked.is_none() {
            self.asked = Some(self.session.asked(self.app, self.flags)?);
        }
        Ok(())
    }

    /// Shows the result of a phase, and the fixups that it proposes.
    fn show(&self, phase: PhaseId, receipt: &SpecReceipt) -> Result<(), CommandError> {
        if self.app.output.is_json() {
            return Ok(());
        }
        let store = self.lock.store();
        show_phase(self.app, store, phase, receipt);
        if phase != PhaseId::Fixup || pending_fixups(&self.state()?) == 0 {
            return Ok(());
        }
        match store.read(crucible_spec::FIXUP_DIFF)? {
            Some(diff) => show_pending(self.app, &self.session.project, &diff),
            None => Ok(()),
        }
    }

    /// Shows the next step.
    pub(crate) fn conclude(&self) -> Result<(), CommandError> {
        if self.flags.dry_run && !self.state()?.has_idea {
            self.app
                .output
                .remark("note: a dry run does not save the idea; give it again");
        }
        show::show_next(self.app, self.status()?.next.as_ref());
        Ok(())
    }
}

/// Whether to show progress. A program that reads the document finds only errors on standard error; a
/// spinner leaves nothing behind.
fn wants_progress(output: &Output) -> bool {
    !output.is_json() || output.live
}

/// Stores the idea if it differs from the stored one.
fn keep(lock: &SpecLock, idea: &Untrusted) -> Result<(), SpecError> {
    let bytes = idea.as_str().as_bytes();
    if lock.store().read(IDEA)?.as_deref() == Some(bytes) {
        return Ok(());
    }
    lock.write_context(IDEA.trim_start_matches("context/"), bytes)
}

/// Why work that ends with a receipt stopped.
enum Stopped {
    /// It failed.
    Failed(SpecError),
    /// The user ended it, or the runtime could not start.
    Interrupted(CommandError),
}

/// What the receipt of a failure records.
struct FailureNote<'a> {
    class: &'a str,
    message: &'a str,
    exit: ExitStatus,
}

/// Whether hooks ran around an attempt. Their results must be in a receipt, however the attempt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hooked {
    Yes,
    No,
}

impl Stopped {
    /// Ends the work with the receipt that `fail` writes.
    fn ended(
        self,
        app: &App,
        fail: impl FnOnce(FailureNote<'_>) -> Result<(), SpecError>,
        hooked: Hooked,
    ) -> CommandError {
        match self {
            Self::Failed(error) => ended(app, fail, error, hooked),
            Self::Interrupted(error) => interrupted(app, fail, error),
        }
    }
}

impl From<Stopped> for CommandError {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Failed(error) => error.into(),
            Stopped::Interrupted(error) => error,
        }
    }
}

/// Adds the changed files to an error that follows an applied fixup.
fn with_changed_files(error: CommandError, applied: &AppliedFixup) -> CommandError {
    let files: Vec<&str> = applied
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    let message = format!(
        "{}; the files are changed: {}",
        error.message,
        one_line(&files.join(", "))
    );
    CommandError { message, ..error }
}

/// Warns about cleanup that failed after a phase had its receipt.
fn warn_unfinished(app: &App, phase: PhaseId, unfinished: &[String]) {
    for what in unfinished {
        app.output.remark(&one_line(&format!(
            "warning: {phase} has its receipt, but {what}; the next command on this spec continues from there"
        )));
    }
}

/// Ends a failed attempt with its receipt. A usage error leaves no receipt if no hook ran, and a lost
/// lock never leaves one.
fn ended(
    app: &App,
    fail: impl FnOnce(FailureNote<'_>) -> Result<(), SpecError>,
    error: SpecError,
    hooked: Hooked,
) -> CommandError {
    let class = failure_class(&error);
    let message = app.env.without_home(&error.to_string());
    let command = CommandError::from(error);
    let is_told = match class {
        "lock" => false,
        "usage" => hooked == Hooked::Yes,
        _ => true,
    };
    if is_told {
        told(
            app,
            fail,
            FailureNote {
                class,
                message: &message,
                exit: command.status,
            },
        );
    }
    command
}

/// Ends an interrupted attempt with its receipt.
fn interrupted(
    app: &App,
    fail: impl FnOnce(FailureNote<'_>) -> Result<(), SpecError>,
    error: CommandError,
) -> CommandError {
    let class = if error.status == ExitStatus::Interrupted {
        "interrupted"
    } else {
        "internal"
    };
    let message = app.env.without_home(&error.message);
    told(
        app,
        fail,
        FailureNote {
            class,
            message: &message,
            exit: error.status,
        },
    );
    match error.status {
        ExitStatus::Interrupted => error.hint(
            "Finished phases are kept. Run the same command to continue; \
        answers that were received are reused.",
        ),
        _ => error,
    }
}

fn told(
    app: &App,
    fail: impl FnOnce(FailureNote<'_>) -> Result<(), SpecError>,
    told: FailureNote<'_>,
) {
    if let Err(second) = fail(told) {
        app.output.remark(&format!(
            "warning: cannot write a receipt of this: {second}"
        ));
    }
}

fn nobody() -> CommandError {
    CommandError::usage(crucible_llm::UNSPECIFIED).hint(format!(
        "Pass --provider NAME, or set {} for every command; `crucible doctor` shows which providers are ready.",
        crucible_settings::variable_of("llm.provider")
    ))
}
