//! `crucible project`: the workspace, its file and its reports.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crucible_spec::PhaseId;
use serde_json::{Value, json};

use super::written::WrittenSpec;
use crate::support::{Fixture, Ran, Snapshot};

const HOUR: Duration = Duration::from_secs(3_600);

/// A directory of the user that holds a project.
fn project(fixture: &Fixture) -> PathBuf {
    let root = fixture.path("my-project");
    std::fs::create_dir_all(root.join(".git")).unwrap();
    root
}

/// `crucible project` with these arguments, here.
fn project_in<const N: usize>(fixture: &Fixture, current_dir: &Path, args: [&str; N]) -> Ran {
    fixture
        .call(["project"])
        .args(args)
        .current_dir(current_dir)
        .run()
}

/// The document of a command, checked against the schema that it names.
#[track_caller]
fn document(ran: Ran) -> Value {
    let document = ran.ok().json();
    let name = document["schema_version"].as_str().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/schemas")
        .join(format!("{name}.schema.json"));
    let schema = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let problem = schema
        .iter_errors(&document)
        .next()
        .map(|error| error.to_string());
    assert_eq!(problem, None, "{document:#}");
    document
}

fn text(root: &Path) -> String {
    std::fs::read_to_string(root.join("workspace.yaml")).unwrap()
}

/// A workspace with specs in every state.
fn many(fixture: &Fixture) -> PathBuf {
    let root = project(fixture);
    let mut file = "version: \"1\"\nname: many\nspecs:\n".to_owned();
    for (id, tags) in [
        ("done", "[backend]"),
        ("failing", "[backend, security]"),
        ("waiting", "[frontend]"),
        ("outdated", "[]"),
        ("edited", "[docs]"),
        ("begun", "[docs]"),
        ("idea-only", "[]"),
    ] {
        file.push_str(&format!("- id: {id}\n  tags: {tags}\n"));
    }
    std::fs::write(root.join("workspace.yaml"), file).unwrap();
    let spec = |name: &str| WrittenSpec::named(root.clone(), name);
    let mut done = spec("done");
    PhaseId::ALL
        .into_iter()
        .for_each(|phase| drop(done.success(phase, HOUR)));
    let mut failing = spec("failing");
    failing.success(PhaseId::Requirements, 3 * HOUR);
    failing.failure(PhaseId::Design, 2 * HOUR);
    let mut waiting = spec("waiting");
    PhaseId::Review
        .up_to()
        .for_each(|phase| drop(waiting.success(phase, HOUR)));
    waiting.success_with(PhaseId::Fixup, HOUR, |value| {
        let files = json!([{ "path": "a.rs" }, { "path": "b.rs" }]);
        value["phases"][0]["fixups"] = json!({ "stage": "pending", "files": files });
    });
    let mut outdated = spec("outdated");
    PhaseId::Design
        .up_to()
        .for_each(|phase| drop(outdated.success(phase, 2 * HOUR)));
    outdated.success_with(PhaseId::Requirements, HOUR, |_| {});
    std::fs::write(outdated.path("context/idea.md"), "another idea\n").unwrap();
    let mut edited = spec("edited");
    let receipt = edited.success(PhaseId::Requirements, HOUR);
    let forged = std::fs::read_to_string(&receipt)
        .unwrap()
        .replace("model-1", "model-2");
    std::fs::write(receipt, forged).unwrap();
    spec("begun").success(PhaseId::Requirements, HOUR);
    spec("forgotten").success(PhaseId::Requirements, HOUR);
    root
}

#[test]
fn workspace_is_created_filled_and_found_from_subdirectory() {
    let fixture = Fixture::new();
    let root = project(&fixture);
    let below = root.join("src/deep");
    std::fs::create_dir_all(&below).unwrap();
    let ran = project_in(&fixture, &below, ["list"]).exits(2);
    assert!(
        ran.stderr.contains("no workspace.yaml") && ran.stderr.contains("project init"),
        "{}",
        ran.stderr
    );

    let value = document(project_in(&fixture, &below, ["init", "--json"]));
    assert_eq!(
        value["workspace"],
        root.join("workspace.yaml").to_str().unwrap()
    );
    assert_eq!(
        text(&root),
        "version: \"1\"\nname: \"my-project\"\nspecs: []\n"
    );
    let second_output = project_in(&fixture, &root, ["init", "--name", "other"]).exits(2);
    assert!(
        second_output.stderr.contains("already exists"),
        "{}",
        second_output.stderr
    );
    assert!(
        project_in(&fixture, &below, ["list"])
            .ok()
            .stdout
            .contains("no specs yet")
    );

    let added = document(project_in(
        &fixture,
        &below,
        [
            "add-spec",
            "feature-auth",
            "--tag",
            "backend",
            "--tag",
            "a: b",
            "--json",
        ],
    ));
    assert_eq!(
        (&added["change"], &added["spec"]["tags"]),
        (&json!("added"), &json!(["backend", "a: b"]))
    );
    project_in(
        &fixture,
        &root,
        [
            "add-spec",
            "feature-ui",
            "--tag",
            "frontend",
            "--tag",
            "frontend",
        ],
    )
    .ok();
    let twice = project_in(&fixture, &root, ["add-spec", "feature-ui"]).exits(2);
    assert!(
        twice.stderr.contains("already listed") && twice.stderr.contains("--force"),
        "{}",
        twice.stderr
    );
    let forced = document(project_in(
        &fixture,
        &root,
        [
            "add-spec",
            "feature-ui",
            "--tag",
            "yes",
            "--force",
            "--json",
        ],
    ));
    assert_eq!(forced["change"], "replaced");

    let listed = document(project_in(&fixture, &below, ["list", "--json"]));
    let ids: Vec<&str> = listed["specs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|spec| spec["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        (ids, &listed["specs"][1]["tags"]),
        (vec!["feature-auth", "feature-ui"], &json!(["yes"]))
    );
    let tagged = document(project_in(
        &fixture,
        &below,
        ["list", "--tag", "backend", "--json"],
    ));
    assert_eq!(tagged["specs"].as_array().unwrap().len(), 1);
    let none = document(project_in(
        &fixture,
        &below,
        ["list", "--tag", "backend", "--tag", "yes", "--json"],
    ));
    assert_eq!(none["specs"], json!([]));
    let human = project_in(&fixture, &below, ["list"]).ok().stdout;
    assert!(human.contains("feature-auth  backend, a: b"), "{human}");
    // Nothing but the workspace's file was made.
    assert!(!root.join(".crucible").exists() && !fixture.data().exists());
}

#[test]
fn the_file_that_is_named_is_the_one() {
    let fixture = Fixture::new();
    let root = project(&fixture);
    project_in(&fixture, &root, ["init", "--name", "near"]).ok();
    let other = fixture.path("other");
    std::fs::create_dir(&other).unwrap();
    let named = other.join("all-specs.yaml");
    let named = named.to_str().unwrap();
    project_in(&fixture, &root, ["--workspace", named, "list"]).exits(2);
    project_in(&fixture, &root, ["init", "--workspace", named]).ok();
    project_in(&fixture, &root, ["add-spec", "far", "--workspace", named]).ok();
    let listed = document(project_in(
        &fixture,
        &root,
        ["list", "--json", "--workspace", named],
    ));
    assert_eq!(
        (&listed["name"], &listed["specs"][0]["id"]),
        (&json!("other"), &json!("far"))
    );
    assert!(!text(&root).contains("far"));
    // The specs lie beside the file that is named.
    WrittenSpec::named(other, "far").success(PhaseId::Requirements, HOUR);
    let status = document(project_in(
        &fixture,
        &root,
        ["status", "--json", "--workspace", named],
    ));
    assert_eq!(status["specs"][0]["reached"], "requirements");
}

#[test]
fn comments_unknown_keys_order_and_line_ends_stay() {
    let fixture = Fixture::new();
    let root = project(&fixture);
    let before = "# our specs\r\nowner: {team: core}   # who\r\nversion: \"1\"\r\nname: x\r\nspecs:\r\n  - id: 'a'  # first\r\n    weight: 3\r\n\r\n# the end\r\n";
    std::fs::write(root.join("workspace.yaml"), before).unwrap();
    let call = fixture
        .call(["project", "add-spec", "b", "--tag", "t"])
        .env("CRUCIBLE_CLOCK", "2024-12-01T10:00:00Z");
    call.current_dir(&root).run().ok();
    let entry = "  - id: \"b\"\r\n    tags: [\"t\"]\r\n    added: \"2024-12-01T10:00:00.000Z\"\r\n";
    assert_eq!(
        text(&root),
        before.replace("    weight: 3\r\n", &format!("    weight: 3\r\n{entry}"))
    );
    let call = fixture
        .call(["project", "add-spec", "a", "--force"])
        .env("CRUCIBLE_CLOCK", "2024-12-02T10:00:00Z");
    call.current_dir(&root).run().ok();
    let after = text(&root);
    for stored_text in [
        "# our specs\r\n",
        "{team: core}   # who",
        "- id: 'a'  # first\r\n",
        "    weight: 3\r\n",
        "\r\n\r\n# the end\r\n",
        entry,
    ] {
        assert!(after.contains(stored_text), "{stored_text:?} in {after}");
    }
}

#[test]
fn invalid_workspace_is_named_and_left_unchanged() {
    let fixture = Fixture::new();
    let root = project(&fixture);
    let file = root.join("workspace.yaml");
    for (content, word) in [
        (
            "version: \"1\"\nname: x\nspecs:\n- id: a\n- id: b\n- id: a\n",
            "listed twice, in lines 4 and 6",
        ),
        ("version: \"2\"\nname: x\n", "reads only \"1\""),
        (
            "version: \"1\"\nname: x\nspecs:\n- id: ../../etc\n",
            "line 4: not a spec id",
        ),
        ("version: \"1\"\nname: [\n", "not a valid workspace"),
        ("version: 1\nname: x\n", "must be quoted"),
        ("", "not a valid workspace"),
        ("\u{0}\u{1b}[2J", "not a valid workspace"),
    ] {
        std::fs::write(&file, content).unwrap();
        for args in [
            &["list"][..],
            &["status"],
            &["add-spec", "new"],
            &["add-spec", "new", "--force"],
        ] {
            let ran = fixture.call(["project", "--json"]).current_dir(&root);
            let ran = args
                .iter()
                .fold(ran, |call, arg| call.arg(arg))
                .run()
                .exits(2);
            let message = ran.message();
            assert!(
                message.contains(word) && message.contains("workspace.yaml"),
                "{message}"
            );
            assert!(!ran.stderr.contains('\u{1b}'));
        }
        assert_eq!(text(&root), content);
    }
    for id in ["..", "a/b", "ä", &"a".repeat(300)] {
        std::fs::write(&file, "version: \"1\"\nname: x\n").unwrap();
        project_in(&fixture, &root, ["add-spec", id]).exits(2);
        project_in(&fixture, &root, ["history", id]).exits(2);
        assert_eq!(text(&root), "version: \"1\"\nname: x\n");
    }
}

#[test]
fn read_only_disk_fails_writes_but_not_reads() {
    let fixture = Fixture::new();
    let root = project(&fixture);
    project_in(&fixture, &root, ["init"]).ok();
    let before = Snapshot::take([&root]);
    let run = |args: &[&str]| {
        let program = fixture.call(args).current_dir(&root).command();
        let mut bwrap = Command::new("bwrap");
        bwrap
            .args(["--dev-bind", "/", "/", "--ro-bind"])
            .arg(&root)
            .arg(&root);
        bwrap
            .arg("--chdir")
            .arg(&root)
            .arg(program.get_program())
            .args(program.get_args());
        bwrap.env_clear().envs(
            program
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        bwrap.output().unwrap()
    };
    let refused = run(&["project", "add-spec", "a"]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{message}");
    assert!(
        message.contains("cannot write")
            && message.contains("workspace.yaml")
            && message.contains("Read-only"),
        "{message}"
    );
    assert_eq!(run(&["project", "status"]).status.code(), Some(0));
    before.is_still(&Snapshot::take([&root]));
}

#[test]
fn workspace_status_counts_failed_pending_and_outdated_specs() {
    let fixture = Fixture::new();
    let root = many(&fixture);
    let before = Snapshot::take([&root, &fixture.home()]);
    let status = document(project_in(&fixture, &root, ["status", "--json"]));
    let word = |id: &str| {
        let specs = status["specs"].as_array().unwrap();
        specs.iter().find(|spec| spec["spec_id"] == id).unwrap()["standing"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for (id, standing) in [
        ("done", "done"),
        ("failing", "failed"),
        ("waiting", "pending"),
        ("outdated", "stale"),
        ("edited", "damaged"),
        ("begun", "in_progress"),
        ("idea-only", "not_started"),
    ] {
        assert_eq!(word(id), standing, "{id}: {status:#}");
    }
    assert_eq!(
        status["counts"],
        json!({ "specs": 7, "done": 1, "failed": 1, "pending": 1, "stale": 1, "damaged": 1, "not_started": 1, "unlisted": 1 })
    );
    assert_eq!(status["unlisted"], json!(["forgotten"]));
    let human = project_in(&fixture, &root, ["status"]).ok();
    let first = human.stdout.lines().next().unwrap();
    assert_eq!(
        first,
        "many: 7 specs, 1 done, 1 failed, 1 pending, 1 stale, 1 damaged, 1 not started"
    );
    for part in [
        "failed: design",
        "pending fixups: 2 files",
        "crucible resume failing --phase design",
    ] {
        assert!(human.stdout.contains(part), "{part}: {}", human.stdout);
    }
    assert!(
        human.stderr.contains("forgotten") && human.stderr.contains("add-spec"),
        "{}",
        human.stderr
    );
    before.is_still(&Snapshot::take([&root, &fixture.home()]));
    assert!(!fixture.data().exists(), "no ledger is made");
}

#[test]
fn listed_spec_without_runs_has_empty_history() {
    let fixture = Fixture::new();
    let root = project(&fixture);
    project_in(&fixture, &root, ["init"]).ok();
    project_in(&fixture, &root, ["add-spec", "later"]).ok();
    let human = project_in(&fixture, &root, ["history", "later"])
        .ok()
        .stdout;
    assert_eq!(
        human,
        "later has no history yet; start it: crucible spec later\n"
    );
    let history = document(project_in(&fixture, &root, ["history", "later", "--json"]));
    assert_eq!(
        (&history["timeline"], &history["totals"]["runs"]),
        (&json!([]), &json!(0))
    );
    project_in(&fixture, &root, ["history", "nobody"]).exits(2);
    assert!(!root.join(".crucible").exists());
}

#[test]
fn history_is_brief_on_failure_clear_on_cost() {
    let fixture = Fixture::new();
    let mut spec = WrittenSpec::new(fixture.path("project"));
    spec.success_with(PhaseId::Requirements, HOUR, |value| {
        let error = json!({ "class": "provider", "message": "word\n".repeat(200) });
        value["phases"][0] =
            json!({ "phase_id": "requirements", "status": "failed", "attempts": 1, "error": error });
        value["exit_code"] = 70.into();
    });
    let human = spec
        .call(&fixture, ["project", "history", "export-data"])
        .run()
        .ok()
        .stdout;
    assert!(
        human.lines().all(|line| line.chars().count() < 200) && !human.contains("\\u{a}"),
        "{human}"
    );
    assert!(
        human.contains("word word") && human.contains('…'),
        "{human}"
    );
    let last = human.lines().last().unwrap();
    assert!(
        last.ends_with("; the cost of 1 run is not known") && !last.contains('$'),
        "{last}"
    );
}

#[test]
fn id_differing_only_in_case_is_refused() {
    let fixture = Fixture::new();
    let root = project(&fixture);
    project_in(&fixture, &root, ["init"]).ok();
    project_in(&fixture, &root, ["add-spec", "s1"]).ok();
    WrittenSpec::named(root.clone(), "Unlisted").success(PhaseId::Requirements, HOUR);
    std::fs::write(root.join("idea.md"), "users can export\n").unwrap();
    let before = Snapshot::take([&root]);
    for args in [
        &["project", "add-spec", "S1"][..],
        &["project", "add-spec", "S1", "--force"],
        &["project", "add-spec", "unlisted"],
        &["template", "init", "docs-refactor", "S1"],
        &["template", "init", "docs-refactor", "unlisted", "--force"],
        &["spec", "S1", "--dry-run", "--source", "idea.md"],
        &["spec", "unlisted", "--dry-run", "--source", "idea.md"],
    ] {
        let ran = fixture.call(args).current_dir(&root).run().exits(2);
        assert!(
            ran.stderr.contains("only in letter case"),
            "{args:?}: {}",
            ran.stderr
        );
        before.is_still(&Snapshot::take([&root]));
    }
    project_in(&fixture, &root, ["add-spec", "Unlisted"]).ok();
    project_in(&fixture, &root, ["add-spec", "s10"]).ok();
}

#[test]
fn history_lists_tokens_cost_and_sums() {
    let fixture = Fixture::new();
    let mut spec = WrittenSpec::new(fixture.path("project"));
    spec.success(PhaseId::Requirements, 4 * HOUR);
    spec.failure(PhaseId::Design, 3 * HOUR);
    spec.dry_run(PhaseId::Design, 2 * HOUR);
    let last = spec.success(PhaseId::Design, HOUR);
    // A spec has a history also without a workspace.
    let history = document(
        spec.call(&fixture, ["project", "history", "export-data", "--json"])
            .run(),
    );
    let timeline = history["timeline"].as_array().unwrap();
    let messages: Vec<(&str, &str)> = timeline
        .iter()
        .map(|row| {
            (
                row["phase_id"].as_str().unwrap(),
                row["status"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        messages,
        [
            ("requirements", "success"),
            ("design", "failed"),
            ("design", "dry_run"),
            ("design", "success")
        ]
    );
    let totals = &history["totals"];
    assert_eq!(
        (&totals["tokens_input"], &totals["cost_micro_dollars"]),
        (&json!(2400), &json!(3000))
    );
    assert_eq!(
        (
            &totals["failed"],
            &totals["dry_runs"],
            &totals["cost_unknown"]
        ),
        (&json!(1), &json!(1), &json!(1))
    );
    let human = spec
        .call(&fixture, ["project", "history", "export-data"])
        .run()
        .ok()
        .stdout;
    let together = "together: 4 runs, 2 done, 1 failed, 1 dry, 2400 tokens in, 680 out, $0.003 (estimate); the cost of 1 run is not known";
    assert_eq!(human.lines().last().unwrap(), together, "{human}");
    assert!(human.contains("the model is out of reach"));
    // One that cannot be trusted is named, and the others are told.
    std::fs::write(&last, "{\"receipt_id\": \"\u{1b}[2J\"}").unwrap();
    let history = document(
        spec.call(&fixture, ["project", "history", "export-data", "--json"])
            .run(),
    );
    assert_eq!(history["timeline"].as_array().unwrap().len(), 3);
    let name = last.file_name().unwrap().to_str().unwrap();
    assert!(
        history["problems"]
            .as_array()
            .unwrap()
            .iter()
            .any(|problem| problem["file"] == name),
        "{history:#}"
    );
    let human = spec
        .call(&fixture, ["project", "history", "export-data"])
        .run()
        .ok()
        .stdout;
    assert!(human.contains(name) && !human.contains('\u{1b}'), "{human}");
    spec.call(&fixture, ["project", "history", "nobody"])
        .run()
        .exits(2);
}

#[test]
fn every_command_finds_the_same_project() {
    let fixture = Fixture::new();
    let outer = project(&fixture);
    project_in(&fixture, &outer, ["init"]).ok();
    WrittenSpec::named(outer.clone(), "export-data").success(PhaseId::Requirements, HOUR);
    let mut inner = WrittenSpec::new(outer.join("part"));
    inner.success(PhaseId::Requirements, HOUR);
    inner.success(PhaseId::Design, HOUR);
    let history = document(
        inner
            .call(&fixture, ["project", "history", "export-data", "--json"])
            .run(),
    );
    assert_eq!(
        history["timeline"].as_array().unwrap().len(),
        2,
        "the nearer one: {history:#}"
    );
    let status = inner
        .call(&fixture, ["status", "export-data", "--json"])
        .run()
        .ok()
        .json();
    assert_eq!(status["phase_statuses"][1]["status"], "success");
    // What a file has to be that is named is the same for all, too.
    for named in ["part", "missing.yaml"] {
        let path = outer.join(named);
        let path = path.to_str().unwrap();
        for args in [
            &["status", "export-data"][..],
            &["gate", "export-data"],
            &["resume", "export-data"],
            &["project", "list"],
            &["project", "history", "export-data"],
        ] {
            let ran = fixture
                .call(args.iter().chain(&["--workspace", path]))
                .current_dir(&outer)
                .run()
                .exits(2);
            assert!(
                ran.stderr
                    .contains(&format!("--workspace: {path} is not a file")),
                "{}",
                ran.stderr
            );
        }
    }
}

#[test]
fn unknown_spec_is_answered_with_similar_names() {
    let fixture = Fixture::new();
    let root = project(&fixture);
    let ran = fixture
        .call(["status", "export-data"])
        .current_dir(&root)
        .run()
        .exits(2);
    assert!(
        !ran.stderr.contains("project list") && !ran.stderr.contains("There is:"),
        "{}",
        ran.stderr
    );
    for id in ["export-data", "login"] {
        WrittenSpec::named(root.clone(), id).success(PhaseId::Requirements, HOUR);
    }
    for command in ["status", "gate", "resume"] {
        let ran = fixture
            .call([command, "exprot-data"])
            .current_dir(&root)
            .run()
            .exits(2);
        assert!(
            ran.stderr.contains("There is: export-data."),
            "{}",
            ran.stderr
        );
        assert!(
            !ran.stderr.contains("project list"),
            "there is no list: {}",
            ran.stderr
        );
    }
    project_in(&fixture, &root, ["init"]).ok();
    let ran = project_in(&fixture, &root, ["history", "zzz"]).exits(2);
    assert!(
        ran.stderr.contains("There is: export-data, login."),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("`crucible project list`"),
        "{}",
        ran.stderr
    );
}
