//! What goes where: one document on standard output, everything else on standard error behind the prefix.

use crucible_testkit::Reply;
use serde_json::Value;

use super::support::{CARGO, CrawlDesk, Models, draft, local, objection, synthesis, widget};
use crate::support::Ran;

/// The text with what differs from test to test replaced.
fn text(fixture: &CrawlDesk, printed: &str) -> String {
    let prompts = crucible_crawl::prompt_hash();
    printed
        .replace(fixture.fixture.data().to_str().unwrap(), "$CRUCIBLE_HOME")
        .replace(&crucible_testkit::fake_sha("acme/widget", "v1.0"), "COMMIT")
        .replace(prompts.as_str(), "PROMPTS")
}

/// Standard output holds one JSON document on one line.
#[track_caller]
fn one_document(ran: &Ran) -> Value {
    assert_eq!(ran.stdout.matches('\n').count(), 1, "{}", ran.stdout);
    ran.json()
}

#[test]
fn each_command_prints_one_document_into_a_pipe() {
    let fixture = CrawlDesk::with_widget();
    let repo = local(&CARGO);
    let path = repo.path().to_str().unwrap();
    for (args, schema) in [
        (&["search", "widget"][..], "viv-git-search.v1"),
        (&["inspect", "acme/widget"], "viv-git-inspect.v1"),
        (&["inspect", path], "viv-git-inspect.v1"),
        (&["plan", "acme/widget", "--offline"], "viv-git-plan.v1"),
        (
            &["export", "acme/widget", "--offline"],
            "viv-crawl-manifest.v1",
        ),
    ] {
        for format in [&[][..], &["--json"], &["--format", "json"]] {
            let ran = fixture.run(&[args, format].concat()).ok();
            assert_eq!(one_document(&ran)["schema"], schema, "{args:?}");
        }
    }
    let history = fixture.run(&["history"]).ok().json();
    assert_eq!(history["schema_version"], "crucible-crawl-history-v1");
    assert_eq!(history["sessions"].as_array().unwrap().len(), 15);
    // A line for each session, between the first and the last line of the one document.
    let printed = fixture.run(&["history"]).ok().stdout;
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 17, "{printed}");
    for (line, session) in lines[1..16]
        .iter()
        .zip(history["sessions"].as_array().unwrap())
    {
        assert_eq!(
            &serde_json::from_str::<Value>(line.trim_end_matches(',')).unwrap(),
            session
        );
    }
}

#[test]
fn each_session_call_is_one_history_line() {
    let fixture = CrawlDesk::with_widget();
    let nonsense = format!("no JSON\n{}", "and more of it\n".repeat(500));
    let models = Models::replying([Reply::Answer(nonsense)], [Reply::Hang]);
    fixture.ask(&["plan", "acme/widget"], &models).exits(70);
    let calls = fixture.run(&["history", "1"]).ok().json()["messages"]
        .as_array()
        .unwrap()
        .len();
    assert!(calls > 0);
    let people = fixture
        .run(&["history", "1", "--format", "pretty"])
        .ok()
        .stdout;
    let of_calls: Vec<&str> = people
        .lines()
        .filter(|line| line.contains("draft: failed: "))
        .collect();
    assert_eq!(of_calls.len(), calls, "{people}");
    assert!(of_calls.iter().all(|line| line.len() < 320), "{people}");
    let long = "widget ".repeat(40);
    fixture.run(&["search", &long]);
    let people = fixture.run(&["history", "--format", "pretty"]).ok().stdout;
    assert_eq!(people.lines().count(), 3, "{people}");
    assert!(people.lines().all(|line| line.len() < 320), "{people}");
}

/// Why stands in `docs/crawl.md`.
#[test]
fn user_git_address_rewrites_are_ignored() {
    let fixture = CrawlDesk::with_widget();
    let repo = local(&CARGO);
    let rules = "[url \"file:///no/such/place/\"]\n\tinsteadOf = file:///\n\tinsteadOf = /\n";
    std::fs::write(fixture.fixture.home().join(".gitconfig"), rules).unwrap();
    let ran = fixture
        .run(&["inspect", repo.path().to_str().unwrap()])
        .ok();
    assert_eq!(one_document(&ran)["build_system"]["name"], "cargo");
    let page = include_str!("../../../../../docs/crawl.md");
    assert!(
        page.contains("`url.….insteadOf` does not work here")
            && page.contains("`crawl.clone_base`")
    );
}

#[test]
fn ndjson_is_one_item_a_line() {
    let fixture =
        CrawlDesk::new(["acme/widget-a", "acme/widget-b"].map(crucible_testkit::FakeRepo::new));
    let ran = fixture.run(&["search", "widget", "--ndjson"]).ok();
    let items: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let document = fixture.run(&["search", "widget"]).ok().json();
    assert_eq!(document["results"], Value::Array(items));
    assert_eq!(
        fixture
            .run(&["search", "nothing-like-it", "--ndjson"])
            .ok()
            .stdout,
        ""
    );
}

#[test]
fn a_search_shows_people_why() {
    let fixture = CrawlDesk::with_widget();
    let ran = fixture
        .run(&["search", "widget", "--format", "pretty"])
        .ok();
    insta::assert_snapshot!(text(&fixture, &ran.stdout), @r#"
     #  score   repository   stars  pushed      why
     1  0.8359  acme/widget  2500   2026-02-20  exact name +0.40, stars +0.1359, pushed recently +0.10, organization +0.05, releases +0.05, build system known +0.10
                                                Makes widgets with cargo

    next: crucible crawl plan OWNER/REPO
    "#);
}

#[test]
fn inspection_explains_its_result_to_people() {
    let fixture = CrawlDesk::with_widget();
    let ran = fixture
        .run(&["inspect", "acme/widget", "--format", "pretty"])
        .ok();
    insta::assert_snapshot!(text(&fixture, &ran.stdout), @r#"
    repository   acme/widget at v1.0
    commit       COMMIT (default branch main)
    from         https://github.com/acme/widget, as a release archive
    builds with  cargo (confidence 0.95)
    because      cargo: Cargo.toml is at the top
    needs        rustc >=1.70
    languages    Rust (1 file), TOML (1 file)
    read         4 files, 154 bytes
    key files    4 files
                 Cargo.lock (build configuration)
                 Cargo.toml (build configuration)
                 README.md (readme)
                 src/main.rs (entry point)
    readme       # Widget
                 Makes widgets. Build it with cargo.
    "#);
}

#[test]
fn offline_plan_is_labelled() {
    let fixture = CrawlDesk::with_widget();
    let ran = fixture
        .run(&["plan", "acme/widget", "--offline", "--format", "pretty"])
        .ok();
    insta::assert_snapshot!(text(&fixture, &ran.stdout), @r#"
    plan         acme/widget at v1.0
    commit       COMMIT
    builds with  cargo (confidence 0.95)
    tools        cargo, rustc
                 cargo builds the workspace; crates with native code may need a C compiler.

    1. build
         cargo build --release
       Builds every default member, optimised.
    2. test
         cargo test
       Runs the tests of the default members.

    Warnings
      - No model was asked: these are the standard steps of cargo, and this repository may need others.

    verdict      passes the safety rules
    hashes       plan 38e24a6c4be0, prompts PROMPTS; 0 rounds of debate
    "#);
}

#[test]
fn plan_text_attributes_messages_to_models() {
    let fixture = CrawlDesk::with_widget();
    let models = Models::saying(
        [
            draft("cargo build"),
            draft("cargo build --release"),
            synthesis("cargo build --release"),
        ],
        [
            objection("builds without optimisation"),
            super::support::approval(),
        ],
    );
    let ran = fixture
        .ask(&["plan", "acme/widget", "--format", "pretty"], &models)
        .ok();
    insta::assert_snapshot!(text(&fixture, &ran.stdout), @r#"
    plan         acme/widget at v1.0
    commit       COMMIT
    builds with  cargo (confidence 0.95)
    tools        cargo
                 the build tool

    1. build
         cargo build --release
       builds it

    Warnings
      - the first build takes a while

    Accepted suggestions
      - modify step "build": use --release — source: Claude

    Who said what
      - round 1: gpt drafted (gpt-oss-20b of gateway)
      - round 1: claude objected (gpt-5.5 of openai)
      - round 2: gpt revised (gpt-oss-20b of gateway)
      - round 2: claude approved (gpt-5.5 of openai)
      - last: gpt settled the plan (gpt-oss-20b of gateway)

    verdict      passes the safety rules
    hashes       plan 8b4f5ff9ed97, prompts PROMPTS; 2 rounds of debate
    "#);
}

#[test]
fn an_export_names_its_files() {
    let fixture = CrawlDesk::with_widget();
    let ran = fixture
        .run(&["export", "acme/widget", "--offline", "--format", "pretty"])
        .ok();
    insta::assert_snapshot!(text(&fixture, &ran.stdout), @r#"
    wrote 7 files to $CRUCIBLE_HOME/exports/1
      $CRUCIBLE_HOME/exports/1/search.json
      $CRUCIBLE_HOME/exports/1/inspect.json
      $CRUCIBLE_HOME/exports/1/plan.json
      $CRUCIBLE_HOME/exports/1/recipe.json
      $CRUCIBLE_HOME/exports/1/meta/debate-transcript.json
      $CRUCIBLE_HOME/exports/1/meta/config-snapshot.json
      $CRUCIBLE_HOME/exports/1/manifest.json
    "#);
}

#[test]
fn the_history_is_a_table() {
    let fixture = CrawlDesk::with_widget();
    insta::assert_snapshot!(fixture.run(&["history", "--format", "pretty"]).ok().stdout, @"no crawl yet; begin with: crucible crawl search QUERY");
    fixture.run(&["search", "widget"]).ok();
    fixture.run(&["plan", "acme/widget", "--offline"]).ok();
    fixture.run(&["inspect", "acme/gone"]).exits(1);
    let ran = fixture.run(&["history", "--format", "pretty"]).ok();
    insta::assert_snapshot!(text(&fixture, &ran.stdout), @r#"
     session  began                     status     repository       ref   builds with  plan          exported to
     3        2026-03-01T12:00:00.000Z  failed     acme/gone        -     -            -             -
     2        2026-03-01T12:00:00.000Z  completed  acme/widget      v1.0  cargo        38e24a6c4be0  -
     1        2026-03-01T12:00:00.000Z  completed  search "widget"  -     -            -             -
    "#);
}

#[test]
fn session_history_lists_documents_and_messages() {
    let fixture = CrawlDesk::with_widget();
    let models = Models::saying(
        [
            draft("cargo build"),
            draft("cargo build --release"),
            synthesis("cargo build --release"),
        ],
        [
            objection("builds without optimisation"),
            super::support::approval(),
        ],
    );
    fixture.ask(&["export", "acme/widget"], &models).ok();
    let session = fixture.run(&["history", "1"]).ok().json();
    assert_eq!(session["schema_version"], "crucible-crawl-session-v1");
    assert_eq!(session["session"], fixture.last_session());
    let documents = session["documents"].as_array().unwrap();
    let kinds: Vec<&str> = documents
        .iter()
        .map(|one| one["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["search", "inspect", "plan", "recipe", "manifest"]);
    for document in documents {
        let name = document["export_filename"].as_str().unwrap();
        let file = std::fs::read_to_string(fixture.exports()[0].join(name)).unwrap();
        assert_eq!(
            document["content"],
            serde_json::from_str::<Value>(&file).unwrap(),
            "{name}"
        );
    }
    let messages = session["messages"].as_array().unwrap();
    let said: Vec<_> = messages
        .iter()
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap().to_owned();
            (text("owner"), text("phase"), text("verdict"))
        })
        .collect();
    let line = |owner: &str, phase: &str, verdict: &str| {
        (owner.to_owned(), phase.to_owned(), verdict.to_owned())
    };
    assert_eq!(
        said,
        [
            line("gpt", "draft", ""),
            line("claude", "critique", "objected"),
            line("gpt", "revision", ""),
            line("claude", "critique", "approved"),
            line("gpt", "synthesis", ""),
        ]
    );
    // What was said is there to be read.
    let digest = messages[1]["digest"].as_str().unwrap();
    let label = fixture.fixture.run(["ledger", "show", digest]).ok().stdout;
    assert!(label.contains("builds without optimisation"), "{label}");

    let people = fixture
        .run(&["history", "1", "--format", "pretty"])
        .ok()
        .stdout;
    for line in [
        "repository   acme/widget",
        "viv-git-plan.v1",
        "recipe.json",
        "critique: objected",
        "of openai",
    ] {
        assert!(people.contains(line), "{line}: {people}");
    }
    fixture.run(&["history", "2"]).exits(1);
    fixture.run(&["history", "18446744073709551615"]).exits(1);
    fixture.run(&["history", "no-number"]).exits(1);
}

#[test]
fn hostile_text_of_github_is_shown_as_text() {
    let escapes = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\u{202e}";
    let fixture = CrawlDesk::new([widget().description(&format!("widget {escapes} end"))]);
    for format in ["pretty", "json"] {
        let ran = fixture.run(&["search", "widget", "--format", format]).ok();
        assert!(
            !ran.stdout
                .contains(['\u{1b}', '\u{7}', '\u{9b}', '\r', '\u{202e}']),
            "{:?}",
            ran.stdout
        );
    }
}
