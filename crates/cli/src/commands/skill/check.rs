//! `crucible skill check`.

use std::path::{Path, PathBuf};

use clap::Args;
use crucible_forge::{
    ForgeProject, Grants, HostName, MAX_POLICY_BYTES, POLICY_FILE, PackageName, PolicyUnread,
    PythonSource, SecretName, SkillName, SkillPaths, SkillPolicy, check_invariants, check_policy,
};
use crucible_host::fs::read_regular_up_to;
use crucible_ledger::SideEffect;
use crucible_model::{ByteLimit, ExitStatus, PathPrefix, Verdict};

use super::place;
use crate::app::App;
use crate::error::CommandError;

/// What is read of a policy: all of one that is taken.
const MOST_OF_POLICY: ByteLimit = ByteLimit(MAX_POLICY_BYTES as u64);
/// More than the judge takes, so that it is the judge who says that a skill is too large.
const MOST_READ: ByteLimit = ByteLimit(16 << 20);

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
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let project = place::project(app)?;
        let Rules { policy, told } = self.rules(app, &project)?;
        let grants = Grants {
            hosts: self.hosts.clone(),
            write_paths: self.write_paths.clone(),
            read_paths: self.read_paths.clone(),
            secrets: self.secrets.clone(),
        };
        let paths = SkillPaths::of(
            self.package.as_ref().unwrap_or(project.package()),
            &self.name,
        )
        .map_err(|error| place::no_path(&error))?;
        let bytes = read_regular_up_to(&app.absolute(&self.file), MOST_READ)
            .map_err(CommandError::unreadable)?;
        let verdict = match PythonSource::parse(&bytes) {
            Ok(source) => {
                let mut verdict = check_policy(&source, &policy, self.effects, &grants);
                verdict.merge(check_invariants(&source, &self.name, &paths, self.effects));
                verdict
            }
            Err(fault) => Verdict::new(vec![fault.finding()]),
        };
        app.output.remark(&told);
        app.output.verdict(
            &verdict.report("crucible-skill-check-v1"),
            "the skill keeps the policy and the invariants",
        )
    }

    /// The operator's rules: those that are named, else the project's own, else none.
    fn rules(&self, app: &App, project: &ForgeProject) -> Result<Rules, CommandError> {
        if let Some(named) = &self.policy {
            let path = app.absolute(named);
            let bytes =
                read_regular_up_to(&path, MOST_OF_POLICY).map_err(CommandError::unreadable)?;
            return Rules::read(bytes, &path);
        }
        let path = project.root().join(POLICY_FILE);
        Ok(match project.policy()? {
            Some(policy) => Rules {
                policy,
                told: format!("policy: {}", path.display()),
            },
            None => Rules {
                policy: SkillPolicy::default(),
                told: format!(
                    "policy: the rules that always hold; there is no {}",
                    path.display()
                ),
            },
        })
    }
}

impl From<PolicyUnread> for CommandError {
    fn from(error: PolicyUnread) -> Self {
        let message = error.to_string();
        match error {
            PolicyUnread::Fs(error) => Self::unreadable(error),
            PolicyUnread::NotText | PolicyUnread::Rules(_) => {
                Self::new(ExitStatus::Schema, message)
                    .hint("A policy is like `allowed_imports: [yaml]`.")
            }
        }
    }
}

/// The rules that a skill is judged by.
struct Rules {
    policy: SkillPolicy,
    /// Which those are, for people.
    told: String,
}

impl Rules {
    fn read(bytes: Vec<u8>, path: &Path) -> Result<Self, CommandError> {
        let text = String::from_utf8(bytes).map_err(|error| {
            CommandError::new(ExitStatus::Schema, format!("{}: {error}", path.display()))
                .hint("Write it as UTF-8.")
        })?;
        let policy = SkillPolicy::read(&text).map_err(|error| {
            CommandError::new(ExitStatus::Schema, format!("{}: {error}", path.display()))
                .hint("A policy is like `allowed_imports: [yaml]`.")
        })?;
        Ok(Self {
            policy,
            told: format!("policy: {}", path.display()),
        })
    }
}
