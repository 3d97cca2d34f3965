//! Judges commits with their notes: those that the user names, or those of a push.

use std::collections::{BTreeMap, BTreeSet};

use crucible_attest::{
    Admission, CommitFacts, CommitJudgement, MAX_NOTE, MergeKind, NOTES_REF, NoteRead, NotesUpdate,
    Policy, RefUpdate, RunUse, SignedCommit, is_complete_note, judge_commit, judge_notes_update,
    judge_old_value, judge_ref_name, judge_repeated_refs, judge_repeated_runs, judge_replacement,
    signed_run_use,
};
use crucible_model::{ByteLimit, Code, Finding, Timestamp, Verdict};
use crucible_repo::{CommitReader, Oid, ReadObject, RepoError, Revisions};

/// The most commits of one judgement.
const MAX_COMMITS: usize = 20_000;

/// How many pushed notes are in memory at once.
const NOTES_AT_ONCE: usize = 500;

const TOO_MANY: Code = Code::new("attest-too-many-commits");
const NO_COMMITS: Code = Code::new("attest-no-commits");
const SHALLOW: Code = Code::new("attest-shallow");
const INCOMPLETE: Code = Code::new("attest-push-incomplete");
const REF_UNREADABLE: Code = Code::new("attest-ref-unreadable");

/// One commit with its judgement.
#[derive(Debug, Clone)]
pub struct CheckedCommit {
    /// The commit.
    pub commit: Oid,
    /// Why it is admitted or refused.
    pub judgement: CommitJudgement,
    /// The run whose change it says to be, if a signer of the policy signed that.
    used: Option<RunUse>,
}

impl CheckedCommit {
    fn admitted_use(&self) -> Option<&RunUse> {
        let by_statement = matches!(self.judgement.admission, Some(Admission::Statement { .. }));
        self.used.as_ref().filter(|_| by_statement)
    }
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
    let commits = reader.commits(named, MAX_COMMITS).await?;
    let mut history = GuardedRefs::read(reader, policy).await?.commits;
    let (tips, left_out) = reader.ends(named).await?;
    history.extend([tips, left_out].concat());
    let judging = Judging {
        reader,
        policy,
        notes: reader.resolve(NOTES_REF).await?,
        history,
        now,
    };
    let mut check = CommitsCheck::default();
    if commits.as_ref().is_some_and(Vec::is_empty) {
        let hint = "the range has no commit; in CI, fetch the whole history";
        check.verdict.push(Finding::error(NO_COMMITS, words, hint));
    }
    if matches!(named, Revisions::Range(_)) && reader.is_shallow() {
        let hint = "the repository has only a part of the history, and the rest of the range is not judged; run `git fetch --unshallow`";
        check.verdict.push(Finding::error(SHALLOW, words, hint));
    }
    check.judge(&judging, commits, words).await?;
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
    let guarded = GuardedRefs::read(reader, policy).await?;
    let moved = updates.iter().filter_map(|update| {
        judge_old_value(update, guarded.values.get(&update.name).map(Oid::as_str))
    });
    check.verdict.merge(Verdict::new(moved.collect()));
    let hiding = updates.iter().filter_map(judge_ref_name);
    let changed_refs = updates.iter().map(|update| guarded.target(&update.name));
    let refs = hiding.chain(judge_repeated_refs(changed_refs)).collect();
    check.verdict.merge(Verdict::new(refs));
    let pushed: Vec<Oid> = updates
        .iter()
        .filter(|update| !update.is_deletion())
        .filter_map(|update| update.new.parse().ok())
        .collect();
    if !reader.is_connected(&pushed).await? {
        let hint = "an object that a ref needs is missing, so git would reject that ref after the others; push again";
        check.verdict.push(Finding::error(INCOMPLETE, "push", hint));
    }
    let mut notes = reader.resolve(NOTES_REF).await?;
    for update in updates {
        if !leads_to_notes(reader, update).await? {
            continue;
        }
        let pushed = reader.resolve(&update.new).await?;
        let how = notes_update(
            reader,
            policy,
            &guarded,
            notes.as_ref(),
            update,
            pushed.as_ref(),
        )
        .await?;
        check
            .verdict
            .merge(Verdict::new(judge_notes_update(how).into_iter().collect()));
        notes = pushed.or(notes);
    }
    let mut tips = Vec::new();
    for update in updates.iter().filter(|update| !update.is_deletion()) {
        if !guarded.are_changed_by(reader, policy, update).await? {
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
    let commits = reader
        .new_commits(&tips, &guarded.commits, MAX_COMMITS)
        .await?;
    let judging = Judging {
        reader,
        policy,
        notes,
        history: [guarded.commits, tips].concat(),
        now,
    };
    check.judge(&judging, commits, "push").await?;
    Ok(check)
}

/// The refs of a repository whose commits were judged.
pub(super) struct GuardedRefs {
    /// The commits that they lead to. Nobody judges those of the notes, nor those of a ref that is not guarded, so a commit
    /// that only these contain is new, also if a guarded symbolic ref leads there.
    pub(super) commits: Vec<Oid>,
    /// The refs to which guarded symbolic refs lead.
    targets: BTreeSet<String>,
    /// The symbolic refs, each with the ref that it leads to.
    symbolic: BTreeMap<String, String>,
    /// The object of each ref of the repository, guarded or not.
    values: BTreeMap<String, Oid>,
}

impl GuardedRefs {
    pub(super) async fn read(reader: &CommitReader, policy: &Policy) -> Result<Self, RepoError> {
        let (mut commits, mut targets) = (BTreeSet::new(), BTreeSet::new());
        let (mut values, mut symbolic) = (BTreeMap::new(), BTreeMap::new());
        for listed in reader.refs().await? {
            values.insert(listed.name.clone(), listed.oid.clone());
            if let Some(target) = &listed.target {
                symbolic.insert(listed.name.clone(), target.clone());
            }
            if !policy.guards(&listed.name) {
                continue;
            }
            if listed
                .target
                .as_ref()
                .is_none_or(|target| policy.guards(target))
            {
                commits.insert(listed.oid);
            }
            targets.extend(listed.target);
        }
        Ok(Self {
            commits: commits.into_iter().collect(),
            targets,
            symbolic,
            values,
        })
    }

    /// The ref that an update of this one changes.
    fn target<'a>(&'a self, name: &'a str) -> &'a str {
        let mut target = name;
        for _ in 0..self.symbolic.len() {
            match self.symbolic.get(target) {
                Some(next) => target = next,
                None => break,
            }
        }
        target
    }

    /// Whether an update changes a guarded ref: by its name, by that of a symbolic ref, or because a guarded symbolic ref
    /// leads to it.
    pub(super) async fn are_changed_by(
        &self,
        reader: &CommitReader,
        policy: &Policy,
        update: &RefUpdate,
    ) -> Result<bool, RepoError> {
        let is_guarded =
            |name: &str| policy.guards(name) || name != NOTES_REF && self.targets.contains(name);
        if is_guarded(&update.name) {
            return Ok(true);
        }
        let target = reader.symbolic_target(&update.name).await?;
        Ok(target.is_some_and(|target| is_guarded(&target)))
    }
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

/// Returns how an update changes the notes. A note that no signer signed may change if no guarded ref contains its commit:
/// anybody can push one for a commit that is not there yet. Carried commits need the signed note of their original, which
/// no ref has to contain.
async fn notes_update(
    reader: &CommitReader,
    policy: &Policy,
    guarded: &GuardedRefs,
    before: Option<&Oid>,
    update: &RefUpdate,
    pushed: Option<&Oid>,
) -> Result<NotesUpdate, RepoError> {
    if update.is_deletion() {
        return Ok(NotesUpdate::Deleted);
    }
    let Some(pushed) = pushed else {
        return Ok(NotesUpdate::Rewritten);
    };
    if let Some(before) = before
        && !reader.is_ancestor(before, pushed).await?
    {
        return Ok(NotesUpdate::Rewritten);
    }
    let change = reader.notes_change(before, pushed).await?;
    let lost = reader.contained(&change.lost, &guarded.commits).await?;
    Ok(
        if !lost.is_empty()
            || loses_signed_note(reader, policy, before, pushed, &change.lost).await?
        {
            NotesUpdate::Changed
        } else if writes_incomplete_note(reader, policy, pushed, &change.written).await? {
            NotesUpdate::Incomplete
        } else if change.has_other_entries {
            NotesUpdate::OtherEntries
        } else {
            NotesUpdate::Added
        },
    )
}

/// Whether one of these commits had a signed note whose lines are not the first ones of the new note.
async fn loses_signed_note(
    reader: &CommitReader,
    policy: &Policy,
    before: Option<&Oid>,
    after: &Oid,
    commits: &[Oid],
) -> Result<bool, RepoError> {
    if commits.is_empty() {
        return Ok(false);
    }
    let limit = ByteLimit(MAX_NOTE);
    let old = reader.read_notes(before, commits, limit).await?;
    let new = reader.read_notes(Some(after), commits, limit).await?;
    let is_lost = |((commit, old), new): ((&Oid, &ReadObject), &ReadObject)| {
        bytes_of(old).is_some_and(|old| {
            signed_run_use(policy, commit.as_str(), old).is_some()
                && !bytes_of(new).is_some_and(|new| new.starts_with(old))
        })
    };
    Ok(commits.iter().zip(&old).zip(&new).any(is_lost))
}

/// Whether one of these notes begins with a signed statement and is not complete. Nobody could complete it later, because a
/// signed note is not replaced.
async fn writes_incomplete_note(
    reader: &CommitReader,
    policy: &Policy,
    notes: &Oid,
    commits: &[Oid],
) -> Result<bool, RepoError> {
    for commits in commits.chunks(NOTES_AT_ONCE) {
        let read = reader
            .read_notes(Some(notes), commits, ByteLimit(MAX_NOTE))
            .await?;
        let is_incomplete = |(commit, note): (&Oid, &ReadObject)| {
            bytes_of(note).is_some_and(|note| {
                signed_run_use(policy, commit.as_str(), note).is_some()
                    && !is_complete_note(policy, commit.as_str(), note)
            })
        };
        if commits.iter().zip(&read).any(is_incomplete) {
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

/// What commits are judged with.
struct Judging<'a> {
    reader: &'a CommitReader,
    policy: &'a Policy,
    /// The value of the notes' ref.
    notes: Option<Oid>,
    /// The commits whose history is searched for another change of the same run.
    history: Vec<Oid>,
    now: Timestamp,
}

impl Judging<'_> {
    async fn notes_of(&self, commits: &[Oid]) -> Result<Vec<ReadObject>, RepoError> {
        let limit = ByteLimit(MAX_NOTE);
        self.reader
            .read_notes(self.notes.as_ref(), commits, limit)
            .await
    }

    /// The other commits of the history that were made on the bases of these changes, if they have statements.
    async fn siblings(&self, uses: &[RunUse]) -> Result<Vec<RunUse>, RepoError> {
        let known: BTreeSet<&str> = uses.iter().map(|one| one.commit.as_str()).collect();
        let bases: BTreeSet<Oid> = uses
            .iter()
            .filter_map(|one| one.base.parse().ok())
            .collect();
        // One of these changes has its own base in its history.
        let is_root = |base: &&Oid| !known.contains(base.as_str());
        let roots: Vec<Oid> = bases.iter().filter(is_root).cloned().collect();
        let children = self.reader.children(&bases, &roots, &self.history).await?;
        let others: Vec<Oid> = children
            .into_iter()
            .filter(|child| !known.contains(child.as_str()))
            .collect();
        let notes = self.notes_of(&others).await?;
        let from_note = |(commit, note): (&Oid, &ReadObject)| {
            signed_run_use(self.policy, commit.as_str(), bytes_of(note)?)
        };
        Ok(others.iter().zip(&notes).filter_map(from_note).collect())
    }
}

fn bytes_of(object: &ReadObject) -> Option<&[u8]> {
    match object {
        ReadObject::Bytes(bytes) => Some(bytes),
        ReadObject::Missing | ReadObject::TooLarge => None,
    }
}

fn note_of(object: &ReadObject) -> NoteRead<'_> {
    match object {
        ReadObject::Bytes(note) => NoteRead::Bytes(note),
        ReadObject::Missing => NoteRead::Missing,
        ReadObject::TooLarge => NoteRead::TooLarge,
    }
}

impl CommitsCheck {
    async fn judge(
        &mut self,
        judging: &Judging<'_>,
        commits: Option<Vec<Oid>>,
        words: &str,
    ) -> Result<(), RepoError> {
        let Some(commits) = commits else {
            let hint = format!("more than {MAX_COMMITS} commits; verify or push them in batches");
            self.verdict.push(Finding::error(TOO_MANY, words, hint));
            return Ok(());
        };
        let (reader, policy) = (judging.reader, judging.policy);
        let objects = reader.read_commits(&commits).await?;
        let notes = judging.notes_of(&commits).await?;
        let uses: Vec<Option<RunUse>> = commits
            .iter()
            .zip(&notes)
            .map(|(commit, note)| signed_run_use(policy, commit.as_str(), bytes_of(note)?))
            .collect();
        let originals: BTreeSet<Oid> = uses
            .iter()
            .flatten()
            .filter(|used| used.original != used.commit)
            .filter_map(|used| used.original.parse().ok())
            .collect();
        let originals: Vec<Oid> = originals.into_iter().collect();
        let of_originals = judging.notes_of(&originals).await?;
        let of_originals: BTreeMap<&str, &ReadObject> = originals
            .iter()
            .map(Oid::as_str)
            .zip(&of_originals)
            .collect();
        let mut refused = BTreeSet::new();
        for ((at, commit), used) in commits.into_iter().enumerate().zip(uses) {
            let bytes = bytes_of(&objects[at]);
            let original = used
                .as_ref()
                .and_then(|used| of_originals.get(used.original.as_str()));
            let facts = CommitFacts {
                id: commit.as_str(),
                bytes,
                merge: merge_kind(reader, policy, bytes, &refused).await?,
                original_note: original.map_or(NoteRead::Missing, |note| note_of(note)),
            };
            let judgement = judge_commit(policy, &facts, note_of(&notes[at]), judging.now);
            if judgement.admission.is_none() {
                refused.insert(commit.to_string());
            }
            self.commits.push(CheckedCommit {
                commit,
                judgement,
                used,
            });
        }
        self.refuse_repeated_runs(judging).await?;
        for checked in &self.commits {
            self.verdict.merge(checked.judgement.verdict.clone());
        }
        Ok(())
    }

    /// Refuses the commits whose run has another change.
    async fn refuse_repeated_runs(&mut self, judging: &Judging<'_>) -> Result<(), RepoError> {
        let mut all: Vec<RunUse> = self.admitted_uses().cloned().collect();
        all.extend(judging.siblings(&all).await?);
        for checked in &mut self.commits {
            let finding = checked
                .admitted_use()
                .and_then(|used| judge_repeated_runs(used, &all));
            if let Some(finding) = finding {
                checked.judgement.admission = None;
                checked.judgement.verdict.push(finding);
            }
        }
        Ok(())
    }

    /// The runs of the commits that were admitted by their statements. What another commit says may be anything.
    pub(super) fn admitted_uses(&self) -> impl Iterator<Item = &RunUse> {
        self.commits.iter().filter_map(CheckedCommit::admitted_use)
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

/// Returns the kind of a merge. One of a refused commit is not repeated: anybody can push it, and its trees may be huge.
async fn merge_kind(
    reader: &CommitReader,
    policy: &Policy,
    bytes: Option<&[u8]>,
    refused: &BTreeSet<String>,
) -> Result<MergeKind, RepoError> {
    let Some(commit) = bytes
        .and_then(SignedCommit::parse)
        .filter(|_| policy.admits_clean_merges())
    else {
        return Ok(MergeKind::Other);
    };
    match commit.parents.as_slice() {
        [one, other]
            if !refused.contains(one)
                && !refused.contains(other)
                && reader.is_clean_merge([one, other], &commit.tree).await? =>
        {
            Ok(MergeKind::Clean)
        }
        _ => Ok(MergeKind::Other),
    }
}
