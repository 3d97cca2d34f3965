//! `crucible skill check`.

use std::path::PathBuf;

use clap::Args;
use crucible_forge::{
    Grants, HostName, MAX_POLICY_BYTES, PackageName, PythonSource, SecretName, SkillName, SkillPaths,
    SkillPolicy, check_invariants, check_policy,
};
use crucible_host::fs::read_regular_up_to;
use crucible_ledger::SideEffect;
use crucible_model::{ByteLimit, ExitStatus, PathPrefix, Verdict};

use super::place;
use crate::app::App;
use crate::error::CommandError;

/// More than the judge takes, so that it is the judge who says that a skill is too large.
const MOST_READ: ByteLimit = ByteLimit(16 << 20);

/// Judge the source of a skill by its syntax tree: what it may do, and what it is made of; nothing of it is run
///
/// For example: `crucible skill check src/skillset/skills/word_count.py --name word_count --effects READ_ONLY`
#[derive(Args)]
#[command(after_help = "Exit codes: 0 it may pass, 1 it may not, 2 usage, 3 the policy is none.")]
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
    /// The operator's rules, as in .crucible/skills/policy.yaml
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The Python package that holds the skills
    #[arg(long, value_name = "NAME", default_value = "skillset")]
    package: PackageName,
    /// A host that it may connect to; may be given several times
    #[arg(long = "allow-host", value_name = "HOST")]
    hosts: Vec<HostName>,
    /// A path of the project below which it may write; may be given several times
    #[arg(long = "allow-write", value_name = "PATH")]
    write_paths: Vec<PathPrefix>,
    /// An environment variable that is handed to it; may be given several times
    #[arg(long = "allow-secret", value_name = "NAME")]
    secrets: Vec<SecretName>,
}

impl Check {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let policy = match &self.policy {
            Some(path) => self.policy(app, path)?,
            None => SkillPolicy::default(),
        };
        let grants = Grants {
            hosts: self.hosts.clone(),
            write_paths: self.write_paths.clone(),
            secrets: self.secrets.clone(),
        };
        let paths = SkillPaths::of(&self.package, &self.name).map_err(|error| place::no_path(&error))?;
        let bytes = read_regular_up_to(&app.absolute(&self.file), MOST_READ)?;
        let verdict = match PythonSource::parse(&bytes) {
            Ok(source) => {
                let mut verdict = check_policy(&source, &policy, self.effects, &grants);
                verdict.merge(check_invariants(&source, &self.name, &paths, self.effects));
                verdict
            }
            Err(fault) => Verdict::new(vec![fault.finding()]),
        };
        app.output.verdict(
            &verdict.report("crucible-skill-check-v1"),
            "the skill keeps the policy and the invariants",
        )
    }

    fn policy(&self, app: &App, path: &std::path::Path) -> Result<SkillPolicy, CommandError> {
        let bytes = read_regular_up_to(&app.absolute(path), limit(MAX_POLICY_BYTES))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            CommandError::new(ExitStatus::Schema, format!("{}: {error}", path.display()))
                .hint("Write it as UTF-8.")
        })?;
        SkillPolicy::read(&text).map_err(|error| {
            CommandError::new(ExitStatus::Schema, format!("{}: {error}", path.display()))
                .hint("A policy is like `allowed_imports: [yaml]`.")
        })
    }
}

fn limit(bytes: usize) -> ByteLimit {
    ByteLimit(bytes as u64)
}
