//! What all runs cost, and how they ended, over time.

use std::collections::BTreeMap;

use crucible_ledger::{Ledger, LedgerError};
use serde::{Deserialize, Serialize};

use crate::call::Totals;
use crate::list::RunOutcome;
use crate::text::RedactedText;

/// How many days with calls or runs are listed: those of half a year.
const DAYS: u32 = 183;

/// The costs of all model calls in the ledger: of runs, crawls, specs and skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostView {
    /// `crucible-costs-v1`.
    pub schema_version: String,
    /// Everything together.
    pub totals: Totals,
    /// By provider and model, the most expensive first.
    pub models: Vec<CostGroup>,
    /// The newest 183 days with calls, in order.
    pub days: Vec<DayCost>,
    /// The runs that were started on each of the newest 183 days with runs, by outcome, in order.
    pub outcomes: Vec<DayOutcomes>,
}

/// The calls to one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostGroup {
    /// The provider.
    pub provider: RedactedText,
    /// The model.
    pub model: RedactedText,
    /// What they used.
    #[serde(flatten)]
    pub totals: Totals,
}

/// The calls of one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayCost {
    /// The day in UTC, `YYYY-MM-DD`.
    pub day: RedactedText,
    /// What they used.
    #[serde(flatten)]
    pub totals: Totals,
}

/// The runs that were started on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayOutcomes {
    /// The day in UTC, `YYYY-MM-DD`.
    pub day: RedactedText,
    /// How many runs there are of each outcome.
    pub runs: BTreeMap<RunOutcome, u64>,
    /// The sum of their times from start to the last change of their state, in milliseconds.
    pub elapsed_ms: u64,
}

impl CostView {
    /// Reads the costs.
    ///
    /// # Errors
    ///
    /// Fails when the ledger cannot be read.
    pub fn read(ledger: &Ledger) -> Result<Self, LedgerError> {
        ledger.snapshot(Self::read_all)
    }

    fn read_all(ledger: &Ledger) -> Result<Self, LedgerError> {
        let mut totals = Totals::default();
        let mut models = Vec::new();
        for row in ledger.costs()? {
            let used = Totals::of_usage(&row.usage);
            totals.add(&used);
            models.push(CostGroup {
                provider: RedactedText::new(&row.provider),
                model: RedactedText::new(&row.model),
                totals: used,
            });
        }
        models.sort_by_key(|group| {
            std::cmp::Reverse((group.totals.micro_dollars, group.totals.calls))
        });
        let mut outcomes: BTreeMap<String, (BTreeMap<RunOutcome, u64>, u64)> = BTreeMap::new();
        for row in ledger.run_states(DAYS)? {
            let (runs, elapsed_ms) = outcomes.entry(row.day).or_default();
            *runs.entry(RunOutcome::of_state(&row.state)).or_default() += row.runs;
            *elapsed_ms += row.elapsed_ms;
        }
        Ok(Self {
            schema_version: "crucible-costs-v1".to_owned(),
            totals,
            models,
            days: ledger
                .day_costs(DAYS)?
                .into_iter()
                .map(|row| DayCost {
                    day: RedactedText::new(&row.day),
                    totals: Totals::of_usage(&row.usage),
                })
                .collect(),
            outcomes: outcomes
                .into_iter()
                .map(|(day, (runs, elapsed_ms))| DayOutcomes {
                    day: RedactedText::new(&day),
                    runs,
                    elapsed_ms,
                })
                .collect(),
        })
    }
}
