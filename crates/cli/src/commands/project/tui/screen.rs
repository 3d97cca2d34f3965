//! The terminal while the whole of it is ours: raw keys, the alternate screen, no cursor.
//!
//! What always holds: however the screen is left, by a return, an error or a dropped piece of work, the terminal is put back; where
//! the program panics, that is done before the panic is told.

use std::io;

use ratatui::DefaultTerminal;

use super::board::Board;
use super::draw::{Palette, draw};
use crate::blocked_write::watched;

/// The terminal, ours until this is dropped.
pub(super) struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn enter() -> io::Result<Self> {
        match watched(ratatui::try_init) {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                // Part of it may have been done.
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
