//! `crucible attest door`: the hook of a repository that asks for statements.

use std::path::{Path, PathBuf};

use clap::Args;
use crucible_attest::RefUpdate;
use crucible_llm::configured::strength;
use crucible_model::{ExitStatus, Failure};
use crucible_repo::CommitReader;
use crucible_run::{check_push, claim_runs, rerun_gates};
use crucible_terminal::input::InputNotice;

use super::{policy, report};
use crate::app::App;

/// The longest input in bytes: some hundred thousand refs.
const MAX_INPUT: usize = 64 << 20;

/// Refuse pushes of commits without a valid statement
///
/// Call it in the hook `pre-receive`, where git writes the refs to standard input, or in the hook `update` with its three
/// arguments. The policy must be a file of the server, not of the push. For example:
/// `exec crucible attest door --policy /etc/crucible/attest.toml`
#[derive(Args)]
pub(crate) struct Door {
    /// The policy [default: attest.policy]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The arguments of the hook `update`
    #[arg(value_names = ["REF", "OLD", "NEW"], num_args = 3)]
    update: Vec<String>,
}

impl Door {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let policy = policy(app, self.policy.as_deref())?;
        let lines = match self.update.as_slice() {
            [name, old, new] => format!("{old} {new} {name}\n"),
            _ => input(app)?,
        };
        let updates: Vec<RefUpdate> = lines.lines().map(str::parse).collect::<Result<_, _>>()?;
        if updates.is_empty() {
            // git calls `pre-receive` only with refs, and `update` with nothing on standard input.
            return Err(Failure::usage("there is no ref to judge on standard input")
                .hint("In the hook `update`, pass its arguments: `crucible attest door --policy FILE \"$@\"`."));
        }
        if app
            .env
            .get_os("GIT_NAMESPACE")
            .is_some_and(|name| !name.is_empty())
        {
            return Err(Failure::usage(
                "the door does not judge repositories with git namespaces (GIT_NAMESPACE)",
            )
            .hint("Give each project a repository of its own."));
        }
        let reader = CommitReader::open(app.runtime().sandbox, &app.env, Path::new("."))?;
        let mut check = app.drive(check_push(&reader, &policy, &updates, app.clock.now()))?;
        // A push that is refused anyway costs no gate.
        if check.verdict.passes() && !policy.rerun_gates().is_empty() {
            let config = app.config(app.env.working_directory(), &[])?;
            let world = app.world(&app.runtime().sandbox, &config)?;
            let strength = strength(&config)?;
            let gates = rerun_gates(&world, &reader, &policy, &updates, strength);
            check.verdict.merge(app.drive(gates)?);
        }
        if check.verdict.passes() {
            claim_runs(&reader, &mut check)?;
        }
        report::show(app, &check)
    }
}

fn input(app: &App) -> Result<String, Failure> {
    let awaited = InputNotice::Saying("reading the refs of a push from standard input");
    let bytes = app
        .read_input(MAX_INPUT, awaited)?
        .map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
    if bytes.len() > MAX_INPUT {
        return Err(Failure::usage(format!(
            "standard input has more than {MAX_INPUT} bytes"
        )));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage("a ref is not UTF-8"))
}
