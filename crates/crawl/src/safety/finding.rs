//! How a finding about a step is told: its code, its level, and which step and token it is about.

use crucible_model::{Code, Finding, Level, short_line};

use super::spoken::CommandLine;

/// A plan without a step.
pub(super) const STEPS_MISSING: Code = Code::new("build-steps-missing");
/// A plan for something that is no build system.
pub(super) const SYSTEM_INVALID: Code = Code::new("build-system-invalid");
/// Nothing was detected.
pub(super) const SYSTEM_UNKNOWN: Code = Code::new("build-system-unknown");
/// The detection is unsure.
pub(super) const CONFIDENCE_LOW: Code = Code::new("build-confidence-low");
/// Many steps.
pub(super) const STEPS_MANY: Code = Code::new("build-steps-many");
/// The plan's own hash is another one.
pub(super) const HASH_DIFFERS: Code = Code::new("build-hash-differs");
/// The plan says something else of its safety than the rules.
pub(super) const CLAIM_DIFFERS: Code = Code::new("build-claim-differs");
/// A token of the seed's list.
pub(super) const TOKEN_PROHIBITED: Code = Code::new("build-token-prohibited");
/// The command begins with nothing allowed.
pub(super) const COMMAND_NOT_ALLOWED: Code = Code::new("build-command-not-allowed");
/// The command is longer than any command needs to be.
pub(super) const COMMAND_TOO_LONG: Code = Code::new("build-command-too-long");
/// The command is long.
pub(super) const COMMAND_LONG: Code = Code::new("build-command-long");
/// A character that could mean something to a shell.
pub(super) const CHARACTER_REFUSED: Code = Code::new("build-character-refused");
/// Blanks that separate nothing.
pub(super) const BLANKS_REFUSED: Code = Code::new("build-blanks-refused");
/// An option that is not in the program's table.
pub(super) const OPTION_REFUSED: Code = Code::new("build-option-refused");
/// An option's value that is none of those it may have.
pub(super) const VALUE_REFUSED: Code = Code::new("build-value-refused");
/// A word that is no option and has no place there.
pub(super) const ARGUMENT_REFUSED: Code = Code::new("build-argument-refused");
/// A path from the file system's root.
pub(super) const PATH_ABSOLUTE: Code = Code::new("build-path-absolute");
/// A path with `..`.
pub(super) const PATH_PARENT: Code = Code::new("build-path-parent");
/// A path into a folder that steers tools.
pub(super) const PATH_PROTECTED: Code = Code::new("build-path-protected");
/// A path through a link.
pub(super) const PATH_LINK: Code = Code::new("build-path-link");
/// A text that is no plain path.
pub(super) const PATH_INVALID: Code = Code::new("build-path-invalid");
/// A working directory that is no place in the workspace.
pub(super) const CWD_REFUSED: Code = Code::new("build-cwd-refused");
/// A variable that is not on the list.
pub(super) const ENV_KEY_REFUSED: Code = Code::new("build-env-key-refused");
/// A variable's value that is more than a plain word.
pub(super) const ENV_VALUE_REFUSED: Code = Code::new("build-env-value-refused");
/// A name or note with characters that nobody sees.
pub(super) const TEXT_HIDDEN: Code = Code::new("build-text-hidden");
/// An option that names a place to install to.
pub(super) const PATH_OPTION: Code = Code::new("build-path-option");
/// A command that installs outside the workspace.
pub(super) const INSTALLS_OUTSIDE: Code = Code::new("build-installs-outside");

/// A tree that is copied into a directory that may be there already.
pub(super) const COPY_MERGES: Code = Code::new("build-copy-merges");
/// More steps than are judged.
pub(super) const STEPS_TOO_MANY: Code = Code::new("build-steps-too-many");
/// Findings that are left out.
pub(super) const FINDINGS_CUT: Code = Code::new("build-findings-cut");

/// Which step is judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepLabel<'a> {
    /// From 1.
    pub(super) number: usize,
    /// As the plan names it.
    pub(super) name: &'a str,
}

/// Findings about one step that are told one by one.
const MOST_OF_A_STEP: usize = 16;
/// Findings about a plan after which each further step is told by one.
const MOST_OF_A_PLAN: usize = 1000;

/// Collects the findings about one step, up to a bound; that there was more is told when the step is done.
pub(super) struct Desk<'a> {
    step: StepLabel<'a>,
    findings: &'a mut Vec<Finding>,
    left: usize,
    cut: Option<Level>,
    heard: Option<&'a mut Vec<CommandLine>>,
}

impl<'a> Desk<'a> {
    pub(super) fn new(step: StepLabel<'a>, findings: &'a mut Vec<Finding>) -> Self {
        let left = if findings.len() < MOST_OF_A_PLAN { MOST_OF_A_STEP } else { 0 };
        Self { step, findings, left, cut: None, heard: None }
    }

    /// The same, and the command lines that are read are kept in `heard`.
    pub(super) fn heard_by(self, heard: &'a mut Vec<CommandLine>) -> Self {
        Self { heard: Some(heard), ..self }
    }

    /// A command line was read.
    pub(super) fn hear(&mut self, line: impl FnOnce() -> CommandLine) {
        if let Some(heard) = &mut self.heard {
            heard.push(line());
        }
    }

    /// A finding that refuses the plan, about `token`.
    pub(super) fn refuse(&mut self, code: Code, token: &str, hint: impl Into<String>) {
        if self.has_room(Level::Error) {
            let subject = self.subject(token);
            self.findings.push(Finding::error(code, subject, hint));
        }
    }

    /// A finding that deserves a look, about `token`.
    pub(super) fn warn(&mut self, code: Code, token: &str, hint: impl Into<String>) {
        if self.has_room(Level::Warning) {
            let subject = self.subject(token);
            self.findings.push(Finding::warning(code, subject, hint));
        }
    }

    /// Whether nothing that is still found can change what is told, so that nobody needs to look further.
    pub(super) fn is_full(&self) -> bool {
        self.cut == Some(Level::Error)
    }

    /// Tells that findings were left out, if any; this weighs as much as the heaviest of them.
    pub(super) fn close(self) {
        let Some(level) = self.cut else { return };
        let hint = "this step has more findings than are shown; fix these, then check again";
        let subject = self.subject("and more");
        self.findings.push(Finding { code: FINDINGS_CUT, level, subject, hint: hint.to_owned() });
    }

    fn has_room(&mut self, level: Level) -> bool {
        if self.left == 0 {
            self.cut = self.cut.max(Some(level));
            return false;
        }
        self.left -= 1;
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
