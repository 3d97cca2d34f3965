//! Draws the board as cells of a terminal of any size.
//!
//! Invariant: text from files and receipts is escaped before it becomes cells. What does not fit is cut,
//! never an error.

use std::time::Duration;

use crucible_host::env::Environment;
use crucible_llm::{cost_in_words, tokens_in_words};
use crucible_model::{counted, one_line};
use crucible_spec::{PhaseSummary, SpecStanding, SpecStatus, age_words};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, List, ListItem, ListState, Paragraph, Wrap};

use super::board::{Board, Row, View};

/// Below this number of columns only the list is shown.
const NARROW: u16 = 60;

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
    pub(super) fn of(env: &Environment) -> Self {
        if env
            .get_os("NO_COLOR")
            .is_some_and(|value| !value.is_empty())
        {
            Self::Plain
        } else {
            Self::Colour
        }
    }

    fn style(self, standing: SpecStanding) -> Style {
        let colour = match standing {
            SpecStanding::Damaged | SpecStanding::Failed => Color::Red,
            SpecStanding::Stale | SpecStanding::Pending => Color::Yellow,
            SpecStanding::Done => Color::Green,
            SpecStanding::NotStarted | SpecStanding::InProgress => Color::Reset,
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
    let heading = one_line(&format!("{}: {}", board.name, board.counts));
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
            let paragraph = Paragraph::new(lines.into_iter().map(Line::from).collect::<Vec<_>>());
            let block = Block::new().borders(Borders::LEFT);
            frame.render_widget(paragraph.wrap(Wrap { trim: false }).block(block), right);
        }
    }
    frame.render_widget(Line::styled(footer(board), Modifier::DIM), foot);
}

fn footer(board: &Board) -> String {
    if let Some(notice) = &board.notice {
        return one_line(notice);
    }
    match board.view {
        View::Filter => format!("/{}_   Enter keep  Esc clear", one_line(&board.filter)),
        View::Details(_) => "q leave  Esc back  up/down scroll  r reload".to_owned(),
        View::List if board.filter.is_empty() => {
            "q leave  up/down move  Enter phases  / filter  r reload".to_owned()
        }
        View::List => format!(
            "q leave  Esc clear  / change  filter: {}",
            one_line(&board.filter)
        ),
    }
}

fn list(frame: &mut Frame<'_>, area: Rect, board: &mut Board, palette: Palette) {
    board.page = usize::from(area.height);
    let shown: Vec<&Row> = board.shown().collect();
    if shown.is_empty() {
        let nothing = if board.filter.is_empty() {
            "no spec is listed yet"
        } else {
            "no spec matches"
        };
        frame.render_widget(Line::from(nothing), area);
        return;
    }
    // Only visible lines are rendered: a workspace may list thousands.
    let height = board.page.max(1);
    let first = board
        .selected
        .saturating_sub(height / 2)
        .min(shown.len().saturating_sub(height));
    let items: Vec<ListItem<'_>> = shown
        .iter()
        .skip(first)
        .take(height)
        .map(|row| {
            let tags = row
                .spec
                .tags
                .iter()
                .map(|tag| format!(" #{tag}"))
                .collect::<String>();
            let text = format!(
                "{:<11} {}{tags}",
                row.spec.standing.words(),
                row.spec.spec_id
            );
            ListItem::new(one_line(&text)).style(palette.style(row.spec.standing))
        })
        .collect();
    let list = List::new(items)
        .highlight_symbol("> ")
        .highlight_style(Modifier::REVERSED);
    let mut state = ListState::default().with_selected(Some(board.selected - first));
    frame.render_stateful_widget(list, area, &mut state);
}

/// A spec beside the list: its state, newest receipt, problems and next step.
fn in_short(row: &Row) -> Vec<String> {
    let spec = &row.spec;
    let mut lines = vec![
        spec.spec_id.to_string(),
        format!("stands: {}", spec.standing.words()),
    ];
    if !spec.tags.is_empty() {
        lines.push(format!("tags: {}", spec.tags.join(", ")));
    }
    lines.extend(spec.reached.map(|phase| format!("reached: {phase}")));
    lines.push(String::new());
    match row.status.as_ref().and_then(newest) {
        Some(phase) => {
            lines.push("newest receipt".to_owned());
            lines.extend(phase_lines(phase));
        }
        None if row.spec.error.is_none() => lines.push("no receipt yet".to_owned()),
        None => {}
    }
    lines.push(String::new());
    lines.extend(spec.troubles());
    lines.extend(problems(row));
    lines.extend(
        spec.next
            .as_ref()
            .map(|next| format!("next: {}", next.command)),
    );
    lines.iter().map(|line| one_line(line)).collect()
}

fn details(frame: &mut Frame<'_>, area: Rect, board: &mut Board, from: usize) {
    let mut lines = Vec::new();
    if let Some(row) = board.current() {
        lines.push(format!(
            "{}: {}",
            row.spec.spec_id,
            row.spec.standing.words()
        ));
        lines.extend(row.spec.troubles());
        lines.extend(problems(row));
        lines.push(String::new());
        lines.extend(
            row.status
                .iter()
                .flat_map(|status| &status.phase_statuses)
                .flat_map(phase_lines),
        );
        lines.push(String::new());
        lines.extend(
            row.spec
                .next
                .as_ref()
                .map(|next| format!("next: {}", next.command)),
        );
    }
    let lines: Vec<String> = lines
        .iter()
        .flat_map(|line| wrapped(&one_line(line), area.width))
        .collect();
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

/// Splits a line into pieces of at most `width` columns. A wider character has its own piece.
pub(super) fn wrapped(line: &str, width: u16) -> Vec<String> {
    let most = usize::from(width).max(1);
    let (mut pieces, mut piece, mut columns) = (Vec::new(), String::new(), 0);
    for character in line.chars() {
        let wide = Span::raw(&*character.encode_utf8(&mut [0; 4])).width();
        if columns + wide > most && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
            columns = 0;
        }
        piece.push(character);
        columns += wide;
    }
    pieces.push(piece);
    pieces
}

/// The phase whose receipt is the newest.
fn newest(status: &SpecStatus) -> Option<&PhaseSummary> {
    let phases = status
        .phase_statuses
        .iter()
        .filter(|phase| phase.receipt_id.is_some());
    phases.max_by_key(|phase| (phase.emitted_at, phase.phase_id))
}

fn phase_lines(phase: &PhaseSummary) -> Vec<String> {
    let age = phase
        .age_seconds
        .map(|seconds| format!(", {} ago", age_words(Duration::from_secs(seconds))));
    let mut lines = vec![format!(
        "{}: {}{}",
        phase.phase_id,
        phase.status.words(),
        age.unwrap_or_default()
    )];
    lines.extend(
        phase
            .receipt_id
            .as_ref()
            .map(|id| format!("  receipt: {id}")),
    );
    if let Some(model) = &phase.model_used {
        let provider = phase
            .provider
            .as_ref()
            .map(|provider| format!(" ({provider})"))
            .unwrap_or_default();
        lines.push(format!("  model: {model}{provider}"));
    }
    let taken = [
        tokens_in_words(phase.tokens_input, phase.tokens_output),
        cost_in_words(phase.cost_micro_dollars, phase.cost_basis),
    ];
    let taken: Vec<&str> = taken
        .iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    if !taken.is_empty() {
        lines.push(format!("  tokens: {}", taken.join(", ")));
    }
    lines.extend(
        phase
            .error
            .as_ref()
            .map(|error| format!("  error: {error}")),
    );
    if let Some(warning) = &phase.first_warning {
        lines.push(format!(
            "  {}: {warning}",
            counted(phase.warnings, "warning")
        ));
    }
    lines
}

fn problems(row: &Row) -> Vec<String> {
    let Some(status) = &row.status else {
        return Vec::new();
    };
    let mut lines: Vec<String> = status
        .problems
        .iter()
        .map(|problem| format!("receipts/{}: {}", problem.file, problem.code))
        .collect();
    if status.problems_left_out > 0 {
        lines.push(format!(
            "and {} more",
            counted(status.problems_left_out, "problem")
        ));
    }
    lines
}
