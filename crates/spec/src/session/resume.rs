//! The phases of the commands that start and resume a spec, and their JSON documents.

use crucible_model::{ClockSource, Failure};

use super::host::SessionHost;
use super::phases::{Applying, PhaseWork};
use crate::engine::{Trial, phases_to_run};
use crate::json_output::{ResumeOverview, SpecOverview};
use crate::phase_id::PhaseId;
use crate::project::IDEA;
use crate::receipt::PacketReceipt;
use crate::state::SpecState;

/// What a command that starts a spec did.
pub struct StartedPhases {
    /// The phases that were due.
    pub due: Vec<PhaseId>,
    /// What happened to a pending fixup, if it was to be applied.
    pub applying: Option<Applying>,
    /// The finished phases that were written under a pinned clock, which a gate refuses.
    pub pinned: Vec<PhaseId>,
}

impl<H: SessionHost> PhaseWork<'_, H> {
    /// Applies a pending fixup if requested, and runs the phases up to `through`: all for a new idea, else the unfinished ones. A dry run
    /// tries the first one.
    ///
    /// # Errors
    ///
    /// Fails with the first step that fails.
    pub fn start(&mut self, through: PhaseId, is_new: bool) -> Result<StartedPhases, Failure> {
        let applying = self.apply_pending(through)?;
        let state = self.state()?;
        let due: Vec<PhaseId> = match is_new {
            true => through.up_to().collect(),
            false => phases_to_run(&state, through),
        };
        if !self.is_dry() {
            self.run(&due)?;
        } else if let Some(first) = due.first() {
            self.try_dry(*first)?;
        }
        let is_pinned = |phase: &PhaseId| is_pinned(&state, *phase);
        Ok(StartedPhases {
            due,
            applying,
            pinned: through.up_to().filter(is_pinned).collect(),
        })
    }

    /// Applies a pending fixup if requested, and runs the phases from `phase` to `through`. A dry run tries the first one, and returns
    /// what it would send.
    ///
    /// # Errors
    ///
    /// Fails with the first step that fails.
    pub fn resume(
        &mut self,
        phase: PhaseId,
        through: PhaseId,
    ) -> Result<Option<PacketReceipt>, Failure> {
        let applying = self.apply_pending(through)?;
        if self.is_dry() {
            let receipt = self.try_dry(phase)?;
            let packet = |entry: crate::receipt::PhaseEntry| entry.packet;
            return Ok(receipt.phases.into_iter().find_map(packet));
        }
        let is_done = matches!(applying, Some(Applying::Applied | Applying::Settled))
            && phase == PhaseId::Fixup;
        let is_due = |later: &PhaseId| *later > phase || (*later == phase && !is_done);
        let phases: Vec<PhaseId> = through.up_to().filter(is_due).collect();
        self.run(&phases)?;
        Ok(None)
    }

    /// Returns the next phase; for a finished spec the last phase again.
    ///
    /// # Errors
    ///
    /// Fails if the spec or the ledger cannot be read.
    pub fn next_phase(&self) -> Result<PhaseId, Failure> {
        let phases = phases_to_run(&self.state()?, PhaseId::Final);
        Ok(phases.first().copied().unwrap_or(PhaseId::Final))
    }

    /// Returns the document of a command that started a spec.
    ///
    /// # Errors
    ///
    /// Fails if the spec or the ledger cannot be read.
    pub fn start_overview(&self) -> Result<SpecOverview, Failure> {
        let summary = self.session.summary();
        let overview = SpecOverview::new(self.status()?, summary, self.ran().to_vec());
        Ok(match self.is_dry() {
            true => overview.of_a_dry_run(),
            false => overview,
        })
    }

    /// Returns the document of a command that resumed a spec at `phase`.
    ///
    /// # Errors
    ///
    /// Fails if the spec or the ledger cannot be read.
    pub fn resume_overview(
        &self,
        phase: PhaseId,
        packet: Option<PacketReceipt>,
    ) -> Result<ResumeOverview, Failure> {
        let summary = self.session.summary();
        let mut overview = ResumeOverview::new(self.status()?, phase, summary, self.ran().to_vec());
        if self.session.store.read(IDEA)?.is_some() {
            overview = overview.with_idea();
        }
        Ok(match self.is_dry() {
            true => overview.mark_dry_run(packet),
            false => overview,
        })
    }

    fn is_dry(&self) -> bool {
        self.session.arguments.trial == Trial::Dry
    }
}

/// Whether the newest receipt of the phase was written under a pinned clock.
fn is_pinned(state: &SpecState, phase: PhaseId) -> bool {
    let real = state
        .phase(phase)
        .and_then(|known| known.newest_real.as_ref());
    real.is_some_and(|receipt| receipt.clock == Some(ClockSource::Pinned))
}
