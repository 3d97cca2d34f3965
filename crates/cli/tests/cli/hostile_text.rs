//! Text from goals, file names, gates and models never reaches the terminal as anything but text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::support::{
    CHECK, Fixture, GATE, Ran, WRONG, answering, good_answer, id_of, small, whole_file,
};

/// Moves the cursor, sets the title, hides, turns the direction of text.
const ESCAPES: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\u{8}\u{202e}";

/// No character that a terminal acts upon, newlines and tabs aside.
#[track_caller]
fn is_plain(ran: &Ran) {
    for text in [&ran.stdout, &ran.stderr] {
        let bad = text.chars().find(|c| {
            (c.is_control() && !matches!(c, '\n' | '\t'))
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        });
        assert_eq!(bad, None, "{text:?}");
    }
}

#[test]
fn a_goal_with_escapes_is_shown_escaped_everywhere() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let goal = format!("make area in src/area.py multiply {ESCAPES} width");
    let started = fixture
        .call(["run", "start", goal.as_str(), "--repo"])
        .arg(repo.path())
        .run()
        .ok();
    is_plain(&started);
    assert!(started.stdout.contains("\\u{1b}[2J"), "{}", started.stdout);
    let id = id_of(&fixture.status());
    for args in [
        &["run", "status"][..],
        &["run", "list"],
        &["run", "replay", &id],
        &["ledger", "log"],
        &["run", "land", &id],
    ] {
        is_plain(&fixture.call(args).run().ok());
    }
    // The commit's title is text as well.
    let title = repo.git(["log", "-1", "--format=%s"]);
    assert!(!title.contains(char::is_control), "{title:?}");
}

#[test]
fn documents_carry_hostile_text_whole_and_escaped() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let goal =
        format!("make area in src/area.py multiply {ESCAPES}\u{85}\u{7f}\u{2028}\u{e0041} width");
    let started = fixture
        .call(["run", "start", goal.as_str(), "--json", "--repo"])
        .arg(repo.path())
        .run()
        .ok();
    is_plain(&started);
    assert_eq!(
        started.json()["run"]["goal"],
        goal.as_str(),
        "the value is the very text"
    );
    for args in [
        &["run", "status", "--json"][..],
        &["run", "list", "--json"],
        &["ledger", "log", "--json"],
    ] {
        let ran = fixture.call(args).run().ok();
        is_plain(&ran);
        assert!(
            !ran.stdout
                .contains(['\u{85}', '\u{7f}', '\u{2028}', '\u{e0041}']),
            "{}",
            ran.stdout
        );
        assert!(ran.json().to_string().contains('\u{2028}'));
    }
    let error = fixture
        .call(["run", "status", ESCAPES, "--json"])
        .run()
        .exits(2);
    is_plain(&error);
    let error = fixture.call([ESCAPES, "--json"]).run().exits(2);
    is_plain(&error);
    // What lies on the disk stays canonical: these characters stand there as themselves.
    let record = std::fs::read_to_string(fixture.runs()[0].join("run.json")).unwrap();
    assert!(record.contains("\u{2028}"), "{record}");
}

#[test]
fn file_names_with_escapes_are_shown_escaped() {
    let fixture = Fixture::new();
    let name = PathBuf::from(OsStr::from_bytes(b"src/\x1b[2J\x1b]0;owned\x07\xff.py"));
    let repo = small().file(&name, "x = 1\n").build();
    repo.write(&name, "x = 2\n");
    is_plain(
        &fixture
            .call(["run", "start", "change x", "--repo"])
            .arg(repo.path())
            .run()
            .exits(2),
    );
    let directory = fixture.path("\u{1b}[2J none");
    is_plain(
        &fixture
            .call(["run", "start", "change x", "--repo"])
            .arg(&directory)
            .run()
            .exits(2),
    );
    is_plain(
        &fixture
            .call(["secrets", "scan"])
            .arg(&directory)
            .run()
            .exits(2),
    );
    is_plain(&fixture.call(["run", "status", "\u{1b}[2J"]).run().exits(2));
    is_plain(
        &fixture
            .call(["run", "start", "x", "--file", "\u{1b}[2J/../..", "--repo"])
            .arg(repo.path())
            .run()
            .exits(2),
    );
    is_plain(
        &fixture
            .call(["run", "start", "x", "--provider", "\u{1b}[2J", "--repo"])
            .arg(repo.path())
            .run()
            .exits(2),
    );
}

#[test]
fn output_of_gates_and_models_is_escaped() {
    let script = format!("printf '%s\\n' '{ESCAPES}src/area.py:1'\n{CHECK}");
    let repo = small().file("check.sh", script).build();
    let server = answering(format!(
        "{ESCAPES}{}",
        whole_file("src/area.py", &WRONG.replace("width + height", "0"))
    ));
    let fixture = Fixture::with(&server);
    let started = fixture
        .call([
            "run",
            "start",
            "make area in src/area.py multiply",
            "--repo",
        ])
        .arg(repo.path())
        .run();
    is_plain(&started.exits(1));
    is_plain(&fixture.run(["run", "status"]).ok());
    is_plain(&fixture.run(["ledger", "log"]).ok());
    let server = answering(whole_file(&format!("src/{ESCAPES}.py"), "x = 1\n"));
    let fixture = Fixture::with(&server);
    let started = fixture
        .call([
            "run",
            "start",
            "make area in src/area.py multiply",
            "--repo",
        ])
        .arg(repo.path())
        .run();
    is_plain(&started.exits(1));
    is_plain(&fixture.run(["run", "status"]).ok());
}

#[test]
fn gate_command_with_escapes_is_shown_escaped() {
    let config = "[gates.tests]\ncommand = [\"sh\", \"./check.sh\", \"\\u001b[2J\"]\n";
    assert_ne!(config, GATE);
    let repo = small().file(".crucible/config.toml", config).build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    is_plain(
        &fixture
            .call([
                "run",
                "start",
                "make area in src/area.py multiply",
                "--repo",
            ])
            .arg(repo.path())
            .run()
            .ok(),
    );
    is_plain(
        &fixture
            .call(["config", "show", "--repo"])
            .arg(repo.path())
            .run()
            .ok(),
    );
}
