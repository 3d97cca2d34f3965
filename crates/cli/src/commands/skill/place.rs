//! Where the skills of a command lie, and the words that its options share.

use std::path::PathBuf;

use crucible_forge::{
    ForgeProject, ForgeWorld, HostName, PackageName, SecretName, SkillName, SkillNameError,
    StepRefused,
};
use crucible_ledger::{Ledger, SideEffect, SkillRow};
use crucible_llm::configured::strength;
use crucible_model::{ExitStatus, PathPrefix, RepoPathError};
use crucible_secrets::free_of_secrets;
use crucible_settings::Settings;

use crate::app::App;
use crate::error::CommandError;
use crate::names::named;
use crate::spec_project;

/// The project whose skills the command works on: the one that holds the working directory.
pub(super) fn project(app: &App) -> Result<ForgeProject, CommandError> {
    let found = spec_project::project(app, None)?;
    let config = app.config(found.root(), &[])?;
    let named = config.forge.package.as_deref().unwrap_or_default();
    let package: PackageName = named.parse().map_err(|error: SkillNameError| {
        CommandError::usage(format!("forge.package: {error}"))
            .hint("It is the Python package below src/ that holds the project's skills, such as skillset.")
    })?;
    Ok(ForgeProject::new(
        found.root().to_owned(),
        found.key()?,
        package,
    ))
}

/// The places and means of a step of a skill of this project.
pub(super) fn world<'a>(
    app: &'a App,
    project: &ForgeProject,
) -> Result<ForgeWorld<'a>, CommandError> {
    let config = app.config(project.root(), &[])?;
    let home = app.home()?;
    Ok(ForgeWorld {
        env: &app.env,
        clock: app.clock.as_ref(),
        sandbox: app.runtime().sandbox,
        strength: strength(&config)?,
        tmp: home.join("tmp"),
        home,
    })
}

/// Where skills find modules that are not Python's own ([forge] site_packages).
pub(super) fn site_packages(config: &Settings) -> Result<Vec<PathBuf>, CommandError> {
    let places: Vec<PathBuf> = config
        .forge
        .site_packages
        .iter()
        .map(PathBuf::from)
        .collect();
    match places
        .iter()
        .find(|place| !place.is_absolute() || !place.is_dir())
    {
        None => Ok(places),
        Some(bad) => Err(CommandError::usage(format!(
            "forge.site_packages: {} is no absolute path of a directory",
            bad.display()
        ))
        .hint(
            "Name the directories that hold the packages, from / on, in your own configuration.",
        )),
    }
}

/// The skill of this name, with the ledger that knows it.
pub(super) fn skill(
    app: &App,
    project: &ForgeProject,
    name: &SkillName,
) -> Result<(Ledger, SkillRow), CommandError> {
    let unknown = || {
        CommandError::usage(format!("this project has no skill {name}"))
            .hint("`crucible skill list` shows those there are; `crucible skill propose` asks for another.")
    };
    let ledger = app.ledger_to_ask()?.ok_or_else(unknown)?;
    let row = ledger
        .skill(project.key(), name.as_str())?
        .ok_or_else(unknown)?;
    Ok((ledger, row))
}

impl From<StepRefused> for CommandError {
    fn from(refused: StepRefused) -> Self {
        let error = Self::new(ExitStatus::Refused, refused.to_string());
        match refused.hint() {
            Some(hint) => error.hint(format!("{hint}.")),
            None => error,
        }
    }
}

/// A path of a skill that cannot be one.
pub(super) fn no_path(error: &RepoPathError) -> CommandError {
    CommandError::usage(error.to_string())
}

/// Reads the name of a skill.
pub(super) fn skill_name(text: &str) -> Result<SkillName, ParseError> {
    named("the name of the skill", text)
}

/// Reads a class of side effects, in capitals or not.
pub(super) fn effects(text: &str) -> Result<SideEffect, String> {
    SideEffect::parse(&text.to_ascii_uppercase()).ok_or_else(|| {
        let names: Vec<&str> = SideEffect::ALL.iter().map(|class| class.as_str()).collect();
        format!("the classes are {}", names.join(", "))
    })
}

type ParseError = Box<dyn std::error::Error + Send + Sync>;

/// Reads a host that is granted.
pub(super) fn host(text: &str) -> Result<HostName, ParseError> {
    free_of_secrets("the host", text)?;
    Ok(text.parse::<HostName>()?)
}

/// Reads a path below which may be written, or read.
pub(super) fn granted_path(text: &str) -> Result<PathPrefix, ParseError> {
    free_of_secrets("the path", text)?;
    Ok(text.parse::<PathPrefix>()?)
}

/// Reads the name of a secret that is handed over.
pub(super) fn secret(text: &str) -> Result<SecretName, ParseError> {
    free_of_secrets("the name of the secret", text)?;
    Ok(text.parse::<SecretName>()?)
}
