//! The complete output of commands that call no model, for people and as JSON.
//!
//! Each snapshot is a transcript: the command, its exit code and both streams. `INSTA_UPDATE=always` writes the
//! snapshots anew. Paths, ids and digests of the test are replaced, and the clock is pinned. Output that depends
//! on the machine is not here (`doctor`, `sandbox`, durations of gates), nor is the list of settings, which
//! docs/settings.md has.

use std::path::{Path, PathBuf};

use crucible_testkit::{RepoBuilder, TestRepo};

use crate::support::{Fixture, GOAL, GOOD_DIFF, WRONG, id_of, small};

/// The instant of every command.
const NOW: &str = "2024-01-02T03:04:05Z";

/// Commands that run one after the other, and what they print.
struct Transcript<'a> {
    fixture: &'a Fixture,
    directory: PathBuf,
    /// Texts of this run of the test, each with its replacement.
    replaced: Vec<(String, &'static str)>,
    text: String,
}

impl<'a> Transcript<'a> {
    fn new(fixture: &'a Fixture, directory: &Path) -> Self {
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let directory = directory.canonicalize().unwrap();
        let replaced = vec![
            (path(&directory), "[PROJECT]"),
            (path(Path::new(directory.file_name().unwrap())), "[NAME]"),
            (path(&fixture.data()), "[DATA]"),
            (path(&fixture.path("").canonicalize().unwrap()), "[DESK]"),
        ];
        Self {
            fixture,
            directory,
            replaced,
            text: String::new(),
        }
    }

    /// Runs a command as it is, and again with `--json`.
    fn both(&mut self, args: &[&str]) -> &mut Self {
        self.one(args).one(&[args, &["--json"]].concat())
    }

    fn one(&mut self, args: &[&str]) -> &mut Self {
        let call = self.fixture.call(args).current_dir(&self.directory);
        let ran = call.env("CRUCIBLE_CLOCK", NOW).run();
        let code = ran.code.unwrap();
        self.text
            .push_str(&format!("$ crucible {}\n", args.join(" ")));
        self.text.push_str(&ran.stdout);
        for line in ran.stderr.lines() {
            self.text.push_str(format!("stderr: {line}").trim_end());
            self.text.push('\n');
        }
        self.text.push_str(&format!("exit code: {code}\n\n"));
        self
    }

    /// Compares the transcript with the snapshot of this name.
    #[track_caller]
    fn matches(&self, name: &str) {
        let mut text = self.text.clone();
        for (found, name) in &self.replaced {
            text = text.replace(found, name);
        }
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("snapshots/output");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name, without_digests(&text)));
    }
}

/// The text with each digest, commit and short digest replaced.
fn without_digests(text: &str) -> String {
    let is_hex = |word: &str| {
        word.len() >= 12
            && word
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let mut replaced = String::new();
    for part in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if is_hex(word) {
            replaced.push_str("[DIGEST]");
            replaced.push_str(&part[word.len()..]);
        } else {
            replaced.push_str(part);
        }
    }
    replaced
}

fn in_repository(fixture: &Fixture, repo: &TestRepo, name: &str, calls: &[&[&str]]) {
    let mut transcript = Transcript::new(fixture, repo.path());
    for call in calls {
        transcript.both(call);
    }
    transcript.matches(name);
}

#[test]
fn gates_of_a_small_repository() {
    let (fixture, repo) = (Fixture::new(), small().build());
    in_repository(&fixture, &repo, "gates", &[&["gates"]]);
}

#[test]
fn init_of_a_project_with_a_makefile() {
    let fixture = Fixture::new();
    let repo = RepoBuilder::new()
        .files([
            ("Makefile", "test:\n\tsh check.sh\n"),
            ("check.sh", "exit 0\n"),
        ])
        .build();
    in_repository(&fixture, &repo, "init", &[&["init", "--no-run"]]);
}

#[test]
fn config_set_in_a_small_repository() {
    let (fixture, repo) = (Fixture::new(), small().build());
    let set: &[&str] = &["config", "set", "run.max_iterations", "2"];
    in_repository(&fixture, &repo, "config-set", &[set]);
}

#[test]
fn models_of_an_unconfigured_machine() {
    let (fixture, repo) = (Fixture::new(), small().build());
    in_repository(&fixture, &repo, "models", &[&["models"]]);
}

#[test]
fn context_build_of_a_small_repository() {
    let (fixture, repo) = (Fixture::new(), small().build());
    let goal: &[&str] = &["context", "build", "--goal", "fix area"];
    let out: &[&str] = &[
        "context",
        "build",
        "--goal",
        "fix area",
        "--out",
        "pack.json",
    ];
    in_repository(&fixture, &repo, "context-build", &[goal, out]);
}

#[test]
fn patch_check_and_apply_of_a_change() {
    let fixture = Fixture::new();
    let repo = small()
        .uncommitted("src.json", r#"{"allow_roots": ["src/"]}"#)
        .uncommitted("docs.json", r#"{"allow_roots": ["docs/"]}"#)
        .uncommitted("change.patch", GOOD_DIFF)
        .build();
    let with = |command: &'static str, policy: &'static str| {
        [
            "patch",
            command,
            "--policy",
            policy,
            "--patch",
            "change.patch",
        ]
    };
    let calls = [
        with("check", "src.json"),
        with("check", "docs.json"),
        with("apply", "docs.json"),
        with("apply", "src.json"),
    ];
    in_repository(
        &fixture,
        &repo,
        "patch",
        &calls.each_ref().map(|call| &call[..]),
    );
}

#[test]
fn plan_and_behaviors_check_of_a_small_repository() {
    let fixture = Fixture::new();
    let repo = small()
        .file(
            "PLAN.md",
            "# Plan\n\nStatus: DRAFT\nGoal: fix area\nScope-Allow: src/\n",
        )
        .file("docs/behaviors/INDEX.md", "- B001\n")
        .file("src/area.py", format!("# BEHAVIOR_ID: B002\n{WRONG}"))
        .build();
    let calls: [&[&str]; 2] = [
        &["plan", "check", "--plan", "PLAN.md"],
        &["behaviors", "check"],
    ];
    in_repository(&fixture, &repo, "plan-and-behaviors", &calls);
}

#[test]
fn secrets_scan_of_clean_and_leaking_files() {
    let fixture = Fixture::new();
    let key = format!("AWS_KEY = \"AKIA{}\"\n", "Q3ZJ7XKPLM2WTB5N");
    let repo = small()
        .file("leak/key.py", key)
        .file("leak/.env", "A=1\n")
        .build();
    let calls: [&[&str]; 2] = [&["secrets", "scan", "src"], &["secrets", "scan", "leak"]];
    in_repository(&fixture, &repo, "secrets-scan", &calls);
}

#[test]
fn run_and_ledger_of_a_new_run() {
    let (fixture, repo) = (Fixture::new(), small().build());
    let new = fixture.call(["run", "new", GOAL, "--json"]);
    let new = new.current_dir(repo.path()).env("CRUCIBLE_CLOCK", NOW);
    let id = id_of(&new.run().ok().json());
    let mut transcript = Transcript::new(&fixture, repo.path());
    transcript.replaced.push((id, "[RUN]"));
    for call in [
        &["run", "status"][..],
        &["run", "list"],
        &["run", "land"],
        &["ledger", "log"],
        &["ledger", "verify", "--repo", "."],
        &["ledger", "verify", "--anchor", "1:x"],
    ] {
        transcript.both(call);
    }
    transcript.matches("run-and-ledger");
}

#[test]
fn project_and_spec_status_of_a_new_workspace() {
    let (fixture, repo) = (Fixture::new(), small().build());
    let calls: [&[&str]; 9] = [
        &["template", "list"],
        &["template", "init", "fullstack-web", "shop"],
        &["project", "init", "--name", "demo"],
        &["project", "add-spec", "shop", "--tag", "web"],
        &["project", "list"],
        &["project", "status"],
        &["project", "history", "shop"],
        &["status", "shop"],
        &["gate", "shop"],
    ];
    in_repository(&fixture, &repo, "project-and-spec", &calls);
}

#[test]
fn skill_list_of_a_new_package() {
    let fixture = Fixture::new();
    let schema = r#"{"input": {"type": "object"}, "output": {"type": "object"}}"#;
    let repo = small().uncommitted("io.json", schema).build();
    let propose: &[&str] = &[
        "skill",
        "propose",
        "word_count",
        "--describe",
        "Counts words.",
        "--io",
        "io.json",
        "--effects",
        "READ_ONLY",
    ];
    let calls: [&[&str]; 5] = [
        &["skill", "list"],
        &["skill", "init"],
        propose,
        &["skill", "list"],
        &["skill", "show", "word_count"],
    ];
    in_repository(&fixture, &repo, "skill", &calls);
}

#[test]
fn crawl_validate_of_safe_and_refused_plans() {
    let fixture = Fixture::new();
    let plan = |command: &str| {
        serde_json::json!({
            "schema": "viv-git-plan.v1", "created_at": NOW, "plan_hash": "0123456789ab",
            "prompt_hash": "0123456789ab", "detected": { "build_system": "cargo", "confidence": 0.95 },
            "repo": {
                "full_name": "acme/widget", "url": "https://github.com/acme/widget", "selected_ref": "v1.0",
                "resolved_commit": "0123456789abcdef0123456789abcdef01234567",
            },
            "dependencies": { "tools": ["cargo"], "notes": "" },
            "steps": [{ "name": "build", "cmd": command, "cwd": ".", "env": {}, "note": "" }],
            "warnings": [], "debate_rounds": 1, "accepted_suggestions": [], "rejected_suggestions": [],
            "safety_validated": true, "safety_violations": [],
        })
        .to_string()
    };
    let repo = small()
        .uncommitted("safe.json", plan("cargo build --release"))
        .uncommitted("refused.json", plan("rm -rf /"))
        .uncommitted("broken.json", "{}")
        .build();
    let mut transcript = Transcript::new(&fixture, repo.path());
    for plan in ["safe.json", "refused.json", "broken.json"] {
        for format in ["pretty", "json"] {
            transcript.one(&["crawl", "validate", plan, "--format", format]);
        }
    }
    for format in ["pretty", "json"] {
        transcript.one(&["crawl", "history", "--format", format]);
    }
    transcript.matches("crawl");
}

#[test]
fn eval_import_of_a_skipped_instance() {
    let fixture = Fixture::new();
    let instance = r#"{"instance_id": "acme__shop-1", "repo": "acme/shop", "base_commit": "0123456789abcdef0123456789abcdef01234567", "patch": "",
        "test_patch": "", "problem_statement": "x", "FAIL_TO_PASS": [], "PASS_TO_PASS": []}"#;
    let repo = small()
        .uncommitted("instances.jsonl", instance.replace('\n', ""))
        .uncommitted("clones/README", "none\n")
        .build();
    let import: &[&str] = &[
        "eval",
        "import",
        "instances.jsonl",
        "--repos",
        "clones",
        "--out",
        "tasks",
    ];
    in_repository(&fixture, &repo, "eval-import", &[import]);
}
