//! What readers and editors get of the declarations: the reference page and a JSON schema.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::known::{flag_of, variable_of};
use crate::sections::SECTIONS;
use crate::spec::{DefaultValue, Section, Setter, SettingSpec};

/// The top of the reference page.
const HEAD: &str = "\
# Settings

Every setting of Crucible with its default. A key that is not here does not exist. This page is generated: a test
compares it with the program, and `UPDATE_DOCS=1 cargo xtask test settings_reference` writes it anew.

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

/// The page `docs/settings.md`.
#[must_use]
pub fn settings_page() -> String {
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

/// A JSON schema of a configuration file.
#[must_use]
pub fn settings_schema() -> Value {
    let mut root = object(
        "The settings of Crucible: .crucible/config.toml of a project, or ~/.config/crucible/config.toml.",
    );
    for section in SECTIONS {
        let mut at = &mut root;
        for word in section.table.split('.') {
            at = match word {
                "*" => below(at, "additionalProperties", None),
                word => below(at, "properties", Some(word)),
            };
        }
        at["description"] = joined(section.doc).into();
        for spec in section.specs {
            at["properties"][field(spec)] = schema_of(spec);
        }
    }
    root["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    root["$id"] = "crucible-settings-v1.schema.json".into();
    root["title"] = "crucible-settings-v1".into();
    root
}

/// The schema of a table inside of another, made if it does not exist.
fn below<'s>(schema: &'s mut Value, keyword: &str, name: Option<&str>) -> &'s mut Value {
    let place = &mut schema[keyword];
    let place = match name {
        Some(name) => &mut place[name],
        None => place,
    };
    if !place.is_object() {
        *place = object("");
    }
    place
}

fn object(description: &str) -> Value {
    json!({ "type": "object", "description": description, "additionalProperties": false, "properties": {} })
}

fn schema_of(spec: &SettingSpec) -> Value {
    let mut schema = match spec.default {
        DefaultValue::Text(default) if !spec.words.is_empty() => {
            let unset = default.is_empty().then_some("");
            json!({ "enum": spec.words.iter().copied().chain(unset).collect::<Vec<_>>() })
        }
        DefaultValue::Text(_) => json!({ "type": "string" }),
        DefaultValue::Whole(_) => json!({ "type": "integer", "minimum": 0 }),
        DefaultValue::Fraction(_) => json!({ "type": "number" }),
        DefaultValue::Bool(_) => json!({ "type": "boolean" }),
        DefaultValue::List(_) => json!({ "type": "array", "items": { "type": "string" } }),
        DefaultValue::Table => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
    };
    let note = setter_note(spec.setter)
        .map(|note| format!(" {note}"))
        .unwrap_or_default();
    schema["description"] = (joined(spec.doc) + &note).into();
    schema["default"] = json!(spec.default.to_value());
    schema
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

fn setter_note(setter: Setter) -> Option<&'static str> {
    match setter {
        Setter::Anyone => None,
        Setter::User => Some("Not for a project's file."),
        Setter::UserUnlessLoopback => Some("A project's file may only name this machine."),
        Setter::ProjectMayLower => Some("A project's file may only lower it."),
    }
}

/// The table as it is written.
fn header(section: &Section) -> String {
    section.table.replace('*', "NAME")
}

/// The last word of the key.
fn field(spec: &SettingSpec) -> &'static str {
    spec.key.rsplit('.').next().unwrap_or(spec.key)
}

/// The default as TOML.
fn literal(default: DefaultValue) -> String {
    match default {
        DefaultValue::Fraction(number) => format!("{number:?}"),
        other => other.to_value().to_string(),
    }
}

fn joined(lines: &[&str]) -> String {
    lines
        .iter()
        .map(|line| line.trim())
        .collect::<Vec<_>>()
        .join(" ")
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

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the tests may write the reference anew"
)]
mod tests {
    use std::path::Path;

    use crucible_host::fs::{read_up_to, write_atomic};
    use crucible_model::ByteLimit;

    use super::*;
    use crate::known::specs;

    /// The checked-in file, written anew first where the caller asks for that.
    fn kept(relative: &str, now: &str) -> String {
        let place = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(relative);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            write_atomic(&place, now.as_bytes()).unwrap();
        }
        let bytes = read_up_to(&place, ByteLimit(1 << 20)).unwrap_or_default();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn settings_reference_is_made_from_the_declarations() {
        let now = settings_page();
        assert!(
            kept("docs/settings.md", &now) == now,
            "docs/settings.md is out of date: see its top"
        );
    }

    #[test]
    fn settings_reference_for_editors_is_made_from_the_declarations() {
        let now = settings_schema();
        let text = serde_json::to_string_pretty(&now).unwrap() + "\n";
        let kept = kept("docs/schemas/crucible-settings-v1.schema.json", &text);
        // The order of members depends on the features of the build.
        let kept: Value = serde_json::from_str(&kept).unwrap_or_default();
        assert!(
            kept == now,
            "the schema is out of date: see the top of docs/settings.md"
        );
    }

    #[test]
    fn every_setting_has_a_description_of_its_own() {
        assert!(SECTIONS.iter().all(|section| !section.doc.is_empty()));
        for spec in specs() {
            assert!(!joined(spec.doc).is_empty(), "{}", spec.key);
        }
    }
}
