//! `claude-cli` as a process: its input, and the handling of its output.
//!
//! A shell script replaces the program here; the real one is tested in `real_clients/`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crucible_llm::{LlmBackend, LlmError, LlmResult, Login, Message, ProviderSettings};
use crucible_model::{PromptBuilder, Untrusted};
use serde_json::json;

use crate::stand::{Stand, assert_says_nothing, variable};
use crate::support::{ask, client_settings};

fn stand(script: &str) -> Stand {
    Stand::new("claude-cli", "claude", script)
}

fn success(text: &str) -> String {
    json!({
        "type": "result", "subtype": "success", "is_error": false, "api_error_status": null, "result": text,
        "stop_reason": "end_turn", "usage": {"input_tokens": 0},
        "modelUsage": {"claude-x": {"inputTokens": 3, "outputTokens": 4}},
    })
    .to_string()
}

#[tokio::test]
async fn program_gets_prompt_on_stdin_and_key() {
    let script = format!(
        "cat > $NOTES/stdin; env > $NOTES/env; pwd > $NOTES/pwd; ls -A | wc -l > $NOTES/files\n\
         for a in \"$@\"; do printf '%s\\n' \"[$a]\"; done > $NOTES/args\n\
         printf '%s' '{}'",
        success("hello")
    );
    let program = stand(&script);
    let mut inv = ask("what it is about");
    inv.model = "opus".to_owned();
    inv.metadata.insert("temperature".to_owned(), json!(0));
    let result = program.call(inv.clone()).await.unwrap();

    assert_eq!(
        (result.raw_response.as_str(), result.model_used.as_str()),
        ("hello", "claude-x")
    );
    assert_eq!(
        (result.tokens_input, result.tokens_output),
        (Some(3), Some(4))
    );
    assert_eq!(
        result.extensions[LlmResult::IGNORED_METADATA],
        json!(["temperature"])
    );
    assert_eq!(program.note("stdin"), inv.messages[1].content.as_str());
    assert_eq!(
        program.note("args"),
        "[-p]\n[--output-format]\n[json]\n[--model]\n[opus]\n[--tools]\n[]\n[--system-prompt]\n[You are terse.\n]\n\
         [--settings]\n[{\"disableAllHooks\":true,\"permissions\":{\"deny\":[\"Read\"]}}]\n[--strict-mcp-config]\n[--disable-slash-commands]\n\
         [--no-session-persistence]\n"
    );
    let environment = program.note("env");
    assert_eq!(
        variable(&environment, "ANTHROPIC_API_KEY"),
        Some("the-users-key")
    );
    assert_eq!(variable(&environment, "CLAUDE_CODE_MAX_RETRIES"), Some("0"));
    assert_eq!(
        variable(&environment, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"),
        Some("1")
    );
    assert_eq!(variable(&environment, "DISABLE_TELEMETRY"), Some("1"));
    assert_eq!(variable(&environment, "API_TIMEOUT_MS"), Some("20000"));
    assert_eq!(
        variable(&environment, "CLAUDE_CODE_DISABLE_ATTACHMENTS"),
        Some("1")
    );
    assert_eq!(
        variable(&environment, "CLAUDE_CODE_DISABLE_FILE_MENTIONS"),
        Some("1")
    );
    assert_eq!(variable(&environment, "CLAUDECODE"), None);
    assert_eq!(variable(&environment, "XDG_CONFIG_HOME"), None);
    assert!(!environment.contains("/home/someone"), "{environment}");
    assert_eq!(program.note("files").trim(), "0");
    // Its private directories are deleted afterwards.
    assert!(!PathBuf::from(program.note("pwd").trim()).exists());
}

#[tokio::test]
async fn users_login_is_used_only_if_configured() {
    let program = stand(&format!(
        "env > $NOTES/env; printf '%s' '{}'",
        success("ok")
    ));
    program.backend(Login::User).invoke(ask("x")).await.unwrap();
    let environment = program.note("env");
    assert_eq!(variable(&environment, "HOME"), Some("/home/someone"));
    assert_eq!(variable(&environment, "CLAUDE_CONFIG_DIR"), None);
}

/// The program's view of its key and its server, and its whole environment.
async fn key_and_server(settings: ProviderSettings) -> ([Option<String>; 2], String) {
    let program = stand(&format!(
        "env > $NOTES/env; printf '%s' '{}'",
        success("ok")
    ));
    program
        .backend_with(settings)
        .invoke(ask("x"))
        .await
        .unwrap();
    let environment = program.note("env");
    let seen = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]
        .map(|name| variable(&environment, name).map(str::to_owned));
    (seen, environment)
}

#[tokio::test]
async fn calls_go_to_the_configured_address() {
    let base_url = Some("http://127.0.0.1:8080".to_owned());
    let ([_, server], _) = key_and_server(ProviderSettings {
        base_url,
        ..client_settings()
    })
    .await;
    assert_eq!(server.as_deref(), Some("http://127.0.0.1:8080"));
    let ([_, server], _) = key_and_server(client_settings()).await;
    assert_eq!(server.as_deref(), Some("https://elsewhere.example"));
}

#[tokio::test]
async fn configured_key_uses_programs_variable() {
    let api_key_env = Some("TEAM_KEY".to_owned());
    let settings = ProviderSettings {
        api_key_env,
        ..client_settings()
    };
    let ([key, _], environment) = key_and_server(settings.clone()).await;
    assert_eq!(key.as_deref(), Some("the-teams-key"));
    // No other key is sent to that server.
    for other in ["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"] {
        assert_eq!(variable(&environment, other), None);
    }
    // With the user's own login, or without a named key, the user's keys are the login.
    for plain in [
        ProviderSettings {
            login: Login::User,
            ..settings
        },
        client_settings(),
    ] {
        let ([key, _], environment) = key_and_server(plain).await;
        assert_eq!(key.as_deref(), Some("the-users-key"));
        assert_eq!(
            variable(&environment, "ANTHROPIC_AUTH_TOKEN"),
            Some("the-users-other-key")
        );
    }
}

#[tokio::test]
async fn limit_that_is_not_a_number_is_refused() {
    let program = stand("touch $NOTES/started");
    let mut inv = ask("x");
    inv.metadata.insert("max_tokens".to_owned(), json!("1000"));
    assert_eq!(program.call(inv).await.unwrap_err().class(), "unsupported");
    assert!(!program.dir.path().join("started").exists());
}

#[tokio::test]
async fn blank_system_prompt_is_omitted() {
    let program = stand(&format!(
        "for a in \"$@\"; do printf '%s\\n' \"[$a]\"; done > $NOTES/args; printf '%s' '{}'",
        success("ok")
    ));
    let mut inv = ask("x");
    inv.messages[0] = Message::system(PromptBuilder::new().fixed_text(" \n").build());
    program.call(inv).await.unwrap();
    assert!(
        program
            .note("args")
            .contains("[--system-prompt]\n[Answer with text only.]\n")
    );
}

#[tokio::test]
async fn last_valid_json_it_prints_is_the_answer() {
    let program = stand(&format!(
        "echo 'starting'; printf '%s\\n' '{}' '{{\"type\": \"result\", \"result\": cut' '{}' 'done {{'",
        success("first"),
        success("last"),
    ));
    assert_eq!(program.call(ask("x")).await.unwrap().raw_response, "last");
}

#[tokio::test]
async fn several_turns_are_distinguished() {
    let program = stand(&format!(
        "cat > $NOTES/stdin; printf '%s' '{}'",
        success("ok")
    ));
    let mut inv = ask("x");
    inv.messages = vec![
        Message::user(PromptBuilder::new().fixed_text("First.").build()),
        Message {
            role: crucible_llm::Role::Assistant,
            content: PromptBuilder::new().fixed_text("Said.").build(),
        },
        Message::user(PromptBuilder::new().fixed_text("Second.").build()),
    ];
    program.call(inv).await.unwrap();
    assert_eq!(
        program.note("stdin"),
        "[user]\nFirst.\n\n[assistant]\nSaid.\n\n[user]\nSecond."
    );
}

#[tokio::test]
async fn oversized_prompt_is_refused_unsent() {
    let program = stand(&format!(
        "wc -c > $NOTES/size; printf '%s' '{}'",
        success("ok")
    ));
    let mut long = ask(&"x".repeat(2_900_000));
    program.call(long.clone()).await.unwrap();
    assert!(program.note("size").trim().parse::<usize>().unwrap() > 2_900_000);

    std::fs::remove_file(program.dir.path().join("size")).unwrap();
    let more = PromptBuilder::new()
        .untrusted("f", &Untrusted::new("x".repeat(3_100_000)))
        .build();
    long.messages[1] = Message::user(more.clone());
    assert!(matches!(
        program.call(long.clone()).await,
        Err(LlmError::Unsupported(_))
    ));
    long.messages = vec![Message::system(more)];
    assert!(matches!(
        program.call(long).await,
        Err(LlmError::Unsupported(_))
    ));
    assert!(!program.dir.path().join("size").exists());
}

#[tokio::test]
async fn its_traps_are_errors_of_the_right_kind() {
    let api_error = |status: u16| {
        let text = json!({
            "type": "result", "subtype": "success", "is_error": true, "api_error_status": status,
            "result": "API Error: the-users-key",
        });
        format!("printf '%s' '{text}'; exit 1")
    };
    let cases = [
        (api_error(401), "provider_auth"),
        (api_error(429), "provider_quota"),
        (api_error(500), "provider_outage"),
        (api_error(400), "unsupported"),
        ("exit 0".to_owned(), "provider_outage"),
        ("exit 143".to_owned(), "provider_outage"),
        // It may have made a call already, and quote the answer in its complaint.
        ("echo quoted >&2; exit 0".to_owned(), "provider_outage"),
        ("echo quoted >&2; exit 143".to_owned(), "provider_outage"),
        (
            "echo quoted >&2; kill -TERM $$".to_owned(),
            "provider_outage",
        ),
        ("echo 'Password:'; exit 1".to_owned(), "provider_outage"),
    ];
    for (script, expected) in cases {
        let program = stand(&script);
        let error = program.call(ask("words of the prompt")).await.unwrap_err();
        assert_eq!(error.class(), expected, "{script}");
        assert_says_nothing(&error, "claude-cli");
    }
}

#[tokio::test]
async fn stderr_is_short_and_redacted() {
    let token = crucible_testkit::made_up_token();
    let program = stand(&format!(
        "i=0; while [ $i -lt 5000 ]; do echo \"noise $i\" >&2; i=$((i+1)); done\n\
         echo 'in /home/someone/x with {token}' >&2; exit 3"
    ));
    let LlmError::ProviderOutage(fault) = program.call(ask("x")).await.unwrap_err() else {
        panic!("an outage")
    };
    let words = fault.stderr.unwrap();
    assert!(
        words.len() <= 2048 && words.contains("in ~/x with [secret:"),
        "{words}"
    );
    assert!(!words.contains(&token));
}

#[tokio::test]
async fn hanging_program_is_killed_with_children() {
    let program = stand("trap '' TERM; sleep 300 & echo $! > $NOTES/child; sleep 300");
    let mut inv = ask("x");
    inv.timeout = Duration::from_millis(700);
    let begun = Instant::now();
    let error = program.call(inv).await.unwrap_err();
    assert!(matches!(error, LlmError::Timeout { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    let child = program.note("child");
    assert!(
        !PathBuf::from(format!("/proc/{}", child.trim())).exists(),
        "the child is still there"
    );
}
