//! Splits a command line into words as a POSIX shell does, without expansion.
//!
//! What always holds: what a shell would do more with than split it is refused, never passed on as it stands. So the author of a
//! pipe, a variable or a pattern learns that there is no shell, and no program gets a word that was meant otherwise.

/// Why a text is not a list of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WordsError {
    /// A quotation mark is not closed.
    #[error("unclosed quotation mark {0}")]
    Open(char),
    /// The text ends behind a backslash.
    #[error("trailing backslash")]
    NothingBehind,
    /// A shell would do something with this character, and no shell is used.
    #[error(
        "{0:?} is shell syntax, but the command runs without a shell; quote it, or call a script"
    )]
    Shell(char),
}

/// Returns the command line that a shell splits into these words.
#[must_use]
pub fn command_line(words: &[String]) -> String {
    words
        .iter()
        .map(|word| shell_word(word))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A text as one word of a shell: itself where a shell takes it for itself, and between single quotation marks otherwise.
#[must_use]
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=#".contains(c);
    if !text.is_empty() && !text.starts_with('#') && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// What a shell does more with than to take it for a part of a word.
const SHELL: &str = "|&;<>()$`*?[\n\r\0";

/// Splits a command into its words. Spaces and tabs part words. Between single quotation marks everything is as it stands; between
/// double ones a backslash quotes `"`, `\`, `$` and a backtick; elsewhere it quotes any character.
///
/// # Errors
///
/// See [`WordsError`].
pub fn split_words(text: &str) -> Result<Vec<String>, WordsError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        match next {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => quoted(&mut rest, word.get_or_insert_default())?,
            '"' => in_double_quotes(&mut rest, word.get_or_insert_default())?,
            '\\' => match rest.next() {
                Some(character) if !character.is_control() => {
                    word.get_or_insert_default().push(character);
                }
                Some(character) => return Err(WordsError::Shell(character)),
                None => return Err(WordsError::NothingBehind),
            },
            '~' | '#' if word.is_none() => return Err(WordsError::Shell(next)),
            next if SHELL.contains(next) => return Err(WordsError::Shell(next)),
            next => word.get_or_insert_default().push(next),
        }
    }
    words.extend(word);
    Ok(words)
}

fn quoted(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), WordsError> {
    for next in rest {
        match next {
            '\'' => return Ok(()),
            '\0' => return Err(WordsError::Shell(next)),
            next => word.push(next),
        }
    }
    Err(WordsError::Open('\''))
}

fn in_double_quotes(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), WordsError> {
    while let Some(next) = rest.next() {
        match next {
            '"' => return Ok(()),
            '$' | '`' | '\0' => return Err(WordsError::Shell(next)),
            '\\' => match rest.next() {
                Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                Some(other) => word.extend(['\\', other]),
                None => return Err(WordsError::Open('"')),
            },
            next => word.push(next),
        }
    }
    Err(WordsError::Open('"'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_command_line_shows_its_words() {
        let words = ["cargo", "test", "a b", "", "it's"].map(str::to_owned);
        assert_eq!(command_line(&words), r"cargo test 'a b' '' 'it'\''s'");
    }

    #[test]
    fn words_split_at_spaces_outside_quotes() {
        for (text, words) in [
            ("", vec![]),
            ("  \t ", vec![]),
            ("agent --role {role}", vec!["agent", "--role", "{role}"]),
            (
                r#"a "b c" 'd "e"' f\ g"#,
                vec!["a", "b c", r#"d "e""#, "f g"],
            ),
            (r#"a"b"'c'd"#, vec!["abcd"]),
            (r#"'' """#, vec!["", ""]),
            (r#""\$HOME \"x\" \n""#, vec![r#"$HOME "x" \n"#]),
            ("'$HOME | * ~'", vec!["$HOME | * ~"]),
            ("a~b c#d", vec!["a~b", "c#d"]),
        ] {
            assert_eq!(
                split_words(text).as_deref(),
                Ok(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
                "{text}"
            );
        }
    }

    #[test]
    fn shell_syntax_is_refused() {
        for (text, error) in [
            ("a | b", WordsError::Shell('|')),
            ("a; rm b", WordsError::Shell(';')),
            ("a $HOME", WordsError::Shell('$')),
            ("a \"$HOME\"", WordsError::Shell('$')),
            ("a `b`", WordsError::Shell('`')),
            ("~/agent", WordsError::Shell('~')),
            ("a *.py", WordsError::Shell('*')),
            ("a\nb", WordsError::Shell('\n')),
            ("a 'b", WordsError::Open('\'')),
            ("a \"b", WordsError::Open('"')),
            ("a \\", WordsError::NothingBehind),
        ] {
            assert_eq!(split_words(text), Err(error), "{text}");
        }
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn single_quoted_words_round_trip(words in prop::collection::vec("[^'\0]{0,12}", 0..6)) {
                let text: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
                prop_assert_eq!(split_words(&text.join(" ")), Ok(words));
            }

            #[test]
            fn any_text_is_one_word_of_a_shell(text in "[^\0]{0,20}") {
                prop_assert_eq!(split_words(&shell_word(&text)), Ok(vec![text]));
            }

            #[test]
            fn no_text_is_too_strange(text in ".*") {
                if let Ok(words) = split_words(&text) {
                    prop_assert!(words.iter().map(String::len).sum::<usize>() <= text.len());
                }
            }
        }
    }
}
