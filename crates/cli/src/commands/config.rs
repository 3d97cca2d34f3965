//! `crucible config`: what is in force, and why.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use crucible_host::http::without_login;
use crucible_model::ExitStatus;
use crucible_secrets::Scanner;
use crucible_settings::variable_of;

use crate::app::App;
use crate::error::CommandError;
use crate::table::table;

/// See the configuration that is in force
#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    Show(Show),
}

/// Print every setting with its value and its source
///
/// For example: `crucible config show --repo .`; with --json also the variable that sets it.
#[derive(Args)]
pub(crate) struct Show {
    /// Show what holds for the project in this directory
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo: PathBuf,
}

impl ConfigCommand {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let Self::Show(show) = self;
        let config = app.config_of(&show.repo)?;
        if app.output.is_json() {
            let settings: Vec<_> = config
                .effective()
                .map(|(key, setting)| {
                    serde_json::json!({ "key": key, "value": setting.value.as_str().map_or_else(|| serde_json::json!(setting.value), |text| shown(text).into()), "source": setting.source, "variable": variable_of(key) })
                })
                .collect();
            app.output
                .json(&serde_json::json!({ "schema_version": "crucible-config-v1", "settings": settings }))?;
        } else {
            let mut table = table(["setting", "value", "source"]);
            for (key, setting) in config.effective() {
                table.add_row([
                    key,
                    &setting
                        .value
                        .as_str()
                        .map_or_else(|| setting.value.to_string(), |text| format!("{:?}", shown(text))),
                    &setting.source.to_string(),
                ]);
            }
            app.output.line(&table.trim_fmt());
        }
        Ok(ExitStatus::Success)
    }
}

/// A value without the secrets that somebody put into it: what looks like a key, and whom an address logs in as.
fn shown(text: &str) -> String {
    let text = Scanner::builtin().redact(text).text.into_owned();
    // Without a colon before it, an `@` is part of a name and no login.
    let holds_login = text.split_once('@').is_some_and(|(before, _)| before.contains(':'));
    let bare = without_login(&text);
    if !holds_login || bare == text {
        return text;
    }
    match bare.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://[login]@{rest}"),
        None => format!("[login]@{bare}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_in_an_address_is_not_shown() {
        for password in ["pa@ss", "pa#ss", "pa/ss", "pa?ss"] {
            let url = format!("http://me:{password}@host:80/v1?a=b");
            assert_eq!(shown(&url), "http://[login]@host:80/v1?a=b");
        }
        assert_eq!(shown("me:pass@host"), "[login]@host");
        assert_eq!(shown("http://localhost:8000/v1"), "http://localhost:8000/v1");
        assert_eq!(shown("a@b"), "a@b");
    }
}
