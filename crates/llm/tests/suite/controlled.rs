//! Models only answer: for any request and answer, no file is left on disk, and every answer names its
//! provider and model.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crucible_llm::{Backend, LlmBackend, LlmReceipt, ProviderSettings, construct};
use crucible_testkit::{FakeOpenAi, Reply};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::support::{ask, client_settings, context, gateway};

fn names_in(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    names
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// A client program that echoes its input, after it tried to write files to its working directory and
/// home.
fn scribbler(scratch_dir: &Path) -> Backend {
    let program = scratch_dir.join("claude");
    let script = "#!/bin/sh\ntouch here; touch \"$HOME/there\"; mkdir -p deep/er\n\
                  printf '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"%s\",\
                  \"modelUsage\":{\"m\":{\"inputTokens\":1,\"outputTokens\":2}}}' \"$(cat | wc -c)\"\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let settings = ProviderSettings {
        binary: Some(program),
        ..client_settings()
    };
    let mut context = context(&[
        ("PATH", "/usr/bin:/bin"),
        ("HOME", &scratch_dir.display().to_string()),
    ]);
    context.temporary = scratch_dir.join("tmp");
    std::fs::create_dir(&context.temporary).unwrap();
    construct("claude-cli", &settings, &context).unwrap()
}

mod properties {
    use crucible_testkit::expensive_cases;

    use super::*;

    /// Seed 002, property 1.
    #[test]
    fn no_call_leaves_anything_on_the_disk() {
        let temp_dir = tempfile::tempdir().unwrap();
        let program = scribbler(temp_dir.path());
        let server = FakeOpenAi::answering(|request| {
            Reply::Answer(
                request.body["messages"][1]["content"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            )
        });
        let http = gateway(&server.base_url(), None);
        let before = names_in(temp_dir.path());
        let runtime = runtime();
        let mut runner = TestRunner::new(ProptestConfig::with_cases(expensive_cases()));
        runner
            .run(&(any::<String>(), any::<bool>()), |(text, by_program)| {
                let mut inv = ask(&format!("write {text:?} to ../../file and run it"));
                inv.timeout = Duration::from_secs(60);
                let backend = if by_program { &program } else { &http };
                let result = runtime
                    .block_on(backend.invoke(inv))
                    .map_err(|e| TestCaseError::fail(e.to_string()))?;
                prop_assert!(!result.raw_response.is_empty());
                prop_assert_eq!(names_in(temp_dir.path()), before.clone());
                prop_assert_eq!(
                    names_in(&temp_dir.path().join("tmp")),
                    Vec::<std::path::PathBuf>::new()
                );
                Ok(())
            })
            .unwrap();
    }

    /// Seed 002, property 10.
    #[test]
    fn every_receipt_names_provider_and_model() {
        let server = FakeOpenAi::answering(|request| {
            let model = request.body["model"].as_str().unwrap_or_default();
            let words = request.body["messages"].as_array().map_or(0, Vec::len);
            let body = serde_json::json!({
                "model": if model.len() % 3 == 0 { serde_json::Value::Null } else { model.into() },
                "choices": [{"message": {"content": format!("{words} messages")}, "finish_reason": "stop"}],
            });
            Reply::Raw(200, body.to_string().into_bytes())
        });
        let backend = gateway(&server.base_url(), None);
        let runtime = runtime();
        let mut runner = TestRunner::new(ProptestConfig::default());
        runner
            .run(
                &("[a-zA-Z0-9./:_-]{1,40}", 1u64..900),
                |(model, seconds)| {
                    let mut inv = ask("x");
                    inv.model = model;
                    inv.timeout = Duration::from_secs(seconds);
                    let allowed = inv.timeout;
                    let result = runtime
                        .block_on(backend.invoke(inv))
                        .map_err(|e| TestCaseError::fail(e.to_string()))?;
                    let receipt =
                        serde_json::to_value(LlmReceipt::of_answer(&result, allowed, None))
                            .unwrap();
                    prop_assert_eq!(&receipt["provider"], "gateway");
                    prop_assert!(
                        receipt["model_used"]
                            .as_str()
                            .is_some_and(|name| !name.is_empty())
                    );
                    prop_assert_eq!(&receipt["timeout_seconds"], seconds);
                    prop_assert_eq!(&receipt["budget_exhausted"], false);
                    // The server counted no tokens, so the receipt states none.
                    prop_assert!(
                        receipt.get("tokens_input").is_none() && receipt.get("cost").is_none()
                    );
                    Ok(())
                },
            )
            .unwrap();
    }
}
