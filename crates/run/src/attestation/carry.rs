//! Attests a rewritten commit that has the same tree as an attested one.

use crucible_attest::{
    Admission, CommitFacts, MergeKind, NOTES_REF, NoteRead, Policy, SignedCommit, Signer, carried,
    judge_commit, payload_of, statements,
};
use crucible_model::{ByteLimit, Failure};
use crucible_repo::{CommitReader, Identity, Oid, ReadObject, Revisions};

use super::commits::read_note;
use super::landing::program;
use crate::world::World;

/// The largest commit object in bytes.
const MAX_COMMIT: ByteLimit = ByteLimit(1 << 20);

/// Signs the statements of `old` again as those of `new`, and writes the note of `new`. The policy must admit `old`
/// by its statements. Returns both commits.
///
/// # Errors
///
/// Fails if `old` is not attested, if the trees differ, or if the signature fails.
pub async fn carry(
    world: &World<'_>,
    reader: &CommitReader,
    policy: &Policy,
    signer: &Signer,
    identity: Option<Identity>,
    [old, new]: [&str; 2],
) -> Result<(Oid, Oid), Failure> {
    let (old, note) = read_note(reader, old).await?;
    let Some(note) = note else {
        return Err(Failure::refused(format!(
            "{old} has no statement to carry over"
        )));
    };
    let named = reader
        .commits(Revisions::Commit(new), 1)
        .await?
        .unwrap_or_default();
    let mut commits = vec![old.clone()];
    commits.extend(named);
    let read = reader.read_commits(&commits, MAX_COMMIT).await?;
    let bytes: Vec<&[u8]> = read
        .iter()
        .filter_map(|read| match read {
            ReadObject::Bytes(bytes) => Some(bytes.as_slice()),
            ReadObject::Missing | ReadObject::TooLarge => None,
        })
        .collect();
    let ([of_old, of_new], [old, new]) = (bytes.as_slice(), commits.as_slice()) else {
        return Err(Failure::refused("one of the commits cannot be read"));
    };
    let facts = CommitFacts {
        id: old.as_str(),
        bytes: Some(of_old),
        merge: MergeKind::Other,
    };
    let judged = judge_commit(policy, &facts, NoteRead::Bytes(&note), world.clock.now());
    if let Some(first) = judged.verdict.errors().next() {
        return Err(Failure::refused(format!(
            "the statement of {old} is refused: {first}"
        )));
    }
    if !matches!(judged.admission, Some(Admission::Statement { .. })) {
        return Err(Failure::refused(format!(
            "{old} is admitted without its statement, so there is nothing to carry"
        )));
    }
    let unreadable = || Failure::refused("one of the commits cannot be read");
    let trees = [of_old, of_new].map(|bytes| SignedCommit::parse(bytes).map(|commit| commit.tree));
    let [Some(before), Some(after)] = trees else {
        return Err(unreadable());
    };
    if before != after {
        return Err(Failure::refused(format!("the trees of {old} and {new} differ"))
            .hint("A statement holds for one tree only. Run the change again on the new base with `crucible run start`."));
    }
    let payload = payload_of(&note).ok_or_else(unreadable)?;
    let change = carried(&payload).map_err(Failure::refused)?;
    let payloads = statements(&change, new.as_str(), &after)?;
    let note = signer.sign_all(&payloads).await?;
    let identity = identity.unwrap_or_else(program);
    reader
        .write_note(NOTES_REF, new, &note, &identity, world.clock.now())
        .await?;
    Ok((old.clone(), new.clone()))
}
