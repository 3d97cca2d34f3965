//! A full-screen, read-only view of the runs and the specs.
//!
//! `Board` is the state, a value that keys change; `draw` renders it into cells; `Screen` owns the
//! terminal. A separate thread reads the keyboard, so that signals are handled while no key is pressed.
//!
//! Invariants: only the terminal is written to. It is restored when the view ends, by a key, a signal
//! or an error, and while it is suspended (Ctrl-Z).

mod board;
mod draw;
mod pause;
mod run_lines;
mod screen;
mod spec_lines;
#[cfg(test)]
mod tests;
mod text;

use std::io::{self, IsTerminal};
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_model::Failure;
use crucible_terminal::{Output, interrupted};
use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc::{Receiver, channel};

use self::board::{Board, Reaction};
pub use self::board::{BoardContent, EntryDetails, EntryKey, Tab};
use self::draw::Palette;
use self::pause::{Paused, SignalRequest, Signals};
use self::screen::Screen;

/// How long the keyboard thread waits before it checks whether the receiver is gone.
const TURN: Duration = Duration::from_millis(100);

/// The number of key events that are buffered.
const WAITING: usize = 64;

/// Fails unless the program has a terminal for the view.
pub fn require_terminal(env: &Environment, output: &Output) -> Result<(), Failure> {
    let dumb = env
        .get("TERM")
        .is_none_or(|term| term.is_empty() || term == "dumb");
    let lacking = [
        io::stdin().is_terminal(),
        io::stdout().is_terminal(),
        !dumb,
        !output.is_json(),
    ];
    if lacking.contains(&false) {
        return Err(Failure::usage("the full-screen view needs a terminal").hint(
            "`crucible run list` and `crucible project status` print the same, and with --json for programs.",
        ));
    }
    Ok(())
}

/// What the view reads.
pub trait BoardSource {
    /// Reads the lists.
    ///
    /// # Errors
    ///
    /// Fails when the ledger or the workspace cannot be read.
    fn content(&self) -> Result<BoardContent, Failure>;

    /// Reads what only an opened entry has.
    ///
    /// # Errors
    ///
    /// Fails when the run or the spec cannot be read.
    fn details(&self, entry: &EntryKey) -> impl Future<Output = Result<EntryDetails, Failure>>;
}

/// A view of runs and specs, which `S` reads.
pub struct BoardView<S> {
    source: S,
    board: Board,
    palette: Palette,
}

impl<S: BoardSource> BoardView<S> {
    /// Reads the content for the first time and shows this list.
    pub fn new(env: &Environment, tab: Tab, source: S) -> Result<Self, Failure> {
        let board = Board::new(&source.content()?, tab);
        Ok(Self {
            source,
            board,
            palette: Palette::from_env(env),
        })
    }

    /// Shows the lists until the user leaves.
    pub async fn show(mut self) -> Result<(), Failure> {
        let mut signals = Signals::new().map_err(|error| terminal_failed(&error))?;
        let mut screen = Screen::enter().map_err(|error| terminal_failed(&error))?;
        let mut events = events();
        loop {
            screen
                .draw(&mut self.board, self.palette)
                .map_err(|error| terminal_failed(&error))?;
            if let Some(entry) = self.board.unread() {
                let details = self.source.details(&entry).await;
                let details = details.map_err(|error| error.message);
                self.board.set_details(entry, details);
                continue;
            }
            let reaction = tokio::select! {
                asked = signals.next_signal() => match asked {
                    SignalRequest::Stop => Reaction::Pause,
                    SignalRequest::Quit => Reaction::Interrupt,
                    SignalRequest::GoOn => {
                        drop(screen);
                        screen = Screen::enter().map_err(|error| terminal_failed(&error))?;
                        Reaction::Stay
                    }
                },
                event = events.recv() => match event {
                    Some(Ok(Event::Key(key))) => self.board.press(key),
                    // A resize, or another event that may have disturbed the screen.
                    Some(Ok(_)) => Reaction::Stay,
                    Some(Err(error)) => return Err(terminal_failed(&error)),
                    None => Reaction::Leave,
                },
            };
            match reaction {
                Reaction::Stay => {}
                Reaction::Leave => return Ok(()),
                Reaction::Interrupt => return Err(interrupted()),
                Reaction::Pause => {
                    drop(screen);
                    let paused = signals.pause().await;
                    screen = Screen::enter().map_err(|error| terminal_failed(&error))?;
                    match paused {
                        Ok(Paused::GoesOn) => {}
                        Ok(Paused::NoShell) => {
                            self.board.notice(
                                "cannot suspend without a shell; press q to leave".to_owned(),
                            );
                        }
                        Err(error) => self.board.notice(format!("cannot suspend: {error}")),
                    }
                }
                Reaction::Reload => match self.source.content() {
                    Ok(content) => self.board.renew(&content),
                    Err(error) => self
                        .board
                        .notice(format!("reload failed: {}", error.message)),
                },
            }
        }
    }
}

fn terminal_failed(error: &io::Error) -> Failure {
    Failure::refused(format!("the terminal failed: {error}"))
        .hint("`crucible run list` and `crucible project status` print the same.")
}

/// Terminal events, read by a thread that ends when the receiver is dropped.
fn events() -> Receiver<io::Result<Event>> {
    let (tell, receiver) = channel(WAITING);
    std::thread::spawn(move || {
        while !tell.is_closed() {
            let happened = match event::poll(TURN) {
                Ok(false) => continue,
                Ok(true) => event::read(),
                Err(error) => Err(error),
            };
            let ended = happened.is_err();
            if tell.blocking_send(happened).is_err() || ended {
                return;
            }
        }
    });
    receiver
}
