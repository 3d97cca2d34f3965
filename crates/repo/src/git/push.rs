//! Pushes one ref, when the user asks for it.
//!
//! This is the only call that reaches a remote repository of the user's for writing. It has the user's own configuration
//! and agent, and no hook, credential helper or other program of a configuration runs, so it reaches remotes by SSH, by
//! path, and by HTTPS without a login.

use std::time::Duration;

use super::{Call, Git};
use crate::error::RepoError;

/// Time limit of a push.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The protocols of remotes.
const PROTOCOLS: &str = "file:ssh:https";

impl Git {
    /// Pushes a ref to the same name in a remote repository.
    ///
    /// # Errors
    ///
    /// Fails when git does: there is no such remote, it cannot be reached, or it refuses.
    pub async fn push(&self, remote: &str, name: &str) -> Result<(), RepoError> {
        let words = [
            "push",
            "--quiet",
            "--no-verify",
            "--receive-pack=git-receive-pack",
            "--end-of-options",
            remote,
            name,
        ];
        let mut call = Call::new(words)
            .with_timeout(TIMEOUT)
            .with_setting("protocol.allow", "always")
            .with_setting("core.sshCommand", "ssh -o BatchMode=yes")
            .with_env("GIT_ALLOW_PROTOCOL", PROTOCOLS)
            .with_envs(&self.user_config);
        if let Some(socket) = self.env.get_os("SSH_AUTH_SOCK") {
            call = call.with_env("SSH_AUTH_SOCK", socket);
        }
        self.run_ok(call).await.map(drop)
    }
}
