//! Selects the most informative lines of a log within a byte limit.
//!
//! Irrelevant lines are removed first ([`condense`]). If the rest is too long, lines are weighted by shape:
//! compiler errors and failed assertions first, then their surroundings, then summaries. An unrecognised log
//! gives its end. Selected lines stay in order, with gaps marked.

use std::cmp::Reverse;

use crucible_model::ByteLimit;

use super::condense::{GAP, condense};

/// No line needs more bytes than this to be understood.
const MAX_LINE: usize = 400;

/// The lines after a telling one that belong to it.
const FOLLOWERS: usize = 8;

/// How much a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Noise,
    Context,
    Summary,
    Detail,
    Key,
}

/// Returns at most `max` bytes of `log`, which should be normalised, without irrelevant lines. The same log
/// gives the same excerpt.
#[must_use]
pub fn excerpt(log: &str, max: ByteLimit) -> String {
    let max = usize::try_from(max.0).unwrap_or(usize::MAX);
    let condensed = condense(log);
    let log = condensed.as_ref();
    if log.len() <= max {
        return log.to_owned();
    }
    let lines: Vec<&str> = log.lines().map(clip).collect();
    let weights = weigh(&lines);
    let mut order: Vec<usize> = (0..lines.len()).collect();
    if weights.iter().all(|weight| *weight == Weight::Noise) {
        order.reverse();
    } else {
        order.retain(|index| weights[*index] != Weight::Noise);
        // Equal weights stay in log order: the first error causes the others.
        order.sort_by_key(|index| (Reverse(weights[*index]), *index));
    }
    choose(&lines, &order, max)
}

/// Takes lines in `order` while they and the marks of their gaps fit.
fn choose(lines: &[&str], order: &[usize], max: usize) -> String {
    let mut chosen = vec![false; lines.len()];
    let mut left = max;
    for index in order {
        // A line costs at most itself, a gap before and one after it.
        let cost = lines[*index].len() + 1 + 2 * (GAP.len() + 1);
        if cost > left {
            break;
        }
        left -= cost;
        chosen[*index] = true;
    }
    let mut out = String::with_capacity(max.min(1 << 20));
    let mut gap = false;
    for (line, chosen) in lines.iter().zip(chosen) {
        if !chosen {
            gap = true;
            continue;
        }
        if gap {
            out.push_str(GAP);
            out.push('\n');
            gap = false;
        }
        out.push_str(line);
        out.push('\n');
    }
    if gap && !out.is_empty() {
        out.push_str(GAP);
        out.push('\n');
    }
    out
}

fn weigh(lines: &[&str]) -> Vec<Weight> {
    let mut weights = vec![Weight::Noise; lines.len()];
    let mut block = 0usize;
    let mut announces = false;
    for (index, line) in lines.iter().enumerate() {
        let own = weight(line);
        if own == Weight::Key {
            block = FOLLOWERS;
            let (before, weight) = if is_python_exception(line) {
                (3, Weight::Detail)
            } else {
                (1, Weight::Context)
            };
            for earlier in &mut weights[index.saturating_sub(before)..index] {
                *earlier = weight.max(*earlier);
            }
        } else if (line.trim().is_empty() && !announces) || is_boundary(line) {
            block = 0;
        }
        let belongs = own != Weight::Key && block > 0 && !is_chatter(line);
        if belongs {
            block -= 1;
        }
        weights[index] = own.max(if belongs {
            Weight::Detail
        } else {
            Weight::Noise
        });
        announces = line.ends_with(':');
    }
    weights
}

/// With these a failure begins.
const KEY_STARTS: &[&str] = &[
    "error[",
    "error:",
    "--- FAIL:",
    "E  ",
    "Error:",
    "not ok ",
    "FATAL",
    "fatal:",
    "✗ ",
    "✕ ",
    "● ",
];

/// These occur in the line that says what failed.
const KEY_WORDS: &[&str] = &[
    "panicked at",
    "): error TS",
    "SyntaxError:",
    ": error:",
    "AssertionError",
];

/// With these a failure goes on.
const DETAIL_STARTS: &[&str] = &[
    "left:",
    "right:",
    "assertion ",
    "> ",
    "expected",
    "actual",
    "+ ",
    "- ",
    "-->",
    "= note:",
    "= help:",
];

const DETAIL_WORDS: &[&str] = &["Error: ", "error: ", "Exception"];

/// With these a tool sums up.
const SUMMARY_STARTS: &[&str] = &[
    "test result: FAILED",
    "FAILED ",
    "ERROR ",
    "failures:",
    "FAIL",
    "ERROR:",
    "---- ",
];

const SUMMARY_WORDS: &[&str] = &[
    " ... FAILED",
    "could not compile",
    " failed, ",
    " failed in ",
];

fn weight(line: &str) -> Weight {
    let text = line.trim_start();
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    // Test output follows; that cargo ended because of it is irrelevant.
    if text.starts_with("error: test failed, to rerun") {
        Weight::Noise
    } else if starts(KEY_STARTS)
        || has(KEY_WORDS)
        || is_go_position(text)
        || is_python_exception(text)
    {
        Weight::Key
    } else if starts(DETAIL_STARTS) || has(DETAIL_WORDS) {
        Weight::Detail
    } else if starts(SUMMARY_STARTS) || has(SUMMARY_WORDS) {
        Weight::Summary
    } else {
        Weight::Noise
    }
}

/// `TypeError: message`: Python states the reason last, after the location.
fn is_python_exception(line: &str) -> bool {
    line.split_once(": ").is_some_and(|(name, _)| {
        let named = name.ends_with("Error") || name.ends_with("Exception");
        named
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte))
    })
}

/// Irrelevant lines that test runners print inside a failure.
fn is_chatter(line: &str) -> bool {
    let text = line.trim();
    matches!(text, "---" | "..." | "stack backtrace:")
        || text.contains("node:internal/")
        || [
            "duration_ms",
            "failureType:",
            "type: '",
            "at /rustc/",
            "at <home>/",
        ]
        .iter()
        .any(|start| text.starts_with(start))
}

/// A line that begins something else, so the previous block has ended.
fn is_boundary(line: &str) -> bool {
    ["warning:", "warning[", "test ", "running ", "=====", "____"]
        .iter()
        .any(|start| line.starts_with(start))
}

/// `./file.go:3:5: message` and `file_test.go:12: message`.
fn is_go_position(text: &str) -> bool {
    text.split_once(".go:").is_some_and(|(file, rest)| {
        !file.contains(' ') && rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains(": ")
    })
}

fn clip(line: &str) -> &str {
    &line[..line.floor_char_boundary(MAX_LINE)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn noisy(middle: &str) -> String {
        let noise = |from: usize| {
            (from..from + 300)
                .map(|n| format!("compiling module {n}\n"))
                .collect::<String>()
        };
        format!("{}{middle}{}", noise(0), noise(1000))
    }

    fn short(log: &str) -> String {
        excerpt(log, ByteLimit(600))
    }

    #[test]
    fn short_log_is_unchanged() {
        assert_eq!(short("a\nb"), "a\nb");
    }

    #[test]
    fn a_compile_error_is_found_with_its_place() {
        let error = "error[E0308]: mismatched types\n --> src/lib.rs:3:5\n  |\n3 |     1u8\n  |     ^^^ expected `u32`\n\n";
        let found = short(&noisy(error));
        assert!(found.contains(error.trim_end()), "{found}");
        assert!(found.contains("[…]\n"));
    }

    #[test]
    fn a_failed_assertion_is_found_with_both_sides() {
        let failure = "---- tests::adds stdout ----\nthread 'tests::adds' panicked at src/lib.rs:9:5:\n\
                       assertion `left == right` failed\n  left: 3\n right: 4\n\n";
        let found = short(&noisy(failure));
        for part in ["tests::adds", "src/lib.rs:9:5", "left: 3", "right: 4"] {
            assert!(found.contains(part), "{found}");
        }
    }

    #[test]
    fn pytest_and_go_failures_are_found() {
        let pytest = ">       assert add(1, 2) == 4\nE       assert 3 == 4\nE        +  where 3 = add(1, 2)\n\ntest_a.py:4: AssertionError\n";
        let found = short(&noisy(pytest));
        assert!(
            found.contains("E       assert 3 == 4") && found.contains("> "),
            "{found}"
        );
        let go = "--- FAIL: TestAdd (<time>)\n    add_test.go:9: Add(1, 2) = 3, want 4\n";
        assert!(short(&noisy(go)).contains("want 4"));
    }

    #[test]
    fn python_and_node_reasons_keep_location() {
        let python = "ERROR: test_c (t.T.test_c)\n-----\nTraceback (most recent call last):\n  File \"<copy>/t.py\", line 6, in c\n    \
                      add(1)\n    ^^^^^^\nTypeError: add() missing 1 argument\n\n";
        let found = short(&noisy(python));
        assert!(
            found.contains("line 6, in c\n    add(1)\n    ^^^^^^\nTypeError: add() missing"),
            "{found}"
        );
        let node = "not ok 1 - adds\n  ---\n  duration_ms: <time>\n  location: '<copy>/t.js:3:1'\n  error: |-\n    \
                    Expected values to be strictly equal:\n\n    0 !== 2\n\n  stack: |-\n    Test.run (node:internal/test)\n";
        let found = short(&noisy(node));
        assert!(
            found.contains("0 !== 2")
                && found.contains("t.js:3:1")
                && !found.contains("node:internal"),
            "{found}"
        );
    }

    #[test]
    fn unrecognised_log_gives_its_end() {
        let found = short(&noisy(""));
        assert!(
            found.starts_with("[…]\n") && found.ends_with("compiling module 1299\n"),
            "{found}"
        );
    }

    #[test]
    fn one_endless_line_does_not_take_all() {
        let log = format!("{}\nerror: the reason\n", "x".repeat(1_000_000));
        assert!(short(&log).contains("error: the reason"));
    }

    #[test]
    fn the_first_error_goes_before_the_last() {
        let log: String = (0..1000).map(|n| format!("error: number {n}\n")).collect();
        assert!(short(&log).starts_with("error: number 0\nerror: number 1\n"));
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn an_excerpt_never_exceeds_its_limit(
                lines in prop::collection::vec("(error: |E   |--- FAIL: |)[a-zé]{0,30}", 0..60),
                max in 0u64..500,
            ) {
                let log = lines.join("\n");
                let found = excerpt(&log, ByteLimit(max));
                prop_assert!(found.len() as u64 <= max);
                prop_assert_eq!(&found, &excerpt(&log, ByteLimit(max)));
                for line in found.lines() {
                    prop_assert!(line == "[…]" || lines.iter().any(|known| known == line));
                }
            }
        }
    }
}
