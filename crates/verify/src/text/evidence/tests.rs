//! Traces and summaries as the tools print them.

use super::*;

fn frames(log: &str) -> Vec<String> {
    FailureEvidence::read(log)
        .frames
        .into_iter()
        .map(|frame| {
            let function = frame.function.unwrap_or_default();
            format!("{} {}:{}:{function}", frame.depth, frame.file, frame.line)
        })
        .collect()
}

#[test]
fn python_traces_are_read_from_the_end() {
    let log = "Traceback (most recent call last):\n  File \"<copy>/t.py\", line 6, in test_c\n    add(1)\n  \
               File \"<copy>/src/p/core.py\", line 9, in add\n    raise\nTypeError: add() missing 'width'\n\n\
               Traceback (most recent call last):\n  File \"<home>/lib/python3.11/unittest/case.py\", line 3, in run\n  \
               File \"<home>/lib/python3.11/site-packages/p/io.py\", line 4, in load\n";
    assert_eq!(
        frames(log),
        [
            "0 p/io.py:4:load",
            "0 src/p/core.py:9:add",
            "1 t.py:6:test_c"
        ]
    );
}

#[test]
fn pytest_sections_are_one_trace_each() {
    let log = "____ test_a ____\n\n    def test_a():\n>       f()\n\ntests/test_a.py:3: \n_ _ _\n\n    def f():\n>       raise X\n\n\
               src/p/f.py:30: X\n____ test_b ____\n\ntests/test_b.py:7: in test_b\n    g()\nsrc/p/g.py:2: in g\n    1/0\n\
               ==== short test summary info ====\nFAILED tests/test_a.py::test_a - X\nFAILED tests/test_b.py::T::test_b[1-2]\n";
    assert_eq!(
        frames(log),
        [
            "0 src/p/f.py:30:",
            "0 src/p/g.py:2:g",
            "1 tests/test_a.py:3:",
            "1 tests/test_b.py:7:test_b"
        ]
    );
    assert_eq!(
        FailureEvidence::read(log).tests,
        ["tests/test_a.py::test_a", "tests/test_b.py::T::test_b[1-2]"]
    );
}

#[test]
fn passing_test_lines_are_not_evidence() {
    let log = "tests/test_a.py:3: AssertionError\nSKIPPED [1] tests/test_b.py:7: rich not installed\nXFAIL tests/test_c.py:9: y\n";
    assert_eq!(frames(log), ["0 tests/test_a.py:3:"]);
}

#[test]
fn report_names_failing_tests_if_output_lacks_them() {
    let mut evidence = FailureEvidence::read("1 failing\n");
    evidence.add_tests(["Receiver > emits an error"].into_iter());
    evidence.add_tests(["other"].into_iter());
    assert_eq!(evidence.tests, ["Receiver > emits an error"]);
}

#[test]
fn javascript_go_rust_and_java_frames_are_read() {
    let js = "not ok 1 - adds\n  stack: |-\n    add (file://<copy>/lib/add.js:3:9)\n    at Object.run (<copy>/lib/run.js:8:1)\n    \
              at async new Test (node:internal/test:1:2)\n    at x (<copy>/node_modules/m/i.js:1:1)\n";
    assert_eq!(frames(js), ["0 lib/add.js:3:", "1 lib/run.js:8:run"]);
    assert_eq!(FailureEvidence::read(js).tests, ["adds"]);
    let go = "--- FAIL: TestAdd (<time>)\n    add_test.go:9: Add(1, 2) = 3, want 4\npanic: boom\n\ngoroutine 1 [running]:\n\
              example.com/m.(*Router).Walk(0x1)\n\t<copy>/mux.go:12 +0x1d\n./mux.go:3:5: undefined: pkg.Missing\n";
    assert_eq!(
        frames(go),
        ["0 add_test.go:9:", "0 mux.go:12:Walk", "1 mux.go:3:"]
    );
    let read = FailureEvidence::read(go);
    assert_eq!(
        (read.tests, read.names),
        (vec!["TestAdd".to_owned()], vec!["pkg.Missing".to_owned()])
    );
    let rust = "error[E0425]: cannot find function `helper` in this scope\n --> src/lib.rs:3:5\n\n\
                thread 'tests::a' panicked at src/a.rs:9:5:\nstack backtrace:\n   0: rust_begin_unwind\n             \
                at /rustc/0/library/std/src/panicking.rs:1:1\n   1: krate::a::mend\n             at ./src/a.rs:9:5\n\
                test tests::a ... FAILED\n";
    assert_eq!(
        frames(rust),
        ["0 src/a.rs:9:", "0 src/lib.rs:3:", "1 src/a.rs:9:mend"]
    );
    assert_eq!(FailureEvidence::read(rust).names, ["helper"]);
    let java = "java.lang.IllegalStateException: x\n\tat com.acme.Parser.parse(Parser.java:12)\n";
    assert_eq!(frames(java), ["0 Parser.java:12:parse"]);
}

#[test]
fn order_of_output_changes_nothing() {
    let one = "____ a ____\nt.py:1: in a\nsrc/x.py:2: E\n";
    let two = "____ b ____\nt.py:9: in b\nsrc/x.py:5: E\n";
    let ends = "FAILED t.py::a\nFAILED t.py::b\n";
    let back = "FAILED t.py::b\nFAILED t.py::a\n";
    let read = FailureEvidence::read(&format!("{one}{two}====\n{ends}"));
    assert_eq!(
        read,
        FailureEvidence::read(&format!("{two}{one}====\n{back}"))
    );
    assert_eq!(read.frames.len(), 4);
}

#[test]
fn hostile_output_is_bounded() {
    let many: String = (0..50_000)
        .map(|n| format!("FAILED t.py::t{n}\n  at f{n} (<copy>/a{n}.js:{n}:1)\n"))
        .collect();
    let read = FailureEvidence::read(&many);
    assert_eq!((read.tests.len(), read.frames.len()), (LIMIT, LIMIT));
    for unusual_text in [
        "",
        ":",
        "a.py:",
        ".py:1",
        "a.py:99999999999999999999",
        "File \"",
        "é.py:1:é",
        "undefined: ",
        "● ",
    ] {
        let _ = FailureEvidence::read(unusual_text);
    }
    let _ = FailureEvidence::read(&"a.b:1:".repeat(200_000));
}
