//! Finds the definitions that a goal removes, from its own words.
//!
//! "Rename helper to clamp" and "remove the unused function `g`" name definitions that a patch may remove.
//! Only the words after such a verb count, up to the first that changes the subject. The plan lists them, so
//! its readers see them.

/// What takes definitions away.
const VERBS: [&str; 6] = ["remove", "delete", "drop", "rename", "merge", "inline"];
/// Words that change the subject.
const ELSEWHERE: [&str; 18] = [
    "to", "into", "in", "from", "with", "by", "of", "as", "at", "on", "for", "so", "that", "when",
    "if", "then", "because", "but",
];
/// Words between the verb and the name.
const FILLERS: [&str; 10] = [
    "the", "a", "an", "all", "and", "or", "both", "this", "its", "also",
];
/// Words that turn the sentence around.
const DENIALS: [&str; 8] = [
    "not", "never", "without", "don't", "dont", "avoid", "no", "cannot",
];
/// Maximum number of words after a verb that may be names.
const REACH: usize = 8;

/// Returns the names of definitions that `goal` says to remove, delete, drop, rename, merge or inline, in
/// order.
#[must_use]
pub(crate) fn removable_definitions(goal: &str) -> Vec<String> {
    let words: Vec<&str> = goal.split_whitespace().collect();
    let mut names: Vec<String> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let lower = word.to_lowercase();
        let is_denied = words[at.saturating_sub(2)..at]
            .iter()
            .any(|before| DENIALS.contains(&before.to_lowercase().as_str()));
        if !is_verb(bare(&lower)) || ends_clause(word) || is_denied {
            continue;
        }
        for word in words.iter().skip(at + 1).take(REACH) {
            let lower = bare(word).to_lowercase();
            if ELSEWHERE.contains(&lower.as_str()) {
                break;
            }
            if let Some(name) = name_of(word).filter(|_| !FILLERS.contains(&lower.as_str()))
                && !names.iter().any(|known| known == name)
            {
                names.push(name.to_owned());
            }
            if ends_clause(word) {
                break;
            }
        }
    }
    names
}

/// Returns whether `name` is a valid name of a definition, as for `--may-drop`.
#[must_use]
pub fn is_definition_name(name: &str) -> bool {
    let mut characters = name.chars();
    let starts = |first: char| first.is_alphabetic() || first == '_' || first == '$';
    characters.next().is_some_and(starts)
        && characters.all(|next| next.is_alphanumeric() || next == '_' || next == '$')
}

/// `remove`, `removes`, `removed`, `removing`.
fn is_verb(word: &str) -> bool {
    VERBS.iter().any(|verb| {
        let stem = verb.trim_end_matches('e');
        let Some(ending) = word.strip_prefix(stem) else {
            return false;
        };
        // "dropping" doubles its last letter.
        ["", "e", "s", "es", "d", "ed", "ing", "ped", "ping"].contains(&ending)
            && (!ending.is_empty() || stem == *verb)
    })
}

fn ends_clause(word: &str) -> bool {
    word.ends_with(['.', ';', ':', '!', '?'])
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')
}

/// The last part of `module::name()`, `value.name` or `` `name` ``.
fn name_of(word: &str) -> Option<&str> {
    let word = bare(word).split(['(', '<']).next()?;
    word.rsplit(['.', ':', '#', '/'])
        .next()
        .filter(|name| is_definition_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goal_names_removed_definitions() {
        for (goal, names) in [
            ("rename helper to clamp", vec!["helper"]),
            ("Remove `old_path()`.", vec!["old_path"]),
            ("merge area::a and area::b into c", vec!["a", "b"]),
            (
                "fix area; delete Shape::legacy, Shape.older; keep f",
                vec!["legacy", "older"],
            ),
            ("parsing fails. Dropping x_1 when it is empty", vec!["x_1"]),
            ("inlined helper in main", vec!["helper"]),
        ] {
            assert_eq!(removable_definitions(goal), names, "{goal}");
        }
    }

    #[test]
    fn goal_without_removal_allows_none() {
        for goal in [
            "twelve must return 12 when hour % 12 is 0",
            "do not remove helper",
            "fix area without dropping helper",
            "never rename helper",
            "say what to remove. helper is fine",
            "area removal is slow in helper",
            "the droplet renders helper",
            "",
        ] {
            assert_eq!(removable_definitions(goal), Vec::<String>::new(), "{goal}");
        }
    }

    #[test]
    fn definition_name_is_an_identifier() {
        for name in ["a", "_x1", "$el", "größe"] {
            assert!(is_definition_name(name), "{name}");
        }
        for name in ["", "1a", "a b", "a,b", "a::b", "a\nNames: x"] {
            assert!(!is_definition_name(name), "{name:?}");
        }
    }
}
