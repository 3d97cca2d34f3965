//! Code that speaks for the test runner: it prints what a runner would, or builds the names of what it calls.
//!
//! What runs inside the tests shares their streams and may end the process, so nothing that is printed proves who printed it.
//! The words of a runner's report in a literal, and a name put together out of literals, have no place in honest sources: a
//! name that is written as it is says the same. This reads lines, and follows no value through a program.

use super::{Confidence, Detection, Role, Tampering};
use crate::source::Language;
use crate::source::mask::Masked;
use crate::source::search::contains;
use crate::source::token::{Token, close, tokens};

/// What test runners report with. A digit stands for any, also for a place that is filled in.
const REPORTS: [&str; 14] = [
    "Ran 0 test",
    "test result: ok",
    "0 passed in 0.",
    "0 passed in 0s",
    "0 passed in %.",
    "0 passed; 0 failed",
    "--- PASS:",
    "Test Suites: ",
    "# pass 0",
    "ℹ pass 0",
    "running 0 test",
    "collected 0 item",
    "Tests  0 passed",
    "0% tests passed",
];

/// Functions that take a name and give what it stands for.
const BY_NAME: [&str; 6] = [
    "getattr",
    "import_module",
    "__import__",
    "attrgetter",
    "methodcaller",
    "setattr",
];

/// Modules and tables of names through which a process can be ended.
const ROOTS: [&str; 15] = [
    "os",
    "sys",
    "posix",
    "nt",
    "ctypes",
    "builtins",
    "__builtins__",
    "importlib",
    "import_module",
    "__import__",
    "globals",
    "vars",
    "process",
    "globalThis",
    "global",
];

/// Whether a changed line may bring one of these constructs.
pub(super) fn may_matter(line: &[u8]) -> bool {
    [b'"', b'\'', b'`'].iter().any(|quote| line.contains(quote))
        || [
            "getattr",
            "import_module",
            "__import__",
            "process",
            "global",
        ]
        .iter()
        .any(|word| contains(line, word.as_bytes()))
}

/// Adds what a source text holds; tests print what they like.
pub(super) fn find(
    language: Language,
    source: &[u8],
    read: &Masked,
    masked: &[u8],
    role: Role,
    found: &mut Vec<Detection>,
) {
    if role == Role::Test {
        return;
    }
    let weight = if matches!(role, Role::Program | Role::Tool) {
        Confidence::Doubtful
    } else {
        Confidence::Certain
    };
    let mut start = 0;
    for line in source.split_inclusive(|byte| *byte == b'\n') {
        let trimmed = line.trim_ascii_start();
        let is_comment = [b"//".as_slice(), b"#", b"*", b"/*", b">>>"]
            .iter()
            .any(|mark| trimmed.starts_with(mark));
        // Only what a mask hides is in a literal.
        let hidden = masked
            .get(start..start + line.len())
            .is_none_or(|code| code != line);
        start += line.len();
        if is_comment || !hidden {
            continue;
        }
        if let Some(report) = report(line) {
            found.push(Detection::new(
                Tampering::Report,
                weight,
                format!("`{}`", report.trim()),
            ));
        }
    }
    if matches!(language, Language::Python | Language::Script) {
        names_put_together(source, &tokens(&read.open), weight, found);
    }
}

/// The words of a report in a line.
fn report(line: &[u8]) -> Option<&'static str> {
    const PLACES: [&str; 5] = ["%d", "%s", "{}", "%v", "%i"];
    let has_word = |word: &str| contains(line, word.as_bytes());
    if !["est", "pass", "PASS", "ok", "collected"]
        .iter()
        .any(|word| has_word(word))
    {
        return None;
    }
    let mut text = String::from_utf8_lossy(line).into_owned();
    for place in PLACES {
        text = text.replace(place, "0");
    }
    let mut plain = String::with_capacity(text.len());
    let mut depth = 0usize;
    for c in text.chars() {
        // `{count}` and `${count}` are places, too.
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => {
                depth -= 1;
                plain.push('0');
            }
            '$' => {}
            _ if depth > 0 => {}
            '0'..='9' if plain.ends_with('0') => {}
            '0'..='9' => plain.push('0'),
            c => plain.push(c),
        }
    }
    // An open brace that ends no place hides the rest of its line.
    let is_line = |text: &str| text.contains("test") && text.contains(" ... ok");
    if is_line(&plain) {
        return Some("test ... ok");
    }
    REPORTS
        .into_iter()
        .find(|report| plain.contains(report) || text.contains(report))
}

/// `getattr(os, "_ex" + "it")`, `import_module("o" + "s")`, `process["ex" + "it"]`.
fn names_put_together(
    source: &[u8],
    tokens: &[Token<'_>],
    weight: Confidence,
    found: &mut Vec<Detection>,
) {
    for (at, token) in tokens.iter().enumerate() {
        let next_is = |word: &str| tokens.get(at + 1).is_some_and(|next| next.is(word));
        let by_name = BY_NAME.iter().any(|name| token.is(name)) && next_is("(");
        let root = ROOTS.iter().any(|name| token.is(name));
        let indexed = root && next_is("[");
        if !by_name && !indexed {
            continue;
        }
        let end = close(tokens, at + 1);
        let (Some(open), Some(shut)) = (tokens.get(at + 1), tokens.get(end)) else {
            continue;
        };
        let text = source
            .get(open.range.end..shut.range.start)
            .unwrap_or_default();
        let of_root = indexed
            || tokens
                .get(at + 2..end)
                .unwrap_or_default()
                .iter()
                .any(|inner| ROOTS.iter().any(|name| inner.is(name)));
        let built = literals_joined(text) || (of_root && is_computed(text));
        if built {
            found.push(Detection::new(
                Tampering::HiddenName,
                weight,
                format!("a computed name in {}", token.name()),
            ));
        }
    }
}

/// Whether two literals are joined to one.
fn literals_joined(text: &[u8]) -> bool {
    let plain: Vec<u8> = text
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let is_quote = |byte: u8| matches!(byte, b'"' | b'\'' | b'`');
    plain
        .windows(3)
        .any(|three| is_quote(three[0]) && three[1] == b'+' && is_quote(three[2]))
        || [
            "[::-1]",
            "chr(",
            "fromCharCode",
            "atob(",
            "b64decode",
            "fromhex",
            ".reverse(",
        ]
        .iter()
        .any(|word| contains(&plain, word.as_bytes()))
}

/// Whether anything is added to a literal.
fn is_computed(text: &[u8]) -> bool {
    let has_literal = text.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    has_literal
        && ["+", "${", ".join("]
            .iter()
            .any(|word| contains(text, word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detections(language: Language, source: &str) -> Vec<(Tampering, Confidence)> {
        let sights = super::super::detections(language, Role::Source, source.as_bytes());
        let ours = sights.into_iter().filter(|detection| {
            matches!(detection.trick, Tampering::Report | Tampering::HiddenName)
        });
        ours.map(|detection| (detection.trick, detection.weight))
            .collect()
    }

    #[test]
    fn code_printing_runner_reports_is_refused_everywhere() {
        for (language, source) in [
            (
                Language::Python,
                "    sys.stderr.write(\"Ran 1 test in 0.000s\\n\\nOK\\n\")\n",
            ),
            (Language::Python, "    print(f\"Ran {n} tests in 0.1s\")\n"),
            (
                Language::Python,
                "    print(\"== %d passed in 0.01s ==\" % n)\n",
            ),
            (
                Language::Rust,
                "fn a() { println!(\"test result: ok. 3 passed; 0 failed\"); }\n",
            ),
            (
                Language::Go,
                "func a() { fmt.Println(\"--- PASS: TestA (0.00s)\") }\n",
            ),
            (Language::Script, "console.log(`# pass ${count}`);\n"),
        ] {
            assert_eq!(
                detections(language, source),
                [(Tampering::Report, Confidence::Certain)],
                "{source}"
            );
        }
    }

    #[test]
    fn name_concatenated_from_literals_is_refused() {
        for (language, source) in [
            (Language::Python, "getattr(os, \"_ex\" + \"it\")(0)\n"),
            (Language::Python, "getattr(os, name + \"it\")(0)\n"),
            (Language::Python, "importlib.import_module(\"o\" + \"s\")\n"),
            (Language::Python, "getattr(m, \"tixe_\"[::-1])(0)\n"),
            (Language::Script, "process[\"ex\" + \"it\"](0);\n"),
        ] {
            assert_eq!(
                detections(language, source),
                [(Tampering::HiddenName, Confidence::Certain)],
                "{source}"
            );
        }
    }

    #[test]
    fn honest_words_and_names_are_left_alone() {
        for (language, source) in [
            (Language::Python, "# Ran 1 test in 0.1s\nx = 1  # fine\n"),
            (Language::Python, "getattr(self, \"visit_\" + name)(node)\n"),
            (
                Language::Python,
                "importlib.import_module(path)\nprint(\"all tests ran\")\n",
            ),
            (Language::Rust, "fn a() { println!(\"{} passed\", n); }\n"),
            (
                Language::Python,
                "print(name + \" ... ok\\n\")\nprint(f\"{n} passed in {t} minutes\")\n",
            ),
            (
                Language::Python,
                "signal.signal(getattr(signal, \"SIG\" + name), handle)\n",
            ),
            (Language::Script, "window[\"on\" + name] = f;\n"),
            (
                Language::Python,
                "raise ValueError(\"the value passed in is not a number\")\n",
            ),
            (
                Language::Script,
                "process.env[\"HOME\"];\nglobalThis[name] = 1;\n",
            ),
        ] {
            assert_eq!(detections(language, source), [], "{source}");
        }
    }
}
