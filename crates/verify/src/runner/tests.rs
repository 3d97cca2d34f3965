//! Tests of all runners: the registry, parsing of recorded reports, and runs that were not possible.
//!
//! `recorded/` has the tools' output for small projects with passing, failing and skipped tests.
//! `docs/runners.md` says which ones a tool printed and which follow its documentation.

use crucible_sandbox::{Captured, Extent};

use super::*;
use crate::gate::{GateEnd, RunnerReport};
use crate::judge::tests::run_of;
use crate::results::TestStatus::{self, Failed, Passed, Skipped};
use crate::runner::tree_view::view;
use crate::tally::TallyBasis;

/// A failed run of a command with this output and this report.
fn reported(command: &str, stdout: &str, stderr: &str, report: Option<&str>) -> GateRun {
    let mut run = run_of(command, GateEnd::Exited(1), stdout, stderr);
    run.report = report.map(|text| RunnerReport {
        runner: runner_of(&run.command).unwrap().id().to_owned(),
        bytes: text.as_bytes().to_vec(),
        extent: Extent::Whole,
    });
    run
}

fn read(run: &GateRun) -> Vec<(String, TestStatus)> {
    TestResults::read(run)
        .unwrap_or_default()
        .tests
        .into_iter()
        .collect()
}

fn expect(run: &GateRun, expected: &[(&str, TestStatus)]) {
    let read = read(run);
    let read: Vec<(&str, TestStatus)> = read
        .iter()
        .map(|(name, status)| (name.as_str(), *status))
        .collect();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(read, expected, "{}", run.command_line());
}

#[test]
fn mixed_tree_has_several_gates_in_order() {
    assert_eq!(TreeView::default().gates(), []);
    let mixed = view(&[
        ("Makefile", "test:\n\ttrue\n"),
        ("go.mod", ""),
        ("Cargo.toml", "[package]\n"),
    ]);
    let ids: Vec<String> = mixed.gates().into_iter().map(|gate| gate.id).collect();
    assert_eq!(ids, ["cargo-test", "go-test", "make-test"]);
}

#[test]
fn names_are_unique_and_detected_commands_are_known() {
    let ids: std::collections::BTreeSet<&str> =
        runners().iter().map(|runner| runner.id()).collect();
    assert_eq!(ids.len(), runners().len());
    for id in ids {
        assert!(id.parse::<crate::gate::GateId>().is_ok(), "{id}");
    }
    for (file, text, id) in [
        ("Cargo.toml", "", "cargo-test"),
        ("package.json", r#"{"scripts":{"test":"x"}}"#, "npm-test"),
        (
            "package.json",
            r#"{"devDependencies":{"vitest":"1"}}"#,
            "vitest",
        ),
        (
            "package.json",
            r#"{"devDependencies":{"jest":"1"}}"#,
            "jest",
        ),
        (
            "package.json",
            r#"{"devDependencies":{"mocha":"1"}}"#,
            "mocha",
        ),
        ("test/a.test.js", "require('node:test')", "node-test"),
        ("pytest.ini", "", "pytest"),
        ("tests/test_a.py", "import unittest", "unittest"),
        ("tox.ini", "", "tox"),
        ("noxfile.py", "", "nox"),
        ("go.mod", "", "go-test"),
        ("pom.xml", "", "maven"),
        ("build.gradle.kts", "", "gradle"),
        ("CMakeLists.txt", "enable_testing()", "ctest"),
        ("Demo.sln", "", "dotnet-test"),
        (".rspec", "", "rspec"),
        ("phpunit.xml.dist", "", "phpunit"),
        ("mix.exs", "", "mix-test"),
        ("t/a.t", "", "prove"),
        ("justfile", "test:\n  ./x\n", "just-test"),
        ("Makefile", "test:\n\t./x\n", "make-test"),
    ] {
        let gates = view(&[(file, text)]).gates();
        let [gate] = gates.as_slice() else {
            panic!("{file}: {gates:?}")
        };
        assert_eq!(gate.id, id);
        assert_eq!(
            runner_of(&gate.command).map(|runner| runner.id()),
            Some(id),
            "{:?}",
            gate.command
        );
    }
    let rake = view(&[("Rakefile", ""), ("test/a_test.rb", "")]).gates();
    assert_eq!((rake.len(), rake[0].id.as_str()), (1, "minitest"));
}

#[test]
fn script_calling_another_language_is_skipped() {
    let ids = |script: &str| -> Vec<String> {
        let manifest = serde_json::json!({"scripts": {"test": script}}).to_string();
        let files = [("package.json", manifest.as_str()), ("Cargo.toml", "")];
        view(&files)
            .gates()
            .into_iter()
            .map(|gate| gate.id)
            .collect()
    };
    assert_eq!(ids("cargo test"), ["cargo-test"]);
    assert_eq!(ids("vitest run"), ["cargo-test", "npm-test"]);
}

#[test]
fn junit_of_pytest_is_read_by_node_ids() {
    let run = reported(
        "pytest -q",
        "",
        "",
        Some(include_str!("recorded/pytest.xml")),
    );
    expect(
        &run,
        &[
            ("tests/test_calc.py::TestAdd::test_pairs[1-0]", Passed),
            ("tests/test_calc.py::TestAdd::test_pairs[2-2]", Failed),
            ("tests/test_calc.py::test_skipped", Skipped),
            ("tests/test_calc.py::test_xfail", Skipped),
            ("tests/test_calc.py::test_setup_error", Failed),
            ("tests/test_calc.py::test_zero", Passed),
            ("tests/test_gone.py", Failed),
        ],
    );
}

#[test]
fn foreign_junit_uses_class_and_name() {
    let run = reported(
        "mvn test",
        "",
        "",
        Some(include_str!("recorded/surefire.xml")),
    );
    let surefire = [
        ("com.example.CartTest::totalIsRight", Passed),
        ("com.example.CartTest::discount{int}[1]", Failed),
        ("com.example.CartTest::brokenSetup", Failed),
        ("com.example.CartTest::later", Skipped),
        ("com.example.OtherTest::flaky", Passed),
    ];
    expect(&run, &surefire);
    expect(
        &reported(
            "./gradlew test",
            "",
            "",
            Some(include_str!("recorded/surefire.xml")),
        ),
        &surefire,
    );
    let run = reported(
        "vendor/bin/phpunit",
        "",
        "",
        Some(include_str!("recorded/phpunit.xml")),
    );
    expect(
        &run,
        &[
            ("CartTest::testTotal", Passed),
            ("CartTest::testDiscount with data set #0", Failed),
            ("CartTest::testLater", Skipped),
        ],
    );
    let run = reported("ctest", "", "", Some(include_str!("recorded/ctest.xml")));
    expect(
        &run,
        &[("adds", Passed), ("fails", Failed), ("later", Skipped)],
    );
    let run = reported(
        "dotnet test",
        "",
        "",
        Some(include_str!("recorded/dotnet.trx")),
    );
    expect(
        &run,
        &[
            ("Demo.CartTests.Total", Passed),
            ("Demo.CartTests.Discount(percent: 10)", Failed),
            ("Demo.CartTests.Later", Skipped),
        ],
    );
}

#[test]
fn reports_of_javascript_are_read() {
    for (command, report) in [
        ("npx jest", include_str!("recorded/jest.json")),
        ("npx vitest run", include_str!("recorded/vitest.json")),
    ] {
        let dir = command.split(' ').nth(1).unwrap();
        let name = |rest: &str| format!("{dir}/{rest}");
        let names = [
            "a.test.js > group > one",
            "a.test.js > group > two",
            "a.test.js > group > three",
        ]
        .map(name);
        let (four, missing) = (name("a.test.js > group > four"), name("b.test.js"));
        let run = reported(command, "", "", Some(report));
        expect(
            &run,
            &[
                (&names[0], Passed),
                (&names[1], Failed),
                (&names[2], Skipped),
                (&four, Skipped),
                (&missing, Failed),
            ],
        );
    }
    expect(
        &reported("npx mocha", include_str!("recorded/mocha.stdout"), "", None),
        &[
            ("top", Passed),
            ("group > one", Passed),
            ("group > two", Failed),
            ("group > three", Skipped),
            ("group > slow", Passed),
            ("group > inner > \"before all\" hook for \"deep\"", Failed),
        ],
    );
    expect(
        &reported(
            "node --test",
            "",
            "",
            Some(include_str!("recorded/node.tap")),
        ),
        &[
            ("adds", Passed),
            ("fails", Failed),
            ("skips", Skipped),
            ("todo", Skipped),
            ("group", Failed),
            ("group > one", Passed),
            ("group > two # hash", Failed),
            ("node/b.test.js", Failed),
        ],
    );
}

/// jest and vitest write files, mocha and ava lines with counts.
#[test]
fn reports_of_script_steps_are_read() {
    let of_steps = |stdout: &str, report: &str| {
        let record = r#"{"step":{"name":"a","runs_tests":true,"is_one":true,"code":0}}"#;
        let stdout = format!("== step 1 of 1: a\n{stdout}");
        let report = format!("{report}\n{record}\n");
        let mut run = reported("npm test", &stdout, "", Some(&report));
        if let Some(report) = &mut run.report {
            report.runner = "script-steps".to_owned();
        }
        run
    };
    let file = |name: &str, status: &str| {
        format!(
            r#"{{"testResults":[{{"name":"{name}","status":"{status}","assertionResults":[{{"title":"t","status":"{status}"}}]}}]}}"#
        )
    };
    let step = ("script test step: a", Passed);
    let two = format!("{}\n{}\n", file("a.js", "passed"), file("b.js", "failed"));
    expect(
        &of_steps("", &two),
        &[("a.js > t", Passed), ("b.js > t", Failed), step],
    );
    let mocha = "> lint\n\n  group\n    ✓ one (12ms)\n    1) two\n    - three\n\n  1 passing (5ms)\n  1 pending\n  1 failing\n\n  1) group\n       two:\n     Error\n";
    expect(
        &of_steps(mocha, ""),
        &[
            ("group > one", Passed),
            ("group > two", Failed),
            ("group > three", Skipped),
            step,
        ],
    );
    let ava = "\n  ✔ one (1.2s)\n  ✘ [fail]: two\n  - [skip] three\n  ─\n\n  two\n\n  ✔ quoted\n\n  1 test failed\n  1 test skipped\n";
    expect(
        &of_steps(ava, ""),
        &[("one", Passed), ("two", Failed), ("three", Skipped), step],
    );
    // Counts that differ show another reporter or a second run.
    for other in [
        mocha.replace("1 passing", "2 passing"),
        format!("{mocha}{mocha}"),
        ava.replace("1 test failed", "2 tests failed"),
        format!("{ava}{ava}"),
    ] {
        expect(&of_steps(&other, ""), &[step]);
    }
}

#[test]
fn output_of_native_tests_is_read() {
    let gtest = "[==========] Running 3 tests\n[ RUN      ] A.b\n[       OK ] A.b (0 ms)\n[ RUN      ] A.c\nnoise\n[  FAILED  ] A.c, where x (1 ms)\n\
        [  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.c, where x\n[ RUN      ] A.b\n[       OK ] A.b (0 ms)\n[ RUN      ] A.d\nSegmentation fault\n";
    expect(
        &reported("make test", gtest, "", None),
        &[
            ("A.b", Passed),
            ("A.c", Failed),
            ("A.b #2", Passed),
            ("A.d", Failed),
        ],
    );
    let automake = "Making check in lib\nPASS: a\nFAIL: b\n# TOTAL: 2\nMaking check in .\nXFAIL: c\nSKIP: d\n# TOTAL: 2\n";
    expect(
        &reported("make check", automake, "", None),
        &[
            ("lib/a", Passed),
            ("lib/b", Failed),
            ("c", Skipped),
            ("d", Skipped),
        ],
    );
    let lacking = automake.replace("PASS: a\n", "");
    assert_eq!(
        TestResults::read(&reported("make check", &lacking, "", None)),
        None
    );
}

#[test]
fn output_of_cargo_and_nextest_is_read() {
    let (out, err) = (
        include_str!("recorded/cargo.stdout"),
        include_str!("recorded/cargo.stderr"),
    );
    let cargo = [
        ("demo_a::tests::adds", Failed),
        ("demo_a::tests::zero", Passed),
        ("demo_a::tests::later", Skipped),
        ("demo_a::tests::panics", Passed),
        ("demo_a #2::in_main", Passed),
        ("it::works", Passed),
        ("it::dies", Failed),
        ("src/lib.rs - add", Failed),
        ("src/lib.rs - add - compile", Passed),
    ];
    expect(&reported("cargo test", out, err, None), &cargo);
    expect(&reported("sh check.sh", out, err, None), &cargo);
    // The target is unknown if a list is missing, so names have none.
    let (_, less) = out.split_once("test result: ").unwrap();
    let names: Vec<String> = read(&reported("cargo test", less, err, None))
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        names,
        [
            "dies",
            "in_main",
            "src/lib.rs - add",
            "src/lib.rs - add - compile",
            "works"
        ]
    );
    expect(
        &reported(
            "cargo nextest run",
            "",
            include_str!("recorded/nextest.stderr"),
            None,
        ),
        &[
            ("demo-a tests::adds", Failed),
            ("demo-a tests::zero", Passed),
            ("demo-a tests::later", Skipped),
            ("demo-a tests::panics", Passed),
            ("demo-a::bin/demo-a in_main", Passed),
            ("demo-a::it works", Passed),
            ("demo-a::it dies", Failed),
        ],
    );
    let retried = "  TRY 1 FAIL [   0.010s] (1/2) a t\n  TRY 2 PASS [   0.010s] (1/2) a t\n     SIGABRT [   0.010s] (2/2) a u\n";
    expect(
        &reported("cargo nextest run", "", retried, None),
        &[("a t", Passed), ("a u", Failed)],
    );
}

#[test]
fn output_of_unittest_go_and_prove_is_read() {
    let run = reported(
        "python3 -m unittest",
        "",
        include_str!("recorded/unittest.stderr"),
        None,
    );
    expect(
        &run,
        &[
            ("test_u.T.test_a", Passed),
            ("test_u.T.test_b", Failed),
            ("test_u.T.test_c", Skipped),
            ("test_u.T.test_d", Skipped),
            ("test_u.T.test_print", Passed),
            ("test_u.T.test_sub", Failed),
            ("test_v", Failed),
        ],
    );
    // Before Python 3.11 the class had no method; a test's log precedes its result.
    let old = "test_a (t.T) ... ok\ntest_b (t.T) ... a warning\nok\nsetUpClass (t.U) ... ERROR\n";
    let run = reported("python3 -m unittest", "", old, None);
    expect(
        &run,
        &[
            ("t.T.test_a", Passed),
            ("t.T.test_b", Passed),
            ("t.U.setUpClass", Failed),
        ],
    );
    let run = reported(
        "go test ./...",
        "",
        "",
        Some(include_str!("recorded/go.json")),
    );
    expect(
        &run,
        &[
            ("example.com/x.TestAdd", Failed),
            ("example.com/x.TestSub", Passed),
            ("example.com/x.TestSub/a_b", Passed),
            ("example.com/x.TestSkip", Skipped),
            ("example.com/x.ExampleAdd", Passed),
            ("example.com/x/b", Failed),
        ],
    );
    let run = reported(
        "prove -r t",
        include_str!("recorded/prove.stdout"),
        "",
        None,
    );
    expect(
        &run,
        &[
            ("t/a.t > one", Passed),
            ("t/a.t > two", Failed),
            ("t/a.t > test 3", Skipped),
            ("t/a.t > three", Skipped),
            ("t/a.t > inner", Passed),
            ("t/a.t > inner > deep", Passed),
            ("t/b.t > test 1", Passed),
        ],
    );
}

#[test]
fn output_of_ruby_and_elixir_is_read() {
    let run = reported("rspec", "", "", Some(include_str!("recorded/rspec.json")));
    expect(
        &run,
        &[
            ("spec/cart_spec.rb > Cart adds", Passed),
            ("spec/cart_spec.rb > Cart discounts", Failed),
            ("spec/cart_spec.rb > Cart waits", Skipped),
        ],
    );
    let run = reported(
        "bundle exec rake test",
        include_str!("recorded/minitest.stdout"),
        "",
        None,
    );
    expect(
        &run,
        &[
            ("CartTest#test_total", Passed),
            ("CartTest#test_discount", Failed),
            ("CartTest#test_later", Skipped),
            ("CartTest#test_broken", Failed),
        ],
    );
    let run = reported("mix test", include_str!("recorded/mix.stdout"), "", None);
    expect(
        &run,
        &[
            ("CartTest test adds", Passed),
            ("CartTest test discounts", Failed),
            ("CartTest test later", Skipped),
        ],
    );
}

#[test]
fn go_report_is_shown_as_without_json() {
    let text = go::Go
        .readable_output(include_str!("recorded/go.json"))
        .unwrap();
    assert!(
        text.contains("b/b.go:2:12: undefined: undefined\n"),
        "{text}"
    );
    assert!(
        text.contains("    x_test.go:3: bad\n--- FAIL: TestAdd (0.00s)\n"),
        "{text}"
    );
    assert!(text.contains("FAIL\texample.com/x\t0."), "{text}");
    assert!(
        !text.contains("noise") && !text.contains("=== RUN") && !text.contains('{'),
        "{text}"
    );
}

#[test]
fn output_without_single_tests_has_no_results() {
    for (command, output) in [
        (
            "cargo test --quiet",
            "running 2 tests\n..\ntest result: ok. 2 passed; 0 failed",
        ),
        ("pytest -q", "2 passed in 0.01s"),
        ("go test ./...", "ok  \ta\t0.003s"),
        ("npm test", "> x\n> jest\n\nTests: 1 passed, 1 total"),
        ("make", "cc -o a a.c\nok"),
    ] {
        assert_eq!(
            TestResults::read(&reported(command, output, output, None)),
            None,
            "{command}"
        );
    }
}

#[test]
fn damaged_report_is_marked_cut() {
    let full_text = include_str!("recorded/pytest.xml");
    let basis = |text: &str| {
        TestResults::read(&reported("pytest", "", "", Some(text))).map(|results| results.basis)
    };
    assert_eq!(basis(full_text), Some(TallyBasis::Whole));
    assert_eq!(
        basis(&full_text[..full_text.len() - 40]),
        Some(TallyBasis::Cut)
    );
    let deep = "<a>".repeat(300_000);
    assert_eq!(basis(&deep), None);
    let bomb =
        "<!DOCTYPE x [<!ENTITY a \"&a;&a;\">]><testsuite><testcase name=\"&a;\"/></testsuite>";
    expect(&reported("pytest", "", "", Some(bomb)), &[("&a;", Passed)]);
    let mut run = run_of(
        "cargo test",
        GateEnd::Exited(0),
        "running 1 test\ntest a ... ok\n",
        "",
    );
    run.stdout = Captured {
        extent: Extent::Cut,
        ..run.stdout
    };
    assert_eq!(TestResults::read(&run).unwrap().basis, TallyBasis::Cut);
}

mod could_not;

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn arbitrary_output_never_panics_parser(
            command in prop::sample::select(vec![
                "cargo test", "cargo nextest run", "pytest", "python3 -m unittest", "npm test", "npx jest", "npx mocha", "node --test",
                "go test ./...", "mvn test", "ctest", "dotnet test", "rspec", "rake test", "phpunit", "mix test", "prove", "make", "just", "x",
            ]),
            pieces in prop::collection::vec(prop::sample::select(vec![
                "test ", " ... ", "ok", "not ok 1", "# Subtest: é", "\n", "    ", "---", "...", "<testcase name=\"", "\"/>", "<a>", "</a>", "&#0;",
                "running 2 tests\n", "  1) ", "é", " (", ")", "[", "] ", "        PASS [ 0.1s] a b", "\u{1b}[", "E   ", "Error: ", "ImportError while loading conftest",
                "0x", "0123456789", ": No module named ", " s = ", "#", "\\", "{\"Action\":\"output\",\"Test\":\"", "\"}", "'", "`", ".py:1: in ",
            ]), 0..60),
        ) {
            let text: String = pieces.concat();
            let mut run = reported(command, &text, &text, None);
            run.report = runner_of(&run.command).map(|runner| RunnerReport {
                runner: runner.id().to_owned(),
                bytes: text.clone().into_bytes(),
                extent: Extent::Whole,
            });
            for name in TestResults::read(&run).unwrap_or_default().tests.keys() {
                prop_assert!(!name.chars().any(char::is_control));
            }
            let _ = could_not_run(&run);
            runner_of(&run.command).and_then(|runner| runner.readable_output(&text));
        }
    }
}

#[test]
fn other_commands_for_the_same_tests_are_known() {
    let others = |files: &[(&str, &str)]| -> Vec<String> {
        let gates = view(files).gates();
        let all = gates.iter().flat_map(|gate| &gate.alternatives);
        all.map(|words| words.join(" ")).collect()
    };
    let workspace = ("Cargo.toml", "[package]\nname = \"a\"\n[workspace]\n");
    assert_eq!(others(&[workspace]), ["cargo test --offline --quiet"]);
    assert_eq!(
        others(&[("Cargo.toml", "[package]\nname = \"a\"\n")]),
        [""; 0]
    );
    let unittest = "python3 -m unittest discover";
    assert_eq!(others(&[("pytest.ini", "")]), [unittest]);
    for (changed, expected) in [
        ("src", format!("{unittest} -s src")),
        ("{toxinidir}/src", format!("{unittest} -s src")),
        ("../x", unittest.to_owned()),
        ("/x", unittest.to_owned()),
        ("a b", unittest.to_owned()),
    ] {
        let settings = format!("[testenv]\nchangedir = {changed}\ncommands = stestr run\n");
        assert_eq!(others(&[("tox.ini", &settings)]), [expected], "{changed}");
    }
}
