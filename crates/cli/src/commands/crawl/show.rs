//! The documents of a crawl, for people.

use comfy_table::ContentArrangement;
use crucible_crawl::{
    Inspected, Inspection, PlanStep, PlannedCrawl, RedactedMessage, SearchItem, SearchV1,
};
use crucible_model::{counted, one_line};

use crate::output::Output;
use crate::table::table;

/// Characters of a description that are shown.
const DESCRIPTION: usize = 100;
/// The narrowest terminal in which a table is wrapped.
const NARROWEST: u16 = 60;
/// Lines of a README that are shown.
const README_LINES: usize = 5;
/// Sub-projects and key files that are shown.
const SHOWN: usize = 12;

/// Shows search results, best first, with the parts of each score.
pub(crate) fn search(output: &Output, found: &SearchV1) {
    if found.results.is_empty() {
        output.line(&one_line(&format!("nothing found for {:?}", found.query)));
        return;
    }
    let mut all = table(["#", "score", "repository", "stars", "pushed", "why"]);
    // On a wide enough terminal the columns are wrapped.
    if all.width().is_some_and(|width| width >= NARROWEST) {
        all.set_content_arrangement(ContentArrangement::Dynamic);
    }
    for item in &found.results {
        let why = format!(
            "{}\n{}",
            item.score_breakdown.reasons(),
            one_line(&cut_to(&item.description, DESCRIPTION))
        );
        let pushed = item.pushed_at.to_string();
        all.add_row([
            item.rank.to_string(),
            format!("{:.4}", item.score),
            one_line(&item.full_name),
            item.stars.to_string(),
            pushed.get(..10).unwrap_or(&pushed).to_owned(),
            why.trim_end().to_owned() + &marks(item),
        ]);
    }
    output.line(&all.trim_fmt());
    output.line("\nnext: crucible crawl plan OWNER/REPO");
}

fn marks(item: &SearchItem) -> String {
    let marks: Vec<&str> = [("archived", item.archived), ("fork", item.fork)]
        .iter()
        .filter(|(_, is)| *is)
        .map(|(name, _)| *name)
        .collect();
    if marks.is_empty() {
        String::new()
    } else {
        format!("\n({})", marks.join(", "))
    }
}

/// Shows a repository, its build system and the evidence for it.
pub(crate) fn inspection(output: &Output, inspected: &Inspected) {
    let Inspection {
        artifact,
        version_constraints,
        reasons,
        ..
    } = &inspected.inspection;
    let row = |name: &str, text: &str| row(output, name, text);
    let repo = &artifact.repo;
    row(
        "repository",
        &format!("{} at {}", repo.full_name, repo.selected_ref),
    );
    row(
        "commit",
        &format!(
            "{} (default branch {})",
            repo.resolved_commit, repo.default_branch
        ),
    );
    row(
        "from",
        &format!("{}, as a {}", repo.url, artifact.fetch_method.words()),
    );
    let system = &artifact.build_system;
    row(
        "builds with",
        &format!("{} (confidence {:.2})", system.name, system.confidence),
    );
    for (number, reason) in reasons.iter().enumerate() {
        row(if number == 0 { "because" } else { "" }, reason);
    }
    let versions = version_constraints
        .iter()
        .map(|(program, version)| format!("{program} {version}"));
    if !version_constraints.is_empty() {
        row("needs", &versions.collect::<Vec<_>>().join(", "));
    }
    if artifact.monorepo {
        row(
            "monorepo",
            &counted(artifact.sub_projects.len() as u64, "sub-project"),
        );
        some_of(
            output,
            artifact
                .sub_projects
                .iter()
                .map(|project| format!("{} ({})", project.path, project.build_system)),
        );
    }
    let languages = artifact.detected_languages.iter().map(|language| {
        format!(
            "{} ({})",
            language.language,
            counted(language.file_count, "file")
        )
    });
    row(
        "languages",
        &listed(
            &languages.take(SHOWN).collect::<Vec<_>>(),
            "none recognised",
        ),
    );
    let cut = if artifact.sampling_truncated {
        "; a cap was reached, so this may be incomplete"
    } else {
        ""
    };
    let sampled = counted(artifact.sampled_files, "file");
    row(
        "read",
        &format!(
            "{sampled}, {}{cut}",
            counted(artifact.sampled_bytes, "byte")
        ),
    );
    row(
        "key files",
        &counted(artifact.key_files.len() as u64, "file"),
    );
    some_of(
        output,
        artifact
            .key_files
            .iter()
            .map(|file| format!("{} ({})", file.path, file.role.words())),
    );
    let readme = artifact
        .readme_excerpt
        .lines()
        .filter(|line| !line.trim().is_empty());
    for (number, line) in readme.take(README_LINES).enumerate() {
        row(
            if number == 0 { "readme" } else { "" },
            &cut_to(line, DESCRIPTION),
        );
    }
}

/// Shows a plan: its steps, warnings, debate and verdict.
pub(crate) fn plan(output: &Output, planned: &PlannedCrawl) {
    let plan = &planned.planned.plan;
    let line = |text: &str| output.line(&one_line(text));
    row(
        output,
        "plan",
        &format!("{} at {}", plan.repo.full_name, plan.repo.selected_ref),
    );
    row(output, "commit", &plan.repo.resolved_commit);
    row(
        output,
        "builds with",
        &format!(
            "{} (confidence {:.2})",
            plan.detected.build_system, plan.detected.confidence
        ),
    );
    row(
        output,
        "tools",
        &listed(&plan.dependencies.tools, "none named"),
    );
    if !plan.dependencies.notes.is_empty() {
        row(output, "", &plan.dependencies.notes);
    }
    output.line("");
    for (number, step) in plan.steps.iter().enumerate() {
        for text in step_lines(number + 1, step) {
            line(&text);
        }
    }
    section(output, "Warnings", &plan.warnings);
    section(output, "Accepted suggestions", &plan.accepted_suggestions);
    section(output, "Rejected suggestions", &plan.rejected_suggestions);
    let said: Vec<String> = planned.messages.iter().map(who_said).collect();
    section(output, "Who said what", &said);
    section(output, "Why it is rejected", &plan.safety_violations);
    output.line("");
    let verdict = if plan.safety_validated {
        "passes the safety rules"
    } else {
        "rejected; do not run any of it"
    };
    row(output, "verdict", verdict);
    let rounds = counted(plan.debate_rounds, "round");
    row(
        output,
        "hashes",
        &format!(
            "plan {}, prompts {}; {rounds} of debate",
            plan.plan_hash, plan.prompt_hash
        ),
    );
}

fn step_lines(number: usize, step: &PlanStep) -> Vec<String> {
    let place = if step.cwd == "." {
        String::new()
    } else {
        format!(" (in {})", step.cwd)
    };
    let mut lines = vec![
        format!("{number}. {}{place}", step.name),
        format!("     {}", step.cmd),
    ];
    lines.extend(
        step.env
            .iter()
            .map(|(name, value)| format!("     with {name}={value}")),
    );
    if !step.note.is_empty() {
        lines.push(format!("   {}", step.note));
    }
    lines
}

/// One message of a debate on one line.
fn who_said(message: &RedactedMessage) -> String {
    let did = match message.phase {
        "draft" => "drafted",
        "revision" => "revised",
        "synthesis" => "settled the plan",
        _ => message.verdict,
    };
    let did = if message.error.is_empty() {
        did.to_owned()
    } else {
        format!("failed: {}", message.error)
    };
    let round = if message.round == 0 {
        "last".to_owned()
    } else {
        format!("round {}", message.round)
    };
    let model = if message.model.is_empty() {
        "no model"
    } else {
        &message.model
    };
    format!(
        "{round}: {} {did} ({model} of {})",
        message.owner, message.provider
    )
}

fn section(output: &Output, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    output.line(&format!("\n{title}"));
    for text in lines {
        output.line(&one_line(&format!("  - {text}")));
    }
}

fn row(output: &Output, name: &str, text: &str) {
    output.line(&one_line(&format!("{name:<12} {text}")));
}

/// Shows the first items, one per line, and the number of the others.
fn some_of(output: &Output, all: impl ExactSizeIterator<Item = String>) {
    let more = all.len().saturating_sub(SHOWN);
    for text in all.take(SHOWN) {
        row(output, "", &text);
    }
    if more > 0 {
        row(output, "", &format!("and {more} more"));
    }
}

fn listed(texts: &[String], none: &str) -> String {
    if texts.is_empty() {
        none.to_owned()
    } else {
        texts.join(", ")
    }
}

fn cut_to(text: &str, characters: usize) -> String {
    let text = text.trim();
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let kept: String = text.chars().take(characters).collect();
    format!("{}...", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_between_characters_and_says_so() {
        assert_eq!(cut_to(" äöü ", 3), "äöü");
        assert_eq!(cut_to("äöüß", 3), "äöü...");
    }
}
