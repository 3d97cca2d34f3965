//! `crucible skill init`.

use clap::Args;
use crucible_forge::Skeleton;
use crucible_model::{ExitStatus, Failure};
use crucible_spec::keep_out_of_git;

use super::place::SkillContext;
use crate::app::App;

/// Lay a Python package for skills in this project
///
/// Writes src/PACKAGE/ with a base class and one example skill, its test, a pyproject.toml and .crucible/skills/policy.yaml, ready for
/// ruff, mypy and pytest. What is there already stays as it is; of the rest all is written, or nothing. The package is called skillset,
/// or as [forge] package says:
///
/// `CRUCIBLE_FORGE_PACKAGE=my_tools crucible skill init`
#[derive(Args)]
pub(crate) struct Init {}

impl Init {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let project = SkillContext::new(app, &[])?.project;
        let skeleton = Skeleton::from_package(project.package())?;
        let written = skeleton.write(&project, &app.home()?)?;
        keep_out_of_git(project.root())?;
        if app.output.is_json() {
            app.output.json(&serde_json::json!({
                "schema_version": "skill-init.v1", "project": project.root(), "package": project.package(), "written": written.written,
                "kept": written.existing, "settings_to_add": written.settings_to_add,
            }))?;
            return Ok(ExitStatus::Success);
        }
        for path in &written.written {
            app.output.line(&format!("wrote {path}"));
        }
        for path in &written.existing {
            app.output
                .line(&format!("{path} is there already and was left as it is"));
        }
        if let Some(settings) = &written.settings_to_add {
            app.output
                .remark("note: pyproject.toml is yours; the tools need these lines in it:");
            app.output.remark(settings.trim_end());
        }
        app.output
            .line("next: crucible skill propose NAME --describe TEXT --io FILE --effects CLASS");
        Ok(ExitStatus::Success)
    }
}
