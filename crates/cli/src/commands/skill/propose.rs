//! `crucible skill propose`.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use crucible_forge::{
    Grants, HeldOutExample, HostName, IoSchema, MAX_EXAMPLES_BYTES, MAX_SCHEMA_BYTES,
    ProposalError, ProposalParts, SecretName, SkillName, SkillProposal,
};
use crucible_host::fs::read_regular_up_to;
use crucible_ledger::{Moment, SideEffect};
use crucible_model::{ByteLimit, Digest, ExitStatus, Failure, PathPrefix};
use crucible_terminal::input::InputNotice;

use super::place::{self, SkillContext};
use crate::app::App;

/// The name of a file that stands for standard input.
const STANDARD_INPUT: &str = "-";
/// A document may be laid out with as much space as it has text.
const MAX_SCHEMA: usize = 4 * MAX_SCHEMA_BYTES;

/// Ask for a skill: what it is for, what goes in and out, and what it may do
///
/// The I/O schema is one JSON document, {"input": SCHEMA, "output": SCHEMA}; both are JSON Schemas (2020-12) of objects. For example:
///
/// `echo '{"input": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}, "output": {"type": "object"}}' |
/// crucible skill propose word_count --describe "Counts the words of a text." --io - --effects READ_ONLY`
///
/// A skill that fetches a page: `--effects NETWORK --allow-host api.example.com`; one that writes notes:
/// `--effects FILE_WRITE --allow-write notes/`.
///
/// Examples are inputs with the outputs that belong to them. They are kept apart: the builder of the skill is not shown them.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 proposed, 1 the record cannot be written, 2 usage, a skill of this name, or no `skill init` yet, \
    3 the I/O schema or an example is invalid, 8 secret found, 9 another process is at work on it."
)]
pub(crate) struct Propose {
    /// The name: small letters, digits and `_`, such as word_count
    #[arg(value_name = "NAME", value_parser = place::skill_name)]
    name: SkillName,
    /// What it does with what it is given, in one line
    #[arg(long, value_name = "TEXT")]
    describe: String,
    /// The I/O schema; `-` for standard input
    #[arg(long, value_name = "FILE")]
    io: PathBuf,
    /// What it may do: READ_ONLY, FILE_WRITE, NETWORK, SECRET_READ, MONEY or MESSAGING
    #[arg(long, value_name = "CLASS", value_parser = place::effects)]
    effects: SideEffect,
    /// A host that it may connect to; may be given several times
    #[arg(long = "allow-host", value_name = "HOST", value_parser = place::host)]
    hosts: Vec<HostName>,
    /// A path of the project below which it may write; may be given several times
    #[arg(long = "allow-write", value_name = "PATH", value_parser = place::granted_path)]
    write_paths: Vec<PathPrefix>,
    /// A directory or file of the project that a READ_ONLY skill may read; may be given several times
    #[arg(long = "allow-read", value_name = "PATH", value_parser = place::granted_path)]
    read_paths: Vec<PathPrefix>,
    /// An environment variable that is handed to it; may be given several times
    #[arg(long = "allow-secret", value_name = "NAME", value_parser = place::secret)]
    secrets: Vec<SecretName>,
    /// Held-out examples: a JSON list of {"input": …, "output": …}
    #[arg(long, value_name = "FILE")]
    examples: Option<PathBuf>,
}

impl Propose {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let project = SkillContext::new(app, &[])?.project;
        let target_path = project.require_initialized(&self.name)?;
        let proposal = self.proposal(app)?;
        let _alone = project.lock(&app.home()?, &self.name, "crucible skill propose")?;
        let mut ledger = app.ledger()?;
        proposal.record(&mut ledger, &project, Moment::now(app.clock.as_ref()))?;
        for finding in proposal.grants().judge().findings() {
            app.output.remark(&format!("warning: {finding}"));
        }
        if let Some(path) = target_path {
            app.output.remark(&format!(
                "note: {path} is there already; a build writes over it, `--agent as-is` takes it as it stands"
            ));
        }
        if app.output.is_json() {
            let spec = Digest::compute(&proposal.spec(&project).map_err(ProposalError::from)?);
            app.output.json(&serde_json::json!({
                "schema_version": "skill-propose.v1", "name": self.name, "status": "PROPOSED", "spec": spec,
            }))?;
            return Ok(ExitStatus::Success);
        }
        app.output.line(&format!("proposed {}", self.name));
        app.output
            .line(&format!("next: crucible skill build {}", self.name));
        Ok(ExitStatus::Success)
    }

    fn proposal(&self, app: &App) -> Result<SkillProposal, Failure> {
        let bytes = if self.io == Path::new(STANDARD_INPUT) {
            let awaited = InputNotice::Saying(
                "waiting for the I/O schema on standard input (Ctrl-D ends it)",
            );
            unreadable("--io", app.read_input(MAX_SCHEMA, awaited)?)?
        } else {
            read(app, "--io", &self.io, MAX_SCHEMA)?
        };
        let io_schema = IoSchema::parse(&bytes).map_err(|error| {
            Failure::new(ExitStatus::Schema, error.to_string())
                .hint("`crucible skill propose --help` shows a valid schema.")
        })?;
        let examples = match &self.examples {
            None => Vec::new(),
            Some(path) => {
                let bytes = read(app, "--examples", path, MAX_EXAMPLES_BYTES)?;
                HeldOutExample::read(&bytes, &io_schema)
                    .map_err(|error| Failure::new(ExitStatus::Schema, error.to_string()))?
            }
        };
        let grants = Grants {
            hosts: self.hosts.clone(),
            write_paths: self.write_paths.clone(),
            read_paths: self.read_paths.clone(),
            secrets: self.secrets.clone(),
        };
        Ok(SkillProposal::new(ProposalParts {
            name: self.name.clone(),
            description: self.describe.clone(),
            io_schema,
            side_effect: self.effects,
            grants,
            examples,
        })?)
    }
}

fn read(app: &App, flag: &str, path: &Path, most: usize) -> Result<Vec<u8>, Failure> {
    let limit = ByteLimit(u64::try_from(most).unwrap_or(u64::MAX));
    read_regular_up_to(&app.absolute(path), limit).map_err(|error| {
        Failure::usage(format!("{flag}: {error}")).hint("Name a file that can be read.")
    })
}

fn unreadable(flag: &str, read: io::Result<Vec<u8>>) -> Result<Vec<u8>, Failure> {
    read.map_err(|error| Failure::usage(format!("{flag}: standard input cannot be read: {error}")))
}
