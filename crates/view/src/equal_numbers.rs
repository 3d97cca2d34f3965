//! Each document about many runs has the numbers of the others.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crucible_ledger::{Allowance, Ledger, MicroDollars, NewCall, RunFilter, RunRow, Settlement};
use crucible_model::{Digest, RunId, Timestamp};
use crucible_run::RunState;

use crate::{
    CallView, CostView, ListQuery, RunList, RunSummary, StatsKey, StatsRow, StatsView, Totals,
};

/// A model call: what it reserved, and what it used, if it has ended.
#[derive(Debug, Clone)]
struct Call {
    reserved: (u64, u64),
    end: Option<End>,
}

/// What a call used, as far as the provider reported it.
#[derive(Debug, Clone)]
struct End {
    tokens_in: Option<u64>,
    tokens_out: Option<u64>,
    cost: Option<u64>,
}

/// A run: its place in the list of states, its beginning, its time, and its calls.
type Run = (usize, u64, i64, Vec<Call>);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_unix(Duration::from_millis(millis))
}

fn fill(path: &Path, runs: &[Run]) -> Ledger {
    let mut ledger = Ledger::open(path).unwrap();
    for (number, (state, started, elapsed, calls)) in runs.iter().enumerate() {
        let id: RunId = format!("run-{number}").parse().unwrap();
        let row = RunRow {
            id: id.clone(),
            goal: "g".to_owned(),
            repo: format!("/r{}", number % 2),
            state: RunState::ALL[*state].name().to_owned(),
            created: at(*started),
            updated: at(started.saturating_add_signed(*elapsed)),
        };
        ledger.record_run(row).unwrap();
        for (number, call) in calls.iter().enumerate() {
            let new = NewCall {
                run: id.clone(),
                provider: "p".to_owned(),
                model: format!("m{}", number % 2),
                request: Digest::compute(b"q"),
                ts: at(*started),
                tokens: call.reserved.0,
                cost: MicroDollars(call.reserved.1),
            };
            ledger.reserve_call(&new, &Allowance::default()).unwrap();
            if let Some(end) = &call.end {
                let end = Settlement {
                    ts: at(started + 1),
                    outcome: "ok".to_owned(),
                    tokens_in: end.tokens_in,
                    tokens_out: end.tokens_out,
                    cost: end.cost.map(MicroDollars),
                };
                ledger.settle_call(&id, number as u64 + 1, &end).unwrap();
            }
        }
    }
    ledger
}

fn assert_equal_numbers(ledger: &Ledger) {
    let list = RunList::read(ledger, &ListQuery::default()).unwrap();
    let mut sum = Totals::default();
    for run in &list.runs {
        assert_eq!(
            RunSummary::read(ledger, &run.run_id).unwrap().as_ref(),
            Some(run)
        );
        let mut totals = Totals::default();
        for call in ledger.calls(&run.run_id).unwrap() {
            let call = CallView::of_row(&call);
            totals.add(&Totals {
                calls: 1,
                open_calls: u64::from(call.ended_at.is_none()),
                tokens: call.tokens,
                micro_dollars: call.micro_dollars,
            });
        }
        assert_eq!(run.totals, totals);
        sum.add(&totals);
    }
    let stats = StatsView::read(ledger, RunFilter::default(), &StatsKey::ALL).unwrap();
    assert_eq!((stats.all.runs, stats.all.totals), (list.total, sum));
    let elapsed = |rows: &[StatsRow]| rows.iter().map(|row| row.elapsed_ms).sum::<u64>();
    for group in &stats.groups {
        assert_eq!(elapsed(&group.rows), stats.all.elapsed_ms);
    }
    let costs = CostView::read(ledger).unwrap();
    assert_eq!(costs.totals, sum);
    let mut of_days = Totals::default();
    for day in &costs.days {
        of_days.add(&day.totals);
    }
    assert_eq!(of_days, sum);
    let mut outcomes = BTreeMap::new();
    for (outcome, runs) in costs.outcomes.iter().flat_map(|day| &day.runs) {
        *outcomes.entry(*outcome).or_default() += runs;
    }
    assert_eq!(outcomes, stats.all.outcomes);
    let of_days: u64 = costs.outcomes.iter().map(|day| day.elapsed_ms).sum();
    assert_eq!(of_days, stats.all.elapsed_ms);
}

mod properties {
    use crucible_testkit::expensive_cases;
    use proptest::prelude::*;

    use super::*;

    /// Small numbers, and some that JavaScript cannot count with. The ledger has at most 2^53 of anything.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![3 => 0u64..1_000_000, 1 => (1u64 << 53) - 9..u64::MAX]
    }

    fn call() -> impl Strategy<Value = Call> {
        let reported = || prop::option::of(number());
        let end = (reported(), reported(), reported());
        let end = end.prop_map(|(tokens_in, tokens_out, cost)| End {
            tokens_in,
            tokens_out,
            cost,
        });
        ((number(), number()), prop::option::of(end))
            .prop_map(|(reserved, end)| Call { reserved, end })
    }

    fn run() -> impl Strategy<Value = Run> {
        // A hundred days of 2026, and times of which some end before they begin.
        let started = 1_767_225_600_000u64..1_775_865_600_000;
        let calls = prop::collection::vec(call(), 0..4);
        (0..RunState::ALL.len(), started, -9i64..9_000_000, calls)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(expensive_cases()))]

        #[test]
        fn documents_of_many_runs_have_equal_numbers(runs in prop::collection::vec(run(), 0..12)) {
            let room = tempfile::tempdir().unwrap();
            assert_equal_numbers(&fill(&room.path().join("ledger.db"), &runs));
        }
    }
}
