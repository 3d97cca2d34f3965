//! Keys and cells of the TUI, without a terminal.

use crucible_spec::{SpecStatus, SpecWorkspace, WorkspaceEntry, WorkspaceSurvey};
use crucible_view::RunList;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::json;

use super::board::{Board, BoardContent, EntryDetails, EntryKey, Reaction, Tab, View};
use super::draw::{Palette, draw};

const HOSTILE: &str = "a\u{1b}[2J\u{202e}b\nc";

/// A status whose first phases stand like this.
fn status(id: &str, standings: &[&str], pending: u64) -> SpecStatus {
    let phases = [
        "requirements",
        "design",
        "tasks",
        "review",
        "fixup",
        "final",
    ];
    let phase = |(at, phase): (usize, &&str)| match standings.get(at) {
        Some(standing) => json!({
            "phase_id": phase, "status": standing, "receipt_id": format!("{phase}-20241201-10000{at}-000{at}"),
            "emitted_at": format!("2024-12-01T10:00:0{at}Z"), "age_seconds": 7200, "provider": "gateway",
            "model_used": "model-1", "tokens_input": 1200, "tokens_output": 340, "cost_micro_dollars": 1500,
            "error": (*standing == "failed").then_some(HOSTILE),
        }),
        None => json!({ "phase_id": phase, "status": "not_run", "receipt_id": null }),
    };
    let phases: Vec<_> = phases.iter().enumerate().map(phase).collect();
    serde_json::from_value(json!({
        "schema_version": "status-json.v1", "spec_id": id, "phase_statuses": phases, "pending_fixups": pending,
        "has_errors": false,
        "next": { "phase_id": "design", "reason": "failed", "command": format!("crucible resume {id} --phase design") },
    }))
    .unwrap()
}

/// A spec by its id and tags, with what is known of it.
type Spec<'a> = (&'a str, Vec<&'a str>, Result<Option<SpecStatus>, String>);

fn survey(specs: Vec<Spec<'_>>) -> WorkspaceSurvey {
    let (mut entries, mut statuses) = (Vec::new(), Vec::new());
    for (id, tags, status) in specs {
        let tags = tags.into_iter().map(str::to_owned).collect();
        entries.push(WorkspaceEntry {
            id: id.parse().unwrap(),
            tags,
            added: None,
        });
        statuses.push(status);
    }
    let workspace = SpecWorkspace {
        name: "demo".to_owned(),
        specs: entries,
    };
    WorkspaceSurvey {
        workspace,
        statuses,
        unlisted: Default::default(),
    }
}

fn some() -> WorkspaceSurvey {
    survey(vec![
        (
            "export-data",
            vec!["backend", "data"],
            Ok(Some(status("export-data", &["success", "failed"], 0))),
        ),
        (
            "login",
            vec!["frontend"],
            Ok(Some(status(
                "login",
                &["success", "stale", "success", "success", "success"],
                2,
            ))),
        ),
        ("later", vec![HOSTILE], Ok(None)),
        ("broken", vec![], Err(format!("cannot read {HOSTILE}"))),
    ])
}

fn many() -> WorkspaceSurvey {
    let ids: Vec<String> = (0..100).map(|at| format!("spec-{at:03}")).collect();
    survey(
        ids.iter()
            .map(|id| (id.as_str(), Vec::new(), Ok(None)))
            .collect(),
    )
}

/// These specs and no run.
fn content(survey: &WorkspaceSurvey) -> BoardContent {
    BoardContent {
        runs: RunList::empty(),
        specs: Some(survey.clone()),
    }
}

fn board_of(survey: &WorkspaceSurvey) -> Board {
    Board::new(&content(survey), Tab::Specs)
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn press(board: &mut Board, codes: impl IntoIterator<Item = KeyCode>) {
    for code in codes {
        assert_eq!(board.press(key(code)), Reaction::Stay, "{code:?}");
    }
}

fn letters(text: &str) -> Vec<KeyCode> {
    text.chars().map(KeyCode::Char).collect()
}

fn selected(board: &Board) -> &str {
    board.current().map_or("", |entry| entry.id())
}

/// What a terminal of this size shows, a line each, without the space at their ends.
fn screen(board: &mut Board, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| draw(frame, board, Palette::Colour))
        .unwrap();
    if width == 0 {
        return String::new();
    }
    let text = terminal.backend().to_string();
    let lines = text.lines().map(|line| line.trim_matches('"').trim_end());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn keys_move_within_the_list() {
    let mut board = board_of(&many());
    screen(&mut board, 80, 12);
    assert_eq!((board.page, selected(&board)), (10, "spec-000"));
    for (code, place) in [
        (KeyCode::Up, 0),
        (KeyCode::Down, 1),
        (KeyCode::Char('j'), 2),
        (KeyCode::Char('k'), 1),
        (KeyCode::PageDown, 11),
        (KeyCode::PageUp, 1),
        (KeyCode::PageUp, 0),
        (KeyCode::End, 99),
        (KeyCode::Down, 99),
        (KeyCode::PageDown, 99),
        (KeyCode::Home, 0),
        (KeyCode::Char('x'), 0),
    ] {
        press(&mut board, [code]);
        assert_eq!(selected(&board), format!("spec-{place:03}"), "{code:?}");
    }
}

#[test]
fn keys_leave_interrupt_and_read_again() {
    let mut board = board_of(&some());
    for (code, reaction) in [
        (KeyCode::Char('q'), Reaction::Leave),
        (KeyCode::Esc, Reaction::Leave),
        (KeyCode::Char('r'), Reaction::Reload),
    ] {
        assert_eq!(board.press(key(code)), reaction);
    }
    for view in [View::List, View::Filter, View::Details(0)] {
        board.view = view;
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(board.press(interrupt), Reaction::Interrupt, "{view:?}");
    }
    board.view = View::List;
    let released = KeyEvent {
        kind: KeyEventKind::Release,
        ..key(KeyCode::Char('q'))
    };
    assert_eq!(board.press(released), Reaction::Stay);
}

#[test]
fn a_filter_is_typed_kept_changed_and_cleared() {
    let mut board = board_of(&some());
    press(&mut board, [KeyCode::Down, KeyCode::Char('/')]);
    press(&mut board, letters("FRONT"));
    let ids = |board: &Board| {
        board
            .visible_entries()
            .iter()
            .map(|entry| entry.id().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (ids(&board), selected(&board)),
        (vec!["login".to_owned()], "login"),
        "by tag, in any case"
    );
    press(&mut board, [KeyCode::Enter]);
    assert_eq!((board.view, board.filter.as_str()), (View::List, "FRONT"));
    press(&mut board, [KeyCode::Esc]);
    assert_eq!(
        (ids(&board).len(), selected(&board)),
        (4, "login"),
        "the first Esc clears the filter, the same is selected"
    );
    press(&mut board, [KeyCode::Char('/')]);
    press(&mut board, letters("qjr/"));
    assert_eq!(
        (board.filter.as_str(), ids(&board).len(), selected(&board)),
        ("qjr/", 0, "")
    );
    press(
        &mut board,
        [
            KeyCode::Backspace,
            KeyCode::Backspace,
            KeyCode::Backspace,
            KeyCode::Backspace,
        ],
    );
    press(&mut board, letters(&"x".repeat(500)));
    assert_eq!(board.filter.len(), 64);
    press(&mut board, [KeyCode::Esc]);
    assert_eq!(
        (board.view, board.filter.as_str(), selected(&board)),
        (View::List, "", "export-data")
    );
    // With nothing selected there are no details.
    press(
        &mut board,
        [
            KeyCode::Char('/'),
            KeyCode::Char('~'),
            KeyCode::Enter,
            KeyCode::Enter,
        ],
    );
    assert_eq!(board.view, View::List);
}

#[test]
fn details_open_scroll_to_end_and_close() {
    let mut board = board_of(&some());
    press(&mut board, [KeyCode::Enter]);
    let first = screen(&mut board, 80, 8);
    assert!(first.contains("export-data: failed"), "{first}");
    press(&mut board, [KeyCode::End]);
    let last = screen(&mut board, 80, 8);
    assert!(
        last.contains("final: not run") && last.contains("next: crucible resume"),
        "{last}"
    );
    press(&mut board, [KeyCode::Down, KeyCode::PageDown]);
    assert_eq!(screen(&mut board, 80, 8), last, "no further than the end");
    press(&mut board, [KeyCode::Home]);
    assert_eq!(screen(&mut board, 80, 8), first);
    press(&mut board, [KeyCode::Esc]);
    assert_eq!((board.view, selected(&board)), (View::List, "export-data"));
}

#[test]
fn long_details_line_continues_below() {
    let mut board = board_of(&survey(vec![("a", vec![], Err("word ".repeat(30)))]));
    press(&mut board, [KeyCode::Enter]);
    let text = screen(&mut board, 40, 20);
    assert_eq!(text.matches("word").count(), 30, "{text}");
}

#[test]
fn refresh_keeps_selected_spec_or_takes_first() {
    let mut board = board_of(&some());
    press(&mut board, [KeyCode::Down, KeyCode::Enter]);
    let second_workspace_survey =
        survey(vec![("new", vec![], Ok(None)), ("login", vec![], Ok(None))]);
    board.renew(&content(&second_workspace_survey));
    assert_eq!((selected(&board), board.view), ("login", View::Details(0)));
    board.renew(&content(&survey(vec![("new", vec![], Ok(None))])));
    assert_eq!(
        (selected(&board), board.view),
        ("new", View::List),
        "what is gone has no details"
    );
    board.renew(&content(&survey(Vec::new())));
    assert_eq!(selected(&board), "");
    board.notice(format!("reload failed: {HOSTILE}"));
    assert!(screen(&mut board, 60, 5).contains("reload failed: a\\u{1b}[2J"));
    press(&mut board, [KeyCode::Down]);
    assert!(screen(&mut board, 60, 5).contains("no spec is listed yet"));
}

#[test]
fn eighty_columns_show_list_and_selected_spec() {
    let mut board = board_of(&some());
    insta::assert_snapshot!(screen(&mut board, 80, 20), @r"
    demo: 4 specs, 1 failed, 1 pending, 1 stale, 1 damaged, 1 not started
    > failed      export-data #backend …│export-data
      stale       login #frontend       │stands: failed
      not started later #a\u{1b}[2J\u{2…│tags: backend, data
      damaged     broken                │reached: requirements
                                        │
                                        │newest receipt
                                        │design: failed, 2h ago
                                        │  receipt: design-20241201-100001-0001
                                        │  model: model-1 (gateway)
                                        │  tokens: 1200 in, 340 out, $0.0015
                                        │  error: a\u{1b}[2J\u{202e}b\nc
                                        │
                                        │failed: design
                                        │next: crucible resume export-data --phase
                                        │design
                                        │
                                        │
                                        │
    q leave  up/down move  Enter phases  / filter  r reload  Tab runs
    ");
    press(&mut board, [KeyCode::Down]);
    insta::assert_snapshot!(screen(&mut board, 80, 20), @r"
    demo: 4 specs, 1 failed, 1 pending, 1 stale, 1 damaged, 1 not started
      failed      export-data #backend …│login
    > stale       login #frontend       │stands: stale
      not started later #a\u{1b}[2J\u{2…│tags: frontend
      damaged     broken                │reached: requirements
                                        │
                                        │newest receipt
                                        │fixup: done, 2h ago
                                        │  receipt: fixup-20241201-100004-0004
                                        │  model: model-1 (gateway)
                                        │  tokens: 1200 in, 340 out, $0.0015
                                        │
                                        │stale: design
                                        │pending fixups: 2 files
                                        │next: crucible resume login --phase design
                                        │
                                        │
                                        │
                                        │
    q leave  up/down move  Enter phases  / filter  r reload  Tab runs
    ");
    press(&mut board, [KeyCode::Enter]);
    insta::assert_snapshot!(screen(&mut board, 80, 26), @r"
    demo: 4 specs, 1 failed, 1 pending, 1 stale, 1 damaged, 1 not started
    login: stale
    stale: design
    pending fixups: 2 files

    requirements: done, 2h ago
      receipt: requirements-20241201-100000-0000
      model: model-1 (gateway)
      tokens: 1200 in, 340 out, $0.0015
    design: stale, 2h ago
      receipt: design-20241201-100001-0001
      model: model-1 (gateway)
      tokens: 1200 in, 340 out, $0.0015
    tasks: done, 2h ago
      receipt: tasks-20241201-100002-0002
      model: model-1 (gateway)
      tokens: 1200 in, 340 out, $0.0015
    review: done, 2h ago
      receipt: review-20241201-100003-0003
      model: model-1 (gateway)
      tokens: 1200 in, 340 out, $0.0015
    fixup: done, 2h ago
      receipt: fixup-20241201-100004-0004
      model: model-1 (gateway)
      tokens: 1200 in, 340 out, $0.0015
    q leave  Esc back  up/down scroll  r reload
    ");
}

#[test]
fn forty_columns_show_the_list_alone() {
    let mut board = board_of(&some());
    insta::assert_snapshot!(screen(&mut board, 40, 6), @r"
    demo: 4 specs, 1 failed, 1 pending, 1 s…
    > failed      export-data #backend #data
      stale       login #frontend
      not started later #a\u{1b}[2J\u{202e}…
      damaged     broken
    q leave  up/down move  Enter phases  / …
    ");
}

#[test]
fn selected_line_is_always_on_screen() {
    let mut board = board_of(&many());
    for _ in 0..120 {
        press(&mut board, [KeyCode::Down]);
        let text = screen(&mut board, 50, 9);
        assert!(
            text.contains(&format!("> not started {}", selected(&board))),
            "{text}"
        );
    }
}

#[test]
fn no_size_and_no_keys_are_too_much() {
    let keys = [
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Backspace,
        KeyCode::Tab,
        KeyCode::F(5),
        KeyCode::Char('/'),
        KeyCode::Char('e'),
        KeyCode::Char('j'),
        KeyCode::Char('\u{1f6d1}'),
        KeyCode::Char('\u{301}'),
    ];
    let mut seed: usize = 7;
    for survey in [some(), many(), survey(Vec::new())] {
        let mut board = board_of(&survey);
        for _ in 0..600 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            board.press(key(keys[(seed >> 33) % keys.len()]));
            let (width, height) = ((seed >> 40) % 90, (seed >> 50) % 30);
            let text = screen(&mut board, width as u16, height as u16);
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
            assert!(
                board.visible_entries().is_empty() || board.current().is_some(),
                "nothing is selected"
            );
        }
    }
}

/// Two runs, the second with a hostile goal.
fn runs() -> RunList {
    let run = |id: &str, state: &str, goal: &str| {
        json!({
            "run_id": id, "state": state, "outcome": state, "goal": goal, "repo": "/home/you/shop", "provider": "gateway",
            "model": "model-1", "agent": null, "created_at": "2026-01-31T09:30:00Z", "updated_at": "2026-01-31T09:31:00Z",
            "elapsed_ms": 60000, "calls": 3, "open_calls": 0, "tokens": 1540, "micro_dollars": 1234567,
        })
    };
    serde_json::from_value(json!({
        "schema_version": "crucible-run-list-v1", "total": 2,
        "runs": [run("run-00002", "landed", "make the area a product"), run("run-00001", "failed", HOSTILE)],
    }))
    .unwrap()
}

#[test]
fn tab_switches_between_runs_and_specs() {
    let content = BoardContent {
        runs: runs(),
        specs: Some(some()),
    };
    let mut board = Board::new(&content, Tab::Runs);
    let text = screen(&mut board, 80, 12);
    for part in [
        "2 runs",
        "> landed    make the area a product",
        "used: 3 calls, 1540 tokens, $1.234567, 1",
        "Tab specs",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    press(&mut board, letters("/failed"));
    press(&mut board, [KeyCode::Enter]);
    assert_eq!(selected(&board), "run-00001");
    let label = screen(&mut board, 80, 12);
    assert!(label.contains("a\\u{1b}[2J\\u{202e}b"), "{label}");
    press(&mut board, [KeyCode::Enter]);
    assert!(screen(&mut board, 80, 20).contains("reading…"));
    press(&mut board, [KeyCode::Esc, KeyCode::Tab]);
    assert_eq!((board.tab, selected(&board)), (Tab::Specs, "export-data"));
    assert!(board.filter.is_empty());
    press(&mut board, [KeyCode::Tab]);
    assert_eq!(selected(&board), "run-00002");
}

#[test]
fn board_without_workspace_says_how_to_make_one() {
    let content = BoardContent {
        runs: RunList::empty(),
        specs: None,
    };
    let mut board = Board::new(&content, Tab::Runs);
    assert!(screen(&mut board, 80, 5).contains("no run yet"));
    press(&mut board, [KeyCode::Tab]);
    assert!(
        screen(&mut board, 80, 5).contains("no workspace; `crucible project init` creates one")
    );
}

/// Opens the first run with the sample that has every field.
fn opened_run() -> Board {
    let mut run: serde_json::Value =
        serde_json::from_str(include_str!("../../serve/src/pages/sample.json")).unwrap();
    run["run_id"] = "run-00002".into();
    run["attempts"][0]["verification"]["results"] = json!([
        { "id": "tests", "isolation": "full", "failures": [], "tests": [["passing", 12]] }
    ]);
    let content = BoardContent {
        runs: runs(),
        specs: None,
    };
    let mut board = Board::new(&content, Tab::Runs);
    assert_eq!(board.unread(), None);
    press(&mut board, [KeyCode::Enter]);
    let key = board.unread().unwrap();
    assert_eq!(key, EntryKey::Run("run-00002".parse().unwrap()));
    let run = serde_json::from_value(run).unwrap();
    board.set_details(key, Ok(EntryDetails::Run(Box::new(run))));
    assert_eq!(board.unread(), None);
    board
}

#[test]
fn opened_run_has_what_its_page_has() {
    let mut board = opened_run();
    insta::assert_snapshot!(screen(&mut board, 100, 29), @r"
    2 runs
    run-00002
    state: verified
    goal: a goal
    repository: /r
    answers: a, p, m
    used: 1 call, 12 tokens, $1.234567, 1 min 0 s
    started: 2026-01-31T09:30:00.000Z, changed: 2026-01-31T09:31:00.000Z
    works: process 7
    next: Land it.
    this run was changed after it was recorded
      error c: s: h

    plan: approved, digest 222222222222
      # Plan
    attempt 1: Verified; +1 −1 in 1 file
      warning c: a.py: look
      gate tests: passed, 12 passing
      the gates passed in isolation
      f
    commit: abc

    call 1: m (p): ok, 12 tokens, $1.234567, 1.0 s

    page: crucible serve, /runs/run-00002
    report: crucible report run-00002


    q leave  Esc back  up/down scroll  r reload
    ");
    // Nothing is lost on a narrow screen, and reading again reads the run again.
    assert!(screen(&mut board, 30, 400).contains("report: crucible report"));
    board.renew(&BoardContent {
        runs: runs(),
        specs: None,
    });
    assert!(board.unread().is_some());
}

#[test]
fn opened_spec_has_its_requirement_counts() {
    let mut board = board_of(&some());
    press(&mut board, [KeyCode::Enter]);
    let key = board.unread().unwrap();
    let requirement =
        |id: &str, state: &str| json!({ "id": id, "title": HOSTILE, "state": state, "tests": [] });
    let evidence = json!({ "verdict": "fail", "findings": [], "matrix": {
        "commit": "c0", "counts": { "proven": 7, "partial": 2, "none": 1 },
        "requirements": [requirement("R1", "proven"), requirement("R2", "none")],
    }});
    let evidence = serde_json::from_value(evidence).unwrap();
    board.set_details(key, Ok(EntryDetails::Spec(Box::new(evidence))));
    let text = screen(&mut board, 80, 30);
    for part in [
        "requirements: 7 proven, 2 partial, 1 without proof",
        "  none: R2: a\\u{1b}[2J",
        "design: failed, 2h ago",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(!text.contains("R1"), "{text}");
}

#[test]
fn entry_that_cannot_be_read_says_why() {
    let mut board = board_of(&some());
    press(&mut board, [KeyCode::Enter]);
    let key = board.unread().unwrap();
    board.set_details(key, Err(format!("no repository {HOSTILE}")));
    let text = screen(&mut board, 80, 40);
    assert!(
        text.contains("cannot read more: no repository a\\u{1b}[2J"),
        "{text}"
    );
    assert!(text.contains("design: failed"), "{text}");
    assert_eq!(board.unread(), None);
}

#[test]
fn wide_list_has_time_and_cost_of_runs() {
    let content = BoardContent {
        runs: runs(),
        specs: None,
    };
    let mut board = Board::new(&content, Tab::Runs);
    let text = screen(&mut board, 140, 5);
    assert!(
        text.contains("> landed    1 min 0 s  $1.234567 make the area"),
        "{text}"
    );
}
