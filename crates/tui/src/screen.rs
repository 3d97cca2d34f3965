//! The terminal while the TUI owns it: raw keys, the alternate screen, no cursor.
//!
//! Invariant: the terminal is restored on every exit: a return, an error or a dropped future. On a panic
//! it is restored before the message is printed.

use std::io;

use crucible_terminal::watched;
use ratatui::DefaultTerminal;

use super::board::Board;
use super::draw::{Palette, draw};

/// The owned terminal, restored on drop.
pub(super) struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    /// Takes over the terminal.
    pub(super) fn enter() -> io::Result<Self> {
        match watched(ratatui::try_init) {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                // The setup may have been partly done.
                put_back();
                Err(error)
            }
        }
    }

    /// Shows the board.
    pub(super) fn draw(&mut self, board: &mut Board, palette: Palette) -> io::Result<()> {
        watched(|| self.terminal.draw(|frame| draw(frame, board, palette))).map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _a_terminal_that_is_gone_needs_no_cursor = watched(|| self.terminal.show_cursor());
        put_back();
    }
}

fn put_back() {
    let _a_terminal_that_is_gone_needs_nothing = watched(ratatui::try_restore);
}
