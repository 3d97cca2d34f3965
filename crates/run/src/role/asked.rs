//! What chair and reviewers are asked when no code serves them, and how their answers are read. Pure.
//!
//! A chair proposes: which files are needed, and where the change may go. What it may not choose stays with code: the gates,
//! the budgets, the results, and everything that only the operator may name. A reviewer may block and never approve what
//! code blocks.

use std::collections::HashSet;

use crucible_llm::Message;
use crucible_model::{Code, Digest, Finding, PathPrefix, PromptBuilder, RepoPath, Untrusted, Verdict};
use crucible_pack::{ContextPack, FileRequest, Mode, Need};


use crate::analysis::Analysis;
use crate::contract::{Plan, Review, ReviewVerdict, RunRecord, RunRole, key_lines};
use crate::dispatch::evidence::{FILE_REQUEST_FORM, PLAN_FORM, REVIEW_FORM};
use crate::role::chair::is_protected;
use crate::role::patchmaker::Brief;

const NO_REQUEST: Code = Code::new("run-request-unclear");
const OVER_BUDGET: Code = Code::new("run-request-over-budget");
const UNKNOWN_FILE: Code = Code::new("run-request-unknown-file");
const NO_PLAN: Code = Code::new("run-plan-unclear");
const NOT_YOURS: Code = Code::new("run-plan-oversteps");
const UNSEEN: Code = Code::new("run-plan-unseen");
const NO_REVIEW: Code = Code::new("run-review-unclear");

/// How many files of the repository a chair is told of.
const MOST_LISTED: usize = 400;
/// How many reasons of a review are kept, and how long each is, in characters.
const MOST_REASONS: usize = 20;
const LONGEST_REASON: usize = 300;

/// Asks a chair for the files that are needed.
pub(crate) fn files_question(
    record: &RunRecord,
    analysis: &Analysis,
    ranked: &FileRequest,
    tracked: &[(RepoPath, u64)],
    brief: Option<&Brief>,
) -> Vec<Message> {
    let mut listed: Vec<&str> = ranked.needs.iter().map(|need| need.path.as_str()).collect();
    let first: HashSet<&str> = listed.iter().copied().collect();
    listed.extend(tracked.iter().map(|(path, _)| path.as_str()).filter(|path| !first.contains(path)));
    let left = listed.len().saturating_sub(MOST_LISTED) as u64;
    listed.truncate(MOST_LISTED);
    let mut prompt = PromptBuilder::new()
        .ours("You chair a change of source code. Say which files have to be read to reach the goal. A program reads your answer.\n\n")
        .untrusted("files of the repository, the likeliest first", &Untrusted::new(listed.join("\n")));
    if left > 0 {
        prompt = prompt.number(left).ours(" more files are not listed.\n");
    }
    prompt = failing(prompt, analysis);
    prompt = refused(prompt, brief);
    let prompt = prompt
        .ours("\nGoal: ")
        .operator(&record.goal)
        .ours("\nBudget: max_files=")
        .number(record.settings.max_files)
        .ours(" max_total_bytes=")
        .number(record.settings.max_total_bytes)
        .ours("\n\nAnswer:\n")
        .ours(FILE_REQUEST_FORM);
    vec![Message::user(prompt.build())]
}

/// Reads which files a chair wants. What the operator named comes first whatever it says, the goal is the run's, and the budget
/// is no larger than the run's. `tracked` are the files there are.
pub(crate) fn read_files(
    answer: &Untrusted,
    record: &RunRecord,
    tracked: &[(RepoPath, u64)],
) -> Result<FileRequest, Verdict> {
    let text = unfenced(answer.as_str());
    let mut request = FileRequest::parse(text.as_bytes()).map_err(|error| {
        Verdict::new(vec![Finding::error(NO_REQUEST, "the file request", error.to_string())])
    })?;
    let mut verdict = Verdict::default();
    let settings = &record.settings;
    for (what, wanted, most) in [
        ("max_files", request.budget.max_files.0, settings.max_files),
        ("max_total_bytes", request.budget.max_total_bytes.0, settings.max_total_bytes),
    ] {
        if wanted == 0 || wanted > most {
            let hint = format!("The budget's {what} is from 1 to {most}.");
            verdict.push(Finding::error(OVER_BUDGET, format!("{what}={wanted}"), hint));
        }
    }
    let known: HashSet<&str> = tracked.iter().map(|(path, _)| path.as_str()).collect();
    for need in request.needs.iter().filter(|need| !known.contains(need.path.as_str())).take(MOST_REASONS) {
        let hint = "There is no such file in the repository: ask for files of the list.";
        verdict.push(Finding::error(UNKNOWN_FILE, &need.path, hint));
    }
    if request.needs.is_empty() {
        let hint = "Ask for at least one file.";
        verdict.push(Finding::error(NO_REQUEST, "needs", hint));
    }
    if !verdict.passes() {
        return Err(verdict);
    }
    let named: HashSet<&str> = settings.named.iter().map(RepoPath::as_str).collect();
    request.needs.retain(|need| !named.contains(need.path.as_str()));
    let whole = |path: &RepoPath| Need { path: path.to_string(), mode: Mode::Full, line_ranges: Vec::new() };
    request.needs.splice(0..0, settings.named.iter().map(whole));
    request.goal.clone_from(&record.goal);
    Ok(request)
}

/// Asks a chair for a plan.
pub(crate) fn plan_question(
    record: &RunRecord,
    analysis: &Analysis,
    pack: &ContextPack,
    brief: Option<&Brief>,
) -> Vec<Message> {
    let mut prompt = shown(
        PromptBuilder::new()
            .ours("You chair a change of source code. Say where it may go. A program reads your answer; somebody else writes the change.\n\n"),
        pack,
    );
    prompt = failing(prompt, analysis);
    prompt = refused(prompt, brief);
    let prompt =
        prompt.ours("\nGoal: ").operator(&record.goal).ours("\n\nAnswer:\n").ours(PLAN_FORM);
    vec![Message::user(prompt.build())]
}

/// Reads the plan of a chair: where the change may go, when to stop and which behaviours it concerns. The rest is that of
/// `by_code`, and a line that says otherwise is refused.
pub(crate) fn read_plan(
    answer: &Untrusted,
    by_code: &Plan,
    pack: &ContextPack,
    gate_files: &[RepoPath],
) -> Result<Plan, Verdict> {
    let text = unfenced(answer.as_str());
    let lines = key_lines::read(text);
    let mut verdict = Verdict::default();
    for key in &lines.repeated {
        verdict.push(Finding::error(NO_PLAN, key, "Write this line once."));
    }
    let fixed = by_code.render();
    let ours = key_lines::read(&fixed);
    for key in ["Names", "May-Drop", "Gates", "Budgets", "Results"] {
        let said = lines.values.get(key);
        if said.is_some_and(|said| ours.values.get(key) != Some(said)) {
            verdict.push(Finding::error(NOT_YOURS, key, "This line is not the chair's to write: leave it out."));
        }
    }
    let value = |key: &str| lines.values.get(key).map(String::as_str).unwrap_or_default();
    let places = |key: &str, verdict: &mut Verdict| -> Vec<PathPrefix> {
        let mut parsed = Vec::new();
        for item in key_lines::list(value(key)) {
            match item.parse() {
                Ok(path) => parsed.push(path),
                Err(error) => verdict.push(Finding::error(NO_PLAN, item, format!("{error}"))),
            }
        }
        parsed
    };
    let scope_allow = places("Scope-Allow", &mut verdict);
    let scope_deny = places("Scope-Deny", &mut verdict);
    if scope_allow.is_empty() {
        verdict.push(Finding::error(NO_PLAN, "Scope-Allow", "Name at least one file that may change."));
    }
    for place in &scope_allow {
        let whole = |file: &&crucible_pack::PackedFile| !file.truncated;
        let inside = |file: &&crucible_pack::PackedFile| {
            file.path.parse::<RepoPath>().is_ok_and(|path| place.contains(&path))
        };
        let named = by_code.names.iter().any(|path| place.contains(path));
        if place.is_everything() || !(named || pack.files.iter().filter(whole).any(|file| inside(&file))) {
            let hint = "Allow only files that are shown whole, or directories that hold one.";
            verdict.push(Finding::error(UNSEEN, place.to_string(), hint));
        }
        let Ok(path) = place.to_string().parse::<RepoPath>() else { continue };
        let guarded = is_protected(&path) || gate_files.contains(&path);
        if guarded && !by_code.names.contains(&path) {
            let hint = "Tests, settings and what a gate runs are not the chair's to open: leave it out.";
            verdict.push(Finding::error(NOT_YOURS, path.as_str(), hint));
        }
    }
    if !verdict.passes() {
        return Err(verdict);
    }
    let said = |key: &str| Some(value(key).to_owned()).filter(|text| !text.is_empty());
    let plan = Plan {
        scope_allow,
        scope_deny,
        stop: said("Stop").unwrap_or_else(|| by_code.stop.clone()),
        behaviors: key_lines::list(value("Behaviors")).into_iter().map(str::to_owned).collect(),
        ..by_code.clone()
    };
    // What cannot be written as a plan and read back is none.
    match Plan::parse(&plan.render()) {
        Ok(back) if back == plan => Ok(plan),
        Ok(_) => {
            Err(Verdict::new(vec![Finding::error(NO_PLAN, "the plan", "Write plain text behind each key.")]))
        }
        Err(verdict) => Err(verdict),
    }
}

/// Asks a reviewer for a second opinion on a plan.
pub(crate) fn review_question(
    record: &RunRecord,
    role: RunRole,
    plan: &Plan,
    pack: &ContextPack,
    brief: Option<&Brief>,
) -> Vec<Message> {
    let duty = match role {
        RunRole::CostController => "whether it costs more than the goal is worth: too many files, too wide a scope, too many attempts",
        _ => "whether it can reach the goal within its scope and without touching what it must not",
    };
    let prompt = shown(
        PromptBuilder::new()
            .ours("You review the plan of a change of source code: ")
            .ours(duty)
            .ours(". A program reads your answer.\n\n"),
        pack,
    )
    .untrusted("PLAN.md", &Untrusted::new(plan.render()));
    let prompt = refused(prompt, brief)
        .ours("\nGoal: ")
        .operator(&record.goal)
        .ours("\n\nAnswer:\n")
        .ours(REVIEW_FORM);
    vec![Message::user(prompt.build())]
}

/// Reads a second opinion; `subject` is the digest of the draft that it is about, which code fills in. What is no clear
/// approval is none.
pub(crate) fn read_review(answer: &Untrusted, role: RunRole, subject: Digest) -> Result<Review, Verdict> {
    let text = unfenced(answer.as_str());
    let lines = key_lines::read(text);
    let unclear = || {
        let hint = "Answer with one line `Verdict: APPROVE` or `Verdict: BLOCK`, and behind a BLOCK with its reasons.";
        Verdict::new(vec![Finding::error(NO_REVIEW, "the review", hint)])
    };
    if lines.repeated.iter().any(|key| key == "Verdict") {
        return Err(unclear());
    }
    let verdict = match lines.values.get("Verdict").map(String::as_str) {
        Some("APPROVE") => ReviewVerdict::Approve,
        Some("BLOCK") => ReviewVerdict::Block,
        _ => return Err(unclear()),
    };
    let (mut blocking, mut required) = (below(text, "Blocking Reasons:"), below(text, "Required Fix/Artifacts:"));
    match verdict {
        // An approval with reasons against it is none.
        ReviewVerdict::Approve if !blocking.is_empty() => return Err(unclear()),
        ReviewVerdict::Block if blocking.is_empty() => return Err(unclear()),
        ReviewVerdict::Approve | ReviewVerdict::Block => {}
    }
    let mut remarks = Vec::new();
    for (list, what) in [(&mut blocking, "reasons"), (&mut required, "fixes")] {
        if list.len() > MOST_REASONS {
            remarks.push(format!("{} more {what} are not shown", list.len() - MOST_REASONS));
            list.truncate(MOST_REASONS);
        }
    }
    let reviewer = format!("{}, second opinion", role.name());
    Ok(Review { reviewer, verdict, subject, blocking, required, remarks })
}

/// The items of the list below a line; `none` is no item.
fn below(text: &str, title: &str) -> Vec<String> {
    let mut lines = text.lines().skip_while(|line| !line.trim_start().starts_with(title));
    let first = lines.next().and_then(|line| line.trim().strip_prefix(title)).map(str::trim);
    let inline = first.filter(|said| !said.is_empty());
    let items = lines.map(str::trim).take_while(|line| line.is_empty() || line.starts_with(['-', '*']));
    let items = items.filter(|line| !line.is_empty()).map(|line| line.trim_start_matches(['-', '*']).trim());
    inline
        .into_iter()
        .chain(items)
        .filter(|item| !item.is_empty() && !item.eq_ignore_ascii_case("none"))
        .map(|item| item.chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect())
        .collect()
}

/// The text without a code fence around the whole of it, which chats like to add.
fn unfenced(text: &str) -> &str {
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix("```").and_then(|rest| rest.split_once('\n')).map(|(_, rest)| rest);
    match inner.and_then(|inner| inner.strip_suffix("```")) {
        Some(inner) if !inner.contains("```") => inner,
        _ => trimmed,
    }
}

fn shown(mut prompt: PromptBuilder, pack: &ContextPack) -> PromptBuilder {
    for file in &pack.files {
        let name = if file.truncated { format!("{} (its beginning)", file.path) } else { file.path.clone() };
        prompt = prompt.untrusted(&name, &Untrusted::new(file.content.clone()));
    }
    prompt
}

fn failing(mut prompt: PromptBuilder, analysis: &Analysis) -> PromptBuilder {
    for gate in analysis.baseline.iter().filter(|gate| !gate.passed) {
        prompt = prompt
            .ours("\nBefore any change this check fails:\n")
            .untrusted(&format!("output of {}", gate.id), &Untrusted::new(gate.excerpt.clone()));
    }
    prompt
}

fn refused(prompt: PromptBuilder, brief: Option<&Brief>) -> PromptBuilder {
    let Some(brief) = brief else { return prompt };
    prompt
        .ours("\nAn answer was refused; answer again without this fault:\n")
        .untrusted("why it was refused", &Untrusted::new(brief.reasons.join("\n")))
}
