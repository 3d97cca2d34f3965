//! With the user's own login the programs see the user's home. Its settings enable no tools, and a call's
//! text is not stored there.

use std::path::Path;

use crucible_llm::Login;
use crucible_testkit::Reply;
use serde_json::json;

use super::requests::assert_no_tools;
use crate::real_clients::support::{Claude, Codex, Gemini, KEY, PROGRAMS, PROMPT, Program, Stand};

fn users(program: Program, reply: Reply) -> Stand {
    let mut stand = program.against([reply]);
    stand.login = Login::User;
    stand
}

/// Settings with tools, a tool server, hooks and a history, as far as the program supports them.
fn generous_settings(program: Program, home: &Path, new_path: &Path) {
    let file = |name: &str, text: String| {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    };
    let mark = |by: &str| new_path.join(by).display().to_string();
    let hook = |by: &str| json!([{"hooks": [{"type": "command", "command": format!("touch {}", mark(by))}]}]);
    match program {
        Claude => {
            let servers = json!({"x": {"command": "touch", "args": [mark("server")]}});
            file(".claude.json", json!({"mcpServers": servers}).to_string());
            let settings = json!({
                "permissions": {"allow": ["Bash", "Read"]},
                "hooks": {
                    "SessionStart": hook("start-hook"),
                    "UserPromptSubmit": hook("prompt-hook"),
                    "Stop": hook("stop-hook"),
                },
            });
            file(".claude/settings.json", settings.to_string());
        }
        Gemini => {
            let settings = json!({
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "tools": {"core": ["write_file", "run_shell_command"]},
                "mcpServers": {"x": {"command": "touch", "args": [mark("server")]}},
                "hooks": {"SessionStart": hook("start-hook"), "BeforeModel": hook("model-hook")},
            });
            file(".gemini/settings.json", settings.to_string());
        }
        Codex => file(
            ".codex/config.toml",
            "web_search = \"live\"\n[features]\nshell_tool = true\n[history]\npersistence = \"save-all\"\n"
                .to_owned(),
        ),
    }
}

#[tokio::test]
async fn users_settings_enable_no_tools() {
    for program in PROGRAMS {
        let temp_dir = tempfile::tempdir().expect("a temporary directory");
        let stand = users(program, Reply::Answer("ok".to_owned()));
        generous_settings(program, stand.home.path(), temp_dir.path());
        let result = stand.call("x").await.expect("an answer");
        assert_eq!(result.raw_response, "ok", "{program:?}");
        let request = stand.only_request();
        assert_eq!(request.key(), Some(KEY), "{program:?}");
        assert_no_tools(program, &request);
        let ran: Vec<_> = temp_dir
            .path()
            .read_dir()
            .expect("the directory")
            .flatten()
            .collect();
        assert!(ran.is_empty(), "{program:?} ran {ran:?}");
    }
}

/// `gemini` always keeps its session files.
#[tokio::test]
async fn prompt_is_not_left_in_users_home() {
    for program in [Claude, Codex] {
        for reply in [Reply::Answer("ok".to_owned()), Reply::Status(503)] {
            let stand = users(program, reply.clone());
            std::fs::create_dir(stand.home.path().join(".codex")).expect("a directory");
            let _either = stand.call("x").await;
            // With the user's login, no program retries on its own either.
            assert_eq!(stand.api.completions().len(), 1, "{program:?} {reply:?}");
            let stored_paths = files_with(PROMPT, stand.home.path());
            assert!(
                stored_paths.is_empty(),
                "{program:?} {reply:?}: {stored_paths:?}"
            );
        }
    }
}

/// The files below a directory that contain this word.
fn files_with(word: &str, dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in dir.read_dir().expect("a directory").flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("a type"));
        if kind.is_dir() {
            found.append(&mut files_with(word, &path));
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).expect("a file");
            if bytes
                .windows(word.len())
                .any(|window| window == word.as_bytes())
            {
                found.push(path);
            }
        }
    }
    found
}
