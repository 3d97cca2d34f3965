//! Tests of verdicts by single test results: honest changes pass, and each way of losing a test is refused.

use crucible_model::{Digest, Level};

use super::*;
use crate::gate::{GateEnd, GateRun};
use crate::judge::tests::{codes, run_of};
use crate::judge::{GateBefore, JudgedRun, judge_run_after, judge_set};
use crate::results::TEST_STEP;
use crate::tally::TestTally;

/// The output of a run of Rust's own harness: `+` passes, `-` fails, `~` is ignored.
fn output(tests: &str) -> (i32, String) {
    let (mut text, mut counts) = (String::new(), [0, 0, 0]);
    for test in tests.split(' ').filter(|test| !test.is_empty()) {
        let (mark, name) = test.split_at(1);
        let (end, at) = match mark {
            "+" => ("ok", 0),
            "-" => ("FAILED", 1),
            _ => ("ignored", 2),
        };
        counts[at] += 1;
        text.push_str(&format!("test {name} ... {end}\n"));
    }
    let [passed, failed, ignored] = counts;
    text.insert_str(0, &format!("running {} tests\n", passed + failed + ignored));
    let end = if failed > 0 { "FAILED" } else { "ok" };
    text.push_str(&format!(
        "\ntest result: {end}. {passed} passed; {failed} failed; {ignored} ignored\n"
    ));
    (if failed > 0 { 101 } else { 0 }, text)
}

fn run(tests: &str) -> GateRun {
    let (code, text) = output(tests);
    run_of("cargo test", GateEnd::Exited(code), &text, "")
}

fn before(run: &GateRun) -> GateBefore {
    GateBefore {
        id: "unit".into(),
        passed: run.end == GateEnd::Exited(0),
        tally: TestTally::read(run),
        results: run.results.clone(),
        ..GateBefore::default()
    }
}

struct Case<'c> {
    goal: &'c str,
    files: TestFilePolicy,
    edited: &'c [&'c str],
    reruns: Vec<GateRun>,
}

const PLAIN: Case<'_> = Case {
    goal: "",
    files: TestFilePolicy::Fixed,
    edited: &[],
    reruns: Vec::new(),
};

fn judged_run(earlier: &GateRun, now: &GateRun, case: &Case<'_>) -> (JudgedRun, Verdict) {
    let gates = [before(earlier)];
    let edited: Vec<String> = case.edited.iter().map(ToString::to_string).collect();
    let baseline = Baseline {
        accepted: &[],
        waiting: &[],
        broken: None,
        second_world: None,
        results_outside: Default::default(),
        strength: None,
        sinks: &[],
        sinks_need_approval: &[],
        gates: &gates,
        tests: case.files,
        goal: case.goal,
        changed: &[],
        edited_examples: &edited,
        changed_together: &[],
        reruns: &case.reruns,
    };
    let judged = judge_run_after(now, &baseline);
    let set = judge_set(std::iter::once((now, &judged)), &baseline);
    (judged, set)
}

/// The codes of the errors about tests before and after.
fn errors(earlier: &str, now: &str, case: &Case<'_>) -> Vec<String> {
    let (judged, set) = judged_run(&run(earlier), &run(now), case);
    judged
        .verdict
        .errors()
        .chain(set.errors())
        .map(|finding| finding.code.to_string())
        .collect()
}

#[test]
fn honest_changes_are_accepted() {
    for (earlier, now) in [
        ("+a +b", "+a +b"),
        ("+a -b", "+a +b"),
        ("+a -b -net", "+a +b -net"),
        ("+a -b -net", "+a +b +c -net"),
        ("+a ~slow", "+a ~slow"),
        ("+a -b ~slow", "+a +b ~slow"),
        ("-tests/x.py", "+tests/x.py::a +tests/x.py::b"),
        ("+a -test/x.test.mjs", "+a +adds"),
    ] {
        assert_eq!(errors(earlier, now, &PLAIN), [""; 0], "{earlier} | {now}");
    }
}

#[test]
fn tests_that_fail_before_and_after_are_listed() {
    let (judged, _) = judged_run(&run("+a -b -net"), &run("+a +b -net"), &PLAIN);
    assert_eq!(
        codes(&judged.verdict),
        [("verify-test-still-fails", Level::Warning)]
    );
    let tests = judged.tests.unwrap();
    assert_eq!(
        (tests.fixed.names, tests.still_failing.names),
        (vec!["b".to_owned()], vec!["net".to_owned()])
    );
}

#[test]
fn every_lost_test_refuses() {
    for (earlier, now, expected) in [
        ("+a +b", "+a -b", "verify-test-broken"),
        ("+a +b -c", "+a -b +c", "verify-test-broken"),
        ("+a +b", "+a +c", "verify-test-gone"),
        ("+a +b -c", "+a +c +d", "verify-test-gone"),
        ("+a +b", "+a ~b +d", "verify-test-skipped"),
        ("+a -b -c", "+a +b ~c +d", "verify-test-skipped"),
        ("+a -b", "+a +b -new", "verify-new-test-fails"),
        ("+a -b ~slow", "+a +b -slow", "verify-new-test-fails"),
        ("+a -b", "+a -b", "verify-nothing-fixed"),
        ("+a -b", "+a -b +c", "verify-nothing-fixed"),
        ("+a -b -c", "+a +b +d", "verify-test-gone"),
        ("+a -b -x.test.mjs", "+a +b", "verify-test-gone"),
    ] {
        assert_eq!(
            errors(earlier, now, &PLAIN),
            [expected],
            "{earlier} | {now}"
        );
    }
}

#[test]
fn edited_doc_example_does_not_count() {
    let edits = |edited| Case { edited, ..PLAIN };
    let rust = ("+a -src/lib.rs_-_total", "+a +src/lib.rs_-_total");
    let python = (
        "+a -src/price.py::price.total",
        "+a +src/price.py::price.total",
    );
    let of_cargo = |text: &str| text.replace('_', " ");
    for (files, (earlier, now)) in [
        (&["crates/x/src/lib.rs"][..], rust),
        (&["src/lib.rs"], rust),
        (&["src/price.py"], python),
    ] {
        let run = |text: &str| {
            let (code, output) = output(text);
            run_of("cargo test", GateEnd::Exited(code), &of_cargo(&output), "")
        };
        let found = |case: &Case<'_>| {
            let (judged, set) = judged_run(&run(earlier), &run(now), case);
            let findings = judged.verdict.errors().chain(set.errors());
            findings
                .map(|finding| finding.code.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&edits(files)), ["verify-nothing-fixed"], "{files:?}");
        assert_eq!(
            found(&edits(&["src/other.rs", "other/price.py"])),
            [""; 0],
            "{files:?}"
        );
    }
    // A test of the same file is no example.
    let edited = edits(&["src/price.py"]);
    assert_eq!(
        errors(
            "-src/price.py::test_a[x.y]",
            "+src/price.py::test_a[x.y]",
            &edited
        ),
        [""; 0]
    );
    // Another test turned green.
    let (earlier, now) = (
        "-b -src/price.py::price.total",
        "+b +src/price.py::price.total",
    );
    assert_eq!(errors(earlier, now, &edited), [""; 0]);
}

#[test]
fn failing_duplicate_does_not_hide_another() {
    let judged = |earlier: &[&str], now: &[&str]| {
        let run = |lines: &[&str]| {
            let output: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let red = lines
                .iter()
                .filter(|line| line.starts_with("not ok"))
                .count();
            let counts = format!(
                "# tests {}\n# pass {}\n# fail {red}\n",
                lines.len(),
                lines.len() - red
            );
            run_of(
                "node --test",
                GateEnd::Exited(i32::from(red > 0)),
                &format!("TAP version 13\n{output}{counts}"),
                "",
            )
        };
        let (judged, set) = judged_run(&run(earlier), &run(now), &PLAIN);
        let findings = judged.verdict.errors().chain(set.errors());
        findings
            .map(|finding| finding.code.to_string())
            .collect::<Vec<_>>()
    };
    let earlier = ["ok 1 - basic", "not ok 2 - basic", "not ok 3 - adds"];
    let regression = ["not ok 1 - basic", "not ok 2 - basic", "ok 3 - adds"];
    assert_eq!(judged(&earlier, &regression), ["verify-test-broken"]);
    for fix in [
        ["ok 1 - basic", "not ok 2 - basic", "ok 3 - adds"],
        ["ok 1 - basic", "ok 2 - basic", "not ok 3 - adds"],
    ] {
        assert_eq!(judged(&earlier, &fix), [""; 0], "{fix:?}");
    }
    // One of the same name was green, and is not any more.
    let swapped = ["not ok 1 - basic", "ok 2 - basic", "ok 3 - adds"];
    assert_eq!(judged(&earlier, &swapped), ["verify-test-broken"]);
    // Two failures of one test are reported, and then one success.
    let results = |tests: &[(&str, TestStatus)]| {
        let mut results = TestResults::default();
        tests
            .iter()
            .for_each(|(name, status)| results.add(*name, *status));
        results
    };
    let (red, green) = (TestStatus::Failed, TestStatus::Passed);
    let gone = |before: &[(&str, TestStatus)]| {
        let now = results(&[("sub", green)]);
        let baseline = Baseline {
            accepted: &[],
            waiting: &[],
            broken: None,
            second_world: None,
            results_outside: Default::default(),
            strength: None,
            sinks: &[],
            sinks_need_approval: &[],
            gates: &[],
            tests: TestFilePolicy::Fixed,
            goal: "",
            changed: &[],
            edited_examples: &[],
            changed_together: &[],
            reruns: &[],
        };
        compare(
            &"unit".parse().unwrap(),
            &results(before),
            &now,
            None,
            &baseline,
        )
        .tests
        .gone
        .names
    };
    assert_eq!(gone(&[("sub", red), ("sub #2", red)]), [""; 0]);
    assert_eq!(gone(&[("sub", green), ("sub #2", green)]), ["sub #2"]);
}

#[test]
fn lost_tests_warn_where_tests_may_be_edited() {
    let editable = Case {
        files: TestFilePolicy::Editable,
        goal: "support yen",
        ..PLAIN
    };
    for (earlier, now) in [
        ("+a +b", "+a +c"),
        ("+a +b", "+a ~b"),
        ("+a -net", "+a -net +new"),
    ] {
        assert_eq!(
            errors(earlier, now, &editable),
            [""; 0],
            "{earlier} | {now}"
        );
        let (judged, set) = judged_run(&run(earlier), &run(now), &editable);
        assert!(!judged.verdict.findings().is_empty() || !set.findings().is_empty());
    }
    assert_eq!(errors("+a +b", "+a -b", &editable), ["verify-test-broken"]);
    assert_eq!(
        errors("+a", "+a -new", &editable),
        ["verify-new-test-fails"]
    );
}

#[test]
fn tests_that_the_goal_names_have_to_pass() {
    let named = |goal| Case { goal, ..PLAIN };
    let (earlier, now) = ("+a -t::test_b -t::test_net", "+a -t::test_b +t::test_net");
    assert_eq!(
        errors(earlier, now, &named("make `test_b` pass")),
        ["verify-goal-tests-fail"]
    );
    assert_eq!(
        errors(earlier, now, &named("make t::test_b pass.")),
        ["verify-goal-tests-fail"]
    );
    assert_eq!(errors(earlier, now, &named("make test_net pass")), [""; 0]);
    assert_eq!(
        errors("+a -add -net", "+a -add +net", &named("add a list")),
        [""; 0],
        "an ordinary word names no test"
    );
    let (earlier, now) = (
        "+a -tests/x.py::b -tests/x.py::net -tests/y.py::c",
        "+a +tests/x.py::b -tests/x.py::net -tests/y.py::c",
    );
    assert_eq!(
        errors(earlier, now, &named("fix what tests/x.py finds")),
        [""; 0]
    );
    assert_eq!(
        errors(earlier, now, &named("fix what y.py finds")),
        ["verify-goal-tests-fail"]
    );
    // The `test` in the name of the file is in every other name, too.
    let (earlier, now) = (
        "+a -test/price.test.js>total -test/label.test.js>name",
        "+a -test/price.test.js>total +test/label.test.js>name",
    );
    for goal in [
        "make the tests of test/price.test.js pass",
        "make the tests of price.test.js pass",
    ] {
        let found = errors(earlier, now, &named(goal));
        assert_eq!(found, ["verify-goal-tests-fail"], "{goal}");
    }
    assert_eq!(
        errors(earlier, now, &named("make test/label.test.js pass")),
        [""; 0]
    );
    let now = "+a -test/price.test.js>total +test/label.test.js>name +test/twice.test.js>t";
    assert_eq!(
        errors(earlier, now, &named("add `twice` and test/twice.test.js")),
        [""; 0]
    );
}

#[test]
fn red_tests_that_pass_again_are_flaky() {
    let (judged, _) = judged_run(&run("+a +b +c"), &run("+a -b +c"), &PLAIN);
    assert!(judged.may_be_flaky());
    let again = |now: &str| Case {
        reruns: vec![run(now)],
        ..PLAIN
    };
    let (judged, _) = judged_run(&run("+a +b +c"), &run("+a -b +c"), &again("+a +b +c"));
    assert_eq!(
        codes(&judged.verdict),
        [("verify-test-flaky", Level::Warning)]
    );
    assert_eq!(judged.tests.unwrap().flaky.names, ["b"]);
    for (earlier, now, second, expected) in [
        ("+a +b", "+a -b", "+a -b", "verify-test-broken"),
        ("+a +b +c", "-a -b +c", "+a -b +c", "verify-test-broken"),
        ("+a +b", "+a -b", "+a +c", "verify-test-gone"),
        ("+a +b", "+a -b", "+a ~b +c", "verify-test-skipped"),
        ("+a +b -c", "+a -b +c", "+a +b -c", "verify-nothing-fixed"),
    ] {
        assert_eq!(
            errors(earlier, now, &again(second)),
            [expected],
            "{earlier} | {now} | {second}"
        );
    }
    let crashed = Case {
        reruns: vec![run_of("cargo test", GateEnd::Exited(134), "", "")],
        ..PLAIN
    };
    assert_eq!(
        errors("+a +b", "+a -b", &crashed),
        ["verify-test-broken"],
        "a second run that broke off decides nothing"
    );
}

#[test]
fn only_newly_failing_tests_run_again() {
    for (earlier, now) in [
        ("+a +b", "+a +c"),
        ("+a -b", "+a +b -c"),
        ("+a +b", "-a ~b"),
        ("+a", "+a"),
    ] {
        assert!(
            !judged_run(&run(earlier), &run(now), &PLAIN)
                .0
                .may_be_flaky(),
            "{earlier} | {now}"
        );
    }
}

#[test]
fn tests_of_aborted_file_run_again() {
    let earlier = "+a +f.js +f.js::x +f.js::y";
    let broke_off = "+a -f.js +f.js::x -f.js::timeout";
    let (judged, _) = judged_run(&run(earlier), &run(broke_off), &PLAIN);
    assert!(judged.may_be_flaky() && !judged.verdict.passes());
    let again = |now: &str| Case {
        reruns: vec![run(now)],
        ..PLAIN
    };
    let (judged, _) = judged_run(&run(earlier), &run(broke_off), &again(earlier));
    assert_eq!(
        codes(&judged.verdict),
        [("verify-test-flaky", Level::Warning)]
    );
    for (second, expected) in [
        (broke_off, "verify-test-broken"),
        ("+a +f.js +f.js::x", "verify-test-gone"),
        ("+a +f.js +f.js::x -f.js::y", "verify-test-broken"),
    ] {
        assert_eq!(
            errors(earlier, broke_off, &again(second))[0],
            expected,
            "{second}"
        );
    }
    for other in [
        "+a +f.js +f.js::x",
        "-a +f.js +f.js::x",
        "+a -f.js +f.js::x +f.js::y -new",
    ] {
        assert!(
            !judged_run(&run(earlier), &run(other), &PLAIN)
                .0
                .may_be_flaky(),
            "{other}"
        );
    }
}

#[test]
fn test_name_with_time_is_matched() {
    let (earlier, now) = (
        "+t::x[11-24-2026T22:17:13] +t::x[22:17:13T2026-11-24] -goal",
        "+t::x[11-24-2026T22:18:59] +t::x[22:18:59T2026-11-24] +goal",
    );
    assert_eq!(errors(earlier, now, &PLAIN), [""; 0]);
    for (earlier, now, expected) in [
        (
            "+t::x[22:17:13] -goal",
            "-t::x[22:18:59] +goal",
            "verify-test-broken",
        ),
        (
            "+t::x[22:17:13] +t::x[22:17:14] -goal",
            "+t::x[22:18:59] +goal",
            "verify-test-gone",
        ),
        (
            "+t::x[22:17:13] -goal",
            "+t::y[22:18:59] +goal",
            "verify-test-gone",
        ),
        ("+t::x[1] -goal", "+t::x[2] +goal", "verify-test-gone"),
    ] {
        assert_eq!(
            errors(earlier, now, &PLAIN),
            [expected],
            "{earlier} | {now}"
        );
    }
}

#[test]
fn exit_code_decides_where_results_are_not_whole() {
    let code = |earlier: &GateRun, now: &GateRun| {
        let (judged, _) = judged_run(earlier, now, &PLAIN);
        assert!(judged.tests.is_none());
        judged
            .verdict
            .errors()
            .map(|finding| finding.code.to_string())
            .collect::<Vec<_>>()
    };
    let with =
        |code: i32, tests: &str| run_of("cargo test", GateEnd::Exited(code), &output(tests).1, "");
    assert_eq!(
        code(&run("+a -b -c"), &with(134, "+a +b -c")),
        ["verify-gate-failed"],
        "the process broke off"
    );
    assert_eq!(
        code(&with(134, "+a -b -c"), &run("+a +b -c")),
        ["verify-gate-failed"]
    );
    assert_eq!(
        code(&run("+a -b"), &with(101, "+a +b")),
        ["verify-gate-failed"],
        "something else failed"
    );
    let mut cut = run("+a +b -c");
    cut.results.as_mut().unwrap().basis = crate::tally::TallyBasis::Cut;
    assert_eq!(code(&run("+a -b -c"), &cut), ["verify-gate-failed"]);
}

#[test]
fn exit_code_zero_does_not_hide_failure() {
    let (_, text) = output("+a -b");
    let lying = run_of("cargo test", GateEnd::Exited(0), &text, "");
    let (judged, _) = judged_run(&run("+a +b"), &lying, &PLAIN);
    assert_eq!(
        codes(&judged.verdict),
        [
            ("verify-test-broken", Level::Error),
            ("verify-tests-failed", Level::Error)
        ]
    );
}

#[test]
fn forged_output_cannot_pass_failing_test() {
    let (code, text) = output("+a -b");
    let claims = format!("test b ... ok\n{text}test b ... ok\n");
    let (judged, _) = judged_run(
        &run("+a +b"),
        &run_of("cargo test", GateEnd::Exited(code), &claims, ""),
        &PLAIN,
    );
    assert_eq!(judged.tests.unwrap().broken.names, ["b"]);
}

#[test]
fn lists_are_bounded() {
    let names: Vec<String> = (0..200)
        .map(|number| format!("+{number:03}{}", "x".repeat(300)))
        .collect();
    let red: Vec<String> = names.iter().map(|name| name.replace('+', "-")).collect();
    let (judged, _) = judged_run(&run(&names.join(" ")), &run(&red.join(" ")), &PLAIN);
    let hint = &judged.verdict.errors().next().unwrap().hint;
    assert!(
        hint.ends_with(" and 195 more") && hint.len() < 1000,
        "{hint}"
    );
    let broken = judged.tests.unwrap().broken;
    assert_eq!((broken.count, broken.names.len()), (200, 50));
}

#[test]
fn gate_without_tests_of_change_does_not_count() {
    let now = run("+a +b");
    let mut gates = [before(&now)];
    gates[0].canary = crate::CanaryOutcome::Unnoticed;
    let baseline = Baseline {
        gates: &gates,
        ..Baseline::default()
    };
    let judged = judge_run_after(&now, &baseline);
    assert_eq!(
        codes(&judged.verdict),
        [("verify-gate-not-counted", Level::Warning)]
    );
    let set = judge_set(std::iter::once((&now, &judged)), &baseline);
    assert_eq!(codes(&set), [("verify-no-gate-counts", Level::Error)]);
    let other = GateRun {
        id: "other".parse().unwrap(),
        ..now.clone()
    };
    let counted = judge_run_after(&other, &baseline);
    assert_eq!(
        judge_set([(&now, &judged), (&other, &counted)].into_iter(), &baseline),
        Verdict::default()
    );
}

/// A gate that could not run leaves its language untested: another gate's result does not allow such a change
/// to land.
#[test]
fn change_in_untested_language_is_refused() {
    let lint = run_of(
        "make test",
        GateEnd::Exited(2),
        "",
        "make: uv: No such file or directory\nmake: *** [Makefile:2: test] Error 127\n",
    );
    let lint = GateRun {
        id: "lint".parse().unwrap(),
        ..lint
    };
    let tests = run("+a +b");
    let backup_gate_before = GateBefore {
        set_aside: Some("uv".to_owned()),
        ..before(&lint)
    };
    let aside = GateBefore {
        id: "lint".into(),
        ..backup_gate_before
    };
    let gates = [before(&tests), aside];
    let judge = |command: &str, changed: &str| {
        let tests = GateRun {
            command: command.split(' ').map(str::to_owned).collect(),
            ..tests.clone()
        };
        let changed = [changed.to_owned()];
        let baseline = Baseline {
            gates: &gates,
            changed: &changed,
            ..Baseline::default()
        };
        let judged = [
            judge_run_after(&tests, &baseline),
            judge_run_after(&lint, &baseline),
        ];
        assert_eq!(
            codes(&judged[1].verdict),
            [("verify-gate-set-aside", Level::Warning)]
        );
        let set = judge_set([&tests, &lint].into_iter().zip(&judged), &baseline);
        set.errors()
            .map(|finding| (finding.code.to_string(), finding.subject.clone()))
            .collect::<Vec<_>>()
    };
    for tested in ["src/a.rs", "README.md", "data/a.json"] {
        assert_eq!(judge("cargo test", tested), [], "{tested}");
    }
    for untested in ["web/a.js", "lib/add.c", "tool.py"] {
        let refused = ("verify-no-gate-counts".to_owned(), untested.to_owned());
        assert_eq!(judge("cargo test", untested), [refused], "{untested}");
    }
    // It is unknown what this one runs, so it may be anything.
    assert_eq!(judge("./run-tests", "web/a.js"), []);
}

/// Results of a script's steps: `+name` passed, `-name:output` failed; a name with `t/` is of a step that runs tests, and
/// one with `r/` that of a reported test.
fn steps(text: &str) -> TestResults {
    let mut results = TestResults::default();
    for step in text.split(' ') {
        let (name, output) = step.split_once(':').unwrap_or((step, ""));
        let name = &name[1..];
        let full = match name.split_once('/') {
            Some(("t", name)) => format!("{TEST_STEP}{name}"),
            Some(("r", name)) => name.to_owned(),
            _ => format!("{STEP}{name}"),
        };
        match &step[..1] {
            "-" => {
                if !output.is_empty() {
                    let digest = Digest::compute(output.as_bytes());
                    results.step_outputs.insert(full.clone(), digest);
                }
                results.add(full, TestStatus::Failed);
            }
            "?" => results.add(full, TestStatus::Skipped),
            _ => results.add(full, TestStatus::Passed),
        }
    }
    results
}

#[test]
fn script_step_failing_as_before_is_listed() {
    let refused = |code: &'static str| vec![code];
    let broken = || refused("verify-test-broken");
    for (base, now, fixed, expected) in [
        (
            "-t/uvu:1 -e2e:x +eslint",
            "+t/uvu -e2e:x +eslint",
            1,
            vec![],
        ),
        (
            "-t/uvu:1 -e2e:x",
            "+t/uvu -e2e:y",
            1,
            refused("verify-gate-failed"),
        ),
        (
            "-t/uvu:1 -e2e",
            "+t/uvu -e2e",
            1,
            refused("verify-gate-failed"),
        ),
        ("-t/uvu:1 +eslint", "+t/uvu -eslint:1", 1, broken()),
        ("+t/uvu -e2e:x", "+t/uvu", 0, refused("verify-test-gone")),
        ("?t/uvu -r/a", "+r/a", 1, refused("verify-test-gone")),
        // Only tests are progress, unless every step passes.
        ("-t/uvu:1 -eslint:1", "-t/uvu:1 +eslint", 0, vec![]),
        ("-check:1 -jshint:1", "-check:1 +jshint", 0, vec![]),
        ("-t/uvu:1 -t/ava:1", "-t/uvu:1 +t/ava", 1, vec![]),
        ("-e2e:1 -r/a ?t/uvu", "-e2e:1 +r/a +t/uvu", 1, vec![]),
        ("+t/uvu -eslint:1", "+t/uvu +eslint", 1, vec![]),
        // A step with reported failures leaves the verdict to them.
        ("?t/uvu -r/a -r/b", "?t/uvu +r/a -r/b", 1, vec![]),
        (
            "?t/uvu -r/a",
            "-t/uvu:1 +r/a",
            1,
            refused("verify-new-test-fails"),
        ),
        ("+t/uvu +r/a", "?t/uvu -r/a", 0, broken()),
        ("+t/uvu +r/a", "-t/uvu:1 +r/a", 0, broken()),
    ] {
        let gate = "npm-test".parse().unwrap();
        let (before, after) = (steps(base), steps(now));
        let compared = compare(&gate, &before, &after, None, &Baseline::default());
        let codes: Vec<String> = compared
            .verdict
            .errors()
            .map(|finding| finding.code.to_string())
            .collect();
        assert_eq!(compared.tests.fixed.count, fixed, "{base} / {now}");
        assert_eq!(codes, expected, "{base} / {now}");
    }
}

#[test]
fn step_that_the_goal_names_has_to_pass() {
    let judge = |goal: &'static str, now: &str| {
        let gate = "npm-test".parse().unwrap();
        let base = "-r/a ?t/uvu";
        let [mut before, mut after] = [base, now].map(steps);
        for results in [&mut before, &mut after] {
            let name = format!("{STEP}node \"scripts/check.js\" --all");
            let digest = Digest::compute(b"1");
            results.step_outputs.insert(name.clone(), digest);
            results.add(name, TestStatus::Failed);
        }
        let baseline = Baseline {
            goal,
            ..Baseline::default()
        };
        let compared = compare(&gate, &before, &after, None, &baseline);
        compared.verdict.errors().next().is_none()
    };
    for goal in ["make check.js pass", "`node scripts/check.js` fails"] {
        assert!(!judge(goal, "+r/a +t/uvu"), "{goal}");
    }
    for goal in ["correct the area", "look at recheck.js"] {
        assert!(judge(goal, "+r/a +t/uvu"), "{goal}");
    }
}

#[test]
fn failing_sibling_tests_of_fixed_test_refuse_change() {
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let together = [set(&["parses_all", "prints"]), set(&["loads", "stores"])];
    let judge = |goal: &'static str, now: &str| {
        let gate = "npm-test".parse().unwrap();
        let base = steps("-r/parses_all -r/prints -r/loads -r/network +r/adds");
        let baseline = Baseline {
            goal,
            changed_together: &together,
            ..Baseline::default()
        };
        let compared = compare(&gate, &base, &steps(now), None, &baseline);
        let mut codes = compared
            .verdict
            .errors()
            .map(|found| found.code.to_string());
        (codes.next(), compared.tests.still_failing.count)
    };
    let related = || Some("verify-related-test-fails".to_owned());
    let half = "+r/parses_all -r/prints -r/loads -r/network +r/adds";
    let full_text = "+r/parses_all +r/prints -r/loads -r/network +r/adds";
    let nothing = "-r/parses_all -r/prints -r/loads -r/network +r/adds";
    assert_eq!(judge("correct it", half), (related(), 3));
    // Those of another commit, and of none, decide nothing.
    assert_eq!(judge("correct it", full_text), (None, 2));
    assert_eq!(judge("correct it", nothing), (None, 4));
    assert_eq!(judge("`parses_all` has to pass", half), (None, 3));
    assert_eq!(judge("`parses_none` has to pass", half), (related(), 3));
}

#[test]
fn goal_names_tests_files_and_groups() {
    let fit = |goal: &str, name: &str| {
        let mut seen = Goal::new(goal);
        seen.see(name, false);
        seen.unmet().count > 0
    };
    let unittest = "tests.test_price.TestPrice.test_total";
    let pytest = "tests/test_price.py::TestTotal::test_total[4-9]";
    let jest = "test/total.test.js > total > adds tax to 1.5";
    for (goal, name) in [
        ("correct tests/test_price.py", unittest),
        ("see ./tests/test_price.py.", unittest),
        ("tests/test_price.py:7: AssertionError", unittest),
        ("TestPrice.test_total fails", unittest),
        ("tests.test_price is red", unittest),
        ("`tests/test_price.py::TestPrice::test_total`", unittest),
        ("TestPrice", unittest),
        ("test_total()", unittest),
        ("./tests/test_price.py", pytest),
        ("tests/test_price.py:7", pytest),
        ("TestTotal::test_total", pytest),
        ("test_total[4-9]", pytest),
        ("TestTotal", pytest),
        ("test/total.test.js", jest),
        ("'adds tax to 1.5' fails", jest),
        ("\"total > adds tax to 1.5\"", jest),
        ("tests::adds fails", "a::tests::adds"),
        ("TestTotal/three", "TestTotal/three"),
        ("TestTotal", "TestTotal/three"),
        ("test_price.py::test_total fails", unittest),
        ("test_price.py::test_total fails", pytest),
        (
            "File \"/home/me/shop/tests/test_price.py\", line 7",
            unittest,
        ),
        ("make tests/it.rs pass", "it::it_total"),
        ("crates/a/tests/it.rs is red", "it::it_total"),
        ("`cargo test --test it` must pass", "it::it_total"),
    ] {
        assert!(fit(goal, name), "{goal}: {name}");
    }
    for (goal, name) in [
        ("correct price.total in src/price.py", unittest),
        ("the total is wrong", unittest),
        ("test_total[4-8]", pytest),
        ("tests/test_rice.py", unittest),
        ("adds tax", jest),
        ("use tax_rate", "prices > uses tax_rate"),
        ("lib/total.js", jest),
        ("lib/test_price.py", unittest),
        ("test_price.py::test_other fails", unittest),
        ("test_other.py::test_total fails", unittest),
        ("make src/it.rs pass", "it::it_total"),
        ("make tests/it.rs pass", "a::it"),
        ("`cargo test --test other` must pass", "it::it_total"),
    ] {
        assert!(!fit(goal, name), "{goal}: {name}");
    }
}

#[test]
fn gate_that_ended_well_has_to_end_well() {
    let run = |code| {
        run_of(
            "mocha",
            GateEnd::Exited(code),
            "\n  a\n    \u{2714} one\n    1) old\n\n\n  1 passing (5ms)\n  1 failing\n",
            "",
        )
    };
    let judged = |before: &GateRun, now: &GateRun| {
        let (judged, _) = judged_run(before, now, &PLAIN);
        judged.verdict.passes()
    };
    assert!(judged(&run(1), &run(1)));
    assert!(!judged(&run(0), &run(1)));
}

#[test]
fn fixing_only_some_cases_of_test_is_refused() {
    for (earlier, now) in [
        (
            "+a -t.py::test_x[1] -t.py::test_x[2-b[0]]",
            "+a +t.py::test_x[1] -t.py::test_x[2-b[0]]",
        ),
        (
            "+a -p.TestEnc -p.TestEnc/one -p.TestEnc/two",
            "+a -p.TestEnc +p.TestEnc/one -p.TestEnc/two",
        ),
    ] {
        assert_eq!(
            errors(earlier, now, &PLAIN),
            ["verify-related-test-fails"],
            "{now}"
        );
    }
    for (earlier, now) in [
        (
            "+a -t.py::test_x[1] -t.py::test_y[1] -t.py::test_xy[1]",
            "+a +t.py::test_x[1] -t.py::test_y[1] -t.py::test_xy[1]",
        ),
        (
            "+a -p.TestEnc/one -p.TestDec/one",
            "+a +p.TestEnc/one -p.TestDec/one",
        ),
        (
            "+a -src/lib/one -src/lib/two",
            "+a +src/lib/one -src/lib/two",
        ),
    ] {
        assert_eq!(errors(earlier, now, &PLAIN), [""; 0], "{now}");
    }
    // The goal may be about one case.
    let goal = Case {
        goal: "make t.py::test_x[1] pass",
        ..PLAIN
    };
    let (earlier, now) = (
        "+a -t.py::test_x[1] -t.py::test_x[2]",
        "+a +t.py::test_x[1] -t.py::test_x[2]",
    );
    assert_eq!(errors(earlier, now, &goal), [""; 0]);
}
