//! The report of an evaluation, `crucible-eval-v1`: the results of each configuration, and pairwise
//! differences on the same tasks.
//!
//! Samples of one task are not independent. An interval therefore uses the number of tasks as its size, and
//! configurations are compared task by task.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::engine::Configuration;
use crate::outcome::{Spent, TrialDocument, TrialOutcome};
use crate::statistics::{Interval, exact_mcnemar, wilson};

/// The version of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EvalReportVersion {
    /// The only one so far.
    #[serde(rename = "crucible-eval-v1")]
    V1,
}

/// What a report is made of.
pub struct EvalReportInput<'a> {
    /// The configurations, in order of display.
    pub configurations: &'a [Configuration],
    /// How often each task was to be solved.
    pub samples: u64,
    /// The seed of the first sample.
    pub seed: Option<u64>,
    /// The documents of all trials.
    pub trials: Vec<TrialDocument>,
}

/// The report of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// `crucible-eval-v1`.
    pub schema_version: EvalReportVersion,
    /// How intervals were computed.
    pub interval: String,
    /// How often each task was to be solved in each configuration.
    pub samples: u64,
    /// The seed of the first sample, if models get one.
    pub seed: Option<u64>,
    /// One report for each configuration.
    pub configurations: Vec<ConfigurationReport>,
    /// Each two configurations, the one that is named earlier first.
    pub comparisons: Vec<Comparison>,
    /// The documents of all trials.
    pub trials: Vec<TrialDocument>,
}

/// A proportion of scored trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// The observed one.
    pub value: f64,
    /// The 95 % interval around it.
    pub interval: Interval,
}

/// What a configuration came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigurationReport {
    /// The configuration that was measured.
    pub configuration: Configuration,
    /// Trials by their outcome; each outcome is named.
    pub outcomes: BTreeMap<TrialOutcome, u64>,
    /// Trials that count.
    pub scored: u64,
    /// Tasks with at least one of them.
    pub tasks: u64,
    /// The right ones of those.
    pub right: Rate,
    /// Those in which a wrong change landed.
    pub wrong_landed: Rate,
    /// What all model calls of all trials cost together.
    pub spent: Spent,
    /// Wall time of solving in all trials together.
    pub seconds: f64,
}

/// How two configurations differ on the tasks that both solved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The one.
    pub first: String,
    /// The other.
    pub second: String,
    /// Tasks that were scored in both.
    pub tasks: u64,
    /// Of those, tasks that the first had right more often.
    pub more_first: u64,
    /// Tasks that the second had right more often.
    pub more_second: u64,
    /// The mean share of right samples in the first, less that in the second.
    pub difference: f64,
    /// Of the exact McNemar test on the tasks that differ, two-sided.
    pub p_value: f64,
}

impl Report {
    /// Makes the report.
    #[must_use]
    pub fn new(input: EvalReportInput<'_>) -> Self {
        let EvalReportInput {
            configurations,
            samples,
            seed,
            trials,
        } = input;
        let mut comparisons = Vec::new();
        for (index, first) in configurations.iter().enumerate() {
            for second in configurations.iter().skip(index + 1) {
                comparisons.push(compare(&first.name, &second.name, &trials));
            }
        }
        Self {
            schema_version: EvalReportVersion::V1,
            interval: "Wilson score, 95 %, n = tasks".to_owned(),
            samples,
            seed,
            configurations: configurations
                .iter()
                .map(|configuration| summary(configuration, &trials))
                .collect(),
            comparisons,
            trials,
        }
    }

    /// Returns whether every trial has a scored outcome or a broken task.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.trials
            .iter()
            .all(|trial| trial.outcome != TrialOutcome::Unfinished)
    }
}

fn summary(configuration: &Configuration, trials: &[TrialDocument]) -> ConfigurationReport {
    let own = || {
        trials
            .iter()
            .filter(|trial| trial.configuration == configuration.name)
    };
    let count = |outcome| own().filter(|trial| trial.outcome == outcome).count() as u64;
    let outcomes: BTreeMap<TrialOutcome, u64> = TrialOutcome::ALL
        .into_iter()
        .map(|outcome| (outcome, count(outcome)))
        .collect();
    let scored = own().filter(|trial| trial.outcome.is_scored());
    let tasks = scored
        .clone()
        .map(|trial| &trial.task)
        .collect::<BTreeSet<_>>()
        .len() as u64;
    let scored = scored.count() as u64;
    let rate = |outcome| {
        let value = if scored == 0 {
            0.0
        } else {
            count(outcome) as f64 / scored as f64
        };
        Rate {
            value,
            interval: wilson(value, tasks),
        }
    };
    let nothing = Spent {
        micro_dollars: Some(0),
        ..Spent::default()
    };
    ConfigurationReport {
        configuration: configuration.clone(),
        right: rate(TrialOutcome::Right),
        wrong_landed: rate(TrialOutcome::WrongLanded),
        outcomes,
        scored,
        tasks,
        spent: own().fold(nothing, |sum, trial| sum.and(trial.spent)),
        seconds: own().map(|trial| trial.seconds).sum(),
    }
}

/// For each task, how many scored samples a configuration has, and how many are right.
fn by_task<'t>(name: &str, trials: &'t [TrialDocument]) -> BTreeMap<&'t str, (u64, u64)> {
    let mut tasks = BTreeMap::new();
    for trial in trials
        .iter()
        .filter(|trial| trial.configuration == name && trial.outcome.is_scored())
    {
        let (samples, right) = tasks.entry(trial.task.as_str()).or_insert((0, 0));
        *samples += 1;
        *right += u64::from(trial.outcome == TrialOutcome::Right);
    }
    tasks
}

fn compare(first: &str, second: &str, trials: &[TrialDocument]) -> Comparison {
    let (ours, theirs) = (by_task(first, trials), by_task(second, trials));
    let (mut tasks, mut more_first, mut more_second, mut sum) = (0u64, 0, 0, 0.0);
    for (task, (samples, right)) in &ours {
        let Some((other_samples, other_right)) = theirs.get(task) else {
            continue;
        };
        tasks += 1;
        // Shares compared by their cross products: as fractions, equal ones could differ.
        let (one, other) = (right * other_samples, other_right * samples);
        more_first += u64::from(one > other);
        more_second += u64::from(other > one);
        sum += *right as f64 / *samples as f64 - *other_right as f64 / *other_samples as f64;
    }
    Comparison {
        first: first.to_owned(),
        second: second.to_owned(),
        tasks,
        more_first,
        more_second,
        difference: if tasks == 0 { 0.0 } else { sum / tasks as f64 },
        p_value: exact_mcnemar(more_first, more_second),
    }
}
