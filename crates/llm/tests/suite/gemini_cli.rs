//! `gemini-cli` as a process: its input, and the handling of its output.
//!
//! A shell script replaces the program here; the real one is tested in `real_clients/`.

use std::path::PathBuf;
use std::time::Duration;

use crucible_llm::{
    AnswerFault, Finish, LlmBackend, LlmError, LlmResult, Login, Message, ModelProfile,
    ProviderSettings,
};
use crucible_model::{PromptBuilder, Untrusted};
use serde_json::{Value, json};

use crate::stand::{Stand, assert_says_nothing, variable};
use crate::support::ask;

fn stand(script: &str) -> Stand {
    Stand::new("gemini-cli", "gemini", script)
}

/// The program's output for one request to one model.
fn output(text: &str) -> Value {
    json!({
        "session_id": "s", "response": text,
        "stats": {"models": {"gemini-x": {
            "api": {"totalRequests": 1, "totalErrors": 0, "errorsByType": {}},
            "tokens": {"input": 11, "prompt": 11, "candidates": 7, "total": 21, "cached": 2, "thoughts": 3, "tool": 0},
        }}},
    })
}

fn printing(output: &Value) -> String {
    format!("printf '%s' '{output}'")
}

/// A script that fails like the program: no output, and a long complaint that ends in JSON.
fn failing(exit: i32, code: &Value, message: &str) -> String {
    let end = serde_json::to_string_pretty(&json!({
        "session_id": "s", "error": {"type": "Error", "message": message, "code": code},
    }));
    format!(
        "cat > /dev/null; printf '%s\\n' 'Warning: quoted' '{}' >&2; exit {exit}",
        end.unwrap()
    )
}

#[tokio::test]
async fn program_gets_prompt_on_stdin_and_files() {
    let program = stand(&format!(
        "cat > $NOTES/stdin; env > $NOTES/env; pwd > $NOTES/pwd; ls -A > $NOTES/files\n\
         cat $GEMINI_SYSTEM_MD > $NOTES/system; cat .gemini/settings.json > $NOTES/settings\n\
         for a in \"$@\"; do printf '%s\\n' \"[$a]\"; done > $NOTES/args\n{}",
        printing(&output("hello"))
    ));
    let mut inv = ask("what it is about");
    inv.model = "gemini-pro".to_owned();
    inv.metadata.insert("temperature".to_owned(), json!(0.5));
    inv.metadata.insert("max_tokens".to_owned(), json!(500));
    inv.metadata.insert("seed".to_owned(), json!(7));
    let result = program.call(inv.clone()).await.unwrap();

    assert_eq!(
        (result.raw_response.as_str(), result.model_used.as_str()),
        ("hello", "gemini-x")
    );
    assert_eq!(
        (result.tokens_input, result.tokens_output),
        (Some(11), Some(10))
    );
    assert_eq!(
        result.extensions[LlmResult::IGNORED_METADATA],
        json!(["seed"])
    );
    assert_eq!(result.finish(), Finish::Unknown);
    assert_eq!(program.note("stdin"), inv.messages[1].content.as_str());
    assert_eq!(program.note("system"), inv.messages[0].content.as_str());
    assert_eq!(
        program.note("args"),
        "[--model=gemini-pro]\n[-o]\n[json]\n[--extensions]\n[none]\n"
    );
    let settings: Value = serde_json::from_str(&program.note("settings")).unwrap();
    assert_eq!(
        settings["security"]["auth"]["selectedType"],
        "gemini-api-key"
    );
    assert_eq!(settings["tools"]["core"], json!([]));
    assert_eq!(settings["general"]["maxAttempts"], 1);
    let generation = json!({"maxOutputTokens": 500, "temperature": 0.5});
    let overrides = settings["modelConfigs"]["customOverrides"]
        .as_array()
        .unwrap();
    for (limits, model) in overrides.iter().zip(["chat-base", "gemini-pro"]) {
        assert_eq!(limits["match"]["model"], model);
        assert_eq!(limits["modelConfig"]["generateContentConfig"], generation);
    }
    let environment = program.note("env");
    assert_eq!(
        variable(&environment, "GEMINI_API_KEY"),
        Some("the-users-key")
    );
    assert_eq!(
        variable(&environment, "GEMINI_CLI_TRUST_WORKSPACE"),
        Some("true")
    );
    assert_eq!(
        variable(&environment, "GEMINI_CLI_NO_RELAUNCH"),
        Some("true")
    );
    assert_eq!(variable(&environment, "GEMINI_SANDBOX"), None);
    assert!(!environment.contains("/home/someone"), "{environment}");
    assert_eq!(program.note("files"), ".gemini\n");
    // Its private directories are deleted afterwards, including the one for temporary files.
    for place in [
        program.note("pwd").trim(),
        variable(&environment, "TMPDIR").unwrap(),
    ] {
        assert!(
            place.starts_with(program.dir.path().to_str().unwrap()),
            "{place}"
        );
        assert!(!PathBuf::from(place).exists(), "{place}");
    }
}

#[tokio::test]
async fn users_login_still_disables_tools() {
    let program = stand(&format!(
        "env > $NOTES/env; cat .gemini/settings.json > $NOTES/settings; cat $GEMINI_SYSTEM_MD > $NOTES/system\n{}",
        printing(&output("ok"))
    ));
    let mut inv = ask("x");
    inv.messages.remove(0);
    program.backend(Login::User).invoke(inv).await.unwrap();
    assert_eq!(
        variable(&program.note("env"), "HOME"),
        Some("/home/someone")
    );
    let settings: Value = serde_json::from_str(&program.note("settings")).unwrap();
    assert_eq!(
        (&settings["tools"]["core"], settings.get("security")),
        (&json!([]), None)
    );
    assert_eq!(program.note("system"), "Answer with text only.");
}

#[tokio::test]
async fn address_and_key_use_programs_variables() {
    let seen = async |change: fn(ProviderSettings) -> ProviderSettings| {
        let program = stand(&format!("env > $NOTES/env; {}", printing(&output("ok"))));
        program
            .backend_with(change(program.settings()))
            .invoke(ask("x"))
            .await
            .unwrap();
        let environment = program.note("env");
        let seen = ["GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"]
            .map(|name| variable(&environment, name).unwrap_or_default().to_owned());
        (seen, environment)
    };
    assert_eq!(
        seen(|plain| plain).await.0,
        ["the-users-key", "https://elsewhere.example"]
    );
    let ([key, server], environment) = seen(|plain| ProviderSettings {
        base_url: Some("http://127.0.0.1:8080".to_owned()),
        api_key_env: Some("TEAM_KEY".to_owned()),
        ..plain
    })
    .await;
    assert_eq!(
        [key.as_str(), server.as_str()],
        ["the-teams-key", "http://127.0.0.1:8080"]
    );
    assert_eq!(variable(&environment, "GOOGLE_API_KEY"), None);
}

#[tokio::test]
async fn exit_zero_needs_consistent_output() {
    let with = |change: fn(&mut Value)| {
        let mut output = output("hello");
        change(&mut output);
        printing(&output)
    };
    let cases = [
        ("echo quoted >&2; exit 0".to_owned(), None),
        ("echo '{\"response\": \"quoted'".to_owned(), None),
        ("echo '{\"error\": \"quoted\"}'".to_owned(), None),
        ("printf 'quoted \\377'".to_owned(), None),
        (with(|out| out["stats"] = json!({})), None),
        (
            with(|out| out["error"] = json!({"type": "INVALID_STREAM", "message": "quoted"})),
            None,
        ),
        (
            with(|out| out["stats"]["models"]["gemini-x"]["api"]["totalErrors"] = json!(1)),
            None,
        ),
        (
            with(|out| out["stats"]["models"]["gemini-x"]["api"]["totalRequests"] = json!(2)),
            None,
        ),
        (
            with(|out| out["stats"]["models"]["b"] = out["stats"]["models"]["gemini-x"].clone()),
            None,
        ),
        (with(|out| out["stats"]["models"] = json!({})), None),
        (
            with(|out| out["response"] = json!("  ")),
            Some(AnswerFault::Empty),
        ),
        (
            with(|out| out["response"] = Value::Null),
            Some(AnswerFault::Empty),
        ),
        (
            with(|out| {
                out["response"] = json!("");
                out["error"] = json!({"type": "INVALID_STREAM"});
            }),
            Some(AnswerFault::Empty),
        ),
    ];
    for (script, fault) in cases {
        let error = stand(&script)
            .call(ask("words of the prompt"))
            .await
            .unwrap_err();
        assert_eq!(
            (error.class(), error.answer_fault()),
            ("provider_outage", fault),
            "{script}: {error}"
        );
        assert!(!error.is_transient(), "{script}");
        assert_says_nothing(&error, "gemini-cli");
    }
}

#[tokio::test]
async fn plain_text_with_exit_0_is_answer() {
    let result = stand("cat > /dev/null; echo 'Warning' >&2; printf 'hello\\nworld'")
        .call(ask("words"))
        .await
        .unwrap();
    assert_eq!(result.raw_response, "hello\nworld");
    assert_eq!((result.tokens_input, result.tokens_output), (None, None));
}

#[tokio::test]
async fn model_name_is_cut_to_one_line() {
    let mut output = output("hello");
    let models = output["stats"]["models"].as_object_mut().unwrap();
    let model = models.remove("gemini-x").unwrap();
    models.insert(format!("m\u{1b}[31m{}", "x".repeat(5000)), model);
    let result = stand(&printing(&output)).call(ask("x")).await.unwrap();
    assert!(result.model_used.starts_with("m[31mx") && result.model_used.len() <= 200);
}

#[tokio::test]
async fn limit_that_is_not_a_number_is_refused() {
    let program = stand("touch $NOTES/started");
    let mut inv = ask("x");
    inv.metadata.insert("max_tokens".to_owned(), json!(-1));
    assert_eq!(program.call(inv).await.unwrap_err().class(), "unsupported");
    assert!(!program.dir.path().join("started").exists());
}

#[tokio::test]
async fn answer_filling_limit_is_cut_off() {
    let program = stand(&printing(&output("half a fi")));
    let mut inv = ask("x");
    inv.metadata.insert("max_tokens".to_owned(), json!(10));
    let result = program.call(inv).await.unwrap();
    assert_eq!(result.finish(), Finish::Truncated);
    assert!(result.complete_answer().is_err());
}

#[tokio::test]
async fn failures_are_classified_by_status_then_exit() {
    let quote = "{\"error\":{\"message\":\"quoted the-users-key words of the prompt\"}}";
    let stated = |exit: i32, code: i32| failing(exit, &json!(code), quote);
    let bare = |exit: i32| format!("cat > /dev/null; exit {exit}");
    let unknown_model = format!(
        "echo 'ModelNotFoundError: quoted' >&2; echo '  code: 404' >&2; {}",
        failing(1, &json!(1), "quoted")
    );
    let cases = [
        (stated(144, 400), "unsupported"),
        (stated(145, 401), "provider_auth"),
        (stated(147, 403), "provider_auth"),
        (unknown_model, "misconfiguration"),
        (stated(173, 429), "provider_quota"),
        (stated(244, 500), "provider_outage"),
        (stated(247, 503), "provider_outage"),
        (stated(17, 529), "provider_outage"),
        // The JSON takes precedence over the exit code, which is used if there is none.
        (stated(41, 429), "provider_quota"),
        (bare(144), "unsupported"),
        (bare(145), "provider_auth"),
        (bare(148), "misconfiguration"),
        (bare(173), "provider_quota"),
        (bare(244), "provider_outage"),
        (bare(17), "provider_outage"),
        (bare(41), "provider_auth"),
        (bare(42), "unsupported"),
        (bare(52), "misconfiguration"),
        (bare(53), "provider_outage"),
        (bare(55), "misconfiguration"),
        (stated(41, 41), "provider_auth"),
        (
            failing(
                1,
                &json!(1),
                "exception TypeError: fetch failed sending request",
            ),
            "transport",
        ),
        (failing(1, &json!(1), "terminated"), "transport"),
        (
            failing(1, &json!(1), "Incomplete JSON segment at the end: quoted"),
            "provider_outage",
        ),
        (bare(1), "provider_outage"),
        ("echo quoted >&2; exit 143".to_owned(), "provider_outage"),
        (
            "echo quoted >&2; kill -TERM $$".to_owned(),
            "provider_outage",
        ),
    ];
    for (script, class) in cases {
        let error = stand(&script)
            .call(ask("words of the prompt"))
            .await
            .unwrap_err();
        assert_eq!(error.class(), class, "{script}: {error}");
        assert_says_nothing(&error, "gemini-cli");
    }
    let LlmError::ProviderOutage(fault) = stand(&bare(17)).call(ask("x")).await.unwrap_err() else {
        panic!("an outage")
    };
    assert_eq!(fault.status, Some(529));
    let hint = stand(&bare(55))
        .call(ask("x"))
        .await
        .unwrap_err()
        .to_string();
    assert!(hint.contains("does not trust"), "{hint}");
}

#[tokio::test]
async fn stderr_before_request_is_short_and_redacted() {
    let program = stand(
        "i=0; while [ $i -lt 5000 ]; do echo \"noise $i\" >&2; i=$((i+1)); done\n\
         echo \"in /home/someone/x with $GEMINI_API_KEY\" >&2; exit 3",
    );
    let LlmError::ProviderOutage(fault) = program.call(ask("x")).await.unwrap_err() else {
        panic!("an outage")
    };
    let words = fault.stderr.unwrap();
    assert!(
        words.len() <= 2048 && words.ends_with("in ~/x with [secret:handed-over]"),
        "{words}"
    );
}

#[tokio::test]
async fn oversized_prompt_is_refused_unsent() {
    let program = stand(&format!("wc -c > $NOTES/size; {}", printing(&output("ok"))));
    let mut long = ask(&"x".repeat(2_900_000));
    program.call(long.clone()).await.unwrap();
    assert!(program.note("size").trim().parse::<usize>().unwrap() > 2_900_000);

    std::fs::remove_file(program.dir.path().join("size")).unwrap();
    let more = PromptBuilder::new()
        .untrusted("f", &Untrusted::new("x".repeat(3_100_000)))
        .build();
    long.messages[1] = Message::user(more);
    assert!(matches!(
        program.call(long).await,
        Err(LlmError::Unsupported(_))
    ));
    assert!(!program.dir.path().join("size").exists());
}

#[tokio::test]
async fn each_phase_asks_the_model_of_its_profile() {
    let program = stand("exit 1");
    let profile = |model: &str| ModelProfile {
        model: Some(model.to_owned()),
    };
    let settings = ProviderSettings {
        profiles: [("deep".to_owned(), profile("gemini-pro"))].into(),
        phase_profiles: [("design".to_owned(), "deep".to_owned())].into(),
        ..program.settings()
    };
    let backend = program.backend_with(settings.clone());
    assert_eq!(backend.phase_models()["design"], "gemini-pro");
    assert_eq!(
        (backend.default_model(), backend.phase_models().len()),
        ("sonnet", 1)
    );

    let wrong = ProviderSettings {
        phase_profiles: [("design".to_owned(), "deepest".to_owned())].into(),
        ..settings
    };
    let error = program.try_backend_with(&wrong).err().unwrap();
    assert!(matches!(error, LlmError::Misconfiguration(_)));
    let text = error.to_string();
    assert!(
        text.contains("\"deepest\"") && text.contains("choose one of deep,"),
        "{text}"
    );
}

#[tokio::test]
async fn hanging_program_is_killed_with_children() {
    let program = stand("trap '' TERM; sleep 300 & echo $! > $NOTES/child; sleep 300");
    let mut inv = ask("x");
    inv.timeout = Duration::from_millis(700);
    let error = program.call(inv).await.unwrap_err();
    assert!(matches!(error, LlmError::Timeout { .. }), "{error}");
    let child = program.note("child");
    assert!(
        !PathBuf::from(format!("/proc/{}", child.trim())).exists(),
        "the child is still there"
    );
}
