//! Which agents are installed.

use std::path::PathBuf;

use crucible_sandbox::Runtime;
use crucible_settings::Settings;
use serde::Serialize;

use crate::configured::profiles;
use crate::error::AgentError;
use crate::profile::Wire;
use crate::registry::registry;

/// An agent, and what was found of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstalledAgent {
    /// Its name.
    pub name: String,
    /// Its program, as it is configured.
    pub program: String,
    /// Where the program is; `None` if it is not installed.
    pub path: Option<PathBuf>,
    /// The version that it reported.
    pub version: Option<String>,
    /// The version that the project's tests run; `None` for an agent of the settings.
    pub tested_version: Option<&'static str>,
    /// The API that it speaks.
    pub wire: Wire,
    /// The provider that its requests are forwarded to.
    pub provider: String,
    /// The model that it uses.
    pub model: String,
    /// Whether a further attempt continues its session.
    pub resumes: bool,
}

/// Finds every agent, and asks each that is installed for its version.
///
/// # Errors
///
/// Fails if a setting of an agent is not allowed.
pub async fn installed(
    runtime: &Runtime<'_>,
    settings: &Settings,
) -> Result<Vec<InstalledAgent>, AgentError> {
    let mut found = Vec::new();
    let profiles = profiles(settings)?;
    let built_in = registry()
        .iter()
        .map(|kind| (kind.profile().name, kind.tested_version()));
    let built_in: Vec<(String, &'static str)> = built_in.collect();
    let rank = |name: &str| {
        built_in
            .iter()
            .position(|(known, _)| known == name)
            .unwrap_or(usize::MAX)
    };
    let mut names: Vec<&String> = profiles.keys().collect();
    names.sort_by_key(|name| (rank(name), *name));
    for name in names {
        let Some(profile) = profiles.get(name) else {
            continue;
        };
        let path = runtime.env.find_program(&profile.program).ok();
        let version = match &path {
            Some(path) => runtime.sandbox.version_of(path).await.ok(),
            None => None,
        };
        found.push(InstalledAgent {
            name: name.clone(),
            program: profile.program.clone(),
            path,
            version: version.and_then(|version_output| version_output.number),
            tested_version: built_in
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, version)| *version),
            wire: profile.wire,
            provider: profile.provider.clone(),
            model: profile.model.clone(),
            resumes: !profile.resume.is_empty(),
        });
    }
    Ok(found)
}
