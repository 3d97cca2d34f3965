//! What goes where: one document on standard output, everything else on standard error behind the prefix.

use serde_json::Value;

use super::support::{CARGO, CrawlDesk, Models, draft, local, objection, synthesis, widget};
use crate::support::Ran;

/// The text with what differs from test to test replaced.
fn text(desk: &CrawlDesk, printed: &str) -> String {
    printed
        .replace(desk.desk.data().to_str().unwrap(), "$CRUCIBLE_HOME")
        .replace(desk.desk.path("").to_str().unwrap(), "~/")
}

/// Standard output holds one JSON document on one line.
#[track_caller]
fn one_document(ran: &Ran) -> Value {
    assert_eq!(ran.stdout.matches('\n').count(), 1, "{}", ran.stdout);
    ran.json()
}

#[test]
fn each_command_prints_one_document_into_a_pipe() {
    let desk = CrawlDesk::with_widget();
    let repo = local(&CARGO);
    let path = repo.path().to_str().unwrap();
    for (args, schema) in [
        (&["search", "widget"][..], "viv-git-search.v1"),
        (&["inspect", "acme/widget"], "viv-git-inspect.v1"),
        (&["inspect", path], "viv-git-inspect.v1"),
        (&["plan", "acme/widget", "--offline"], "viv-git-plan.v1"),
        (&["export", "acme/widget", "--offline"], "viv-crawl-manifest.v1"),
    ] {
        for format in [&[][..], &["--json"], &["--format", "json"]] {
            let ran = desk.run(&[args, format].concat()).ok();
            assert_eq!(one_document(&ran)["schema"], schema, "{args:?}");
        }
    }
    let history = desk.run(&["history"]).ok().json();
    assert_eq!(history["schema_version"], "crucible-crawl-history-v1");
    assert_eq!(history["sessions"].as_array().unwrap().len(), 15);
}

#[test]
fn ndjson_is_one_item_a_line() {
    let desk = CrawlDesk::new(["acme/widget-a", "acme/widget-b"].map(crucible_testkit::FakeRepo::new));
    let ran = desk.run(&["search", "widget", "--ndjson"]).ok();
    let items: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let document = desk.run(&["search", "widget"]).ok().json();
    assert_eq!(document["results"], Value::Array(items));
    assert_eq!(desk.run(&["search", "nothing-like-it", "--ndjson"]).ok().stdout, "");
}

#[test]
fn a_search_shows_people_why() {
    let desk = CrawlDesk::with_widget();
    let ran = desk.run(&["search", "widget", "--format", "pretty"]).ok();
    insta::assert_snapshot!(text(&desk, &ran.stdout), @"");
}

#[test]
fn an_inspection_tells_people_what_it_is_and_why() {
    let desk = CrawlDesk::with_widget();
    let ran = desk.run(&["inspect", "acme/widget", "--format", "pretty"]).ok();
    insta::assert_snapshot!(text(&desk, &ran.stdout), @"");
}

#[test]
fn a_plan_without_models_says_so() {
    let desk = CrawlDesk::with_widget();
    let ran = desk.run(&["plan", "acme/widget", "--offline", "--format", "pretty"]).ok();
    insta::assert_snapshot!(text(&desk, &ran.stdout), @"");
}

#[test]
fn a_plan_tells_which_model_said_what() {
    let desk = CrawlDesk::with_widget();
    let models = Models::saying(
        [draft("cargo build"), draft("cargo build --release"), synthesis("cargo build --release")],
        [objection("builds without optimisation"), super::support::approval()],
    );
    let ran = desk.ask(&["plan", "acme/widget", "--format", "pretty"], &models).ok();
    insta::assert_snapshot!(text(&desk, &ran.stdout), @"");
}

#[test]
fn an_export_names_its_files() {
    let desk = CrawlDesk::with_widget();
    let ran = desk.run(&["export", "acme/widget", "--offline", "--format", "pretty"]).ok();
    insta::assert_snapshot!(text(&desk, &ran.stdout), @"");
}

#[test]
fn the_history_is_a_table() {
    let desk = CrawlDesk::with_widget();
    insta::assert_snapshot!(desk.run(&["history", "--format", "pretty"]).ok().stdout, @"no crawl yet; begin with: crucible crawl search QUERY");
    desk.run(&["search", "widget"]).ok();
    desk.run(&["plan", "acme/widget", "--offline"]).ok();
    desk.run(&["inspect", "acme/gone"]).exits(1);
    let ran = desk.run(&["history", "--format", "pretty"]).ok();
    insta::assert_snapshot!(text(&desk, &ran.stdout), @"");
}

#[test]
fn hostile_text_of_github_is_shown_as_text() {
    let escapes = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\u{202e}";
    let desk = CrawlDesk::new([widget().description(&format!("widget {escapes} end"))]);
    for format in ["pretty", "json"] {
        let ran = desk.run(&["search", "widget", "--format", format]).ok();
        assert!(!ran.stdout.contains(['\u{1b}', '\u{7}', '\u{9b}', '\r', '\u{202e}']), "{:?}", ran.stdout);
    }
}
