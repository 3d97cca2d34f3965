//! A shell script in place of a client program, to provoke each of its faults.

use std::os::unix::fs::PermissionsExt;

use crucible_llm::{
    Backend, LlmBackend, LlmError, LlmInvocation, LlmResult, Login, ProviderSettings, construct,
};
use tempfile::TempDir;

use crate::support::{client_settings, context};

/// A program in its own directory, where it can write notes.
pub(crate) struct Stand {
    provider: &'static str,
    program: &'static str,
    pub(crate) dir: TempDir,
}

impl Stand {
    /// Replaces this program of this provider by the script; `$NOTES` is the directory for its notes.
    pub(crate) fn new(provider: &'static str, program: &'static str, script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(program);
        let notes = dir.path().display();
        std::fs::write(&path, format!("#!/bin/sh\nNOTES='{notes}'\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            provider,
            program,
            dir,
        }
    }

    /// The settings for this program.
    pub(crate) fn settings(&self) -> ProviderSettings {
        ProviderSettings {
            binary: Some(self.program.into()),
            ..client_settings()
        }
    }

    pub(crate) fn backend(&self, login: Login) -> Backend {
        self.backend_with(ProviderSettings {
            login,
            ..self.settings()
        })
    }

    pub(crate) fn backend_with(&self, settings: ProviderSettings) -> Backend {
        self.try_backend_with(&settings).unwrap()
    }

    pub(crate) fn try_backend_with(
        &self,
        settings: &ProviderSettings,
    ) -> Result<Backend, LlmError> {
        let bin = self.dir.path().display().to_string();
        let mut context = context(&[
            ("PATH", &format!("{bin}:/usr/bin:/bin")),
            ("HOME", "/home/someone"),
            ("ANTHROPIC_API_KEY", "the-users-key"),
            ("GEMINI_API_KEY", "the-users-key"),
            ("OPENAI_API_KEY", "the-users-key"),
            ("ANTHROPIC_AUTH_TOKEN", "the-users-other-key"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "the-users-other-key"),
            ("GOOGLE_API_KEY", "the-users-other-key"),
            ("CODEX_API_KEY", "the-users-other-key"),
            ("CLAUDECODE", "1"),
            ("GEMINI_SANDBOX", "docker"),
            ("RUST_LOG", "trace"),
            ("XDG_CONFIG_HOME", "/home/someone/.config"),
            ("API_TIMEOUT_MS", "1"),
            ("ANTHROPIC_BASE_URL", "https://elsewhere.example"),
            ("GOOGLE_GEMINI_BASE_URL", "https://elsewhere.example"),
            ("TEAM_KEY", "the-teams-key"),
        ]);
        context.temporary = self.dir.path().to_owned();
        construct(self.provider, settings, &context)
    }

    /// The program's note with this name.
    pub(crate) fn note(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap()
    }

    /// One call without a user's login.
    pub(crate) async fn call(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        self.backend(Login::Isolated).invoke(inv).await
    }
}

/// The value of a variable in the output of `env`.
pub(crate) fn variable<'a>(environment: &'a str, name: &str) -> Option<&'a str> {
    environment
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

/// Fails if an error contains a key, the prompt or a server's text, for which the scripts use `quoted`.
pub(crate) fn assert_says_nothing(error: &LlmError, provider: &str) {
    let text = format!("{error} {error:?}");
    for word in ["the-users-key", "words of the prompt", "quoted"] {
        assert!(!text.contains(word), "{text}");
    }
    assert!(text.contains(provider), "{text}");
}
