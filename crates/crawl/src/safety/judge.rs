//! Judges any plan file: parsed strictly, checked against its schema, then by the safety rules.

use crucible_model::{ByteLimit, Code, Finding, UniqueJson, Verdict, short_line};

use super::finding::{CLAIM_DIFFERS, HASH_DIFFERS};
use super::{PlanSafety, Workspace, validate_plan_safety};
use crate::artifact::{ArtifactType, PlanV1, check_json};

/// The largest plan that is read.
const MAX_PLAN_SIZE: ByteLimit = ByteLimit(8 << 20);
/// The most schema problems that are listed.
const MAX_PROBLEMS: usize = 50;

/// Judges the bytes of any `viv-git-plan.v1`: by its schema, and if that matches, by the safety rules.
///
/// The plan's own safety verdict is ignored: the rules are applied again, and a difference is a warning.
///
/// # Errors
///
/// The verdict on its schema, if that fails.
pub fn judge_plan(bytes: &[u8], workspace: &Workspace) -> Result<PlanSafety, Verdict> {
    let plan = read(bytes).map_err(Verdict::new)?;
    let mut safety = validate_plan_safety(&plan, workspace);
    if PlanV1::hash_of(&plan.steps) != plan.plan_hash {
        safety.verdict.push(Finding::warning(
            HASH_DIFFERS,
            plan.plan_hash.as_str(),
            "the plan's hash does not match its steps; the plan was edited, or another program wrote it",
        ));
    }
    let claims_safe = plan.safety_validated && plan.safety_violations.is_empty();
    if claims_safe != safety.is_valid() {
        safety.verdict.push(Finding::warning(
            CLAIM_DIFFERS,
            format!("safety_validated: {}", plan.safety_validated),
            "the plan states another verdict about its own safety; only this one counts",
        ));
    }
    Ok(safety)
}

fn read(bytes: &[u8]) -> Result<PlanV1, Vec<Finding>> {
    const TOO_LARGE: Code = Code::new("build-plan-too-large");
    const NO_JSON: Code = Code::new("build-plan-no-json");
    const SCHEMA: Code = Code::new("build-plan-schema");
    let refused = |code: &Code, subject: &str, hint: &str| {
        vec![Finding::error(code.clone(), short_line(subject, 300), hint)]
    };
    if bytes.len() as u64 > MAX_PLAN_SIZE.0 {
        return Err(refused(
            &TOO_LARGE,
            &format!("{} bytes", bytes.len()),
            "a plan has at most 8 MiB",
        ));
    }
    let UniqueJson(value) = serde_json::from_slice(bytes).map_err(|error| {
        refused(
            &NO_JSON,
            &error.to_string(),
            "a plan is one JSON object without repeated keys",
        )
    })?;
    let hint =
        "the document is not a viv-git-plan.v1; follow docs/contracts/viv-git-plan.v1.schema.json";
    let problems = check_json(ArtifactType::Plan, &value);
    if !problems.is_empty() {
        return Err(problems
            .iter()
            .take(MAX_PROBLEMS)
            .flat_map(|problem| refused(&SCHEMA, problem, hint))
            .collect());
    }
    serde_json::from_value(value).map_err(|error| refused(&SCHEMA, &error.to_string(), hint))
}
