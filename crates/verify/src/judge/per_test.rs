//! Compares the results of a gate's tests with those before the change. Pure.
//!
//! Tests are compared by name, and only if both reports are complete. A change is accepted if no passing test
//! now fails, is missing or skipped, no new test fails, and the goal's tests pass. Tests that failed before
//! and still fail are listed without refusing the change.
//!
//! Invariant: a test that was run twice counts as green only if it passed before the change and passed once
//! now, or if it passed twice; a test that one of the two runs lacks is gone.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::{Code, Finding, Verdict};
use serde::{Deserialize, Serialize};

use crate::gate::GateId;
use crate::judge::changed_tests::quoted;
use crate::judge::{Baseline, TestFilePolicy};
use crate::results::{STEP, TestResults, TestStatus, is_step};

/// Tests that passed before the change and fail now.
pub(crate) const BROKEN: Code = Code::new("verify-test-broken");
/// Tests that do not appear any more.
const GONE: Code = Code::new("verify-test-gone");
/// Failing tests that did not run before the change.
const NEW_FAILING: Code = Code::new("verify-new-test-fails");

/// Red tests that wait for the same change as tests that pass now.
const RELATED: Code = Code::new("verify-related-test-fails");

/// The most names that a list of a report holds.
const MAX_LISTED: usize = 50;
/// The most names that a finding holds.
const MAX_TOLD: usize = 5;
/// The most characters of a name in a finding.
const MAX_NAME: usize = 120;

/// Names of tests: how many there are, and the first of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestList {
    /// How many there are.
    pub count: u64,
    /// The first of them by name, at most 50.
    pub names: Vec<String>,
}

impl TestList {
    /// Returns whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn push(&mut self, name: &str) {
        self.count += 1;
        if self.names.len() < MAX_LISTED {
            self.names.push(name.to_owned());
        }
    }

    /// The first names on one line, and how many more there are.
    fn summary_line(&self) -> String {
        let shown = self.names.iter().take(MAX_TOLD).map(|name| {
            let cut: String = name.chars().take(MAX_NAME).collect();
            if cut.len() < name.len() {
                cut + "…"
            } else {
                cut
            }
        });
        let lines: Vec<String> = shown.collect();
        let more = self.count.saturating_sub(lines.len() as u64);
        let text = lines.join(", ");
        if more == 0 {
            text
        } else {
            format!("{text} and {more} more")
        }
    }
}

/// The tests of a gate, compared with their results before the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateTests {
    /// Which gate.
    pub gate: GateId,
    /// Failed before and pass now.
    #[serde(default, skip_serializing_if = "TestList::is_empty")]
    pub fixed: TestList,
    /// Failed before and fail now.
    #[serde(default, skip_serializing_if = "TestList::is_empty")]
    pub still_failing: TestList,
    /// Passed before and fail now.
    #[serde(default, skip_serializing_if = "TestList::is_empty")]
    pub broken: TestList,
    /// Fail now and did not run before.
    #[serde(default, skip_serializing_if = "TestList::is_empty")]
    pub new_failing: TestList,
    /// Pass now and did not run before.
    #[serde(default, skip_serializing_if = "TestList::is_empty")]
    pub added: TestList,
    /// Ran before and do not appear now.
    #[serde(default, skip_serializing_if = "TestList::is_empty")]
    pub gone: TestList,
    /// Ran before and are skipped now.
    #[serde(default, skip_serializing_if = "TestList::is_empty")]
    pub skipped: TestList,
    /// Passed in one of two runs on the same files and failed in the other.
    #[serde(default, skip_serializing_if = "TestList::is_empty")]
    pub flaky: TestList,
}

impl GateTests {
    /// Returns the tests of such a finding, if an aborted file or group can explain them.
    pub(crate) fn list(&self, code: &Code) -> Option<&TestList> {
        [(GONE, &self.gone), (NEW_FAILING, &self.new_failing)]
            .into_iter()
            .find_map(|(of, list)| (of == *code).then_some(list))
    }

    /// Returns whether each of these tests is below one that started to fail.
    pub(crate) fn is_below_broken(&self, list: &TestList) -> bool {
        let is_broken = |group: &str| self.broken.names.iter().any(|name| name == group);
        list.count == list.names.len() as u64
            && list.names.iter().all(|name| groups(name).any(is_broken))
    }
}

/// Returns the files and groups of a test, by its name.
fn groups(name: &str) -> impl Iterator<Item = &str> {
    [" > ", "::"]
        .into_iter()
        .flat_map(|mark| name.match_indices(mark))
        .map(|(at, _)| &name[..at])
}

/// A gate's tests, and the findings about them.
pub(crate) struct ComparedTests {
    pub(crate) tests: GateTests,
    pub(crate) verdict: Verdict,
}

/// Compares a gate's tests with those before; `rerun` are the results of a second run on the same files.
pub(crate) fn compare(
    gate: &GateId,
    before: &TestResults,
    now: &TestResults,
    rerun: Option<&TestResults>,
    baseline: &Baseline<'_>,
) -> ComparedTests {
    let outputs = &now.step_outputs;
    let (mut now, flaky) = both(before, now, rerun);
    follow_the_clock(before, &mut now);
    let empty = TestList::default;
    let mut tests = GateTests {
        gate: gate.clone(),
        fixed: empty(),
        still_failing: empty(),
        broken: empty(),
        new_failing: empty(),
        added: empty(),
        gone: empty(),
        skipped: empty(),
        flaky: empty(),
    };
    flaky.iter().for_each(|name| tests.flaky.push(name));
    let is_added = |(name, status): (&&str, &TestStatus)| {
        *status == TestStatus::Passed && !before.tests.contains_key(*name)
    };
    let has_added = now.iter().any(is_added);
    let mut goal = Goal::new(baseline.goal);
    let mut otherwise = TestList::default();
    let mut fixed = BTreeSet::new();
    // The goal may be about such a step, so that only tests show progress.
    let still_fails = before.tests.iter().any(|(name, status)| {
        is_step(name)
            && *status == TestStatus::Failed
            && now.get(name.as_str()) == Some(&TestStatus::Failed)
    });
    for (name, earlier) in &before.tests {
        let status = now.get(name.as_str()).copied();
        let mut is_fixed = false;
        match (earlier, status) {
            (TestStatus::Passed | TestStatus::Skipped, Some(TestStatus::Passed))
            | (TestStatus::Skipped, Some(TestStatus::Skipped)) => {}
            // The failed tests of its report decide.
            (TestStatus::Failed, Some(TestStatus::Skipped)) if is_step(name) => {}
            (TestStatus::Passed, Some(TestStatus::Skipped)) if is_step(name) => {
                tests.broken.push(name)
            }
            (TestStatus::Skipped, None) => {
                if is_step(name) {
                    tests.gone.push(name);
                }
            }
            (TestStatus::Passed, Some(TestStatus::Failed)) => tests.broken.push(name),
            (TestStatus::Skipped, Some(TestStatus::Failed)) => tests.new_failing.push(name),
            (TestStatus::Passed, None) => tests.gone.push(name),
            (TestStatus::Passed | TestStatus::Failed, Some(TestStatus::Skipped)) => {
                tests.skipped.push(name)
            }
            (TestStatus::Failed, Some(TestStatus::Passed)) => is_fixed = true,
            (TestStatus::Failed, Some(TestStatus::Failed)) => {
                let output = before.step_outputs.get(name);
                if is_step(name) && (output.is_none() || output != outputs.get(name)) {
                    otherwise.push(name);
                } else {
                    tests.still_failing.push(name);
                }
            }
            // A file that could not be loaded is reported as one failed test; now its tests are reported. A
            // test with failures reported one by one passes once.
            (TestStatus::Failed, None)
                if holds_passed(name, &now)
                    || is_file(name) && has_added
                    || all_of_its_name_pass(name, &now) =>
            {
                is_fixed = true
            }
            (TestStatus::Failed, None) => tests.gone.push(name),
        }
        let shows_nothing = is_edited_example(name, baseline.edited_examples)
            || still_fails && name.starts_with(STEP);
        if is_fixed && shows_nothing {
            // A test that failed is not one that passes now.
            is_fixed = false;
            tests.added.push(name);
        }
        if is_fixed {
            tests.fixed.push(name);
            fixed.insert(name);
        }
        if *earlier == TestStatus::Failed {
            goal.see(name, is_fixed);
        }
    }
    for (name, status) in now
        .iter()
        .filter(|(name, _)| !before.tests.contains_key(**name))
    {
        match status {
            TestStatus::Passed => tests.added.push(name),
            TestStatus::Failed => tests.new_failing.push(name),
            TestStatus::Skipped => {}
        }
    }
    let (related, cases) = match goal.names_tests {
        true => (empty(), empty()),
        false => (
            related(&fixed, &now, baseline.changed_together),
            other_cases(&fixed, before, &now),
        ),
    };
    let unmet = goal.unmet();
    let mut verdict = findings(&tests, &unmet, &related, baseline.tests);
    if !cases.is_empty() {
        verdict.push(Finding::error(
            RELATED,
            gate.as_str(),
            format!(
                "other cases of tests that pass now fail: {}",
                cases.summary_line()
            ),
        ));
    }
    if !otherwise.is_empty() {
        verdict.push(Finding::error(
            Code::new("verify-gate-failed"),
            gate.as_str(),
            format!(
                "steps that failed before the change fail with other output now: {}",
                otherwise.summary_line()
            ),
        ));
    }
    ComparedTests { tests, verdict }
}

/// Returns the failing tests that were last changed together with one that passes now.
fn related(
    fixed: &BTreeSet<&String>,
    now: &BTreeMap<&str, TestStatus>,
    together: &[BTreeSet<String>],
) -> TestList {
    let mut list = TestList::default();
    for set in together {
        if set.iter().any(|name| fixed.contains(name)) {
            let failing = |name: &&String| now.get(name.as_str()) == Some(&TestStatus::Failed);
            set.iter().filter(failing).for_each(|name| list.push(name));
        }
    }
    list
}

/// Returns the failing tests that are cases of the same test as one that passes now, or that test itself: their author
/// wrote them for one cause.
fn other_cases(
    fixed: &BTreeSet<&String>,
    before: &TestResults,
    now: &BTreeMap<&str, TestStatus>,
) -> TestList {
    let of_fixed: BTreeSet<&str> = fixed.iter().filter_map(|name| whole_test(name)).collect();
    let mut list = TestList::default();
    for (name, status) in now {
        let is_case = of_fixed.contains(name)
            || whole_test(name).is_some_and(|full_text| of_fixed.contains(full_text));
        let was_red = before.tests.get(*name) == Some(&TestStatus::Failed);
        if is_case && was_red && *status == TestStatus::Failed {
            list.push(name);
        }
    }
    list
}

/// Returns the test that has several results: the parametrised function of `tests/a.py::test_x[1-2]`, the group of tape's
/// assertion `title [equal]`, or Go's test of `TestX/case`.
fn whole_test(name: &str) -> Option<&str> {
    if let Some(inside) = name.strip_suffix(']') {
        let at = if name.contains("::") {
            inside.find('[')
        } else {
            inside.rfind(" [")
        };
        return at.map(|at| name[..at].trim_end());
    }
    let (full_text, _) = name.rsplit_once('/')?;
    let function = full_text
        .rsplit(['.', ' ', ':'])
        .next()
        .unwrap_or(full_text);
    function.starts_with("Test").then_some(full_text)
}

fn findings(
    tests: &GateTests,
    unmet: &TestList,
    related: &TestList,
    files: TestFilePolicy,
) -> Verdict {
    let gate = tests.gate.as_str();
    let mut verdict = Verdict::default();
    let mut error = |list: &TestList, code, what: &str| {
        if !list.is_empty() {
            verdict.push(Finding::error(
                code,
                gate,
                format!("{what}: {}", list.summary_line()),
            ));
        }
    };
    error(
        &tests.broken,
        BROKEN,
        "tests that passed before the change fail now",
    );
    error(
        &tests.new_failing,
        NEW_FAILING,
        "tests that did not run before the change fail now",
    );
    error(
        unmet,
        Code::new("verify-goal-tests-fail"),
        "the goal's tests do not pass",
    );
    error(
        related,
        RELATED,
        "tests fail that were last changed in the same commit as tests that pass now",
    );
    let mut by_files = |list: &TestList, code, what: &str| {
        if !list.is_empty() {
            let hint = format!("{what}: {}", list.summary_line());
            verdict.push(match files {
                TestFilePolicy::Fixed => Finding::error(code, gate, hint),
                TestFilePolicy::Editable => Finding::warning(code, gate, hint),
            });
        }
    };
    by_files(
        &tests.gone,
        GONE,
        "tests that ran before the change are gone",
    );
    by_files(
        &tests.skipped,
        Code::new("verify-test-skipped"),
        "tests that ran before the change are skipped now",
    );
    let mut warning = |list: &TestList, code, what: &str| {
        if !list.is_empty() {
            verdict.push(Finding::warning(
                code,
                gate,
                format!("{what}: {}", list.summary_line()),
            ));
        }
    };
    warning(
        &tests.still_failing,
        Code::new("verify-test-still-fails"),
        "tests fail before and after the change; it is not the cause",
    );
    warning(
        &tests.flaky,
        Code::new("verify-test-flaky"),
        "flaky tests: passed in one run and failed in another on the same files",
    );
    verdict
}

/// Matches tests whose names contain the current time with their earlier names.
fn follow_the_clock<'r>(before: &'r TestResults, now: &mut BTreeMap<&'r str, TestStatus>) {
    let mut dated: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in now.keys().filter(|name| !before.tests.contains_key(**name)) {
        if let Some(key) = without_clock(name) {
            dated.entry(key).or_default().push(name);
        }
    }
    if dated.is_empty() {
        return;
    }
    let missing: Vec<&str> = before
        .tests
        .keys()
        .map(String::as_str)
        .filter(|name| !now.contains_key(name))
        .collect();
    for name in missing {
        let same = without_clock(name).and_then(|key| dated.get_mut(&key)?.pop());
        if let Some(status) = same.and_then(|same| now.remove(same)) {
            now.insert(name, status);
        }
    }
}

/// Returns the name with `<time>` for each time of day and its date; `None` if it has none.
fn without_clock(name: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_digit() || ":-/.+TZ ".contains(c);
    let is_clock = |part: &str| {
        let bytes = part.as_bytes();
        bytes.windows(5).any(|five| {
            five[2] == b':' && [0, 1, 3, 4].into_iter().all(|at| five[at].is_ascii_digit())
        })
    };
    let mut normalized = String::with_capacity(name.len());
    let mut rest = name;
    let mut has_clock = false;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        has_clock |= is_clock(part);
        normalized.push_str(if is_clock(part) { "<time>" } else { part });
        let other = after.find(is_part).unwrap_or(after.len());
        normalized.push_str(&after[..other]);
        rest = &after[other..];
    }
    has_clock.then_some(normalized)
}

/// Returns a test's results in both runs, and the flaky tests. A flaky test passes only if it passed before.
fn both<'r>(
    before: &TestResults,
    now: &'r TestResults,
    rerun: Option<&'r TestResults>,
) -> (BTreeMap<&'r str, TestStatus>, BTreeSet<&'r str>) {
    let mut flaky = BTreeSet::new();
    let mut merged = BTreeMap::new();
    for (name, first) in &now.tests {
        let status = match rerun {
            None => *first,
            Some(rerun) => {
                let Some(second) = rerun.tests.get(name) else {
                    continue;
                };
                let was_green = before.tests.get(name) == Some(&TestStatus::Passed);
                match (first, second) {
                    // A step with failed tests is skipped.
                    (TestStatus::Passed, TestStatus::Skipped)
                    | (TestStatus::Skipped, TestStatus::Passed)
                        if is_step(name) && was_green =>
                    {
                        TestStatus::Passed
                    }
                    (TestStatus::Passed, TestStatus::Failed)
                    | (TestStatus::Failed, TestStatus::Passed) => {
                        flaky.insert(name.as_str());
                        if was_green {
                            TestStatus::Passed
                        } else {
                            TestStatus::Failed
                        }
                    }
                    (TestStatus::Skipped, _) | (_, TestStatus::Skipped) if was_green => {
                        TestStatus::Skipped
                    }
                    _ => *first.max(second),
                }
            }
        };
        merged.insert(name.as_str(), status);
    }
    // Tests of an aborted file or group appear only in the other run.
    for (name, second) in rerun.iter().flat_map(|rerun| &rerun.tests) {
        let broke_off = || groups(name).any(|group| flaky.contains(group) && is_red(now, group));
        let was_green = before.tests.get(name) == Some(&TestStatus::Passed);
        if was_green && !now.tests.contains_key(name) && broke_off() {
            merged.insert(name.as_str(), *second);
        }
    }
    (merged, flaky)
}

fn is_red(results: &TestResults, name: &str) -> bool {
    results.tests.get(name) == Some(&TestStatus::Failed)
}

/// Whether a name is that of a file which could not be loaded, and not of a test in it.
fn is_file(name: &str) -> bool {
    const EXTENSIONS: &[&str] = &[
        "py", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "rb", "php", "exs",
    ];
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
        || name.contains("unittest.loader._FailedTest")
}

/// Whether a test is an example in the documentation of one of these files: `src/lib.rs - total` in cargo's output, `src/price.py::price.total` in
/// that of pytest. Cargo names files from the package's directory on.
pub(crate) fn is_edited_example(name: &str, edited: &[String]) -> bool {
    let of_cargo = name
        .split_once(" -")
        .map(|(file, _)| file)
        .filter(|file| file.ends_with(".rs"));
    let of_pytest = || {
        let (file, item) = name.split_once("::")?;
        // The name of a test function has no dot; an example has the dotted name of what it documents.
        item.split('[').next()?.contains('.').then_some(file)
    };
    let Some(file) = of_cargo.or_else(of_pytest) else {
        return false;
    };
    edited.iter().any(|path| {
        path.strip_suffix(file)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    })
}

/// Returns whether a name ends with the number of a duplicate (`adds #2`), and all tests of that name pass
/// now.
fn all_of_its_name_pass(name: &str, now: &BTreeMap<&str, TestStatus>) -> bool {
    let Some((own, number)) = name.rsplit_once(" #") else {
        return false;
    };
    let number: usize = number.parse().unwrap_or_default();
    let mut same = (1..number).filter_map(|at| match at {
        1 => now.get(own),
        _ => now.get(format!("{own} #{at}").as_str()),
    });
    now.contains_key(own) && same.all(|status| *status == TestStatus::Passed)
}

/// Returns whether tests below this name pass now and none fails.
fn holds_passed(name: &str, now: &BTreeMap<&str, TestStatus>) -> bool {
    let below = format!("{name}::");
    let mut inside = now
        .range(below.as_str()..)
        .take_while(|(test, _)| test.starts_with(&below))
        .peekable();
    inside.peek().is_some() && inside.all(|(_, status)| *status != TestStatus::Failed)
}

/// Extensions of test files that names of tests may lack.
const EXTENSIONS: [&str; 13] = [
    "py", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "rb", "php", "exs", "rs",
];

/// The failing tests that the goal names, or whose files or groups it names.
struct Goal<'g> {
    words: BTreeSet<&'g str>,
    /// Quoted texts of several words.
    titles: BTreeSet<&'g str>,
    /// Test programs that it names as cargo does: `--test NAME`.
    programs: BTreeSet<&'g str>,
    /// Tests that it names and that are not green.
    unmet: TestList,
    /// Files and groups that it names, and whether a test of them turned green.
    located: BTreeMap<&'g str, bool>,
    /// Whether it names a test that failed, or what holds one.
    names_tests: bool,
}

/// How a word of the goal fits a test.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordMatch {
    /// It is the test.
    Test,
    /// It is a file or a group with the test.
    Holder,
}

impl<'g> Goal<'g> {
    fn new(goal: &'g str) -> Self {
        let is_part = |c: char| c.is_alphanumeric() || "_./:[]-".contains(c);
        let words = goal.split(|c| !is_part(c)).map(|word| {
            let word = word.trim_matches([':', '-']).trim_end_matches('.');
            without_line(word.strip_prefix("./").unwrap_or(word))
        });
        let mut options = goal.split_whitespace().skip_while(|word| *word != "--test");
        let program = options
            .nth(1)
            .map(|word| word.trim_matches(['`', ',', '.']));
        // An ordinary word names no test.
        let is_name = |word: &&str| {
            word.len() > 2
                && word
                    .chars()
                    .skip(1)
                    .any(|c| "_/:.".contains(c) || c.is_uppercase() || c.is_numeric())
        };
        Self {
            words: words.filter(is_name).collect(),
            titles: goal
                .lines()
                .flat_map(quoted)
                .filter(|text| text.contains(' '))
                .collect(),
            programs: program.into_iter().collect(),
            unmet: TestList::default(),
            located: BTreeMap::new(),
            names_tests: false,
        }
    }

    /// The tests that it names and that are not green, and the files and groups that it names without a test that turned
    /// green.
    fn unmet(mut self) -> TestList {
        let holders = self.located.iter().filter(|(_, is_met)| !**is_met);
        holders.for_each(|(holder, _)| self.unmet.push(holder));
        self.unmet
    }

    /// Takes note of a test that failed before the change.
    fn see(&mut self, name: &str, is_fixed: bool) {
        if is_step(name) {
            let mut words = name.split(|c: char| c.is_whitespace() || "\"'`()".contains(c));
            let is_named = |word: &str| {
                let ends = |named: &&&str| {
                    let before = word.strip_suffix(**named);
                    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
                };
                self.words.iter().any(|named| ends(&named))
            };
            if !is_fixed && words.any(is_named) {
                self.unmet.push(name);
            }
            return;
        }
        let has_title = || {
            let ends = |title: &&&str| {
                let before = name.strip_suffix(**title);
                before.is_some_and(|before| before.is_empty() || before.ends_with(" > "))
            };
            self.titles.iter().any(|title| ends(&title))
        };
        let parts = parts_of(name.split('[').next().unwrap_or(name));
        let programs = self
            .programs
            .iter()
            .filter(|program| parts.first() == Some(program));
        let mut fits: Vec<(&str, WordMatch)> = programs
            .map(|program| (*program, WordMatch::Holder))
            .collect();
        let words = self.words.iter();
        fits.extend(words.filter_map(|word| Some((*word, fit(word, name, &parts)?))));
        if fits.iter().any(|(_, fit)| *fit == WordMatch::Test) || has_title() {
            self.names_tests = true;
            if !is_fixed {
                self.unmet.push(name);
            }
        } else if let Some((word, _)) = fits.first() {
            self.names_tests = true;
            *self.located.entry(word).or_default() |= is_fixed;
        }
    }
}

/// Returns how a word fits a test. Both are compared part by part, such as `test_price`, `TestPrice` and `test_total`.
fn fit(word: &str, name: &str, parts: &[&str]) -> Option<WordMatch> {
    if word.contains('[') {
        let before = name.strip_suffix(word)?;
        let is_whole = before.is_empty() || before.ends_with([':', '/', '.', ' ']);
        return is_whole.then_some(WordMatch::Test);
    }
    let own = parts_of(word);
    let position = |own: &[&str]| parts.windows(own.len().max(1)).position(|at| at == own);
    let is_like_test = |part: &str| {
        part.starts_with(char::is_uppercase)
            || part.to_lowercase().contains("test")
            || part.contains("spec")
    };
    if let Some(at) = position(&own) {
        if at + own.len() == parts.len() {
            return Some(WordMatch::Test);
        }
        return (own.len() > 1 || is_like_test(word)).then_some(WordMatch::Holder);
    }
    // Some runners name modules in place of files.
    let (last, stem) = own.split_last()?;
    if EXTENSIONS.contains(last) {
        // Of the directories alone: `price.test.js` is a name, and the `test` in it fits every test.
        let directories = word.matches('/').count().min(stem.len());
        let of_tests = stem
            .iter()
            .take(directories)
            .rposition(|part| matches!(*part, "test" | "tests" | "spec"));
        let is_file = stem.last().is_some_and(|file| is_like_test(file));
        // A program of tests is named without its directory, and reports have paths of other machines.
        let starts = match (of_tests, is_file) {
            (Some(of_tests), _) => vec![0, of_tests, of_tests + 1],
            (None, true) if word.starts_with('/') => (0..stem.len()).collect(),
            (None, true) => vec![0],
            (None, false) => Vec::new(),
        };
        let mut runs = starts.into_iter().filter_map(|start| stem.get(start..));
        let is_held = |run: &[&str]| {
            let at = position(run).filter(|_| !run.is_empty());
            at.is_some_and(|at| is_file || at + run.len() < parts.len())
        };
        return runs.any(is_held).then_some(WordMatch::Holder);
    }
    let mut modules = own.clone();
    modules.retain(|part| !EXTENSIONS.contains(part));
    if modules.len() < 2 || modules.len() == own.len() {
        return None;
    }
    if let Some(at) = position(&modules) {
        return Some(if at + modules.len() == parts.len() {
            WordMatch::Test
        } else {
            WordMatch::Holder
        });
    }
    // Without the class between the file and the function: `test_price.py::test_total`.
    let (test, file) = modules.split_last()?;
    (parts.last() == Some(test) && position(file).is_some()).then_some(WordMatch::Test)
}

/// Returns the parts of the name of a test or a file.
fn parts_of(name: &str) -> Vec<&str> {
    let parts = name.split(['/', '.', ':', '>']).map(str::trim);
    parts.filter(|part| !part.is_empty()).collect()
}

/// Returns a place in a file without its line and column: `tests/test_a.py` for `tests/test_a.py:7:3`.
fn without_line(word: &str) -> &str {
    match word.rsplit_once(':') {
        Some((before, line))
            if !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            without_line(before)
        }
        _ => word,
    }
}

#[cfg(test)]
mod tests;
