//! `crucible config`: what is in force, why, and how to change it.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use crucible_host::http::without_login;
use crucible_model::{ExitStatus, Failure, one_line};
use crucible_secrets::Scanner;
use crucible_settings::{ConfigFiles, Edit, EditedFile, settings_schema, variable_of};
use crucible_terminal::table;
use serde_json::json;

use crate::app::App;

/// See and change the configuration
#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    Show(Show),
    Set(Set),
    /// Print a JSON schema of configuration files, for editors
    ///
    /// For example: `crucible config schema > crucible-settings.schema.json`.
    Schema,
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

/// Set a value in a configuration file
///
/// The file keeps its comments and its order. A value is written as in an environment variable: a list with commas between
/// its items, or as TOML. Nothing is written if the file may not hold the value.
///
/// For example: `crucible config set run.max_iterations 2`, `crucible config set --user llm.provider anthropic`, or
/// `crucible config set gates.tests.command '["make", "test"]'`.
#[derive(Args)]
pub(crate) struct Set {
    /// The setting, such as run.max_iterations; docs/settings.md lists all
    #[arg(value_name = "KEY")]
    key: String,
    /// The value; an empty text unsets a text
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: String,
    /// Write your own file instead of the project's
    #[arg(long)]
    user: bool,
    /// Write the file of the project in this directory
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo: PathBuf,
}

impl ConfigCommand {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        match self {
            Self::Show(show) => show.run(app),
            Self::Set(set) => set.run(app),
            Self::Schema => {
                app.output.json(&settings_schema())?;
                Ok(ExitStatus::Success)
            }
        }
    }
}

impl Show {
    fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let config = app.config_of(&self.repo)?;
        if app.output.is_json() {
            let settings: Vec<_> = config
                .effective()
                .map(|(key, setting)| {
                    json!({
                        "key": key,
                        "value": shown_value(&setting.value),
                        "source": setting.source,
                        "variable": variable_of(key),
                    })
                })
                .collect();
            app.output
                .json(&json!({ "schema_version": "crucible-config-v1", "settings": settings }))?;
        } else {
            let mut table = table(["setting", "value", "source"]);
            for (key, setting) in config.effective() {
                table.add_row([
                    key,
                    &shown_text(&setting.value),
                    &setting.source.to_string(),
                ]);
            }
            app.output.line(&table.trim_fmt());
        }
        Ok(ExitStatus::Success)
    }
}

impl Set {
    fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let directory = app.directory(&self.repo)?;
        for text in [&self.key, &self.value] {
            if let Some(found) = Scanner::builtin().scan(text.as_bytes()).first() {
                let message = format!(
                    "this looks like a secret ({}), and nothing was written",
                    found.rule
                );
                return Err(Failure::new(ExitStatus::SecretDetected, message).hint(
                    "Put the secret into an environment variable; api_key_env of a provider names it.",
                ));
            }
        }
        let files = ConfigFiles::discover(&app.env, &directory);
        let project = app.repository_of(&directory).unwrap_or(directory);
        let owner = if self.user {
            EditedFile::User
        } else {
            EditedFile::Project
        };
        let edit = Edit::new(&files, &project, &app.env, owner, &self.key, &self.value)?;
        edit.write()?;
        let path = edit.path().display().to_string();
        if app.output.is_json() {
            app.output.json(&json!({
                "schema_version": "crucible-config-set-v1",
                "key": self.key,
                "value": shown_value(edit.value()),
                "file": path,
                "previous": edit.previous().map(shown_value),
                "overridden_by": edit.overridden_by().map(|setting| {
                    json!({ "value": shown_value(&setting.value), "source": setting.source })
                }),
            }))?;
        } else {
            let value = shown_text(edit.value());
            let previous = edit
                .previous()
                .map(|value| format!(" (was {})", shown_text(value)));
            let previous = previous.unwrap_or_default();
            app.output.line(&one_line(&format!(
                "set {} = {value} in {path}{previous}",
                self.key
            )));
        }
        if let Some(setting) = edit.overridden_by() {
            let (value, source) = (shown_text(&setting.value), &setting.source);
            app.output.remark(&format!(
                "note: {source} overrides this; {} is {value} here",
                self.key
            ));
        }
        Ok(ExitStatus::Success)
    }
}

/// A value for programs, without secrets.
fn shown_value(value: &toml::Value) -> serde_json::Value {
    value
        .as_str()
        .map_or_else(|| json!(value), |text| display_value(text).into())
}

/// A value for people, without secrets.
fn shown_text(value: &toml::Value) -> String {
    value.as_str().map_or_else(
        || value.to_string(),
        |text| format!("{:?}", display_value(text)),
    )
}

/// A value without the secrets in it: what looks like a key, and whom an address logs in as.
fn display_value(text: &str) -> String {
    let text = Scanner::builtin().redact(text).text.into_owned();
    // Without a colon before it, an `@` is part of a name and no login.
    let holds_login = text
        .split_once('@')
        .is_some_and(|(before, _)| before.contains(':'));
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
            assert_eq!(display_value(&url), "http://[login]@host:80/v1?a=b");
        }
        assert_eq!(display_value("me:pass@host"), "[login]@host");
        assert_eq!(
            display_value("http://localhost:8000/v1"),
            "http://localhost:8000/v1"
        );
        assert_eq!(display_value("a@b"), "a@b");
    }
}
