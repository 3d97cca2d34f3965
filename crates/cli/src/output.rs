//! The one place that prints: results to standard output, everything else to standard error.
//!
//! A reader that closes its end of the pipe is no error. Text that may come from outside is printed with its
//! control characters escaped, so that no file name or model can move the cursor.

use std::io::{IsTerminal, Write};

use crucible_host::env::Environment;
use crucible_model::{ExitStatus, Finding, Level, Outcome, VerdictReport};
use serde::Serialize;

use crate::error::CommandError;

/// Whether results are for people or for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text.
    Human,
    /// One JSON document.
    Json,
}

/// Where a command prints.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) format: Format,
    colour: bool,
    /// Standard error is a terminal: progress may move.
    pub(crate) live: bool,
}

impl Output {
    pub(crate) fn new(env: &Environment, json: bool) -> Self {
        let format = if json { Format::Json } else { Format::Human };
        let plain =
            env.get("NO_COLOR").is_some_and(|value| !value.is_empty()) || env.get("TERM") == Some("dumb");
        let live = std::io::stderr().is_terminal() && env.get("TERM") != Some("dumb");
        Self { format, colour: live && !plain, live }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// A line of the result.
    pub(crate) fn line(&self, text: &str) {
        let _closed_pipe_is_fine = writeln!(std::io::stdout(), "{text}");
    }

    /// The result as JSON, one document with a final newline.
    pub(crate) fn json<T: Serialize>(&self, value: &T) -> Result<(), CommandError> {
        let text = serde_json::to_string_pretty(value).map_err(|error| {
            CommandError::new(ExitStatus::Refused, format!("the result has no JSON form: {error}"))
        })?;
        self.line(&text);
        Ok(())
    }

    /// A remark to the user, beside the result.
    pub(crate) fn remark(&self, text: &str) {
        let _closed_pipe_is_fine = writeln!(std::io::stderr(), "{text}");
    }

    /// An error, with its hints; as JSON on standard error where JSON was asked for.
    pub(crate) fn error(&self, error: &CommandError) {
        if self.is_json() {
            let body = serde_json::json!({
                "schema_version": "crucible-error-v1",
                "error": error.message,
                "hints": error.hints,
                "exit_code": error.status.code(),
                "budget_exhausted": error.budget_exhausted,
            });
            self.remark(&body.to_string());
            return;
        }
        self.remark(&format!("{} {}", self.paint("31;1", "error:"), escaped(&error.message)));
        for hint in &error.hints {
            self.remark(&format!("  {} {}", self.paint("36", "hint:"), escaped(hint)));
        }
    }

    /// A verdict: one JSON object, or a line for each finding.
    pub(crate) fn verdict(&self, report: &VerdictReport, passed: &str) -> Result<ExitStatus, CommandError> {
        if self.is_json() {
            self.json(report)?;
        } else {
            for finding in &report.findings {
                self.line(&self.finding(finding));
            }
            if report.verdict == Outcome::Pass {
                self.line(passed);
            }
        }
        Ok(match report.verdict {
            Outcome::Pass => ExitStatus::Success,
            Outcome::Fail => ExitStatus::Refused,
        })
    }

    /// One finding as a line for people.
    pub(crate) fn finding(&self, finding: &Finding) -> String {
        let level = match finding.level {
            Level::Error => self.paint("31", "error"),
            Level::Warning => self.paint("33", "warning"),
            Level::Info => self.paint("36", "info"),
        };
        format!("{level} {}: {}\n    {}", finding.code, escaped(&finding.subject), escaped(&finding.hint))
    }

    /// Text in a colour, where colours are wanted.
    pub(crate) fn paint(&self, colour: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Text from outside, with control characters and bidirectional marks escaped; newlines and tabs stay.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        let moves_text =
            matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (c.is_control() && !matches!(c, '\n' | '\t')) || moves_text {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}
