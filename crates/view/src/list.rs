//! The list of runs: one query of the ledger, no run directory.

use crucible_ledger::{Ledger, LedgerError, Page, RunFilter, RunUsageRow};
use crucible_model::{RunId, Timestamp};
use crucible_run::{RECORD_KEY, RunState, parse_record};
use serde::{Deserialize, Serialize};

use crate::call::Totals;
use crate::text::RedactedText;

/// How a run ended, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunOutcome {
    /// It has not ended.
    Open,
    /// It waits for a person.
    Blocked,
    /// The change is verified and not committed.
    Verified,
    /// The change is a commit.
    Landed,
    /// It ended without a verified change.
    Failed,
    /// The goal cannot be reached, as the service that proposes changes says.
    Declined,
}

impl RunOutcome {
    /// Every outcome.
    pub const ALL: [Self; 6] = [
        Self::Open,
        Self::Blocked,
        Self::Verified,
        Self::Landed,
        Self::Failed,
        Self::Declined,
    ];

    /// Returns the outcome of a run in this state; a state of a later version is open.
    #[must_use]
    pub fn of_state(state: &str) -> Self {
        match RunState::parse(state) {
            Some(RunState::Verified) => Self::Verified,
            Some(RunState::Landed) => Self::Landed,
            Some(RunState::Failed) => Self::Failed,
            Some(RunState::Declined) => Self::Declined,
            Some(RunState::Blocked) => Self::Blocked,
            Some(
                RunState::New
                | RunState::Analysed
                | RunState::Context
                | RunState::Planned
                | RunState::Reviewed
                | RunState::Signed
                | RunState::Patched,
            )
            | None => Self::Open,
        }
    }

    /// The outcome's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Blocked => "blocked",
            Self::Verified => "verified",
            Self::Landed => "landed",
            Self::Failed => "failed",
            Self::Declined => "declined",
        }
    }
}

/// One run of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Its id.
    pub run_id: RunId,
    /// The state of its newest event, as the list of runs in the ledger has it.
    pub state: RedactedText,
    /// What that state amounts to.
    pub outcome: RunOutcome,
    /// The goal.
    pub goal: RedactedText,
    /// The path of the repository.
    pub repo: RedactedText,
    /// The provider; absent if the start record is of another version.
    pub provider: Option<RedactedText>,
    /// The configured model; absent as the provider.
    pub model: Option<RedactedText>,
    /// The coding agent that proposes the changes, if one does.
    pub agent: Option<RedactedText>,
    /// When it was started.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
    /// The time between both, in milliseconds.
    pub elapsed_ms: u64,
    /// What its model calls used.
    #[serde(flatten)]
    pub totals: Totals,
}

/// What a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// The selected runs.
    pub filter: RunFilter,
    /// The part of the list; absent for all of it.
    pub page: Option<Page>,
}

/// The list of runs, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunList {
    /// `crucible-run-list-v1`.
    pub schema_version: String,
    /// How many runs the filter selects, on this page and others.
    pub total: u64,
    /// The runs of this page.
    pub runs: Vec<RunSummary>,
}

impl RunList {
    /// The schema id.
    pub const SCHEMA: &str = "crucible-run-list-v1";

    /// Reads a list.
    ///
    /// # Errors
    ///
    /// Fails when the ledger cannot be read.
    pub fn read(ledger: &Ledger, query: &ListQuery) -> Result<Self, LedgerError> {
        let page = query.page.unwrap_or(Page::ALL);
        ledger.snapshot(|ledger| {
            let rows = ledger.runs_with_usage(&query.filter, page, RECORD_KEY)?;
            let runs: Vec<RunSummary> = rows.iter().map(RunSummary::of_row).collect();
            let listed = runs.len() as u64;
            // A part that is the whole list, as in most searches, is not counted again.
            let total = match (page.skip, listed < page.most) {
                (0, true) => listed,
                _ => ledger.count_runs(&query.filter)?,
            };
            Ok(Self {
                schema_version: Self::SCHEMA.to_owned(),
                total,
                runs,
            })
        })
    }

    /// Reads the first `most` of these runs, in their order; a run that the ledger does not have is left out.
    ///
    /// # Errors
    ///
    /// Fails when the ledger cannot be read.
    pub fn of_runs(ledger: &Ledger, runs: &[RunId], most: usize) -> Result<Self, LedgerError> {
        let read = |run: &RunId| RunSummary::read(ledger, run).transpose();
        Ok(Self {
            schema_version: Self::SCHEMA.to_owned(),
            total: runs.len() as u64,
            runs: runs
                .iter()
                .take(most)
                .filter_map(read)
                .collect::<Result<_, _>>()?,
        })
    }

    /// The list of a machine without a ledger.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            schema_version: Self::SCHEMA.to_owned(),
            total: 0,
            runs: Vec::new(),
        }
    }
}

impl RunSummary {
    /// Reads the summary of one run; `None` if the ledger has no such run.
    ///
    /// # Errors
    ///
    /// Fails when the ledger cannot be read.
    pub fn read(ledger: &Ledger, run: &RunId) -> Result<Option<Self>, LedgerError> {
        let filter = RunFilter {
            run: Some(run.clone()),
            ..RunFilter::default()
        };
        let rows = ledger.runs_with_usage(&filter, Page::ALL, RECORD_KEY)?;
        Ok(rows.first().map(Self::of_row))
    }

    /// Sets the state, and the outcome with it.
    pub(crate) fn set_state(&mut self, state: RunState) {
        self.state = RedactedText::new(state.name());
        self.outcome = RunOutcome::of_state(state.name());
    }

    fn of_row(row: &RunUsageRow) -> Self {
        let record = row.artifact.as_deref().and_then(parse_record);
        let settings = record.as_ref().map(|record| &record.settings);
        let agent = settings.and_then(|settings| settings.coding_agent.as_ref());
        let model = settings.map(|settings| match agent {
            Some(agent) => agent.profile.model.as_str(),
            None => settings.model.as_str(),
        });
        Self {
            run_id: row.run.id.clone(),
            state: RedactedText::new(&row.run.state),
            outcome: RunOutcome::of_state(&row.run.state),
            goal: RedactedText::new(&row.run.goal),
            repo: RedactedText::new(&row.run.repo),
            provider: settings.map(|settings| RedactedText::new(&settings.provider)),
            model: model.map(RedactedText::new),
            agent: agent.map(|agent| RedactedText::new(&agent.profile.name)),
            created_at: row.run.created,
            updated_at: row.run.updated,
            elapsed_ms: elapsed_ms(row.run.created, row.run.updated),
            totals: Totals::of_usage(&row.usage),
        }
    }
}

/// Returns the milliseconds from one instant to a later one; 0 if it is not later.
pub(crate) fn elapsed_ms(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.unix_millis().saturating_sub(from.unix_millis())).unwrap_or(0)
}
