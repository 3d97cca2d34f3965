//! From the settings to the steps of a skill.

mod adviser;
mod author;

use std::path::PathBuf;
use std::time::Duration;

use crucible_ledger::{Ledger, SkillRow, VerificationLevel};
use crucible_llm::configured::strength;
use crucible_llm::{CallBudget, ClientOptions, ModelClient, Recording, RecordingFile, configured};
use crucible_model::{Digest, Failure};
use crucible_sandbox::Runtime;
use crucible_settings::{ExamplesNeed, Settings};
use serde_json::Value;

use crate::context::ForgeContext;
use crate::name::{SkillName, SkillNameError};
use crate::paths::PackageName;
use crate::project::ForgeProject;
use crate::registry::UnhashedPolicy;
use crate::runner::RunRequest;
use crate::trust::ExamplesRule;
use crate::verify::VerifyRequest;

pub use adviser::ConfiguredAdviser;
pub use author::{AuthorKind, ModelArguments};

impl ForgeProject {
    /// Creates the project at `root`, which the ledger knows by `key`, with the configured package.
    ///
    /// # Errors
    ///
    /// Fails if `forge.package` is not the name of a Python package.
    pub fn from_settings(settings: &Settings, root: PathBuf, key: Digest) -> Result<Self, Failure> {
        let named = settings.forge.package.as_deref().unwrap_or_default();
        let package: PackageName = named.parse().map_err(|error: SkillNameError| {
            Failure::usage(format!("forge.package: {error}"))
                .hint("It is the Python package below src/ that holds the project's skills, such as skillset.")
        })?;
        Ok(Self::new(root, key, package))
    }

    /// Returns the skill of this name, with the ledger that knows it.
    ///
    /// # Errors
    ///
    /// Fails if there is no ledger, if it does not know the skill, or if it cannot be read.
    pub fn known_skill(
        &self,
        ledger: Option<Ledger>,
        name: &SkillName,
    ) -> Result<(Ledger, SkillRow), Failure> {
        let unknown = || {
            Failure::usage(format!("this project has no skill {name}"))
                .hint("`crucible skill list` lists the skills; `crucible skill propose` adds one.")
        };
        let ledger = ledger.ok_or_else(unknown)?;
        let row = ledger
            .skill(self.key(), name.as_str())?
            .ok_or_else(unknown)?;
        Ok((ledger, row))
    }
}

impl<'a> ForgeContext<'a> {
    /// Creates the world of a step; `home` is Crucible's own directory.
    ///
    /// # Errors
    ///
    /// Fails if `sandbox.strength` cannot be used.
    pub fn from_settings(
        runtime: Runtime<'a>,
        settings: &Settings,
        home: PathBuf,
    ) -> Result<Self, Failure> {
        Ok(Self {
            env: runtime.env,
            clock: runtime.clock,
            sandbox: runtime.sandbox,
            strength: strength(settings)?,
            tmp: home.join("tmp"),
            home,
        })
    }
}

/// The programs and modules of a skill, as configured.
pub struct PythonPlaces {
    tools: Option<PathBuf>,
    python: Option<PathBuf>,
    site_packages: Vec<PathBuf>,
}

impl PythonPlaces {
    /// Reads the places from `[forge]`.
    ///
    /// # Errors
    ///
    /// Fails if an entry of `forge.site_packages` is not the absolute path of a directory.
    pub fn from_settings(settings: &Settings) -> Result<Self, Failure> {
        let forge = &settings.forge;
        let site_packages: Vec<PathBuf> = forge.site_packages.iter().map(PathBuf::from).collect();
        let is_bad = |place: &&PathBuf| !place.is_absolute() || !place.is_dir();
        if let Some(bad) = site_packages.iter().find(is_bad) {
            return Err(Failure::usage(format!(
                "forge.site_packages: {} is not an absolute path of a directory",
                bad.display()
            ))
            .hint(
                "Name the directories that hold the packages, from / on, in your own configuration.",
            ));
        }
        Ok(Self {
            tools: forge.tools.clone().map(PathBuf::from),
            python: forge.python.clone().map(PathBuf::from),
            site_packages,
        })
    }

    /// Returns the request to verify a skill.
    ///
    /// # Errors
    ///
    /// Fails if `forge.gate_timeout_s` is zero.
    pub fn verify_request<'a>(
        &'a self,
        settings: &Settings,
        name: &'a SkillName,
        level: VerificationLevel,
    ) -> Result<VerifyRequest<'a>, Failure> {
        Ok(VerifyRequest {
            name,
            level,
            tools: self.tools.as_deref(),
            python: self.python.as_deref(),
            site_packages: &self.site_packages,
            timeout: at_least_a_second(
                "forge.gate_timeout_s: a gate",
                settings.forge.gate_timeout_s,
            )?,
        })
    }

    /// Returns the request to run a skill. `seconds` replaces `forge.run_timeout_s`.
    ///
    /// # Errors
    ///
    /// Fails if the time limit is zero.
    pub fn run_request<'a>(
        &'a self,
        settings: &Settings,
        name: &'a SkillName,
        input: &'a Value,
        seconds: Option<u64>,
        unhashed: UnhashedPolicy,
    ) -> Result<RunRequest<'a>, Failure> {
        let forge = &settings.forge;
        let seconds = seconds.unwrap_or(forge.run_timeout_s);
        Ok(RunRequest {
            name,
            input,
            timeout: at_least_a_second("forge.run_timeout_s: a skill", seconds)?,
            unhashed,
            python: self.python.as_deref(),
            site_packages: &self.site_packages,
            demote_after: u32::try_from(forge.demote_after_failures).unwrap_or(u32::MAX),
        })
    }
}

fn at_least_a_second(what: &str, seconds: u64) -> Result<Duration, Failure> {
    match seconds {
        0 => Err(Failure::usage(format!("{what} needs at least one second"))),
        seconds => Ok(Duration::from_secs(seconds)),
    }
}

/// Fails if one of these settings is zero; `effect` says what zero means.
fn all_positive(settings: [(&str, u64); 2], effect: &str) -> Result<(), Failure> {
    match settings.into_iter().find(|(_, number)| *number == 0) {
        Some((key, _)) => Err(Failure::usage(format!("{key} is 0, with which {effect}"))
            .hint("It takes a whole number from 1.")),
        None => Ok(()),
    }
}

impl ExamplesRule {
    /// Reads whether a promotion requires held-out examples.
    ///
    /// # Errors
    ///
    /// Fails if `forge.examples` is not a listed word.
    pub fn from_settings(settings: &Settings) -> Result<Self, Failure> {
        match settings.forge.examples.get() {
            Ok(ExamplesNeed::Optional) => Ok(Self::Optional),
            Ok(ExamplesNeed::Required) => Ok(Self::Required),
            Err(other) => Err(Failure::usage(format!(
                "forge.examples: {other:?} is neither optional nor required"
            ))),
        }
    }
}

/// Returns a client of this backend, with the configured prices and limits.
fn client(
    settings: &Settings,
    backend: crucible_llm::Backend,
    record: Option<&RecordingFile>,
) -> Result<ModelClient, Failure> {
    let limits = configured::limits(settings)?;
    let recording = record
        .map(|record| record.recording(&backend))
        .transpose()?;
    let options = ClientOptions {
        recording: recording.unwrap_or(Recording::Off),
        prices: std::sync::Arc::new(configured::prices(settings)?),
        ..ClientOptions::new(CallBudget::new(limits))
    };
    Ok(ModelClient::new(backend, options))
}
