//! `crucible skill list`.

use clap::Args;
use crucible_forge::{ForgeProject, RegistryError, SkillRegistry, SkillStep};
use crucible_ledger::Ledger;
use crucible_model::{ExitStatus, Verdict, short_line};

use super::place;
use crate::app::App;
use crate::error::CommandError;
use crate::table::{lines_of, table};
use crate::text::one_line;

/// The most characters of a description that are shown in a table.
const SHOWN: usize = 60;

/// List the skills of this project, and where each stands
#[derive(Args)]
pub(crate) struct List {}

impl List {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let project = place::project(app)?;
        let skills = match app.ledger_to_ask()? {
            Some(ledger) => {
                compare(app, &ledger, &project);
                ledger.skills(project.key())?
            }
            None => Vec::new(),
        };
        if app.output.is_json() {
            let rows: Vec<_> = skills
                .iter()
                .map(|skill| {
                    serde_json::json!({
                        "name": skill.name, "status": skill.status, "side_effect_class": skill.side_effect,
                        "description": skill.description, "created_at": skill.created_at, "updated_at": skill.updated_at,
                        "next_steps": SkillStep::after(skill.status).collect::<Vec<_>>(),
                    })
                })
                .collect();
            app.output.json(&serde_json::json!({
                "schema_version": "skill-list.v1", "project": project.root(), "package": project.package(), "skills": rows,
            }))?;
        } else if skills.is_empty() {
            app.output.line("no skill yet; ask for one: crucible skill propose NAME --describe TEXT --io FILE --effects CLASS");
        } else {
            let mut rows = table(["skill", "status", "effects", "what it is for"]);
            for skill in &skills {
                let what = one_line(&short_line(&skill.description, SHOWN));
                rows.add_row([skill.name.as_str(), skill.status.as_str(), skill.side_effect.as_str(), &what]);
            }
            app.output.line(&lines_of(&rows));
        }
        Ok(ExitStatus::Success)
    }
}

/// Tells where the project's registry says something else than the ledger. A list is a list all the same.
fn compare(app: &App, ledger: &Ledger, project: &ForgeProject) {
    let differences = || -> Result<Verdict, RegistryError> {
        let written = SkillRegistry::read(project)?;
        let known = SkillRegistry::of(ledger, project)?;
        Ok(written.map(|written| known.differences(&written)).unwrap_or_default())
    };
    match differences() {
        Ok(verdict) => {
            for finding in verdict.findings() {
                app.output.remark(&format!("warning: {finding}"));
            }
        }
        Err(error) => app.output.remark(&format!("warning: {error}")),
    }
}
