//! Detects that the red team raised no objection.
//!
//! The result is only a notice for the reader. Nothing is requested again, the loop continues, and the
//! critique is kept as it is.

use crucible_model::Untrusted;

use super::attack::said_beside_names;

/// The most words of an answer that is checked; a longer one counts as a critique.
const MOST_WORDS: usize = 16;

/// Phrases without an objection, in lowercase words without punctuation. An answer that consists only of
/// such phrases raises none. The list is bounded and English: agreement in other words passes for a
/// critique.
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

/// Nouns that express an objection when they are not negated.
const OBJECTIONS: &[&str] = &[
    "complaint",
    "complaints",
    "concern",
    "concerns",
    "critique",
    "criticism",
    "criticisms",
    "fault",
    "faults",
    "flaw",
    "flaws",
    "issue",
    "issues",
    "objection",
    "objections",
    "problem",
    "problems",
    "weakness",
    "weaknesses",
];

/// Words that may precede a negation.
const BEFORE_NO: &[&str] = &[
    "can", "do", "find", "have", "i", "is", "are", "now", "raise", "really", "see", "there", "we",
];

/// Words that deny.
const NO: &[&str] = &[
    "cannot", "cant", "didnt", "dont", "havent", "no", "not", "without",
];

/// Words that may stand between a negation and its noun.
const AFTER_NO: &[&str] = &[
    "a",
    "additional",
    "an",
    "any",
    "find",
    "found",
    "further",
    "have",
    "more",
    "new",
    "other",
    "raise",
    "raised",
    "remaining",
    "see",
];

/// Words that may precede "agree".
const BEFORE_AGREE: &[&str] = &[
    "also",
    "completely",
    "do",
    "entirely",
    "fully",
    "i",
    "now",
    "totally",
    "we",
    "wholeheartedly",
    "wholly",
];

/// Words that may precede "convinced".
const BEFORE_CONVINCED: &[&str] = &[
    "all",
    "am",
    "been",
    "council",
    "fully",
    "has",
    "have",
    "i",
    "im",
    "ive",
    "now",
    "of",
    "position",
    "positions",
    "seats",
    "the",
    "they",
    "theyve",
    "we",
    "you",
    "youve",
];

/// What an agreement may refer to: nothing in particular.
const ABOUT: &[&str] = &[
    "about",
    "all",
    "and",
    "answer",
    "answers",
    "argument",
    "arguments",
    "at",
    "both",
    "by",
    "completely",
    "council",
    "draft",
    "each",
    "entirely",
    "every",
    "everybody",
    "everyone",
    "everything",
    "fully",
    "here",
    "in",
    "it",
    "left",
    "me",
    "now",
    "of",
    "on",
    "plan",
    "point",
    "points",
    "position",
    "positions",
    "proposal",
    "proposals",
    "said",
    "seat",
    "seats",
    "shown",
    "stated",
    "that",
    "the",
    "them",
    "these",
    "this",
    "those",
    "to",
    "us",
    "was",
    "what",
    "with",
    "you",
    "your",
];

/// Whether a critique raises no objection: it is empty or consists of a few words of agreement. A longer
/// critique counts as one, however friendly it is. Only English is recognised: the phrases above, and the
/// patterns of agreeing, being convinced and having no objection, with filler words around them. Any
/// other word, such as "but" or "however", makes it a critique.
pub(crate) fn has_yielded(critique: &Untrusted) -> bool {
    let said = said_beside_names(critique.as_str());
    // A question is always an objection.
    if said.contains('?') {
        return false;
    }
    let words: Vec<String> = said
        .split(is_between_words)
        .filter_map(word)
        .take(MOST_WORDS + 1)
        .collect();
    words.len() <= MOST_WORDS && only_phrases(&words)
}

/// Whether a character may be inside a word, such as the apostrophe in "that's".
fn is_between_words(c: char) -> bool {
    !c.is_alphanumeric() && !matches!(c, '\'' | '’')
}

fn word(piece: &str) -> Option<String> {
    let bare: String = piece.chars().filter(|c| c.is_alphanumeric()).collect();
    (!bare.is_empty()).then(|| bare.to_lowercase())
}

/// Whether the words are a sequence of phrases. The longest phrase is tried first, without backtracking.
fn only_phrases(words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    (1..=words.len()).rev().any(|length| {
        let (beginning, rest) = words.split_at(length);
        (PHRASES.contains(&beginning.join(" ").as_str()) || is_pattern(beginning))
            && only_phrases(rest)
    })
}

/// Whether the words express only agreement, being convinced, or a negated objection.
fn is_pattern(words: &[String]) -> bool {
    // Only the first of the keywords can be the subject; none of the words before may be one.
    let around = |keys: &[&str], before: &[&str]| {
        let place = words
            .iter()
            .position(|word| keys.contains(&word.as_str()))?;
        let (beginning, rest) = words.split_at(place);
        all_of(beginning, before).then(|| rest.get(1..).unwrap_or_default())
    };
    let agrees = around(&["agree", "agreed", "concur"], BEFORE_AGREE);
    let is_convinced = around(&["convinced"], BEFORE_CONVINCED);
    if agrees
        .or(is_convinced)
        .is_some_and(|about| all_of(about, ABOUT))
    {
        return true;
    }
    let denied = around(NO, BEFORE_NO).and_then(|rest| {
        let noun = rest
            .iter()
            .position(|word| OBJECTIONS.contains(&word.as_str()))?;
        let (between, about) = rest.split_at(noun);
        all_of(between, AFTER_NO).then(|| about.get(1..).unwrap_or_default())
    });
    denied.is_some_and(|about| all_of(about, ABOUT))
}

fn all_of(words: &[String], allowed: &[&str]) -> bool {
    words.iter().all(|word| allowed.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_agreement_raises_no_objection() {
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
            "I agree with all of the positions.",
            "I fully agree with what was said, and I do not see any issues.",
            "We concur with the council.",
            "I don't have any objections.",
            "I don’t see any weaknesses in these positions.",
            "There are no further concerns.",
            "I can not find a flaw.",
            "You have convinced me. I agree.",
            "I am convinced by all of the arguments.",
            "The positions have convinced me: no objections to the plan.",
        ] {
            assert!(has_yielded(&Untrusted::new(said)), "{said:?}");
        }
    }

    #[test]
    fn real_critique_is_an_objection() {
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
            "I do not agree with the positions.",
            "I don't agree with all of the positions.",
            "I agree with all of the positions, but the costs are wrong.",
            "I agree with the positions; however, nobody pays.",
            "I agree with the plan, except the costs.",
            "I agree with the positions although they are short.",
            "I have no objections yet.",
            "I am not convinced.",
            "You have not convinced me. I agree with nothing.",
            "Have you convinced me?",
            "Do I agree? No.",
            "No positions raise the issues.",
            "I don't see how these positions answer any concerns.",
            "There is not one issue here, there are many.",
            "I have no doubt about the issues.",
            "There are issues.",
            "They all agree on this.",
            "The problem is that there are no objections.",
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
    fn phrases_are_normalised() {
        for phrase in PHRASES {
            assert!(has_yielded(&Untrusted::new(*phrase)), "{phrase:?}");
            assert!(phrase.split(' ').count() <= MOST_WORDS);
        }
        assert!(
            PHRASES.is_sorted(),
            "so that whoever adds one sees whether it is there"
        );
    }

    #[test]
    fn longest_answer_is_classified_quickly() {
        let said = "ok ok none none ".repeat(1_000_000);
        assert!(!has_yielded(&Untrusted::new(said)));
        let said = "agree ".repeat(MOST_WORDS);
        assert!(has_yielded(&Untrusted::new(said)));
    }
}
