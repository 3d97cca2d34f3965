//! `context build`: the pack of a run without a run, for files that are named and for a goal.

use std::path::Path;

use crucible_testkit::{RepoBuilder, TestRepo, made_up_token};
use serde_json::{Value, json};

use crate::support::{Call, Fixture, Ran, Snapshot, answering, good_answer, small};

fn request(needs: &[Value], max_files: u64, max_total_bytes: u64) -> Value {
    json!({
        "schema_version": "ctcp-file-request-v1", "goal": "fix it", "reason": "asked", "needs": needs,
        "budget": { "max_files": max_files, "max_total_bytes": max_total_bytes },
    })
}

fn full(path: &str) -> Value {
    json!({ "path": path, "mode": "full" })
}

/// `context build --repo REPO --request` with this request.
fn build(fixture: &Fixture, repo: &Path, request: &Value) -> Ran {
    std::fs::write(fixture.path("request.json"), request.to_string()).unwrap();
    fixture
        .call(["context", "build", "--request"])
        .arg(fixture.path("request.json"))
        .arg("--repo")
        .arg(repo)
        .run()
}

fn with(call: Call, args: &[&str]) -> Call {
    args.iter().fold(call, |call, arg| call.arg(arg))
}

/// `context build --repo REPO --goal GOAL` with its three documents written to the fixture.
fn for_goal(fixture: &Fixture, repo: &Path, goal: &str) -> [Value; 3] {
    let names = ["pack.json", "made_request.json", "ranking.json"];
    let [pack, request, ranking] = names.map(|name| fixture.path(name));
    fixture
        .call(["context", "build", "--goal", goal, "--repo"])
        .arg(repo)
        .arg("--out")
        .arg(&pack)
        .arg("--request-out")
        .arg(&request)
        .arg("--ranking-out")
        .arg(&ranking)
        .run()
        .ok();
    let schemas = [
        "ctcp-context-pack-v1",
        "ctcp-file-request-v1",
        "crucible-context-ranking-v1",
    ];
    let mut schemas = schemas.into_iter();
    [pack, request, ranking].map(|path| {
        let document: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let schema = schemas.next().unwrap();
        assert_eq!(document["schema_version"], schema);
        fits(&document, schema);
        document
    })
}

/// Checks a document against its published schema.
#[track_caller]
fn fits(document: &Value, schema: &str) {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/contracts");
    let text = std::fs::read(place.join(format!("{schema}.schema.json"))).unwrap();
    let schema = jsonschema::validator_for(&serde_json::from_slice(&text).unwrap()).unwrap();
    let problem = schema
        .iter_errors(document)
        .next()
        .map(|error| format!("{error} at {}", error.instance_path()));
    assert_eq!(problem, None, "{document:#}");
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|row| row["path"].as_str().unwrap())
        .collect()
}

fn omitted(pack: &Value) -> Vec<(&str, &str)> {
    let rows = pack["omitted"].as_array().unwrap().iter();
    rows.map(|row| {
        (
            row["path"].as_str().unwrap(),
            row["reason"].as_str().unwrap(),
        )
    })
    .collect()
}

/// A repository with three commits: in the second the parser was changed together with its table.
fn with_history() -> TestRepo {
    let filler: String = (0..200)
        .map(|number| format!("let filler_{number} = {number};\n"))
        .collect();
    let mut repo = RepoBuilder::new().files([
        ("src/parser.rs", "pub fn parse_header() {}\n"),
        ("src/table.rs", "pub const ROWS: u8 = 1;\n"),
        ("tests/parser.rs", "fn t() { parse_header() }\n"),
        ("Cargo.toml", "[package]\nname = \"p\"\n"),
        ("conf/parser.env", "A=1\n"),
    ]);
    for number in 0..30 {
        repo = repo.file(format!("src/other_{number:02}.rs"), &filler);
    }
    let repo = repo.symlink("link.rs", "src/parser.rs").build();
    repo.write("src/parser.rs", "pub fn parse_header() -> u8 { 1 }\n");
    repo.write("src/table.rs", "pub const ROWS: u8 = 2;\n");
    repo.commit("More rows");
    repo.write("src/other_07.rs", "pub fn seven() {}\n");
    repo.commit("Prepare for the header to be parsed");
    repo
}

#[test]
fn request_of_a_run_rebuilds_its_pack() {
    let (repo, server) = (
        small().file("AGENTS.md", "be brief\n").build(),
        answering(good_answer()),
    );
    let fixture = Fixture::with(&server);
    fixture.start(repo.path()).ok();
    let artifacts = fixture.runs()[0].join("artifacts");
    let before = Snapshot::take([repo.path()]);
    let built = fixture
        .call(["context", "build", "--request"])
        .arg(artifacts.join("file_request.json"))
        .arg("--repo")
        .arg(repo.path())
        .run()
        .ok();
    assert_eq!(
        built.stdout.as_bytes(),
        std::fs::read(artifacts.join("context_pack.json")).unwrap()
    );
    assert!(
        built.json()["files"][0]["path"] == "AGENTS.md",
        "{}",
        built.stdout
    );
    before.is_still(&Snapshot::take([repo.path()]));
}

#[test]
fn pack_output_states_what_was_left_out() {
    let repo = RepoBuilder::new()
        .files([("src/a.rs", "fn a() {}\r\n"), ("dist/x", "x")])
        .build();
    let fixture = Fixture::new();
    let expected = request(
        &[full("src/a.rs"), full("dist/x"), full("gone\u{1b}[2J")],
        9,
        99,
    );
    let printed = build(&fixture, repo.path(), &expected).ok();
    fits(&printed.json(), "ctcp-context-pack-v1");
    assert!(
        printed.stderr.contains("2 omitted: 1 denied, 1 not_found"),
        "{}",
        printed.stderr
    );
    assert!(
        printed.stderr.contains("left out  denied           dist/x"),
        "{}",
        printed.stderr
    );
    assert!(!printed.stderr.contains('\u{1b}'), "{:?}", printed.stderr);
    let to_file = |how: &[&str]| {
        let call = fixture
            .call(["context", "build", "--request"])
            .arg(fixture.path("request.json"));
        let call = call
            .arg("--repo")
            .arg(repo.path())
            .arg("--out")
            .arg(fixture.path("pack.json"));
        with(call, how).run().ok()
    };
    assert!(
        to_file(&[])
            .stdout
            .contains("1 file with 11 of 99 bytes is in")
    );
    assert_eq!(
        std::fs::read(fixture.path("pack.json")).unwrap(),
        printed.stdout.as_bytes()
    );
    let document = to_file(&["--json"]).json();
    assert_eq!(document["schema_version"], "crucible-context-build-v1");
    let digest = crucible_model::Digest::compute(printed.stdout.as_bytes()).to_string();
    assert_eq!(document["pack"]["digest"], digest.as_str());
    assert_eq!(
        (&document["files"], &document["content_bytes"]),
        (&json!(1), &json!(11))
    );
    assert_eq!(
        omitted(&document),
        [("dist/x", "denied"), ("gone\u{1b}[2J", "not_found")]
    );
}

#[test]
fn context_build_failures_exit_correctly_without_files() {
    let repo = RepoBuilder::new()
        .files([("AGENTS.md", "0123456789"), ("a", "x")])
        .build();
    let fixture = Fixture::new();
    let small = build(&fixture, repo.path(), &request(&[full("a")], 9, 9)).exits(7);
    assert!(
        small.stderr.contains("increase budget") && small.stderr.contains("10"),
        "{}",
        small.stderr
    );
    let out = fixture.path("pack.json");
    let call = |args: &[&str]| {
        let call = fixture
            .call(["context", "build", "--repo"])
            .arg(repo.path())
            .arg("--out")
            .arg(&out);
        with(call, args).run()
    };
    call(&["--goal", "mend a", "--max-bytes", "9"]).exits(7);
    call(&["--goal", "mend a", "--max-files", "0"]).exits(7);
    call(&["--goal", " "]).exits(2);
    call(&["--goal", &format!("use {}", made_up_token())]).exits(8);
    call(&["--goal", &"x".repeat(20_000)]).exits(7);
    call(&[]).exits(2);
    call(&["--request", "none.json"]).exits(2);
    for (field, value) in [
        ("schema_version", json!("ctcp-file-request-v9")),
        ("needs", json!([{"path": "a"}])),
        ("more", json!(1)),
    ] {
        let mut bad = request(&[full("a")], 9, 99);
        bad[field] = value;
        let refused = build(&fixture, repo.path(), &bad).exits(3);
        assert!(refused.stderr.contains(field), "{}", refused.stderr);
    }
    build(
        &fixture,
        repo.path(),
        &request(&[full(&made_up_token())], 9, 99),
    )
    .exits(8);
    std::fs::write(fixture.path("huge.json"), vec![b' '; 9 << 20]).unwrap();
    call(&["--request", fixture.path("huge.json").to_str().unwrap()]).exits(3);
    assert!(!out.exists());
    let contract = RepoBuilder::new()
        .files([("ai_context/x", ""), ("a", "x")])
        .build();
    let missing = build(&fixture, contract.path(), &request(&[], 9, 99)).exits(2);
    assert!(
        missing.stderr.contains("AGENTS.md is missing"),
        "{}",
        missing.stderr
    );
    build(
        &fixture,
        RepoBuilder::new().build().path(),
        &request(&[], 9, 99),
    )
    .exits(2);
}

#[test]
fn goal_ranks_related_files_with_reasons() {
    let (repo, fixture) = (with_history(), Fixture::new());
    let [pack, request, ranking] = for_goal(&fixture, repo.path(), "parse_header must accept CRLF");
    let packed = names(&pack["files"]);
    assert_eq!(
        (packed[0], packed.last()),
        ("src/parser.rs", Some(&"tests/parser.rs")),
        "source before tests"
    );
    assert!(names(&pack["files"]).contains(&"src/table.rs"), "{pack:#}");
    assert!(!names(&pack["files"]).contains(&"src/other_29.rs"));
    assert_eq!(omitted(&pack), [("conf/parser.env", "denied")]);
    assert_eq!(
        names(&request["needs"]).len(),
        names(&pack["files"]).len() + 1
    );
    assert_eq!(
        names(&ranking["files"]).len(),
        36,
        "every tracked file has its row"
    );
    assert_eq!(ranking["history"]["commits"], 2);
    let row = |path: &str| {
        ranking["files"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["path"] == path)
            .unwrap()
            .clone()
    };
    let parser = row("src/parser.rs");
    assert!(
        parser["parts"]["symbols"].as_u64() > Some(0) && parser["outcome"] == "chosen",
        "{parser}"
    );
    assert!(row("src/table.rs")["parts"]["history"].as_u64() > Some(0));
    assert!(
        row("src/table.rs")["reason"]
            .as_str()
            .unwrap()
            .contains("changed together with `src/parser.rs`")
    );
    assert!(
        row("src/other_07.rs")["reason"]
            .as_str()
            .unwrap()
            .contains("mentioned in 1 commit message")
    );
    assert_eq!(row("conf/parser.env")["outcome"], "withheld");
    assert_eq!(row("conf/parser.env")["searched"], 0);
    assert_eq!(row("link.rs")["reason"], "is a symbolic link");
    assert_eq!(row("src/other_29.rs")["outcome"], "left_out");
    // Of the sources beside the best one, as many as have room are shown as outlines.
    let other_json = row("src/other_00.rs");
    assert!(
        other_json["reason"]
            .as_str()
            .unwrap()
            .ends_with("lies beside the best source"),
        "{other_json}"
    );
    let outline = pack["files"]
        .as_array()
        .unwrap()
        .iter()
        .find(|file| file["path"] == "src/other_00.rs");
    assert!(
        outline.unwrap()["content"].as_str().unwrap().len() <= 640,
        "{outline:?}"
    );
    for row in ranking["files"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["parts"].is_object())
    {
        let part = |name: &str| row["parts"][name].as_i64().unwrap();
        let shared: i64 = ["names", "paths", "symbols", "text", "history", "imports"]
            .map(part)
            .iter()
            .sum();
        let pointed_at = part("mentioned") + part("evidence");
        let sum =
            pointed_at + shared * part("class_percent") / 100 + part("tested") + part("manifest");
        assert_eq!(row["score"], sum, "{row}");
    }
}

#[test]
fn context_is_independent_of_path_and_subdirectory() {
    let fixture = Fixture::new();
    let documents = |repo: &Path| {
        for_goal(&fixture, repo, "mend the parser");
        ["pack.json", "made_request.json", "ranking.json"]
            .map(|name| std::fs::read(fixture.path(name)).unwrap())
    };
    let [one, other] = [with_history(), with_history()];
    for repo in [&one, &other] {
        repo.git([
            "remote",
            "add",
            "origin",
            "https://host.invalid/owner/thing.git",
        ]);
    }
    let first = documents(one.path());
    assert_eq!(first, documents(other.path()));
    assert_eq!(first, documents(&one.path().join("src")));
    let pack: Value = serde_json::from_slice(&first[0]).unwrap();
    assert_eq!(pack["repo_slug"], "thing");
}

#[test]
fn file_with_a_secret_is_omitted_with_reason() {
    let token = made_up_token();
    let text = format!("def parser():\n    return \"{token}\"\n");
    let repo = RepoBuilder::new()
        .file("parser.py", &text)
        .files([(".env", "A=1"), ("a.py", "parser()\n")])
        .build();
    let fixture = Fixture::new();
    let [pack, ..] = for_goal(&fixture, repo.path(), "mend the parser");
    assert_eq!(names(&pack["files"]), ["a.py"]);
    assert_eq!(
        omitted(&pack),
        [("parser.py", "denied"), (".env", "denied")]
    );
    assert!(
        pack["summary"]
            .as_str()
            .unwrap()
            .contains("\"parser.py\" holds a secret"),
        "{pack:#}"
    );
    let lines = json!({ "path": "parser.py", "mode": "snippets", "line_ranges": [[2, 2]] });
    let named = build(
        &fixture,
        repo.path(),
        &request(&[lines, full("a.py")], 9, 99),
    )
    .ok();
    assert_eq!(omitted(&named.json()), [("parser.py", "denied")]);
    for name in ["pack.json", "made_request.json", "ranking.json"] {
        assert!(
            !std::fs::read_to_string(fixture.path(name))
                .unwrap()
                .contains(&token),
            "{name}"
        );
    }
    assert!(!named.stdout.contains(&token) && !named.stderr.contains(&token));
}

#[test]
fn file_name_with_secret_is_not_shown() {
    let token = made_up_token();
    let repo = RepoBuilder::new()
        .file(format!("parser_{token}.py"), "")
        .file("a.py", "parser()\n")
        .build();
    let fixture = Fixture::new();
    let [pack, _, ranking] = for_goal(&fixture, repo.path(), "mend the parser");
    assert_eq!(names(&pack["files"]), ["a.py"]);
    assert_eq!(
        ranking["files"][1]["reason"],
        "has a name that holds a secret"
    );
    for name in ["pack.json", "made_request.json", "ranking.json"] {
        assert!(
            !std::fs::read_to_string(fixture.path(name))
                .unwrap()
                .contains(&token),
            "{name}"
        );
    }
}

#[test]
fn ten_thousand_needs_end_in_ten_thousand_rows() {
    let repo = RepoBuilder::new()
        .files([("a", "one\ntwo\n"), ("b", "x")])
        .build();
    let needs: Vec<Value> = (0..10_000)
        .map(|number| match number % 4 {
            0 => full(&format!("gone/{number}")),
            1 => full(&format!("../{number}")),
            2 => json!({ "path": format!("a/{number}"), "mode": "snippets" }),
            _ => json!({ "path": "a", "mode": "snippets", "line_ranges": [[number, number + 1], [1, 1]] }),
        })
        .collect();
    let packed = build(&Fixture::new(), repo.path(), &request(&needs, 9, 999))
        .ok()
        .json();
    assert_eq!(names(&packed["files"]), ["a"]);
    assert_eq!(packed["files"][0]["content"], "one\ntwo\n");
    assert_eq!(omitted(&packed).len(), 7_500);
    let too_many: Vec<Value> = (0..10_001)
        .map(|number| full(&format!("n{number}")))
        .collect();
    build(&Fixture::new(), repo.path(), &request(&too_many, 9, 999)).exits(3);
}

#[test]
fn nothing_that_the_repository_configures_runs() {
    let repo = with_history();
    let (fixture, mark) = (Fixture::new(), repo.path().join("ran"));
    let evil = format!("sh -c 'touch {}'", mark.display());
    repo.write(".gitattributes", "* filter=evil diff=evil\n");
    for key in [
        "core.fsmonitor",
        "core.pager",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
    ] {
        repo.git(["config", key, &evil]);
    }
    for_goal(&fixture, repo.path(), "mend the parser");
    build(
        &fixture,
        repo.path(),
        &request(&[full("src/parser.rs")], 9, 999),
    )
    .ok();
    assert!(!mark.exists());
}

/// A repository whose failing test imports what has to be fixed, beside a large test and other sources.
fn with_failing_test() -> TestRepo {
    let large: String = (0..900)
        .map(|n| format!("def test_number_{n}():\n    assert clean(\"value {n}\") == {n}\n\n"))
        .collect();
    let other = "def other(value):\n    return value\n\n\n".repeat(400);
    let mut repo = RepoBuilder::new().files([
        ("src/shop/__init__.py", "from .rules import clean\n"),
        ("src/shop/rules.py", "def clean(text):\n    return text\n"),
        (
            "tests/test_shop.py",
            &format!("from shop import clean\n\n\n{large}"),
        ),
        (
            "po/de.po",
            "msgid \"value\"\nmsgstr \"the value is wrong\"\n",
        ),
        (".github/FUNDING.yml", "value: wrong\n"),
    ]);
    for number in 0..12 {
        repo = repo.file(format!("src/shop/value_{number}.py"), &other);
    }
    repo.build()
}

#[test]
fn failing_test_selects_its_source_as_excerpt() {
    let (repo, fixture) = (with_failing_test(), Fixture::new());
    let build = |log: &str| {
        let (printed, out) = (fixture.path("printed.log"), fixture.path("pack.json"));
        std::fs::write(&printed, log).unwrap();
        let call = fixture
            .call(["context", "build", "--goal", "the value is wrong", "--repo"])
            .arg(repo.path());
        call.arg("--gate-output")
            .arg(&printed)
            .arg("--out")
            .arg(&out)
            .run()
            .ok();
        std::fs::read(out).unwrap()
    };
    let trace = |place: &str, address: &str, number: u64| {
        format!(
            "____ test_number_{number} ____\n{place}/tests/test_shop.py:{}: in test_number_{number}\n    clean(<object at 0x{address}>)\n\
             {place}/src/shop/rules.py:2: AssertionError\n",
            3 * number + 5
        )
    };
    let top = repo.path().display().to_string();
    let ends = |seconds: &str, first: u64, second: u64| {
        format!(
            "==== short test summary info ====\nFAILED tests/test_shop.py::test_number_{first} - x\n\
             FAILED tests/test_shop.py::test_number_{second} - x\n2 failed in {seconds}s\n"
        )
    };
    let one = format!(
        "{}{}{}",
        trace(&top, "7f00aa11", 400),
        trace(&top, "7f00bb22", 500),
        ends("0.10", 400, 500)
    );
    let two = format!(
        "{}{}{}",
        trace(".", "12345678", 500),
        trace(".", "87654321", 400),
        ends("9.99", 500, 400)
    );
    let bytes = build(&one);
    assert_eq!(
        bytes,
        build(&two),
        "order, times, addresses and places change nothing"
    );
    let pack: Value = serde_json::from_slice(&bytes).unwrap();
    fits(&pack, "ctcp-context-pack-v1");
    let files = names(&pack["files"]);
    assert_eq!(
        (files[0], files.last()),
        ("src/shop/rules.py", Some(&"tests/test_shop.py"))
    );
    assert!(
        !files.contains(&"po/de.po") && !files.contains(&".github/FUNDING.yml"),
        "{files:?}"
    );
    let test = pack["files"].as_array().unwrap().last().unwrap().clone();
    let content = test["content"].as_str().unwrap();
    assert!(
        content.len() < 8_000
            && content.contains("\"value 400\"")
            && content.contains("\"value 500\"")
    );
    assert!(
        test["ranges"]
            .as_array()
            .is_some_and(|ranges| !ranges.is_empty())
    );
}
