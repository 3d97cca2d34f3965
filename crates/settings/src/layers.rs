//! The layers of the configuration: flag, environment, project file, user file, default.
//!
//! A key that is not declared is refused with the nearest one that is, and a value must have the type of its default.
//!
//! What always holds: every value in force knows its source; a project's own file cannot set what only the user may
//! ([`ConfigError::NotForProjects`]), nor raise a limit ([`ConfigError::OnlyLower`]). Those settings come from the user's
//! file, the environment or a flag.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use crucible_host::env::Environment;
use crucible_host::fs::read_regular_up_to;
use crucible_host::words::split_words;
use serde::Serialize;
use toml::Value;

use crate::error::ConfigError;
use crate::files::{ConfigFiles, MAX_FILE, exists, read_of_project};
use crate::known::{flag_of, name_in, spec_of, specs, variable_of};
use crate::spec::{DefaultValue, Setter, SettingSpec};

/// Variables that are read elsewhere and set no key.
const OTHER_VARIABLES: [&str; 2] = ["CRUCIBLE_HOME", "CRUCIBLE_CLOCK"];

/// Where an effective value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "name")]
pub enum SettingSource {
    /// The embedded defaults.
    Default,
    /// A configuration file.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
    /// A command line flag.
    Flag(String),
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// One effective value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// The value; an empty string stands for "not set".
    pub value: Value,
    /// Where it comes from.
    pub source: SettingSource,
}

/// The values of every source, merged.
#[derive(Debug, Clone)]
pub(crate) struct Layers {
    settings: BTreeMap<String, Setting>,
    /// The project's file, where there is one.
    project: Option<PathBuf>,
}

impl Layers {
    /// Reads every layer and checks every key.
    ///
    /// `flags` are pairs of a key and its value as given on the command line.
    ///
    /// # Errors
    ///
    /// Fails on the first file that cannot be read or value that is not allowed, naming where it stands.
    pub(crate) fn load(
        files: &ConfigFiles,
        env: &Environment,
        flags: &[(&str, String)],
    ) -> Result<Self, ConfigError> {
        Self::load_edited(files, env, flags, None)
    }

    /// The same, with another text in the place of one file.
    pub(crate) fn load_edited(
        files: &ConfigFiles,
        env: &Environment,
        flags: &[(&str, String)],
        edited: Option<(&Path, &str)>,
    ) -> Result<Self, ConfigError> {
        let mut config = Self::defaults(files);
        let text_of = |path: &Path| {
            edited
                .filter(|(edited, _)| *edited == path)
                .map(|(_, text)| text)
        };
        match text_of(&files.user) {
            Some(text) => config.read_text(&files.user, text, None)?,
            None if exists(&files.user) => config.read_file(&files.user, None)?,
            None => {}
        }
        if let Some(project) = &files.project {
            match text_of(project) {
                Some(text) => config.read_text(project, text, Some(&files.user))?,
                None => config.read_file(project, Some(&files.user))?,
            }
        }
        config.read_environment(env)?;
        for file in &files.over {
            config.read_file(file, None)?;
        }
        for (key, text) in flags {
            let origin = flag_of(key);
            let spec = spec_of(key).ok_or_else(|| config.unknown_key(key, &origin))?;
            let value = Self::typed(spec, key, text, &origin)?;
            config.set(key, value, SettingSource::Flag(origin.clone()), &origin)?;
        }
        Ok(config)
    }

    pub(crate) fn defaults(files: &ConfigFiles) -> Self {
        let declared = specs().filter(|spec| !spec.is_template());
        let default = |spec: &SettingSpec| {
            (
                spec.key.to_owned(),
                Setting {
                    value: spec.default.to_value(),
                    source: SettingSource::Default,
                },
            )
        };
        Self {
            settings: declared.map(default).collect(),
            project: files.project.clone(),
        }
    }

    /// The value of a key, and its source.
    pub(crate) fn setting(&self, key: &str) -> Option<&Setting> {
        self.settings.get(key)
    }

    /// The value of a key.
    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.settings.get(key).map(|setting| &setting.value)
    }

    /// The names that users gave to tables below `table`, such as the gates.
    pub(crate) fn names_below(&self, table: &str) -> Vec<String> {
        let prefix = format!("{table}.*.");
        let patterns: Vec<&str> = specs()
            .map(|spec| spec.key)
            .filter(|key| key.starts_with(&prefix))
            .collect();
        let named = |key: &str| {
            patterns
                .iter()
                .find_map(|pattern| name_in(pattern, key))
                .map(str::to_owned)
        };
        self.settings
            .keys()
            .filter_map(|key| named(key))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    }

    /// Where a value comes from.
    pub(crate) fn source(&self, key: &str) -> Option<&SettingSource> {
        self.settings.get(key).map(|setting| &setting.source)
    }

    /// Whether the project's file sets a value that counts: a stranger may have written it.
    pub(crate) fn is_of_project(&self, key: &str) -> bool {
        match self.source(key) {
            Some(SettingSource::File(path)) => self.project.as_ref() == Some(path),
            _ => false,
        }
    }

    /// The variables that begin with `CRUCIBLE_` and set nothing: a user may believe in a limit that does not hold.
    pub(crate) fn unread_variables(&self, env: &Environment) -> Vec<String> {
        let known: BTreeSet<String> = self.settings.keys().map(|key| variable_of(key)).collect();
        let ours = env
            .pairs()
            .filter_map(|(name, _)| name.to_str())
            .filter(|name| name.starts_with("CRUCIBLE_"));
        let is_second = |name: &str| specs().any(|spec| spec.second_variable == Some(name));
        ours.filter(|name| {
            !known.contains(*name) && !OTHER_VARIABLES.contains(name) && !is_second(name)
        })
        .map(str::to_owned)
        .collect()
    }

    /// Every effective value, by key.
    pub(crate) fn effective(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.settings
            .iter()
            .map(|(key, setting)| (key.as_str(), setting))
    }

    fn read_file(&mut self, path: &Path, as_project_of: Option<&Path>) -> Result<(), ConfigError> {
        let origin = path.display().to_string();
        let bytes = match as_project_of {
            Some(_) => read_of_project(path)?,
            None => read_regular_up_to(path, MAX_FILE)?,
        };
        let text = String::from_utf8(bytes).map_err(|_| ConfigError::Syntax {
            origin: origin.clone(),
            message: "it is not UTF-8".into(),
        })?;
        self.read_text(path, &text, as_project_of)
    }

    fn read_text(
        &mut self,
        path: &Path,
        text: &str,
        as_project_of: Option<&Path>,
    ) -> Result<(), ConfigError> {
        let origin = path.display().to_string();
        for (key, value) in flatten(parse(&origin, text)?) {
            if let Some(user_file) = as_project_of {
                self.check_project_may_set(&origin, &key, &value, user_file)?;
            }
            self.set(&key, value, SettingSource::File(path.to_owned()), &origin)?;
        }
        Ok(())
    }

    fn check_project_may_set(
        &self,
        origin: &str,
        key: &str,
        value: &Value,
        user_file: &Path,
    ) -> Result<(), ConfigError> {
        let (origin, user_file, variable) =
            (origin.to_owned(), user_file.to_owned(), variable_of(key));
        let spec = spec_of(key);
        if spec.is_some_and(|spec| !project_may_set(spec.setter, value)) {
            return Err(ConfigError::NotForProjects {
                origin,
                key: key.to_owned(),
                user_file,
                variable,
            });
        }
        match spec.and_then(|spec| self.loosened(spec, key, value)) {
            Some(limit) => Err(ConfigError::OnlyLower {
                origin,
                key: key.to_owned(),
                limit,
                user_file,
                variable,
            }),
            None => Ok(()),
        }
    }

    /// The limit that holds so far, where the value would be larger than it.
    fn loosened(&self, spec: &SettingSpec, key: &str, value: &Value) -> Option<String> {
        let now = self
            .value(key)
            .filter(|_| spec.setter == Setter::ProjectMayLower)?;
        let limit = |value: &Value| {
            let number = value
                .as_float()
                .or_else(|| value.as_integer().map(|total| total as f64));
            match number {
                Some(number) if spec.zero_is_unlimited && number == 0.0 => f64::INFINITY,
                Some(number) if number.is_nan() => f64::INFINITY,
                Some(number) => number,
                None => f64::NEG_INFINITY,
            }
        };
        (limit(value) > limit(now)).then(|| now.to_string())
    }

    fn read_environment(&mut self, env: &Environment) -> Result<(), ConfigError> {
        let keys: Vec<String> = self.settings.keys().cloned().collect();
        for key in keys {
            let Some(spec) = spec_of(&key) else { continue };
            let second = spec.second_variable.map(str::to_owned);
            let mut lowest: Option<i64> = None;
            for variable in std::iter::once(variable_of(&key)).chain(second) {
                let Some(text) = env.get(&variable).filter(|text| !text.is_empty()) else {
                    continue;
                };
                let origin = format!("environment {variable}");
                let value = Self::typed(spec, &key, text, &origin)?;
                if value
                    .as_integer()
                    .zip(lowest)
                    .is_some_and(|(value, lowest)| value > lowest)
                {
                    continue;
                }
                lowest = value.as_integer();
                self.set(&key, value, SettingSource::Environment(variable), &origin)?;
            }
        }
        Ok(())
    }

    /// Reads text from the environment or a flag as the type that the key takes.
    pub(crate) fn typed(
        spec: &SettingSpec,
        key: &str,
        text: &str,
        origin: &str,
    ) -> Result<Value, ConfigError> {
        let wrong = |expected| ConfigError::WrongType {
            origin: origin.to_owned(),
            key: key.to_owned(),
            expected,
        };
        Ok(match spec.default {
            DefaultValue::Whole(_) => {
                Value::Integer(text.parse().map_err(|_| wrong("a whole number"))?)
            }
            DefaultValue::Fraction(_) => Value::Float(text.parse().map_err(|_| wrong("a number"))?),
            DefaultValue::Bool(_) => {
                Value::Boolean(text.parse().map_err(|_| wrong("true or false"))?)
            }
            DefaultValue::List(_) if spec.is_command => {
                let words = split_words(text).map_err(|problem| ConfigError::NotWords {
                    origin: origin.to_owned(),
                    problem,
                })?;
                Value::Array(words.into_iter().map(Value::from).collect())
            }
            DefaultValue::List(_) => Value::Array(
                text.split(',')
                    .map(|item| Value::from(item.trim()))
                    .collect(),
            ),
            DefaultValue::Table => {
                return Err(wrong("a table of texts, which only a file can hold"));
            }
            DefaultValue::Text(_) => Value::from(text),
        })
    }

    fn set(
        &mut self,
        key: &str,
        value: Value,
        source: SettingSource,
        origin: &str,
    ) -> Result<(), ConfigError> {
        let spec = spec_of(key).ok_or_else(|| self.unknown_key(key, origin))?;
        let wrong = |expected| ConfigError::WrongType {
            origin: origin.to_owned(),
            key: key.to_owned(),
            expected,
        };
        let value = match (spec.default, value) {
            (DefaultValue::Fraction(_), Value::Integer(whole)) => Value::Float(whole as f64),
            (default, value) if default.to_value().same_type(&value) => value,
            (default, _) => return Err(wrong(default.type_name())),
        };
        if matches!(&value, Value::Float(number) if !number.is_finite()) {
            return Err(wrong("a number that has an end"));
        }
        if matches!(&value, Value::Integer(number) if *number < 0) {
            return Err(wrong("a whole number, zero or larger"));
        }
        if matches!(&value, Value::Array(items) if !items.iter().all(Value::is_str)) {
            return Err(wrong("a list of texts"));
        }
        if matches!(&value, Value::Table(items) if !items.iter().all(|(_, item)| item.is_str())) {
            return Err(wrong("a table of texts"));
        }
        self.fill_template(spec.key, key);
        self.settings
            .insert(key.to_owned(), Setting { value, source });
        Ok(())
    }

    /// Gives a table that a user names its defaults.
    fn fill_template(&mut self, pattern: &str, key: &str) {
        let Some(((table, _), name)) = pattern.split_once(".*.").zip(name_in(pattern, key)) else {
            return;
        };
        for spec in specs() {
            if let Some(field) = spec.key.strip_prefix(&format!("{table}.*.")) {
                let setting = Setting {
                    value: spec.default.to_value(),
                    source: SettingSource::Default,
                };
                self.settings
                    .entry(format!("{table}.{name}.{field}"))
                    .or_insert(setting);
            }
        }
    }

    pub(crate) fn unknown_key(&self, key: &str, origin: &str) -> ConfigError {
        let nearest = self
            .settings
            .keys()
            .map(|known| (distance(known, key), known))
            .min();
        let nearest = nearest
            .filter(|(distance, _)| *distance <= key.len() / 2)
            .map(|(_, known)| known.clone());
        ConfigError::UnknownKey {
            origin: origin.to_owned(),
            key: key.to_owned(),
            nearest,
        }
    }
}

fn project_may_set(setter: Setter, value: &Value) -> bool {
    match setter {
        Setter::Anyone | Setter::ProjectMayLower => true,
        Setter::UserUnlessLoopback => value.as_str().is_some_and(is_loopback_url),
        Setter::User => false,
    }
}

/// Whether a URL can only reach this machine.
fn is_loopback_url(url: &str) -> bool {
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    let authority = rest
        .and_then(|rest| rest.split(['/', '?', '#', '\\']).next())
        .unwrap_or_default();
    let host = authority
        .strip_suffix(|c: char| c.is_ascii_digit())
        .map_or(authority, |_| {
            authority
                .rsplit_once(':')
                .filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
                .map_or(authority, |(host, _)| host)
        });
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

fn parse(origin: &str, text: &str) -> Result<toml::Table, ConfigError> {
    text.parse()
        .map_err(|error: toml::de::Error| ConfigError::Syntax {
            origin: origin.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })
}

/// Every leaf of a table with its dotted key; what takes a table is a leaf. Names that themselves hold a dot keep it; no key of ours has one.
fn flatten(table: toml::Table) -> Vec<(String, Value)> {
    let mut leaves = Vec::new();
    let mut open: Vec<(String, Value)> = table.into_iter().collect();
    while let Some((key, value)) = open.pop() {
        match value {
            Value::Table(inner)
                if spec_of(&key).is_none_or(|spec| spec.default != DefaultValue::Table) =>
            {
                open.extend(
                    inner
                        .into_iter()
                        .map(|(name, value)| (format!("{key}.{name}"), value)),
                )
            }
            leaf => leaves.push((key, leaf)),
        }
    }
    leaves.sort_by(|a, b| a.0.cmp(&b.0));
    leaves
}

/// The number of edits between two keys; only ever run on keys a person typed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(80).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use crucible_host::fs::FsError;

    use super::*;
    use crate::error::display_file;
    use crate::settings::Settings;

    fn load(
        project: &str,
        env: &[(&str, &str)],
        flags: &[(&str, String)],
    ) -> Result<Settings, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        crucible_host::fs::write_atomic(&path, project.as_bytes()).unwrap();
        let files = ConfigFiles {
            project: Some(path),
            user: dir.path().join("user.toml"),
            over: Vec::new(),
        };
        Settings::load(
            &files,
            &Environment::from_pairs(env.iter().copied(), "/"),
            flags,
        )
    }

    #[test]
    fn flag_overrides_environment_overrides_file_overrides_default() {
        let file = "[llm]\nprovider = \"file\"\n";
        let at = |config: &Settings| {
            (
                config.llm.provider.clone().unwrap_or("-".to_owned()),
                config.source("llm.provider").unwrap().to_string(),
            )
        };
        assert_eq!(
            at(&load("", &[], &[]).unwrap()),
            ("-".into(), "default".into())
        );
        assert_eq!(at(&load(file, &[], &[]).unwrap()).0, "file");
        let env = [("CRUCIBLE_LLM_PROVIDER", "env")];
        assert_eq!(
            at(&load(file, &env, &[]).unwrap()),
            ("env".into(), "environment CRUCIBLE_LLM_PROVIDER".into())
        );
        let flags = [("llm.provider", "flag".to_owned())];
        assert_eq!(
            at(&load(file, &env, &flags).unwrap()),
            ("flag".into(), "flag --provider".into())
        );
        let weak = load("", &[], &[("sandbox.strength", "off".to_owned())]).unwrap();
        assert_eq!(
            weak.source("sandbox.strength").unwrap().to_string(),
            "flag --sandbox"
        );
    }

    #[test]
    fn named_tables_use_template_and_check_types() {
        let config = load("[gates.unit]\ncommand = [\"make\", \"test\"]\n", &[], &[]).unwrap();
        assert_eq!(config.gates.keys().collect::<Vec<_>>(), ["unit"]);
        assert_eq!(config.gates["unit"].command, ["make", "test"]);
        assert_eq!(config.gates["unit"].timeout_s, 600);
        for bad in [
            "[run]\nmax_iterations = \"3\"",
            "[run]\nmax_iterations = -1",
            "[gates.x]\ncommand = [1]",
            "[run",
        ] {
            assert!(load(bad, &[], &[]).is_err(), "{bad}");
        }
        let error = load("[run]\nmax_iteration = 3", &[], &[])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("did you mean `run.max_iterations`"),
            "{error}"
        );
        assert!(load("", &[("CRUCIBLE_RUN_MAX_ITERATIONS", "many")], &[]).is_err());
    }

    #[test]
    fn table_of_texts_is_set_as_a_whole() {
        let file =
            "[gates.x]\ncommand = [\"a\"]\n[gates.x.env]\ncommand = \"b\"\n\"a.b\" = \"c\"\n";
        let config = load(file, &[], &[]).unwrap();
        assert_eq!(config.gates.keys().collect::<Vec<_>>(), ["x"]);
        let expected =
            [("a.b", "c"), ("command", "b")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(config.gates["x"].env, expected.into());
        assert_eq!(
            load("[gates.x]\ncommand = [\"a\"]", &[], &[])
                .unwrap()
                .gates["x"]
                .env,
            BTreeMap::new()
        );
        for bad in [
            "env = { A = 1 }",
            "env = { A = { B = \"c\" } }",
            "env = [\"A=b\"]",
            "env = \"A=b\"",
        ] {
            let error = load(&format!("[gates.x]\n{bad}"), &[], &[])
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("`gates.x.env` takes a table of texts"),
                "{bad}: {error}"
            );
        }
        let variable = [("CRUCIBLE_GATES_X_ENV", "A=b")];
        assert!(
            load(file, &variable, &[])
                .unwrap_err()
                .to_string()
                .contains("only a file can hold")
        );
    }

    #[test]
    fn a_projects_file_cannot_open_the_walls() {
        for bad in [
            "[sandbox]\nstrength = \"off\"",
            "[llm.gateway]\nbase_url = \"https://collector.example/v1\"",
            "[llm.gateway]\nbase_url = \"http://localhost@collector.example/v1\"",
            "[llm.gateway]\nbase_url = \"http://localhost.collector.example:80/v1\"",
            "[llm.gateway]\nbase_url = \"http://127.0.0.1:80@collector.example:80/v1\"",
        ] {
            assert!(
                matches!(load(bad, &[], &[]), Err(ConfigError::NotForProjects { .. })),
                "{bad}"
            );
        }
        let elsewhere = "[llm.claude-cli]\nbase_url = \"https://collector.example\"";
        assert!(matches!(
            load(elsewhere, &[], &[]),
            Err(ConfigError::NotForProjects { .. })
        ));
        for provider in ["gateway", "claude-cli"] {
            let content = format!("[llm.{provider}]\nbase_url = \"http://localhost:9000/v1\"");
            let text = load(&content, &[], &[])
                .unwrap()
                .provider(provider)
                .base_url;
            assert_eq!(text.as_deref(), Some("http://localhost:9000/v1"));
        }
    }

    #[test]
    fn project_settings_are_distinguished_from_user_settings() {
        let text = "[llm.gateway]\nbase_url = \"http://localhost:9000/v1\"";
        let key = "llm.gateway.base_url";
        assert!(load(text, &[], &[]).unwrap().is_of_project(key));
        assert!(!load("", &[], &[]).unwrap().is_of_project(key));
        let own = [("CRUCIBLE_GATEWAY_BASE_URL", "http://localhost:9001/v1")];
        assert!(
            !load(text, &own, &[]).unwrap().is_of_project(key),
            "the user's word counts"
        );
        let dir = tempfile::tempdir().unwrap();
        let user = dir.path().join("user.toml");
        crucible_host::fs::write_atomic(&user, text.as_bytes()).unwrap();
        let env = Environment::from_pairs([("HOME", "/")], "/");
        let files = ConfigFiles {
            user,
            ..ConfigFiles::default()
        };
        assert!(
            !Settings::load(&files, &env, &[])
                .unwrap()
                .is_of_project(key)
        );
    }

    #[test]
    fn project_file_lowers_limits_and_never_raises_them() {
        assert_eq!(
            load("[run]\nmax_iterations = 2", &[], &[])
                .unwrap()
                .run
                .max_iterations,
            2
        );
        let raised = load("[run]\nmax_iterations = 5000", &[], &[]).unwrap_err();
        assert!(matches!(raised, ConfigError::OnlyLower { .. }));
        let text = raised.to_string();
        assert!(
            text.contains("may lower `run.max_iterations`, not raise it; it is 4"),
            "{text}"
        );
        let own = [("CRUCIBLE_RUN_MAX_ITERATIONS", "9")];
        assert_eq!(load("", &own, &[]).unwrap().run.max_iterations, 9);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out pipes and links")]
    fn unreadable_settings_file_is_error_not_empty_settings() {
        let temp_dir = tempfile::tempdir().unwrap();
        let (home, project) = (
            temp_dir.path().join("home"),
            temp_dir.path().join("project"),
        );
        let other_path = project.join(".crucible/config.toml");
        let own = home.join(".config/crucible/config.toml");
        let env = Environment::from_pairs([("HOME", &home)], "/");
        let read = || Settings::load(&ConfigFiles::discover(&env, &project), &env, &[]);
        for place in [&other_path, &own] {
            let parent = place.parent().unwrap();
            crucible_host::fs::create_dir_all(parent).unwrap();
            assert!(read().is_ok(), "nothing by that name");

            rustix::fs::mkfifoat(
                rustix::fs::CWD,
                place,
                rustix::fs::Mode::from_raw_mode(0o600),
            )
            .unwrap();
            let message = read().unwrap_err().to_string();
            assert!(
                message.contains("it is not a regular file") && message.contains("config.toml"),
                "{message}"
            );
            std::fs::remove_file(place).unwrap();
            crucible_host::fs::create_dir_all(place).unwrap();
            assert!(
                read()
                    .unwrap_err()
                    .to_string()
                    .contains("it is not a regular file")
            );
            std::fs::remove_dir(place).unwrap();
            std::os::unix::fs::symlink("nowhere", place).unwrap();
            let is_refused = |error: &FsError| {
                if place == &own {
                    error.is_not_found()
                } else {
                    error.is_link()
                }
            };
            assert!(
                matches!(read(), Err(ConfigError::Fs(error)) if is_refused(&error)),
                "it leads nowhere"
            );
            std::fs::remove_file(place).unwrap();
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out links")]
    fn project_file_behind_a_link_is_refused_unread() {
        let temp_dir = tempfile::tempdir().unwrap();
        let (home, project) = (
            temp_dir.path().join("home"),
            temp_dir.path().join("project"),
        );
        let env = Environment::from_pairs([("HOME", &home)], "/");
        let read = || Settings::load(&ConfigFiles::discover(&env, &project), &env, &[]);
        let private = temp_dir.path().join("private/config.toml");
        crucible_host::fs::create_dir_all(private.parent().unwrap()).unwrap();
        crucible_host::fs::create_dir_all(&project.join(".crucible")).unwrap();
        crucible_host::fs::create_dir_all(&home.join(".config/crucible")).unwrap();
        let link = |target: &Path, at: &Path| std::os::unix::fs::symlink(target, at).unwrap();
        let refused = || {
            let error = read().unwrap_err();
            let message = error.to_string();
            assert!(
                matches!(error, ConfigError::Fs(error) if error.is_link()),
                "{message}"
            );
            assert!(
                !message.contains("hunter2") && !message.contains("max_iterations"),
                "{message}"
            );
        };

        for content in ["password: hunter2\n", "[run]\nmax_iterations = 1\n"] {
            crucible_host::fs::write_atomic(&private, content.as_bytes()).unwrap();
            link(&private, &project.join(".crucible/config.toml"));
            refused();
            std::fs::remove_file(project.join(".crucible/config.toml")).unwrap();
            std::fs::remove_dir(project.join(".crucible")).unwrap();
            link(private.parent().unwrap(), &project.join(".crucible"));
            refused();
            std::fs::remove_file(project.join(".crucible")).unwrap();
            crucible_host::fs::create_dir_all(&project.join(".crucible")).unwrap();
        }

        // What the user links to is the user's own choice, and so is a way to the project that holds a link.
        link(&private, &home.join(".config/crucible/config.toml"));
        assert_eq!(read().unwrap().run.max_iterations, 1);
        std::fs::remove_file(home.join(".config/crucible/config.toml")).unwrap();
        crucible_host::fs::write_atomic(
            &project.join(".crucible/config.toml"),
            b"[run]\nmax_iterations = 2\n",
        )
        .unwrap();
        link(&project, &temp_dir.path().join("way"));
        let files = ConfigFiles::discover(&env, &temp_dir.path().join("way"));
        assert_eq!(
            Settings::load(&files, &env, &[])
                .unwrap()
                .run
                .max_iterations,
            2
        );
    }

    #[test]
    fn project_file_never_counts_as_users_without_home() {
        for pairs in [
            vec![],
            vec![("HOME", "relh")],
            vec![("HOME", ""), ("XDG_CONFIG_HOME", "x")],
        ] {
            let env = Environment::from_pairs(pairs, "/");
            assert_eq!(
                ConfigFiles::discover(&env, Path::new("/")).user,
                PathBuf::new()
            );
        }
        assert!(display_file(Path::new("")).contains("set HOME"));
    }

    #[test]
    fn price_name_may_contain_dots() {
        let read = |project: &str, user: &str| {
            let temp_dir = tempfile::tempdir().unwrap();
            let (own, other_path) = (
                temp_dir.path().join("user.toml"),
                temp_dir.path().join("project.toml"),
            );
            crucible_host::fs::write_atomic(&own, user.as_bytes()).unwrap();
            crucible_host::fs::write_atomic(&other_path, project.as_bytes()).unwrap();
            let files = ConfigFiles {
                project: Some(other_path),
                user: own,
                over: Vec::new(),
            };
            let env = Environment::from_pairs([("HOME", "/")], "/");
            Settings::load(&files, &env, &[])
        };
        let price = "[llm.prices.\"openai/gpt-4.1\"]\ninput = 2\n";
        let config = read("", price).unwrap();
        assert_eq!(config.prices.keys().collect::<Vec<_>>(), ["openai/gpt-4.1"]);
        assert_eq!(config.prices["openai/gpt-4.1"].input, 2.0);
        assert_eq!(config.prices["openai/gpt-4.1"].output, -1.0);
        assert!(matches!(
            read(price, ""),
            Err(ConfigError::NotForProjects { .. })
        ));

        let limit = |dollars: &str| format!("[llm.budget]\ndollars = {dollars}\n");
        assert!(read(&limit("0.5"), "").is_ok(), "no limit was set before");
        assert!(read(&limit("0.5"), &limit("1.0")).is_ok());
        for looser in ["2.0", "0.0", "nan", "inf"] {
            let refused = read(&limit(looser), &limit("1.0"));
            assert!(
                matches!(refused, Err(ConfigError::OnlyLower { .. })),
                "{looser}"
            );
        }
    }

    #[test]
    fn a_variable_that_sets_nothing_is_named() {
        let env = [
            ("CRUCIBLE_RUN_MAX_ITERATIONS", "2"),
            ("CRUCIBLE_RUN_ITERATIONS", "2"),
            ("CRUCIBLE_SKIP_LLM_TESTS", "1"),
            ("CRUCIBLE_HOME", "/x"),
            ("HOME", "/"),
        ];
        let config = load("", &env, &[]).unwrap();
        let env = Environment::from_pairs(env.iter().copied(), "/");
        let unread = ["CRUCIBLE_RUN_ITERATIONS", "CRUCIBLE_SKIP_LLM_TESTS"];
        assert_eq!(config.unread_variables(&env), unread);
    }

    #[test]
    fn lower_of_both_call_budget_names_applies() {
        let calls = |env: &[(&str, &str)]| {
            let temp_dir = tempfile::tempdir().unwrap();
            let files = ConfigFiles {
                user: temp_dir.path().join("none.toml"),
                ..ConfigFiles::default()
            };
            let env = Environment::from_pairs(env.iter().copied(), "/");
            let config = Settings::load(&files, &env, &[]).unwrap();
            let unread = config.unread_variables(&env);
            assert!(unread.is_empty(), "{unread:?}");
            config.budget.calls
        };
        let (first, second) = ("CRUCIBLE_OPENROUTER_BUDGET", "CRUCIBLE_LLM_BUDGET_CALLS");
        assert_eq!(calls(&[(second, "3")]), 3);
        assert_eq!(calls(&[(first, "5"), (second, "3")]), 3);
        assert_eq!(calls(&[(first, "2"), (second, "3")]), 2);
    }

    #[test]
    fn strategy_can_be_set_by_short_variable() {
        let env = [("CRUCIBLE_EXECUTION_STRATEGY", "external_tool")];
        let temp_dir = tempfile::tempdir().unwrap();
        let files = ConfigFiles {
            user: temp_dir.path().join("none.toml"),
            ..ConfigFiles::default()
        };
        let env = Environment::from_pairs(env, "/");
        let config = Settings::load(&files, &env, &[]).unwrap();
        assert_eq!(
            config.llm.execution_strategy.as_deref(),
            Some("external_tool")
        );
        assert!(config.unread_variables(&env).is_empty());
    }
}
