//! What is known of a setting before anyone sets it.
//!
//! A key with `*` stands for tables that users name themselves, such as `gates.*.command`. The name may hold dots, as
//! the names of models do.

use toml::Value;

/// A table of the configuration with its settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section {
    /// The table's name; it ends in `.*` where users name the tables.
    pub(crate) table: &'static str,
    /// The description, line by line.
    pub(crate) doc: &'static [&'static str],
    /// The settings, in the order of the reference.
    pub(crate) specs: &'static [SettingSpec],
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SettingSpec {
    /// The dotted key.
    pub(crate) key: &'static str,
    /// The description, line by line.
    pub(crate) doc: &'static [&'static str],
    /// The value where no source sets one.
    pub(crate) default: DefaultValue,
    /// Who may set it.
    pub(crate) setter: Setter,
    /// The texts it takes, where they are listed.
    pub(crate) words: &'static [&'static str],
    pub(crate) is_command: bool,
    pub(crate) zero_is_unlimited: bool,
    pub(crate) variable: Option<&'static str>,
    pub(crate) second_variable: Option<&'static str>,
    pub(crate) flag: Option<&'static str>,
}

/// A default, which also says what type a setting takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum DefaultValue {
    /// A text; empty for "not set".
    Text(&'static str),
    /// A whole number, zero or larger.
    Whole(u32),
    /// A number.
    Fraction(f64),
    /// True or false.
    Bool(bool),
    /// A list of texts.
    List(&'static [&'static str]),
    /// An empty table of texts, with names of the user's own. It is set as a whole, in a file.
    Table,
}

/// Who may set a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setter {
    /// The user and the project.
    Anyone,
    /// The user alone: it decides where data and keys go, what runs, who is paid, or how strong the sandbox is.
    User,
    /// The user; the project too, if the address can only reach this machine.
    UserUnlessLoopback,
    /// The user; the project may only lower it, because it limits the user's money and machine.
    ProjectMayLower,
}

impl SettingSpec {
    pub(crate) const fn new(
        key: &'static str,
        doc: &'static [&'static str],
        default: DefaultValue,
        words: &'static [&'static str],
    ) -> Self {
        Self {
            key,
            doc,
            default,
            setter: Setter::Anyone,
            words,
            is_command: false,
            zero_is_unlimited: false,
            variable: None,
            second_variable: None,
            flag: None,
        }
    }

    /// Only the user may set it.
    pub(crate) const fn user(self) -> Self {
        Self {
            setter: Setter::User,
            ..self
        }
    }

    /// A project's file may name only this machine.
    pub(crate) const fn loopback(self) -> Self {
        Self {
            setter: Setter::UserUnlessLoopback,
            ..self
        }
    }

    /// A project's file may only lower it.
    pub(crate) const fn lower(self) -> Self {
        Self {
            setter: Setter::ProjectMayLower,
            ..self
        }
    }

    /// A limit for which 0 means "no limit".
    pub(crate) const fn zero_is_unlimited(self) -> Self {
        Self {
            zero_is_unlimited: true,
            ..self
        }
    }

    /// A list that is a command: a variable holds it in words, as on a command line, and not between commas.
    pub(crate) const fn command(self) -> Self {
        Self {
            is_command: true,
            ..self
        }
    }

    /// The texts it takes.
    pub(crate) const fn one_of(self, words: &'static [&'static str]) -> Self {
        Self { words, ..self }
    }

    /// The variable, where its name does not follow from the key.
    pub(crate) const fn variable(self, name: &'static str) -> Self {
        Self {
            variable: Some(name),
            ..self
        }
    }

    /// A second variable. Of two numbers the lower counts, of two texts that of the second variable.
    pub(crate) const fn second_variable(self, name: &'static str) -> Self {
        Self {
            second_variable: Some(name),
            ..self
        }
    }

    /// The flag, where its name is not the last word of the key.
    pub(crate) const fn flag(self, name: &'static str) -> Self {
        Self {
            flag: Some(name),
            ..self
        }
    }

    /// Whether users name the table of this setting.
    pub(crate) fn is_template(&self) -> bool {
        self.key.contains(".*.")
    }
}

impl DefaultValue {
    pub(crate) fn to_value(self) -> Value {
        match self {
            Self::Text(text) => Value::from(text),
            Self::Whole(number) => Value::Integer(number.into()),
            Self::Fraction(number) => Value::Float(number),
            Self::Bool(value) => Value::Boolean(value),
            Self::List(items) => {
                Value::Array(items.iter().map(|item| Value::from(*item)).collect())
            }
            Self::Table => Value::Table(toml::Table::new()),
        }
    }

    /// What a setting with this default takes, in words.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Whole(_) => "a whole number",
            Self::Fraction(_) => "a number",
            Self::Bool(_) => "true or false",
            Self::List(_) => "a list of texts",
            Self::Table => "a table of texts",
        }
    }
}
