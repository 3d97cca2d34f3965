//! Runs the README example: the same lines, word for word, with a server on loopback.
#![expect(clippy::print_stdout, reason = "the example prints the answer")]

use crucible_council::{Crucible, EngineConfig, Observability, TriageContext};
use crucible_testkit::{CouncilCall, FakeApi, Reply, council_call, triage};

use crate::support;

const PAGE: &str = include_str!("../../README.md");
const THIS: &str = include_str!("readme.rs");

/// The one line that differs: the configuration.
const CONFIGURED: &str = "    let mut config = EngineConfig::openrouter(\"sk-or-...\")?;\n";
const CONFIGURED_HERE: &str = "    let mut config = here(support::config(server))?;\n";

/// The function signature, which takes the server here.
const OPENED: &str = "async fn should_we_migrate() -> Result<(), Box<dyn std::error::Error>> {\n";
const OPENED_HERE: &str =
    "async fn should_we_migrate(server: &FakeApi) -> Result<(), Box<dyn std::error::Error>> {\n";

/// Fallible like the line in the README.
fn here(config: EngineConfig) -> Result<EngineConfig, std::convert::Infallible> {
    Ok(config)
}

async fn should_we_migrate(server: &FakeApi) -> Result<(), Box<dyn std::error::Error>> {
    // Made once.
    let mut config = here(support::config(server))?;
    config.observability = Observability::On;
    let engine = Crucible::new(config)?;

    // Used anywhere.
    let result = engine
        .run(
            "Should we migrate to microservices?",
            &TriageContext::none(),
        )
        .await?;
    println!("{}", result.final_response.as_str());

    // The trace, where it was asked for.
    for record in result.reasoning_trace.iter().flatten() {
        let critique: String = record
            .red_team_critique
            .as_str()
            .chars()
            .take(100)
            .collect();
        println!("Loop {}: {critique}...", record.loop_number);
    }
    Ok(())
}

#[tokio::test]
async fn readme_example_runs() {
    let server = FakeApi::answering(|request| {
        Reply::Answer(match council_call(request) {
            CouncilCall::Triage => triage("parallel", &["domain_expert", "pragmatist"]).to_string(),
            CouncilCall::Synthesis => "Only with a reason.".to_owned(),
            _ => "The team is too small for it. ".repeat(10),
        })
    });
    should_we_migrate(&server).await.unwrap();
    let requests: Vec<CouncilCall> = server.completions().iter().map(council_call).collect();
    assert_eq!(requests.first(), Some(&CouncilCall::Triage));
    assert_eq!(requests.last(), Some(&CouncilCall::Synthesis));
    let asked_with = server.completions()[0].conversation();
    assert!(asked_with.contains("Should we migrate to microservices?"));
}

#[test]
fn readme_contains_tested_lines() {
    let block = PAGE
        .split("```rust,no_run\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let (imports, function) = block.split_once("\n\n").unwrap();
    assert!(THIS.contains(&format!("\n{imports}\n")));
    let expected = function
        .replace(CONFIGURED, CONFIGURED_HERE)
        .replace(OPENED, OPENED_HERE);
    assert!(expected.contains(CONFIGURED_HERE) && expected.contains(OPENED_HERE));
    assert!(
        THIS.contains(&format!("\n\n{expected}\n#[tokio::test]")),
        "{expected}"
    );
}
