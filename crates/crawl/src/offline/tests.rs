//! The standard steps of each build system, and that they pass the safety rules.

use super::*;
use crate::artifact::fixture::{build_file, inspection, instant};
use crate::artifact::{ArtifactType, CheckedArtifact, FetchMethod};
use crate::fetch::Fetched;
use crate::inspect::inspect;
use crate::plan::assemble;
use crate::recipe::derive_recipe;

fn with_files(system: &str, files: &[(&str, &str)]) -> Inspection {
    let mut inspection = inspection(system);
    inspection.build_files = files
        .iter()
        .map(|(path, content)| build_file(path, content))
        .collect();
    inspection
}

fn with_scripts(system: &str, package: &str, scripts: &[&str]) -> Inspection {
    let mut inspection = with_files(system, &[("package.json", package)]);
    inspection.scripts = scripts.iter().map(ToString::to_string).collect();
    inspection
}

fn commands(inspection: &Inspection) -> Vec<String> {
    offline_plan(inspection)
        .unwrap()
        .steps
        .into_iter()
        .map(|step| step.cmd)
        .collect()
}

/// An inspection of every kind for which the table has different steps.
fn all() -> Vec<Inspection> {
    let mut all = Vec::new();
    for system in ["cargo", "go", "meson"] {
        all.push(inspection(system));
    }
    for system in ["node-npm", "node-yarn", "node-pnpm"] {
        all.push(inspection(system));
        all.push(with_scripts(system, "{}", &["build", "test"]));
    }
    for system in ["python-poetry", "python-setuptools"] {
        all.push(inspection(system));
        all.push(with_files(
            system,
            &[("pyproject.toml", "[dev]\npytest = \"8\"")],
        ));
    }
    all.push(inspection("python-pip"));
    all.push(with_files(
        "python-pip",
        &[("requirements.txt", "pytest>=8"), ("setup.py", "setup()")],
    ));
    all.push(with_files(
        "cmake",
        &[("CMakeLists.txt", "enable_testing()")],
    ));
    all.push(inspection("cmake"));
    all.push(with_files("autotools", &[("configure", "")]));
    all.push(inspection("autotools"));
    all.push(with_files("make", &[("Makefile", "all:\ntest: all\n")]));
    all.push(inspection("make"));
    let below: Vec<Inspection> = all
        .iter()
        .map(|inspection| Inspection {
            build_dir: "tools".to_owned(),
            ..inspection.clone()
        })
        .collect();
    all.extend(below);
    all
}

#[test]
fn every_standard_plan_passes_the_safety_rules() {
    let mut systems = std::collections::BTreeSet::new();
    for inspection in all() {
        let Ok(outcome) = offline_plan(&inspection) else {
            panic!("{:?}", inspection.artifact.build_system)
        };
        assert!(
            !outcome.steps.is_empty(),
            "{:?}",
            inspection.artifact.build_system
        );
        let planned = assemble(&outcome, &inspection, instant());
        assert_eq!(
            planned.plan.safety_violations,
            Vec::<String>::new(),
            "{:?}",
            outcome.steps
        );
        systems.insert(inspection.artifact.build_system.name.clone());
    }
    assert_eq!(systems.len(), BuildSystem::ALL.len() - 1, "{systems:?}");
}

#[test]
fn offline_plan_states_no_model_was_used() {
    for inspection in all() {
        let outcome = offline_plan(&inspection).unwrap();
        let system = &inspection.artifact.build_system.name;
        assert!(
            outcome.warnings[0].starts_with("No model was asked: ")
                && outcome.warnings[0].contains(system.as_str())
        );
        assert_eq!(
            (
                outcome.rounds,
                outcome.gpt_model.as_str(),
                outcome.claude_model.as_str()
            ),
            (0, "", "")
        );
        assert!(outcome.accepted_suggestions.is_empty() && outcome.rejected_suggestions.is_empty());
        assert!(!outcome.dependencies.tools.is_empty() && !outcome.dependencies.notes.is_empty());
        assert!(outcome.dependencies.tools.is_sorted());
        assert!(
            outcome
                .steps
                .iter()
                .all(|step| step.cwd == inspection.build_dir && step.env.is_empty())
        );
    }
}

#[test]
fn unknown_build_system_has_no_plan() {
    let mut unknown = inspection("unknown");
    let error = offline_plan(&unknown).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no build system was recognised, so there are no standard steps to plan with"
    );
    unknown.artifact.build_system.detected_files =
        vec!["package.json".to_owned(), "pyproject.toml".to_owned()];
    let error = offline_plan(&unknown).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("(seen: package.json, pyproject.toml)"),
        "{error}"
    );
    assert!(
        error.hint().contains("--ref REF:PATH") && !error.hint().contains("model"),
        "no model can help"
    );
    unknown.artifact.build_system.name = "bazel".to_owned();
    assert!(offline_plan(&unknown).is_err());
}

#[test]
fn node_runs_only_scripts_that_the_package_has() {
    assert_eq!(
        commands(&with_scripts("node-npm", "{}", &["build", "test"])),
        ["npm ci", "npm run build", "npm run test"]
    );
    assert_eq!(
        commands(&with_scripts("node-pnpm", "{}", &["test"])),
        ["pnpm install --frozen-lockfile", "pnpm run test"]
    );
    let nothing = with_scripts("node-yarn", "{}", &["start"]);
    assert_eq!(commands(&nothing), ["yarn install --frozen-lockfile"]);
    assert!(offline_plan(&nothing).unwrap().warnings[1].contains("no script named build"));
}

#[test]
fn npm_init_placeholder_test_is_ignored() {
    let package = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
    assert_eq!(
        commands(&with_scripts("node-npm", package, &["test"])),
        ["npm ci"]
    );
}

#[test]
fn pip_plan_installs_existing_files() {
    assert_eq!(
        commands(&with_files("python-pip", &[("requirements.txt", "x")])),
        ["pip install -r requirements.txt"]
    );
    assert_eq!(
        commands(&with_files(
            "python-pip",
            &[("setup.py", "tests_require=['pytest']")]
        )),
        ["pip install .", "pytest"]
    );
    let with_other = with_files("python-pip", &[("setup.py", "pytest_runner, my-pytests")]);
    assert_eq!(commands(&with_other), ["pip install ."]);
}

#[test]
fn autotools_generates_missing_configure() {
    assert_eq!(
        commands(&inspection("autotools"))[0],
        "autoreconf --install"
    );
    let mut shipped = inspection("autotools");
    shipped.artifact.file_tree_summary = "Makefile.am\nconfigure\nconfigure.ac".to_owned();
    assert_eq!(
        commands(&shipped),
        ["./configure", "make -j4", "make check"]
    );
    let mut other = inspection("autotools");
    other.artifact.file_tree_summary = "lib/configure".to_owned();
    assert_eq!(commands(&other)[0], "autoreconf --install");
}

#[test]
fn make_test_requires_a_target_named_test() {
    let makefile = |text: &str| commands(&with_files("make", &[("Makefile", text)]));
    assert_eq!(
        makefile("all:\n\ntest : all\n\t./run\n"),
        ["make", "make test"]
    );
    assert_eq!(makefile("check:\ntest:\n"), ["make", "make check"]);
    for none in [
        "test := x\n",
        "test::=x\n",
        "tests:\n",
        "\ttest:\n",
        "# test:\n",
        "test = 1\n",
    ] {
        assert_eq!(makefile(none), ["make"], "{none:?}");
    }
}

#[test]
fn cmake_tests_only_what_is_registered() {
    let lists = |text: &str| commands(&with_files("cmake", &[("CMakeLists.txt", text)])).len();
    assert_eq!(
        (
            lists("enable_testing()"),
            lists("include(CTest)"),
            lists("project(x)")
        ),
        (3, 3, 2)
    );
}

#[test]
fn nested_build_system_uses_its_directory() {
    let mut below = with_files(
        "make",
        &[("Makefile", "check:\n"), ("src/Makefile", "test:\n")],
    );
    below.build_dir = "src".to_owned();
    let outcome = offline_plan(&below).unwrap();
    assert_eq!(outcome.steps[1].cmd, "make test");
    assert!(outcome.steps.iter().all(|step| step.cwd == "src"));
}

#[test]
fn fixtures_have_offline_plans_matching_their_schemas() {
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let offline = |name: &str| {
        let repo = crate::artifact::fixture::repo_at();
        let fetched = Fetched {
            tree: fixtures.join(name),
            repo,
            method: FetchMethod::ShallowClone,
            subpath: None,
        };
        let inspection = inspect(&fetched, None, instant()).unwrap();
        let outcome = offline_plan(&inspection)?;
        let plan = assemble(&outcome, &inspection, instant()).plan;
        assert_eq!(plan.safety_violations, Vec::<String>::new());
        CheckedArtifact::new(ArtifactType::Plan, &plan).unwrap();
        let recipe = derive_recipe(&plan, &inspection, instant());
        CheckedArtifact::new(ArtifactType::Recipe, &recipe).unwrap();
        let phased = recipe
            .normalized_commands
            .iter()
            .map(|it| format!("{:?}: {}", it.phase, it.cmd));
        Ok::<_, OfflineError>((phased.collect::<Vec<String>>(), recipe.toolchain))
    };
    let (commands, tools) = offline("cargo-repo").unwrap();
    assert_eq!(
        commands,
        ["Build: cargo build --release", "Test: cargo test"]
    );
    assert_eq!(tools.required, ["cargo", "rustc"]);
    let (commands, tools) = offline("node-repo").unwrap();
    assert_eq!(
        commands,
        [
            "Fetch: npm ci",
            "Build: npm run build",
            "Test: npm run test"
        ]
    );
    assert_eq!(tools.version_constraints["node"], ">=18");
    let (commands, _) = offline("python-repo").unwrap();
    assert_eq!(commands, ["Fetch: poetry install", "Build: poetry build"]);
}
