//! `crucible attest carry`: a rewritten commit gets the statements of the one that landed.

use std::path::PathBuf;

use clap::Args;
use crucible_model::{ExitStatus, Failure};
use crucible_repo::CommitReader;
use crucible_run::{Signing, carry};

use super::policy;
use crate::app::App;

/// Sign the statements of a commit again for a rewritten one
///
/// Both commits must have the same tree, and the policy must admit the old one by its statements. The new statements name
/// the commit that landed. A policy admits them only with `[admit] carried = true`.
#[derive(Args)]
pub(crate) struct Carry {
    /// The commit that landed
    old: String,
    /// The rewritten commit
    new: String,
    /// The policy [default: attest.policy]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The repository [default: the one around the working directory]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
}

impl Carry {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let policy = policy(app, self.policy.as_deref())?;
        let world = app.world_here()?;
        let home = app.home()?;
        let settings = app.config(app.env.working_directory(), &[])?;
        let signing = Signing::configured(&settings, world.sandbox.clone(), &app.env, &home)?;
        let signer = signing.signer(&home)?;
        let place = self.repo.clone().unwrap_or_default();
        let reader = CommitReader::open(world.sandbox.clone(), &app.env, &place)?;
        let work = carry(
            &world,
            &reader,
            &policy,
            signer,
            None,
            [&self.old, &self.new],
        );
        let (old, new) = app.drive(work)?;
        let document = serde_json::json!({ "schema_version": "crucible-attest-carry-v1", "from": old, "to": new });
        app.output.show(
            || &document,
            || {
                app.output
                    .line(&format!("carried the statements of {old} to {new}"))
            },
        )
    }
}
