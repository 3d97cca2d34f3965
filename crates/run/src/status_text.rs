//! The state of a run as text.

use crucible_model::counted;

use crate::contract::{RunRole, RunSettings, Service};
use crate::status::RunStatus;

/// The most refusals of a summary.
const MAX_REFUSALS: usize = 5;
/// The most failing tests of a summary.
const MAX_TESTS: usize = 10;

impl RunStatus {
    /// Returns the state of the run: goal, proposer, state, scope and next step.
    #[must_use]
    pub fn summary(&self) -> Vec<String> {
        let mut lines = vec![
            format!("run       {}", self.run.run_id),
            format!("goal      {}", self.run.goal),
            proposer(&self.run.settings),
            format!("state     {}", self.state.name()),
            format!(
                "attempts  {} of {}",
                self.budgets.iterations, self.run.settings.max_iterations
            ),
        ];
        if !self.scope_sources.is_empty() {
            let places: Vec<String> = self.scope_sources.iter().map(ToString::to_string).collect();
            lines.push(format!(
                "scope     the plan's files and any source in {}",
                places.join(", ")
            ));
        }
        if let Some(failure) = &self.failure {
            lines.push(format!("failed    {failure}"));
        }
        let refused = self.refused.iter().take(MAX_REFUSALS);
        lines.extend(refused.map(|finding| format!("refused   {finding}")));
        if !self.failing_tests.is_empty() {
            lines.push(format!("red       {}", names(&self.failing_tests)));
        }
        if let Some(bundle) = &self.bundle {
            lines.push(format!("bundle    {}", bundle.display()));
        }
        lines.extend(self.shown.iter().map(|what| format!("shown     {what}")));
        lines.extend(self.edited.iter().map(|path| format!("edited    {path}")));
        lines.push(format!("evidence  {}", self.directory.display()));
        lines.push(format!("next      {}", self.next));
        lines
    }

    /// Returns what is missing, who owes what, and the budgets.
    #[must_use]
    pub fn detail_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.missing.is_empty() {
            lines.push(format!("missing   {}", self.missing.join(", ")));
        }
        if let Some(owed) = &self.owed {
            lines.push(format!(
                "owed      {} by the {}: {} (asked in {})",
                owed.target, owed.role, owed.action, owed.prompt
            ));
        }
        let budgets = &self.budgets;
        let left = |used: u64, most: u64| {
            format!("{used} of {most} used, {} left", most.saturating_sub(used))
        };
        lines.push(format!(
            "calls     {}",
            left(budgets.calls, budgets.max_calls)
        ));
        lines.push(format!(
            "tries     {}",
            left(budgets.iterations, budgets.max_iterations)
        ));
        let settings = &self.run.settings;
        if settings.max_file_requests > 0 {
            lines.push(format!(
                "requests  {}",
                left(budgets.file_requests, budgets.max_file_requests)
            ));
        }
        let from = match settings.context_window {
            Some(tokens) => format!(", for a context window of {tokens} tokens"),
            None => String::new(),
        };
        let (files, bytes) = (settings.max_files, settings.max_total_bytes);
        lines.push(format!(
            "context   at most {files} files, {bytes} bytes{from}"
        ));
        if budgets.max_outbox_prompts > 0 {
            lines.push(format!(
                "prompts   {}",
                left(budgets.outbox_prompts, budgets.max_outbox_prompts)
            ));
        }
        if budgets.tokens > 0 {
            lines.push(format!("tokens    {}", budgets.tokens));
        }
        lines
    }
}

/// The number of failing tests, and the first of them.
fn names(tests: &[String]) -> String {
    let lines: Vec<&str> = tests.iter().take(MAX_TESTS).map(String::as_str).collect();
    let more = match tests.len() - lines.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let count = counted(tests.len() as u64, "test");
    let verb = if tests.len() == 1 { "fails" } else { "fail" };
    format!("{count} {verb}: {}{more}", lines.join(", "))
}

/// Who proposes the changes of a run: nobody else is named where a person or a command does.
fn proposer(settings: &RunSettings) -> String {
    match settings.dispatch().service(RunRole::Patchmaker) {
        Service::ManualOutbox => "asked     a person, through outbox/".to_owned(),
        Service::ApiAgent => "asked     a command of yours".to_owned(),
        Service::Agent(_) => settings.coding_agent.as_ref().map_or_else(
            || "agent".to_owned(),
            |agent| format!("agent     {} ({})", agent.profile.name, agent.profile.model),
        ),
        service => {
            let own = settings.role_models.get(RunRole::Patchmaker.name());
            let provider = service.client().unwrap_or(&settings.provider);
            format!("model     {} ({provider})", own.unwrap_or(&settings.model))
        }
    }
}
