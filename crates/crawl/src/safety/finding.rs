//! How a finding about a step is told: its code, its level, and which step and token it is about.

use crucible_model::{Code, Finding, is_hidden};

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

/// Which step is judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepLabel<'a> {
    /// From 1.
    pub(super) number: usize,
    /// As the plan names it.
    pub(super) name: &'a str,
}

/// Collects the findings about one step.
pub(super) struct Desk<'a> {
    step: StepLabel<'a>,
    findings: &'a mut Vec<Finding>,
}

impl<'a> Desk<'a> {
    pub(super) fn new(step: StepLabel<'a>, findings: &'a mut Vec<Finding>) -> Self {
        Self { step, findings }
    }

    /// A finding that refuses the plan, about `token`.
    pub(super) fn refuse(&mut self, code: Code, token: &str, hint: impl Into<String>) {
        let subject = self.subject(token);
        self.findings.push(Finding::error(code, subject, hint));
    }

    /// A finding that deserves a look, about `token`.
    pub(super) fn warn(&mut self, code: Code, token: &str, hint: impl Into<String>) {
        let subject = self.subject(token);
        self.findings.push(Finding::warning(code, subject, hint));
    }

    fn subject(&self, token: &str) -> String {
        format!("step {} \"{}\": {}", self.step.number, shown(self.step.name, 60), shown(token, 120))
    }
}

/// At most `longest` characters of `text`, those that nobody sees escaped.
pub(super) fn shown(text: &str, longest: usize) -> String {
    let mut line = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == longest {
            line.push('…');
            break;
        }
        if is_hidden(c) {
            line.extend(c.escape_unicode());
        } else {
            line.push(c);
        }
    }
    line
}
