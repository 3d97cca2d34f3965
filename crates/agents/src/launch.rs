//! An agent's session, filled in: its home directory, its variables and its command line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crucible_host::fs;
use crucible_model::Secret;

use crate::error::AgentError;
use crate::profile::{AgentProfile, PromptDelivery, fill_placeholders};

/// The file of the home directory that holds the prompt, if the agent reads it from a file.
pub const PROMPT_FILE: &str = "crucible-prompt.md";

/// The longest argument of a program on Linux, in bytes.
const MAX_ARGUMENT: usize = 128 * 1024 - 1;

/// What starts an agent's session.
pub struct Launch<'a> {
    /// The agent.
    pub profile: &'a AgentProfile,
    /// The address of its endpoint, without a final `/`.
    pub endpoint: &'a str,
    /// The token of this session.
    pub token: &'a Secret,
    /// Its private home directory.
    pub home: &'a Path,
    /// What it is asked.
    pub prompt: &'a str,
}

impl Launch<'_> {
    /// Writes the files of its home directory. The agent owned that directory during an earlier turn, so a link in it is
    /// never followed.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written, or a link is in the place of a directory.
    pub fn write_home(&self) -> Result<(), AgentError> {
        for (path, text) in &self.profile.files {
            fs::write_beneath_unflushed(self.home, path, self.fill(text).as_bytes())?;
        }
        if self.profile.prompt == PromptDelivery::File {
            fs::write_beneath_unflushed(self.home, PROMPT_FILE, self.prompt.as_bytes())?;
        }
        Ok(())
    }

    /// Returns the arguments of a new session, or of a further turn.
    ///
    /// # Errors
    ///
    /// [`AgentError::PromptTooLong`] if the prompt does not fit into an argument.
    pub fn args(&self, is_further_turn: bool) -> Result<Vec<OsString>, AgentError> {
        if self.profile.prompt == PromptDelivery::Argument && self.prompt.len() > MAX_ARGUMENT / 2 {
            return Err(AgentError::PromptTooLong {
                name: self.profile.name.clone(),
                bytes: self.prompt.len(),
                limit: MAX_ARGUMENT / 2,
            });
        }
        let args = if is_further_turn && !self.profile.resume.is_empty() {
            &self.profile.resume
        } else {
            &self.profile.args
        };
        Ok(args.iter().map(|text| self.fill(text).into()).collect())
    }

    /// Returns the variables that connect it, and those of its home.
    #[must_use]
    pub fn env(&self) -> BTreeMap<OsString, OsString> {
        let below = |path: &str| self.home.join(path).into_os_string();
        let homes = [
            ("HOME", self.home.as_os_str().to_owned()),
            ("XDG_CACHE_HOME", below(".cache")),
            ("XDG_CONFIG_HOME", below(".config")),
            ("XDG_DATA_HOME", below(".local/share")),
            ("XDG_STATE_HOME", below(".local/state")),
        ];
        let homes = homes.map(|(name, value)| (OsString::from(name), value));
        let own = self.profile.env.iter();
        let own = own.map(|(name, value)| (name.into(), self.fill(value).into()));
        homes.into_iter().chain(own).collect()
    }

    /// Returns its standard input.
    #[must_use]
    pub fn stdin(&self) -> Vec<u8> {
        match self.profile.prompt {
            PromptDelivery::Stdin => self.prompt.as_bytes().to_vec(),
            PromptDelivery::Argument | PromptDelivery::File => Vec::new(),
        }
    }

    fn fill(&self, text: &str) -> String {
        let home = self.home.to_string_lossy();
        let prompt_file: PathBuf = self.home.join(PROMPT_FILE);
        let prompt_file = prompt_file.to_string_lossy();
        fill_placeholders(text, |word| match word {
            "endpoint" => self.endpoint,
            "token" => self.token.expose(),
            "home" => &home,
            "model" => &self.profile.model,
            "prompt" => self.prompt,
            _ => &prompt_file,
        })
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out links by hand")]
mod tests {
    use super::*;
    use crate::registry::registry;

    #[test]
    fn links_that_an_agent_left_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let outside = place.path().join("outside");
        let home = place.path().join("home");
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        std::os::unix::fs::symlink(&outside, home.join(".codex")).unwrap();
        let kind = registry()
            .iter()
            .find(|kind| kind.profile().name == "codex");
        let profile = kind.unwrap().profile();
        let launch = Launch {
            profile: &profile,
            endpoint: "http://127.0.0.1:9",
            token: &Secret::new("t-1".to_owned()),
            home: &home,
            prompt: "do it",
        };
        launch.write_home().unwrap_err();
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
        std::fs::remove_file(home.join(".codex")).unwrap();
        launch.write_home().unwrap();
        std::fs::remove_file(home.join(".codex/config.toml")).unwrap();
        std::os::unix::fs::symlink(outside.join("f"), home.join(".codex/config.toml")).unwrap();
        launch.write_home().unwrap();
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
        assert!(
            home.join(".codex/config.toml")
                .symlink_metadata()
                .unwrap()
                .is_file()
        );
    }

    #[test]
    fn session_holds_endpoint_token_and_prompt() {
        let home = tempfile::tempdir().unwrap();
        let token = Secret::new("t-1".to_owned());
        for kind in registry() {
            let profile = kind.profile();
            let launch = Launch {
                profile: &profile,
                endpoint: "http://127.0.0.1:9",
                token: &token,
                home: home.path(),
                prompt: "do {token} it",
            };
            launch.write_home().unwrap();
            let args = launch.args(false).unwrap();
            let env = launch.env();
            let files: String = profile
                .files
                .keys()
                .map(|path| std::fs::read_to_string(home.path().join(path)).unwrap())
                .collect();
            let command_line = format!("{args:?} {env:?} {files}");
            for expected in ["http://127.0.0.1:9", "t-1"] {
                assert!(
                    command_line.contains(expected),
                    "{}: {command_line}",
                    profile.name
                );
            }
            let prompt = match profile.prompt {
                PromptDelivery::Stdin => String::from_utf8(launch.stdin()).unwrap(),
                PromptDelivery::Argument => format!("{args:?}"),
                PromptDelivery::File => {
                    std::fs::read_to_string(home.path().join(PROMPT_FILE)).unwrap()
                }
            };
            // The prompt's own braces are not filled in.
            assert!(prompt.contains("do {token} it"), "{}", profile.name);
            let long = "x".repeat(MAX_ARGUMENT);
            let launch = Launch {
                prompt: &long,
                ..launch
            };
            assert_eq!(
                launch.args(false).is_err(),
                profile.prompt == PromptDelivery::Argument
            );
        }
    }
}
