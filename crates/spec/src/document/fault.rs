//! The faults of an answer: each has a constant code and a constant hint.
//!
//! Hints contain no part of the answer, so a correction prompt can give them to the model as
//! instructions. The subject of a finding may quote the answer, so prompts fence it.

use crucible_model::{Code, Finding, Verdict, short_line};

/// The most characters of a subject.
const MAX_SUBJECT_LEN: usize = 200;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// There is no text.
    Empty,
    /// More bytes, lines or entries than the phase allows.
    TooLong,
    /// The answer was cut off at a token limit.
    CutOff,
    /// An invisible character or an HTML comment.
    Hidden,
    /// JSON instead of Markdown.
    Json,
    /// The model declines.
    Refusal,
    /// The model asks a question instead of answering.
    Question,
    /// A report about the document instead of the document.
    Summary,
    /// The document of another phase.
    WrongPhase,
    /// Nothing that resembles the document.
    NoDocument,
    /// No title, or more than one.
    Title,
    /// A long text before or after the document.
    Around,
    /// An unclosed code fence.
    OpenFence,
    /// A sentence of the example in the prompt.
    Example,
    /// No requirement, task or finding.
    NoEntries,
    /// Two entries with one id, or one entry under two.
    DoubleId,
    /// An id that does not exist.
    UnknownId,
    /// An entry or a section without a required part.
    Incomplete,
    /// A heading that does not belong in the document.
    Section,
    /// A requirement that no task serves.
    Unserved,
    /// A path that is not inside the project.
    BadPath,
    /// A line in another form than the prompt shows.
    LineForm,
    /// Two statements that contradict each other.
    Contradiction,
    /// A new requirement when no id is left.
    IdsUsedUp,
    /// A provider filter stopped the answer, or the provider declined.
    Filtered,
    /// A line `Test:` that names no test, or a test of the idea that no requirement names.
    TestLine,
}

/// Every fault, for looking it up by its code.
const ALL: [Fault; 26] = [
    Fault::Empty,
    Fault::TooLong,
    Fault::CutOff,
    Fault::Hidden,
    Fault::Json,
    Fault::Refusal,
    Fault::Question,
    Fault::Summary,
    Fault::WrongPhase,
    Fault::NoDocument,
    Fault::Title,
    Fault::Around,
    Fault::OpenFence,
    Fault::Example,
    Fault::NoEntries,
    Fault::DoubleId,
    Fault::UnknownId,
    Fault::Incomplete,
    Fault::Section,
    Fault::Unserved,
    Fault::BadPath,
    Fault::LineForm,
    Fault::Contradiction,
    Fault::IdsUsedUp,
    Fault::Filtered,
    Fault::TestLine,
];

impl Fault {
    pub(crate) const fn code(self) -> Code {
        match self {
            Self::Empty => Code::new("spec-answer-empty"),
            Self::TooLong => Code::new("spec-answer-too-long"),
            Self::CutOff => Code::new("spec-answer-cut-off"),
            Self::Hidden => Code::new("spec-answer-hidden"),
            Self::Json => Code::new("spec-answer-json"),
            Self::Refusal => Code::new("spec-answer-refusal"),
            Self::Question => Code::new("spec-answer-question"),
            Self::Summary => Code::new("spec-answer-summary"),
            Self::WrongPhase => Code::new("spec-answer-wrong-phase"),
            Self::NoDocument => Code::new("spec-answer-no-document"),
            Self::Title => Code::new("spec-answer-title"),
            Self::Around => Code::new("spec-answer-around"),
            Self::OpenFence => Code::new("spec-answer-open-fence"),
            Self::Example => Code::new("spec-answer-example"),
            Self::NoEntries => Code::new("spec-answer-no-entries"),
            Self::DoubleId => Code::new("spec-answer-double-id"),
            Self::UnknownId => Code::new("spec-answer-unknown-id"),
            Self::Incomplete => Code::new("spec-answer-incomplete"),
            Self::Section => Code::new("spec-answer-section"),
            Self::Unserved => Code::new("spec-answer-unserved"),
            Self::BadPath => Code::new("spec-answer-bad-path"),
            Self::LineForm => Code::new("spec-answer-line-form"),
            Self::Contradiction => Code::new("spec-answer-contradiction"),
            Self::IdsUsedUp => Code::new("spec-answer-ids-used-up"),
            Self::Filtered => Code::new("spec-answer-filtered"),
            Self::TestLine => Code::new("spec-answer-test-line"),
        }
    }

    /// The instruction to the author of the answer.
    pub(crate) const fn hint(self) -> &'static str {
        match self {
            Self::Empty => "Write the document; the answer holds no text.",
            Self::CutOff => "Write much less: the answer was cut off before its end.",
            Self::TooLong => "Shorten it: fewer entries, shorter sentences, nothing said twice.",
            Self::Hidden => "Leave out control characters, invisible characters and HTML comments.",
            Self::Json => "Answer in Markdown, in the form that is shown, not in JSON.",
            Self::Refusal => {
                "Write the document as well as the material allows; do not apologise or decline."
            }
            Self::Question => {
                "Ask nothing; where something is not known, choose the simplest reading and write that down."
            }
            Self::Summary => {
                "Do not report that a document was written: the answer itself is the document."
            }
            Self::WrongPhase => {
                "Write only the document that is asked for, under its own title, and stop at its end."
            }
            Self::NoDocument => {
                "Answer with the document in the form that is shown, its headings included."
            }
            Self::Title => {
                "Begin with the one title line that is shown, and write no other heading with a single #."
            }
            Self::Around => "Write nothing before the title and nothing behind the document.",
            Self::OpenFence => "Close each code block with a line of its own, or write none.",
            Self::Example => {
                "Write about the material; the example in the form is of another project."
            }
            Self::NoEntries => "Write the entries in the form that is shown, each with its id.",
            Self::DoubleId => {
                "Give each id to one entry only, and leave each entry the id that it has."
            }
            Self::UnknownId => "Name only ids that stand in the documents that are shown.",
            Self::Incomplete => {
                "Write the part that is missing, between the heading and what follows it."
            }
            Self::Section => "Write only the headings of the form that is shown.",
            Self::Unserved => {
                "Add a task for each requirement that is named, or name the requirement in the task that serves it."
            }
            Self::BadPath => {
                "Write paths relative to the project's root, without `..`, such as src/export.rs."
            }
            Self::LineForm => "Write each line exactly in the form that is shown.",
            Self::Contradiction => "Decide for one of the two.",
            Self::IdsUsedUp => {
                "Add no requirement, as no id is left for one; change those that there are."
            }
            Self::Filtered => {
                "A filter stopped the answer: say the same in plain and neutral words, and quote nothing that may offend."
            }
            Self::TestLine => {
                "Copy each line of the idea that begins with `Test:` below the requirement that the test checks, and begin no other line so."
            }
        }
    }

    /// The finding that `subject` has this fault. The subject is shortened to one line.
    pub(crate) fn into_finding(self, subject: &str) -> Finding {
        Finding::error(
            self.code(),
            short_line(subject, MAX_SUBJECT_LEN),
            self.hint(),
        )
    }

    /// The verdict with this finding alone.
    pub(crate) fn alone(self, subject: &str) -> Verdict {
        Verdict::new(vec![self.into_finding(subject)])
    }

    /// The fault with this code.
    pub(crate) fn from_code(code: &Code) -> Option<Self> {
        ALL.into_iter().find(|fault| fault.code() == *code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_code_has_a_heading() {
        let page = include_str!("../../../../docs/codes/spec.md");
        for (place, fault) in ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, place);
            assert_eq!(Fault::from_code(&fault.code()), Some(fault));
            assert!(
                page.contains(&format!("\n## {}\n", fault.code())),
                "{fault:?}"
            );
            assert!(fault.hint().ends_with('.') && !fault.hint().contains('\n'));
        }
        assert_eq!(Fault::from_code(&Code::new("patch-path-denied")), None);
    }

    #[test]
    fn a_subject_is_one_short_line() {
        let finding = Fault::Title.into_finding(&"\u{202e}ä\n".repeat(4_000));
        assert!(
            finding.subject.chars().count() <= MAX_SUBJECT_LEN && !finding.subject.contains('\n')
        );
    }
}
