//! Approvals of a run's plan by people: made here, or added from another machine.

use crucible_attest::{Approval, ApprovedPlan, Signer};
use crucible_ledger::{EventRecord, Ledger};
use crucible_model::{Digest, RunId};
use crucible_repo::Oid;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::contract::{Plan, PlanStatus, RunRecord};
use crate::document::{self, versions};
use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::journal::{Entry, Journal, RunObserver};
use crate::layout::{self, RunDir};
use crate::progress::progress;
use crate::run_context::RunContext;
use crate::state::RunState;

/// The fields of the event.
const APPROVAL: &str = "approval";
const PLAN: &str = "plan";
/// The most approvals of a run.
const MAX_APPROVALS: usize = 100;

/// Where an approval comes from.
pub enum ApprovalSource<'a> {
    /// It is signed now.
    Signer(&'a Signer),
    /// It was signed on another machine.
    Given(ApprovalDocument),
}

/// An approval with what it approves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalDocument {
    /// Which version of the document this is.
    pub schema_version: ApprovalVersion,
    /// The run.
    pub run: RunId,
    /// The digest of its plan.
    pub plan: Digest,
    /// The commit that the change is made on.
    pub base: Oid,
    /// The fingerprint of the key.
    pub keyid: String,
    /// The SSH signature, in base64.
    pub sig: String,
}

versions! {
    /// The schema id of an approval.
    pub ApprovalDocument, ApprovalVersion = "crucible-approval-v1"
}

impl ApprovalDocument {
    /// Signs an approval of a plan.
    ///
    /// # Errors
    ///
    /// Fails when the signature does.
    pub async fn sign(
        signer: &Signer,
        run: &RunId,
        plan: Digest,
        base: &Oid,
    ) -> Result<Self, RunError> {
        let approved = ApprovedPlan {
            run,
            plan: &plan,
            base: base.as_str(),
        };
        let signed = signer.approve(&approved).await;
        let Approval { keyid, sig } = signed.map_err(|error| RunError::ApprovalRefused {
            why: error.to_string(),
        })?;
        Ok(Self {
            schema_version: ApprovalVersion::V1,
            run: run.clone(),
            plan,
            base: base.clone(),
            keyid,
            sig,
        })
    }

    /// Signs an approval of the plan of a run on another machine.
    ///
    /// # Errors
    ///
    /// Fails when the text is not a signed plan, or when the signature fails.
    pub async fn sign_text(
        signer: &Signer,
        run: &RunId,
        plan: &[u8],
        base: &Oid,
    ) -> Result<Self, RunError> {
        let refused = |why: String| RunError::ApprovalRefused { why };
        let parsed =
            std::str::from_utf8(plan).map_err(|_| refused("the plan is not UTF-8".to_owned()));
        match Plan::parse(parsed?) {
            Ok(parsed) if parsed.status == PlanStatus::Signed => {
                Self::sign(signer, run, Digest::compute(plan), base).await
            }
            Ok(_) => Err(refused(
                "the plan is a draft; give artifacts/PLAN.md of the run directory".to_owned(),
            )),
            Err(verdict) => {
                let first = verdict
                    .errors()
                    .next()
                    .map_or_else(String::new, |first| format!(": {first}"));
                Err(refused(format!(
                    "the file is not the plan of a run; give artifacts/PLAN.md of the run directory{first}"
                )))
            }
        }
    }

    /// Parses an approval.
    ///
    /// # Errors
    ///
    /// Fails when the bytes are not one.
    pub fn parse(bytes: &[u8]) -> Result<Self, RunError> {
        document::read(bytes).map_err(|fault| RunError::ApprovalRefused {
            why: fault.to_string(),
        })
    }
}

/// Records an approval of the signed plan of a run, before it lands. A second approval with the same key changes nothing.
///
/// # Errors
///
/// Fails when the run has no signed plan or has landed, when another process holds it, when its files were edited, or when
/// the signature fails.
pub async fn approve(
    world: &RunContext<'_>,
    dir: &RunDir,
    source: ApprovalSource<'_>,
    ledger: &mut Ledger,
    observer: &mut dyn RunObserver,
) -> Result<ApprovalDocument, RunError> {
    let record = dir.record()?;
    let _lock = dir.acquire("approving the plan of the run")?;
    let mut journal = Journal::open(
        record.run_id.clone(),
        dir.clone(),
        ledger,
        world.clock,
        observer,
    )?;
    journal.check_files()?;
    let state = progress(dir, journal.events()?)?.state();
    let has_plan = matches!(
        state,
        RunState::Signed | RunState::Patched | RunState::Verified
    );
    if !has_plan {
        return Err(RunError::NothingToApprove {
            id: record.run_id.to_string(),
            state: state.name(),
        });
    }
    let plan = Digest::compute(&dir.read(layout::PLAN)?);
    let document = match source {
        ApprovalSource::Signer(signer) => {
            ApprovalDocument::sign(signer, &record.run_id, plan, &record.base_commit).await?
        }
        ApprovalSource::Given(document) => document,
    };
    let refused = |why: &str| RunError::ApprovalRefused {
        why: why.to_owned(),
    };
    if document.run != record.run_id || document.plan != plan || document.base != record.base_commit
    {
        return Err(refused(
            "it is about another run, another plan or another base; ask for a new one of `crucible approve --plan`",
        ));
    }
    let approval = Approval {
        keyid: document.keyid.clone(),
        sig: document.sig.clone(),
    };
    // It would take the place of a real approval with the same fingerprint.
    if !approval.is_signed(&approved_plan(&record, &plan)) {
        return Err(refused(
            "its signature is not one of its key for this plan; ask for a new one of `crucible approve --plan`",
        ));
    }
    let known = approvals(&record, journal.events()?, plan);
    if known.iter().any(|other| other.keyid == document.keyid) {
        return Ok(document);
    }
    if known.len() >= MAX_APPROVALS {
        return Err(refused("the plan has too many approvals"));
    }
    journal.record(Entry {
        role: "operator",
        event: EventKind::PlanApproved,
        key: format!("approved-{plan}-{}", approval.keyid),
        path: layout::PLAN,
        body: json!({ APPROVAL: approval, PLAN: plan }),
    })?;
    journal.commit()?;
    journal.write_trace()?;
    Ok(document)
}

/// The valid approvals that this plan of a run has, in order. Whose they are is for a policy to say.
pub(super) fn approvals(record: &RunRecord, events: &[EventRecord], plan: Digest) -> Vec<Approval> {
    let text = plan.to_string();
    events
        .iter()
        .filter(|event| event.event == EventKind::PlanApproved.name())
        .filter(|event| event.body.get(PLAN).and_then(Value::as_str) == Some(&text))
        .filter_map(|event| serde_json::from_value(event.body.get(APPROVAL)?.clone()).ok())
        .filter(|approval: &Approval| approval.is_signed(&approved_plan(record, &plan)))
        .collect()
}

fn approved_plan<'a>(record: &'a RunRecord, plan: &'a Digest) -> ApprovedPlan<'a> {
    ApprovedPlan {
        run: &record.run_id,
        plan,
        base: record.base_commit.as_str(),
    }
}
