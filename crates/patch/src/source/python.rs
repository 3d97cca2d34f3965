//! Python, which is read by indentation: its definitions, its tests, and the examples in its documentation.

use super::definitions::{Definition, Definitions};
use super::mask::mask;
use super::{Language, TestCode, TestItem};

/// One logical start of a definition.
pub(super) struct Line<'a> {
    pub(super) start: usize,
    pub(super) indent: usize,
    pub(super) code: &'a str,
}

/// The functions and classes that do not stand inside a function.
pub(super) fn definitions(source: &[u8]) -> Definitions {
    let masked = mask(Language::Python, source);
    let mut found = Definitions::new();
    // The indentations of the functions that are open.
    let mut inside: Option<usize> = None;
    for line in lines(&masked) {
        if inside.is_some_and(|indent| line.indent > indent) {
            continue;
        }
        inside = None;
        let Some((kind, name)) = definition(line.code) else {
            continue;
        };
        if kind == "def" {
            inside = Some(line.indent);
        }
        *found
            .entry(Definition {
                kind,
                name: name.to_owned(),
            })
            .or_default() += 1;
    }
    found
}

/// Functions named `test…` and classes named `Test…` or derived from a `TestCase`, decorators included.
pub(super) fn tests(source: &[u8]) -> TestCode<'_> {
    let masked = mask(Language::Python, source);
    let lines: Vec<Line<'_>> = lines(&masked).collect();
    let mut found = TestCode::default();
    let mut decorated: Option<usize> = None;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        if line.code.starts_with('@') {
            decorated.get_or_insert(line.start);
            at += 1;
            continue;
        }
        at += 1;
        if line.indent == 0
            && (line.code.starts_with("pytestmark") || line.code.starts_with("__test__"))
        {
            found.conditions.push(
                source
                    .get(line.start..line.start + line.code.len())
                    .unwrap_or_default(),
            );
        }
        // A decorator may span lines; it belongs to the definition that comes next.
        if definition(line.code).is_none() {
            continue;
        }
        let start = decorated.take().unwrap_or(line.start);
        if test_name(line.code).is_some() {
            while lines
                .get(at)
                .is_some_and(|inner| inner.indent > line.indent || inner.code.starts_with(')'))
            {
                at += 1;
            }
            let end = lines.get(at).map_or(source.len(), |next| next.start);
            let text = source.get(start..end).unwrap_or_default().trim_ascii_end();
            found.items.push(TestItem {
                depth: line.indent,
                text,
                ..TestItem::default()
            });
        }
    }
    found
}

/// The lines that hold code. Lines of a blanked literal have none, so they belong to what stands above them.
pub(super) fn lines(masked: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    masked
        .split_inclusive(|byte| *byte == b'\n')
        .filter_map(move |line| {
            let at = start;
            start += line.len();
            let indent = line
                .iter()
                .take_while(|byte| matches!(byte, b' ' | b'\t'))
                .count();
            let code = std::str::from_utf8(line.get(indent..)?)
                .unwrap_or("?")
                .trim_end();
            (!code.is_empty()).then_some(Line {
                start: at,
                indent,
                code,
            })
        })
}

pub(super) fn definition(code: &str) -> Option<(&'static str, &str)> {
    let code = code.strip_prefix("async ").map_or(code, str::trim_start);
    let (kind, rest) = match (code.strip_prefix("def "), code.strip_prefix("class ")) {
        (Some(rest), _) => ("def", rest),
        (_, Some(rest)) => ("class", rest),
        _ => return None,
    };
    let name = rest
        .trim_start()
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()?;
    (!name.is_empty()).then_some((kind, name))
}

/// The examples that doctest runs: what stands behind `>>>` and `...` in a string, and the lines that it is expected to print, to the
/// next example, an empty line or the end of the string. An example that is marked to be skipped does not count.
pub(super) fn doctests(masked: &[u8], source: &[u8]) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut is_open = false;
    let mut at = 0;
    for line in source.split_inclusive(|byte| *byte == b'\n') {
        let blank = masked.get(at..at + line.len()).unwrap_or_default();
        at += line.len();
        let (text, ends) = in_string(line, blank);
        if let Some(rest) = text
            .strip_prefix(b">>>")
            .filter(|rest| matches!(rest.first(), None | Some(b' ')))
        {
            found.push([b">>>", rest].concat());
            is_open = true;
        } else if text.is_empty() {
            is_open = false;
        } else if let Some(example) = found.last_mut().filter(|_| is_open) {
            example.push(b'\n');
            example.extend_from_slice(text);
        }
        is_open &= !ends;
    }
    found.retain(|example| !is_skipped(example));
    found
}

/// What a line holds of a string, without the quotes at its ends, and whether the string ends in it. Nothing where it holds code.
fn in_string<'a>(line: &'a [u8], masked: &[u8]) -> (&'a [u8], bool) {
    let text = line.trim_ascii();
    let quotes: [&[u8]; 2] = [b"\"\"\"", b"'''"];
    let prefix = text
        .iter()
        .take_while(|byte| b"rRuU".contains(byte))
        .count();
    let begun = text.get(prefix..).unwrap_or_default();
    let opened = quotes.iter().find_map(|quote| begun.strip_prefix(*quote));
    let is_string = masked.trim_ascii().is_empty();
    if opened.is_none() && !is_string {
        return (b"", true);
    }
    let text = opened.unwrap_or(text);
    let closed = quotes
        .iter()
        .filter_map(|quote| text.windows(3).position(|part| part == *quote))
        .min();
    match closed {
        Some(end) => (text.get(..end).unwrap_or_default().trim_ascii(), true),
        None => (text.trim_ascii(), false),
    }
}

fn is_skipped(example: &[u8]) -> bool {
    let holds = |expected: &[u8]| example.windows(expected.len()).any(|part| part == expected);
    holds(b"doctest:") && holds(b"+SKIP")
}

/// The name of the test that a line defines.
pub(super) fn test_name(code: &str) -> Option<&str> {
    match definition(code)? {
        ("def", name) if name.starts_with("test") => Some(name),
        ("class", name) if name.starts_with("Test") || code.contains("TestCase") => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    const FILE: &str = "import x\n\n@mark\ndef test_a(\n    v,\n):\n    '''doc\nflush left\n'''\n    assert v\n\n\ndef helper():\n    def inner(): pass\n    return 1\n\nclass TestB:\n    def test_c(self):\n        assert 1\n\nclass C(unittest.TestCase):\n    pass\n";

    fn survives(after: &str) -> bool {
        tests(FILE.as_bytes()).survives_in(&tests(after.as_bytes()))
    }

    #[test]
    fn tests_run_from_decorator_to_dedent() {
        let found = tests(FILE.as_bytes());
        let texts: Vec<_> = found
            .items
            .iter()
            .map(|item| std::str::from_utf8(item.text).unwrap())
            .collect();
        assert_eq!(texts.len(), 3);
        assert!(texts[0].starts_with("@mark\n") && texts[0].ends_with("assert v"));
        assert!(texts[1].ends_with("assert 1"));
    }

    #[test]
    fn weakened_tests_are_detected_without_false_positives() {
        assert!(survives(&FILE.replace("return 1", "return 2")));
        for (from, to) in [
            ("assert v", "pass"),
            ("@mark", "@skip"),
            ("TestB", "NotB"),
            ("test_a", "tes_a"),
            ("assert 1", ""),
            ("import x", "pytestmark = skip"),
        ] {
            assert!(!survives(&FILE.replace(from, to)), "{to}");
        }
    }

    #[test]
    fn doctest_ends_at_empty_line_or_string_end() {
        let examples = |source: &str| -> Vec<String> {
            let masked = mask(Language::Python, source.as_bytes());
            let found = doctests(&masked, source.as_bytes());
            found
                .into_iter()
                .map(|example| String::from_utf8(example).unwrap())
                .collect()
        };
        let file = "def f():\n    r\"\"\">>> f()\n    1\n\n    Words.\n\n    >>> for x in y:\n    ...     g(x)\n    2\n    3\n    >>> h()\n    '4'\n    \"\"\"\n    return 1\n";
        assert_eq!(
            examples(file),
            [
                ">>> f()\n1",
                ">>> for x in y:\n...     g(x)\n2\n3",
                ">>> h()\n'4'"
            ]
        );
        for (source, count) in [
            ("'''\n>>> a\n1'''\n", 1),
            ("'''\n>>> a # doctest: +SKIP\n1\n'''\n", 0),
            ("# >>> a\n# 1\n", 0),
            ("x = 1\n", 0),
            ("'''\n>>>a\n'''\n", 0),
            ("'''\n>>> a\n'''\nx = 1\n'''\n>>> b\n'''", 2),
            ("'''>>> a''' ; x = 1\ny = 2\n", 1),
            ("def f(\n\"\"\"", 0),
        ] {
            assert_eq!(
                examples(source).len(),
                count,
                "{source:?}: {:?}",
                examples(source)
            );
        }
    }

    #[test]
    fn definitions_are_those_outside_functions() {
        let names: Vec<_> = definitions(FILE.as_bytes())
            .into_keys()
            .map(|d| d.name)
            .collect();
        assert_eq!(names, ["C", "TestB", "helper", "test_a", "test_c"]);
    }
}
