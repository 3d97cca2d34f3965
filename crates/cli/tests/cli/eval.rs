//! Evaluations: every outcome of a task, resumption, limits, comparisons, and folders of tasks that lie.

#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out tasks and start a program that they interrupt"
)]

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crucible_testkit::{FakeOpenAi, Reply};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{
    CHECK, Call, Fixture, GATE, GOAL, GOOD_DIFF, TEST, WRONG, right, small, whole_file,
};

/// Hidden tests that look at the whole line.
const HIDDEN: &str = "\
diff --git a/hidden.sh b/hidden.sh
new file mode 100644
--- /dev/null
+++ b/hidden.sh
@@ -0,0 +1 @@
+grep -qx '    return width . height' src/area.py && grep -q 'width \\* height' src/area.py
";

/// A change that the visible test takes for right and the hidden one does not.
fn weak() -> String {
    whole_file(
        "src/area.py",
        &right().replacen("width * height", "width * height + 1", 1),
    )
}

fn strong() -> String {
    whole_file("src/area.py", &right())
}

/// Lays out a task whose project is the usual small repository; further lines of `task.toml` come last.
fn lay_out(tasks: &Path, name: &str, goal: &str, gate: &str, more: &str) {
    let task = tasks.join(name);
    for (path, text) in [
        ("project/.crucible/config.toml", gate),
        ("project/check.sh", CHECK),
        ("project/src/area.py", WRONG),
        ("project/tests/area_test.sh", TEST),
        ("hidden.patch", HIDDEN),
        ("solution.patch", GOOD_DIFF),
    ] {
        std::fs::create_dir_all(task.join(path).parent().unwrap()).unwrap();
        std::fs::write(task.join(path), text).unwrap();
    }
    let text = format!(
        "schema_version = \"crucible-eval-task-v1\"\ngoal = {goal:?}\nrepo = \"project\"\nhidden = \"hidden.patch\"\n\
         solution = \"solution.patch\"\ncheck = \"sh hidden.sh\"\n{more}"
    );
    std::fs::write(task.join("task.toml"), text).unwrap();
}

/// `eval TASKS`, with a document as its result.
fn eval(fixture: &Fixture) -> Call {
    fixture.call(["eval", "--json"]).arg(fixture.path("tasks"))
}

/// The outcomes of all trials, by their configuration and task.
fn outcomes(report: &Value) -> Vec<(String, String, String)> {
    let text = |trial: &Value, key: &str| trial[key].as_str().unwrap().to_owned();
    let trials = report["trials"].as_array().unwrap().iter();
    trials
        .map(|trial| {
            (
                text(trial, "configuration"),
                text(trial, "task"),
                text(trial, "outcome"),
            )
        })
        .collect()
}

fn outcome_of(report: &Value, task: &str) -> String {
    let known = outcomes(report);
    known
        .into_iter()
        .find(|(_, name, _)| name == task)
        .unwrap()
        .2
}

#[test]
fn every_outcome_is_distinguished_and_cached() {
    let server = FakeOpenAi::answering(|request| {
        let question = request.body.to_string();
        Reply::Answer(match question {
            _ if question.contains("weakly") => weak(),
            _ if question.contains("never") => "I cannot help with that.".to_owned(),
            _ => strong(),
        })
    });
    let fixture = Fixture::with(&server);
    let tasks = fixture.path("tasks");
    lay_out(&tasks, "a-right", GOAL, GATE, "");
    lay_out(&tasks, "b-wrong", &format!("{GOAL} weakly"), GATE, "");
    lay_out(&tasks, "c-nothing", &format!("{GOAL} never"), GATE, "");
    let missing = "[gates.tests]\ncommand = [\"no-such-program-here\"]\n";
    lay_out(&tasks, "d-declined", GOAL, missing, "");
    lay_out(&tasks, "e-broken", GOAL, GATE, "");
    std::fs::write(
        tasks.join("e-broken/solution.patch"),
        HIDDEN.replace("hidden.sh", "other.sh"),
    )
    .unwrap();

    let report = eval(&fixture).args(["--jobs", "2"]).run().ok().json();
    assert_eq!(report["schema_version"], "crucible-eval-v1");
    for (task, outcome) in [
        ("a-right", "right"),
        ("b-wrong", "wrong_landed"),
        ("c-nothing", "nothing_landed"),
        ("d-declined", "declined"),
        ("e-broken", "broken"),
    ] {
        assert_eq!(outcome_of(&report, task), outcome, "{report:#}");
    }
    let json = &report["configurations"][0];
    assert_eq!((&json["scored"], &json["tasks"]), (&4.into(), &4.into()));
    assert_eq!(json["right"]["value"], 0.25);
    let low = json["right"]["interval"]["low"].as_f64().unwrap();
    assert!((low - 0.0456).abs() < 1e-4, "{low}");
    let requests = server.completions().len() as u64;
    assert_eq!(json["spent"]["calls"], requests);
    // Neither the hidden test nor the solution reaches a model.
    for request in server.requests() {
        assert!(!request.body.to_string().contains("hidden.sh"));
    }
    // The user's own ledger and runs know nothing of it.
    assert!(!fixture.data().join("ledger.db").exists() && !fixture.data().join("runs").exists());
    let place = fixture.data().join("evals/tasks/trials/default/a-right/1");
    assert!(place.join("home/ledger.db").is_file() && place.join("check.log").is_file());
    assert!(!place.join("clone").exists() && !place.join("check").exists());

    // Nothing is done a second time unasked, and what has a result is not done again.
    let second_output = eval(&fixture).run().exits(2);
    assert!(
        second_output
            .message()
            .contains("already holds an evaluation")
    );
    let resumed = eval(&fixture).arg("--resume").run().ok().json();
    assert_eq!(resumed, report);
    assert_eq!(server.completions().len() as u64, requests);
    // A task that is another one now is run again, alone.
    lay_out(&tasks, "b-wrong", GOAL, GATE, "");
    let resumed = eval(&fixture).arg("--resume").run().ok().json();
    assert_eq!(outcome_of(&resumed, "b-wrong"), "right");
    assert_eq!(server.completions().len() as u64, requests + 1);
}

#[test]
fn configurations_and_baseline_are_compared_in_pairs() {
    let server = FakeOpenAi::answering(|request| {
        let known = request.body.to_string();
        let direct = known.contains("Change the project below");
        Reply::Answer(if known.contains("\"second\"") || direct {
            weak()
        } else {
            strong()
        })
    });
    let fixture = Fixture::with(&server);
    for name in ["one", "two"] {
        lay_out(&fixture.path("tasks"), name, GOAL, GATE, "");
    }
    std::fs::write(
        fixture.path("second.toml"),
        "[llm.gateway]\nmodel = \"second\"\n",
    )
    .unwrap();
    let second = format!("second={}", fixture.path("second.toml").display());
    let words = [
        "--config", "first=", "--config", &second, "--direct", "--seed", "7",
    ];
    let report = eval(&fixture).args(words).run().ok().json();
    let names: Vec<&str> = report["configurations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["configuration"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["first", "second", "direct"]);
    for (configuration, _, outcome) in outcomes(&report) {
        assert_eq!(
            outcome,
            if configuration == "first" {
                "right"
            } else {
                "wrong_landed"
            }
        );
    }
    let pair = &report["comparisons"][0];
    assert_eq!(
        (&pair["first"], &pair["second"]),
        (&"first".into(), &"second".into())
    );
    assert_eq!(
        (&pair["more_first"], &pair["more_second"]),
        (&2.into(), &0.into())
    );
    assert_eq!(
        (&pair["difference"], &pair["p_value"]),
        (&1.0.into(), &0.5.into())
    );
    assert!(
        server
            .completions()
            .iter()
            .all(|request| request.body["seed"] == 7001)
    );
}

#[test]
fn limits_cover_all_tasks_and_defer_the_rest() {
    let server = FakeOpenAi::start([Reply::Answer(strong())]);
    let fixture = Fixture::with(&server);
    for name in ["one", "three", "two"] {
        lay_out(&fixture.path("tasks"), name, GOAL, GATE, "");
    }
    let report = eval(&fixture)
        .args(["--max-calls", "2"])
        .run()
        .exits(70)
        .json();
    assert_eq!(server.completions().len(), 2);
    assert_eq!(outcome_of(&report, "two"), "unfinished");
    let report = eval(&fixture)
        .args(["--max-calls", "2", "--resume"])
        .run()
        .exits(70)
        .json();
    assert_eq!(
        (
            server.completions().len(),
            outcome_of(&report, "two").as_str()
        ),
        (2, "unfinished")
    );
    let report = eval(&fixture)
        .args(["--max-calls", "3", "--resume"])
        .run()
        .ok()
        .json();
    assert_eq!(
        (
            server.completions().len(),
            outcome_of(&report, "two").as_str()
        ),
        (3, "right")
    );
}

#[test]
fn a_provider_out_of_reach_counts_for_nothing() {
    let fixture = Fixture::new();
    lay_out(&fixture.path("tasks"), "one", GOAL, GATE, "");
    let report = eval(&fixture).run().exits(70).json();
    assert_eq!(outcome_of(&report, "one"), "unfinished");
    assert_eq!(report["configurations"][0]["scored"], 0);
    let nobody = fixture
        .call(["eval", "--json"])
        .arg(fixture.path("tasks"))
        .without_env("CRUCIBLE_LLM_PROVIDER");
    nobody.arg("--resume").run().exits(2);
}

#[test]
fn interrupted_evaluation_resumes() {
    let mut request_count = 0;
    let server = FakeOpenAi::answering(move |_| {
        request_count += 1;
        if request_count == 2 {
            Reply::Hang
        } else {
            Reply::Answer(strong())
        }
    });
    let fixture = Fixture::with(&server);
    for name in ["one", "two"] {
        lay_out(&fixture.path("tasks"), name, GOAL, GATE, "");
    }
    let mut command = eval(&fixture).command();
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while server.completions().len() < 2 {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "the second task is not asked for"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    // Another one in the same directory is refused while this one works.
    eval(&fixture).arg("--resume").run().exits(9);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("--resume"));
    let report = eval(&fixture).arg("--resume").run().ok().json();
    assert_eq!(
        (outcome_of(&report, "one"), outcome_of(&report, "two")),
        ("right".into(), "right".into())
    );
    assert_eq!(server.completions().len(), 3);
}

#[test]
fn hanging_check_is_ended_and_hooks_never_run() {
    let server = FakeOpenAi::start([Reply::Answer(strong())]);
    let fixture = Fixture::with(&server);
    let tasks = fixture.path("tasks");
    lay_out(&tasks, "hangs", GOAL, GATE, "check_timeout_s = 1\n");
    let text = std::fs::read_to_string(tasks.join("hangs/task.toml")).unwrap();
    let hanging = text.replace("sh hidden.sh", "sh hidden.sh && sleep 60");
    std::fs::write(tasks.join("hangs/task.toml"), hanging).unwrap();
    // A repository with a hook, beside the task that names it.
    let repo = small().build();
    let trace = fixture.path("trace");
    let hook = repo.path().join(".git/hooks/post-checkout");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", trace.display())).unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    lay_out(
        &tasks,
        "hooked",
        GOAL,
        GATE,
        &format!("commit = \"{}\"\n", repo.head()),
    );
    let text = std::fs::read_to_string(tasks.join("hooked/task.toml")).unwrap();
    std::fs::write(
        tasks.join("hooked/task.toml"),
        text.replace("\"project\"", "\"the-clone\""),
    )
    .unwrap();
    let repos = fixture.path("repos");
    std::fs::create_dir(&repos).unwrap();
    std::os::unix::fs::symlink(repo.path(), repos.join("the-clone")).unwrap();
    let before = repo.status();
    let report = eval(&fixture).arg("--repos").arg(&repos).run().ok().json();
    assert_eq!(outcome_of(&report, "hangs"), "broken");
    assert_eq!(outcome_of(&report, "hooked"), "right");
    assert!(!trace.exists());
    assert_eq!(repo.status(), before);
    // A bundle beside the task serves as well, and a file that is none makes the task broken.
    repo.git([
        "bundle",
        "create",
        "--quiet",
        tasks.join("hooked/history.bundle").to_str().unwrap(),
        "main",
    ]);
    for (bundle, outcome) in [("history.bundle", "right"), ("hidden.patch", "broken")] {
        std::fs::write(
            tasks.join("hooked/task.toml"),
            text.replace("\"project\"", &format!("{bundle:?}")),
        )
        .unwrap();
        let out = fixture.path(bundle);
        let call = eval(&fixture).args(["--task", "hooked", "--out"]).arg(out);
        assert_eq!(outcome_of(&call.run().ok().json(), "hooked"), outcome);
    }
}

#[test]
fn task_with_outside_path_is_refused_before_running() {
    let fixture = Fixture::new();
    let tasks = fixture.path("tasks");
    lay_out(&tasks, "one", GOAL, GATE, "");
    let text = std::fs::read_to_string(tasks.join("one/task.toml")).unwrap();
    let secret = fixture.path("secret");
    std::fs::write(&secret, "x").unwrap();
    std::os::unix::fs::symlink(&secret, tasks.join("one/link.patch")).unwrap();
    for (from, to, why) in [
        ("\"project\"", "\"../elsewhere\"", "repo"),
        ("\"project\"", "\"/etc\"", "repo"),
        ("\"hidden.patch\"", "\"../../secret\"", "hidden"),
        ("\"hidden.patch\"", "\"link.patch\"", "is outside the task"),
        ("goal =", "gaol =", "gaol"),
        ("sh hidden.sh", " ", "check"),
    ] {
        std::fs::write(tasks.join("one/task.toml"), text.replacen(from, to, 1)).unwrap();
        let message = eval(&fixture).run().exits(2).message();
        assert!(
            message.contains("one") && message.contains(why),
            "{message}"
        );
    }
    std::fs::write(tasks.join("one/task.toml"), &text).unwrap();
    std::os::unix::fs::symlink(&secret, tasks.join("one/project/link")).unwrap();
    assert!(
        eval(&fixture)
            .run()
            .exits(2)
            .message()
            .contains("regular files")
    );
    std::fs::remove_file(tasks.join("one/project/link")).unwrap();
    // The evaluation's own directory and the tasks do not mix.
    for out in ["tasks/out", "."] {
        eval(&fixture)
            .arg("--out")
            .arg(fixture.path(out))
            .run()
            .exits(2);
    }
    assert!(!fixture.data().exists());
}

#[test]
fn swe_bench_instances_become_tasks() {
    let fixture = Fixture::new();
    let repo = small().build();
    let repos = fixture.path("repos");
    std::fs::create_dir(&repos).unwrap();
    std::os::unix::fs::symlink(repo.path(), repos.join("someone__area")).unwrap();
    let instance = |id: &str, repo_name: &str| {
        serde_json::json!({
            "instance_id": id, "repo": repo_name, "base_commit": repo.head(), "patch": GOOD_DIFF, "test_patch": HIDDEN,
            "problem_statement": GOAL, "FAIL_TO_PASS": "[\"tests/test_area.py::test_it's\"]",
            "PASS_TO_PASS": ["tests/test_area.py::test_other"], "version": "1.0",
        })
        .to_string()
    };
    let lines = [
        instance("someone__area-1", "someone/area"),
        instance("someone__gone-1", "someone/gone"),
    ];
    std::fs::write(fixture.path("instances.jsonl"), lines.join("\n")).unwrap();
    let import = || {
        let call = fixture
            .call(["eval", "import", "--json"])
            .arg(fixture.path("instances.jsonl"));
        call.arg("--repos")
            .arg(&repos)
            .arg("--out")
            .arg(fixture.path("tasks"))
    };
    let summary = import().run().ok().json();
    assert_eq!(summary["written"], serde_json::json!(["someone__area-1"]));
    assert_eq!(summary["skipped"][0]["task"], "someone__gone-1");
    let text = std::fs::read_to_string(fixture.path("tasks/someone__area-1/task.toml")).unwrap();
    assert!(
        text.contains("someone__area") && text.contains("pytest"),
        "{text}"
    );
    // It is read as a task: without pytest or its tests the check fails at the solution, and the task says so.
    let checked = fixture
        .call(["eval", "check", "--json"])
        .arg(fixture.path("tasks"))
        .arg("--repos")
        .arg(&repos);
    let checked = checked.run().exits(1).json();
    assert_eq!(
        (&checked["broken"], &checked["tasks"][0]["task"]),
        (&1.into(), &"someone__area-1".into())
    );
    // Nothing is written over, and a line that is not an instance is named.
    import().run().exits(1);
    std::fs::write(fixture.path("instances.jsonl"), "{}\n").unwrap();
    assert!(import().run().exits(3).message().contains("line 1"));
}

mod slow {
    use super::*;

    /// Builds and tests twenty small projects, each twice, so it takes 13 seconds: python, node and cargo are what the tests need anyway; the
    /// tasks in Go and C are checked by hand with `crucible eval check eval/tasks`.
    #[test]
    fn own_tasks_fail_before_and_pass_with_solution() {
        let place = tempfile::tempdir().unwrap();
        let (fixture, tasks) = (
            Fixture::below(place.path()),
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../eval/tasks"),
        );
        let mut call = fixture
            .call(["eval", "check", "--json"])
            .arg(&tasks)
            .env("TMPDIR", place.path());
        let mut count = 0;
        for entry in std::fs::read_dir(&tasks).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if ["python-", "javascript-", "rust-"]
                .iter()
                .any(|language| name.starts_with(language))
            {
                call = call.arg("--task").arg(name);
                count += 1;
            }
        }
        assert_eq!(count, 20);
        for name in ["HOME", "CARGO_HOME", "RUSTUP_HOME"] {
            if let Some(value) = std::env::var_os(name) {
                call = call.env(name, value);
            }
        }
        let checked = call.run().ok().json();
        assert_eq!(checked["broken"], 0, "{checked:#}");
        for task in checked["tasks"].as_array().unwrap() {
            assert_eq!(task["validity"]["solution"]["end"]["detail"], 0, "{task:#}");
        }
    }
}
