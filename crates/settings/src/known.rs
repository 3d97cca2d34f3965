//! Every setting that is known, by its key.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::sections::SECTIONS;
use crate::spec::SettingSpec;

/// Every setting, in the order of the reference.
pub(crate) fn specs() -> impl Iterator<Item = &'static SettingSpec> {
    SECTIONS.iter().flat_map(|section| section.specs)
}

/// The settings by key, and those of tables that users name.
static BY_KEY: LazyLock<(
    HashMap<&'static str, &'static SettingSpec>,
    Vec<&'static SettingSpec>,
)> = LazyLock::new(|| {
    (
        specs().map(|spec| (spec.key, spec)).collect(),
        specs().filter(|spec| spec.is_template()).collect(),
    )
});

/// The setting of a key.
pub(crate) fn spec_of(key: &str) -> Option<&'static SettingSpec> {
    let (by_key, templates) = &*BY_KEY;
    let template = || {
        templates
            .iter()
            .find(|spec| name_in(spec.key, key).is_some())
    };
    by_key.get(key).or_else(template).copied()
}

/// The name that a user gave to the table of a key which is one of a template, `table.*.field`.
pub(crate) fn name_in<'k>(pattern: &str, key: &'k str) -> Option<&'k str> {
    let (table, field) = pattern.split_once(".*.")?;
    let name = key
        .strip_prefix(table)?
        .strip_prefix('.')?
        .strip_suffix(field)?
        .strip_suffix('.')?;
    (!name.is_empty()).then_some(name)
}

/// The environment variable that sets a key.
#[must_use]
pub fn variable_of(key: &str) -> String {
    if let Some(variable) = spec_of(key).and_then(|spec| spec.variable) {
        return variable.to_owned();
    }
    let provider = key
        .strip_prefix("llm.")
        .and_then(|rest| rest.strip_suffix(".base_url"));
    let name = provider.map_or_else(|| key.to_owned(), |provider| format!("{provider}.base_url"));
    format!("CRUCIBLE_{}", name.replace(['.', '-'], "_").to_uppercase())
}

/// The flag that sets a key, in every command that has it.
#[must_use]
pub(crate) fn flag_of(key: &str) -> String {
    if let Some(flag) = spec_of(key).and_then(|spec| spec.flag) {
        return flag.to_owned();
    }
    format!(
        "--{}",
        key.rsplit('.').next().unwrap_or(key).replace('_', "-")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::DefaultValue;

    #[test]
    fn base_url_variable_omits_the_llm_section() {
        assert_eq!(
            variable_of("llm.gateway.base_url"),
            "CRUCIBLE_GATEWAY_BASE_URL"
        );
        assert_eq!(
            variable_of("llm.claude-cli.model"),
            "CRUCIBLE_LLM_CLAUDE_CLI_MODEL"
        );
    }

    #[test]
    fn declared_words_hold_the_default() {
        for spec in specs().filter(|spec| !spec.words.is_empty()) {
            let DefaultValue::Text(default) = spec.default else {
                panic!("{} has words and is not text", spec.key)
            };
            assert!(
                default.is_empty() || spec.words.contains(&default),
                "{}",
                spec.key
            );
        }
    }

    #[test]
    fn each_key_is_declared_once() {
        let mut keys: Vec<&str> = specs().map(|spec| spec.key).collect();
        keys.sort_unstable();
        assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "{keys:?}");
        for section in SECTIONS {
            let prefix = format!("{}.", section.table);
            assert!(
                section
                    .specs
                    .iter()
                    .all(|spec| spec.key.starts_with(&prefix)),
                "{}",
                section.table
            );
        }
    }
}
