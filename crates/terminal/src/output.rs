//! The one place that prints: results to standard output, everything else to standard error.
//!
//! Text that may come from outside is printed escaped, so that no file name and no model can move the cursor, turn
//! the direction of text or forge a line of the result. A result that cannot be written ends the command as an
//! error; a reader that closes its end of the pipe has read enough, and that is not an error.
//!
//! A crawl has a voice of its own: every line on standard error begins with `[crawl] `, errors too, and its exit
//! codes are those of its family. An error as JSON is one line of plain JSON, in every voice.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::{Arc, OnceLock};

use crucible_host::env::Environment;
use crucible_model::{
    ExitStatus, Failure, Finding, Level, Outcome, VerdictReport, escaped, escaped_json,
    json_document, one_line,
};
use crucible_sandbox::Notices;
use serde::Serialize;

use crate::blocked_write::watched;

/// Whether results are for people or for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text.
    Human,
    /// One JSON document.
    Json,
}

/// The form of lines on standard error and of exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// That of every command but `crawl`.
    Plain,
    /// That of `crawl`.
    Crawl,
}

impl Voice {
    /// The prefix of each line on standard error.
    fn prefix(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Crawl => "[crawl] ",
        }
    }
}

/// The output format of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputMode {
    /// The format of the result.
    pub format: Format,
    /// The format of errors. The result of `crawl` is JSON on a pipe by default; its errors are then still
    /// for people.
    pub errors: Format,
    /// The form of lines on standard error.
    pub voice: Voice,
}

impl OutputMode {
    /// The same format for results and errors.
    pub fn plain(format: Format) -> Self {
        Self {
            format,
            errors: format,
            voice: Voice::Plain,
        }
    }
}

/// Prints the results and remarks of a command.
#[derive(Debug, Clone)]
pub struct Output {
    mode: OutputMode,
    colour: bool,
    /// Standard output is a terminal on which colours are wanted.
    colour_result: bool,
    live: bool,
    /// Whether remarks are dropped, because several tasks at once would mix theirs.
    quiet: bool,
    /// The first failure to write the result; nothing is written after it.
    failed: Arc<OnceLock<std::io::Error>>,
}

impl Output {
    /// Prints to the streams of this process, in colour if they and the environment allow it.
    pub fn new(env: &Environment, mode: OutputMode) -> Self {
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

    /// Returns the same output without remarks on standard error.
    pub fn quiet(&self) -> Self {
        Self {
            quiet: true,
            ..self.clone()
        }
    }

    /// Whether standard error is a terminal on which progress may move.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Whether the result is a JSON document.
    pub fn is_json(&self) -> bool {
        self.mode.format == Format::Json
    }

    /// The prefix of each line on standard error.
    pub fn prefix(&self) -> &'static str {
        self.mode.voice.prefix()
    }

    /// The exit status of the process in this voice.
    fn ending(&self, status: ExitStatus) -> ExitStatus {
        match self.mode.voice {
            Voice::Plain => status,
            Voice::Crawl => status.under_crawl(),
        }
    }

    /// Prints text of the result, escaped, and a line end. CRLF counts as one line end.
    pub fn line(&self, text: &str) {
        self.write(format!("{}\n", escaped(&text.replace("\r\n", "\n"))).as_bytes());
    }

    /// Prints text of the result, escaped and flushed, without a line end.
    pub fn part(&self, text: &str) {
        self.write(escaped(text).as_bytes());
        self.note(watched(|| std::io::stdout().flush()));
    }

    /// Prints a diff as part of the result, escaped line by line, in colours if they are wanted.
    pub fn diff(&self, diff: &[u8]) {
        let colours = if self.colour_result {
            Colours::Shown
        } else {
            Colours::None
        };
        self.write(shown_diff(diff, colours).as_bytes());
    }

    /// Whether standard output failed, so that nothing more is printed to it.
    pub fn is_lost(&self) -> bool {
        self.failed.get().is_some()
    }

    /// Prints bytes of the result: unchanged to a file or a pipe, as escaped text to a terminal.
    pub fn bytes(&self, bytes: &[u8]) {
        if std::io::stdout().is_terminal() {
            self.write(escaped(&String::from_utf8_lossy(bytes)).as_bytes());
        } else {
            self.write(bytes);
        }
    }

    /// Prints bytes to standard error, in the same way.
    pub fn write_stderr(&self, bytes: &[u8]) {
        let mut stderr = std::io::stderr();
        let _nobody_is_left_to_tell = watched(|| {
            if stderr.is_terminal() {
                stderr.write_all(escaped(&String::from_utf8_lossy(bytes)).as_bytes())
            } else {
                stderr.write_all(bytes)
            }
        });
    }

    /// Prints the result as one JSON document with a final newline.
    pub fn json<T: Serialize>(&self, value: &T) -> Result<(), Failure> {
        let document = json_document(value)?;
        self.write(format!("{document}\n").as_bytes());
        Ok(())
    }

    /// Prints the result of a successful command: as JSON, or as text by `text`.
    pub fn show<T: Serialize>(
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

    /// Prints a text that is JSON already, on one line.
    pub fn json_text(&self, document: &str) {
        self.write(format!("{}\n", escaped_json(document)).as_bytes());
    }

    /// Prints a remark to standard error.
    pub fn remark(&self, text: &str) {
        self.say(&escaped(text));
    }

    /// Prints a question; the answer is typed on the same line.
    pub fn question(&self, text: &str) {
        let text = format!("{}{} ", self.prefix(), escaped(text));
        let mut stderr = std::io::stderr();
        let _nobody_is_left_to_tell = watched(|| {
            stderr
                .write_all(text.as_bytes())
                .and_then(|()| stderr.flush())
        });
    }

    /// Prints a remark that begins with a name in a colour.
    pub fn remark_of(&self, name: &str, text: &str) {
        self.say(&format!(
            "  {} {}",
            self.paint("2", &one_line(name)),
            escaped(text)
        ));
    }

    /// Prints an error with its hints. With `--json` it is a document of `docs/contracts/error.schema.json`.
    pub fn error(&self, error: &Failure) {
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

    /// Runs a writer that prints the result to standard output by itself.
    pub fn written_by(&self, write: impl FnOnce() -> std::io::Result<()>) {
        self.note(write());
    }

    /// Prints the message of a wrong command line, or the help that takes its place.
    pub fn usage(&self, text: &str) {
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

    /// Prints a verdict: one JSON object, or the findings and, if it passes, `passed`.
    pub fn verdict(&self, report: &VerdictReport, passed: &str) -> Result<ExitStatus, Failure> {
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

    /// Prints a finding for people.
    pub fn finding(&self, finding: &Finding) {
        let level = self.level(finding);
        let hint = escaped(finding.hint.trim_end()).replace('\n', "\n    ");
        let subject = one_line(&finding.subject);
        self.write(format!("{level} {}: {subject}\n    {hint}\n", finding.code).as_bytes());
    }

    /// Prints a finding and its hint on one line, for people.
    pub fn finding_line(&self, finding: &Finding) {
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

    /// Flushes the result and returns the exit status of the process. A success whose result could not be
    /// written ends as `unwritten`.
    pub fn conclude(&self, status: ExitStatus, unwritten: ExitStatus) -> ExitStatus {
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
        .hint("Only the printed result is lost; the effects of the command remain.");
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
        let text = prefix_lines(voice.prefix(), text);
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
    let mut content = String::with_capacity(text.len());
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
            content.push_str(&line);
        } else {
            content.push_str(&format!("\u{1b}[{colour}m{line}\u{1b}[0m"));
        }
        content.push('\n');
    }
    content
}

/// Lines as a voice says them: with a prefix none is empty.
fn prefix_lines(prefix: &str, text: &str) -> String {
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
    fn diff_is_coloured_and_its_text_escaped() {
        let diff = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n keep\n--- \x1b[2J\r\n+++ new\n\\ No newline at end of file\n";
        assert_eq!(
            shown_diff(diff, Colours::None),
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n keep\n--- \\u{1b}[2J\\r\n+++ new\n\\ No newline at end of file\n"
        );
        let text = shown_diff(diff, Colours::Shown);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "\u{1b}[1m--- a/x\u{1b}[0m");
        assert_eq!(lines[4], " keep");
        assert_eq!(lines[5], "\u{1b}[31m--- \\u{1b}[2J\\r\u{1b}[0m");
        assert_eq!(lines[6], "\u{1b}[32m+++ new\u{1b}[0m");
        assert_eq!(shown_diff(b"", Colours::Shown), "");
    }

    #[test]
    fn crawl_lines_are_prefixed_and_never_empty() {
        let text = "error: no\n\n  tip: yes\n";
        assert_eq!(
            prefix_lines(Voice::Crawl.prefix(), text),
            "[crawl] error: no\n[crawl]   tip: yes\n"
        );
        assert_eq!(prefix_lines(Voice::Plain.prefix(), "a\n\nb"), "a\n\nb\n");
    }
}
