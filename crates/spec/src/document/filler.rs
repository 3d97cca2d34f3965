//! Detects text without content: no word, a placeholder, or a refusal instead of the content.

use crucible_model::says_nothing;

use super::ids::mentions;
use super::non_answer;

/// Placeholders for missing text. Only their letters are compared: `[T.B.D.]` is one.
const PLACEHOLDERS: [&str; 17] = [
    "todo",
    "tbd",
    "tba",
    "fixme",
    "xxx",
    "wip",
    "na",
    "placeholder",
    "tobedetermined",
    "tobedefined",
    "tobedone",
    "tobedecided",
    "tobewritten",
    "tobeannounced",
    "notapplicable",
    "comingsoon",
    "todotbd",
];

/// Whether a title, a sentence, a list entry or a line contains nothing that can be built, apart from
/// ids.
pub(crate) fn is_filler(text: &str) -> bool {
    if says_nothing(text) {
        return true;
    }
    let mut bare = String::with_capacity(text.len());
    let mut from = 0;
    let mut ids: Vec<_> = ['R', 'T', 'F']
        .into_iter()
        .flat_map(|letter| mentions(text, letter))
        .collect();
    ids.sort_by_key(|(range, _)| range.start);
    for (range, _) in ids {
        bare.push_str(text.get(from..range.start).unwrap_or_default());
        from = range.end;
    }
    bare.push_str(text.get(from..).unwrap_or_default());
    if non_answer::refuses(bare.trim_start_matches(|c: char| !c.is_alphanumeric())) {
        return true;
    }
    let letters: String = bare
        .chars()
        .filter(|c| c.is_alphabetic())
        .flat_map(char::to_lowercase)
        .collect();
    letters.is_empty()
        || PLACEHOLDERS.contains(&letters.as_str())
        || letters.starts_with("loremipsum")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filler_is_distinguished_from_short_text() {
        for text in [
            "",
            " \u{200b}",
            ".",
            "- .",
            "…",
            "---",
            "42",
            "TODO",
            "todo.",
            "[TBD]",
            "T.B.D.",
            "TBD R-001",
            "R-001, R-002",
            "(R-001): TODO",
            "**FIXME**",
            "N/A",
            "n/a.",
            "...",
            "To be determined",
            "Lorem ipsum dolor sit amet",
            "I cannot help with that.",
            "I’m sorry, but I can't do this.",
            "R-001: As an AI I have no opinion",
        ] {
            assert!(is_filler(text), "{text:?}");
        }
        for text in [
            "a",
            "csv",
            "none",
            "TODO: read the file",
            "The list of TODO entries",
            "Sorry, no file was found is shown",
            "I can export my notes",
            "漢字",
            "R-001 holds",
            "Export",
            "Nana",
        ] {
            assert!(!is_filler(text), "{text:?}");
        }
    }
}
