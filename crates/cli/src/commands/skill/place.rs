//! Where the skills of a command lie, and the words that its options share.

use std::sync::Arc;

use crucible_forge::{ForgeProject, ForgeWorld, PackageName, SkillName, SkillNameError};
use crucible_ledger::{Ledger, SideEffect, SkillRow};
use crucible_model::RepoPathError;

use crate::app::{self, App};
use crate::commands::SecretInName;
use crate::commands::spec::place;
use crate::error::CommandError;

/// The project whose skills the command works on: the one that holds the working directory.
pub(super) fn project(app: &App) -> Result<ForgeProject, CommandError> {
    let found = place::project(app, None)?;
    let config = app.config(found.root(), &[])?;
    let named = config.text("forge.package").unwrap_or_default();
    let package: PackageName = named.parse().map_err(|error: SkillNameError| {
        CommandError::usage(format!("forge.package: {error}"))
            .hint("It is the Python package below src/ that holds the project's skills, such as skillset.")
    })?;
    Ok(ForgeProject::new(found.root().to_owned(), found.key()?, package))
}

/// The places and means of a step of a skill of this project.
pub(super) fn world<'a>(app: &'a App, project: &ForgeProject) -> Result<ForgeWorld<'a>, CommandError> {
    let config = app.config(project.root(), &[])?;
    let home = app.home()?;
    Ok(ForgeWorld {
        env: &app.env,
        clock: app.clock.as_ref(),
        sandbox: Arc::new(app.sandbox()),
        strength: app::strength(&config)?,
        tmp: home.join("tmp"),
        home,
    })
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
    let row = ledger.skill(project.key(), name.as_str())?.ok_or_else(unknown)?;
    Ok((ledger, row))
}

/// A path of a skill that cannot be one.
pub(super) fn no_path(error: &RepoPathError) -> CommandError {
    CommandError::usage(error.to_string())
}

/// Reads the name of a skill.
pub(super) fn skill_name(text: &str) -> Result<SkillName, Box<dyn std::error::Error + Send + Sync>> {
    place::named("the name of the skill", text)
}

/// Reads a class of side effects, in capitals or not.
pub(super) fn effects(text: &str) -> Result<SideEffect, String> {
    SideEffect::parse(&text.to_ascii_uppercase()).ok_or_else(|| {
        let names: Vec<&str> = SideEffect::ALL.iter().map(|class| class.as_str()).collect();
        format!("the classes are {}", names.join(", "))
    })
}

/// Refuses a text of an option that looks like a secret before it is quoted anywhere.
pub(super) fn free_of_secrets(what: &'static str, text: &str) -> Result<(), SecretInName> {
    place::free_of_secrets(what, text)
}
