//! Finds the tests that a commit added or changed, by the names under which runners report them. Pure.
//!
//! The text of a test file is read without a parser, so that every language counts: a line belongs to a test whose name
//! stands on it, or on a line above it with less indentation. A line outside any test, such as a case of a table above the
//! function, belongs to the next named line if no blank line parts them.

use std::collections::{BTreeMap, BTreeSet};

use crate::results::is_step;

/// The shortest name of a function that is looked for.
const SHORTEST: usize = 3;

/// The most tests of the same name; the first of them count.
const MAX_SAME: usize = 50;

/// Words in front of the name of a function or class where it is defined.
const DEFINING: [&str; 10] = [
    "class", "def", "fn", "fun", "func", "function", "method", "proc", "sub", "void",
];

/// The names of tests by what stands in their files.
struct Names<'t> {
    /// By the name of a function.
    functions: BTreeMap<&'t str, Vec<&'t str>>,
    /// By a quoted title.
    titles: BTreeMap<&'t str, Vec<&'t str>>,
}

/// Returns those of `tests` that a commit added or changed. `diff` shows whole files, with all lines around each change.
#[must_use]
pub fn changed_tests<'t>(
    diff: &str,
    tests: impl IntoIterator<Item = &'t str>,
) -> BTreeSet<&'t str> {
    let mut names = Names {
        functions: BTreeMap::new(),
        titles: BTreeMap::new(),
    };
    for test in tests {
        names.add(test);
    }
    let mut changed = BTreeSet::new();
    let mut file = File::default();
    for line in diff.lines() {
        let Some(kind) = line.chars().next() else {
            continue;
        };
        let content = &line[kind.len_utf8()..];
        if line.starts_with("diff --git ") {
            changed.append(&mut file.changed_tests());
            file = File::default();
        } else if file.is_in_hunk {
            let named = match kind {
                '-' => Vec::new(),
                _ => names.on_line(content, &file.path),
            };
            if matches!(kind, ' ' | '+' | '-') {
                file.lines.push(Line::new(content, kind != ' ', named));
            }
        } else if let Some(path) = line.strip_prefix("+++ b/") {
            file.path = path.trim_end_matches('\t').to_owned();
        } else if line.starts_with("@@ ") {
            file.is_in_hunk = true;
        }
    }
    changed.append(&mut file.changed_tests());
    changed
}

impl<'t> Names<'t> {
    fn add(&mut self, test: &'t str) {
        // A step of a script is in no file.
        if is_step(test) {
            return;
        }
        let title = test.rsplit(" > ").next().unwrap_or(test);
        let add = |named: &mut Vec<&'t str>| {
            if named.len() < MAX_SAME {
                named.push(test);
            }
        };
        add(self.titles.entry(title).or_default());
        let function = title
            .split(['[', '('])
            .next()
            .and_then(|name| name.rsplit("::").next())
            .and_then(|name| name.split('/').next())
            .and_then(|name| name.rsplit('.').next())
            .unwrap_or_default();
        if function.len() >= SHORTEST && function.chars().all(is_of_name) {
            add(self.functions.entry(function).or_default());
        }
    }

    /// Returns the tests that a line names.
    fn on_line(&self, line: &str, path: &str) -> Vec<&'t str> {
        let words: Vec<&str> = line
            .split(|c| !is_of_name(c))
            .filter(|word| !word.is_empty())
            .collect();
        let is_macro = words
            .first()
            .is_some_and(|first| first.contains("TEST") && *first == first.to_uppercase());
        let defined = words.iter().enumerate().filter(|(at, _)| {
            let before = at.checked_sub(1).and_then(|before| words.get(before));
            is_macro || before.is_some_and(|before| DEFINING.contains(before))
        });
        let functions = defined.filter_map(|(_, word)| self.functions.get(word));
        let titles = quoted(line)
            .into_iter()
            .filter_map(|text| self.titles.get(text));
        let mut named: Vec<&str> = functions.chain(titles).flatten().copied().collect();
        named.retain(|test| may_be_in(test, path));
        named
    }
}

/// Returns whether a test is of this file, as far as its name says.
fn may_be_in(test: &str, path: &str) -> bool {
    let head = test
        .split("::")
        .next()
        .and_then(|part| part.split(" > ").next());
    let file = head.filter(|file| *file != test && file.contains('.') && !file.contains(' '));
    file.is_none_or(|file| {
        let (long, short) = if path.len() < file.len() {
            (file, path)
        } else {
            (path, file)
        };
        long.strip_suffix(short)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    })
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the texts between equal quotation marks, up to the first mark of the same kind.
pub(super) fn quoted(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(['\'', '"', '`']) {
        let mark = rest[start..].chars().next().unwrap_or('"');
        let inside = &rest[start + 1..];
        let Some(end) = inside.find(mark) else {
            break;
        };
        found.push(&inside[..end]);
        rest = &inside[end + 1..];
    }
    found
}

/// A file of a diff.
#[derive(Default)]
struct File<'t> {
    path: String,
    is_in_hunk: bool,
    lines: Vec<Line<'t>>,
}

struct Line<'t> {
    is_changed: bool,
    is_blank: bool,
    indent: usize,
    /// The tests that it names.
    named: Vec<&'t str>,
}

impl<'t> Line<'t> {
    fn new(content: &str, is_changed: bool, named: Vec<&'t str>) -> Self {
        let begin = content.trim_start();
        Self {
            is_changed,
            is_blank: begin.is_empty(),
            indent: content.len() - begin.len(),
            named,
        }
    }
}

impl<'t> File<'t> {
    fn changed_tests(&self) -> BTreeSet<&'t str> {
        let mut changed = BTreeSet::new();
        // The lines around the current one, from the outside.
        let mut around: Vec<&Line<'t>> = Vec::new();
        // Changed lines outside any test since the last blank line.
        let mut has_loose = false;
        for line in &self.lines {
            if line.is_blank {
                has_loose = false;
                continue;
            }
            while around.last().is_some_and(|last| last.indent >= line.indent) {
                around.pop();
            }
            if has_loose && !line.named.is_empty() {
                changed.extend(&line.named);
                has_loose = false;
            }
            around.push(line);
            if line.is_changed {
                match around.iter().rev().find(|line| !line.named.is_empty()) {
                    Some(owner) => changed.extend(&owner.named),
                    None => has_loose = true,
                }
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A diff that shows a whole file; `+` marks an added line, `-` a removed one.
    fn diff(path: &str, lines: &[&str]) -> String {
        let lines: Vec<String> = lines
            .iter()
            .map(|line| {
                if line.starts_with(['+', '-']) {
                    (*line).to_owned()
                } else {
                    format!(" {line}")
                }
            })
            .collect();
        format!(
            "diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n@@ -1,9 +1,9 @@\n{}\n",
            lines.join("\n")
        )
    }

    #[test]
    fn changed_lines_belong_to_the_test_around_them() {
        let python = diff(
            "tests/test_a.py",
            &[
                "import a",
                "+import b",
                "",
                "def test_old():",
                "    assert a.f() == 1",
                "",
                "+def helper():",
                "+    return 2",
                "",
                "class TestA:",
                "    def test_more(self):",
                "        if a:",
                "-            assert a.f() == 2",
                "+            assert a.f() == 3",
                "",
                "    @parametrize('x', [",
                "+        1,",
                "        2])",
                "    def test_table(self, x):",
                "        assert x",
                "",
                "+def test_new():",
                "+    assert a.g()",
            ],
        );
        let tests = [
            "tests/test_a.py::test_old",
            "tests/test_a.py::TestA::test_more",
            "tests/test_a.py::TestA::test_table[1]",
            "tests/test_a.py::test_new",
            "tests/test_b.py::test_new",
        ];
        assert_eq!(
            changed_tests(&python, tests)
                .into_iter()
                .collect::<Vec<_>>(),
            [tests[1], tests[2], tests[3]]
        );
    }

    #[test]
    fn titles_and_functions_of_other_languages_are_found() {
        let javascript = diff(
            "test/a.test.ts",
            &[
                "describe('args', () => {",
                "  it('parses', () => {",
                "    expect(1).toBe(1);",
                "  });",
                "+  it(\"keeps it's order\", () => {",
                "+    expect(2).toBe(2);",
                "+  });",
                "});",
            ],
        );
        let rust = diff(
            "tests/a.rs",
            &[
                "#[test]",
                "fn old() {",
                "    f();",
                "}",
                "",
                "+#[test]",
                "+fn new_one() {",
                "+    g();",
                "+}",
            ],
        );
        let tests = [
            "test/a.test.ts > args > parses",
            "test/a.test.ts > args > keeps it's order",
            "a::old",
            "a::new_one",
            "TestOld/case",
            // What is called, and what stands in front of titles, is not a test.
            "expect",
            "test step: node expect",
            "it works",
        ];
        assert_eq!(
            changed_tests(&(javascript + &rust), tests)
                .into_iter()
                .collect::<Vec<_>>(),
            [tests[3], tests[1]]
        );
        assert!(changed_tests("", tests).is_empty());
        assert!(changed_tests("diff --git a b\n+++ b/a\n@@ \n+\u{e4}x", tests).is_empty());
    }
}
