//! `crucible attest init`: a signing key of Crucible's own.

use clap::Args;
use crucible_attest::create_key;
use crucible_model::{ExitStatus, Failure};
use crucible_run::key_directory;

use crate::app::App;
use crate::commands::attest::key::show;

/// Create a signing key in Crucible's home
///
/// The key is an Ed25519 key without a passphrase that only you can read. Gates, agents and hooks cannot reach it. From
/// now on `crucible run land` signs. A key in an agent or a device is better: name its public half with
/// `crucible config set --user attest.key FILE`. An existing key is kept.
#[derive(Args)]
pub(crate) struct Init {}

impl Init {
    #[expect(
        clippy::unused_self,
        reason = "every command is called on its arguments"
    )]
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let runtime = app.runtime();
        let directory = key_directory(&app.home()?);
        let signer = app.drive(create_key(runtime.sandbox, &app.env, &directory))?;
        show(app, signer.public_key())
    }
}
