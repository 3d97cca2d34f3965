//! `crucible sandbox`: what this machine offers, and any command behind it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedI64ValueParser;
use clap::{Args, Subcommand, ValueEnum};
use crucible_model::{ExitStatus, Finding, counted};
use crucible_sandbox::{
    AllowedHost, CONFINED_HOME, Calls, Confinement, End, LayerState, Layers, Limits, Network, Profile, Spawn,
    Strength, base_env, toolchain_env,
};
use serde::Serialize;

use crate::app::{App, strength, strengths};
use crate::error::CommandError;
use crate::text::one_line;

/// The longest time a command can be given: a year.
const MAX_SECONDS: i64 = 365 * 24 * 60 * 60;

/// See and use the sandbox
#[derive(Subcommand)]
pub(crate) enum SandboxCommand {
    /// Tell which layers of isolation this machine offers, and what is missing
    Status,
    Exec(Exec),
}

/// Run a command in the sandbox: no network, a read-only world, a private home
///
/// For example: `crucible sandbox exec --write . -- cargo test --offline`
/// or `crucible sandbox exec --net api.example.com --calls connect -- python3 ask.py`
#[derive(Args)]
pub(crate) struct Exec {
    /// A directory that the command may write to; may be given several times
    #[arg(long, value_name = "DIR")]
    write: Vec<PathBuf>,
    /// Let the command use this machine's network
    #[arg(long)]
    network: bool,
    /// Let the command reach this host by TCP: a name or an address, with a port or on 443 and 80; may be given several times
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with = "network")]
    net: Vec<AllowedHost>,
    /// Which system calls the command may make; one of another class ends it
    #[arg(long, value_name = "CLASS", value_enum, default_value_t = CallClass::Tools)]
    calls: CallClass,
    /// How strong the sandbox must be; without it as configured (sandbox.strength, required)
    #[arg(long, value_name = "STRENGTH", value_parser = strengths())]
    sandbox: Option<String>,
    /// Seconds until the command is ended
    #[arg(long, default_value_t = 600, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds())]
    timeout: u64,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// What the system calls of a command may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CallClass {
    /// Whatever builds and tests do
    Tools,
    /// Read and compute: write nothing, connect nowhere, start nothing
    Compute,
    /// Read, compute and write: connect nowhere, start nothing
    Files,
    /// Read, compute and connect: write nothing, start nothing
    Connect,
}

impl From<CallClass> for Calls {
    fn from(class: CallClass) -> Self {
        match class {
            CallClass::Tools => Self::Tools,
            CallClass::Compute => Self::Compute,
            CallClass::Files => Self::Files,
            CallClass::Connect => Self::Connect,
        }
    }
}

impl SandboxCommand {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        match self {
            Self::Status => status(app),
            Self::Exec(exec) => exec.run(app),
        }
    }
}

fn seconds() -> RangedI64ValueParser<u64> {
    RangedI64ValueParser::new().range(1..=MAX_SECONDS)
}

/// What the machine offers, and what that means for the configured strength.
#[derive(Serialize)]
struct Status<'a> {
    #[serde(flatten)]
    layers: &'a Layers,
    strength: Strength,
    findings: &'a [Finding],
}

fn status(app: &App) -> Result<ExitStatus, CommandError> {
    let config = app.config(app.env.working_directory(), &[])?;
    let strength = strength(&config)?;
    let sandbox = app.sandbox();
    let layers = sandbox.layers();
    let verdict = layers.verdict(strength);
    if app.output.is_json() {
        app.output.json(&Status { layers, strength, findings: verdict.findings() })?;
        return Ok(ExitStatus::Success);
    }
    for layer in &layers.layers {
        let state = match layer.state {
            LayerState::Available => "available",
            LayerState::Missing => "missing",
        };
        app.output.line(&format!("{:<12} {state:<10} {}", layer.layer.to_string(), layer.detail));
    }
    for finding in verdict.findings() {
        app.output.line(&one_line(&finding.to_string()));
    }
    Ok(ExitStatus::Success)
}

impl Exec {
    /// What the command can reach.
    fn reachable(&self) -> Network {
        match (self.network, &self.net[..]) {
            (true, _) => Network::Host,
            (false, []) => Network::None,
            (false, hosts) => Network::Hosts(hosts.to_vec()),
        }
    }

    fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let here = app.env.working_directory().to_owned();
        let flags: Vec<(&str, String)> =
            self.sandbox.iter().map(|value| ("sandbox.strength", value.clone())).collect();
        let config = app.config(&here, &flags)?;
        let Some((program, args)) = self.command.split_first() else {
            return Err(CommandError::usage("there is no command; name it after `--`"));
        };
        let mut env = base_env(&app.env);
        env.extend(toolchain_env(&app.env));
        env.push(("HOME".into(), CONFINED_HOME.into()));
        let profile = Profile {
            strength: strength(&config)?,
            writable: self.write.iter().map(|path| app.absolute(path)).collect(),
            // The sandbox knows Crucible's own directory; where else the runs lie only the configuration tells.
            masked: config.text("paths.runs_root").map(|root| here.join(root).join("")).into_iter().collect(),
            read_only: Vec::new(),
            mounts: Vec::new(),
            network: self.reachable(),
            calls: self.calls.into(),
        };
        let spawn = Spawn {
            args: args.to_vec(),
            env,
            confinement: Confinement::Confined(profile),
            ..Spawn::new(program, here, Limits::new(Duration::from_secs(self.timeout)))
        };
        let sandbox = app.sandbox();
        let completed = app.block_on(async { Ok(sandbox.run(spawn).await?) })?;
        if app.output.is_json() {
            app.output.json(&serde_json::json!({
                "schema_version": "crucible-sandbox-exec-v1",
                "end": completed.end,
                "stdout": completed.stdout.text(),
                "stderr": completed.stderr.text(),
                "isolation": completed.receipt,
                "contacts": completed.contacts,
            }))?;
        } else {
            app.output.bytes(&completed.stdout.bytes);
            app.output.aside(&completed.stderr.bytes);
            for missing in &completed.receipt.missing {
                app.output.remark(&format!("[sandbox] without {}: {}", missing.layer, missing.reason));
            }
            for contact in completed.contacts.iter().filter(|contact| contact.failed > 0) {
                let tries = counted(contact.failed, "connection");
                app.output.remark(&one_line(&format!(
                    "[sandbox] {} port {}: {tries} not made: {}",
                    contact.host, contact.port, contact.last_failure
                )));
            }
        }
        match completed.end {
            End::Exited(0) => Ok(ExitStatus::Success),
            End::Exited(code) => Err(CommandError::new(
                ExitStatus::Refused,
                format!("the command ended with exit code {code}; what it printed says why"),
            )),
            End::Signalled(signal) => Err(CommandError::new(
                ExitStatus::Refused,
                format!("the command was ended by signal {signal}; try it again, or look who sent it"),
            )),
            End::Forbidden => Err(CommandError::new(
                ExitStatus::Refused,
                "the command was ended because it made a system call that --calls does not allow",
            )
            .hint("Choose a wider class with --calls, or let the command do without.")),
            End::TimedOut => Err(CommandError::new(
                ExitStatus::TimedOut,
                format!("the command was ended after {}", counted(self.timeout, "second")),
            )
            .hint("Give it more time with --timeout.")),
            End::OutputLimit => Err(CommandError::new(
                ExitStatus::OverLimit,
                "the command was ended because it printed without end",
            )
            .hint("Send its output to a file below a directory given with --write.")),
            End::DiskLimit => Err(CommandError::new(
                ExitStatus::OverLimit,
                "the command was ended because it wrote too much to the disk",
            )
            .hint("Let it write less, or in several commands.")),
        }
    }
}
