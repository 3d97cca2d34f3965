//! What editors and readers get of the declarations: a JSON schema, and in tests the reference page.

#[cfg(test)]
mod page;

use serde_json::{Value, json};

use crate::sections::SECTIONS;
use crate::spec::{DefaultValue, Setter, SettingSpec};

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
                "*" => subtable(at, "additionalProperties", None),
                word => subtable(at, "properties", Some(word)),
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
fn subtable<'s>(schema: &'s mut Value, keyword: &str, name: Option<&str>) -> &'s mut Value {
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

fn setter_note(setter: Setter) -> Option<&'static str> {
    match setter {
        Setter::Anyone => None,
        Setter::User => Some("Not for a project's file."),
        Setter::UserUnlessLoopback => Some("A project's file may only name this machine."),
        Setter::ProjectMayLower => Some("A project's file may only lower it."),
    }
}

/// The last word of the key.
fn field(spec: &SettingSpec) -> &'static str {
    spec.key.rsplit('.').next().unwrap_or(spec.key)
}

fn joined(lines: &[&str]) -> String {
    lines
        .iter()
        .map(|line| line.trim())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the tests may rewrite the reference"
)]
mod tests {
    use std::path::Path;

    use crucible_host::fs::{read_up_to, write_atomic};
    use crucible_model::ByteLimit;

    use super::*;
    use crate::known::specs;

    /// The checked-in file, rewritten first on request.
    fn committed_text(relative: &str, now: &str) -> String {
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
        let now = page::settings_page();
        assert!(
            committed_text("docs/settings.md", &now) == now,
            "docs/settings.md is out of date: see its top"
        );
    }

    #[test]
    fn editor_settings_schema_is_generated_from_declarations() {
        let now = settings_schema();
        let text = serde_json::to_string_pretty(&now).unwrap() + "\n";
        let committed = committed_text("docs/schemas/crucible-settings-v1.schema.json", &text);
        // The order of members depends on the features of the build.
        let committed: Value = serde_json::from_str(&committed).unwrap_or_default();
        assert!(
            committed == now,
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
