//! Reads the plan for a patch outside a run: parsed strictly, and trusted only if signed.
//!
//! A plan claims to be signed. In a run directory, the signature beside it must cover its exact bytes and its
//! reviews, so a plan edited after signing allows nothing.

use std::path::Path;

use crucible_host::fs::read_up_to;
use crucible_model::{ByteLimit, Code, Finding, Verdict};

use crate::contract::{Plan, PlanStatus};
use crate::error::RunError;
use crate::layout::{self, RunDir};
use crate::plan_evidence::check_signature;

/// Maximum size; plans are short.
const MAX_PLAN: ByteLimit = ByteLimit(1 << 20);

const UNSIGNED: Code = Code::new("patch-plan-unsigned");
const UNREADABLE: Code = Code::new("patch-plan-unreadable");

/// What a plan file amounts to.
#[derive(Debug, Clone, PartialEq)]
pub enum SignedPlan {
    /// The plan is signed and can be used.
    Signed(Box<Plan>),
    /// The plan is not usable; the verdict says why.
    Refused(Verdict),
}

/// Reads the plan at `path`.
///
/// # Errors
///
/// Fails when the file or the signature beside it cannot be read.
pub fn signed_plan(path: &Path) -> Result<SignedPlan, RunError> {
    let bytes = read_up_to(path, MAX_PLAN)?;
    let refuse = |code, hint: &str| {
        Ok(SignedPlan::Refused(Verdict::new(vec![Finding::error(
            code,
            path.to_string_lossy(),
            hint,
        )])))
    };
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return refuse(
            UNREADABLE,
            "the plan is not UTF-8, so its meaning is ambiguous; write it again",
        );
    };
    let plan = match Plan::parse(text) {
        Ok(plan) => plan,
        Err(verdict) => return Ok(SignedPlan::Refused(verdict)),
    };
    if plan.status != PlanStatus::Signed {
        return refuse(
            UNSIGNED,
            "its status is not SIGNED; only an approved plan allows a patch",
        );
    }
    match run_of(path) {
        Some(run) if !check_signature(&run, &bytes)?.passes() => refuse(
            UNSIGNED,
            "the plan or a review in this run directory was edited after signing. Start a new run",
        ),
        _ => Ok(SignedPlan::Signed(Box::new(plan))),
    }
}

/// Returns the run that has the file among its artifacts, if any.
#[must_use]
pub fn run_of(path: &Path) -> Option<RunDir> {
    let path = path.canonicalize().ok()?;
    let artifacts = path.parent()?;
    let run = RunDir::from_path(artifacts.parent()?.to_owned());
    let is_signed_there = artifacts.file_name()? == "artifacts" && run.has(layout::SIGNATURE);
    (run.has(layout::RUN) || is_signed_there).then_some(run)
}
