//! Draws the board as cells of a terminal of any size.
//!
//! Invariant: text from files and receipts is escaped before it becomes cells. What does not fit is cut,
//! never an error.

use crucible_host::env::Environment;
use crucible_llm::dollars;
use crucible_model::{counted, one_line};
use crucible_spec::SpecStanding;
use crucible_view::{RunOutcome, duration};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, List, ListItem, ListState, Paragraph};

use super::board::{Board, Entry, EntryDetails, Tab, View};
use super::text::{fitted, wrapped};
use super::{run_lines, spec_lines};

/// Below this number of columns only the list is shown.
const NARROW: u16 = 60;

/// From this number of columns on, a line of the list has the time and the cost of a run.
const WIDE: usize = 50;

/// Whether to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Palette {
    /// States have colours.
    Colour,
    /// States are shown by words alone.
    Plain,
}

impl Palette {
    /// Follows the environment.
    pub(super) fn from_env(env: &Environment) -> Self {
        if env
            .get_os("NO_COLOR")
            .is_some_and(|value| !value.is_empty())
        {
            Self::Plain
        } else {
            Self::Colour
        }
    }

    fn style(self, entry: Entry<'_>) -> Style {
        let colour = match entry {
            Entry::Spec(row) => match row.spec.standing {
                SpecStanding::Damaged | SpecStanding::Failed => Color::Red,
                SpecStanding::Stale | SpecStanding::Pending => Color::Yellow,
                SpecStanding::Done => Color::Green,
                SpecStanding::NotStarted | SpecStanding::InProgress => Color::Reset,
            },
            Entry::Run(run) => match run.outcome {
                RunOutcome::Failed | RunOutcome::Declined => Color::Red,
                RunOutcome::Blocked => Color::Yellow,
                RunOutcome::Verified | RunOutcome::Landed => Color::Green,
                RunOutcome::Open => Color::Reset,
            },
        };
        match self {
            Self::Colour => Style::new().fg(colour),
            Self::Plain => Style::new(),
        }
    }
}

/// Draws the board, and records how many lines fit.
pub(super) fn draw(frame: &mut Frame<'_>, board: &mut Board, palette: Palette) {
    let [title, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let heading = fitted(&one_line(&heading(board)), usize::from(title.width));
    frame.render_widget(Line::styled(heading, Modifier::BOLD), title);
    match (board.view, body.width < NARROW) {
        (View::Details(from), _) => details(frame, body, board, from),
        (View::List | View::Filter, true) => list(frame, body, board, palette),
        (View::List | View::Filter, false) => {
            let [left, right] =
                Layout::horizontal([Constraint::Percentage(45), Constraint::Percentage(55)])
                    .areas(body);
            list(frame, left, board, palette);
            let lines = board.current().map(in_short).unwrap_or_default();
            // The border takes a column.
            let lines = wrapped_lines(&lines, right.width.saturating_sub(1));
            let paragraph = Paragraph::new(lines.into_iter().map(Line::from).collect::<Vec<_>>());
            let block = Block::new().borders(Borders::LEFT);
            frame.render_widget(paragraph.block(block), right);
        }
    }
    let keys = fitted(&footer(board), usize::from(foot.width));
    frame.render_widget(Line::styled(keys, Modifier::DIM), foot);
}

fn heading(board: &Board) -> String {
    match (board.tab, &board.name) {
        (Tab::Runs, _) => counted(board.total_runs, "run"),
        (Tab::Specs, Some(name)) => format!("{name}: {}", board.counts),
        (Tab::Specs, None) => "no workspace; `crucible project init` creates one".to_owned(),
    }
}

fn in_short(entry: Entry<'_>) -> Vec<String> {
    match entry {
        Entry::Run(run) => run_lines::in_short(run),
        Entry::Spec(row) => spec_lines::in_short(row),
    }
}

/// Lines without hidden characters that are not wider than this.
fn wrapped_lines(lines: &[String], width: u16) -> Vec<String> {
    lines
        .iter()
        .flat_map(|line| wrapped(&one_line(line), width))
        .collect()
}

fn footer(board: &Board) -> String {
    if let Some(notice) = &board.notice {
        return one_line(notice);
    }
    match board.view {
        View::Filter => format!("/{}_   Enter keep  Esc clear", one_line(&board.filter)),
        View::Details(_) => "q leave  Esc back  up/down scroll  r reload".to_owned(),
        View::List if board.filter.is_empty() => {
            let (enter, other) = match board.tab {
                Tab::Runs => ("details", "specs"),
                Tab::Specs => ("phases", "runs"),
            };
            format!("q leave  up/down move  Enter {enter}  / filter  r reload  Tab {other}")
        }
        View::List => format!(
            "q leave  Esc clear  / change  filter: {}",
            one_line(&board.filter)
        ),
    }
}

fn list(frame: &mut Frame<'_>, area: Rect, board: &mut Board, palette: Palette) {
    board.page = usize::from(area.height);
    let entries = board.visible_entries();
    if entries.is_empty() {
        let nothing = match (board.tab, board.filter.is_empty()) {
            (Tab::Runs, true) => "no run yet",
            (Tab::Runs, false) => "no run matches",
            (Tab::Specs, true) => "no spec is listed yet",
            (Tab::Specs, false) => "no spec matches",
        };
        frame.render_widget(Line::from(nothing), area);
        return;
    }
    // Only visible lines are rendered: a workspace may list thousands.
    let height = board.page.max(1);
    let first = board
        .selected
        .saturating_sub(height / 2)
        .min(entries.len().saturating_sub(height));
    let items: Vec<ListItem<'_>> = entries
        .iter()
        .skip(first)
        .take(height)
        .map(|entry| {
            // The mark of the selected line takes two columns.
            let width = usize::from(area.width).saturating_sub(2);
            ListItem::new(fitted(&one_line(&in_list(*entry, width)), width))
                .style(palette.style(*entry))
        })
        .collect();
    let list = List::new(items)
        .highlight_symbol("> ")
        .highlight_style(Modifier::REVERSED);
    let mut state = ListState::default().with_selected(Some(board.selected - first));
    frame.render_stateful_widget(list, area, &mut state);
}

/// An entry on one line of this many columns.
fn in_list(entry: Entry<'_>, width: usize) -> String {
    match entry {
        Entry::Run(run) if width < WIDE => format!("{:<9} {}", run.state.to_string(), run.goal),
        Entry::Run(run) => format!(
            "{:<9} {:>9} {:>10} {}",
            run.state.to_string(),
            duration(run.elapsed_ms),
            dollars(run.totals.micro_dollars),
            run.goal
        ),
        Entry::Spec(row) => {
            let tags = row.spec.tags.iter().map(|tag| format!(" #{tag}"));
            format!(
                "{:<11} {}{}",
                row.spec.standing.words(),
                row.spec.spec_id,
                tags.collect::<String>()
            )
        }
    }
}

fn details(frame: &mut Frame<'_>, area: Rect, board: &mut Board, from: usize) {
    let read = board.current_details();
    let mut lines = match (board.current(), read) {
        (Some(Entry::Run(_)), Some(Ok(EntryDetails::Run(run)))) => run_lines::in_full(run),
        (Some(Entry::Run(run)), _) => run_lines::in_short(run),
        (Some(Entry::Spec(row)), Some(Ok(EntryDetails::Spec(evidence)))) => {
            spec_lines::in_full(row, Some(evidence))
        }
        (Some(Entry::Spec(row)), _) => spec_lines::in_full(row, None),
        (None, _) => Vec::new(),
    };
    match read {
        None => lines.push("reading…".to_owned()),
        Some(Err(reason)) => lines.push(format!("cannot read more: {reason}")),
        Some(Ok(_)) => {}
    }
    let lines = wrapped_lines(&lines, area.width);
    board.page = usize::from(area.height);
    board.details = lines.len();
    let from = from.min(board.details.saturating_sub(board.page));
    let lines = lines
        .into_iter()
        .skip(from)
        .take(board.page)
        .map(Line::from);
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}
