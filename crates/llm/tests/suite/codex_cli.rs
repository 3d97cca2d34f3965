//! `codex-cli` as a process: its input, and the handling of its output.
//!
//! A shell script replaces the program here; the real one is tested in `real_clients/`.

use std::path::PathBuf;
use std::time::Duration;

use crucible_llm::{
    AnswerFault, Finish, LlmBackend, LlmError, LlmResult, Login, Message, ProviderSettings,
};
use crucible_model::{PromptBuilder, Untrusted};
use serde_json::{Value, json};

use crate::stand::{Stand, assert_says_nothing, variable};
use crate::support::ask;

fn stand(script: &str) -> Stand {
    Stand::new("codex-cli", "codex", script)
}

/// A script that prints these events, framed by the events of every turn.
fn printing(events: &[Value]) -> String {
    let begin = [
        json!({"type": "thread.started", "thread_id": "t"}),
        json!({"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "Model metadata not found."}}),
        json!({"type": "turn.started"}),
    ];
    let lines: Vec<String> = begin
        .iter()
        .chain(events)
        .map(|event| format!("'{event}'"))
        .collect();
    format!("cat > /dev/null; printf '%s\\n' {}", lines.join(" "))
}

fn message(text: &str) -> Value {
    json!({"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": text}})
}

fn completed() -> Value {
    let usage = json!({"input_tokens": 11, "cached_input_tokens": 2, "output_tokens": 7, "reasoning_output_tokens": 3});
    json!({"type": "turn.completed", "usage": usage})
}

fn failing(reason: &str) -> String {
    let error = json!({"type": "error", "message": reason});
    let failed = json!({"type": "turn.failed", "error": {"message": reason}});
    format!("{}; exit 1", printing(&[error, failed]))
}

fn settings_of(args: &str) -> Vec<&str> {
    args.lines()
        .collect::<Vec<_>>()
        .windows(2)
        .filter(|pair| pair[0] == "[-c]")
        .map(|pair| pair[1])
        .collect()
}

const NOTE_ALL: &str = "env > $NOTES/env; pwd > $NOTES/pwd; ls -A | wc -l > $NOTES/files\n\
    for a in \"$@\"; do printf '%s\\n' \"[$a]\"; case \"$a\" in model_instructions_file=*)\n\
      f=${a#*=}; f=${f#?}; cat \"${f%?}\" > $NOTES/system;; esac; done > $NOTES/args\n\
    cat > $NOTES/stdin";

#[tokio::test]
async fn program_gets_prompt_on_stdin_and_arguments() {
    let program = stand(&format!(
        "{NOTE_ALL}\n{}",
        printing(&[message("first"), message("hello"), completed()])
    ));
    let mut inv = ask("what it is about");
    inv.model = "gpt-large".to_owned();
    inv.metadata.insert("temperature".to_owned(), json!(0));
    let result = program.call(inv.clone()).await.unwrap();

    assert_eq!(
        (result.raw_response.as_str(), result.model_used.as_str()),
        ("hello", "gpt-large")
    );
    assert_eq!(
        (result.tokens_input, result.tokens_output),
        (Some(11), Some(7))
    );
    assert_eq!(
        result.extensions[LlmResult::IGNORED_METADATA],
        json!(["temperature"])
    );
    assert_eq!(program.note("stdin"), inv.messages[1].content.as_str());
    assert_eq!(program.note("system"), inv.messages[0].content.as_str());
    let args = program.note("args");
    let fixed = "[exec]\n[--json]\n[--skip-git-repo-check]\n[--sandbox]\n[read-only]\n[--ephemeral]\n[--ignore-rules]\n\
                 [--model=gpt-large]\n";
    assert!(
        args.starts_with(fixed) && args.ends_with("\n[-]\n"),
        "{args}"
    );
    let settings = settings_of(&args);
    for expected in [
        "[features.shell_tool=false]",
        "[features.unified_exec=false]",
        "[features.unbounded_connection_retries=false]",
        "[web_search=\"disabled\"]",
        "[model_provider=\"crucible\"]",
        "[model_providers.crucible.base_url=\"https://api.openai.com/v1\"]",
        "[model_providers.crucible.env_key=\"OPENAI_API_KEY\"]",
        "[model_providers.crucible.wire_api=\"responses\"]",
        "[model_providers.crucible.request_max_retries=0]",
        "[model_providers.crucible.stream_max_retries=0]",
    ] {
        assert!(settings.contains(&expected), "{expected} in {settings:?}");
    }
    let environment = program.note("env");
    assert_eq!(
        variable(&environment, "OPENAI_API_KEY"),
        Some("the-users-key")
    );
    assert_eq!(variable(&environment, "RUST_LOG"), None);
    assert!(!environment.contains("/home/someone"), "{environment}");
    let home = variable(&environment, "HOME").unwrap();
    assert_eq!(
        variable(&environment, "CODEX_HOME").unwrap(),
        format!("{home}/.codex")
    );
    assert_eq!(program.note("files").trim(), "0");
    for place in [
        program.note("pwd").trim(),
        home,
        variable(&environment, "TMPDIR").unwrap(),
    ] {
        assert!(!PathBuf::from(place).exists(), "{place}");
    }
}

#[tokio::test]
async fn users_login_keeps_home() {
    let program = stand(&format!(
        "{NOTE_ALL}\n{}",
        printing(&[message("ok"), completed()])
    ));
    let mut inv = ask("x");
    inv.messages.remove(0);
    program
        .backend(Login::User)
        .invoke(inv.clone())
        .await
        .unwrap();
    let environment = program.note("env");
    assert_eq!(variable(&environment, "HOME"), Some("/home/someone"));
    assert_eq!(variable(&environment, "CODEX_HOME"), None);
    let args = program.note("args");
    for expected in [
        "features.shell_tool=false",
        "requires_openai_auth=true",
        "request_max_retries=0",
    ] {
        assert!(args.contains(expected), "{args}");
    }
    assert!(
        !args.contains("base_url") && !args.contains("env_key"),
        "{args}"
    );
    assert_eq!(program.note("system"), "Answer with text only.");

    let base_url = Some("http://127.0.0.1:8080/v1".to_owned());
    let settings = ProviderSettings {
        base_url,
        login: Login::User,
        ..program.settings()
    };
    program.backend_with(settings).invoke(inv).await.unwrap();
    assert!(
        program
            .note("args")
            .contains("base_url=\"http://127.0.0.1:8080/v1\"]")
    );
}

#[tokio::test]
async fn address_and_key_use_programs_variables() {
    let program = stand(&format!(
        "{NOTE_ALL}\n{}",
        printing(&[message("ok"), completed()])
    ));
    let settings = ProviderSettings {
        base_url: Some("http://127.0.0.1:8080/v1".to_owned()),
        api_key_env: Some("TEAM_KEY".to_owned()),
        ..program.settings()
    };
    program
        .backend_with(settings)
        .invoke(ask("x"))
        .await
        .unwrap();
    assert_eq!(
        variable(&program.note("env"), "OPENAI_API_KEY"),
        Some("the-teams-key")
    );
    assert_eq!(variable(&program.note("env"), "CODEX_API_KEY"), None);
    let url = "[model_providers.crucible.base_url=\"http://127.0.0.1:8080/v1\"]";
    assert!(settings_of(&program.note("args")).contains(&url));
    assert!(!program.note("args").contains("the-teams-key"));
}

#[tokio::test]
async fn incomplete_turn_is_refused() {
    let cases = [
        ("exit 0".to_owned(), None),
        ("exit 143".to_owned(), None),
        ("echo Password:".to_owned(), None),
        (printing(&[message("hello")]), None),
        (
            format!("{}; exit 1", printing(&[message("hello"), completed()])),
            None,
        ),
        (printing(&[completed()]), Some(AnswerFault::Empty)),
        (
            printing(&[message(" "), completed()]),
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
        assert_says_nothing(&error, "codex-cli");
    }
}

#[tokio::test]
async fn cut_answer_is_marked() {
    let reason = "Incomplete response returned, reason: max_output_tokens";
    let failed = json!({"type": "turn.failed", "error": {"message": reason}});
    let result = stand(&format!(
        "{}; exit 1",
        printing(&[message("half a fi"), failed])
    ))
    .call(ask("x"))
    .await
    .unwrap();
    assert_eq!(
        (result.raw_response.as_str(), result.finish()),
        ("half a fi", Finish::Truncated)
    );
    let failed = json!({"type": "turn.failed", "error": {"message": reason}});
    let blank = format!("{}; exit 1", printing(&[message(" \n"), failed]));
    for nothing in [failing(reason), blank] {
        let error = stand(&nothing).call(ask("x")).await.unwrap_err();
        assert_eq!(error.answer_fault(), Some(AnswerFault::Empty), "{nothing}");
    }
}

#[tokio::test]
async fn failures_are_classified_by_message_prefix() {
    let quote = "quoted the-users-key words of the prompt";
    let status = |line: &str| {
        failing(&format!(
            "unexpected status {line}: {quote}, url: http://127.0.0.1:1/v1"
        ))
    };
    let cases = [
        (
            failing(&format!("{{\"error\":{{\"message\":\"{quote}\"}}}}")),
            "unsupported",
        ),
        (status("401 Unauthorized"), "provider_auth"),
        (status("403 Forbidden"), "provider_auth"),
        (status("404 Not Found"), "misconfiguration"),
        (
            failing("The model `quoted` does not exist or you do not have access to it."),
            "misconfiguration",
        ),
        (
            failing("exceeded retry limit, last status: 429 Too Many Requests"),
            "provider_quota",
        ),
        (
            failing("We’re currently experiencing high demand, which may cause temporary errors."),
            "provider_outage",
        ),
        (status("503 Service Unavailable"), "provider_outage"),
        (status("529 <unknown status code>"), "provider_outage"),
        (
            failing(&format!("stream disconnected before completion: {quote}")),
            "transport",
        ),
        (
            failing("Codex ran out of room in the model’s context window."),
            "unsupported",
        ),
        (
            failing("Quota exceeded. Check your plan and billing details."),
            "provider_quota",
        ),
        (
            failing("Missing environment variable: `OPENAI_API_KEY`."),
            "provider_auth",
        ),
        (
            failing(&format!("{quote} unexpected status 401 Unauthorized")),
            "provider_outage",
        ),
        (status("what"), "provider_outage"),
        (failing("unexpected status ’’"), "provider_outage"),
        (failing(""), "provider_outage"),
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
        assert_says_nothing(&error, "codex-cli");
    }
}

#[tokio::test]
async fn stderr_is_hidden_after_server_call() {
    let program = stand("echo \"in /home/someone/x with $OPENAI_API_KEY\" >&2; exit 3");
    let LlmError::ProviderOutage(fault) = program.call(ask("x")).await.unwrap_err() else {
        panic!("an outage")
    };
    assert_eq!(
        fault.stderr.as_deref(),
        Some("in ~/x with [secret:handed-over]")
    );
    let later = format!("echo quoted >&2; {}; exit 1", printing(&[]));
    let error = stand(&later)
        .call(ask("words of the prompt"))
        .await
        .unwrap_err();
    assert_says_nothing(&error, "codex-cli");
}

#[tokio::test]
async fn oversized_prompt_is_refused_unsent() {
    let script = format!(
        "wc -c > $NOTES/size; {}",
        printing(&[message("ok"), completed()])
    );
    let program = stand(&script);
    let mut long = ask(&"x".repeat(1_000_000));
    program.call(long.clone()).await.unwrap();
    assert!(program.note("size").trim().parse::<usize>().unwrap() > 1_000_000);

    std::fs::remove_file(program.dir.path().join("size")).unwrap();
    let more = PromptBuilder::new()
        .untrusted("f", &Untrusted::new("x".repeat(1 << 20)))
        .build();
    long.messages[1] = Message::user(more);
    assert!(matches!(
        program.call(long).await,
        Err(LlmError::Unsupported(_))
    ));
    assert!(!program.dir.path().join("size").exists());
}

#[tokio::test]
async fn hanging_shim_is_killed_with_child() {
    // Like the npm shim, which starts the program itself and is killed alone.
    let program = stand("(trap '' TERM; sleep 300 & echo $! > $NOTES/child; wait) & wait");
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
