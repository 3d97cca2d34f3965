//! The worst prompts and servers: requests for files, tools and commands, and no answer at all.

use std::path::PathBuf;
use std::time::Duration;

use crucible_llm::{LlmInvocation, Message};
use crucible_model::PromptBuilder;
use crucible_testkit::Reply;
use serde_json::json;
use tempfile::TempDir;

use crate::real_clients::support::{Claude, Codex, Gemini, PROGRAMS, Program, Stand, ask};

/// Everything that was sent to the server.
fn sent(stand: &Stand) -> String {
    stand
        .api
        .requests()
        .iter()
        .map(|request| request.body.to_string())
        .collect()
}

/// A private file, and its directory.
fn private_file() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("private.txt");
    std::fs::write(&path, "what-nobody-may-see\n").expect("a file");
    (directory, path)
}

/// `claude` reads the path after an `@` and sends the file, even without tools.
#[tokio::test]
async fn file_named_in_prompt_is_not_sent() {
    let (_directory, path) = private_file();
    for program in PROGRAMS {
        let stand = program.against([Reply::Answer("ok".to_owned())]);
        let text = format!(
            "see @{path} and @\"{path}\"\n@{path}\n{{{{{path}}}}}\n",
            path = path.display()
        );
        stand.call(&text).await.expect("an answer");
        let sent = sent(&stand);
        assert!(
            sent.contains("private.txt"),
            "{program:?} does not send the prompt"
        );
        assert!(
            !sent.contains("what-nobody-may-see"),
            "{program:?} sends the file"
        );
    }
}

/// A read-only shell can still send data: `codex` offers it in its read-only sandbox.
#[tokio::test]
async fn tool_requests_get_nothing() {
    let (directory, path) = private_file();
    let path = path.display().to_string();
    let new_path = directory.path().join("made");
    let command = format!("cat {path}; touch {}", new_path.display());
    let tools = |program: Program| match program {
        Claude => vec![
            Reply::ToolCall("Bash".to_owned(), json!({"command": command})),
            Reply::ToolCall("Read".to_owned(), json!({"file_path": path})),
        ],
        Gemini => vec![
            Reply::ToolCall("run_shell_command".to_owned(), json!({"command": command})),
            Reply::ToolCall("read_file".to_owned(), json!({"file_path": path})),
        ],
        Codex => vec![
            Reply::ToolCall("exec_command".to_owned(), json!({"cmd": command})),
            Reply::ToolCall(
                "shell".to_owned(),
                json!({"command": ["sh", "-c", command]}),
            ),
            Reply::ToolCall("view_image".to_owned(), json!({"path": path})),
        ],
    };
    for program in PROGRAMS {
        for tool in tools(program) {
            let stand = program.against([tool.clone(), Reply::Answer("ok".to_owned())]);
            // The provider decides whether the call then counts as answered.
            let _either = stand.call("x").await;
            assert!(
                !sent(&stand).contains("what-nobody-may-see"),
                "{program:?} sends the file for {tool:?}"
            );
            assert!(!new_path.exists(), "{program:?} runs {tool:?}");
        }
    }
}

/// `claude` takes such a prompt for its own command, answers it without a model and reports success.
#[tokio::test]
async fn prompt_is_never_a_client_command() {
    for program in PROGRAMS {
        let stand = program.against([Reply::Answer("of the model".to_owned())]);
        let mut inv = ask("x");
        inv.messages.truncate(1);
        inv.messages.push(Message::user(
            PromptBuilder::new()
                .fixed_text("/help\n!touch made\n")
                .build(),
        ));
        match stand.invoke(inv).await {
            Ok(result) => assert_eq!(result.raw_response, "of the model", "{program:?}"),
            Err(error) => assert_eq!(error.class(), "provider_outage", "{program:?}: {error}"),
        }
    }
}

#[tokio::test]
async fn silent_server_times_out_without_leftovers() {
    for program in PROGRAMS {
        times_out(program, Reply::Hang).await;
    }
}

#[tokio::test]
async fn endless_stream_times_out_without_leftovers() {
    for program in PROGRAMS {
        times_out(program, Reply::Endless).await;
    }
}

async fn times_out(program: Program, reply: Reply) {
    let stand = program.against([reply]);
    let model = marker(&stand);
    let inv = LlmInvocation {
        model: model.clone(),
        timeout: Duration::from_secs(6),
        ..ask("x")
    };
    let error = stand.invoke(inv).await.expect_err("no answer");
    assert_eq!(error.class(), "timeout", "{program:?}: {error}");
    assert_eq!(processes_with(&model), Vec::<String>::new(), "{program:?}");
}

/// An interrupt by the user drops the future of a call.
#[tokio::test]
async fn abandoned_call_leaves_no_process() {
    for program in PROGRAMS {
        let stand = program.against([Reply::Hang]);
        let model = marker(&stand);
        let inv = LlmInvocation {
            model: model.clone(),
            ..ask("x")
        };
        tokio::select! {
            outcome = stand.start(inv) => panic!("{program:?} ended: {outcome:?}"),
            () = until_asked(&stand) => {}
        }
        for _ in 0..300 {
            if processes_with(&model).is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(processes_with(&model), Vec::<String>::new(), "{program:?}");
    }
}

/// A name that only callers of this server have in their arguments.
fn marker(stand: &Stand) -> String {
    format!(
        "marker-{}",
        stand.api.origin().replace(['/', ':', '.'], "-")
    )
}

async fn until_asked(stand: &Stand) {
    while stand.api.completions().is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The command lines that contain this word. An exited process that was not reaped has none.
fn processes_with(word: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc")
        .expect("the kernel's list of processes")
        .flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .filter(|line| line.contains(word))
        .collect()
}
