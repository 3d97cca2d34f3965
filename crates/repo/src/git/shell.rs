//! Splits a value of a setting into commands and words as a shell does.
//!
//! Nothing is expanded. What a shell would run inside of a word (`$(…)`, a backquoted part, a quoted script) counts as further
//! commands, so more is found than a shell would run and nothing less.

/// Quoted scripts in quoted scripts are read up to this depth.
const MAX_DEPTH: usize = 4;

/// The simple commands of a value, each as its words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) commands: Vec<Vec<Vec<u8>>>,
}

impl Script {
    pub(super) fn parse(text: &[u8]) -> Self {
        let mut script = Self::default();
        script.read(text, MAX_DEPTH);
        script
    }

    /// Returns the words of all commands.
    pub(super) fn words(&self) -> impl Iterator<Item = &[u8]> {
        self.commands.iter().flatten().map(Vec::as_slice)
    }

    fn read(&mut self, text: &[u8], depth: usize) {
        let mut command = Vec::new();
        let mut word: Option<Vec<u8>> = None;
        // Scripts in words follow the command that they are in.
        let mut inner: Vec<&[u8]> = Vec::new();
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            let rest = &text[at..];
            // How much of the text belongs to the word, and whether it is a script of its own.
            let (len, literal, script): (usize, Vec<u8>, Option<&[u8]>) = match byte {
                b'\\' => (2, rest.get(1).into_iter().copied().collect(), None),
                b'\'' => {
                    let end = find(rest, 1, b'\'');
                    let quoted = &rest[1..end];
                    (end + 1, quoted.to_owned(), Some(quoted))
                }
                b'"' => {
                    let end = end_of_double_quotes(rest);
                    let quoted = &rest[1..end];
                    (end + 1, unescaped(quoted), Some(quoted))
                }
                b'`' => {
                    let end = find(rest, 1, b'`');
                    let len = (end + 1).min(rest.len());
                    (len, rest[..len].to_owned(), Some(&rest[1..end]))
                }
                b'$' if rest.get(1) == Some(&b'(') => {
                    let end = end_of_parentheses(rest);
                    let len = (end + 1).min(rest.len());
                    (len, rest[..len].to_owned(), Some(&rest[2..end]))
                }
                b'$' if rest.get(1) == Some(&b'{') => {
                    let len = (find(rest, 2, b'}') + 1).min(rest.len());
                    (len, rest[..len].to_owned(), None)
                }
                b';' | b'&' | b'|' | b'(' | b')' | b'\n' => {
                    command.extend(word.take());
                    self.commands.push(std::mem::take(&mut command));
                    at += 1;
                    continue;
                }
                b' ' | b'\t' | b'\r' | b'<' | b'>' => {
                    command.extend(word.take());
                    at += 1;
                    continue;
                }
                _ => (1, vec![*byte], None),
            };
            word.get_or_insert_default().extend(literal);
            inner.extend(script);
            at += len;
        }
        command.extend(word);
        self.commands.push(command);
        self.commands.retain(|command| !command.is_empty());
        for script in inner {
            if depth > 0 && script.iter().any(|byte| b" \t\n$`;&|(".contains(byte)) {
                self.read(script, depth - 1);
            }
        }
    }
}

/// Returns where a byte is, from `start` on; else the end.
fn find(text: &[u8], start: usize, requested: u8) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    let found = rest.iter().position(|byte| *byte == requested);
    found.map_or(text.len().max(start), |found| start + found)
}

/// Returns where the text in double quotes, with which `text` begins, ends.
fn end_of_double_quotes(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            b'$' if text.get(at + 1) == Some(&b'(') => at += end_of_parentheses(&text[at..]) + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// Returns where the parentheses that `text` opens are closed.
fn end_of_parentheses(text: &[u8]) -> usize {
    let mut open = 0_usize;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'(' => open += 1,
            b')' if open <= 1 => return at,
            b')' => open -= 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns text of double quotes without the backslashes that a shell removes.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = text.iter().peekable();
    let mut unescaped_bytes = Vec::new();
    while let Some(byte) = bytes.next() {
        let is_escape = *byte == b'\\' && bytes.peek().is_some_and(|next| b"$`\"\\".contains(next));
        unescaped_bytes.extend(if is_escape { bytes.next() } else { Some(byte) });
    }
    unescaped_bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn commands(text: &str) -> Vec<String> {
        let script = Script::parse(text.as_bytes());
        let words = |command: &Vec<Vec<u8>>| {
            let words = command
                .iter()
                .map(|word| String::from_utf8_lossy(word).into_owned());
            words.collect::<Vec<_>>().join("|")
        };
        script.commands.iter().map(words).collect()
    }

    #[test]
    fn value_is_split_as_by_a_shell() {
        for (text, expected) in [
            ("less -R", &["less|-R"][..]),
            ("sh tools/my\\ check", &["sh|tools/my check"]),
            (
                "sh tools/\"my check\".sh",
                &["sh|tools/my check.sh", "my|check"],
            ),
            ("cd a && sh 'b;c'|d", &["cd|a", "sh|b;c", "d", "b", "c"]),
            ("sh -c 'cd a; ./b'", &["sh|-c|cd a; ./b", "cd|a", "./b"]),
            (
                "$(git x --top)/a ${b}/c",
                &["$(git x --top)/a|${b}/c", "git|x|--top"],
            ),
            ("`a b`/c <d>e", &["`a b`/c|d|e", "a|b"]),
            (
                "\"$(a \"b\" c)/d\"",
                &["$(a \"b\" c)/d", "$(a \"b\" c)/d", "a|b|c"],
            ),
            ("f() { sh a; }; f", &["f", "{|sh|a", "}", "f"]),
            ("'a", &["a"]),
            ("\"a", &["a"]),
            ("a\\", &["a"]),
            ("$(a", &["$(a"]),
            ("${a", &["${a"]),
            ("", &[]),
        ] {
            assert_eq!(commands(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_value_is_split(text in "[a \\\\'\"`$(){};]{0,40}") {
            Script::parse(text.as_bytes());
        }
    }
}
