//! Who commits: the name and address that git knows for the user.
//!
//! This is the one call that may read the user's own configuration. It prints two values and can start nothing.

use std::ffi::OsString;

use crucible_host::env::Environment;

use super::{Call, Git};
use crate::error::RepoError;
use crate::land::Identity;

/// The variables through which git finds the user's own configuration.
pub(super) fn user_config(env: &Environment) -> Vec<(OsString, OsString)> {
    let names = ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"];
    names
        .iter()
        .filter_map(|name| Some((OsString::from(name), env.get_os(name)?.to_owned())))
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

impl Git {
    /// The identity that the repository's configuration names, or else the user's.
    ///
    /// # Errors
    ///
    /// [`RepoError::NoIdentity`] where neither does.
    pub async fn identity(&self) -> Result<Identity, RepoError> {
        let name = self.user_setting("user.name").await?;
        let email = self.user_setting("user.email").await?;
        match (name, email) {
            (Some(name), Some(email)) => Ok(Identity { name, email }),
            _ => Err(RepoError::NoIdentity),
        }
    }

    async fn user_setting(&self, key: &str) -> Result<Option<String>, RepoError> {
        let mut call = Call::new(["config", "--get", "-z", key]);
        if !self.user_config.iter().any(|(name, _)| name == "GIT_CONFIG_GLOBAL") {
            call = call.without_env("GIT_CONFIG_GLOBAL");
        }
        let output = self.run(call.with_envs(&self.user_config)).await?;
        let value = output.stdout.strip_suffix(b"\0").unwrap_or_default();
        // What git itself would cut from a name: it could end the line of the commit's header.
        let value: String = String::from_utf8_lossy(value)
            .chars()
            .filter(|c| !c.is_control() && !matches!(c, '<' | '>'))
            .collect();
        let value = value.trim();
        Ok((output.code == 0 && !value.is_empty()).then(|| value.to_owned()))
    }
}
