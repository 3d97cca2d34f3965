//! The layered configuration: flag, environment, project file, user file, default.
//!
//! One commented TOML text holds every key with its default; it is the schema, too. A key that is not in it
//! is refused with the nearest one that is, and a value must have the type of its default. A table named
//! `"*"` in the defaults is a template for tables that users name themselves, such as gates.
//!
//! What always holds: every effective value knows its source; a project's own file, which may come with a
//! cloned repository, can neither weaken the sandbox nor send a key or a prompt to another machine nor allow models to be paid
//! for ([`ConfigError::NotForProjects`]), nor loosen a limit ([`ConfigError::OnlyLower`]); those settings come from the
//! user's file, the environment or a flag.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use crucible_model::ByteLimit;
use serde::Serialize;
use toml::Value;

use crate::env::Environment;
use crate::fs::{FsError, read_beneath, read_regular_up_to};
use crate::words::{WordsError, split_words};

/// Where a project has its settings.
const PROJECT_FILE: &str = ".crucible/config.toml";
/// Configuration files are small; anything larger is a mistake or an attack.
const MAX_FILE: ByteLimit = ByteLimit(1024 * 1024);

/// Variables whose names do not follow from their keys (`CRUCIBLE_` and the key in capitals).
const VARIABLES: [(&str, &str); 6] = [
    ("paths.runs_root", "CRUCIBLE_RUNS_ROOT"),
    ("llm.budget.calls", "CRUCIBLE_OPENROUTER_BUDGET"),
    ("sandbox.strength", "CRUCIBLE_SANDBOX"),
    ("dispatch.plan_command", "SDDAI_PLAN_CMD"),
    ("dispatch.patch_command", "SDDAI_PATCH_CMD"),
    ("dispatch.agent_command", "SDDAI_AGENT_CMD"),
];

/// Second names of a key's variable. Of two numbers the lower counts, of two texts the second name's.
const SECOND_VARIABLES: [(&str, &str); 2] = [
    // The name that follows from the key: what somebody takes for a limit has to be one.
    ("llm.budget.calls", "CRUCIBLE_LLM_BUDGET_CALLS"),
    ("llm.execution_strategy", "CRUCIBLE_EXECUTION_STRATEGY"),
];

/// Lists that are commands: a variable holds such a one in words, as on a command line, and not between commas.
const COMMANDS: [&str; 3] = ["dispatch.plan_command", "dispatch.patch_command", "dispatch.agent_command"];

/// Keys that take a table of texts with names of the user's own, such as variables. They are set as a whole, in a file.
const TABLES: [&str; 1] = ["gates.*.env"];

/// Variables that are read elsewhere and set no key.
const OTHER_VARIABLES: [&str; 2] = ["CRUCIBLE_HOME", "CRUCIBLE_CLOCK"];

/// Keys that decide where data and keys go, who may be paid or how strong the walls are.
const NOT_FOR_PROJECTS: [&str; 33] = [
    "paths.runs_root",
    "sandbox.strength",
    "sandbox.memory_mib",
    "sandbox.processes",
    "crawl.clone_base",
    "hooks.*.sandbox",
    "llm.*.binary",
    "llm.*.api_key_env",
    "llm.*.base_url",
    // The larger it is, the more is sent and paid for.
    "llm.*.context_window",
    // A limit in money is worth what the prices are worth.
    "llm.prices.*.input",
    "llm.prices.*.output",
    "llm.prices.*.date",
    "llm.prices.*.source",
    // A list allows models that the question's asker did not name and pays for.
    "council.fallback_models",
    "council.hinted_models",
    // Pages are words of strangers: whose may be read is the user's to say.
    "find.find_mode",
    "find.allow_domains",
    // A cloned repository must not choose what runs, with which keys and with which walls.
    "dispatch.plan_command",
    "dispatch.patch_command",
    "dispatch.agent_command",
    "dispatch.agent_network",
    "dispatch.agent_env",
    // Nor that a gate counts which was not seen to test anything.
    "gates.*.canary",
    // Nor what its skills are written and run by, nor when they are trusted.
    "forge.agent_command",
    "forge.agent_network",
    "forge.agent_env",
    "forge.python",
    "forge.site_packages",
    "forge.tools",
    "forge.examples",
    "forge.demote_after_failures",
    "forge.advise",
];

/// Limits that a project's file may tighten and not loosen: what they cap is the user's money and machine. Zero stands
/// for "no limit" where a key allows it.
const ONLY_LOWER: [&str; 31] = [
    "llm.budget.calls",
    "llm.budget.tokens",
    "llm.budget.dollars",
    "llm.max_cli_timeout_s",
    "llm.max_http_timeout_s",
    "llm.*.max_tokens",
    "run.max_iterations",
    "run.max_files",
    "run.max_total_bytes",
    "run.max_file_requests",
    "patch.max_files",
    "patch.max_added_lines",
    "council.calls",
    "council.max_query_bytes",
    "council.max_context_bytes",
    "council.max_answer_bytes",
    "council.summary_chars",
    "spec.attempts",
    "spec.phase_timeout_s",
    "spec.max_packet_bytes",
    "spec.max_packet_lines",
    "find.max_queries",
    "find.max_pages",
    "dispatch.max_outbox_prompts",
    "dispatch.agent_timeout_s",
    "forge.agent_timeout_s",
    "forge.agent_disk_mib",
    "forge.run_timeout_s",
    "forge.gate_timeout_s",
    "forge.advice_prompt_chars",
    "forge.advice_timeout_s",
];

/// Flags whose names do not follow from their keys (the last word of the key).
const FLAGS: [(&str, &str); 5] = [
    ("sandbox.strength", "--sandbox"),
    ("council.default_model", "--model"),
    ("council.fallback_models", "--fallback-model"),
    ("council.hinted_models", "--hint-model"),
    ("council.calls", "--max-calls"),
];

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

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file could not be read.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// A file is not TOML.
    #[error("{origin} is not TOML: {message}")]
    Syntax {
        /// Which file.
        origin: String,
        /// What the parser said.
        message: String,
    },
    /// There is no such key.
    #[error("{origin}: there is no setting `{key}`{}; `crucible config show` lists them", nearest.as_ref().map(|n| format!(", did you mean `{n}`?")).unwrap_or_default())]
    UnknownKey {
        /// Where it was named.
        origin: String,
        /// The key.
        key: String,
        /// The existing key that looks most like it.
        nearest: Option<String>,
    },
    /// A command in a variable cannot be split into words.
    #[error("{origin}: this is no command: {problem}")]
    NotWords {
        /// Where it was set.
        origin: String,
        /// What is wrong with it.
        problem: WordsError,
    },
    /// The value has another type than its default.
    #[error("{origin}: `{key}` takes {expected}")]
    WrongType {
        /// Where it was set.
        origin: String,
        /// The key.
        key: String,
        /// What it takes.
        expected: &'static str,
    },
    /// A project's file sets what only the user may.
    #[error(
        "{origin}: `{key}` is not for a project's file, which may come from somebody else; set it in your own {} or by {variable}",
        named(user_file)
    )]
    NotForProjects {
        /// The project's file.
        origin: String,
        /// The key.
        key: String,
        /// Where the user can set it.
        user_file: PathBuf,
        /// The variable that sets it.
        variable: String,
    },
    /// A project's file loosens a limit.
    #[error(
        "{origin}: a project's file may lower `{key}`, not raise it; it is {limit}: set it in your own {} or by {variable}",
        named(user_file)
    )]
    OnlyLower {
        /// The project's file.
        origin: String,
        /// The key.
        key: String,
        /// The limit that holds without the project's file.
        limit: String,
        /// Where the user can set it.
        user_file: PathBuf,
        /// The variable that sets it.
        variable: String,
    },
}

/// The effective configuration of one command.
#[derive(Debug, Clone)]
pub struct Config {
    settings: BTreeMap<String, Setting>,
    templates: Vec<(String, Value)>,
    /// The project's file, where there is one.
    project: Option<PathBuf>,
}

/// The files a configuration is made of, beside its defaults.
#[derive(Debug, Clone, Default)]
pub struct ConfigFiles {
    /// `.crucible/config.toml` of the project.
    pub project: Option<PathBuf>,
    /// The user's own file; used where it exists. Empty where the user has no home.
    pub user: PathBuf,
    /// Further files of the user, each above the environment and the files before it; below flags.
    pub over: Vec<PathBuf>,
}

impl ConfigFiles {
    /// Looks for the project's file from `start` upward, to the directory that holds a `.git` or to the root.
    #[must_use]
    pub fn discover(env: &Environment, start: &Path) -> Self {
        let mut project = None;
        for dir in start.ancestors() {
            let candidate = dir.join(PROJECT_FILE);
            if stands(&candidate) {
                project = Some(candidate);
                break;
            }
            if dir.join(".git").exists() {
                break;
            }
        }
        let base = env.get("XDG_CONFIG_HOME").filter(|dir| dir.starts_with('/')).map(PathBuf::from);
        let base = base.or_else(|| env.home().map(|home| home.join(".config")));
        // Without a home there is no such file: a name in the working directory would be the project's.
        let user = base.map(|base| base.join("crucible/config.toml")).unwrap_or_default();
        Self { project, user, over: Vec::new() }
    }
}

impl Config {
    /// Reads every layer and checks every key.
    ///
    /// `flags` are pairs of a key and its value as given on the command line.
    ///
    /// # Errors
    ///
    /// Fails on the first file that cannot be read or value that is not allowed, naming where it stands.
    pub fn load(
        defaults: &str,
        files: &ConfigFiles,
        env: &Environment,
        flags: &[(&str, String)],
    ) -> Result<Self, ConfigError> {
        let mut config =
            Self { settings: BTreeMap::new(), templates: Vec::new(), project: files.project.clone() };
        for (key, value) in flatten(parse("the defaults", defaults)?) {
            if key.contains(".*.") {
                config.templates.push((key, value));
            } else {
                config.settings.insert(key, Setting { value, source: SettingSource::Default });
            }
        }
        if stands(&files.user) {
            config.read_file(&files.user, None)?;
        }
        if let Some(project) = &files.project {
            config.read_file(project, Some(&files.user))?;
        }
        config.read_environment(env)?;
        for file in &files.over {
            config.read_file(file, None)?;
        }
        for (key, text) in flags {
            let origin = flag_of(key);
            let value = config.typed(key, text, &origin)?;
            config.set(key, value, SettingSource::Flag(origin.clone()), &origin)?;
        }
        Ok(config)
    }

    /// A text, or `None` where it is not set.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.settings.get(key)?.value.as_str().filter(|text| !text.is_empty())
    }

    /// A whole number, zero or larger; a negative one counts as zero.
    #[must_use]
    pub fn number(&self, key: &str) -> u64 {
        let value = self.settings.get(key).and_then(|setting| setting.value.as_integer()).unwrap_or_default();
        u64::try_from(value).unwrap_or_default()
    }

    /// A boolean setting; `false` if it is not set.
    #[must_use]
    pub fn is_true(&self, key: &str) -> bool {
        self.settings.get(key).and_then(|setting| setting.value.as_bool()).unwrap_or_default()
    }

    /// What a whole number is in a table that nobody has named yet, such as `gates.*.timeout_s`.
    #[must_use]
    pub fn template_number(&self, pattern: &str) -> u64 {
        let template = self.templates.iter().find(|(known, _)| known == pattern);
        let value = template.and_then(|(_, value)| value.as_integer()).unwrap_or_default();
        u64::try_from(value).unwrap_or_default()
    }

    /// A fraction.
    #[must_use]
    pub fn fraction(&self, key: &str) -> Option<f64> {
        let value = &self.settings.get(key)?.value;
        value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
    }

    /// A list of texts.
    #[must_use]
    pub fn list(&self, key: &str) -> Vec<String> {
        let list = self.settings.get(key).and_then(|setting| setting.value.as_array());
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// A table of texts, by name.
    #[must_use]
    pub fn table(&self, key: &str) -> BTreeMap<String, String> {
        let table = self.settings.get(key).and_then(|setting| setting.value.as_table());
        let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        table.into_iter().flatten().filter_map(text).collect()
    }

    /// The names that users gave to tables below `table`, such as the gates.
    #[must_use]
    pub fn names_below(&self, table: &str) -> Vec<String> {
        let prefix = format!("{table}.*.");
        let patterns: Vec<&str> = self
            .templates
            .iter()
            .map(|(pattern, _)| pattern.as_str())
            .filter(|p| p.starts_with(&prefix))
            .collect();
        let named = |key: &str| patterns.iter().find_map(|pattern| name_in(pattern, key)).map(str::to_owned);
        self.settings.keys().filter_map(|key| named(key)).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Where a value comes from.
    #[must_use]
    pub fn source(&self, key: &str) -> Option<&SettingSource> {
        self.settings.get(key).map(|setting| &setting.source)
    }

    /// Whether the project's file sets a value that counts: what somebody else may have written.
    #[must_use]
    pub fn is_of_project(&self, key: &str) -> bool {
        match self.source(key) {
            Some(SettingSource::File(path)) => self.project.as_ref() == Some(path),
            _ => false,
        }
    }

    /// The variables that begin with `CRUCIBLE_` and set nothing: a limit that somebody believes in and that does not hold.
    #[must_use]
    pub fn unread_variables(&self, env: &Environment) -> Vec<String> {
        let known: BTreeSet<String> = self.settings.keys().map(|key| variable_of(key)).collect();
        let ours =
            env.pairs().filter_map(|(name, _)| name.to_str()).filter(|name| name.starts_with("CRUCIBLE_"));
        let is_second = |name: &str| SECOND_VARIABLES.iter().any(|(_, second)| *second == name);
        ours.filter(|name| !known.contains(*name) && !OTHER_VARIABLES.contains(name) && !is_second(name))
            .map(str::to_owned)
            .collect()
    }

    /// Every effective value, by key.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.settings.iter().map(|(key, setting)| (key.as_str(), setting))
    }

    fn read_file(&mut self, path: &Path, as_project_of: Option<&Path>) -> Result<(), ConfigError> {
        let origin = path.display().to_string();
        let bytes = match as_project_of {
            Some(_) => read_of_project(path)?,
            None => read_regular_up_to(path, MAX_FILE)?,
        };
        let text = String::from_utf8(bytes)
            .map_err(|_| ConfigError::Syntax { origin: origin.clone(), message: "it is not UTF-8".into() })?;
        for (key, value) in flatten(parse(&origin, &text)?) {
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
        let (origin, user_file, variable) = (origin.to_owned(), user_file.to_owned(), variable_of(key));
        if is_not_for_projects(key, value) {
            return Err(ConfigError::NotForProjects { origin, key: key.to_owned(), user_file, variable });
        }
        match self.loosened(key, value) {
            Some(limit) => {
                Err(ConfigError::OnlyLower { origin, key: key.to_owned(), limit, user_file, variable })
            }
            None => Ok(()),
        }
    }

    /// The limit that holds so far, where the value would be larger than it.
    fn loosened(&self, key: &str, value: &Value) -> Option<String> {
        let listed = ONLY_LOWER.iter().any(|pattern| *pattern == key || matches_template(pattern, key));
        let now = &self.settings.get(key).filter(|_| listed)?.value;
        let unlimited = ["llm.budget.tokens", "llm.budget.dollars"].contains(&key);
        let limit = |value: &Value| {
            let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
            match number {
                Some(number) if unlimited && number == 0.0 => f64::INFINITY,
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
            let second = SECOND_VARIABLES.iter().filter(|(known, _)| *known == key);
            let second = second.map(|(_, variable)| (*variable).to_owned());
            let mut lowest: Option<i64> = None;
            for variable in std::iter::once(variable_of(&key)).chain(second) {
                let Some(text) = env.get(&variable).filter(|text| !text.is_empty()) else { continue };
                let origin = format!("environment {variable}");
                let value = self.typed(&key, text, &origin)?;
                if value.as_integer().zip(lowest).is_some_and(|(value, lowest)| value > lowest) {
                    continue;
                }
                lowest = value.as_integer();
                self.set(&key, value, SettingSource::Environment(variable), &origin)?;
            }
        }
        Ok(())
    }

    /// Reads text from the environment or a flag as the type that the key takes.
    fn typed(&self, key: &str, text: &str, origin: &str) -> Result<Value, ConfigError> {
        let wrong =
            |expected| ConfigError::WrongType { origin: origin.to_owned(), key: key.to_owned(), expected };
        let default = self.default_of(key).ok_or_else(|| self.unknown(key, origin))?;
        Ok(match default {
            Value::Integer(_) => Value::Integer(text.parse().map_err(|_| wrong("a whole number"))?),
            Value::Float(_) => Value::Float(text.parse().map_err(|_| wrong("a number"))?),
            Value::Boolean(_) => Value::Boolean(text.parse().map_err(|_| wrong("true or false"))?),
            Value::Array(_) if COMMANDS.contains(&key) => {
                let words = split_words(text)
                    .map_err(|problem| ConfigError::NotWords { origin: origin.to_owned(), problem })?;
                Value::Array(words.into_iter().map(Value::from).collect())
            }
            Value::Array(_) => Value::Array(text.split(',').map(|item| Value::from(item.trim())).collect()),
            Value::Table(_) => return Err(wrong("a table of texts, which only a file can hold")),
            Value::String(_) | Value::Datetime(_) => Value::from(text),
        })
    }

    fn set(
        &mut self,
        key: &str,
        value: Value,
        source: SettingSource,
        origin: &str,
    ) -> Result<(), ConfigError> {
        let default = self.default_of(key).ok_or_else(|| self.unknown(key, origin))?;
        let wrong =
            |expected| ConfigError::WrongType { origin: origin.to_owned(), key: key.to_owned(), expected };
        let value = match (&default, value) {
            (Value::Float(_), Value::Integer(whole)) => Value::Float(whole as f64),
            (default, value) if default.same_type(&value) => value,
            (default, _) => return Err(wrong(name_of_type(default))),
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
        if let Some((pattern, _)) = self.templates.iter().find(|(pattern, _)| matches_template(pattern, key))
        {
            self.fill_template(&pattern.clone(), key);
        }
        self.settings.insert(key.to_owned(), Setting { value, source });
        Ok(())
    }

    /// Gives a table that a user names the defaults of its template.
    fn fill_template(&mut self, pattern: &str, key: &str) {
        let Some((table, _)) = pattern.split_once(".*.") else {
            return;
        };
        let Some(name) = name_in(pattern, key) else {
            return;
        };
        for (template, default) in &self.templates {
            if let Some(field) = template.strip_prefix(&format!("{table}.*.")) {
                let setting = Setting { value: default.clone(), source: SettingSource::Default };
                self.settings.entry(format!("{table}.{name}.{field}")).or_insert(setting);
            }
        }
    }

    fn default_of(&self, key: &str) -> Option<Value> {
        let template = || self.templates.iter().find(|(pattern, _)| matches_template(pattern, key));
        self.settings.get(key).map(|setting| setting.value.clone()).or_else(|| Some(template()?.1.clone()))
    }

    fn unknown(&self, key: &str, origin: &str) -> ConfigError {
        let nearest = self.settings.keys().map(|known| (distance(known, key), known)).min();
        let nearest =
            nearest.filter(|(distance, _)| *distance <= key.len() / 2).map(|(_, known)| known.clone());
        ConfigError::UnknownKey { origin: origin.to_owned(), key: key.to_owned(), nearest }
    }
}

/// Whether anything has this name, be it what it may: what cannot be read, or is no regular file, is told when it is read, and
/// never taken for settings that nobody made.
fn stands(path: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), NotFound | NotADirectory),
    }
}

/// Reads a project's file. No link is followed there: it would have a cloned repository choose a file of the user's, whose lines an error
/// quotes.
fn read_of_project(path: &Path) -> Result<Vec<u8>, FsError> {
    let place = if path.ends_with(PROJECT_FILE) { PROJECT_FILE } else { "" };
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let root = path.ancestors().nth(if place.is_empty() { 1 } else { 2 }).unwrap_or(path);
    read_beneath(root, if place.is_empty() { name } else { place }, MAX_FILE)
}

/// The user's own file, for people.
fn named(user_file: &Path) -> String {
    if user_file.as_os_str().is_empty() {
        "configuration (set HOME: there is none without it)".to_owned()
    } else {
        user_file.display().to_string()
    }
}

/// The environment variable that sets a key.
#[must_use]
pub fn variable_of(key: &str) -> String {
    if let Some((_, variable)) = VARIABLES.iter().find(|(known, _)| *known == key) {
        return (*variable).to_owned();
    }
    let provider = key.strip_prefix("llm.").and_then(|rest| rest.strip_suffix(".base_url"));
    let name = provider.map_or_else(|| key.to_owned(), |provider| format!("{provider}.base_url"));
    format!("CRUCIBLE_{}", name.replace(['.', '-'], "_").to_uppercase())
}

/// The flag that sets a key, in every command that has it.
#[must_use]
pub fn flag_of(key: &str) -> String {
    if let Some((_, flag)) = FLAGS.iter().find(|(known, _)| *known == key) {
        return (*flag).to_owned();
    }
    format!("--{}", key.rsplit('.').next().unwrap_or(key).replace('_', "-"))
}

fn is_not_for_projects(key: &str, value: &Value) -> bool {
    let listed = NOT_FOR_PROJECTS.iter().any(|pattern| *pattern == key || matches_template(pattern, key));
    let stays_here = key.ends_with(".base_url") && value.as_str().is_some_and(is_loopback_url);
    listed && !stays_here
}

/// Whether a URL can only reach this machine.
fn is_loopback_url(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#', '\\']).next()).unwrap_or_default();
    let host = authority.strip_suffix(|c: char| c.is_ascii_digit()).map_or(authority, |_| {
        authority
            .rsplit_once(':')
            .filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
            .map_or(authority, |(host, _)| host)
    });
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

/// Whether a key is one of a template, `table.*.field`. The name between may hold dots, as the names of models do.
fn matches_template(pattern: &str, key: &str) -> bool {
    name_in(pattern, key).is_some()
}

/// The name that a user gave to the table of a key which is one of a template.
fn name_in<'k>(pattern: &str, key: &'k str) -> Option<&'k str> {
    let (table, field) = pattern.split_once(".*.")?;
    let name = key.strip_prefix(table)?.strip_prefix('.')?.strip_suffix(field)?.strip_suffix('.')?;
    (!name.is_empty()).then_some(name)
}

fn parse(origin: &str, text: &str) -> Result<toml::Table, ConfigError> {
    text.parse().map_err(|error: toml::de::Error| ConfigError::Syntax {
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
            Value::Table(inner) if !TABLES.iter().any(|pattern| matches_template(pattern, &key)) => {
                open.extend(inner.into_iter().map(|(name, value)| (format!("{key}.{name}"), value)))
            }
            leaf => leaves.push((key, leaf)),
        }
    }
    leaves.sort_by(|a, b| a.0.cmp(&b.0));
    leaves
}

fn name_of_type(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a text",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Array(_) => "a list of texts",
        Value::Datetime(_) => "an instant",
        Value::Table(_) => "a table of texts",
    }
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
    use super::*;

    const DEFAULTS: &str = r#"
        [llm]
        provider = ""
        [llm.gateway]
        base_url = "http://localhost:8000/v1"
        temperature = 0.3
        [llm.claude-cli]
        base_url = ""
        [run]
        max_iterations = 3
        [gates."*"]
        command = []
        env = {}
        timeout_s = 600
        [sandbox]
        strength = "required"
    "#;

    fn load(project: &str, env: &[(&str, &str)], flags: &[(&str, String)]) -> Result<Config, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        crate::fs::write_atomic(&path, project.as_bytes()).unwrap();
        let files = ConfigFiles { project: Some(path), user: dir.path().join("user.toml"), over: Vec::new() };
        Config::load(DEFAULTS, &files, &Environment::from_pairs(env.iter().copied(), "/"), flags)
    }

    #[test]
    fn a_flag_beats_the_environment_beats_the_file_beats_the_default() {
        let file = "[llm]\nprovider = \"file\"\n";
        let at = |config: &Config| {
            (
                config.text("llm.provider").unwrap_or("-").to_owned(),
                config.source("llm.provider").unwrap().to_string(),
            )
        };
        assert_eq!(at(&load("", &[], &[]).unwrap()), ("-".into(), "default".into()));
        assert_eq!(at(&load(file, &[], &[]).unwrap()).0, "file");
        let env = [("CRUCIBLE_LLM_PROVIDER", "env")];
        assert_eq!(
            at(&load(file, &env, &[]).unwrap()),
            ("env".into(), "environment CRUCIBLE_LLM_PROVIDER".into())
        );
        let flags = [("llm.provider", "flag".to_owned())];
        assert_eq!(at(&load(file, &env, &flags).unwrap()), ("flag".into(), "flag --provider".into()));
        let weak = load("", &[], &[("sandbox.strength", "off".to_owned())]).unwrap();
        assert_eq!(weak.source("sandbox.strength").unwrap().to_string(), "flag --sandbox");
    }

    #[test]
    fn named_tables_take_their_template_and_types_are_held() {
        let config = load("[gates.unit]\ncommand = [\"make\", \"test\"]\n", &[], &[]).unwrap();
        assert_eq!(config.names_below("gates"), ["unit"]);
        assert_eq!(config.list("gates.unit.command"), ["make", "test"]);
        assert_eq!(config.number("gates.unit.timeout_s"), 600);
        for bad in [
            "[run]\nmax_iterations = \"3\"",
            "[run]\nmax_iterations = -1",
            "[gates.x]\ncommand = [1]",
            "[run",
        ] {
            assert!(load(bad, &[], &[]).is_err(), "{bad}");
        }
        let error = load("[run]\nmax_iteration = 3", &[], &[]).unwrap_err().to_string();
        assert!(error.contains("did you mean `run.max_iterations`"), "{error}");
        assert!(load("", &[("CRUCIBLE_RUN_MAX_ITERATIONS", "many")], &[]).is_err());
    }

    #[test]
    fn table_of_texts_is_set_as_a_whole() {
        let file = "[gates.x]\ncommand = [\"a\"]\n[gates.x.env]\ncommand = \"b\"\n\"a.b\" = \"c\"\n";
        let config = load(file, &[], &[]).unwrap();
        assert_eq!(config.names_below("gates"), ["x"]);
        let expected = [("a.b", "c"), ("command", "b")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(config.table("gates.x.env"), expected.into());
        assert_eq!(
            load("[gates.x]\ncommand = [\"a\"]", &[], &[]).unwrap().table("gates.x.env"),
            BTreeMap::new()
        );
        for bad in ["env = { A = 1 }", "env = { A = { B = \"c\" } }", "env = [\"A=b\"]", "env = \"A=b\""] {
            let error = load(&format!("[gates.x]\n{bad}"), &[], &[]).unwrap_err().to_string();
            assert!(error.contains("`gates.x.env` takes a table of texts"), "{bad}: {error}");
        }
        let variable = [("CRUCIBLE_GATES_X_ENV", "A=b")];
        assert!(load(file, &variable, &[]).unwrap_err().to_string().contains("only a file can hold"));
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
            assert!(matches!(load(bad, &[], &[]), Err(ConfigError::NotForProjects { .. })), "{bad}");
        }
        let elsewhere = "[llm.claude-cli]\nbase_url = \"https://collector.example\"";
        assert!(matches!(load(elsewhere, &[], &[]), Err(ConfigError::NotForProjects { .. })));
        for provider in ["gateway", "claude-cli"] {
            let here = format!("[llm.{provider}]\nbase_url = \"http://localhost:9000/v1\"");
            let text =
                load(&here, &[], &[]).unwrap().text(&format!("llm.{provider}.base_url")).map(str::to_owned);
            assert_eq!(text.as_deref(), Some("http://localhost:9000/v1"));
        }
    }

    #[test]
    fn what_the_projects_file_sets_is_told_apart_from_what_the_user_sets() {
        let here = "[llm.gateway]\nbase_url = \"http://localhost:9000/v1\"";
        let key = "llm.gateway.base_url";
        assert!(load(here, &[], &[]).unwrap().is_of_project(key));
        assert!(!load("", &[], &[]).unwrap().is_of_project(key));
        let own = [("CRUCIBLE_GATEWAY_BASE_URL", "http://localhost:9001/v1")];
        assert!(!load(here, &own, &[]).unwrap().is_of_project(key), "the user's word counts");
        let dir = tempfile::tempdir().unwrap();
        let user = dir.path().join("user.toml");
        crate::fs::write_atomic(&user, here.as_bytes()).unwrap();
        let env = Environment::from_pairs([("HOME", "/")], "/");
        let files = ConfigFiles { user, ..ConfigFiles::default() };
        assert!(!Config::load(DEFAULTS, &files, &env, &[]).unwrap().is_of_project(key));
    }

    #[test]
    fn a_projects_file_lowers_limits_and_never_raises_them() {
        assert_eq!(load("[run]\nmax_iterations = 2", &[], &[]).unwrap().number("run.max_iterations"), 2);
        let raised = load("[run]\nmax_iterations = 5000", &[], &[]).unwrap_err();
        assert!(matches!(raised, ConfigError::OnlyLower { .. }));
        let text = raised.to_string();
        assert!(text.contains("may lower `run.max_iterations`, not raise it; it is 3"), "{text}");
        let own = [("CRUCIBLE_RUN_MAX_ITERATIONS", "9")];
        assert_eq!(load("", &own, &[]).unwrap().number("run.max_iterations"), 9);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out pipes and links")]
    fn what_stands_in_a_files_place_is_an_error_and_never_no_settings() {
        let room = tempfile::tempdir().unwrap();
        let (home, project) = (room.path().join("home"), room.path().join("project"));
        let theirs = project.join(".crucible/config.toml");
        let own = home.join(".config/crucible/config.toml");
        let env = Environment::from_pairs([("HOME", &home)], "/");
        let read = || Config::load(DEFAULTS, &ConfigFiles::discover(&env, &project), &env, &[]);
        for place in [&theirs, &own] {
            let parent = place.parent().unwrap();
            crate::fs::create_dir_all(parent).unwrap();
            assert!(read().is_ok(), "nothing by that name");

            rustix::fs::mkfifoat(rustix::fs::CWD, place, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
            let told = read().unwrap_err().to_string();
            assert!(told.contains("it is no regular file") && told.contains("config.toml"), "{told}");
            std::fs::remove_file(place).unwrap();
            crate::fs::create_dir_all(place).unwrap();
            assert!(read().unwrap_err().to_string().contains("it is no regular file"));
            std::fs::remove_dir(place).unwrap();
            std::os::unix::fs::symlink("nowhere", place).unwrap();
            let is_refused =
                |error: &FsError| if place == &own { error.is_not_found() } else { error.is_link() };
            assert!(matches!(read(), Err(ConfigError::Fs(error)) if is_refused(&error)), "it leads nowhere");
            std::fs::remove_file(place).unwrap();
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out links")]
    fn project_file_behind_a_link_is_refused_unread() {
        let room = tempfile::tempdir().unwrap();
        let (home, project) = (room.path().join("home"), room.path().join("project"));
        let env = Environment::from_pairs([("HOME", &home)], "/");
        let read = || Config::load(DEFAULTS, &ConfigFiles::discover(&env, &project), &env, &[]);
        let private = room.path().join("private/config.toml");
        crate::fs::create_dir_all(private.parent().unwrap()).unwrap();
        crate::fs::create_dir_all(&project.join(".crucible")).unwrap();
        crate::fs::create_dir_all(&home.join(".config/crucible")).unwrap();
        let link = |target: &Path, at: &Path| std::os::unix::fs::symlink(target, at).unwrap();
        let refused = || {
            let error = read().unwrap_err();
            let told = error.to_string();
            assert!(matches!(error, ConfigError::Fs(error) if error.is_link()), "{told}");
            assert!(!told.contains("hunter2") && !told.contains("max_iterations"), "{told}");
        };

        for content in ["password: hunter2\n", "[run]\nmax_iterations = 1\n"] {
            crate::fs::write_atomic(&private, content.as_bytes()).unwrap();
            link(&private, &project.join(".crucible/config.toml"));
            refused();
            std::fs::remove_file(project.join(".crucible/config.toml")).unwrap();
            std::fs::remove_dir(project.join(".crucible")).unwrap();
            link(private.parent().unwrap(), &project.join(".crucible"));
            refused();
            std::fs::remove_file(project.join(".crucible")).unwrap();
            crate::fs::create_dir_all(&project.join(".crucible")).unwrap();
        }

        // What the user links to is the user's own choice, and so is a way to the project that holds a link.
        link(&private, &home.join(".config/crucible/config.toml"));
        assert_eq!(read().unwrap().number("run.max_iterations"), 1);
        std::fs::remove_file(home.join(".config/crucible/config.toml")).unwrap();
        crate::fs::write_atomic(&project.join(".crucible/config.toml"), b"[run]\nmax_iterations = 2\n")
            .unwrap();
        link(&project, &room.path().join("way"));
        let files = ConfigFiles::discover(&env, &room.path().join("way"));
        assert_eq!(Config::load(DEFAULTS, &files, &env, &[]).unwrap().number("run.max_iterations"), 2);
    }

    #[test]
    fn without_a_home_no_file_of_the_project_is_the_users() {
        for pairs in [vec![], vec![("HOME", "relh")], vec![("HOME", ""), ("XDG_CONFIG_HOME", "x")]] {
            let env = Environment::from_pairs(pairs, "/");
            assert_eq!(ConfigFiles::discover(&env, Path::new("/")).user, PathBuf::new());
        }
        assert!(named(Path::new("")).contains("set HOME"));
    }

    #[test]
    fn a_name_may_hold_dots_and_a_limit_in_money_is_a_limit() {
        let defaults = "[llm.budget]\ndollars = 0.0\n[llm.prices.\"*\"]\ninput = -1.0\noutput = -1.0\n";
        let read = |project: &str, user: &str| {
            let room = tempfile::tempdir().unwrap();
            let (own, theirs) = (room.path().join("user.toml"), room.path().join("project.toml"));
            crate::fs::write_atomic(&own, user.as_bytes()).unwrap();
            crate::fs::write_atomic(&theirs, project.as_bytes()).unwrap();
            let files = ConfigFiles { project: Some(theirs), user: own, over: Vec::new() };
            let env = Environment::from_pairs([("HOME", "/")], "/");
            Config::load(defaults, &files, &env, &[])
        };
        let price = "[llm.prices.\"openai/gpt-4.1\"]\ninput = 2\n";
        let config = read("", price).unwrap();
        assert_eq!(config.names_below("llm.prices"), ["openai/gpt-4.1"]);
        assert_eq!(config.fraction("llm.prices.openai/gpt-4.1.input"), Some(2.0));
        assert_eq!(config.fraction("llm.prices.openai/gpt-4.1.output"), Some(-1.0));
        assert!(matches!(read(price, ""), Err(ConfigError::NotForProjects { .. })));

        let limit = |dollars: &str| format!("[llm.budget]\ndollars = {dollars}\n");
        assert!(read(&limit("0.5"), "").is_ok(), "no limit was set before");
        assert!(read(&limit("0.5"), &limit("1.0")).is_ok());
        for looser in ["2.0", "0.0", "nan", "inf"] {
            let refused = read(&limit(looser), &limit("1.0"));
            assert!(matches!(refused, Err(ConfigError::OnlyLower { .. })), "{looser}");
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
    fn the_budget_of_calls_is_set_by_both_of_its_names_and_the_lower_counts() {
        let calls = |env: &[(&str, &str)]| {
            let room = tempfile::tempdir().unwrap();
            let files = ConfigFiles { user: room.path().join("none.toml"), ..ConfigFiles::default() };
            let env = Environment::from_pairs(env.iter().copied(), "/");
            let config = Config::load("[llm.budget]\ncalls = 20\n", &files, &env, &[]).unwrap();
            let unread = config.unread_variables(&env);
            assert!(unread.is_empty(), "{unread:?}");
            config.number("llm.budget.calls")
        };
        let (first, second) = ("CRUCIBLE_OPENROUTER_BUDGET", "CRUCIBLE_LLM_BUDGET_CALLS");
        assert_eq!(calls(&[(second, "3")]), 3);
        assert_eq!(calls(&[(first, "5"), (second, "3")]), 3);
        assert_eq!(calls(&[(first, "2"), (second, "3")]), 2);
    }

    #[test]
    fn the_strategy_is_set_by_the_short_name_as_well() {
        let env = [("CRUCIBLE_EXECUTION_STRATEGY", "external_tool")];
        let room = tempfile::tempdir().unwrap();
        let files = ConfigFiles { user: room.path().join("none.toml"), ..ConfigFiles::default() };
        let env = Environment::from_pairs(env, "/");
        let config = Config::load("[llm]\nexecution_strategy = \"controlled\"\n", &files, &env, &[]).unwrap();
        assert_eq!(config.text("llm.execution_strategy"), Some("external_tool"));
        assert!(config.unread_variables(&env).is_empty());
    }

    #[test]
    fn the_variable_of_a_base_url_leaves_out_its_section() {
        assert_eq!(variable_of("llm.gateway.base_url"), "CRUCIBLE_GATEWAY_BASE_URL");
        assert_eq!(variable_of("llm.claude-cli.model"), "CRUCIBLE_LLM_CLAUDE_CLI_MODEL");
    }
}
