//! GitHub's answers, for as long as they are fresh. What is here may be lost at any time, and is not a part of the chain.

use std::time::Duration;

use crucible_model::Timestamp;
use rusqlite::{OptionalExtension, params};

use crate::error::LedgerError;
use crate::store::Ledger;

impl Ledger {
    /// What stands under this key, unless it is too old at `now`. What was stored later than `now` is not handed out
    /// either: that clock was another one.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read.
    pub fn crawl_cached(&self, key: &str, now: Timestamp) -> Result<Option<String>, LedgerError> {
        let sql = "SELECT content FROM crawl_cache WHERE cache_key = ?1 AND created_at <= ?2 AND expires_at > ?2";
        self.connection
            .prepare_cached(sql)
            .and_then(|mut select| {
                select
                    .query_row(params![key, now.to_string()], |row| row.get(0))
                    .optional()
            })
            .map_err(self.fail())
    }

    /// Puts something under a key for `fresh` from `now` on, in place of what was there.
    ///
    /// # Errors
    ///
    /// Fails for all that can be wrong with the database.
    pub fn cache_crawl(
        &mut self,
        key: &str,
        content: &str,
        now: Timestamp,
        fresh: Duration,
    ) -> Result<(), LedgerError> {
        let since_epoch = u64::try_from(now.unix_millis()).unwrap_or_default();
        let expires =
            Timestamp::from_unix(Duration::from_millis(since_epoch).saturating_add(fresh));
        let sql = "INSERT OR REPLACE INTO crawl_cache (cache_key, created_at, expires_at, content) VALUES (?1, ?2, ?3, ?4)";
        self.connection
            .prepare_cached(sql)
            .and_then(|mut insert| {
                insert.execute(params![key, now.to_string(), expires.to_string(), content])
            })
            .map(|_| ())
            .map_err(self.fail())
    }

    /// Removes everything that [`Ledger::crawl_cached`] hands out no more at `now`, and says how many there were.
    ///
    /// # Errors
    ///
    /// Fails for all that can be wrong with the database.
    pub fn prune_crawl_cache(&mut self, now: Timestamp) -> Result<u64, LedgerError> {
        self.connection
            .prepare_cached("DELETE FROM crawl_cache WHERE expires_at <= ?1 OR created_at > ?1")
            .and_then(|mut delete| delete.execute([now.to_string()]))
            .map(|removed| removed as u64)
            .map_err(self.fail())
    }
}
