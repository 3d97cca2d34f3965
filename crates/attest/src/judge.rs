//! Judges a commit with its note by a policy. Pure.
//!
//! A commit is admitted in one of three ways: a person whom the policy names signed it, it is a merge that adds nothing
//! and the policy admits those, or its note has the three statements and they say what the policy requires. A note has
//! exactly these lines in this order, so a line cannot be dropped, repeated, moved or added.

use std::collections::BTreeSet;

use crucible_model::{Code, Digest, Finding, Timestamp, Verdict};

use crate::approval::Approval;
use crate::change::{CarriedFrom, Change, GateResult, GateVerdict};
use crate::commit::{SignedCommit, trailer_values};
use crate::note::{MAX_NOTE, SignedStatement, lines, read_line};
use crate::policy::{KeyHolder, Policy, RequiredIsolation};
use crate::statement::statements;

const MISSING: Code = Code::new("attest-missing");
const COMMIT_UNREADABLE: Code = Code::new("attest-commit-unreadable");
const NOTE_TOO_LARGE: Code = Code::new("attest-note-too-large");
const NOTE_INCOMPLETE: Code = Code::new("attest-note-incomplete");
const SUBJECT_DIFFERS: Code = Code::new("attest-subject-differs");
const SUMMARY_DIFFERS: Code = Code::new("attest-summary-differs");
const BASE_DIFFERS: Code = Code::new("attest-base-differs");
const TRAILER_DIFFERS: Code = Code::new("attest-trailer-differs");
const NOT_PASSED: Code = Code::new("attest-not-passed");
const GATE_MISSING: Code = Code::new("attest-gate-missing");
const ISOLATION_INCOMPLETE: Code = Code::new("attest-isolation-incomplete");
const BROKEN_CHANGE_UNCHECKED: Code = Code::new("attest-broken-change-unchecked");
const STRENGTH_LOW: Code = Code::new("attest-strength-low");
const MODEL_DENIED: Code = Code::new("attest-model-denied");
const AGENT_DENIED: Code = Code::new("attest-agent-denied");
const TOO_OLD: Code = Code::new("attest-too-old");
const IN_FUTURE: Code = Code::new("attest-in-future");
const KEY_NOT_VALID: Code = Code::new("attest-key-not-valid");
const APPROVALS_MISSING: Code = Code::new("attest-approvals-missing");
const ACCEPTED: Code = Code::new("attest-accepted");
const ORIGINAL_DIFFERS: Code = Code::new("attest-original-differs");
const CARRIED: Code = Code::new("attest-carried");

/// How far clocks of two machines may differ, in milliseconds.
const CLOCK_SKEW: i64 = 5 * 60 * 1000;
const DAY: i64 = 24 * 60 * 60 * 1000;

/// What is known of a commit.
#[derive(Debug, Clone, Copy)]
pub struct CommitFacts<'a> {
    /// Its name, which must be the hash of its bytes.
    pub id: &'a str,
    /// The bytes of the commit object; `None` if the repository has no such commit or another one of this name.
    pub bytes: Option<&'a [u8]>,
    /// Whether it is a merge, and of which kind.
    pub merge: MergeKind,
    /// If its statement was carried over: the note of the commit that [`run_use`](crate::run_use) names as the original.
    pub original_note: NoteRead<'a>,
}

/// What kind of merge a commit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeKind {
    /// Its tree is what git's merge of its two parents gives.
    Clean,
    /// Not known to be a clean merge.
    Other,
}

/// The note of a commit.
#[derive(Debug, Clone, Copy)]
pub enum NoteRead<'a> {
    /// The commit has no note.
    Missing,
    /// Its content.
    Bytes(&'a [u8]),
    /// It is larger than [`MAX_NOTE`].
    TooLarge,
}

/// Why a commit is admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Its statements are signed by this signer and satisfy the policy.
    Statement {
        /// The signer's name in the policy.
        signer: String,
    },
    /// This person signed the commit.
    Person {
        /// The person's name in the policy.
        name: String,
    },
    /// It is a merge that adds nothing.
    Merge,
}

/// The judgement of one commit. Without an admission there is at least one error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitJudgement {
    /// Why it is admitted; `None` if it is refused.
    pub admission: Option<Admission>,
    /// The findings.
    pub verdict: Verdict,
}

/// Judges a commit with its note at this time.
#[must_use]
pub fn judge_commit(
    policy: &Policy,
    commit: &CommitFacts<'_>,
    note: NoteRead<'_>,
    now: Timestamp,
) -> CommitJudgement {
    let refused = |finding: Finding| CommitJudgement {
        admission: None,
        verdict: Verdict::new(vec![finding]),
    };
    let Some(parsed) = commit.bytes.and_then(SignedCommit::parse) else {
        let hint = "the repository has no commit of this name, or its bytes do not match the name";
        return refused(Finding::error(COMMIT_UNREADABLE, commit.id, hint));
    };
    let admitted = |admission: Admission| CommitJudgement {
        admission: Some(admission),
        verdict: Verdict::default(),
    };
    let has_signed = |person: &&KeyHolder| {
        let is_valid = parsed.committed_at.map(|at| person.is_valid_at(at));
        is_valid.unwrap_or_else(|| !person.is_limited()) && parsed.is_signed_by(&person.key)
    };
    if let Some(person) = policy.people.iter().find(has_signed) {
        return admitted(Admission::Person {
            name: person.name.clone(),
        });
    }
    if policy.admits_clean_merges() && parsed.parents.len() == 2 && commit.merge == MergeKind::Clean
    {
        return admitted(Admission::Merge);
    }
    let note = match note {
        NoteRead::Bytes(note) => note,
        NoteRead::TooLarge => return too_large(commit.id),
        NoteRead::Missing => {
            let hint = if parsed.parents.len() > 1 {
                "this merge has no statement and is not signed by a person whom the policy names"
            } else {
                "it has no statement and is not signed by a person whom the policy names; push refs/notes/crucible, too, or fetch it: `git fetch origin refs/notes/crucible:refs/notes/crucible`"
            };
            return refused(Finding::error(MISSING, commit.id, hint));
        }
    };
    let target = Target::Commit {
        id: commit.id,
        parsed: &parsed,
        original: commit.original_note,
    };
    judge_note(policy, &target, note, now)
}

/// Judges the statements of a file without a repository. Whether the commit is what they say is not checked.
#[must_use]
pub fn judge_file(
    policy: &Policy,
    name: &str,
    file: NoteRead<'_>,
    now: Timestamp,
) -> CommitJudgement {
    match file {
        NoteRead::Bytes(bytes) => judge_note(policy, &Target::File { name }, bytes, now),
        NoteRead::Missing => judge_note(policy, &Target::File { name }, &[], now),
        NoteRead::TooLarge => too_large(name),
    }
}

fn too_large(name: &str) -> CommitJudgement {
    let hint = format!("it has more than {MAX_NOTE} bytes and was not read");
    CommitJudgement {
        admission: None,
        verdict: Verdict::new(vec![Finding::error(NOTE_TOO_LARGE, name, hint)]),
    }
}

/// What statements are compared with.
enum Target<'a> {
    Commit {
        id: &'a str,
        parsed: &'a SignedCommit,
        original: NoteRead<'a>,
    },
    File {
        name: &'a str,
    },
}

impl Target<'_> {
    const fn name(&self) -> &str {
        match self {
            Self::Commit { id, .. } => id,
            Self::File { name } => name,
        }
    }
}

fn judge_note(
    policy: &Policy,
    target: &Target<'_>,
    note: &[u8],
    now: Timestamp,
) -> CommitJudgement {
    let mut findings = Vec::new();
    if note.len() as u64 > MAX_NOTE {
        return too_large(target.name());
    }
    let mut signed = Vec::new();
    for (at, line) in lines(note).into_iter().enumerate() {
        match read_line(policy, &format!("{}:{}", target.name(), at + 1), line) {
            Ok(statement) => signed.push(statement),
            Err(finding) => {
                findings.push(finding);
                // The others would be about the same damage.
                break;
            }
        }
    }
    let mut admission = None;
    if findings.is_empty() {
        match judge_statements(policy, target, &signed, note, now) {
            Ok((signer, found)) => {
                if found.is_empty() {
                    admission = Some(Admission::Statement {
                        signer: signer.name.clone(),
                    });
                }
                findings = found;
            }
            Err(finding) => findings.push(finding),
        }
    }
    CommitJudgement {
        admission,
        verdict: Verdict::new(findings),
    }
}

/// Judges statements with valid signatures. An error is about their form; the findings are about what they say.
fn judge_statements<'p>(
    policy: &Policy,
    target: &Target<'_>,
    signed: &[SignedStatement<'p>],
    note: &[u8],
    now: Timestamp,
) -> Result<(&'p KeyHolder, Vec<Finding>), Finding> {
    let name = target.name();
    let [first, others @ ..] = signed else {
        return Err(Finding::error(NOTE_INCOMPLETE, name, "the note is empty"));
    };
    let change = first
        .statement
        .change()
        .map_err(|fault| fault.finding(&format!("{name}:1")))?;
    let (commit, tree) = match target {
        Target::Commit { id, parsed, .. } => ((*id).to_owned(), parsed.tree.clone()),
        Target::File { .. } => {
            let has_subject = |subject: &str, algorithm: &str| {
                first
                    .statement
                    .digest(subject, algorithm)
                    .unwrap_or_default()
                    .to_owned()
            };
            (
                has_subject("commit", "gitCommit"),
                has_subject("tree", "gitTree"),
            )
        }
    };
    // Everything except the subjects comes from the statement itself.
    let expected = statements(&change, &commit, &tree)
        .map_err(|error| Finding::error(SUBJECT_DIFFERS, name, error.to_string()))?;
    if first.payload != expected[0] {
        let message = first
            .statement
            .digest("commit", "gitCommit")
            .unwrap_or_default();
        let hint = format!(
            "the statement is about the commit {message:?}, or about another tree or patch"
        );
        return Err(Finding::error(SUBJECT_DIFFERS, name, hint));
    }
    let is_summary = |(other, expected): (&SignedStatement<'_>, &Vec<u8>)| {
        other.payload == *expected && other.signer.key == first.signer.key
    };
    if others.len() != expected.len() - 1 || !note.ends_with(b"\n") {
        let hint = format!(
            "it has {} statements instead of {}: the change, the test result and the summary",
            signed.len(),
            expected.len()
        );
        return Err(Finding::error(NOTE_INCOMPLETE, name, hint));
    }
    if !others.iter().zip(&expected[1..]).all(is_summary) {
        let hint = "the test result or the summary does not match the change, or another key signed it; sign it again";
        return Err(Finding::error(SUMMARY_DIFFERS, name, hint));
    }
    let mut findings = Vec::new();
    if let Target::Commit { parsed, .. } = target {
        origin(name, &change, parsed, &mut findings);
    }
    if let Some(from) = &change.carried_from {
        if !policy.admit.carried {
            let hint = "the statement was carried over from another commit, and the policy does not admit that (`[admit] carried`)";
            findings.push(Finding::error(CARRIED, name, hint));
        } else if let Target::Commit { original, .. } = target
            && !is_original(policy, from, &change, &tree, *original)
        {
            let hint = format!(
                "the note of the original commit {} is missing, is not valid, or says something else; push refs/notes/crucible with it",
                from.commit
            );
            findings.push(Finding::error(ORIGINAL_DIFFERS, name, hint));
        }
    }
    time(policy, name, &change, first.signer, now, &mut findings);
    gates(policy, name, &change, &mut findings);
    strength(policy, name, &change, &mut findings);
    authors(policy, name, &change, &mut findings);
    approvals(policy, name, &change, &mut findings);
    accepted(policy, name, &change, &mut findings);
    Ok((first.signer, findings))
}

/// Returns whether this note has the valid statements of the original commit, and they say the same of the same tree and
/// the same base.
fn is_original(
    policy: &Policy,
    from: &CarriedFrom,
    carried: &Change,
    tree: &str,
    note: NoteRead<'_>,
) -> bool {
    let NoteRead::Bytes(note) = note else {
        return false;
    };
    let landed = Change {
        carried_from: None,
        ..carried.clone()
    };
    let Ok(expected) = statements(&landed, &from.commit, tree) else {
        return false;
    };
    from.statement == Digest::compute(&expected[0])
        && exact_statements(policy, &from.commit, note, &expected).is_some_and(|signed| {
            let mut signers = signed.iter().map(|one| one.signer);
            signers.all(|signer| signer.is_valid_at(carried.created_at))
        })
}

/// Returns whether a note has all the statements that the signer of its first one wrote, and nothing else.
#[must_use]
pub fn is_complete_note(policy: &Policy, commit: &str, note: &[u8]) -> bool {
    let complete = || {
        let first = read_line(policy, commit, lines(note).first()?).ok()?;
        let change = first.statement.change().ok()?;
        let tree = first.statement.digest("tree", "gitTree")?;
        let expected = statements(&change, commit, tree).ok()?;
        exact_statements(policy, commit, note, &expected)
    };
    complete().is_some()
}

/// Returns the statements of a note if they are exactly these, signed by one key.
fn exact_statements<'p>(
    policy: &'p Policy,
    commit: &str,
    note: &[u8],
    expected: &[Vec<u8>; 3],
) -> Option<Vec<SignedStatement<'p>>> {
    let read = |line| read_line(policy, commit, line).ok();
    let signed: Vec<_> = lines(note).into_iter().map(read).collect::<Option<_>>()?;
    let is_expected = |(one, expected): (&SignedStatement<'_>, &Vec<u8>)| {
        one.payload == *expected && one.signer.key == signed[0].signer.key
    };
    let is_exact = signed.len() == expected.len() && signed.iter().zip(expected).all(is_expected);
    is_exact.then_some(signed)
}

/// Checks that the commit is the one that landed, or that it may be a rewritten one.
fn origin(name: &str, change: &Change, commit: &SignedCommit, findings: &mut Vec<Finding>) {
    if commit.parents.len() != 1 || commit.parents[0] != change.base {
        let hint = format!(
            "the change was verified on {}, which is not the commit's only parent",
            change.base
        );
        findings.push(Finding::error(BASE_DIFFERS, name, hint));
    }
    if change.carried_from.is_some() {
        // A rewritten commit may have another message.
        return;
    }
    let ledger = format!("{}:{}", change.ledger.seq, change.ledger.hash);
    let trailers: [(&str, &dyn std::fmt::Display); 4] = [
        ("Crucible-Run", &change.run),
        ("Crucible-Plan", &change.plan.plan),
        ("Crucible-Verify", &change.verification.report),
        ("Crucible-Ledger", &ledger),
    ];
    for (key, value) in trailers {
        if trailer_values(&commit.message, key).collect::<Vec<_>>() != [value.to_string()] {
            let hint = format!("the commit's trailer {key} is not the {value} of the statement");
            findings.push(Finding::error(TRAILER_DIFFERS, name, hint));
        }
    }
}

fn time(
    policy: &Policy,
    name: &str,
    change: &Change,
    signer: &KeyHolder,
    now: Timestamp,
    findings: &mut Vec<Finding>,
) {
    let at = change.created_at;
    if at.unix_millis() > now.unix_millis().saturating_add(CLOCK_SKEW) {
        let hint = format!(
            "it was made at {at}, which is later than now ({now}); one of the clocks is wrong"
        );
        findings.push(Finding::error(IN_FUTURE, name, hint));
    }
    if let Some(days) = policy.require.max_age_days
        && now.unix_millis().saturating_sub(at.unix_millis()) > DAY.saturating_mul(i64::from(days))
    {
        let hint = format!(
            "it was made at {at}, and the policy accepts {days} days; verify the change again"
        );
        findings.push(Finding::error(TOO_OLD, name, hint));
    }
    if !signer.is_valid_at(at) {
        let hint = format!(
            "it was made at {at}, when the key of {} was not valid",
            signer.name
        );
        findings.push(Finding::error(KEY_NOT_VALID, name, hint));
    }
}

fn gates(policy: &Policy, name: &str, change: &Change, findings: &mut Vec<Finding>) {
    let verification = &change.verification;
    if verification.result != GateVerdict::Passed {
        let hint = format!(
            "the verification ended with {:?}",
            verification.result.as_str()
        );
        findings.push(Finding::error(NOT_PASSED, name, hint));
    }
    if verification.gates.is_empty() {
        findings.push(Finding::error(
            GATE_MISSING,
            name,
            "the statement lists no gate",
        ));
    }
    for gate in &verification.gates {
        if gate.result != GateVerdict::Passed {
            let hint = format!(
                "the gate {:?} ended with {:?}",
                gate.id,
                gate.result.as_str()
            );
            findings.push(Finding::error(NOT_PASSED, name, hint));
        }
        if policy.require.isolation == RequiredIsolation::Complete && !gate.is_isolated() {
            let hint = format!("the gate {:?} ran without complete isolation", gate.id);
            findings.push(Finding::error(ISOLATION_INCOMPLETE, name, hint));
        }
    }
    let ran_something = verification.gates.iter().any(GateResult::runs_command);
    if policy.require.isolation == RequiredIsolation::Complete && !ran_something {
        let hint = "no gate ran a command";
        findings.push(Finding::error(ISOLATION_INCOMPLETE, name, hint));
    }
    for required in &policy.require.gates {
        if !verification.gates.iter().any(|gate| gate.id == *required) {
            let hint = format!(
                "the policy requires the gate {required:?}, which the statement does not list"
            );
            findings.push(Finding::error(GATE_MISSING, name, hint));
        }
    }
}

fn strength(policy: &Policy, name: &str, change: &Change, findings: &mut Vec<Finding>) {
    let verification = &change.verification;
    if policy.require.broken_change && verification.broken_change != Some(GateVerdict::Passed) {
        let hint = "the statement does not say that the gates noticed a broken change";
        findings.push(Finding::error(BROKEN_CHANGE_UNCHECKED, name, hint));
    }
    let Some(least) = policy.require.min_strength else {
        return;
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share of a few thousand mutants is exact enough"
    )]
    let share = verification
        .strength
        .filter(|strength| strength.mutants > 0 && strength.noticed <= strength.mutants)
        .map(|strength| strength.noticed as f64 / strength.mutants as f64);
    if share.is_none_or(|share| share < least) {
        let hint = match share {
            Some(share) => format!(
                "the gates noticed {share:.2} of the mutants, and the policy requires {least:.2}"
            ),
            None => format!("the statement has no strength, and the policy requires {least:.2}"),
        };
        findings.push(Finding::error(STRENGTH_LOW, name, hint));
    }
}

/// Checks the models and agents.
fn authors(policy: &Policy, name: &str, change: &Change, findings: &mut Vec<Finding>) {
    if !policy.models.is_empty() {
        if change.calls.is_empty() {
            let hint = "the statement lists no model call, so the model is unknown";
            findings.push(Finding::error(MODEL_DENIED, name, hint));
        }
        let mut denied: Vec<String> = change
            .calls
            .iter()
            .map(|call| format!("{}/{}", call.provider, call.model))
            .filter(|model| !policy.models.iter().any(|pattern| pattern.is_match(model)))
            .collect();
        denied.sort();
        denied.dedup();
        for model in denied {
            findings.push(Finding::error(
                MODEL_DENIED,
                name,
                format!("the policy does not allow the model {model}"),
            ));
        }
    }
    if let Some(allowed) = &policy.require.agents {
        for agent in change
            .agents
            .iter()
            .filter(|agent| !allowed.contains(agent))
        {
            findings.push(Finding::error(
                AGENT_DENIED,
                name,
                format!("the policy does not allow the agent {agent:?}"),
            ));
        }
    }
}

/// Checks that the policy admits each refusal that a person accepted.
fn accepted(policy: &Policy, name: &str, change: &Change, findings: &mut Vec<Finding>) {
    let admitted = &policy.admit.accepted;
    for code in change
        .accepted
        .iter()
        .filter(|code| !admitted.contains(code))
    {
        let hint = format!(
            "a person accepted the refusal {code:?} of this change, and the policy does not admit that (`[admit] accepted`)"
        );
        findings.push(Finding::error(ACCEPTED, name, hint));
    }
}

/// Checks that enough people approved the plan. Two keys of one person are one person.
fn approvals(policy: &Policy, name: &str, change: &Change, findings: &mut Vec<Finding>) {
    let required = policy.require.approvals;
    let approver = |approval: &Approval| {
        let holder = policy.approvers.iter().find(|holder| {
            holder.is_valid_at(change.created_at)
                && approval.verifies(&holder.key, &change.approved_plan())
        });
        holder.map(|holder| holder.name.as_str())
    };
    let people: BTreeSet<&str> = change.approvals.iter().filter_map(approver).collect();
    if people.len() < required {
        let hint = format!(
            "{} of the policy's approvers approved this plan on this base, and the policy requires {required}; they use `crucible approve` before it lands",
            people.len()
        );
        findings.push(Finding::error(APPROVALS_MISSING, name, hint));
    }
}
