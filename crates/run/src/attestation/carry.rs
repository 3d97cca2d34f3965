//! Attests a rewritten commit that has the same tree and the same parent as an attested one.

use crucible_attest::{
    Admission, CommitFacts, MergeKind, NOTES_REF, NoteRead, Policy, SignedCommit, Signer, carried,
    judge_commit, payload_of, run_use, statements,
};
use crucible_model::Failure;
use crucible_repo::{CommitReader, Identity, Oid, ReadObject};

use super::commits::read_note;
use super::landing::note_identity;
use crate::run_context::RunContext;

/// Signs the statements of `old` again as those of `new`, and writes the note of `new`. The policy must admit `old`
/// by its statements. Returns both commits.
///
/// # Errors
///
/// Fails if `old` is not attested, if trees or parents differ, if `new` landed itself, or if the signature fails.
pub async fn carry(
    world: &RunContext<'_>,
    reader: &CommitReader,
    policy: &Policy,
    signer: &Signer,
    identity: Option<Identity>,
    [old, new]: [&str; 2],
) -> Result<(Oid, Oid), Failure> {
    let (old, note) = read_note(reader, old).await?;
    let Some(note) = note else {
        let failure = Failure::refused(format!("{old} has no statement to carry over"));
        return Err(failure.hint("Notes are fetched on request: `git fetch origin refs/notes/crucible:refs/notes/crucible`."));
    };
    if let Some(used) = run_use(old.as_str(), &note)
        && used.original != used.commit
    {
        return Err(Failure::refused(format!(
            "{old} did not land; its statement was carried over"
        ))
        .hint(format!("Name the commit that landed: {}.", used.original)));
    }
    let (new, note_of_new) = read_note(reader, new).await?;
    if old == new {
        return Err(Failure::usage(format!("{old} is both commits"))
            .hint("Name the commit that landed, then the rewritten one."));
    }
    let used = note_of_new.and_then(|note| run_use(new.as_str(), &note));
    if used.is_some_and(|used| used.original == used.commit) {
        return Err(Failure::refused(format!(
            "{new} has its own statement, which would be lost"
        )));
    }
    let read = reader.read_commits(&[old.clone(), new.clone()]).await?;
    let [ReadObject::Bytes(of_old), ReadObject::Bytes(of_new)] = read.as_slice() else {
        return Err(unreadable());
    };
    let facts = CommitFacts {
        id: old.as_str(),
        bytes: Some(of_old),
        merge: MergeKind::Other,
        original_note: NoteRead::Missing,
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
    let (Some(before), Some(after)) = (SignedCommit::parse(of_old), SignedCommit::parse(of_new))
    else {
        return Err(unreadable());
    };
    let differ = |what: &str| {
        Failure::refused(format!("the {what} of {old} and {new} differ"))
            .hint("A statement holds for one tree on one base. Run the change again on the new base with `crucible run start`.")
    };
    if before.tree != after.tree {
        return Err(differ("trees"));
    }
    if before.parents != after.parents {
        return Err(differ("parents"));
    }
    let payload = payload_of(&note).ok_or_else(unreadable)?;
    let change = carried(&payload).map_err(Failure::refused)?;
    let payloads = statements(&change, new.as_str(), &after.tree)?;
    let note = signer.sign_all(&payloads).await?;
    let identity = identity.unwrap_or_else(note_identity);
    reader
        .write_note(NOTES_REF, &new, &note, &identity, world.clock.now())
        .await?;
    Ok((old, new))
}

fn unreadable() -> Failure {
    Failure::refused("one of the commits cannot be read")
}
