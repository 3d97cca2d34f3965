//! `crucible models`: what is configured, what it costs, and what servers offer.

use std::net::TcpListener;

use crucible_llm::provider;
use serde_json::Value;

use crate::support::{Call, Fixture, Ran, answering};

/// Lines as a reader compares them: columns one space apart, and the gateway's evidence replaced, which is not told here.
fn text(ran: &Ran) -> String {
    let evidence = provider("gateway").unwrap().evidence();
    let lines = format!("{}{}", ran.stdout, ran.stderr).replace(evidence, "EVIDENCE");
    let lines = lines
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    format!(
        "{}\nexit {}",
        lines.collect::<Vec<_>>().join("\n"),
        ran.code.unwrap()
    )
}

fn row<'a>(document: &'a Value, name: &str) -> &'a Value {
    document["providers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["provider"] == name)
        .unwrap()
}

/// The document, which is as its schema says.
#[track_caller]
fn document(ran: &Ran) -> Value {
    let document = ran.json();
    let schema = include_str!("../../../../docs/contracts/models.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let errors: Vec<String> = schema
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
    document
}

/// A call in a home whose own configuration says this.
fn configured(fixture: &Fixture, settings: &str, args: &[&str]) -> Call {
    let directory = fixture.home().join(".config/crucible");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.toml"), settings).unwrap();
    fixture.call([&["models"], args].concat())
}

const PRICE: &str = "[llm.prices.\"gateway/gpt-oss*\"]\ninput = 0.05\noutput = 1.5\ndate = \"2026-01-31\"\nsource = \"own electricity\"\n";

#[test]
fn models_lists_provider_with_price_and_evidence() {
    let fixture = Fixture::new();
    let ran = configured(&fixture, PRICE, &["--provider", "gateway"]).run();
    insta::assert_snapshot!(text(&ran), @r#"
    provider model changes as structured output price for a million tokens
    gateway gpt-oss-20b whole-file json-schema $0.05 in, $1.50 out (own electricity, 2026-01-31)

    gateway: any OpenAI-compatible server (llama.cpp, Ollama, vLLM, LM Studio); no key needed on your own machine
    EVIDENCE
    exit 0
    "#);
    let ran = configured(&fixture, PRICE, &["--provider", "gateway", "--json"])
        .run()
        .ok();
    insta::assert_snapshot!(ran.stdout.replace(provider("gateway").unwrap().evidence(), "EVIDENCE"), @r#"
    {
      "schema_version": "crucible-models-v1",
      "provider": "gateway",
      "providers": [
        {
          "provider": "gateway",
          "summary": "any OpenAI-compatible server (llama.cpp, Ollama, vLLM, LM Studio); no key needed on your own machine",
          "model": "gpt-oss-20b",
          "max_tokens": 4096,
          "edit_format": "whole-file",
          "structured_output": "json-schema",
          "evidence": "EVIDENCE",
          "price": {
            "input_micro_dollars": 50000,
            "output_micro_dollars": 1500000,
            "date": "2026-01-31",
            "source": "own electricity"
          },
          "offered": null
        }
      ]
    }
    "#);
    document(&ran);
    let unpriced = document(&configured(&fixture, "", &["--json"]).run().ok());
    let listed = unpriced["providers"].as_array().unwrap().len();
    assert_eq!(listed, crucible_llm::registry().len());
    assert!(
        unpriced["providers"]
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["price"].is_null())
    );
    let bad = configured(
        &fixture,
        &PRICE.replace("2026-01-31", "lately"),
        &["--json"],
    )
    .run()
    .exits(2);
    assert!(bad.message().contains("lately"), "{}", bad.stderr);
    let unknown = configured(&fixture, "", &["--provider", "nobody", "--json"])
        .run()
        .exits(2);
    assert!(
        unknown.message().contains("unknown provider"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn help_of_offline_commands_has_an_example() {
    for command in ["doctor", "models", "config show"] {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let ran = Fixture::new().call(words).run().ok();
        assert!(
            ran.stdout.contains(&format!("`crucible {command} --")),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn without_flag_no_provider_is_called() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let fixture = Fixture::new();
    let url = format!("http://{}/v1", server.local_addr().unwrap());
    let call = fixture.call(["models", "--json"]);
    let providers = ["GATEWAY", "OPENAI", "OPENROUTER", "ANTHROPIC"];
    let call = providers.iter().fold(call, |call, name| {
        call.env(&format!("CRUCIBLE_{name}_BASE_URL"), &url)
    });
    let rows = call.run().ok().json();
    assert!(
        rows["providers"]
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["offered"].is_null())
    );
    assert!(server.accept().is_err(), "somebody connected");
}

#[test]
fn offered_models_and_unreachable_servers_are_listed() {
    let server = answering("never asked");
    let fixture = Fixture::with(&server);
    let ran = fixture
        .call(["models", "--online", "--provider", "gateway"])
        .run();
    insta::assert_snapshot!(text(&ran), @r#"
    provider model changes as structured output price for a million tokens
    gateway gpt-oss-20b whole-file json-schema unknown

    gateway: any OpenAI-compatible server (llama.cpp, Ollama, vLLM, LM Studio); no key needed on your own machine
    EVIDENCE
    offers 1 model
    model context in out
    fake-model unknown unknown unknown
    exit 0
    "#);
    let call = || fixture.call(["models", "--online", "--json"]);
    let all = call()
        .env("CRUCIBLE_OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        .env("OPENAI_API_KEY", "a-key-of-ours");
    let all = all.run().ok();
    let document = document(&all);
    let gateway = &row(&document, "gateway")["offered"];
    assert!(
        gateway["complete"] == true && !gateway["models"].as_array().unwrap().is_empty(),
        "{gateway:#}"
    );
    let openai = row(&document, "openai")["offered"]["error"]
        .as_str()
        .unwrap();
    assert!(openai.contains("cannot connect"), "{openai}");
    let openrouter = row(&document, "openrouter")["offered"]["error"]
        .as_str()
        .unwrap();
    assert!(openrouter.contains("OPENROUTER_API_KEY"), "{openrouter}");
    assert!(row(&document, "claude-cli")["offered"].is_null());
    assert!(!all.stdout.contains("a-key-of-ours"));
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.path.contains("models")),
        "a model was asked"
    );

    // Whoever is named has to answer.
    fixture
        .call(["models", "--online", "--provider", "claude-cli", "--json"])
        .run()
        .exits(2);
    let missing_output = Fixture::new()
        .call(["models", "--online", "--provider", "gateway", "--json"])
        .run()
        .exits(70);
    assert!(
        missing_output.message().contains("cannot connect"),
        "{}",
        missing_output.stderr
    );
}
