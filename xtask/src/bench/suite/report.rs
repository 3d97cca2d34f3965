//! What the benches say: a table for people, `crucible-bench-v1` for programs.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use serde::Serialize;

use super::measure::{Case, median, milliseconds};
use crate::error::TaskError;

#[derive(Serialize)]
struct BenchReport<'a> {
    schema_version: &'static str,
    rounds: u32,
    cores: usize,
    cases: Vec<CaseReport<'a>>,
}

#[derive(Serialize)]
struct CaseReport<'a> {
    bench: &'a str,
    ours: &'a str,
    beside: &'a str,
    ours_median_ms: f64,
    ours_fastest_ms: f64,
    beside_median_ms: f64,
    beside_fastest_ms: f64,
    ratio: f64,
    measured: String,
    goal: String,
    reached: bool,
}

/// The cases as a table.
pub(super) fn table(cases: &[Case]) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header([
        "bench", "ours", "median", "beside", "median", "ratio", "measured", "goal", "",
    ]);
    for case in cases {
        let (measured, goal) = case.verdict();
        table.add_row([
            case.bench.to_owned(),
            case.ours.clone(),
            milliseconds(median(&case.pair.ours)),
            case.beside.clone(),
            milliseconds(median(&case.pair.beside)),
            format!("{:.2}", case.pair.ratio()),
            measured,
            goal,
            if case.reached() { "reached" } else { "SHORT" }.to_owned(),
        ]);
    }
    table.to_string()
}

/// Writes the cases as JSON.
pub(super) fn write(path: &Path, cases: &[Case], rounds: u32) -> Result<(), TaskError> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let cases = cases.iter().map(CaseReport::from_case).collect();
    let report = BenchReport {
        schema_version: "crucible-bench-v1",
        rounds,
        cores,
        cases,
    };
    fs::write(path, serde_json::to_vec_pretty(&report)?).map_err(TaskError::io("write", path))
}

impl<'a> CaseReport<'a> {
    fn from_case(case: &'a Case) -> Self {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let fastest = |times: &[Duration]| times.iter().min().copied().unwrap_or_default();
        let (measured, goal) = case.verdict();
        Self {
            bench: case.bench,
            ours: &case.ours,
            beside: &case.beside,
            ours_median_ms: ms(median(&case.pair.ours)),
            ours_fastest_ms: ms(fastest(&case.pair.ours)),
            beside_median_ms: ms(median(&case.pair.beside)),
            beside_fastest_ms: ms(fastest(&case.pair.beside)),
            ratio: case.pair.ratio(),
            measured,
            goal,
            reached: case.reached(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::measure::{Goal, Pair};
    use super::*;

    #[test]
    fn missed_goal_is_reported_in_both_formats() {
        let case = Case {
            bench: "startup",
            ours: "crucible --version".to_owned(),
            beside: "/bin/true".to_owned(),
            pair: Pair {
                ours: vec![Duration::from_millis(12)],
                beside: vec![Duration::from_millis(4)],
            },
            goal: Goal::TimeAtMost(Duration::from_millis(10)),
        };
        let table = table(std::slice::from_ref(&case));
        assert!(
            table.contains("SHORT") && table.contains("12.00 ms") && table.contains("3.00"),
            "{table}"
        );

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bench.json");
        write(&path, &[case], 1).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(json["schema_version"], "crucible-bench-v1");
        assert_eq!(json["cases"][0]["reached"], false);
        assert_eq!(json["cases"][0]["ratio"], 3.0);
    }
}
