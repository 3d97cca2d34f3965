//! Projects in C whose gate is a makefile: what of them a change may touch, and what a broken build means. With the real make and cc.

use crucible_testkit::{RepoBuilder, TestRepo};

use crate::support::{Fixture, Ran, answering, codes, id_of, whole_file};

const CHECKS: &str = "#include <assert.h>\n#include \"add.h\"\n\nint main(void) {\n    assert(add(2, 3) == 5);\n    return 0;\n}\n";
const HEADER: &str = "int add(int a, int b);\n";
const MAKEFILE: &str = "test: ; cc checks.c add.c -o checks && ./checks\n";
const MAKE: &str = "[gates.make]\ncommand = [\"make\", \"test\"]\n";
const SCRIPT: &str = "[gates.script]\ncommand = [\"sh\", \"sum.sh\"]\n";
const SUM: &str = "printf 'int add(int, int); int main(void) { return add(2, 3) != 5; }' > sum.c && cc sum.c add.c -o sum && ./sum\n";

fn add(operator: char) -> String {
    format!(
        "#include <assert.h>\n#include \"add.h\"\n\nint add(int a, int b) {{\n    assert(a != -1);\n    return a {operator} b;\n}}\n"
    )
}

fn project(makefile: &str) -> RepoBuilder {
    RepoBuilder::new().files([
        (".crucible/config.toml", MAKE),
        ("Makefile", makefile),
        ("checks.c", CHECKS),
        ("add.c", add('-').as_str()),
        ("add.h", HEADER),
    ])
}

fn start(fixture: &Fixture, repo: &TestRepo, goal: &str) -> Ran {
    let call = fixture.call([
        "run",
        "start",
        goal,
        "--json",
        "--max-iterations",
        "1",
        "--repo",
    ]);
    call.arg(repo.path()).run()
}

const GOAL: &str = "add in add.c must return the sum of a and b";

#[test]
fn change_of_the_test_program_is_refused() {
    let easy = CHECKS.replacen("== 5", "== -1", 1);
    let variables = "SRC = $(wildcard *.c)\nBIN = ./checks\ntest: $(BIN)\n\t$(BIN)\n$(BIN): $(SRC:.c=.o)\n\t$(CC) $^ -o $@\n";
    for makefile in [MAKEFILE, variables] {
        let repo = project(makefile).build();
        let server = answering(whole_file("checks.c", &easy));
        let fixture = Fixture::with(&server);
        let ran = start(&fixture, &repo, "checks.c and add.c must agree on add").exits(1);
        assert!(
            ran.stderr.contains("a gate consists of this file"),
            "{}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("to allow it: ") && ran.stderr.contains("--allow checks.c"),
            "{}",
            ran.stderr
        );
        let status = ran.json();
        assert_eq!(status["attempts"][0]["end"], "refused", "{status:#}");
        assert_eq!(
            codes(&status, 1),
            ["patch-path-outside-scope", "patch-path-denied"]
        );
    }
}

#[test]
fn change_of_the_source_that_asserts_lands() {
    let with_app = format!("all: app\napp: main.o add.o\n{MAKEFILE}");
    for makefile in [MAKEFILE, with_app.as_str()] {
        let repo = project(makefile)
            .file("main.c", "int main(void) { return 0; }\n")
            .build();
        let server = answering(whole_file("add.c", &add('+')));
        let fixture = Fixture::with(&server);
        let status = start(&fixture, &repo, GOAL).ok().json();
        assert_eq!(status["state"], "verified");
        fixture.run(["run", "land", &id_of(&status)]).ok();
        assert!(
            std::fs::read_to_string(repo.path().join("add.c"))
                .unwrap()
                .contains("a + b")
        );
    }
}

#[test]
fn program_that_a_script_tests_may_change() {
    let main = |operator: char| {
        format!(
            "#include <stdio.h>\n#include <stdlib.h>\n\nint main(int n, char **v) {{\n    if (n < 3) return 2;\n    printf(\"%d\\n\", atoi(v[1]) {operator} atoi(v[2]));\n    return 0;\n}}\n"
        )
    };
    let makefile = "all: app\napp: main.o\n\t$(CC) -o $@ $^\ntest: app\n\tsh test.sh\n";
    let repo = RepoBuilder::new()
        .file("Makefile", makefile)
        .file("main.c", main('-'))
        .file(
            "test.sh",
            "out=$(./app 2 3)\n[ \"$out\" = 5 ] || { echo \"got $out\"; exit 1; }\n",
        )
        .build();
    let server = answering(whole_file("main.c", &main('+')));
    let fixture = Fixture::with(&server);
    let status = start(&fixture, &repo, "app in main.c must print the sum")
        .ok()
        .json();
    assert_eq!(status["state"], "verified");
}

#[test]
fn permitted_edit_of_gate_file_is_warned() {
    let more = CHECKS.replacen("    return", "    assert(add(0, 0) == 0);\n    return", 1);
    let answer = format!(
        "{}\n{}",
        whole_file("add.c", &add('+')),
        whole_file("checks.c", &more)
    );
    let repo = project(MAKEFILE)
        .file(".crucible/config.toml", format!("{MAKE}{SCRIPT}"))
        .file("sum.sh", SUM)
        .build();
    let server = answering(answer);
    let fixture = Fixture::with(&server);
    let call = fixture.call(["run", "start", GOAL, "--json", "--max-iterations", "1"]);
    let call = call
        .args(["--file", "add.c", "--file", "checks.c", "--repo"])
        .arg(repo.path());
    let status = call.run().ok().json();
    assert_eq!(status["state"], "verified");
    let report =
        std::fs::read_to_string(fixture.runs()[0].join("artifacts/verify_report.json")).unwrap();
    // A script may run any program, so it is warned of as well.
    assert_eq!(
        report.matches("\"verify-gate-touched\"").count(),
        2,
        "{report}"
    );
}

/// A makefile whose warnings are errors, with a warning in the checks.
fn broken() -> RepoBuilder {
    let checks = CHECKS.replacen(
        "assert(add",
        "float f = 1; assert(f == 1.0f); assert(add",
        1,
    );
    project("test: ; cc -Werror=float-equal checks.c add.c -o checks && ./checks\n")
        .file("checks.c", checks)
}

#[test]
fn gate_that_never_compiles_does_not_block_another() {
    let repo = broken()
        .file(".crucible/config.toml", format!("{MAKE}{SCRIPT}"))
        .file("sum.sh", SUM)
        .build();
    let server = answering(whole_file("add.c", &add('+')));
    let fixture = Fixture::with(&server);
    let ran = start(&fixture, &repo, GOAL).ok();
    assert_eq!(ran.json()["state"], "verified");
    assert!(
        ran.stderr.contains("gate make does not count"),
        "{}",
        ran.stderr
    );
    let report =
        std::fs::read_to_string(fixture.runs()[0].join("artifacts/verify_report.json")).unwrap();
    assert!(
        report.contains("verify-gate-set-aside") && report.contains("float-equal"),
        "{report}"
    );
    // The gate that works still refuses what is wrong.
    let server = answering(whole_file("add.c", &add('*')));
    let fixture = Fixture::with(&server);
    start(&fixture, &repo, GOAL).exits(1);
}

/// A makefile that needs a program which is not there, beside a suite that a build file names.
fn lacking() -> RepoBuilder {
    RepoBuilder::new()
        .file("Makefile", "test:\n\tno-such-program-here --check\n")
        .file(
            "package.json",
            "{\"name\": \"a\", \"scripts\": {\"test\": \"node --test\"}}\n",
        )
        .file("add.js", "exports.add = (a, b) => a - b;\n")
        .file(
            "add.test.js",
            "const { test } = require('node:test');\nconst { add } = require('./add.js');\n\
             test('adds', () => require('node:assert').equal(add(2, 3), 5));\n",
        )
}

#[test]
fn unusable_detected_gate_does_not_block_another() {
    let repo = lacking().build();
    let server = answering(whole_file("add.js", "exports.add = (a, b) => a + b;\n"));
    let fixture = Fixture::with(&server);
    let call = |fixture: &Fixture| {
        let call = fixture.call([
            "run",
            "start",
            "add must return the sum",
            "--json",
            "--max-iterations",
            "1",
        ]);
        call.args(["--file", "add.js", "--repo"]).arg(repo.path())
    };
    let ran = call(&fixture).run().ok();
    assert_eq!(ran.json()["state"], "verified");
    assert!(
        ran.stderr.contains("gate make-test does not count"),
        "{}",
        ran.stderr
    );
    // Somebody who names it wants it to run.
    let named = call(&fixture)
        .args(["--test", "node --test", "--test", "make test"])
        .run()
        .exits(2);
    assert!(
        named.error().to_string().contains("no-such-program-here"),
        "{:?}",
        named.error()
    );
}

#[test]
fn only_gate_that_never_compiles_stops_the_run() {
    let repo = broken().build();
    let server = answering(whole_file("add.c", &add('+')));
    let fixture = Fixture::with(&server);
    let error = start(&fixture, &repo, GOAL).exits(2).error().to_string();
    assert!(
        error.contains("float-equal") && error.contains("-Wno-error"),
        "{error}"
    );
    assert!(server.requests().is_empty(), "a model was asked");
    // A goal that is about the build goes on.
    let server = answering("no");
    let fixture = Fixture::with(&server);
    start(&fixture, &repo, "make add.c compile").exits(1);
    assert!(!server.requests().is_empty());
}
