//! Where the skills of a command lie, and the words that its options share.

use crucible_forge::{ForgeContext, ForgeProject, HostName, SecretName, SkillName};
use crucible_ledger::{Ledger, SideEffect, SkillRow};
use crucible_model::{Failure, PathPrefix};
use crucible_secrets::free_of_secrets;
use crucible_settings::Settings;

use crate::app::App;
use crate::names::parse_public_name;
use crate::spec_project;

/// The project of a command, with its settings.
pub(super) struct SkillContext<'a> {
    app: &'a App,
    pub(super) project: ForgeProject,
    pub(super) settings: Settings,
}

impl<'a> SkillContext<'a> {
    /// The project that holds the working directory, with these flags on top of its settings.
    pub(super) fn new(app: &'a App, flags: &[(&str, String)]) -> Result<Self, Failure> {
        let (project, settings) = spec_project::skill_project(app, flags)?;
        Ok(Self {
            app,
            project,
            settings,
        })
    }

    /// The places and means of a step.
    pub(super) fn world(&self) -> Result<ForgeContext<'a>, Failure> {
        ForgeContext::from_settings(self.app.runtime(), &self.settings, self.app.home()?)
    }

    /// The skill of this name, with the ledger that knows it. No ledger is made for a skill that nobody proposed.
    pub(super) fn skill(&self, name: &SkillName) -> Result<(Ledger, SkillRow), Failure> {
        self.project.known_skill(self.app.optional_ledger()?, name)
    }
}

/// Reads the name of a skill.
pub(super) fn skill_name(text: &str) -> Result<SkillName, ParseError> {
    parse_public_name("the name of the skill", text)
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
