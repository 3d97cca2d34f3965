//! Runs whose changes no model proposes: they need no provider, name none, and cost nothing but their calls.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use crucible_host::clock::SystemClock;
use crucible_host::env::Environment;
use crucible_ledger::{EventRecord, Ledger};
use crucible_run::{AnswerSource, RunContext, RunObserver, RunOptions, RunSettings, create};
use crucible_sandbox::Sandbox;
use crucible_testkit::{FakeOpenAi, Reply};
use serde_json::{Value, json};

use crate::support::{Call, Fixture, GOAL, GOOD_DIFF, codes, good_answer, id_of, small};

const ANSWER: &str = "artifacts/diff.patch";

/// The call of somebody who configured nothing at all.
fn unconfigured(call: Call) -> Call {
    call.without_env("CRUCIBLE_LLM_PROVIDER")
        .without_env("CRUCIBLE_GATEWAY_BASE_URL")
}

/// The only run's directory.
fn run_of(fixture: &Fixture) -> PathBuf {
    fixture.runs().pop().unwrap()
}

fn read(fixture: &Fixture, path: &str) -> Value {
    let text = fs::read_to_string(run_of(fixture).join(path)).unwrap();
    serde_json::from_str(
        text.lines()
            .next()
            .filter(|_| path.ends_with(".jsonl"))
            .unwrap_or(&text),
    )
    .unwrap()
}

fn give(fixture: &Fixture, words: &str) {
    fs::write(run_of(fixture).join(ANSWER), words).unwrap();
}

/// A program at the fixture that prints the patch that fixes the repository.
fn command(fixture: &Fixture) -> PathBuf {
    let path = fixture.path("agent");
    fs::write(
        &path,
        format!("#!/bin/sh\ncat <<'PATCH'\n{GOOD_DIFF}PATCH\n"),
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn readme_command_writes_prompt_without_configuration() {
    let readme = include_str!("../../../../README.md");
    assert!(
        readme.contains("`crucible run start \"GOAL\" --mode manual_outbox`"),
        "the README tells another one"
    );
    let (repo, fixture) = (small().build(), Fixture::new());
    let start = fixture
        .call(["run", "start", GOAL, "--mode", "manual_outbox", "--json"])
        .current_dir(repo.path());
    let started = unconfigured(start).run().exits(1).json();
    assert_eq!(started["state"], "blocked");
    let id = id_of(&started);
    let settings = &started["run"]["settings"];
    let values = [
        &settings["provider"],
        &settings["model"],
        &settings["edit_format"],
        &settings["parameters"],
    ];
    assert_eq!(
        values,
        [
            &json!("manual_outbox"),
            &json!("person"),
            &json!("unified-diff"),
            &json!({})
        ]
    );
    assert!(
        run_of(&fixture)
            .join("outbox/001_patchmaker_patch.md")
            .is_file()
    );

    give(&fixture, GOOD_DIFF);
    let advance = |id: &str| unconfigured(fixture.call(["run", "advance", id, "--json"])).run();
    assert_eq!(advance(&id).ok().json()["state"], "verified");
    let header = read(&fixture, "cassette.jsonl");
    assert_eq!(
        (&header["provider"], &header["model"]),
        (&json!("manual_outbox"), &json!("person"))
    );
    assert_eq!(header["capabilities"]["edit_format"], "unified-diff");
    let llm = &read(&fixture, "receipt.json")["phases"][0]["llm"];
    assert_eq!(
        (&llm["provider"], &llm["model_used"]),
        (&json!("manual_outbox"), &json!("person"))
    );
    assert_eq!(llm["cost"], Value::Null);

    // Whatever looks at the run later needs no provider either.
    for args in [
        ["run", "replay", &id],
        ["run", "verify-record", &id],
        ["run", "bundle", &id],
    ] {
        unconfigured(fixture.call(args)).run().ok();
    }
    let status = unconfigured(fixture.call(["run", "status", &id]))
        .run()
        .ok()
        .stdout;
    assert!(status.contains("asked     a person"), "{status}");
    unconfigured(fixture.call(["run", "land", &id])).run().ok();
    assert_eq!(
        repo.git(["diff", "--name-status", "HEAD^", "HEAD"]),
        "M\tsrc/area.py"
    );
}

#[test]
fn user_command_needs_no_provider_or_price() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let start = fixture
        .start_call(repo.path())
        .args(["--mode", "api_agent"])
        .env("SDDAI_PATCH_CMD", command(&fixture));
    let limited = start
        .env("CRUCIBLE_LLM_BUDGET_DOLLARS", "0.01")
        .env("CRUCIBLE_LLM_BUDGET_TOKENS", "1");
    let ended = unconfigured(limited).run().ok().json();
    assert_eq!(ended["state"], "verified");
    let settings = &ended["run"]["settings"];
    assert_eq!(
        (&settings["provider"], &settings["model"]),
        (&json!("api_agent"), &json!("command"))
    );
    let budgets = &ended["budgets"];
    let used = [
        &budgets["calls"],
        &budgets["tokens"],
        &budgets["micro_dollars"],
    ];
    assert_eq!(used, [&json!(1), &json!(0), &json!(0)]);
}

#[test]
fn persons_answer_costs_one_call_and_no_money() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let limits = |call: Call| {
        call.env("CRUCIBLE_LLM_BUDGET_DOLLARS", "0.01")
            .env("CRUCIBLE_LLM_BUDGET_TOKENS", "1")
            .env("CRUCIBLE_LLM_BUDGET_CALLS", "1")
    };
    limits(
        fixture
            .start_call(repo.path())
            .args(["--mode", "manual_outbox"]),
    )
    .run()
    .exits(1);
    give(&fixture, "I would multiply.\n");
    let refused = limits(fixture.call(["run", "advance", "--json"]))
        .run()
        .exits(1)
        .json();
    assert_eq!(codes(&refused, 1), ["answer-no-edit"]);
    let budgets = &refused["budgets"];
    let used = [
        &budgets["calls"],
        &budgets["tokens"],
        &budgets["micro_dollars"],
    ];
    assert_eq!(used, [&json!(1), &json!(0), &json!(0)]);
    // The one call is made.
    give(&fixture, GOOD_DIFF);
    let error = limits(fixture.call(["run", "advance", "--json"]))
        .run()
        .exits(70)
        .error();
    assert_eq!(error["budget_exhausted"], true);
    let ended = fixture
        .call(["run", "advance", "--json"])
        .env("CRUCIBLE_LLM_BUDGET_CALLS", "2")
        .run()
        .ok()
        .json();
    assert_eq!(ended["state"], "verified");
}

#[test]
fn model_beside_a_person_needs_a_price() {
    let (repo, fixture) = (small().build(), Fixture::new());
    fixture.user_config("[dispatch]\nmode = \"manual_outbox\"\nchair = \"gateway\"\n");
    let message = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_LLM_BUDGET_DOLLARS", "1")
        .run()
        .exits(2)
        .message();
    assert!(message.contains("no price is configured"), "{message}");
}

#[test]
fn provider_is_prepared_only_for_its_roles() {
    let plan = "Scope-Allow: src/area.py\nScope-Deny:\nStop: verified\nBehaviors:\n";
    let request = json!({
        "schema_version": "ctcp-file-request-v1", "goal": "x", "reason": "r",
        "needs": [{ "path": "src/area.py", "mode": "full" }], "budget": { "max_files": 3, "max_total_bytes": 20_000 },
    });
    let server = FakeOpenAi::start([request.to_string(), plan.to_owned()].map(Reply::Answer));
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    // A provider without its key is no obstacle to a run that does not ask it.
    let by_hand = || {
        fixture
            .start_call(repo.path())
            .args(["--mode", "manual_outbox"])
    };
    let started = by_hand()
        .args(["--provider", "anthropic", "--model", "great"])
        .run()
        .exits(1);
    assert!(
        started.stderr.contains("the model great is not used"),
        "{}",
        started.stderr
    );
    assert_eq!(
        started.json()["run"]["settings"]["provider"],
        "manual_outbox"
    );

    fixture.user_config("[dispatch]\nchair = \"anthropic\"\n");
    let message = by_hand()
        .args(["--provider", "gateway"])
        .run()
        .exits(2)
        .message();
    assert!(message.contains("anthropic"), "{message}");

    fixture.user_config("[dispatch]\nchair = \"gateway\"\n");
    let started = by_hand()
        .args(["--provider", "gateway", "--model", "great"])
        .run()
        .exits(1)
        .json();
    let settings = &started["run"]["settings"];
    assert_eq!(
        (&settings["provider"], &settings["model"]),
        (&json!("manual_outbox"), &json!("person"))
    );
    assert_eq!(settings["role_models"], json!({ "chair": "great" }));
    let requests: Vec<Value> = server
        .requests()
        .iter()
        .map(|request| request.body["model"].clone())
        .collect();
    assert_eq!(requests, ["great", "great"]);
}

#[test]
fn model_that_only_fixes_uses_own_form() {
    let server = FakeOpenAi::start([Reply::Answer(good_answer())]);
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    fixture.user_config(
        "[dispatch]\npatchmaker = \"manual_outbox\"\nfixer = \"gateway\"\n[llm.gateway]\nmax_tokens = 700\n",
    );
    let started = fixture.start(repo.path()).exits(1).json();
    let settings = &started["run"]["settings"];
    assert_eq!(
        (&settings["provider"], &settings["edit_format"]),
        (&json!("gateway"), &json!("whole-file"))
    );
    give(&fixture, "I would multiply.\n");
    assert_eq!(
        fixture.run(["run", "advance", "--json"]).ok().json()["state"],
        "verified"
    );
    assert_eq!(server.requests()[0].body["max_tokens"], 700);
    assert!(
        fixture
            .run(["run", "status"])
            .ok()
            .stdout
            .contains("asked     a person")
    );
}

#[test]
fn missing_model_choice_is_reported_by_run() {
    let (repo, fixture) = (small().build(), Fixture::new());
    for config in [
        "",
        "[dispatch]\npatchmaker = \"manual_outbox\"\n",
        "[dispatch]\nmode = \"local_exec\"\n",
    ] {
        fixture.user_config(config);
        let ran = unconfigured(fixture.start_call(repo.path())).run().exits(2);
        assert!(
            ran.message().contains("LLM provider must be specified"),
            "{config}: {}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("--mode manual_outbox"),
            "{config}: {}",
            ran.stderr
        );
    }
    fixture.user_config("");
    let no_use =
        fixture
            .start_call(repo.path())
            .args(["--mode", "manual_outbox", "--provider", "replay"]);
    let message = no_use
        .args(["--cassette", "none.jsonl"])
        .run()
        .exits(2)
        .message();
    assert!(
        message.contains("no role uses the provider `replay`"),
        "{message}"
    );
    assert_eq!(fixture.runs(), Vec::<PathBuf>::new());
}

struct Silent;

impl RunObserver for Silent {
    fn working(&mut self, _: &str, _: &str) {}
    fn note(&mut self, _: &str) {}
    fn event(&mut self, _: &EventRecord) {}
}

/// The settings of a run by hand as programs before this one wrote them: with a provider that nobody asks.
fn settings_of_an_older_program(fixture: &Fixture) -> RunSettings {
    let repo = small().build();
    let begun = fixture
        .call([
            "run",
            "new",
            GOAL,
            "--mode",
            "manual_outbox",
            "--json",
            "--repo",
        ])
        .arg(repo.path());
    let mut settings = begun.run().ok().json()["run"]["settings"].clone();
    fs::remove_dir_all(run_of(fixture)).unwrap();
    settings["provider"] = json!("anthropic");
    settings["model"] = json!("great");
    settings["edit_format"] = json!("whole-file");
    settings["parameters"] = json!({ "max_tokens": 9000 });
    serde_json::from_value(settings).unwrap()
}

#[test]
fn old_manual_run_continues_without_provider() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let settings = settings_of_an_older_program(&fixture);
    let env = Environment::capture();
    let (sandbox, runs_root) = (
        Arc::new(Sandbox::new(None, &env)),
        fixture.data().join("runs"),
    );
    let world = RunContext {
        env: &env,
        clock: &SystemClock,
        sandbox,
        runs_root,
        tmp: fixture.data().join("tmp"),
    };
    let options = RunOptions {
        goal: GOAL.to_owned(),
        found_gate_timeout: std::time::Duration::from_secs(60),
        started_in: None,
        settings,
        answers: AnswerSource::Provider,
        warnings: Vec::new(),
        task: None,
    };
    let mut ledger = Ledger::open(&fixture.data().join("ledger.db")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let git = runtime.block_on(world.repository(repo.path())).unwrap();
    let id = runtime
        .block_on(create(&world, &git, options, &mut ledger, &mut Silent))
        .unwrap()
        .to_string();
    drop(ledger);

    let advance = || unconfigured(fixture.call(["run", "advance", &id, "--json"])).run();
    assert_eq!(advance().exits(1).json()["state"], "blocked");
    assert_eq!(read(&fixture, "cassette.jsonl")["provider"], "anthropic");
    give(&fixture, GOOD_DIFF);
    assert_eq!(advance().ok().json()["state"], "verified");
    for args in [
        ["run", "replay", &id],
        ["run", "verify-record", &id],
        ["run", "land", &id],
    ] {
        unconfigured(fixture.call(args)).run().ok();
    }
}

#[test]
fn judged_answer_is_skipped_with_note() {
    let (repo, fixture) = (small().build(), Fixture::new());
    fixture
        .start_call(repo.path())
        .args(["--mode", "manual_outbox"])
        .run()
        .exits(1);
    let prompt =
        |name: &str| fs::read_to_string(run_of(&fixture).join("outbox").join(name)).unwrap();
    let (passed_over, replace) = (
        "is not a valid answer",
        "What lies there now was judged as attempt",
    );
    assert!(!prompt("001_patchmaker_patch.md").contains(replace));
    for (number, words, asks) in [
        (1, "I would multiply.\n", "002_fixer_fix.md"),
        (2, "I would not add.\n", "003_fixer_fix.md"),
    ] {
        give(&fixture, words);
        let refused = fixture.run(["run", "advance", "--json"]).exits(1);
        assert_eq!(codes(&refused.json(), number), ["answer-no-edit"]);
        // Nobody was asked for another answer before, so nobody is blamed for the old one.
        assert!(!refused.stderr.contains(passed_over), "{}", refused.stderr);
        assert!(
            prompt(asks).contains(&format!("{replace} {number}: replace it.")),
            "{}",
            prompt(asks)
        );
    }
    // The first answer once more, after the second.
    give(&fixture, "I would multiply.\n");
    let second_output = fixture.run(["run", "advance", "--json"]).exits(1);
    assert!(
        second_output
            .stderr
            .contains("judged as attempt 1; write a new answer there"),
        "{}",
        second_output.stderr
    );
    assert_eq!(
        second_output.json()["owed"]["prompt"],
        "outbox/003_fixer_fix.md"
    );
    give(&fixture, GOOD_DIFF);
    assert_eq!(
        fixture.run(["run", "advance", "--json"]).ok().json()["state"],
        "verified"
    );
}
