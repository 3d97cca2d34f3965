//! The Test Anything Protocol: `ok 1 - name`, `not ok 2 - name # TODO`, with subtests indented by four spaces.
//!
//! A subtest's name begins with those of the tests around it, as far as `# Subtest: name` announced them. `prove -v` prints the file before its
//! tests: `t/a.t .. `. Blocks of YAML below a test are passed over, since they may quote anything.
//!
//! tape announces a test as `# title` and reports its assertions: each is `title [assertion]`.
//!
//! Tests of the same name are numbered.

use crate::results::{TestResults, TestStatus};
use crate::runner::CommandOutput;

/// The deepest nesting of subtests that is distinguished.
const MAX_DEPTH: usize = 50;

/// Reads a text in this format.
pub(in crate::runner) fn read(text: &str, output: &CommandOutput<'_>) -> TestResults {
    let mut results = super::Numbered::new(output.new_results());
    let mut file: Option<&str> = None;
    let mut groups: Vec<String> = Vec::new();
    let mut yaml: Option<usize> = None;
    let mut title: Option<&str> = None;
    // What Perl says of a failed test follows it in comments; tape has a block of YAML there.
    let mut may_be_title = false;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        if let Some(at) = yaml {
            if content.trim_end() == "..." && indent == at {
                yaml = None;
            }
            continue;
        }
        let content = content.trim_end();
        let depth = (indent / 4).min(MAX_DEPTH);
        if content == "---" && indent % 4 == 2 {
            yaml = Some(indent);
        } else if let Some(name) = content.strip_prefix("# Subtest: ") {
            groups.truncate(depth);
            groups.resize(depth, String::new());
            groups.push(unescape(name));
        } else if indent == 0
            && may_be_title
            && groups.is_empty()
            && let Some(text) = content.strip_prefix("# ")
        {
            title = Some(text).filter(|text| !is_summary(text));
        } else if content.starts_with("TAP version ") {
            may_be_title = true;
        } else if let Some((name, status)) = result(content) {
            groups.truncate(depth);
            may_be_title &= status != TestStatus::Failed || is_followed_by_yaml(&mut lines);
            let own = match title.filter(|_| indent == 0 && groups.is_empty()) {
                Some(title) => format!("{title} [{}]", unescape(&name)),
                None => unescape(&name),
            };
            let parts = file
                .into_iter()
                .chain(groups.iter().map(String::as_str))
                .chain([own.as_str()]);
            let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
            results.add(&parts.join(" > "), status);
        } else if indent == 0
            && let Some((name, dots)) = line
                .strip_suffix(' ')
                .and_then(|line| line.rsplit_once(' '))
            && dots.len() >= 2
            && dots.bytes().all(|byte| byte == b'.')
        {
            file = Some(name);
            groups.clear();
        }
    }
    results.into_results()
}

fn is_followed_by_yaml<'t>(lines: &mut std::iter::Peekable<impl Iterator<Item = &'t str>>) -> bool {
    lines.peek().is_some_and(|next| next.trim_end() == "  ---")
}

/// Whether a comment is of a report's end (`# tests 5`), or of a runner rather than a test.
fn is_summary(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next());
    let is_count = second.is_some_and(|word| {
        word.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    });
    is_count && words.next().is_none() || first.ends_with(':') || text.eq_ignore_ascii_case("ok")
}

/// The name and the status of a result; a test without a description has its number.
fn result(line: &str) -> Option<(String, TestStatus)> {
    let (rest, passed) = match line.strip_prefix("not ok") {
        Some(rest) => (rest, false),
        None => (line.strip_prefix("ok")?, true),
    };
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let rest = rest.trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, described) = rest.split_at(digits);
    let described = described.trim_start();
    let described = described.strip_prefix("- ").unwrap_or(described);
    let (name, directive) = directive(described);
    let status = match directive {
        Some("SKIP" | "TODO") => TestStatus::Skipped,
        _ if passed => TestStatus::Passed,
        _ => TestStatus::Failed,
    };
    // Without a number and without a word it could be any sentence.
    if number.is_empty() && name.is_empty() {
        return None;
    }
    let name = if name.is_empty() || name == "-" {
        format!("test {number}")
    } else {
        name.to_owned()
    };
    Some((name, status))
}

/// Returns the description, and the word after an unescaped `#`, both without the duration.
fn directive(text: &str) -> (&str, Option<&'static str>) {
    let text = without_time(text);
    for (at, _) in text.match_indices('#') {
        let word = text[at + 1..].trim_start();
        let word = ["SKIP", "TODO"].into_iter().find(|known| {
            word.get(..known.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(known))
        });
        if word.is_some() && !text[..at].ends_with('\\') {
            return (text[..at].trim_end(), word);
        }
    }
    (text, None)
}

/// Returns the text before a final ` # time=1.5ms`, after which node-tap opens a subtest with `{`.
fn without_time(text: &str) -> &str {
    let closed = text.strip_suffix('{').map_or(text, str::trim_end);
    let Some((before, time)) = closed.rsplit_once("# time=") else {
        return text;
    };
    let is_time = |number: &str| number.parse::<f64>().is_ok();
    if time
        .strip_suffix("ms")
        .or_else(|| time.strip_suffix('s'))
        .is_some_and(is_time)
    {
        before.trim_end()
    } else {
        text
    }
}

fn unescape(name: &str) -> String {
    name.replace("\\#", "#").replace("\\\\", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::GateEnd;
    use crate::judge::tests::run_of;

    #[test]
    fn assertions_of_tape_have_their_title() {
        let report = "TAP version 13\n# adds\nok 1 equal\nnot ok 2 equal\n  ---\n    at: x\n  ...\n# subtracts\n\
            not ok 3 equal\n  ---\n  ...\n\n1..3\n# tests 3\n# pass  1\n# fail  2\n";
        let run = run_of("tape test.js", GateEnd::Exited(1), report, "");
        let results = read(report, &CommandOutput::from_run(&run));
        let names: Vec<&str> = results.tests.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["adds [equal]", "adds [equal] #2", "subtracts [equal]"]
        );
    }

    #[test]
    fn summary_is_distinguished_from_title() {
        for summary in [
            "tests 5",
            "pass  5",
            "fail 0",
            "duration_ms 1.5",
            "ok",
            "Subtest: x",
        ] {
            assert!(is_summary(summary), "{summary}");
        }
        for title in ["adds", "ws equality", "tests of 5 things", "adds 5 to 6"] {
            assert!(!is_summary(title), "{title}");
        }
    }

    #[test]
    fn duration_is_not_part_of_name() {
        let name =
            |line: &str| result(line).map(|(name, status)| (name, status == TestStatus::Passed));
        for line in [
            "ok 1 - a # time=64.325ms",
            "ok 1 - a # time=1s {",
            "ok 1 - a # time=3ms {",
            "ok 1 - a",
        ] {
            assert_eq!(name(line), Some(("a".to_owned(), true)), "{line}");
        }
        assert_eq!(
            name("not ok 2 - b # time=2ms"),
            Some(("b".to_owned(), false))
        );
        for stored_text in ["a # time=never", "a # time=2 apples", "# time=", "object {"] {
            assert_eq!(
                name(&format!("ok 3 - {stored_text}")),
                Some((stored_text.to_owned(), true))
            );
        }
        assert_eq!(
            result("ok 4 - c # SKIP later"),
            Some(("c".to_owned(), TestStatus::Skipped))
        );
        assert_eq!(
            result("ok 4 - c # SKIP # time=1ms"),
            Some(("c".to_owned(), TestStatus::Skipped))
        );
    }
}
