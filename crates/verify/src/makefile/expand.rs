//! Expands the variables and functions of a makefile.

use super::{Makefile, split_outside};

/// How deep variables are followed into each other.
const MAX_DEPTH: usize = 12;
/// Maximum bytes of an expansion; longer text stays unexpanded.
const MAX_BYTES: usize = 64 << 10;

/// Default values of these variables, from make and its users.
const USUAL: [(&str, &str); 20] = [
    ("AR", "ar"),
    ("AS", "as"),
    ("CARGO", "cargo"),
    ("CC", "cc"),
    ("CXX", "c++"),
    ("FC", "f77"),
    ("GO", "go"),
    ("JAVA", "java"),
    ("JAVAC", "javac"),
    ("LD", "ld"),
    ("MAKE", "make"),
    ("NODE", "node"),
    ("NPM", "npm"),
    ("PNPM", "pnpm"),
    ("PY", "python3"),
    ("PYTEST", "pytest"),
    ("PYTHON", "python3"),
    ("PYTHON3", "python3"),
    ("RUSTC", "rustc"),
    ("YARN", "yarn"),
];
/// Suffixes of option variables; an unset one is empty.
const OPTIONS: [&str; 7] = [
    "ARGS",
    "FLAGS",
    "OPTS",
    "OPTIONS",
    "LIBS",
    "LDLIBS",
    "LOADLIBES",
];

impl Makefile {
    /// Returns the text with its variables expanded. `$$` of a shell stays, and so do unset variables, as
    /// `$NAME`, and functions that only make can evaluate.
    #[must_use]
    pub fn expand(&self, text: &str) -> String {
        self.expand_with(text, &[])
    }

    /// The same with these values for variables that a rule sets: `@`, `<`, `^` and `*`.
    #[must_use]
    pub fn expand_with(&self, text: &str, automatic: &[(&str, &str)]) -> String {
        let mut written = String::with_capacity(text.len());
        self.write(text, automatic, MAX_DEPTH, &mut written);
        written
    }

    fn write(&self, text: &str, automatic: &[(&str, &str)], depth: usize, out: &mut String) {
        let mut rest = text;
        while let Some((before, inner)) = rest.split_once('$') {
            out.push_str(before);
            if out.len() > MAX_BYTES {
                out.push('$');
                rest = inner;
                break;
            }
            rest = match inner.chars().next() {
                Some('$') => {
                    out.push_str("$$");
                    &inner[1..]
                }
                Some('(') => self.reference(inner, ('(', ')'), automatic, depth, out),
                Some('{') => self.reference(inner, ('{', '}'), automatic, depth, out),
                Some(name) if automatic.iter().any(|(known, _)| known.chars().eq([name])) => {
                    let behind = &inner[name.len_utf8()..];
                    self.value(&inner[..name.len_utf8()], automatic, depth, out);
                    behind
                }
                // A variable of one letter, or a name that an earlier expansion left.
                Some(name) if name.is_ascii_alphabetic() => {
                    let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                    let name = &inner[..end.unwrap_or(inner.len())];
                    if name.len() == 1 {
                        self.value(name, automatic, depth, out);
                    } else {
                        out.push('$');
                        out.push_str(name);
                    }
                    &inner[name.len()..]
                }
                _ => {
                    out.push('$');
                    inner
                }
            };
        }
        out.push_str(rest);
    }

    /// Writes the expansion of `(NAME)` or `(function …)`, and returns the rest.
    fn reference<'t>(
        &self,
        inner: &'t str,
        (open, close): (char, char),
        automatic: &[(&str, &str)],
        depth: usize,
        out: &mut String,
    ) -> &'t str {
        let Some(end) = closing(inner, open, close).filter(|_| depth > 0) else {
            // What is open on a line stays as it is written.
            let (line, rest) = inner.split_at(inner.find('\n').unwrap_or(inner.len()));
            out.push('$');
            out.push_str(line);
            return rest;
        };
        let content = &inner[1..end];
        let behind = &inner[end + 1..];
        let call = content
            .split_once([' ', '\t'])
            .filter(|(name, _)| is_function(name));
        if let Some((function, arguments)) = call {
            let mut expanded = String::new();
            self.write(arguments, automatic, depth - 1, &mut expanded);
            match apply(function, &expanded) {
                Some(result) => out.push_str(&result),
                None => {
                    out.push('$');
                    out.push(open);
                    out.push_str(function);
                    out.push(' ');
                    out.push_str(&expanded);
                    out.push(close);
                }
            }
        } else if let Some((name, change)) = split_outside(content, ':')
            && let Some((from, to)) = change.split_once('=')
        {
            let mut value = String::new();
            self.value(name, automatic, depth, &mut value);
            let (from, to) = match from.contains('%') {
                true => (from.to_owned(), to.to_owned()),
                false => (format!("%{from}"), format!("%{to}")),
            };
            out.push_str(&substituted(&from, &to, &value));
        } else {
            // Of a path that a rule sets, the directory or the name.
            match (content.chars().next(), content.get(1..)) {
                (Some('@' | '<' | '^' | '*' | '?'), Some(part @ ("D" | "F"))) => {
                    let mut value = String::new();
                    self.value(&content[..1], automatic, depth, &mut value);
                    out.push_str(
                        &apply(if part == "F" { "notdir" } else { "dir" }, &value)
                            .unwrap_or_default(),
                    );
                }
                _ if content.contains('$') => {
                    let mut name = String::new();
                    self.write(content, automatic, depth - 1, &mut name);
                    self.value(&name, automatic, depth, out);
                }
                _ => self.value(content, automatic, depth, out),
            }
        }
        behind
    }

    /// Writes all values of a variable.
    fn value(&self, name: &str, automatic: &[(&str, &str)], depth: usize, out: &mut String) {
        if let Some((_, value)) = automatic.iter().find(|(known, _)| *known == name) {
            out.push_str(value);
            return;
        }
        let usual = USUAL
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, program)| *program);
        match (self.variables.get(name), usual) {
            // The value of a program variable is a program.
            (Some(values), Some(program)) if values.len() != 1 => out.push_str(program),
            (Some(values), _) if depth > 0 => {
                for (at, value) in values.iter().enumerate() {
                    if at > 0 {
                        out.push(' ');
                    }
                    self.write(value, automatic, depth - 1, out);
                }
            }
            (None, Some(program)) => out.push_str(program),
            (None, None) if OPTIONS.iter().any(|end| name.ends_with(end)) => {}
            _ => {
                out.push('$');
                out.push_str(name);
            }
        }
    }
}

/// Where the bracket at the beginning of a text is closed on the same line.
fn closing(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0usize;
    text.char_indices()
        .take_while(|(_, letter)| *letter != '\n')
        .find_map(|(at, letter)| {
            if letter == open {
                depth += 1;
            } else if letter == close {
                depth = depth.saturating_sub(1);
                return (depth == 0).then_some(at);
            }
            None
        })
}

fn is_function(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

/// Evaluates a function of make, if its text is sufficient.
fn apply(function: &str, arguments: &str) -> Option<String> {
    let parts: Vec<&str> = arguments.split(',').collect();
    let mapped = |text: &str, change: &dyn Fn(&str) -> String| {
        text.split_whitespace()
            .map(change)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let name = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    match (function, parts.as_slice()) {
        ("wildcard" | "strip" | "sort" | "abspath" | "realpath", _) => {
            Some(mapped(arguments, &str::to_owned))
        }
        ("notdir", _) => Some(mapped(arguments, &name)),
        ("dir", _) => Some(mapped(arguments, &|word| match word.rfind('/') {
            Some(at) => word[..=at].to_owned(),
            None => "./".to_owned(),
        })),
        ("basename", _) => Some(mapped(arguments, &|word| match word.rfind('.') {
            Some(at) if !word[at..].contains('/') => word[..at].to_owned(),
            _ => word.to_owned(),
        })),
        ("addprefix", [start, text]) => Some(mapped(text, &|word| format!("{start}{word}"))),
        ("addsuffix", [end, text]) => Some(mapped(text, &|word| format!("{word}{end}"))),
        ("patsubst", [from, to, text]) => Some(substituted(from.trim(), to.trim(), text)),
        ("subst", [from, to, text]) if !from.is_empty() => Some(text.replace(from, to)),
        ("filter", [patterns, text]) => Some(filtered(patterns, text, true)),
        ("filter-out", [patterns, text]) => Some(filtered(patterns, text, false)),
        _ => None,
    }
}

fn filtered(patterns: &str, text: &str, keeps: bool) -> String {
    let fits = |word: &str| {
        patterns
            .split_whitespace()
            .any(|pattern| stem_of(pattern, word).is_some())
    };
    text.split_whitespace()
        .filter(|word| fits(word) == keeps)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The words with the pattern `from` written as `to`.
fn substituted(from: &str, to: &str, text: &str) -> String {
    let change = |word: &str| match stem_of(from, word) {
        Some(stem) => to.replacen('%', stem, 1),
        None => word.to_owned(),
    };
    text.split_whitespace()
        .map(change)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the text matched by `%` if the pattern matches.
fn stem_of<'w>(pattern: &str, word: &'w str) -> Option<&'w str> {
    match pattern.split_once('%') {
        Some((start, end)) => word.strip_prefix(start)?.strip_suffix(end),
        None => (pattern == word).then_some(""),
    }
}
