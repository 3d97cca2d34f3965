//! The settings file of a project, with the gates that are named or detected.
//!
//! Invariants: an existing file keeps every byte. Gates are only added at its end, if it has none, and if the result
//! can be read.

use std::path::Path;

use crucible_host::env::Environment;
use crucible_host::fs::{create_dir_all, read_regular_up_to, write_atomic};
use crucible_model::{ByteLimit, Failure, one_line};
use crucible_settings::{ConfigFiles, Edit, EditedFile, Settings};
use crucible_verify::GateSpec;

use super::gates::{GateChoice, default_timeout};
use crate::check_gates::GateCheck;
use crate::error::RunError;
use crate::found::detect_gates;

/// The largest file that gates are added to.
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

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenSettings {
    /// A new file.
    Created,
    /// Gates at the end of the existing file.
    Added,
    /// Nothing; the file has gates, or none were found.
    Nothing,
}

/// Writes `.crucible/config.toml` in `root`, or adds gates to one that has none. `settings` are those in force in `root`.
///
/// # Errors
///
/// Fails if `--test` names gates and the file has some, if a gate has a value that is not allowed, or if the file cannot
/// be read or written.
pub fn write_project_settings(
    settings: &Settings,
    root: &Path,
    choice: &GateChoice<'_>,
) -> Result<WrittenSettings, Failure> {
    let path = root.join(".crucible/config.toml");
    let existed = path.symlink_metadata().is_ok();
    let named = if existed {
        GateChoice {
            tests: &[],
            directory: choice.directory.clone(),
        }
        .named_gates(settings)?
    } else {
        Vec::new()
    };
    if !named.is_empty() {
        if !choice.tests.is_empty() {
            return Err(Failure::usage(format!("{} already configures gates", path.display()))
                .hint("Change them there, or try a command without writing it: crucible gates --run --test \"CMD\""));
        }
        return Ok(WrittenSettings::Nothing);
    }
    let gates = if choice.tests.is_empty() {
        // Only of this directory: a directory above has a file of its own.
        detect_gates(root, None, default_timeout())?
            .into_iter()
            .map(|gate| GateSpec {
                cwd: choice.directory.clone(),
                ..gate
            })
            .collect()
    } else {
        choice.named_gates(settings)?
    };
    let block = gate_block(&gates);
    if !existed {
        create_dir_all(&root.join(".crucible")).map_err(RunError::from)?;
        let gates = if gates.is_empty() { NO_GATES } else { &block };
        write_atomic(&path, format!("{TEMPLATE}{gates}").as_bytes()).map_err(RunError::from)?;
        return Ok(WrittenSettings::Created);
    }
    let is_file = path.symlink_metadata().is_ok_and(|meta| meta.is_file());
    if gates.is_empty() || !is_file {
        return Ok(WrittenSettings::Nothing);
    }
    let bytes = read_regular_up_to(&path, MAX_CONFIG).map_err(RunError::from)?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&block);
    if text.parse::<toml::Table>().is_err() {
        return Ok(WrittenSettings::Nothing);
    }
    write_atomic(&path, text.as_bytes()).map_err(RunError::from)?;
    Ok(WrittenSettings::Added)
}

/// Returns gates that were just written, with the other commands of the detected ones.
///
/// # Errors
///
/// Fails if the directory cannot be read.
pub fn with_alternatives(gates: Vec<GateSpec>, root: &Path) -> Result<Vec<GateSpec>, Failure> {
    let found = detect_gates(root, None, default_timeout())?;
    let completed = gates.into_iter().map(|gate| {
        let is_same = |found: &&GateSpec| found.id == gate.id && found.command == gate.command;
        let alternatives = found
            .iter()
            .find(is_same)
            .map(|found| found.alternatives.clone());
        GateSpec {
            alternatives: alternatives.unwrap_or_default(),
            ..gate
        }
    });
    Ok(completed.collect())
}

/// Writes the commands that took the place of those in the settings file of `root`. Returns the gates with them.
///
/// # Errors
///
/// Fails if the file cannot be read or written.
pub fn write_replaced_commands(
    env: &Environment,
    root: &Path,
    gates: Vec<GateSpec>,
    checks: &[GateCheck],
) -> Result<Vec<GateSpec>, Failure> {
    let mut replaced = gates;
    for gate in &mut replaced {
        let Some(check) = checks.iter().find(|check| check.id == gate.id) else {
            continue;
        };
        if check.command != gate.command {
            let files = ConfigFiles::discover(env, root);
            let key = format!("gates.{}.command", gate.id);
            let value = toml::Value::from(check.command.clone()).to_string();
            Edit::new(&files, root, env, EditedFile::Project, &key, &value)?.write()?;
            gate.command.clone_from(&check.command);
        }
    }
    Ok(replaced)
}

/// Returns the gates as tables of a settings file.
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
