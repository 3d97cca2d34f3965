//! Reads repository content: blobs by name, files of a tree by path.
//!
//! Objects are read in this process if possible (`store`), otherwise by one call of git. Invariant: bytes
//! that do not match the hash of their object are an error, even if git read them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::ControlFlow;

use crucible_model::{ByteLimit, RepoPath};
use crucible_patch::FileMode;

use super::parse::split_at;
use super::store::{KnownTrees, ObjectKind, OwnedEntry, ReadFailure, Reader, TreeMode, has_name};
use super::{Call, Git, Output};
use crate::error::RepoError;
use crate::oid::Oid;

impl Git {
    /// Returns the bytes of a blob.
    ///
    /// # Errors
    ///
    /// [`RepoError::TooLarge`] over `limit`, [`RepoError::MissingObject`] if the object does not exist.
    pub async fn read_blob(&self, oid: &Oid, limit: ByteLimit) -> Result<Vec<u8>, RepoError> {
        let mut blobs = self.blobs(std::slice::from_ref(oid), limit, &[]).await?;
        blobs.remove(oid).ok_or_else(|| RepoError::MissingObject {
            oid: oid.to_string(),
        })
    }

    /// The contents of `paths` in a tree or a commit; a path that is not a file there has no entry.
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
        let (root, requested) = (tree.clone(), paths.to_vec());
        let read = self.read(&[], move |reader| {
            files_of(reader, &root, requested, limit.0)
        });
        if let Some(files) = read.await? {
            return within(files, limit);
        }
        match self.blobs_at(tree, paths, limit).await? {
            Some(files) => Ok(files),
            None => self.listed_files_at(tree, paths, limit).await,
        }
    }

    /// Returns the entries at `paths` in a tree or a commit; missing paths and directories are omitted.
    ///
    /// # Errors
    ///
    /// Fails when git fails.
    pub async fn modes_at(
        &self,
        tree: &Oid,
        paths: &[RepoPath],
    ) -> Result<BTreeMap<RepoPath, FileMode>, RepoError> {
        let (root, requested) = (tree.clone(), paths.to_vec());
        let read = self.read(&[], move |reader| {
            let tree = reader.tree_of(&root)?;
            let (mut known, mut modes) = (KnownTrees::default(), BTreeMap::new());
            for path in requested {
                if let Some(OwnedEntry {
                    mode: TreeMode::File(mode),
                    ..
                }) = reader.find(&tree, path.as_str().as_bytes(), &mut known)?
                {
                    modes.insert(path, mode);
                }
            }
            Ok(modes)
        });
        if let Some(modes) = read.await? {
            return Ok(modes);
        }
        let mut modes = BTreeMap::new();
        if paths.is_empty() {
            return Ok(modes);
        }
        let words = [
            "--literal-pathspecs",
            "ls-tree",
            "-z",
            "--full-tree",
            tree.as_str(),
            "--",
        ];
        let output = self
            .run_ok(Call::new(
                words.into_iter().chain(paths.iter().map(RepoPath::as_str)),
            ))
            .await?;
        for record in output.records() {
            let (head, path) = split_at(record, b'\t').ok_or_else(|| output.unreadable())?;
            let mode = head
                .split(|byte| *byte == b' ')
                .next()
                .and_then(FileMode::parse);
            if let (Some(mode), Ok(path)) = (mode, RepoPath::from_bytes(path)) {
                modes.insert(path, mode);
            }
        }
        Ok(modes)
    }

    /// Returns the paths of all files in a tree or a commit, sorted, with invalid UTF-8 replaced.
    ///
    /// # Errors
    ///
    /// Fails when git fails.
    pub async fn paths_at(&self, tree: &Oid) -> Result<Vec<String>, RepoError> {
        let root = tree.clone();
        let read = self.read(&[], move |reader| {
            let mut paths = Vec::new();
            let tree = reader.tree_of(&root)?;
            reader.each_file(&tree, |path, _, _| {
                paths.push(String::from_utf8_lossy(path).into_owned());
                ControlFlow::Continue(())
            })?;
            Ok(paths)
        });
        if let Some(paths) = read.await? {
            return Ok(paths);
        }
        let call = Call::new([
            "ls-tree",
            "-r",
            "-z",
            "--name-only",
            "--full-tree",
            tree.as_str(),
        ]);
        let output = self.run_ok(call).await?;
        Ok(output
            .records()
            .map(|path| String::from_utf8_lossy(path).into_owned())
            .collect())
    }

    /// Returns the contents of `paths` in one call; `None` if one of them is not clearly a file. Such a path
    /// may be new, a directory, or read as another object's name.
    async fn blobs_at(
        &self,
        tree: &Oid,
        paths: &[RepoPath],
        limit: ByteLimit,
    ) -> Result<Option<BTreeMap<RepoPath, Vec<u8>>>, RepoError> {
        let names: Vec<String> = paths.iter().map(|path| format!("{tree}:{path}")).collect();
        if names.iter().any(|name| name.contains('\n')) {
            return Ok(None);
        }
        let output = self.batch(&names, limit, &[]).await?;
        let mut files = BTreeMap::new();
        let mut rest = output.stdout.as_slice();
        for path in paths {
            match take_object(&mut rest) {
                Some(object) if object.kind == b"blob" => {
                    object.checked()?;
                    files.insert(path.clone(), object.bytes.to_vec())
                }
                _ => return Ok(None),
            };
        }
        if rest.is_empty() {
            Ok(Some(files))
        } else {
            Err(output.unreadable())
        }
    }

    /// The same with a listing, which distinguishes a missing path from a missing object.
    async fn listed_files_at(
        &self,
        tree: &Oid,
        paths: &[RepoPath],
        limit: ByteLimit,
    ) -> Result<BTreeMap<RepoPath, Vec<u8>>, RepoError> {
        let words = ["ls-tree", "-z", "--full-tree", tree.as_str(), "--"].map(OsString::from);
        let call = Call::new(
            words
                .into_iter()
                .chain(paths.iter().map(|path| OsString::from(path.as_str()))),
        );
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
                names.push((
                    path,
                    Oid::from_ascii(oid).ok_or_else(|| output.unreadable())?,
                ));
            }
        }
        let oids: Vec<Oid> = names.iter().map(|(_, oid)| oid.clone()).collect();
        let blobs = self.blobs(&oids, limit, &[]).await?;
        Ok(names
            .into_iter()
            .filter_map(|(path, oid)| Some((path, blobs.get(&oid)?.clone())))
            .collect())
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
        let requested = oids.to_vec();
        let read = self.read(env, move |reader| {
            let mut left = limit.0;
            let mut blobs = BTreeMap::new();
            for oid in requested {
                match reader.object(&oid, left) {
                    Ok(object) => {
                        left = left.saturating_sub(object.bytes.len() as u64);
                        blobs.insert(oid, object.bytes);
                    }
                    Err(ReadFailure::TooLarge) => return Ok(None),
                    Err(why) => return Err(why),
                }
            }
            Ok(Some(blobs))
        });
        if let Some(blobs) = read.await? {
            return within(blobs, limit);
        }
        let output = self.batch(oids, limit, env).await?;
        parse_batch(&output)
    }

    /// What git prints for the objects of these names, one after the other.
    async fn batch(
        &self,
        names: &[impl AsRef<str>],
        limit: ByteLimit,
        env: &[(OsString, OsString)],
    ) -> Result<Output, RepoError> {
        // Each object adds a line of at most a hundred bytes, or its missing name is returned.
        let own = names
            .iter()
            .map(|name| 100 + name.as_ref().len() as u64)
            .sum();
        let most = ByteLimit(limit.0.saturating_add(own));
        let call = Call::new(["cat-file", "--batch", "--buffer"])
            .reading(lines(names))
            .with_envs(env)
            .with_max_output(most);
        match self.run_ok(call).await {
            Err(RepoError::TooLarge { .. }) => within(None, limit),
            other => other,
        }
    }

    /// The sizes of blobs, in the order of `oids`.
    pub(crate) async fn sizes(&self, oids: &[Oid]) -> Result<Vec<u64>, RepoError> {
        if oids.is_empty() {
            return Ok(Vec::new());
        }
        let requested = oids.to_vec();
        let read = self.read(&[], move |reader| {
            requested
                .iter()
                .map(|oid| reader.size(oid))
                .collect::<Result<_, _>>()
        });
        if let Some(sizes) = read.await? {
            return Ok(sizes);
        }
        let call =
            Call::new(["cat-file", "--batch-check=%(objectsize)", "--buffer"]).reading(lines(oids));
        let output = self.run_ok(call).await?;
        let sizes: Vec<u64> = output
            .stdout
            .split(|byte| *byte == b'\n')
            .zip(oids)
            .map(|(line, oid)| {
                let size = std::str::from_utf8(line)
                    .ok()
                    .and_then(|line| line.parse().ok());
                size.ok_or_else(|| RepoError::MissingObject {
                    oid: oid.to_string(),
                })
            })
            .collect::<Result<_, _>>()?;
        if sizes.len() == oids.len() {
            Ok(sizes)
        } else {
            Err(output.unreadable())
        }
    }
}

fn lines(names: &[impl AsRef<str>]) -> Vec<u8> {
    names
        .iter()
        .flat_map(|name| [name.as_ref().as_bytes(), b"\n"].concat())
        .collect()
}

/// One object as `cat-file --batch` prints it.
struct Object<'a> {
    oid: &'a str,
    kind: &'a [u8],
    bytes: &'a [u8],
}

/// Takes `oid SP kind SP size LF bytes LF` from the front; `None` for anything else.
fn take_object<'a>(rest: &mut &'a [u8]) -> Option<Object<'a>> {
    let (line, after) = split_at(rest, b'\n')?;
    let fields: Vec<&str> = std::str::from_utf8(line).ok()?.split(' ').collect();
    let [oid, kind, size] = fields[..] else {
        return None;
    };
    let size: usize = size.parse().ok()?;
    let bytes = after.get(..size)?;
    *rest = after.get(size..)?.strip_prefix(b"\n")?;
    Some(Object {
        oid,
        kind: kind.as_bytes(),
        bytes,
    })
}

/// Objects one after the other.
fn parse_batch(output: &Output) -> Result<BTreeMap<Oid, Vec<u8>>, RepoError> {
    let mut blobs = BTreeMap::new();
    let mut rest = output.stdout.as_slice();
    while !rest.is_empty() {
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if let Some(oid) = line.strip_suffix(b" missing") {
            return Err(RepoError::MissingObject {
                oid: String::from_utf8_lossy(oid).into_owned(),
            });
        }
        let object = take_object(&mut rest).ok_or_else(|| output.unreadable())?;
        object.checked()?;
        blobs.insert(
            object.oid.parse().map_err(|_| output.unreadable())?,
            object.bytes.to_vec(),
        );
    }
    Ok(blobs)
}

impl Object<'_> {
    /// git does not compare the bytes with the name.
    fn checked(&self) -> Result<(), RepoError> {
        match self.oid.parse() {
            Ok(oid) if !has_name(&oid, self.kind, self.bytes) => {
                Err(RepoError::DamagedObject { oid })
            }
            _ => Ok(()),
        }
    }
}

/// What was read, or that it is more than `limit`.
fn within<T>(read: Option<T>, limit: ByteLimit) -> Result<T, RepoError> {
    read.ok_or_else(|| RepoError::TooLarge {
        what: "what was asked for".to_owned(),
        limit: limit.0,
    })
}

/// Returns the contents of those paths that are files or links in a tree or a commit; `None` above `limit`
/// bytes.
fn files_of(
    reader: &mut Reader<'_>,
    root: &Oid,
    paths: Vec<RepoPath>,
    limit: u64,
) -> Result<Option<BTreeMap<RepoPath, Vec<u8>>>, ReadFailure> {
    let tree = reader.tree_of(root)?;
    let mut known = KnownTrees::default();
    let mut left = limit;
    let mut files = BTreeMap::new();
    for path in paths {
        let Some(found) = reader.find(&tree, path.as_str().as_bytes(), &mut known)? else {
            continue;
        };
        if !matches!(found.mode, TreeMode::File(mode) if mode != FileMode::Gitlink) {
            continue;
        }
        match reader.object(&found.oid, left) {
            Ok(object) if object.kind == ObjectKind::Blob => {
                left = left.saturating_sub(object.bytes.len() as u64);
                files.insert(path, object.bytes);
            }
            Ok(_) => return Err(ReadFailure::AskGit),
            Err(ReadFailure::TooLarge) => return Ok(None),
            Err(why) => return Err(why),
        }
    }
    Ok(Some(files))
}
