//! `crucible init`: a project's configuration, with the gates that were found and tried.
//!
//! What always holds: a configuration that is there keeps every byte; gates are only ever added to one that names none, at its end, and
//! only where the result is a configuration that can be read.

use std::path::{Path, PathBuf};

use clap::Args;
use crucible_llm::configured::strength;
use crucible_model::{ExitStatus, Failure, one_line};
use crucible_run::configured::{
    GateChoice, MissingPart, WrittenSettings, with_alternatives, write_project_settings,
    write_replaced_commands,
};
use crucible_run::{GateCheck, GateDocument, GateState};
use crucible_settings::Settings;
use crucible_spec::keep_out_of_git;
use crucible_verify::GateSpec;

use crate::app::App;
use crate::gate_output::{checked, show_results};

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

impl Init {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let root = app.absolute(&self.directory);
        if !root.is_dir() {
            return Err(
                Failure::usage(format!("{} is not a directory", root.display()))
                    .hint("Name an existing directory; init creates only .crucible in it."),
            );
        }
        if !root.join(".git").exists()
            && root.join("HEAD").is_file()
            && root.join("objects").is_dir()
        {
            return Err(
                Failure::usage(format!("{} is a bare repository", root.display()))
                    .hint("Clone it and run init in the clone."),
            );
        }
        let top = app.repository_of(&root);
        let choice = GateChoice::new(&self.tests, top.as_deref(), &root);
        let path = root.join(".crucible/config.toml");
        let written = write_project_settings(&app.config(&root, &[])?, &root, &choice)?;
        if written == WrittenSettings::Created {
            keep_out_of_git(&root)?;
        }
        let config = app.config(&root, &[])?;
        let mut gates = GateChoice {
            tests: &[],
            ..choice
        }
        .named_gates(&config)?;
        if written != WrittenSettings::Nothing {
            gates = with_alternatives(gates, &root)?;
        }
        let mut missing = Vec::new();
        let checks = match &top {
            Some(top) if !self.no_run && !gates.is_empty() => {
                try_gates(app, &config, top, &gates, &mut missing)?
            }
            _ => Vec::new(),
        };
        let gates = write_replaced_commands(&app.env, &root, gates, &checks)?;
        missing.extend(MissingPart::of_project(top.as_deref(), &gates, &checks));
        if app.output.is_json() {
            let gates = GateDocument::list(&gates, &checks);
            app.output.json(&serde_json::json!({
                "schema_version": "crucible-init-v1", "config": path, "created": written == WrittenSettings::Created,
                "gates": gates, "missing": missing,
            }))?;
        } else {
            print_outcome(app, &path, written, &gates, &checks);
            self.tell_next(app, &root, top.as_deref(), written, &missing);
        }
        Ok(ExitStatus::Success)
    }

    fn tell_next(
        &self,
        app: &App,
        root: &Path,
        top: Option<&Path>,
        written: WrittenSettings,
        missing: &[MissingPart],
    ) {
        if let (WrittenSettings::Created, Some(top)) = (written, top)
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
        for MissingPart { what, command } in missing {
            app.output.line(&one_line(&format!("  {what}")));
            if !command.is_empty() {
                app.output.line(&one_line(&format!("    to do: {command}")));
            }
        }
        if written == WrittenSettings::Created {
            app.output
                .line("next: crucible run start \"what to change\" --provider gateway");
            app.output
                .line("or:   crucible spec NAME, with the idea on standard input");
        }
    }
}

/// Runs the gates once. What prevents that is missing, and not an error: the file is written.
fn try_gates(
    app: &App,
    config: &Settings,
    top: &Path,
    gates: &[GateSpec],
    missing: &mut Vec<MissingPart>,
) -> Result<Vec<GateCheck>, Failure> {
    match checked(app, config, top, gates, strength(config)?)? {
        Ok(checks) => Ok(checks),
        Err(error) => {
            missing.push(MissingPart::for_gates(error));
            Ok(Vec::new())
        }
    }
}

/// Tells what was written, and how the gates fare that ran.
fn print_outcome(
    app: &App,
    path: &Path,
    written: WrittenSettings,
    gates: &[GateSpec],
    checks: &[GateCheck],
) {
    let path = path.display();
    app.output.line(&match written {
        WrittenSettings::Created => format!("wrote {path}"),
        WrittenSettings::Added => format!("added gates to {path}"),
        WrittenSettings::Nothing => format!("{path} already exists and was not changed"),
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
