//! `crucible project history`: the runs of a spec.

use std::path::Path;

use clap::Args;
use crucible_llm::{cost_in_words, tokens_in_words};
use crucible_model::{ClockSource, ExitStatus, Failure, counted, one_line, short_line};
use crucible_spec::{
    HistoryRow, SpecAbsence, SpecError, SpecId, SpecProject, SpecStore, spec_history,
};
use crucible_terminal::{lines_of, table};

use crate::app::App;
use crate::names::spec_id;
use crate::spec_project::{list_of, project};

/// Characters of a failure message in the table; `--json` has more.
const MAX_NOTE_LEN: usize = 80;

/// Show the runs of a spec with tokens and cost
///
/// Reads every receipt of the spec and compares it with this machine's ledger. A receipt that cannot be
/// trusted is named and is not part of the totals.
#[derive(Args)]
pub(crate) struct History {
    /// The id of the spec
    #[arg(value_name = "SPEC-ID", value_parser = spec_id)]
    spec: SpecId,
}

impl History {
    pub(crate) fn run(&self, app: &App, named: Option<&Path>) -> Result<ExitStatus, Failure> {
        // A spec has a history even without a workspace file.
        let project = project(app, named)?;
        let store = SpecStore::new(&project, self.spec.clone());
        let (receipts, problems) = match store.history(app.optional_ledger()?.as_ref()) {
            // A listed spec may not have been started yet.
            Err(SpecError::Unknown {
                why: SpecAbsence::Nothing | SpecAbsence::NotBegun,
                ..
            }) if self.is_listed(app, named, &project)? => (Vec::new(), Vec::new()),
            receipts_result => receipts_result?,
        };
        let history = spec_history(&self.spec, &receipts, &problems);
        if app.output.is_json() {
            app.output.json(&history)?;
            return Ok(ExitStatus::Success);
        }
        if history.timeline.is_empty() {
            let next = if store.exists()? {
                String::new()
            } else {
                format!("; start it: crucible spec {}", self.spec)
            };
            app.output
                .line(&format!("{} has no history yet{next}", self.spec));
        } else {
            let mut rows = table(["when", "phase", "ended", "model", "tokens", "cost", "note"]);
            for row in &history.timeline {
                rows.add_row([
                    row.emitted_at.map(|at| at.to_string()).unwrap_or_default(),
                    one_line(&row.phase_id),
                    row.status.words().to_owned(),
                    one_line(row.model_used.as_deref().unwrap_or_default()),
                    tokens_in_words(row.tokens_input, row.tokens_output),
                    cost_in_words(row.cost_micro_dollars, row.cost_basis),
                    one_line(&note(row)),
                ]);
            }
            app.output.line(&lines_of(&rows));
            app.output.line(&history.sums());
        }
        for problem in &history.problems {
            app.output.line(&format!(
                "receipts/{}: {}",
                one_line(&problem.file),
                problem.code
            ));
        }
        Ok(ExitStatus::Success)
    }
}

impl History {
    /// Whether the project's workspace lists the spec.
    fn is_listed(
        &self,
        app: &App,
        named: Option<&Path>,
        project: &SpecProject,
    ) -> Result<bool, Failure> {
        let list = list_of(app, named, project)?
            .map(|file| file.load())
            .transpose()?;
        Ok(list.is_some_and(|list| list.entry(&self.spec).is_some()))
    }
}

fn note(row: &HistoryRow) -> String {
    let mut parts: Vec<String> = row
        .error
        .iter()
        .map(|error| short_line(error, MAX_NOTE_LEN))
        .collect();
    if row.warnings > 0 {
        parts.push(counted(row.warnings, "warning"));
    }
    if row.attempts > 1 {
        parts.push(counted(row.attempts, "attempt"));
    }
    if row.clock == Some(ClockSource::Pinned) {
        parts.push("pinned clock".to_owned());
    }
    parts.join("; ")
}
