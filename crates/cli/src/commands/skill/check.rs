//! `crucible skill check`.

use std::path::PathBuf;

use clap::Args;
use crucible_forge::{
    Grants, HostName, PackageName, SecretName, SkillCheck, SkillName, SkillPaths,
};
use crucible_ledger::SideEffect;
use crucible_model::{ExitStatus, Failure, PathPrefix};

use super::place::{self, SkillContext};
use crate::app::App;

/// Judge the source of a skill by its syntax tree: what it may do, and what it is made of; nothing of it is run
///
/// The policy is that of --policy, else .crucible/skills/policy.yaml of the project that holds the working directory, else none but the
/// rules that always hold; the package is that of --package, else [forge] package.
///
/// For example: `crucible skill check src/skillset/skills/word_count.py --name word_count --effects READ_ONLY`
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 it may pass, 1 it may not, 2 usage or an unreadable file, 3 the policy is invalid, 7 a file is too large, \
    8 secret found."
)]
pub(crate) struct Check {
    /// The source of the skill
    #[arg(value_name = "FILE.py")]
    file: PathBuf,
    /// The name that it has to have
    #[arg(long, value_name = "NAME", value_parser = place::skill_name)]
    name: SkillName,
    /// What it may do: READ_ONLY, FILE_WRITE, NETWORK, SECRET_READ, MONEY or MESSAGING
    #[arg(long, value_name = "CLASS", value_parser = place::effects)]
    effects: SideEffect,
    /// The operator's rules, instead of the project's
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The Python package that holds the skills, instead of the project's
    #[arg(long, value_name = "NAME")]
    package: Option<PackageName>,
    /// A host that it may connect to; may be given several times
    #[arg(long = "allow-host", value_name = "HOST", value_parser = place::host)]
    hosts: Vec<HostName>,
    /// A path of the project below which it may write; may be given several times
    #[arg(long = "allow-write", value_name = "PATH", value_parser = place::granted_path)]
    write_paths: Vec<PathPrefix>,
    /// A directory or file of the project that it may read; may be given several times
    #[arg(long = "allow-read", value_name = "PATH", value_parser = place::granted_path)]
    read_paths: Vec<PathPrefix>,
    /// An environment variable that is handed to it; may be given several times
    #[arg(long = "allow-secret", value_name = "NAME", value_parser = place::secret)]
    secrets: Vec<SecretName>,
}

impl Check {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let project = SkillContext::new(app, &[])?.project;
        let named = self.policy.as_deref().map(|named| app.absolute(named));
        let (policy, rules) = project.rules(named.as_deref())?;
        let grants = Grants {
            hosts: self.hosts.clone(),
            write_paths: self.write_paths.clone(),
            read_paths: self.read_paths.clone(),
            secrets: self.secrets.clone(),
        };
        let package = self.package.as_ref().unwrap_or(project.package());
        let check = SkillCheck {
            policy: &policy,
            name: &self.name,
            paths: &SkillPaths::new(package, &self.name)?,
            effects: self.effects,
            grants: &grants,
        };
        let verdict = check.judge(&app.absolute(&self.file))?;
        app.output.remark(&rules);
        app.output.verdict(
            &verdict.report("crucible-skill-check-v1"),
            "the skill keeps the policy and the invariants",
        )
    }
}
