//! Answers from the files in `answers`, one file for each language, each answer with the runners that are its gate.
//!
//! An answer begins with the line `=== KIND NAME: RUNNERS`. Its kind is `forged` (never verified), `open` (verified, for
//! the reason in `docs/trust.md`) or `ordinary` (verified). Text below `--- PATH` belongs to that file.

use std::path::{Path, PathBuf};

use super::{Outcome, PLAIN, Project, UNITTEST, side_by_side, tried_with};
use crate::support::whole_file;

/// What must become of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Forged,
    Open,
    Ordinary,
}

/// An answer and the names of its runners.
struct Answer {
    kind: Kind,
    name: String,
    runners: Vec<String>,
    text: String,
}

/// A gate with its project.
struct Runner {
    name: &'static str,
    project: Project<'static>,
    /// What the file has before and after the text of an answer.
    around: fn(&str) -> String,
    /// The directory of the gate's program, where it is not a program of the machine.
    programs: Option<&'static str>,
}

fn python(text: &str) -> String {
    format!("LIMIT = 5\n{text}{}", super::python::PYTHON_REST)
}

fn javascript(text: &str) -> String {
    format!("{text}{}", super::SCRIPT_REST)
}

fn rust(text: &str) -> String {
    let price = if text.contains("struct Price") {
        ""
    } else {
        "#[derive(Debug, Clone)]\npub struct Price(pub u32);\n\nimpl PartialEq for Price {\n    fn eq(&self, other: &Price) -> bool {\n        self.0 == other.0\n    }\n}\n"
    };
    format!("{price}\n{text}\npub fn count(items: &[u32]) -> usize {{\n    items.len()\n}}\n")
}

fn go(text: &str) -> String {
    format!(
        "package shop\n\n{text}\n// Count counts them.\nfunc Count(items []int) int {{\n\treturn len(items)\n}}\n"
    )
}

/// The project of `node --test` with the gate and test file of another runner.
macro_rules! of_runner {
    ($name:ident, $config:literal, $test:literal, $tests:ident) => {
        const $name: Project<'static> = Project {
            files: &[
                (".crucible/config.toml", $config),
                super::NODE.files[1],
                super::NODE.files[2],
                ($test, $tests),
            ],
            ..super::NODE
        };
    };
}

of_runner!(
    MOCHA,
    "[gates.tests]\ncommand = [\"mocha\", \"test\"]\n",
    "test/price.js",
    WITH_ASSERT
);
of_runner!(
    JEST,
    "[gates.tests]\ncommand = [\"jest\"]\n",
    "test/price.test.js",
    WITH_EXPECT
);
of_runner!(
    VITEST,
    "[gates.tests]\ncommand = [\"vitest\", \"run\", \"--globals\"]\n",
    "test/price.test.js",
    WITH_EXPECT
);

/// Tests for mocha with the assertions of Node.js.
const WITH_ASSERT: &str = "const assert = require('node:assert');\nconst { total, count } = require('../src/price.js');\n\ndescribe('price', () => {\n  it('total', () => {\n    assert.strictEqual(total([1, 2]), 3);\n  });\n  it('count', () => {\n    assert.strictEqual(count([1, 2]), 2);\n  });\n});\n";

/// Tests with the assertions of jest and vitest.
const WITH_EXPECT: &str = "const { total, count } = require('../src/price.js');\n\ndescribe('price', () => {\n  it('total', () => {\n    expect(total([1, 2])).toEqual(3);\n  });\n  it('count', () => {\n    expect(count([1, 2])).toBe(2);\n  });\n});\n";

/// The project of unittest, tested by the pytest of `.tools`.
fn pytest() -> Project<'static> {
    let libraries = std::fs::read_dir(tools().join("python/lib"));
    let Ok(library) = libraries else {
        panic!("pytest is missing: run `cargo xtask test`, which installs it");
    };
    let library = library.flatten().next().unwrap().path();
    let packages = library.join("site-packages");
    let config = format!(
        "[gates.tests]\ncommand = [\"python3\", \"-m\", \"pytest\"]\nenv = {{ PYTHONPATH = {:?} }}\n",
        packages.to_str().unwrap()
    );
    let files = vec![
        (".crucible/config.toml", &*config.leak()),
        UNITTEST.files[1],
        UNITTEST.files[2],
        (
            "tests/test_price.py",
            "from shop import price\n\n\ndef test_total():\n    assert price.total([1, 2]) == 3\n\n\ndef test_count():\n    assert price.count([1, 2]) == 2\n",
        ),
        ("conftest.py", ""),
    ];
    Project {
        files: files.leak(),
        ..UNITTEST
    }
}

/// Where `cargo xtask test` installs programs.
fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../.tools")
        .canonicalize()
        .unwrap()
}

fn runners() -> Vec<Runner> {
    let on_machine = |name, project, around| Runner {
        name,
        project,
        around,
        programs: None,
    };
    let from_npm = |name, project| Runner {
        name,
        project,
        around: javascript,
        programs: Some("runners/node_modules/.bin"),
    };
    vec![
        on_machine("unittest", UNITTEST, python),
        on_machine("pytest", pytest(), python),
        on_machine("python-script", PLAIN, python),
        on_machine("node-test", super::NODE, javascript),
        on_machine("node-script", super::SCRIPT, javascript),
        from_npm("mocha", MOCHA),
        from_npm("jest", JEST),
        from_npm("vitest", VITEST),
        on_machine("cargo-test", super::slow::CARGO, rust),
        on_machine("go-test", super::slow::GO, go),
    ]
}

/// The answers of a language in the order of its file.
fn answers(language: &str) -> Vec<Answer> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/forged/answers");
    let text = std::fs::read_to_string(directory.join(language)).unwrap();
    let sections = text.split("\n=== ").skip(1);
    let parsed = sections.map(|section| {
        let (head, text) = section.split_once('\n').unwrap();
        let (title, runners) = head.split_once(": ").unwrap();
        let (kind, name) = title.split_once(' ').unwrap();
        let kind = match kind {
            "forged" => Kind::Forged,
            "open" => Kind::Open,
            "ordinary" => Kind::Ordinary,
            _ => panic!("{head}: unknown kind"),
        };
        Answer {
            kind,
            name: name.to_owned(),
            runners: runners.split(' ').map(str::to_owned).collect(),
            text: format!("{}\n", text.trim_end()),
        }
    });
    parsed.collect()
}

/// What a model answers: the source, then the other files.
fn response(runner: &Runner, text: &str) -> (String, Vec<String>) {
    let mut parts = text.split("\n--- ");
    let source = (runner.around)(&format!(
        "{}\n",
        parts.next().unwrap_or_default().trim_end()
    ));
    let mut all = whole_file(runner.project.source, &source);
    let mut others = Vec::new();
    for part in parts {
        let (path, text) = part.split_once('\n').unwrap();
        all.push_str(&whole_file(path, &format!("{}\n", text.trim_end())));
        others.push(path.to_owned());
    }
    (all, others)
}

/// Tries the answers of a kind in a runner.
fn outcomes(runner: &Runner, chosen: &[Answer]) -> Vec<(String, Outcome)> {
    let path = runner.programs.map(|programs| {
        let programs = tools().join(programs);
        assert!(
            programs.is_dir(),
            "{} is missing: run `cargo xtask test --slow`, which installs it",
            programs.display()
        );
        let usual = std::env::var("PATH").unwrap_or_default();
        format!("{}:{usual}", programs.display())
    });
    side_by_side(chosen, |answer| {
        let (text, others) = response(runner, &answer.text);
        let outcome = tried_with(&runner.project, &text, &others, path.as_deref());
        (format!("{} in {}", answer.name, runner.name), outcome)
    })
}

/// Every answer of this kind that this runner is the gate of has the outcome of its kind.
#[track_caller]
fn hold(language: &str, kind: Kind, runner: &str) {
    let runners = runners();
    let runner = runners.iter().find(|each| each.name == runner).unwrap();
    let is_verified = kind != Kind::Forged;
    let mut wrong = Vec::new();
    let mut total = 0;
    let mut chosen = answers(language);
    chosen.retain(|answer| {
        answer.kind == kind && answer.runners.iter().any(|name| name == runner.name)
    });
    for (name, (outcome, codes, stderr)) in outcomes(runner, &chosen) {
        total += 1;
        if outcome != is_verified {
            wrong.push(format!("{name}: {codes:?}\n{stderr}"));
        }
    }
    assert!(total > 0, "{language}: no such answer");
    assert!(
        wrong.is_empty(),
        "{} of {total}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// All answers with all runners take half an hour.
mod exhaustive {
    use super::*;

    macro_rules! all_of {
        ($($runner:ident $language:literal $name:literal;)*) => {$(
            mod $runner {
                use super::*;

                #[test]
                fn forged_answers_are_refused() {
                    hold($language, Kind::Forged, $name);
                }

                #[test]
                fn open_answers_are_verified() {
                    hold($language, Kind::Open, $name);
                }

                #[test]
                fn ordinary_changes_are_accepted() {
                    hold($language, Kind::Ordinary, $name);
                }
            }
        )*};
    }

    all_of! {
        unittest "python" "unittest";
        pytest "python" "pytest";
        python_script "python" "python-script";
        node_test "javascript" "node-test";
        node_script "javascript" "node-script";
        mocha "javascript" "mocha";
        jest "javascript" "jest";
        vitest "javascript" "vitest";
        cargo_test "rust" "cargo-test";
        go_test "go" "go-test";
    }
}
