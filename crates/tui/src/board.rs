//! The state of the TUI: a value that only keys change.
//!
//! Invariant: after any keys, the selected line is a visible one, or no line is visible.

use crucible_spec::{SpecId, SpecStatus, WorkspaceSpec, WorkspaceSurvey};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The longest filter, in characters.
const LONGEST_FILTER: usize = 64;

/// The state of the TUI.
#[derive(Debug)]
pub(super) struct Board {
    /// The workspace's name.
    pub(super) name: String,
    /// The number of specs in each state.
    pub(super) counts: String,
    rows: Vec<Row>,
    pub(super) filter: String,
    pub(super) view: View,
    /// The index of the selected line among those shown.
    pub(super) selected: usize,
    /// The number of lines of the list or the details that fit on the screen; set when drawing.
    pub(super) page: usize,
    /// The number of lines of details; set when drawing.
    pub(super) details: usize,
    /// A message to the user, until the next key.
    pub(super) notice: Option<String>,
}

/// A spec, in short and in full.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) spec: WorkspaceSpec,
    pub(super) status: Option<SpecStatus>,
}

/// What the keys act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// The list, with the selected spec beside it.
    List,
    /// The list while the filter is typed.
    Filter,
    /// The phases of the selected spec, scrolled to this line.
    Details(usize),
}

/// What a key requests, apart from redrawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaction {
    /// Nothing.
    Stay,
    /// Read everything again.
    Reload,
    /// Suspend the program until the shell continues it.
    Pause,
    /// Quit.
    Leave,
    /// Quit as an interruption.
    Interrupt,
}

impl Board {
    /// Creates the list of a workspace with its first spec selected.
    pub(super) fn new(survey: &WorkspaceSurvey) -> Self {
        let mut board = Self {
            name: String::new(),
            counts: String::new(),
            rows: Vec::new(),
            filter: String::new(),
            view: View::List,
            selected: 0,
            page: 1,
            details: 0,
            notice: None,
        };
        board.renew(survey);
        board
    }

    /// Replaces the workspace; the same spec stays selected if it still exists.
    pub(super) fn renew(&mut self, survey: &WorkspaceSurvey) {
        let selected = self.selected_id();
        let summary = survey.summary();
        self.name = summary.name;
        self.counts = summary.counts.words();
        let statuses = survey
            .statuses
            .iter()
            .map(|status| status.as_ref().ok().cloned().flatten());
        self.rows = summary
            .specs
            .into_iter()
            .zip(statuses)
            .map(|(spec, status)| Row { spec, status })
            .collect();
        self.select(selected.as_ref());
    }

    /// Sets a message to the user.
    pub(super) fn notice(&mut self, text: String) {
        self.notice = Some(text);
    }

    /// The specs that match the filter, in workspace order.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Row> {
        let wanted = self.filter.to_lowercase();
        self.rows.iter().filter(move |row| {
            let holds = |text: &str| text.to_lowercase().contains(&wanted);
            wanted.is_empty()
                || holds(row.spec.spec_id.as_str())
                || row.spec.tags.iter().any(|tag| holds(tag))
        })
    }

    /// The selected spec.
    pub(super) fn current(&self) -> Option<&Row> {
        self.shown().nth(self.selected)
    }

    /// Handles a key.
    pub(super) fn press(&mut self, key: KeyEvent) -> Reaction {
        if key.kind == KeyEventKind::Release {
            return Reaction::Stay;
        }
        self.notice = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return Reaction::Interrupt;
        }
        if control && key.code == KeyCode::Char('z') {
            return Reaction::Pause;
        }
        match self.view {
            View::List => self.press_in_list(key.code),
            View::Filter => self.press_in_filter(key.code, control),
            View::Details(from) => self.press_in_details(key.code, from),
        }
    }

    fn press_in_list(&mut self, key: KeyCode) -> Reaction {
        match key {
            KeyCode::Char('q') => return Reaction::Leave,
            KeyCode::Esc if self.filter.is_empty() => return Reaction::Leave,
            KeyCode::Esc => self.set_filter(String::new()),
            KeyCode::Char('r') => return Reaction::Reload,
            KeyCode::Char('/') => self.view = View::Filter,
            KeyCode::Enter if self.current().is_some() => self.view = View::Details(0),
            _ => {
                let last = self.shown().count().saturating_sub(1);
                self.selected = moved(key, self.selected, last, self.page).unwrap_or(self.selected);
            }
        }
        Reaction::Stay
    }

    fn press_in_filter(&mut self, key: KeyCode, control: bool) -> Reaction {
        let mut filter = self.filter.clone();
        match key {
            KeyCode::Enter => self.view = View::List,
            KeyCode::Esc => {
                self.view = View::List;
                filter.clear();
            }
            KeyCode::Backspace => {
                filter.pop();
            }
            KeyCode::Char('u') if control => filter.clear(),
            KeyCode::Char(c) if !control && filter.chars().count() < LONGEST_FILTER => {
                filter.push(c)
            }
            KeyCode::Up | KeyCode::Down => {
                let last = self.shown().count().saturating_sub(1);
                self.selected = moved(key, self.selected, last, self.page).unwrap_or(self.selected);
            }
            _ => {}
        }
        if filter != self.filter {
            self.set_filter(filter);
        }
        Reaction::Stay
    }

    fn press_in_details(&mut self, key: KeyCode, from: usize) -> Reaction {
        match key {
            KeyCode::Char('q') => return Reaction::Leave,
            KeyCode::Char('r') => return Reaction::Reload,
            KeyCode::Esc | KeyCode::Enter | KeyCode::Backspace => self.view = View::List,
            _ => {
                let last = self.details.saturating_sub(self.page);
                self.view =
                    View::Details(moved(key, from, last, self.page).unwrap_or(from).min(last));
            }
        }
        Reaction::Stay
    }

    fn set_filter(&mut self, filter: String) {
        let selected = self.selected_id();
        self.filter = filter;
        self.select(selected.as_ref());
    }

    fn selected_id(&self) -> Option<SpecId> {
        self.current().map(|row| row.spec.spec_id.clone())
    }

    /// Selects this spec if it is shown, else the first one; without a spec, the details close.
    fn select(&mut self, id: Option<&SpecId>) {
        let place = self.shown().position(|row| Some(&row.spec.spec_id) == id);
        self.selected = place.unwrap_or(0);
        if place.is_none() && matches!(self.view, View::Details(_)) {
            self.view = View::List;
        }
    }
}

/// The line that a key moves to, among those up to `last`; none if the key does not move.
fn moved(key: KeyCode, from: usize, last: usize, page: usize) -> Option<usize> {
    let to = match key {
        KeyCode::Up | KeyCode::Char('k') => from.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => from.saturating_add(1),
        KeyCode::PageUp => from.saturating_sub(page.max(1)),
        KeyCode::PageDown => from.saturating_add(page.max(1)),
        KeyCode::Home => 0,
        KeyCode::End => last,
        _ => return None,
    };
    Some(to.min(last))
}
