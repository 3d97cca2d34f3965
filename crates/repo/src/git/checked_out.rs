//! Reads the checked-out branch and commit from `HEAD` and git's reference files.
//!
//! Only the usual form is read here: `HEAD` is a regular file that names a branch or a commit, and the branch
//! is a file below `refs/heads` or a line of `packed-refs`. A link, a pipe, another store of references, a
//! name outside of `refs/heads`, a branch that leads to another reference and a branch without a commit are
//! git's to judge.
//!
//! What always holds: a name is taken for a path only after git's rules for names were applied to it, so it
//! cannot leave the directory; nothing but a regular file is read, and none that is larger than it may be.

use std::path::Path;

use crucible_host::fs::read_regular_up_to;
use crucible_model::ByteLimit;

use super::locate::GitLocation;
use super::store::{HashKind, ReadFailure, is_absent, is_pipe};
use crate::git::Branch;
use crate::oid::Oid;
use crate::ref_name::RefName;

/// The largest `HEAD` or branch, in bytes.
const MAX_REF: ByteLimit = ByteLimit(4 << 10);

/// Larger lists of packed references are left to git, in bytes.
const MAX_PACKED: ByteLimit = ByteLimit(64 << 20);

/// Returns the checked-out branch; `None` if git has to be asked.
pub(super) fn branch(place: &GitLocation) -> Option<Branch> {
    match read_head(place).ok()? {
        // A branch without a commit is a branch; one that leads to another reference is not the one that is checked out.
        Head::Branch(name) => loose_tip(&place.common_dir, &name)
            .ok()
            .map(|_| Branch::Named(name)),
        Head::Commit(_) => Some(Branch::Detached),
    }
}

/// What is checked out, and the object that it leads to.
pub(super) fn checked_out(
    place: &GitLocation,
    hash: HashKind,
) -> Result<(Branch, Oid), ReadFailure> {
    let (branch, oid) = match read_head(place)? {
        Head::Commit(oid) => (Branch::Detached, oid),
        Head::Branch(name) => {
            let oid = tip(&place.common_dir, &name)?;
            (Branch::Named(name), oid)
        }
    };
    if oid.as_str().len() == hash.len_in_hex() {
        Ok((branch, oid))
    } else {
        Err(ReadFailure::AskGit)
    }
}

enum Head {
    /// A branch, by its short name.
    Branch(String),
    /// A commit and no branch.
    Commit(Oid),
}

fn read_head(place: &GitLocation) -> Result<Head, ReadFailure> {
    let bytes = read_small(&place.git_dir.join("HEAD"))?.ok_or(ReadFailure::AskGit)?;
    let Some(target) = bytes.strip_prefix(b"ref:") else {
        return Oid::from_ascii(bytes.trim_ascii_end())
            .map(Head::Commit)
            .ok_or(ReadFailure::AskGit);
    };
    let name = std::str::from_utf8(target.trim_ascii()).map_err(|_| ReadFailure::AskGit)?;
    let name = name
        .strip_prefix("refs/heads/")
        .ok_or(ReadFailure::AskGit)?;
    name.parse::<RefName>().map_err(|_| ReadFailure::AskGit)?;
    Ok(Head::Branch(name.to_owned()))
}

/// Returns the object of a branch in its own file, if it has one.
fn loose_tip(common_dir: &Path, name: &str) -> Result<Option<Oid>, ReadFailure> {
    let heads = common_dir.join("refs/heads");
    // git follows a link in the path, or reads it as a reference: git decides.
    let mut at = heads.clone();
    for part in Path::new(name)
        .parent()
        .into_iter()
        .flat_map(Path::components)
    {
        at.push(part);
        if at.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            return Err(ReadFailure::AskGit);
        }
    }
    let Some(bytes) = read_small(&heads.join(name))? else {
        return Ok(None);
    };
    Oid::from_ascii(bytes.trim_ascii_end())
        .map(Some)
        .ok_or(ReadFailure::AskGit)
}

/// The object that a branch names, in its file or in the list; the file counts first.
fn tip(common_dir: &Path, name: &str) -> Result<Oid, ReadFailure> {
    if let Some(oid) = loose_tip(common_dir, name)? {
        return Ok(oid);
    }
    let path = common_dir.join("packed-refs");
    let packed = match read_regular_up_to(&path, MAX_PACKED) {
        Ok(packed) => packed,
        Err(_) if is_pipe(&path) => return Err(ReadFailure::Pipe(path)),
        Err(_) => return Err(ReadFailure::AskGit),
    };
    let full = format!("refs/heads/{name}");
    for line in packed.split(|byte| *byte == b'\n') {
        // `oid SP name`; comments begin with `#`, peeled tags with `^`.
        let Some(oid) = line
            .strip_suffix(full.as_bytes())
            .and_then(|rest| rest.strip_suffix(b" "))
        else {
            continue;
        };
        return Oid::from_ascii(oid).ok_or(ReadFailure::AskGit);
    }
    Err(ReadFailure::AskGit)
}

/// Reads a small file that is not a link; `None` if it does not exist.
fn read_small(path: &Path) -> Result<Option<Vec<u8>>, ReadFailure> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_file() => {}
        // A directory may remain from a branch below this name.
        Ok(meta) if meta.is_dir() => return Ok(None),
        Ok(_) if is_pipe(path) => return Err(ReadFailure::Pipe(path.to_owned())),
        Ok(_) => return Err(ReadFailure::AskGit),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(_) => return Err(ReadFailure::AskGit),
    }
    match read_regular_up_to(path, MAX_REF) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(_) => Err(ReadFailure::AskGit),
    }
}
