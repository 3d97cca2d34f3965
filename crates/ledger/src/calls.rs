//! Model calls: reserved before they are dispatched, settled afterwards.
//!
//! The check against the allowance and the reservation are one transaction, so parallel calls, other
//! processes and a resumed run cannot overshoot. A call that was never settled, because the process died or
//! the provider failed, keeps its reservation: a failed call keeps its slot. Each reservation and each settlement is an
//! event of the chain, too ([`crate::recorded_rows`]).

use crucible_model::{Digest, RunId, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::chain::unreadable;
use crate::error::LedgerError;
use crate::recorded_rows::{RowFault, commit, disagreements};
use crate::store::Ledger;

/// An amount of money in millionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct MicroDollars(pub u64);

/// A call that is about to be dispatched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCall {
    /// The run that pays for it.
    pub run: RunId,
    /// The provider that will be called.
    pub provider: String,
    /// The model that will be called.
    pub model: String,
    /// The digest of the canonical request.
    pub request: Digest,
    /// The instant of the reservation.
    pub ts: Timestamp,
    /// The most tokens it can use, in and out together.
    pub tokens: u64,
    /// The most it can cost, where the price is known; otherwise zero.
    pub cost: MicroDollars,
}

/// What a run may use. A part that is absent is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allowance {
    /// The number of model calls.
    pub calls: Option<u64>,
    /// Tokens, in and out together.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<MicroDollars>,
}

/// What a run may use only so much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetedResource {
    /// The number of model calls.
    Calls,
    /// Tokens, in and out together.
    Tokens,
    /// Money, in millionths of a US dollar.
    Cost,
}

/// What the ledger answered to a call that wants to be dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    /// It may be dispatched.
    Granted {
        /// Its number within the run, from 1 on; settles it.
        seq: u64,
    },
    /// It would use more than the run may. Nothing was reserved.
    Refused {
        /// What would be exceeded.
        what: BudgetedResource,
        /// What is used or reserved already.
        used: u64,
        /// What this call wanted.
        wanted: u64,
        /// What the run may use.
        limit: u64,
    },
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The instant it ended.
    pub ts: Timestamp,
    /// `ok`, or the name of the failure.
    pub outcome: String,
    /// Tokens in, if the provider reported them.
    pub tokens_in: Option<u64>,
    /// Tokens out, if the provider reported them.
    pub tokens_out: Option<u64>,
    /// What it cost, reported or estimated, where that is known.
    pub cost: Option<MicroDollars>,
}

/// What a run has used so far. Open calls count with what they reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Calls, failed ones included.
    pub calls: u64,
    /// Tokens, in and out together.
    pub tokens: u64,
    /// Money.
    pub cost: MicroDollars,
    /// How many of the calls are still open.
    pub open: u64,
}

/// Whether a call is still open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallState {
    /// It was reserved, and nothing has been heard of it since.
    Reserved,
    /// It ended.
    Settled(Settlement),
}

/// A stored model call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRow {
    /// Its number within the run.
    pub seq: u64,
    /// What was reserved.
    pub call: NewCall,
    /// 1 for the first attempt at this request in the run, 2 for the next, …
    pub attempt: u32,
    /// How it ended.
    pub state: CallState,
}

/// What model calls, as rows of `c`, used together: calls, tokens, cost, open calls. The one definition, for a run's budget and
/// for lists.
macro_rules! usage_columns {
    () => {
        "count(c.seq),
         ifnull(sum(iif(c.tokens_in IS NULL AND c.tokens_out IS NULL, c.reserved_tokens,
                        ifnull(c.tokens_in, 0) + ifnull(c.tokens_out, 0))), 0),
         ifnull(sum(ifnull(c.cost, c.reserved_cost)), 0),
         ifnull(sum(c.state = 'reserved'), 0)"
    };
}
pub(crate) use usage_columns;

const USAGE: &str = concat!(
    "SELECT ",
    usage_columns!(),
    " FROM model_calls AS c WHERE c.run_id = ?1"
);

impl Ledger {
    /// Reserves what a call may use, unless that is more than `allowance` leaves.
    ///
    /// # Errors
    ///
    /// Fails for all that can be wrong with the database. A refusal is no error but an answer.
    pub fn reserve_call(
        &mut self,
        call: &NewCall,
        allowance: &Allowance,
    ) -> Result<Reservation, LedgerError> {
        let fail = self.fail();
        let transaction = self.connection.transaction().map_err(&fail)?;
        let used = read_usage(&transaction, &call.run).map_err(&fail)?;
        let checks = [
            (BudgetedResource::Calls, used.calls, 1, allowance.calls),
            (
                BudgetedResource::Tokens,
                used.tokens,
                call.tokens,
                allowance.tokens,
            ),
            (
                BudgetedResource::Cost,
                used.cost.0,
                call.cost.0,
                allowance.cost.map(|money| money.0),
            ),
        ];
        for (what, used, wanted, limit) in checks {
            // Nothing more always fits, even over a limit that was lowered since.
            let passed = |limit: &u64| wanted > 0 && used.saturating_add(wanted) > *limit;
            if let Some(limit) = limit.filter(passed) {
                return Ok(Reservation::Refused {
                    what,
                    used,
                    wanted,
                    limit,
                });
            }
        }
        let numbers = "SELECT (SELECT ifnull(max(seq), 0) + 1 FROM model_calls WHERE run_id = ?1),
                              (SELECT count(*) + 1 FROM model_calls WHERE run_id = ?1 AND request = ?2)";
        let request = call.request.to_string();
        let (seq, attempt): (i64, i64) = transaction
            .prepare_cached(numbers)
            .and_then(|mut select| {
                select.query_row([call.run.as_str(), &request], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
            })
            .map_err(&fail)?;
        let sql =
            "INSERT INTO model_calls (run_id, seq, provider, model, request, attempt, state, reserved_at,
                                            reserved_tokens, reserved_cost)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'reserved', ?7, ?8, ?9)";
        transaction
            .prepare_cached(sql)
            .and_then(|mut insert| {
                insert.execute(params![
                    call.run.as_str(),
                    seq,
                    call.provider,
                    call.model,
                    request,
                    attempt,
                    call.ts.to_string(),
                    to_sql(call.tokens),
                    to_sql(call.cost.0)
                ])
            })
            .map_err(&fail)?;
        commit(transaction, call.ts, &fail)?;
        Ok(Reservation::Granted {
            seq: seq.unsigned_abs(),
        })
    }

    /// Records how a reserved call ended. What it did not report stays reserved.
    ///
    /// # Errors
    ///
    /// [`LedgerError::NoOpenCall`] when the call is not open.
    pub fn settle_call(
        &mut self,
        run: &RunId,
        seq: u64,
        end: &Settlement,
    ) -> Result<(), LedgerError> {
        let sql = "UPDATE model_calls SET state = 'settled', settled_at = ?3, outcome = ?4, tokens_in = ?5,
                                          tokens_out = ?6, cost = ?7
                   WHERE run_id = ?1 AND seq = ?2 AND state = 'reserved'";
        let fail = self.fail();
        let transaction = self.connection.transaction().map_err(&fail)?;
        let values = params![
            run.as_str(),
            to_sql(seq),
            end.ts.to_string(),
            end.outcome,
            end.tokens_in.map(to_sql),
            end.tokens_out.map(to_sql),
            end.cost.map(|money| to_sql(money.0))
        ];
        let changed = transaction
            .prepare_cached(sql)
            .and_then(|mut update| update.execute(values));
        if changed.map_err(&fail)? == 0 {
            return Err(LedgerError::NoOpenCall {
                run: run.clone(),
                seq,
            });
        }
        commit(transaction, end.ts, &fail)
    }

    /// The rows of a run that the chain does not confirm, in the list of runs and among its calls: edited, removed, or put in by hand.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read.
    pub fn row_faults(&self, run: &RunId) -> Result<Vec<RowFault>, LedgerError> {
        disagreements(&self.connection, Some(run)).map_err(self.fail())
    }

    /// What a run has used so far: where the budget of a resumed run starts.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read.
    pub fn usage(&self, run: &RunId) -> Result<Usage, LedgerError> {
        read_usage(&self.connection, run).map_err(self.fail())
    }

    /// The calls of a run in their order.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read or a row does not hold what Crucible writes.
    pub fn calls(&self, run: &RunId) -> Result<Vec<CallRow>, LedgerError> {
        read_calls(&self.connection, run).map_err(self.fail())
    }
}

fn read_calls(connection: &Connection, run: &RunId) -> Result<Vec<CallRow>, rusqlite::Error> {
    let sql = "SELECT seq, provider, model, request, attempt, reserved_at, reserved_tokens, reserved_cost,
                      state, settled_at, outcome, tokens_in, tokens_out, cost
               FROM model_calls WHERE run_id = ?1 ORDER BY seq";
    connection
        .prepare_cached(sql)?
        .query_map([run.as_str()], |row| read_call(row, run))?
        .collect()
}

fn read_usage(connection: &Connection, run: &RunId) -> Result<Usage, rusqlite::Error> {
    connection
        .prepare_cached(USAGE)?
        .query_row([run.as_str()], |row| read_usage_columns(row, 0))
}

/// Reads the columns of `usage_columns`, which begin at `first`.
pub(crate) fn read_usage_columns(row: &Row<'_>, first: usize) -> Result<Usage, rusqlite::Error> {
    Ok(Usage {
        calls: unsigned(row, first)?,
        tokens: unsigned(row, first + 1)?,
        cost: MicroDollars(unsigned(row, first + 2)?),
        open: unsigned(row, first + 3)?,
    })
}

fn read_call(row: &Row<'_>, run: &RunId) -> Result<CallRow, rusqlite::Error> {
    let instant = |index: usize| {
        row.get::<_, String>(index)?
            .parse::<Timestamp>()
            .map_err(|error| unreadable(index, error))
    };
    let optional = |index: usize| {
        row.get::<_, Option<i64>>(index)
            .map(|value| value.and_then(|n| u64::try_from(n).ok()))
    };
    let state = match row.get::<_, String>(8)?.as_str() {
        "reserved" => CallState::Reserved,
        _ => CallState::Settled(Settlement {
            ts: instant(9)?,
            outcome: row.get(10)?,
            tokens_in: optional(11)?,
            tokens_out: optional(12)?,
            cost: optional(13)?.map(MicroDollars),
        }),
    };
    Ok(CallRow {
        seq: unsigned(row, 0)?,
        call: NewCall {
            run: run.clone(),
            provider: row.get(1)?,
            model: row.get(2)?,
            request: row
                .get::<_, String>(3)?
                .parse()
                .map_err(|error| unreadable(3, error))?,
            ts: instant(5)?,
            tokens: unsigned(row, 6)?,
            cost: MicroDollars(unsigned(row, 7)?),
        },
        attempt: row.get(4)?,
        state,
    })
}

pub(crate) fn unsigned(row: &Row<'_>, index: usize) -> Result<u64, rusqlite::Error> {
    let value: i64 = row.get(index)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(index, value))
}

/// SQLite's integers end at 2^63 - 1. Sums of single values up to 2^53 stay far below; more than that is held there,
/// which a limit that makes sense refuses anyway.
fn to_sql(value: u64) -> i64 {
    const LIMIT: i64 = 1 << 53;
    i64::try_from(value).map_or(LIMIT, |value| value.min(LIMIT))
}
