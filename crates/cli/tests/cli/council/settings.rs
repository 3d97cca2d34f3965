//! What decides whom a council asks and how: flags, variables and files; and the recording that answers again.

use crucible_testkit::{CouncilCall, FakeApi, Reply, triage};
use serde_json::{Value, json};

use super::support::{ROLES, asked, council, usual};
use crate::support::Fixture;

const QUESTION: &str = "Should our team of five split its program into services?";

/// The model that each call asked.
fn models(server: &FakeApi) -> Vec<(CouncilCall, Value)> {
    asked(server)
        .into_iter()
        .zip(
            server
                .completions()
                .iter()
                .map(|request| request.body["model"].clone()),
        )
        .collect()
}

#[test]
fn each_part_uses_its_configured_model() {
    let mut triage = triage("parallel", &ROLES);
    triage["council"][0]["model_hint"] = "deep".into();
    triage["council"][1]["model_hint"] = "secret-and-dear".into();
    let server = council(triage, |_| None);
    let fixture = Fixture::with(&server);
    let args = [
        "ask",
        QUESTION,
        "--triage-model",
        "planner",
        "--model",
        "talker",
        "--hint-model",
        "deep",
    ];
    let ran = fixture.run(args).ok();
    for (call, model) in models(&server) {
        let expected = match call {
            CouncilCall::Triage => "planner",
            CouncilCall::Seat(name) if name == "domain_expert" => "deep",
            _ => "talker",
        };
        assert_eq!(model, expected);
    }
    // What the triage may not name is not asked, and that is said.
    let refused = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("warning: pragmatist "));
    assert_eq!(refused.count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("secret-and-dear"), "{}", ran.stderr);
    // With `*` it may name any.
    fixture.run(["ask", QUESTION, "--hint-model", "*"]).ok();
    assert!(
        models(&server)
            .iter()
            .any(|(_, model)| model == "secret-and-dear")
    );
}

#[test]
fn the_configuration_names_models_as_the_flags_do() {
    let server = usual("parallel");
    let fixture = Fixture::with(&server);
    fixture.user_config(
        "[council]\nprovider = \"gateway\"\ntriage_model = \"planner\"\ndefault_model = \"talker\"\n",
    );
    fixture
        .call(["ask", QUESTION])
        .env("CRUCIBLE_LLM_PROVIDER", "openrouter")
        .run()
        .ok();
    let models = models(&server);
    assert_eq!(models[0], (CouncilCall::Triage, json!("planner")));
    assert!(
        models[1..].iter().all(|(_, model)| model == "talker"),
        "{models:?}"
    );
}

/// What names a model for fewer calls comes before what names one for more, and the command line before all files.
#[test]
fn phase_profile_overrides_default_and_flag_overrides_both() {
    let server = usual("parallel");
    let fixture = Fixture::with(&server);
    fixture.user_config(
        "[council]\ndefault_model = \"talker\"\n[llm.gateway.profiles.sharp]\nmodel = \"critic\"\n\
         [phases.council-red-team]\nllm_profile = \"sharp\"\n",
    );
    let ran = fixture.run(["ask", QUESTION]).ok();
    for (call, model) in models(&server) {
        assert_eq!(
            model,
            if call == CouncilCall::RedTeam {
                "critic"
            } else {
                "talker"
            },
            "{call:?}"
        );
    }
    assert!(
        ran.stderr.trim_end().ends_with("; asked: talker, critic"),
        "{}",
        ran.stderr
    );
    let before = server.completions().len();
    let ran = fixture.run(["ask", QUESTION, "--model", "chosen"]).ok();
    assert!(
        models(&server)[before..]
            .iter()
            .all(|(_, model)| model == "chosen")
    );
    assert!(
        ran.stderr.trim_end().ends_with("; asked: chosen"),
        "{}",
        ran.stderr
    );
}

#[test]
fn summary_names_models_of_other_providers() {
    let server = usual("parallel");
    let fixture = Fixture::with(&server);
    let own = fixture.run(["ask", QUESTION]).ok();
    assert!(!own.stderr.contains("asked:"), "{}", own.stderr);
    // Those of a project's file above all: whoever asks did not write it.
    std::fs::create_dir(fixture.home().join(".crucible")).unwrap();
    std::fs::write(
        fixture.home().join(".crucible/config.toml"),
        "[council]\ntriage_model = \"dear\"\n",
    )
    .unwrap();
    let ran = fixture.run(["ask", QUESTION]).ok();
    assert!(
        ran.stderr
            .lines()
            .last()
            .unwrap()
            .ends_with("; asked: dear, gpt-oss-20b"),
        "{}",
        ran.stderr
    );
}

#[test]
fn fallback_models_apply_only_to_openrouter() {
    let server = usual("parallel");
    let fixture = Fixture::with(&server);
    let flags = [
        "ask",
        QUESTION,
        "--fallback-model",
        "one/a",
        "--fallback-model",
        "two/b",
    ];
    let call = fixture
        .call(flags)
        .env("CRUCIBLE_OPENROUTER_BASE_URL", server.base_url());
    call.env("OPENROUTER_API_KEY", "a-key-for-tests")
        .arg("--provider")
        .arg("openrouter")
        .run()
        .ok();
    for request in server.completions() {
        let listed = request.body["models"].to_string();
        assert!(
            listed.contains("one/a") && listed.contains("two/b"),
            "{listed}"
        );
    }
    // A name is one name, whatever is in it.
    let call = fixture.call(["ask", QUESTION, "--fallback-model", "one/a,two/b"]);
    let call = call.env("CRUCIBLE_OPENROUTER_BASE_URL", server.base_url());
    call.env("OPENROUTER_API_KEY", "a-key-for-tests")
        .arg("--provider")
        .arg("openrouter")
        .run()
        .ok();
    assert_eq!(
        server.completions().last().unwrap().body["models"],
        json!(["one/a,two/b"])
    );
    let server = usual("parallel");
    let ran = Fixture::with(&server).run(flags).ok();
    assert!(
        server
            .completions()
            .iter()
            .all(|request| request.body.get("models").is_none())
    );
    let reported_count = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("warning:"))
        .count();
    assert_eq!(reported_count, 1, "{}", ran.stderr);
}

#[test]
fn openrouter_uses_default_models_unless_one_is_named() {
    let asked = |configured: &str| {
        let mut triage = triage("parallel", &ROLES);
        triage["council"][0]["model_hint"] = "openai/gpt-4o".into();
        let server = council(triage, |_| None);
        let fixture = Fixture::with(&server);
        fixture.user_config(configured);
        let call = fixture
            .call(["ask", QUESTION])
            .env("CRUCIBLE_OPENROUTER_BASE_URL", server.base_url());
        call.env("OPENROUTER_API_KEY", "a-key-for-tests")
            .arg("--provider")
            .arg("openrouter")
            .run()
            .ok();
        models(&server)
    };
    let seeds = asked("");
    assert_eq!(
        seeds[0],
        (
            CouncilCall::Triage,
            json!("anthropic/claude-sonnet-4-20250514")
        )
    );
    let rest: Vec<&Value> = seeds[1..].iter().map(|(_, model)| model).collect();
    let (hint, auto) = (json!("openai/gpt-4o"), json!("openrouter/auto"));
    assert!(
        rest.contains(&&hint) && rest.iter().all(|model| [&hint, &auto].contains(model)),
        "{rest:?}"
    );
    let own = asked("[llm.openrouter]\nmodel = \"my/own\"\n");
    assert!(own.iter().all(|(_, model)| model == "my/own"), "{own:?}");
}

#[test]
fn delta_strategy_is_configurable() {
    let mut triage = triage("parallel", &ROLES);
    triage["allow_early_exit"] = true.into();
    triage["loop_count"] = 4.into();
    for (choice, loops, judged) in [("judge", 4, 2), ("similarity", 2, 0), ("never", 4, 0)] {
        let server = council(triage.clone(), |_| None);
        let document = Fixture::with(&server)
            .run(["ask", QUESTION, "--json", "--delta", choice])
            .ok()
            .json();
        assert_eq!(document["loops_executed"], loops, "{choice}");
        assert_eq!(document["early_exit"], loops == 2, "{choice}");
        let calls = asked(&server);
        assert_eq!(
            calls
                .iter()
                .filter(|call| **call == CouncilCall::Judge)
                .count(),
            judged,
            "{choice}"
        );
        let server = council(triage.clone(), |_| None);
        let fixture = Fixture::with(&server);
        let call = fixture
            .call(["ask", QUESTION, "--json"])
            .env("CRUCIBLE_COUNCIL_DELTA", choice)
            .run();
        assert_eq!(call.ok().json()["loops_executed"], loops, "{choice}");
    }
}

#[test]
fn invalid_council_settings_are_refused_by_name() {
    let server = usual("parallel");
    let fixture = Fixture::with(&server);
    let delta = fixture
        .call(["ask", QUESTION])
        .env("CRUCIBLE_COUNCIL_DELTA", "perhaps")
        .run()
        .exits(2);
    insta::assert_snapshot!(delta.stderr, @r#"
    error: council.delta is "perhaps"
      hint: Use one of: judge, similarity, never.
    "#);
    let too_much = fixture
        .call(["ask", QUESTION, "--delta", "similarity"])
        .env("CRUCIBLE_COUNCIL_SIMILARITY", "1.5")
        .run()
        .exits(2);
    insta::assert_snapshot!(too_much.stderr, @"
    error: council.similarity is 1.5
      hint: Set a number from 0 (nothing in common) to 1 (the same words).
    ");
    for (variable, value, says) in [
        ("CRUCIBLE_COUNCIL_CALLS", "0", "council.calls is 0"),
        ("CRUCIBLE_COUNCIL_CALLS", "1", "council.calls is 1"),
        ("CRUCIBLE_COUNCIL_CALLS", "many", "whole number"),
        ("CRUCIBLE_COUNCIL_SIMILARITY", "much", "a number"),
        (
            "CRUCIBLE_COUNCIL_SIMILARITY",
            "1.5",
            "council.similarity is 1.5",
        ),
        (
            "CRUCIBLE_COUNCIL_MAX_QUERY_BYTES",
            "0",
            "council.max_query_bytes is 0",
        ),
        (
            "CRUCIBLE_COUNCIL_MAX_ANSWER_BYTES",
            "0",
            "council.max_answer_bytes is 0",
        ),
        (
            "CRUCIBLE_COUNCIL_SUMMARY_CHARS",
            "0",
            "council.summary_chars is 0",
        ),
        ("CRUCIBLE_LLM_TIMEOUT_S", "0", "llm.timeout_s is 0"),
        ("CRUCIBLE_COUNCIL_PROVIDER", "oracle", "oracle"),
        (
            "CRUCIBLE_COUNCIL_DEFAULT_MODEL",
            " ",
            "council.default_model is \" \"",
        ),
        (
            "CRUCIBLE_COUNCIL_TRIAGE_MODEL",
            " ",
            "council.triage_model is \" \"",
        ),
    ] {
        let ran = fixture
            .call(["ask", QUESTION])
            .env(variable, value)
            .run()
            .exits(2);
        assert!(
            ran.stderr.contains(says),
            "{variable}={value}: {}",
            ran.stderr
        );
    }
    for flags in [
        ["--max-calls", "0"],
        ["--max-calls", "1"],
        ["--max-calls", "-1"],
        ["--delta", "perhaps"],
        ["--fallback-model", " "],
        ["--hint-model", ""],
    ] {
        fixture.call(["ask", QUESTION]).args(flags).run().exits(2);
    }
    fixture.user_config("[council]\nfallback_model = [\"a\"]\n");
    let ran = fixture.run(["ask", QUESTION]).exits(2);
    assert!(
        ran.stderr
            .contains("did you mean `council.fallback_models`"),
        "{}",
        ran.stderr
    );
    fixture.user_config("[council]\nhinted_models = [\" \"]\n");
    let ran = fixture.run(["ask", QUESTION]).exits(2);
    assert!(ran.stderr.contains("hinted_models"), "{}", ran.stderr);
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn project_file_may_only_lower_council_limits() {
    let server = usual("parallel");
    let fixture = Fixture::with(&server);
    let project = fixture.home().join(".crucible");
    std::fs::create_dir(&project).unwrap();
    let file = project.join("config.toml");
    for (key, more) in [
        ("calls", 65),
        ("max_query_bytes", 200_001),
        ("max_context_bytes", 65_537),
        ("max_answer_bytes", 262_145),
        ("summary_chars", 60_001),
    ] {
        std::fs::write(&file, format!("[council]\n{key} = {more}\n")).unwrap();
        let ran = fixture.run(["ask", QUESTION]).exits(2);
        assert!(
            ran.stderr
                .contains(&format!("may lower `council.{key}`, not raise it")),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(server.requests().len(), 0);
    std::fs::write(&file, "[council]\ncalls = 5\n").unwrap();
    let ran = fixture.run(["ask", QUESTION]).exits(70);
    assert!(ran.stderr.contains("of 5 left"), "{}", ran.stderr);
    fixture.run(["ask", QUESTION, "--max-calls", "64"]).ok();
}

/// A repository that somebody else wrote cannot make the asker pay for models that the asker did not allow.
#[test]
fn project_file_cannot_allow_further_models() {
    let server = usual("parallel");
    let fixture = Fixture::with(&server);
    let project = fixture.home().join(".crucible");
    std::fs::create_dir(&project).unwrap();
    let file = project.join("config.toml");
    for (key, variable) in [
        ("hinted_models", "CRUCIBLE_COUNCIL_HINTED_MODELS"),
        ("fallback_models", "CRUCIBLE_COUNCIL_FALLBACK_MODELS"),
    ] {
        let setting = format!("[council]\n{key} = [\"secret-and-dear\"]\n");
        std::fs::write(&file, &setting).unwrap();
        let ran = fixture.run(["ask", QUESTION]).exits(2);
        let message = format!("a project's file cannot set `council.{key}`");
        assert!(
            ran.stderr.contains(&message) && ran.stderr.contains(variable),
            "{}",
            ran.stderr
        );
        assert_eq!(server.requests().len(), 0);
        std::fs::write(&file, "").unwrap();
        fixture.user_config(&setting);
        assert!(
            fixture
                .run(["config", "show"])
                .ok()
                .stdout
                .contains("secret-and-dear"),
            "{key}"
        );
        fixture.user_config("");
    }
    // Whose provider it is makes no difference, as in `llm.provider`: where it asks and with which key is the user's word.
    std::fs::write(&file, "[council]\nprovider = \"gateway\"\n").unwrap();
    fixture
        .call(["ask", QUESTION])
        .env("CRUCIBLE_LLM_PROVIDER", "openrouter")
        .run()
        .ok();
    assert!(!server.completions().is_empty());
}

#[test]
fn cost_is_estimated_from_prices_and_limited() {
    let server = usual("parallel");
    let fixture = Fixture::with(&server);
    fixture.user_config(
        "[llm.prices.\"gateway/*\"]\ninput = 1.0\noutput = 10.0\ndate = \"2026-01-31\"\nsource = \"a price list\"\n",
    );
    let ran = fixture.run(["ask", QUESTION, "--trace"]).ok();
    let rows: Vec<&str> = ran
        .stdout
        .split_once("WHAT IT TOOK")
        .unwrap()
        .1
        .lines()
        .collect();
    for part in [
        "triage",
        "domain_expert",
        "red_team",
        "synthesis",
        "all together",
    ] {
        let row = rows
            .iter()
            .find(|row| row.trim_start().starts_with(part))
            .unwrap();
        assert!(row.contains('$') && row.contains(" estimated "), "{row}");
    }
    let document = fixture.run(["ask", QUESTION, "--json"]).ok().json();
    let usage = &document["usage"];
    let number = |name: &str| usage[name].as_u64().unwrap();
    assert_eq!(usage["cost_basis"], "estimated");
    // Each call is rounded up for itself.
    let exact = number("tokens_input") + 10 * number("tokens_output");
    assert!(
        (exact..=exact + 11).contains(&number("micro_dollars")),
        "{usage}"
    );
    let request_count = server.completions().len();
    let call = fixture
        .call(["ask", QUESTION, "--json"])
        .env("CRUCIBLE_LLM_BUDGET_DOLLARS", "0.06");
    let error = call.run().exits(70).error();
    assert_eq!(error["budget_exhausted"], true);
    assert!(server.completions().len() > request_count, "{error:#}");
}

/// The same document, but for the time that it took.
fn timeless(mut document: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("elapsed_ms");
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    strip(&mut document);
    document
}

#[test]
fn recorded_question_replays_without_a_model() {
    for grammar in ["parallel", "sequential", "debate"] {
        let mut triage = triage(
            grammar,
            &["domain_expert", "creative", "creative", "pragmatist"],
        );
        triage["allow_early_exit"] = true.into();
        triage["council"][1]["model_hint"] = "deep".into();
        // A seat that fails is a part of the recording, too.
        let server = council(triage, |call| match call {
            CouncilCall::Seat(name) if name == "creative#2" => Some(Reply::Status(401)),
            _ => None,
        });
        let fixture = Fixture::with(&server);
        let args = [
            "ask",
            QUESTION,
            "--json",
            "--trace",
            "--triage-model",
            "planner",
            "--hint-model",
            "deep",
        ];
        let document = fixture
            .call(args)
            .args(["--record", "calls.jsonl"])
            .run()
            .ok()
            .json();
        let request_count = server.requests().len();
        let second_output = fixture
            .call(args)
            .args(["--provider", "replay", "--cassette", "calls.jsonl"])
            .run()
            .ok();
        assert_eq!(
            timeless(second_output.json()),
            timeless(document),
            "{grammar}"
        );
        assert_eq!(server.requests().len(), request_count, "{grammar}");
        let lines = std::fs::read_to_string(fixture.home().join("calls.jsonl"))
            .unwrap()
            .lines()
            .count();
        assert_eq!(lines, request_count + 1, "{grammar}");
        // Another question is not in it, and nobody is asked instead.
        let other = fixture.run([
            "ask",
            "Why?",
            "--json",
            "--provider",
            "replay",
            "--cassette",
            "calls.jsonl",
        ]);
        assert!(
            other
                .exits(2)
                .message()
                .contains("the recording does not contain this request"),
            "{grammar}"
        );
    }
}

#[test]
fn a_recording_begins_where_nothing_is() {
    let server = usual("parallel");
    let fixture = Fixture::with(&server);
    std::fs::write(fixture.home().join("full"), "something").unwrap();
    std::fs::write(fixture.home().join("empty"), "").unwrap();
    for text in ["full", "empty", ".", "/dev/null"] {
        let ran = fixture.run(["ask", QUESTION, "--record", text]).exits(2);
        assert!(
            ran.stderr.contains("--record: there is something at"),
            "{}",
            ran.stderr
        );
    }
    let ran = fixture
        .run(["ask", QUESTION, "--record", "no/such/directory"])
        .exits(2);
    assert!(ran.stderr.contains("error: --record: "), "{}", ran.stderr);
    assert_eq!(
        std::fs::read_to_string(fixture.home().join("full")).unwrap(),
        "something"
    );
    // Nobody is asked, so nothing is begun.
    fixture.run(["ask", "", "--record", "new"]).exits(2);
    assert!(!fixture.home().join("new").exists());
    assert_eq!(server.requests().len(), 0);
    fixture.run(["ask", QUESTION, "--record", "new"]).ok();
    assert!(
        std::fs::read_to_string(fixture.home().join("new"))
            .unwrap()
            .starts_with('{')
    );
}

#[test]
fn the_command_is_found_in_help_and_completions() {
    let fixture = Fixture::new();
    let help = fixture.run(["--help"]).ok().stdout;
    assert!(
        help.contains("  ask          Ask a council of models with a red team\n"),
        "{help}"
    );
    let help = fixture.run(["ask", "--help"]).ok().stdout;
    for words in [
        "Exit codes: 0 answered",
        "--trace",
        "--context <KEY=VALUE>",
        "crucible ask - ",
    ] {
        assert!(help.contains(words), "{words:?}: {help}");
    }
    assert!(
        fixture
            .run(["completions", "bash"])
            .ok()
            .stdout
            .contains("crucible__subcmd__ask)")
    );
    let text = fixture.run(["config", "show"]).ok().stdout;
    assert!(text.contains("council.calls"), "{text}");
}
