//! Applies the pending fixup of a spec, between the hooks of its phase.

use std::sync::Arc;

use crucible_ledger::Ledger;
use crucible_model::{Failure, one_line};
use crucible_repo::GuardedPlaces;

use super::failure::{FailureNote, Hooked, Stopped, warn_unfinished, with_changed_files};
use super::host::SessionHost;
use super::phases::{Applying, PhaseWork};
use super::{SpecSession, no_fixup_pending};
use crate::engine::{FixupRun, WaitingFixup, waiting_fixup};
use crate::fixup::FixupChoice;
use crate::hook::HookSubject;
use crate::phase_id::PhaseId;
use crate::receipt::{HookMoment, PhaseStatus};
use crate::store::PromotionEnd;

impl<H: SessionHost> PhaseWork<'_, H> {
    /// Applies the fixup that was pending when the command began, if requested, before any phase runs. A
    /// fixup that this command proposes stays pending until a person has seen it. `last` is the last
    /// phase of the command.
    ///
    /// # Errors
    ///
    /// Fails if the fixup cannot be applied, or if none is pending and the command ends before its phase.
    pub(crate) fn apply_pending(&mut self, last: PhaseId) -> Result<Option<Applying>, Failure> {
        if !self.session.applies_fixups() {
            return Ok(None);
        }
        let applying = self.apply()?;
        match applying {
            Applying::Applied => {}
            Applying::Settled | Applying::Missing if last < PhaseId::Fixup => {
                return Err(no_fixup_pending(self.session.store.spec()));
            }
            Applying::Settled => self.host.result("no fixup is pending; none was applied"),
            Applying::Missing => {
                self.host
                    .result("no pending fixup matches the current files; none was applied");
            }
        }
        Ok(Some(applying))
    }

    /// Applies the pending fixup between the hooks of its phase.
    fn apply(&mut self) -> Result<Applying, Failure> {
        let (host, session) = (self.host, self.session);
        let runtime = session.runtime;
        let mut run = match waiting_fixup(&self.lock, runtime.clock, &self.ledger)? {
            WaitingFixup::Ready(run) => run,
            WaitingFixup::Settled => return Ok(Applying::Settled),
            WaitingFixup::Missing => return Ok(Applying::Missing),
        };
        let spec = session.store.spec();
        let second_text = format!("`crucible resume {spec} --phase fixup --apply-fixups`");
        let hooked = self.hooked_by([HookMoment::PrePhase], PhaseId::Fixup);
        let unapplied = |run: &FixupRun<'_>, ledger: &mut Ledger, stopped: Stopped| {
            let fail = |note: FailureNote<'_>| {
                run.fail(note.class, note.message, note.exit, ledger)
                    .map(drop)
            };
            stopped.ended(runtime, fail, hooked)
        };
        let mut subject = HookSubject {
            receipt_id: Some(run.id().as_str().to_owned()),
            ..HookSubject::before(spec.clone(), PhaseId::Fixup)
        };
        if let Err(stopped) = self.hooked_apply(&mut run, HookMoment::PrePhase, &subject) {
            return Err(unapplied(&run, &mut self.ledger, stopped).hint(format!(
                "The fixup is pending: {second_text} continues with it, without a model call."
            )));
        }
        let choice = self.fixups().map_err(Stopped::Interrupted);
        let applied = choice.and_then(|choice| {
            run.apply(&session.project, &choice)
                .map_err(Stopped::Failed)
        });
        let applied = match (applied, hooked) {
            (Ok(applied), _) => applied,
            (Err(stopped), Hooked::Yes) => return Err(unapplied(&run, &mut self.ledger, stopped)),
            // Nothing has happened that a receipt could record.
            (Err(stopped), Hooked::No) => return Err(stopped.without_receipt()),
        };
        host.fixup_applied(&applied);
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
                    "Run {second_text} again for the receipt; no model is called for it."
                )));
            }
        };
        if let PromotionEnd::CleanUpPending { why } = promoted.end {
            warn_unfinished(runtime, PhaseId::Fixup, &[why]);
        }
        for warning in promoted
            .receipt
            .phases
            .iter()
            .flat_map(|entry| &entry.warnings)
        {
            if warning.kind != "fixup" {
                host.remark(&one_line(&format!("warning: fixup: {}", warning.message)));
            }
        }
        self.ran.push(PhaseId::Fixup);
        Ok(Applying::Applied)
    }

    /// What fixups may change now.
    pub(super) fn fixups(&self) -> Result<FixupChoice, Failure> {
        let SpecSession {
            runtime,
            project,
            arguments,
            ..
        } = self.session;
        let sandbox = Arc::clone(&runtime.sandbox);
        let guarded = self
            .host
            .drive(GuardedPlaces::find(sandbox, runtime.env, project.root()))?;
        Ok(FixupChoice {
            policy: self.session.fixup_policy(),
            links: arguments.links,
            guarded,
            recovered: self.recovered.clone(),
        })
    }

    /// Runs the hooks around an application.
    fn hooked_apply(
        &self,
        run: &mut FixupRun<'_>,
        moment: HookMoment,
        subject: &HookSubject,
    ) -> Result<(), Stopped> {
        let session = self.session;
        let hooks = session.hooks.run(session.runtime, moment, subject);
        let outcome = self.host.drive(hooks).map_err(Stopped::Interrupted)?;
        run.hooked(outcome.receipts, outcome.consequence)
            .map_err(Stopped::Failed)
    }
}
