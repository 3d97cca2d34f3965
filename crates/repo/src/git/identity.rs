//! The committer: the user's name and address from git's configuration.
//!
//! Only this call may read the user's own configuration. It prints these values and cannot start anything.

use std::ffi::OsString;

use crucible_host::env::Environment;

use super::{Call, Git};
use crate::error::RepoError;
use crate::identity::Identity;

/// Returns the variables through which git finds the user's own configuration.
pub(super) fn user_config(env: &Environment) -> Vec<(OsString, OsString)> {
    let names = ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"];
    names
        .iter()
        .filter_map(|name| Some((OsString::from(name), env.get_os(name)?.to_owned())))
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

impl Git {
    /// Returns the identity from the repository's configuration, or else the user's.
    ///
    /// # Errors
    ///
    /// [`RepoError::NoIdentity`] if neither has one.
    pub async fn identity(&self) -> Result<Identity, RepoError> {
        let mut call = Call::new(["config", "--get-regexp", "-z", r"^user\.(name|email)$"]);
        if !self
            .user_config
            .iter()
            .any(|(name, _)| name == "GIT_CONFIG_GLOBAL")
        {
            call = call.without_env("GIT_CONFIG_GLOBAL");
        }
        let output = self.run(call.with_envs(&self.user_config)).await?;
        // `key LF value NUL`, and the last one counts.
        let last = |key: &[u8]| {
            let values = output
                .records()
                .filter_map(|record| record.strip_prefix(key)?.strip_prefix(b"\n"));
            values.last().and_then(plain)
        };
        match (last(b"user.name"), last(b"user.email")) {
            (Some(name), Some(email)) if output.code == 0 => Ok(Identity { name, email }),
            _ => Err(RepoError::NoIdentity),
        }
    }
}

/// Returns a value without characters that git removes from names and that could end the header line; `None`
/// if nothing is left.
fn plain(value: &[u8]) -> Option<String> {
    let value = String::from_utf8_lossy(value);
    let cleaned: String = value
        .chars()
        .filter(|c| !c.is_control() && !matches!(c, '<' | '>'))
        .collect();
    let cleaned = cleaned.trim();
    (!cleaned.is_empty()).then(|| cleaned.to_owned())
}
