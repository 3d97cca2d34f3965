//! The world of a gate: installed packages, generated files and the history are there, the patched code is what is loaded, and
//! nothing of the user's own is seen.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crucible_testkit::{RepoBuilder, TestRepo};

use crate::support::{
    Fixture, Snapshot, TEST, WRONG, answering, codes, good_answer, small, whole_file,
};

/// A repository with this gate at a place that a gate can see; temporary directories are private to it.
fn placed(fixture: &Fixture, builder: RepoBuilder) -> PathBuf {
    placed_repo(fixture, &builder.build())
}

fn placed_repo(fixture: &Fixture, repo: &TestRepo) -> PathBuf {
    let place = fixture.path("original");
    repo.git(["tag", "-a", "v1.2", "-m", "release"]);
    let copied = Command::new("cp")
        .arg("-a")
        .arg(repo.path())
        .arg(&place)
        .status()
        .unwrap();
    assert!(copied.success());
    place
}

fn write(path: PathBuf, content: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// A run of the good change, and what it printed on the way.
#[track_caller]
fn verified(fixture: &Fixture, original: &Path, strength: &str) -> String {
    let before = Snapshot::take([original]);
    let ran = fixture
        .start_call(original)
        .args(["--max-iterations", "1", "--sandbox", strength])
        .run();
    let stderr = ran.stderr.clone();
    let status = ran.ok().json();
    assert_eq!(status["state"], "verified", "{status}");
    if strength == "required" {
        assert_eq!(codes(&status, 1), [""; 0]);
    }
    before.is_still(&Snapshot::take([original]));
    stderr
}

/// A project with a `src` layout whose environment, not activated, has it installed in editable mode.
fn editable(fixture: &Fixture, place: &str) -> PathBuf {
    let check = format!(
        "import sys, area, helper\n\
        assert sys.prefix.endswith('/{place}'), sys.prefix\n\
        sys.exit(0 if area.area(3, 4) == 12 and helper.ANSWER == 42 else 1)\n"
    );
    let gate = "[gates.tests]\ncommand = [\"python\", \"tests/check.py\"]\n";
    let builder = RepoBuilder::new().files([
        (".crucible/config.toml", gate),
        (".gitignore", ".venv\n.tox\n"),
        ("src/area.py", WRONG),
        ("tests/check.py", check.as_str()),
    ]);
    let original = placed(fixture, builder);
    let exit_status = Command::new("python3")
        .args(["-m", "venv", "--without-pip", place])
        .current_dir(&original)
        .status();
    assert!(exit_status.unwrap().success());
    let lib = original.join(place).join("lib");
    let python = std::fs::read_dir(&lib)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    write(
        python.join("site-packages/__editable__.area-1.0.pth"),
        &format!("{}/src\n", original.display()),
    );
    write(python.join("site-packages/helper.py"), "ANSWER = 42\n");
    original
}

#[test]
fn tests_of_unittest_run_where_pytest_is_missing() {
    let test = "import sys, unittest\nsys.path.insert(0, 'src')\nfrom area import area\n\n\n\
        class Area(unittest.TestCase):\n    def test_area(self):\n        self.assertEqual(area(3, 4), 12)\n";
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let builder = RepoBuilder::new().files([
        (".gitignore", ".venv\n"),
        ("pytest.ini", "[pytest]\n"),
        ("src/area.py", WRONG),
        ("test_area.py", test),
    ]);
    let original = placed(&fixture, builder);
    let exit_status = Command::new("python3")
        .args(["-m", "venv", "--without-pip", ".venv"])
        .current_dir(&original)
        .status();
    assert!(exit_status.unwrap().success());
    let verification = verified(&fixture, &original, "required");
    assert!(
        verification.contains("gate pytest runs `python3 -m unittest discover`"),
        "{verification}"
    );
    // What is written runs later, too.
    let init = fixture.call(["init"]).current_dir(&original).run().ok();
    let text = "gate pytest: python3 -m unittest discover\n";
    assert!(init.stdout.contains(text), "{}", init.stdout);
    let written = std::fs::read_to_string(original.join(".crucible/config.toml")).unwrap();
    let command = "\n[gates.pytest]\ncommand = [\"python3\", \"-m\", \"unittest\", \"discover\"]\n";
    assert!(written.contains(command), "{written}");
}

#[test]
fn editable_install_loads_the_patched_source() {
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let original = editable(&fixture, ".venv");
    let verification = verified(&fixture, &original, "required");
    assert!(!verification.contains("another path"), "{verification}");
    // A change that does not fix it is not verified.
    let wrong = answering(whole_file(
        "src/area.py",
        &WRONG.replacen("width + height", "width - height", 1),
    ));
    let fixture = Fixture::with(&wrong);
    let original = editable(&fixture, ".venv");
    let status = fixture
        .start_call(&original)
        .args(["--max-iterations", "1"])
        .run()
        .exits(1)
        .json();
    assert_eq!(codes(&status, 1), ["verify-gate-failed"]);
}

#[test]
fn editable_install_loads_the_patched_source_without_mounts() {
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let original = editable(&fixture, ".venv");
    let verification = verified(&fixture, &original, "off");
    assert!(
        verification.contains("the gates run in a copy at a different path"),
        "{verification}"
    );
}

#[test]
fn tox_environment_is_active_without_another() {
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let original = editable(&fixture, ".tox/py311");
    write(original.join(".tox/py311/bin/pytest"), "");
    write(original.join(".tox/py311/.gitignore"), "*\n");
    verified(&fixture, &original, "required");
}

#[test]
fn patched_source_precedes_installed_package() {
    let check = "import unittest\nimport area, helper\n\n\nclass Area(unittest.TestCase):\n\
        \x20   def test_area(self):\n        self.assertEqual(area.area(3, 4), 12)\n\n\
        \x20   def test_empty(self):\n        self.assertEqual(area.area(0, 0), helper.ANSWER)\n";
    let gate = "[gates.tests]\ncommand = [\"python\", \"-m\", \"unittest\", \"discover\", \"-v\", \"-s\", \"tests\"]\n";
    for (answer, is_right) in [
        (good_answer(), true),
        (
            whole_file(
                "src/area.py",
                &WRONG.replacen("width + height", "width - height", 1),
            ),
            false,
        ),
    ] {
        let server = answering(answer);
        let fixture = Fixture::with(&server);
        let builder = RepoBuilder::new().files([
            (".crucible/config.toml", gate),
            (".gitignore", ".venv\n"),
            ("src/area.py", WRONG),
            ("tests/test_area.py", check),
        ]);
        let original = placed(&fixture, builder);
        let made = Command::new("python3")
            .args(["-m", "venv", "--without-pip", ".venv"])
            .current_dir(&original)
            .status();
        assert!(made.unwrap().success());
        let lib = original.join(".venv/lib");
        let packages = std::fs::read_dir(&lib)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
            .join("site-packages");
        // What `pip install .` leaves: a copy of the package, beside what it depends on.
        write(packages.join("area.py"), WRONG);
        write(packages.join("helper.py"), "ANSWER = 0\n");
        if is_right {
            let verification = verified(&fixture, &original, "required");
            assert!(
                verification.contains("it now runs with PYTHONPATH=src:."),
                "{verification}"
            );
        } else {
            let status = fixture
                .start_call(&original)
                .args(["--max-iterations", "1"])
                .run()
                .exits(1)
                .json();
            assert!(
                codes(&status, 1).contains(&"verify-nothing-fixed".to_owned()),
                "{status}"
            );
        }
    }
}

/// A workspace whose packages find each other through links in `node_modules`.
fn workspace(fixture: &Fixture) -> PathBuf {
    let check = "const {area} = require('area');\n\
        const helper = require('helper');\n\
        require('fs').writeFileSync('node_modules/helper/index.js', '');\n\
        require('fs').mkdirSync('node_modules/.cache/tool', {recursive: true});\n\
        require('fs').writeFileSync('node_modules/.cache/tool/x', '');\n\
        process.exit(area(3, 4) === 12 && helper === 42 ? 0 : 1);\n";
    let gate = "[gates.tests]\ncommand = [\"node\", \"check.js\"]\n";
    let builder = RepoBuilder::new().files([
        (".crucible/config.toml", gate),
        (".gitignore", "node_modules\n"),
        (
            "packages/area/index.js",
            "exports.area = (width, height) => width + height;\n",
        ),
        ("packages/area/package.json", "{\"name\": \"area\"}\n"),
        ("check.js", check),
    ]);
    let original = placed(fixture, builder);
    write(
        original.join("node_modules/helper/index.js"),
        "module.exports = 42;\n",
    );
    symlink("../packages/area", original.join("node_modules/area")).unwrap();
    original
}

#[test]
fn workspace_link_in_node_modules_leads_to_patch() {
    let answer = "exports.area = (width, height) => width * height;\n";
    let server = answering(whole_file("packages/area/index.js", answer));
    let fixture = Fixture::with(&server);
    let original = workspace(&fixture);
    let run = fixture.start_call(&original).args([
        "--max-iterations",
        "1",
        "--file",
        "packages/area/index.js",
    ]);
    let status = run.run().ok().json();
    assert_eq!(status["state"], "verified", "{status}");
    // A gate writes to packages privately.
    assert!(!original.join("node_modules/.cache").exists());
    let helper = std::fs::read_to_string(original.join("node_modules/helper/index.js")).unwrap();
    assert_eq!(helper, "module.exports = 42;\n");
}

/// The report of a run of one attempt at this file, which ends in `state`.
#[track_caller]
fn report_of(fixture: &Fixture, original: &Path, file: &str, state: &str) -> String {
    let run = fixture
        .start_call(original)
        .args(["--max-iterations", "1", "--file", file]);
    let ran = run.run();
    let status: serde_json::Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    assert_eq!(status["state"], state, "{status}");
    std::fs::read_to_string(fixture.runs()[0].join("artifacts/verify_report.json")).unwrap()
}

/// A test script with a linter, tests that report nothing, and a step that cannot pass in a gate. `now` is what the last step
/// prints once the tests pass.
fn script_of_steps(fixture: &Fixture, now: &str) -> PathBuf {
    let last = format!(
        "const {{area}} = require('./area.js');\n\
        console.log(area(3, 4) === 12 ? '{now}' : 'no network');\nprocess.exit(1);\n"
    );
    let manifest = "{\"scripts\": {\"test\": \"npm run lint && node test.js && node last.js\", \"lint\": \"node lint.js\"}}\n";
    let builder = RepoBuilder::new().files([
        ("package.json", manifest),
        (
            "area.js",
            "exports.area = (width, height) => width + height;\n",
        ),
        ("lint.js", ""),
        (
            "test.js",
            "process.exit(require('./area.js').area(3, 4) === 12 ? 0 : 1);\n",
        ),
        ("last.js", last.as_str()),
    ]);
    placed(fixture, builder)
}

#[test]
fn step_that_fails_as_before_does_not_decide() {
    let answer = "exports.area = (width, height) => width * height;\n";
    for (now, state) in [("no network", "verified"), ("worse", "failed")] {
        let server = answering(whole_file("area.js", answer));
        let fixture = Fixture::with(&server);
        let original = script_of_steps(&fixture, now);
        let report = report_of(&fixture, &original, "area.js", state);
        assert!(report.contains("step: node last.js"), "{report}");
    }
}

/// A commit of two tests, and one that failed long before.
fn two_new_tests(fixture: &Fixture) -> PathBuf {
    let test = |more: &str| {
        format!(
            "const test = require('node:test'), assert = require('node:assert');\n\
             const box = require('./box.js');\n\n\
             test('reaches a server', () => assert.ok(false));\n{more}"
        )
    };
    let repo = RepoBuilder::new()
        .files([
            (
                "package.json",
                "{\"scripts\": {\"test\": \"node --test\"}}\n",
            ),
            (
                "box.js",
                "exports.area = (a, b) => a + b;\nexports.rim = (a, b) => a + b;\n",
            ),
            ("box.test.js", test("").as_str()),
        ])
        .build();
    repo.write(
        "box.test.js",
        test(
            "\ntest('computes the area', () => assert.equal(box.area(3, 4), 12));\n\n\
             test('computes the rim', () => assert.equal(box.rim(3, 4), 14));\n",
        ),
    );
    repo.commit("Test the area and the rim");
    placed_repo(fixture, &repo)
}

#[test]
fn half_of_a_fix_is_refused() {
    let half = "exports.area = (a, b) => a * b;\nexports.rim = (a, b) => a + b;\n";
    let full_text = "exports.area = (a, b) => a * b;\nexports.rim = (a, b) => 2 * (a + b);\n";
    for (answer, state) in [(half, "failed"), (full_text, "verified")] {
        let server = answering(whole_file("box.js", answer));
        let fixture = Fixture::with(&server);
        let original = two_new_tests(&fixture);
        let report = report_of(&fixture, &original, "box.js", state);
        let is_refused = report.contains("verify-related-test-fails");
        assert_eq!(is_refused, state == "failed", "{report}");
    }
}

#[test]
fn gate_that_tests_a_build_builds_first() {
    let answer = "export const area = (a, b) => a * b;\n";
    let server = answering(whole_file("src/area.mjs", answer));
    let fixture = Fixture::with(&server);
    let manifest = "{\"scripts\": {\"compile\": \"node build.mjs\", \"test\": \"node --test\"}}\n";
    let build = "import { readdirSync, copyFileSync } from 'node:fs';\nimport { execFileSync } from 'node:child_process';\n\
                 for (const name of readdirSync('src')) {\n  const file = ['src', name].join('/');\n\
                 execFileSync('node', ['--check', file]);\n  copyFileSync(file, ['out', name].join('/'));\n}\n";
    let test = "import test from 'node:test';\nimport assert from 'node:assert';\n\
                import { area } from './out/area.mjs';\ntest('area', () => assert.equal(area(3, 4), 12));\n\
                test('zero', () => assert.equal(area(0, 0), 0));\n";
    let original = placed(
        &fixture,
        RepoBuilder::new().files([
            ("package.json", manifest),
            (".gitignore", "out\n"),
            ("build.mjs", build),
            ("src/area.mjs", "export const area = (a, b) => a + b;\n"),
            ("area.test.mjs", test),
        ]),
    );
    write(
        original.join("out/area.mjs"),
        "export const area = (a, b) => a + b;\n",
    );
    let run = fixture
        .start_call(&original)
        .args(["--max-iterations", "1", "--file", "src/area.mjs"])
        .run();
    assert!(
        run.stderr.contains(
            "gate npm-test tested what an earlier build left; it now runs `npm run compile` first"
        ),
        "{}",
        run.stderr
    );
    let status = run.ok().json();
    assert_eq!(status["state"], "verified", "{status}");
}

#[test]
fn gate_sees_generated_files_and_tags_without_secrets() {
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let check = format!(
        "set -e\n[ \"$(cat src/_version.py)\" = 1.2 ]\n[ \"$(git describe --tags --abbrev=0)\" = v1.2 ]\n\
         git log -1 --format=%s >/dev/null\n[ -f build/out.o ] && [ src/area.c -ot build/out.o ]\n\
         for path in .env own.key notes.cfg fifo out-link .git/hooks/pre-commit; do\n\
         if [ -e $path ] || [ -L $path ]; then echo \"$path is here\"; exit 9; fi\ndone\n{TEST}"
    );
    let ignore = "_version.py\n.env\n*.key\n*.cfg\nbuild/\nfifo\nout-link\n";
    let original = placed(
        &fixture,
        small()
            .file("check.sh", check)
            .file(".gitignore", ignore)
            .file("src/area.c", "c\n"),
    );
    for (path, content) in [
        ("src/_version.py", "1.2\n"),
        (".env", "TOKEN=1\n"),
        ("own.key", "key\n"),
        (".git/hooks/pre-commit", "#!/bin/sh\n"),
        ("build/out.o", "o\n"),
    ] {
        write(original.join(path), content);
    }
    let secret = format!("key = {}{}\n", "AKIA", "ZQ3DRSTUVWXY2345");
    write(original.join("notes.cfg"), &secret);
    let older = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    std::fs::File::open(original.join("src/area.c"))
        .unwrap()
        .set_modified(older)
        .unwrap();
    symlink("/etc/passwd", original.join("out-link")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(original.join("fifo"))
            .status()
            .unwrap()
            .success()
    );
    let verification = verified(&fixture, &original, "required");
    assert!(
        verification.contains("not copied for the gates: "),
        "{verification}"
    );
    let analysis =
        std::fs::read_to_string(fixture.runs()[0].join("artifacts/analysis.json")).unwrap();
    for name in [".env", "own.key", "notes.cfg", "out-link"] {
        assert!(analysis.contains(name), "{name} is not in {analysis}");
    }
}
