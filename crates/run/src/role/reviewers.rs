//! The two local reviewers of a plan: the contract guardian and the cost controller. Pure.

use crucible_host::words::shell_word;
use crucible_model::{Code, Finding, RepoPath, Verdict, counted};
use crucible_pack::{ContextPack, FileClass};
use crucible_patch::is_test_path;

use crate::contract::{Guardrails, Plan, PlanDocuments, RunRecord};
use crate::role::format::{LEAST_TOKENS, choose, max_tokens};

const NOTHING_TO_EDIT: Code = Code::new("plan-nothing-to-edit");
const NAMED_UNSEEN: Code = Code::new("plan-named-unseen");
const BUDGET_TOO_SMALL: Code = Code::new("plan-budget-too-small");
const ANSWER_TOO_LARGE: Code = Code::new("plan-answer-too-large");
const NO_GATES: Code = Code::new("plan-no-gates");

/// How many files a hint names.
const MAX_PERMITTED: usize = 3;

/// Checks a plan and its documents against the contract: form, gates, and whether everything that may change
/// was shown. `gate_files` are the files that judge the change.
pub(crate) fn contract_guardian(
    documents: &PlanDocuments<'_>,
    pack: &ContextPack,
    gates: usize,
    gate_files: &[RepoPath],
) -> Verdict {
    let plan = documents.plan;
    let mut verdict = documents.check();
    if gates == 0 {
        verdict.push(Finding::error(
            NO_GATES,
            "Gates",
            "Name a gate in .crucible/config.toml: what proves a change?",
        ));
    }
    if plan.scope_allow.is_empty() {
        let judging = gate_files.iter().filter(|path| {
            FileClass::from_path(path) == FileClass::Source
                && !is_test_path(path)
                && pack.files.iter().any(|file| file.path == path.as_str())
        });
        let options: Vec<String> = judging
            .take(MAX_PERMITTED)
            .map(|path| format!("--file {}", shell_word(path.as_str())))
            .collect();
        let hint = if options.is_empty() {
            "Name the files that may change with --file, or name them in the goal.".to_owned()
        } else {
            format!(
                "The sources that were found are part of a gate, and stay as they are unless you name them: {}.",
                options.join(" ")
            )
        };
        verdict.push(Finding::error(NOTHING_TO_EDIT, "Scope-Allow", hint));
    }
    let unseen = |path: &&RepoPath| {
        let omitted = pack
            .omitted
            .iter()
            .any(|row| row.path == path.as_str() && row.reason.as_str() != "not_found");
        let cut = pack
            .files
            .iter()
            .any(|file| file.path == path.as_str() && file.truncated);
        omitted || cut
    };
    for path in plan.names.iter().filter(unseen) {
        let hint = "The model cannot be shown this file whole; raise [run] max_total_bytes, or name another file.";
        verdict.push(Finding::error(NAMED_UNSEEN, path.as_str(), hint));
    }
    verdict
}

/// Checks a plan's budget against the run's limits.
pub(crate) fn cost_controller(
    record: &RunRecord,
    guardrails: &Guardrails,
    plan: &Plan,
    pack: &ContextPack,
) -> Verdict {
    let mut verdict = Verdict::default();
    let answers = guardrails
        .max_iterations
        .saturating_mul(record.settings.candidates);
    if record.settings.max_calls < answers {
        let calls = counted(record.settings.max_calls, "call");
        let subject = format!("{calls} for {}", counted(answers, "answer"));
        let hint = "Each attempt is one call at least: raise [llm.budget] calls or lower [run] max_iterations.";
        verdict.push(Finding::warning(BUDGET_TOO_SMALL, subject, hint));
    }
    let tokens = max_tokens(&record.settings);
    if tokens < LEAST_TOKENS {
        let hint = "No change can be written in so few tokens: raise the provider's max_tokens.";
        verdict.push(Finding::error(
            ANSWER_TOO_LARGE,
            counted(tokens, "token"),
            hint,
        ));
    } else if let Some((bytes, tokens)) = choose(&record.settings, plan, pack, false).too_large {
        let subject = format!("{bytes} bytes in {tokens} tokens");
        let hint = "The files cannot be answered whole, so their changed parts are asked for. Raise the provider's max_tokens to \
                    have them whole.";
        verdict.push(Finding::warning(ANSWER_TOO_LARGE, subject, hint));
    }
    verdict
}

#[cfg(test)]
mod tests {
    use crucible_pack::{PackVersion, PackedFile};

    use super::*;
    use crate::role::chair;

    fn pack(path: &str, truncated: bool) -> ContextPack {
        let file = PackedFile {
            path: path.into(),
            why: "requested".into(),
            content: "x".repeat(9000),
            truncated,
            ranges: Vec::new(),
        };
        ContextPack {
            schema_version: PackVersion::V1,
            goal: String::new(),
            repo_slug: "r".into(),
            summary: String::new(),
            files: vec![file],
            omitted: vec![],
        }
    }

    fn plan(scope: &str) -> Plan {
        let text = format!(
            "Status: DRAFT\nScope-Allow: {scope}\nScope-Deny:\nNames: {scope}\nGates: lite, plan_check, patch_check, behavior_catalog_check\nStop: verified\nBudgets: 1\nBehaviors:\nResults: R001\n"
        );
        Plan::parse(&text).unwrap()
    }

    #[test]
    fn incomplete_plan_is_blocked() {
        let results = chair::expected_results();
        let reasons = chair::render_reasons("fix it");
        let passes = |scope: &str, truncated: bool, gates: usize, results: &str| {
            let documents = PlanDocuments {
                plan: &plan(scope),
                reasons: Some(&reasons),
                results: Some(results),
                behaviors: &[],
            };
            contract_guardian(&documents, &pack("src/a.rs", truncated), gates, &[]).passes()
        };
        assert!(passes("src/a.rs", false, 1, results));
        assert!(!passes("src/a.rs", false, 0, results));
        assert!(!passes("src/a.rs", true, 1, results));
        assert!(!passes("", false, 1, results));
        assert!(!passes("src/a.rs", false, 1, "# Expected results\n"));
    }

    #[test]
    fn blocked_plan_names_gate_sources() {
        let results = chair::expected_results();
        let reasons = chair::render_reasons("fix it");
        let plan = plan("");
        let documents = PlanDocuments {
            plan: &plan,
            reasons: Some(&reasons),
            results: Some(results),
            behaviors: &[],
        };
        let hint = |pack: &ContextPack| {
            let gate_files: Vec<RepoPath> = ["src/a b.rs", "src/unseen.rs", "run.sh"]
                .iter()
                .map(|path| path.parse().unwrap())
                .collect();
            let verdict = contract_guardian(&documents, pack, 1, &gate_files);
            verdict
                .errors()
                .find(|finding| finding.code == NOTHING_TO_EDIT)
                .unwrap()
                .hint
                .clone()
        };
        assert!(hint(&pack("src/a b.rs", false)).ends_with("name them: --file 'src/a b.rs'."));
        assert!(
            hint(&pack("src/b.rs", false))
                .starts_with("Name the files that may change with --file")
        );
    }
}
