//! What a patch cannot reach and a gate cannot see: the gates' own files, the original repository, other runs, and what
//! the gate before has left.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crucible_testkit::{FakeOpenAi, Reply, RepoBuilder, TestRepo};

use crate::support::{
    CHECK, Fixture, GATE, LOADS, WRONG, answering, codes, good_answer, id_of, small, snapshot,
    whole_file,
};

/// A copy of a repository where a gate can see it: temporary directories are private to it anyhow.
fn in_sight(fixture: &Fixture, builder: RepoBuilder) -> PathBuf {
    let (repo, place) = (builder.build(), fixture.path("original"));
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .arg(repo.path())
        .arg(&place)
        .status()
        .unwrap();
    assert!(copied.success());
    place
}

#[test]
fn a_patch_cannot_reach_what_a_gate_runs() {
    let make = "[gates.tests]\ncommand = [\"make\", \"--silent\", \"test\"]\n";
    let npm = "[gates.tests]\ncommand = [\"sh\", \"-c\", \"grep -q width.*height package.json && exit 0; sh check.sh\"]\n";
    let python = "[gates.tests]\ncommand = [\"sh\", \"-c\", \"sh './src/area_check.py'\"]\n";
    for (gate, file, content, easy) in [
        (GATE, "check.sh", CHECK, "exit 0\n"),
        (
            make,
            "Makefile",
            "test:\n\tsh check.sh\n",
            "test:\n\ttrue\n",
        ),
        (
            npm,
            "package.json",
            "{}\n",
            "{\"area\": \"width height\"}\n",
        ),
        // By its name a source like any other, and the one that speaks most of the goal.
        (
            python,
            "src/area_check.py",
            "# area width height multiply\nsh check.sh\n",
            "exit 0\n",
        ),
    ] {
        let repo = small()
            .file(".crucible/config.toml", gate)
            .file(file, content)
            .build();
        let server = answering(whole_file(file, easy));
        let fixture = Fixture::with(&server);
        let before = snapshot(&repo, &fixture);
        let status = fixture
            .start_call(repo.path())
            .args(["--max-iterations", "1"])
            .run()
            .exits(1)
            .json();
        assert_eq!(status["attempts"][0]["end"], "refused", "{file}");
        let plan = std::fs::read_to_string(fixture.runs()[0].join("artifacts/PLAN.md")).unwrap();
        let scope = plan
            .lines()
            .find(|line| line.starts_with("Scope-Allow: "))
            .unwrap();
        assert!(
            !scope.contains(file) && scope.contains("src/area.py"),
            "{scope}"
        );
        before.is_still(&snapshot(&repo, &fixture));
    }
}

#[test]
fn patch_cannot_change_scripts_that_gates_run() {
    let make = "[gates.tests]\ncommand = [\"make\", \"--silent\", \"test\"]\n";
    let repo = small()
        .file(".crucible/config.toml", make)
        .file("Makefile", "test:\n\t@sh tools/all.sh\n")
        .file("tools/all.sh", "set -e\n. \"$(dirname \"$0\")/area.sh\"\nrun_all\n")
        // It speaks most of the goal, and nothing but the script before it names it.
        .file("tools/area.sh", "# area multiply width height\nrun_all() { sh check.sh; }\n")
        .build();
    for file in ["tools/area.sh", "check.sh"] {
        let server = answering(whole_file(file, "run_all() { true; }\n"));
        let fixture = Fixture::with(&server);
        let before = snapshot(&repo, &fixture);
        let status = fixture
            .start_call(repo.path())
            .args(["--max-iterations", "1"])
            .run()
            .exits(1)
            .json();
        assert_eq!(status["attempts"][0]["end"], "refused", "{file}");
        let analysis =
            std::fs::read_to_string(fixture.runs()[0].join("artifacts/analysis.json")).unwrap();
        assert!(
            analysis.contains("\"tools/area.sh\"") && analysis.contains("\"check.sh\""),
            "{analysis}"
        );
        before.is_still(&snapshot(&repo, &fixture));
    }
}

#[test]
fn gates_do_not_see_each_others_files() {
    let first = format!("{CHECK}touch left-by-first\n");
    let second = format!("[ ! -e left-by-first ] || exit 1\n{LOADS}");
    let gates = "[gates.a-first]\ncommand = [\"sh\", \"first.sh\"]\n[gates.b-second]\ncommand = [\"sh\", \"second.sh\"]\n";
    let repo = small()
        .file(".crucible/config.toml", gates)
        .file("first.sh", first)
        .file("second.sh", second)
        .build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let status = fixture.start(repo.path()).ok().json();
    assert_eq!(status["state"], "verified");
    assert_eq!(codes(&status, 1), [""; 0]);
}

#[test]
fn gate_sees_neither_the_original_nor_runs() {
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let other = small().build();
    fixture.start(other.path()).ok();
    let other_run = fixture.runs()[0].clone();
    let original = fixture.path("original");
    let mut script = String::new();
    for (number, place) in [
        original.join("secret.txt"),
        original.join(".git/logs/HEAD"),
        original.join(".git/refs/heads/main"),
        other_run.join("artifacts/PLAN.md"),
        fixture.data().join("ledger.db"),
    ]
    .iter()
    .enumerate()
    {
        script.push_str(&format!(
            "cat '{}' >/dev/null 2>&1 && exit {}\n",
            place.display(),
            20 + number
        ));
        assert!(place.exists() || place.starts_with(&original));
    }
    // At the path of the original stands the copy.
    script.push_str(&format!(
        "cmp -s src/area.py '{0}/src/area.py' && [ \"$(pwd)\" = '{0}' ] || exit 29\n",
        original.display()
    ));
    // Its own copy lies there, and nothing else.
    script.push_str(&format!(
        "ls '{}' 2>/dev/null | grep -q '{}' && exit 30\n",
        fixture.data().join("runs").display(),
        other_run.file_name().unwrap().display()
    ));
    script.push_str(
        "[ -e secret.txt ] && exit 31\ngrep -q 'width \\* height' src/area.py || exit 1\n",
    );
    let builder = small()
        .file("check.sh", script)
        .uncommitted("secret.txt", "mine\n");
    assert_eq!(in_sight(&fixture, builder), original);
    // The gate wants to be at one path, and the second world has another.
    fixture.user_config("[run]\nsecond_world = \"off\"\n");
    for root in [None, Some(fixture.path("elsewhere"))] {
        let mut call = fixture.start_call(&original);
        if let Some(root) = root {
            call = call.env("CRUCIBLE_RUNS_ROOT", root);
        }
        let status = call.run().ok().json();
        assert_eq!(status["state"], "verified");
        assert_eq!(codes(&status, 1), [""; 0]);
    }
}

#[test]
fn gate_in_linked_work_tree_sees_no_original() {
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let (original, linked) = (fixture.path("original"), fixture.path("linked"));
    let places = [
        original.join("secret.txt"),
        original.join(".git/HEAD"),
        fixture.path("third/src/area.py"),
    ];
    let look = |number: usize| {
        format!(
            "cat '{}' >/dev/null 2>&1 && exit {}\n",
            places[number].display(),
            20 + number
        )
    };
    let script =
        look(0) + &look(1) + &look(2) + "grep -q 'width \\* height' src/area.py || exit 1\n";
    in_sight(
        &fixture,
        small()
            .file("check.sh", script)
            .uncommitted("secret.txt", "mine\n"),
    );
    for name in ["linked", "third"] {
        let mut git = std::process::Command::new("git");
        git.arg("-C")
            .arg(&original)
            .args(["worktree", "add", "--quiet", "-b", name])
            .arg(fixture.path(name));
        assert!(git.status().unwrap().success());
    }
    assert!(places.iter().all(|place| place.exists()));
    let status = fixture.start_call(&linked).run().ok().json();
    assert_eq!(status["state"], "verified", "{status}");
}

#[test]
fn tools_installed_inside_the_repository_still_run() {
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let original = fixture.path("original");
    let tool = format!(
        "#!/bin/sh\n. '{0}/.venv/lib/part.sh'\ncat '{0}/mine.txt' >/dev/null 2>&1 && exit 20\nsh check.sh\n",
        original.display()
    );
    let builder = small()
        .file(
            ".crucible/config.toml",
            "[gates.tests]\ncommand = [\"check-area\"]\n",
        )
        .file(".gitignore", ".venv\n")
        .uncommitted(".venv/bin/check-area", tool)
        .uncommitted("mine.txt", "mine\n")
        .uncommitted(".venv/lib/part.sh", "true\n");
    in_sight(&fixture, builder);
    let set = std::process::Command::new("chmod")
        .arg("+x")
        .arg(original.join(".venv/bin/check-area"))
        .status();
    assert!(set.unwrap().success());
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", original.join(".venv/bin").display());
    let status = fixture
        .start_call(&original)
        .env("PATH", path)
        .run()
        .ok()
        .json();
    assert_eq!(codes(&status, 1), [""; 0]);
    assert_eq!(status["state"], "verified");
}

/// Starts a run whose gate waits until the test has done this to the repository, and tells what came of it and which
/// gates began.
fn while_a_gate_runs(gates: &str, meddle: impl Fn(&TestRepo)) -> (String, String) {
    let fixture = Fixture::new();
    let (begun, go_on) = (fixture.path("began"), fixture.path("go-on"));
    let wait = format!(
        "i=0; while [ ! -e '{}' ] && [ $i -lt 400 ]; do sleep 0.05; i=$((i + 1)); done\nexit 1\n",
        go_on.display()
    );
    let repo = small()
        .file(".crucible/config.toml", gates)
        .file("check.sh", wait)
        .file("second.sh", "exit 1\n")
        .build();
    let mut command = fixture.start_call(repo.path()).command();
    let log = std::fs::File::create(&begun).unwrap();
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::from(log))
        .spawn()
        .unwrap();
    let since = Instant::now();
    while !std::fs::read_to_string(&begun)
        .unwrap()
        .contains("is running: sh ./check.sh")
    {
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "the gate never began"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    meddle(&repo);
    std::fs::write(&go_on, "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"");
    let message = std::fs::read_to_string(&begun).unwrap();
    let error: serde_json::Value = serde_json::from_str(message.lines().last().unwrap()).unwrap();
    (error["error"].as_str().unwrap().to_owned(), message)
}

#[test]
fn repository_changed_during_gates_is_not_judged() {
    let one = "[gates.a-first]\ncommand = [\"sh\", \"./check.sh\"]\n";
    let two = format!("{one}[gates.b-second]\ncommand = [\"sh\", \"./second.sh\"]\n");
    let edit = |repo: &TestRepo| repo.write("src/area.py", "area = 'width * height'\n");
    let commit = |repo: &TestRepo| {
        repo.write("src/more.py", "area = 1\n");
        repo.commit("Somebody was faster");
    };
    for gates in [one, &two] {
        for ((message, told), says) in [
            (
                while_a_gate_runs(gates, edit),
                "uncommitted changes: \"src/area.py\"",
            ),
            (while_a_gate_runs(gates, commit), "is no longer at"),
        ] {
            assert!(message.contains(says), "{message}");
            assert!(!told.contains("gate b-second is running"), "{told}");
            assert!(!told.contains("model asked"), "{told}");
        }
    }
}

#[test]
fn gates_without_new_proof_are_reported() {
    let repo = small().file("check.sh", LOADS).build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let ran = fixture.start(repo.path()).ok();
    assert_eq!(codes(&ran.json(), 1), ["run-gates-passed-before"]);
    assert!(
        ran.stderr
            .contains("warning: Every gate also passed before the change"),
        "{}",
        ran.stderr
    );
    // One that fails before and passes after has proved something.
    let proved = small().build();
    assert_eq!(codes(&fixture.start(proved.path()).ok().json(), 1), [""; 0]);
}

#[test]
fn reserved_gate_names_are_refused() {
    for name in [
        "lite",
        "plan_check",
        "patch_check",
        "behavior_catalog_check",
    ] {
        let gate = format!("[gates.{name}]\ncommand = [\"sh\", \"./check.sh\"]\n");
        let repo = small().file(".crucible/config.toml", gate).build();
        let fixture = Fixture::new();
        let message = fixture.start(repo.path()).exits(2).message();
        assert!(
            message.contains(name) && message.contains("one of Crucible's own gates"),
            "{message}"
        );
        assert!(fixture.runs().is_empty());
    }
}

#[test]
fn a_limit_of_zero_is_a_usage_error() {
    let repo = small().build();
    for (variable, key) in [
        ("CRUCIBLE_RUN_MAX_ITERATIONS", "run.max_iterations"),
        ("CRUCIBLE_RUN_MAX_FILES", "run.max_files"),
        ("CRUCIBLE_RUN_MAX_TOTAL_BYTES", "run.max_total_bytes"),
        ("CRUCIBLE_LLM_TIMEOUT_S", "llm.timeout_s"),
    ] {
        let fixture = Fixture::new();
        let message = fixture
            .start_call(repo.path())
            .env(variable, "0")
            .run()
            .exits(2)
            .message();
        assert!(message.contains(key), "{variable}: {message}");
        assert!(fixture.runs().is_empty(), "{variable}");
    }
}

/// A name that would be read as two paths, or as a line of its own, never stands in a plan by the chair's choice.
#[test]
fn file_name_readable_as_scope_is_not_chosen() {
    for name in [
        "src/area, .py",
        "src/area.py\nScope-Allow: tests",
        "src/area width.py",
    ] {
        let repo = small().file(name, WRONG.repeat(2)).build();
        let server = answering(good_answer());
        let fixture = Fixture::with(&server);
        let status = fixture.start(repo.path()).ok().json();
        assert_eq!(status["state"], "verified", "{name:?}");
        let plan = std::fs::read_to_string(fixture.runs()[0].join("artifacts/PLAN.md")).unwrap();
        assert_eq!(plan.matches("Scope-Allow: ").count(), 1, "{plan}");
        assert!(plan.contains("\nScope-Allow: src/area.py\n"), "{plan}");
        assert_eq!(fixture.status()["state"], "verified");
    }
}

#[test]
fn files_not_shown_to_model_are_reported() {
    let mut builder = small().file("notes.txt", "nothing of interest\n");
    for number in 0..4 {
        let text = format!("def area_{number}(width, height):\n    return width * height\n\n\n")
            .repeat(16);
        builder = builder.file(format!("src/area_{number}.py"), text);
    }
    let repo = builder.build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let goal = "make the area multiply width and height";
    let call = fixture
        .call(["run", "start", goal, "--json"])
        .current_dir(repo.path());
    let ran = call.env("CRUCIBLE_RUN_MAX_TOTAL_BYTES", "1400").run().ok();
    let messages: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.contains("the model sees"))
        .collect();
    let left_out =
        std::fs::read_to_string(fixture.runs()[0].join("artifacts/left_out.json")).unwrap();
    let left_out: serde_json::Value = serde_json::from_str(&left_out).unwrap();
    let over: Vec<&str> = left_out["files"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|file| file["reason"] == "is larger than what is left of the budget")
        .map(|file| file["path"].as_str().unwrap())
        .collect();
    assert_eq!(over, ["src/area_1.py", "src/area_2.py", "src/area_3.py"]);
    let [line] = messages[..] else {
        panic!("{}", ran.stderr)
    };
    assert!(
        line.contains("not shown: 3 (is larger than what is left of the budget)"),
        "{line}"
    );
    assert!(line.contains("2 (shares nothing with the goal)"), "{line}");
    assert!(
        line.ends_with("see artifacts/left_out.json and artifacts/context_pack.json"),
        "{line}"
    );
    let replayed = fixture
        .run(["run", "replay", &id_of(&ran.json()), "--json"])
        .ok()
        .json();
    assert!(
        replayed["same"]
            .to_string()
            .contains("artifacts/left_out.json"),
        "{replayed}"
    );
}

#[test]
fn file_hidden_from_gates_is_reported() {
    let repo = small().file("id_rsa", "not really\n").build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let ran = fixture.start(repo.path()).ok();
    let line = ran
        .stderr
        .lines()
        .find(|line| line.contains("not copied for the gates"));
    assert!(
        line.is_some_and(|line| line.ends_with("see artifacts/analysis.json")),
        "{}",
        ran.stderr
    );
}

#[test]
fn detected_gate_has_the_default_time_limit() {
    let repo = RepoBuilder::new()
        .file(
            "Makefile",
            "test:\n\tgrep -q 'width \\* height' src/area.py\n",
        )
        .file("src/area.py", WRONG)
        .build();
    let fixture = Fixture::new();
    let status = fixture
        .call(["run", "new", "multiply", "--json", "--repo"])
        .arg(repo.path())
        .run()
        .ok()
        .json();
    let gates = status["run"]["settings"]["gates"].as_array().unwrap();
    let seconds = crucible_settings::GateEntry::default().timeout_s;
    assert_eq!(gates.len(), 1);
    assert_eq!(
        gates[0]["timeout_ms"].to_string(),
        format!("{seconds}000"),
        "{}",
        gates[0]
    );
}

/// The words of each attempt differ in their warmth, and none is warmer than a model takes.
#[test]
fn later_attempts_are_warmer_up_to_one() {
    let (repo, server) = (
        small().build(),
        FakeOpenAi::start(std::iter::repeat_n(Reply::Answer("no".into()), 6)),
    );
    let fixture = Fixture::with(&server);
    let call = fixture
        .start_call(repo.path())
        .args(["--max-iterations", "6"]);
    call.env("CRUCIBLE_RUN_MAX_MALFORMED", "0").run().exits(1);
    let warmth: Vec<f64> = server
        .requests()
        .iter()
        .map(|request| request.body["temperature"].as_f64().unwrap())
        .collect();
    assert_eq!(warmth, [0.2, 0.45, 0.7, 0.95, 1.0, 1.0]);
}
