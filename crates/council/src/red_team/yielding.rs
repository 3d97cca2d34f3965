//! Whether the red team raised no objection.
//!
//! What holds: this is a notice for whoever reads the result and nothing else. Nothing is asked again, the loop goes on, and the
//! critique stands as it came: a red team that finds nothing has been asked all the same.

use crucible_model::Untrusted;

use super::attack::said_beside_names;

/// The most words of an answer that is looked at: who says more says something.
const MOST_WORDS: usize = 16;

/// What it takes to raise no objection, in lowercase words without marks; an answer of one or several of these, and nothing else,
/// raises none. The list is bounded and English: an agreement in other words passes for a critique.
const PHRASES: &[&str] = &[
    "agree",
    "agreed",
    "all good",
    "approved",
    "concur",
    "everything looks good",
    "fine by me",
    "i accept",
    "i agree",
    "i agree completely",
    "i agree entirely",
    "i agree fully",
    "i agree with all positions",
    "i agree with everyone",
    "i agree with everything",
    "i agree with the council",
    "i agree with the positions",
    "i agree with them",
    "i agree with this",
    "i agree with you",
    "i approve",
    "i completely agree",
    "i concede",
    "i concur",
    "i entirely agree",
    "i find no objection",
    "i find no objections",
    "i fully agree",
    "i have no critique",
    "i have no further objections",
    "i have no objection",
    "i have no objections",
    "i have nothing to add",
    "i have nothing to object",
    "i raise no objection",
    "i raise no objections",
    "i see no objection",
    "i see no objections",
    "i see no problem",
    "i see no problems",
    "i totally agree",
    "it looks good",
    "it looks good to me",
    "lgtm",
    "looks fine",
    "looks fine to me",
    "looks good",
    "looks good to me",
    "looks great",
    "looks right",
    "n a",
    "nil",
    "no comment",
    "no comments",
    "no complaint",
    "no complaints",
    "no concerns",
    "no critique",
    "no further comments",
    "no further objections",
    "no issues",
    "no objection",
    "no objection at all",
    "no objections",
    "no objections at all",
    "no objections here",
    "no objections raised",
    "no problems",
    "none",
    "none at all",
    "none whatsoever",
    "nothing",
    "nothing to add",
    "nothing to attack",
    "nothing to criticise",
    "nothing to criticize",
    "nothing to object",
    "nothing to object to",
    "ok",
    "okay",
    "sounds good",
    "sounds good to me",
    "that is fine",
    "the council is right",
    "the positions are sound",
    "they are right",
    "this is fine",
    "this looks good",
    "this looks good to me",
    "we agree",
    "well done",
    "yes",
    "you are right",
];

/// Whether a critique raises no objection: a few words that agree, or none at all. A critique that says more than that counts as
/// one, however friendly it is.
pub(crate) fn has_yielded(critique: &Untrusted) -> bool {
    let said = said_beside_names(critique.as_str());
    let words: Vec<String> = said.split(is_between_words).filter_map(word).take(MOST_WORDS + 1).collect();
    words.len() <= MOST_WORDS && only_phrases(&words)
}

/// Apostrophes belong to a word: "that's".
fn is_between_words(c: char) -> bool {
    !c.is_alphanumeric() && !matches!(c, '\'' | '’')
}

fn word(piece: &str) -> Option<String> {
    let bare: String = piece.chars().filter(|c| c.is_alphanumeric()).collect();
    (!bare.is_empty()).then(|| bare.to_lowercase())
}

/// Whether words are phrases one after another. The longest phrase is taken first; one that leaves a rest which is none ends it.
fn only_phrases(words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    (1..=words.len()).rev().any(|length| {
        let (beginning, rest) = words.split_at(length);
        PHRASES.contains(&beginning.join(" ").as_str()) && only_phrases(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_words_that_agree_raise_no_objection() {
        for said in [
            "I agree",
            "I agree.",
            "**I AGREE!**",
            "I agree with everyone.",
            "Agreed. No objections.",
            "I agree, looks good to me!",
            "No objections.",
            "No further objections — none whatsoever.",
            "None",
            "N/A",
            "Looks good to me",
            "LGTM 👍",
            "Nothing to add.",
            "",
            " \n\t",
            "...",
            "TARGETS: pragmatist\nI agree.",
            "TARGETS: none\nNo objections.",
            "TARGETS: none",
            "TARGETS: pragmatist, creative#2",
            r#"{"targets":[],"critique":""}"#,
            r#"{"targets":["pragmatist"],"critique":"I agree."}"#,
        ] {
            assert!(has_yielded(&Untrusted::new(said)), "{said:?}");
        }
    }

    #[test]
    fn a_critique_that_says_something_is_one() {
        let long = "I agree. ".repeat(MOST_WORDS);
        for said in [
            "I agree with nothing here: the costs are wrong.",
            "I agree with nothing here",
            "I disagree.",
            "None of this holds.",
            "None of the positions says who pays.",
            "Nobody agrees on the costs.",
            "No.",
            "No objection to the goal, but the costs are wrong.",
            "Looks good to me, except for the costs.",
            "Nothing here is proved.",
            "Not agreed",
            "Wrong.",
            "成本被低估了",
            "TARGETS: pragmatist\nThe costs are wrong.",
            "TARGETS: pragmatist. The costs are wrong.",
            r#"{"targets":[],"critique":"The costs are wrong."}"#,
            r#"{"targets":["pragmatist"]}"#,
            &long,
        ] {
            assert!(!has_yielded(&Untrusted::new(said)), "{said:?}");
        }
    }

    #[test]
    fn phrases_are_written_as_words_are_read() {
        for phrase in PHRASES {
            assert!(has_yielded(&Untrusted::new(*phrase)), "{phrase:?}");
            assert!(phrase.split(' ').count() <= MOST_WORDS);
        }
        assert!(PHRASES.is_sorted(), "so that whoever adds one sees whether it is there");
    }

    #[test]
    fn the_longest_answer_is_told_at_once() {
        let said = "ok ok none none ".repeat(1_000_000);
        assert!(!has_yielded(&Untrusted::new(said)));
        let said = "agree ".repeat(MOST_WORDS);
        assert!(has_yielded(&Untrusted::new(said)));
    }
}
