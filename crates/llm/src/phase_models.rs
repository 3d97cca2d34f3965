//! Named choices of a model, and which phase makes which. Pure. Seed 002 has them for
//! one client (*Gemini CLI specifics*); here every provider that asks a model has them.
//!
//! A phase names a profile, a profile names a model. What does not exist is refused when the backend is made, before
//! any phase starts.

use std::collections::BTreeMap;

use crate::error::{Fault, LlmError};
use crate::registry::ProviderSettings;

/// The models of phases that have one of their own, by the phase's name.
///
/// # Errors
///
/// [`LlmError::Misconfiguration`] when a phase names a profile that does not exist, with those that do, or one
/// without a model.
pub(crate) fn phase_models(
    provider: &str,
    settings: &ProviderSettings,
) -> Result<BTreeMap<String, String>, LlmError> {
    // A provider that has none at all is asked with its one model: the phases' profiles are those of another one.
    if settings.profiles.is_empty() {
        return Ok(BTreeMap::new());
    }
    let model_of = |(phase, name): (&String, &String)| {
        let Some(profile) = settings.profiles.get(name) else {
            return Err(unknown(provider, settings, phase, name));
        };
        let model = profile.model.clone().filter(|model| !model.trim().is_empty());
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

fn unknown(provider: &str, settings: &ProviderSettings, phase: &str, name: &str) -> LlmError {
    let known: Vec<&str> = settings.profiles.keys().map(String::as_str).collect();
    let choices = format!("choose one of {}, or add [llm.{provider}.profiles.{name}]", known.join(", "));
    let what = format!("phase {phase:?} uses the profile {name:?}, which does not exist");
    LlmError::Misconfiguration(Fault::new(provider, "", what, choices))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::ModelProfile;

    fn settings(profiles: &[(&str, Option<&str>)], phases: &[(&str, &str)]) -> ProviderSettings {
        let profile = |model: Option<&str>| ModelProfile { model: model.map(str::to_owned) };
        ProviderSettings {
            profiles: profiles.iter().map(|(name, model)| ((*name).to_owned(), profile(*model))).collect(),
            phase_profiles: phases.iter().map(|(phase, name)| ((*phase).into(), (*name).into())).collect(),
            ..ProviderSettings::default()
        }
    }

    #[test]
    fn a_phase_gets_the_model_of_its_profile() {
        let profiles = [("deep", Some("large")), ("quick", Some("small")), ("unused", None)];
        let models =
            phase_models("p", &settings(&profiles, &[("design", "deep"), ("tasks", "quick")])).unwrap();
        let expected = [("design", "large"), ("tasks", "small")];
        assert_eq!(models, expected.map(|(phase, model)| (phase.to_owned(), model.to_owned())).into());
    }

    #[test]
    fn what_does_not_exist_is_refused_with_what_does() {
        let profiles = [("deep", Some("large")), ("empty", Some(" "))];
        let refused = |profiles, phases: &[(&str, &str)]| {
            let error = phase_models("gemini-cli", &settings(profiles, phases)).unwrap_err();
            assert!(matches!(error, LlmError::Misconfiguration(_)));
            error.to_string()
        };
        let unknown = refused(&profiles, &[("design", "dep")]);
        assert!(unknown.contains("\"design\"") && unknown.contains("choose one of deep, empty"), "{unknown}");
        let none = phase_models("p", &settings(&[], &[("design", "deep")])).unwrap();
        assert!(none.is_empty(), "the profiles of another provider are none of this one's");
        let without = refused(&profiles, &[("design", "empty")]);
        assert!(without.contains("[llm.gemini-cli.profiles.empty] model"), "{without}");
    }
}
