//! Assembles the plan from the result of a debate: code adds hashes, warnings and the safety verdict.
//!
//! Everything that is executed (commands, directories, variables) keeps its exact bytes, so the verdict
//! is about what would run. Texts for people (names, notes, warnings, suggestions) are sanitised: one
//! line, no invisible characters, bounded; a warning says if something was cut or left out.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crucible_model::{Timestamp, counted, is_hidden, single_spaced};

use crate::artifact::{Dependencies, Detected, PlanRepository, PlanStep, PlanV1};
use crate::debate::{DebateOutcome, prompt_hash};
use crate::inspect::Inspection;
use crate::safety::{PlanSafety, Workspace, validate_plan_safety};

/// The warning of a plan whose inspection reached a cap.
const TRUNCATED: &str =
    "Inspection data was truncated due to sampling caps. Plan may be incomplete.";

/// The root for judging a plan. Its paths are relative and its real location is unknown, so this is not a
/// real directory.
const NOTIONAL_ROOT: &str = "/workspace";

/// The most characters of a step's name.
const NAME_CHARS: usize = 100;
/// The most characters of a program's name.
const TOOL_CHARS: usize = 100;
/// The most characters of a note, a warning or a suggestion.
const TEXT_CHARS: usize = 600;
/// The most characters of the notes on dependencies.
const NOTES_CHARS: usize = 2000;
/// The most entries of a list.
const LIST_ENTRIES: usize = 100;

/// A plan with its verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The plan; `safety_validated` follows the verdict.
    pub plan: PlanV1,
    /// The verdict.
    pub safety: PlanSafety,
}

/// Assembles the plan and judges it.
#[must_use]
pub(crate) fn assemble(outcome: &DebateOutcome, inspection: &Inspection, at: Timestamp) -> Planned {
    let artifact = &inspection.artifact;
    let mut plain = Plain::default();
    let steps: Vec<PlanStep> = (1..)
        .zip(&outcome.steps)
        .map(|(number, step)| plain.step(number, step))
        .collect();
    let mut plan = PlanV1 {
        schema: PlanV1::SCHEMA.to_owned(),
        created_at: at,
        plan_hash: PlanV1::hash_of(&steps),
        prompt_hash: prompt_hash(),
        repo: PlanRepository::from(&artifact.repo),
        detected: Detected {
            build_system: artifact.build_system.name.clone(),
            confidence: artifact.build_system.confidence,
        },
        dependencies: Dependencies {
            tools: plain.list(&outcome.dependencies.tools, TOOL_CHARS),
            notes: plain.text(&outcome.dependencies.notes, NOTES_CHARS),
        },
        steps,
        warnings: plain.list(&outcome.warnings, TEXT_CHARS),
        debate_rounds: u64::from(outcome.rounds),
        accepted_suggestions: plain.list(&outcome.accepted_suggestions, TEXT_CHARS),
        rejected_suggestions: plain.list(&outcome.rejected_suggestions, TEXT_CHARS),
        safety_validated: false,
        safety_violations: Vec::new(),
    };
    let workspace = Workspace {
        root: PathBuf::from(NOTIONAL_ROOT),
        links: inspection.links.clone(),
        declared: [(inspection.build_dir.clone(), inspection.declared.clone())].into(),
    };
    let safety = validate_plan_safety(&plan, &workspace);
    plan.safety_validated = safety.is_valid();
    plan.safety_violations = safety.violations();
    let truncated = artifact.sampling_truncated.then(|| TRUNCATED.to_owned());
    plan.warnings.extend(plain.warning());
    plan.warnings.extend(truncated);
    plan.warnings.extend(safety.warnings());
    let mut seen = BTreeSet::new();
    plan.warnings.retain(|warning| seen.insert(warning.clone()));
    Planned { plan, safety }
}

/// Sanitises texts for people, and counts omissions.
#[derive(Default)]
struct Plain {
    cut: u64,
    dropped: u64,
}

impl Plain {
    /// The step with sanitised texts; its command is unchanged. A step without a name gets its number.
    fn step(&mut self, number: usize, step: &PlanStep) -> PlanStep {
        let name = self.text(&step.name, NAME_CHARS);
        let name = if name.is_empty() {
            format!("step-{number}")
        } else {
            name
        };
        PlanStep {
            name,
            note: self.text(&step.note, TEXT_CHARS),
            ..step.clone()
        }
    }

    /// Sanitised entries without empty and repeated ones.
    fn list(&mut self, entries: &[String], longest: usize) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let mut list: Vec<String> = entries
            .iter()
            .map(|entry| self.text(entry, longest))
            .filter(|entry| !entry.is_empty() && seen.insert(entry.clone()))
            .collect();
        self.dropped += list.len().saturating_sub(LIST_ENTRIES) as u64;
        list.truncate(LIST_ENTRIES);
        list
    }

    /// One line without invisible characters, at most this many characters; a cut text ends in `…`.
    fn text(&mut self, text: &str, longest: usize) -> String {
        let content: String = text
            .chars()
            .filter(|c| !is_hidden(*c) || c.is_whitespace())
            .collect();
        let mut line = single_spaced(&content);
        if line.char_indices().nth(longest).is_some() {
            self.cut += 1;
            let end = line
                .char_indices()
                .nth(longest.saturating_sub(1))
                .map_or(0, |(end, _)| end);
            line.truncate(end);
            line.push('…');
        }
        line
    }

    fn warning(&self) -> Option<String> {
        let texts = |count: u64, what: &str| {
            (count > 0).then(|| format!("{} {what}", counted(count, "text")))
        };
        let parts: Vec<String> = [texts(self.cut, "cut"), texts(self.dropped, "left out")]
            .into_iter()
            .flatten()
            .collect();
        (!parts.is_empty()).then(|| format!("The answers were too long: {}.", parts.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::fixture;
    use crate::artifact::{ArtifactType, CheckedArtifact};

    fn outcome(steps: Vec<PlanStep>) -> DebateOutcome {
        DebateOutcome {
            steps,
            rounds: 2,
            ..DebateOutcome::default()
        }
    }

    fn cargo_steps() -> Vec<PlanStep> {
        vec![fixture::step("build", "cargo build --release")]
    }

    fn at() -> Timestamp {
        fixture::instant()
    }

    #[test]
    fn assembled_plan_matches_its_schema() {
        let inspection = fixture::inspection("cargo");
        let planned = assemble(&outcome(cargo_steps()), &inspection, at());
        let plan = &planned.plan;
        assert_eq!(plan.repo, PlanRepository::from(&inspection.artifact.repo));
        assert_eq!(
            (
                plan.detected.build_system.as_str(),
                plan.detected.confidence
            ),
            ("cargo", 0.95)
        );
        assert_eq!((plan.debate_rounds, plan.created_at), (2, at()));
        assert_eq!(plan.plan_hash, PlanV1::hash_of(&cargo_steps()));
        assert_eq!(plan.prompt_hash, prompt_hash());
        assert!(
            plan.safety_validated && plan.safety_violations.is_empty() && planned.safety.is_valid(),
            "{plan:?}"
        );
        assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
        CheckedArtifact::new(ArtifactType::Plan, plan).unwrap();
    }

    #[test]
    fn rejected_plan_lists_violations() {
        let steps = vec![fixture::step("evil", "sudo make install")];
        let planned = assemble(&outcome(steps), &fixture::inspection("make"), at());
        assert!(!planned.plan.safety_validated && !planned.safety.is_valid());
        assert_eq!(planned.plan.safety_violations, planned.safety.violations());
        assert!(!planned.plan.safety_violations.is_empty());
        CheckedArtifact::new(ArtifactType::Plan, &planned.plan).unwrap();
    }

    #[test]
    fn linked_cwd_of_repository_is_refused() {
        let mut inspection = fixture::inspection("cargo");
        let steps = vec![PlanStep {
            cwd: "vendor/x".to_owned(),
            ..fixture::step("build", "cargo build")
        }];
        assert!(
            assemble(&outcome(steps.clone()), &inspection, at())
                .plan
                .safety_validated
        );
        inspection.links.insert("vendor".to_owned());
        assert!(
            !assemble(&outcome(steps), &inspection, at())
                .plan
                .safety_validated
        );
    }

    #[test]
    fn plan_without_steps_is_refused() {
        let planned = assemble(&outcome(Vec::new()), &fixture::inspection("cargo"), at());
        assert!(!planned.plan.safety_validated);
        let error = CheckedArtifact::new(ArtifactType::Plan, &planned.plan)
            .unwrap_err()
            .to_string();
        assert!(error.contains("/steps: "), "{error}");
    }

    #[test]
    fn truncation_warning_appears_once() {
        let mut inspection = fixture::inspection("cargo");
        inspection.artifact.sampling_truncated = true;
        let words = "Inspection data was truncated due to sampling caps. Plan may be incomplete.";
        let mut outcome = outcome(cargo_steps());
        outcome.warnings = vec!["first".to_owned(), words.to_owned(), "first".to_owned()];
        let plan = assemble(&outcome, &inspection, at()).plan;
        assert_eq!(plan.warnings, ["first", words]);
    }

    #[test]
    fn long_model_texts_keep_our_warnings() {
        let inspection = fixture::inspection("cargo");
        let mut outcome = outcome(cargo_steps());
        outcome.warnings = vec!["our note".to_owned()];
        outcome
            .warnings
            .extend((0..150).map(|number| number.to_string()));
        let warnings = assemble(&outcome, &inspection, at()).plan.warnings;
        assert_eq!(
            (warnings[0].as_str(), warnings[99].as_str()),
            ("our note", "98")
        );
        assert_eq!(
            warnings[100],
            "The answers were too long: 51 texts left out."
        );
    }

    #[test]
    fn text_of_maximum_length_is_kept() {
        let mut outcome = outcome(cargo_steps());
        outcome.warnings = vec!["ü".repeat(600), "ü".repeat(601)];
        let warnings = assemble(&outcome, &fixture::inspection("cargo"), at())
            .plan
            .warnings;
        assert_eq!(
            warnings[..2],
            ["ü".repeat(600), format!("{}…", "ü".repeat(599))]
        );
    }

    #[test]
    fn warning_order_is_stable_with_safety_last() {
        let mut inspection = fixture::inspection("make");
        inspection.artifact.sampling_truncated = true;
        let outcome = DebateOutcome {
            warnings: vec!["z".to_owned(), "a".to_owned()],
            ..outcome(vec![fixture::step("build", "make")])
        };
        let planned = assemble(&outcome, &inspection, at());
        let safety = planned.safety.warnings();
        assert!(!safety.is_empty(), "make is below 0.80");
        let expected: Vec<String> = ["z", "a", TRUNCATED]
            .into_iter()
            .map(str::to_owned)
            .chain(safety)
            .collect();
        assert_eq!(planned.plan.warnings, expected);
    }

    #[test]
    fn texts_are_sanitised_and_commands_unchanged() {
        let cmd = "cargo build\u{1b}[2J\n\u{202e}";
        let steps = vec![PlanStep {
            name: " bu\u{1b}ild\n now\u{202e} ".to_owned(),
            note: "a\tb\u{0}".to_owned(),
            cwd: "a\u{200b}".to_owned(),
            ..fixture::step("", cmd)
        }];
        let outcome = DebateOutcome {
            warnings: vec![
                "x".repeat(700),
                "\u{1b}\n".to_owned(),
                "\u{1b}[31mred".to_owned(),
            ],
            accepted_suggestions: (0..150).map(|number| number.to_string()).collect(),
            dependencies: Dependencies {
                tools: vec!["car\u{0}go".to_owned()],
                notes: "y\r\nz".to_owned(),
            },
            ..outcome(steps)
        };
        let plan = assemble(&outcome, &fixture::inspection("cargo"), at()).plan;
        let step = &plan.steps[0];
        assert_eq!(
            (step.name.as_str(), step.note.as_str()),
            ("build now", "a b")
        );
        assert_eq!((step.cmd.as_str(), step.cwd.as_str()), (cmd, "a\u{200b}"));
        assert!(!plan.safety_validated);
        assert_eq!(plan.warnings[0], format!("{}…", "x".repeat(599)));
        assert_eq!(plan.warnings[1], "[31mred");
        assert_eq!(
            plan.warnings[2],
            "The answers were too long: 1 text cut, 50 texts left out."
        );
        assert_eq!(plan.accepted_suggestions.len(), 100);
        assert_eq!(
            (
                plan.dependencies.tools[0].as_str(),
                plan.dependencies.notes.as_str()
            ),
            ("cargo", "y z")
        );
    }

    #[test]
    fn unnamed_step_gets_its_number() {
        let steps = vec![
            fixture::step("a", "cargo build"),
            fixture::step("\u{200b}", "cargo test"),
        ];
        let plan = assemble(&outcome(steps), &fixture::inspection("cargo"), at()).plan;
        assert_eq!(plan.steps[1].name, "step-2");
    }
}
