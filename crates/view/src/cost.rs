//! What all runs cost, and how they ended, over time.

use std::collections::BTreeMap;

use crucible_ledger::{Ledger, LedgerError};
use serde::{Deserialize, Serialize};

use crate::call::Totals;
use crate::list::RunOutcome;
use crate::text::RedactedText;

/// The costs of all model calls in the ledger: of runs, crawls, specs and skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostView {
    /// `crucible-costs-v1`.
    pub schema_version: String,
    /// Everything together.
    pub totals: Totals,
    /// By provider and model, the most expensive first.
    pub models: Vec<CostGroup>,
    /// By day, in order; days without calls are missing.
    pub days: Vec<DayCost>,
    /// The runs that were started on each day, by outcome; days without runs are missing.
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
    /// The sum of their times from start to last change, in milliseconds.
    pub elapsed_ms: u64,
}

impl CostView {
    /// Reads the costs.
    ///
    /// # Errors
    ///
    /// Fails when the ledger cannot be read.
    pub fn read(ledger: &Ledger) -> Result<Self, LedgerError> {
        let mut totals = Totals::default();
        let mut models: BTreeMap<(String, String), Totals> = BTreeMap::new();
        let mut days: BTreeMap<String, Totals> = BTreeMap::new();
        for row in ledger.costs()? {
            let used = Totals::of_usage(&row.usage);
            totals.add(&used);
            models
                .entry((row.provider, row.model))
                .or_default()
                .add(&used);
            days.entry(row.day).or_default().add(&used);
        }
        let mut models: Vec<CostGroup> = models
            .into_iter()
            .map(|((provider, model), totals)| CostGroup {
                provider: RedactedText::new(&provider),
                model: RedactedText::new(&model),
                totals,
            })
            .collect();
        models.sort_by_key(|group| {
            std::cmp::Reverse((group.totals.micro_dollars, group.totals.calls))
        });
        let mut outcomes: BTreeMap<String, (BTreeMap<RunOutcome, u64>, u64)> = BTreeMap::new();
        for row in ledger.run_states()? {
            let (runs, elapsed_ms) = outcomes.entry(row.day).or_default();
            *runs.entry(RunOutcome::of_state(&row.state)).or_default() += row.runs;
            *elapsed_ms += row.elapsed_ms;
        }
        Ok(Self {
            schema_version: "crucible-costs-v1".to_owned(),
            totals,
            models,
            days: days
                .into_iter()
                .map(|(day, totals)| DayCost {
                    day: RedactedText::new(&day),
                    totals,
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
