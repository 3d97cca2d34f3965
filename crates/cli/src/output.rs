//! The one place that prints: results to standard output, everything else to standard error.
//!
//! Text that may come from outside is printed escaped, so that no file name and no model can move the cursor, turn
//! the direction of text or forge a line of the result. A result that cannot be written ends the command as an
//! error; a reader that closes its end of the pipe has read enough, and that is not an error.
//!
//! A crawl has a voice of its own: every line that it writes to standard error begins with `[crawl] `, errors too, and
//! its exit codes are those of its family. Both hold for whatever is written, since it is done here. An error that is to be
//! JSON is one line of plain JSON, in every voice.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::{Arc, OnceLock};

use crucible_host::env::Environment;
use crucible_model::{
    ExitStatus, Failure, Finding, Level, Outcome, VerdictReport, escaped, escaped_json, one_line,
};
use crucible_sandbox::Notices;
use serde::Serialize;

use crate::blocked_write::watched;

/// Whether results are for people or for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text.
    Human,
    /// One JSON document.
    Json,
}

/// Whose words these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    /// Any command's but a crawl's.
    Plain,
    /// A crawl's.
    Crawl,
}

impl Voice {
    /// What each line on standard error begins with.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Crawl => "[crawl] ",
        }
    }
}

/// How a command speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputMode {
    /// Of the result.
    pub(crate) format: Format,
    /// Of an error. A crawl gives its result as JSON to a pipe unasked, but its errors are for people then.
    pub(crate) errors: Format,
    pub(crate) voice: Voice,
}

impl OutputMode {
    /// JSON where it was asked for.
    pub(crate) fn plain(format: Format) -> Self {
        Self {
            format,
            errors: format,
            voice: Voice::Plain,
        }
    }
}

/// Where a command prints.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    mode: OutputMode,
    colour: bool,
    /// Standard output is a terminal on which colours are wanted.
    colour_result: bool,
    /// Standard error is a terminal: progress may move.
    pub(crate) live: bool,
    /// Nothing is printed beside the result: several pieces of work at once would talk over each other.
    quiet: bool,
    /// The first failure to write the result; nothing is written after it.
    failed: Arc<OnceLock<std::io::Error>>,
}

impl Output {
    pub(crate) fn new(env: &Environment, mode: OutputMode) -> Self {
        let plain = env
            .get_os("NO_COLOR")
            .is_some_and(|value| !value.is_empty())
            || env.get("TERM") == Some("dumb");
        let live = std::io::stderr().is_terminal() && env.get("TERM") != Some("dumb");
        let colour_result = std::io::stdout().is_terminal() && !plain;
        Self {
            mode,
            colour: live && !plain,
            colour_result,
            live,
            quiet: false,
            failed: Arc::default(),
        }
    }

    /// The same, without any remark on standard error.
    pub(crate) fn quiet(&self) -> Self {
        Self {
            quiet: true,
            ..self.clone()
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.mode.format == Format::Json
    }

    /// What each line on standard error begins with.
    pub(crate) fn prefix(&self) -> &'static str {
        self.mode.voice.prefix()
    }

    /// How the process ends with this voice.
    fn ending(&self, status: ExitStatus) -> ExitStatus {
        match self.mode.voice {
            Voice::Plain => status,
            Voice::Crawl => status.under_crawl(),
        }
    }

    /// Text of the result, escaped, and the end of its line. However a line of it ends, it is the end of a line.
    pub(crate) fn line(&self, text: &str) {
        self.write(format!("{}\n", escaped(&text.replace("\r\n", "\n"))).as_bytes());
    }

    /// Text of the result, escaped, that is seen at once and whose line goes on.
    pub(crate) fn part(&self, text: &str) {
        self.write(escaped(text).as_bytes());
        self.note(watched(|| std::io::stdout().flush()));
    }

    /// A diff as part of the result: escaped line by line, with its lines in colours where they are wanted.
    pub(crate) fn diff(&self, diff: &[u8]) {
        let colours = if self.colour_result {
            Colours::Shown
        } else {
            Colours::None
        };
        self.write(shown_diff(diff, colours).as_bytes());
    }

    /// Whether nothing of the result is seen any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.failed.get().is_some()
    }

    /// Bytes that are the result: as they are for a file or a pipe, as escaped text on a terminal.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        if std::io::stdout().is_terminal() {
            self.write(escaped(&String::from_utf8_lossy(bytes)).as_bytes());
        } else {
            self.write(bytes);
        }
    }

    /// Bytes beside the result, in the same way.
    pub(crate) fn aside(&self, bytes: &[u8]) {
        let mut stderr = std::io::stderr();
        let _nobody_is_left_to_tell = watched(|| {
            if stderr.is_terminal() {
                stderr.write_all(escaped(&String::from_utf8_lossy(bytes)).as_bytes())
            } else {
                stderr.write_all(bytes)
            }
        });
    }

    /// The result as JSON, one document with a final newline.
    pub(crate) fn json<T: Serialize>(&self, value: &T) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| Failure::refused(format!("the result has no JSON form: {error}")))?;
        self.write(format!("{}\n", escaped_json(&text)).as_bytes());
        Ok(())
    }

    /// The result of a command that succeeded: as JSON, or as text that `text` prints.
    pub(crate) fn show<T: Serialize>(
        &self,
        document: impl FnOnce() -> T,
        text: impl FnOnce(),
    ) -> Result<ExitStatus, Failure> {
        if self.is_json() {
            self.json(&document())?;
        } else {
            text();
        }
        Ok(ExitStatus::Success)
    }

    /// A document that is JSON already, on one line.
    pub(crate) fn json_text(&self, document: &str) {
        self.write(format!("{}\n", escaped_json(document)).as_bytes());
    }

    /// A remark to the user, beside the result.
    pub(crate) fn remark(&self, text: &str) {
        self.say(&escaped(text));
    }

    /// A question to the user; the answer is typed on the same line.
    pub(crate) fn question(&self, text: &str) {
        let text = format!("{}{} ", self.prefix(), escaped(text));
        let mut stderr = std::io::stderr();
        let _nobody_is_left_to_tell = watched(|| {
            stderr
                .write_all(text.as_bytes())
                .and_then(|()| stderr.flush())
        });
    }

    /// A remark that begins with a name in a colour.
    pub(crate) fn remark_of(&self, name: &str, text: &str) {
        self.say(&format!(
            "  {} {}",
            self.paint("2", &one_line(name)),
            escaped(text)
        ));
    }

    /// An error, with its hints; where JSON was asked for as JSON, described in `docs/contracts/error.schema.json`.
    pub(crate) fn error(&self, error: &Failure) {
        if self.mode.errors == Format::Json {
            let body = serde_json::json!({
                "schema_version": "crucible-error-v1",
                "error": error.message,
                "hints": error.hints,
                "exit_code": self.ending(error.status).code(),
                "budget_exhausted": error.budget_exhausted,
            });
            // Whoever asked for JSON reads this line with a JSON parser, so no voice stands before it.
            self.say_as(Voice::Plain, &escaped_json(&body.to_string()));
            return;
        }
        // What a message quotes may have lines of its own: set off, they cannot pass for ours.
        let text = |text: &str| escaped(text.trim_end()).replace('\n', "\n  ");
        self.say(&format!(
            "{} {}",
            self.paint("31;1", "error:"),
            text(&error.message)
        ));
        for hint in &error.hints {
            self.say(&format!("  {} {}", self.paint("36", "hint:"), text(hint)));
        }
    }

    /// Help or version, as clap lays it out.
    pub(crate) fn clap(&self, help: &clap::Error) {
        self.note(help.print());
    }

    /// What clap says of a wrong command line, for people; or the help that it shows instead.
    pub(crate) fn usage(&self, text: &str) {
        match text.strip_prefix("error:") {
            Some(rest) => {
                self.say(&format!(
                    "{}{}",
                    self.paint("31;1", "error:"),
                    escaped(rest.trim_end())
                ));
            }
            None => self.say(&escaped(text.trim_end())),
        }
    }

    /// A verdict: one JSON object, or a line for each finding.
    pub(crate) fn verdict(
        &self,
        report: &VerdictReport,
        passed: &str,
    ) -> Result<ExitStatus, Failure> {
        if self.is_json() {
            self.json(report)?;
        } else {
            for finding in &report.findings {
                self.finding(finding);
            }
            if report.verdict == Outcome::Pass {
                self.line(passed);
            }
        }
        Ok(report.verdict.exit_status())
    }

    /// One finding, for people.
    pub(crate) fn finding(&self, finding: &Finding) {
        let level = self.level(finding);
        let hint = escaped(finding.hint.trim_end()).replace('\n', "\n    ");
        let subject = one_line(&finding.subject);
        self.write(format!("{level} {}: {subject}\n    {hint}\n", finding.code).as_bytes());
    }

    /// One finding with its hint on a single line, for people.
    pub(crate) fn finding_line(&self, finding: &Finding) {
        let level = self.level(finding);
        let text = |text: &str| one_line(text.trim_end_matches(['.', ' ', '\n']));
        let (subject, hint) = (text(&finding.subject), text(&finding.hint));
        self.write(format!("{level} {}: {subject}. {hint}\n", finding.code).as_bytes());
    }

    fn level(&self, finding: &Finding) -> String {
        match finding.level {
            Level::Error => self.paint("31", "error"),
            Level::Warning => self.paint("33", "warning"),
            Level::Info => self.paint("36", "info"),
        }
    }

    /// The way the process ends: as the command did, unless its result could not be written; then a success ends as `unwritten`.
    pub(crate) fn conclude(&self, status: ExitStatus, unwritten: ExitStatus) -> ExitStatus {
        let status = self.ending(status);
        self.note(watched(|| std::io::stdout().flush()));
        let Some(error) = self
            .failed
            .get()
            .filter(|error| error.kind() != ErrorKind::BrokenPipe)
        else {
            return status;
        };
        let own = if status == ExitStatus::Success {
            unwritten
        } else {
            status
        };
        let error = Failure::new(
            own,
            format!("the result could not be written to standard output: {error}"),
        )
        .hint("Only what was to be printed is lost; what the command did stays done.");
        self.error(&error);
        own
    }

    fn write(&self, bytes: &[u8]) {
        if self.failed.get().is_none() {
            self.note(watched(|| std::io::stdout().write_all(bytes)));
        }
    }

    fn note(&self, written: std::io::Result<()>) {
        if let Err(error) = written {
            let _the_first_one_counts = self.failed.set(error);
        }
    }

    /// Text in a colour, where colours are wanted.
    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{colour}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// Lines on standard error, in one piece. When they cannot be written either there is nobody left to tell.
    fn say(&self, text: &str) {
        self.say_as(self.mode.voice, text);
    }

    fn say_as(&self, voice: Voice, text: &str) {
        if self.quiet {
            return;
        }
        let text = spoken(voice.prefix(), text);
        let _nobody_is_left_to_tell = watched(|| std::io::stderr().write_all(text.as_bytes()));
    }
}

impl Notices for Output {
    fn notice(&self, text: &str) {
        self.remark(text);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colours {
    Shown,
    None,
}

/// A diff as it is seen: what comes is green, what goes is red. A carriage return is shown, for it may be all that changes.
fn shown_diff(diff: &[u8], colours: Colours) -> String {
    let text = String::from_utf8_lossy(diff);
    let mut shown = String::with_capacity(text.len());
    let mut in_hunk = false;
    for line in text.split_terminator('\n') {
        // No line of a hunk begins so: text has a mark in front.
        if line.starts_with("diff --git ") {
            in_hunk = false;
        } else if line.starts_with("@@") {
            in_hunk = true;
        }
        let colour = match line.as_bytes().first() {
            Some(b'@') => "36",
            Some(b'+') if in_hunk => "32",
            Some(b'-') if in_hunk => "31",
            Some(b' ') if in_hunk => "",
            Some(b'\\') => "2",
            Some(_) => "1",
            None => "",
        };
        let line = escaped(line);
        if colour.is_empty() || colours == Colours::None {
            shown.push_str(&line);
        } else {
            shown.push_str(&format!("\u{1b}[{colour}m{line}\u{1b}[0m"));
        }
        shown.push('\n');
    }
    shown
}

/// Lines as a voice says them: with a prefix none is empty.
fn spoken(prefix: &str, text: &str) -> String {
    if prefix.is_empty() {
        return format!("{text}\n");
    }
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| format!("{prefix}{line}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_has_its_colours_and_nothing_of_its_text_acts_on_a_terminal() {
        let diff = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n keep\n--- \x1b[2J\r\n+++ new\n\\ No newline at end of file\n";
        assert_eq!(
            shown_diff(diff, Colours::None),
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n keep\n--- \\u{1b}[2J\\r\n+++ new\n\\ No newline at end of file\n"
        );
        let shown = shown_diff(diff, Colours::Shown);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1], "\u{1b}[1m--- a/x\u{1b}[0m");
        assert_eq!(lines[4], " keep");
        assert_eq!(lines[5], "\u{1b}[31m--- \\u{1b}[2J\\r\u{1b}[0m");
        assert_eq!(lines[6], "\u{1b}[32m+++ new\u{1b}[0m");
        assert_eq!(shown_diff(b"", Colours::Shown), "");
    }

    #[test]
    fn every_line_of_a_crawl_carries_its_prefix_and_none_is_empty() {
        let text = "error: no\n\n  tip: yes\n";
        assert_eq!(
            spoken(Voice::Crawl.prefix(), text),
            "[crawl] error: no\n[crawl]   tip: yes\n"
        );
        assert_eq!(spoken(Voice::Plain.prefix(), "a\n\nb"), "a\n\nb\n");
    }
}
