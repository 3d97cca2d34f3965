//! `crucible doctor`: what is installed, configured and missing, without asking any model.

use std::path::PathBuf;

use clap::Args;
use crucible_model::{ExitStatus, Failure, Finding, Verdict, one_line};
use crucible_run::{Examination, readiness};
use crucible_sandbox::LayerState;
use crucible_terminal::table;

use crate::app::App;

/// Check what is missing, installed and configured
///
/// Checks every provider, the programs that Crucible uses and the layers of the sandbox. Programs print their
/// version in the sandbox, without a network. No model is called and no connection is opened, so a server is
/// `not probed` at best. Use `crucible models --online` to contact servers.
///
/// Missing parts come first, one per line, with the command that fixes each.
///
/// Exit code 2: something configured cannot work, or git or a required layer of the sandbox is missing.
/// Configured parts are the provider and its fallback, the providers of the council, of crawls and of the
/// dispatch, hooks and the programs of skills. Exit code 0: nothing is missing; an unset provider is only a
/// warning.
///
/// For example: `crucible doctor --repo .`, or `crucible doctor --json` for all details of each program.
#[derive(Args)]
pub(crate) struct Doctor {
    /// Use the configuration of the project in this directory
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo: PathBuf,
}

impl Doctor {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let config = app.config_of(&self.repo)?;
        let start = app.absolute(&self.repo);
        let root = app.repository_of(&start).unwrap_or(start);
        let runtime = app.runtime();
        let examined = app.block_on(Examination::of_project(&runtime, &config, &root))?;
        if app.output.is_json() {
            app.output.json(&examined.document())?;
        } else {
            missing(app, &examined.verdict);
            show(app, &examined);
        }
        Ok(if examined.verdict.passes() {
            ExitStatus::Success
        } else {
            ExitStatus::Usage
        })
    }
}

/// What is missing, the weightiest first, a line each.
fn missing(app: &App, verdict: &Verdict) {
    let mut findings: Vec<&Finding> = verdict.findings().iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    findings
        .iter()
        .for_each(|finding| app.output.finding_line(finding));
    if !findings.is_empty() {
        app.output.line("");
    }
}

/// The tables, and below them what would make more providers ready.
fn show(app: &App, examined: &Examination) {
    let seen = &examined.diagnosis;
    let mut providers = table(["provider", "state", "model", "program or address", "key"]);
    for check in &seen.providers {
        let state = readiness(check.readiness);
        let model = check.model.clone().unwrap_or_default();
        providers.add_row(
            [
                &check.provider,
                state,
                &model,
                &check.place(),
                &check.key_words(),
            ]
            .map(one_line),
        );
    }
    let mut programs = table(["program", "version", "where", "for"]);
    for check in &seen.programs {
        let row = [
            check.name.as_str(),
            &check.version_words(),
            &check.found(),
            &check.purpose,
        ];
        programs.add_row(row.map(one_line));
    }
    let mut layers = table(["sandbox", "state", "by"]);
    for layer in &seen.layers.layers {
        let state = match layer.state {
            LayerState::Available => "available",
            LayerState::Missing => "missing",
        };
        layers.add_row([layer.layer.to_string().as_str(), state, &layer.detail].map(one_line));
    }
    for table in [providers, programs, layers] {
        app.output.line(&format!("{}\n", table.trim_fmt()));
    }
    let places = seen.searched();
    if !places.is_empty() {
        app.output.line(&format!("searched   {}", places.join(" ")));
    }
    app.output.line(&format!(
        "provider   {}",
        one_line(&examined.choice.to_string())
    ));
    for (name, choice) in &examined.others {
        app.output.line(&one_line(&format!("{name:<11}{choice}")));
    }
    let others = seen
        .providers
        .iter()
        .filter(|check| check.provider != seen.provider);
    for (check, problem) in others.filter_map(|check| Some((check, check.lacks()?))) {
        app.output.line(&one_line(&format!(
            "to use {}: {}; {}",
            check.provider, problem.what, problem.next
        )));
    }
}
