//! Builds every call of `gh`.
//!
//! From the user's environment, `gh` gets what it needs to find its login and GitHub. It gets nothing that
//! could make it print more, ask questions, open an editor or a browser, or detect a repository.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_model::ByteLimit;
use crucible_sandbox::{
    Completed, Confinement, Keep, Limits, Redaction, SandboxError, Spawn, Stdout,
};

use super::error::GhError;
use super::request::GhRequest;
use super::{Gh, MAX_ANSWER};

/// The host of GitHub itself.
const GITHUB: &str = "github.com";

/// The working directory of `gh`: it reads the repository around it, and this directory is in no repository.
const NOWHERE: &str = "/";

/// Maximum bytes of `gh` on standard error.
const MAX_COMPLAINT: ByteLimit = ByteLimit(64 << 10);

/// Fixed environment variables of every call.
const ENVIRONMENT: [(&str, &str); 9] = [
    ("LC_ALL", "C"),
    ("NO_COLOR", "1"),
    ("CLICOLOR", "0"),
    ("GH_PAGER", "cat"),
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("GH_NO_EXTENSION_UPDATE_NOTIFIER", "1"),
    ("GH_SPINNER_DISABLED", "1"),
    ("DO_NOT_TRACK", "1"),
];

/// Variables taken from the user's environment: the login (also from a keyring over the session bus),
/// proxies, and certificates.
const TAKEN: [&str; 20] = [
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "GH_CONFIG_DIR",
    "GH_HOST",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Builds the environment of `gh` from scratch.
pub(super) fn environment(user: &Environment) -> Vec<(OsString, OsString)> {
    let fixed = ENVIRONMENT
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let taken = TAKEN
        .iter()
        .filter_map(|name| Some((OsString::from(name), user.get_os(name)?.to_owned())));
    fixed.chain(taken).collect()
}

/// Returns the host for `gh`; by default it would use the only one with a login.
pub(super) fn host(user: &Environment) -> String {
    let named = user.get("GH_HOST").filter(|host| !host.is_empty());
    let host = named.unwrap_or(GITHUB).to_ascii_lowercase();
    // As `gh` reads it.
    if host
        .strip_suffix(GITHUB)
        .is_some_and(|before| before.ends_with('.'))
    {
        GITHUB.to_owned()
    } else {
        host
    }
}

impl Gh {
    /// A question, with status and headers before the body.
    pub(super) fn read_call(&self, request: &GhRequest) -> Result<Spawn, GhError> {
        let mut limits = Limits::new(self.deadlines.answer);
        limits.stdout = MAX_ANSWER;
        self.call(request, &["-i"], limits, Stdout::Memory)
    }

    /// Creates a request whose response goes to a file.
    pub(super) fn fetch(
        &self,
        request: &GhRequest,
        file: std::fs::File,
        limit: ByteLimit,
    ) -> Result<Spawn, GhError> {
        let mut limits = Limits::new(self.deadlines.download);
        limits.stdout = limit;
        self.call(request, &[], limits, Stdout::File(Arc::new(file)))
    }

    /// Builds every call of `gh` in the project.
    fn call(
        &self,
        request: &GhRequest,
        options: &[&str],
        limits: Limits,
        stdout: Stdout,
    ) -> Result<Spawn, GhError> {
        let program = match &self.program {
            Ok(program) => program,
            Err(why) => return Err(GhError::Missing { why: why.clone() }),
        };
        let limits = Limits {
            runaway: limits.stdout,
            stderr: MAX_COMPLAINT,
            ..limits
        };
        let words = ["api", "--hostname", &self.host]
            .into_iter()
            .chain(options.iter().copied())
            .map(OsString::from);
        Ok(Spawn {
            args: words.chain(request.args()).collect(),
            env: self.env.clone(),
            stdout,
            confinement: Confinement::Trusted,
            keep: Keep::Head,
            redaction: Redaction::OnlyStderr,
            ..Spawn::new(program, Path::new(NOWHERE), limits)
        })
    }

    /// Runs a call to its end.
    pub(super) async fn run(&self, spawn: Spawn) -> Result<Completed, GhError> {
        let not_run = |error: SandboxError| GhError::NotRun {
            message: error.to_string(),
        };
        self.sandbox.run(spawn).await.map_err(not_run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gh_gets_only_github_variables() {
        let user = Environment::from_pairs(
            [
                ("PATH", "/bin"),
                ("GH_TOKEN", "t"),
                ("HTTPS_PROXY", "http://p"),
                ("GH_DEBUG", "api"),
                ("GH_REPO", "a/b"),
                ("GH_EDITOR", "evil"),
                ("GH_BROWSER", "evil"),
                ("GH_FORCE_TTY", "1"),
                ("GH_PATH", "evil"),
                ("GIT_DIR", "/x"),
                ("GIT_CONFIG_COUNT", "1"),
                ("CLICOLOR_FORCE", "1"),
                ("LD_PRELOAD", "evil.so"),
                ("NO_COLOR", ""),
                ("ANTHROPIC_API_KEY", "k"),
            ],
            "/",
        );
        let env = environment(&user);
        let mut names: Vec<&str> = env.iter().filter_map(|(name, _)| name.to_str()).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "CLICOLOR",
                "DO_NOT_TRACK",
                "GH_NO_EXTENSION_UPDATE_NOTIFIER",
                "GH_NO_UPDATE_NOTIFIER",
                "GH_PAGER",
                "GH_PROMPT_DISABLED",
                "GH_SPINNER_DISABLED",
                "GH_TOKEN",
                "HTTPS_PROXY",
                "LC_ALL",
                "NO_COLOR",
                "PATH",
            ]
        );
        assert!(env.contains(&("NO_COLOR".into(), "1".into())));
    }
}
