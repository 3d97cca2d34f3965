//! When something happens, and whether that instant is a real one.

use crucible_model::{Clock, ClockSource, RunId, Timestamp};
use rusqlite::Row;
use serde_json::Value;

use crate::chain::unreadable;
use crate::event::NewEvent;

/// An instant of the story that the ledger tells, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The instant.
    pub at: Timestamp,
    /// Where it comes from.
    pub clock: ClockSource,
}

impl Moment {
    /// The present one, by this clock.
    #[must_use]
    pub fn now(clock: &dyn Clock) -> Self {
        Self {
            at: clock.now(),
            clock: clock.source(),
        }
    }

    /// An event of this moment in a run; that the clock is pinned stands in it.
    pub(crate) fn event(self, run: RunId, role: &str, name: &str, mut body: Value) -> NewEvent {
        if let (ClockSource::Pinned, Value::Object(fields)) = (self.clock, &mut body) {
            fields.insert("clock".to_owned(), Value::from("pinned"));
        }
        NewEvent::new(run, self.at, role, name, body)
    }
}

/// A number as SQLite takes it. One that is too large belongs to no row, as -1 does.
pub(crate) fn sql_id(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(-1)
}

pub(crate) fn number(row: &Row<'_>, column: usize) -> Result<u64, rusqlite::Error> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

pub(crate) fn instant(row: &Row<'_>, column: usize) -> Result<Timestamp, rusqlite::Error> {
    row.get::<_, String>(column)?
        .parse()
        .map_err(|error: crucible_model::TimestampError| unreadable(column, error))
}
