//! The state of the TUI: a value that only keys change.
//!
//! It has two lists, runs and specs. Invariant: after any keys, the selected line is a visible one, or no line is visible.

use crucible_model::RunId;
use crucible_spec::{SpecId, SpecStatus, WorkspaceSpec, WorkspaceSurvey};
use crucible_view::{EvidenceView, RunList, RunSummary, RunView};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The longest filter, in characters.
const MAX_FILTER_LEN: usize = 64;

/// What the TUI shows.
#[derive(Debug, Clone)]
pub struct BoardContent {
    /// The runs, the newest first.
    pub runs: RunList,
    /// The specs; absent without a workspace.
    pub specs: Option<WorkspaceSurvey>,
}

/// Which entry is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKey {
    /// A run.
    Run(RunId),
    /// A spec.
    Spec(SpecId),
}

/// What only an opened entry has, because it takes time to read.
#[derive(Debug)]
pub enum EntryDetails {
    /// All about a run.
    Run(Box<RunView>),
    /// The requirements of a spec with what proves them.
    Spec(Box<EvidenceView>),
}

/// One of the two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    /// The runs.
    Runs,
    /// The specs of the workspace.
    Specs,
}

/// The state of the TUI.
#[derive(Debug)]
pub(super) struct Board {
    /// The workspace's name, if there is a workspace.
    pub(super) name: Option<String>,
    /// The number of specs in each state.
    pub(super) counts: String,
    /// The number of all runs; the list may have only the newest.
    pub(super) total_runs: u64,
    pub(super) tab: Tab,
    runs: Vec<RunSummary>,
    specs: Vec<Row>,
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
    /// The entry whose details were read last, with them or the reason why they cannot be read.
    opened: Option<(EntryKey, Result<EntryDetails, String>)>,
}

/// A spec, in short and in full.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) spec: WorkspaceSpec,
    pub(super) status: Option<SpecStatus>,
}

/// A line of a list.
#[derive(Debug, Clone, Copy)]
pub(super) enum Entry<'a> {
    Run(&'a RunSummary),
    Spec(&'a Row),
}

impl<'a> Entry<'a> {
    /// The id of the run or the spec.
    pub(super) fn id(self) -> &'a str {
        match self {
            Self::Run(run) => run.run_id.as_str(),
            Self::Spec(row) => row.spec.spec_id.as_str(),
        }
    }

    fn key(self) -> EntryKey {
        match self {
            Self::Run(run) => EntryKey::Run(run.run_id.clone()),
            Self::Spec(row) => EntryKey::Spec(row.spec.spec_id.clone()),
        }
    }

    /// Whether it contains this lower-case text.
    fn matches(self, requested: &str) -> bool {
        let holds = |text: &str| text.to_lowercase().contains(requested);
        match self {
            Self::Run(run) => [run.run_id.as_str(), run.goal.as_str(), run.state.as_str()]
                .into_iter()
                .any(holds),
            Self::Spec(row) => {
                holds(row.spec.spec_id.as_str()) || row.spec.tags.iter().any(|tag| holds(tag))
            }
        }
    }
}

/// What the keys act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// The list, with the selected entry beside it.
    List,
    /// The list while the filter is typed.
    Filter,
    /// All about the selected entry, scrolled to this line.
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
    /// Creates both lists and shows one of them with its first entry selected.
    pub(super) fn new(content: &BoardContent, tab: Tab) -> Self {
        let mut board = Self {
            name: None,
            counts: String::new(),
            total_runs: 0,
            tab,
            runs: Vec::new(),
            specs: Vec::new(),
            filter: String::new(),
            view: View::List,
            selected: 0,
            page: 1,
            details: 0,
            notice: None,
            opened: None,
        };
        board.renew(content);
        board
    }

    /// Replaces the content; the same entry stays selected if it still exists.
    pub(super) fn renew(&mut self, content: &BoardContent) {
        let selected = self.selected_id();
        self.opened = None;
        self.total_runs = content.runs.total;
        self.runs.clone_from(&content.runs.runs);
        (self.name, self.counts, self.specs) = match &content.specs {
            Some(survey) => {
                let summary = survey.summary();
                let statuses = survey
                    .statuses
                    .iter()
                    .map(|status| status.as_ref().ok().cloned().flatten());
                let rows = summary.specs.into_iter().zip(statuses);
                (
                    Some(summary.name),
                    summary.counts.words(),
                    rows.map(|(spec, status)| Row { spec, status }).collect(),
                )
            }
            None => (None, String::new(), Vec::new()),
        };
        self.select(selected.as_deref());
    }

    /// Sets a message to the user.
    pub(super) fn notice(&mut self, text: String) {
        self.notice = Some(text);
    }

    /// The entries of the list that match the filter, in order.
    pub(super) fn visible_entries(&self) -> Vec<Entry<'_>> {
        let requested = self.filter.to_lowercase();
        let all: Box<dyn Iterator<Item = Entry<'_>>> = match self.tab {
            Tab::Runs => Box::new(self.runs.iter().map(Entry::Run)),
            Tab::Specs => Box::new(self.specs.iter().map(Entry::Spec)),
        };
        all.filter(|entry| requested.is_empty() || entry.matches(&requested))
            .collect()
    }

    /// The selected entry.
    pub(super) fn current(&self) -> Option<Entry<'_>> {
        self.visible_entries().get(self.selected).copied()
    }

    /// The opened entry, if its details have to be read.
    pub(super) fn unread(&self) -> Option<EntryKey> {
        let key = self.current()?.key();
        let is_open = matches!(self.view, View::Details(_));
        (is_open && self.details_of(&key).is_none()).then_some(key)
    }

    /// Sets the details of an entry, or the reason why they cannot be read.
    pub(super) fn set_details(&mut self, key: EntryKey, details: Result<EntryDetails, String>) {
        self.opened = Some((key, details));
    }

    /// The details of the selected entry; `None` before they are read.
    pub(super) fn current_details(&self) -> Option<Result<&EntryDetails, &str>> {
        self.details_of(&self.current()?.key())
    }

    fn details_of(&self, key: &EntryKey) -> Option<Result<&EntryDetails, &str>> {
        let opened = self.opened.as_ref().filter(|(opened, _)| opened == key);
        opened.map(|(_, details)| details.as_ref().map_err(String::as_str))
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
            KeyCode::Tab | KeyCode::BackTab => self.switch(),
            KeyCode::Enter if self.current().is_some() => self.view = View::Details(0),
            _ => {
                let last = self.visible_entries().len().saturating_sub(1);
                self.selected = moved(key, self.selected, last, self.page).unwrap_or(self.selected);
            }
        }
        Reaction::Stay
    }

    /// Shows the other list from its start, without a filter.
    fn switch(&mut self) {
        self.tab = match self.tab {
            Tab::Runs => Tab::Specs,
            Tab::Specs => Tab::Runs,
        };
        self.filter.clear();
        self.selected = 0;
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
            KeyCode::Char(c) if !control && filter.chars().count() < MAX_FILTER_LEN => {
                filter.push(c)
            }
            KeyCode::Up | KeyCode::Down => {
                let last = self.visible_entries().len().saturating_sub(1);
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
        self.select(selected.as_deref());
    }

    fn selected_id(&self) -> Option<String> {
        self.current().map(|entry| entry.id().to_owned())
    }

    /// Selects this entry if it is shown, else the first one; if it is gone, the details close.
    fn select(&mut self, id: Option<&str>) {
        let place = self
            .visible_entries()
            .iter()
            .position(|entry| Some(entry.id()) == id);
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
