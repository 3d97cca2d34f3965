//! Promotion and demotion: a person approves exactly these bytes, or the approval is withdrawn.
//!
//! A promotion rests on the newest verification, which passed with the very bytes that lie in the project now; who
//! promotes is named. A
//! demotion needs a reason, and a skill whose runs keep failing is demoted by Crucible itself.
//!
//! What always holds: what is promoted is what was verified, byte for byte; the ledger is written before the registry,
//! which is derived
//! from it.

use crucible_host::lock::LockError;
use crucible_ledger::{
    Ledger, LedgerError, Moment, NewPromotion, PromotionRow, SideEffect, SkillGateRow, SkillRow,
    SkillRunOutcome, SkillRunRow, SkillStatus, VerificationRow, VerificationStatus,
};
use crucible_model::{
    ByteLimit, Code, Digest, Finding, RepoPath, RepoPathError, Verdict, is_hidden, says_nothing,
};
use crucible_repo::{LinkPolicy, TreeEditError, read_tree_file};
use crucible_secrets::Scanner;

use crate::build::{SettleError, settle_builds};
use crate::context::ForgeContext;
use crate::gates::SkillGate;
use crate::grants::Grants;
use crate::name::SkillName;
use crate::project::ForgeProject;
use crate::python::MAX_SKILL_BYTES;
use crate::registry::SkillRegistry;
use crate::status::{SkillStep, StepRefused};

/// Who demotes where nobody does: no person can take this name.
const CRUCIBLE: &str = "crucible";
/// The longest name of an approver, in characters.
const MAX_NAME_LEN: usize = 120;
/// The longest reason, in characters.
const MAX_REASON_LEN: usize = 1_000;

/// The person who approves a promotion or a demotion, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    by: String,
    reason: String,
}

/// Nobody is named, or not so that it can be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    /// It says nothing.
    #[error("{part} is empty; {hint}")]
    Empty {
        /// Which text.
        part: &'static str,
        /// What to write.
        hint: &'static str,
    },
    /// It says too much.
    #[error("{part} has {chars} characters, at most {most} are taken")]
    Long {
        /// Which text.
        part: &'static str,
        /// How many.
        chars: usize,
        /// The limit in characters.
        most: usize,
    },
    /// It is not seen as itself.
    #[error(
        "{part} holds {found}, which is not seen as itself; write it as one line of plain text"
    )]
    Hidden {
        /// Which text.
        part: &'static str,
        /// The character, escaped.
        found: String,
    },
    /// It is the program's own name.
    #[error("{CRUCIBLE:?} is reserved for automatic demotion; use the name of a person")]
    Reserved,
    /// It looks like a secret, which is not shown.
    #[error(
        "{part} contains what looks like a secret ({rule}); remove it, because the ledger keeps it permanently"
    )]
    Secret {
        /// Which text.
        part: &'static str,
        /// By which rule.
        rule: String,
    },
}

impl Approval {
    /// Looks at who it is, and at the reason.
    ///
    /// # Errors
    ///
    /// [`ApprovalError`] where one of them could not be kept, or nobody is named.
    pub fn new(by: &str, reason: &str) -> Result<Self, ApprovalError> {
        let (who, why) = ("the name of the person who approves it", "the reason");
        if says_nothing(by) {
            return Err(ApprovalError::Empty {
                part: who,
                hint: "name a person who can be asked: --by \"$(git config user.name)\"",
            });
        }
        if says_nothing(reason) {
            return Err(ApprovalError::Empty {
                part: why,
                hint: "give a reason: --reason TEXT",
            });
        }
        for (part, text, most) in [(who, by, MAX_NAME_LEN), (why, reason, MAX_REASON_LEN)] {
            let chars = text.chars().count();
            if chars > most {
                return Err(ApprovalError::Long { part, chars, most });
            }
            if let Some(hidden) = text.chars().find(|c| is_hidden(*c)) {
                return Err(ApprovalError::Hidden {
                    part,
                    found: hidden.escape_default().to_string(),
                });
            }
            if let Some(found) = Scanner::builtin().scan(text.as_bytes()).first() {
                return Err(ApprovalError::Secret {
                    part,
                    rule: found.rule.to_string(),
                });
            }
        }
        if by.trim().to_lowercase() == CRUCIBLE {
            return Err(ApprovalError::Reserved);
        }
        Ok(Self {
            by: by.trim().to_owned(),
            reason: reason.trim().to_owned(),
        })
    }

    /// Who it is.
    #[must_use]
    pub fn by(&self) -> &str {
        &self.by
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Whether held-out examples have to have passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExamplesRule {
    /// A skill without examples can be promoted.
    Optional,
    /// Its verification has to have the gate of examples, passed.
    Required,
}

/// What came of a step into trust or out of it.
#[derive(Debug)]
pub struct TrustChange {
    /// Whether it was taken, and what deserves a look.
    pub verdict: Verdict,
    /// The row of it, where it was taken.
    pub promotion: Option<PromotionRow>,
}

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The ledger knows no such skill in this project.
    #[error("this project has no skill {name}")]
    Unknown {
        /// The name as given.
        name: SkillName,
    },
    /// What a killed build left cannot be settled.
    #[error(transparent)]
    Unsettled(#[from] SettleError),
    /// It stands elsewhere.
    #[error(transparent)]
    Step(#[from] StepRefused),
    /// Another process is at work on it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The ledger does not take it.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A name makes no path.
    #[error(transparent)]
    Path(#[from] RepoPathError),
}

/// Promotes a skill whose newest verification passed with the bytes that lie in the project now.
///
/// # Errors
///
/// [`TrustError`]. A promotion that is refused for what the files are is a verdict.
pub fn promote_skill(
    world: &ForgeContext<'_>,
    ledger: &mut Ledger,
    project: &ForgeProject,
    name: &SkillName,
    approval: &Approval,
    rule: ExamplesRule,
) -> Result<TrustChange, TrustError> {
    let _alone = project.lock(&world.home, name, "crucible skill promote")?;
    settle_builds(world, project, ledger, name)?;
    let skill = find_skill(ledger, project, name)?;
    SkillStep::Promote.check(name, skill.status)?;
    let newest = ledger.verifications(skill.id)?.pop();
    let gates = match &newest {
        Some(newest) => ledger.skill_gates(newest.id)?,
        None => Vec::new(),
    };
    let paths = project.paths(name)?;
    let files = paths
        .files()
        .map(|path| (path.clone(), digest_of(project, path)));
    let mut verdict = judge_promotion(name, newest.as_ref(), &gates, &files, rule);
    verdict.merge(judge_grants(
        name,
        serde_json::from_value(skill.grants),
        skill.side_effect,
    ));
    let Some(newest) = newest.filter(|_| verdict.passes()) else {
        return Ok(TrustChange {
            verdict,
            promotion: None,
        });
    };
    let row = ledger.promote_skill(&NewPromotion {
        moment: Moment::now(world.clock),
        proposal: skill.id,
        verification: Some(newest.id),
        from: SkillStatus::Verified,
        to: SkillStatus::Trusted,
        approved_by: approval.by.clone(),
        reason: approval.reason.clone(),
        skill: newest.skill,
        test: newest.test,
    })?;
    verdict.merge(write_registry(world, ledger, project, name));
    Ok(TrustChange {
        verdict,
        promotion: Some(row),
    })
}

/// Takes trust away from a skill: it counts as built.
///
/// # Errors
///
/// [`TrustError`].
pub fn demote_skill(
    world: &ForgeContext<'_>,
    ledger: &mut Ledger,
    project: &ForgeProject,
    name: &SkillName,
    approval: &Approval,
) -> Result<TrustChange, TrustError> {
    let _alone = project.lock(&world.home, name, "crucible skill demote")?;
    let skill = find_skill(ledger, project, name)?;
    SkillStep::Demote.check(name, skill.status)?;
    let Some(trust) = ledger.skill_trust(project.key(), name.as_str())? else {
        return Err(TrustError::Unknown { name: name.clone() });
    };
    let row = take_away(world, ledger, &trust, &approval.by, &approval.reason)?;
    let verdict = write_registry(world, ledger, project, name);
    Ok(TrustChange {
        verdict,
        promotion: Some(row),
    })
}

/// Demotes a skill whose newest runs by this promotion all failed or were denied, `most` of them; zero means never. The
/// lock of the skill is not
/// needed: the ledger takes the step once, whichever other processes run.
pub(crate) fn demote_failing(
    world: &ForgeContext<'_>,
    ledger: &mut Ledger,
    project: &ForgeProject,
    name: &SkillName,
    trust: &PromotionRow,
    most: u32,
) -> Result<Option<TrustChange>, TrustError> {
    let runs = ledger.skill_runs(trust.proposal, most.saturating_mul(8).saturating_add(64))?;
    if !keeps_failing(&runs, trust.event, most) {
        return Ok(None);
    }
    let reason = format!(
        "its last {most} runs failed or were denied, [forge] demote_after_failures is {most}"
    );
    match take_away(world, ledger, trust, CRUCIBLE, &reason) {
        Ok(row) => {
            let verdict = write_registry(world, ledger, project, name);
            Ok(Some(TrustChange {
                verdict,
                promotion: Some(row),
            }))
        }
        // Somebody demoted it meanwhile.
        Err(LedgerError::SkillMoved { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether the newest runs by a promotion, `most` of them, failed or were denied. Runs that were refused say nothing of
/// the skill.
fn keeps_failing(newest_first: &[SkillRunRow], promotion: u64, most: u32) -> bool {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut ran = newest_first
        .iter()
        .filter(|run| run.outcome != SkillRunOutcome::Refused);
    most > 0
        && (0..most).all(|_| {
            ran.next().is_some_and(|run| {
                run.promotion == Some(promotion)
                    && matches!(
                        run.outcome,
                        SkillRunOutcome::Failed | SkillRunOutcome::Denied
                    )
            })
        })
}

/// Whether a skill may be promoted: `newest` is its newest verification with its gates, `files` are its two files as
/// they lie there now.
fn judge_promotion(
    name: &SkillName,
    newest: Option<&VerificationRow>,
    gates: &[SkillGateRow],
    files: &[(RepoPath, Result<Digest, String>); 2],
    rule: ExamplesRule,
) -> Verdict {
    let Some(newest) = newest.filter(|row| row.status == VerificationStatus::Passed) else {
        let hint =
            format!("Its newest verification did not pass. Run `crucible skill verify {name}`.");
        return Verdict::new(vec![Finding::error(
            Code::new("forge-promote-unverified"),
            name.to_string(),
            hint,
        )]);
    };
    let mut verdict = Verdict::default();
    for gate in SkillGate::REQUIRED {
        if !gates.iter().any(|row| gate.is_of(row) && row.passed) {
            let hint = format!(
                "Its newest verification has no passed gate {}. Run `crucible skill verify {name}`.",
                gate.as_str()
            );
            let code = Code::new("forge-promote-unverified");
            verdict.push(Finding::error(code, name.to_string(), hint));
        }
    }
    for ((path, found), verified) in files.iter().zip([newest.skill, newest.test]) {
        let hint = match found {
            Ok(digest) if *digest == verified => continue,
            Ok(_) => {
                format!(
                    "It is not what was verified. Run `crucible skill verify {name}`, and promote then."
                )
            }
            Err(why) => format!("It cannot be read: {why}. Put back what was verified."),
        };
        verdict.push(Finding::error(
            Code::new("forge-promote-changed"),
            path.to_string(),
            hint,
        ));
    }
    let examples = gates
        .iter()
        .any(|gate| SkillGate::Examples.is_of(gate) && gate.passed);
    if rule == ExamplesRule::Required && !examples {
        verdict.push(Finding::error(
            Code::new("forge-promote-examples"),
            name.to_string(),
            "[forge] examples is \"required\", and no held-out examples of this skill passed. They are given with `skill propose --examples FILE`: propose it again under another name.",
        ));
    }
    verdict
}

/// Whether a run would let the skill have what it was granted when it was proposed, and what of that deserves a look.
fn judge_grants(
    name: &SkillName,
    grants: Result<Grants, serde_json::Error>,
    class: SideEffect,
) -> Verdict {
    let refused = |why: &dyn std::fmt::Display| {
        let hint =
            format!("{why}. No run lets a skill have that: propose it again under another name.");
        let code = Code::new("forge-promote-grants");
        Verdict::new(vec![Finding::error(code, name.to_string(), hint)])
    };
    match grants {
        Err(error) => refused(&format_args!("what it was granted cannot be read: {error}")),
        Ok(grants) => grants
            .check(class)
            .map_or_else(|error| refused(&error), |()| grants.judge()),
    }
}

fn find_skill(
    ledger: &Ledger,
    project: &ForgeProject,
    name: &SkillName,
) -> Result<SkillRow, TrustError> {
    ledger
        .skill(project.key(), name.as_str())?
        .ok_or_else(|| TrustError::Unknown { name: name.clone() })
}

fn take_away(
    world: &ForgeContext<'_>,
    ledger: &mut Ledger,
    trust: &PromotionRow,
    by: &str,
    reason: &str,
) -> Result<PromotionRow, LedgerError> {
    ledger.promote_skill(&NewPromotion {
        moment: Moment::now(world.clock),
        proposal: trust.proposal,
        verification: None,
        from: SkillStatus::Trusted,
        // Not verified: what is no longer trusted is verified anew, or built anew, before anybody answers for it again.
        to: SkillStatus::Built,
        approved_by: by.to_owned(),
        reason: reason.to_owned(),
        skill: trust.skill,
        test: trust.test,
    })
}

/// Writes the registry; if that fails, the step is still valid, and the next step writes the registry.
fn write_registry(
    world: &ForgeContext<'_>,
    ledger: &Ledger,
    project: &ForgeProject,
    name: &SkillName,
) -> Verdict {
    match SkillRegistry::write(world, ledger, project) {
        Ok(_) => Verdict::default(),
        Err(error) => Verdict::new(vec![Finding::warning(
            Code::new("forge-registry-unwritten"),
            name.to_string(),
            format!("The ledger has it, the registry could not be written: {error}."),
        )]),
    }
}

/// What a file of a skill holds: read once, through no link.
pub(crate) fn read_skill_file(project: &ForgeProject, path: &RepoPath) -> Result<Vec<u8>, String> {
    let most = ByteLimit(u64::try_from(MAX_SKILL_BYTES).unwrap_or(u64::MAX));
    match read_tree_file(project.root(), path, LinkPolicy::Refuse, most) {
        Ok(file) => file.bytes.ok_or_else(|| "it is not there".to_owned()),
        Err(TreeEditError::Blocked { why, .. }) => Err(why.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn digest_of(project: &ForgeProject, path: &RepoPath) -> Result<Digest, String> {
    read_skill_file(project, path).map(|bytes| Digest::compute(&bytes))
}

#[cfg(test)]
mod tests;
