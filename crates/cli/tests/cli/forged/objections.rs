//! Objections: tests that a model writes against a change, of which only those with a witness refuse it.

use std::path::Path;

use crucible_testkit::{FakeOpenAi, Reply, RepoBuilder};
use serde_json::{Value, json};

use super::{Project, with_toolchain};
use crate::support::{Fixture, codes, id_of, whole_file};

const SENTENCE: &str = "Without items there is one empty page.";
const README: &str =
    "# Pages\n\nItems are split into pages. Without items there is one empty page.\n";
const WRONG: &str = "def pages(items, size):\n    starts = range(0, len(items), size)\n    return [items[at:at + size] for at in starts]\n";
const RIGHT: &str = "def pages(items, size):\n    starts = range(0, len(items), size)\n    return [items[at:at + size] for at in starts] or [[]]\n";
/// Only the change has this line.
const OF_CHANGE: &str = "for at in starts]";

const PYTHON: Project<'static> = Project {
    files: &[
        (
            ".crucible/config.toml",
            "[gates.tests]\ncommand = [\"python3\", \"-m\", \"unittest\", \"discover\", \"-s\", \"tests\", \"-t\", \".\"]\n",
        ),
        ("README.md", README),
        ("shop/__init__.py", ""),
        ("shop/pages.py", "def pages(items, size):\n    return []\n"),
        ("tests/__init__.py", ""),
        (
            "tests/test_pages.py",
            "import unittest\n\nfrom shop.pages import pages\n\n\nclass Pages(unittest.TestCase):\n    def test_split(self):\n        self.assertEqual(pages([1, 2, 3], 2), [[1, 2], [3]])\n",
        ),
    ],
    source: "shop/pages.py",
    goal: "pages must split the items",
};

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
        ("README.md", README),
        (
            "src/pages.js",
            "function pages(items, size) {\n  return [];\n}\n\nmodule.exports = { pages };\n",
        ),
        (
            "test/pages.test.js",
            "const test = require('node:test');\nconst assert = require('node:assert');\nconst { pages } = require('../src/pages.js');\n\ntest('split', () => {\n  assert.deepStrictEqual(pages([1, 2, 3], 2), [[1, 2], [3]]);\n});\n",
        ),
    ],
    source: "src/pages.js",
    goal: "pages must split the items",
};
const NODE_WRONG: &str = "function pages(items, size) {\n  const found = [];\n  for (let at = 0; at < items.length; at += size) {\n    found.push(items.slice(at, at + size));\n  }\n  return found;\n}\n\nmodule.exports = { pages };\n";
const NODE_TEST: &str = "const test = require('node:test');\nconst assert = require('node:assert');\nconst { pages } = require('../src/pages.js');\n\ntest('no items', () => {\n  assert.deepStrictEqual(pages([], 2), [[]]);\n});\n";

/// A test of Python with this body.
fn python_test(body: &str) -> String {
    format!(
        "import unittest\n\nfrom shop.pages import pages\n\n\nclass None_(unittest.TestCase):\n    def test_no_items(self):\n        {body}\n"
    )
    .replace("None_", "Empty")
}

fn objection(path: &str, name: &str, text: &str, expected: &str, source: &str) -> Value {
    json!({
        "test": {"path": path, "name": name, "text": text},
        "expected": expected,
        "rests_on": {"source": source, "sentence": SENTENCE},
    })
}

fn of_python(body: &str, expected: &str) -> Value {
    objection(
        "tests/test_no_items.py",
        "test_no_items",
        &python_test(body),
        expected,
        "README.md",
    )
}

/// A server whose model proposes these changes in order, raises these objections each time, and derives this value.
fn model(proposals: &[String], objections: &[Value], derived: &str) -> FakeOpenAi {
    let mut proposals = proposals.to_vec();
    proposals.reverse();
    let raised = json!({ "objections": objections }).to_string();
    let derived = json!({ "expected": derived }).to_string();
    FakeOpenAi::answering(move |request| {
        let text = request.conversation();
        Reply::Answer(
            if text.contains("Look for a case in which it contradicts") {
                raised.clone()
            } else if text.contains("one test of it lacks its expected value") {
                derived.clone()
            } else {
                proposals.pop().unwrap_or_default()
            },
        )
    })
}

/// Starts a run with this policy; returns its status.
fn started(
    project: &Project<'_>,
    server: &FakeOpenAi,
    policy: &str,
    attempts: &str,
) -> (Fixture, Value) {
    let repo = RepoBuilder::new()
        .files(project.files.iter().copied())
        .build();
    let fixture = Fixture::with(server);
    let call = fixture.call([
        "run",
        "start",
        project.goal,
        "--json",
        "--max-iterations",
        attempts,
    ]);
    let ran = with_toolchain(call)
        .env("CRUCIBLE_RUN_OBJECTIONS", policy)
        .env("CRUCIBLE_RUN_STRENGTH_BUDGET_S", "0")
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
    if status["state"] == "verified" {
        fixture.run(["run", "verify-record", &id_of(&status)]).ok();
        // The output of `node --test` has times, which are part of the prompt.
        if project.source.ends_with(".py") {
            let second_call =
                with_toolchain(fixture.call(["run", "replay", &id_of(&status), "--json"]));
            assert_eq!(second_call.run().ok().json()["different"], json!([]));
        }
    }
    (fixture, status)
}

fn report(status: &Value) -> Value {
    let directory = status["directory"].as_str().unwrap();
    let path = Path::new(directory).join("artifacts/verify_report.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn witness_refuses_change_and_becomes_next_prompt() {
    let proposals = [WRONG, RIGHT].map(|text| whole_file(PYTHON.source, text));
    let witness = of_python("self.assertEqual(pages([], 2), [[]])", "[[]]");
    let server = model(&proposals, &[witness], "[[], ]");
    let (_desk, status) = started(&PYTHON, &server, "blocking", "3");
    assert_eq!(status["state"], "verified", "{status:#}");
    assert_eq!(status["attempts"][0]["end"], "verify_failed");
    assert!(
        codes(&status, 1)
            .iter()
            .any(|code| code == "verify-objection-witness")
    );
    let requests = server.requests();
    let texts: Vec<String> = requests
        .iter()
        .map(|request| request.conversation())
        .collect();
    let second: Vec<&String> = texts
        .iter()
        .filter(|text| text.contains("lacks its expected value"))
        .collect();
    assert!(!second.is_empty());
    for text in second {
        assert!(
            text.contains(SENTENCE) && text.contains("def pages(items, size)"),
            "{text}"
        );
        assert!(
            !text.contains(OF_CHANGE) && !text.contains("[[]]"),
            "{text}"
        );
    }
    let is_repeated = texts.iter().any(|text| {
        text.contains("why it was refused") && text.contains("self.assertEqual(pages([], 2), [[]])")
    });
    assert!(is_repeated, "the fixer sees the test: {texts:#?}");
    // The test lands only when a person adds it.
    let patch = Path::new(status["directory"].as_str().unwrap()).join("artifacts/diff.patch");
    assert!(
        !std::fs::read_to_string(patch)
            .unwrap()
            .contains("test_no_items")
    );
    let report = report(&status);
    assert_eq!(report["objections"]["policy"], "blocking");
}

#[test]
fn advisory_witness_is_reported_and_verified() {
    let witness = objection(
        "test/no-items.test.js",
        "no items",
        NODE_TEST,
        "[[]]",
        "README.md",
    );
    let server = model(&[whole_file(NODE.source, NODE_WRONG)], &[witness], "[[]]");
    let (fixture, status) = started(&NODE, &server, "advisory", "1");
    assert_eq!(status["state"], "verified", "{status:#}");
    let report = report(&status);
    let objection = &report["objections"]["objections"][0];
    assert_eq!(objection["outcome"], "witness", "{report:#}");
    assert!(
        report["warnings"]
            .to_string()
            .contains("verify-objection-witness")
    );
    let text = fixture.run(["run", "status"]).ok().stdout;
    assert!(text.contains("objections: 1, 1 with a witness"), "{text}");
    let id = id_of(&status);
    let view = fixture.run(["report", &id, "--json"]).ok().json();
    let document = &view["attempts"][0]["verification"]["objections"];
    assert_eq!(document["witnesses"], 1, "{view:#}");
    let one = &document["objections"][0];
    assert_eq!(
        one["sentence"], objection["rests_on"]["sentence"],
        "{one:#}"
    );
    assert_eq!(one["text"], objection["test"]["text"], "{one:#}");
    let markdown = fixture.run(["report", &id]).ok().stdout;
    let line = "- objections: 1 judged, 1 with a witness, 0 not judged";
    assert!(markdown.contains(line), "{markdown}");
}

/// What an objector may try to block a change that is right, and why it is advice.
#[test]
fn objections_without_witness_are_advice() {
    let good = "self.assertEqual(pages([], 2), [[]])";
    let wrong_value = "self.assertEqual(pages([], 2), [])";
    let mut no_sentence = of_python(good, "[[]]");
    no_sentence["rests_on"]["sentence"] = "Without items there are two empty pages.".into();
    let mut of_source = of_python(good, "[[]]");
    of_source["rests_on"]["source"] = "shop/pages.py".into();
    let mut in_place = of_python(good, "[[]]");
    in_place["test"]["path"] = "tests/test_pages.py".into();
    let no_test = of_python("raise AssertionError('no')", "[[]]");
    let error = of_python("self.assertEqual(pages([], 2, 3), [])", "[]");
    let private = of_python("self.assertEqual(pages.__name__, 'x')", "'x'");
    let unknown = objection("tests/a.rs", "a", "", "1", "README.md");
    for (objections, reasons) in [
        (
            [no_sentence, of_source, in_place],
            [
                "does not contain the sentence",
                "does not contain the sentence",
                "a file at its path",
            ],
        ),
        (
            [no_test, error, private],
            ["is not allowed", "not by its assertion", "private"],
        ),
        (
            [
                of_python(good, "[[]]"),
                of_python(wrong_value, "[]"),
                unknown,
            ],
            [
                "passes on the change",
                "derives another expected value",
                "not judged",
            ],
        ),
    ] {
        let server = model(&[whole_file(PYTHON.source, RIGHT)], &objections, "[[]]");
        let (_desk, status) = started(&PYTHON, &server, "blocking", "1");
        assert_eq!(status["state"], "verified", "{status:#}");
        let report = report(&status);
        for (at, reason) in reasons.iter().enumerate() {
            let judged = &report["objections"]["objections"][at];
            assert_eq!(judged["outcome"], "advice", "{judged:#}");
            let why = judged["reason"].as_str().unwrap();
            assert!(why.contains(reason), "{why}");
        }
    }
}

#[test]
fn unusable_objections_change_nothing() {
    let proposal = whole_file(PYTHON.source, RIGHT);
    let server = FakeOpenAi::answering(move |request| {
        let is_objector = request
            .conversation()
            .contains("Look for a case in which it contradicts");
        Reply::Answer(if is_objector {
            "I object!".to_owned()
        } else {
            proposal.clone()
        })
    });
    let (_desk, status) = started(&PYTHON, &server, "blocking", "1");
    assert_eq!(status["state"], "verified", "{status:#}");
    assert!(report(&status)["objections"]["unusable"].is_string());
}

#[test]
fn project_cannot_choose_objections() {
    let mut files = PYTHON.files.to_vec();
    let config = format!("{}\n[run]\nobjections = \"blocking\"\n", files[0].1);
    files[0].1 = &config;
    let server = model(&[whole_file(PYTHON.source, RIGHT)], &[], "1");
    let repo = RepoBuilder::new().files(files.iter().copied()).build();
    let fixture = Fixture::with(&server);
    let call = fixture.call([
        "run",
        "start",
        PYTHON.goal,
        "--json",
        "--file",
        PYTHON.source,
        "--repo",
    ]);
    let ran = with_toolchain(call).arg(repo.path()).run();
    assert!(ran.stderr.contains("run.objections"), "{}", ran.stderr);
    let is_requested = server
        .requests()
        .iter()
        .any(|request| request.conversation().contains("Look for a case"));
    assert!(!is_requested);
}
