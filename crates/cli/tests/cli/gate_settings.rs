//! Gates are easy to set, to see and to try: `run start --test`, `[gates.NAME]`, `crucible gates` and `crucible init`.

use std::path::Path;

use crucible_testkit::{RepoBuilder, TestRepo};
use serde_json::json;

use crate::support::{
    CHECK, Fixture, GOAL, TEST, WRONG, answering, good_answer, id_of, small, snapshot,
};

/// The small repository with these settings.
fn with(settings: &str) -> TestRepo {
    small().file(".crucible/config.toml", settings).build()
}

/// A repository whose packages have gates of their own.
fn monorepo() -> TestRepo {
    let inside =
        "test:\n\t@PYTHONPATH=src python3 -c 'import a' && test \"$$(basename $$PWD)\" = x\n";
    RepoBuilder::new()
        .files([
            ("Makefile", "test:\n\t@sh ./check.sh\n"),
            ("check.sh", CHECK),
            ("src/area.py", WRONG),
            ("tests/area_test.sh", TEST),
            ("packages/x/Makefile", inside),
            ("packages/x/src/a.py", "A = 1\n"),
            ("packages/y/b.py", "B = 1\n"),
        ])
        .build()
}

/// What the program printed, without the repository's place and without times.
fn text(repo: &Path, printed: &str) -> String {
    let top = repo.canonicalize().unwrap();
    let content = printed.replace(top.to_str().unwrap(), "$REPO");
    let mut parts = content.split(" (");
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        match part.split_once(" s)") {
            Some((time, rest)) if time.parse::<f64>().is_ok() => {
                text.push_str(&format!(" (N s){rest}"))
            }
            _ => text.push_str(&format!(" ({part}")),
        }
    }
    text
}

#[test]
fn test_option_replaces_configured_gates() {
    let repo = with("[gates.other]\ncommand = [\"no-such-program\"]\n");
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let call = fixture.start_call(repo.path());
    let status = call.args([
        "--test",
        "sh './check.sh'",
        "--test",
        "MODE=fast sh -c 'test $MODE = fast'",
    ]);
    let status = status.run().ok().json();
    assert_eq!(status["state"], "verified");
    let gates = &status["run"]["settings"]["gates"];
    assert_eq!(gates[0]["command"], json!(["sh", "./check.sh"]));
    assert_eq!(
        (&gates[0]["id"], &gates[0]["source"]),
        (&json!("test"), &json!("--test"))
    );
    assert_eq!(
        (&gates[1]["id"], &gates[1]["env"]),
        (&json!("test-2"), &json!({"MODE": "fast"}))
    );
}

#[test]
fn test_option_that_is_no_command_is_refused() {
    let (repo, fixture) = (small().build(), Fixture::new());
    for (given, text, exit) in [
        ("npm test && true", "'&' is shell syntax", 2),
        ("", "names no command", 2),
        ("A=b", "names no command", 2),
        ("PATH=/x make", "cannot set PATH", 2),
        ("sh 'open", "unclosed quotation mark", 2),
        (
            "env TOKEN=ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5 make",
            "looks like a secret",
            8,
        ),
    ] {
        let message = fixture
            .start_call(repo.path())
            .args(["--test", given])
            .run()
            .exits(exit)
            .message();
        assert!(message.contains(text), "{given}: {message}");
    }
    assert!(fixture.runs().is_empty());
}

#[test]
fn settings_of_a_gate_hold_in_a_run() {
    let settings = "[gates.tests]\ncommand = [\"sh\", \"../check.sh\"]\ncwd = \"./src/\"\nsetup = [\"sh -c 'echo $WHERE > made'\"]\n\
        network = \"loopback\"\n[gates.tests.env]\nWHERE = \"src\"\n";
    let check =
        "test \"$(cat made)\" = \"$(basename \"$PWD\")\" && grep -q 'width \\* height' area.py\n";
    let repo = small()
        .file(".crucible/config.toml", settings)
        .file("check.sh", check)
        .build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let status = fixture.start(repo.path()).ok().json();
    assert_eq!(status["state"], "verified");
    let gate = &status["run"]["settings"]["gates"][0];
    assert_eq!(
        (&gate["cwd"], &gate["env"]),
        (&json!("src"), &json!({"WHERE": "src"}))
    );
}

#[test]
fn gate_settings_that_are_wrong_are_refused() {
    let fixture = Fixture::new();
    for (settings, text, exit) in [
        ("cwd = \"../x\"", "gates.tests.cwd is \"../x\"", 2),
        ("cwd = \"/etc\"", "gates.tests.cwd is \"/etc\"", 2),
        ("network = \"host\"", "gates.tests.network is \"host\"", 2),
        (
            "setup = [\"a | b\"]",
            "gates.tests.setup: '|' is shell syntax",
            2,
        ),
        (
            "setup = [\" \"]",
            "gates.tests.setup holds an empty command",
            2,
        ),
        (
            "env = { LD_PRELOAD = \"./x.so\" }",
            "gates.tests.env: a gate cannot set LD_PRELOAD",
            2,
        ),
        ("env = { GIT_DIR = \"x\" }", "a gate cannot set GIT_DIR", 2),
        ("env = { \"A B\" = \"x\" }", "invalid variable name", 2),
        (
            "env = { A = 1 }",
            "`gates.tests.env` takes a table of texts",
            2,
        ),
        (
            "env = { TOKEN = \"ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5\" }",
            "looks like a secret",
            8,
        ),
        ("timeout = 5", "did you mean `gates.tests.timeout_s`?", 2),
    ] {
        let repo = with(&format!(
            "[gates.tests]\ncommand = [\"true\"]\n{settings}\n"
        ));
        let message = fixture.start(repo.path()).exits(exit).message();
        assert!(message.contains(text), "{settings}: {message}");
    }
    assert!(fixture.runs().is_empty());
}

#[test]
fn failing_setup_stops_run_before_model_calls() {
    let repo = with(
        "[gates.tests]\ncommand = [\"true\"]\nsetup = [\"sh -c 'echo no generator >&2; exit 3'\"]\n",
    );
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let message = fixture.start(repo.path()).exits(2).message();
    assert!(
        message.contains("its setup command `sh -c 'echo no generator >&2; exit 3'` failed"),
        "{message}"
    );
    assert!(message.contains("printed \"no generator\""), "{message}");
    assert!(server.requests().is_empty());
}

#[test]
fn gate_reaches_its_own_loopback_and_no_other() {
    let server = answering(good_answer());
    let outside = server.base_url();
    let port = outside
        .rsplit(':')
        .next()
        .and_then(|rest| rest.split('/').next())
        .unwrap();
    let script = format!(
        "import socket\nserver = socket.create_server(('127.0.0.1', 0))\n\
         socket.create_connection(server.getsockname(), 5).close()\n\
         for address in [('127.0.0.1', {port}), ('192.0.2.1', 80)]:\n    try:\n        socket.create_connection(address, 2)\n\
         \x20   except OSError:\n        continue\n    raise SystemExit(f'{{address}} was reached')\n"
    );
    for network in ["loopback", "none"] {
        let settings =
            format!("[gates.net]\ncommand = [\"python3\", \"net.py\"]\nnetwork = \"{network}\"\n");
        let repo = small()
            .file(".crucible/config.toml", settings)
            .file("net.py", &script)
            .build();
        let ran = Fixture::new()
            .call(["gates", "--run"])
            .current_dir(repo.path())
            .run()
            .ok();
        assert!(ran.stdout.starts_with("net passes ("), "{}", ran.stdout);
    }
    assert!(server.requests().is_empty());
}

#[test]
fn gates_are_shown_with_where_they_come_from() {
    let settings = "[gates.tests]\ncommand = [\"sh\", \"./check.sh\", \"a b\"]\nsetup = [\"make gen\"]\ntimeout_s = 5\n\
        env = { MODE = \"fast\", A = \"b\" }\n[gates.slow]\ncommand = [\"true\"]\ncwd = \"src\"\nlevel = \"full\"\n";
    let (repo, fixture) = (with(settings), Fixture::new());
    let ran = fixture
        .call(["gates"])
        .current_dir(repo.path().join("src"))
        .run()
        .ok();
    insta::assert_snapshot!(text(repo.path(), &ran.stdout), @r##"
    slow
      command  true
      from     $REPO/.crucible/config.toml
      in       src
      limits   600 s, network loopback, level full

    tests
      command  sh ./check.sh 'a b'
      from     $REPO/.crucible/config.toml
      in       the repository's top
      setup    make gen
      env      A, MODE
      limits   5 s, network loopback, level lite
    "##);
    let one = fixture
        .call(["gates", "slow", "--json"])
        .current_dir(repo.path())
        .run()
        .ok()
        .json();
    assert_eq!(one["schema_version"], "crucible-gates-v1");
    assert_eq!(
        (&one["gates"][0]["id"], &one["gates"][0]["network"]),
        (&json!("slow"), &json!("loopback"))
    );
    let unknown = fixture
        .call(["gates", "no", "--json"])
        .current_dir(repo.path())
        .run()
        .exits(2);
    assert_eq!(unknown.error()["hints"], json!(["There are: slow, tests"]));
}

/// Tests of a program with colours see what is set.
#[test]
fn no_setting_of_colours_reaches_a_gate() {
    let settings = "[gates.plain]\ncommand = [\"sh\", \"-c\", \"test -z ${NO_COLOR+x}${CARGO_TERM_COLOR+x}${FORCE_COLOR+x}\"]\n";
    let (repo, fixture) = (with(settings), Fixture::new());
    fixture
        .call(["gates", "--run"])
        .current_dir(repo.path())
        .env("NO_COLOR", "1")
        .run()
        .ok();
}

#[test]
fn gates_pass_fail_or_could_not_run() {
    let settings = "[gates.good]\ncommand = [\"true\"]\n[gates.bad]\ncommand = [\"sh\", \"bad.sh\"]\n\
        [gates.lost]\ncommand = [\"no-such-program-here\"]\n";
    let bad = "echo 'ok 1 - fine'; echo 'not ok 2 - adds'; echo '1..2'; exit 1\n";
    let repo = small()
        .file(".crucible/config.toml", settings)
        .file("bad.sh", bad)
        .build();
    let fixture = Fixture::new();
    let before = snapshot(&repo, &fixture);
    let gates = |names: &[&str]| {
        let words = ["gates", "--run"].iter().chain(names);
        fixture.call(words).current_dir(repo.path()).run()
    };
    let ran = gates(&[]).exits(2);
    insta::assert_snapshot!(text(repo.path(), &ran.stdout), @r##"
    bad fails (N s): exit code 1, 1 test failed
        adds
        A run can still start; it refuses a change that causes other failures.
    good passes (N s)
    lost could not run: program "no-such-program-here" was not found on PATH
        to do: install "no-such-program-here"
    "##);
    gates(&["good"]).ok();
    gates(&["good", "bad"]).exits(1);
    let document = gates(&["bad", "lost", "--json"]).exits(2).json();
    assert_eq!(
        (&document["schema_version"], &document["verdict"]),
        (&json!("crucible-gates-run-v1"), &json!("fail"))
    );
    assert_eq!(
        document["gates"][0]["result"]["failed_tests"],
        json!(["adds"])
    );
    assert_eq!(document["gates"][1]["result"]["outcome"], "could-not-run");
    assert_eq!(document["findings"][1]["code"], "verify-gate-could-not-run");
    assert!(fixture.runs().is_empty(), "trying a gate makes no run");
    before.is_still(&snapshot(&repo, &fixture));
}

#[test]
fn gates_run_on_uncommitted_changes_and_change_nothing() {
    let repo = small()
        .uncommitted(
            "src/area.py",
            WRONG.replacen("width + height", "width * height", 1),
        )
        .build();
    let fixture = Fixture::new();
    let before = snapshot(&repo, &fixture);
    fixture
        .call([
            "gates",
            "--run",
            "--test",
            "sh -c 'sh ./check.sh && echo x > src/area.py'",
        ])
        .current_dir(repo.path())
        .run()
        .ok();
    before.is_still(&snapshot(&repo, &fixture));
}

#[test]
fn package_of_a_monorepo_has_its_own_gates() {
    let (repo, fixture) = (monorepo(), Fixture::new());
    let gates = |directory: &str| {
        let call = fixture
            .call(["gates", "--run", "--json"])
            .current_dir(repo.path().join(directory));
        let gate = call.run().json()["gates"][0].clone();
        (gate["cwd"].clone(), gate["result"]["outcome"].clone())
    };
    assert_eq!(gates("packages/x"), (json!("packages/x"), json!("passes")));
    assert_eq!(
        gates("packages/x/src"),
        (json!("packages/x"), json!("passes"))
    );
    assert_eq!(gates("packages/y"), (json!(""), json!("fails")));
    assert_eq!(gates("."), (json!(""), json!("fails")));
}

#[test]
fn run_started_in_a_package_uses_its_gates() {
    let repo = monorepo();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let words = ["run", "start", GOAL, "--json", "--file", "src/area.py"];
    let from = repo.path().join("packages/x");
    // The gate of this package does not test the changed file.
    let call = fixture
        .call(words)
        .env("CRUCIBLE_RUN_BROKEN_CHANGE", "report");
    let status = call.current_dir(&from).run().ok().json();
    assert_eq!(status["run"]["settings"]["gates"][0]["cwd"], "packages/x");
    let call = fixture
        .call(words)
        .env("CRUCIBLE_RUN_BROKEN_CHANGE", "report")
        .args(["--test", "PYTHONPATH=src python3 -c 'import a'"])
        .current_dir(&from);
    assert_eq!(
        call.run().ok().json()["run"]["settings"]["gates"][0]["cwd"],
        "packages/x"
    );
}

#[test]
fn run_without_gates_says_what_was_looked_for() {
    let repo = RepoBuilder::new()
        .files([("src/area.py", WRONG), ("docs/a.md", "")])
        .build();
    let fixture = Fixture::new();
    for command in [&["run", "start", GOAL][..], &["gates"]] {
        let ran = fixture
            .call(command)
            .current_dir(repo.path().join("docs"))
            .run()
            .exits(2);
        insta::allow_duplicates! {
            insta::assert_snapshot!(ran.stderr, @r##"
            error: no gate found in docs and the directories above it, so no change could be verified; Crucible looked for cargo-nextest, cargo-test, npm-test, pnpm-test, yarn-test, bun-test, deno-test, vitest, jest, mocha, node-test, pytest, unittest, tox, nox, go-test, maven, gradle, ctest, dotnet-test, rspec, minitest, phpunit, mix-test, prove, just-test, make-test
              hint: Name the command that tests it: crucible run start "GOAL" --test "./run-tests"
              hint: Or for every run: `crucible init --test "./run-tests"`; `crucible gates` shows what a run uses.
            "##);
        }
    }
    let outside = fixture.run(["gates", "--json"]).exits(2);
    assert!(
        outside.message().contains("is not in a git repository"),
        "{}",
        outside.stderr
    );
}

#[test]
fn init_writes_detected_gates_and_runs_them() {
    let (repo, fixture) = (monorepo(), Fixture::new());
    let init = |directory: &str| {
        fixture
            .call(["init"])
            .current_dir(repo.path().join(directory))
            .run()
            .ok()
    };
    insta::assert_snapshot!(text(repo.path(), &init("packages/x").stdout), @r##"
    wrote $REPO/packages/x/.crucible/config.toml
    gate make-test: make test
    make-test passes (N s)
    next: crucible run start "what to change" --provider gateway
    or:   crucible spec NAME, with the idea on standard input
    "##);
    let written =
        std::fs::read_to_string(repo.path().join("packages/x/.crucible/config.toml")).unwrap();
    insta::assert_snapshot!(written, @r##"
    # Crucible's settings for this project. `crucible config show` lists every setting and its value.

    [llm]
    # The model provider: gateway (any OpenAI-compatible server), claude-cli, or replay.
    # provider = "gateway"

    # A gate: verifies a change (Makefile has a target `test`).
    [gates.make-test]
    command = ["make", "test"]
    cwd = "packages/x"
    timeout_s = 600
    # More settings of a gate: env = { NAME = "value" }, cwd = "packages/web", setup = ["make generate"], level = "full".
    # `crucible gates` lists the gates, and `crucible gates --run` runs them.
    "##);
    // What was written is what counts from then on.
    let gates = fixture
        .call(["gates", "--run", "--json"])
        .current_dir(repo.path().join("packages/x"))
        .run()
        .ok();
    assert!(
        gates.json()["gates"][0]["source"]
            .as_str()
            .unwrap()
            .ends_with("config.toml")
    );
    insta::assert_snapshot!(text(repo.path(), &init("packages/x").stdout), @r##"
    $REPO/packages/x/.crucible/config.toml already exists and was not changed
    gate make-test: make test
    make-test passes (N s)
    "##);
    let top = text(
        repo.path(),
        &fixture
            .call(["init", "--no-run"])
            .current_dir(repo.path())
            .run()
            .ok()
            .stdout,
    );
    assert!(
        top.contains("gate make-test: make test") && !top.contains("fails"),
        "{top}"
    );
}

#[test]
fn init_adds_gates_to_existing_file() {
    let repo = monorepo();
    let fixture = Fixture::new();
    let path = repo.path().join(".crucible/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let own = "# mine\n[run]\nmax_iterations = 2 # few";
    std::fs::write(&path, own).unwrap();
    let ran = fixture
        .call(["init", "--no-run", "--json"])
        .current_dir(repo.path())
        .run()
        .ok()
        .json();
    assert_eq!(
        (&ran["created"], &ran["gates"][0]["id"]),
        (&json!(false), &json!("make-test"))
    );
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        written.starts_with(own) && written.contains("[gates.make-test]"),
        "{written}"
    );
    let second_output = fixture
        .call(["init", "--no-run"])
        .current_dir(repo.path())
        .run()
        .ok();
    assert!(
        second_output.stdout.contains("was not changed"),
        "{}",
        second_output.stdout
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
    // What cannot be added to stays as it is.
    for broken in ["[gates]\n", "gates = {}\n", "[run\n"] {
        std::fs::write(&path, broken).unwrap();
        fixture
            .call(["init", "--no-run"])
            .current_dir(repo.path())
            .run();
        let now = std::fs::read_to_string(&path).unwrap();
        assert!(now.starts_with(broken), "{now}");
        fixture
            .call(["init", "--no-run"])
            .current_dir(repo.path())
            .run();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), now);
    }
}

#[test]
fn init_accepts_command_and_lists_missing_tools() {
    let repo = RepoBuilder::new().file("src/area.py", WRONG).build();
    let fixture = Fixture::new();
    let none = fixture.call(["init"]).current_dir(repo.path()).run().ok();
    insta::assert_snapshot!(text(repo.path(), &none.stdout), @r##"
    wrote $REPO/.crucible/config.toml
    missing:
      no gate found, so no change could be verified
        to do: crucible init --test "./run-tests"
    next: crucible run start "what to change" --provider gateway
    or:   crucible spec NAME, with the idea on standard input
    "##);
    let words = ["init", "--test", "X=\"a b\" no-such-program-here 'it''s'"];
    let lost = fixture.call(words).current_dir(repo.path()).run().ok();
    insta::assert_snapshot!(text(repo.path(), &lost.stdout), @r##"
    added gates to $REPO/.crucible/config.toml
    gate test: no-such-program-here its
    missing:
      gate test could not run: program "no-such-program-here" was not found on PATH
        to do: install "no-such-program-here"
    "##);
    let gates = fixture
        .call(["gates", "--json"])
        .current_dir(repo.path())
        .run()
        .ok()
        .json();
    assert_eq!(
        gates["gates"][0]["command"],
        json!(["no-such-program-here", "its"])
    );
    assert_eq!(gates["gates"][0]["env"], json!(["X"]));
    let unborn = tempfile::tempdir().unwrap();
    repo.git(["init", "--quiet", unborn.path().to_str().unwrap()]);
    let words = ["init", "--json", "--test", "true"];
    let document = fixture
        .call(words)
        .current_dir(unborn.path())
        .run()
        .ok()
        .json();
    assert_eq!(
        document["missing"][0]["command"],
        "git add --all && git commit -m \"Begin\""
    );
    assert!(
        fixture
            .call(words)
            .current_dir(repo.path())
            .run()
            .exits(2)
            .message()
            .contains("already configures gates")
    );
}

#[test]
fn run_without_id_uses_newest_of_repository() {
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let (one, other, third) = (
        small().build(),
        small().file("more", "").build(),
        small().file("third", "").build(),
    );
    let first = id_of(&fixture.start(one.path()).ok().json());
    let second = id_of(&fixture.start(other.path()).ok().json());
    let at = |place: &Path, words: &[&str]| fixture.call(words).current_dir(place).run();
    assert_eq!(
        id_of(
            &at(&one.path().join("src"), &["run", "status", "--json"])
                .ok()
                .json()
        ),
        first
    );
    assert_eq!(
        id_of(&at(other.path(), &["run", "advance", "--json"]).ok().json()),
        second
    );
    let none = at(third.path(), &["run", "status", "--json"]).exits(2);
    assert!(none.message().contains("has no run yet"), "{}", none.stderr);
    assert_eq!(
        id_of(
            &at(third.path(), &["run", "status", &first, "--json"])
                .ok()
                .json()
        ),
        first
    );
    // Outside of any repository the newest is shown, and nothing lands by itself.
    assert_eq!(id_of(&fixture.status()), second);
    assert!(
        fixture
            .run(["run", "land", "--json"])
            .exits(2)
            .message()
            .contains("is not in a git repository")
    );
    at(one.path(), &["run", "land", "--json"]).ok();
    assert_eq!(
        id_of(&at(one.path(), &["run", "status", "--json"]).ok().json()),
        first
    );
    assert_eq!(
        at(one.path(), &["run", "status", "--json"]).json()["state"],
        "landed"
    );
    assert_eq!(
        at(other.path(), &["run", "status", "--json"]).json()["state"],
        "verified"
    );
}
