//! The evidence for a spec on the command line, for `crucible spec evidence`, `crucible status` and `crucible gate`.

use crucible_evidence::{EvidenceMatrix, to_markdown};
use crucible_model::{ExitStatus, Failure, Finding, Outcome, Verdict, one_line};
use crucible_run::configured::no_repository;
use crucible_run::{EvidenceRequest, spec_evidence};
use crucible_spec::{SpecOutline, SpecProject};
use crucible_terminal::{lines_of, table};
use serde::Serialize;

use crate::app::App;

/// How many digits of a commit are shown.
const SHORT_COMMIT: usize = 12;

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    /// For people.
    Text,
    /// One document.
    Json,
    /// The matrix alone.
    Markdown,
}

/// The document that a program reads.
#[derive(Serialize)]
pub(crate) struct EvidenceReport<'a> {
    schema_version: &'static str,
    verdict: Outcome,
    findings: &'a [Finding],
    matrix: &'a EvidenceMatrix,
}

impl<'a> EvidenceReport<'a> {
    pub(crate) fn new(matrix: &'a EvidenceMatrix, verdict: &'a Verdict) -> Self {
        Self {
            schema_version: "crucible-evidence-report-v1",
            verdict: verdict.outcome(),
            findings: verdict.findings(),
            matrix,
        }
    }
}

/// Judges the requirements of a spec. The findings of the spec itself come first.
pub(crate) async fn judged(
    app: &App,
    project: &SpecProject,
    outline: &SpecOutline,
) -> Result<(EvidenceMatrix, Verdict), Failure> {
    let top = app
        .repository_of(project.root())
        .ok_or_else(|| no_repository(project.root()))?;
    let world = app.world_here()?;
    let ledger = app.optional_ledger()?;
    let requirements = outline.requirement_tests();
    let request = EvidenceRequest {
        spec: &outline.name,
        format: outline.format,
        requirements: &requirements,
    };
    let evidence = spec_evidence(&world, &top, ledger.as_ref(), request).await?;
    let mut verdict = outline.verdict.clone();
    verdict.merge(evidence.verdict);
    Ok((evidence.matrix, verdict))
}

/// Judges the requirements of a spec, and prints the result.
pub(crate) fn report(
    app: &App,
    project: &SpecProject,
    outline: &SpecOutline,
    format: ReportFormat,
) -> Result<ExitStatus, Failure> {
    let (matrix, verdict) = app.block_on(judged(app, project, outline))?;
    match format {
        ReportFormat::Json => app.output.json(&EvidenceReport::new(&matrix, &verdict))?,
        ReportFormat::Markdown => {
            to_markdown(&matrix)
                .lines()
                .for_each(|line| app.output.line(line));
        }
        ReportFormat::Text => {
            for finding in verdict.findings() {
                app.output.finding(finding);
            }
            app.output.line(&rows(&matrix));
            app.output.line(&summary(&matrix, verdict.outcome()));
        }
    }
    Ok(verdict.outcome().exit_status())
}

fn rows(matrix: &EvidenceMatrix) -> String {
    let mut rows = table(["requirement", "state", "test", "result", "run", "commit"]);
    for requirement in &matrix.requirements {
        let id = one_line(&requirement.id);
        if requirement.tests.is_empty() {
            rows.add_row([id.as_str(), requirement.state.words(), "", "", "", ""]);
        }
        for (at, test) in requirement.tests.iter().enumerate() {
            let commit: String = test
                .commit
                .iter()
                .flat_map(|commit| commit.chars().take(SHORT_COMMIT))
                .collect();
            let (id, state) = match at {
                0 => (id.as_str(), requirement.state.words()),
                _ => ("", ""),
            };
            rows.add_row([
                id,
                state,
                &one_line(&test.name),
                test.state.words(),
                test.run.as_ref().map_or("", |run| run.as_str()),
                &commit,
            ]);
        }
    }
    lines_of(&rows)
}

fn summary(matrix: &EvidenceMatrix, outcome: Outcome) -> String {
    let counts = matrix.counts;
    let word = match outcome {
        Outcome::Pass => "pass",
        Outcome::Fail => "fail",
    };
    format!(
        "{word}: {} at {}: {} proven, {} partial, {} without evidence",
        one_line(&matrix.spec),
        matrix.commit,
        counts.proven,
        counts.partial,
        counts.none
    )
}
