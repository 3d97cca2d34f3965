//! The menu and the other questions, on a real terminal.

use super::support::{CARGO, CARGO_TOML, CrawlDesk, local, widget};
use super::terminal::Terminal;
use crucible_testkit::FakeRepo;

#[test]
fn menu_ends_with_0_or_end_of_input() {
    let fixture = CrawlDesk::new([]);
    let mut terminal = Terminal::start(fixture.menu());
    for line in [
        "[crawl] ═══ Crucible Git Crawler ══════════════════════",
        "[crawl] 1) Search repository",
        "[crawl] 2) Inspect repository",
        "[crawl] 3) Generate build plan",
        "[crawl] 4) Export plan (Vivian-compatible)",
        "[crawl] 5) View crawl history",
        "[crawl] 0) Exit",
        "[crawl] ···············································",
        "[crawl] Choice [0-5]:",
    ] {
        terminal.shows(line);
    }
    terminal.types("7");
    terminal.shows("Write a number from 0 to 5.");
    terminal.shows("Choice [0-5]:");
    terminal.types(b"\xff");
    terminal.shows("Write UTF-8 text.");
    terminal.shows("Choice [0-5]:");
    terminal.types("5");
    terminal.shows("no crawl yet");
    terminal.shows("Choice [0-5]:");
    terminal.types("0");
    assert_eq!(terminal.ends().0, Some(0));

    let mut terminal = Terminal::start(fixture.menu());
    terminal.shows("Choice [0-5]:");
    terminal.ends_input();
    assert_eq!(terminal.ends().0, Some(0));
}

#[test]
fn each_menu_choice_prompts_and_returns() {
    let (fixture, repo) = (CrawlDesk::with_widget(), local(&CARGO));
    let mut terminal = Terminal::start(fixture.menu());
    terminal.shows("Choice [0-5]:");
    terminal.types("1");
    terminal.shows("Search for:");
    terminal.types("widget");
    terminal.shows("acme/widget");
    terminal.shows("Choice [0-5]:");
    terminal.types("2");
    terminal.shows("Repository (owner/repo or ./path");
    terminal.types("acme/widget");
    terminal.shows("builds with  cargo (confidence 0.95)");
    terminal.shows("Choice [0-5]:");
    terminal.types("3");
    terminal.shows("Plan with the standard steps, without one? [y/N]");
    terminal.types("y");
    terminal.shows("Repository (owner/repo or ./path");
    terminal.types(repo.path().to_str().unwrap());
    terminal.shows("passes the safety rules");
    terminal.shows("Choice [0-5]:");
    terminal.types("4");
    terminal.shows("[y/N]");
    terminal.types("yes");
    terminal.shows("Directory to write to");
    let out = fixture.fixture.path("out").display().to_string();
    terminal.types(&out);
    terminal.shows("Repository (owner/repo or ./path");
    terminal.types("acme/widget");
    terminal.shows(&format!("wrote 7 files to {out}"));
    terminal.shows("Choice [0-5]:");
    // What fails is told, and the menu comes back.
    terminal.types("2");
    terminal.shows("Repository (owner/repo or ./path");
    terminal.types("acme/nobody");
    terminal.shows("error:");
    terminal.shows("Choice [0-5]:");
    terminal.types("3");
    terminal.shows("[y/N]");
    terminal.types("n");
    terminal.shows("Repository");
    terminal.types("acme/widget");
    terminal.shows("--offline");
    terminal.shows("Choice [0-5]:");
    terminal.types("5");
    terminal.shows("completed");
    terminal.shows("Choice [0-5]:");
    terminal.ends_input();
    assert_eq!(terminal.ends().0, Some(0));
    assert!(fixture.fixture.path("out/manifest.json").is_file() && fixture.exports().is_empty());
    assert_eq!(fixture.left_in_tmp(), Vec::<String>::new());
}

#[test]
fn the_user_chooses_among_results_and_among_projects() {
    let both = [
        ("a/Cargo.toml", CARGO_TOML),
        ("b/go.mod", "module b\n"),
        ("README.md", "# Both\n"),
    ];
    let fixture = CrawlDesk::new([
        widget(),
        FakeRepo::new("acme/widget-kit").release("v2", &both),
    ]);
    let mut terminal = Terminal::start(fixture.call(["inspect", "--query", "widget"]));
    terminal.shows("1) 0.");
    terminal.shows("acme/widget");
    terminal.shows("2) 0.");
    terminal.shows("Which one? [1-2]");
    terminal.types("9");
    terminal.shows("Write a number from 1 to 2.");
    terminal.types("2");
    terminal.shows("several projects, none of them at its top level");
    terminal.shows("1) a (cargo)");
    terminal.shows("2) b (go)");
    terminal.shows("Which one? [1-2]");
    terminal.types("2");
    terminal.shows("acme/widget-kit at v2:b");
    terminal.shows("builds with  go");
    assert_eq!(terminal.ends().0, Some(0));
    assert_eq!(fixture.left_in_tmp(), Vec::<String>::new());
}

#[test]
fn user_chooses_project_even_if_top_builds() {
    let files = [
        ("Cargo.toml", "[workspace]\nmembers = [\"a\", \"b\"]\n"),
        ("a/Cargo.toml", CARGO_TOML),
        ("b/Cargo.toml", CARGO_TOML),
    ];
    let (fixture, repo) = (CrawlDesk::new([]), local(&files));
    let path = repo.path().to_str().unwrap();
    for (answer, selected) in [("1", "at main\r"), ("3", "at main:b\r")] {
        let mut terminal = Terminal::start(fixture.call(["inspect", path]));
        terminal.shows("The repository contains several projects:");
        terminal.shows("1) the whole repository (cargo)");
        terminal.shows("2) a (cargo)");
        terminal.shows("3) b (cargo)");
        terminal.shows("Which one? [1-3]");
        terminal.types(answer);
        terminal.shows(selected);
        assert_eq!(terminal.ends().0, Some(0));
    }
    let documents = fixture.run(&["history", "2"]).ok().json()["documents"].clone();
    assert_eq!(
        documents.as_array().unwrap().len(),
        1,
        "only what was chosen is kept: {documents}"
    );
    // Nobody is asked who said which one, or that nothing is to be asked.
    for args in [
        &["inspect", path, "--non-interactive"][..],
        &["inspect", path, "--ref", ":a"],
    ] {
        let (code, screen) = Terminal::start(fixture.call(args)).ends();
        assert!(
            code == Some(0) && !screen.contains("Which one?"),
            "{screen}"
        );
    }
}

#[test]
fn who_chooses_nothing_gets_nothing() {
    let fixture = CrawlDesk::with_widget();
    let mut terminal = Terminal::start(fixture.call(["inspect", "--query", "widget"]));
    terminal.shows("Which one? [1-1]");
    terminal.ends_input();
    terminal.shows("nothing was chosen");
    assert_eq!(terminal.ends().0, Some(1));
    assert_eq!(fixture.last_session()["status"], "failed");

    let mut terminal = Terminal::start(fixture.call(["search"]));
    terminal.shows("Search for:");
    terminal.types("");
    terminal.shows("no search query given");
    assert_eq!(terminal.ends().0, Some(1));
}

#[test]
fn non_interactive_flag_suppresses_prompts_on_terminal() {
    let fixture = CrawlDesk::with_widget();
    let terminal = Terminal::start(fixture.call(["--non-interactive"]));
    let (code, screen) = terminal.ends();
    assert!(
        code == Some(1) && screen.contains("the menu needs a terminal"),
        "{screen}"
    );
    let (code, screen) = Terminal::start(fixture.call(["inspect", "--non-interactive"])).ends();
    assert!(
        code == Some(1) && screen.contains("no repository given"),
        "{screen}"
    );
    let (code, screen) =
        Terminal::start(fixture.call(["inspect", "--query", "widget", "--auto-select"])).ends();
    assert!(
        code == Some(0) && screen.contains("builds with  cargo"),
        "{screen}"
    );
}

#[test]
fn a_question_is_left_by_ctrl_c() {
    let fixture = CrawlDesk::with_widget();
    let mut terminal = Terminal::start(fixture.call(["inspect", "--query", "widget"]));
    terminal.shows("Which one? [1-1]");
    let id = terminal.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-s", "INT", &id])
            .status()
            .unwrap()
            .success()
    );
    terminal.shows("interrupted");
    assert_eq!(terminal.ends().0, Some(130));
    assert_eq!(fixture.last_session()["status"], "aborted");
}

#[test]
fn terminal_gets_text_and_file_gets_json() {
    let fixture = CrawlDesk::with_widget();
    let (code, screen) = Terminal::start(fixture.call(["search", "widget"])).ends();
    assert!(
        code == Some(0) && screen.contains("why") && !screen.contains("viv-git-search"),
        "{screen}"
    );
    let (code, screen) = Terminal::start(fixture.call(["search", "widget", "--json"])).ends();
    assert!(
        code == Some(0) && screen.contains("viv-git-search.v1"),
        "{screen}"
    );
}
