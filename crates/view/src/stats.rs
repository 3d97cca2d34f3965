//! Statistics of runs: outcome, cost and time by model, agent, repository and week.
//!
//! They are sums over the list of runs, so they equal the sums of its rows.

use std::collections::BTreeMap;

use crucible_ledger::{Ledger, LedgerError, RunFilter};
use serde::{Deserialize, Serialize};

use crate::call::Totals;
use crate::list::{ListQuery, RunList, RunOutcome, RunSummary};
use crate::text::RedactedText;
use crate::week::Week;

/// The statistics of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatsView {
    /// `crucible-stats-v1`.
    pub schema_version: String,
    /// All runs together.
    pub all: StatsRow,
    /// The runs in groups, for each key.
    pub groups: Vec<StatsGroup>,
}

/// Runs in groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatsGroup {
    /// What a group has in common.
    pub by: StatsKey,
    /// The groups: weeks in order, others with the most runs first.
    pub rows: Vec<StatsRow>,
}

/// What the runs of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StatsKey {
    /// The configured model.
    Model,
    /// The coding agent.
    Agent,
    /// The path of the repository.
    Repository,
    /// The Monday of the week in which the run was started, in UTC.
    Week,
}

impl StatsKey {
    /// Every key.
    pub const ALL: [Self; 4] = [Self::Model, Self::Agent, Self::Repository, Self::Week];

    /// The key's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Agent => "agent",
            Self::Repository => "repository",
            Self::Week => "week",
        }
    }

    /// The value of a run; empty if it has none or if its start record is of another version.
    fn value(self, run: &RunSummary) -> RedactedText {
        match self {
            Self::Model => run.model.clone().unwrap_or_default(),
            Self::Agent => run.agent.clone().unwrap_or_default(),
            Self::Repository => run.repo.clone(),
            Self::Week => RedactedText::new(&Week::from_instant(run.created_at).first_day()),
        }
    }
}

/// A group of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatsRow {
    /// What they have in common; empty for all runs, and for runs without such a value.
    pub key: RedactedText,
    /// How many there are.
    pub runs: u64,
    /// How many there are of each outcome.
    pub outcomes: BTreeMap<RunOutcome, u64>,
    /// The share of verified and landed runs among those that have ended, in percent; absent if none has.
    pub verified_percent: Option<u64>,
    /// What their model calls used.
    #[serde(flatten)]
    pub totals: Totals,
    /// The cost of all of them divided by the number of verified and landed ones, in millionths of a US dollar; absent
    /// without one.
    pub micro_dollars_per_verified: Option<u64>,
    /// The sum of the times from their start to the last change of their state, in milliseconds.
    pub elapsed_ms: u64,
    /// The median of these times; of two medians, the lower.
    pub median_elapsed_ms: Option<u64>,
}

impl StatsView {
    /// Reads the statistics of the runs that a filter selects, in groups by these keys.
    ///
    /// # Errors
    ///
    /// Fails when the ledger cannot be read.
    pub fn read(
        ledger: &Ledger,
        filter: RunFilter,
        keys: &[StatsKey],
    ) -> Result<Self, LedgerError> {
        let query = ListQuery { filter, page: None };
        Ok(Self::new(&RunList::read(ledger, &query)?.runs, keys))
    }

    /// Returns the statistics of these runs.
    #[must_use]
    pub fn new(runs: &[RunSummary], keys: &[StatsKey]) -> Self {
        let group = |by: &StatsKey| {
            let mut groups: BTreeMap<RedactedText, Vec<&RunSummary>> = BTreeMap::new();
            for run in runs {
                groups.entry(by.value(run)).or_default().push(run);
            }
            let mut rows: Vec<StatsRow> = groups
                .into_iter()
                .map(|(key, runs)| StatsRow::new(key, &runs))
                .collect();
            if *by != StatsKey::Week {
                rows.sort_by_key(|row| std::cmp::Reverse(row.runs));
            }
            StatsGroup { by: *by, rows }
        };
        let all: Vec<&RunSummary> = runs.iter().collect();
        Self {
            schema_version: "crucible-stats-v1".to_owned(),
            all: StatsRow::new(RedactedText::default(), &all),
            groups: keys.iter().map(group).collect(),
        }
    }
}

impl StatsRow {
    fn new(key: RedactedText, runs: &[&RunSummary]) -> Self {
        let mut row = Self {
            key,
            runs: runs.len() as u64,
            ..Self::default()
        };
        let mut times: Vec<u64> = runs.iter().map(|run| run.elapsed_ms).collect();
        times.sort_unstable();
        for run in runs {
            *row.outcomes.entry(run.outcome).or_default() += 1;
            row.totals.add(&run.totals);
            row.elapsed_ms = row.elapsed_ms.saturating_add(run.elapsed_ms);
        }
        let number = |outcomes: &[RunOutcome]| {
            let numbers = outcomes
                .iter()
                .filter_map(|outcome| row.outcomes.get(outcome));
            numbers.sum::<u64>()
        };
        let verified = number(&[RunOutcome::Verified, RunOutcome::Landed]);
        let ended = verified + number(&[RunOutcome::Failed, RunOutcome::Declined]);
        row.verified_percent = (verified * 100).checked_div(ended);
        row.micro_dollars_per_verified = row.totals.micro_dollars.checked_div(verified);
        row.median_elapsed_ms = times.get(times.len().saturating_sub(1) / 2).copied();
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str, outcome: RunOutcome, model: Option<&str>, day: &str, cost: u64) -> RunSummary {
        let at = |time: &str| format!("{day}T{time}Z").parse().unwrap();
        RunSummary {
            run_id: id.parse().unwrap(),
            state: RedactedText::new("x"),
            outcome,
            goal: RedactedText::new("g"),
            repo: RedactedText::new("/r"),
            provider: None,
            model: model.map(RedactedText::new),
            agent: None,
            created_at: at("00:00:00"),
            updated_at: at("00:00:01"),
            elapsed_ms: cost * 10,
            totals: Totals {
                calls: 1,
                open_calls: 0,
                tokens: 5,
                micro_dollars: cost,
            },
        }
    }

    #[test]
    fn groups_add_up_to_all_runs() {
        let runs = [
            run("a", RunOutcome::Landed, Some("m"), "2026-01-05", 10),
            run("b", RunOutcome::Failed, Some("m"), "2026-01-11", 20),
            run("c", RunOutcome::Verified, Some("n"), "2026-01-12", 40),
            run("d", RunOutcome::Open, None, "2026-01-12", 7),
        ];
        let stats = StatsView::new(&runs, &StatsKey::ALL);
        assert_eq!((stats.all.runs, stats.all.totals.micro_dollars), (4, 77));
        assert_eq!(stats.all.verified_percent, Some(66));
        assert_eq!(stats.all.micro_dollars_per_verified, Some(38));
        assert_eq!(stats.all.median_elapsed_ms, Some(100));
        for group in &stats.groups {
            let sum = |of: fn(&StatsRow) -> u64| group.rows.iter().map(of).sum::<u64>();
            assert_eq!(sum(|row| row.runs), 4, "{:?}", group.by);
            assert_eq!(sum(|row| row.totals.micro_dollars), 77);
            assert_eq!(sum(|row| row.elapsed_ms), stats.all.elapsed_ms);
        }
        let keys = |at: usize| -> Vec<&str> {
            let rows = stats.groups[at].rows.iter();
            rows.map(|row| row.key.as_str()).collect()
        };
        assert_eq!(keys(0), ["m", "", "n"]);
        assert_eq!(keys(3), ["2026-01-05", "2026-01-12"]);
    }

    #[test]
    fn no_runs_have_no_shares() {
        let stats = StatsView::new(&[], &[StatsKey::Week]);
        assert_eq!(stats.all, StatsRow::default());
        assert!(stats.groups[0].rows.is_empty());
        let open = [run(
            "a",
            RunOutcome::Open,
            None,
            "2026-01-05",
            u64::MAX / 10,
        )];
        let all = StatsView::new(&open, &[]).all;
        assert_eq!(
            (all.verified_percent, all.micro_dollars_per_verified),
            (None, None)
        );
    }
}
