//! Honest changes in repositories where no failing test turns green, and what a person accepts for a run.

use crucible_testkit::{FakeOpenAi, Reply, RepoBuilder, TestRepo};
use serde_json::Value;

use crate::support::{Fixture, Ran, answering, codes, id_of, whole_file};

const UNITTEST: &str = "[gates.tests]\ncommand = [\"python3\", \"-m\", \"unittest\", \"discover\", \"-v\", \"-s\", \"tests\", \"-t\", \".\"]\n";
const SOURCE: &str = "shop/price.py";
const PRICE: &str = "def total(items):\n    return sum(items)\n";
const TWICE: &str = "\n\ndef twice(items):\n    return 2 * total(items)\n";

/// A test case with these methods, of the package's module.
fn cases(class: &str, methods: &str) -> String {
    format!(
        "import unittest\n\nfrom shop import price\n\n\nclass {class}(unittest.TestCase):\n{methods}"
    )
}

fn method(name: &str, check: &str) -> String {
    format!("    def {name}(self):\n        {check}\n")
}

/// A package whose test of `total` is green, beside this test file.
fn shop(more: &str) -> TestRepo {
    let green = cases(
        "Price",
        &method("test_total", "self.assertEqual(price.total([1, 2]), 3)"),
    );
    RepoBuilder::new()
        .files([
            (".crucible/config.toml", UNITTEST),
            (SOURCE, PRICE),
            ("shop/__init__.py", ""),
            ("tests/__init__.py", ""),
            ("tests/test_price.py", green.as_str()),
            ("tests/test_zone.py", more),
        ])
        .build()
}

/// A test that no change of the package turns green.
fn red_zone() -> String {
    cases(
        "Zone",
        &method("test_zone", "self.assertEqual('UTC', 'EST')"),
    )
}

fn start(fixture: &Fixture, repo: &TestRepo, goal: &str, attempts: &str) -> Ran {
    let call = fixture.call(["run", "start", goal, "--json", "--max-iterations", attempts]);
    call.args(["--file", SOURCE, "--repo"])
        .arg(repo.path())
        .run()
}

/// The package with another function, and a test of it.
fn feature(check: &str) -> String {
    let test = cases("Twice", &method("test_twice", check));
    whole_file(SOURCE, &format!("{PRICE}{TWICE}")) + &whole_file("tests/test_twice.py", &test)
}

#[test]
fn feature_with_its_test_lands_beside_a_red_test() {
    let repo = shop(&red_zone());
    let server = answering(feature("self.assertEqual(price.twice([1]), 2)"));
    let fixture = Fixture::with(&server);
    let goal = "add a function twice(items) to shop/price.py, with a test";
    let status = start(&fixture, &repo, goal, "1").ok().json();
    assert_eq!(status["state"], "verified", "{status}");
    assert!(codes(&status, 1).contains(&"verify-nothing-fixed".to_owned()));
    assert!(
        status["failing_tests"].to_string().contains("test_zone"),
        "{status}"
    );
    let id = id_of(&status);
    let text = fixture.run(["run", "status", &id]).ok().stdout;
    assert!(text.contains("red       1 test fails: "), "{text}");
    fixture.run(["run", "replay", &id]).ok();
    fixture.run(["run", "land", &id]).ok();
}

/// The goal's own test stays red, whatever the change adds beside it.
#[test]
fn added_test_does_not_land_a_broken_fix() {
    let red = cases(
        "Sum",
        &method("test_discount", "self.assertEqual(price.total([-1, 2]), 2)"),
    );
    let wrong = |check: &str| {
        let test = cases("Added", &method("test_added", check));
        let text = PRICE.replace("sum(items)", "sum(items, 0)");
        whole_file(SOURCE, &text) + &whole_file("tests/test_added.py", &test)
    };
    for (goal, check) in [
        // It tests nothing.
        ("leave negative prices out", "self.assertTrue(True)"),
        // It tests the changed function, which the red test runs, too.
        (
            "leave negative prices out",
            "self.assertEqual(price.total([1]), 1)",
        ),
        (
            "make the tests pass",
            "self.assertEqual(price.total([1]), 1)",
        ),
    ] {
        let repo = shop(&red);
        let server = answering(wrong(check));
        let fixture = Fixture::with(&server);
        let ran = start(&fixture, &repo, goal, "1").exits(1);
        let status = ran.json();
        let found = codes(&status, 1);
        assert!(
            found.contains(&"verify-nothing-fixed".to_owned()),
            "{found:?}"
        );
        let command = format!(
            "crucible run advance {} --accept verify-nothing-fixed",
            id_of(&status)
        );
        assert!(ran.stderr.contains(&command), "{}", ran.stderr);
    }
}

fn plan(fixture: &Fixture) -> String {
    std::fs::read_to_string(fixture.runs()[0].join("artifacts/PLAN.md")).unwrap()
}

#[test]
fn accepted_refusal_verifies_the_same_change() {
    let repo = shop(&red_zone());
    let text = PRICE.replace("items", "prices");
    let server = answering(whole_file(SOURCE, &text));
    let fixture = Fixture::with(&server);
    let goal = "rename the parameter of total() to prices";
    let ran = start(&fixture, &repo, goal, "1").exits(1);
    let status = ran.json();
    let id = id_of(&status);
    assert_eq!(status["refused"][0]["code"], "verify-nothing-fixed");
    assert!(
        status["bundle"]
            .as_str()
            .unwrap()
            .ends_with("failure_bundle.zip")
    );
    let stdout = fixture.run(["run", "status", &id]).ok().stdout;
    for part in [
        "refused   ",
        "red       1 test fails",
        "bundle    /",
        "--accept",
    ] {
        assert!(stdout.contains(part), "{part} in {stdout}");
    }
    let request_count = server.requests().len();

    let unknown = ["run", "advance", &id, "--accept", "verify-test-broken"];
    fixture.run(unknown).exits(2);
    assert_eq!(fixture.status()["state"], "failed");

    let accept = [
        "run",
        "advance",
        &id,
        "--accept",
        "verify-nothing-fixed",
        "--json",
    ];
    let status = fixture.run(accept).ok().json();
    assert_eq!(status["state"], "verified", "{status}");
    assert_eq!(status["attempts"][1]["again"], 1);
    assert_eq!(
        server.requests().len(),
        request_count,
        "no model is asked again"
    );
    assert!(plan(&fixture).contains("\nAccepts: verify-nothing-fixed\n"));
    fixture.run(["run", "verify-record", &id]).ok();
    fixture.run(["run", "replay", &id]).ok();
    fixture.run(["run", "land", &id]).ok();
    fixture.run(["run", "verify-record", &id]).ok();
}

/// What was accepted does not excuse a change that breaks a test.
#[test]
fn accepted_refusal_lifts_no_other() {
    let repo = shop(&red_zone());
    let wrong = whole_file(SOURCE, &PRICE.replace("sum(items)", "0"));
    let renamed = whole_file(SOURCE, &PRICE.replace("items", "prices"));
    let server = FakeOpenAi::start([renamed, wrong.clone(), wrong].map(Reply::Answer));
    let fixture = Fixture::with(&server);
    let goal = "rename the parameter of total() to prices; the tests of zones are red";
    let status = start(&fixture, &repo, goal, "2").exits(1).json();
    let id = id_of(&status);
    assert!(
        !status["next"].as_str().unwrap().contains("--accept"),
        "a test is broken: {}",
        status["next"]
    );
    let accept = [
        "run",
        "advance",
        &id,
        "--accept",
        "verify-nothing-fixed",
        "--json",
    ];
    let status = fixture.run(accept).exits(1).json();
    assert_eq!(status["state"], "failed");
}

/// A program whose check runs only one of its functions.
fn program() -> TestRepo {
    RepoBuilder::new()
        .files([
            (
                ".crucible/config.toml",
                "[gates.check]\ncommand = [\"make\", \"check\"]\n",
            ),
            (
                "Makefile",
                "check:\n\tcc -Isrc -o check check.c src/sum.c\n\t./check\n",
            ),
            (
                "check.c",
                "#include \"sum.h\"\nint main(void) { return sum(1, 2) == 3 ? 0 : 1; }\n",
            ),
            ("src/sum.h", "int sum(int a, int b);\n"),
            ("src/sum.c", "int sum(int a, int b) { return a + b; }\n"),
        ])
        .build()
}

#[test]
fn untested_change_without_test_path_stops() {
    let repo = program();
    let text = "int sum(int a, int b) { return a + b; }\n\nint twice(int a) { return 2 * a; }\n";
    let server = answering(whole_file("src/sum.c", text));
    let fixture = Fixture::with(&server);
    let call = fixture.call([
        "run",
        "start",
        "add a function twice(a) to src/sum.c",
        "--json",
    ]);
    let call = call
        .args(["--file", "src/sum.c", "--repo"])
        .arg(repo.path());
    let status = call.run().exits(1).json();
    let id = id_of(&status);
    assert_eq!(
        codes(&status, 1),
        ["run-gates-passed-before", "verify-change-not-noticed"]
    );
    assert_eq!(status["failure"]["code"], "run-no-test-possible");
    assert_eq!(server.requests().len(), 1, "no other answer can help");
    let command = format!("crucible run advance {id} --accept verify-change-not-noticed");
    assert!(
        status["next"].as_str().unwrap().contains(&command),
        "{status}"
    );
    let accept = [
        "run",
        "advance",
        &id,
        "--accept",
        "verify-change-not-noticed",
        "--json",
    ];
    let status = fixture.run(accept).ok().json();
    assert_eq!(status["state"], "verified", "{status}");
    fixture.run(["run", "land", &id]).ok();
}

#[test]
fn untested_change_is_asked_for_a_test() {
    let repo = shop("");
    let untested = whole_file(SOURCE, &format!("{PRICE}{TWICE}"));
    let server = FakeOpenAi::start(
        [untested, feature("self.assertEqual(price.twice([1]), 2)")].map(Reply::Answer),
    );
    let fixture = Fixture::with(&server);
    let status = start(
        &fixture,
        &repo,
        "add a function twice(items) to shop/price.py",
        "4",
    );
    let status: Value = status.ok().json();
    assert_eq!(status["state"], "verified", "{status}");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let second = requests[1].body.to_string();
    assert!(
        second.contains("add a test that fails without it") && second.contains("tests/"),
        "{second}"
    );
}
