//! Prompts for the chair and the reviewers if no code serves them, and the parsing of their answers. Pure.
//!
//! A chair proposes: which files are needed, and where the change may go. What it may not choose stays with code: the gates,
//! the budgets, the results, and everything that only the operator may name. A reviewer may block and never approve what
//! code blocks.

use std::collections::HashSet;

use crucible_llm::Message;
use crucible_model::{
    ByteLimit, Code, Digest, FileLimit, Finding, PathPrefix, PromptBuilder, RepoPath, Untrusted,
    Verdict, unfenced,
};
use crucible_pack::{Budget, ContextPack, FileRequest, LineRange, Mode, Need};
use crucible_secrets::Scanner;

use crate::analysis::Analysis;
use crate::contract::{
    Plan, Review, ReviewVerdict, RunRecord, RunRole, check_plan, key_lines, parse_items,
};
use crate::dispatch::evidence::{
    FILE_REQUEST_FORM, FileListing, PLAN_FORM, REVIEW_FORM, add_failing_gates, add_pack_files,
};
use crate::role::patchmaker::FixBrief;
use crate::scope::{is_protected, is_unambiguous_name};

const NO_REQUEST: Code = Code::new("run-request-unclear");
const OVER_BUDGET: Code = Code::new("run-request-over-budget");
const UNKNOWN_FILE: Code = Code::new("run-request-unknown-file");
const NO_PLAN: Code = Code::new("run-plan-unclear");
const NOT_YOURS: Code = Code::new("run-plan-oversteps");
const UNSEEN: Code = Code::new("run-plan-unseen");
const SECRET: Code = Code::new("run-secret-in-answer");
const NO_REVIEW: Code = Code::new("run-review-unclear");

/// How many needs a chair may have.
const MAX_REQUESTED: usize = 1000;
/// How many reasons of a review are kept, and how long each is, in characters.
const MAX_REASONS: usize = 20;
const MAX_REASON_LEN: usize = 300;

/// Asks a chair for the files that are needed.
pub(crate) fn files_question(
    record: &RunRecord,
    analysis: &Analysis,
    listing: &FileListing,
    brief: Option<&FixBrief>,
) -> Vec<Message> {
    let mut prompt = PromptBuilder::new()
        .fixed_text("Goal of a change of source code: ")
        .operator(&record.goal)
        .fixed_text(
            "\n\nSay which files have to be read to reach it. A program reads your answer.\n",
        );
    prompt = add_failing_gates(prompt, &analysis.baseline);
    prompt = listing.add_to(prompt.fixed_text("\n"));
    prompt = refused(prompt, brief);
    let prompt = prompt
        .fixed_text("\nBudget: max_files=")
        .number(record.settings.max_files)
        .fixed_text(" max_total_bytes=")
        .number(record.settings.max_total_bytes)
        .fixed_text("\n\nAnswer:\n")
        .fixed_text(FILE_REQUEST_FORM);
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
        Verdict::new(vec![Finding::error(
            NO_REQUEST,
            "the file request",
            error.to_string(),
        )])
    })?;
    let mut verdict = Verdict::default();
    let settings = &record.settings;
    for (what, requested, most) in [
        ("max_files", request.budget.max_files.0, settings.max_files),
        (
            "max_total_bytes",
            request.budget.max_total_bytes.0,
            settings.max_total_bytes,
        ),
    ] {
        if requested == 0 || requested > most {
            let hint = format!("The budget's {what} is from 1 to {most}.");
            verdict.push(Finding::error(
                OVER_BUDGET,
                format!("{what}={requested}"),
                hint,
            ));
        }
    }
    let known: HashSet<&str> = tracked.iter().map(|(path, _)| path.as_str()).collect();
    for need in request
        .needs
        .iter()
        .filter(|need| !known.contains(need.path.as_str()))
        .take(MAX_REASONS)
    {
        let hint = "There is no such file in the repository: ask for files of the list.";
        verdict.push(Finding::error(UNKNOWN_FILE, &need.path, hint));
    }
    if request.needs.len() > MAX_REQUESTED {
        let hint = "Ask for the files that matter most.";
        verdict.push(Finding::error(
            OVER_BUDGET,
            format!("{} needs", request.needs.len()),
            hint,
        ));
    }
    // What is escaped in JSON is seen by no scan of the answer's text.
    let words = request
        .needs
        .iter()
        .map(|need| need.path.as_str())
        .chain([request.reason.as_str()]);
    if let Some(found) = Scanner::builtin()
        .scan(words.collect::<Vec<_>>().join("\n").as_bytes())
        .first()
    {
        let hint = "The request holds what looks like a secret; say it without.";
        verdict.push(Finding::error(SECRET, found.rule.to_string(), hint));
    }
    if request.needs.is_empty() {
        let hint = "Ask for at least one file.";
        verdict.push(Finding::error(NO_REQUEST, "needs", hint));
    }
    if !verdict.passes() {
        return Err(verdict);
    }
    let mut seen: HashSet<(String, Vec<LineRange>)> = HashSet::new();
    let named: HashSet<&str> = settings.named.iter().map(RepoPath::as_str).collect();
    request.needs.retain(|need| {
        !named.contains(need.path.as_str())
            && seen.insert((need.path.clone(), need.line_ranges.clone()))
    });
    let whole = |path: &RepoPath| Need {
        path: path.to_string(),
        mode: Mode::Full,
        line_ranges: Vec::new(),
    };
    request.needs.splice(0..0, settings.named.iter().map(whole));
    request.goal.clone_from(&record.goal);
    // A chair may ask for less by asking for fewer files; a smaller budget could leave out what has to be in.
    request.budget = Budget {
        max_files: FileLimit(settings.max_files),
        max_total_bytes: ByteLimit(settings.max_total_bytes),
    };
    Ok(request)
}

/// Asks a chair for a plan.
pub(crate) fn plan_question(
    record: &RunRecord,
    analysis: &Analysis,
    pack: &ContextPack,
    brief: Option<&FixBrief>,
) -> Vec<Message> {
    let mut prompt = PromptBuilder::new()
        .fixed_text("Goal of a change of source code: ")
        .operator(&record.goal)
        .fixed_text("\n\nSay where the change may go. A program reads your answer; another author writes the change.\n");
    prompt = add_failing_gates(prompt, &analysis.baseline);
    prompt = add_pack_files(prompt.fixed_text("\n"), pack);
    prompt = refused(prompt, brief);
    let prompt = prompt.fixed_text("\nAnswer:\n").fixed_text(PLAN_FORM);
    vec![Message::user(prompt.build())]
}

/// Reads the plan of a chair: where the change may go, when to stop and which behaviours it concerns. The rest is that of
/// `by_code`, and a line that says otherwise is refused.
pub(crate) fn read_plan(
    answer: &Untrusted,
    by_code: &Plan,
    pack: &ContextPack,
    gate_files: &[RepoPath],
    known_behaviors: &[String],
) -> Result<Plan, Verdict> {
    let text = unfenced(answer.as_str());
    let lines = key_lines::read(text);
    let mut verdict = Verdict::default();
    for key in &lines.repeated {
        verdict.push(Finding::error(NO_PLAN, key, "Write this line once."));
    }
    let fixed = by_code.render();
    let own_key_lines = key_lines::read(&fixed);
    for key in [
        "Scope-Sources",
        "Names",
        "May-Drop",
        "May-Add",
        "Renames",
        "Accepts",
        "Gates",
        "Budgets",
        "Results",
    ] {
        let stated = lines.values.get(key);
        if stated.is_some_and(|stated| own_key_lines.values.get(key) != Some(stated)) {
            verdict.push(Finding::error(
                NOT_YOURS,
                key,
                "This line is not the chair's to write: leave it out.",
            ));
        }
    }
    let value = |key: &str| {
        lines
            .values
            .get(key)
            .map(String::as_str)
            .unwrap_or_default()
    };
    let scope_allow: Vec<PathPrefix> = parse_items(value("Scope-Allow"), &NO_PLAN, &mut verdict);
    let denied = Some(value("Scope-Deny"))
        .filter(|text| !says_none(text))
        .unwrap_or_default();
    let scope_deny = parse_items(denied, &NO_PLAN, &mut verdict);
    if scope_allow.is_empty() {
        verdict.push(Finding::error(
            NO_PLAN,
            "Scope-Allow",
            "Name at least one file that may change.",
        ));
    }
    for place in &scope_allow {
        let whole = |file: &&crucible_pack::PackedFile| !file.truncated;
        let inside = |file: &&crucible_pack::PackedFile| {
            file.path
                .parse::<RepoPath>()
                .is_ok_and(|path| place.contains(&path))
        };
        let named = by_code.names.iter().any(|path| place.contains(path));
        if place.is_everything()
            || !(named || pack.files.iter().filter(whole).any(|file| inside(&file)))
        {
            let hint = "Allow only files that are shown whole, or directories that hold one.";
            verdict.push(Finding::error(UNSEEN, place.to_string(), hint));
        }
        let Ok(path) = place.to_string().parse::<RepoPath>() else {
            continue;
        };
        if !is_unambiguous_name(&path) && !by_code.names.contains(&path) {
            let hint = "A name of this kind is for the operator to open: leave it out.";
            verdict.push(Finding::error(NOT_YOURS, path.as_str(), hint));
        }
        let guarded = is_protected(&path) || gate_files.contains(&path);
        if guarded && !by_code.names.contains(&path) {
            let hint =
                "Tests, settings and what a gate runs are not the chair's to open: leave it out.";
            verdict.push(Finding::error(NOT_YOURS, path.as_str(), hint));
        }
    }
    if !verdict.passes() {
        return Err(verdict);
    }
    let stated_value = |key: &str| Some(value(key).to_owned()).filter(|text| !says_none(text));
    let behaviors = stated_value("Behaviors").unwrap_or_default();
    let plan = Plan {
        scope_allow,
        scope_sources: Vec::new(),
        scope_deny,
        stop: stated_value("Stop").unwrap_or_else(|| by_code.stop.clone()),
        behaviors: key_lines::list(&behaviors)
            .into_iter()
            .map(str::to_owned)
            .collect(),
        ..by_code.clone()
    };
    // What cannot be written as a plan and read back is none.
    match Plan::parse(&plan.render()) {
        Ok(back) if back == plan => {
            let verdict = check_plan(&plan, known_behaviors, &plan.results);
            if verdict.passes() {
                Ok(plan)
            } else {
                Err(verdict)
            }
        }
        Ok(_) => Err(Verdict::new(vec![Finding::error(
            NO_PLAN,
            "the plan",
            "Write plain text behind each key.",
        )])),
        Err(verdict) => Err(verdict),
    }
}

/// Asks a reviewer for a second opinion on a plan.
pub(crate) fn review_question(
    record: &RunRecord,
    role: RunRole,
    plan: &Plan,
    pack: &ContextPack,
    brief: Option<&FixBrief>,
) -> Vec<Message> {
    let duty = match role {
        RunRole::CostController => {
            "whether it costs more than the goal is worth: too many files, too wide a scope, too many attempts"
        }
        _ => "whether it can reach the goal within its scope and without touching what it must not",
    };
    let prompt = PromptBuilder::new()
        .fixed_text("Goal of a change of source code: ")
        .operator(&record.goal)
        .fixed_text("\n\nReview the plan of the change: ")
        .fixed_text(duty)
        .fixed_text(". A program reads your answer.\n\n");
    let prompt = add_pack_files(prompt, pack).untrusted("PLAN.md", &Untrusted::new(plan.render()));
    let prompt = refused(prompt, brief)
        .fixed_text("\nAnswer:\n")
        .fixed_text(REVIEW_FORM);
    vec![Message::user(prompt.build())]
}

/// Reads a second opinion; `subject` is the digest of the draft that it is about, which code fills in. What is no clear
/// approval does not count.
pub(crate) fn read_review(
    answer: &Untrusted,
    role: RunRole,
    subject: Digest,
) -> Result<Review, Verdict> {
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
    let (mut blocking, mut required) = (
        section_lines(text, TITLES[0]),
        section_lines(text, TITLES[1]),
    );
    match verdict {
        // An approval with reasons against it is none.
        ReviewVerdict::Approve if !blocking.is_empty() => return Err(unclear()),
        ReviewVerdict::Block if blocking.is_empty() => return Err(unclear()),
        ReviewVerdict::Approve | ReviewVerdict::Block => {}
    }
    let mut remarks = Vec::new();
    for (list, what) in [(&mut blocking, "reasons"), (&mut required, "fixes")] {
        if list.len() > MAX_REASONS {
            remarks.push(format!(
                "{} more {what} are not shown",
                list.len() - MAX_REASONS
            ));
            list.truncate(MAX_REASONS);
        }
    }
    let reviewer = format!("{}, second opinion", role.name());
    Ok(Review {
        reviewer,
        verdict,
        subject,
        blocking,
        required,
        remarks,
    })
}

/// The titles of a review's lists.
const TITLES: [&str; 3] = ["blocking reasons", "required fix/artifacts", "remarks"];

/// The lines below a title, whatever marks they begin with, up to the next title; a line that says "none" is left out. A
/// title is found whatever its case and whatever marks are around it: what is against a plan must not be overlooked.
fn section_lines(text: &str, requested: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        let bare = line
            .trim_matches(|c: char| matches!(c, '*' | '#' | '-' | '_' | ' '))
            .to_lowercase();
        if let Some(title) = TITLES.iter().find(|title| bare.starts_with(*title)) {
            inside = *title == requested;
            let rest = line.split_once(':').map_or("", |(_, rest)| rest);
            if inside {
                items.push(rest);
            }
        } else if inside && !bare.starts_with("verdict:") {
            items.push(line);
        }
    }
    let marks =
        |c: char| c.is_ascii_digit() || matches!(c, '-' | '*' | '.' | ')' | ' ' | '\u{2022}' | '_');
    let entries = items.into_iter().map(|item| {
        item.trim_start_matches(marks)
            .trim_end_matches(['*', '_', ' '])
    });
    entries
        .filter(|item| !says_none(item))
        .map(shortened)
        .collect()
}

/// Whether a value says that there is nothing.
fn says_none(value: &str) -> bool {
    let bare = value.trim().trim_end_matches('.');
    bare.is_empty()
        || ["none", "nothing", "n/a", "-"]
            .iter()
            .any(|word| bare.eq_ignore_ascii_case(word))
}

fn shortened(item: &str) -> String {
    let mut plain = item.chars().filter(|c| !c.is_control());
    let mut text: String = plain.by_ref().take(MAX_REASON_LEN).collect();
    if plain.next().is_some() {
        text.push_str(" (cut)");
    }
    text
}

fn refused(prompt: PromptBuilder, brief: Option<&FixBrief>) -> PromptBuilder {
    let Some(brief) = brief else { return prompt };
    prompt
        .fixed_text("\nAn answer was refused; answer again without this fault:\n")
        .untrusted(
            "why it was refused",
            &Untrusted::new(brief.reasons.join("\n")),
        )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crucible_pack::{PackVersion, PackedFile};
    use serde_json::json;

    use super::*;
    use crate::contract::required_gates;
    use crate::gatekeeper::tests::record;

    fn tracked(paths: &[&str]) -> Vec<(RepoPath, u64)> {
        paths
            .iter()
            .map(|path| (path.parse().unwrap(), 10))
            .collect()
    }

    fn record_of(named: &[&str]) -> RunRecord {
        let mut record = record(Path::new("/r"), &[]);
        record.settings.max_files = 5;
        record.settings.max_total_bytes = 1000;
        record.settings.named = named.iter().map(|path| path.parse().unwrap()).collect();
        record
    }

    fn request(paths: &[&str], files: u64, bytes: u64) -> Untrusted {
        let needs: Vec<_> = paths
            .iter()
            .map(|path| json!({ "path": path, "mode": "full" }))
            .collect();
        let budget = json!({ "max_files": files, "max_total_bytes": bytes });
        let version = "ctcp-file-request-v1";
        let text = json!({ "schema_version": version, "goal": "x", "needs": needs, "budget": budget, "reason": "r" });
        Untrusted::new(text.to_string())
    }

    fn codes(verdict: &Verdict) -> Vec<&str> {
        verdict
            .findings()
            .iter()
            .map(|finding| finding.code.as_str())
            .collect()
    }

    #[test]
    fn chair_request_is_bounded_and_keeps_named() {
        let tracked = tracked(&["a.py", "b.py", "c.py"]);
        let record = record_of(&["b.py"]);
        let read = |answer: &Untrusted| read_files(answer, &record, &tracked);
        let file_request = read(&request(&["a.py", "b.py"], 5, 1000)).unwrap();
        assert_eq!(
            file_request
                .needs
                .iter()
                .map(|need| need.path.as_str())
                .collect::<Vec<_>>(),
            ["b.py", "a.py"]
        );
        assert_eq!(
            (file_request.goal.as_str(), file_request.budget.max_files.0),
            ("g", 5)
        );
        let doubled = read(&request(&["a.py", "a.py", "c.py"], 1, 1)).unwrap();
        assert_eq!(doubled.needs.len(), 3);
        assert_eq!(doubled.budget.max_total_bytes.0, 1000);
        let secret = request(&["a.py"], 5, 1000).as_str().replace(
            "\"r\"",
            &format!("\"\\u0067hp_{}\"", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"),
        );
        assert_eq!(
            codes(&read(&Untrusted::new(secret)).unwrap_err()),
            ["run-secret-in-answer"]
        );
        for (answer, code) in [
            (request(&["z.py"], 5, 1000), "run-request-unknown-file"),
            (request(&["../a.py"], 5, 1000), "run-request-unknown-file"),
            (request(&["a.py"], 6, 1000), "run-request-over-budget"),
            (request(&["a.py"], 5, 1001), "run-request-over-budget"),
            (request(&["a.py"], 0, 1000), "run-request-over-budget"),
            (request(&[], 5, 1000), "run-request-unclear"),
            (Untrusted::new("I want a.py"), "run-request-unclear"),
        ] {
            assert_eq!(
                codes(&read(&answer).unwrap_err()),
                [code],
                "{}",
                answer.as_str()
            );
        }
    }

    fn by_code(names: &[&str]) -> Plan {
        let text = format!(
            "Status: DRAFT\nScope-Allow: src/a.py\nScope-Deny:\nNames: {}\nGates: {}\nStop: verified\nBudgets: files=1\nBehaviors:\nResults: R001\n",
            names.join(", "),
            required_gates().collect::<Vec<_>>().join(", ")
        );
        Plan::parse(&text).unwrap()
    }

    fn pack() -> ContextPack {
        let file = |path: &str, truncated| PackedFile {
            path: path.into(),
            why: "requested".into(),
            content: "x\n".into(),
            truncated,
            ranges: Vec::new(),
        };
        ContextPack {
            schema_version: PackVersion::V1,
            goal: String::new(),
            repo_slug: "r".into(),
            summary: String::new(),
            files: vec![
                file("src/a.py", false),
                file("src/cut.py", true),
                file("tests/test_a.py", false),
                file("ci/gate.py", false),
            ],
            omitted: vec![],
        }
    }

    #[test]
    fn chair_chooses_only_the_scope() {
        let gate_files: Vec<RepoPath> = vec!["ci/gate.py".parse().unwrap()];
        let own = by_code(&[]);
        let known = ["B001".to_owned()];
        let read =
            |text: &str| read_plan(&Untrusted::new(text), &own, &pack(), &gate_files, &known);
        let plan =
            read("Scope-Allow: src/a.py\nScope-Deny: src/gen/\nStop: budget\nBehaviors: B001\n")
                .unwrap();
        assert_eq!(
            (plan.stop.as_str(), plan.behaviors.as_slice()),
            ("budget", ["B001".to_owned()].as_slice())
        );
        assert_eq!(
            (&plan.gates, &plan.budgets, &plan.names),
            (&own.gates, &own.budgets, &own.names)
        );
        for (text, code) in [
            ("", "run-plan-unclear"),
            ("Scope-Allow: .\n", "run-plan-unseen"),
            ("Scope-Allow: src/none.py\n", "run-plan-unseen"),
            ("Scope-Allow: src/cut.py\n", "run-plan-unseen"),
            ("Scope-Allow: ../x\n", "run-plan-unclear"),
            ("Scope-Allow: tests/test_a.py\n", "run-plan-oversteps"),
            ("Scope-Allow: ci/gate.py\n", "run-plan-oversteps"),
            (
                "Scope-Allow: src/a.py\nNames: tests/test_a.py\n",
                "run-plan-oversteps",
            ),
            (
                "Scope-Allow: src/a.py\nMay-Drop: main\n",
                "run-plan-oversteps",
            ),
            ("Scope-Allow: src/a.py\nGates: lite\n", "run-plan-oversteps"),
            (
                "Scope-Allow: src/a.py\nBudgets: files=9\n",
                "run-plan-oversteps",
            ),
            (
                "Scope-Allow: src/a.py\nScope-Allow: tests\n",
                "run-plan-unclear",
            ),
            (
                "Scope-Allow: src/a.py\nBehaviors: B009\n",
                "plan-id-unresolved",
            ),
        ] {
            let verdict = read(text).unwrap_err();
            assert!(
                codes(&verdict).contains(&code),
                "{text:?}: {:?}",
                codes(&verdict)
            );
        }
        let none =
            read("Scope-Allow: src/a.py\nScope-Deny: none\nBehaviors: None.\nStop:\n").unwrap();
        assert_eq!(
            (
                none.behaviors.len(),
                none.scope_deny.len(),
                none.stop.as_str()
            ),
            (0, 0, own.stop.as_str())
        );
        // What the operator named may be opened.
        let named = by_code(&["tests/test_a.py"]);
        let plan = read_plan(
            &Untrusted::new("Scope-Allow: tests/test_a.py\n"),
            &named,
            &pack(),
            &gate_files,
            &[],
        );
        assert_eq!(plan.unwrap().scope_allow[0].to_string(), "tests/test_a.py");
    }

    #[test]
    fn only_a_clear_verdict_is_one() {
        let subject = Digest::compute(b"plan");
        let read =
            |text: &str| read_review(&Untrusted::new(text), RunRole::CostController, subject);
        assert_eq!(
            read("```\nVerdict: APPROVE\n```").unwrap().verdict,
            ReviewVerdict::Approve
        );
        let block =
            read("Verdict: BLOCK\nBlocking Reasons:\n- too wide\n\nRequired Fix/Artifacts:\n- one file\n")
                .unwrap();
        assert_eq!(
            (block.blocking, block.required),
            (vec!["too wide".to_owned()], vec!["one file".to_owned()])
        );
        for text in [
            "",
            "APPROVE",
            "Verdict: approve",
            "Verdict: APPROVE\nVerdict: BLOCK\n",
            "Verdict: BLOCK\n",
            "Verdict: BLOCK\nBlocking Reasons: none\n",
            "Verdict: APPROVE\nBlocking Reasons:\n- but no\n",
            "Verdict: APPROVE\nBlocking Reasons:\n1. it deletes the tests\n",
            "Verdict: APPROVE\n**Blocking reasons:** it deletes the tests\n",
            "Verdict: APPROVE\n\n## blocking reasons\n\nit deletes the tests\n",
        ] {
            assert_eq!(
                codes(&read(text).unwrap_err()),
                ["run-review-unclear"],
                "{text:?}"
            );
        }
        let numbered =
            read("Verdict: BLOCK\n\nBlocking Reasons:\n\n1. too wide\n2. too slow\n").unwrap();
        assert_eq!(numbered.blocking, ["too wide", "too slow"]);
        assert_eq!(
            read("Verdict: APPROVE\nBlocking Reasons: None.\n")
                .unwrap()
                .blocking,
            Vec::<String>::new()
        );
        let many = format!("Verdict: BLOCK\nBlocking Reasons:\n{}", "- x\n".repeat(50));
        let review = read(&many).unwrap();
        assert_eq!(
            (review.blocking.len(), review.remarks.len()),
            (MAX_REASONS, 1)
        );
    }
}
