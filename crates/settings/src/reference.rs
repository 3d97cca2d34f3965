//! The reference of all settings, made from their declarations.

use crate::sections::SECTIONS;
use crate::spec::{DefaultValue, Section, SettingSpec};

/// What stands at the top of the reference.
const HEAD: &str = "\
# Every setting of Crucible with its default. This file is the reference: a key that is not here does not exist.
#
# Set a value by a flag, by the environment variable `CRUCIBLE_` + the key in capitals (`llm.provider` is
# CRUCIBLE_LLM_PROVIDER; exceptions are named below), in `.crucible/config.toml` of the project, or in your own
# `~/.config/crucible/config.toml`; the first of these wins. `crucible config show` prints what is in force.
# An empty text means \"not set\". Keys marked (user) cannot be set by a project's file.
";

/// Every setting with its description and default, as a configuration file.
#[must_use]
pub fn default_toml() -> String {
    let mut text = HEAD.to_owned();
    let mut before: Option<&Section> = None;
    for section in SECTIONS {
        if !before.is_some_and(|before| continues(before, section)) {
            text.push('\n');
        }
        comment(&mut text, section.doc);
        text.push_str(&format!("[{}]\n", section.table.replace('*', "\"*\"")));
        for spec in section.specs {
            comment(&mut text, spec.doc);
            text.push_str(&format!("{} = {}\n", field(spec), literal(spec.default)));
        }
        before = Some(section);
    }
    text
}

/// Whether the description of the section before it holds for this one, too.
fn continues(before: &Section, section: &Section) -> bool {
    let last = |section: &'static str| section.rsplit_once("profiles").map(|(_, rest)| rest);
    section.doc.is_empty() && last(section.table).is_some() && last(before.table) == last(section.table)
}

fn comment(text: &mut String, lines: &[&str]) {
    for line in lines {
        text.push_str(&format!("#{line}\n"));
    }
}

/// The last word of the key.
fn field(spec: &SettingSpec) -> &'static str {
    spec.key.rsplit('.').next().unwrap_or(spec.key)
}

/// The default as TOML.
fn literal(default: DefaultValue) -> String {
    match default {
        DefaultValue::Fraction(number) => format!("{number:?}"),
        DefaultValue::Text(_)
        | DefaultValue::Whole(_)
        | DefaultValue::Bool(_)
        | DefaultValue::List(_)
        | DefaultValue::Table => default.to_value().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_equals_the_file_it_replaces() {
        let old = include_str!("../../cli/src/default-config.toml");
        assert_eq!(default_toml(), old);
    }
}
