//! The result of a phase, for people.

use crucible_model::{Timestamp, counted, one_line};
use crucible_spec::{NextStep, PhaseEntry, PhaseId, SpecReceipt, SpecStore};

use crate::app::App;
use crate::phase_text::cost;

/// Shows a phase that succeeded: its artifact and usage, with warnings on standard error.
pub(crate) fn show_phase(app: &App, store: &SpecStore, phase: PhaseId, receipt: &SpecReceipt) {
    let Some(entry) = receipt.phase(phase.as_str()) else {
        return;
    };
    let artifact = store.dir().join("artifacts").join(phase.artifact());
    let here = app.env.working_directory();
    let shown = artifact.strip_prefix(here).unwrap_or(&artifact).display();
    app.output
        .line(&one_line(&format!("{:<13}{shown}", phase.as_str())));
    app.output.line(&format!("{:<13}{}", "", took(entry)));
    warn(app, phase, entry);
}

/// Shows a dry run.
pub(crate) fn show_dry(app: &App, phase: PhaseId, receipt: &SpecReceipt) {
    let Some(entry) = receipt.phase(phase.as_str()) else {
        return;
    };
    let packet = entry.packet.as_ref().map_or_else(String::new, |packet| {
        let texts = counted(packet.entries, "text");
        let left_out = match packet.left_out {
            0 => String::new(),
            several => format!("; {} left out", counted(several, "file")),
        };
        format!(
            ": {texts}, {}, {}{left_out}",
            counted(packet.bytes, "byte"),
            counted(packet.lines, "line")
        )
    });
    app.output
        .line(&format!("{:<13}would ask now{packet}", phase.as_str()));
    for input in &entry.inputs {
        app.output.line(&one_line(&format!(
            "{:<13}  {} ({} bytes)",
            "", input.path, input.bytes
        )));
    }
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

/// The usage of a phase: the model, tokens, cost and time.
fn took(entry: &PhaseEntry) -> String {
    let mut parts = Vec::new();
    match &entry.llm {
        Some(llm) => {
            let model = llm.model_used.as_deref().unwrap_or("a model");
            let provider = llm.provider.as_deref().unwrap_or("a provider");
            parts.push(one_line(&format!("{model} ({provider})")));
            if let (Some(input), Some(output)) = (llm.tokens_input, llm.tokens_output) {
                parts.push(format!("{input} + {output} tokens"));
            }
            parts.extend(
                llm.cost
                    .as_ref()
                    .map(|told| cost(Some(told.micro_dollars), Some(told.basis))),
            );
        }
        None => parts.push("no model was asked".to_owned()),
    }
    if let (Some(from), Some(to)) = (entry.started_at, entry.finished_at) {
        parts.push(seconds(from, to));
    }
    let refused = entry.findings.len() as u64;
    if refused > 0 {
        parts.push(format!("corrected ({})", counted(refused, "finding")));
    }
    parts.join(", ")
}

fn seconds(from: Timestamp, to: Timestamp) -> String {
    let millis = to.unix_millis().saturating_sub(from.unix_millis()).max(0);
    format!("{}.{} s", millis / 1000, millis % 1000 / 100)
}
