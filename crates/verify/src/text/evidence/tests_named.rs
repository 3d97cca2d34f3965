//! The lines in which test runners name a failing test.

/// Returns the name of the test, if the line reports a failed one.
pub(super) fn failing_test(line: &str) -> Option<String> {
    let text = line.trim_start();
    let name = pytest(text)
        .or_else(|| text.strip_prefix("--- FAIL: ").map(first_word))
        .or_else(|| unittest(text))
        .or_else(|| {
            text.strip_prefix("test ")
                .and_then(|rest| rest.strip_suffix(" ... FAILED"))
        })
        .or_else(|| nextest(text))
        .or_else(|| tap(text))
        .or_else(|| text.strip_prefix("● "))
        .or_else(|| {
            text.strip_prefix("FAIL ")
                .filter(|_| line.starts_with("FAIL "))
        })?;
    let name = name.trim();
    (!name.is_empty()).then(|| name[..name.floor_char_boundary(200)].to_owned())
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

/// `FAILED tests/test_a.py::test_b - AssertionError`
fn pytest(text: &str) -> Option<&str> {
    let rest = text
        .strip_prefix("FAILED ")
        .or_else(|| text.strip_prefix("ERROR "))?;
    let name = rest.split(" - ").next()?;
    name.contains(".py").then_some(name)
}

/// `FAIL: test_c (t.T.test_c)`
fn unittest(text: &str) -> Option<&str> {
    let rest = text
        .strip_prefix("FAIL: ")
        .or_else(|| text.strip_prefix("ERROR: "))?;
    rest.contains(" (").then_some(rest)
}

/// `FAIL [<time>] package module::test`
fn nextest(text: &str) -> Option<&str> {
    let (_, name) = text.strip_prefix("FAIL [")?.split_once("] ")?;
    Some(name)
}

/// `not ok 3 - name`
fn tap(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("not ok ")?;
    let rest = rest
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_start();
    let name = rest.strip_prefix("- ").unwrap_or(rest);
    let is_expected = name.contains("# TODO") || name.contains("# SKIP");
    (!is_expected).then_some(name)
}
