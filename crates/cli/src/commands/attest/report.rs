//! The judgement of commits as text and as a document.

use crucible_attest::Admission;
use crucible_model::{ExitStatus, Failure, Verdict, counted};
use crucible_run::CommitsCheck;
use serde_json::{Value, json};

use crate::app::App;

/// The schema of the document.
const SCHEMA: &str = "crucible-attest-verify-v1";

/// Prints the judgement, and returns how the command exits.
pub(super) fn show(app: &App, check: &CommitsCheck) -> Result<ExitStatus, Failure> {
    if app.output.is_json() {
        let commits: Vec<Value> = check.commits.iter().map(|checked| {
            let findings = checked.judgement.verdict.findings();
            match &checked.judgement.admission {
                Some(admission) => {
                    let (by, name) = words(admission);
                    json!({ "commit": checked.commit, "admitted": true, "by": by, "name": name, "findings": findings })
                }
                None => json!({ "commit": checked.commit, "admitted": false, "findings": findings }),
            }
        }).collect();
        return document(app, &check.verdict, &json!(commits));
    }
    let admitted = check.admitted();
    let reasons: Vec<String> = admitted
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    let total = counted(check.commits.len() as u64, "commit");
    let passed = match reasons.is_empty() {
        true => format!("{total}: nothing to judge"),
        false => format!("{total} admitted: {}", reasons.join(", ")),
    };
    app.output.verdict(&check.verdict.report(SCHEMA), &passed)
}

/// Prints the document of a judgement.
pub(super) fn document(
    app: &App,
    verdict: &Verdict,
    commits: &Value,
) -> Result<ExitStatus, Failure> {
    let outcome = verdict.outcome();
    app.output.json(&json!({
        "schema_version": SCHEMA, "verdict": outcome, "findings": verdict.findings(), "commits": commits,
    }))?;
    Ok(outcome.exit_status())
}

/// The schema of the document, for the text form of a verdict.
pub(super) const fn schema() -> &'static str {
    SCHEMA
}

fn words(admission: &Admission) -> (&'static str, Option<&str>) {
    match admission {
        Admission::Statement { signer } => ("statement", Some(signer)),
        Admission::Person { name } => ("person", Some(name)),
        Admission::Merge => ("merge", None),
    }
}
