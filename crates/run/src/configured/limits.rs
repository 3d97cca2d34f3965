//! The limits of a run and of its context pack, and the documents that a pack begins with.

use crucible_model::{EditFormat, Failure, RepoPath};
use crucible_settings::Settings;
use crucible_verify::{BrokenPolicy, ObjectionPolicy, ResultsPolicy, SINK_KINDS, WorldPolicy};

use crate::contract::{ContextSettings, ContractDocuments, PatchLimits};
use crate::pack_limits::PackLimits;

/// Returns how much a patch may change.
#[must_use]
pub fn patch_limits(config: &Settings) -> PatchLimits {
    PatchLimits {
        max_files: config.patch.max_files,
        max_added_lines: config.patch.max_added_lines,
    }
}

/// Reads which documents a context pack begins with.
///
/// # Errors
///
/// Fails if a value is not allowed.
pub(crate) fn context_settings(config: &Settings) -> Result<ContextSettings, Failure> {
    let contract = match config.context.contract.as_deref() {
        None => ContractDocuments::WherePresent,
        Some("ctcp") => ContractDocuments::Required,
        Some(other) => {
            return Err(
                Failure::usage(format!("unknown context.contract {other:?}"))
                    .hint("Use \"ctcp\", or remove the setting."),
            );
        }
    };
    let mut mandatory = Vec::new();
    for path in &config.context.mandatory {
        mandatory.push(path.parse::<RepoPath>().map_err(|error| {
            Failure::usage(format!("context.mandatory: {path:?}: {error}"))
                .hint("Name documents relative to the repository's top directory.")
        })?);
    }
    Ok(ContextSettings {
        contract,
        mandatory,
    })
}

/// Returns the limits of a provider's context pack, and the context window of its model if known. A limit that the user
/// sets only lowers the limit that follows from the window.
///
/// # Errors
///
/// Fails if a limit is zero or too large.
pub(crate) fn pack_limits(
    config: &Settings,
    provider: &str,
) -> Result<(PackLimits, Option<u64>), Failure> {
    let (files, bytes) = ("run.max_files", "run.max_total_bytes");
    let set = PackLimits {
        max_files: limit(files, config.run.max_files)?,
        max_total_bytes: limit(bytes, config.run.max_total_bytes)?,
    };
    let section = config.provider(provider);
    let window = section.context_window;
    if window == 0 {
        return Ok((set, None));
    }
    let mut limits = PackLimits::for_window(
        window,
        section.max_tokens,
        config.run.max_file_requests,
        set,
    );
    if config.is_set(files) {
        limits.max_files = limits.max_files.min(set.max_files);
    }
    if config.is_set(bytes) {
        limits.max_total_bytes = limits.max_total_bytes.min(set.max_total_bytes);
    }
    Ok((limits, Some(window)))
}

/// A limit that a run writes into its guardrails.
pub(super) fn limit(key: &str, number: u64) -> Result<u64, Failure> {
    if u32::try_from(number).is_ok_and(|number| number > 0) {
        return Ok(number);
    }
    Err(
        Failure::usage(format!("{key} must be from 1 to 4294967295"))
            .hint("Set a whole number in this range."),
    )
}

/// The rules that judge what the gates show of a change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChangePolicies {
    pub(crate) broken_change: BrokenPolicy,
    pub(crate) second_world: WorldPolicy,
    pub(crate) results_outside: ResultsPolicy,
    pub(crate) objections: ObjectionPolicy,
    /// In percent.
    pub(crate) min_strength: u64,
    pub(crate) sinks_need_approval: Vec<String>,
}

/// Returns the rules that judge what the gates show of a change.
///
/// # Errors
///
/// Fails if a value is not allowed.
pub(crate) fn change_policies(config: &Settings) -> Result<ChangePolicies, Failure> {
    let run = &config.run;
    Ok(ChangePolicies {
        broken_change: policy(
            "run.broken_change",
            &run.broken_change,
            &BrokenPolicy::NAMES,
        )?,
        second_world: policy("run.second_world", &run.second_world, &WorldPolicy::NAMES)?,
        results_outside: policy(
            "run.results_outside",
            &run.results_outside,
            &ResultsPolicy::NAMES,
        )?,
        objections: policy("run.objections", &run.objections, &ObjectionPolicy::NAMES)?,
        min_strength: run.min_strength.min(100),
        sinks_need_approval: sink_kinds(config)?,
    })
}

/// Returns the policy of this name; the default if none is set.
fn policy<P: Copy + Default>(
    key: &str,
    name: &Option<String>,
    names: &[(&str, P)],
) -> Result<P, Failure> {
    let Some(name) = name.as_deref() else {
        return Ok(P::default());
    };
    let known = names.iter().find(|(known, _)| *known == name);
    known.map(|(_, policy)| *policy).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        Failure::usage(format!("unknown {key} {name:?}"))
            .hint(format!("Use one of {}.", names.join(", ")))
    })
}

pub(super) fn edit_format(config: &Settings) -> Result<Option<EditFormat>, Failure> {
    let Some(name) = config.run.edit_format.as_deref() else {
        return Ok(None);
    };
    serde_json::from_value(name.into()).map(Some).map_err(|_| {
        Failure::usage(format!("unknown run.edit_format {name:?}"))
            .hint("Use whole-file, search-replace, definitions or unified-diff.")
    })
}

/// The kinds of sinks that need an approval.
fn sink_kinds(config: &Settings) -> Result<Vec<String>, Failure> {
    let kinds = &config.run.sinks_need_approval;
    match kinds
        .iter()
        .find(|kind| !SINK_KINDS.contains(&kind.as_str()))
    {
        Some(unknown) => Err(Failure::usage(format!(
            "run.sinks_need_approval: unknown kind {unknown:?}; use one of {}",
            SINK_KINDS.join(", ")
        ))),
        None => Ok(kinds.clone()),
    }
}

#[cfg(test)]
mod tests {
    use crucible_host::env::Environment;
    use crucible_patch::Policy;
    use crucible_settings::ConfigFiles;

    use super::*;

    #[test]
    fn the_configurations_limits_are_the_policys_own() {
        let files = ConfigFiles {
            user: "/nonexistent/config.toml".into(),
            ..ConfigFiles::default()
        };
        let config = Settings::load(&files, &Environment::default(), &[]).unwrap();
        let limits = patch_limits(&config);
        let policy = Policy::default();
        assert_eq!(
            (limits.max_files, limits.max_added_lines),
            (policy.max_files, policy.max_added_lines)
        );
    }
}
