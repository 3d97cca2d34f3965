//! Judges commits with their notes: those that the user names, or those of a push.

use std::collections::BTreeMap;

use crucible_attest::{
    Admission, CommitFacts, CommitJudgement, MAX_NOTE, MergeKind, NOTES_REF, NoteRead, NotesUpdate,
    Policy, RefUpdate, SignedCommit, judge_commit, judge_notes_update, judge_replacement,
};
use crucible_model::{ByteLimit, Code, Finding, Timestamp, Verdict};
use crucible_repo::{CommitReader, Oid, ReadObject, RepoError, Revisions};

/// The most commits of one judgement.
const MAX_COMMITS: usize = 20_000;
/// The most notes that one push may change.
const MAX_CHANGED_NOTES: usize = 100;
/// The largest commit object in bytes.
const MAX_COMMIT: ByteLimit = ByteLimit(1 << 20);

const TOO_MANY: Code = Code::new("attest-too-many-commits");
const NO_COMMITS: Code = Code::new("attest-no-commits");
const SHALLOW: Code = Code::new("attest-shallow");
const REF_UNREADABLE: Code = Code::new("attest-ref-unreadable");

/// One commit with its judgement.
#[derive(Debug, Clone)]
pub struct CheckedCommit {
    /// The commit.
    pub commit: Oid,
    /// Why it is admitted or refused.
    pub judgement: CommitJudgement,
}

/// The judgement of some commits.
#[derive(Debug, Clone, Default)]
pub struct CommitsCheck {
    /// Each commit, oldest first.
    pub commits: Vec<CheckedCommit>,
    /// All findings.
    pub verdict: Verdict,
}

/// Judges the commits that the user named.
///
/// # Errors
///
/// Fails if there is no such commit, or if the repository cannot be read.
pub async fn check_commits(
    reader: &CommitReader,
    policy: &Policy,
    named: Revisions<'_>,
    now: Timestamp,
) -> Result<CommitsCheck, RepoError> {
    let (Revisions::Commit(words) | Revisions::Range(words)) = named;
    let notes = reader.resolve(NOTES_REF).await?;
    let commits = reader.commits(named, MAX_COMMITS).await?;
    let mut check = CommitsCheck::default();
    if commits.as_ref().is_some_and(Vec::is_empty) {
        let hint = "the range has no commit; in CI, fetch the whole history";
        check.verdict.push(Finding::error(NO_COMMITS, words, hint));
    }
    if matches!(named, Revisions::Range(_)) && reader.is_shallow() {
        let hint = "the repository has only a part of the history, and the rest of the range is not judged; run `git fetch --unshallow`";
        check.verdict.push(Finding::error(SHALLOW, words, hint));
    }
    check
        .judge(reader, policy, commits, words, notes.as_ref(), now)
        .await?;
    Ok(check)
}

/// Judges a push: each commit that no guarded ref contains yet, and the change of the notes.
///
/// # Errors
///
/// Fails if the repository cannot be read.
pub async fn check_push(
    reader: &CommitReader,
    policy: &Policy,
    updates: &[RefUpdate],
    now: Timestamp,
) -> Result<CommitsCheck, RepoError> {
    let mut check = CommitsCheck::default();
    let replacements = updates.iter().filter_map(judge_replacement);
    check.verdict.merge(Verdict::new(replacements.collect()));
    let mut notes = reader.resolve(NOTES_REF).await?;
    for update in updates {
        if !leads_to_notes(reader, update).await? {
            continue;
        }
        let pushed = reader.resolve(&update.new).await?;
        let how = match (&notes, &pushed) {
            _ if update.is_deletion() => NotesUpdate::Deleted,
            (Some(before), Some(pushed)) if !reader.is_ancestor(before, pushed).await? => {
                NotesUpdate::Rewritten
            }
            (Some(before), Some(pushed))
                if changes_guarded_notes(reader, policy, before, pushed).await? =>
            {
                NotesUpdate::Changed
            }
            (_, None) => NotesUpdate::Rewritten,
            (_, Some(_)) => NotesUpdate::Added,
        };
        check
            .verdict
            .merge(Verdict::new(judge_notes_update(how).into_iter().collect()));
        notes = pushed.or(notes);
    }
    let mut tips = Vec::new();
    for update in updates.iter().filter(|update| !update.is_deletion()) {
        if !changes_guarded_ref(reader, policy, update).await? {
            continue;
        }
        match reader.resolve(&update.new).await? {
            Some(tip) => tips.push(tip),
            None => {
                let hint = "it does not name a commit, so it cannot be judged";
                check
                    .verdict
                    .push(Finding::error(REF_UNREADABLE, update.name.as_str(), hint));
            }
        }
    }
    // Nobody judges the commits of the notes, so a commit that only they contain is new.
    let commits = reader
        .new_commits(&tips, policy.guarded_refs(), NOTES_REF, MAX_COMMITS)
        .await?;
    check
        .judge(reader, policy, commits, "push", notes.as_ref(), now)
        .await?;
    Ok(check)
}

/// Whether an update changes a guarded ref, by its name or by that of a symbolic ref.
pub(super) async fn changes_guarded_ref(
    reader: &CommitReader,
    policy: &Policy,
    update: &RefUpdate,
) -> Result<bool, RepoError> {
    if policy.guards(&update.name) {
        return Ok(true);
    }
    let target = reader.symbolic_target(&update.name).await?;
    Ok(target.is_some_and(|target| policy.guards(&target)))
}

/// Whether a push changes the notes, by their name or by that of a symbolic ref.
async fn leads_to_notes(reader: &CommitReader, update: &RefUpdate) -> Result<bool, RepoError> {
    // What does not exist leads to no notes that could be lost.
    if update.name == NOTES_REF || update.is_creation() {
        return Ok(update.name == NOTES_REF);
    }
    let target = reader.symbolic_target(&update.name).await?;
    Ok(target.as_deref() == Some(NOTES_REF))
}

/// Returns whether a note of a commit that a guarded ref contains is missing or another one. Other notes may change: anybody
/// can push one for a commit that is not there yet.
async fn changes_guarded_notes(
    reader: &CommitReader,
    policy: &Policy,
    before: &Oid,
    pushed: &Oid,
) -> Result<bool, RepoError> {
    let changed = reader.changed_notes(before, pushed).await?;
    if changed.len() > MAX_CHANGED_NOTES {
        return Ok(true);
    }
    for name in changed {
        let Some(commit) = reader.resolve(&name).await? else {
            continue;
        };
        let commit = [commit];
        let new = reader.new_commits(&commit, policy.guarded_refs(), NOTES_REF, 1);
        if new.await?.is_some_and(|new| new.is_empty()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the note of a commit, if it has one.
///
/// # Errors
///
/// Fails if there is no such commit, or if the repository cannot be read.
pub async fn read_note(
    reader: &CommitReader,
    commit: &str,
) -> Result<(Oid, Option<Vec<u8>>), RepoError> {
    let commits = reader
        .commits(Revisions::Commit(commit), 1)
        .await?
        .unwrap_or_default();
    let missing = || RepoError::MissingObject {
        oid: commit.to_owned(),
    };
    let commit = commits.into_iter().next().ok_or_else(missing)?;
    let notes = reader.resolve(NOTES_REF).await?;
    let read = reader
        .read_notes(
            notes.as_ref(),
            std::slice::from_ref(&commit),
            ByteLimit(MAX_NOTE),
        )
        .await?;
    match read.into_iter().next() {
        Some(ReadObject::Bytes(note)) => Ok((commit, Some(note))),
        Some(ReadObject::TooLarge) => Err(RepoError::TooLarge {
            what: format!("the note of {commit}"),
            limit: MAX_NOTE,
        }),
        Some(ReadObject::Missing) | None => Ok((commit, None)),
    }
}

impl CommitsCheck {
    async fn judge(
        &mut self,
        reader: &CommitReader,
        policy: &Policy,
        commits: Option<Vec<Oid>>,
        words: &str,
        notes: Option<&Oid>,
        now: Timestamp,
    ) -> Result<(), RepoError> {
        let Some(commits) = commits else {
            let hint = format!("more than {MAX_COMMITS} commits; verify or push them in batches");
            self.verdict.push(Finding::error(TOO_MANY, words, hint));
            return Ok(());
        };
        let objects = reader.read_commits(&commits, MAX_COMMIT).await?;
        let read = reader
            .read_notes(notes, &commits, ByteLimit(MAX_NOTE))
            .await?;
        for ((commit, object), note) in commits.into_iter().zip(&objects).zip(&read) {
            let bytes = match object {
                ReadObject::Bytes(bytes) => Some(bytes.as_slice()),
                ReadObject::Missing | ReadObject::TooLarge => None,
            };
            let facts = CommitFacts {
                id: commit.as_str(),
                bytes,
                merge: merge_kind(reader, policy, bytes).await?,
            };
            let note = match note {
                ReadObject::Bytes(note) => NoteRead::Bytes(note),
                ReadObject::Missing => NoteRead::Missing,
                ReadObject::TooLarge => NoteRead::TooLarge,
            };
            let judgement = judge_commit(policy, &facts, note, now);
            self.verdict.merge(judgement.verdict.clone());
            self.commits.push(CheckedCommit { commit, judgement });
        }
        Ok(())
    }

    /// Returns how many commits were admitted, by the reason in one word.
    #[must_use]
    pub fn admitted(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for commit in &self.commits {
            let reason = match commit.judgement.admission {
                Some(Admission::Statement { .. }) => "attested",
                Some(Admission::Person { .. }) => "signed by a person",
                Some(Admission::Merge) => "clean merge",
                None => continue,
            };
            *counts.entry(reason).or_default() += 1;
        }
        counts
    }
}

async fn merge_kind(
    reader: &CommitReader,
    policy: &Policy,
    bytes: Option<&[u8]>,
) -> Result<MergeKind, RepoError> {
    let Some(commit) = bytes
        .and_then(SignedCommit::parse)
        .filter(|_| policy.admits_clean_merges())
    else {
        return Ok(MergeKind::Other);
    };
    match commit.parents.as_slice() {
        [one, other] if reader.is_clean_merge([one, other], &commit.tree).await? => {
            Ok(MergeKind::Clean)
        }
        _ => Ok(MergeKind::Other),
    }
}
