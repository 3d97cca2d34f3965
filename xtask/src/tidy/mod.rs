//! `cargo xtask tidy`: the invariants of ARCHITECTURE.md that a program can check.
//!
//! Each rule is one file under `rules/`, listed once in [`RULES`]. The workspace is read into a value
//! first and every rule is a pure function over it, so each rule's tests show it failing on a small
//! workspace made in memory.
//!
//! What always holds: a problem names a file and a line, and no rule can be switched off from the
//! code that it judges.

mod modules;
mod rule;
mod rules;
mod source;
mod workspace;

use serde::Serialize;

use crate::error::TaskError;
use crate::root::Root;
use rule::Rule;
pub(crate) use workspace::Workspace;

/// How the findings are shown.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct TidyArgs {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// One thing that does not hold, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Problem {
    path: String,
    line: usize,
    rule: &'static str,
    message: String,
}

/// Every rule. A new one gets a file under `rules/`, a line here, and a row in ARCHITECTURE.md.
const RULES: &[&dyn Rule] = &[
    &rules::circles::Circles,
    &rules::codes::Codes,
    &rules::conformance::Conformance,
    &rules::edges::Edges,
    &rules::effects::Effects,
    &rules::file_length::FileLength,
    &rules::lints::Lints,
    &rules::module_docs::ModuleDocs,
    &rules::names::Names,
    &rules::prose::Prose,
    &rules::reachability::Reachability,
    &rules::dependencies::Dependencies,
    &rules::words::Words,
];

#[derive(Serialize)]
struct TidyReport<'a> {
    schema_version: &'static str,
    verdict: &'static str,
    rules: Vec<&'static str>,
    files: usize,
    problems: &'a [Problem],
}

/// Checks the workspace on disk and prints what it finds.
pub(crate) fn run(root: &Root, args: &TidyArgs) -> Result<(), TaskError> {
    let workspace = Workspace::load(root)?;
    let problems = check_all(&workspace);
    let files = workspace.paths().count();
    if args.json {
        let report = TidyReport {
            schema_version: "crucible-tidy-v1",
            verdict: if problems.is_empty() { "pass" } else { "fail" },
            rules: RULES.iter().map(|rule| rule.name()).collect(),
            files,
            problems: &problems,
        };
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        for Problem {
            path,
            line,
            rule,
            message,
        } in &problems
        {
            println!("{path}:{line}: {rule}: {message}");
        }
        if problems.is_empty() {
            println!("tidy: {} rules hold over {files} files", RULES.len());
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(TaskError::Untidy {
            problems: problems.len(),
        })
    }
}

fn check_all(workspace: &Workspace) -> Vec<Problem> {
    let mut problems: Vec<Problem> = RULES
        .iter()
        .flat_map(|rule| check_one(*rule, workspace))
        .collect();
    problems.sort();
    problems.dedup();
    problems
}

fn check_one(rule: &dyn Rule, workspace: &Workspace) -> Vec<Problem> {
    let mut problems = Vec::new();
    rule.check(workspace, &mut |path, line, message| {
        problems.push(Problem {
            path: path.to_owned(),
            line,
            rule: rule.name(),
            message,
        });
    });
    problems
}

/// What a rule says about a workspace, as `path:line: message` lines, for the rules' own tests.
#[cfg(test)]
fn rule_findings(rule: &dyn Rule, workspace: &Workspace) -> Vec<String> {
    let mut lines: Vec<String> = check_one(rule, workspace)
        .into_iter()
        .map(|problem| format!("{}:{}: {}", problem.path, problem.line, problem.message))
        .collect();
    lines.sort();
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name()).collect();
        assert_eq!(names.len(), RULES.len());
    }

    #[test]
    fn problems_are_sorted_and_deduplicated() {
        let workspace = Workspace::from_files(
            &[
                ("crates/b/src/lib.rs", "fn b() {}"),
                ("crates/a/src/lib.rs", "fn a() {}"),
            ],
            vec![
                workspace::Package::sample("crucible-b"),
                workspace::Package::sample("crucible-a"),
            ],
        );
        let problems = check_all(&workspace);
        let mut sorted = problems.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(problems, sorted);
        assert!(
            problems
                .iter()
                .any(|problem| problem.path == "crates/a/src/lib.rs")
        );
    }
}
