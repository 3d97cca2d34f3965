//! `crucible init`: a project's configuration, with the gates that were found and tried.
//!
//! What always holds: a configuration that is there keeps every byte; gates are only ever added to one that names none, at its end, and
//! only where the result is a configuration that can be read.

use std::path::{Path, PathBuf};

use clap::Args;
use crucible_host::fs::{create_dir_all, read_regular_up_to, write_atomic};
use crucible_model::{ByteLimit, ExitStatus};
use crucible_repo::RepoError;
use crucible_run::{GateCheck, GateState, RunError, found_gates};
use crucible_settings::Settings;
use crucible_verify::GateSpec;
use serde::Serialize;

use crate::app::{App, strength};
use crate::commands::gates::settings::{GateChoice, default_timeout};
use crate::commands::gates::{checked, show_results, shown};
use crate::commands::spec::ignored::keep_out_of_git;
use crate::error::CommandError;
use crate::text::one_line;

/// The longest configuration that gates are added to.
const MAX_CONFIG: ByteLimit = ByteLimit(1 << 20);

const TEMPLATE: &str = "\
# Crucible's settings for this project. `crucible config show` lists every setting and its value.

[llm]
# The model provider: gateway (any OpenAI-compatible server), claude-cli, or replay.
# provider = \"gateway\"
";

const NO_GATES: &str = "
# Gates verify a change. None was found here; set the command that runs the tests.
# [gates.tests]
# command = [\"./run-tests\"]
# timeout_s = 600
";

const SETTINGS: &str = "\
# More settings of a gate: env = { NAME = \"value\" }, cwd = \"packages/web\", setup = [\"make generate\"], level = \"full\".
# `crucible gates` lists the gates, and `crucible gates --run` runs them.
";

/// Set up a project: write .crucible/config.toml
///
/// Finds the commands that test the project and writes them as gates. Runs each gate once in the sandbox on a
/// copy and reports what is missing. Also writes a .gitignore for files that need no commit. Existing content
/// is kept: gates are added only to a file that has none.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crucible init                              find the gates, write them, run them once
  crucible init --no-run                     write them only
  crucible init --test \"python3 -m pytest\"   use this command as the gate")]
pub(crate) struct Init {
    /// The project's directory
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// Use this command as a gate instead of the detected ones. May be given several times
    #[arg(long = "test", value_name = "CMD")]
    tests: Vec<String>,
    /// Do not run the gates
    #[arg(long)]
    no_run: bool,
}

/// What happened to the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Created,
    Added,
    Nothing,
}

/// Something that a run would lack.
#[derive(Serialize)]
struct Missing {
    what: String,
    /// What to type, or to do.
    command: String,
}

impl Init {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let root = app.absolute(&self.directory);
        if !root.is_dir() {
            return Err(
                CommandError::usage(format!("{} is not a directory", root.display()))
                    .hint("Name an existing directory; init creates only .crucible in it."),
            );
        }
        if !root.join(".git").exists()
            && root.join("HEAD").is_file()
            && root.join("objects").is_dir()
        {
            return Err(
                CommandError::usage(format!("{} is a bare repository", root.display()))
                    .hint("Clone it and run init in the clone."),
            );
        }
        let top = app.repository_of(&root);
        let choice = GateChoice::new(&self.tests, top.as_deref(), &root);
        let path = root.join(".crucible/config.toml");
        let written = self.write(app, &root, &path, &choice)?;
        let config = app.config(&root, &[])?;
        let gates = GateChoice {
            tests: &[],
            ..choice
        }
        .named(&config)?;
        let mut missing = Vec::new();
        let checks = match &top {
            Some(top) if !self.no_run && !gates.is_empty() => {
                try_gates(app, &config, top, &gates, &mut missing)?
            }
            _ => Vec::new(),
        };
        missing.extend(lacks(top.as_deref(), &gates, &checks));
        if app.output.is_json() {
            let gates: Vec<_> = gates
                .iter()
                .enumerate()
                .map(|(index, gate)| shown(gate, checks.get(index)))
                .collect();
            app.output.json(&serde_json::json!({
                "schema_version": "crucible-init-v1", "config": path, "created": written == Written::Created,
                "gates": gates, "missing": missing,
            }))?;
        } else {
            tell(app, &path, written, &gates, &checks);
            self.tell_next(app, &root, top.as_deref(), written, &missing);
        }
        Ok(ExitStatus::Success)
    }

    /// Writes the file if it is missing, and adds gates to one without any.
    fn write(
        &self,
        app: &App,
        root: &Path,
        path: &Path,
        choice: &GateChoice<'_>,
    ) -> Result<Written, CommandError> {
        let existed = path.symlink_metadata().is_ok();
        let before = if existed {
            Some(app.config(root, &[])?)
        } else {
            None
        };
        let named = match &before {
            Some(config) => GateChoice {
                tests: &[],
                directory: choice.directory.clone(),
            }
            .named(config)?,
            None => Vec::new(),
        };
        if !named.is_empty() {
            if !self.tests.is_empty() {
                return Err(CommandError::usage(format!("{} already configures gates", path.display()))
                    .hint("Change them there, or try a command without writing it: crucible gates --run --test \"CMD\""));
            }
            return Ok(Written::Nothing);
        }
        let config = match before {
            Some(config) => config,
            None => app.config(root, &[])?,
        };
        let gates = match self.tests.is_empty() {
            false => choice.named(&config)?,
            // Of this directory alone: what lies above has a file of its own.
            true => found_gates(root, None, default_timeout())?
                .into_iter()
                .map(|gate| GateSpec {
                    cwd: choice.directory.clone(),
                    ..gate
                })
                .collect(),
        };
        let block = gate_block(&gates);
        if !existed {
            create_dir_all(&root.join(".crucible"))?;
            let gates = if gates.is_empty() { NO_GATES } else { &block };
            write_atomic(path, format!("{TEMPLATE}{gates}").as_bytes())?;
            keep_out_of_git(root)?;
            return Ok(Written::Created);
        }
        let is_file = path.symlink_metadata().is_ok_and(|meta| meta.is_file());
        if gates.is_empty() || !is_file {
            return Ok(Written::Nothing);
        }
        let mut text = String::from_utf8_lossy(&read_regular_up_to(path, MAX_CONFIG)?).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&block);
        if text.parse::<toml::Table>().is_err() {
            return Ok(Written::Nothing);
        }
        write_atomic(path, text.as_bytes())?;
        Ok(Written::Added)
    }

    fn tell_next(
        &self,
        app: &App,
        root: &Path,
        top: Option<&Path>,
        written: Written,
        missing: &[Missing],
    ) {
        if let (Written::Created, Some(top)) = (written, top)
            && top != root
        {
            app.output.remark(&format!(
                "note: it applies only to {}; for the whole repository: crucible init {}",
                root.display(),
                top.display()
            ));
        }
        if !missing.is_empty() {
            app.output.line("missing:");
        }
        for Missing { what, command } in missing {
            app.output.line(&one_line(&format!("  {what}")));
            if !command.is_empty() {
                app.output.line(&one_line(&format!("    to do: {command}")));
            }
        }
        if written == Written::Created {
            app.output
                .line("next: crucible run start \"what to change\" --provider gateway");
            app.output
                .line("or:   crucible spec NAME, with the idea on standard input");
        }
    }
}

/// The gates as the configuration holds them.
fn gate_block(gates: &[GateSpec]) -> String {
    let text = |text: &str| toml::Value::from(text).to_string();
    let mut block = String::new();
    for gate in gates {
        let words: Vec<String> = gate.command.iter().map(|word| text(word)).collect();
        block.push_str(&format!(
            "\n# A gate: verifies a change ({}).\n[gates.{}]\ncommand = [{}]\n",
            one_line(&gate.source),
            gate.id,
            words.join(", ")
        ));
        if let Some(cwd) = &gate.cwd {
            block.push_str(&format!("cwd = {}\n", text(cwd.as_str())));
        }
        if !gate.env.is_empty() {
            let pairs: Vec<String> = gate
                .env
                .iter()
                .map(|(name, value)| format!("{name} = {}", text(value)))
                .collect();
            block.push_str(&format!("env = {{ {} }}\n", pairs.join(", ")));
        }
        block.push_str(&format!("timeout_s = {}\n", gate.timeout.as_secs()));
    }
    block.push_str(SETTINGS);
    block
}

/// Runs the gates once. What stands in the way of that is missing, and no error: the file is written.
fn try_gates(
    app: &App,
    config: &Settings,
    top: &Path,
    gates: &[GateSpec],
    missing: &mut Vec<Missing>,
) -> Result<Vec<GateCheck>, CommandError> {
    let lack = match checked(app, config, top, gates, strength(config)?)? {
        Ok(checks) => return Ok(checks),
        Err(RunError::Repo(RepoError::Empty { .. })) => Missing {
            what: "the repository has no commit yet; a run needs one".to_owned(),
            command: "git add --all && git commit -m \"Begin\"".to_owned(),
        },
        Err(error) => {
            let error = CommandError::from(error);
            let command = error.hints.join(" ");
            Missing {
                what: format!("the gates did not run: {}", error.message),
                command,
            }
        }
    };
    missing.push(lack);
    Ok(Vec::new())
}

/// What a run here would lack.
fn lacks(top: Option<&Path>, gates: &[GateSpec], checks: &[GateCheck]) -> Vec<Missing> {
    let mut missing = Vec::new();
    if top.is_none() {
        missing.push(Missing {
            what: "not a git repository yet; a run needs one with a commit".to_owned(),
            command: "git init && git add --all && git commit -m \"Begin\"".to_owned(),
        });
    }
    if gates.is_empty() {
        missing.push(Missing {
            what: "no gate found, so no change could be verified".to_owned(),
            command: "crucible init --test \"./run-tests\"".to_owned(),
        });
    }
    missing.extend(checks.iter().filter_map(|check| match &check.state {
        GateState::CouldNotRun { cause, remedy } => Some(Missing {
            what: format!("gate {} could not run: {cause}", check.id),
            command: remedy.clone(),
        }),
        GateState::Passes | GateState::Fails { .. } => None,
    }));
    missing
}

/// Tells what was written, and how the gates fare that ran.
fn tell(app: &App, path: &Path, written: Written, gates: &[GateSpec], checks: &[GateCheck]) {
    let path = path.display();
    app.output.line(&match written {
        Written::Created => format!("wrote {path}"),
        Written::Added => format!("added gates to {path}"),
        Written::Nothing => format!("{path} already exists and was not changed"),
    });
    for gate in gates {
        app.output.line(&one_line(&format!(
            "gate {}: {}",
            gate.id,
            gate.command_line()
        )));
    }
    let ran: Vec<GateCheck> = checks
        .iter()
        .filter(|check| !matches!(check.state, GateState::CouldNotRun { .. }))
        .cloned()
        .collect();
    show_results(app, &ran);
}
