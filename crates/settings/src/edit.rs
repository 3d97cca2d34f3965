//! Setting one value in a configuration file, with its comments and its order kept.
//!
//! A change is made in memory first and read as the whole configuration would be: what the file may not hold is refused
//! with the same error as when it is read. Only then the file is written, whole.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crucible_host::env::Environment;
use crucible_host::fs::{
    FsError, create_dir_all, read_regular_up_to, refuse_link, write_atomic_as, write_beneath,
};
use toml::Value;
use toml_edit::{DocumentMut, Item, Table, TableLike};

use crate::error::ConfigError;
use crate::files::{ConfigFiles, MAX_FILE, PROJECT_FILE, exists, read_of_project};
use crate::known::{name_in, spec_of};
use crate::layers::{Layers, Setting};
use crate::spec::{DefaultValue, SettingSpec};

/// Which file is edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditedFile {
    /// The project's; its directory is made if it does not exist.
    Project,
    /// The user's own.
    User,
}

/// A checked change of a configuration file that is not yet written.
#[derive(Debug)]
pub struct Edit {
    path: PathBuf,
    owner: EditedFile,
    text: String,
    value: Value,
    previous: Option<Value>,
    in_force: Option<Setting>,
}

/// Why a setting is not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The configuration with the change would be refused, or a file cannot be read or written.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The setting takes one of a few texts.
    #[error("`{key}` does not take {value:?}; it takes one of {}", words.join(", "))]
    NotListed {
        /// The setting's dotted key.
        key: String,
        /// The text that was given.
        value: String,
        /// The texts it takes.
        words: &'static [&'static str],
    },
    /// The value is not written as TOML.
    #[error("`{key}` takes {expected}, such as {example}: {message}")]
    NotToml {
        /// The setting's dotted key.
        key: String,
        /// What it takes.
        expected: &'static str,
        /// A value that it takes.
        example: &'static str,
        /// What the parser said.
        message: String,
    },
    /// Something that is not a table stands where the setting's table would be.
    #[error("{}: `{table}` is not a table", path.display())]
    NotATable {
        /// The file.
        path: PathBuf,
        /// The dotted name of the expected table.
        table: String,
    },
    /// There is no directory for the user's own file.
    #[error(
        "no directory for your own configuration: neither XDG_CONFIG_HOME nor HOME is an absolute path"
    )]
    NoUserFile,
}

impl From<FsError> for EditError {
    fn from(error: FsError) -> Self {
        Self::Config(error.into())
    }
}

impl Edit {
    /// Checks that `key` may be set to `text` in this file. `project` is the directory that holds `.crucible` if the
    /// project has no file yet.
    ///
    /// # Errors
    ///
    /// Fails if the setting does not exist, does not take the value, or may not be set in this file; and if the
    /// configuration cannot be read.
    pub fn new(
        files: &ConfigFiles,
        project: &Path,
        env: &Environment,
        owner: EditedFile,
        key: &str,
        text: &str,
    ) -> Result<Self, EditError> {
        let mut files = files.clone();
        let path = match owner {
            EditedFile::Project => files
                .project
                .get_or_insert_with(|| project.join(PROJECT_FILE))
                .clone(),
            EditedFile::User if files.user.as_os_str().is_empty() => {
                return Err(EditError::NoUserFile);
            }
            EditedFile::User => files.user.clone(),
        };
        let origin = path.display().to_string();
        let Some(spec) = spec_of(key).filter(|_| !key.contains(".*.")) else {
            return Err(Layers::defaults(&files)
                .unknown_key(key, "config set")
                .into());
        };
        let value = parse_value(spec, key, text)?;
        let before = read(&path, owner)?;
        let mut document: DocumentMut =
            before
                .parse()
                .map_err(|error: toml_edit::TomlError| ConfigError::Syntax {
                    origin,
                    message: error.to_string().trim_end().to_owned(),
                })?;
        let previous = replace(&mut document, &path, &segments(spec, key), &value)?;
        let text = document.to_string();
        let layers = Layers::load_edited(&files, env, &[], Some((&path, &text)))?;
        let in_force = layers.setting(key).cloned();
        Ok(Self {
            path,
            owner,
            text,
            value,
            previous,
            in_force,
        })
    }

    /// Writes the file whole.
    ///
    /// # Errors
    ///
    /// Fails if a symbolic link stands in its place, or the directory cannot be written to.
    pub fn write(&self) -> Result<(), EditError> {
        refuse_link(&self.path)?;
        match self.owner {
            EditedFile::Project => {
                let root = self.path.ancestors().nth(2).unwrap_or(&self.path);
                write_beneath(root, PROJECT_FILE, self.text.as_bytes())?;
            }
            EditedFile::User => {
                if let Some(parent) = self.path.parent() {
                    create_dir_all(parent)?;
                }
                // A file that only its owner may read stays so.
                let mode = self
                    .path
                    .metadata()
                    .map_or(0o644, |file| file.permissions().mode() & 0o777);
                write_atomic_as(&self.path, self.text.as_bytes(), mode)?;
            }
        }
        Ok(())
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The value it gets.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The value it had in this file.
    #[must_use]
    pub fn previous(&self) -> Option<&Value> {
        self.previous.as_ref()
    }

    /// The value in force after the change, if another source overrides this file.
    #[must_use]
    pub fn overridden_by(&self) -> Option<&Setting> {
        use crate::layers::SettingSource::File;
        self.in_force
            .as_ref()
            .filter(|setting| !matches!(&setting.source, File(path) if *path == self.path))
    }
}

/// Reads the file as the configuration reads it; an empty text if it does not exist. No link is followed: writing the file
/// would replace the link.
fn read(path: &Path, owner: EditedFile) -> Result<String, EditError> {
    if !exists(path) {
        return Ok(String::new());
    }
    let bytes = match owner {
        EditedFile::Project => read_of_project(path)?,
        EditedFile::User => {
            refuse_link(path)?;
            read_regular_up_to(path, MAX_FILE)?
        }
    };
    String::from_utf8(bytes).map_err(|_| {
        let origin = path.display().to_string();
        ConfigError::Syntax {
            origin,
            message: "it is not UTF-8".into(),
        }
        .into()
    })
}

/// Reads the text of the command line as the type that the setting takes.
fn parse_value(spec: &SettingSpec, key: &str, text: &str) -> Result<Value, EditError> {
    let toml = |expected: &'static str, example: &'static str| {
        let not_toml = |message: String| EditError::NotToml {
            key: key.to_owned(),
            expected,
            example,
            message,
        };
        let table = format!("value = {text}\n").parse::<toml::Table>();
        let mut table = table.map_err(|error| not_toml(error.message().to_owned()))?;
        match table.remove("value") {
            Some(value) if table.is_empty() => Ok(value),
            Some(_) | None => Err(not_toml("this is more than one value".to_owned())),
        }
    };
    match spec.default {
        DefaultValue::Text(default) => {
            let is_unset = text.is_empty() && default.is_empty();
            if !spec.words.is_empty() && !spec.words.contains(&text) && !is_unset {
                let (key, value) = (key.to_owned(), text.to_owned());
                return Err(EditError::NotListed {
                    key,
                    value,
                    words: spec.words,
                });
            }
            Ok(Value::from(text))
        }
        DefaultValue::List(_) if text.is_empty() => Ok(Value::Array(Vec::new())),
        DefaultValue::List(_) if text.starts_with('[') => toml("a list of texts", "[\"a\", \"b\"]"),
        DefaultValue::Table => toml("a table of texts", "{ NAME = \"value\" }"),
        DefaultValue::List(_)
        | DefaultValue::Whole(_)
        | DefaultValue::Fraction(_)
        | DefaultValue::Bool(_) => Ok(Layers::typed(spec, key, text, "config set")?),
    }
}

/// The names of the tables of a key, and its own.
fn segments<'k>(spec: &SettingSpec, key: &'k str) -> Vec<&'k str> {
    let Some((name, (table, _))) = name_in(spec.key, key).zip(spec.key.split_once(".*.")) else {
        return key.split('.').collect();
    };
    let (above, rest) = key.split_at(table.len());
    let field = rest.get(name.len() + 2..).unwrap_or_default();
    above.split('.').chain([name, field]).collect()
}

/// Sets the value and returns the one it had. A comment behind the old value stays.
fn replace(
    document: &mut DocumentMut,
    path: &Path,
    segments: &[&str],
    value: &Value,
) -> Result<Option<Value>, EditError> {
    let Some((last, tables)) = segments.split_last() else {
        return Ok(None);
    };
    let is_new = document.is_empty();
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for (depth, segment) in tables.iter().enumerate() {
        let item = table.entry(segment).or_insert_with(|| {
            let mut new = Table::new();
            // A table that only holds tables needs no header.
            new.set_implicit(depth + 1 < tables.len());
            if !is_new && depth + 1 == tables.len() {
                new.decor_mut().set_prefix("\n");
            }
            Item::Table(new)
        });
        table = item
            .as_table_like_mut()
            .ok_or_else(|| EditError::NotATable {
                path: path.to_owned(),
                table: segments.get(..=depth).unwrap_or_default().join("."),
            })?;
    }
    let mut new = to_edit(value);
    let old = table.get_mut(last).filter(|item| !item.is_none());
    let previous = old.as_ref().and_then(|item| from_edit(item));
    match old.and_then(|item| item.as_value_mut()) {
        Some(old) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        None => {
            table.insert(last, Item::Value(new));
        }
    }
    Ok(previous)
}

fn to_edit(value: &Value) -> toml_edit::Value {
    match value {
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Boolean(value) => (*value).into(),
        Value::Array(items) => toml_edit::Value::Array(items.iter().map(to_edit).collect()),
        Value::Table(items) => toml_edit::Value::InlineTable(
            items
                .iter()
                .map(|(name, item)| (name.as_str(), to_edit(item)))
                .collect(),
        ),
        Value::String(text) => text.as_str().into(),
        Value::Datetime(instant) => instant.to_string().into(),
    }
}

/// The value of an item, read again from the file.
fn from_edit(item: &Item) -> Option<Value> {
    let text = match item {
        Item::Value(value) => format!("value = {}\n", value.to_string().trim()),
        Item::Table(_) | Item::ArrayOfTables(_) | Item::None => return None,
    };
    text.parse::<toml::Table>().ok()?.remove("value")
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the tests write and read files and lay out links"
)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    struct Room {
        room: tempfile::TempDir,
        env: Environment,
    }

    impl Room {
        fn new(project: &str) -> Self {
            let temp_dir = tempfile::tempdir().unwrap();
            let env = Environment::from_pairs([("HOME", temp_dir.path().join("home"))], "/");
            std::fs::create_dir_all(temp_dir.path().join("project/.git")).unwrap();
            let own = Self {
                room: temp_dir,
                env,
            };
            if !project.is_empty() {
                std::fs::create_dir(own.project().join(".crucible")).unwrap();
                std::fs::write(own.project().join(PROJECT_FILE), project).unwrap();
            }
            own
        }

        fn project(&self) -> PathBuf {
            self.room.path().join("project")
        }

        fn files(&self) -> ConfigFiles {
            ConfigFiles::discover(&self.env, &self.project())
        }

        fn edit(&self, owner: EditedFile, key: &str, text: &str) -> Result<Edit, EditError> {
            let edit = Edit::new(&self.files(), &self.project(), &self.env, owner, key, text)?;
            edit.write()?;
            Ok(edit)
        }

        fn set(&self, key: &str, text: &str) -> Result<String, String> {
            let edit = self
                .edit(EditedFile::Project, key, text)
                .map_err(|error| error.to_string())?;
            // What was written is what the whole program reads.
            let settings = Settings::load(&self.files(), &self.env, &[]).unwrap();
            let (_, now) = settings
                .effective()
                .find(|(known, _)| *known == key)
                .unwrap();
            assert_eq!(now.value, *edit.value(), "{key}");
            Ok(std::fs::read_to_string(edit.path()).unwrap())
        }
    }

    #[test]
    fn comments_and_order_are_kept() {
        let before = "# ours\n[run] # limits\n# few\nmax_iterations = 3  # was 4\n\n[patch]\nmax_files = 2\n";
        let fixture = Room::new(before);
        let after = fixture.set("run.max_iterations", "2").unwrap();
        assert_eq!(after, before.replace("= 3", "= 2"));
        let after = fixture.set("run.candidates", "2").unwrap();
        assert_eq!(
            after,
            before.replace("= 3  # was 4\n", "= 2  # was 4\ncandidates = 2\n")
        );
    }

    #[test]
    fn missing_file_and_tables_are_made() {
        let fixture = Room::new("");
        assert_eq!(
            fixture.set("run.max_iterations", "2").unwrap(),
            "[run]\nmax_iterations = 2\n"
        );
        let after = fixture.set("llm.gateway.model", "small").unwrap();
        assert_eq!(
            after,
            "[run]\nmax_iterations = 2\n\n[llm.gateway]\nmodel = \"small\"\n"
        );
        let after = fixture.set("llm.provider", "gateway").unwrap();
        assert!(after.contains("provider = \"gateway\"\n"), "{after}");
    }

    #[test]
    fn each_type_is_read_from_text() {
        let fixture = Room::new("");
        for (key, text, written) in [
            (
                "gates.unit.command",
                "[\"make\", \"a, b\"]",
                "command = [\"make\", \"a, b\"]",
            ),
            (
                "gates.unit.command",
                "make,test",
                "command = [\"make\", \"test\"]",
            ),
            ("gates.unit.setup", "", "setup = []"),
            ("gates.unit.env", "{ A = \"b\" }", "env = { A = \"b\" }"),
            ("gates.a.b.timeout_s", "5", "[gates.\"a.b\"]\ntimeout_s = 5"),
            ("gates.x y.cwd", "p\nq", "[gates.\"x y\"]\ncwd = "),
            ("council.similarity", "1", "similarity = 1.0"),
            ("council.delta", "never", "delta = \"never\""),
            ("run.edit_format", "", "edit_format = \"\""),
        ] {
            let after = fixture.set(key, text).unwrap();
            assert!(after.contains(written), "{key}: {after}");
        }
    }

    #[test]
    fn wrong_values_are_refused_and_nothing_is_written() {
        let before = "# ours\n[run]\nmax_iterations = 3\n";
        let fixture = Room::new(before);
        for (key, text, message) in [
            (
                "run.max_iteration",
                "3",
                "did you mean `run.max_iterations`",
            ),
            (
                "gates.*.command",
                "make",
                "there is no setting `gates.*.command`",
            ),
            ("gates", "make", "there is no setting `gates`"),
            (
                "run.max_iterations",
                "many",
                "`run.max_iterations` takes a whole number",
            ),
            (
                "run.max_iterations",
                "-1",
                "`run.max_iterations` takes a whole number, zero or larger",
            ),
            (
                "run.max_iterations",
                "5",
                "a project's file may lower `run.max_iterations`, not raise it",
            ),
            (
                "sandbox.strength",
                "off",
                "a project's file cannot set `sandbox.strength`",
            ),
            (
                "llm.gateway.base_url",
                "https://collector.example/v1",
                "a project's file cannot set",
            ),
            (
                "council.delta",
                "Never",
                "`council.delta` does not take \"Never\"; it takes one of judge, similarity, never",
            ),
            (
                "council.similarity",
                "nan",
                "takes a number that has an end",
            ),
            ("gates.unit.command", "[1]", "takes a list of texts"),
            (
                "gates.unit.command",
                "[\"a\"",
                "takes a list of texts, such as [\"a\", \"b\"]",
            ),
            (
                "gates.unit.command",
                "[\"a\"]\n[sandbox]\nstrength = \"off\"",
                "this is more than one value",
            ),
            ("gates.unit.env", "A=b", "takes a table of texts, such as"),
            ("gates.unit.env", "{ A = 1 }", "takes a table of texts"),
            ("run.max_iterations.x", "1", "there is no setting"),
        ] {
            let error = fixture.set(key, text).unwrap_err();
            assert!(error.contains(message), "{key}: {error}");
            assert_eq!(
                std::fs::read_to_string(fixture.project().join(PROJECT_FILE)).unwrap(),
                before
            );
        }
    }

    #[test]
    fn user_may_set_keys_forbidden_to_projects() {
        let fixture = Room::new("[run]\nmax_iterations = 2\n");
        let edit = fixture
            .edit(EditedFile::User, "sandbox.strength", "best-effort")
            .unwrap();
        assert_eq!(
            edit.path(),
            fixture
                .room
                .path()
                .join("home/.config/crucible/config.toml")
        );
        assert_eq!((edit.previous(), edit.overridden_by()), (None, None));
        let edit = fixture
            .edit(EditedFile::User, "run.max_iterations", "9")
            .unwrap();
        assert_eq!(
            edit.overridden_by().unwrap().value,
            Value::Integer(2),
            "the project lowers it"
        );
        std::fs::set_permissions(edit.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
        let edit = fixture
            .edit(EditedFile::User, "run.max_iterations", "8")
            .unwrap();
        assert_eq!(edit.previous(), Some(&Value::Integer(9)));
        assert_eq!(
            edit.path().metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
        // Below the project's own value, the project's file would raise it.
        let error = fixture
            .edit(EditedFile::User, "run.max_iterations", "1")
            .unwrap_err()
            .to_string();
        assert!(error.contains("project/.crucible/config.toml"), "{error}");
    }

    #[test]
    fn variable_that_overrides_the_file_is_named() {
        let mut fixture = Room::new("");
        let home = fixture.room.path().join("home");
        fixture.env = Environment::from_pairs(
            [
                ("HOME", home.to_str().unwrap()),
                ("CRUCIBLE_RUN_CANDIDATES", "3"),
            ],
            "/",
        );
        let edit = fixture
            .edit(EditedFile::Project, "run.candidates", "2")
            .unwrap();
        let other = edit.overridden_by().unwrap();
        assert_eq!(
            other.source.to_string(),
            "environment CRUCIBLE_RUN_CANDIDATES"
        );
        assert_eq!(other.value, Value::Integer(3));
    }

    #[test]
    fn missing_home_means_no_user_file() {
        let mut fixture = Room::new("");
        fixture.env = Environment::from_pairs([("PATH", "/bin")], "/");
        let refused = fixture.edit(EditedFile::User, "run.candidates", "2");
        assert!(matches!(refused, Err(EditError::NoUserFile)));
    }

    #[test]
    fn linked_settings_are_refused_and_targets_unchanged() {
        let target = "[run]\ncandidates = 1\n";
        let link = |fixture: &Room, at: &Path| {
            let place = fixture.room.path().join("elsewhere.toml");
            std::fs::write(&place, target).unwrap();
            std::fs::create_dir_all(at.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(&place, at).unwrap();
            place
        };
        for owner in [EditedFile::Project, EditedFile::User] {
            let fixture = Room::new("");
            let at = match owner {
                EditedFile::Project => fixture.project().join(PROJECT_FILE),
                EditedFile::User => fixture.files().user,
            };
            let place = link(&fixture, &at);
            let error = fixture.edit(owner, "run.candidates", "2").unwrap_err();
            assert!(
                matches!(&error, EditError::Config(ConfigError::Fs(error)) if error.is_link()),
                "{error}"
            );
            assert_eq!(std::fs::read_to_string(place).unwrap(), target);
            assert!(at.symlink_metadata().unwrap().is_symlink());
        }
        // Nor is a directory that is a link followed.
        let fixture = Room::new("");
        std::os::unix::fs::symlink(fixture.room.path(), fixture.project().join(".crucible"))
            .unwrap();
        let error = fixture
            .edit(EditedFile::Project, "run.candidates", "2")
            .unwrap_err();
        assert!(
            matches!(&error, EditError::Config(ConfigError::Fs(error)) if error.is_link()),
            "{error}"
        );
        assert!(!fixture.room.path().join("config.toml").exists());
    }

    #[test]
    fn file_that_cannot_be_read_is_left_alone() {
        for (broken, message) in [
            ("[run\n", "is not TOML"),
            ("run = 3\n", "`run` is not a table"),
            ("[[run]]\ncandidates = 1\n", "`run` is not a table"),
            ("[run]\nnothing = 1\n", "there is no setting `run.nothing`"),
        ] {
            let fixture = Room::new(broken);
            let error = fixture.set("run.candidates", "2").unwrap_err();
            assert!(error.contains(message), "{broken}: {error}");
            assert_eq!(
                std::fs::read_to_string(fixture.project().join(PROJECT_FILE)).unwrap(),
                broken
            );
        }
        let fixture = Room::new("[run]\ncandidates = \"many\" # wrong\n");
        assert_eq!(
            fixture.set("run.candidates", "2").unwrap(),
            "[run]\ncandidates = 2 # wrong\n"
        );
    }
}
