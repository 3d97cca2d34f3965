//! What people read: the exact words of short results and of errors.

use crucible_testkit::{FakeOpenAi, Reply};

use crate::support::{Fixture, GATE, Ran, answering, good_answer, id_of, small};

/// What a call printed, with the test's own paths replaced.
fn text(fixture: &Fixture, ran: &Ran) -> String {
    let home = fixture.home();
    let printed = format!("{}{}", ran.stdout, ran.stderr);
    let printed = printed
        .replace(home.to_str().unwrap(), "~")
        .replace(fixture.data().to_str().unwrap(), "$CRUCIBLE_HOME");
    format!("{printed}exit {}", ran.code.unwrap())
}

/// Also where the command reads no configuration, and once where it reads it several times.
#[test]
fn every_command_warns_of_unknown_variables() {
    let fixture = Fixture::new();
    for words in [
        &["completions", "bash"][..],
        &["config", "show"],
        &["models"],
    ] {
        let ran = fixture
            .call(words)
            .env("CRUCIBLE_RUN_ITERATIONS", "2")
            .run()
            .ok();
        let warned = ran
            .stderr
            .matches("warning: CRUCIBLE_RUN_ITERATIONS is set and sets nothing")
            .count();
        assert_eq!(warned, 1, "{words:?}: {}", ran.stderr);
        assert!(
            !fixture
                .call(words)
                .run()
                .ok()
                .stderr
                .contains("sets nothing"),
            "{words:?}"
        );
    }
}

#[test]
fn a_project_begins_with_a_file_of_comments() {
    let fixture = Fixture::new();
    // A repository of its own: what init remarks depends on where it is.
    std::fs::create_dir(fixture.home().join(".git")).unwrap();
    insta::assert_snapshot!(text(&fixture, &fixture.run(["init"])), @r#"
    wrote ~/.crucible/config.toml
    missing:
      no gate found, so no change could be verified
        to do: crucible init --test "./run-tests"
    next: crucible run start "what to change" --provider gateway
    or:   crucible spec NAME, with the idea on standard input
    exit 0
    "#);
    insta::assert_snapshot!(text(&fixture, &fixture.run(["init"])), @r#"
    ~/.crucible/config.toml already exists and was not changed
    missing:
      no gate found, so no change could be verified
        to do: crucible init --test "./run-tests"
    exit 0
    "#);
    let written = std::fs::read_to_string(fixture.home().join(".crucible/config.toml")).unwrap();
    assert!(
        written
            .lines()
            .all(|line| line.is_empty() || line.starts_with(['#', '['])),
        "{written}"
    );
    fixture.run(["config", "show"]).ok();
    assert!(
        !fixture.data().exists(),
        "a project is no reason for a ledger"
    );
}

#[test]
fn an_empty_place_says_how_to_begin() {
    let fixture = Fixture::new();
    insta::assert_snapshot!(text(&fixture, &fixture.run(["run", "list"])), @r#"
    no run yet; start one: crucible run start "what to change" --provider gateway
    exit 0
    "#);
    insta::assert_snapshot!(text(&fixture, &fixture.run(["run", "status"])), @r#"
    error: no run yet
      hint: Start one: crucible run start "what to change" --provider gateway
    exit 2
    "#);
    insta::assert_snapshot!(text(&fixture, &fixture.run(["ledger", "verify"])), @r"
    error: there is no ledger at $CRUCIBLE_HOME/ledger.db yet
      hint: Run `crucible run start` once; it creates the ledger.
    exit 2
    ");
}

#[test]
fn usage_errors_name_the_way() {
    let fixture = Fixture::new();
    insta::assert_snapshot!(text(&fixture, &fixture.run(["nonsense"])), @r"
    error: unrecognized subcommand 'nonsense'

    Usage: crucible [OPTIONS] <COMMAND>

    For more information, try '--help'.
    exit 2
    ");
    insta::assert_snapshot!(text(&fixture, &fixture.run(["run", "start"])), @r"
    error: the following required arguments were not provided:
      <GOAL>

    Usage: crucible run start <GOAL>

    For more information, try '--help'.
    exit 2
    ");
    insta::assert_snapshot!(text(&fixture, &fixture.run(["run", "start", "x", "--provdier", "y"])), @r"
    error: unexpected argument '--provdier' found

      tip: a similar argument exists: '--provider'

    Usage: crucible run start --provider <NAME> <GOAL>

    For more information, try '--help'.
    exit 2
    ");
    insta::assert_snapshot!(text(&fixture, &fixture.run(["run", "land", "../../x"])), @r#"
    error: no run ../../x in $CRUCIBLE_HOME/runs; list runs with `crucible run list`
    exit 2
    "#);
}

#[test]
fn the_configuration_in_force_names_its_sources() {
    let fixture = Fixture::new();
    let repo = small()
        .file(
            ".crucible/config.toml",
            format!("[run]\nmax_iterations = 2\n\n{GATE}"),
        )
        .build();
    let call = fixture
        .call(["config", "show", "--repo"])
        .arg(repo.path())
        .env("CRUCIBLE_RUN_MAX_FILES", "7");
    let printed = call
        .run()
        .ok()
        .stdout
        .replace(repo.path().to_str().unwrap(), "R");
    let rows: Vec<String> = printed
        .lines()
        .filter(|line| {
            ["setting", "run.", "gates.", "llm.provider", "sandbox"]
                .iter()
                .any(|key| line.trim().starts_with(key))
        })
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    insta::assert_snapshot!(rows.join("\n"), @r#"
    setting value source
    gates.tests.canary true default
    gates.tests.command ["sh", "./check.sh"] R/.crucible/config.toml
    gates.tests.cwd "" default
    gates.tests.env {} default
    gates.tests.level "lite" default
    gates.tests.network "loopback" default
    gates.tests.setup [] default
    gates.tests.timeout_s 600 default
    llm.provider "gateway" environment CRUCIBLE_LLM_PROVIDER
    run.agent "" default
    run.agent_calls 300 default
    run.agent_disk_mib 4096 default
    run.agent_timeout_s 3600 default
    run.broken_change "required" default
    run.candidates 1 default
    run.edit_format "" default
    run.held_out [] default
    run.max_file_requests 2 default
    run.max_files 7 environment CRUCIBLE_RUN_MAX_FILES
    run.max_iterations 2 R/.crucible/config.toml
    run.max_malformed 3 default
    run.max_total_bytes 60000 default
    run.min_strength 0 default
    run.objections "off" default
    run.results_outside "off" default
    run.second_world "required" default
    run.sinks_need_approval [] default
    run.strength_budget_s 10 default
    sandbox.memory_mib 4096 default
    sandbox.processes 8192 default
    sandbox.strength "required" default
    "#);
}

#[test]
fn a_project_file_cannot_reach_beyond_the_project() {
    let fixture = Fixture::new();
    for (settings, key) in [
        (
            "[llm.gateway]\nbase_url = \"http://models.example.invalid/v1\"\n",
            "llm.gateway.base_url",
        ),
        (
            "[llm.gateway]\napi_key_env = \"HOME\"\n",
            "llm.gateway.api_key_env",
        ),
        (
            "[llm.claude-cli]\nbinary = \"./evil\"\n",
            "llm.claude-cli.binary",
        ),
        ("[sandbox]\nstrength = \"off\"\n", "sandbox.strength"),
        ("[paths]\nruns_root = \"/tmp\"\n", "paths.runs_root"),
        (
            "[crawl]\nclone_base = \"https://git.example.invalid\"\n",
            "crawl.clone_base",
        ),
        ("[run]\nmax_iteration = 2\n", "run.max_iteration"),
    ] {
        let repo = small()
            .file(".crucible/config.toml", format!("{settings}\n{GATE}"))
            .build();
        let message = fixture.start(repo.path()).exits(2).message();
        assert!(message.contains(key), "{message}");
    }
    assert!(fixture.runs().is_empty());
}

#[test]
fn run_output_states_progress_and_next_step() {
    let repo = small().build();
    let server = FakeOpenAi::start([Reply::Answer("no".to_owned()), Reply::Answer(good_answer())]);
    let fixture = Fixture::with(&server);
    let started = fixture
        .call([
            "run",
            "start",
            "make area in src/area.py multiply",
            "--repo",
        ])
        .arg(repo.path())
        .run()
        .ok();
    let id = id_of(&fixture.status());
    let printed = started
        .stdout
        .replace(&id, "RUN")
        .replace(fixture.data().to_str().unwrap(), "$CRUCIBLE_HOME");
    insta::assert_snapshot!(printed, @r"
    run       RUN
    goal      make area in src/area.py multiply
    model     gpt-oss-20b (gateway)
    state     verified
    attempts  1 of 4
    shown     the gates passed in isolation
    shown     the gates read the change and do not run it
    shown     the same tests pass in a second world
    evidence  $CRUCIBLE_HOME/runs/RUN
    next      Commit the change with `crucible run land RUN`.
    ");
    assert!(
        started.stderr.contains("refused: answer-no-edit"),
        "{}",
        started.stderr
    );
    let landed = fixture.run(["run", "land", &id]).ok().stdout;
    assert!(
        landed.starts_with("landed ") && landed.contains("  Crucible-Run: "),
        "{landed}"
    );
    let text = fixture.run(["run", "status", &id]).ok().stdout;
    assert!(
        text.contains("state     landed") && text.contains("Nothing is left to do."),
        "{text}"
    );
}

#[test]
fn help_and_version_are_results() {
    let fixture = Fixture::with(&answering(""));
    for args in [
        &["--help"][..],
        &["help"],
        &["run", "start", "--help"],
        &["--version"],
    ] {
        let ran = fixture.call(args).run().ok();
        assert!(!ran.stdout.is_empty() && ran.stderr.is_empty());
    }
}
