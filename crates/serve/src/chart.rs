//! Bar charts by week, drawn on the server.

use std::collections::BTreeMap;

use crucible_model::{Timestamp, counted};
use crucible_view::{CostView, Week};

use crate::format::{duration, money};
use crate::query::OUTCOMES;

/// The most weeks that a chart shows; the newest ones.
const MAX_WEEKS: usize = 26;
/// The height of the bars, in units of the drawing.
const HEIGHT: u64 = 140;
/// The width of a week.
const WEEK: u64 = 24;

/// A chart.
pub(crate) struct Chart {
    /// What it shows.
    pub(crate) label: String,
    /// Its width.
    pub(crate) width: u64,
    /// Its bars.
    pub(crate) bars: Vec<Bar>,
    /// The weeks from left to right, and the value of the highest bar.
    pub(crate) range: String,
    /// What the colours mean: the classes of the bars.
    pub(crate) legend: Vec<&'static str>,
    /// The first day and the values of each week.
    pub(crate) weeks: Vec<(String, String)>,
}

/// A bar, or a part of a stacked one.
pub(crate) struct Bar {
    /// Its class in the style sheet.
    pub(crate) class: &'static str,
    /// Its left edge.
    pub(crate) x: u64,
    /// Its upper edge.
    pub(crate) y: u64,
    /// Its width.
    pub(crate) width: u64,
    /// Its height.
    pub(crate) height: u64,
}

/// The parts of a week, from below, each with its class.
type Parts = Vec<(&'static str, u64)>;

impl Chart {
    /// The runs that were started in each week, by outcome.
    pub(crate) fn outcomes(costs: &CostView) -> Self {
        let mut weeks: BTreeMap<Week, Parts> = BTreeMap::new();
        for day in &costs.outcomes {
            let parts = OUTCOMES
                .map(|outcome| (outcome.name(), day.runs.get(&outcome).copied().unwrap_or(0)));
            add(&mut weeks, day.day.as_str(), &parts);
        }
        let text = |parts: &Parts| {
            let shown = parts.iter().filter(|(_, runs)| *runs > 0);
            shown
                .map(|(name, runs)| format!("{runs} {name}"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        Self::new("Runs by week and outcome", weeks, text, |runs| {
            counted(runs, "run")
        })
    }

    /// The cost of each week.
    pub(crate) fn money(costs: &CostView) -> Self {
        let mut weeks = BTreeMap::new();
        for day in &costs.days {
            add(
                &mut weeks,
                day.day.as_str(),
                &[("cost", day.totals.micro_dollars)],
            );
        }
        Self::new(
            "Cost by week",
            weeks,
            |parts| money(&sum(parts)),
            |cost| money(&cost),
        )
    }

    /// The time of the runs of each week.
    pub(crate) fn time(costs: &CostView) -> Self {
        let mut weeks = BTreeMap::new();
        for day in &costs.outcomes {
            add(&mut weeks, day.day.as_str(), &[("open", day.elapsed_ms)]);
        }
        Self::new(
            "Time of runs by week",
            weeks,
            |parts| duration(&sum(parts)),
            |time| duration(&time),
        )
    }

    /// Draws the weeks. `text` describes one week, and `height` the highest bar.
    fn new(
        label: &str,
        mut weeks: BTreeMap<Week, Parts>,
        text: impl Fn(&Parts) -> String,
        height: impl Fn(u64) -> String,
    ) -> Self {
        while weeks.len() > MAX_WEEKS {
            weeks.pop_first();
        }
        let highest = weeks.values().map(sum).max().unwrap_or(0).max(1);
        let mut bars: Vec<Bar> = Vec::new();
        let range = match (weeks.first_key_value(), weeks.last_key_value()) {
            (Some((first, _)), Some((last, _))) => format!(
                "Weeks from {} to {}; the highest bar is {}.",
                first.first_day(),
                last.first_day(),
                height(highest)
            ),
            _ => String::new(),
        };
        for (at, parts) in weeks.values().enumerate() {
            let mut top = HEIGHT;
            for (class, value) in parts.iter().filter(|(_, value)| *value > 0) {
                let exact = u128::from(*value) * u128::from(HEIGHT) / u128::from(highest);
                let height = u64::try_from(exact).unwrap_or(HEIGHT).clamp(1, top.max(1));
                top = top.saturating_sub(height);
                bars.push(Bar {
                    class,
                    x: at as u64 * WEEK,
                    y: top + 5,
                    width: WEEK - 4,
                    height,
                });
            }
        }
        let mut legend: Vec<&str> = Vec::new();
        for bar in &bars {
            if !legend.contains(&bar.class) {
                legend.push(bar.class);
            }
        }
        Self {
            range,
            legend,
            label: label.to_owned(),
            width: (weeks.len() as u64 * WEEK).max(WEEK),
            bars,
            weeks: weeks
                .iter()
                .map(|(week, parts)| (week.first_day(), text(parts)))
                .collect(),
        }
    }
}

fn sum(parts: &Parts) -> u64 {
    parts
        .iter()
        .fold(0, |sum, (_, value)| sum.saturating_add(*value))
}

/// Adds the values of a day to its week. A day that is not a date is left out.
fn add(weeks: &mut BTreeMap<Week, Parts>, day: &str, values: &[(&'static str, u64)]) {
    let Ok(instant) = format!("{day}T00:00:00Z").parse::<Timestamp>() else {
        return;
    };
    let parts = weeks
        .entry(Week::from_instant(instant))
        .or_insert_with(|| values.iter().map(|(class, _)| (*class, 0)).collect());
    for (part, (_, value)) in parts.iter_mut().zip(values) {
        part.1 = part.1.saturating_add(*value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_one_week_are_one_bar() {
        let mut weeks = BTreeMap::new();
        // Monday, Sunday, and the next Monday.
        for day in ["2026-01-05", "2026-01-11", "2026-01-12", "no day"] {
            add(&mut weeks, day, &[("cost", 1)]);
        }
        let chart = Chart::new(
            "x",
            weeks,
            |parts| sum(parts).to_string(),
            |runs| runs.to_string(),
        );
        assert_eq!(chart.legend, ["cost"]);
        assert_eq!(
            chart.range,
            "Weeks from 2026-01-05 to 2026-01-12; the highest bar is 2."
        );
        let weeks: Vec<(&str, &str)> = chart
            .weeks
            .iter()
            .map(|(day, value)| (day.as_str(), value.as_str()))
            .collect();
        assert_eq!(weeks, [("2026-01-05", "2"), ("2026-01-12", "1")]);
        assert_eq!((chart.bars[0].height, chart.bars[1].height), (140, 70));
    }

    #[test]
    fn extreme_values_stay_inside() {
        let mut weeks = BTreeMap::new();
        add(
            &mut weeks,
            "2026-01-05",
            &[("a", u64::MAX), ("b", u64::MAX), ("c", 1)],
        );
        let chart = Chart::new(
            "x",
            weeks,
            |parts| sum(parts).to_string(),
            |_| String::new(),
        );
        assert!(
            chart
                .bars
                .iter()
                .all(|bar| bar.y <= 145 && bar.height <= HEIGHT)
        );
    }
}
