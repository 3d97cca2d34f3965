//! The findings about a step: code, level, and the step and token they are about.

use crucible_model::{Code, Finding, Level, short_line};

use super::command_line::CommandLine;

/// The plan has no steps.
pub(super) const STEPS_MISSING: Code = Code::new("build-steps-missing");
/// The build system is unknown.
pub(super) const SYSTEM_INVALID: Code = Code::new("build-system-invalid");
/// No build system was detected.
pub(super) const SYSTEM_UNKNOWN: Code = Code::new("build-system-unknown");
/// The detection has a low confidence.
pub(super) const CONFIDENCE_LOW: Code = Code::new("build-confidence-low");
pub(super) const STEPS_MANY: Code = Code::new("build-steps-many");
/// The plan's hash does not match its steps.
pub(super) const HASH_DIFFERS: Code = Code::new("build-hash-differs");
/// The plan's own safety verdict differs from the rules' verdict.
pub(super) const CLAIM_DIFFERS: Code = Code::new("build-claim-differs");
/// A token that is refused anywhere in a command.
pub(super) const TOKEN_PROHIBITED: Code = Code::new("build-token-prohibited");
/// The command does not begin with an allowed form.
pub(super) const COMMAND_NOT_ALLOWED: Code = Code::new("build-command-not-allowed");
/// The command exceeds the length limit.
pub(super) const COMMAND_TOO_LONG: Code = Code::new("build-command-too-long");
/// The command is long.
pub(super) const COMMAND_LONG: Code = Code::new("build-command-long");
/// A character with a meaning in a shell.
pub(super) const CHARACTER_REFUSED: Code = Code::new("build-character-refused");
/// Wrong spacing between words.
pub(super) const BLANKS_REFUSED: Code = Code::new("build-blanks-refused");
/// An option that is not in the program's table.
pub(super) const OPTION_REFUSED: Code = Code::new("build-option-refused");
/// An option's value that is not allowed.
pub(super) const VALUE_REFUSED: Code = Code::new("build-value-refused");
/// A word other than an option that is not allowed there.
pub(super) const ARGUMENT_REFUSED: Code = Code::new("build-argument-refused");
pub(super) const PATH_ABSOLUTE: Code = Code::new("build-path-absolute");
/// A path with `..`.
pub(super) const PATH_PARENT: Code = Code::new("build-path-parent");
/// A path into a directory that configures tools.
pub(super) const PATH_PROTECTED: Code = Code::new("build-path-protected");
/// A path through a symbolic link.
pub(super) const PATH_LINK: Code = Code::new("build-path-link");
/// A text that is not a plain path.
pub(super) const PATH_INVALID: Code = Code::new("build-path-invalid");
/// A working directory outside of the workspace.
pub(super) const CWD_REFUSED: Code = Code::new("build-cwd-refused");
/// A variable that is not on the list.
pub(super) const ENV_KEY_REFUSED: Code = Code::new("build-env-key-refused");
/// A variable's value that is not a plain word.
pub(super) const ENV_VALUE_REFUSED: Code = Code::new("build-env-value-refused");
/// A name or note with invisible characters.
pub(super) const TEXT_HIDDEN: Code = Code::new("build-text-hidden");
/// An option that sets an install location.
pub(super) const PATH_OPTION: Code = Code::new("build-path-option");
/// A command that installs outside the workspace.
pub(super) const INSTALLS_OUTSIDE: Code = Code::new("build-installs-outside");

/// A tree that is copied into a possibly existing directory.
pub(super) const COPY_MERGES: Code = Code::new("build-copy-merges");
/// More steps than are judged.
pub(super) const STEPS_TOO_MANY: Code = Code::new("build-steps-too-many");
/// Findings that are left out.
pub(super) const FINDINGS_CUT: Code = Code::new("build-findings-cut");

/// The step that is judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepLabel<'a> {
    /// The number, from 1.
    pub(super) number: usize,
    /// The name in the plan.
    pub(super) name: &'a str,
}

/// The most findings about one step.
const MAX_STEP_LEN: usize = 16;
/// The number of findings after which each further step gets only one.
const MAX_PLAN_LEN: usize = 1000;

/// Collects the findings about one step, up to a limit; at the end, omitted findings are reported.
pub(super) struct FindingSink<'a> {
    step: StepLabel<'a>,
    findings: &'a mut Vec<Finding>,
    remaining_findings: usize,
    cut: Option<Level>,
    command_lines: Option<&'a mut Vec<CommandLine>>,
}

impl<'a> FindingSink<'a> {
    pub(super) fn new(step: StepLabel<'a>, findings: &'a mut Vec<Finding>) -> Self {
        let left = if findings.len() < MAX_PLAN_LEN {
            MAX_STEP_LEN
        } else {
            0
        };
        Self {
            step,
            findings,
            remaining_findings: left,
            cut: None,
            command_lines: None,
        }
    }

    /// Also stores the parsed command lines in `command_lines`.
    pub(super) fn with_command_lines(self, command_lines: &'a mut Vec<CommandLine>) -> Self {
        Self {
            command_lines: Some(command_lines),
            ..self
        }
    }

    /// Stores a parsed command line.
    pub(super) fn record_command_line(&mut self, line: impl FnOnce() -> CommandLine) {
        if let Some(command_lines) = &mut self.command_lines {
            command_lines.push(line());
        }
    }

    /// Adds a finding that rejects the plan, about `token`.
    pub(super) fn refuse(&mut self, code: Code, token: &str, hint: impl Into<String>) {
        if self.has_room(Level::Error) {
            let subject = self.subject(token);
            self.findings.push(Finding::error(code, subject, hint));
        }
    }

    /// Adds a warning about `token`.
    pub(super) fn warn(&mut self, code: Code, token: &str, hint: impl Into<String>) {
        if self.has_room(Level::Warning) {
            let subject = self.subject(token);
            self.findings.push(Finding::warning(code, subject, hint));
        }
    }

    /// Returns the findings of a check that is not reported.
    pub(super) fn unreported_findings(
        &self,
        check: impl FnOnce(&mut FindingSink<'_>),
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        check(&mut FindingSink::new(self.step, &mut findings));
        findings
    }

    /// Whether no further finding would be reported, so that the check can stop.
    pub(super) fn is_full(&self) -> bool {
        self.cut == Some(Level::Error)
    }

    /// Reports omitted findings, if any, with the highest of their levels.
    pub(super) fn close(self) {
        let Some(level) = self.cut else { return };
        let hint = "this step has more findings than are shown; fix these, then check again";
        let subject = self.subject("and more");
        self.findings.push(Finding {
            code: FINDINGS_CUT,
            level,
            subject,
            hint: hint.to_owned(),
        });
    }

    fn has_room(&mut self, level: Level) -> bool {
        if self.remaining_findings == 0 {
            self.cut = self.cut.max(Some(level));
            return false;
        }
        self.remaining_findings -= 1;
        true
    }

    fn subject(&self, token: &str) -> String {
        format!(
            "step {} \"{}\": {}",
            self.step.number,
            short_line(self.step.name, 60),
            short_line(token, 120)
        )
    }
}
