//! What `crucible spec` and `crucible resume` share: running phases, one after the other, each with its receipt.
//!
//! How it works: everything that can be wrong with the command line, the configuration and the sources is found before the spec's lock is
//! taken; who is asked is made ready before the first phase begins. Then each phase is one [`PhaseRun`]: hooks before it, its packet, the asking, hooks after
//! it, and its receipt. A phase that fails ends the command with the exit code that its receipt holds. Fixups are applied before any phase
//! runs, between the hooks of theirs.
//!
//! What always holds: no fixup is applied that this very command proposed; the new idea is kept once the packet with it is found free of secrets and small enough, and where a hook runs before that, once it is itself; Ctrl-C
//! leaves a receipt; whoever is asked is within one budget for all phases of the command.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use crucible_ledger::Ledger;
use crucible_llm::{
    Backend, BudgetLimits, CallBudget, CallWatch, CassetteHeader, ClientOptions, Limit, ModelClient,
    PriceTable, ReceiptWarning, Selected,
};
use crucible_model::{ByteLimit, EditFormat, ExitStatus, Untrusted};
use crucible_repo::RecoveredEdit;
use crucible_sandbox::Sandbox;
use crucible_secrets::Scanner;
use crucible_settings::Settings;
use crucible_spec::{
    AppliedFixup, ConfigSummary, FileSelectors, FixupChoice, FixupRun, HookMoment, HookSubject, IDEA,
    LockClaim, PacketLimits, PhaseId, PhaseOrder, PhaseRun, PhaseStatus, PromotionEnd, SpecError, SpecId,
    SpecLock, SpecProject, SpecReceipt, SpecState, SpecStatus, SpecStore, Trial, WaitingFixup,
    check_named_files, failure_class, pending_fixups, recover_fixup, spec_status, waiting_fixup,
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
    #[arg(long, alias = "llm-provider", value_name = "NAME", value_parser = providers())]
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
    session: &'a SpecSession,
    lock: SpecLock,
    ledger: Ledger,
    /// What was settled of an application that was broken off.
    recovered: RecoveredEdit,
    pub(crate) idea: Option<GivenIdea>,
    pub(crate) asked: Option<PhaseModel>,
    /// What was run, in order.
    ran: Vec<PhaseId>,
}

/// What is known before the lock is taken.
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

/// What each phase is held to.
struct Bounds {
    attempts: u64,
    phase_time: Duration,
    call_time: Duration,
}

/// Who is asked.
pub(crate) struct PhaseModel {
    backend: Backend,
    /// Who shows what is waited for.
    progress: Option<Arc<PhaseProgress>>,
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

    /// Refuses what says what a fixup may touch in a command whose phases, from the first to the last, neither propose one nor apply one.
    pub(crate) fn check_fixups(&self, first: PhaseId, last: PhaseId) -> Result<(), CommandError> {
        let proposes = !self.dry_run && (first..=last).contains(&PhaseId::Fixup);
        match self.fixups.widening().filter(|_| !proposes && !self.applies()) {
            Some(flag) => Err(CommandError::usage(format!(
                "no fixup is proposed or applied here, so {flag} has nothing to do"
            ))
            .hint(format!(
                "Give {flag} to the command that runs the phase fixup, and to the one that applies it."
            ))),
            None => Ok(()),
        }
    }

    /// The recording that is asked for, which a dry run has no calls for.
    fn record(&self, app: &App) -> Result<Option<Record>, CommandError> {
        match &self.record {
            Some(_) if self.dry_run => {
                Err(CommandError::usage("a dry run asks nobody, so --record has nothing to write in it")
                    .hint("Leave one of the two out."))
            }
            Some(path) => Record::at(app.absolute(path)).map(Some),
            None => Ok(None),
        }
    }

    /// Refuses `--apply-fixups` where it can do nothing: in a dry run.
    pub(crate) fn check_applying(&self, spec: &SpecId) -> Result<(), CommandError> {
        match self.applies() && self.dry_run {
            true => Err(applies_nothing(
                "a dry run changes nothing, so --apply-fixups has nothing to do in it",
                spec,
            )),
            false => Ok(()),
        }
    }
}

/// What `--apply-fixups` came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applying {
    /// A fixup waited and is applied.
    Applied,
    /// None waits: the newest is applied, or there was nothing to change.
    Settled,
    /// None waits that is made from what is there now.
    Missing,
}

/// `--apply-fixups` of a command that ends before the fixups, where none waits.
pub(crate) fn nothing_waits(spec: &SpecId) -> CommandError {
    applies_nothing(
        "no fixup waits, and this command proposes none, so --apply-fixups has nothing to do",
        spec,
    )
}

/// `--apply-fixups` that would apply nothing, whatever comes of the command.
fn applies_nothing(why: &str, spec: &SpecId) -> CommandError {
    CommandError::usage(why.to_owned()).hint(format!(
        "`crucible resume {spec} --phase fixup --apply-fixups` applies what waits; without --apply-fixups this command does the rest."
    ))
}

impl SpecSession {
    /// Reads the configuration and looks at what the command line names. Nothing is changed.
    pub(crate) fn new(app: &App, spec: &SpecId, flags: &PhaseFlags) -> Result<Self, CommandError> {
        let project = place::project(app, flags.workspace.as_deref())?;
        let config = app.config(project.root(), &flags.settings())?;
        require_controlled(&config)?;
        model::check_cassette(flags.cassette.as_deref(), config.llm.provider.as_deref().unwrap_or_default())?;
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
        // A name that is mistyped costs nothing: no hook has run, and nobody was asked.
        let files = flags.sources.files(app, &project, &config)?;
        check_named_files(&files)?;
        let home = app.home()?;
        let store = SpecStore::new(&project, spec.clone())
            .with_records(home.join(FIXUPS))
            .with_calls(home.join("calls"));
        Ok(Self { config, project, store, files, hooks, sandbox: shared_sandbox(app), record, bounds })
    }

    /// The most bytes of an idea.
    pub(crate) fn idea_limit(&self) -> ByteLimit {
        ByteLimit(packet_limits(&self.config).max_bytes)
    }

    /// Makes whoever is asked ready. Nothing is changed.
    pub(crate) fn asked(&self, app: &App, flags: &PhaseFlags) -> Result<PhaseModel, CommandError> {
        let config = &self.config;
        let provider = config.llm.provider.as_deref().ok_or_else(nobody)?;
        let Selected { backend, fell_back, .. } = model::selected(app, config, &self.sandbox, provider)?;
        // The name of a model means nothing to another provider.
        let model = flags.model.clone().filter(|_| fell_back.is_none()).unwrap_or_default();
        if let (Some(wanted), Some(_)) = (&flags.model, &fell_back) {
            let own = backend.default_model();
            app.output
                .remark(&format!("note: the fallback is asked with its own model {own}, not with {wanted}"));
        }
        let progress = wants_progress(&app.output).then(|| {
            let name = if model.is_empty() { backend.default_model() } else { &model };
            let asked = format!("{} ({name})", backend.provider());
            Arc::new(PhaseProgress::new(&app.output, asked))
        });
        let limits = BudgetLimits { calls: Limit::At(config.budget.calls), ..model::limits(config)? };
        Ok(PhaseModel {
            backend,
            progress,
            model,
            warnings: fell_back.iter().map(ReceiptWarning::fallback).collect(),
            budget: CallBudget::new(limits),
            prices: Arc::new(model::prices(config)?),
        })
    }

    /// What the documents say of the configuration.
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
        // Found before anybody is asked: what cannot be recorded must not be paid for.
        ledger.check_writable()?;
        let claim = if flags.force { LockClaim::Force } else { LockClaim::IfFree };
        let lock = session.store.lock(&format!("crucible spec {}", session.store.spec()), claim)?;
        keep_out_of_git(session.project.root())?;
        // Whatever looks at the project's files from here on sees all of a fixup or nothing of it.
        let recovered = recover_fixup(&session.project, &lock)?;
        show_recovered(app, &recovered);
        let (idea, ran) = (None, Vec::new());
        Ok(Self { app, flags, session, lock, ledger, recovered, idea, asked: None, ran })
    }

    /// What is known of the spec now, as the ledger sees it, too.
    pub(crate) fn state(&self) -> Result<SpecState, SpecError> {
        self.lock.store().state(Some(&self.ledger))
    }

    /// Where the spec stands now.
    pub(crate) fn status(&self) -> Result<SpecStatus, CommandError> {
        let state = self.state()?;
        let mut status = spec_status(&state, self.app.clock.now());
        // A dry run keeps no idea, so whoever goes on has to bring it again.
        if self.flags.dry_run
            && !state.has_idea
            && let Some(next) = status.next.as_mut().filter(|next| next.phase_id == PhaseId::Requirements)
        {
            next.command = self.flags.sources.again(self.session.store.spec());
        }
        Ok(status)
    }

    /// The phases that were run.
    pub(crate) fn ran(&self) -> &[PhaseId] {
        &self.ran
    }

    /// Applies what waited when the command began, where that is asked for, before any phase runs: what a phase of this very command proposes
    /// waits until somebody has seen it. `last` is the last phase of the command.
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
            Applying::Settled => self.tell("no fixup waits; none was applied"),
            Applying::Missing => {
                self.tell("no fixup waits that is made from what is there now; none was applied");
            }
        }
        Ok(Some(applying))
    }

    fn tell(&self, what: &str) {
        if !self.app.output.is_json() {
            self.app.output.line(what);
        }
    }

    /// Runs these phases, in order, and shows what each did.
    pub(crate) fn run(&mut self, phases: &[PhaseId]) -> Result<(), CommandError> {
        for phase in phases {
            let receipt = self.phase(*phase)?;
            self.ran.push(*phase);
            self.show(*phase, &receipt)?;
        }
        Ok(())
    }

    /// Tries one phase dry.
    pub(crate) fn try_dry(&mut self, phase: PhaseId) -> Result<SpecReceipt, CommandError> {
        let order = PhaseOrder {
            trial: Trial::Dry,
            ..self.order(phase, EditFormat::WholeFile, String::new(), Vec::new())
        };
        let mut run = PhaseRun::begin(&self.lock, self.app.clock.as_ref(), order, &self.ledger)?;
        let given = self.idea.as_ref().filter(|_| phase == PhaseId::Requirements);
        warn_of_sources(&mut run, given);
        let idea = self.idea.as_ref().map(|given| &given.idea);
        if let Err(error) = run.gather(idea, self.session.files.clone()) {
            let fail = |told: FailureNote<'_>| {
                run.fail(told.class, told.message, told.exit, &mut self.ledger).map(drop)
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

    /// Applies the fixup that waits, between the hooks of its phase.
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
            let fail =
                |told: FailureNote<'_>| run.fail(told.class, told.message, told.exit, ledger).map(drop);
            stopped.ended(self.app, fail, hooked)
        };
        let mut subject = HookSubject {
            receipt_id: Some(run.id().as_str().to_owned()),
            ..HookSubject::before(spec.clone(), PhaseId::Fixup)
        };
        if let Err(stopped) = self.hooked_apply(&mut run, HookMoment::PrePhase, &subject) {
            return Err(unapplied(&run, &mut self.ledger, stopped)
                .hint(format!("The fixup waits: {again} goes on with it, and nobody is asked for it.")));
        }
        let choice = self.fixups().map_err(Stopped::Interrupted);
        let applied =
            choice.and_then(|choice| run.apply(&self.session.project, &choice).map_err(Stopped::Failed));
        let applied = match (applied, hooked) {
            (Ok(applied), _) => applied,
            (Err(stopped), Hooked::Yes) => return Err(unapplied(&run, &mut self.ledger, stopped)),
            // Nothing has happened that a receipt could tell of.
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
            // Whatever went wrong: whoever reads of it must not take the files for untouched.
            Err(stopped) => {
                let error = unapplied(&run, &mut self.ledger, stopped);
                return Err(with_changed_files(error, &applied)
                    .hint(format!("Run {again} again for the receipt; nobody is asked for it.")));
            }
        };
        if let PromotionEnd::CleanUpPending { why } = promoted.end {
            warn_unfinished(self.app, PhaseId::Fixup, &[why]);
        }
        for warning in promoted.receipt.phases.iter().flat_map(|entry| &entry.warnings) {
            if warning.kind != "fixup" && !self.app.output.is_json() {
                self.app.output.remark(&one_line(&format!("warning: fixup: {}", warning.message)));
            }
        }
        self.ran.push(PhaseId::Fixup);
        Ok(Applying::Applied)
    }

    /// What fixups may touch now.
    fn fixups(&self) -> Result<FixupChoice, CommandError> {
        let SpecSession { config, project, sandbox, .. } = self.session;
        let choice = self.flags.fixups.choice(self.app, config, sandbox, project)?;
        Ok(FixupChoice { recovered: self.recovered.clone(), ..choice })
    }

    /// Runs the hooks around an application.
    fn hooked_apply(
        &self,
        run: &mut FixupRun<'_>,
        moment: HookMoment,
        subject: &HookSubject,
    ) -> Result<(), Stopped> {
        let hooks =
            async { Ok(self.session.hooks.run(self.app, &self.session.sandbox, moment, subject).await) };
        let outcome = self.app.block_on(hooks).map_err(Stopped::Interrupted)?;
        run.hooked(outcome.receipts, outcome.consequence).map_err(Stopped::Failed)
    }

    /// Runs one phase to its receipt.
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
            // The future was dropped where it stood.
            Err(error) => Err(Stopped::Interrupted(error)),
        };
        let hooked = self.hooked_by([HookMoment::PrePhase, HookMoment::PostPhase], phase);
        let ended = promoted.map_err(|stopped| {
            let fail = |told: FailureNote<'_>| {
                run.fail(told.class, told.message, told.exit, &mut self.ledger).map(drop)
            };
            stopped.ended(self.app, fail, hooked)
        });
        warn_unfinished(self.app, phase, run.unfinished());
        // The phase has its receipt, and with it the code of this process: a recording that fails changes neither.
        let copied = self.session.record.as_ref().map(|record| record.copy(&asked.backend, run.calls()));
        if let Some(Err(error)) = copied {
            self.app.output.remark(&one_line(&format!(
                "warning: the calls of {phase} are not in the recording of --record: {}",
                self.app.env.without_home(&error.message)
            )));
        }
        ended
    }

    /// Everything of a phase but its receipt. The outer error is an interruption.
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
            Ok(()) => {
                self.app.block_on(async { Ok(self.hooked(run, HookMoment::PrePhase, &subject).await) })?
            }
            Err(error) => Err(error),
        };
        let done = before.and_then(|()| self.prepared(run)).and_then(|()| self.client(run, asked));
        let done = match done {
            Ok(client) => self.app.block_on(async { Ok(run.ask(&client).await) })?,
            Err(error) => Err(error),
        };
        if !self.session.hooks.any(HookMoment::PostPhase, phase) {
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

    /// Whether hooks of one of these moments run around the phase.
    fn hooked_by<const N: usize>(&self, moments: [HookMoment; N], phase: PhaseId) -> Hooked {
        match moments.iter().any(|moment| self.session.hooks.any(*moment, phase)) {
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
        let outcome = self.session.hooks.run(self.app, &self.session.sandbox, moment, subject).await;
        run.hooked(outcome.receipts, outcome.consequence)
    }

    /// Keeps a new idea before a hook can fail: whoever piped it in has no other copy, perhaps. One that alone is too long for the packet
    /// is refused by the packet.
    fn kept_before_hooks(&self, phase: PhaseId) -> Result<(), SpecError> {
        let Some(GivenIdea { idea, origin: IdeaOrigin::Given }) = &self.idea else {
            return Ok(());
        };
        if phase != PhaseId::Requirements || !self.session.hooks.any(HookMoment::PrePhase, phase) {
            return Ok(());
        }
        let text = idea.text.as_str();
        if let Some(found) = Scanner::builtin().scan(text.as_bytes()).first() {
            let (entry, line) = idea.place_of(found.line).unwrap_or_else(|| (IDEA.to_owned(), found.line));
            return Err(SpecError::SecretInPacket { entry, rule: found.rule.to_string(), line });
        }
        let PacketLimits { max_bytes, max_lines } = packet_limits(&self.session.config);
        let fits = |count: usize, most: u64| u64::try_from(count).is_ok_and(|count| count <= most);
        if text.contains('\0') || !fits(text.len(), max_bytes) || !fits(text.lines().count(), max_lines) {
            return Ok(());
        }
        keep(&self.lock, &idea.text)
    }

    /// Puts the packet together, and keeps a new idea once it is found to be free of secrets.
    fn prepared(&self, run: &mut PhaseRun<'_>) -> Result<(), SpecError> {
        let given = self.idea.as_ref().filter(|_| run.phase() == PhaseId::Requirements);
        warn_of_sources(run, given);
        run.gather(given.map(|given| &given.idea), self.session.files.clone())?;
        match given {
            Some(GivenIdea { idea, origin: IdeaOrigin::Given }) => keep(&self.lock, &idea.text),
            Some(_) | None => Ok(()),
        }
    }

    fn client(&self, run: &mut PhaseRun<'_>, asked: &PhaseModel) -> Result<ModelClient, SpecError> {
        let shown = asked.progress.clone().map(|progress| progress as Arc<dyn CallWatch>);
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

    /// Makes whoever is asked ready, once.
    fn choose(&mut self) -> Result<(), CommandError> {
        if self.asked.is_none() {
            self.asked = Some(self.session.asked(self.app, self.flags)?);
        }
        Ok(())
    }

    /// Shows what a phase did, and the fixups that it proposes.
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

    /// Tells what comes next.
    pub(crate) fn conclude(&self) -> Result<(), CommandError> {
        if self.flags.dry_run && !self.state()?.has_idea {
            self.app.output.remark("note: a dry run keeps no idea; give it again");
        }
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

/// What stopped work that ends with a receipt.
enum Stopped {
    /// It failed.
    Failed(SpecError),
    /// The user ended it, or there is nothing to run it with.
    Interrupted(CommandError),
}

/// What the receipt of a failure tells.
struct FailureNote<'a> {
    class: &'a str,
    message: &'a str,
    exit: ExitStatus,
}

/// Whether hooks ran around a try: what they did has to be in a receipt, however the try ends.
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

/// An error after a fixup was applied, with the files that are changed.
fn with_changed_files(error: CommandError, applied: &AppliedFixup) -> CommandError {
    let files: Vec<&str> = applied.files.iter().map(|file| file.path.as_str()).collect();
    let message = format!("{}; the files are changed: {}", error.message, one_line(&files.join(", ")));
    CommandError { message, ..error }
}

/// Tells what could not be done after a phase had its receipt.
fn warn_unfinished(app: &App, phase: PhaseId, unfinished: &[String]) {
    for what in unfinished {
        app.output.remark(&one_line(&format!(
            "warning: {phase} has its receipt, but {what}; the next command on this spec goes on with that"
        )));
    }
}

/// Ends a try that failed with its receipt. What was wrong with the command line leaves none where no hook ran, and a lock that is lost
/// never does.
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
        told(app, fail, FailureNote { class, message: &message, exit: command.status });
    }
    command
}

/// Ends a try that was interrupted with its receipt.
fn interrupted(
    app: &App,
    fail: impl FnOnce(FailureNote<'_>) -> Result<(), SpecError>,
    error: CommandError,
) -> CommandError {
    let class = if error.status == ExitStatus::Interrupted { "interrupted" } else { "internal" };
    let message = app.env.without_home(&error.message);
    told(app, fail, FailureNote { class, message: &message, exit: error.status });
    match error.status {
        ExitStatus::Interrupted => error.hint("Phases that were done are kept; the same command goes on, and answers that were paid for are not asked for again."),
        _ => error,
    }
}

fn told(app: &App, fail: impl FnOnce(FailureNote<'_>) -> Result<(), SpecError>, told: FailureNote<'_>) {
    if let Err(second) = fail(told) {
        app.output.remark(&format!("warning: no receipt of this could be written: {second}"));
    }
}

fn nobody() -> CommandError {
    CommandError::usage(crucible_llm::UNSPECIFIED).hint(format!(
        "Say whom to ask: --provider NAME, or {} for every command; `crucible doctor` shows who can be asked.",
        crucible_settings::variable_of("llm.provider")
    ))
}
