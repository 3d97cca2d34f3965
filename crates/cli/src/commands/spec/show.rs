//! The result of a phase, for people.

use crucible_model::one_line;
use crucible_spec::{NextStep, PhaseEntry, PhaseId, SpecReceipt, SpecStore, text};

use crate::app::App;

/// Shows a phase that succeeded: its artifact and usage, with warnings on standard error.
pub(crate) fn show_phase(app: &App, store: &SpecStore, phase: PhaseId, receipt: &SpecReceipt) {
    let Some(entry) = receipt.phase(phase.as_str()) else {
        return;
    };
    let artifact = store.dir().join("artifacts").join(phase.artifact());
    let current_dir = app.env.working_directory();
    let display = artifact
        .strip_prefix(current_dir)
        .unwrap_or(&artifact)
        .display();
    app.output
        .line(&one_line(&format!("{:<13}{display}", phase.as_str())));
    app.output
        .line(&format!("{:<13}{}", "", text::phase_usage(entry)));
    warn(app, phase, entry);
}

/// Shows a dry run.
pub(crate) fn show_dry(app: &App, phase: PhaseId, receipt: &SpecReceipt) {
    let Some(entry) = receipt.phase(phase.as_str()) else {
        return;
    };
    let lines = text::dry_run(phase, entry);
    lines.iter().for_each(|line| app.output.line(line));
    warn(app, phase, entry);
}

/// Prints the warnings of a receipt.
pub(crate) fn warn(app: &App, phase: PhaseId, entry: &PhaseEntry) {
    for warning in &entry.warnings {
        app.output
            .remark(&one_line(&format!("warning: {phase}: {}", warning.message)));
    }
}

/// Prints the next step.
pub(crate) fn show_next(app: &App, next: Option<&NextStep>) {
    if let Some(next) = next {
        app.output.line(&format!("next: {}", next.command));
    } else {
        app.output.line("all phases are done");
    }
}
