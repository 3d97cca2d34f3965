//! Detects answers without a document: refusals, questions, and reports that a document was written.
//!
//! Only the beginning of a paragraph is examined. These checks decide if there is no document at all.
//! Inside a document only a first-person report counts, because no document of a spec begins a paragraph
//! with one.

use super::fault::Fault;

/// The bytes of a paragraph that are examined.
const LOOKED_AT: usize = 400;

const DECLINES: [&str; 16] = [
    "i'm sorry",
    "i am sorry",
    "sorry,",
    "sorry, but",
    "i cannot",
    "i can't",
    "i can not",
    "i'm unable",
    "i am unable",
    "i'm not able",
    "i am not able",
    "as an ai",
    "unfortunately, i",
    "i apologize",
    "i must decline",
    "i won't",
];

const ASKS: [&str; 9] = [
    "could you",
    "can you",
    "please provide",
    "please clarify",
    "please share",
    "please specify",
    "please tell",
    "before i",
    "i need more",
];

const PLEASANTRIES: [&str; 12] = [
    "let me know",
    "please let me know",
    "feel free",
    "i hope this",
    "hope this",
    "if you have any",
    "if you need",
    "if you'd like",
    "if you would like",
    "would you like",
    "do you want me",
    "please review",
];

const REPORTED: [&str; 17] = [
    "created",
    "written",
    "wrote",
    "drafted",
    "prepared",
    "generated",
    "produced",
    "updated",
    "completed",
    "saved",
    "added",
    "made",
    "finished",
    "put",
    "outlined",
    "compiled",
    "documented",
];

const THINGS: [&str; 11] = [
    "document",
    "requirements",
    "design",
    "task",
    "review",
    "summary",
    "spec",
    "specification",
    "file",
    "plan",
    "report",
];

/// The fault of an answer without a document, from its first paragraph and its last character.
pub(crate) fn of_no_document(text: &str) -> Fault {
    let text = text.trim();
    let start = lowered(text);
    let begins = |with: &[&str]| with.iter().any(|with| start.starts_with(with));
    if declines(text) {
        Fault::Refusal
    } else if reports(text) || is_passive_report(&start) {
        Fault::Summary
    } else if begins(&ASKS)
        || text.ends_with('?')
        || start.contains("please provide")
        || start.contains("could you")
    {
        Fault::Question
    } else {
        Fault::NoDocument
    }
}

/// Whether a paragraph declines.
pub(crate) fn declines(paragraph: &str) -> bool {
    let start = lowered(paragraph);
    DECLINES.iter().any(|with| start.starts_with(with))
}

/// Whether text inside a document declines. An apology alone does not count, because a program may have
/// to apologise.
pub(crate) fn refuses(text: &str) -> bool {
    let start = lowered(text);
    DECLINES
        .iter()
        .filter(|with| !with.starts_with("sorry"))
        .any(|with| start.starts_with(with))
}

/// Whether a paragraph reports that its author wrote something: "I have created the requirements
/// document".
pub(crate) fn reports(paragraph: &str) -> bool {
    let start = lowered(paragraph);
    let mut words = start
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .peekable();
    if !matches!(words.next(), Some("i" | "i've" | "we" | "we've")) {
        return false;
    }
    while words
        .next_if(|word| {
            matches!(
                *word,
                "have" | "now" | "just" | "also" | "successfully" | "already"
            )
        })
        .is_some()
    {}
    words.next().is_some_and(|verb| REPORTED.contains(&verb)) && words.any(is_thing)
}

/// Whether a paragraph is a closing courtesy.
pub(crate) fn is_pleasantry(paragraph: &str) -> bool {
    let start = lowered(paragraph);
    PLEASANTRIES.iter().any(|with| start.starts_with(with))
}

fn is_passive_report(start: &str) -> bool {
    let done = [
        "has been ",
        "have been ",
        "is now ",
        "are now ",
        "was ",
        "were ",
    ];
    let reported = done.iter().any(|done| {
        let verb = start
            .split_once(done)
            .map(|(_, rest)| rest.trim_start_matches("successfully "));
        verb.is_some_and(|verb| REPORTED.iter().any(|word| verb.starts_with(word)))
    });
    reported && start.split(|c: char| !c.is_alphanumeric()).any(is_thing)
}

fn is_thing(word: &str) -> bool {
    THINGS.contains(&word)
        || word
            .strip_suffix('s')
            .is_some_and(|word| THINGS.contains(&word))
}

/// The beginning of a text in lowercase, with plain apostrophes and single spaces.
fn lowered(text: &str) -> String {
    let text = text.trim_start().trim_start_matches(['#', '*', '>', ' ']);
    let end = text.floor_char_boundary(LOOKED_AT);
    let text = text
        .get(..end)
        .unwrap_or_default()
        .replace('’', "'")
        .to_lowercase();
    crucible_model::single_spaced(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_document_answer_is_recognised() {
        for (text, fault) in [
            (
                "I have created the requirements document with five requirements.",
                Fault::Summary,
            ),
            (
                "I’ve now written the design to `design.md`.",
                Fault::Summary,
            ),
            ("I successfully updated the tasks.", Fault::Summary),
            (
                "The requirements document has been successfully created in the folder.",
                Fault::Summary,
            ),
            ("**I've drafted** the review.", Fault::Summary),
            ("I'm sorry, but I can't help with that.", Fault::Refusal),
            (
                "As an AI language model, I cannot write this.",
                Fault::Refusal,
            ),
            ("Could you tell me which format is wanted?", Fault::Question),
            ("Please provide the idea.", Fault::Question),
            ("CSV or JSON?", Fault::Question),
            ("Users export their data.", Fault::NoDocument),
            ("I have a user who exports data.", Fault::NoDocument),
            ("", Fault::NoDocument),
        ] {
            assert_eq!(of_no_document(text), fault, "{text:?}");
        }
    }

    #[test]
    fn a_paragraph_of_a_document_is_no_report() {
        for text in [
            "I/O is made by one module.",
            "The export file has been created by then.",
            "I made it",
            "Is it made?",
        ] {
            assert!(!reports(text), "{text:?}");
        }
    }

    #[test]
    fn the_beginning_is_cut_between_characters() {
        assert_eq!(of_no_document(&"ä".repeat(4_000)), Fault::NoDocument);
        assert_eq!(
            of_no_document(&format!(
                "I have created {} the document",
                "漢".repeat(1_000)
            )),
            Fault::NoDocument
        );
    }
}
