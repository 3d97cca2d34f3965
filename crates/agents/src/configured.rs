//! From the settings to the agents: the built-in ones, as `[agents.NAME]` changes them, and those that it adds.

use std::collections::{BTreeMap, BTreeSet};

use crucible_settings::{AgentEntry, Settings};

use crate::error::AgentError;
use crate::profile::{AgentProfile, PromptDelivery, Wire};
use crate::registry::registry;

/// Returns the agent of this name.
///
/// # Errors
///
/// Fails if it does not exist, or if one of its settings is not allowed.
pub fn profile(settings: &Settings, name: &str) -> Result<AgentProfile, AgentError> {
    let known = profiles(settings)?;
    let names: Vec<&str> = known.keys().map(String::as_str).collect();
    let names = names.join(", ");
    known.get(name).cloned().ok_or_else(|| AgentError::Unknown {
        name: name.to_owned(),
        known: names,
    })
}

/// Returns every agent by its name. No agent sees the settings of another one in the repository: an agent of the user's
/// own may read the same files.
///
/// # Errors
///
/// Fails if a setting is not allowed.
pub fn profiles(settings: &Settings) -> Result<BTreeMap<String, AgentProfile>, AgentError> {
    let built_in = registry().iter().map(|kind| kind.profile());
    let mut profiles: BTreeMap<String, AgentProfile> = built_in
        .map(|profile| (profile.name.clone(), profile))
        .collect();
    for (name, entry) in &settings.agents {
        let base = profiles.remove(name);
        let profile = changed(name, base, entry)?;
        profile.check()?;
        profiles.insert(name.clone(), profile);
    }
    let disabled = registry().iter().flat_map(|kind| kind.profile().disabled);
    let disabled: BTreeSet<String> = disabled.collect();
    for profile in profiles.values_mut() {
        let own = std::mem::take(&mut profile.disabled);
        let all: BTreeSet<String> = own.into_iter().chain(disabled.iter().cloned()).collect();
        profile.disabled = all.into_iter().collect();
    }
    Ok(profiles)
}

fn changed(
    name: &str,
    base: Option<AgentProfile>,
    entry: &AgentEntry,
) -> Result<AgentProfile, AgentError> {
    let missing = |field: &'static str, why: String| AgentError::Setting {
        name: name.to_owned(),
        field,
        why,
    };
    let is_new = base.is_none();
    let mut profile = base.unwrap_or_else(|| AgentProfile {
        name: name.to_owned(),
        program: String::new(),
        args: Vec::new(),
        resume: Vec::new(),
        prompt: PromptDelivery::Stdin,
        wire: Wire::OpenAi,
        provider: String::new(),
        model: String::new(),
        env: BTreeMap::new(),
        files: BTreeMap::new(),
        disabled: Vec::new(),
        leftovers: Vec::new(),
        hosts: Vec::new(),
    });
    for (field, own) in [
        (&mut profile.program, &entry.program),
        (&mut profile.provider, &entry.provider),
        (&mut profile.model, &entry.model),
    ] {
        if let Some(own) = own {
            field.clone_from(own);
        }
    }
    for (field, own) in [
        (&mut profile.args, &entry.args),
        (&mut profile.resume, &entry.resume),
        (&mut profile.disabled, &entry.disabled),
        (&mut profile.leftovers, &entry.leftovers),
        (&mut profile.hosts, &entry.hosts),
    ] {
        if !own.is_empty() {
            field.clone_from(own);
        }
    }
    profile.env.extend(entry.env.clone());
    profile.files.extend(entry.files.clone());
    if let Some(prompt) = &entry.prompt {
        profile.prompt = PromptDelivery::parse(prompt)
            .ok_or_else(|| missing("prompt", format!("unknown value {prompt:?}")))?;
    }
    if let Some(wire) = &entry.wire {
        profile.wire =
            Wire::parse(wire).ok_or_else(|| missing("wire", format!("unknown wire {wire:?}")))?;
    }
    if is_new && profile.provider.is_empty() {
        return Err(missing("provider", "it is not set".to_owned()));
    }
    if is_new && profile.model.is_empty() {
        return Err(missing("model", "it is not set".to_owned()));
    }
    Ok(profile)
}
