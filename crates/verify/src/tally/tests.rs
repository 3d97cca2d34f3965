//! Tests of tallies: the output of each runner, adversarial output, and verdicts.

use crucible_model::Level;

use super::*;
use crate::judge::tests::{codes, run_of};
use crate::judge::{Baseline, GateBefore, TestFilePolicy, judge_run_after};

const CARGO: &str = "\nrunning 3 tests\ntest tests::a ... ok\ntest tests::b ... ignored\ntest tests::c ... ok\n\n\
    test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\n\
    running 1 test\ntest it ... ok\n\n\
    test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\n\
    running 1 test\ntest src/lib.rs - f (line 2) ... ok\n\n\
    test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\
    all doctests ran in 0.43s; merged doctests compilation took 0.42s\n";

const CARGO_FAILED: &str = "\nrunning 3 tests\ntest tests::a ... ok\ntest tests::b ... ignored\ntest tests::c ... FAILED\n\n\
    failures:\n\n---- tests::c stdout ----\nrunning 4 tests\ntest result: ok. 4 passed; 0 failed\nRan 9 tests in 0.1s\n\nOK\n\n\
    thread 'tests::c' (8563) panicked at src/lib.rs:6:148:\nx\n\n\nfailures:\n    tests::c\n\n\
    test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.12s\n\n";

const UNITTEST: &str = ".ssxFFF\n======================================================================\n\
    FAIL: test_e (test_a.T.test_e) [0]\n----------------------------------------------------------------------\n\
    AssertionError: None\n\n----------------------------------------------------------------------\n\
    Ran 5 tests in 0.001s\n\nFAILED (failures=3, skipped=2, expected failures=1)\n";

const NODE: &str = "TAP version 13\n# Subtest: a\nok 1 - a\n  ---\n  duration_ms: 5.3\n  ...\n# Subtest: b\nok 2 - b\n\
    # Subtest: c\nok 3 - c # SKIP\n# Subtest: d\nok 4 - d # TODO\n1..4\n# tests 4\n# suites 0\n# pass 2\n# fail 0\n\
    # cancelled 0\n# skipped 1\n# todo 1\n# duration_ms 156.8\n";

/// The output of `node --test` for a file whose process ended during a test.
const NODE_ENDED: &str = "TAP version 13\n# Subtest: /copy/a.test.mjs\nok 1 - /copy/a.test.mjs\n1..1\n# tests 1\n\
    # suites 0\n# pass 1\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0\n";

const PYTEST: &str = "============================= test session starts ==============================\n\
    platform linux -- Python 3.11.7, pytest-8.3.0\ncollected 5 items / 1 deselected / 4 selected\n\n\
    tests/test_a.py .Fsx                                                     [100%]\n\n\
    =================================== FAILURES ===================================\n\
    ____________________________________ test_b ____________________________________\n\
    E   assert 0\n----------------------------- Captured stdout call -----------------------------\n\
    running 4 tests\n9 passed in 0.01s\n=========================== short test summary info ============================\n\
    FAILED tests/test_a.py::test_b\n\
    ======= 1 failed, 1 passed, 1 skipped, 1 deselected, 1 xfailed, 2 warnings in 0.02s =======\n";

/// Runner, output, and its counts: passed, failed, skipped, unfinished.
type Row = (TestRunner, &'static str, [u64; 4]);

const ROWS: &[Row] = &[
    (TestRunner::Libtest, CARGO, [4, 0, 1, 0]),
    (TestRunner::Libtest, CARGO_FAILED, [1, 1, 1, 0]),
    (TestRunner::Libtest, "\nrunning 1 test\n", [0, 0, 0, 1]),
    (TestRunner::Libtest, "\nrunning 0 tests\n", [0, 0, 0, 1]),
    (
        TestRunner::Libtest,
        "\nrunning 5 tests\n\nrunning 2 tests\n\ntest result: ok. 2 passed; 0 failed\n",
        [2, 0, 0, 5],
    ),
    (
        TestRunner::Libtest,
        "running 2 tests\nrunning 3 tests\nx test result: ok. 3 passed; 0 failed; 0 ignored\ntest result: ok. 2 passed; 0 failed\n",
        [5, 0, 0, 0],
    ),
    (
        TestRunner::Libtest,
        "running 3 tests\ntest result: ok. 1 passed; 0 failed\n",
        [1, 0, 0, 2],
    ),
    (
        TestRunner::Libtest,
        "running 2 tests\n\x1b[32m\ntest result: \x1b[32mok\x1b[0m. 1 passed; 0 failed; 0 ignored; 1 measured; 3 filtered out\n",
        [2, 0, 0, 0],
    ),
    (
        TestRunner::Nextest,
        "    Starting 4 tests across 2 binaries (1 test skipped)\n        PASS [   0.003s] r tests::a\n------------\n     Summary [   0.004s] 4 tests run: 3 passed (1 slow, 1 flaky), 1 failed, 1 skipped\n",
        [3, 1, 1, 0],
    ),
    (
        TestRunner::Nextest,
        "    Starting 1 test across 1 binary\nrunning 1 test\ntest result: FAILED. 0 passed; 1 failed\n     Summary [   0.004s] 1 test run: 0 passed, 1 timed out, 0 skipped\n",
        [0, 1, 0, 0],
    ),
    (
        TestRunner::Nextest,
        "    Starting 4 tests across 2 binaries\n",
        [0, 0, 0, 4],
    ),
    (TestRunner::Unittest, UNITTEST, [0, 2, 3, 0]),
    (
        TestRunner::Unittest,
        "s\n-----\nRan 1 test in 0.000s\n\nOK (skipped=1)\n",
        [0, 0, 1, 0],
    ),
    (
        TestRunner::Unittest,
        "...\n-----\nRan 3 tests in 0.001s\n\nOK\n-----\nRan 2 tests in 0.1s\n\nFAILED (failures=1, errors=1)\n",
        [3, 2, 0, 0],
    ),
    (
        TestRunner::Unittest,
        "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n",
        [0, 0, 0, 0],
    ),
    (
        TestRunner::Unittest,
        "Ran 3 tests in 0.001s\n",
        [0, 0, 0, 3],
    ),
    (TestRunner::Pytest, PYTEST, [1, 1, 2, 0]),
    (
        TestRunner::Pytest,
        "...\n3 passed in 65.10s (0:01:05)\n",
        [3, 0, 0, 0],
    ),
    (
        TestRunner::Pytest,
        "collected 3 items\n\n!!! _pytest.outcomes.Exit: x !!!\n==== 1 passed in 0.01s ====\n",
        [1, 0, 0, 2],
    ),
    (
        TestRunner::Pytest,
        "collected 3 items\n\ntests/test_a.py .",
        [0, 0, 0, 3],
    ),
    (
        TestRunner::Pytest,
        "collected 0 items / 1 error\n==== 1 error in 0.10s ====\n",
        [0, 1, 0, 0],
    ),
    (
        TestRunner::Pytest,
        "collected 3 items\n==== 3 tests collected in 0.01s ====\n",
        [0, 0, 0, 0],
    ),
    (
        TestRunner::GoPackages,
        "ok  \texample/a\t0.003s\nok  \texample/b\t(cached)\n?   \texample/c\t[no test files]\nFAIL\texample/d\t0.004s\nFAIL\n",
        [2, 1, 0, 0],
    ),
    (
        TestRunner::GoTests,
        "=== RUN   TestA\n=== RUN   TestA/x\n    --- PASS: TestA/x (0.00s)\n--- PASS: TestA (0.00s)\n=== RUN   TestB\nhi--- SKIP: TestB (0.00s)\n=== RUN   TestC\nok  \ta\t0.003s\n",
        [2, 0, 1, 1],
    ),
    (
        TestRunner::Jest,
        "Test Suites: 1 failed, 1 total\nTests:       1 failed, 1 skipped, 1 todo, 2 passed, 5 total\nSnapshots:   0 total\n",
        [2, 1, 2, 0],
    ),
    (
        TestRunner::Vitest,
        " Test Files  1 failed (1)\n      Tests  1 failed | 2 passed | 1 skipped (4)\n",
        [2, 1, 1, 0],
    ),
    (
        TestRunner::Mocha,
        "  suite\n    \u{2713} a\n\n  3 passing (5ms)\n  1 pending\n  2 failing\n\n  1) suite\n",
        [3, 2, 1, 0],
    ),
    (TestRunner::Node, NODE, [2, 0, 2, 0]),
    (
        TestRunner::Node,
        "\u{2714} a (0.5ms)\n\u{2139} tests 1\n\u{2139} suites 0\n\u{2139} pass 1\n\u{2139} fail 0\n\u{2139} cancelled 0\n",
        [1, 0, 0, 0],
    ),
    (TestRunner::Node, NODE_ENDED, [0, 0, 0, 0]),
    (
        TestRunner::Tap,
        "1..4\nok 1 - a\nnot ok 2 - b\nok 3 # skip why\nnot ok 4 - d # TODO later\n",
        [1, 1, 2, 0],
    ),
    (TestRunner::Tap, "TAP version 13\nok 1 - a\n", [1, 0, 0, 1]),
    (TestRunner::Tap, "1..3\nok 1 - a\n", [1, 0, 0, 2]),
    (
        TestRunner::Ctest,
        "1/3 Test #1: a ...............   Passed    0.01 sec\n2/3 Test #2: b ...............***Skipped   0.01 sec\n3/3 Test #3: c ...............***Failed    0.01 sec\n\n67% tests passed, 1 tests failed out of 3\n",
        [1, 1, 1, 0],
    ),
];

fn exit(code: i32) -> GateEnd {
    GateEnd::Exited(code)
}

/// A row with failures is that of a failed run.
fn read(output: &str, failed: u64) -> TestTally {
    TestTally::read(&run_of("x", exit(i32::from(failed > 0)), output, ""))
}

fn counts([passed, failed, skipped, unfinished]: [u64; 4]) -> TestCounts {
    TestCounts {
        passed,
        failed,
        skipped,
        unfinished,
    }
}

#[test]
fn every_runner_is_recognised_uniquely() {
    for (runner, output, expected) in ROWS {
        let mut runners = read(output, expected[1]).runners;
        if *runner == TestRunner::GoTests {
            runners.remove(&TestRunner::GoPackages);
        }
        assert_eq!(
            runners,
            BTreeMap::from([(*runner, counts(*expected))]),
            "{output}"
        );
    }
    let without: Vec<_> = readers().into_iter().map(|(runner, _)| runner).collect();
    assert!(
        without
            .iter()
            .all(|runner| ROWS.iter().any(|(row, ..)| row == runner)),
        "{without:?}"
    );
}

#[test]
fn runner_counts_are_separate_and_summed() {
    let run = run_of(
        "make test",
        exit(0),
        &format!("{CARGO}{NODE}"),
        "Ran 2 tests in 0.1s\n\nOK\n",
    );
    let tally = TestTally::read(&run);
    assert_eq!(tally.basis, TallyBasis::Whole);
    let expected = [
        (TestRunner::Libtest, counts([4, 0, 1, 0])),
        (TestRunner::Node, counts([2, 0, 2, 0])),
        (TestRunner::Unittest, counts([2, 0, 0, 0])),
    ];
    assert_eq!(tally.runners, BTreeMap::from(expected));
    let second_test_tally = TestTally::read(&run_of("x", exit(0), "running 1 test\n", CARGO));
    assert_eq!(
        second_test_tally.runners[&TestRunner::Libtest],
        counts([4, 0, 1, 1])
    );
}

#[test]
fn output_without_counts_has_no_tally() {
    for output in [
        "",
        "running tests\nrunning -1 tests\nrunning 1 tests now\nrunning 9999999999999999999999 tests\nrunning \u{663} tests\n",
        "test result: ok\ntest result: ok. many passed; few failed\ntest result: ok. 5 passed\n",
        "1..10\nok\nok then\nokay 1\n",
        "OK\nOK (skipped=1)\nFAILED\n",
        "in 5s\n3 passed in no time\n3 apples in 2s\n= 3 passed, 4 pears in 1s =\n",
        "3 failing\n2 pending\n",
        "# pass 3\n# fail 1\n",
        "--- FAIL: TestX (0.00s)\n",
        "Tests: are good\nTests:       2 passed\nTests  are good (3)\nok\t\nok \t \n",
        "% tests passed, x tests failed out of y\n",
    ] {
        assert_eq!(read(output, 0), TestTally::default(), "{output}");
    }
}

#[test]
fn hostile_output_neither_overflows_nor_takes_forever() {
    let most = "running 999999999 tests\ntest result: ok. 999999999 passed; 999999999 failed\n"
        .repeat(20_000);
    assert!(read(&most, 0).runners[&TestRunner::Libtest].passed > 1_000_000_000_000);
    for piece in [
        "test result: ",
        "1 passed; ",
        "--- PASS: ",
        "\x1b[",
        " in 1s",
        "= ",
        "ok 1 - # ",
        "1..",
        "1 passed, ",
        "(",
        "\r",
        "\0",
    ] {
        let long = piece.repeat(300_000 / piece.len());
        let _ = read(&long, 0);
        let _ = read(&format!("collected 3 items{long}\n{long} in 1s"), 1);
        let _ = read(&format!("test result: ok. {long}"), 0);
    }
}

fn before(output: &str, passed: bool) -> GateBefore {
    let run = run_of("x", exit(i32::from(!passed)), output, "");
    let tally = TestTally::read(&run);
    GateBefore {
        id: "unit".into(),
        passed,
        tally,
        ..GateBefore::default()
    }
}

fn judged(before: Option<GateBefore>, tests: TestFilePolicy, output: &str) -> Vec<(String, Level)> {
    let gates: Vec<_> = before.into_iter().collect();
    let baseline = Baseline {
        gates: &gates,
        tests,
        ..Baseline::default()
    };
    let verdict = judge_run_after(&run_of("x", exit(0), output, ""), &baseline).verdict;
    codes(&verdict)
        .into_iter()
        .map(|(code, level)| (code.to_owned(), level))
        .collect()
}

fn unittest(ran: u64, end: &str) -> String {
    format!("Ran {ran} tests in 0.001s\n\n{end}\n")
}

#[test]
fn tests_that_ran_before_have_to_run_still() {
    let one = |code: &str, level| vec![(code.to_owned(), level)];
    let failed = || {
        Some(before(
            &unittest(10, "FAILED (failures=1, skipped=2)"),
            false,
        ))
    };
    let fixed = |output: &str| judged(failed(), TestFilePolicy::Fixed, output);
    assert_eq!(fixed(&unittest(10, "OK (skipped=2)")), []);
    assert_eq!(
        fixed(&unittest(14, "OK (skipped=2)")),
        [],
        "more tests are fine"
    );
    assert_eq!(
        fixed(&unittest(10, "OK (skipped=3)")),
        one("verify-fewer-tests", Level::Error)
    );
    assert_eq!(
        fixed(&unittest(9, "OK (skipped=2)")),
        one("verify-fewer-tests", Level::Error)
    );
    assert_eq!(
        fixed(&unittest(11, "OK (skipped=3)")),
        one("verify-more-skipped", Level::Error)
    );
    assert_eq!(
        fixed(&unittest(20, "OK (skipped=3)")),
        one("verify-more-skipped", Level::Warning),
        "it stopped early"
    );
    assert_eq!(
        fixed("all is well\n"),
        one("verify-tally-missing", Level::Error)
    );
    assert_eq!(
        fixed("3 passed in 0.01s\n"),
        one("verify-tally-missing", Level::Error)
    );
    assert_eq!(
        fixed("Ran 9 tests in 0.001s\n"),
        one("verify-tests-unfinished", Level::Error)
    );
    let passed = Some(before(&unittest(3, "OK"), true));
    assert_eq!(
        judged(
            passed,
            TestFilePolicy::Fixed,
            &unittest(20, "OK (skipped=3)")
        ),
        one("verify-more-skipped", Level::Error)
    );

    let editable = |output: &str| judged(failed(), TestFilePolicy::Editable, output);
    assert_eq!(
        editable(&unittest(9, "OK (skipped=2)")),
        one("verify-fewer-tests", Level::Warning)
    );
    assert_eq!(
        editable(&unittest(11, "OK (skipped=3)")),
        one("verify-more-skipped", Level::Warning)
    );
    assert_eq!(
        editable("3 passed in 0.01s\n"),
        one("verify-tally-missing", Level::Warning)
    );
    assert_eq!(
        editable("all is well\n"),
        one("verify-tally-missing", Level::Error)
    );
    assert_eq!(
        editable("Ran 9 tests in 0.001s\n"),
        one("verify-tests-unfinished", Level::Error)
    );
}

#[test]
fn missing_baseline_requires_only_completion() {
    let compile_error = || {
        Some(before(
            "error[E0425]: cannot find value `x` in this scope\n",
            false,
        ))
    };
    assert_eq!(
        judged(compile_error(), TestFilePolicy::Fixed, "nothing\n"),
        []
    );
    assert_eq!(judged(compile_error(), TestFilePolicy::Fixed, CARGO), []);
    let unfinished = [("verify-tests-unfinished".to_owned(), Level::Error)];
    assert_eq!(
        judged(compile_error(), TestFilePolicy::Fixed, "running 1 test\n"),
        unfinished
    );
    assert_eq!(
        judged(None, TestFilePolicy::Editable, "running 1 test\n"),
        unfinished
    );
    let crashed = Some(before("running 1 test\n", false));
    assert_eq!(
        judged(crashed, TestFilePolicy::Fixed, "running 1 test\n"),
        unfinished
    );
    let usual = Some(before("running 1 test\n", true));
    let noted = [("verify-tests-unfinished".to_owned(), Level::Warning)];
    assert_eq!(
        judged(usual, TestFilePolicy::Fixed, "running 1 test\n"),
        noted
    );
}

#[test]
fn failed_tests_override_exit_code() {
    let error = [("verify-tests-failed".to_owned(), Level::Error)];
    let counts = unittest(3, "FAILED (failures=1)");
    // Code under test can forge the runner's last line; the headings remain.
    let headed = format!(
        "{}\nFAIL: test_a (t.T.test_a)\n{}\n\n{}",
        "=".repeat(70),
        "-".repeat(70),
        unittest(3, "OK")
    );
    let pytest = "collected 2 items\n==== 1 failed, 1 passed in 0.02s ====\n";
    for output in [&counts, &headed, pytest, CARGO_FAILED] {
        assert_eq!(
            judged(None, TestFilePolicy::Editable, output),
            error,
            "{output}"
        );
        for (earlier, passed) in [(output, false), (&unittest(3, "OK"), true), ("", true)] {
            let found = judged(Some(before(earlier, passed)), TestFilePolicy::Fixed, output);
            assert!(found.contains(&error[0]), "{output}: {found:?}");
        }
        // A gate that does not fail for its tests proves nothing by them, as before.
        let usual = [("verify-tests-failed".to_owned(), Level::Warning)];
        assert_eq!(
            judged(Some(before(output, true)), TestFilePolicy::Fixed, output),
            usual,
            "{output}"
        );
    }
    let more = unittest(3, "FAILED (failures=2)");
    assert_eq!(
        judged(Some(before(&counts, true)), TestFilePolicy::Fixed, &more),
        error
    );
    // Another line that begins so is not a heading.
    let printed = format!(
        "FAIL: x\n{}\nFAIL: y\n{}",
        "=".repeat(69),
        unittest(3, "OK")
    );
    assert_eq!(judged(None, TestFilePolicy::Fixed, &printed), []);
}

#[test]
fn file_without_report_is_not_a_test() {
    let one = NODE_ENDED
        .replace("/copy/a.test.mjs", "adds")
        .replace("pass 1", "pass 0")
        .replace("fail 0", "fail 1");
    let before = Some(before(&one, false));
    assert_eq!(
        judged(before.clone(), TestFilePolicy::Fixed, NODE_ENDED),
        [("verify-tally-missing".to_owned(), Level::Error)]
    );
    assert_eq!(
        judged(
            before,
            TestFilePolicy::Fixed,
            &NODE_ENDED.replace("/copy/a.test.mjs", "adds")
        ),
        []
    );
}

#[test]
fn cut_log_neither_proves_nor_excuses() {
    let mut tally = before(CARGO_FAILED, false);
    tally.tally.basis = TallyBasis::Cut;
    assert_eq!(
        judged(Some(tally), TestFilePolicy::Fixed, "quiet\n"),
        [("verify-tally-incomplete".to_owned(), Level::Warning)]
    );
    let gates = [before(CARGO_FAILED, false)];
    let mut run = run_of("x", exit(0), "noise\n", "");
    run.stdout.extent = Extent::Cut;
    let verdict = judge_run_after(
        &run,
        &Baseline {
            gates: &gates,
            ..Baseline::default()
        },
    )
    .verdict;
    assert_eq!(codes(&verdict)[0], ("verify-log-cut", Level::Info));
    assert_eq!(codes(&verdict)[1], ("verify-tally-missing", Level::Error));
    assert!(verdict.findings()[1].hint.contains("make it print less"));
    // A result whose announcement was in the lost part settles nothing.
    let cut = "test result: ok. 9 passed; 0 failed\nrunning 1 test\n";
    assert_eq!(read(cut, 0).runners[&TestRunner::Libtest].unfinished, 1);
}

#[test]
fn failed_gate_reports_no_test_difference() {
    let gates = [before(&unittest(3, "OK"), true)];
    let run = run_of("x", exit(1), "running 3 tests\n", "");
    let verdict = judge_run_after(
        &run,
        &Baseline {
            gates: &gates,
            ..Baseline::default()
        },
    )
    .verdict;
    assert_eq!(codes(&verdict), [("verify-gate-failed", Level::Error)]);
}

#[test]
fn a_tally_is_plain_json() {
    let tally = read(UNITTEST, 1);
    let text = serde_json::to_string(&tally).unwrap();
    assert_eq!(
        text,
        r#"{"basis":"whole","runners":{"unittest":{"passed":0,"failed":2,"skipped":3,"unfinished":0}}}"#
    );
    assert_eq!(serde_json::from_str::<TestTally>(&text).unwrap(), tally);
}
