//! `claude` as an agent that writes files: the provider's program, key and address, but with file tools
//! only.
//!
//! Nothing is started here: the caller runs the returned arguments and variables in its own sandbox, with
//! access to the one address. The agent gets exactly the tools of [`ClaudeAgent::TOOLS`] (`--tools`;
//! `--allowedTools` alone would only skip confirmation, and offer a shell as well). Settings of the
//! project are ignored, so none of its hooks, helpers or servers is started. The sandbox hides the user's
//! home and login, so a key or a token in a variable is required.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_host::http::host_and_port;
use crucible_model::Secret;

use super::{BASE_URL, ClaudeCli, INSTALL, KEY, LOGIN_TOKEN, NAME, QUIET, TOKEN};
use crate::budget::Limit;
use crate::error::{Fault, LlmError};
use crate::provider_kind::check_address;
use crate::provider_settings::{ProviderSettings, checked_url, named_key, required};

/// The default address of the program.
const OWN_ADDRESS: &str = "https://api.anthropic.com";
/// The number of its own retries, because a caller cannot resume its work in the middle.
const RETRIES: &str = "2";
/// Settings that override all others.
const CLOSED: &str = r#"{"disableAllHooks":true,"permissions":{"deny":["Bash","WebFetch","WebSearch","Agent","Task"]}}"#;

/// The program `claude` with its key, ready to be started as an agent.
#[derive(Debug, Clone)]
pub struct ClaudeAgent {
    program: PathBuf,
    model: String,
    max_tokens: u64,
    key: (&'static str, Secret),
    address: String,
    host: String,
    port: u16,
}

impl ClaudeAgent {
    /// Its tools: files only, nothing that starts a program or connects.
    pub const TOOLS: [&str; 5] = ["Edit", "Write", "Glob", "Grep", "Read"];

    /// Finds the program, its key and its address from the settings of `[llm.claude-cli]`. Sends and starts nothing.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] with what is missing.
    pub fn find(settings: &ProviderSettings, env: &Environment) -> Result<Self, LlmError> {
        check_address(&ClaudeCli, settings)?;
        let wrong = |what: String, next: String| {
            LlmError::Misconfiguration(Fault::new(NAME, "", what, next))
        };
        let requested_path = required(NAME, "binary", settings.binary.as_deref())?;
        let program = env.find_program(requested_path).map_err(|error| {
            wrong(
                format!("the program {requested_path:?} cannot be used: {error}"),
                format!("install it with `{INSTALL}`, or set [llm.{NAME}] binary"),
            )
        })?;
        let set = |name: &str| env.get(name).is_some_and(|value| !value.trim().is_empty());
        let named = settings
            .api_key_env
            .as_deref()
            .filter(|variable| set(variable));
        let key = match (
            named,
            [KEY, TOKEN, LOGIN_TOKEN].into_iter().find(|name| set(name)),
        ) {
            (Some(variable), _) => (KEY, named_key(NAME, variable, env)?),
            (None, Some(own)) => (own, named_key(NAME, own, env)?),
            (None, None) => {
                return Err(wrong(
                    "as an agent it runs in a sandbox that does not see your login, and no variable holds a key".to_owned(),
                    format!("set {KEY}, or {LOGIN_TOKEN} to what `claude setup-token` prints"),
                ));
            }
        };
        let own = || env.get(BASE_URL).filter(|url| !url.trim().is_empty());
        let address = settings
            .base_url
            .as_deref()
            .or_else(own)
            .unwrap_or(OWN_ADDRESS);
        let address = checked_url(NAME, address)?;
        let (host, port) = host_and_port(&address)
            .map_err(|error| wrong(error.to_string(), format!("correct [llm.{NAME}] base_url")))?;
        Ok(Self {
            program,
            model: required(NAME, "model", settings.model.clone())?,
            max_tokens: required(NAME, "max_tokens", settings.max_tokens)?,
            key,
            address,
            host,
            port,
        })
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Its model.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The host and port that it must reach.
    #[must_use]
    pub fn endpoint(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// The key, which must not appear in any output or file.
    #[must_use]
    pub const fn key(&self) -> &Secret {
        &self.key.1
    }

    /// The arguments; the task is passed on standard input. `dollars` is its spending limit, in
    /// millionths.
    #[must_use]
    pub fn args(&self, micro_dollars: Limit) -> Vec<OsString> {
        let tools = Self::TOOLS.join(",");
        let mut args: Vec<OsString> = [
            "-p",
            "--output-format",
            "text",
            "--model",
            &self.model,
            "--tools",
            &tools,
        ]
        .map(OsString::from)
        .to_vec();
        args.push("--allowedTools".into());
        args.extend(Self::TOOLS.map(OsString::from));
        let closed = [
            "--settings",
            CLOSED,
            "--setting-sources",
            "user",
            "--strict-mcp-config",
            "--disable-slash-commands",
            "--no-session-persistence",
        ];
        args.extend(closed.map(OsString::from));
        if let Limit::At(most) = micro_dollars {
            args.extend([
                "--max-budget-usd".into(),
                format!("{}.{:06}", most / 1_000_000, most % 1_000_000).into(),
            ]);
        }
        args
    }

    /// The variables of one run with this empty home, this temporary directory and this time limit, in
    /// addition to those of any program.
    #[must_use]
    pub fn variables(
        &self,
        home: &Path,
        temporary: &Path,
        time: Duration,
    ) -> Vec<(OsString, OsString)> {
        let mut set: Vec<(OsString, OsString)> = QUIET
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect();
        set.retain(|(name, _)| name != "CLAUDE_CODE_MAX_RETRIES");
        let mut add = |name: &str, value: OsString| set.push((name.into(), value));
        add("CLAUDE_CODE_MAX_RETRIES", RETRIES.into());
        add("API_TIMEOUT_MS", time.as_millis().to_string().into());
        add(
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            self.max_tokens.to_string().into(),
        );
        add("CLAUDE_CONFIG_DIR", home.join(".claude").into());
        add("HOME", home.into());
        add("TMPDIR", temporary.into());
        add(BASE_URL, self.address.clone().into());
        add(self.key.0, self.key.1.expose().into());
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider_settings::AddressOrigin;

    fn settings() -> ProviderSettings {
        ProviderSettings {
            binary: Some(PathBuf::from("/bin/sh")),
            model: Some("sonnet".to_owned()),
            max_tokens: Some(16_000),
            api_key_env: Some("OWN_KEY".to_owned()),
            ..ProviderSettings::default()
        }
    }

    fn find(
        settings: &ProviderSettings,
        variables: &[(&str, &str)],
    ) -> Result<ClaudeAgent, LlmError> {
        ClaudeAgent::find(
            settings,
            &Environment::from_pairs(variables.iter().copied(), "/"),
        )
    }

    #[test]
    fn agent_needs_key_under_known_name() {
        let table = [
            (vec![("OWN_KEY", "one"), (KEY, "two")], KEY, "one"),
            (vec![(KEY, "two"), (TOKEN, "three")], KEY, "two"),
            (vec![(TOKEN, "three")], TOKEN, "three"),
            (
                vec![(LOGIN_TOKEN, "four"), ("OWN_KEY", " ")],
                LOGIN_TOKEN,
                "four",
            ),
        ];
        for (variables, name, key) in table {
            let agent = find(&settings(), &variables).unwrap();
            assert_eq!(agent.key().expose(), key);
            let set = agent.variables(Path::new("/h"), Path::new("/t"), Duration::from_secs(1));
            let keys: Vec<_> = set
                .iter()
                .filter(|(set, _)| [KEY, TOKEN, LOGIN_TOKEN].iter().any(|key| set == key))
                .collect();
            assert_eq!(keys, [&(OsString::from(name), OsString::from(key))]);
        }
        let error = find(&settings(), &[("HOME", "/home/somebody")]).unwrap_err();
        assert!(
            matches!(error, LlmError::Misconfiguration(_))
                && error.to_string().contains("ANTHROPIC_API_KEY")
        );
    }

    #[test]
    fn agent_needs_one_address_not_from_project() {
        let key = [(KEY, "key")];
        let endpoint = |settings: &ProviderSettings, variables: &[(&str, &str)]| {
            let agent = find(settings, variables).unwrap();
            let (host, port) = agent.endpoint();
            (host.to_owned(), port)
        };
        assert_eq!(
            endpoint(&settings(), &key),
            ("api.anthropic.com".to_owned(), 443)
        );
        let own = [(KEY, "key"), (BASE_URL, "http://[::1]:8080/x")];
        assert_eq!(endpoint(&settings(), &own), ("::1".to_owned(), 8080));
        let named = ProviderSettings {
            base_url: Some("http://127.0.0.1:9".to_owned()),
            ..settings()
        };
        assert_eq!(endpoint(&named, &own), ("127.0.0.1".to_owned(), 9));
        let foreign = ProviderSettings {
            address: AddressOrigin::Project,
            ..named
        };
        assert!(find(&foreign, &key).is_err());
        let none = ProviderSettings {
            base_url: Some("file:///x".to_owned()),
            ..settings()
        };
        assert!(find(&none, &key).is_err());
    }

    #[test]
    fn agent_gets_file_tools_and_spending_limit() {
        let agent = find(&settings(), &[(KEY, "key")]).unwrap();
        let args = |limit| {
            let args: Vec<String> = agent
                .args(limit)
                .iter()
                .map(|arg| arg.to_str().unwrap().to_owned())
                .collect();
            args.join(" ")
        };
        let arguments = args(Limit::At(1_500_000));
        assert!(
            arguments.contains(
                "--tools Edit,Write,Glob,Grep,Read --allowedTools Edit Write Glob Grep Read --"
            ),
            "{arguments}"
        );
        assert!(
            arguments.ends_with("--max-budget-usd 1.500000"),
            "{arguments}"
        );
        assert!(!args(Limit::Unlimited).contains("budget"));
        assert!(!arguments.contains("key"));
    }
}
