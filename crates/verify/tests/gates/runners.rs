//! Runners with the real tools: how commands are changed to report test by test, and what is read of it.
//!
//! pytest is the pinned one that the test command installs; the others come with what the project needs anyway. What other tools print is
//! recorded, beside the unit tests of the runners.

use std::path::{Path, PathBuf};

use crucible_verify::{TestResults, TestStatus, could_not_run};

use super::*;

/// A small project and where its runners report.
struct Project {
    fixture: Fixture,
    reports: tempfile::TempDir,
    path: Vec<PathBuf>,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let fixture = Fixture::new();
        for (name, text) in files {
            let file = fixture.dir.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Self {
            fixture,
            reports: tempfile::tempdir().unwrap(),
            path: Vec::new(),
        }
    }

    /// With the programs that the test command put there.
    fn with_tools(mut self, dir: &str) -> Self {
        self.path.push(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../.tools")
                .join(dir),
        );
        self
    }

    async fn run(&self, words: &[&str]) -> GateRun {
        let path = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect::<Vec<_>>();
        let path = std::env::join_paths(self.path.iter().chain(&path)).unwrap();
        let mut pairs = vec![("PATH", path)];
        // Where rustup keeps its toolchains.
        pairs.extend(
            ["HOME", "RUSTUP_HOME", "CARGO_HOME"]
                .into_iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
        let env = Environment::from_pairs(pairs, "/");
        let mut given = base_env(&env);
        given.extend(toolchain_env(&env));
        given.push(("CI".into(), "true".into()));
        let setting = GateSetting {
            reports: Some(self.reports.path().join("reports")),
            env: given,
            log_limit: ByteLimit(1 << 20),
            ..self.fixture.setting()
        };
        let gate = timed("gate", words, Duration::from_secs(120));
        match run_gates(&Sandbox::new(None, &env), &[gate], &setting, &NoopObserver)
            .await
            .pop()
            .unwrap()
        {
            GateOutcome::Ran(run) => *run,
            GateOutcome::Judged { .. } => panic!("not a command"),
        }
    }
}

fn expect(run: &GateRun, expected: &[(&str, TestStatus)]) {
    let results = TestResults::read(run).unwrap_or_default();
    let read: Vec<(&str, TestStatus)> = results
        .tests
        .iter()
        .map(|(name, status)| (name.as_str(), *status))
        .collect();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(
        read,
        expected,
        "{}\n{}{}",
        run.command_line(),
        run.stdout.text(),
        run.stderr.text()
    );
}

const PYTHON: &[(&str, &str)] = &[
    ("calc.py", "def add(a, b):\n    return a - b\n"),
    (
        "tests/test_calc.py",
        "from calc import add\n\n\ndef test_zero():\n    assert add(0, 0) == 0\n\n\ndef test_one():\n    assert add(1, 1) == 2\n",
    ),
    (
        "tests/test_gone.py",
        "from calc import gone\n\n\ndef test_gone():\n    assert gone\n",
    ),
];

#[tokio::test]
async fn pytest_reports_tests_beside_broken_module() {
    let project = Project::new(PYTHON).with_tools("python/bin");
    let run = project
        .run(&[
            "python3",
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
        ])
        .await;
    expect(
        &run,
        &[
            ("tests/test_calc.py::test_zero", TestStatus::Passed),
            ("tests/test_calc.py::test_one", TestStatus::Failed),
            ("tests/test_gone.py", TestStatus::Failed),
        ],
    );
    assert_eq!(could_not_run(&run), None);
    assert_eq!(
        run.command.last().map(String::as_str),
        Some("no:cacheprovider"),
        "the command stays as given"
    );
    let place = project.reports.path().to_str().unwrap();
    assert!(!run.stdout.text().contains(place), "{}", run.stdout.text());
    assert!(!project.fixture.dir.path().join("report").exists());
}

#[tokio::test]
async fn pytest_that_cannot_import_could_not_run() {
    let project = Project::new(&[
        ("pkg/__init__.py", "import a_package_that_nobody_has\n"),
        ("tests/conftest.py", ""),
        (
            "tests/test_a.py",
            "import pkg\n\n\ndef test_a():\n    pass\n",
        ),
        (
            "tests/test_b.py",
            "import pkg\n\n\ndef test_b():\n    pass\n",
        ),
    ])
    .with_tools("python/bin");
    let words = ["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider"];
    let found = could_not_run(&project.run(&words).await).unwrap();
    assert!(
        found.cause.contains("a_package_that_nobody_has"),
        "{found:?}"
    );
    let project = Project::new(&[
        ("tests/conftest.py", "import a_package_that_nobody_has\n"),
        ("tests/test_a.py", "def test_a():\n    pass\n"),
    ])
    .with_tools("python/bin");
    let found = could_not_run(&project.run(&words).await).unwrap();
    assert!(found.remedy.contains("pip install"), "{found:?}");
    let project = Project::new(&[("a.py", "")]).with_tools("python/bin");
    let found = could_not_run(&project.run(&words).await).unwrap();
    assert!(found.cause.contains("ran no test"), "{found:?}");
}

#[tokio::test]
async fn unittest_reports_each_test() {
    let project = Project::new(&[
        ("calc.py", "def add(a, b):\n    return a - b\n"),
        (
            "tests/test_calc.py",
            "import unittest\nfrom calc import add\n\n\nclass Add(unittest.TestCase):\n    def test_zero(self):\n        \"\"\"Words.\"\"\"\n        \
             self.assertEqual(add(0, 0), 0)\n\n    def test_one(self):\n        self.assertEqual(add(1, 1), 2)\n",
        ),
    ]);
    let gates = crucible_verify::detect(project.fixture.dir.path()).unwrap();
    assert_eq!(gates.len(), 1);
    let words: Vec<&str> = gates[0].command.iter().map(String::as_str).collect();
    assert_eq!(
        words,
        ["python3", "-m", "unittest", "discover", "-s", "tests"]
    );
    let run = project.run(&words).await;
    expect(
        &run,
        &[
            ("test_calc.Add.test_zero", TestStatus::Passed),
            ("test_calc.Add.test_one", TestStatus::Failed),
        ],
    );
}

#[tokio::test]
async fn cargo_reports_each_test_of_every_target() {
    let project = Project::new(&[
        (
            "Cargo.toml",
            "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
        ),
        ("src/lib.rs", "#[test]\nfn fails() {\n    panic!();\n}\n"),
        (
            "tests/it.rs",
            "#[test]\nfn works() {}\n\n#[test]\n#[ignore]\nfn later() {}\n",
        ),
    ]);
    let run = project
        .run(&["cargo", "test", "--offline", "--quiet"])
        .await;
    expect(
        &run,
        &[
            ("demo::fails", TestStatus::Failed),
            ("it::works", TestStatus::Passed),
            ("it::later", TestStatus::Skipped),
        ],
    );
    let broken = Project::new(&[
        (
            "Cargo.toml",
            "[package]\nname = \"demo\"\nversion = \"0.1.0\"\n\n[dependencies]\na-crate-that-nobody-fetched-x = \"1\"\n",
        ),
        ("src/lib.rs", ""),
    ]);
    let run = broken.run(&["cargo", "test", "--offline"]).await;
    let found = could_not_run(&run).unwrap_or_else(|| panic!("{}", run.stderr.text()));
    assert!(found.remedy.contains("cargo fetch"), "{found:?}");
}

#[tokio::test]
async fn node_reports_tests_directly_and_via_script() {
    let project = Project::new(&[
        ("package.json", r#"{"name": "demo", "scripts": {"test": "node --test test/"}}"#),
        (
            "test/a.test.js",
            "const test = require('node:test');\ntest('adds', () => {});\ntest('fails', () => { throw new Error('no'); });\n",
        ),
        ("test/b.test.js", "require('./gone');\n"),
    ])
    .with_tools("node/bin");
    for words in [["npm", "test"].as_slice(), &["node", "--test", "test/"]] {
        let run = project.run(words).await;
        expect(
            &run,
            &[
                ("test/a.test.js > adds", TestStatus::Passed),
                ("test/a.test.js > fails", TestStatus::Failed),
                ("test/b.test.js", TestStatus::Failed),
            ],
        );
        assert_eq!(could_not_run(&run), None);
    }
    let missing = Project::new(&[(
        "package.json",
        r#"{"name": "demo", "scripts": {"test": "vitest run"}}"#,
    )])
    .with_tools("node/bin");
    let found = could_not_run(&missing.run(&["npm", "test"]).await).unwrap();
    assert!(
        found.cause.contains("vitest") && found.remedy.contains("npm ci"),
        "{found:?}"
    );
}

#[tokio::test]
async fn make_without_target_could_not_run() {
    let project = Project::new(&[("Makefile", "all:\n\ttrue\n")]);
    let found = could_not_run(&project.run(&["make", "test"]).await).unwrap();
    assert!(found.cause.contains("No rule to make target"), "{found:?}");
    let project = Project::new(&[("Makefile", "test:\n\tthere-is-no-such-tool --all\n")]);
    let found = could_not_run(&project.run(&["make", "test"]).await).unwrap();
    assert!(found.remedy.contains("there-is-no-such-tool"), "{found:?}");
}

#[tokio::test]
async fn irregular_report_file_is_not_read() {
    // Code under test can put anything where the report belongs.
    let project = Project::new(&[(
        "tests/test_a.py",
        "import atexit, os, sys\n\n\ndef test_a():\n    pass\n\n\ndef swap(path):\n    if os.path.exists(path):\n        os.remove(path)\n    os.symlink('/dev/zero', path)\n\n\n\
         atexit.register(swap, next(word[11:] for word in sys.argv if word.startswith('--junitxml=')))\n",
    )])
    .with_tools("python/bin");
    let run = project
        .run(&["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .await;
    assert_eq!(run.end, GateEnd::Exited(0), "{}", run.stderr.text());
    assert_eq!(TestResults::read(&run), None);
}
