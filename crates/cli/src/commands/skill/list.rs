//! `crucible skill list`.

use clap::Args;
use crucible_forge::{ForgeProject, SkillRegistry, TrustedFile};
use crucible_ledger::{Ledger, SkillRow};
use crucible_model::{ExitStatus, Failure, one_line, short_line};
use crucible_terminal::{lines_of, table};

use super::place::SkillContext;
use crate::app::App;

/// The most characters of a description that are shown in a table.
const SHOWN: usize = 60;

/// List the skills of this project, and where each stands
#[derive(Args)]
pub(crate) struct List {}

impl List {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let project = SkillContext::new(app, &[])?.project;
        let (skills, known) = match app.optional_ledger()? {
            Some(ledger) => (
                ledger.skills(project.key())?,
                read_registry(app, &ledger, &project),
            ),
            None => (Vec::new(), SkillRegistry::default()),
        };
        let file = |skill: &SkillRow| known.trusted_file(&project, &skill.name.parse().ok()?);
        if app.output.is_json() {
            app.output.json(&known.list_document(&project, &skills))?;
        } else if skills.is_empty() {
            app.output.line("no skill yet; ask for one: crucible skill propose NAME --describe TEXT --io FILE --effects CLASS");
        } else {
            let mut rows = table(["skill", "status", "effects", "what it is for"]);
            for skill in &skills {
                let what = one_line(&short_line(&skill.description, SHOWN));
                let status = match file(skill) {
                    None | Some(TrustedFile::Promoted) => skill.status.as_str().to_owned(),
                    Some(TrustedFile::Changed) => {
                        format!("{}, file changed", skill.status.as_str())
                    }
                    Some(TrustedFile::Unreadable) => format!("{}, no file", skill.status.as_str()),
                };
                rows.add_row([
                    skill.name.as_str(),
                    &status,
                    skill.side_effect.as_str(),
                    &what,
                ]);
            }
            app.output.line(&lines_of(&rows));
        }
        Ok(ExitStatus::Success)
    }
}

/// What the ledger trusts, with a warning for each problem: a list is a list all the same.
fn read_registry(app: &App, ledger: &Ledger, project: &ForgeProject) -> SkillRegistry {
    let (known, problems) = SkillRegistry::load_with_differences(ledger, project);
    for problem in problems {
        app.output.remark(&format!("warning: {problem}"));
    }
    known
}
