//! Reading what the repository holds: blobs by name, files of a tree by path.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crucible_model::{ByteLimit, RepoPath};

use super::{Call, Git, Output};
use crate::error::RepoError;
use crate::oid::Oid;

impl Git {
    /// The bytes of a blob.
    ///
    /// # Errors
    ///
    /// [`RepoError::TooLarge`] over `limit`, [`RepoError::MissingObject`] where there is none.
    pub async fn read_blob(&self, oid: &Oid, limit: ByteLimit) -> Result<Vec<u8>, RepoError> {
        let mut blobs = self.blobs(std::slice::from_ref(oid), limit, &[]).await?;
        blobs.remove(oid).ok_or_else(|| RepoError::MissingObject { oid: oid.to_string() })
    }

    /// The contents of `paths` in a tree or a commit; a path that is no file there has no entry.
    ///
    /// # Errors
    ///
    /// [`RepoError::TooLarge`] when the contents together are over `limit`.
    pub async fn files_at(
        &self,
        tree: &Oid,
        paths: &[RepoPath],
        limit: ByteLimit,
    ) -> Result<BTreeMap<RepoPath, Vec<u8>>, RepoError> {
        if paths.is_empty() {
            return Ok(BTreeMap::new());
        }
        let words = ["ls-tree", "-z", "--full-tree", tree.as_str(), "--"].map(OsString::from);
        let call = Call::new(words.into_iter().chain(paths.iter().map(|path| OsString::from(path.as_str()))));
        let output = self.run_ok(call).await?;
        let mut names = Vec::new();
        for record in output.records() {
            // `mode SP kind SP oid TAB path`
            let (head, path) = split_at(record, b'\t').ok_or_else(|| output.unreadable())?;
            let fields: Vec<&[u8]> = head.split(|byte| *byte == b' ').collect();
            let [_, kind, oid] = fields[..] else {
                return Err(output.unreadable());
            };
            if kind == b"blob"
                && let Ok(path) = RepoPath::from_bytes(path)
            {
                names.push((path, Oid::from_ascii(oid).ok_or_else(|| output.unreadable())?));
            }
        }
        let oids: Vec<Oid> = names.iter().map(|(_, oid)| oid.clone()).collect();
        let blobs = self.blobs(&oids, limit, &[]).await?;
        Ok(names.into_iter().filter_map(|(path, oid)| Some((path, blobs.get(&oid)?.clone()))).collect())
    }

    /// The bytes of several blobs, read in one call; together at most `limit`.
    pub(crate) async fn blobs(
        &self,
        oids: &[Oid],
        limit: ByteLimit,
        env: &[(OsString, OsString)],
    ) -> Result<BTreeMap<Oid, Vec<u8>>, RepoError> {
        if oids.is_empty() {
            return Ok(BTreeMap::new());
        }
        // Each blob comes with a line of at most a hundred bytes.
        let most = ByteLimit(limit.0.saturating_add(100 * oids.len() as u64));
        let call = Call::new(["cat-file", "--batch"]).reading(lines(oids)).with_envs(env).at_most(most);
        let output = match self.run_ok(call).await {
            Err(RepoError::TooLarge { .. }) => {
                return Err(RepoError::TooLarge { what: "what was asked for".to_owned(), limit: limit.0 });
            }
            other => other?,
        };
        parse_batch(&output)
    }

    /// The sizes of blobs, in the order of `oids`.
    pub(crate) async fn sizes(&self, oids: &[Oid]) -> Result<Vec<u64>, RepoError> {
        if oids.is_empty() {
            return Ok(Vec::new());
        }
        let call = Call::new(["cat-file", "--batch-check=%(objectsize)", "--buffer"]).reading(lines(oids));
        let output = self.run_ok(call).await?;
        let sizes: Vec<u64> = output
            .stdout
            .split(|byte| *byte == b'\n')
            .zip(oids)
            .map(|(line, oid)| {
                let size = std::str::from_utf8(line).ok().and_then(|line| line.parse().ok());
                size.ok_or_else(|| RepoError::MissingObject { oid: oid.to_string() })
            })
            .collect::<Result<_, _>>()?;
        if sizes.len() == oids.len() { Ok(sizes) } else { Err(output.unreadable()) }
    }
}

/// The parts of `bytes` before and after the first `separator`.
pub(crate) fn split_at(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == separator)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

fn lines(oids: &[Oid]) -> Vec<u8> {
    oids.iter().flat_map(|oid| [oid.as_str().as_bytes(), b"\n"].concat()).collect()
}

/// `oid SP kind SP size LF bytes LF`, again and again.
fn parse_batch(output: &Output) -> Result<BTreeMap<Oid, Vec<u8>>, RepoError> {
    let mut blobs = BTreeMap::new();
    let mut rest = output.stdout.as_slice();
    while !rest.is_empty() {
        let unreadable = || output.unreadable();
        let (line, after) = split_at(rest, b'\n').ok_or_else(unreadable)?;
        let line = std::str::from_utf8(line).map_err(|_| unreadable())?;
        let fields: Vec<&str> = line.split(' ').collect();
        let [oid, _, size] = fields[..] else {
            let oid = fields.first().copied().unwrap_or_default().to_owned();
            return Err(RepoError::MissingObject { oid });
        };
        let size: usize = size.parse().map_err(|_| unreadable())?;
        let bytes = after.get(..size).ok_or_else(unreadable)?;
        blobs.insert(oid.parse().map_err(|_| unreadable())?, bytes.to_vec());
        rest = after.get(size + 1..).ok_or_else(unreadable)?;
    }
    Ok(blobs)
}
