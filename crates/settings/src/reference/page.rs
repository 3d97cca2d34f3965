//! The page `docs/settings.md`, which a test compares with the declarations.

use std::fmt::Write as _;

use super::{joined, setter_note};
use crate::known::{flag_of, variable_of};
use crate::sections::SECTIONS;
use crate::spec::{DefaultValue, Section, SettingSpec};

/// The top of the reference page.
const HEAD: &str = "\
# Settings

Every setting of Crucible with its default. A key that is not here does not exist. This page is generated: a test
compares it with the program, and `UPDATE_DOCS=1 cargo xtask test settings_reference` rewrites it.

A value is taken from the first of these that sets it:

1. a flag of the command;
2. an environment variable;
3. `.crucible/config.toml` of the project;
4. your own `~/.config/crucible/config.toml`, or `$XDG_CONFIG_HOME/crucible/config.toml`;
5. the default.

`crucible config show` prints each value and where it comes from. `crucible config set KEY VALUE` writes one into a
file and keeps its comments. `crucible config schema` prints a JSON schema for editors. An empty text means \"not set\".

The variable of a key is `CRUCIBLE_` and the key in capitals, with `_` for `.` and `-`; exceptions are named below. A
variable holds a list with commas between its items.
";

/// Returns the page.
pub(super) fn settings_page() -> String {
    let mut text = HEAD.to_owned();
    for section in SECTIONS {
        // Writing into a text cannot fail.
        let _ = write!(text, "\n## `[{}]`\n\n", header(section));
        paragraph(&mut text, &joined(section.doc));
        for spec in section.specs {
            let _ = write!(text, "\n### `{}`\n\n", spec.key.replace('*', "NAME"));
            paragraph(&mut text, &joined(spec.doc));
            text.push('\n');
            paragraph(&mut text, &facts(spec));
        }
    }
    text
}

/// The default, who may set it, and by which variable and flag.
fn facts(spec: &SettingSpec) -> String {
    let mut facts = vec![format!("Default: `{}`.", literal(spec.default))];
    if !spec.words.is_empty() {
        let words: Vec<String> = spec.words.iter().map(|word| format!("`{word}`")).collect();
        facts.push(format!("One of {}.", words.join(", ")));
    }
    facts.extend(setter_note(spec.setter).map(str::to_owned));
    let follows = format!(
        "CRUCIBLE_{}",
        spec.key.replace(['.', '-'], "_").to_uppercase()
    );
    let mut variables = vec![variable_of(spec.key)];
    variables.extend(spec.second_variable.map(str::to_owned));
    match variables.as_slice() {
        [one] if *one == follows => {}
        [one] => facts.push(format!("Variable: `{one}`.")),
        several => facts.push(format!("Variables: `{}`.", several.join("` and `"))),
    }
    if spec.is_command {
        facts.push("The variable holds it in words, as on a command line.".to_owned());
    }
    if spec.flag.is_some() {
        facts.push(format!("Flag: `{}`.", flag_of(spec.key)));
    }
    facts.join(" ")
}

/// The table as it is written.
fn header(section: &Section) -> String {
    section.table.replace('*', "NAME")
}

/// The default as TOML.
fn literal(default: DefaultValue) -> String {
    match default {
        DefaultValue::Fraction(number) => format!("{number:?}"),
        other => other.to_value().to_string(),
    }
}

/// A paragraph with lines of at most 120 characters.
fn paragraph(text: &mut String, words: &str) {
    let mut length = 0;
    for word in words.split(' ') {
        let width = word.chars().count();
        if length > 0 && length + 1 + width > 120 {
            text.push('\n');
            length = 0;
        } else if length > 0 {
            text.push(' ');
            length += 1;
        }
        text.push_str(word);
        length += width;
    }
    text.push('\n');
}
