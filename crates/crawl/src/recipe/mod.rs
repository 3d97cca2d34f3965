//! Derives a recipe from a plan by rules: each command gets its phase, programs and variables are
//! collected, and a table gives the directories. No model is used, and the same plan and inspection give
//! the same recipe. Commands are parsed by the same grammar that judged them.
//!
//! The workspace is the inspected top level: the checkout, or the selected sub-project. Every directory
//! of a recipe is relative to it.

mod layout;
mod phase;

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::Timestamp;

use crate::artifact::{CommandPhase, NormalizedCommand, PlanV1, RecipeV1, Toolchain};
use crate::inspect::Inspection;

/// Derives the recipe of a plan.
#[must_use]
pub(crate) fn derive_recipe(plan: &PlanV1, inspection: &Inspection, at: Timestamp) -> RecipeV1 {
    let commands: Vec<NormalizedCommand> = plan
        .steps
        .iter()
        .map(|step| NormalizedCommand {
            phase: phase::classify(&step.cmd),
            cmd: step.cmd.clone(),
            cwd: step.cwd.clone(),
        })
        .collect();
    let mut notes = vec![
        "Run the commands in order, each in its cwd, with the variables of environment.".to_owned(),
    ];
    if let Some((_, subpath)) = plan.repo.selected_ref.split_once(':') {
        notes.push(format!(
            "The workspace is the directory {subpath} of the checkout."
        ));
    }
    let environment = environment(plan, &mut notes);
    let constraints = &inspection.version_constraints;
    if !constraints.is_empty() {
        notes.push(
            "The version constraints are those of the repository's own build files.".to_owned(),
        );
    }
    if !plan.dependencies.notes.is_empty() {
        notes.push(plan.dependencies.notes.clone());
    }
    RecipeV1 {
        schema: RecipeV1::SCHEMA.to_owned(),
        created_at: at,
        source_plan_hash: plan.plan_hash.clone(),
        repo: plan.repo.clone(),
        build_system: plan.detected.build_system.clone(),
        toolchain: toolchain(plan, &commands, constraints),
        environment,
        workspace_layout: layout::workspace_layout(plan, &inspection.build_dir),
        normalized_commands: commands,
        notes: notes.join("\n"),
    }
}

/// The programs that the plan names or that its commands begin with are required. A program used only by
/// tests, and not named by the plan, is optional.
fn toolchain(
    plan: &PlanV1,
    commands: &[NormalizedCommand],
    constraints: &BTreeMap<String, String>,
) -> Toolchain {
    let mut required: BTreeSet<String> = plan.dependencies.tools.iter().cloned().collect();
    let mut optional = BTreeSet::new();
    for command in commands {
        let Some(program) = program(&command.cmd) else {
            continue;
        };
        if command.phase == CommandPhase::Test {
            optional.insert(program.to_owned());
        } else {
            required.insert(program.to_owned());
        }
    }
    optional.retain(|program| !required.contains(program));
    Toolchain {
        required: required.into_iter().collect(),
        optional: optional.into_iter().collect(),
        version_constraints: constraints.clone(),
    }
}

/// The program of a command; none if it is a file of the repository.
fn program(cmd: &str) -> Option<&str> {
    cmd.split_whitespace()
        .next()
        .filter(|word| !word.contains('/'))
}

/// The variables of all steps; if two steps disagree, the first one is used, with a note.
fn environment(plan: &PlanV1, notes: &mut Vec<String>) -> BTreeMap<String, String> {
    let mut environment: BTreeMap<String, String> = BTreeMap::new();
    for step in &plan.steps {
        for (name, value) in &step.env {
            let first = environment
                .entry(name.clone())
                .or_insert_with(|| value.clone());
            if first != value {
                notes.push(format!(
                    "The steps disagree about {name}: environment has {first}, the step {} has {value}.",
                    step.name
                ));
            }
        }
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::{ArtifactType, CheckedArtifact, PlanStep, fixture};
    use crate::offline::offline_plan;
    use crate::plan::assemble;

    fn plan(steps: Vec<PlanStep>) -> PlanV1 {
        PlanV1 {
            steps,
            ..fixture::plan_document()
        }
    }

    fn recipe(plan: &PlanV1) -> RecipeV1 {
        derive_recipe(plan, &fixture::inspection("cargo"), fixture::instant())
    }

    #[test]
    fn recipe_follows_the_plan() {
        let mut inspection = fixture::inspection("cargo");
        inspection
            .version_constraints
            .insert("rustc".to_owned(), ">=1.70".to_owned());
        let plan = plan(vec![
            fixture::step("build", "cargo build"),
            fixture::step("test", "cargo test"),
        ]);
        let recipe = derive_recipe(&plan, &inspection, fixture::instant());
        assert_eq!(
            (&recipe.source_plan_hash, &recipe.repo),
            (&plan.plan_hash, &plan.repo)
        );
        assert_eq!(
            recipe.toolchain.version_constraints,
            inspection.version_constraints
        );
        let phases: Vec<CommandPhase> = recipe
            .normalized_commands
            .iter()
            .map(|command| command.phase)
            .collect();
        assert_eq!(phases, [CommandPhase::Build, CommandPhase::Test]);
        assert!(
            recipe.notes.contains("repository's own build files"),
            "{}",
            recipe.notes
        );
        CheckedArtifact::new(ArtifactType::Recipe, &recipe).unwrap();
    }

    #[test]
    fn programs_are_required_unless_only_tests_use_them() {
        let mut plan = plan(vec![
            fixture::step("configure", "cmake -S . -B build"),
            fixture::step("make", "./configure"),
            fixture::step("copy", "cp build/x out"),
            fixture::step("test", "ctest --test-dir build"),
        ]);
        plan.dependencies.tools = vec!["ninja".to_owned(), "cc".to_owned(), "cc".to_owned()];
        let toolchain = recipe(&plan).toolchain;
        assert_eq!(toolchain.required, ["cc", "cmake", "cp", "ninja"]);
        assert_eq!(toolchain.optional, ["ctest"]);
        plan.dependencies.tools.push("ctest".to_owned());
        assert!(recipe(&plan).toolchain.optional.is_empty());
    }

    #[test]
    fn conflicting_variables_are_noted() {
        let with = |name: &str, pairs: &[(&str, &str)]| PlanStep {
            env: pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..fixture::step(name, "cargo build")
        };
        let plan = plan(vec![
            with("one", &[("CI", "1")]),
            with("two", &[("A", "x"), ("CI", "2")]),
            with("three", &[("CI", "1")]),
        ]);
        let recipe = recipe(&plan);
        let pairs: Vec<(&str, &str)> = recipe
            .environment
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(pairs, [("A", "x"), ("CI", "1")]);
        assert_eq!(recipe.notes.matches("disagree").count(), 1);
        assert!(
            recipe
                .notes
                .contains("The steps disagree about CI: environment has 1, the step two has 2.")
        );
    }

    #[test]
    fn sub_project_is_named_as_workspace() {
        let mut plan = plan(vec![fixture::step("build", "cargo build")]);
        assert!(!recipe(&plan).notes.contains("checkout"));
        plan.repo.selected_ref = "v1:packages/core".to_owned();
        assert!(
            recipe(&plan)
                .notes
                .contains("The workspace is the directory packages/core of the checkout.")
        );
    }

    #[test]
    fn standard_plans_have_valid_recipes() {
        for system in crucible_repo::BuildSystem::ALL {
            let inspection = fixture::inspection(system.as_str());
            let Ok(outcome) = offline_plan(&inspection) else {
                assert_eq!(system, crucible_repo::BuildSystem::Unknown);
                continue;
            };
            let plan = assemble(&outcome, &inspection, fixture::instant()).plan;
            let recipe = derive_recipe(&plan, &inspection, fixture::instant());
            assert_eq!(recipe.normalized_commands.len(), plan.steps.len());
            CheckedArtifact::new(ArtifactType::Recipe, &recipe).unwrap();
        }
    }
}
