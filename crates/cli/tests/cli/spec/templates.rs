//! Templates of specs, and the templates of pipelines that judge them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crucible_host::clock::clock_from;
use crucible_host::env::Environment;
use crucible_ledger::Ledger;
use crucible_model::Digest;
use crucible_spec::{
    LockClaim, PhaseId, PhaseOutput, ReceiptId, SpecProject, SpecReceipt, SpecStore, TEMPLATES,
};
use serde_json::{Value, json};

use super::support::{self, valid};
use crate::support::{Fixture, Ran, Snapshot};

/// The schema of what is told of a new spec.
const INIT_SCHEMA: &str =
    include_str!("../../../../../docs/schemas/crucible-template-init-v1.schema.json");

/// An empty project.
fn project(fixture: &Fixture) -> PathBuf {
    let project = fixture.path("project");
    std::fs::create_dir_all(project.join(".git")).unwrap();
    project
}

fn template(fixture: &Fixture, args: &[&str]) -> Ran {
    fixture
        .call([&["template"], args].concat())
        .current_dir(fixture.path("project"))
        .run()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_templates_are_listed_for_people_and_programs() {
    let fixture = Fixture::new();
    project(&fixture);
    let names = [
        "docs-refactor",
        "fullstack-web",
        "python-service",
        "rust-service",
    ];
    let ran = template(&fixture, &["list"]).ok();
    for name in names {
        assert!(ran.stdout.contains(name), "{}", ran.stdout);
    }
    let listed = template(&fixture, &["list", "--json"]).ok().json();
    valid(
        &listed,
        include_str!("../../../../../docs/schemas/crucible-templates-v1.schema.json"),
    );
    assert_eq!(listed["schema_version"], "crucible-templates-v1");
    let rows = listed["templates"].as_array().unwrap();
    assert_eq!(
        rows.iter()
            .map(|row| row["name"].as_str().unwrap())
            .collect::<Vec<_>>(),
        names
    );
    assert!(
        rows.iter()
            .all(|row| !row["summary"].as_str().unwrap().is_empty())
    );
}

#[test]
fn templates_start_specs_with_idea_and_commands() {
    let fixture = Fixture::new();
    let project = project(&fixture);
    for template in TEMPLATES {
        let id = format!("my-{}", template.name);
        let ran = fixture
            .call(["template", "init", template.name, &id])
            .current_dir(&project)
            .run()
            .ok();
        let next = format!("crucible spec {id} --through tasks");
        assert!(
            ran.stdout.ends_with(&format!("      {next}\n")),
            "{}",
            ran.stdout
        );
        let spec = project.join(".crucible/specs").join(&id);
        assert_eq!(text(&spec.join("context/idea.md")), template.idea);
        let readme = text(&spec.join("README.md"));
        let blocks = readme
            .split("```sh\n")
            .skip(1)
            .filter_map(|block| block.split("```").next());
        let commands: String = blocks.collect();
        for command in [
            next,
            format!("crucible status {id}"),
            format!("crucible gate {id}"),
        ] {
            assert!(
                commands.lines().any(|line| line == command),
                "{command} is not in\n{commands}"
            );
        }
        assert!(!project.join("workspace.yaml").exists());
    }
}

#[test]
fn the_commands_of_a_templates_readme_run() {
    let server = support::answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let variables = json!({ "CRUCIBLE_LLM_PROVIDER": "gateway", "CRUCIBLE_GATEWAY_BASE_URL": server.base_url() });
    for (place, template) in TEMPLATES.iter().enumerate() {
        self::template(&fixture, &["init", template.name, template.name]).ok();
        let readme = text(
            &project
                .join(".crucible/specs")
                .join(template.name)
                .join("README.md"),
        );
        let blocks = readme
            .split("```sh\n")
            .skip(1)
            .filter_map(|block| block.split("```").next());
        let commands: String = blocks.collect();
        let ran = shell(&fixture, &project, &variables, &commands).ok();
        assert!(ran.stdout.contains("20-tasks.md"), "{}", ran.stdout);
        let requests = server.completions();
        assert_eq!(requests.len(), 3 * (place + 1));
        let question = requests[3 * place].conversation();
        assert!(
            question.contains(template.idea.lines().next().unwrap()),
            "the idea is asked about: {question}"
        );
    }
}

#[test]
fn existing_spec_is_kept_unless_forced() {
    let fixture = Fixture::new();
    let project = project(&fixture);
    template(&fixture, &["init", "rust-service", "links"]).ok();
    let spec = project.join(".crucible/specs/links");
    let idea = spec.join("context/idea.md");
    std::fs::write(&idea, "my own\n").unwrap();
    std::fs::create_dir_all(spec.join("artifacts")).unwrap();
    std::fs::write(spec.join("artifacts/00-requirements.md"), "mine\n").unwrap();
    let before = Snapshot::take([&project]);
    let message = template(&fixture, &["init", "docs-refactor", "links", "--json"])
        .exits(2)
        .message();
    assert_eq!(message, "the spec links already exists and was not changed");
    before.is_still(&Snapshot::take([&project]));

    let done = template(
        &fixture,
        &["init", "docs-refactor", "links", "--force", "--json"],
    )
    .ok()
    .json();
    valid(&done, INIT_SCHEMA);
    assert_eq!(
        (&done["template"], &done["spec_id"]),
        (&"docs-refactor".into(), &"links".into())
    );
    assert!(text(&idea).starts_with("# Documentation that answers"));
    assert_eq!(text(&spec.join("artifacts/00-requirements.md")), "mine\n");
}

#[test]
fn unknown_template_or_spec_is_usage_error() {
    let fixture = Fixture::new();
    let project = project(&fixture);
    let long = "a".repeat(300);
    for args in [
        ["init", "no-such", "links"],
        ["init", "rust-service", "../links"],
        ["init", "rust-service", "a/b"],
        ["init", "rust-service", "ünder"],
        ["init", "rust-service", &long],
    ] {
        template(&fixture, &args).exits(2);
    }
    let ran = template(&fixture, &["init", "no-such", "links"]).exits(2);
    assert!(ran.stderr.contains("rust-service"), "{}", ran.stderr);
    assert!(!project.join(".crucible").exists());
}

#[test]
fn spec_from_template_is_listed_in_workspace() {
    let fixture = Fixture::new();
    let project = project(&fixture);
    let list = project.join("workspace.yaml");
    std::fs::write(&list, "# ours\nversion: \"1\"\nname: shop\nspecs: []\n").unwrap();
    let ran = template(&fixture, &["init", "rust-service", "links"]).ok();
    assert!(ran.stdout.contains("listed in "), "{}", ran.stdout);
    let listed = text(&list);
    assert!(
        listed.starts_with("# ours\n")
            && listed.contains("links")
            && listed.contains("rust-service"),
        "{listed}"
    );
    // Once is enough.
    template(&fixture, &["init", "rust-service", "links", "--force"]).ok();
    assert_eq!(text(&list), listed);
    // A list that cannot take it is told before anything is written.
    std::fs::write(&list, "version: \"9\"\nname: shop\n").unwrap();
    template(&fixture, &["init", "rust-service", "other"]).exits(2);
    assert!(!project.join(".crucible/specs/other").exists());

    for named in ["../elsewhere", "../missing.yaml"] {
        let ran = template(
            &fixture,
            &["init", "rust-service", "links", "--workspace", named],
        )
        .exits(2);
        let message = format!(
            "--workspace: {} is not a file",
            fixture.path("project").join(named).display()
        );
        assert!(ran.stderr.contains(&message), "{}", ran.stderr);
    }

    // The workspace that is named decides where the spec lies.
    let elsewhere = fixture.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(
        elsewhere.join("workspace.yaml"),
        "version: \"1\"\nname: other\nspecs: []\n",
    )
    .unwrap();
    template(
        &fixture,
        &[
            "init",
            "rust-service",
            "links",
            "--workspace",
            "../elsewhere/workspace.yaml",
        ],
    )
    .ok();
    assert!(
        elsewhere
            .join(".crucible/specs/links/context/idea.md")
            .exists()
    );
    assert!(text(&elsewhere.join("workspace.yaml")).contains("links"));
}

#[test]
fn unwritable_workspace_prevents_starting_a_spec() {
    let fixture = Fixture::new();
    let project = project(&fixture);
    let list = project.join("workspace.yaml");
    let good = "version: \"1\"\nname: shop\nspecs: []\n";
    let read_only = |list: &Path| {
        std::fs::write(list, good).unwrap();
        std::fs::set_permissions(list, PermissionsExt::from_mode(0o444)).unwrap();
    };
    let link = |list: &Path| {
        std::fs::write(list.with_file_name("real.yaml"), good).unwrap();
        std::os::unix::fs::symlink("real.yaml", list).unwrap();
    };
    let dangling = |list: &Path| std::os::unix::fs::symlink("nowhere", list).unwrap();
    let shared = |list: &Path| {
        std::fs::write(
            list,
            "version: \"1\"\nname: shop\nspecs: &all [{id: a}]\nmore: *all\n",
        )
        .unwrap();
    };
    let kinds: [&dyn Fn(&Path); 4] = [&read_only, &link, &dangling, &shared];
    for (number, make) in kinds.into_iter().enumerate() {
        make(&list);
        let ran = template(&fixture, &["init", "rust-service", "links"]);
        assert!(
            matches!(ran.code, Some(1 | 2)),
            "{number}: {:?} {}",
            ran.code,
            ran.stderr
        );
        assert!(
            ran.stderr.contains("workspace.yaml"),
            "{number}: {}",
            ran.stderr
        );
        assert!(
            !project.join(".crucible").exists(),
            "{number}: half of it is done"
        );
        std::fs::remove_file(&list).unwrap();
    }
    // Once it can be changed, the same command does all of it.
    std::fs::write(&list, good).unwrap();
    let done = template(&fixture, &["init", "rust-service", "links", "--json"])
        .ok()
        .json();
    valid(&done, INIT_SCHEMA);
    assert_eq!(done["listed_in"], list.to_str().unwrap());
    assert!(text(&list).contains("links") && Path::new(done["idea"].as_str().unwrap()).is_file());
}

/// Brings a spec to the end of its tasks, as the phases would.
fn finished(fixture: &Fixture, project: &Path) -> SpecStore {
    let store = SpecStore::new(&SpecProject::at(project), "export-data".parse().unwrap());
    let lock = store.lock("test", LockClaim::IfFree).unwrap();
    lock.write_context("idea.md", b"users can export their data\n")
        .unwrap();
    drop(lock);
    bring_through(fixture, &store, PhaseId::Tasks.up_to());
    store
}

/// Runs these phases, as far as a gate can tell. A fixup stays pending.
fn bring_through(fixture: &Fixture, store: &SpecStore, phases: impl Iterator<Item = PhaseId>) {
    std::fs::create_dir_all(fixture.data()).unwrap();
    let mut ledger = Ledger::open(&fixture.data().join("ledger.db")).unwrap();
    let now = clock_from(&Environment::from_pairs::<&str, &str>([], "/"))
        .unwrap()
        .now();
    let lock = store.lock("test", LockClaim::IfFree).unwrap();
    let record = |path: &str, bytes: &[u8]| json!({ "path": path, "sha256": Digest::compute(bytes), "bytes": bytes.len() });
    for phase in phases {
        let before = phase.up_to().filter(|before| *before != phase);
        let made_from = before.map(|before| format!("artifacts/{}", before.artifact()));
        let made_from = std::iter::once("context/idea.md".to_owned()).chain(made_from);
        let inputs: Vec<Value> = made_from
            .map(|path| record(&path, &std::fs::read(store.dir().join(&path)).unwrap()))
            .collect();
        let bytes = format!("# {phase}\n").into_bytes();
        let path = format!("artifacts/{}", phase.artifact());
        let mut entry = json!({
            "phase_id": phase, "status": "success", "attempts": 1, "inputs": inputs, "outputs": [record(&path, &bytes)],
            "llm": { "provider": "replay", "model_used": "model-1" }, "started_at": now, "finished_at": now,
            "packet": { "sha256": Digest::compute(&bytes), "bytes": bytes.len(), "lines": 1, "entries": 1 },
        });
        if phase == PhaseId::Fixup {
            entry["fixups"] = json!({ "stage": "pending", "files": [{ "path": "a.rs" }] });
        }
        let id = ReceiptId::new(phase, now, lock.next_sequence().unwrap());
        let receipt: SpecReceipt = serde_json::from_value(json!({
            "receipt_id": id.as_str(), "spec_id": "export-data", "emitted_at": now, "clock": "system", "exit_code": 0,
            "pipeline": { "execution_strategy": "controlled" }, "phases": [entry],
        }))
        .unwrap();
        lock.promote(receipt, vec![PhaseOutput { path, bytes }], &mut ledger)
            .unwrap();
    }
}

/// Runs the lines of a pipeline as its runner does, with the program on the search path.
fn shell(fixture: &Fixture, project: &Path, variables: &Value, lines: &str) -> Ran {
    let program = Path::new(env!("CARGO_BIN_EXE_crucible")).parent().unwrap();
    let mut search = program.as_os_str().to_owned();
    search.push(":");
    search.push(std::env::var_os("PATH").unwrap());
    let mut command = Command::new("bash");
    command
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", lines])
        .current_dir(project)
        .env_clear();
    for (name, value) in variables.as_object().unwrap() {
        let value = value
            .as_str()
            .unwrap()
            .replace("$CI_PROJECT_DIR", project.to_str().unwrap());
        command.env(name, value);
    }
    command
        .env("PATH", search)
        .env("HOME", fixture.home())
        .env("CRUCIBLE_HOME", fixture.path("runner"));
    let output = command.output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A good spec, the same with a fixup that waits, after an edit by hand, and none.
fn states() -> [(&'static str, i32); 4] {
    [("good", 0), ("pending", 1), ("edited", 1), ("gone", 2)]
}

fn bring_to(state: &str, fixture: &Fixture, store: &SpecStore) {
    match state {
        "pending" => bring_through(
            fixture,
            store,
            [PhaseId::Review, PhaseId::Fixup].into_iter(),
        ),
        "edited" => {
            std::fs::write(store.dir().join("artifacts/10-design.md"), "# other\n").unwrap()
        }
        "gone" => std::fs::rename(store.dir(), store.dir().with_file_name("moved")).unwrap(),
        _ => {}
    }
}

#[test]
fn github_pipeline_judges_spec_with_least_rights() {
    let source = include_str!("../../../../../docs/ci/github-actions.yml");
    let workflow: Value = serde_saphyr::from_str(source).unwrap();
    let job = &workflow["jobs"]["gate"];
    assert_eq!(workflow["permissions"], json!({ "contents": "read" }));
    assert_eq!(
        job["permissions"],
        json!({ "contents": "read", "security-events": "write" })
    );
    assert!(job["timeout-minutes"].is_u64() && !source.contains("secrets."));
    let steps = job["steps"].as_array().unwrap();
    for step in steps.iter().filter_map(|step| step["uses"].as_str()) {
        let version = step
            .split_once("@v")
            .map(|(_, version)| version.parse::<u32>());
        assert!(matches!(version, Some(Ok(_))), "{step} is not pinned");
    }
    assert_eq!(steps[0]["with"]["persist-credentials"], false);
    let runs: Vec<&str> = steps
        .iter()
        .filter_map(|step| step["run"].as_str())
        .collect();
    let (own, others): (Vec<&str>, Vec<&str>) = runs
        .into_iter()
        .partition(|run| run.starts_with("crucible "));
    assert!(
        others
            .iter()
            .all(|run| run.starts_with("cargo install --locked ")),
        "{others:?}"
    );
    let [findings, gate] = own[..] else {
        panic!("{own:?}")
    };

    let fixture = Fixture::new();
    let project = project(&fixture);
    let store = finished(&fixture, &project);
    for (state, code) in states() {
        bring_to(state, &fixture, &store);
        let written = shell(&fixture, &project, &job["env"], findings);
        // What the gate could not judge fails at once; a spec that it refuses is a finding.
        let written = written.exits(i32::from(code == 2));
        let judged = shell(&fixture, &project, &job["env"], gate).exits(code);
        if code == 2 {
            assert!(
                written.stderr.contains("there is no spec export-data"),
                "{}",
                written.stderr
            );
            continue;
        }
        let upload = steps
            .iter()
            .find_map(|step| step["with"]["sarif_file"].as_str())
            .unwrap();
        let sarif: Value = serde_json::from_str(&text(&project.join(upload))).unwrap();
        assert_eq!(sarif["version"], "2.1.0");
        let results = sarif["runs"][0]["results"].as_array().unwrap();
        assert_eq!(
            results.iter().any(|result| result["level"] == "error"),
            code == 1,
            "{sarif:#}"
        );
        assert_eq!(
            judged
                .stdout
                .lines()
                .any(|line| line.starts_with("::error ")),
            code == 1,
            "{}",
            judged.stdout
        );
    }
}

#[test]
fn the_pipeline_for_gitlab_judges_a_spec() {
    let source = include_str!("../../../../../docs/ci/gitlab-ci.yml");
    let pipeline: Value = serde_saphyr::from_str(source).unwrap();
    let job = &pipeline["spec-gate"];
    let lines = |key: &str| -> Vec<String> {
        job[key]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line.as_str().unwrap().to_owned())
            .collect()
    };
    let own = |line: &String| !line.starts_with("apt-get ");
    let before: Vec<String> = lines("before_script").into_iter().filter(own).collect();
    assert!(
        before
            .iter()
            .any(|line| line.starts_with("command -v crucible || cargo install --locked "))
    );
    let script = lines("script");
    assert!(
        script.iter().all(|line| line.starts_with("crucible gate ")),
        "{script:?}"
    );
    assert_eq!(job["artifacts"]["when"], "always");
    let all = [before, script].concat().join("\n");

    let fixture = Fixture::new();
    let project = project(&fixture);
    let store = finished(&fixture, &project);
    for (state, code) in states() {
        bring_to(state, &fixture, &store);
        // A gate that could not judge ends the first line, which tells it with the 1 of `test`.
        let judged = shell(&fixture, &project, &job["variables"], &all).exits(code.min(1));
        if code == 2 {
            assert!(
                judged.stderr.contains("there is no spec export-data"),
                "{}",
                judged.stderr
            );
            continue;
        }
        let stored_text = job["artifacts"]["paths"][0].as_str().unwrap();
        let report: Value = serde_json::from_str(&text(&project.join(stored_text))).unwrap();
        assert_eq!(report["verdict"], if code == 0 { "pass" } else { "fail" });
    }
}
