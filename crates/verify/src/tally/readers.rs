//! One reader per runner, which parses line by line. Lines have no escape sequences and no trailing spaces.
//! Adding a runner takes one reader and one row of [`readers`].

use super::announced::AnnouncedTests;
use super::{TestCounts, TestRunner};

/// How long the rules of unittest are.
const RULE: usize = 70;

/// Reads the lines of one stream for one runner.
pub(super) trait Reader {
    /// Parses one line.
    fn line(&mut self, line: &str);

    /// Returns the counts; `None` if the runner printed nothing.
    fn end(&mut self) -> Option<TestCounts>;
}

/// A reader for each runner.
pub(super) fn readers() -> Vec<(TestRunner, Box<dyn Reader>)> {
    let plain = |line: fn(&str) -> Option<TestCounts>| -> Box<dyn Reader> {
        Box::new(Plain { line, sum: None })
    };
    vec![
        (TestRunner::Libtest, Box::new(Libtest::default())),
        (TestRunner::Nextest, Box::new(Nextest::default())),
        (TestRunner::Unittest, Box::new(Unittest::default())),
        (TestRunner::Pytest, Box::new(Pytest::default())),
        (TestRunner::GoPackages, plain(go_package)),
        (TestRunner::GoTests, Box::new(GoTests::default())),
        (TestRunner::Jest, plain(jest)),
        (TestRunner::Vitest, plain(vitest)),
        (TestRunner::Mocha, Box::new(Mocha::default())),
        (TestRunner::Node, Box::new(Node::default())),
        (TestRunner::Tap, Box::new(Tap::default())),
        (TestRunner::Ctest, Box::new(Ctest::default())),
    ]
}

/// Parses a decimal count; longer numbers are rejected.
fn number(text: &str) -> Option<u64> {
    let plain =
        !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// `3 passed` as number and words.
fn counted(text: &str) -> Option<(u64, &str)> {
    let (count, word) = text.trim().split_once(' ')?;
    Some((number(count)?, word.trim()))
}

fn passed(count: u64) -> TestCounts {
    TestCounts {
        passed: count,
        ..TestCounts::default()
    }
}

/// A runner whose lines are independent.
struct Plain {
    line: fn(&str) -> Option<TestCounts>,
    sum: Option<TestCounts>,
}

impl Reader for Plain {
    fn line(&mut self, line: &str) {
        if let Some(counts) = (self.line)(line) {
            self.sum.get_or_insert_default().add(counts);
        }
    }

    fn end(&mut self) -> Option<TestCounts> {
        self.sum
    }
}

/// Reports, and earlier announcements.
#[derive(Default)]
struct Reports {
    announced: AnnouncedTests,
    told: Option<TestCounts>,
}

impl Reports {
    fn announce(&mut self, tests: u64) {
        self.told.get_or_insert_default();
        self.announced.announce(tests);
    }

    fn report(&mut self, tests: u64, counts: TestCounts) {
        self.announced.report(tests);
        self.told.get_or_insert_default().add(counts);
    }

    fn end(&self) -> Option<TestCounts> {
        let unfinished = self.announced.unfinished();
        self.told.map(|counts| TestCounts {
            unfinished,
            ..counts
        })
    }
}

/// `running 3 tests`, then `test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; …`.
#[derive(Default)]
struct Libtest(Reports);

impl Reader for Libtest {
    fn line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("running ") {
            let count = rest
                .strip_suffix(" tests")
                .or_else(|| rest.strip_suffix(" test"));
            if let Some(count) = count.and_then(number) {
                self.0.announce(count);
            }
            return;
        }
        let Some((_, result)) = line.split_once("test result: ") else {
            return;
        };
        let Some((_, tallies)) = result.split_once(". ") else {
            return;
        };
        let mut counts = TestCounts::default();
        let mut words = 0;
        for part in tallies.split(';') {
            match counted(part) {
                Some((count, "passed" | "measured")) => counts.passed += count,
                Some((count, "failed")) => counts.failed += count,
                Some((count, "ignored")) => counts.skipped += count,
                _ => continue,
            }
            words += 1;
        }
        if words >= 2 {
            self.0
                .report(counts.ran().saturating_add(counts.skipped), counts);
        }
    }

    fn end(&mut self) -> Option<TestCounts> {
        self.0.end()
    }
}

/// `Starting 3 tests across 1 binary`, then `Summary [   0.003s] 3 tests run: 2 passed (1 slow), 1 failed, 1 skipped`.
#[derive(Default)]
struct Nextest(Reports);

impl Reader for Nextest {
    fn line(&mut self, line: &str) {
        let text = line.trim_start();
        if let Some((count, rest)) = text.strip_prefix("Starting ").and_then(counted) {
            if rest.starts_with("test") && rest.contains(" across ") {
                self.0.announce(count);
            }
            return;
        }
        let Some((_, run)) = text
            .strip_prefix("Summary [")
            .and_then(|rest| rest.split_once("] "))
        else {
            return;
        };
        let Some((of, tallies)) = run.split_once(" run: ") else {
            return;
        };
        let ran = of.split([' ', '/']).next().and_then(number);
        let mut counts = TestCounts::default();
        for (count, words) in tallies.split(',').filter_map(counted) {
            match words.split(' ').next() {
                Some("passed") => counts.passed += count,
                Some("failed" | "timed" | "exec") => counts.failed += count,
                Some("skipped") => counts.skipped += count,
                _ => {}
            }
        }
        if let Some(ran) = ran {
            self.0.report(ran, counts);
        }
    }

    fn end(&mut self) -> Option<TestCounts> {
        self.0.end()
    }
}

/// `Ran 5 tests in 0.001s`, then `OK (skipped=1)` or `FAILED (failures=1, errors=1)`. Each failure has an
/// earlier heading, `FAIL: ` or `ERROR: ` below a double rule; the code under test could forge the last line.
#[derive(Default)]
struct Unittest {
    reports: Reports,
    ran: Option<u64>,
    headings: u64,
    ruled: bool,
}

impl Reader for Unittest {
    fn line(&mut self, line: &str) {
        let below_rule = std::mem::replace(
            &mut self.ruled,
            line.len() == RULE && line.bytes().all(|byte| byte == b'='),
        );
        if below_rule && (line.starts_with("FAIL: ") || line.starts_with("ERROR: ")) {
            self.headings = self.headings.saturating_add(1);
            return;
        }
        if let Some((count, rest)) = line.strip_prefix("Ran ").and_then(counted) {
            if rest.starts_with("tests in ") || rest.starts_with("test in ") {
                self.reports.announce(count);
                self.ran = Some(count);
            }
            return;
        }
        let words = |word: &str| {
            line == word
                || line
                    .strip_prefix(word)
                    .is_some_and(|rest| rest.starts_with(" ("))
        };
        if !["OK", "FAILED", "NO TESTS RAN"].into_iter().any(words) {
            return;
        }
        let Some(all) = self.ran.take() else { return };
        let mut counts = TestCounts::default();
        let inside = line
            .split_once('(')
            .map_or("", |(_, inside)| inside.trim_end_matches(')'));
        for (name, count) in inside
            .split(',')
            .filter_map(|part| part.trim().split_once('='))
        {
            let Some(count) = number(count) else { continue };
            match name {
                "failures" | "errors" | "unexpected successes" => counts.failed += count,
                "skipped" | "expected failures" => counts.skipped += count,
                _ => {}
            }
        }
        // A test of several parts can fail or be skipped more than once.
        let ran = all.saturating_sub(counts.skipped);
        counts.failed = counts
            .failed
            .max(std::mem::take(&mut self.headings))
            .min(ran);
        counts.passed = ran - counts.failed;
        self.reports.report(all, counts);
    }

    fn end(&mut self) -> Option<TestCounts> {
        self.reports.end()
    }
}

/// `collected 3 items / 1 deselected / 2 selected`, then `==== 1 failed, 2 passed in 0.12s ====`.
#[derive(Default)]
struct Pytest(Reports);

impl Reader for Pytest {
    fn line(&mut self, line: &str) {
        if let Some((count, rest)) = line.strip_prefix("collected ").and_then(counted) {
            if rest.starts_with("item") {
                let mut parts = rest.split(" / ").filter_map(counted);
                let left_out = parts
                    .find(|(_, word)| *word == "deselected")
                    .map_or(0, |(count, _)| count);
                self.0.announce(count.saturating_sub(left_out));
            }
            return;
        }
        let Some((tallies, time)) = line.trim_matches(['=', ' ']).rsplit_once(" in ") else {
            return;
        };
        let seconds = time
            .split(' ')
            .next()
            .and_then(|time| time.strip_suffix('s'));
        if !seconds.is_some_and(|time| {
            time.bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
        }) {
            return;
        }
        if tallies == "no tests ran" || tallies.contains("tests collected") {
            // Nothing was to run: whatever was collected is not missing.
            self.0.report(u64::MAX, TestCounts::default());
            return;
        }
        let mut counts = TestCounts::default();
        for part in tallies.split(", ") {
            let Some((count, word)) = counted(part) else {
                return;
            };
            match word {
                "passed" | "xpassed" => counts.passed += count,
                "failed" | "error" | "errors" => counts.failed += count,
                // Code under test can ask for the second as well as for the first.
                "skipped" | "xfailed" => counts.skipped += count,
                "deselected" | "warning" | "warnings" | "rerun" | "subtests passed"
                | "subtests failed" => {}
                _ => return,
            }
        }
        self.0
            .report(counts.ran().saturating_add(counts.skipped), counts);
    }

    fn end(&mut self) -> Option<TestCounts> {
        self.0.end()
    }
}

/// Columns parted by tabs: `ok`, `FAIL` or `?`, the package, and a time, `(cached)` or `[no test files]`.
fn go_package(line: &str) -> Option<TestCounts> {
    let (word, rest) = line.split_once('\t')?;
    if rest.is_empty() || rest.starts_with(['\t', ' ']) {
        return None;
    }
    let nothing = rest.contains("[no test files]") || rest.contains("[no tests to run]");
    match word.trim_end() {
        "ok" | "?" if nothing => Some(TestCounts::default()),
        "ok" => {
            let time = rest.split_once('\t')?.1;
            let timed =
                time.starts_with("(cached)") || time.starts_with(|c: char| c.is_ascii_digit());
            timed.then(|| passed(1))
        }
        "FAIL" => Some(TestCounts {
            failed: 1,
            ..TestCounts::default()
        }),
        _ => None,
    }
}

/// `=== RUN   TestA`, then `--- PASS: TestA (0.00s)`. Without the first nothing counts: failures alone are shown without
/// `-v`, too.
#[derive(Default)]
struct GoTests {
    begun: u64,
    told: TestCounts,
}

impl Reader for GoTests {
    fn line(&mut self, line: &str) {
        if line.starts_with("=== RUN   ") {
            self.begun = self.begun.saturating_add(1);
        } else if line.contains("--- PASS: ") {
            self.told.passed = self.told.passed.saturating_add(1);
        } else if line.contains("--- FAIL: ") {
            self.told.failed = self.told.failed.saturating_add(1);
        } else if line.contains("--- SKIP: ") {
            self.told.skipped = self.told.skipped.saturating_add(1);
        }
    }

    fn end(&mut self) -> Option<TestCounts> {
        let reported = self.told.ran().saturating_add(self.told.skipped);
        let unfinished = self.begun.saturating_sub(reported);
        (self.begun > 0).then_some(TestCounts {
            unfinished,
            ..self.told
        })
    }
}

/// `Tests:       1 failed, 1 skipped, 2 passed, 4 total`.
fn jest(line: &str) -> Option<TestCounts> {
    let tallies = line.trim_start().strip_prefix("Tests:")?;
    let mut counts = TestCounts::default();
    let mut total = None;
    for part in tallies.split(',') {
        match counted(part)? {
            (count, "passed") => counts.passed += count,
            (count, "failed") => counts.failed += count,
            (count, "skipped" | "todo" | "pending") => counts.skipped += count,
            (count, "total") => total = Some(count),
            _ => return None,
        }
    }
    total.map(|_| counts)
}

/// `      Tests  1 failed | 2 passed | 1 skipped (4)`.
fn vitest(line: &str) -> Option<TestCounts> {
    let tallies = line
        .trim_start()
        .strip_prefix("Tests  ")?
        .trim()
        .split_once('(')?
        .0;
    let mut counts = TestCounts::default();
    for part in tallies.split('|') {
        match counted(part)? {
            (count, "passed") => counts.passed += count,
            (count, "failed") => counts.failed += count,
            (count, "skipped" | "todo") => counts.skipped += count,
            _ => return None,
        }
    }
    Some(counts)
}

/// `  3 passing (5ms)`, and right after it `  1 pending` and `  1 failing`.
#[derive(Default)]
struct Mocha {
    told: Option<TestCounts>,
    inside: bool,
}

impl Reader for Mocha {
    fn line(&mut self, line: &str) {
        match counted(line) {
            Some((count, words)) if words.starts_with("passing (") && words.ends_with(')') => {
                self.told.get_or_insert_default().add(passed(count));
                self.inside = true;
            }
            Some((count, word @ ("pending" | "failing"))) if self.inside => {
                let one = match word {
                    "pending" => TestCounts {
                        skipped: count,
                        ..TestCounts::default()
                    },
                    _ => TestCounts {
                        failed: count,
                        ..TestCounts::default()
                    },
                };
                self.told.get_or_insert_default().add(one);
            }
            _ => self.inside = false,
        }
    }

    fn end(&mut self) -> Option<TestCounts> {
        self.told
    }
}

/// `# tests 4` and the lines after it, with `ℹ` in place of `#` on a terminal.
///
/// A file in which no test reported anything is itself counted as a test; it is taken out again, because a file whose
/// process ended early looks the same.
#[derive(Default)]
struct Node {
    told: Option<TestCounts>,
    files_passed: u64,
    files_failed: u64,
}

impl Reader for Node {
    fn line(&mut self, line: &str) {
        let count_line = line
            .strip_prefix("# ")
            .or_else(|| line.strip_prefix("ℹ "))
            .and_then(|rest| rest.split_once(' '));
        if let Some((word, count)) = count_line {
            // tape aligns the numbers.
            let Some(count) = number(count.trim_start()) else {
                return;
            };
            if word == "tests" {
                self.told.get_or_insert_default();
            }
            let Some(counts) = &mut self.told else { return };
            match word {
                "pass" => counts.passed += count,
                "fail" | "cancelled" => counts.failed += count,
                "skipped" | "todo" => counts.skipped += count,
                _ => {}
            }
        } else if line
            .strip_prefix("ok ")
            .or_else(|| line.strip_prefix("✔ "))
            .is_some_and(names_file)
        {
            self.files_passed += 1;
        } else if line
            .strip_prefix("not ok ")
            .or_else(|| line.strip_prefix("✖ "))
            .is_some_and(names_file)
        {
            self.files_failed += 1;
        }
    }

    fn end(&mut self) -> Option<TestCounts> {
        self.told.map(|counts| TestCounts {
            passed: counts.passed.saturating_sub(self.files_passed),
            failed: counts.failed.saturating_sub(self.files_failed),
            ..counts
        })
    }
}

/// Whether `1 - /src/a.test.mjs` or `/src/a.test.mjs (5.1ms)` names a file.
fn names_file(rest: &str) -> bool {
    let name = rest.split_once(" - ").map_or(rest, |(_, name)| name);
    let name = name.rsplit_once(" (").map_or(name, |(name, _)| name);
    let extensions = [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"];
    extensions.iter().any(|extension| name.ends_with(extension))
}

/// `1..3` before or after `ok 1 - name`, `not ok 2 - name`, `ok 3 # SKIP why`.
#[derive(Default)]
struct Tap {
    planned: u64,
    plans: u64,
    version: bool,
    told: TestCounts,
}

impl Reader for Tap {
    fn line(&mut self, line: &str) {
        if line == "TAP version 13" || line == "TAP version 14" {
            self.version = true;
            return;
        }
        if let Some(plan) = line.strip_prefix("1..") {
            if let Some(count) = plan.split(' ').next().and_then(number) {
                self.plans += 1;
                self.planned = self.planned.saturating_add(count);
            }
            return;
        }
        let (failed, rest) = match (line.strip_prefix("not ok"), line.strip_prefix("ok")) {
            (Some(rest), _) => (1, rest),
            (None, Some(rest)) => (0, rest),
            (None, None) => return,
        };
        let rest = match rest.strip_prefix(' ') {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit() || c == '-') => rest,
            _ => return,
        };
        let directive = rest
            .rsplit_once("# ")
            .map_or("", |(_, directive)| directive);
        let is = |word: &str| {
            directive
                .get(..4)
                .is_some_and(|first| first.eq_ignore_ascii_case(word))
        };
        self.told.add(if is("skip") || is("todo") {
            TestCounts {
                skipped: 1,
                ..TestCounts::default()
            }
        } else {
            TestCounts {
                failed,
                passed: 1 - failed,
                ..TestCounts::default()
            }
        });
    }

    fn end(&mut self) -> Option<TestCounts> {
        let reported = self.told.ran().saturating_add(self.told.skipped);
        let seen = (self.plans > 0 && reported > 0) || self.version;
        let missing = self.planned.saturating_sub(reported);
        let unfinished = if self.plans == 0 {
            missing.max(1)
        } else {
            missing
        };
        seen.then_some(TestCounts {
            unfinished,
            ..self.told
        })
    }
}

/// `67% tests passed, 1 tests failed out of 3`; before it `2/3 Test #2: name ...***Skipped   0.01 sec`.
#[derive(Default)]
struct Ctest {
    told: Option<TestCounts>,
    skipped: u64,
}

impl Reader for Ctest {
    fn line(&mut self, line: &str) {
        if line.contains(" Test ")
            && (line.contains("***Skipped") || line.contains("***Not Run (Disabled)"))
        {
            self.skipped = self.skipped.saturating_add(1);
            return;
        }
        let Some((percent, rest)) = line.split_once("% tests passed, ") else {
            return;
        };
        let Some((failed, total)) = rest.split_once(" failed out of ") else {
            return;
        };
        let failed = failed.split(' ').next().and_then(number);
        if let (Some(_), Some(failed), Some(total)) = (number(percent), failed, number(total)) {
            let skipped = std::mem::take(&mut self.skipped);
            let passed = total.saturating_sub(failed).saturating_sub(skipped);
            self.told.get_or_insert_default().add(TestCounts {
                passed,
                failed,
                skipped,
                unfinished: 0,
            });
        }
    }

    fn end(&mut self) -> Option<TestCounts> {
        self.told
    }
}
