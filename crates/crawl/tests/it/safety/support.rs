//! Plans to judge.

use std::path::PathBuf;

use crucible_crawl::{PlanSafety, PlanStep, PlanV1, Workspace, validate_plan_safety};
use serde_json::json;

/// A step that runs `command` at the top level.
pub(crate) fn step(command: &str) -> PlanStep {
    PlanStep {
        name: "build".to_owned(),
        cmd: command.to_owned(),
        cwd: ".".to_owned(),
        env: [].into(),
        note: String::new(),
    }
}

/// A plan with these steps and a confidently detected build system.
pub(crate) fn plan(system: &str, steps: Vec<PlanStep>) -> PlanV1 {
    let hash = PlanV1::hash_of(&steps);
    let frame = json!({
        "schema": "viv-git-plan.v1", "created_at": "2026-01-02T03:04:05Z", "plan_hash": hash,
        "prompt_hash": "000000000000",
        "repo": {"full_name": "owner/repo", "url": "https://github.com/owner/repo", "selected_ref": "v1",
                 "resolved_commit": "0123456789012345678901234567890123456789"},
        "detected": {"build_system": system, "confidence": 0.95},
        "dependencies": {"tools": [], "notes": ""},
        "steps": [], "warnings": [], "debate_rounds": 1, "accepted_suggestions": [], "rejected_suggestions": [],
        "safety_validated": true, "safety_violations": []
    });
    let mut plan: PlanV1 = serde_json::from_value(frame).unwrap();
    plan.steps = steps;
    plan
}

/// A workspace without links.
pub(crate) fn workspace() -> Workspace {
    Workspace {
        root: PathBuf::from("/workspace"),
        ..Workspace::default()
    }
}

/// The verdict on one command.
pub(crate) fn judge(system: &str, command: &str) -> PlanSafety {
    validate_plan_safety(&plan(system, vec![step(command)]), &workspace())
}

/// The codes that reject, in order.
pub(crate) fn refusals(safety: &PlanSafety) -> Vec<String> {
    safety
        .verdict
        .errors()
        .map(|finding| finding.code.to_string())
        .collect()
}

/// The codes that only warn.
pub(crate) fn warnings(safety: &PlanSafety) -> Vec<String> {
    let findings = safety.verdict.findings().iter();
    let refuses = |code: &String| {
        safety
            .verdict
            .errors()
            .any(|finding| finding.code.as_str() == code)
    };
    findings
        .map(|finding| finding.code.to_string())
        .filter(|code| !refuses(code))
        .collect()
}
