//! `crucible attest key`: the public half of the signing key.

use clap::Args;
use crucible_attest::PublicKey;
use crucible_model::{ExitStatus, Failure};
use crucible_run::Signing;

use crate::app::App;

/// Print the public half of the signing key
///
/// The output is the entry for a policy's `[[signers]]`.
#[derive(Args)]
pub(crate) struct Key {}

impl Key {
    #[expect(
        clippy::unused_self,
        reason = "every command is called on its arguments"
    )]
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let settings = app.config(app.env.working_directory(), &[])?;
        let home = app.home()?;
        let signing = Signing::configured(&settings, app.runtime().sandbox, &app.env, &home)?;
        show(app, signing.signer(&home)?.public_key())
    }
}

/// Prints a public key as an entry of a policy.
pub(super) fn show(app: &App, key: &PublicKey) -> Result<ExitStatus, Failure> {
    let document = serde_json::json!({
        "schema_version": "crucible-attest-key-v1", "key": key.to_string(), "fingerprint": key.fingerprint(),
    });
    app.output.show(
        || &document,
        || {
            app.output.line("[[signers]]");
            app.output.line("name = \"NAME\"");
            app.output.line(&format!("key = \"{key}\""));
            app.output.remark(&format!(
                "fingerprint {}; replace NAME by the name of this machine or person",
                key.fingerprint()
            ));
        },
    )
}
