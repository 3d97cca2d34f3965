//! The documents of a crawl as lines for people. Each line is escaped.

use crucible_model::{counted, one_line};

use crate::artifact::PlanStep;
use crate::debate::RedactedMessage;
use crate::inspect::Inspection;
use crate::pipeline::{Inspected, PlannedCrawl};

/// Characters of a description that are shown.
pub const DESCRIPTION: usize = 100;
/// Lines of a README that are shown.
const README_LINES: usize = 5;
/// Sub-projects and key files that are shown.
const SHOWN: usize = 12;

/// Lines of a text.
#[derive(Default)]
struct Page(Vec<String>);

impl Page {
    fn row(&mut self, name: &str, text: &str) {
        self.0.push(one_line(&format!("{name:<12} {text}")));
    }

    fn section(&mut self, title: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        self.0.push(format!("\n{title}"));
        for text in lines {
            self.0.push(one_line(&format!("  - {text}")));
        }
    }

    /// Adds the first items, one per line, and the number of the others.
    fn some_of(&mut self, all: impl ExactSizeIterator<Item = String>) {
        let more = all.len().saturating_sub(SHOWN);
        for text in all.take(SHOWN) {
            self.row("", &text);
        }
        if more > 0 {
            self.row("", &format!("and {more} more"));
        }
    }
}

/// Returns a repository, its build system and the evidence for it.
#[must_use]
pub fn inspection(inspected: &Inspected) -> Vec<String> {
    let mut page = Page::default();
    let Inspection {
        artifact,
        version_constraints,
        reasons,
        ..
    } = &inspected.inspection;
    let repo = &artifact.repo;
    page.row(
        "repository",
        &format!("{} at {}", repo.full_name, repo.selected_ref),
    );
    page.row(
        "commit",
        &format!(
            "{} (default branch {})",
            repo.resolved_commit, repo.default_branch
        ),
    );
    page.row(
        "from",
        &format!("{}, as a {}", repo.url, artifact.fetch_method.label()),
    );
    let system = &artifact.build_system;
    page.row(
        "builds with",
        &format!("{} (confidence {:.2})", system.name, system.confidence),
    );
    for (number, reason) in reasons.iter().enumerate() {
        page.row(if number == 0 { "because" } else { "" }, reason);
    }
    let versions = version_constraints
        .iter()
        .map(|(program, version)| format!("{program} {version}"));
    if !version_constraints.is_empty() {
        page.row("needs", &versions.collect::<Vec<_>>().join(", "));
    }
    if artifact.monorepo {
        page.row(
            "monorepo",
            &counted(artifact.sub_projects.len() as u64, "sub-project"),
        );
        page.some_of(
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
    page.row(
        "languages",
        &format_list(
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
    page.row(
        "read",
        &format!(
            "{sampled}, {}{cut}",
            counted(artifact.sampled_bytes, "byte")
        ),
    );
    page.row(
        "key files",
        &counted(artifact.key_files.len() as u64, "file"),
    );
    page.some_of(
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
        page.row(
            if number == 0 { "readme" } else { "" },
            &truncate_chars(line, DESCRIPTION),
        );
    }
    page.0
}

/// Returns a plan: its steps, warnings, debate and verdict.
#[must_use]
pub fn plan(planned: &PlannedCrawl) -> Vec<String> {
    let mut page = Page::default();
    let plan = &planned.planned.plan;
    page.row(
        "plan",
        &format!("{} at {}", plan.repo.full_name, plan.repo.selected_ref),
    );
    page.row("commit", &plan.repo.resolved_commit);
    page.row(
        "builds with",
        &format!(
            "{} (confidence {:.2})",
            plan.detected.build_system, plan.detected.confidence
        ),
    );
    page.row(
        "tools",
        &format_list(&plan.dependencies.tools, "none named"),
    );
    if !plan.dependencies.notes.is_empty() {
        page.row("", &plan.dependencies.notes);
    }
    page.0.push(String::new());
    for (number, step) in plan.steps.iter().enumerate() {
        let lines = step_lines(number + 1, step);
        page.0.extend(lines.iter().map(|line| one_line(line)));
    }
    page.section("Warnings", &plan.warnings);
    page.section("Accepted suggestions", &plan.accepted_suggestions);
    page.section("Rejected suggestions", &plan.rejected_suggestions);
    let speakers: Vec<String> = planned.messages.iter().map(who_said).collect();
    page.section("Who said what", &speakers);
    page.section("Why it is rejected", &plan.safety_violations);
    page.0.push(String::new());
    let verdict = if plan.safety_validated {
        "passes the safety rules"
    } else {
        "rejected; do not run any of it"
    };
    page.row("verdict", verdict);
    let rounds = counted(plan.debate_rounds, "round");
    page.row(
        "hashes",
        &format!(
            "plan {}, prompts {}; {rounds} of debate",
            plan.plan_hash, plan.prompt_hash
        ),
    );
    page.0
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

fn format_list(texts: &[String], none: &str) -> String {
    if texts.is_empty() {
        none.to_owned()
    } else {
        texts.join(", ")
    }
}

/// Cuts a text to so many characters.
#[must_use]
pub fn truncate_chars(text: &str, characters: usize) -> String {
    let text = text.trim();
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let beginning: String = text.chars().take(characters).collect();
    format!("{}...", beginning.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_between_characters_and_marked() {
        assert_eq!(truncate_chars(" äöü ", 3), "äöü");
        assert_eq!(truncate_chars("äöüß", 3), "äöü...");
    }
}
