//! Named model profiles, and the profile of each phase: pure functions. Seed 002 has profiles for one
//! client (*Gemini CLI specifics*); here every provider that calls a model supports them.
//!
//! A phase names a profile, and a profile names a model. An unknown profile is refused when the backend
//! is created, before any phase starts.

use std::collections::BTreeMap;

use crate::error::{Fault, LlmError};
use crate::provider_settings::ProviderSettings;

/// The models of phases with a profile, by phase name.
///
/// # Errors
///
/// [`LlmError::Misconfiguration`] if a phase names a profile that does not exist, with the existing ones, or one without a model.
pub(crate) fn phase_models(
    provider: &str,
    settings: &ProviderSettings,
) -> Result<BTreeMap<String, String>, LlmError> {
    // A provider without profiles uses its one model: the profiles of the phases belong to another
    // provider.
    if settings.profiles.is_empty() {
        return Ok(BTreeMap::new());
    }
    let model_of = |(phase, name): (&String, &String)| {
        let Some(profile) = settings.profiles.get(name) else {
            return Err(unknown_model(provider, settings, phase, name));
        };
        let model = profile
            .model
            .clone()
            .filter(|model| !model.trim().is_empty());
        let model = model.ok_or_else(|| {
            LlmError::Misconfiguration(Fault::new(
                provider,
                "",
                format!("the profile {name:?}, which phase {phase:?} uses, names no model"),
                format!("set [llm.{provider}.profiles.{name}] model"),
            ))
        })?;
        Ok((phase.clone(), model))
    };
    settings.phase_profiles.iter().map(model_of).collect()
}

fn unknown_model(provider: &str, settings: &ProviderSettings, phase: &str, name: &str) -> LlmError {
    let known: Vec<&str> = settings.profiles.keys().map(String::as_str).collect();
    let choices = format!(
        "choose one of {}, or add [llm.{provider}.profiles.{name}]",
        known.join(", ")
    );
    let what = format!("phase {phase:?} uses the profile {name:?}, which does not exist");
    LlmError::Misconfiguration(Fault::new(provider, "", what, choices))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider_settings::ModelProfile;

    fn settings(profiles: &[(&str, Option<&str>)], phases: &[(&str, &str)]) -> ProviderSettings {
        let profile = |model: Option<&str>| ModelProfile {
            model: model.map(str::to_owned),
        };
        ProviderSettings {
            profiles: profiles
                .iter()
                .map(|(name, model)| ((*name).to_owned(), profile(*model)))
                .collect(),
            phase_profiles: phases
                .iter()
                .map(|(phase, name)| ((*phase).into(), (*name).into()))
                .collect(),
            ..ProviderSettings::default()
        }
    }

    #[test]
    fn a_phase_gets_the_model_of_its_profile() {
        let profiles = [
            ("deep", Some("large")),
            ("quick", Some("small")),
            ("unused", None),
        ];
        let models = phase_models(
            "p",
            &settings(&profiles, &[("design", "deep"), ("tasks", "quick")]),
        )
        .unwrap();
        let expected = [("design", "large"), ("tasks", "small")];
        assert_eq!(
            models,
            expected
                .map(|(phase, model)| (phase.to_owned(), model.to_owned()))
                .into()
        );
    }

    #[test]
    fn unknown_profile_or_phase_is_refused_with_alternatives() {
        let profiles = [("deep", Some("large")), ("empty", Some(" "))];
        let refused = |profiles, phases: &[(&str, &str)]| {
            let error = phase_models("gemini-cli", &settings(profiles, phases)).unwrap_err();
            assert!(matches!(error, LlmError::Misconfiguration(_)));
            error.to_string()
        };
        let unknown = refused(&profiles, &[("design", "dep")]);
        assert!(
            unknown.contains("\"design\"") && unknown.contains("choose one of deep, empty"),
            "{unknown}"
        );
        let none = phase_models("p", &settings(&[], &[("design", "deep")])).unwrap();
        assert!(
            none.is_empty(),
            "the profiles of another provider are none of this one's"
        );
        let without = refused(&profiles, &[("design", "empty")]);
        assert!(
            without.contains("[llm.gemini-cli.profiles.empty] model"),
            "{without}"
        );
    }
}
