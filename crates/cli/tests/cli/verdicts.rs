//! How a run judges by its gates: whether they test the change, what they came to before it, and each test beside what it was.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crucible_testkit::{RepoBuilder, TestRepo};
use serde_json::{Value, json};

use crate::support::{Fixture, answering, codes, id_of, whole_file};

const SOURCE: &str = "shop/price.py";
const WRONG: &str =
    "def total(items):\n    return 0\n\n\ndef count(items):\n    return len(items)\n";
const UNITTEST: &str =
    "[\"python3\", \"-m\", \"unittest\", \"discover\", \"-v\", \"-s\", \"tests\", \"-t\", \".\"]";

/// Tests of the package `shop`; what imports it may say from where.
fn tests(head: &str) -> String {
    format!(
        "{head}import unittest\n\nfrom shop import price\n\n\nclass Price(unittest.TestCase):\n\
         \x20   def test_total(self):\n        self.assertEqual(price.total([1, 2]), 3)\n\n\
         \x20   def test_count(self):\n        self.assertEqual(price.count([1, 2]), 2)\n\n\
         \x20   def test_network(self):\n        import urllib.request\n        urllib.request.urlopen('http://127.0.0.1:9/')\n"
    )
}

fn gate(name: &str, command: &str) -> String {
    format!("[gates.{name}]\ncommand = {command}\n")
}

fn shop(gates: &str, head: &str) -> RepoBuilder {
    RepoBuilder::new().files([
        (".crucible/config.toml", gates),
        (SOURCE, WRONG),
        ("shop/__init__.py", ""),
        ("tests/__init__.py", ""),
        ("tests/test_price.py", tests(head).as_str()),
    ])
}

/// A file with another sum and another count.
fn changed(total: &str, count: &str) -> String {
    let text = WRONG.replacen("return 0", &format!("return {total}"), 1);
    whole_file(
        SOURCE,
        &text.replacen("return len(items)", &format!("return {count}"), 1),
    )
}

/// Starts a run that gets this answer.
fn start(fixture: &Fixture, repo: &TestRepo) -> crate::support::Ran {
    let call = fixture.call([
        "run",
        "start",
        "total must add up the prices",
        "--json",
        "--max-iterations",
        "1",
    ]);
    call.args(["--file", SOURCE, "--repo"])
        .arg(repo.path())
        .run()
}

fn document(fixture: &Fixture, path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(fixture.runs()[0].join(path)).unwrap()).unwrap()
}

/// The error of a run whose gates count for nothing, and its hints.
#[track_caller]
fn refused(repo: &TestRepo) -> String {
    let server = answering(changed("sum(items)", "len(items)"));
    let fixture = Fixture::with(&server);
    let error = start(&fixture, repo).exits(2).error();
    assert!(server.requests().is_empty(), "a model was asked");
    error.to_string()
}

#[test]
fn gate_of_an_installed_copy_stops_the_run() {
    // The tests import what lies in `vendor`, as a plain installation does with a copy of the package.
    let head = "import sys\nsys.path.insert(0, 'vendor')\nsys.modules.pop('shop', None)\n";
    let installed =
        "def total(items):\n    return sum(items)\n\n\ndef count(items):\n    return len(items)\n";
    let repo = shop(&gate("tests", UNITTEST), head)
        .file("vendor/shop/__init__.py", "")
        .file("vendor/shop/price.py", installed)
        .build();
    let error = refused(&repo);
    for part in [
        "gate tests",
        "deliberately broken sources",
        "installed copy",
        "pip install -e .",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

/// Tests of the package `area` of a `src` layout, which stands where Python finds installed packages: after `PYTHONPATH`.
fn installed(source: &str, installed: &str) -> RepoBuilder {
    let tests = "import sys\nsys.path.append('vendor')\nimport unittest\n\nimport area\n\n\n\
        class Area(unittest.TestCase):\n    def test_area(self):\n        self.assertEqual(area.area(3, 4), 12)\n\n\
        \x20   def test_edge(self):\n        self.assertEqual(area.edge(), 1)\n";
    RepoBuilder::new().files([
        (".crucible/config.toml", gate("tests", UNITTEST).as_str()),
        ("src/area/__init__.py", source),
        ("tests/__init__.py", ""),
        ("tests/test_area.py", tests),
        ("vendor/area.py", installed),
    ])
}

const AREA: &str =
    "def area(width, height):\n    return width + height\n\n\ndef edge():\n    return 1\n";

/// Starts a run that gets `answer` as the package.
fn start_area(fixture: &Fixture, repo: &TestRepo) -> crate::support::Ran {
    let call = fixture.call([
        "run",
        "start",
        "area must multiply",
        "--json",
        "--max-iterations",
        "1",
    ]);
    call.args(["--file", "src/area/__init__.py", "--repo"])
        .arg(repo.path())
        .run()
}

#[test]
fn plainly_installed_package_is_tested_in_the_copy() {
    let right = AREA.replace("width + height", "width * height");
    for (answer, state) in [
        (right.as_str(), "verified"),
        (&AREA.replace("width + height", "width"), ""),
    ] {
        let (repo, server) = (
            installed(AREA, AREA).build(),
            answering(whole_file("src/area/__init__.py", answer)),
        );
        let fixture = Fixture::with(&server);
        let ran = start_area(&fixture, &repo);
        assert!(
            ran.stderr.contains("gate tests tested an installed copy"),
            "{}",
            ran.stderr
        );
        let analysis = document(&fixture, "artifacts/analysis.json");
        assert_eq!(analysis["python_paths"], json!({ "tests": ["src", "."] }));
        assert_eq!(
            analysis["canary"]["gates"],
            json!([{ "id": "tests", "outcome": "noticed" }])
        );
        if state.is_empty() {
            assert_eq!(
                codes(&ran.exits(1).json(), 1),
                ["verify-test-still-fails", "verify-nothing-fixed"]
            );
            continue;
        }
        let id = id_of(&ran.ok().json());
        // Every later trial of the run looks there, too.
        fixture.run(["verify", "--run", &id]).ok();
    }
}

#[test]
fn failing_sources_behind_installed_package_stop_the_run() {
    // In the copy `edge` is missing, so the gate would be worse there than it is now.
    let source = "def area(width, height):\n    return width + height\n";
    let (repo, server) = (
        installed(source, AREA).build(),
        answering(whole_file("src/area/__init__.py", AREA)),
    );
    let fixture = Fixture::with(&server);
    let error = start_area(&fixture, &repo).exits(2).error().to_string();
    assert!(server.requests().is_empty(), "a model was asked");
    assert!(
        error.contains("installed copy") && error.contains("pip install -e ."),
        "{error}"
    );
}

#[test]
fn program_as_gate_and_source_counts_for_itself() {
    let program = "def total(items):\n    return 0\n\n\nassert total([]) == 0\n";
    let own = gate("own", "[\"python3\", \"src/a.py\"]");
    let files = [
        (".crucible/config.toml", own.as_str()),
        ("src/a.py", program),
    ];
    let repo = RepoBuilder::new()
        .files(files)
        .file("README.md", "shop\n")
        .build();
    for (file, text, state) in [
        (
            "src/a.py",
            program.replace("return 0", "return sum(items)"),
            "verified",
        ),
        ("README.md", "shopping\n".to_owned(), "failed"),
    ] {
        let server = answering(whole_file(file, &text));
        let fixture = Fixture::with(&server);
        let call = fixture.call([
            "run",
            "start",
            &format!("mend {file}"),
            "--json",
            "--max-iterations",
            "1",
        ]);
        let ran = call.args(["--file", file, "--repo"]).arg(repo.path()).run();
        assert_eq!(
            document(&fixture, "artifacts/analysis.json")["canary"]["broken"],
            "gates"
        );
        match state {
            "verified" => assert_eq!(ran.ok().json()["state"], state),
            _ => assert!(codes(&ran.exits(1).json(), 1).contains(&"verify-no-gate-counts".into())),
        }
    }
}

#[test]
fn canary_is_switched_off_by_the_user_alone() {
    let answer = || answering(changed("sum(items)", "len(items)"));
    let (repo, server) = (shop(&gate("noop", "[\"true\"]"), "").build(), answer());
    let fixture = Fixture::with(&server);
    let with = |fixture: &Fixture, words: &[&str]| {
        fixture
            .call(words.iter().copied())
            .env("CRUCIBLE_GATES_NOOP_CANARY", "false")
            .arg("--repo")
            .arg(repo.path())
            .run()
    };
    let value = with(&fixture, &["gates", "--json"]).ok().json();
    assert_eq!(value["gates"][0]["canary"], "off", "{value}");
    let ran = with(
        &fixture,
        &[
            "run",
            "start",
            "total must add up",
            "--file",
            SOURCE,
            "--json",
            "--max-iterations",
            "1",
        ],
    )
    .ok();
    assert!(
        ran.stderr.contains("gate noop counts without a canary run"),
        "{}",
        ran.stderr
    );
    let canary = &document(&fixture, "artifacts/analysis.json")["canary"]["gates"];
    assert_eq!(*canary, json!([{ "id": "noop", "outcome": "off" }]));
    let report = document(&fixture, "artifacts/verify_report.json").to_string();
    assert!(report.contains("verify-gate-canary-off"), "{report}");
    // The project's own file may not say so.
    let repo = shop(&(gate("noop", "[\"true\"]") + "canary = false\n"), "").build();
    let server = answer();
    let fixture = Fixture::with(&server);
    let error = start(&fixture, &repo).exits(2).error().to_string();
    assert!(error.contains("gates.noop.canary"), "{error}");
}

#[test]
fn gate_that_runs_nothing_stops_the_run() {
    let error = refused(&shop(&gate("tests", "[\"true\"]"), "").build());
    assert!(
        error.contains("`true` had the same result on deliberately broken sources"),
        "{error}"
    );
    assert!(error.contains("[gates.tests] command"), "{error}");
}

#[test]
fn ignored_gate_is_listed_beside_counted_one() {
    let gates = gate("noop", "[\"true\"]") + &gate("tests", UNITTEST);
    let (repo, server) = (
        shop(&gates, "").build(),
        answering(changed("sum(items)", "len(items)")),
    );
    let fixture = Fixture::with(&server);
    let ran = start(&fixture, &repo).ok();
    assert!(
        ran.stderr
            .contains("gate noop has the same result on deliberately broken sources"),
        "{}",
        ran.stderr
    );
    let canary = &document(&fixture, "artifacts/analysis.json")["canary"];
    assert_eq!(canary["broken"], "sources");
    assert_eq!(
        canary["gates"],
        json!([{ "id": "noop", "outcome": "unnoticed" }, { "id": "tests", "outcome": "noticed" }])
    );
    let report = document(&fixture, "artifacts/verify_report.json");
    let warned = report["warnings"].as_array().unwrap().iter();
    let uncounted: Vec<&Value> = warned
        .filter(|warning| warning["code"] == "verify-gate-not-counted")
        .collect();
    assert_eq!(uncounted.len(), 1);
    assert_eq!(uncounted[0]["subject"], "noop");
    let second_text = fixture
        .run(["verify", "--json", "--run", &id_of(&ran.json())])
        .ok()
        .json()
        .to_string();
    assert!(
        second_text.contains("verify-gate-not-counted"),
        "{second_text}"
    );
}

#[test]
fn tests_failing_in_sandbox_do_not_refuse_fix() {
    let (repo, server) = (
        shop(&gate("tests", UNITTEST), "").build(),
        answering(changed("sum(items)", "len(items)")),
    );
    let fixture = Fixture::with(&server);
    let ran = start(&fixture, &repo).ok();
    assert_eq!(ran.json()["state"], "verified");
    for part in ["fails before any change", "test_network", "test_total"] {
        assert!(ran.stderr.contains(part), "{part} in {}", ran.stderr);
    }
    let tests = &document(&fixture, "artifacts/verify_report.json")["tests"][0];
    for (list, name) in [("fixed", "test_total"), ("still_failing", "test_network")] {
        assert_eq!(tests[list]["count"], 1, "{tests}");
        assert!(
            tests[list]["names"][0].as_str().unwrap().ends_with(name),
            "{tests}"
        );
    }
    assert_eq!(tests.get("broken"), None);
    let replayed = fixture
        .run(["run", "replay", &id_of(&ran.json()), "--json"])
        .ok()
        .json();
    assert_eq!(
        replayed["different"],
        json!([]),
        "test results and the run on broken sources repeat"
    );
}

/// A test that needs a network, with no word of the shop in it.
const NET: &str = "import unittest\nimport urllib.request\n\n\nclass Net(unittest.TestCase):\n\
    \x20   def test_remote(self):\n        urllib.request.urlopen('http://127.0.0.1:9/')\n";

/// The tests of `shop` that are green before any change, beside one that no change turns green.
fn shop_with_red(red: &str) -> TestRepo {
    let green = tests("")
        .split("\x20   def test_total")
        .next()
        .unwrap()
        .to_owned()
        + "    def test_count(self):\n        self.assertEqual(price.count([1, 2]), 2)\n";
    shop(&gate("tests", UNITTEST), "")
        .file("tests/test_price.py", green)
        .file("tests/test_net.py", red)
        .build()
}

#[test]
fn sandbox_failure_without_goal_test_is_accepted() {
    let (repo, server) = (
        shop_with_red(NET),
        answering(changed("sum(items)", "len(items)")),
    );
    let fixture = Fixture::with(&server);
    let status = start(&fixture, &repo).ok().json();
    assert_eq!(status["state"], "verified", "{status}");
    let report = document(&fixture, "artifacts/verify_report.json");
    let warned = report["warnings"].as_array().unwrap();
    assert!(
        warned
            .iter()
            .any(|warning| warning["code"] == "verify-nothing-fixed"),
        "{report}"
    );
}

#[test]
fn red_test_that_may_be_the_goals_refuses() {
    let assertion = NET.replace(
        "urllib.request.urlopen('http://127.0.0.1:9/')",
        "self.assertEqual(1, 2)",
    );
    let named = NET.replace("test_remote", "test_remote_prices");
    for (red, total, count, code) in [
        (
            &assertion,
            "sum(items)",
            "len(items)",
            "verify-nothing-fixed",
        ),
        (&named, "sum(items)", "len(items)", "verify-nothing-fixed"),
        // What breaks a green test is refused whatever is red besides.
        (&NET.to_owned(), "sum(items)", "0", "verify-test-broken"),
    ] {
        let (repo, server) = (shop_with_red(red), answering(changed(total, count)));
        let fixture = Fixture::with(&server);
        let ran = start(&fixture, &repo);
        let found = codes(&ran.exits(1).json(), 1).join(" ");
        assert!(found.contains(code), "{code} in {found} for {red}");
    }
}

#[test]
fn broken_changes_are_refused_test_by_test() {
    for (total, count, code) in [
        ("sum(items)", "0", "verify-test-broken"),
        ("1", "len(items)", "verify-nothing-fixed"),
        ("sum(items", "len(items)", "verify-gate-failed"),
    ] {
        let (repo, server) = (
            shop(&gate("tests", UNITTEST), "").build(),
            answering(changed(total, count)),
        );
        let fixture = Fixture::with(&server);
        let status = start(&fixture, &repo).exits(1).json();
        let found = codes(&status, 1);
        assert!(
            found.iter().any(|found| found == code),
            "{total} {count}: {found:?}"
        );
        let commands = document(&fixture, "artifacts/verify_report.json")["commands"]
            .as_array()
            .unwrap()
            .len();
        assert_eq!(
            commands,
            if code == "verify-test-broken" { 2 } else { 1 },
            "a red test is run once more"
        );
    }
}

/// Makes `flag` once a gate has left a file of this name somewhere below `place`.
fn flag_after(place: PathBuf, name: &'static str, flag: PathBuf, is_over: Arc<AtomicBool>) {
    fn holds(place: &Path, name: &str, depth: u8) -> bool {
        let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| {
            entry.file_name() == name
                || depth > 0 && entry.path().is_dir() && holds(&entry.path(), name, depth - 1)
        })
    }
    while !is_over.load(Ordering::Relaxed) && !holds(&place, name, 8) {
        std::thread::sleep(Duration::from_millis(50));
    }
    std::fs::write(flag, "").unwrap();
}

#[test]
fn red_test_that_passes_again_is_flaky() {
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let flag = outside.path().join("flag");
    // With the change `test_count` leaves a mark, waits for the flag and fails; with the flag there it passes.
    let head = format!(
        "import os\nimport time\n\nfrom shop import price as changed\n\nif changed.total([1]) == 1 and not os.path.exists({flag:?}):\n\
         \x20   open('first-run', 'w').close()\n    for _ in range(300):\n        if os.path.exists({flag:?}):\n            break\n\
         \x20       time.sleep(0.1)\n    changed.count = lambda items: -1\n",
        flag = flag.to_str().unwrap()
    );
    let (repo, server) = (
        shop(&gate("tests", UNITTEST), &head).build(),
        answering(changed("sum(items)", "len(items)")),
    );
    let fixture = Fixture::with(&server);
    let is_over = Arc::new(AtomicBool::new(false));
    let (home, over) = (fixture.data(), Arc::clone(&is_over));
    let watcher = std::thread::spawn(move || flag_after(home, "first-run", flag, over));
    let ran = start(&fixture, &repo);
    is_over.store(true, Ordering::Relaxed);
    watcher.join().unwrap();
    assert_eq!(ran.ok().json()["state"], "verified");
    let report = document(&fixture, "artifacts/verify_report.json");
    assert_eq!(report["commands"].as_array().unwrap().len(), 2);
    assert!(
        report["tests"][0]["flaky"]["names"][0]
            .as_str()
            .unwrap()
            .ends_with("test_count"),
        "{report:#}"
    );
    assert!(report["warnings"].to_string().contains("verify-test-flaky"));
}

#[test]
fn package_that_cannot_be_imported_stops_the_run() {
    let error = {
        // One module alone that lacks a package may be the test of a feature that brings it.
        let head = "import no_such_package_here\n";
        refused(
            &shop(&gate("tests", UNITTEST), head)
                .files([("tests/test_more.py", head)])
                .build(),
        )
    };
    for part in [
        "gate tests could not run",
        "No module named 'no_such_package_here'",
        "install what the tests import (no_such_package_here)",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
}
