//! `crucible init`: a configuration for a project, with everything commented out.

use std::path::PathBuf;

use clap::Args;
use crucible_host::fs::{create_dir_all, write_atomic};
use crucible_model::ExitStatus;

use crate::app::App;
use crate::commands::repository_of;
use crate::commands::spec::ignored::keep_out_of_git;
use crate::error::CommandError;

const TEMPLATE: &str = "\
# Crucible's settings for this project. `crucible config show` lists every setting there is, with its default.

[llm]
# Who answers: gateway (any OpenAI-compatible server), claude-cli, or replay.
# provider = \"gateway\"

# What proves a change. With none, Crucible looks for cargo, npm, pytest, go and make.
# [gates.tests]
# command = [\"cargo\", \"test\", \"--offline\"]
# timeout_s = 600
";

/// Start a project: write .crucible/config.toml
///
/// The file holds only comments until you edit it; beside it comes a .gitignore for what need not be committed. What is there
/// already stays.
#[derive(Args)]
pub(crate) struct Init {
    /// The project's directory
    #[arg(default_value = ".")]
    directory: PathBuf,
}

impl Init {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let root = app.absolute(&self.directory);
        if !root.is_dir() {
            return Err(CommandError::usage(format!("{} is no directory", root.display()))
                .hint("Name the project's own directory; init makes no other than .crucible in it."));
        }
        if !root.join(".git").exists() && root.join("HEAD").is_file() && root.join("objects").is_dir() {
            return Err(CommandError::usage(format!("{} is a bare repository", root.display()))
                .hint("Clone it and run init in the clone."));
        }
        let path = root.join(".crucible/config.toml");
        let existed = path.symlink_metadata().is_ok();
        if !existed {
            create_dir_all(&root.join(".crucible"))?;
            write_atomic(&path, TEMPLATE.as_bytes())?;
            keep_out_of_git(&root)?;
        }
        if app.output.is_json() {
            let report = serde_json::json!({ "schema_version": "crucible-init-v1", "config": path, "created": !existed });
            app.output.json(&report)?;
        } else if existed {
            app.output.line(&format!("{} is there already and was left as it is", path.display()));
        } else {
            app.output.line(&format!("wrote {}", path.display()));
            match repository_of(&root) {
                Some(top) if top == root => {}
                Some(top) => app.output.remark(&format!(
                    "note: it holds for {} alone; for the whole repository: crucible init {}",
                    root.display(),
                    top.display()
                )),
                None => {
                    app.output.remark("note: this is no git repository yet; a run needs one with a commit")
                }
            }
            app.output.line("next: crucible run start \"what to change\" --provider gateway");
            app.output.line("or:   crucible spec NAME, with the idea on standard input");
        }
        Ok(ExitStatus::Success)
    }
}
