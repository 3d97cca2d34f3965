//! Runs with what they used, and costs by day and model: what lists and charts show, one query each.
//!
//! Usage is counted as [`Ledger::usage`] counts it, so a list and a run's own budget show equal numbers.

use crucible_model::RunId;
use rusqlite::types::Value;
use rusqlite::{Row, ToSql};

use crate::calls::{Usage, read_usage_columns, unsigned, usage_columns};
use crate::error::LedgerError;
use crate::runs::{RunRow, read_run};
use crate::store::Ledger;

/// Which runs a list has. A part that is absent selects every run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The state, as the row spells it.
    pub state: Option<String>,
    /// The repository's path.
    pub repo: Option<String>,
    /// A part of the goal, of the id or of the repository's path; ASCII case is ignored.
    pub text: Option<String>,
    /// The only run.
    pub run: Option<RunId>,
    /// A model that the run called.
    pub model: Option<String>,
}

/// A part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// How many rows come before it.
    pub skip: u64,
    /// How many rows it has at most.
    pub most: u64,
}

impl Page {
    /// The whole list.
    pub const ALL: Self = Self {
        skip: 0,
        most: i64::MAX as u64,
    };
}

/// A run with what it used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunUsageRow {
    /// The row of the run.
    pub run: RunRow,
    /// What it used so far; open calls count with what they reserved.
    pub usage: Usage,
    /// The artifact of the event that has the requested key in this run.
    pub artifact: Option<Vec<u8>>,
}

/// What all calls to one model used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostRow {
    /// The provider that was called.
    pub provider: String,
    /// The model that was called.
    pub model: String,
    /// The calls; open calls count with what they reserved.
    pub usage: Usage,
}

/// What the calls of one day used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayCostRow {
    /// The day in UTC, `YYYY-MM-DD`.
    pub day: String,
    /// The calls; open calls count with what they reserved.
    pub usage: Usage,
}

/// The runs of one day that are in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateCountRow {
    /// The day in UTC on which they were started, `YYYY-MM-DD`.
    pub day: String,
    /// The state, as the rows spell it.
    pub state: String,
    /// How many there are.
    pub runs: u64,
    /// The sum of the times from their start to the last change of their state, in milliseconds.
    pub elapsed_ms: u64,
}

/// Texts of more bytes are not searched with LIKE, which refuses long patterns.
const MAX_PATTERN_BYTES: usize = 1000;

/// What SQL a filter amounts to. A part that is absent costs nothing: SQLite plans a query before it knows the values.
struct Selection {
    /// The condition; empty if every run is selected.
    condition: String,
    /// The hint about indexes. A text is compared with every row, and that is fastest in the order of the file.
    hint: &'static str,
    values: Vec<(&'static str, Value)>,
}

impl Selection {
    fn from_filter(filter: &RunFilter) -> Self {
        let mut conditions = Vec::new();
        let mut values = Vec::new();
        let mut add = |condition: &'static str, name: &'static str, value: Option<String>| {
            if let Some(value) = value {
                conditions.push(condition);
                values.push((name, Value::Text(value)));
            }
        };
        let run = filter.run.as_ref().map(|run| run.as_str().to_owned());
        add("id = :run", ":run", run);
        add("state = :state", ":state", filter.state.clone());
        add("repo = :repo", ":repo", filter.repo.clone());
        add(
            "EXISTS (SELECT 1 FROM model_calls AS m WHERE m.run_id = id AND m.model = :model)",
            ":model",
            filter.model.clone(),
        );
        match filter.text.as_deref() {
            Some(text) if text.len() <= MAX_PATTERN_BYTES => add(
                r"(goal LIKE :text ESCAPE '\' OR id LIKE :text ESCAPE '\' OR repo LIKE :text ESCAPE '\')",
                ":text",
                Some(pattern_of(text)),
            ),
            text => add(
                "(instr(lower(goal), :text) > 0 OR instr(id, :text) > 0 OR instr(lower(repo), :text) > 0)",
                ":text",
                text.map(str::to_ascii_lowercase),
            ),
        }
        let condition = match conditions.is_empty() {
            true => String::new(),
            false => format!("WHERE {}", conditions.join(" AND ")),
        };
        let hint = match filter.text {
            Some(_) => "NOT INDEXED",
            None => "",
        };
        Self {
            condition,
            hint,
            values,
        }
    }

    /// The values with their names, as a statement takes them.
    fn named_parameters<'v>(
        &'v self,
        more: &[(&'static str, &'v dyn ToSql)],
    ) -> Vec<(&'static str, &'v dyn ToSql)> {
        let own = self
            .values
            .iter()
            .map(|(name, value)| (*name, value as &dyn ToSql));
        own.chain(more.iter().copied()).collect()
    }

    /// The query of a part of the list. Rows before the part are counted in the index, not read.
    fn list(&self) -> String {
        let Self {
            condition, hint, ..
        } = self;
        format!(
            "SELECT r.id, r.goal, r.repo, r.state, r.created, r.updated, {USAGE},
                (SELECT a.bytes FROM events AS e JOIN artifacts AS a ON a.digest = json_extract(e.body, '$.digest')
                 WHERE e.run_id = r.id AND e.key = :key)
             FROM runs AS r LEFT JOIN model_calls AS c ON c.run_id = r.id
             WHERE r.id IN (SELECT id FROM runs {hint} {condition} ORDER BY created DESC, id DESC LIMIT :most OFFSET :skip)
             GROUP BY r.id ORDER BY r.created DESC, r.id DESC"
        )
    }

    fn count(&self) -> String {
        let Self {
            condition, hint, ..
        } = self;
        format!("SELECT count(*) FROM runs {hint} {condition}")
    }
}

/// Returns the LIKE pattern of all texts that contain this one.
fn pattern_of(text: &str) -> String {
    let mut pattern = "%".to_owned();
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern + "%"
}

const USAGE: &str = usage_columns!();

const COSTS: &str = concat!(
    "SELECT provider, model, ",
    usage_columns!(),
    " FROM model_calls AS c GROUP BY provider, model ORDER BY provider, model"
);

// Only the newest days are grouped: to sort the calls and runs of years takes longer than all else.
const DAY_COSTS: &str = concat!(
    "SELECT substr(reserved_at, 1, 10) AS day, ",
    usage_columns!(),
    " FROM model_calls AS c WHERE reserved_at >= (SELECT min(day) FROM (
        SELECT DISTINCT substr(reserved_at, 1, 10) AS day FROM model_calls ORDER BY day DESC LIMIT :days))
     GROUP BY day ORDER BY day"
);

// Each time is rounded for itself: the sum is that of the list, to the millisecond.
const STATES: &str = "SELECT substr(created, 1, 10) AS day, state, count(*),
        sum(CAST(round(max(0, julianday(updated) - julianday(created)) * 86400000) AS INTEGER))
     FROM runs WHERE created >= (SELECT min(day) FROM (
        SELECT DISTINCT substr(created, 1, 10) AS day FROM runs ORDER BY day DESC LIMIT :days))
     GROUP BY day, state ORDER BY day, state";

impl Ledger {
    /// Returns a part of the list of runs with what each used, the newest first. Each row has the artifact of its run's event
    /// with the key `key`, such as the file that the run was started with.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read or a row does not hold what Crucible writes.
    pub fn runs_with_usage(
        &self,
        filter: &RunFilter,
        page: Page,
        key: &str,
    ) -> Result<Vec<RunUsageRow>, LedgerError> {
        let selection = Selection::from_filter(filter);
        let (most, skip) = (to_limit(page.most), to_limit(page.skip));
        self.connection
            .prepare_cached(&selection.list())
            .and_then(|mut select| {
                let values = selection.named_parameters(&[
                    (":key", &key),
                    (":most", &most),
                    (":skip", &skip),
                ]);
                select.query_map(values.as_slice(), read_row)?.collect()
            })
            .map_err(self.fail())
    }

    /// Returns how many runs a filter selects.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read.
    pub fn count_runs(&self, filter: &RunFilter) -> Result<u64, LedgerError> {
        let selection = Selection::from_filter(filter);
        self.connection
            .prepare_cached(&selection.count())
            .and_then(|mut select| {
                select.query_row(selection.named_parameters(&[]).as_slice(), |row| {
                    unsigned(row, 0)
                })
            })
            .map_err(self.fail())
    }

    /// Returns what all model calls used, by provider and model, in this order.
    ///
    /// # Errors
    ///
    /// As [`Ledger::count_runs`].
    pub fn costs(&self) -> Result<Vec<CostRow>, LedgerError> {
        let read = |row: &Row<'_>| {
            Ok(CostRow {
                provider: row.get(0)?,
                model: row.get(1)?,
                usage: read_usage_columns(row, 2)?,
            })
        };
        self.connection
            .prepare_cached(COSTS)
            .and_then(|mut select| select.query_map([], read)?.collect())
            .map_err(self.fail())
    }

    /// Returns what the model calls of the newest `days` days with calls used, the oldest day first.
    ///
    /// # Errors
    ///
    /// As [`Ledger::count_runs`].
    pub fn day_costs(&self, days: u32) -> Result<Vec<DayCostRow>, LedgerError> {
        let read = |row: &Row<'_>| {
            Ok(DayCostRow {
                day: row.get(0)?,
                usage: read_usage_columns(row, 1)?,
            })
        };
        self.connection
            .prepare_cached(DAY_COSTS)
            .and_then(|mut select| select.query_map([days], read)?.collect())
            .map_err(self.fail())
    }

    /// Returns how many runs were started on each of the newest `days` days with runs, by their state now.
    ///
    /// # Errors
    ///
    /// As [`Ledger::count_runs`].
    pub fn run_states(&self, days: u32) -> Result<Vec<StateCountRow>, LedgerError> {
        let read = |row: &Row<'_>| {
            Ok(StateCountRow {
                day: row.get(0)?,
                state: row.get(1)?,
                runs: unsigned(row, 2)?,
                elapsed_ms: row
                    .get::<_, Option<i64>>(3)?
                    .unwrap_or(0)
                    .max(0)
                    .unsigned_abs(),
            })
        };
        self.connection
            .prepare_cached(STATES)
            .and_then(|mut select| select.query_map([days], read)?.collect())
            .map_err(self.fail())
    }

    /// Returns the repositories that have runs, in order.
    ///
    /// # Errors
    ///
    /// As [`Ledger::count_runs`].
    pub fn repositories(&self) -> Result<Vec<String>, LedgerError> {
        self.connection
            .prepare_cached("SELECT DISTINCT repo FROM runs ORDER BY repo")
            .and_then(|mut select| select.query_map([], |row| row.get(0))?.collect())
            .map_err(self.fail())
    }
}

fn to_limit(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn read_row(row: &Row<'_>) -> Result<RunUsageRow, rusqlite::Error> {
    Ok(RunUsageRow {
        run: read_run(row)?,
        usage: read_usage_columns(row, 6)?,
        artifact: row.get(10)?,
    })
}

#[cfg(test)]
mod tests {
    use crucible_model::Timestamp;

    use super::*;
    use crate::calls::{Allowance, MicroDollars, NewCall, Settlement};
    use crate::event::NewEvent;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn ledger(room: &tempfile::TempDir) -> Ledger {
        let mut ledger = Ledger::open(&room.path().join("ledger.db")).unwrap();
        for (id, repo, state, day) in [
            ("a", "/r", "verified", 1),
            ("b", "/r", "failed", 2),
            ("c", "/s", "landed", 3),
        ] {
            let created = at(&format!("2026-01-0{day}T00:00:00Z"));
            let row = RunRow {
                id: id.parse().unwrap(),
                goal: format!("Goal {id}'s 100%"),
                repo: repo.to_owned(),
                state: state.to_owned(),
                created,
                updated: at(&format!("2026-01-0{day}T00:01:30Z")),
            };
            ledger.record_run(row).unwrap();
        }
        let run: RunId = "b".parse().unwrap();
        let digest = ledger.put_artifact("run.json", b"{}").unwrap();
        let body = serde_json::json!({ "digest": digest });
        let event = NewEvent::new(run.clone(), at("2026-01-02T00:00:00Z"), "r", "E", body);
        ledger.append(event.about("run.json").once("run")).unwrap();
        for (tokens, model) in [(Some(7), "m"), (None, "n")] {
            let call = NewCall {
                run: run.clone(),
                provider: "p".to_owned(),
                model: model.to_owned(),
                request: crucible_model::Digest::compute(b"q"),
                ts: at("2026-01-02T00:00:01Z"),
                tokens: 100,
                cost: MicroDollars(50),
            };
            ledger.reserve_call(&call, &Allowance::default()).unwrap();
            if let Some(tokens) = tokens {
                let end = Settlement {
                    ts: at("2026-01-02T00:00:02Z"),
                    outcome: "ok".to_owned(),
                    tokens_in: Some(tokens),
                    tokens_out: None,
                    cost: Some(MicroDollars(3)),
                };
                ledger.settle_call(&run, 1, &end).unwrap();
            }
        }
        ledger
    }

    #[test]
    fn list_has_the_usage_of_each_run() {
        let room = tempfile::tempdir().unwrap();
        let ledger = ledger(&room);
        let rows = ledger
            .runs_with_usage(&RunFilter::default(), Page::ALL, "run")
            .unwrap();
        let ids: Vec<&str> = rows.iter().map(|row| row.run.id.as_str()).collect();
        assert_eq!(ids, ["c", "b", "a"]);
        for row in &rows {
            assert_eq!(row.usage, ledger.usage(&row.run.id).unwrap());
        }
        assert_eq!(
            (
                rows[1].usage.calls,
                rows[1].usage.tokens,
                rows[1].usage.cost.0,
                rows[1].usage.open
            ),
            (2, 107, 53, 1)
        );
        assert_eq!(rows[1].artifact.as_deref(), Some(&b"{}"[..]));
        assert_eq!((&rows[0].artifact, rows[0].usage.calls), (&None, 0));
        let costs = ledger.costs().unwrap();
        let sums: Vec<(&str, u64)> = costs
            .iter()
            .map(|row| (row.model.as_str(), row.usage.cost.0))
            .collect();
        assert_eq!(sums, [("m", 3), ("n", 50)]);
        let days = ledger.day_costs(1).unwrap();
        assert_eq!(
            (days[0].day.as_str(), days[0].usage.cost.0, days.len()),
            ("2026-01-02", 53, 1)
        );
        let states = ledger.run_states(9).unwrap();
        assert_eq!((states.len(), states[0].elapsed_ms), (3, 90_000));
        let newest = ledger.run_states(2).unwrap();
        assert_eq!((newest.len(), newest[0].day.as_str()), (2, "2026-01-02"));
        assert_eq!(ledger.repositories().unwrap(), ["/r", "/s"]);
    }

    #[test]
    fn filters_and_pages_select_rows() {
        let room = tempfile::tempdir().unwrap();
        let ledger = ledger(&room);
        let ids = |filter: &RunFilter, page| {
            let rows = ledger.runs_with_usage(filter, page, "run").unwrap();
            assert!(ledger.count_runs(filter).unwrap() >= rows.len() as u64);
            rows.iter()
                .map(|row| row.run.id.to_string())
                .collect::<String>()
        };
        let text = |text: &str| RunFilter {
            text: Some(text.to_owned()),
            ..RunFilter::default()
        };
        assert_eq!(ids(&text("goal B"), Page::ALL), "b");
        assert_eq!(ids(&text("100%"), Page::ALL), "cba");
        assert_eq!(ids(&text("%x"), Page::ALL), "");
        assert_eq!(ids(&text("_"), Page::ALL), "");
        assert_eq!(ids(&text(r"\"), Page::ALL), "");
        assert_eq!(ids(&text("' OR 1=1 --"), Page::ALL), "");
        assert_eq!(ids(&text(&"%".repeat(100_000)), Page::ALL), "");
        let filter = |state: Option<&str>, repo: Option<&str>, model: Option<&str>| RunFilter {
            state: state.map(str::to_owned),
            repo: repo.map(str::to_owned),
            model: model.map(str::to_owned),
            ..RunFilter::default()
        };
        assert_eq!(ids(&filter(Some("landed"), None, None), Page::ALL), "c");
        assert_eq!(ids(&filter(None, Some("/r"), None), Page::ALL), "ba");
        assert_eq!(ids(&filter(None, None, Some("n")), Page::ALL), "b");
        let page = |skip, most| Page { skip, most };
        assert_eq!(ids(&RunFilter::default(), page(1, 1)), "b");
        assert_eq!(ids(&RunFilter::default(), page(u64::MAX, 1)), "");
    }
}
