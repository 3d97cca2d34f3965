//! Hostile replacements of a client program.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crucible_llm::{LlmBackend, LlmError, ProviderSettings, construct};

use crate::support::{ask, client_settings, context};

const CLIENTS: [&str; 3] = ["claude-cli", "codex-cli", "gemini-cli"];

fn program(scratch_dir: &Path, script: &str, mode: u32) -> PathBuf {
    let path = scratch_dir.join("client");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

fn settings(binary: PathBuf) -> ProviderSettings {
    ProviderSettings {
        binary: Some(binary),
        ..client_settings()
    }
}

#[test]
fn unusable_program_is_detected_before_running() {
    let temp_dir = tempfile::tempdir().unwrap();
    let not_executable = program(temp_dir.path(), "exit 0", 0o644);
    let candidates = [
        temp_dir.path().to_owned(),
        not_executable,
        temp_dir.path().join("nothing"),
        PathBuf::from("no-such-client"),
    ];
    for client in CLIENTS {
        for binary in &candidates {
            let context = context(&[("PATH", "/usr/bin:/bin")]);
            let error = construct(client, &settings(binary.clone()), &context)
                .err()
                .unwrap();
            assert!(
                matches!(error, LlmError::Misconfiguration(_)),
                "{client}: {error}"
            );
            let text = error.to_string();
            assert!(
                text.contains("npm install") && text.contains("binary"),
                "{text}"
            );
        }
    }
}

#[tokio::test]
async fn program_asking_for_password_gets_none() {
    let temp_dir = tempfile::tempdir().unwrap();
    let script =
        "printf 'Password: '; head -c 5 >/dev/null; read answer </dev/tty && echo got it; exit 0";
    let binary = program(temp_dir.path(), script, 0o755);
    for client in CLIENTS {
        let mut context = context(&[("PATH", "/usr/bin:/bin")]);
        context.temporary = temp_dir.path().to_owned();
        let backend = construct(client, &settings(binary.clone()), &context).unwrap();
        let begun = Instant::now();
        match backend.invoke(ask("x")).await {
            // Its output is the answer, whatever it is.
            Ok(result) => assert_eq!(
                (client, result.raw_response.as_str()),
                ("gemini-cli", "Password: ")
            ),
            Err(error) => {
                assert!(
                    matches!(error, LlmError::ProviderOutage(_)),
                    "{client}: {error}"
                );
                assert!(!error.to_string().contains("got it"), "{error}");
            }
        }
        // The call allows twenty seconds; waiting for a terminal would use them up.
        assert!(begun.elapsed() < Duration::from_secs(15), "{client}");
    }
}

#[tokio::test]
async fn vanished_program_is_configuration_error() {
    let temp_dir = tempfile::tempdir().unwrap();
    let binary = program(temp_dir.path(), "exit 0", 0o755);
    for client in CLIENTS {
        let mut context = context(&[("PATH", "/usr/bin:/bin")]);
        context.temporary = temp_dir.path().to_owned();
        program(temp_dir.path(), "exit 0", 0o755);
        let backend = construct(client, &settings(binary.clone()), &context).unwrap();
        std::fs::remove_file(&binary).unwrap();
        let error = backend.invoke(ask("x")).await.unwrap_err();
        assert!(
            matches!(error, LlmError::Misconfiguration(_)),
            "{client}: {error}"
        );
    }
}
