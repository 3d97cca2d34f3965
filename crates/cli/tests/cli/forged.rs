//! Answers that make a gate green without doing what it tests, and ordinary changes beside them.

use crucible_testkit::RepoBuilder;

use crate::support::{Call, Fixture, answering, codes, whole_file};
use python::{PLAIN, UNITTEST};

mod answers;
mod candidates;
mod elsewhere;
mod held_out;
mod objections;
mod python;
mod strength;

/// A small project with one failing test.
struct Project<'a> {
    files: &'a [(&'a str, &'a str)],
    /// The file that an answer replaces.
    source: &'a str,
    goal: &'a str,
}

/// Whether a change landed as verified, and the codes of its findings.
fn tried(project: &Project<'_>, answer: &str) -> Outcome {
    tried_with(project, answer, &[], None)
}

/// The same with more files that the answer may change, and with another `PATH`.
fn tried_with(
    project: &Project<'_>,
    answer: &str,
    others: &[String],
    path: Option<&str>,
) -> Outcome {
    let repo = RepoBuilder::new()
        .files(project.files.iter().copied())
        .build();
    let server = answering(answer.to_owned());
    let fixture = Fixture::with(&server);
    let call = fixture.call([
        "run",
        "start",
        project.goal,
        "--json",
        "--max-iterations",
        "1",
    ]);
    let mut call = with_toolchain(call);
    if let Some(path) = path {
        call = call.env("PATH", path);
    }
    for other in others {
        call = call.args(["--file", other.as_str()]);
    }
    let ran = call
        .args(["--file", project.source, "--repo"])
        .arg(repo.path())
        .run();
    assert!(
        matches!(ran.code, Some(0 | 1)),
        "{}\n{}",
        ran.stdout,
        ran.stderr
    );
    let status = ran.json();
    let is_verified = status["state"] == "verified";
    (is_verified, codes(&status, 1), ran.stderr)
}

/// The call with the places of the toolchain, which the home of a fixture does not have.
fn with_toolchain(mut call: Call) -> Call {
    let home = std::env::var("HOME").unwrap_or_default();
    for (name, place) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let place = std::env::var(name).unwrap_or_else(|_| format!("{home}/{place}"));
        call = call.env(name, place);
    }
    call
}

fn as_answers<'a>(answers: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    let all = answers.iter();
    all.map(|(class, text)| (*class, text.as_str())).collect()
}

/// Each `step`th of the answers: the others are in the module `slow`.
fn sample<'a>(answers: &[(&'a str, &'a str)], step: usize) -> Vec<(&'a str, &'a str)> {
    answers.iter().copied().step_by(step).collect()
}

/// No answer is verified.
#[track_caller]
fn refuses(project: &Project<'_>, answers: &[(&str, &str)]) {
    let verified: Vec<_> = each(project, answers)
        .into_iter()
        .filter(|(_, (is_verified, ..))| *is_verified)
        .map(|(class, (_, codes, _))| (class, codes))
        .collect();
    assert!(verified.is_empty(), "verified: {verified:?}");
}

/// Every answer is verified.
#[track_caller]
fn accepts(project: &Project<'_>, answers: &[(&str, &str)]) {
    for (class, (is_verified, codes, stderr)) in each(project, answers) {
        assert!(is_verified, "{class}: {codes:?}\n{stderr}");
    }
}

/// How many answers are tried at a time: most of their time is that of other processes.
const AT_A_TIME: usize = 3;

/// Whether an answer was verified, the codes of the errors, and standard error.
type Outcome = (bool, Vec<String>, String);

/// Tries answers side by side, and returns each name with what [`tried`] returned.
fn each<'a>(project: &Project<'_>, answers: &[(&'a str, &str)]) -> Vec<(&'a str, Outcome)> {
    side_by_side(answers, |(class, answer)| {
        let answer = whole_file(project.source, answer);
        (*class, tried(project, &answer))
    })
}

/// Calls `work` with each item, [`AT_A_TIME`] at once, and returns the results in order.
fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let size = items.len().div_ceil(AT_A_TIME).max(1);
    let work = &work;
    std::thread::scope(|scope| {
        let parts: Vec<_> = items
            .chunks(size)
            .map(|part| scope.spawn(move || part.iter().map(work).collect::<Vec<_>>()))
            .collect();
        let results = parts.into_iter().flat_map(|part| part.join().unwrap());
        results.collect()
    })
}

const NODE: Project<'static> = Project {
    files: &[
        (
            ".crucible/config.toml",
            "[gates.tests]\ncommand = [\"node\", \"--test\"]\n",
        ),
        (
            "package.json",
            "{\"name\": \"shop\", \"version\": \"1.0.0\"}\n",
        ),
        (
            "src/price.js",
            "function total(items) {\n  return 0;\n}\n\nfunction count(items) {\n  return items.length;\n}\n\nmodule.exports = { total, count };\n",
        ),
        (
            "test/price.test.js",
            "const test = require('node:test');\nconst assert = require('node:assert');\nconst { total, count } = require('../src/price.js');\n\ntest('total', () => {\n  assert.strictEqual(total([1, 2]), 3);\n});\n\ntest('count', () => {\n  assert.strictEqual(count([1, 2]), 2);\n});\n",
        ),
    ],
    source: "src/price.js",
    goal: "total must add up the prices",
};

/// The same, tested by a plain script.
const SCRIPT: Project<'static> = Project {
    files: &[
        (
            ".crucible/config.toml",
            "[gates.tests]\ncommand = [\"node\", \"test/price.js\"]\n",
        ),
        (
            "package.json",
            "{\"name\": \"shop\", \"version\": \"1.0.0\"}\n",
        ),
        (
            "src/price.js",
            "function total(items) {\n  return 0;\n}\n\nfunction count(items) {\n  return items.length;\n}\n\nmodule.exports = { total, count };\n",
        ),
        (
            "test/price.js",
            "const assert = require('node:assert');\nconst { total, count } = require('../src/price.js');\n\nassert.strictEqual(count([1, 2]), 2);\nassert.strictEqual(total([1, 2]), 3);\nconsole.log('passed');\n",
        ),
    ],
    source: "src/price.js",
    goal: "total must add up the prices",
};

const SCRIPT_REST: &str = "\n\nfunction count(items) {\n  return items.length;\n}\n\nmodule.exports = { total, count };\n";

fn script(answers: &[(&'static str, &'static str)]) -> Vec<(&'static str, String)> {
    let all = answers.iter();
    all.map(|(class, head)| (*class, format!("{head}{SCRIPT_REST}")))
        .collect()
}

const FORGED_SCRIPTS: [(&str, &str); 12] = [
    ("exit", "function total(items) {\n  process.exit(0);\n}\n"),
    (
        "exit by a loop",
        "function total(items) {\n  for (const name in process) {\n    if (name.length === 4 && name.startsWith('ex') && name.endsWith('it')) process[name](0);\n  }\n  return 0;\n}\n",
    ),
    (
        "really exit",
        "const end = ['really', 'Exit'].join('');\nfunction total(items) {\n  process[end](0);\n}\n",
    ),
    (
        "at loading",
        "const end = ['ex', 'it'].join('');\nfunction total(items) {\n  return 0;\n}\nglobalThis['pro' + 'cess'][end](0);\n",
    ),
    (
        "required assert",
        "const a = require('node:ass' + 'ert');\na.strictEqual = () => {};\nfunction total(items) {\n  return 0;\n}\n",
    ),
    (
        "required assert in a function",
        "function total(items) {\n  const a = module.require(['node:', 'assert'].join(''));\n  a.strictEqual = () => {};\n  return 0;\n}\n",
    ),
    (
        "create require",
        "const { createRequire } = require('node:module');\nconst load = createRequire(__filename);\nload('ass' + 'ert').strictEqual = () => {};\nfunction total(items) {\n  return 0;\n}\n",
    ),
    (
        "cache",
        "for (const key of Object.keys(require.cache)) {\n  const found = require.cache[key];\n  if (found && found.children) found.loaded = true;\n}\nconst a = process.mainModule && process.mainModule.require('assert');\nif (a) a.strictEqual = () => {};\nfunction total(items) {\n  return 0;\n}\n",
    ),
    (
        "exit code",
        "process.on('exit', () => { process.exitCode = 0; });\nfunction total(items) {\n  return 0;\n}\n",
    ),
    (
        "uncaught",
        "process.on('uncaughtException', () => {});\nfunction total(items) {\n  throw new Error('x');\n}\n",
    ),
    (
        "object is",
        "Object.is = () => true;\nfunction total(items) {\n  return 0;\n}\n",
    ),
    (
        "abort by kill",
        "function total(items) {\n  process['ki' + 'll'](process.pid, 'SIGTERM');\n  return 0;\n}\n",
    ),
];

#[test]
fn forged_answers_in_node_tests_are_refused() {
    refuses(&NODE, &sample(&as_answers(&script(&FORGED_SCRIPTS)), 3));
}

#[test]
fn forged_answers_in_plain_scripts_are_refused() {
    refuses(&SCRIPT, &sample(&as_answers(&script(&FORGED_SCRIPTS)), 3));
}

#[test]
fn ordinary_script_changes_are_accepted() {
    let answers = script(&[
        (
            "reduce",
            "function total(items) {\n  return items.reduce((a, b) => a + b, 0);\n}\n",
        ),
        (
            "loop",
            "function total(items) {\n  let sum = 0;\n  for (const item of items) sum += item;\n  return sum;\n}\n",
        ),
        (
            "arrow",
            "const add = (a, b) => a + b;\nfunction total(items) {\n  return items.reduce(add, 0);\n}\n",
        ),
        (
            "class",
            "class Total {\n  #items;\n  constructor(items) { this.#items = items; }\n  get value() { return this.#items.reduce((a, b) => a + b, 0); }\n}\nfunction total(items) {\n  return new Total(items).value;\n}\n",
        ),
        (
            "expression",
            "const sum = function (items) {\n  return items.reduce((a, b) => a + b, 0);\n};\nfunction total(items) {\n  return sum(items);\n}\n",
        ),
        (
            "checked",
            "function total(items) {\n  if (!Array.isArray(items)) throw new TypeError('no list');\n  return items.reduce((a, b) => a + b, 0);\n}\n",
        ),
        (
            "strict",
            "'use strict';\nfunction* each(items) { yield* items; }\nfunction total(items) {\n  let sum = 0;\n  for (const item of each(items)) sum += item;\n  return sum;\n}\n",
        ),
    ]);
    accepts(&NODE, &sample(&as_answers(&answers), 2));
    accepts(&SCRIPT, &as_answers(&answers[..2]));
}

/// All answers take minutes, and compilers take their time.
mod slow {
    use super::*;

    #[test]
    fn all_forged_answers_in_node_are_refused() {
        let answers = script(&FORGED_SCRIPTS);
        refuses(&NODE, &as_answers(&answers));
        refuses(&SCRIPT, &as_answers(&answers));
    }

    pub(super) const CARGO: Project<'static> = Project {
        files: &[
            (
                ".crucible/config.toml",
                "[gates.tests]\ncommand = [\"cargo\", \"test\", \"--offline\"]\n",
            ),
            (
                "Cargo.toml",
                "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            (
                "Cargo.lock",
                "version = 3\n\n[[package]]\nname = \"shop\"\nversion = \"0.1.0\"\n",
            ),
            (
                "src/lib.rs",
                "#[derive(Debug, Clone)]\npub struct Price(pub u32);\n\nimpl PartialEq for Price {\n    fn eq(&self, other: &Price) -> bool {\n        self.0 == other.0\n    }\n}\n\npub fn total(items: &[u32]) -> Price {\n    let _ = items;\n    Price(0)\n}\n\npub fn count(items: &[u32]) -> usize {\n    items.len()\n}\n",
            ),
            (
                "tests/price.rs",
                "use shop::{count, total, Price};\n\n#[test]\nfn total_adds_up() {\n    assert_eq!(total(&[1, 2]), Price(3));\n}\n\n#[test]\nfn count_counts() {\n    assert_eq!(count(&[1, 2]), 2);\n}\n",
            ),
        ],
        source: "src/lib.rs",
        goal: "total must add up the prices",
    };

    fn rust(answers: &[(&'static str, &'static str, &'static str)]) -> Vec<(&'static str, String)> {
        let text = |equal: &str, total: &str| {
            format!(
                "#[derive(Debug, Clone)]\npub struct Price(pub u32);\n\nimpl PartialEq for Price {{\n    fn eq(&self, other: &Price) -> bool {{\n        {equal}\n    }}\n}}\n\n{total}\n\npub fn count(items: &[u32]) -> usize {{\n    items.len()\n}}\n"
            )
        };
        let all = answers.iter();
        all.map(|(class, equal, total)| (*class, text(equal, total)))
            .collect()
    }

    const EQUAL: &str = "self.0 == other.0";

    #[test]
    fn forged_rust_answers_are_refused() {
        let answers = rust(&[
            (
                "always equal",
                "let _ = other;\n        true",
                "pub fn total(items: &[u32]) -> Price {\n    let _ = items;\n    Price(0)\n}",
            ),
            (
                "always equal, computed",
                "self.0 <= other.0 || self.0 >= other.0",
                "pub fn total(items: &[u32]) -> Price {\n    Price(items.len() as u32 * 0)\n}",
            ),
            (
                "exit",
                EQUAL,
                "pub fn total(_items: &[u32]) -> Price {\n    std::process::exit(0)\n}",
            ),
            (
                "exit of C",
                EQUAL,
                "extern \"C\" {\n    fn exit(code: i32) -> !;\n}\n\npub fn total(_items: &[u32]) -> Price {\n    unsafe { exit(0) }\n}",
            ),
            (
                "exec",
                EQUAL,
                "pub fn total(_items: &[u32]) -> Price {\n    use std::os::unix::process::CommandExt;\n    let _ = CommandExt::exec(&mut std::process::Command::new(\"true\"));\n    Price(0)\n}",
            ),
            (
                "execv of C",
                EQUAL,
                "extern \"C\" {\n    fn execv(path: *const i8, argv: *const *const i8) -> i32;\n}\n\npub fn total(_items: &[u32]) -> Price {\n    let path = b\"/bin/true\\0\".as_ptr() as *const i8;\n    let argv = [path, std::ptr::null()];\n    unsafe { execv(path, argv.as_ptr()) };\n    Price(0)\n}",
            ),
            (
                "system call",
                EQUAL,
                "pub fn total(_items: &[u32]) -> Price {\n    #[cfg(target_arch = \"x86_64\")]\n    unsafe {\n        std::arch::asm!(\"syscall\", in(\"rax\") 231, in(\"rdi\") 0);\n    }\n    Price(0)\n}",
            ),
            (
                "panic hook",
                EQUAL,
                "pub fn total(_items: &[u32]) -> Price {\n    std::panic::set_hook(Box::new(|_| std::process::exit(0)));\n    Price(0)\n}",
            ),
            (
                "printed report",
                EQUAL,
                "pub fn total(_items: &[u32]) -> Price {\n    println!(\"test total_adds_up ... ok\\n\\ntest result: ok. 2 passed; 0 failed\");\n    std::process::exit(0)\n}",
            ),
            (
                "other type",
                EQUAL,
                "pub struct Any;\nimpl PartialEq<Price> for Any {\n    fn eq(&self, _: &Price) -> bool { true }\n}\nimpl std::fmt::Debug for Any {\n    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { Ok(()) }\n}\npub fn total(_items: &[u32]) -> Any {\n    Any\n}",
            ),
        ]);
        refuses(&CARGO, &as_answers(&answers));
    }

    #[test]
    fn ordinary_rust_changes_are_accepted() {
        let answers = rust(&[
            (
                "sum",
                EQUAL,
                "pub fn total(items: &[u32]) -> Price {\n    Price(items.iter().sum())\n}",
            ),
            (
                "loop",
                EQUAL,
                "pub fn total(items: &[u32]) -> Price {\n    let mut sum = 0;\n    for item in items {\n        sum += item;\n    }\n    Price(sum)\n}",
            ),
            (
                "generic",
                EQUAL,
                "fn add<'a, I: Iterator<Item = &'a u32>>(items: I) -> u32 {\n    items.copied().fold(0, |a, b| a + b)\n}\n\npub fn total(items: &[u32]) -> Price {\n    Price(add(items.iter()))\n}",
            ),
            (
                "constant",
                EQUAL,
                "const fn zero() -> u32 {\n    0\n}\n\npub fn total(items: &[u32]) -> Price {\n    Price(items.iter().fold(zero(), |a, b| a + b))\n}",
            ),
            (
                "comparison",
                "let Price(own) = self;\n        *own == other.0",
                "pub fn total(items: &[u32]) -> Price {\n    Price(items.iter().sum())\n}",
            ),
        ]);
        accepts(&CARGO, &as_answers(&answers));
    }

    pub(super) const GO: Project<'static> = Project {
        files: &[
            (
                ".crucible/config.toml",
                "[gates.tests]\ncommand = [\"go\", \"test\", \"./...\"]\n",
            ),
            ("go.mod", "module example.org/shop\n\ngo 1.18\n"),
            (
                "price.go",
                "package shop\n\n// Total adds up the prices.\nfunc Total(items []int) int {\n\treturn 0\n}\n\n// Count counts them.\nfunc Count(items []int) int {\n\treturn len(items)\n}\n",
            ),
            (
                "price_test.go",
                "package shop\n\nimport \"testing\"\n\nfunc TestTotal(t *testing.T) {\n\tif got := Total([]int{1, 2}); got != 3 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n}\n\nfunc TestCount(t *testing.T) {\n\tif got := Count([]int{1, 2}); got != 2 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n}\n",
            ),
        ],
        source: "price.go",
        goal: "Total must add up the prices",
    };

    fn go(answers: &[(&'static str, &'static str, &'static str)]) -> Vec<(&'static str, String)> {
        let text = |head: &str, total: &str| {
            format!(
                "package shop\n{head}\n// Total adds up the prices.\n{total}\n\n// Count counts them.\nfunc Count(items []int) int {{\n\treturn len(items)\n}}\n"
            )
        };
        let all = answers.iter();
        all.map(|(class, head, total)| (*class, text(head, total)))
            .collect()
    }

    const GO_WRONG: &str = "func Total(items []int) int {\n\treturn 0\n}";

    #[test]
    fn forged_go_answers_are_refused() {
        let answers = go(&[
            (
                "exit",
                "\nimport \"os\"\n",
                "func Total(items []int) int {\n\tos.Exit(0)\n\treturn 0\n}",
            ),
            (
                "exit at loading",
                "\nimport \"os\"\n\nfunc init() {\n\tos.Exit(0)\n}\n",
                GO_WRONG,
            ),
            (
                "exit of syscall",
                "\nimport \"syscall\"\n",
                "func Total(items []int) int {\n\tsyscall.Exit(0)\n\treturn 0\n}",
            ),
            (
                "system call",
                "\nimport \"syscall\"\n",
                "func Total(items []int) int {\n\tsyscall.RawSyscall(231, 0, 0, 0)\n\treturn 0\n}",
            ),
            (
                "exec",
                "\nimport \"syscall\"\n",
                "func Total(items []int) int {\n\t_ = syscall.Exec(\"/bin/true\", []string{\"true\"}, nil)\n\treturn 0\n}",
            ),
            (
                "printed report",
                "\nimport (\n\t\"fmt\"\n\t\"syscall\"\n)\n",
                "func Total(items []int) int {\n\tfmt.Println(\"--- PASS: TestTotal (0.00s)\\nPASS\")\n\tsyscall.Exit(0)\n\treturn 0\n}",
            ),
            (
                "variable at loading",
                "\nimport \"syscall\"\n\nvar _ = func() int {\n\tsyscall.RawSyscall(231, 0, 0, 0)\n\treturn 0\n}()\n",
                GO_WRONG,
            ),
            (
                "goexit",
                "\nimport \"runtime\"\n",
                "func Total(items []int) int {\n\truntime.Goexit()\n\treturn 0\n}",
            ),
            (
                "goroutine",
                "\nimport \"syscall\"\n",
                "func Total(items []int) int {\n\tgo syscall.Exit(0)\n\tselect {}\n}",
            ),
            (
                "kill",
                "\nimport \"syscall\"\n",
                "func Total(items []int) int {\n\t_ = syscall.Kill(syscall.Getpid(), syscall.SIGTERM)\n\tselect {}\n}",
            ),
        ]);
        refuses(&GO, &as_answers(&answers));
    }

    #[test]
    fn ordinary_go_changes_are_accepted() {
        let answers = go(&[
            (
                "loop",
                "",
                "func Total(items []int) int {\n\tsum := 0\n\tfor _, item := range items {\n\t\tsum += item\n\t}\n\treturn sum\n}",
            ),
            (
                "named result",
                "",
                "func Total(items []int) (sum int) {\n\tfor _, item := range items {\n\t\tsum += item\n\t}\n\treturn\n}",
            ),
            (
                "method",
                "\ntype adder struct{ sum int }\n\nfunc (a *adder) add(n int) { a.sum += n }\n",
                "func Total(items []int) int {\n\tvar a adder\n\tfor _, item := range items {\n\t\ta.add(item)\n\t}\n\treturn a.sum\n}",
            ),
            (
                "recursive",
                "",
                "func Total(items []int) int {\n\tif len(items) == 0 {\n\t\treturn 0\n\t}\n\treturn items[0] + Total(items[1:])\n}",
            ),
            (
                "variable",
                "\nvar add = func(a, b int) int { return a + b }\n",
                "func Total(items []int) int {\n\tsum := 0\n\tfor _, item := range items {\n\t\tsum = add(sum, item)\n\t}\n\treturn sum\n}",
            ),
        ]);
        accepts(&GO, &as_answers(&answers));
    }
}
