//! Artifacts: bytes under their own digest.
//!
//! The same bytes are stored once, under the kind they were first stored as. Reading
//! checks the digest, so bytes that were edited are never handed out.

use crucible_model::Digest;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::LedgerError;
use crate::event::{ArtifactRef, MAX_NAME_BYTES, check_size};
use crate::store::Ledger;

/// The largest artifact, in bytes: 512 MiB, half of what SQLite can hold in one value.
pub(crate) const MAX_ARTIFACT_BYTES: usize = 512 << 20;

impl Ledger {
    /// Stores `bytes` under their digest; bytes that are already there stay as they are.
    ///
    /// # Errors
    ///
    /// Fails when the bytes or the name of the kind are too large, and for all that can be wrong with the
    /// database.
    pub fn put_artifact(&mut self, kind: &str, bytes: &[u8]) -> Result<Digest, LedgerError> {
        self.transact(|turn| turn.put_artifact(kind, bytes))
    }

    /// The bytes of an artifact, if the ledger holds it.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Damaged`] when the bytes no longer have this digest.
    pub fn artifact(&self, digest: &Digest) -> Result<Option<Vec<u8>>, LedgerError> {
        let bytes: Option<Vec<u8>> = self
            .connection
            .prepare_cached("SELECT bytes FROM artifacts WHERE digest = ?1")
            .and_then(|mut select| {
                select
                    .query_row([digest.to_string()], |row| row.get(0))
                    .optional()
            })
            .map_err(self.fail())?;
        match bytes {
            Some(bytes) if Digest::compute(&bytes) != *digest => Err(LedgerError::Damaged {
                path: self.path().to_owned(),
                detail: format!("artifact {digest} was edited"),
            }),
            bytes => Ok(bytes),
        }
    }

    /// The length of an artifact in bytes, if the ledger holds it. Its bytes are not read.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read.
    pub fn artifact_size(&self, digest: &Digest) -> Result<Option<u64>, LedgerError> {
        let known = describe(&self.connection, digest).map_err(self.fail())?;
        Ok(known.map(|artifact| artifact.size))
    }
}

/// Stores bytes within a transaction that the caller commits.
pub(crate) fn put_within(
    transaction: &Connection,
    kind: &str,
    bytes: &[u8],
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<Digest, LedgerError> {
    check_size("kind of the artifact", kind.len(), MAX_NAME_BYTES)?;
    check_size("artifact", bytes.len(), MAX_ARTIFACT_BYTES)?;
    let digest = Digest::compute(bytes);
    if describe(transaction, &digest).map_err(fail)?.is_none() {
        transaction
            .prepare_cached(
                "INSERT INTO artifacts (digest, kind, size, bytes) VALUES (?1, ?2, ?3, ?4)",
            )
            .and_then(|mut insert| {
                insert.execute(params![digest.to_string(), kind, bytes.len() as i64, bytes])
            })
            .map_err(fail)?;
    }
    Ok(digest)
}

/// What is known of an artifact without reading its bytes.
pub(crate) fn describe(
    connection: &Connection,
    digest: &Digest,
) -> Result<Option<ArtifactRef>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT kind, size FROM artifacts WHERE digest = ?1")?
        .query_row([digest.to_string()], |row| {
            let size: i64 = row.get(1)?;
            let size = u64::try_from(size)
                .map_err(|_| rusqlite::Error::IntegralValueOutOfRange(1, size))?;
            Ok(ArtifactRef {
                digest: *digest,
                kind: row.get(0)?,
                size,
            })
        })
        .optional()
}
