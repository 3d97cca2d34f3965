//! Removes irrelevant lines from a log: tests that passed, frames of third-party code, repetitions.
//!
//! A failure keeps its test's name, message and location, and the innermost repository frames of its stack.
//! Lines are removed whole and never changed, so the rest can be found in the full log. A stack without
//! repository frames keeps its innermost frames.

use std::borrow::Cow;
use std::collections::HashSet;

/// Maximum repository frames kept of one stack.
const MAX_FRAMES: usize = 3;

/// Lines of source and marks below a frame at the most.
const MAX_BELOW: usize = 2;

/// Replaces removed frames.
pub(super) const GAP: &str = "[…]";

/// Returns the log without those lines, or unchanged if it has no such lines.
pub(super) fn condense(log: &str) -> Cow<'_, str> {
    let lines: Vec<&str> = log.lines().collect();
    let condensed = without_repetitions(without_frames(without_passed(&lines)));
    if condensed == lines {
        return Cow::Borrowed(log);
    }
    let mut out = condensed.join("\n");
    out.push('\n');
    Cow::Owned(out)
}

/// The lines that do not say of one test that it passed, was begun or was left out.
fn without_passed<'l>(lines: &[&'l str]) -> Vec<&'l str> {
    lines
        .iter()
        .copied()
        .filter(|line| !is_passed(line))
        .collect()
}

fn is_passed(line: &str) -> bool {
    let text = line.trim();
    let ends = |ends: &[&str]| ends.iter().any(|end| text.ends_with(end));
    let starts = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    (text.starts_with("test ") && ends(&[" ... ok", " ... ignored"]))
        || ends(&[" PASSED", " SKIPPED", " ... ok"])
        || starts(&[
            "--- PASS:",
            "=== RUN ",
            "=== PAUSE ",
            "=== CONT ",
            "PASSED ",
        ])
        || (text.starts_with("ok ") && text.contains(" - "))
        || text.starts_with("note: run with `RUST_BACKTRACE=1`")
}

/// How a line belongs to a stack.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stack {
    /// A frame of a stack with the innermost frame last.
    InnermostLast,
    /// A frame of a stack with the innermost frame first.
    InnermostFirst,
}

fn stack_of(line: &str) -> Option<Stack> {
    let text = line.trim_start();
    if text.len() == line.len() {
        return None;
    }
    if text.starts_with("File \"") && text.contains("\", line ") {
        return Some(Stack::InnermostLast);
    }
    let is_place = text.ends_with(')') || text.rsplit(':').next().is_some_and(is_number);
    (text.starts_with("at ") && text.contains(':') && is_place).then_some(Stack::InnermostFirst)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a frame is in the repository, not in a dependency.
fn is_own(frame: &str) -> bool {
    const OF_OTHERS: [&str; 8] = [
        "site-packages/",
        "dist-packages/",
        "node_modules/",
        "node:",
        "/.venv/",
        "/lib/python",
        "/rustc/",
        "<frozen ",
    ];
    frame.contains("<copy>/") && !OF_OTHERS.iter().any(|part| frame.contains(part))
}

/// One frame: its line, and the source and marks below it.
struct Frame<'l> {
    lines: Vec<&'l str>,
}

/// The lines with at most the innermost frames of each stack.
fn without_frames(lines: Vec<&str>) -> Vec<&str> {
    let mut out = Vec::with_capacity(lines.len());
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let Some(stack) = stack_of(line) else {
            out.push(*line);
            at += 1;
            continue;
        };
        let mut frames: Vec<Frame<'_>> = Vec::new();
        while let Some(line) = lines.get(at).filter(|line| stack_of(line) == Some(stack)) {
            let depth = indent(line);
            let mut frame = Frame { lines: vec![*line] };
            at += 1;
            while let Some(below) = lines.get(at)
                && stack == Stack::InnermostLast
                && frame.lines.len() <= MAX_BELOW
                && indent(below) > depth
                && stack_of(below).is_none()
            {
                frame.lines.push(*below);
                at += 1;
            }
            frames.push(frame);
        }
        keep_innermost(&mut out, &frames, stack);
    }
    out
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn keep_innermost<'l>(out: &mut Vec<&'l str>, frames: &[Frame<'l>], stack: Stack) {
    let own = |frame: &&usize| {
        frames
            .get(**frame)
            .and_then(|frame| frame.lines.first())
            .is_some_and(|line| is_own(line))
    };
    let all: Vec<usize> = (0..frames.len()).collect();
    let mut requested: Vec<usize> = all.iter().filter(own).copied().collect();
    if requested.is_empty() {
        requested = all;
    }
    let skipped = requested.len().saturating_sub(MAX_FRAMES);
    let request: HashSet<usize> = match stack {
        Stack::InnermostLast => requested.into_iter().skip(skipped).collect(),
        Stack::InnermostFirst => requested.into_iter().take(MAX_FRAMES).collect(),
    };
    let mut is_gap = false;
    for (number, frame) in frames.iter().enumerate() {
        if request.contains(&number) {
            if is_gap {
                out.push(GAP);
            }
            out.extend(&frame.lines);
        }
        is_gap = !request.contains(&number);
    }
    if is_gap {
        out.push(GAP);
    }
}

/// Removes repeated paragraphs of several lines: one defect often fails many tests.
fn without_repetitions(lines: Vec<&str>) -> Vec<&str> {
    let mut seen: HashSet<Vec<&str>> = HashSet::new();
    let mut out = Vec::with_capacity(lines.len());
    for paragraph in lines.split_inclusive(|line| line.trim().is_empty()) {
        let body: Vec<&str> = paragraph
            .iter()
            .copied()
            .filter(|line| !line.trim().is_empty())
            .collect();
        if body.len() < 2 || seen.insert(body) {
            out.extend(paragraph);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fully_relevant_log_is_unchanged() {
        for log in ["", "a\nb", "error: x\n --> a.rs:1:1\n", "a\n\nb\n\na\n"] {
            assert!(
                matches!(condense(log), Cow::Borrowed(kept) if kept == log),
                "{log:?}"
            );
        }
    }

    #[test]
    fn python_stack_keeps_innermost_repository_frames() {
        let frame = |path: &str, line: u32| {
            format!("  File \"{path}\", line {line}, in f{line}\n    call({line})\n    ^^^^^^^^\n")
        };
        let log = format!(
            "ERROR: test_c (t.T.test_c)\n-----\nTraceback (most recent call last):\n{}{}{}{}{}{}ValueError: no\n",
            frame("/usr/lib/python3/unittest/case.py", 1),
            frame("<copy>/a.py", 2),
            frame("<copy>/a.py", 3),
            frame("<copy>/a.py", 4),
            frame("<copy>/.venv/lib/site-packages/x.py", 5),
            frame("<copy>/b.py", 6),
        );
        let expected = format!(
            "ERROR: test_c (t.T.test_c)\n-----\nTraceback (most recent call last):\n[…]\n{}{}[…]\n{}ValueError: no\n",
            frame("<copy>/a.py", 3),
            frame("<copy>/a.py", 4),
            frame("<copy>/b.py", 6),
        );
        assert_eq!(condense(&log), expected);
        let foreign = format!(
            "Traceback:\n{}ValueError: no\n",
            frame("/usr/lib/python3/x.py", 1)
        );
        assert_eq!(condense(&foreign), foreign);
    }

    #[test]
    fn script_stack_keeps_first_repository_frames() {
        let log = "Error: no\n    at add (<copy>/src/a.js:3:9)\n    at run (node:internal/x:1:1)\n    at <copy>/test/a.test.js:5:3\n    \
                   at node_modules/jest/x.js:1:1\n";
        let expected = "Error: no\n    at add (<copy>/src/a.js:3:9)\n[…]\n    at <copy>/test/a.test.js:5:3\n[…]\n";
        assert_eq!(condense(log), expected);
    }

    #[test]
    fn passed_tests_are_removed_failures_stay() {
        let log = "running 3 tests\ntest a ... ok\ntest b ... FAILED\ntest c ... ignored\n=== RUN   TestA\n--- PASS: TestA\n\
                   --- FAIL: TestB\nok 1 - adds\nnot ok 2 - subtracts\nt.py::test_a PASSED\nt.py::test_b FAILED\n";
        let expected = "running 3 tests\ntest b ... FAILED\n--- FAIL: TestB\nnot ok 2 - subtracts\nt.py::test_b FAILED\n";
        assert_eq!(condense(log), expected);
    }

    #[test]
    fn repeated_message_is_removed() {
        let log = "FAIL: test_a\n\nE   assert 1 == 2\na.py:3: AssertionError\n\nFAIL: test_b\n\nE   assert 1 == 2\na.py:3: AssertionError\n\nend\n";
        let expected =
            "FAIL: test_a\n\nE   assert 1 == 2\na.py:3: AssertionError\n\nFAIL: test_b\n\nend\n";
        assert_eq!(condense(log), expected);
    }

    #[test]
    fn hostile_logs_are_condensed_in_bounded_time() {
        for piece in [
            "  File \"<copy>/a.py\", line 1, in f\n",
            "    at x (a:1:1)\n",
            "\n",
            "a\n\n",
            "test x ... ok\n",
        ] {
            let log = piece.repeat(200_000);
            assert!(condense(&log).len() <= log.len());
        }
    }
}
