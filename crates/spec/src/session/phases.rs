//! Runs phases under the lock of a spec, each until its receipt is written.

use std::sync::Arc;

use crucible_ledger::Ledger;
use crucible_llm::{CassetteHeader, ClientOptions, ModelClient, ReceiptWarning};
use crucible_model::{EditFormat, Failure, one_line};
use crucible_repo::RecoveredEdit;
use crucible_secrets::Scanner;

use super::failure::{FailureNote, Hooked, Stopped, ended, warn_unfinished};
use super::host::SessionHost;
use super::idea::{GivenIdea, IdeaOrigin, store_idea, warn_of_sources};
use super::{PhaseModel, SpecSession, no_provider};
use crate::engine::{PhaseOrder, PhaseRun, Trial};
use crate::error::SpecError;
use crate::fixup::{FIXUP_DIFF, FixupChoice, recover_fixup};
use crate::hook::HookSubject;
use crate::ignored::keep_out_of_git;
use crate::json_output::{SpecStatus, pending_fixups, spec_status};
use crate::packet::PacketLimits;
use crate::phase_id::PhaseId;
use crate::project::IDEA;
use crate::receipt::{HookMoment, PhaseStatus, SpecReceipt};
use crate::state::SpecState;
use crate::store::SpecLock;

/// A running command that holds the lock of a spec.
pub struct PhaseWork<'a, H> {
    pub(super) host: &'a H,
    pub(super) session: &'a SpecSession<'a>,
    pub(super) lock: SpecLock,
    pub(super) ledger: Ledger,
    /// How an interrupted application of fixups was recovered.
    pub(super) recovered: RecoveredEdit,
    /// The idea, if the command reads one.
    pub idea: Option<GivenIdea>,
    /// The backend, once it is prepared.
    pub model: Option<PhaseModel>,
    /// The phases that have run, in order.
    pub(super) ran: Vec<PhaseId>,
}

/// The outcome of `--apply-fixups`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applying {
    /// A pending fixup was applied.
    Applied,
    /// Nothing is pending: the newest fixup is applied, or proposed no change.
    Settled,
    /// No pending fixup matches the current files.
    Missing,
}

impl<'a, H: SessionHost> PhaseWork<'a, H> {
    /// Takes the spec's lock, and recovers an interrupted application of fixups.
    ///
    /// # Errors
    ///
    /// Fails if another process holds the lock, or if the ledger or the project cannot be written.
    pub fn begin(
        host: &'a H,
        session: &'a SpecSession<'a>,
        mut ledger: Ledger,
    ) -> Result<Self, Failure> {
        // Checked before any model call, because a call that cannot be recorded must not be paid for.
        ledger.check_writable()?;
        let name = format!("crucible spec {}", session.store.spec());
        let lock = session.store.lock(&name, session.arguments.claim)?;
        keep_out_of_git(session.project.root())?;
        // From here on, the project's files contain a whole fixup or none of it.
        let recovered = recover_fixup(&session.project, &lock)?;
        host.fixup_recovered(&recovered);
        Ok(Self {
            host,
            session,
            lock,
            ledger,
            recovered,
            idea: None,
            model: None,
            ran: Vec::new(),
        })
    }

    /// Reads the state of the spec, including the ledger's view.
    ///
    /// # Errors
    ///
    /// Fails if the spec or the ledger cannot be read.
    pub fn state(&self) -> Result<SpecState, SpecError> {
        self.lock.store().state(Some(&self.ledger))
    }

    /// Reads the status of the spec.
    ///
    /// # Errors
    ///
    /// Fails if the spec or the ledger cannot be read.
    pub fn status(&self) -> Result<SpecStatus, Failure> {
        let state = self.state()?;
        let mut status = spec_status(&state, self.session.runtime.clock.now());
        // A dry run does not store the idea, so the next command needs it again.
        if self.session.arguments.trial == Trial::Dry
            && !state.has_idea
            && let Some(next) = status
                .next
                .as_mut()
                .filter(|next| next.phase_id == PhaseId::Requirements)
        {
            next.command.clone_from(&self.session.arguments.restart);
        }
        Ok(status)
    }

    /// Returns the phases that have run, in order.
    #[must_use]
    pub fn ran(&self) -> &[PhaseId] {
        &self.ran
    }

    /// Runs these phases in order, and shows the result of each.
    ///
    /// # Errors
    ///
    /// Fails with the first phase that fails.
    pub fn run(&mut self, phases: &[PhaseId]) -> Result<(), Failure> {
        for phase in phases {
            let receipt = self.phase(*phase)?;
            self.ran.push(*phase);
            self.show(*phase, &receipt)?;
        }
        Ok(())
    }

    /// Runs one phase as a dry run.
    ///
    /// # Errors
    ///
    /// Fails if the prompt cannot be built.
    pub(crate) fn try_dry(&mut self, phase: PhaseId) -> Result<SpecReceipt, Failure> {
        let order = PhaseOrder {
            trial: Trial::Dry,
            ..self.order(phase, EditFormat::WholeFile, String::new(), Vec::new())
        };
        let mut run = PhaseRun::begin(&self.lock, self.session.runtime.clock, order, &self.ledger)?;
        let given = self
            .idea
            .as_ref()
            .filter(|_| phase == PhaseId::Requirements);
        warn_of_sources(&mut run, given);
        let idea = self.idea.as_ref().map(|given| &given.idea);
        if let Err(error) = run.gather(idea, self.session.files.clone()) {
            let fail = |note: FailureNote<'_>| {
                run.fail(note.class, note.message, note.exit, &mut self.ledger)
                    .map(drop)
            };
            return Err(ended(self.session.runtime, fail, error, Hooked::No));
        }
        let receipt = run.tried_dry(&mut self.ledger)?;
        warn_unfinished(self.session.runtime, phase, run.unfinished());
        self.host.dry_run_ended(phase, &receipt);
        Ok(receipt)
    }

    /// Runs one phase until its receipt is written.
    fn phase(&mut self, phase: PhaseId) -> Result<SpecReceipt, Failure> {
        self.prepare_model()?;
        let Some(model) = &self.model else {
            return Err(no_provider());
        };
        let format = model.backend.capabilities().edit_format;
        let mut order = self.order(phase, format, model.model.clone(), model.warnings.clone());
        if phase == PhaseId::Fixup {
            order.fixups = self.fixups()?;
        }
        let mut run = PhaseRun::begin(&self.lock, self.session.runtime.clock, order, &self.ledger)?;
        let worked = self.worked(&mut run, model);
        self.host.calls_ended();
        let promoted = match worked {
            Ok(Ok(())) => run.succeed(&mut self.ledger).map_err(Stopped::Failed),
            Ok(Err(error)) => Err(Stopped::Failed(error)),
            // The future was dropped at an arbitrary point.
            Err(error) => Err(Stopped::Interrupted(error)),
        };
        let hooked = self.hooked_by([HookMoment::PrePhase, HookMoment::PostPhase], phase);
        let ended = promoted.map_err(|stopped| {
            let fail = |note: FailureNote<'_>| {
                run.fail(note.class, note.message, note.exit, &mut self.ledger)
                    .map(drop)
            };
            stopped.ended(self.session.runtime, fail, hooked)
        });
        warn_unfinished(self.session.runtime, phase, run.unfinished());
        // The phase has its receipt with the exit code of this process; a failed recording changes
        // neither.
        let copied = self
            .session
            .record
            .as_ref()
            .map(|record| record.copy(&model.backend, run.calls()));
        if let Some(Err(error)) = copied {
            let runtime = self.session.runtime;
            runtime.notices.notice(&one_line(&format!(
                "warning: the calls of {phase} are not in the recording of --record: {}",
                runtime.env.without_home(&error.to_string())
            )));
        }
        ended
    }

    /// Runs everything of a phase except its receipt. The outer error is an interruption.
    fn worked(
        &self,
        run: &mut PhaseRun<'_>,
        model: &PhaseModel,
    ) -> Result<Result<(), SpecError>, Failure> {
        let phase = run.phase();
        let subject = HookSubject {
            receipt_id: Some(run.id().as_str().to_owned()),
            ..HookSubject::before(self.session.store.spec().clone(), phase)
        };
        let before = match self.store_before_hooks(phase) {
            Ok(()) => self
                .host
                .drive(self.hooked(run, HookMoment::PrePhase, &subject))?,
            Err(error) => Err(error),
        };
        let done = before
            .and_then(|()| self.prepared(run))
            .and_then(|()| self.client(run, model));
        let done = match done {
            Ok(client) => self.host.drive(run.ask(&client))?,
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
            .host
            .drive(self.hooked(run, HookMoment::PostPhase, &subject))?;
        // A failure of the phase takes precedence over one of its hooks.
        Ok(done.and(after))
    }

    /// Whether a hook of one of these moments runs around the phase.
    pub(super) fn hooked_by<const N: usize>(
        &self,
        moments: [HookMoment; N],
        phase: PhaseId,
    ) -> Hooked {
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
            .run(self.session.runtime, moment, subject)
            .await;
        run.hooked(outcome.receipts, outcome.consequence)
    }

    /// Stores a new idea before a hook can fail, because piped input may have no other copy. If the idea
    /// alone exceeds the packet limits, building the packet refuses it.
    fn store_before_hooks(&self, phase: PhaseId) -> Result<(), SpecError> {
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
        } = self.session.packet_limits();
        let fits = |count: usize, most: u64| u64::try_from(count).is_ok_and(|count| count <= most);
        if text.contains('\0')
            || !fits(text.len(), max_bytes)
            || !fits(text.lines().count(), max_lines)
        {
            return Ok(());
        }
        store_idea(&self.lock, &idea.text)
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
            }) => store_idea(&self.lock, &idea.text),
            Some(_) | None => Ok(()),
        }
    }

    fn client(&self, run: &mut PhaseRun<'_>, model: &PhaseModel) -> Result<ModelClient, SpecError> {
        let speaker = model.backend.speaker();
        let header = CassetteHeader::new(
            speaker.provider.clone(),
            speaker.model.clone(),
            model.backend.capabilities(),
        );
        Ok(ModelClient::new(
            model
                .backend
                .clone()
                .watched(run.watch(model.watch.clone())),
            ClientOptions {
                recording: run.recording(&header)?,
                prices: Arc::clone(&model.prices),
                ..ClientOptions::new(Arc::clone(&model.budget))
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
            limits: self.session.packet_limits(),
            attempts: bounds.attempts,
            phase_time: bounds.phase_time,
            call_time: bounds.call_time,
            model,
            edit_format,
            fixups: FixupChoice::unguarded(self.session.fixup_policy()),
            warnings,
        }
    }

    /// Prepares the backend once.
    fn prepare_model(&mut self) -> Result<(), Failure> {
        if self.model.is_none() {
            self.model = Some(self.session.prepare_model(self.host)?);
        }
        Ok(())
    }

    /// Shows the result of a phase, and the fixups that it proposes.
    fn show(&self, phase: PhaseId, receipt: &SpecReceipt) -> Result<(), Failure> {
        if !self.host.shows_results() {
            return Ok(());
        }
        let store = self.lock.store();
        self.host.phase_ended(store, phase, receipt);
        if phase != PhaseId::Fixup || pending_fixups(&self.state()?) == 0 {
            return Ok(());
        }
        match store.read(FIXUP_DIFF)? {
            Some(diff) => Ok(self.host.fixup_proposed(&self.session.project, &diff)?),
            None => Ok(()),
        }
    }
}
