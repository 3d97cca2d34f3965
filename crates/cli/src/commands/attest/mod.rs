//! `crucible attest`: signed statements about commits, and the door that asks for them.

mod carry;
mod door;
mod export;
mod init;
mod key;
mod report;
mod verify;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use crucible_attest::Policy;
use crucible_host::fs::read_regular_up_to;
use crucible_model::{ByteLimit, ExitStatus, Failure};
use crucible_terminal::{Format, OutputMode};

use crate::app::App;

/// The largest policy that is read, in bytes.
const MAX_POLICY: ByteLimit = ByteLimit(1 << 20);

/// Sign statements about commits, and verify them
#[derive(Subcommand)]
pub(crate) enum Attest {
    Init(init::Init),
    Key(key::Key),
    Verify(verify::Verify),
    Door(door::Door),
    Carry(carry::Carry),
    Export(export::Export),
}

impl Attest {
    /// The output mode of the command.
    pub(crate) fn mode(&self, json: bool) -> OutputMode {
        let json = json || matches!(self, Self::Verify(verify) if verify.is_json());
        OutputMode::plain(if json { Format::Json } else { Format::Human })
    }

    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        dispatch!(self, app, [Init, Key, Verify, Door, Carry, Export])
    }
}

/// Reads the policy that the command line or the settings name.
fn policy(app: &App, named: Option<&Path>) -> Result<Policy, Failure> {
    let settings = app.config(app.env.working_directory(), &[])?;
    let configured = settings.attest.policy.as_deref().map(PathBuf::from);
    let path = named.map(Path::to_owned).or(configured).ok_or_else(|| {
        Failure::usage("no attestation policy given")
            .hint("Pass --policy FILE, or set it: `crucible config set --user attest.policy FILE`.")
    })?;
    let path = app.absolute(&path);
    let text = String::from_utf8(read_regular_up_to(&path, MAX_POLICY)?)
        .map_err(|_| Failure::usage(format!("{} is not UTF-8", path.display())))?;
    Policy::parse(&text).map_err(|error| {
        let failure = Failure::from(error);
        Failure {
            message: format!("{}: {}", path.display(), failure.message),
            ..failure
        }
    })
}
